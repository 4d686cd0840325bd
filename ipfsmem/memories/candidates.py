"""Pending texts, for a person to review after an import: listed, and approved one by one or together.

The source of a text is in its header (`source`), which its writer chose: it is shown, and proves nothing. Which texts an import
of a program brought is this device's own record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from ipfsmem.causal.value import FOREIGN
from ipfsmem.device.bulk import no_collection
from ipfsmem.device.last_change import note_irrevocable
from ipfsmem.device.writing import writing
from ipfsmem.errors import ChangedError
from ipfsmem.memories.memories import MemoryStore
from ipfsmem.memories.memory_records import MemoryRecord
from ipfsmem.memories.overview import head_of
from ipfsmem.memories.sessions import Sessions
from ipfsmem.memories.sessions_here import AllSessions
from ipfsmem.wording import count


class PendingText(msgspec.Struct, frozen=True, kw_only=True):
    """A text of others that can be approved, or was."""

    key: str
    #: The name of the conflict copy that it is, if another text is shown; "" if it is the text that is shown.
    copy: str
    source: str
    name: str
    description: str
    sha256: str
    scope: str = ""
    #: For pending messages of a session: its name and their number. Key and SHA-256 are empty then.
    session: str = ""
    messages: int = 0

    @classmethod
    def of(cls, reading: MemoryRecord, copy: str = "") -> PendingText:
        """Return a text as it is listed."""
        head = head_of(reading.data)
        return cls(
            key=reading.key,
            copy=copy,
            source=head.source,
            name=head.name,
            description=head.description,
            sha256=reading.sha256,
            scope=reading.scope,
        )


#: Whether an import on this device brought a text under a key of a scope.
TakenIn = Callable[[str, str, bytes], bool]


def candidates(
    memories: MemoryStore, taken_in: TakenIn | None = None, program: str | None = None
) -> tuple[PendingText, ...]:
    """Return the texts of others of one scope that are on this device, by key, then the sessions with pending messages; with
    `taken_in` those that this person's devices hold as texts of others and that an import of `program` brought."""
    texts = [one for one, _ in _pending_rows(memories, taken_in)]
    sessions = Sessions(memories).pending()
    return (
        *texts,
        *(
            _of_session(memories, session, source, number)
            for session, pending in sessions.items()
            for source, number in sorted(Counter(pending.values()).items())
            if program in (None, source)
        ),
    )


def _of_session(memories: MemoryStore, session: str, source: str, messages: int) -> PendingText:
    return PendingText(
        key="",
        copy="",
        source=source,
        name=session,
        description=f"session with {count(messages, 'pending message')}",
        sha256="",
        scope=memories.scope,
        session=session,
        messages=messages,
    )


def _pending_rows(memories: MemoryStore, taken_in: TakenIn | None) -> list[tuple[PendingText, bool]]:
    """Return the candidates, and whether each is the only text under its key: no own text, and no other text of others."""
    rows = []
    for item in memories.conflicts():
        if item.forgotten:
            continue
        texts: list[tuple[str, MemoryRecord | None]] = [("", item.shown)]
        texts += [(copy.file, copy.reading) for copy in item.copies]
        for file, reading in texts:
            if reading is None or reading.own:
                continue
            if taken_in is not None and not (
                taken_in(memories.scope, item.key, reading.data) and _is_held_as_foreign(memories, reading)
            ):
                continue
            one = PendingText.of(reading, file)
            rows.append((one, not file and not item.copies))
    return rows


def _is_held_as_foreign(memories: MemoryStore, reading: MemoryRecord) -> bool:
    """Return whether only this person's devices wrote it, as a text of somebody outside the vault."""
    entry = memories.entry(reading.key)
    return all(
        dot in entry and entry[dot].author == FOREIGN and memories.is_own(dot, "") for dot in reading.token
    )


def promote_session(parts: Sequence[MemoryStore], session: str, seen: str | None) -> tuple[PendingText, ...]:
    """Approve the pending messages of a session of a scope and of those that lead to it; returns a candidate for each scope and
    program that they came from."""
    memories, *below = parts
    with writing(memories.replica) as change, no_collection():
        if seen is not None and AllSessions(memories, below).seen(session) != seen:
            raise ChangedError(f"the session {session} changed since it was read", hint="Read it again.")
        numbers_of = [(part, Sessions(part).approve_session_in(change, session)) for part in parts]
        if any(numbers for _, numbers in numbers_of):
            note_irrevocable(memories.replica, "an approval of many")
    return tuple(
        _of_session(part, session, program, number)
        for part, numbers in numbers_of
        for program, number in numbers.items()
    )


def promote_all(memories: MemoryStore, taken_in: TakenIn, program: str) -> tuple[PendingText, ...]:
    """Approve every candidate that an import of a program brought, messages of sessions too, in one transaction. Returns the
    approved ones.

    A candidate with another text under its key, whoever wrote that, stays pending: nobody compared the two.
    """
    with writing(memories.replica) as change, no_collection():
        texts = tuple(one for one, alone in _pending_rows(memories, taken_in) if alone)
        for one in texts:
            memories.promote_in(change, one.key)
        approved = Sessions(memories).approve_in(change, program)
        texts += tuple(_of_session(memories, name, program, number) for name, number in approved.items())
        if texts:
            note_irrevocable(memories.replica, "an approval of many")
    return texts
