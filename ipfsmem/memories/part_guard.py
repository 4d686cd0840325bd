"""Guards pending messages: no change of a single part of a session may approve imported messages.

Every write, restore, undo, resolve, approval, import or removal of a memory goes through `Writing`, which runs this check before
the first change of a part and before the transaction ends. Only the methods of `Sessions` approve messages, and they are not
checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from ipfsmem.bundle.memory_file import parse_memory
from ipfsmem.bundle.session_parts import is_part, is_part_key
from ipfsmem.causal.entries import memory_name
from ipfsmem.device.writing import Writing
from ipfsmem.errors import UsageError
from ipfsmem.memories.memory_reader import MemoryReader
from ipfsmem.memories.part_lines import entries_of_texts
from ipfsmem.memories.session_reader import SessionReader
from ipfsmem.sessions.compaction import MARK, Place, PlacedItem, is_mark, unapproved


class _SessionContent(NamedTuple):
    """The content of a session: its entries by place, the places of unapproved entries, and whether all parts could be read."""

    entries: Mapping[Place, PlacedItem]
    unapproved: frozenset[Place]
    whole: bool

    def marks(self, kind: str) -> frozenset[Place]:
        """Return the places of marks of this kind."""
        each = self.entries.items()
        return frozenset(place for place, one in each if is_mark(one.item) and kind in one.item[MARK])

    def approves(self, before: _SessionContent) -> bool:
        """Return whether a remaining entry became approved since `before`. If some parts could not be read then, a removed import
        mark or a new approval mark also counts as an approval."""
        if (before.unapproved & self.entries.keys()) - self.unapproved:
            return True
        return not before.whole and bool(
            before.marks("imported") - self.marks("imported")
            or self.marks("approved") - before.marks("approved")
        )


def watch_part(change: Writing, name: str) -> Callable[[], None] | None:
    """Return a check for the end of a transaction that is about to change a part of a session, which raises UsageError if the
    change approves pending messages; None if the session has none."""
    place = memory_name(name)
    if place is None or not is_part_key(place.key):
        return None
    sessions = SessionReader(MemoryReader(change.replica, place.scope))
    before = {session: _record(sessions, change, session) for session in sessions.names_beside(place.key)}
    guarded = {session: one for session, one in before.items() if one.unapproved or not one.whole}

    def check() -> None:
        for session, one in guarded.items():
            if _record(sessions, change, session).approves(one):
                raise _refusal(session, place.key)

    return check if guarded else None


def check_incoming(memories: MemoryReader, change: Writing, key: str, data: bytes, *, replaces: bool) -> None:
    """Check a text before its import. `replaces`: whether it replaces the current text or becomes a sibling. Raises UsageError if
    it is a part of a session and would approve pending messages; the import then leaves it out."""
    if not is_part_key(key):
        return
    sessions = SessionReader(memories)
    session = parse_memory(data).session
    if is_part(key, parse_memory(data)):
        before = _record(sessions, change, session)
        if _record(sessions, change, session, (key, data, replaces)).approves(before):
            raise _refusal(session, key)


def unapproved_in(texts: Iterable[tuple[str, bytes]]) -> frozenset[Place]:
    """Return the places of imported, unapproved entries in some parts of one session. `texts`: (key, text) of each part."""
    return frozenset(unapproved(entries_of_texts(texts)))


def check_restored(
    memories: MemoryReader, change: Writing, key: str, data: bytes, then: frozenset[Place] | None
) -> None:
    """Check an earlier text before it replaces the current one. `then`: the imported, unapproved entries in a version with this
    text; None if unknown. Raises UsageError if such an entry would be restored as approved."""
    if not is_part_key(key) or not is_part(key, parse_memory(data)):
        return
    sessions, session = SessionReader(memories), parse_memory(data).session
    before = _record(sessions, change, session)
    after = _record(sessions, change, session, (key, data, True))
    new = after.entries.keys() - before.entries.keys() - after.unapproved
    if new if then is None else new & then:
        raise UsageError(
            f"{key} holds imported messages of the session {session[:60]!a} that nobody approved, as far as is known here, and alone it would "
            "bring them back as approved: bring the later parts of the session back first"
        )


def _record(
    sessions: SessionReader, change: Writing, session: str, coming: tuple[str, bytes, bool] | None = None
) -> _SessionContent:
    entries, whole = sessions.readable(session, change, coming)
    return _SessionContent({one.place: one for one in entries}, frozenset(unapproved(entries)), whole)


def _refusal(session: str, key: str) -> UsageError:
    return UsageError(
        f"imported messages of the session {session[:60]!a} are pending, and a change of {key} alone would approve them: forget the session "
        "as a whole, or approve them (a person's decision, ipfsmem approve)"
    )
