"""Sessions: conversations as lists of items, any JSON objects, that grow at their end on several devices (format section 5.1).

Each device writes its own parts, so that concurrent additions never conflict: a session is the content of all parts, ordered by
the times at which their items were added. A part is a memory file of the type `session`, whose body is one line of JSON per item.
Nothing here touches a network.
"""

from __future__ import annotations

import contextlib
import json
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any, Final, NoReturn

import msgspec

from ipfsmem.bundle.memory_file import MemoryFile, parse_memory, render_memory
from ipfsmem.bundle.session_parts import (
    HISTORY,
    NUMBERED,
    PART_PREFIX,
    SESSION,
    is_part,
    is_part_key,
    session_token,
)
from ipfsmem.canonical import MAX_INT, check_depth
from ipfsmem.causal.clock import hlc_ms
from ipfsmem.causal.entries import MemoryName, memory_name
from ipfsmem.causal.value import FORGOTTEN, LIVE, Value
from ipfsmem.causal.view import siblings
from ipfsmem.device.events import Timeline
from ipfsmem.device.last_change import note_irrevocable
from ipfsmem.device.state import StateMark, StateStore
from ipfsmem.device.writing import Writing, writing
from ipfsmem.errors import ChangedError, FormatError, IpfsmemError, LimitError, StorageError, UsageError
from ipfsmem.memories.memories import MemoryStore, NotHereError
from ipfsmem.memories.memory_records import token_hash
from ipfsmem.memories.parts_read import NO_ITEM, Ends, PartLine, PartsRead, SessionPart
from ipfsmem.sessions.compaction import (
    MARK,
    Place,
    PlacedItem,
    approved_mark,
    imported_mark,
    is_mark,
    pending_of,
    title_mark,
    unapproved,
)

#: Bytes of a part after which the next item begins a new one: a whole part is sealed and sent with each addition.
MAX_PART = 512 * 1024
FULL = 16 * 1024
#: Maximum characters of an item in one line; a longer one is split. Each may take up to four bytes.
_PIECE = 100_000
#: Maximum characters of an item as JSON.
MAX_ITEM = 32 * 1024 * 1024

#: Maximum depth of a line, and of an item of pieces; every reader can read this deep, whatever its call stack.
_MAX_NESTED = 512
#: Before each item of a device.
_NOWHERE: Final = (-1, -1)
_DEVICE = re.compile(r"[0-9a-f]{16}")
#: An escape in JSON; its group is a lone half of a surrogate pair.
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)"
)
_PART = re.compile(f"session-.+-{NUMBERED}")
#: The token of the earlier texts of a memory in the keys of their parts.
_HISTORY_TOKEN = re.compile(r"ipfsmem_history-[0-9a-f]{16}")


class _WrittenLine(msgspec.Struct, frozen=True):
    """The fields of a line as another program may write them: `1.0` and `1e3` are integers, and a null field is absent."""

    at: msgspec.Raw = NO_ITEM
    n: msgspec.Raw = NO_ITEM
    item: msgspec.Raw = NO_ITEM
    text: msgspec.Raw = NO_ITEM
    piece: msgspec.Raw = NO_ITEM
    gone: msgspec.Raw = NO_ITEM


class SessionFacts(msgspec.Struct, frozen=True):
    """One session, for lists."""

    session: str
    scope: str
    parts: int
    #: When it was last written, in milliseconds since 1970 UTC, by the clock of the writing device.
    changed: int
    #: Whether it, or some of it, is kept on this device only.
    here: bool = False


#: Maximum characters of a title.
_MAX_TITLE = 200
_decode = msgspec.json.Decoder(PartLine).decode
_decode_written = msgspec.json.Decoder(_WrittenLine).decode


def _seen(parts: Iterable[SessionPart]) -> str:
    return token_hash(dot for part in parts for dot in part.dots)


#: What stands for a session without a part.
NOTHING_SEEN: Final = _seen(())


def items_of_files(session: str, parts: Iterable[Mapping[str, str]]) -> list[dict[str, Any]]:
    """Return the items of some memory files, each `{"key", "file"}`, all of one person. Raises UsageError."""
    return [entry.item for entry in entries_of_files(session, parts)]


def entries_of_files(session: str, parts: Iterable[Mapping[str, str]]) -> list[PlacedItem]:
    """Return these items, each with its place."""
    form = _parts_of(session)
    given = [(one["key"], one["file"].encode()) for one in parts if form.fullmatch(one["key"])]
    return entries_of_texts(
        (key, data) for key, data in given if parse_memory(data).fields.get(SESSION) == session
    )


def entries_of_texts(parts: Iterable[tuple[str, bytes]]) -> list[PlacedItem]:
    """Return the items of texts of parts of one session, by key, each with its place."""
    held = []
    for key, data in parts:
        if (match := _PART.fullmatch(key)) is not None:
            lines = [line for _, line in _lines(data) if line is not None]
            held.append(SessionPart(key, match[1], int(match[2]), lines, ()))
    return entries_of_parts(held)


def entries_of_parts(parts: list[SessionPart]) -> list[PlacedItem]:
    """Return the items of all parts of a session in order, each with its place."""
    return [PlacedItem(place, _item(text)) for place, text in _items(parts)]


def _token_of(part: str) -> str:
    """Return the token of the session in the key of a part."""
    return part.removeprefix(PART_PREFIX).rsplit("-", 2)[0]


def _parts_of(session: str) -> re.Pattern[str]:
    """Return the pattern of the keys of a session's parts."""
    return re.compile(f"session-{re.escape(session_token(session))}-{NUMBERED}")


class PartKeys:
    """The keys with the form of a part, of all scopes, updated by changes: adding to a session needs its own among ten thousand
    memories."""

    def __init__(self) -> None:
        self._mark = StateMark()
        self._places: dict[str, MemoryName] = {}
        #: By scope, and by the token of the session in them.
        self._of: dict[str, dict[str, set[str]]] = {}

    def of(self, store: StateStore, scope: str, token: str | None) -> Collection[str]:
        """Return the keys of a session of a scope, by its token, or of all its sessions (inside `reading` or a transaction)."""
        if not store.is_at(self._mark):
            self._follow(store)
        held = self._of.get(scope, {})
        return held.get(token, ()) if token is not None else [key for keys in held.values() for key in keys]

    def _follow(self, store: StateStore) -> None:
        since = store.changes_since(self._mark)
        for name in since.may_be_gone(self._places):
            gone = self._places.pop(name)
            self._of[gone.scope][_token_of(gone.key)].discard(gone.key)
        for name in since.texts:
            place = memory_name(name) if PART_PREFIX in name and name not in self._places else None
            if place is not None and is_part_key(place.key):
                self._places[name] = place
                self._of.setdefault(place.scope, {}).setdefault(_token_of(place.key), set()).add(place.key)
        self._mark = since.mark


class ItemsAt:
    """Reads items of a session by their places, each in the parts of its device: no line of a part is later than those of the
    next. Of the other parts only a few are read, none whose first and last line are known (inside `reading`)."""

    def __init__(self, sessions: Sessions, session: str, keys: Iterable[str], kept: PartsRead) -> None:
        """`keys`: of its parts; `kept`: the cache of parts, which is added to."""
        self._sessions = sessions
        self._session = session
        self._kept = kept
        self._parts: dict[str, SessionPart | None] = {}
        self._looked: dict[str, Ends] = {}
        #: The keys of each device's parts, in order.
        self._of: dict[str, list[str]] = {}
        for key in sorted(keys, key=lambda one: int(one.rpartition("-")[2])):
            self._of.setdefault(key.rsplit("-", 2)[1], []).append(key)

    def entries(self, places: Collection[Place]) -> list[PlacedItem]:
        """Return the items at these places in order, as far as they are found. Marks elsewhere in the session are not read, so
        this does not tell what is pending or removed."""
        taken: dict[str, SessionPart | None] = {}
        try:
            for at, device, n in places:
                held = self._of.get(device, [])
                begin = bisect_left(range(len(held)), (at, n), key=partial(self._last, held))
                for key in held[begin:]:
                    if self._ends_of(key).first > (at, n):
                        break
                    taken[key] = self._read(key)
        except NotHereError:
            return []
        there = _items([part for part in taken.values() if part is not None], places)
        return [PlacedItem(place, _item(text)) for place, text in there]

    def _read(self, key: str) -> SessionPart | None:
        if key not in self._parts:
            found = self._kept.part(*self._sessions.version(key), partial(self._sessions.part, key))
            self._parts[key] = found[1] if found is not None and found[0] == self._session else None
        return self._parts[key]

    def _ends_of(self, key: str) -> Ends:
        if key not in self._looked:
            self._looked[key] = self._ends_now(key)
        return self._looked[key]

    def _ends_now(self, key: str) -> Ends:
        name, version = self._sessions.version(key)
        known = self._kept.ends.get(name)
        if known is None or known.version != version:
            part = self._read(key)
            lines = [(line.at, line.n) for line in part.lines] if part is not None else []
            first, last = min(lines, default=_NOWHERE), max(lines, default=_NOWHERE)
            known = self._kept.ends[name] = Ends(version, first, last)
        return known

    def _last(self, held: list[str], number: int) -> tuple[int, int]:
        # A part may be empty after removals: then it ends where the one before it does.
        found = (self._ends_of(held[one]).last for one in range(number, -1, -1))
        return next((one for one in found if one != _NOWHERE), _NOWHERE)


class Sessions:
    """The sessions of one scope of a replica."""

    def __init__(self, memories: MemoryStore) -> None:
        self._memories = memories
        self._replica = memories.replica

    # -- reading -------------------------------------------------------------------------------------------------

    def listing(self, *, histories: bool = False) -> list[SessionFacts]:
        """Return the sessions with a live part of this person's devices, last written first. `histories`: those that hold the
        earlier texts of a memory, in place of the conversations. Raises NotFoundError if no part of one is fetched, as only
        its parts have its name."""
        parts: dict[str, list[str]] = {}
        names: dict[str, str] = {}
        not_here: list[tuple[str, str, NotHereError]] = []
        with self._replica.reading():
            for key in self._keys():
                entry = self._memories.entry(key).items()
                clocks = [value.h for dot, value in entry if self._memories.is_own(dot, value.author)]
                try:
                    named = self.name_of(key) if clocks else None
                except NotHereError as error:
                    not_here.append((_token_of(key), max(clocks), error))
                    continue
                if named is not None:
                    names[session_token(named)] = named
                    parts.setdefault(named, []).append(max(clocks))
        for token, clock, why in not_here:
            if token in names:
                parts[names[token]].append(clock)
            elif (_HISTORY_TOKEN.fullmatch(token) is not None) == histories:
                raise why
        parts = {name: clocks for name, clocks in parts.items() if name.startswith(HISTORY) == histories}
        newest = sorted(parts, key=lambda name: (max(parts[name]), name), reverse=True)
        scope = self._memories.scope
        return [SessionFacts(one, scope, len(parts[one]), hlc_ms(max(parts[one]))) for one in newest]

    def entries(self, session: str, keys: Iterable[str] | None = None) -> list[PlacedItem]:
        """Return all items in order, also marks, each with its place; `keys`: those of its parts, if the caller has them. Raises
        NotFoundError if a part is not fetched: an item would be missing in between."""
        with self._replica.reading():
            return entries_of_parts(self._parts(session, keys=keys))

    def has(self, session: str) -> bool:
        """Return whether there is a live part of this person's devices; of other sessions nothing is read. Raises NotFoundError
        if none of its parts is fetched."""
        not_here = None
        with self._replica.reading():
            for key in self._keys(session_token(session)):
                try:
                    if self.name_of(key) == session:
                        return True
                except NotHereError as error:
                    not_here = error
        if not_here is not None:
            raise not_here
        return False

    def part(self, key: str) -> tuple[str, SessionPart] | None:
        """Return the session that a key belongs to, and the content of this part; None if it is not a part (inside `reading`).
        Raises NotFoundError if it is not fetched."""
        match, entry = _PART.fullmatch(key), self._memories.entry(key)
        if match is not None and len(entry) == 1:  # nearly all: one own text, opened once
            ((dot, value),) = entry.items()
            if value.kind == LIVE and self._memories.is_own(dot, value.author):
                data = self._replica.store.body(self._memories.name(key), value)
                if data is not None:
                    file = parse_memory(data)
                    if not is_part(key, file):
                        return None
                    texts = dict(_lines_in(file))
                    lines = [line for line in texts.values() if line is not None]
                    rest = [text for text, line in texts.items() if line is None]
                    return file.session, SessionPart(key, match[1], int(match[2]), lines, (dot,), rest)
        session = self.name_of(key)
        part = self._part(session, key, None) if session is not None else None
        return None if session is None or part is None else (session, part)

    def version(self, key: str) -> tuple[str, int]:
        """Return the name of a part's entry, and a number that differs after a change (inside `reading`)."""
        name = self._memories.name(key)
        return name, hash(self._replica.store.raw(name))

    def keys(self, session: str) -> list[str]:
        """Return the keys of its parts."""
        with self._replica.reading():
            return [part.key for part in self._parts(session)]

    def seen(self, session: str) -> str:
        """Return a hash that stands for the texts of all parts."""
        with self._replica.reading():
            return _seen(self._parts(session))

    def name_of(self, key: str) -> str | None:
        """Return the session that a key with this form is a part of; None if it is not a part, is forgotten, or of others."""
        file = self._shown(key)
        return file.session if file is not None and is_part(key, file) else None

    def _shown(self, key: str) -> MemoryFile | None:
        """Return the own text under a key, also one that was added to while another device forgot it."""
        entry = self._memories.entry(key)
        reading = self._memories.reading_of(key, entry)
        if reading is not None:
            return reading.file if reading.own else None
        own = [value for dot, value in entry.items() if self._memories.is_own(dot, value.author)]
        until = _forgotten_until(own)
        for value in own:
            data = self._replica.store.body(self._memories.name(key), value) if value.kind == LIVE else None
            if data is not None and any(line is not None and line.at > until for _, line in _lines(data)):
                return parse_memory(data)
        return None

    def _keys(self, token: str | None = None) -> list[str]:
        """Return the keys of parts, of the session with this token if one is given (inside `reading` or a transaction), sorted."""
        if self._memories.forgotten():
            return []
        known = self._memories.caches.of(PartKeys)
        return sorted(known.of(self._replica.store, self._memories.scope, token))

    def _parts(
        self, session: str, change: Writing | None = None, *, keys: Iterable[str] | None = None
    ) -> list[SessionPart]:
        """Return the parts with all their texts, of this person's devices."""
        if keys is None:
            keys = self._keys(session_token(session))
        parts = (self._part(session, key, change) for key in keys)
        return [part for part in parts if part is not None]

    def _last_parts(self, session: str, change: Writing) -> list[SessionPart]:
        """Return the last part of each device that has a line, and those after it: no line of an earlier one is later, as each
        was added after all that its writer knew."""
        of: dict[str, list[str]] = {}
        for key in self._keys(session_token(session)):
            of.setdefault(key.rsplit("-", 2)[1], []).append(key)
        found = []
        for keys in of.values():
            for key in sorted(keys, key=lambda one: -int(one.rpartition("-")[2])):
                part = self._part(session, key, change)
                if part is not None:
                    found.append(part)
                    if part.lines:
                        break
        return found

    def _part(self, session: str, key: str, change: Writing | None) -> SessionPart | None:
        """Return a part with its own texts, concurrent ones too (a disk may have been copied); None if there is none."""
        name = self._memories.name(key)
        entry = self._memories.entry(key, change.entry(name) if change is not None else None)
        own = tuple(dot for dot, value in entry.items() if self._memories.is_own(dot, value.author))
        match = _PART.fullmatch(key)
        if match is None or not own:
            return None
        part = SessionPart(key, match[1], int(match[2]), [], own)
        texts: dict[bytes, PartLine | None] = {}
        for dot in own:
            value = entry[dot]
            if value.kind != LIVE or value.body is None:
                continue
            data = self._replica.store.body(name, value) if change is None else change.body(name, value)
            if data is None:
                raise NotHereError(
                    f"a part of the session {session} is known but not fetched yet ({key})",
                    hint="Run: ipfsmem sync. Then try again.",
                )
            part.ours = part.ours and parse_memory(data).fields.get(SESSION) == session
            texts.update(_lines(data))
        if part.ours:
            until = _forgotten_until(entry[dot] for dot in own)
            part.lines = [line for line in texts.values() if line is not None and line.at > until]
            part.rest = [text for text, line in texts.items() if line is None and until < 0]
        return part

    # -- writing -------------------------------------------------------------------------------------------------

    def add(self, session: str, items: Iterable[Mapping[str, Any]], after: int = 0) -> list[str]:
        """Add items at the end, later than `after`, durable together on return; returns the keys of the parts that changed.

        Raises UsageError for an item that is not a JSON object, LimitError for one that is too long.
        """
        texts = [item_text(item) for item in items]
        if not texts:
            session_token(session)
            return []
        with writing(self._replica) as change:
            return self._added(change, session, texts, after)

    def add_in(
        self, change: Writing, session: str, items: Iterable[Mapping[str, Any]], after: int = 0
    ) -> list[str]:
        """Add items as `add`, inside a transaction that holds more."""
        texts = [item_text(item) for item in items]
        return self._added(change, session, texts, after) if texts else []

    def add_dated_in(
        self,
        change: Writing,
        session: str,
        items: Sequence[tuple[int | None, Mapping[str, Any]]],
        title: str = "",
        *,
        source: str,
    ) -> int:
        """Add the items of a conversation that are missing here, inside a transaction that holds more, each at its own time (ms
        since 1970 UTC) as far as that keeps their order; returns how many. A conversation that is here, as a whole or in its
        beginning, is recognised. `title`: of a new session. `source`: the program that they come from; they are pending until
        a person approves them. Raises UsageError, LimitError."""
        texts = [(at, item_text(item)) for at, item in items]
        known = [
            item_text(item)
            for _, text in _items(self._parts(session, change))
            if not is_mark(item := _item(text))
        ]
        new = texts[overlap(known, [text for _, text in texts]) :]
        if not new:
            return 0
        parts = self._last_parts(session, change)
        last = max((line.at for part in parts for line in part.lines), default=0)
        now = self._next(parts)
        lines = []
        title = "".join(c for c in " ".join(title.split()) if c.isprintable())[:_MAX_TITLE]
        if title and not parts:
            new = [(new[0][0], item_text(title_mark(title))), *new]
        for at, text in new:
            last = max(last + 1, min(at or 0, now))
            lines += _cut(last, 0, text)
        if last > MAX_INT:
            raise LimitError("an item of this session has nearly the last moment that there is")
        mark = imported_mark(source, self._replica.device.id, (lines[0].at, 0), (last, 0))
        lines += _cut(last, 1, item_text(mark))
        self._append(change, session, parts, lines)
        return len([text for _, text in new if not is_mark(_item(text))])

    def pending(self) -> dict[str, dict[Place, str]]:
        """Return the pending messages of each conversation that has some, with their programs. A conversation that is damaged or
        not completely fetched is left out."""
        with self._replica.reading():
            return self._pending_in(None)

    def session_of_part(self, key: str) -> str | None:
        """Return the session of which a memory is a part; None for any other memory, and if the part cannot be read."""
        with contextlib.suppress(NotHereError, StorageError):
            return self.name_of(key)
        return None

    def names_beside(self, key: str) -> set[str]:
        """Return the names of the sessions with a part under this key or one that differs only in device and number (inside a
        transaction)."""
        found = set()
        for part in self._keys(_token_of(key)):
            with contextlib.suppress(NotHereError, StorageError):
                found.add(self.name_of(part))
        return {session for session in found if session is not None}

    def readable(
        self, session: str, change: Writing, coming: tuple[str, bytes, bool] | None = None
    ) -> tuple[list[PlacedItem], bool]:
        """Return the items of the readable parts in order, also marks, and whether these are all parts. `coming`: key and text of
        a part to include, and whether it replaces the existing one."""
        parts, whole = [], True
        for key in self._keys(session_token(session)):
            try:
                part = self._part(session, key, change)
            except (NotHereError, StorageError):
                whole = False
            else:
                parts += [part] if part is not None else []
        if coming is not None and (match := _PART.fullmatch(coming[0])) is not None:
            lines = [line for _, line in _lines(coming[1]) if line is not None]
            parts = [part for part in parts if part.key != coming[0] or not coming[2]]
            parts.append(SessionPart(coming[0], match[1], int(match[2]), lines, ()))
        return entries_of_parts(parts), whole

    def pending_by(self, key: str) -> str | None:
        """Return the session of which a part marks messages as pending; None for any other part."""
        with self._replica.reading():
            found = None
            try:
                found = self.part(key)
                if found is None or not any(_is_import(line) for line in found[1].lines):
                    return None
                return found[0] if pending_of(self.entries(found[0])) else None
            except IpfsmemError:  # not fetched, or damaged: then it can go, unless another part marks some
                return found[0] if found is not None else None

    def approve_in(self, change: Writing, source: str) -> dict[str, int]:
        """Approve the pending messages of a program, and their summaries, inside a transaction that holds more; returns the
        number of messages of each conversation that had some."""
        found = {}
        for session, pending in self._pending_in(change).items():
            number = sum(program == source for program in pending.values())
            if number:
                self._approve(change, session, source)
                found[session] = number
        return found

    def approve_session_in(self, change: Writing, session: str) -> dict[str, int]:
        """Approve all pending messages of one conversation, inside a transaction that holds more; returns their number by program. Raises
        NotFoundError if a part of it is not fetched."""
        found = Counter(pending_of(entries_of_parts(self._parts(session, change))).values())
        if found:
            self._approve(change, session, None)
        return dict(sorted(found.items()))

    def _approve(self, change: Writing, session: str, source: str | None) -> None:
        change.check_parts()  # earlier changes are checked without this approval
        imported = unapproved(entries_of_parts(self._parts(session, change)))
        places = [place for place, program in imported.items() if source in (None, program)]
        self._added(change, session, [item_text(approved_mark(places))])

    def _pending_in(self, change: Writing | None) -> dict[str, dict[Place, str]]:
        """Return `pending` (inside `reading` or a transaction)."""
        names = set[str]()
        for key in self._keys():
            with contextlib.suppress(NotHereError, StorageError):
                if (session := self.name_of(key)) is not None and not session.startswith(HISTORY):
                    names.add(session)
        found = {}
        for session in sorted(names):
            with contextlib.suppress(NotHereError, StorageError):
                if pending := pending_of(entries_of_parts(self._parts(session, change))):
                    found[session] = pending
        return found

    def _added(self, change: Writing, session: str, texts: list[str], after: int = 0) -> list[str]:
        parts = self._last_parts(session, change)
        at = self._next(parts, after)
        lines = [line for n, text in enumerate(texts) for line in _cut(at, n, text)]
        return self._append(change, session, parts, lines)

    def pop(self, session: str) -> tuple[dict[str, Any] | None, list[str]]:
        """Remove the last item that is not a mark; returns the item, None if there is none, and the keys of the parts that
        changed.

        An item of this device is deleted with its text; one of another device is left out from now on.
        """
        with writing(self._replica) as change:
            parts = self._parts(session, change)
            items = ((place, _item(text)) for place, text in reversed(_items(parts)))
            place, item = next(((at, one) for at, one in items if not is_mark(one)), (None, None))
            if place is None:
                return None, []
            mine = [part for part in parts if part.device == place[1] == self._replica.device.id]
            changed = []
            for part in mine:
                kept = [line for line in part.lines if (line.at, part.device, line.n) != place or line.gone]
                if len(kept) < len(part.lines):
                    part.lines = kept
                    self._put(change, session, part)
                    changed.append(part.key)
            if not changed:
                changed = self._append(change, session, parts, [PartLine(self._next(parts), gone=place)])
            return item, changed

    def forget(self, session: str, reason: str = "", seen: str | None = None) -> list[str]:
        """Forget all known parts together, with one event; returns their keys. Raises ChangedError if they differ from `seen`."""
        with writing(self._replica) as change:
            parts = self._parts(session, change)
            if seen is not None and parts and _seen(parts) != seen:
                raise ChangedError(f"the session {session} changed since it was read", hint="Read it again.")
            changed = self._forget_parts(change, parts)
            if changed:
                said = {"session": session, **({"reason": reason} if reason else {})}
                Timeline(self._replica, self._memories.scope).note_in(change, "forgot", said)
                note_irrevocable(self._replica, f"the session {session} was forgotten")
        return changed

    def move_in(self, change: Writing, session: str, to: Sessions) -> None:
        """Add its items to the session of that name in another scope, and forget it here, inside a transaction that holds more.
        Raises NotFoundError if a part is not fetched: then nothing is moved."""
        parts = self._parts(session, change)
        if parts:
            to.add_in(change, session, [_item(text) for _, text in _items(parts)])
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

    def _next(self, parts: list[SessionPart], after: int = 0) -> int:
        known = [line.at for part in parts for line in part.lines]
        at = max(self._replica.world.now(), 1 + max([after, *known]))
        if at > MAX_INT:
            raise LimitError(
                "an item of this session has the last moment that there is, so nothing can come after it",
                hint="Take it away (in Python: memory.sessions.pop), or begin a session of another name.",
            )
        return at

    def _append(
        self, change: Writing, session: str, parts: list[SessionPart], lines: list[PartLine]
    ) -> list[str]:
        device = self._replica.device.id
        mine = [part for part in parts if part.device == device]
        number = max((part.number for part in mine), default=-1)
        part = next((one for one in mine if one.number == number and one.ours), None)
        size = _size(part.lines) if part is not None else 0
        changed: dict[str, SessionPart] = {}
        for line in lines:
            more = len(_encoded(line)) + 1
            if part is None or (size and size + more > FULL):
                number, size = number + 1, 0
                if number > 999_999:
                    raise LimitError(f"the session {session} has a million parts of this device")
                key = f"session-{session_token(session)}-{device}-{number}"
                part = SessionPart(key, device, number, [], self._dots(change, key))
            part.lines.append(line)
            changed[part.key] = part
            size += more
        for one in changed.values():
            self._put(change, session, one)
        return list(changed)

    def _dots(self, change: Writing, key: str) -> tuple[str, ...]:
        """Return the dots that a new part replaces: the forget of an earlier one."""
        entry = self._memories.entry(key, change.entry(self._memories.name(key)))
        return tuple(dot for dot, value in entry.items() if self._memories.is_own(dot, value.author))

    def _put(self, change: Writing, session: str, part: SessionPart) -> None:
        day = self._replica.world.today().isoformat()
        fields = {
            "name": f"Session {session}",
            "type": SESSION,
            "updated": day,
            SESSION: session,
        }
        body = "\n".join(text.decode() for text in (*part.rest, *map(_encoded, part.lines)))
        data = render_memory(MemoryFile(fields, body))
        if len(data) > MAX_PART:
            raise LimitError(f"a part of the session {session} would have {len(data):,} bytes")
        with change.by_session():
            self._memories.write_in(change, part.key, data, seen=part.dots)


def _forgotten_until(own: Iterable[Value]) -> int:
    """Return the time up to which a forget next to texts covers their lines; -1 if there is none: a device that added meanwhile
    wrote the whole part again."""
    return max((hlc_ms(value.h) for value in own if value.kind == FORGOTTEN), default=-1)


def _encoded(line: PartLine) -> bytes:
    try:
        return msgspec.json.encode(line)
    except UnicodeEncodeError:  # another program split a surrogate pair
        return json.dumps(msgspec.to_builtins(line), separators=(",", ":")).encode()


def _is_import(line: PartLine) -> bool:
    """Return whether a line marks imported messages."""
    text = bytes(line.item)
    return b'"imported"' in text and is_mark(item := _item(text)) and "imported" in item[MARK]


def _size(lines: list[PartLine]) -> int:
    return sum(len(_encoded(line)) + 1 for line in lines)


def _lines(data: bytes) -> Iterator[tuple[bytes, PartLine | None]]:
    """Yield the lines of a part; None for a line of another form."""
    return _lines_in(parse_memory(data))


def _lines_in(file: MemoryFile) -> Iterator[tuple[bytes, PartLine | None]]:
    for text in file.body.encode().split(b"\n"):
        if text:
            yield text, _line(text)


def _line(text: bytes) -> PartLine | None:
    """Return a line of a part; None for one that is ignored."""
    try:
        check_depth(text, "a line of a session", _MAX_NESTED)
    except FormatError:
        return None
    try:
        line = _decode(text)
    except (msgspec.DecodeError, RecursionError):
        return _line_of_others(text)
    return _line_of_others(text) if bytes(line.item) == b"null" else _sound(line)


def _sound(line: PartLine) -> PartLine | None:
    """Return the line if it is valid and of one of the three kinds; else None."""
    item, gone, piece = bytes(line.item), line.gone, line.piece
    if gone is None and piece is None and line.text is None:  # nearly all
        return line if item.startswith(b"{") and 0 <= line.at <= MAX_INT and 0 <= line.n <= MAX_INT else None
    numbers = (line.at, line.n, *(gone[::2] if gone is not None else ()), *(piece or ()))
    sound = (
        not item or item.startswith(b"{"),
        gone is None or _DEVICE.fullmatch(gone[1]) is not None,
        (piece is None) == (line.text is None) and (piece is None or piece[0] < piece[1]),
        sum((bool(item), gone is not None, piece is not None)) == 1,
        all(0 <= number <= MAX_INT for number in numbers),
    )
    return line if all(sound) else None


def _line_of_others(text: bytes) -> PartLine | None:
    """Read a line that only other programs write: with other forms of integers, null fields, repeated names, or a lone surrogate as an
    escape, which is valid JSON but which msgspec refuses."""
    others = count()
    # Each half becomes another escape of the same length, so the item is found again by its bytes.
    filled = _ESCAPE.sub(
        lambda found: b"\\u%04x" % (0x100 + next(others) % 0xD700) if found[1] else found[0], text
    )
    try:
        written = _decode_written(filled)
        raw = {name: bytes(getattr(written, name)) for name in written.__struct_fields__}
        given = {name for name, value in raw.items() if value not in (b"", b"null")}
        fields = {name: _whole(_item(raw[name])) for name in given - {"item", "text"}}
        if "text" in given:
            fields["text"] = _item(text)["text"]
        line = msgspec.convert(fields, PartLine)
    except (msgspec.DecodeError, RecursionError, ValueError):
        return None
    if "item" in given:
        at = filled.rfind(raw["item"])
        line = msgspec.structs.replace(line, item=msgspec.Raw(text[at : at + len(raw["item"])]))
    return _sound(line)


def _whole(value: Any) -> Any:
    """Convert floats without a fraction to integers, also in a list."""
    if isinstance(value, list):
        return [_whole(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _joined(texts: Iterable[str]) -> str:
    """Join texts, also if a surrogate pair was split."""
    return "".join(texts).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _items(parts: list[SessionPart], places: Collection[Place] | None = None) -> list[tuple[Place, str]]:
    """Return the items of all parts in order, without removed ones. `places`: of these alone."""
    found: dict[Place, str] = {}
    pieces: dict[tuple[Place, int], dict[int, str]] = {}
    gone: set[Place] = set()
    for part in parts:
        for line in part.lines:
            place = (line.at, part.device, line.n)
            if line.gone is not None:
                gone.add(line.gone)
            elif line.piece is not None:
                pieces.setdefault((place, line.piece[1]), {})[line.piece[0]] = line.text or ""
            elif places is None or place in places:
                found[place] = bytes(line.item).decode()
    for (place, many), held in pieces.items():
        if (
            (places is None or place in places)
            and len(held) == many
            and _is_object(text := _joined(held[i] for i in range(many)))
        ):
            found[place] = text
    return sorted((place, text) for place, text in found.items() if place not in gone)


def _item(text: str | bytes, **options: Any) -> Any:
    """Return an item; a whole number of more digits than Python converts is its nearest float, as in the browser."""
    try:
        return json.loads(text, **options)
    except ValueError:
        return json.loads(text, parse_int=float, **options)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _is_object(text: str) -> bool:
    try:
        check_depth(text.encode("utf-8", "surrogatepass"), "an item of a session", _MAX_NESTED)
        return isinstance(_item(text, parse_constant=_no_number), dict)
    except (FormatError, ValueError, RecursionError):
        return False


def overlap(known: Sequence[str], given: Sequence[str]) -> int:
    """Return how many of the first of `given` are known: all if they occur in `known` consecutively, else those with which
    `known` ends."""
    many = len(given)
    if any(known[at : at + many] == list(given) for at in range(len(known) - many + 1)):
        return many
    return next(
        size
        for size in range(min(len(known), many), -1, -1)
        if known[len(known) - size :] == list(given[:size])
    )


def item_text(item: Mapping[str, Any]) -> str:
    """Return an item as one line of JSON."""
    if not isinstance(item, Mapping):
        raise UsageError(f"an item of a session is a JSON object, not {type(item).__name__}")
    try:
        text = json.dumps(dict(item), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        text.encode()
    except UnicodeEncodeError:
        text = json.dumps(dict(item), separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"an item of a session is a JSON object, and this is none: {error}") from None
    try:
        check_depth(text.encode(), "an item of a session", _MAX_NESTED - 1)
    except FormatError as error:
        raise UsageError(str(error)) from None
    if len(text) > MAX_ITEM:
        raise LimitError(
            f"an item of a session has {len(text):,} characters, at most {MAX_ITEM:,} are allowed"
        )
    return text


def _cut(at: int, n: int, text: str) -> list[PartLine]:
    # A lone surrogate can be written in JSON, and many readers refuse the line.
    if len(text) <= _PIECE and "\\ud" not in text:
        return [PartLine(at, n, item=msgspec.Raw(text.encode()))]
    starts = range(0, len(text), _PIECE)
    return [
        PartLine(at, n, text=text[start : start + _PIECE], piece=(i, len(starts)))
        for i, start in enumerate(starts)
    ]
