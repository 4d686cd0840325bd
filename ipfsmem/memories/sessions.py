"""Writes sessions: adds, imports, approves, removes and forgets their items.

`Sessions` also reads, by `session_reader`. A device writes only its own parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ipfsmem.bundle.memory_file import MemoryFile, render_memory
from ipfsmem.bundle.session_parts import SESSION, session_token
from ipfsmem.canonical import MAX_INT
from ipfsmem.causal.value import LIVE
from ipfsmem.causal.view import siblings
from ipfsmem.device.events import Timeline
from ipfsmem.device.last_change import note_irrevocable
from ipfsmem.device.writing import Writing, writing
from ipfsmem.errors import ChangedError, LimitError
from ipfsmem.memories.memories import MemoryStore
from ipfsmem.memories.part_lines import (
    cut_item,
    decoded_item,
    encoded_line,
    entries_of_parts,
    item_text,
    items_of_parts,
    size_of_lines,
)
from ipfsmem.memories.parts_read import PartLine, SessionPart
from ipfsmem.memories.session_reader import SessionReader, hash_of_parts
from ipfsmem.sessions.compaction import (
    approved_mark,
    imported_mark,
    is_mark,
    pending_of,
    title_mark,
    unapproved,
)

#: Maximum bytes of a part.
MAX_PART = 512 * 1024
#: Bytes after which the next item starts a new part, because each addition seals and uploads the whole part.
FULL = 16 * 1024
#: Maximum characters of a title.
_MAX_TITLE = 200


class Sessions(SessionReader):
    """The sessions of one scope of a replica."""

    def __init__(self, memories: MemoryStore) -> None:
        super().__init__(memories)
        self._memories: MemoryStore = memories

    def add(self, session: str, items: Iterable[Mapping[str, Any]], after: int = 0) -> list[str]:
        """Add items at the end, later than `after`, durable together on return; returns the keys of the parts that changed.

        Raises UsageError for an item that is not a JSON object, LimitError for one that is too long.
        """
        texts = [item_text(item) for item in items]
        if not texts:
            session_token(session)
            return []
        with writing(self._replica) as change:
            return self._add_texts(change, session, texts, after)

    def add_in(
        self, change: Writing, session: str, items: Iterable[Mapping[str, Any]], after: int = 0
    ) -> list[str]:
        """Add items as `add`, in the caller's transaction."""
        texts = [item_text(item) for item in items]
        return self._add_texts(change, session, texts, after) if texts else []

    def add_dated_in(
        self,
        change: Writing,
        session: str,
        items: Sequence[tuple[int | None, Mapping[str, Any]]],
        title: str = "",
        *,
        source: str,
    ) -> int:
        """Add the missing items of a conversation, in the caller's transaction; returns their number. Each item has its own time
        (milliseconds since 1970 UTC), which is increased where necessary to keep the order. Items that the session has already are
        skipped. `title`: of a new session. `source`: the program that they come from; they are pending until a person approves
        them. Raises UsageError, LimitError."""
        texts = [(at, item_text(item)) for at, item in items]
        texts_here = [
            item_text(item)
            for _, text in items_of_parts(self._parts(session, change))
            if not is_mark(item := decoded_item(text))
        ]
        new = texts[overlap(texts_here, [text for _, text in texts]) :]
        if not new:
            return 0
        parts = self._last_parts(session, change)
        last = max((line.at for part in parts for line in part.lines), default=0)
        now = self._next_time(parts)
        lines = []
        title = "".join(c for c in " ".join(title.split()) if c.isprintable())[:_MAX_TITLE]
        if title and not parts:
            new = [(new[0][0], item_text(title_mark(title))), *new]
        for at, text in new:
            last = max(last + 1, min(at or 0, now))
            lines += cut_item(last, 0, text)
        if last > MAX_INT:
            raise LimitError("import failed: a timestamp exceeds the maximum")
        mark = imported_mark(source, self._replica.device.id, (lines[0].at, 0), (last, 0))
        lines += cut_item(last, 1, item_text(mark))
        self._append(change, session, parts, lines)
        return len([text for _, text in new if not is_mark(decoded_item(text))])

    def approve_in(self, change: Writing, source: str) -> dict[str, int]:
        """Approve the pending messages of a program and their summaries, in the caller's transaction; returns the number of
        approved messages of each conversation."""
        numbers = {}
        for session, pending in self._pending_in(change).items():
            number = sum(program == source for program in pending.values())
            if number:
                self._approve(change, session, source)
                numbers[session] = number
        return numbers

    def approve_session_in(self, change: Writing, session: str) -> dict[str, int]:
        """Approve all pending messages of one conversation, in the caller's transaction; returns their number by program. Raises
        NotFoundError if a part of it is not fetched."""
        numbers = Counter(pending_of(entries_of_parts(self._parts(session, change))).values())
        if numbers:
            self._approve(change, session, None)
        return dict(sorted(numbers.items()))

    def _approve(self, change: Writing, session: str, source: str | None) -> None:
        change.check_parts()  # check earlier changes before this approval
        imported = unapproved(entries_of_parts(self._parts(session, change)))
        places = [place for place, program in imported.items() if source in (None, program)]
        self._add_texts(change, session, [item_text(approved_mark(places))])

    def _last_parts(self, session: str, change: Writing) -> list[SessionPart]:
        """Return, for each device, the last part that has a line, and the parts after it. No earlier part has a later line, because
        a line is added after all lines that its writer knows."""
        of: dict[str, list[str]] = {}
        for key in self._keys(session_token(session)):
            of.setdefault(key.rsplit("-", 2)[1], []).append(key)
        parts = []
        for keys in of.values():
            for key in sorted(keys, key=lambda one: -int(one.rpartition("-")[2])):
                part = self._part(session, key, change)
                if part is not None:
                    parts.append(part)
                    if part.lines:
                        break
        return parts

    def _add_texts(self, change: Writing, session: str, texts: list[str], after: int = 0) -> list[str]:
        parts = self._last_parts(session, change)
        at = self._next_time(parts, after)
        lines = [line for n, text in enumerate(texts) for line in cut_item(at, n, text)]
        return self._append(change, session, parts, lines)

    def pop(self, session: str) -> tuple[dict[str, Any] | None, list[str]]:
        """Remove the last item that is not a mark; returns the item or None, and the keys of the parts that changed.

        An item of this device is deleted with its text; an item of another device is marked as removed.
        """
        with writing(self._replica) as change:
            parts = self._parts(session, change)
            items = ((place, decoded_item(text)) for place, text in reversed(items_of_parts(parts)))
            place, item = next(((at, one) for at, one in items if not is_mark(one)), (None, None))
            if place is None:
                return None, []
            mine = [part for part in parts if part.device == place[1] == self._replica.device.id]
            changed = []
            for part in mine:
                remaining = [
                    line for line in part.lines if (line.at, part.device, line.n) != place or line.gone
                ]
                if len(remaining) < len(part.lines):
                    part.lines = remaining
                    self._put(change, session, part)
                    changed.append(part.key)
            if not changed:
                changed = self._append(change, session, parts, [PartLine(self._next_time(parts), gone=place)])
            return item, changed

    def forget(self, session: str, reason: str = "", seen: str | None = None) -> list[str]:
        """Forget all known parts in one transaction, with one event; returns their keys. Raises ChangedError if the parts differ
        from `seen`."""
        with writing(self._replica) as change:
            parts = self._parts(session, change)
            if seen is not None and parts and hash_of_parts(parts) != seen:
                raise ChangedError(f"the session {session} changed since it was read", hint="Read it again.")
            changed = self._forget_parts(change, parts)
            if changed:
                data = {"session": session, **({"reason": reason} if reason else {})}
                Timeline(self._replica, self._memories.scope).note_in(change, "forgot", data)
                note_irrevocable(self._replica, f"the session {session} was forgotten")
        return changed

    def move_in(self, change: Writing, session: str, to: Sessions) -> None:
        """Move the items of a session to the session of that name in another scope, in the caller's transaction. Raises
        NotFoundError if a part is not fetched; then nothing is moved."""
        parts = self._parts(session, change)
        if parts:
            to.add_in(change, session, [decoded_item(text) for _, text in items_of_parts(parts)])
            self._forget_parts(change, parts)

    def _forget_parts(self, change: Writing, parts: list[SessionPart]) -> list[str]:
        memories, changed = self._memories, []
        for key in [part.key for part in parts]:
            entry = change.entry(memories.name(key))
            own = [value for dot, value in entry.items() if memories.is_own(dot, value.author)]
            if any(value.kind == LIVE for value in own):
                with change.by_session():
                    change.forget(memories.name(key), tuple(d for one in siblings(entry) for d in one.dots))
                changed.append(key)
        return changed

    def _next_time(self, parts: list[SessionPart], after: int = 0) -> int:
        times = [line.at for part in parts for line in part.lines]
        at = max(self._replica.environment.now(), 1 + max([after, *times]))
        if at > MAX_INT:
            raise LimitError(
                "cannot add to this session: its last timestamp is the maximum",
                hint="Use a session with another name, or remove the item (in Python: memory.sessions.pop).",
            )
        return at

    def _append(
        self, change: Writing, session: str, parts: list[SessionPart], lines: list[PartLine]
    ) -> list[str]:
        device = self._replica.device.id
        mine = [part for part in parts if part.device == device]
        number = max((part.number for part in mine), default=-1)
        part = next((one for one in mine if one.number == number and one.ours), None)
        size = size_of_lines(part.lines) if part is not None else 0
        changed: dict[str, SessionPart] = {}
        for line in lines:
            more = len(encoded_line(line)) + 1
            if part is None or (size and size + more > FULL):
                number, size = number + 1, 0
                if number > 999_999:
                    raise LimitError(f"session {session}: at most 1,000,000 parts per device")
                key = f"session-{session_token(session)}-{device}-{number}"
                part = SessionPart(key, device, number, [], self._dots(change, key))
            part.lines.append(line)
            changed[part.key] = part
            size += more
        for one in changed.values():
            self._put(change, session, one)
        return list(changed)

    def _dots(self, change: Writing, key: str) -> tuple[str, ...]:
        """Return the dots that a new part replaces: the forget of an earlier part."""
        entry = self._memories.entry(key, change.entry(self._memories.name(key)))
        return tuple(dot for dot, value in entry.items() if self._memories.is_own(dot, value.author))

    def _put(self, change: Writing, session: str, part: SessionPart) -> None:
        day = self._replica.environment.today().isoformat()
        fields = {
            "name": f"Session {session}",
            "type": SESSION,
            "updated": day,
            SESSION: session,
        }
        body = "\n".join(text.decode() for text in (*part.rest, *map(encoded_line, part.lines)))
        data = render_memory(MemoryFile(fields, body))
        if len(data) > MAX_PART:
            raise LimitError(
                f"part of session {session} too large: at most {MAX_PART:,} bytes (got {len(data):,})"
            )
        with change.by_session():
            self._memories.write_in(change, part.key, data, seen=part.dots)


def overlap(stored: Sequence[str], new: Sequence[str]) -> int:
    """Return how many leading items of `new` are in `stored` already: all if `stored` contains `new` as a whole, otherwise the
    longest prefix of `new` with which `stored` ends."""
    many = len(new)
    if any(stored[at : at + many] == list(new) for at in range(len(stored) - many + 1)):
        return many
    return next(
        size
        for size in range(min(len(stored), many), -1, -1)
        if stored[len(stored) - size :] == list(new[:size])
    )
