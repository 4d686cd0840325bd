"""The index of recall: the words and data of the memories, events and messages in a stack of scopes.

The index is built at the first recall, then updated by changed entries, and stored for the next process when the vault is closed
(`device/recall_image`). Each stack of scopes has its own index, so that no other scope affects it, not even its word frequencies.
It contains no texts, except for an in-memory cache of the messages and events read last.
"""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Set
from datetime import date
from hashlib import blake2b
from itertools import islice, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from ipfsmem.bundle.index import index_line, item_of
from ipfsmem.bundle.index_block import INDEX_KEY, typed_text
from ipfsmem.bundle.memory_file import MemoryFile
from ipfsmem.bundle.session_parts import PART_PREFIX, SESSION, is_part, is_part_key
from ipfsmem.causal.clock import hlc_ms
from ipfsmem.causal.entries import MemoryName, memory_name, segment_name
from ipfsmem.causal.value import Entry, decode_entry
from ipfsmem.device.bulk import no_collection
from ipfsmem.device.recall_image import VERSION, RecallImage, load_image, remove_images, save_image
from ipfsmem.device.state import StateMark, StateStore
from ipfsmem.errors import FormatError, IpfsmemError
from ipfsmem.memories.decoded_later import DecodedLater, damaged_index
from ipfsmem.memories.event_entries import Group, Kind, Moment, vector_keys
from ipfsmem.memories.memory_records import readable_file
from ipfsmem.memories.parts_read import PartsRead
from ipfsmem.memories.priority import priority_factors
from ipfsmem.recall.priority import PriorityFactors
from ipfsmem.wording import ALWAYS, FOREVER

if TYPE_CHECKING:  # not needed for lists
    from ipfsmem.memories.event_search import EventSource
    from ipfsmem.memories.memories import MemoryStore
    from ipfsmem.recall.ranking import Document, Index

#: Maximum indexes that are held in memory, and maximum filters of an index whose entries are cached.
_STACKS, _FILTERS = 6, 4
#: Separates the scopes from the kind in the name of an index.
_KIND_SEPARATOR = "\n*"
#: The kinds whose index records whether events and messages exist.
_KINDS_WITH_MOMENTS: tuple[Kind, ...] = ("all", "memory")
#: Number of added or removed memories after which an image is stored again, and minimum entries of an image.
_STALE, _FEW = 200, 100
#: Cost of indexing an entry in addition to the bytes of its text, as bytes.
_ENTRY_COST = 500
#: Maximum characters of the cached events and messages.
_MAX_CACHED_CHARACTERS = 1_000_000
#: Maximum attempts to store an index while other processes remove entries.
_MAX_ATTEMPTS = 2
#: Bytes of the key of a memory's vector.
VECTOR_ID = 16


class FactText(NamedTuple):
    """A memory as a fact."""

    text: str
    category: str
    factors: PriorityFactors


class Filter(msgspec.Struct, frozen=True):
    """A filter of memories, events and messages; None: no condition."""

    type: str | None = None
    tag: str | None = None
    category: str | None = None
    #: Written at or after this time, in milliseconds since 1970 UTC.
    since: int = ALWAYS
    #: Written before this time, in milliseconds since 1970 UTC.
    until: int = FOREVER

    @property
    def of_index(self) -> Filter:
        """The filter of the index to search. Parts of sessions have an index of their own. Other conditions restrict the hits only,
        which are ranked with the words and neighbours of all entries."""
        return Filter(SESSION) if self.type == SESSION else _ALL

    def matches(self, one: IndexedEntry) -> bool:
        """Return whether a memory matches. Parts of sessions match only the type `session`."""
        return (
            (not one.part if self.type is None else one.type == self.type)
            and self.tag in (None, *one.tags)
            and self.category in (None, one.category)
            and self._is_in_range(one.written)
        )

    def matches_moment(self, one: Moment) -> bool:
        """Return whether an event or a message matches. They have no tags and no category."""
        return (
            self.type in (None, one.type)
            and self.tag is None
            and self.category is None
            and self._is_in_range(one.at)
        )

    def _is_in_range(self, ms: int) -> bool:
        """Return whether a time is within both limits. The unknown time 0 matches only if there are no limits."""
        return (ms != 0 or (self.since == ALWAYS and self.until == FOREVER)) and self.since <= ms < self.until


class IndexedEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The data of a memory in the index, except for its words."""

    scope: str
    own: bool
    #: The device that wrote it, and the clock of the write.
    device: str
    hlc: str
    #: Whether it is a part of a session or a MEMORY.md without prose, which no query finds.
    part: bool
    #: Whether its priority changes with the day.
    fades: bool
    type: str
    category: str
    tags: tuple[str, ...]
    #: The other scopes of the stack that have a text under its key.
    hides: tuple[str, ...]
    #: Its section and line in MEMORY.md; both empty if it is not listed.
    section: str
    line: str
    factors: PriorityFactors

    @property
    def written(self) -> int:
        """Milliseconds since 1970 UTC of its write."""
        return hlc_ms(self.hlc) if self.hlc else 0


#: Own memories with a line in MEMORY.md, grouped by priority factors, newest first in each group.
Standing = list[tuple[PriorityFactors, list[str]]]
#: The type of the result of `make` in `SearchIndex.made_of`.
Made = TypeVar("Made")


class _ScopeText(msgspec.Struct, frozen=True):
    """The shown text of a key in one scope."""

    data: bytes | None
    own: bool
    device: str
    hlc: str


class _Made(msgspec.Struct, frozen=True):
    """The state and day on which the index is based."""

    mark: StateMark
    today: date


class _Rest(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """The stored data except for the words."""

    today: date
    mark: StateMark
    #: The hash of each indexed state entry, by name; decoded after a change.
    known: msgspec.Raw
    held: dict[str, msgspec.Raw]
    #: The concatenated vector keys of `held`.
    vectors: memoryview
    not_fetched: set[str]
    #: The keys of texts of others, and of texts with an expiry.
    others: set[str]
    ending: set[str]
    #: The keys of possible facts.
    categorized: set[str]
    #: `Standing`, with the numbers of the keys in `held`.
    standing: msgspec.Raw
    #: Whether events or messages may exist.
    may_have_moments: bool


class _Moments(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """The stored data of events and messages."""

    moments: dict[str, msgspec.Raw]
    groups: list[tuple[Group, list[str]]]
    missing: list[tuple[Group, int]]
    #: The ids of texts of others.
    others: set[str]


_rest = msgspec.msgpack.Decoder(_Rest)
_known = msgspec.msgpack.Decoder(dict[str, bytes])
_standing = msgspec.msgpack.Decoder(list[tuple[PriorityFactors, list[int]]])
_moments = msgspec.msgpack.Decoder(_Moments)


class SearchIndex:
    """The index of one stack of scopes, of its memories, events, messages, or all of these."""

    def __init__(self, kind: Kind = "memory") -> None:
        self.kind = kind
        self._clear(b"")

    def _clear(self, kind: bytes) -> None:
        self._kind = kind
        self._made: _Made | None = None
        #: The hash of each indexed state entry; its stored form until it is decoded.
        self._hashes: dict[str, bytes] = {}
        self._hashes_kept: msgspec.Raw | None = None
        #: The indexed memories by key.
        self.held = DecodedLater(IndexedEntry)
        #: The vector key of each memory; their stored form, in the order of `held`, until it is decoded.
        self._vectors: dict[str, bytes] = {}
        self._vectors_kept = memoryview(b"")
        #: The memories that were requested as facts.
        self.facts: dict[str, tuple[FactText | None]] = {}
        #: Results derived from the current memories, by name, each with its other inputs.
        self._made_of: dict[str, tuple[object, Any]] = {}
        #: The ids of texts of others; None until computed.
        self._others: set[str] | None = None
        #: The keys of texts with an expiry; None until computed.
        self._ending: set[str] | None = None
        #: The keys of own memories with a category; None until computed.
        self._categorized: set[str] | None = None
        #: The memories by priority factors, None until computed; their stored form; and the keys changed since.
        self._standing: Standing | None = None
        self._standing_kept: msgspec.Raw | None = None
        self._moved: set[str] = set()
        #: Keys without a text on this device.
        self.not_fetched: set[str] = set()
        #: Events and messages by id; the ids of each day and session in order; and the number of missing segments or parts of each.
        self.moments = DecodedLater(Moment)
        self._groups: dict[Group, list[str]] = {}
        self._missing: dict[Group, int] = {}
        #: The names of the segments or parts of each day and session, None until computed; whether events or messages may exist;
        #: the cache of parts; and the minimum bytes of the context line of each event and message that was read.
        self._pieces: dict[Group, set[str]] | None = None
        self._may_have_moments: bool | None = None
        self.parts_read = PartsRead()
        self.least_lines: dict[str, int] = {}
        #: The cache of events and messages by id, least recently used first; its number of characters.
        self._sources: dict[str, EventSource] = {}
        self._cached_characters = 0
        #: The vector keys of events and messages, by id; None until computed.
        self._vector_keys: dict[str, bytes] | None = None
        self._indexes: dict[Filter, Index] = {}
        #: For the vectors requested last, by filter: the row of each entry's vector, and the number of entries without one.
        self._rows: tuple[Mapping[bytes, int], dict[Filter, tuple[array[int], int]]] = ({}, {})
        #: The words in the opened image, until they are decoded.
        self._image = memoryview(b"")
        #: Reads the image with its words, if it was opened without them.
        self._later: Callable[[], RecallImage | None] | None = None
        #: Number of memories added or removed since an image was stored; whether an image is stored.
        self._stale = _STALE
        self._is_kept = False

    # -- for the next process ------------------------------------------------------------------------------------

    def open(self, parts: Sequence[MemoryStore], kept: Kind | None = None, *, words: bool = True) -> bool:
        """Load the index that an earlier process stored for these scopes. Returns False if there is none, or it is of another
        reader or program version. `kept`: load the memories from the index of this kind, without its words. `words` False: load the
        words on demand."""
        kind, ours = index_kind(parts), kept is None or kept == self.kind
        replica, stack = parts[0].replica, _stack(parts, kept or self.kind)
        image = load_image(replica, stack, first=not (ours and words))
        if image is None or image.state != kind:
            return False
        try:
            rest = _rest.decode(image.rest)
            stored_moments = _moments.decode(image.moments) if image.moments else _Moments({}, [], [], set())
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return False
        if len(rest.vectors) != VECTOR_ID * len(rest.held):
            return False
        self._clear(kind)
        self._made = _Made(rest.mark, rest.today)
        self._hashes_kept, self.not_fetched = rest.known, rest.not_fetched
        self.held, self._vectors_kept = DecodedLater(IndexedEntry, rest.held), rest.vectors
        self.moments = DecodedLater(Moment, stored_moments.moments)
        self._groups, self._missing = dict(stored_moments.groups), dict(stored_moments.missing)
        self._others, self._ending = rest.others | stored_moments.others, rest.ending
        self._categorized, self._standing_kept = rest.categorized, rest.standing
        self._may_have_moments = rest.may_have_moments
        if ours:
            self._image, self._stale, self._is_kept = image.index, 0, True
        if ours and not words:
            self._later = lambda: _same(load_image(replica, stack), image)
        return True

    def keep(self, parts: Sequence[MemoryStore], *, always: bool = False) -> None:
        """Update the index and store it for the next process, if enough of it changed or `always` (not inside `reading`). An image
        never contains an entry that another process has removed meanwhile. Raises StorageError."""
        replica = parts[0].replica
        for _ in range(0 if replica.folder is None or replica.read_only else _MAX_ATTEMPTS):
            with replica.reading():
                self.refresh(parts)
                image = self._image_to_store(always=always)
            if image is None:
                return
            if save_image(replica, image, _stack(parts, self.kind), holds=lambda: self._holds(parts)):
                self._stale, self._is_kept = 0, True
                return

    def _holds(self, parts: Sequence[MemoryStore]) -> bool:
        """Return whether no indexed entry changed since (inside `reading`)."""
        state = self._made
        if state is None or self._kind != index_kind(parts):
            return False
        return unchanged_since(parts[0].replica.store, state.mark, self._known)

    def _image_to_store(self, *, always: bool) -> RecallImage | None:
        """Return the image to store; None if too little changed."""
        words, state = self._indexes.get(_ALL), self._made
        few = len(self.held) + len(self.moments) < _FEW and not self._is_kept
        if state is None or words is None or ((few or self._stale < _STALE) and not always):
            return None
        others, vectors = self._ids_of_others(), self.vectors
        rest = (
            state.today,
            state.mark,
            self._known,
            self.held.stored(),
            b"".join(vectors[key] for key in self.held),
            self.not_fetched,
            others & self.held.keys(),
            self._expiring(),
            self._possible_facts(),
            self._numbered(),
            self._has_names_of_moments(),
        )
        stored_moments = (
            self.moments.stored(),
            list(self._groups.items()),
            list(self._missing.items()),
            others & self.moments.keys(),
        )
        packed, moments = (
            memoryview(msgspec.msgpack.encode(rest)),
            memoryview(msgspec.msgpack.encode(stored_moments)),
        )
        return RecallImage(self._kind, packed, memoryview(words.image()), moments)

    def behind(self, parts: Sequence[MemoryStore]) -> int:
        """Return the number of memories whose index data is outdated (inside `reading`)."""
        return 0 if self._made is None else len(self._changed(parts, self._made.mark)[0])

    @property
    def _known(self) -> dict[str, bytes]:
        """The hash of each indexed state entry, by name."""
        if self._hashes_kept is not None:
            packed, self._hashes_kept = self._hashes_kept, None
            self._hashes = _decoded(_known, packed)
        return self._hashes

    # -- updating --------------------------------------------------------------------------------------------

    def costs_of_changes(self, parts: Sequence[MemoryStore]) -> Iterator[int]:
        """Yield the cost of each entry that `refresh` would index: the bytes of its texts plus `_ENTRY_COST` (inside `reading`)."""
        store, state = parts[0].replica.store, self._made
        same = state is not None and self._kind == index_kind(parts)
        if same and state is not None and state.today != parts[0].replica.environment.today():
            yield from (_ENTRY_COST for one in self.held.values() if one.fades)
        if same and state is not None and store.is_at(state.mark):
            return
        scopes = {part.scope for part in parts if not part.forgotten()}
        mark = state.mark if same and state is not None else StateMark()
        for name, text in store.changes_since(mark).texts.items():
            if _scope_of(name) in scopes and not (
                same and self._known.get(name) == blake2b(text, digest_size=8).digest()
            ):
                sizes = (one.loc.size for one in decode_entry(name, text).values() if one.loc is not None)
                yield _ENTRY_COST + sum(sizes)

    def refresh(self, parts: Sequence[MemoryStore], filter: Filter | None = None) -> None:
        """Apply changes (inside `reading`). A failure empties the index, because a partial update would be taken for a complete
        one. `filter`: that of the next call of `index`, whose words are indexed in the same pass if all texts are read."""
        try:
            self._refresh(parts, filter)
        except BaseException:
            self._clear(b"")
            raise

    def _refresh(self, parts: Sequence[MemoryStore], filter: Filter | None) -> None:
        store, today = parts[0].replica.store, parts[0].replica.environment.today()
        before = self._made
        kind = index_kind(parts)
        if kind != self._kind:
            self._clear(kind)
            before = None
        same = before is not None and before.today == today and store.is_at(before.mark)
        if same and not self.not_fetched and not self._missing:
            return
        changed, groups, mark = self._changed(parts, before.mark if before is not None else StateMark())
        state = _Made(mark, today)
        if before is not None and before.today != today:
            changed |= {key for key, one in self.held.items() if one.fades}
        changed |= self.not_fetched
        groups |= self._missing.keys()
        if changed and INDEX_KEY in self.held:
            changed.add(INDEX_KEY)  # its list may repeat other memories
        if before is None and filter is not None:
            from ipfsmem.recall.ranking import Index

            self._indexes[filter] = Index()
        if changed or groups:
            self._open_words()
            if self._standing_kept is not None:
                self.standing()  # decode it first: it refers to the current order of the keys
        with no_collection():
            fading = parts[0].fading if changed else 0.0  # read once: it reads the settings file
            for key in sorted(changed, key=INDEX_KEY.__eq__):  # MEMORY.md last: its list repeats the others
                self._update(parts, key, today, fading)
            if groups:
                from ipfsmem.memories.event_search import read_groups

                for group, sources, missing in read_groups(parts, sorted(groups)):
                    self._replace_group(group, sources, missing)
        self._made = state

    def _changed(
        self, parts: Sequence[MemoryStore], mark: StateMark
    ) -> tuple[set[str], set[Group], StateMark]:
        """Return the keys of memories, and the days and sessions, whose entries changed since `mark`; and the current state."""
        scopes = {part.scope for part in parts if not part.forgotten()}
        since = parts[0].replica.store.changes_since(mark)
        keys, groups = set[str](), set[Group]()

        def changed(name: str, place: MemoryName | None, group: Group | None) -> None:
            if place is not None and self.kind in ("memory", "all"):
                keys.add(place.key)
            if group is not None:
                groups.add(group)
                self.parts_read.drop(name)
                if self._pieces is not None:
                    there = self._pieces.setdefault(group, set())
                    (there.add if name in self._known else there.discard)(name)

        for name, text in since.texts.items():
            self._may_have_moments = None
            place, group, scope = self._place(name)
            if scope not in scopes:
                continue
            hash = blake2b(text, digest_size=8).digest()
            if self._known.get(name) != hash:
                self._known[name] = hash
                changed(name, place, group)
        for name in since.may_be_gone(self._known):
            self._may_have_moments = None
            del self._known[name]
            place, group, _ = self._place(name)
            if place is None and group is None:
                self._stale = _STALE  # store the image again without the day of the removed event
            changed(name, place, group)
        return keys, groups, since.mark

    def _place(self, name: str) -> tuple[MemoryName | None, Group | None, str | None]:
        """Return what a state entry is in this index: its memory, its day or session, and its scope, each None if the index does
        not include it. An index of memories includes only the scope of a timeline."""
        place = memory_name(name)
        segment = segment_name(name) if place is None else None
        scope = place.scope if place is not None else segment.scope if segment is not None else None
        if self.kind == "memory":
            return place, None, scope
        from ipfsmem.memories.event_search import group_of

        group = group_of(name, segment)
        if group is not None and self.kind not in (group.kind, "all"):
            group = None
        if self.kind != "all":
            place = None
        return place, group, None if place is None and group is None else scope

    def pieces(self, group: Group) -> set[str]:
        """Return the names of the segments or parts of a day or a session (inside `reading`, after `refresh`)."""
        if self._pieces is None:
            self._pieces = {}
            for name in self._known:
                owner = self._place(name)[1]
                if owner is not None:
                    self._pieces.setdefault(owner, set()).add(name)
        return self._pieces.get(group, set())

    def cached(self, id: str, store: StateStore) -> EventSource | None:
        """Return an event or a message from the cache; None if it is not cached or the state changed since `refresh`."""
        if self._made is None or not store.is_at(self._made.mark):
            return None
        one = self._sources.pop(id, None)
        if one is not None:
            self._sources[id] = one  # move it to the end: most recently used
        return one

    def cache(self, sources: Iterable[EventSource]) -> None:
        """Cache events and messages that were read. Drops the least recently used entries, and removed entries immediately."""
        for one in sources:
            if one.id in self.moments:
                self._drop_cached(one.id)
                self._sources[one.id] = one
                self._cached_characters += _size(one)
        while self._cached_characters > _MAX_CACHED_CHARACTERS:
            self._drop_cached(next(iter(self._sources)))

    def _drop_cached(self, id: str) -> None:
        one = self._sources.pop(id, None)
        if one is not None:
            self._cached_characters -= _size(one)

    def may_have_moments(self, parts: Sequence[MemoryStore]) -> bool:
        """Return whether an event or a message may be in these scopes (inside `reading`); applies no changes."""
        store, state = parts[0].replica.store, self._made
        if self._kind != index_kind(parts):
            state = None
        if state is not None and store.is_at(state.mark):
            return self._has_names_of_moments()
        hashes = self._known if state is not None else {}
        scopes = {part.scope for part in parts if not part.forgotten()}
        since = store.changes_since(StateMark() if state is None else state.mark)
        gone = set(since.may_be_gone(hashes))
        here = (name for name in since.texts if name not in hashes and _scope_of(name) in scopes)
        return any(map(_may_be_moment, here)) or any(
            name not in gone and _may_be_moment(name) for name in hashes
        )

    def _has_names_of_moments(self) -> bool:
        if self._may_have_moments is None:
            self._may_have_moments = any(map(_may_be_moment, self._known))
        return self._may_have_moments

    def _replace_group(self, group: Group, sources: Sequence[EventSource], missing: int) -> None:
        """Replace the entries of a day or a session, except for an unchanged prefix."""
        from ipfsmem.memories.event_search import document_of

        self._rows = ({}, {})
        self._missing.pop(group, None)
        if missing:
            self._missing[group] = missing
        before, now = self._groups.pop(group, []), [one.id for one in sources]
        same = next(
            (
                at
                for at, (old, new) in enumerate(zip(before, sources, strict=False))
                if old != new.id or self.moments[old] != new.moment
            ),
            min(len(before), len(now)),
        )
        for id in before[same:]:
            self._stale = _STALE  # removed entries stay on the disk no longer than until the next save
            del self.moments[id]
            self.least_lines.pop(id, None)
            self._drop_cached(id)
            if self._vector_keys is not None:
                self._vector_keys.pop(id, None)
            self._record_owner(id, own=True)
            self._rows = ({}, {})
            for index in self._indexes.values():
                index.remove(id)
        for one in sources[same:]:
            self._stale += 1
            self.moments[one.id] = one.moment
            self._record_owner(one.id, own=one.moment.own)
            self._rows = ({}, {})
            for filter, index in self._indexes.items():
                if filter.matches_moment(one.moment):
                    index.add(document_of(one))
        if now:
            self._groups[group] = now
            if self._vector_keys is not None:
                there = ((one.id, one.moment) for one in sources)
                self._vector_keys.update(vector_keys(there, self._vector_keys))

    def _update(self, parts: Sequence[MemoryStore], key: str, today: date, fading: float) -> None:
        self.not_fetched.discard(key)
        self.facts.pop(key, None)
        self._moved.add(key)
        store = parts[0].replica.store
        there = [
            (part, text_shown)
            for part in parts
            if (name := part.name(key)) in self._known
            and (text := store.raw(name)) is not None
            and (text_shown := shown_of(part, key, decode_entry(name, text))) is not None
        ]
        chosen = next((one for one in there if one[1].own), there[0] if there else None)
        if chosen is None or chosen[1].data is None:
            if chosen is not None:
                self.not_fetched.add(key)
            if self._ending is not None:
                self._ending.discard(key)
            if self._categorized is not None:
                self._categorized.discard(key)
            self.vectors.pop(key, None)
            if self.held.pop(key, None) is not None:
                self._made_of.clear()
                self._record_owner(key, own=True)
                self._rows = ({}, {})
                self._stale = _STALE  # removed entries stay on the disk no longer than until the next save
                for index in self._indexes.values():
                    index.remove(key)
            return
        part, text_shown = chosen
        self._made_of.clear()
        self._stale += 1
        self._rows = ({}, {})
        file = self._searched(key, text_shown.data or b"")
        hides = tuple(other.scope for other, _ in there if other is not part)
        name = part.name(key)
        self.vectors[key] = entry_id(name, store.raw(name) or b"")
        one = self.held[key] = _indexed(key, part.scope, text_shown, file, hides)
        self._record_owner(key, own=one.own)
        if self._ending is not None:
            (self._ending.add if one.factors.until else self._ending.discard)(key)
        if self._categorized is not None:
            (self._categorized.add if _may_be_fact(one) else self._categorized.discard)(key)
        for filter, index in self._indexes.items():
            index.remove(key)
            if filter.matches(one):
                index.add(_document(key, one, file, today, fading))

    def _searched(self, key: str, data: bytes) -> MemoryFile:
        """Return the searched part of a text: of MEMORY.md only the prose, because its list repeats other memories."""
        file = readable_file(data)
        if key != INDEX_KEY:
            return file
        return MemoryFile(file.fields, typed_text(file.body, lambda one: one == key or one in self.held))

    def made_of(self, name: str, of: object, make: Callable[[], Made]) -> Made:
        """Return the result of `make` for the current memories, cached until one changes. `of`: the other inputs of `make`."""
        cached = self._made_of.get(name)
        if cached is None or cached[0] != of:
            cached = self._made_of[name] = (of, make())
        value: Made = cached[1]
        return value

    def forget_made(self, name: str) -> None:
        """Drop a cached result that was computed without a missing text."""
        self._made_of.pop(name, None)

    def expired(self, today: date) -> frozenset[str]:
        """Return the keys of expired memories."""
        return frozenset(key for key in self._expiring() if self.held[key].factors.expired(today))

    def _expiring(self) -> set[str]:
        if self._ending is None:
            self._ending = {key for key, one in self.held.items() if one.factors.until}
        return self._ending

    def categorized(self) -> list[str]:
        """Return the keys of own memories that may be facts."""
        keys = self._possible_facts()
        return [key for key in self.held if key in keys] if keys else []

    def _possible_facts(self) -> set[str]:
        if self._categorized is None:
            self._categorized = {key for key, one in self.held.items() if _may_be_fact(one)}
        return self._categorized

    def standing(self) -> tuple[Standing, Set[str]]:
        """Return the person's own memories with a line in MEMORY.md, by priority factors, newest first in each group; and the keys that
        changed since. Finds the memories of the highest priority without ranking all."""
        if self._standing is None or len(self._moved) > _STALE:
            keys, packed, self._standing_kept = list(self.held), self._standing_kept, None
            numbered = self._numbered() if packed is None else _decoded(_standing, packed)
            self._standing = [(factors, [keys[at] for at in numbers]) for factors, numbers in numbered]
            self._moved = set()
        return self._standing, self._moved

    def _numbered(self) -> list[tuple[PriorityFactors, list[int]]]:
        """Compute the current groups of `standing`, with numbers in place of keys."""
        groups: dict[PriorityFactors, list[tuple[str, str, int]]] = {}
        for at, (key, one) in enumerate(self.held.items()):
            if one.own and one.section:
                groups.setdefault(one.factors, []).append((one.hlc, key, at))
        for group in groups.values():
            group.sort(key=itemgetter(1))
            group.sort(key=itemgetter(0), reverse=True)  # all clocks have the same length
        return [(factors, [at for _, _, at in group]) for factors, group in groups.items()]

    @property
    def vectors(self) -> dict[str, bytes]:
        """The vector key of each memory, by key."""
        if self._vectors_kept:
            packed, self._vectors_kept = self._vectors_kept.tobytes(), memoryview(b"")
            begins = range(0, len(packed), VECTOR_ID)
            self._vectors = {
                key: packed[at : at + VECTOR_ID] for key, at in zip(self.held, begins, strict=True)
            }
        return self._vectors

    # -- searching ------------------------------------------------------------------------------------------

    def index(self, parts: Sequence[MemoryStore], filter: Filter) -> Index:
        """Return the word index of the entries that match a filter (inside `reading`, after `refresh`)."""
        from ipfsmem.recall.ranking import Index

        self._open_words()
        words = self._indexes.pop(filter, None)
        if words is None:
            by_scope, today = {part.scope: part for part in parts}, parts[0].replica.environment.today()
            fading = parts[0].fading
            with no_collection():
                words = Index()
                for key, one in self.held.items():
                    if not filter.matches(one):
                        continue
                    part = by_scope[one.scope]
                    text_shown = shown_of(part, key, part.replica.store.entry(part.name(key)))
                    if text_shown is not None and text_shown.data is not None:
                        file = self._searched(key, text_shown.data)
                        words.add(_document(key, one, file, today, fading))
                if self._groups:
                    self._add_moments(parts, filter, words)
        self._indexes[filter] = words
        return words

    def passing(self, index: Index, filter: Filter) -> frozenset[int] | None:
        """Return the numbers of the entries of a word index that match a filter; None if it is the filter of the index itself."""
        if filter == filter.of_index:
            return None
        numbers = index.passing.get(filter)
        if numbers is None:
            if len(index.passing) >= _FILTERS:
                index.passing.clear()
            numbers = index.passing[filter] = frozenset(
                number for number, id in enumerate(index.ids) if id and self._matches(id, filter)
            )
        return numbers

    def _matches(self, id: str, filter: Filter) -> bool:
        moment = self.moments.get(id)
        return filter.matches(self.held[id]) if moment is None else filter.matches_moment(moment)

    def rows(self, index: Index, at: Mapping[bytes, int]) -> tuple[array[int], int]:
        """Return the row of each entry's vector, by the entry's number in a word index, -1 for no vector; and the number of entries
        without a vector. `at`: the rows by vector key."""
        comparable, by_filter = self._rows
        if comparable is not at:
            by_filter = {}
            self._rows = (at, by_filter)
        filter = next(filter for filter, one in self._indexes.items() if one is index)
        known_rows = by_filter.get(filter)
        if known_rows is None:
            of_memory, of_moment = self.vectors.get, self._keys_of_moments().get
            keys = [of_memory(id) or of_moment(id, b"") for id in index.ids]
            rows = array("i", map(at.get, keys, repeat(-1)))
            known_rows = by_filter[filter] = rows, rows.count(-1) - (len(rows) - len(index))
        return known_rows

    def without_vector(self, index: Index, existing: Container[bytes]) -> int:
        """Return the number of entries of a word index whose vector key is not in `existing`."""
        of_memory, of_moment = self.vectors.get, self._keys_of_moments().get
        keys = (of_memory(id) or of_moment(id, b"") for id in index.ids)
        return sum(key not in existing for key in keys) - (len(index.ids) - len(index))

    def _keys_of_moments(self) -> dict[str, bytes]:
        if self._vector_keys is None:
            self._vector_keys = {}
            for ids in self._groups.values():
                self._vector_keys.update(vector_keys((id, self.moments[id]) for id in ids))
        return self._vector_keys

    def _add_moments(self, parts: Sequence[MemoryStore], filter: Filter, index: Index) -> None:
        from ipfsmem.memories.event_search import document_of, read_groups

        ids = {id for id, one in self.moments.items() if filter.matches_moment(one)}
        for _, sources, _ in read_groups(parts, sorted({self.moments[id].group for id in ids})):
            for one in sources:
                if one.id in ids:
                    index.add(document_of(one))

    def parted(self, index: Index) -> tuple[frozenset[int], frozenset[int]]:
        """Return the numbers of a word index's own entries, and those of entries of others. Both are empty if there are no texts of
        others."""
        others_word = self._ids_of_others()
        if not others_word:
            return frozenset(), frozenset()
        if index.parted is None:
            others = frozenset(n for id in others_word if (n := index.number(id)) is not None)
            index.parted = frozenset(n for n, id in enumerate(index.ids) if id) - others, others
        return index.parted

    def _ids_of_others(self) -> set[str]:
        """Return the ids of texts of others."""
        if self._others is None:
            self._others = {key for key, one in self.held.items() if not one.own}
            self._others |= {id for id, one in self.moments.items() if not one.own}
        return self._others

    def _record_owner(self, id: str, *, own: bool) -> None:
        if self._others is not None:
            self._others.discard(id)
            if not own:
                self._others.add(id)

    def writers(self) -> set[str]:
        """Return the devices that wrote the indexed entries."""
        devices = {one.device for one in self.held.values()} | {one.device for one in self.moments.values()}
        return devices - {""}

    def pieces_missing(self) -> int:
        """Return the number of memories, segments and session parts without a text on this device."""
        return len(self.not_fetched) + sum(self._missing.values())

    def lacks_words(self) -> bool:
        """Return whether it was opened without its words, which are not loaded yet."""
        return self._later is not None

    def has_words(self) -> bool:
        """Return whether a search needs no reading of all texts."""
        return bool(self._image) or _ALL in self._indexes

    def _open_words(self) -> None:
        """Decode the words in the opened image."""
        if self._later is not None:
            later, self._later = self._later, None
            whole = later()
            if whole is not None:
                self._image = whole.index
            else:
                self._stale = _STALE  # the image was replaced: index the texts again
        if self._image:
            from ipfsmem.recall.ranking import Index

            image, self._image = self._image, memoryview(b"")
            try:
                with no_collection():
                    self._indexes[_ALL] = Index.from_image(image)
            except FormatError:
                self._stale = _STALE  # index the texts again, and store the image


def _decoded(decoder: msgspec.msgpack.Decoder[Made], packed: msgspec.Raw) -> Made:
    """Decode a part of a stored index. Raises FormatError."""
    try:
        return decoder.decode(packed)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raise damaged_index("a table") from None


def _may_be_fact(one: IndexedEntry) -> bool:
    return one.own and bool(one.category) and not one.part


def _same(now: RecallImage | None, before: RecallImage) -> RecallImage | None:
    """Return a reopened image; None if it was replaced meanwhile."""
    return now if now is not None and (now.state, now.rest) == (before.state, before.rest) else None


def _size(one: EventSource) -> int:
    """Return the number of cached characters of an event or a message."""
    return len(one.header) + len(one.text)


#: The filter of the stored index: all entries except parts of sessions.
_ALL = Filter()


def unchanged_since(store: StateStore, mark: StateMark, hashes: Mapping[str, bytes]) -> bool:
    """Return whether the entries with these hashes at `mark` are unchanged; new entries are ignored."""
    if store.is_at(mark):
        return True
    since = store.changes_since(mark)
    return not since.may_be_gone(hashes) and all(
        hashes.get(name) in (None, blake2b(text, digest_size=8).digest())
        for name, text in since.texts.items()
    )


def index_kind(parts: Sequence[MemoryStore]) -> bytes:
    """Return a hash of everything except the state on which an index depends: the scopes, the reader, and the version of the
    format."""
    replica = parts[0].replica
    strangers = sorted(device for device in replica.store.frame.ctx if not replica.is_mine(device))
    scopes = [(part.scope, part.forgotten()) for part in parts]
    made_of = (VERSION, scopes, strangers, parts[0].fading)
    return blake2b(msgspec.msgpack.encode(made_of), digest_size=16).digest()


def _stack(parts: Iterable[MemoryStore], kind: Kind = "memory") -> str:
    """Return the name of an index: its scopes and its kind."""
    scopes = "\n".join(part.scope for part in parts)
    return scopes if kind == "memory" else f"{scopes}{_KIND_SEPARATOR}{kind}"


def index_of(
    parts: Sequence[MemoryStore], kind: Kind = "memory", filter: Filter | None = None
) -> SearchIndex:
    """Return the updated index of a stack of scopes (inside `reading`); the indexes used last are cached. `filter`: as in
    `refresh`."""
    search_index = _at_hand(parts, kind) or SearchIndex(kind)
    search_index.refresh(parts, filter)
    return _cached_index(parts, search_index)


def has_moments(parts: Sequence[MemoryStore]) -> bool:
    """Return whether these scopes may have an event or a message. Uses an index if there is one, otherwise the names of all
    entries."""
    scopes = {part.scope for part in parts if not part.forgotten()}
    with parts[0].replica.reading():
        for kind in _KINDS_WITH_MOMENTS:
            search_index = _at_hand(parts, kind)
            if search_index is not None:
                return _cached_index(parts, search_index).may_have_moments(parts)
        for name in parts[0].replica.store.names():
            if _may_be_moment(name) and _scope_of(name) in scopes:
                return True
    return False


def _scope_of(name: str) -> str | None:
    """Return the scope of a memory or of a segment of a timeline; None for any other entry."""
    place = memory_name(name) or segment_name(name)
    return None if place is None else place.scope


def _may_be_moment(name: str) -> bool:
    """Return whether an entry of the state is of a timeline, or may be a part of a session."""
    if name[0] == "m" and PART_PREFIX not in name:
        return False
    place = memory_name(name)
    return segment_name(name) is not None if place is None else is_part_key(place.key)


def is_ready(parts: Sequence[MemoryStore], kind: Kind, most: int) -> bool:
    """Return whether building or updating an index costs at most `most` bytes of texts."""
    with parts[0].replica.reading():
        search_index = _at_hand(parts, kind)
        if search_index is None or not _cached_index(parts, search_index).has_words():
            return _few(SearchIndex(kind).costs_of_changes(parts), most)
        if not _few(search_index.costs_of_changes(parts), most):
            return False
        search_index.refresh(parts)
        return True


def is_at_hand(parts: Sequence[MemoryStore], kind: Kind) -> bool:
    """Return whether an index is cached or stored, up to date or not."""
    with parts[0].replica.reading():
        search_index = _at_hand(parts, kind)
        return search_index is not None and _cached_index(parts, search_index).has_words()


def _few(rest: Iterator[int], most: int) -> bool:
    return sum(islice(rest, most // _ENTRY_COST + 1)) <= most


def make_index(parts: Sequence[MemoryStore], kind: Kind) -> None:
    """Build or update an index and store it immediately, whatever its size. Raises StorageError."""
    with parts[0].replica.reading():
        search_index = index_of(parts, kind, _ALL)
        search_index.index(parts, _ALL)
    search_index.keep(parts, always=True)


def index_at_hand(parts: Sequence[MemoryStore]) -> SearchIndex | None:
    """Return the index of memories if it is cached or stored; None if it would have to be built. An index of all kinds has the same
    data of memories and is used too."""
    search_index = _at_hand(parts, words=False)
    if search_index is None and _stack(parts, "all") in indexes_of(parts[0]):
        search_index = _at_hand(parts, "all")
    if search_index is None:
        saved = SearchIndex()
        search_index = saved if saved.open(parts, "all") else None
    if search_index is None:
        return None
    search_index.refresh(parts)
    return _cached_index(parts, search_index)


def _at_hand(
    parts: Sequence[MemoryStore], kind: Kind = "memory", *, words: bool = True
) -> SearchIndex | None:
    """Return the cached index, else the stored one. `words` False: load its words on demand."""
    search_index = indexes_of(parts[0]).pop(_stack(parts, kind), None)
    if search_index is None or (words and search_index.lacks_words()):
        saved = SearchIndex(kind)
        search_index = saved if saved.open(parts, words=words) else search_index
    return search_index


def _cached_index(parts: Sequence[MemoryStore], search_index: SearchIndex) -> SearchIndex:
    indexes = indexes_of(parts[0])
    if len(indexes) >= _STACKS:
        indexes.pop(next(iter(indexes)))
    indexes[_stack(parts, search_index.kind)] = search_index
    return search_index


def kept_index(parts: Sequence[MemoryStore]) -> SearchIndex | None:
    """Return the stored index of a stack of scopes, not updated."""
    search_index = SearchIndex()
    return search_index if search_index.open(parts) else None


def unlike_the_texts(parts: Sequence[MemoryStore]) -> list[str] | None:
    """Compare the stored index of a stack of scopes, after an update, with the texts; returns the keys that differ (inside
    `reading`), None if no index is stored."""
    saved, fresh = kept_index(parts), SearchIndex()
    if saved is None:
        return None
    words = []
    for one in (saved, fresh):
        one.refresh(parts)
        words.append(one.index(parts, _ALL).signatures())
    return sorted(
        key
        for key in saved.held.keys() | fresh.held.keys()
        if saved.held.get(key) != fresh.held.get(key)
        or saved.vectors.get(key) != fresh.vectors.get(key)
        or words[0].get(key) != words[1].get(key)
    )


def rebuilt_index(parts: Sequence[MemoryStore]) -> SearchIndex:
    """Build the index of a stack of scopes from the texts; removes stored indexes."""
    replica, indexes = parts[0].replica, indexes_of(parts[0])
    remove_images(replica, begun=False)  # another process may build one concurrently
    indexes.clear()
    search_index = SearchIndex()
    with replica.reading():
        search_index.refresh(parts, _ALL)
        search_index.index(parts, _ALL)
    search_index.keep(parts)
    return _cached_index(parts, search_index)


class SearchIndexes(dict[str, SearchIndex]):
    """The cached indexes, by the scopes that are read."""

    def __init__(self, memories: MemoryStore) -> None:
        super().__init__()
        self._memories = memories

    def keep(self) -> None:
        """Store the indexes for the next process, without entries removed since. An index that cannot be stored is built again by
        the next process."""
        with contextlib.suppress(IpfsmemError):
            for stack, index in self.items():
                scopes = stack.partition(_KIND_SEPARATOR)[0].split("\n")
                index.keep([self._memories.in_scope(scope) for scope in scopes])


def indexes_of(memories: MemoryStore) -> SearchIndexes:
    """Return the cached indexes, shared by all callers of one open vault."""
    return memories.caches.of(SearchIndexes, lambda: SearchIndexes(memories))


def entry_id(name: str, text: bytes) -> bytes:
    """Return the vector key of a state entry: a hash of its name and values."""
    return blake2b(name.encode() + b"\0" + text, digest_size=VECTOR_ID).digest()


def shown_of(part: MemoryStore, key: str, entry: Entry) -> _ScopeText | None:
    """Return the shown text of a key in a scope; None if no text is shown."""
    if len(entry) == 1:
        ((dot, value),) = entry.items()
        if value.body is None:
            return None
        if part.is_own(dot, value.author):
            return _ScopeText(part.replica.store.body(part.name(key), value), True, dot[:16], value.h)
    entry = part.entry(key, entry)
    view = part.view(key, entry)
    if view.data is None or view.dot is None:
        return _ScopeText(None, view.own, "", "") if view.not_fetched else None
    return _ScopeText(view.data, view.own, view.dot[:16], entry[view.dot].h)


def _is_list_alone(key: str, file: MemoryFile) -> bool:
    """Return whether a memory is a MEMORY.md without prose."""
    return key == INDEX_KEY and not file.body


def _indexed(
    key: str, scope: str, text_shown: _ScopeText, file: MemoryFile, hides: tuple[str, ...]
) -> IndexedEntry:
    is_list = _is_list_alone(key, file)
    return IndexedEntry(
        scope,
        text_shown.own,
        text_shown.device,
        text_shown.hlc,
        is_list or is_part(key, file),
        bool(file.fields.keys() & {"decay", "expires", "confidence"}),
        file.type,
        file.fields.get("category", ""),
        file.tags,
        hides,
        *(("", "") if is_list else index_line(item_of(key, file))),
        priority_factors(file, hlc_ms(text_shown.hlc) if text_shown.hlc else 0),
    )


def searched_header(key: str, file: MemoryFile) -> str:
    """Return the searched part of a memory's header."""
    return " ".join((key, file.name, file.description, *file.tags, file.fields.get("category", "")))


def _document(key: str, one: IndexedEntry, file: MemoryFile, today: date, fading: float) -> Document:
    from ipfsmem.recall.ranking import Document

    at = date.fromordinal(one.factors.changed) if one.factors.changed else None
    header = "" if key == INDEX_KEY else searched_header(key, file)
    return Document(
        key, file.body, header, at=at, memory=True, salience=one.factors.priority(today, fading=fading)
    )
