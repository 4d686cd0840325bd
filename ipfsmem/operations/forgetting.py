"""Delete a memory of one scope on every device, for the operation `forget` and for parts that store memories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ipfsmem.errors import ChangedError
from ipfsmem.memories.memory_records import SEEN_LEAST, MemoryRecord, Seen
from ipfsmem.operations.writing import shown_to_reader

if TYPE_CHECKING:
    from ipfsmem.memories.memories import MemoryStore
    from ipfsmem.open_vault.handle import VaultHandle


def forget_text(
    opened: VaultHandle,
    scope: str,
    key: str,
    *,
    reason: str = "",
    seen: Seen | None = None,
    if_match: str | None = None,
    keep_earlier: bool = False,
) -> tuple[str, ...]:
    """Delete a memory with its concurrent edits, and add an event. Return the scopes that had it. Arguments as those of `forget`."""
    opened.ingest_file(key, scope)
    below = opened.scopes.stack(scope)[1:] if scope else []
    memories = opened.memories.in_scope(scope)
    if isinstance(seen, str) and (shown := shown_to_reader(memories, below, key)) and shown.scope != scope:
        if len(seen) < SEEN_LEAST or not shown.seen.startswith(seen.lower()):
            raise ChangedError(f"{key} changed since it was read", hint="Read it again.")
        seen = shown
    if isinstance(seen, MemoryRecord) and seen.scope in below:
        return forget_text(
            opened, seen.scope, key, reason=reason, seen=seen, if_match=if_match, keep_earlier=keep_earlier
        )
    lower = below if seen is None and if_match is None else []
    gone = memories.forget(key, seen=seen, if_match=if_match)
    lower_gone = [
        found
        for one in lower
        for found in forget_text(opened, one, key, reason=reason, keep_earlier=keep_earlier)
    ]
    also = not keep_earlier and (gone or (seen is None and not if_match))
    earlier = _forget_earlier(opened, memories, key) if also else []
    if gone:
        _record(opened, memories, key, reason)
    if gone or earlier:
        opened.changed()
        _erase(opened, memories, [*([key] if gone else []), *earlier], key)
    return (*([scope] if gone or earlier else []), *lower_gone)


def forget_removed(opened: VaultHandle, removed: Sequence[MemoryRecord], reason: str) -> None:
    """Delete these texts of one memory, which stay in its history. Raises ChangedError for one that changed meanwhile."""
    for one in removed:
        forget_text(opened, one.scope, one.key, reason=reason, seen=one, keep_earlier=True)


def _record(opened: VaultHandle, memories: MemoryStore, key: str, reason: str) -> None:
    """Remove the plain file, and add an event."""
    if opened.files is not None:
        opened.files.forget(key, memories.scope)
    # A forgotten scope gets no event, although concurrent texts of others may still be deleted there.
    with opened.replica.reading():
        scope_field = {"scope": memories.scope} if memories.forgotten() else {}
    from ipfsmem.operations.events import add_event

    about = {**scope_field, "key": key, **({"reason": reason} if reason else {})}
    # In the memory's own scope, even if new events of that scope are redirected.
    add_event(opened, "" if scope_field else memories.scope, "forgot", about)


def _forget_earlier(opened: VaultHandle, memories: MemoryStore, key: str) -> list[str]:
    """Delete the earlier texts of a fact, and its hidden state; return the keys of their parts."""
    from ipfsmem.device.hidden import hidden_texts, show

    with opened.replica.reading():
        hidden = (memories.scope, key) in hidden_texts(opened.replica)
    if hidden:
        with opened.replica.transaction():
            show(opened.replica, [(memories.scope, key)])
    from ipfsmem.memories.fact_history import has_history, session_of

    if not has_history(memories, [key]):
        return []
    from ipfsmem.memories.sessions import Sessions

    # Sessions of this scope, even if it is redirected.
    return Sessions(memories).forget(session_of(key), f"{key} was forgotten")


def _erase(opened: VaultHandle, memories: MemoryStore, keys: list[str], key: str) -> None:
    """Erase the texts from the database in mode local, and their vectors."""
    if opened.mode.only_here:
        from ipfsmem.memories.purge import erase

        erase(opened.replica, memories, keys, key)
    from ipfsmem.memories.kept_vectors import erase_forgotten

    erase_forgotten(memories)
