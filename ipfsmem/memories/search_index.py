"""What recall looks through: the memories that a reader of some scopes is shown, held in this process only.

It is made at the first recall and then brought up to date by the entries that changed since, whoever changed them. A stack of
scopes has an index of its own, so that nothing of another scope counts in it, not even how rare a word is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ipfsmem.bundle.memory_file import MemoryFile
from ipfsmem.bundle.session_parts import is_part
from ipfsmem.causal.clock import hlc_ms
from ipfsmem.causal.entries import MemoryName, memory_name
from ipfsmem.causal.value import Entry, decode_entry
from ipfsmem.device.bulk import no_collection
from ipfsmem.device.state import Frame
from ipfsmem.memories.readings import readable_file
from ipfsmem.recall.ranking import Document, Index
from ipfsmem.recall.worth import worth

if TYPE_CHECKING:
    from ipfsmem.memories.memories import Memories

#: Stacks of scopes, and filters of one, of which the index is kept.
_STACKS, _FILTERS = 4, 4


class Filter(msgspec.Struct, frozen=True):
    """Which memories are looked through; None is no matter."""

    type: str | None = None
    tag: str | None = None
    category: str | None = None
    #: Milliseconds since 1970 UTC from which on it was written.
    since: int = 0
    #: Ids of the devices that may have written it.
    by: frozenset[str] | None = None

    def takes(self, one: Held) -> bool:
        """Whether a memory is one of those. Parts of sessions are so only with the type `session`."""
        file = one.file
        return (
            (not one.part if self.type is None else file.type == self.type)
            and self.tag in (None, *file.tags)
            and self.category in (None, file.fields.get("category", ""))
            and one.written >= self.since
            and (self.by is None or one.device in self.by)
        )


class Held(NamedTuple):
    """A memory as it is looked through."""

    scope: str
    document: Document
    #: Its header alone.
    file: MemoryFile
    own: bool
    #: The device that wrote it, and when, in milliseconds since 1970 UTC.
    device: str
    written: int
    #: Whether it is a part of a session.
    part: bool
    #: The other scopes of the stack that have a text under its key.
    hides: tuple[str, ...]


class _Shown(NamedTuple):
    """What one scope shows under a key."""

    data: bytes | None
    own: bool
    device: str
    hlc: str


class _State(NamedTuple):
    """What the index was made of: when it is the same, nothing changed."""

    frame: Frame
    strangers: tuple[str, ...]
    today: date


class SearchIndex:
    """The memories of one stack of scopes."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._state: _State | None = None
        self._places: dict[str, MemoryName | None] = {}
        #: The entries that it was made of, as they stand in the state.
        self._texts: dict[str, bytes] = {}
        #: By key.
        self.held: dict[str, Held] = {}
        #: Keys of which no text is on this device.
        self.not_fetched: set[str] = set()
        self._fading: set[str] = set()
        self._indexes: dict[Filter, Index] = {}

    def refresh(self, parts: Sequence[Memories], today: date) -> None:
        """Take in what changed (inside `reading`)."""
        replica = parts[0].replica
        frame = replica.store.frame
        strangers = tuple(sorted(device for device in frame.ctx if not replica.is_mine(device)))
        state, before = _State(frame, strangers, today), self._state
        if state == before and not self.not_fetched:
            return
        if before is not None and before.strangers != strangers:
            self._clear()
        changed = self._changed({part.scope for part in parts if not part.forgotten()}, parts[0])
        changed |= self.not_fetched
        if before is not None and before.today != today:
            changed |= self._fading
        with no_collection():
            for key in changed:
                self._look(parts, key, today)
        self._state = state

    def _changed(self, scopes: set[str], part: Memories) -> set[str]:
        """The keys whose entries are not those of last time."""
        here, changed, places = dict[str, bytes](), set[str](), self._places
        for name, text in part.replica.store.texts():
            try:
                place = places[name]
            except KeyError:
                place = places[name] = memory_name(name)
            if place is None or place.scope not in scopes:
                continue
            here[name] = text
            known = self._texts.get(name)
            if known is not text and known != text:
                changed.add(place.key)
        for name in self._texts.keys() - here.keys():
            place = places[name]
            if place is not None:
                changed.add(place.key)
        self._texts = here
        return changed

    def _look(self, parts: Sequence[Memories], key: str, today: date) -> None:
        self.not_fetched.discard(key)
        self._fading.discard(key)
        there = [
            (part, found)
            for part in parts
            if (text := self._texts.get(part.name(key))) is not None
            and (found := _shown(part, key, decode_entry(part.name(key), text))) is not None
        ]
        chosen = next((one for one in there if one[1].own), there[0] if there else None)
        if chosen is None or chosen[1].data is None:
            if chosen is not None:
                self.not_fetched.add(key)
            if self.held.pop(key, None) is not None:
                for index in self._indexes.values():
                    index.remove(key)
            return
        part, found = chosen
        hides = tuple(other.scope for other, _ in there if other is not part)
        one = self.held[key] = _held(key, part.scope, found, hides, today)
        if one.file.fields.keys() & {"decay", "expires"}:
            self._fading.add(key)
        for filter, index in self._indexes.items():
            index.remove(key)
            if filter.takes(one):
                index.add(one.document)

    def index(self, filter: Filter) -> Index:
        """What `rank` takes, of the memories that a filter takes."""
        made = self._indexes.pop(filter, None)
        if made is None:
            with no_collection():
                made = Index(one.document for one in self.held.values() if filter.takes(one))
            if len(self._indexes) >= _FILTERS:
                self._indexes.pop(next(iter(self._indexes)))
        self._indexes[filter] = made
        return made

    def documents(self, filter: Filter) -> Iterator[Document]:
        """What a filter takes."""
        return (one.document for one in self.held.values() if filter.takes(one))


def index_of(parts: Sequence[Memories], today: date) -> SearchIndex:
    """The index of a stack of scopes, brought up to date (inside `reading`); those used last are kept."""
    known, scopes = parts[0].indexes, tuple(part.scope for part in parts)
    found = known.pop(scopes, None) or SearchIndex()
    found.refresh(parts, today)
    if len(known) >= _STACKS:
        known.pop(next(iter(known)))
    known[scopes] = found
    return found


def _shown(part: Memories, key: str, entry: Entry) -> _Shown | None:
    """What a scope shows under a key; None when nothing."""
    if len(entry) == 1:
        ((dot, value),) = entry.items()
        if value.body is None:
            return None
        if part.is_own(dot, value.of):
            return _Shown(part.replica.store.body(part.name(key), value), True, dot[:16], value.h)
    entry = part.entry(key, entry)
    view = part.view(key, entry)
    if view.data is None or view.dot is None:
        return _Shown(None, view.own, "", "") if view.not_fetched else None
    return _Shown(view.data, view.own, view.dot[:16], entry[view.dot].h)


def _held(key: str, scope: str, found: _Shown, hides: tuple[str, ...], today: date) -> Held:
    file = readable_file(found.data or b"")
    written = hlc_ms(found.hlc) if found.hlc else 0
    at = _last_change(file, written)
    tags = file.tags
    header = " ".join((key, file.name, file.description, *tags, file.fields.get("category", "")))
    until = _day(file.expires)
    value = worth(
        file.type,
        len(tags),
        important=file.important,
        confidence=file.confidence,
        decay=file.fields.get("decay", ""),
        idle_days=(today - at).days if at else 0,
        expired=until is not None and until < today,
    )
    document = Document(key, file.body, header, at=at, memory=True, salience=value)
    fields = MemoryFile(file.fields)
    return Held(scope, document, fields, found.own, found.device, written, is_part(key, file), hides)


def _last_change(file: MemoryFile, written: int) -> date | None:
    """The day of the last change: as the header says, unless that lies behind the day on which it was written down here."""
    try:
        there = datetime.fromtimestamp(written / 1000, UTC).date() if written else None
    except (OverflowError, ValueError, OSError):
        there = None
    said = _day(file.updated) or _day(file.created)
    return min(said, there) if said and there else said or there


def _day(text: str) -> date | None:
    """The day that an ISO 8601 date or instant begins with."""
    try:
        return date.fromisoformat(text[:10]) if text else None
    except ValueError:
        return None
