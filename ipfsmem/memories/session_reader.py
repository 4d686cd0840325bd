"""Reads sessions: conversations as lists of items, any JSON objects, that grow at their end on several devices (format section
5.1).

Each device writes its own parts, so that concurrent additions never conflict. A session consists of the items of all parts, ordered
by the times of their addition. A part is a memory file of the type `session` with one line of JSON per item.
"""

from __future__ import annotations

import contextlib
import re
from bisect import bisect_left
from collections.abc import Collection, Iterable
from functools import partial
from typing import Final

import msgspec

from ipfsmem.bundle.memory_file import MemoryFile, parse_memory
from ipfsmem.bundle.session_parts import HISTORY, PART_PREFIX, SESSION, is_part, is_part_key, session_token
from ipfsmem.causal.clock import hlc_ms
from ipfsmem.causal.entries import MemoryName, memory_name
from ipfsmem.causal.value import FORGOTTEN, LIVE, Value
from ipfsmem.device.state import StateMark, StateStore
from ipfsmem.device.writing import Writing
from ipfsmem.errors import IpfsmemError, StorageError
from ipfsmem.memories.memory_reader import MemoryReader, NotHereError
from ipfsmem.memories.memory_records import token_hash
from ipfsmem.memories.part_lines import (
    PART,
    decoded_item,
    entries_of_parts,
    is_import,
    items_of_parts,
    lines_in,
    lines_of,
)
from ipfsmem.memories.parts_read import Ends, PartLine, PartsRead, SessionPart
from ipfsmem.sessions.compaction import Place, PlacedItem, pending_of

#: A place before each item of a device.
_NOWHERE: Final = (-1, -1)
#: The session token in the part keys of earlier texts.
_HISTORY_TOKEN = re.compile(r"ipfsmem_history-[0-9a-f]{16}")


class SessionFacts(msgspec.Struct, frozen=True):
    """One session, for lists."""

    session: str
    scope: str
    parts: int
    #: Milliseconds since 1970 UTC of the last write, by the clock of the writing device.
    changed: int
    #: Whether at least a part of it is stored on this device only.
    here: bool = False


def hash_of_parts(parts: Iterable[SessionPart]) -> str:
    """Return a hash of the texts of these parts."""
    return token_hash(dot for part in parts for dot in part.dots)


#: The hash of a session without a part.
NOTHING_SEEN: Final = hash_of_parts(())


def _token_of(part: str) -> str:
    """Return the token of the session in the key of a part."""
    return part.removeprefix(PART_PREFIX).rsplit("-", 2)[0]


class PartKeys:
    """An index of the keys that have the form of a part key, updated by changes: finds the parts of one session among all
    memories."""

    def __init__(self) -> None:
        self._mark = StateMark()
        self._places: dict[str, MemoryName] = {}
        #: Keys by scope and session token.
        self._of: dict[str, dict[str, set[str]]] = {}

    def of(self, store: StateStore, scope: str, token: str | None) -> Collection[str]:
        """Return the part keys of the session with a token in a scope, or of all its sessions (inside `reading` or a
        transaction)."""
        if not store.is_at(self._mark):
            self._follow(store)
        keys_of = self._of.get(scope, {})
        return (
            keys_of.get(token, ())
            if token is not None
            else [key for keys in keys_of.values() for key in keys]
        )

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
    """Reads items of a session by their places (inside `reading`). The lines of each device are ordered across its parts, so the
    part of an item is found by binary search. Few other parts are read, and none whose first and last line are cached."""

    def __init__(
        self, sessions: SessionReader, session: str, keys: Iterable[str], parts_read: PartsRead
    ) -> None:
        """`keys`: the keys of the session's parts. `parts_read`: the cache of parts to use and extend."""
        self._sessions = sessions
        self._session = session
        self._parts_read = parts_read
        self._parts: dict[str, SessionPart | None] = {}
        self._ends: dict[str, Ends] = {}
        #: The keys of the parts of each device, in order.
        self._of: dict[str, list[str]] = {}
        for key in sorted(keys, key=lambda one: int(one.rpartition("-")[2])):
            self._of.setdefault(key.rsplit("-", 2)[1], []).append(key)

    def entries(self, places: Collection[Place]) -> list[PlacedItem]:
        """Return the items that exist at these places, in order. Marks elsewhere in the session are not read, so pending or removed
        items are not recognised."""
        parts: dict[str, SessionPart | None] = {}
        try:
            for at, device, n in places:
                keys = self._of.get(device, [])
                begin = bisect_left(range(len(keys)), (at, n), key=partial(self._last, keys))
                for key in keys[begin:]:
                    if self._ends_of(key).first > (at, n):
                        break
                    parts[key] = self._read(key)
        except NotHereError:
            return []
        there = items_of_parts([part for part in parts.values() if part is not None], places)
        return [PlacedItem(place, decoded_item(text)) for place, text in there]

    def _read(self, key: str) -> SessionPart | None:
        if key not in self._parts:
            content = self._parts_read.part(*self._sessions.version(key), partial(self._sessions.part, key))
            self._parts[key] = content[1] if content is not None and content[0] == self._session else None
        return self._parts[key]

    def _ends_of(self, key: str) -> Ends:
        if key not in self._ends:
            self._ends[key] = self._read_ends(key)
        return self._ends[key]

    def _read_ends(self, key: str) -> Ends:
        name, version = self._sessions.version(key)
        ends = self._parts_read.ends.get(name)
        if ends is None or ends.version != version:
            part = self._read(key)
            lines = [(line.at, line.n) for line in part.lines] if part is not None else []
            first, last = min(lines, default=_NOWHERE), max(lines, default=_NOWHERE)
            ends = self._parts_read.ends[name] = Ends(version, first, last)
        return ends

    def _last(self, keys: list[str], number: int) -> tuple[int, int]:
        # A part may be empty after removals: it then ends where the part before it ends.
        positions = (self._ends_of(keys[one]).last for one in range(number, -1, -1))
        return next((one for one in positions if one != _NOWHERE), _NOWHERE)


class SessionReader:
    """Reads the sessions of one scope of a replica."""

    def __init__(self, memories: MemoryReader) -> None:
        self._memories = memories
        self._replica = memories.replica

    def listing(self, *, histories: bool = False) -> list[SessionFacts]:
        """Return the sessions with a live part of this person's devices, last written first. `histories`: return the histories of
        memories instead of the conversations. Raises NotFoundError if no part of a session is fetched, because only parts contain
        the session's name."""
        parts: dict[str, list[str]] = {}
        names: dict[str, str] = {}
        not_here: list[tuple[str, str, NotHereError]] = []
        with self._replica.reading():
            for key in self._keys():
                entry = self._memories.entry(key).items()
                clocks = [value.h for dot, value in entry if self._memories.is_own(dot, value.author)]
                try:
                    session = self.name_of(key) if clocks else None
                except NotHereError as error:
                    not_here.append((_token_of(key), max(clocks), error))
                    continue
                if session is not None:
                    names[session_token(session)] = session
                    parts.setdefault(session, []).append(max(clocks))
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
        """Return all items in order, including marks, each with its place. `keys`: the keys of the parts, if the caller has them.
        Raises NotFoundError if a part is not fetched, because items would be missing."""
        with self._replica.reading():
            return entries_of_parts(self._parts(session, keys=keys))

    def has(self, session: str) -> bool:
        """Return whether the session has a live part of this person's devices. Other sessions are not read. Raises NotFoundError if
        none of its parts is fetched."""
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
        """Return the name of the session and the part with this key; None if the memory is not a part (inside `reading`). Raises
        NotFoundError if it is not fetched."""
        match, entry = PART.fullmatch(key), self._memories.entry(key)
        if match is not None and len(entry) == 1:  # the common case: one own text, opened once
            ((dot, value),) = entry.items()
            if value.kind == LIVE and self._memories.is_own(dot, value.author):
                data = self._replica.store.body(self._memories.name(key), value)
                if data is not None:
                    file = parse_memory(data)
                    if not is_part(key, file):
                        return None
                    texts = dict(lines_in(file))
                    lines = [line for line in texts.values() if line is not None]
                    rest = [text for text, line in texts.items() if line is None]
                    return file.session, SessionPart(key, match[1], int(match[2]), lines, (dot,), rest)
        session = self.name_of(key)
        part = self._part(session, key, None) if session is not None else None
        return None if session is None or part is None else (session, part)

    def version(self, key: str) -> tuple[str, int]:
        """Return the name of a part's entry, and a version that differs after a change (inside `reading`)."""
        name = self._memories.name(key)
        return name, hash(self._replica.store.raw(name))

    def keys(self, session: str) -> list[str]:
        """Return the keys of its parts."""
        with self._replica.reading():
            return [part.key for part in self._parts(session)]

    def seen(self, session: str) -> str:
        """Return a hash of the texts of all parts."""
        with self._replica.reading():
            return hash_of_parts(self._parts(session))

    def name_of(self, key: str) -> str | None:
        """Return the name of the session of a part; None if the memory is not a part, is forgotten, or is of others."""
        file = self._shown(key)
        return file.session if file is not None and is_part(key, file) else None

    def _shown(self, key: str) -> MemoryFile | None:
        """Return the own text of a key, also if another device forgot the part while items were added to it."""
        entry = self._memories.entry(key)
        reading = self._memories.reading_of(key, entry)
        if reading is not None:
            return reading.file if reading.own else None
        own = [value for dot, value in entry.items() if self._memories.is_own(dot, value.author)]
        until = _forgotten_until(own)
        for value in own:
            data = self._replica.store.body(self._memories.name(key), value) if value.kind == LIVE else None
            if data is not None and any(line is not None and line.at > until for _, line in lines_of(data)):
                return parse_memory(data)
        return None

    def _keys(self, token: str | None = None) -> list[str]:
        """Return the sorted part keys of the session with this token, or of all sessions (inside `reading` or a transaction)."""
        if self._memories.forgotten():
            return []
        part_keys = self._memories.caches.of(PartKeys)
        return sorted(part_keys.of(self._replica.store, self._memories.scope, token))

    def _parts(
        self, session: str, change: Writing | None = None, *, keys: Iterable[str] | None = None
    ) -> list[SessionPart]:
        """Return the parts of this person's devices, each with all its texts."""
        if keys is None:
            keys = self._keys(session_token(session))
        parts = (self._part(session, key, change) for key in keys)
        return [part for part in parts if part is not None]

    def _part(self, session: str, key: str, change: Writing | None) -> SessionPart | None:
        """Return a part with all own texts, including concurrent ones, as after the copy of a disk; None if it has none."""
        name = self._memories.name(key)
        entry = self._memories.entry(key, change.entry(name) if change is not None else None)
        own = tuple(dot for dot, value in entry.items() if self._memories.is_own(dot, value.author))
        match = PART.fullmatch(key)
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
            texts.update(lines_of(data))
        if part.ours:
            until = _forgotten_until(entry[dot] for dot in own)
            part.lines = [line for line in texts.values() if line is not None and line.at > until]
            part.rest = [text for text, line in texts.items() if line is None and until < 0]
        return part

    def pending(self) -> dict[str, dict[Place, str]]:
        """Return the places of the pending messages of each conversation, with the program of each. A conversation that is damaged
        or not completely fetched is left out."""
        with self._replica.reading():
            return self._pending_in(None)

    def session_of_part(self, key: str) -> str | None:
        """Return the name of the session of a part; None for any other memory, and if the part cannot be read."""
        with contextlib.suppress(NotHereError, StorageError):
            return self.name_of(key)
        return None

    def names_beside(self, key: str) -> set[str]:
        """Return the names of the sessions whose part keys have the same token as this key (inside a transaction)."""
        names = set()
        for part in self._keys(_token_of(key)):
            with contextlib.suppress(NotHereError, StorageError):
                names.add(self.name_of(part))
        return {session for session in names if session is not None}

    def readable(
        self, session: str, change: Writing, coming: tuple[str, bytes, bool] | None = None
    ) -> tuple[list[PlacedItem], bool]:
        """Return the items of the readable parts in order, including marks, and whether all parts were readable. `coming`: a part
        to include, as (key, text, whether it replaces the existing one)."""
        parts, whole = [], True
        for key in self._keys(session_token(session)):
            try:
                part = self._part(session, key, change)
            except (NotHereError, StorageError):
                whole = False
            else:
                parts += [part] if part is not None else []
        if coming is not None and (match := PART.fullmatch(coming[0])) is not None:
            lines = [line for _, line in lines_of(coming[1]) if line is not None]
            parts = [part for part in parts if part.key != coming[0] or not coming[2]]
            parts.append(SessionPart(coming[0], match[1], int(match[2]), lines, ()))
        return entries_of_parts(parts), whole

    def pending_by(self, key: str) -> str | None:
        """Return the session of which a part marks messages as pending; None for any other part."""
        with self._replica.reading():
            content = None
            try:
                content = self.part(key)
                if content is None or not any(is_import(line) for line in content[1].lines):
                    return None
                return content[0] if pending_of(self.entries(content[0])) else None
            except (
                IpfsmemError
            ):  # not fetched or damaged: it can be removed, unless another part marks messages
                return content[0] if content is not None else None

    def _pending_in(self, change: Writing | None) -> dict[str, dict[Place, str]]:
        """Return `pending` (inside `reading` or a transaction)."""
        names = set[str]()
        for key in self._keys():
            with contextlib.suppress(NotHereError, StorageError):
                if (session := self.name_of(key)) is not None and not session.startswith(HISTORY):
                    names.add(session)
        pending_of_sessions = {}
        for session in sorted(names):
            with contextlib.suppress(NotHereError, StorageError):
                if pending := pending_of(entries_of_parts(self._parts(session, change))):
                    pending_of_sessions[session] = pending
        return pending_of_sessions


def _forgotten_until(own: Iterable[Value]) -> int:
    """Return the time up to which a concurrent forget covers the lines of a part, in milliseconds since 1970 UTC; -1 without a
    forget. A device that concurrently added items has written the whole part again."""
    return max((hlc_ms(value.h) for value in own if value.kind == FORGOTTEN), default=-1)
