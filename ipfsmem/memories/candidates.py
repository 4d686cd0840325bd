"""Lists and approves pending texts, which a person reviews after an import.

The field `source` in a text's header was chosen by its writer and proves nothing. This device records which texts it imported from
which program.
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
    """A text of others that can be approved, or was approved."""

    key: str
    #: The name of its conflict copy; "" if it is the shown text.
    copy: str
    source: str
    name: str
    description: str
    sha256: str
    scope: str = ""
    #: For pending messages: the name of their session, and their number. `key` and `sha256` are then empty.
    session: str = ""
    messages: int = 0

    @classmethod
    def of(cls, reading: MemoryRecord, copy: str = "") -> PendingText:
        """Return the listed form of a text."""
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


#: `was_imported(scope, key, text)`: whether this device imported this text under this key.
WasImported = Callable[[str, str, bytes], bool]


def candidates(
    memories: MemoryStore, was_imported: WasImported | None = None, program: str | None = None
) -> tuple[PendingText, ...]:
    """Return the texts of others of one scope that are on this device, by key, then the sessions with pending messages. With
    `was_imported`: only texts that this person's devices imported from `program`."""
    texts = [one for one, _ in _pending_rows(memories, was_imported)]
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


def _pending_rows(memories: MemoryStore, was_imported: WasImported | None) -> list[tuple[PendingText, bool]]:
    """Return the candidates, each with whether it is the only text under its key."""
    rows = []
    for item in memories.conflicts():
        if item.forgotten:
            continue
        texts: list[tuple[str, MemoryRecord | None]] = [("", item.shown)]
        texts += [(copy.file, copy.reading) for copy in item.copies]
        for file, reading in texts:
            if reading is None or reading.own:
                continue
            if was_imported is not None and not (
                was_imported(memories.scope, item.key, reading.data)
                and _is_held_as_foreign(memories, reading)
            ):
                continue
            one = PendingText.of(reading, file)
            rows.append((one, not file and not item.copies))
    return rows


def _is_held_as_foreign(memories: MemoryStore, reading: MemoryRecord) -> bool:
    """Return whether this person's devices alone wrote this text, marked as the text of somebody outside the vault."""
    entry = memories.entry(reading.key)
    return all(
        dot in entry and entry[dot].author == FOREIGN and memories.is_own(dot, "") for dot in reading.token
    )


def promote_session(parts: Sequence[MemoryStore], session: str, seen: str | None) -> tuple[PendingText, ...]:
    """Approve the pending messages of a session in these scopes; returns one candidate for each scope and source program."""
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


def promote_all(memories: MemoryStore, was_imported: WasImported, program: str) -> tuple[PendingText, ...]:
    """Approve all candidates imported from a program, including messages, in one transaction. Returns the approved candidates.

    A candidate stays pending if its key has another text, because nobody compared the two.
    """
    with writing(memories.replica) as change, no_collection():
        texts = tuple(one for one, alone in _pending_rows(memories, was_imported) if alone)
        for one in texts:
            memories.promote_in(change, one.key)
        approved = Sessions(memories).approve_in(change, program)
        texts += tuple(_of_session(memories, name, program, number) for name, number in approved.items())
        if texts:
            note_irrevocable(memories.replica, "an approval of many")
    return texts
