"""Undoes the last write or forget of this device: restores the old texts and removes the new ones.

Possible only while all new texts are current, so that no later write is undone. The undo consists of new writes, which other
devices merge like any other change. Published data stays published.
"""

from __future__ import annotations

import msgspec

from ipfsmem.causal.authorship import author_of_copy
from ipfsmem.causal.entries import memory_name
from ipfsmem.causal.value import FORGOTTEN, Value
from ipfsmem.device.last_change import last_change, note_change
from ipfsmem.device.writing import Writing, writing
from ipfsmem.errors import ChangedError, NotFoundError
from ipfsmem.memories.memories import MemoryStore


class Undone(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an undo. `undone`: the kind of the undone change (`write`, `forget`, ...); `at`: its time in milliseconds since
    1970 UTC. `sha256`: of the text that is shown now, None if no text is. `merged`: whether that text is a merge of concurrent
    edits."""

    undone: str
    key: str
    scope: str
    sha256: str | None
    merged: bool
    at: int


def undo(memories: MemoryStore) -> Undone:
    """Undo the last change that was made through this program, in any scope.

    Raises NotFoundError if there is no change to undo or its texts are no longer stored, ChangedError if the memory changed since.
    """
    replica = memories.replica
    with writing(replica) as change:
        last = last_change(replica)
        name = memory_name(last.name) if last is not None else None
        if last is None or name is None:
            raise NotFoundError(
                f"nothing was undone: the last operation on this device cannot be: {last.operation}"
                if last is not None
                else "there is nothing to undo on this device",
                hint="List the revisions of a memory: ipfsmem history KEY.",
            )
        here = memories.in_scope(name.scope)
        before = change.entry(last.name)
        if not set(last.came) <= before.keys():
            raise ChangedError(
                f"{name.key} was changed since, so nothing was undone",
                hint=f"List its revisions: ipfsmem history {name.key}",
            )
        _put_back(change, here, last.name, last.gone, last.came)
        note_change(change, "undo", last.name, before)
        shown = here.shown_in(change, name.key)
        return Undone(
            undone=last.operation,
            key=name.key,
            scope=name.scope,
            sha256=None if shown is None else shown.sha256,
            merged=shown is not None and shown.merged,
            at=last.at,
        )


def _put_back(
    change: Writing, memories: MemoryStore, name: str, gone: dict[str, Value], came: tuple[str, ...]
) -> None:
    mine = memories.replica.is_mine
    texts = {dot: value for dot, value in gone.items() if value.body is not None}
    forgotten = any(value.kind == FORGOTTEN for value in gone.values())
    bodies = {dot: memories.replica.store.body(name, value) for dot, value in texts.items()}
    lost = [dot for dot, body in bodies.items() if body is None]
    if lost:
        raise NotFoundError(
            f"{len(lost)} of {len(texts)} texts that were there before are not kept on this device any more"
        )
    if len(texts) == 1 and not forgotten:
        ((dot, value),) = texts.items()
        of = author_of_copy(dot, value, mine)
        change.put(name, bodies[dot] or b"", came, of=of, promoted=not of)
        return
    # Several texts become siblings again, with their bases, so that a merge is repeated.
    for dot, value in texts.items():
        change.write_again(name, msgspec.structs.replace(value, author=author_of_copy(dot, value, mine)))
    if forgotten:
        change.forget(name, came)
    else:
        change.remove(name, came)
