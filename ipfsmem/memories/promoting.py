"""Moves a memory from one scope to another at a person's request, for example from a project to the default scope.

An existing text in the target scope is replaced only if the caller passes its hash; texts are not merged.
"""

from __future__ import annotations

import contextlib
from shlex import quote

from ipfsmem.device.events import Timeline
from ipfsmem.device.last_change import note_irrevocable
from ipfsmem.device.writing import writing
from ipfsmem.errors import ChangedError, NotFoundError, UsageError
from ipfsmem.memories.fact_history import session_of
from ipfsmem.memories.memories import EntryContext, MemoryStore
from ipfsmem.memories.memory_reader import NotHereError
from ipfsmem.memories.memory_records import MemoryRecord, Seen, place_of
from ipfsmem.memories.sessions import Sessions

#: Type of the event that records a move, in the timeline of the target scope.
PROMOTED = "promoted"


def promote_to(
    source: MemoryStore,
    target: MemoryStore,
    key: str,
    *,
    seen: Seen | None = None,
    if_match: str | None = None,
    keep: bool = False,
) -> MemoryRecord:
    """Copy the own text of a memory into the target scope and, unless `keep`, forget it in the source scope, in one transaction;
    returns the text shown in the target scope. Unless `keep`, earlier texts move too, and precede those of the target.

    `seen`: what the caller was shown in the source scope. `if_match`: the SHA-256 of the text in the target scope, which is
    replaced; without it the target must have no text, or the same. Raises NotFoundError, ChangedError, and UsageError for a text of
    others or with conflicts.
    """
    if source.scope == target.scope:
        raise UsageError(f"{place_of(source.scope, key)} is in that scope already")
    name = source.checked_name(key)
    with writing(source.replica) as change:
        shown = source.shown_in(change, key)
        if shown is None:
            raise NotFoundError(
                f"there is no memory {place_of(source.scope, key)}",
                hint="List the memories: ipfsmem list.",
            )
        if not shown.own:
            raise UsageError(
                f"{place_of(source.scope, key)} is pending",
                hint=f"Approve it first: ipfsmem approve {key} --scope {quote(source.scope)}",
            )
        if shown.conflicts:
            raise UsageError(
                f"{place_of(source.scope, key)} has several texts, and only one would be moved: resolve the conflict first"
            )
        session = Sessions(source).session_of_part(key)
        if session is not None:
            raise UsageError(
                f"{place_of(source.scope, key)} cannot be moved alone: it is a part of the session {session[:60]!a}, whose other parts "
                "record which messages are approved"
            )
        before = source.before(EntryContext(source, change, key), seen)
        if before.data is None or set(before.dots) != set(shown.token):
            raise ChangedError(
                f"{place_of(source.scope, key)} changed since it was read", hint="Read it again."
            )
        there = target.shown_in_stack(change, key)
        same = there is not None and there.own and there.data == before.data
        below = there is not None and there.scope != target.scope
        if not same or below:
            if not same and there is not None and (if_match is None or (below and if_match != there.sha256)):
                raise ChangedError(
                    f"{place_of(target.scope, key)} has a text already, which would be replaced",
                    hint="Read it there, then try again with the SHA-256 of that text: --if-match, or if_match in Python.",
                )
            target.write_in(change, key, before.data, if_match="" if below else if_match or "")
        if not keep:
            from ipfsmem.device.dreams import forget_in_dreams  # needed only to forget

            change.forget(name, before.dots)
            forget_in_dreams(source.replica, source.scope, key)
            with contextlib.suppress(NotHereError):  # earlier texts that are not fetched stay where they are
                Sessions(source).move_in(change, session_of(key), Sessions(target))
        data = {"key": key, "from": source.scope, "to": target.scope}
        Timeline(target.replica, target.scope).note_in(change, PROMOTED, data)
        note_irrevocable(
            source.replica, f"{place_of(source.scope, key)} was moved to {place_of(target.scope, key)}"
        )
        record = target.shown_in(change, key)
        assert record is not None
        return record
