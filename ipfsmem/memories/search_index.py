"""What recall looks through: the memories that a reader of some scopes is shown.

It is made at the first recall and then brought up to date by the entries that changed since, whoever changed them; when the memory
is closed it is kept for the next process (`device/recall_image`). A stack of scopes has an index of its own, so that nothing of
another scope counts in it, not even how rare a word is. It holds no texts but, as long as the process goes on, those of the messages
and events that were read last.
"""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Set
from datetime import date
from hashlib import blake2b
from itertools import islice, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from ipfsmem.bundle.index import index_line, item_of
from ipfsmem.bundle.index_block import INDEX_KEY, typed_text
from ipfsmem.bundle.memory_file import MemoryFile
from ipfsmem.bundle.session_parts import PART_PREFIX, is_part, may_be_part
from ipfsmem.causal.clock import hlc_ms
from ipfsmem.causal.entries import MemoryName, memory_name, segment_name
from ipfsmem.causal.value import Entry, decode_entry
from ipfsmem.device.bulk import no_collection
from ipfsmem.device.recall_image import VERSION, RecallImage, load_image, remove_images, save_image
from ipfsmem.device.state import StateMark, Store
from ipfsmem.errors import FormatError, IpfsmemError
from ipfsmem.memories.decoded_later import DecodedLater, damaged_index
from ipfsmem.memories.merits import merits_of
from ipfsmem.memories.moment_kinds import Group, Kind, Moment, vector_keys
from ipfsmem.memories.parts_read import PartsRead
from ipfsmem.memories.readings import readable_file
from ipfsmem.recall.worth import Merits
from ipfsmem.wording import ALWAYS, FOREVER

if TYPE_CHECKING:  # who only lists what is there loads no ranking
    from ipfsmem.memories.context_facts import FactText
    from ipfsmem.memories.memories import Memories
    from ipfsmem.memories.moments import Told
    from ipfsmem.recall.ranking import Document, Index

#: Stacks of scopes, and filters of one, of which the index is held.
_STACKS, _FILTERS = 6, 4
#: Stands between the scopes of an index and its kind.
_OF_KIND = "\n*"
#: The kinds of which an index knows whether there are events and messages.
_KNOWING: tuple[Kind, ...] = ("all", "memory")
#: An image is written anew when so many memories were taken in or out since, and of fewer memories than these none is.
_STALE, _FEW = 200, 100
#: What an entry costs who makes an index, beside the bytes of its text, in such bytes.
_EACH = 500
#: Maximum characters of the events and messages that are cached.
_MOST_TOLD = 1_000_000
#: How often an index is written that lost something meanwhile.
_TRIES = 2
#: Bytes by which the vector of a memory is kept.
VECTOR_ID = 16


class Filter(msgspec.Struct, frozen=True):
    """Which memories and moments are looked through; None is no matter."""

    type: str | None = None
    tag: str | None = None
    category: str | None = None
    #: Milliseconds since 1970 UTC from which on it was written.
    since: int = ALWAYS
    #: The first millisecond in which it was no longer.
    until: int = FOREVER

    def takes(self, one: Held) -> bool:
        """Whether a memory is one of those. Parts of sessions are so only with the type `session`."""
        return (
            (not one.part if self.type is None else one.type == self.type)
            and self.tag in (None, *one.tags)
            and self.category in (None, one.category)
            and self._is_then(one.written)
        )

    def takes_moment(self, one: Moment) -> bool:
        """Whether an event or a message is one of those. They have no tags and no category."""
        return (
            self.type in (None, one.type)
            and self.tag is None
            and self.category is None
            and self._is_then(one.at)
        )

    def _is_then(self, ms: int) -> bool:
        """Whether a moment lies between both; one that is not known, 0, does so only where nobody asks."""
        return (ms != 0 or (self.since == ALWAYS and self.until == FOREVER)) and self.since <= ms < self.until


class Held(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What is known of a memory beside its words."""

    scope: str
    own: bool
    #: The device that wrote it, and its clock then.
    device: str
    hlc: str
    #: Whether it is a part of a session, or a list of memories alone, which no question finds.
    part: bool
    #: Whether what it is worth changes with the day.
    fades: bool
    type: str
    category: str
    tags: tuple[str, ...]
    #: The other scopes of the stack that have a text under its key.
    hides: tuple[str, ...]
    #: Its section in the index of memories, and its line there; both empty where it has none.
    section: str
    line: str
    merits: Merits

    @property
    def written(self) -> int:
        """When it was written, in milliseconds since 1970 UTC."""
        return hlc_ms(self.hlc) if self.hlc else 0


#: Own memories that have a line, by what they are worth; of each group the newest first.
Standing = list[tuple[Merits, list[str]]]
#: What `SearchIndex.made_of` makes.
Made = TypeVar("Made")


class _Shown(msgspec.Struct, frozen=True):
    """What one scope shows under a key."""

    data: bytes | None
    own: bool
    device: str
    hlc: str


class _Made(msgspec.Struct, frozen=True):
    """What the index was made of: when it is the same, nothing changed."""

    mark: StateMark
    today: date


class _Rest(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """What is kept beside the words."""

    today: date
    mark: StateMark
    #: Of the entries that it was made of the hash of each, by name; decoded once something changed.
    known: msgspec.Raw
    held: dict[str, msgspec.Raw]
    #: What the vectors of these are kept by, one after the other.
    vectors: memoryview
    not_fetched: set[str]
    #: The keys of what is others' word, and of what says until when it holds.
    others: set[str]
    ending: set[str]
    #: The keys of what may be a fact.
    categorized: set[str]
    #: `Standing`, with the numbers of the keys in `held`.
    standing: msgspec.Raw
    #: Whether an entry may be an event or a message.
    may_have_moments: bool


class _Moments(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """What is kept of events and messages."""

    moments: dict[str, msgspec.Raw]
    groups: list[tuple[Group, list[str]]]
    missing: list[tuple[Group, int]]
    #: The ids of what is others' word.
    others: set[str]


_rest = msgspec.msgpack.Decoder(_Rest)
_known = msgspec.msgpack.Decoder(dict[str, bytes])
_standing = msgspec.msgpack.Decoder(list[tuple[Merits, list[int]]])
_moments = msgspec.msgpack.Decoder(_Moments)


class SearchIndex:
    """The memories of one stack of scopes, its events, its messages, or all of these."""

    def __init__(self, kind: Kind = "memory") -> None:
        self.kind = kind
        self._clear(b"")

    def _clear(self, kind: bytes) -> None:
        self._kind = kind
        self._made: _Made | None = None
        #: The entries that it was made of: the hash of each as it stood in the state; and as they were kept, until somebody asked.
        self._hashes: dict[str, bytes] = {}
        self._hashes_kept: msgspec.Raw | None = None
        #: By key.
        self.held = DecodedLater(Held)
        #: What the vector of each of these is kept by, and as it was kept, in their order, until somebody asked.
        self._vectors: dict[str, bytes] = {}
        self._vectors_kept = memoryview(b"")
        #: What those of them say as facts that somebody asked for.
        self.facts: dict[str, tuple[FactText | None]] = {}
        #: What was made of the memories as they are now, by what it is, with what else it depends on.
        self._made_of: dict[str, tuple[object, Any]] = {}
        #: The ids of those that are others' word; None until somebody asked.
        self._others: set[str] | None = None
        #: The keys of what says until when it holds; None until somebody asked.
        self._ending: set[str] | None = None
        #: The keys of own memories with a category; None until somebody asked.
        self._categorized: set[str] | None = None
        #: The memories by what they are worth, as of some moment, and the keys that changed since; None until somebody asked.
        self._standing: Standing | None = None
        self._standing_kept: msgspec.Raw | None = None
        self._moved: set[str] = set()
        #: Keys of which no text is on this device.
        self.not_fetched: set[str] = set()
        #: Events and messages by id; those of each day and session in order; and of how many pieces the texts are not here.
        self.moments = DecodedLater(Moment)
        self._groups: dict[Group, list[str]] = {}
        self._missing: dict[Group, int] = {}
        #: The names of the pieces of each day and session; None until somebody asked. What was read of parts of sessions, and how many
        #: bytes a line of a context has at least whose moment was read.
        self._pieces: dict[Group, set[str]] | None = None
        self._may_have_moments: bool | None = None
        self.parts_read = PartsRead()
        self.least_lines: dict[str, int] = {}
        #: The cache of events and messages by id, the one used last at the end, and its number of characters.
        self._told: dict[str, Told] = {}
        self._told_characters = 0
        #: What the vectors of events and messages are kept by, by id; None until somebody asked.
        self._vector_keys: dict[str, bytes] | None = None
        self._indexes: dict[Filter, Index] = {}
        #: For the vectors that were last asked for: by index, where each of its entries has its vector, and how many have none.
        self._rows: tuple[Mapping[bytes, int], dict[Filter, tuple[array[int], int]]] = ({}, {})
        #: The words of the image that this was opened from, as long as nobody asked for them.
        self._image = memoryview(b"")
        #: Reads the image with its words, where it was opened without.
        self._later: Callable[[], RecallImage | None] | None = None
        #: How many memories were taken in or out since an image was written, and whether one is on the disk.
        self._stale = _STALE
        self._is_kept = False

    # -- for the next process ------------------------------------------------------------------------------------

    def open(self, parts: Sequence[Memories], kept: Kind | None = None, *, words: bool = True) -> bool:
        """Take what an earlier process kept for these scopes. False where there is nothing, or it was made of something else. `kept`: take
        what the index of another kind holds of the memories, without its words. `words` False: open its words once they are needed."""
        kind, ours = index_kind(parts), kept is None or kept == self.kind
        replica, stack = parts[0].replica, _stack(parts, kept or self.kind)
        image = load_image(replica, stack, first=not (ours and words))
        if image is None or image.state != kind:
            return False
        try:
            rest = _rest.decode(image.rest)
            told = _moments.decode(image.moments) if image.moments else _Moments({}, [], [], set())
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return False
        if len(rest.vectors) != VECTOR_ID * len(rest.held):
            return False
        self._clear(kind)
        self._made = _Made(rest.mark, rest.today)
        self._hashes_kept, self.not_fetched = rest.known, rest.not_fetched
        self.held, self._vectors_kept = DecodedLater(Held, rest.held), rest.vectors
        self.moments = DecodedLater(Moment, told.moments)
        self._groups, self._missing = dict(told.groups), dict(told.missing)
        self._others, self._ending = rest.others | told.others, rest.ending
        self._categorized, self._standing_kept = rest.categorized, rest.standing
        self._may_have_moments = rest.may_have_moments
        if ours:
            self._image, self._stale, self._is_kept = image.index, 0, True
        if ours and not words:
            self._later = lambda: _same(load_image(replica, stack), image)
        return True

    def keep(self, parts: Sequence[Memories], *, always: bool = False) -> None:
        """Write it down for the next process as things are now, where enough is new, or `always`; nothing that is forgotten meanwhile
        stays in it (not inside `reading`). Raises StorageError."""
        replica = parts[0].replica
        for _ in range(0 if replica.folder is None or replica.read_only else _TRIES):
            with replica.reading():
                self.refresh(parts)
                image = self._to_keep(always=always)
            if image is None:
                return
            if save_image(replica, image, _stack(parts, self.kind), holds=lambda: self._holds(parts)):
                self._stale, self._is_kept = 0, True
                return

    def _holds(self, parts: Sequence[Memories]) -> bool:
        """Whether all that it was made of stands there as it did (inside `reading`)."""
        made = self._made
        if made is None or self._kind != index_kind(parts):
            return False
        return stand(parts[0].replica.store, made.mark, self._known)

    def _to_keep(self, *, always: bool) -> RecallImage | None:
        """What is written down; None where too little is new."""
        words, made = self._indexes.get(_ALL), self._made
        few = len(self.held) + len(self.moments) < _FEW and not self._is_kept
        if made is None or words is None or ((few or self._stale < _STALE) and not always):
            return None
        others, vectors = self._whose(), self.vectors
        rest = (
            made.today,
            made.mark,
            self._known,
            self.held.stored(),
            b"".join(vectors[key] for key in self.held),
            self.not_fetched,
            others & self.held.keys(),
            self._with_an_end(),
            self._with_a_category(),
            self._numbered(),
            self._has_names_of_moments(),
        )
        told = (
            self.moments.stored(),
            list(self._groups.items()),
            list(self._missing.items()),
            others & self.moments.keys(),
        )
        kept, moments = memoryview(msgspec.msgpack.encode(rest)), memoryview(msgspec.msgpack.encode(told))
        return RecallImage(self._kind, kept, memoryview(words.image()), moments)

    def behind(self, parts: Sequence[Memories]) -> int:
        """How many memories changed since (inside `reading`); what was held of them counts no more."""
        return 0 if self._made is None else len(self._changed(parts, self._made.mark)[0])

    @property
    def _known(self) -> dict[str, bytes]:
        """The entries that it was made of: the hash of each as it stood in the state."""
        if self._hashes_kept is not None:
            kept, self._hashes_kept = self._hashes_kept, None
            self._hashes = _decoded(_known, kept)
        return self._hashes

    # -- what changed --------------------------------------------------------------------------------------------

    def not_taken_in(self, parts: Sequence[Memories]) -> Iterator[int]:
        """For each entry that `refresh` would look at: the bytes of its texts, and `_EACH` for itself (inside `reading`)."""
        store, made = parts[0].replica.store, self._made
        same = made is not None and self._kind == index_kind(parts)
        if same and made is not None and made.today != parts[0].replica.world.today():
            yield from (_EACH for one in self.held.values() if one.fades)
        if same and made is not None and store.is_at(made.mark):
            return
        scopes = {part.scope for part in parts if not part.forgotten()}
        mark = made.mark if same and made is not None else StateMark()
        for name, text in store.changes_since(mark).texts.items():
            if _scope_of(name) in scopes and not (
                same and self._known.get(name) == blake2b(text, digest_size=8).digest()
            ):
                sizes = (one.loc.size for one in decode_entry(name, text).values() if one.loc is not None)
                yield _EACH + sum(sizes)

    def refresh(self, parts: Sequence[Memories]) -> None:
        """Take in what changed (inside `reading`). What fails leaves nothing, as a part of a change would be taken for all of it."""
        try:
            self._refresh(parts)
        except BaseException:
            self._clear(b"")
            raise

    def _refresh(self, parts: Sequence[Memories]) -> None:
        store, today = parts[0].replica.store, parts[0].replica.world.today()
        before = self._made
        kind = index_kind(parts)
        if kind != self._kind:
            self._clear(kind)
            before = None
        same = before is not None and before.today == today and store.is_at(before.mark)
        if same and not self.not_fetched and not self._missing:
            return
        changed, groups, mark = self._changed(parts, before.mark if before is not None else StateMark())
        made = _Made(mark, today)
        if before is not None and before.today != today:
            changed |= {key for key, one in self.held.items() if one.fades}
        changed |= self.not_fetched
        groups |= self._missing.keys()
        if changed and INDEX_KEY in self.held:
            changed.add(INDEX_KEY)  # it may repeat other memories now
        if changed or groups:
            self._open_words()
            if self._standing_kept is not None:
                self.standing()  # it has the numbers of the keys that are held now
        with no_collection():
            fading = parts[0].fading if changed else 0.0  # read once: it asks the settings file
            for key in sorted(changed, key=INDEX_KEY.__eq__):  # the list last, which repeats the others
                self._look(parts, key, today, fading)
            if groups:
                from ipfsmem.memories.moments import read_groups

                for group, told, missing in read_groups(parts, sorted(groups)):
                    self._take_group(group, told, missing)
        self._made = made

    def _changed(self, parts: Sequence[Memories], mark: StateMark) -> tuple[set[str], set[Group], StateMark]:
        """The keys of memories, and the days and sessions, whose entries are not those of last time; and the state that is here now."""
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
                self._stale = _STALE  # no image keeps the day of an event that went
            changed(name, place, group)
        return keys, groups, since.mark

    def _place(self, name: str) -> tuple[MemoryName | None, Group | None, str | None]:
        """What an entry of the state is to this index: a memory, and in which day or session, and the scope; None for the scope of
        one that it does not know. An index of memories knows of a timeline only that it is there."""
        place = memory_name(name)
        segment = segment_name(name) if place is None else None
        scope = place.scope if place is not None else segment.scope if segment is not None else None
        if self.kind == "memory":
            return place, None, scope
        from ipfsmem.memories.moments import group_of

        group = group_of(name, segment)
        if group is not None and self.kind not in (group.kind, "all"):
            group = None
        if self.kind != "all":
            place = None
        return place, group, None if place is None and group is None else scope

    def pieces(self, group: Group) -> set[str]:
        """The names of the entries that a day or a session stands in (inside `reading`, after `refresh`)."""
        if self._pieces is None:
            self._pieces = {}
            for name in self._known:
                found = self._place(name)[1]
                if found is not None:
                    self._pieces.setdefault(found, set()).add(name)
        return self._pieces.get(group, set())

    def told(self, id: str, store: Store) -> Told | None:
        """An event or a message from the cache; None if it is not in the cache or the state changed since `refresh`."""
        if self._made is None or not store.is_at(self._made.mark):
            return None
        one = self._told.pop(id, None)
        if one is not None:
            self._told[id] = one  # the last asked for goes last
        return one

    def keep_told(self, told: Iterable[Told]) -> None:
        """Cache what was read; the least recently used entries are dropped first, and those of forgotten texts at once."""
        for one in told:
            if one.id in self.moments:
                self._drop_told(one.id)
                self._told[one.id] = one
                self._told_characters += _size(one)
        while self._told_characters > _MOST_TOLD:
            self._drop_told(next(iter(self._told)))

    def _drop_told(self, id: str) -> None:
        one = self._told.pop(id, None)
        if one is not None:
            self._told_characters -= _size(one)

    def may_have_moments(self, parts: Sequence[Memories]) -> bool:
        """Whether an event or a message may be in these scopes (inside `reading`); nothing that changed is taken in for that."""
        store, made = parts[0].replica.store, self._made
        if self._kind != index_kind(parts):
            made = None
        if made is not None and store.is_at(made.mark):
            return self._has_names_of_moments()
        known = self._known if made is not None else {}
        scopes = {part.scope for part in parts if not part.forgotten()}
        since = store.changes_since(StateMark() if made is None else made.mark)
        gone = set(since.may_be_gone(known))
        here = (name for name in since.texts if name not in known and _scope_of(name) in scopes)
        return any(map(_may_be_moment, here)) or any(
            name not in gone and _may_be_moment(name) for name in known
        )

    def _has_names_of_moments(self) -> bool:
        if self._may_have_moments is None:
            self._may_have_moments = any(map(_may_be_moment, self._known))
        return self._may_have_moments

    def _take_group(self, group: Group, told: Sequence[Told], missing: int) -> None:
        """Take in what stands in a day or a session now. What it begins with as before stays as it is."""
        from ipfsmem.memories.moments import document_of

        self._rows = ({}, {})
        self._missing.pop(group, None)
        if missing:
            self._missing[group] = missing
        before, now = self._groups.pop(group, []), [one.id for one in told]
        same = next(
            (
                at
                for at, (old, new) in enumerate(zip(before, told, strict=False))
                if old != new.id or self.moments[old] != new.moment
            ),
            min(len(before), len(now)),
        )
        for id in before[same:]:
            self._stale = _STALE  # what went is not left on the disk until enough else is new
            del self.moments[id]
            self.least_lines.pop(id, None)
            self._drop_told(id)
            if self._vector_keys is not None:
                self._vector_keys.pop(id, None)
            self._note_whose(id, own=True)
            self._rows = ({}, {})
            for index in self._indexes.values():
                index.remove(id)
        for one in told[same:]:
            self._stale += 1
            self.moments[one.id] = one.moment
            self._note_whose(one.id, own=one.moment.own)
            self._rows = ({}, {})
            for filter, index in self._indexes.items():
                if filter.takes_moment(one.moment):
                    index.add(document_of(one))
        if now:
            self._groups[group] = now
            if self._vector_keys is not None:
                there = ((one.id, one.moment) for one in told)
                self._vector_keys.update(vector_keys(there, self._vector_keys))

    def _look(self, parts: Sequence[Memories], key: str, today: date, fading: float) -> None:
        self.not_fetched.discard(key)
        self.facts.pop(key, None)
        self._moved.add(key)
        store = parts[0].replica.store
        there = [
            (part, found)
            for part in parts
            if (name := part.name(key)) in self._known
            and (text := store.raw(name)) is not None
            and (found := shown_of(part, key, decode_entry(name, text))) is not None
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
                self._note_whose(key, own=True)
                self._rows = ({}, {})
                self._stale = _STALE  # what went is not left on the disk until enough else is new
                for index in self._indexes.values():
                    index.remove(key)
            return
        part, found = chosen
        self._made_of.clear()
        self._stale += 1
        self._rows = ({}, {})
        file = self._searched(key, found.data or b"")
        hides = tuple(other.scope for other, _ in there if other is not part)
        name = part.name(key)
        self.vectors[key] = entry_id(name, store.raw(name) or b"")
        one = self.held[key] = _held(key, part.scope, found, file, hides)
        self._note_whose(key, own=one.own)
        if self._ending is not None:
            (self._ending.add if one.merits.until else self._ending.discard)(key)
        if self._categorized is not None:
            (self._categorized.add if _may_be_fact(one) else self._categorized.discard)(key)
        for filter, index in self._indexes.items():
            index.remove(key)
            if filter.takes(one):
                index.add(_document(key, one, file, today, fading))

    def _searched(self, key: str, data: bytes) -> MemoryFile:
        """What of a text is searched: of a MEMORY.md what was typed beside its list, which repeats the memories that it names."""
        file = readable_file(data)
        if key != INDEX_KEY:
            return file
        return MemoryFile(file.fields, typed_text(file.body, self.held.__contains__))

    def made_of(self, name: str, of: object, make: Callable[[], Made]) -> Made:
        """What `make` gives for the memories as they are now, made once as long as none changes. `of`: what else it depends on."""
        known = self._made_of.get(name)
        if known is None or known[0] != of:
            known = self._made_of[name] = (of, make())
        made: Made = known[1]
        return made

    def forget_made(self, name: str) -> None:
        """Make it again when it is asked for next: it was made without a text that is not at hand."""
        self._made_of.pop(name, None)

    def expired(self, today: date) -> frozenset[str]:
        """The keys of what held until an earlier day."""
        return frozenset(key for key in self._with_an_end() if self.held[key].merits.expired(today))

    def _with_an_end(self) -> set[str]:
        if self._ending is None:
            self._ending = {key for key, one in self.held.items() if one.merits.until}
        return self._ending

    def categorized(self) -> list[str]:
        """The keys of own memories that may be facts."""
        known = self._with_a_category()
        return [key for key in self.held if key in known] if known else []

    def _with_a_category(self) -> set[str]:
        if self._categorized is None:
            self._categorized = {key for key, one in self.held.items() if _may_be_fact(one)}
        return self._categorized

    def standing(self) -> tuple[Standing, Set[str]]:
        """The own memories that have a line, by what they are worth, of each group the newest first; and the keys of which this is not
        true any more. So the best are found without a look at all."""
        if self._standing is None or len(self._moved) > _STALE:
            keys, kept, self._standing_kept = list(self.held), self._standing_kept, None
            numbered = self._numbered() if kept is None else _decoded(_standing, kept)
            self._standing = [(merits, [keys[at] for at in numbers]) for merits, numbers in numbered]
            self._moved = set()
        return self._standing, self._moved

    def _numbered(self) -> list[tuple[Merits, list[int]]]:
        """The same with numbers in place of keys, as of now."""
        groups: dict[Merits, list[tuple[str, str, int]]] = {}
        for at, (key, one) in enumerate(self.held.items()):
            if one.own and one.section:
                groups.setdefault(one.merits, []).append((one.hlc, key, at))
        for group in groups.values():
            group.sort(key=itemgetter(1))
            group.sort(key=itemgetter(0), reverse=True)  # all clocks have one length
        return [(merits, [at for _, _, at in group]) for merits, group in groups.items()]

    @property
    def vectors(self) -> dict[str, bytes]:
        """What the vector of each memory is kept by, by key."""
        if self._vectors_kept:
            kept, self._vectors_kept = self._vectors_kept.tobytes(), memoryview(b"")
            begins = range(0, len(kept), VECTOR_ID)
            self._vectors = {
                key: kept[at : at + VECTOR_ID] for key, at in zip(self.held, begins, strict=True)
            }
        return self._vectors

    # -- for a question ------------------------------------------------------------------------------------------

    def index(self, parts: Sequence[Memories], filter: Filter) -> Index:
        """What `rank` takes, of the memories that a filter takes (inside `reading`, after `refresh`)."""
        from ipfsmem.recall.ranking import Index

        self._open_words()
        made = self._indexes.pop(filter, None)
        if made is None:
            by_scope, today = {part.scope: part for part in parts}, parts[0].replica.world.today()
            fading = parts[0].fading
            with no_collection():
                made = Index()
                for key, one in self.held.items():
                    if not filter.takes(one):
                        continue
                    part = by_scope[one.scope]
                    found = shown_of(part, key, part.replica.store.entry(part.name(key)))
                    if found is not None and found.data is not None:
                        file = self._searched(key, found.data)
                        made.add(_document(key, one, file, today, fading))
                if self._groups:
                    self._add_moments(parts, filter, made)
            if len(self._indexes) >= _FILTERS:
                oldest = next(one for one in self._indexes if one != _ALL)
                self._indexes.pop(oldest)
                self._rows[1].pop(oldest, None)
        self._indexes[filter] = made
        return made

    def rows(self, index: Index, at: Mapping[bytes, int]) -> tuple[array[int], int]:
        """The row of each entry's vector, by the entry's number in an index of these; -1 where it has none; and how many have none.
        `at`: the rows."""
        known, by_filter = self._rows
        if known is not at:
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

    def without_vector(self, index: Index, there: Container[bytes]) -> int:
        """How many entries of an index of these have none of the vectors that are `there`, of which no row is known yet."""
        of_memory, of_moment = self.vectors.get, self._keys_of_moments().get
        keys = (of_memory(id) or of_moment(id, b"") for id in index.ids)
        return sum(key not in there for key in keys) - (len(index.ids) - len(index))

    def _keys_of_moments(self) -> dict[str, bytes]:
        if self._vector_keys is None:
            self._vector_keys = {}
            for ids in self._groups.values():
                self._vector_keys.update(vector_keys((id, self.moments[id]) for id in ids))
        return self._vector_keys

    def _add_moments(self, parts: Sequence[Memories], filter: Filter, index: Index) -> None:
        from ipfsmem.memories.moments import document_of, read_groups

        wanted = {id for id, one in self.moments.items() if filter.takes_moment(one)}
        for _, told, _ in read_groups(parts, sorted({self.moments[id].group for id in wanted})):
            for one in told:
                if one.id in wanted:
                    index.add(document_of(one))

    def parted(self, index: Index) -> tuple[frozenset[int], frozenset[int]]:
        """The numbers of an index's entries that are this person's word, and of those that are others'. Where nothing is others' both
        are empty."""
        others_word = self._whose()
        if not others_word:
            return frozenset(), frozenset()
        if index.parted is None:
            others = frozenset(n for id in others_word if (n := index.number(id)) is not None)
            index.parted = frozenset(n for n, id in enumerate(index.ids) if id) - others, others
        return index.parted

    def _whose(self) -> set[str]:
        """The ids of what is others' word."""
        if self._others is None:
            self._others = {key for key, one in self.held.items() if not one.own}
            self._others |= {id for id, one in self.moments.items() if not one.own}
        return self._others

    def _note_whose(self, id: str, *, own: bool) -> None:
        if self._others is not None:
            self._others.discard(id)
            if not own:
                self._others.add(id)

    def writers(self) -> set[str]:
        """The devices that wrote what stands in it; who wrote elsewhere alone is nobody here."""
        found = {one.device for one in self.held.values()} | {one.device for one in self.moments.values()}
        return found - {""}

    def pieces_missing(self) -> int:
        """Of how many memories, and pieces of timelines and sessions, no text is on this device."""
        return len(self.not_fetched) + sum(self._missing.values())

    def lacks_words(self) -> bool:
        """Whether it was opened without its words, and nobody needed them yet."""
        return self._later is not None

    def has_words(self) -> bool:
        """Whether a question is answered without a look at every text."""
        return bool(self._image) or _ALL in self._indexes

    def _open_words(self) -> None:
        """The words of the image that this was opened from."""
        if self._later is not None:
            later, self._later = self._later, None
            whole = later()
            if whole is not None:
                self._image = whole.index
            else:
                self._stale = _STALE  # somebody replaced it: they are read from the texts
        if self._image:
            from ipfsmem.recall.ranking import Index

            image, self._image = self._image, memoryview(b"")
            try:
                with no_collection():
                    self._indexes[_ALL] = Index.from_image(image)
            except FormatError:
                self._stale = _STALE  # they are read from the texts, and written anew


def _decoded(decoder: msgspec.msgpack.Decoder[Made], kept: msgspec.Raw) -> Made:
    """A part of a kept index. Raises FormatError."""
    try:
        return decoder.decode(kept)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raise damaged_index("a table") from None


def _may_be_fact(one: Held) -> bool:
    return one.own and bool(one.category) and not one.part


def _same(now: RecallImage | None, before: RecallImage) -> RecallImage | None:
    """An image that was opened once more, where nobody replaced it meanwhile."""
    return now if now is not None and (now.state, now.rest) == (before.state, before.rest) else None


def _size(one: Told) -> int:
    """How many characters are kept of an event or a message."""
    return len(one.header) + len(one.text)


#: All memories but parts of sessions: what is kept.
_ALL = Filter()


def stand(store: Store, mark: StateMark, known: Mapping[str, bytes]) -> bool:
    """Whether entries that had these hashes at a mark stand as they did; what is new is no matter."""
    if store.is_at(mark):
        return True
    since = store.changes_since(mark)
    return not since.may_be_gone(known) and all(
        known.get(name) in (None, blake2b(text, digest_size=8).digest()) for name, text in since.texts.items()
    )


def index_kind(parts: Sequence[Memories]) -> bytes:
    """What an index is of, beside the state: other scopes, another reader, or an earlier program make another one."""
    replica = parts[0].replica
    strangers = sorted(device for device in replica.store.frame.ctx if not replica.is_mine(device))
    scopes = [(part.scope, part.forgotten()) for part in parts]
    made_of = (VERSION, scopes, strangers, parts[0].fading)
    return blake2b(msgspec.msgpack.encode(made_of), digest_size=16).digest()


def _stack(parts: Iterable[Memories], kind: Kind = "memory") -> str:
    """What an index is held and kept by: its scopes, and its kind, which no scope can be called."""
    scopes = "\n".join(part.scope for part in parts)
    return scopes if kind == "memory" else f"{scopes}{_OF_KIND}{kind}"


def index_of(parts: Sequence[Memories], kind: Kind = "memory") -> SearchIndex:
    """The index of a stack of scopes, brought up to date (inside `reading`); those used last are held."""
    found = _at_hand(parts, kind) or SearchIndex(kind)
    found.refresh(parts)
    return _held_last(parts, found)


def has_moments(parts: Sequence[Memories]) -> bool:
    """Whether these scopes may have an event or a message. An index that is at hand is asked: else every entry is read."""
    scopes = {part.scope for part in parts if not part.forgotten()}
    with parts[0].replica.reading():
        for kind in _KNOWING:
            found = _at_hand(parts, kind)
            if found is not None:
                return _held_last(parts, found).may_have_moments(parts)
        for name in parts[0].replica.store.names():
            if _may_be_moment(name) and _scope_of(name) in scopes:
                return True
    return False


def _scope_of(name: str) -> str | None:
    """The scope of a memory or of a piece of a timeline; None for what is neither."""
    place = memory_name(name) or segment_name(name)
    return None if place is None else place.scope


def _may_be_moment(name: str) -> bool:
    """Whether an entry of the state is of a timeline, or may be a part of a session."""
    if name[0] == "m" and PART_PREFIX not in name:
        return False
    place = memory_name(name)
    return segment_name(name) is not None if place is None else may_be_part(place.key)


def is_ready(parts: Sequence[Memories], kind: Kind, most: int) -> bool:
    """Whether an index is brought up to date, or made, of texts of at most so many bytes."""
    with parts[0].replica.reading():
        found = _at_hand(parts, kind)
        if found is None or not _held_last(parts, found).has_words():
            return _few(SearchIndex(kind).not_taken_in(parts), most)
        if not _few(found.not_taken_in(parts), most):
            return False
        found.refresh(parts)
        return True


def is_at_hand(parts: Sequence[Memories], kind: Kind) -> bool:
    """Whether an index is held, or was kept by an earlier process, of whatever state."""
    with parts[0].replica.reading():
        found = _at_hand(parts, kind)
        return found is not None and _held_last(parts, found).has_words()


def _few(left: Iterator[int], most: int) -> bool:
    return sum(islice(left, most // _EACH + 1)) <= most


def make_index(parts: Sequence[Memories], kind: Kind) -> None:
    """Make an index, or bring it up to date, and write it down at once, however small it is. Raises StorageError."""
    with parts[0].replica.reading():
        found = index_of(parts, kind)
        found.index(parts, _ALL)
    found.keep(parts, always=True)


def index_at_hand(parts: Sequence[Memories]) -> SearchIndex | None:
    """The same where it need not be made: it is held, or was kept by an earlier process. One of everything knows of the memories as much as
    one of memories alone."""
    found = _at_hand(parts, words=False)
    if found is None and _stack(parts, "all") in parts[0].indexes:
        found = _at_hand(parts, "all")
    if found is None:
        made = SearchIndex()
        found = made if made.open(parts, "all") else None
    if found is None:
        return None
    found.refresh(parts)
    return _held_last(parts, found)


def _at_hand(parts: Sequence[Memories], kind: Kind = "memory", *, words: bool = True) -> SearchIndex | None:
    """The index that is held, else what an earlier process kept; `words` False: without its words, as long as nobody needs them."""
    found = parts[0].indexes.pop(_stack(parts, kind), None)
    if found is None or (words and found.lacks_words()):
        made = SearchIndex(kind)
        found = made if made.open(parts, words=words) else found
    return found


def _held_last(parts: Sequence[Memories], found: SearchIndex) -> SearchIndex:
    held = parts[0].indexes
    if len(held) >= _STACKS:
        held.pop(next(iter(held)))
    held[_stack(parts, found.kind)] = found
    return found


def kept_index(parts: Sequence[Memories]) -> SearchIndex | None:
    """What an earlier process kept for a stack of scopes, as it is."""
    found = SearchIndex()
    return found if found.open(parts) else None


def unlike_the_texts(parts: Sequence[Memories]) -> list[str] | None:
    """The keys of which the kept index of a stack of scopes says something else than the texts, what changed since taken in (inside
    `reading`); None where none is kept."""
    kept, fresh = kept_index(parts), SearchIndex()
    if kept is None:
        return None
    words = []
    for one in (kept, fresh):
        one.refresh(parts)
        words.append(one.index(parts, _ALL).signatures())
    return sorted(
        key
        for key in kept.held.keys() | fresh.held.keys()
        if kept.held.get(key) != fresh.held.get(key)
        or kept.vectors.get(key) != fresh.vectors.get(key)
        or words[0].get(key) != words[1].get(key)
    )


def made_anew(parts: Sequence[Memories]) -> SearchIndex:
    """The index of a stack of scopes made of the texts; nothing that was kept stays."""
    replica, indexes = parts[0].replica, parts[0].indexes
    remove_images(replica, begun=False)  # another process may make one anew too
    indexes.clear()
    found = SearchIndex()
    with replica.reading():
        found.refresh(parts)
        found.index(parts, _ALL)
    found.keep(parts)
    return _held_last(parts, found)


def keep_indexes(memories: Memories) -> None:
    """Write down for the next process what this one holds, as things are now: what was forgotten since stands in none. What cannot
    be written is made anew there."""
    with contextlib.suppress(IpfsmemError):
        for stack, index in memories.indexes.items():
            scopes = stack.partition(_OF_KIND)[0].split("\n")
            index.keep([memories.in_scope(scope) for scope in scopes])


def entry_id(name: str, text: bytes) -> bytes:
    """What the vector of an entry is kept by: its name and its values, as they stand in the state."""
    return blake2b(name.encode() + b"\0" + text, digest_size=VECTOR_ID).digest()


def shown_of(part: Memories, key: str, entry: Entry) -> _Shown | None:
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


def _is_list_alone(key: str, file: MemoryFile) -> bool:
    """Whether a memory is a MEMORY.md without typed text."""
    return key == INDEX_KEY and not file.body


def _held(key: str, scope: str, found: _Shown, file: MemoryFile, hides: tuple[str, ...]) -> Held:
    is_list = _is_list_alone(key, file)
    return Held(
        scope,
        found.own,
        found.device,
        found.hlc,
        is_list or is_part(key, file),
        bool(file.fields.keys() & {"decay", "expires", "confidence"}),
        file.type,
        file.fields.get("category", ""),
        file.tags,
        hides,
        *(("", "") if is_list else index_line(item_of(key, file))),
        merits_of(file, hlc_ms(found.hlc) if found.hlc else 0),
    )


def searched_header(key: str, file: MemoryFile) -> str:
    """What of a memory is searched beside its body."""
    return " ".join((key, file.name, file.description, *file.tags, file.fields.get("category", "")))


def _document(key: str, one: Held, file: MemoryFile, today: date, fading: float) -> Document:
    from ipfsmem.recall.ranking import Document

    at = date.fromordinal(one.merits.changed) if one.merits.changed else None
    header = "" if key == INDEX_KEY else searched_header(key, file)
    return Document(
        key, file.body, header, at=at, memory=True, salience=one.merits.worth(today, fading=fading)
    )
