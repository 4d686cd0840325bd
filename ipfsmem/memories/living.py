"""Tracks the existing entries that may have a stored vector: memories, and entries of days and sessions.

Tracking works in steps of a few milliseconds, each of which ends in a consistent state, so that other callers work in between. Days
and sessions are read only once such entries are requested, and again only if a segment or part changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Generator, Iterable, Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from ipfsmem.bundle.session_parts import PART_PREFIX
from ipfsmem.causal.clock import hlc_ms
from ipfsmem.causal.entries import MemoryName, SegmentName, memory_name, segment_name
from ipfsmem.causal.tree import name_digits
from ipfsmem.causal.value import Value, decode_entry
from ipfsmem.device.state import StateMark
from ipfsmem.memories.event_entries import HALF, Group, vector_keys
from ipfsmem.memories.event_search import group_of, ms_of, read_by_pieces, read_together
from ipfsmem.memories.search_index import entry_id

if TYPE_CHECKING:
    from ipfsmem.device.replica import Replica
    from ipfsmem.memories.event_search import EventSource
    from ipfsmem.memories.memories import MemoryStore

#: Maximum nodes of the state tree that are examined in one step: a few hundred entries of a very large state.
_NODES_PER_STEP = 2
#: Days and sessions that are compared in one step.
_GROUPS_PER_STEP = 100
#: Leading digits of an entry's position in the state tree, by which names are indexed; a node in a mark has at most as many.
_PREFIX_DIGITS = 2
_NONE = bytes(HALF)
_SIZE = 2 * HALF


class Live(NamedTuple):
    """A memory that is not forgotten, and the clock of its newest value."""

    place: MemoryName
    hlc: str


class Spoken(msgspec.Struct, frozen=True, array_like=True):
    """A day of one scope or a session, as it was read: a hash of its segments or parts in the state, the time of its last entry in
    milliseconds since 1970 UTC, and the concatenated keys of its entries' vectors, in order."""

    kind: Literal["event", "message"]
    scope: str
    name: str
    made_of: bytes
    newest: int
    keys: bytes

    @property
    def group(self) -> Group:
        """The group."""
        return Group(self.kind, self.scope, self.name)

    def each(self) -> list[bytes]:
        """Return the key of each vector."""
        return [self.keys[at : at + _SIZE] for at in range(0, len(self.keys), _SIZE)]


class _Clock(msgspec.Struct, gc=False):
    """The fields of a value that tell whether and when a text was written."""

    h: str
    body: str | None = None


_decode_clocks = msgspec.json.Decoder(dict[str, _Clock]).decode


class Living:
    """The existing entries, up to the last change that was followed. Not thread-safe."""

    def __init__(self, memories: MemoryStore, spoken: Iterable[Spoken] = ()) -> None:
        self._memories = memories
        #: Memories, by the key of their vector.
        self.files: dict[bytes, Live] = {}
        #: The days (each of one scope) and sessions that were read, and the hashes of their entries.
        self.spoken: dict[Group, Spoken] = {}
        self.entries: set[bytes] = set()
        self.mark = StateMark()
        self._ids: dict[str, bytes] = {}
        self._pieces: dict[Group, dict[str, bytes]] = {}
        #: The names of all entries, by the first digits of their positions in the state tree.
        self._names: dict[str, set[str]] = {}
        #: Groups changed since they were last compared, groups to read, and groups that are incomplete on this device.
        self._changed: set[Group] = set()
        self._unread: set[Group] = set()
        self._not_here: set[Group] = set()
        #: The forgotten scopes, and a hash of other persons' devices: a change of either may change which entries exist.
        self._seen_as: tuple[frozenset[str], bytes] = frozenset(), b""
        self._scopes: set[str] = set()
        #: Keys removed since the last `pop_removed`.
        self._gone: set[bytes] = set()
        self.adopt(spoken)

    # -- the state -----------------------------------------------------------------------------------------------

    def follow(self) -> Generator[None, None, None]:
        """Follow changes, in steps (each inside `reading`)."""
        store, forgotten = self._memories.replica.store, dict[str, bool]()
        if self._seen_as != (seen_as := self._readers(forgotten)):
            self._seen_as, self.mark = seen_as, StateMark()
            self._changed |= self._pieces.keys()
        while True:
            since = store.changes_since(self.mark, _NODES_PER_STEP)
            for name, text in since.texts.items():
                self._update(name, text, forgotten)
            for name in self._possibly_removed(since.prefixes, since.journal):
                if name not in since.texts:
                    self._drop(name)
            self.mark = since.mark
            if since.whole:
                break
            yield
        self._seen_as = self._readers(forgotten)
        while self._changed:
            for group in list(self._changed)[:_GROUPS_PER_STEP]:
                self._compare(group)
                self._changed.discard(group)
            yield

    def _compare(self, group: Group) -> None:
        """Check whether a day or a session changed since it was read."""
        spoken, pieces = self.spoken.get(group), self._pieces.get(group)
        self._unread.discard(group)
        self._not_here.discard(group)
        if pieces is None:
            if spoken is not None:
                self._remove_entries(self.spoken.pop(group), ())
        elif spoken is None or spoken.made_of != self._made_of(pieces):
            self._unread.add(group)

    def _readers(self, forgotten: dict[str, bool]) -> tuple[frozenset[str], bytes]:
        """Return which scopes are forgotten, and a hash of other persons' devices."""
        gone = frozenset(scope for scope in self._scopes if self._is_forgotten(scope, forgotten))
        return gone, strangers_of(self._memories.replica)

    def _is_forgotten(self, scope: str, cache: dict[str, bool]) -> bool:
        if scope not in cache:
            cache[scope] = self._memories.in_scope(scope).forgotten()
        return cache[scope]

    def _update(self, name: str, text: bytes, forgotten: dict[str, bool]) -> None:
        place = memory_name(name)
        segment = segment_name(name) if place is None else None
        owner = place or segment
        if owner is None:
            return
        self._scopes.add(owner.scope)
        if self._is_forgotten(owner.scope, forgotten):
            self._drop(name)
            return
        self._names.setdefault(name_digits(name)[:_PREFIX_DIGITS], set()).add(name)
        if place is not None:
            self._update_memory(name, text, place)
        may_be_of_one = place is None or place.key.startswith(PART_PREFIX)
        group = group_in_scope(name, segment) if may_be_of_one else None
        if group is not None:
            self._pieces.setdefault(group, {})[name] = blake2b(text, digest_size=8).digest()
            self._changed.add(group)

    def _update_memory(self, name: str, text: bytes, place: MemoryName) -> None:
        id = entry_id(name, text)
        before = self._ids.get(name)
        if before == id:
            return
        clocks = [value.h for value in _clocks(name, text).values() if value.body]
        if before is not None:
            del self._ids[name], self.files[before]
            self._gone.add(before)
        if clocks:
            self._ids[name] = id
            self.files[id] = Live(place, max(clocks))
            self._gone.discard(id)

    def _possibly_removed(self, prefixes: Collection[str], journal: Iterable[str]) -> list[str]:
        names = [name for name in journal if name in self._names.get(name_digits(name)[:_PREFIX_DIGITS], ())]
        for prefix in prefixes:
            digits = (
                [prefix]
                if prefix in self._names
                else [d for d in self._names if d.startswith(prefix[:_PREFIX_DIGITS])]
            )
            names += [name for one in digits for name in self._names.get(one, ())]
        return names

    def _drop(self, name: str) -> None:
        self._names.get(name_digits(name)[:_PREFIX_DIGITS], set()).discard(name)
        id = self._ids.pop(name, None)
        if id is not None:
            del self.files[id]
            self._gone.add(id)
        group = group_in_scope(name, segment_name(name))
        pieces = self._pieces.get(group) if group is not None else None
        if group is not None and pieces is not None:
            pieces.pop(name, None)
            self._changed.add(group)
            if not pieces:
                del self._pieces[group]

    # -- days and sessions ---------------------------------------------------------------------------------------

    def adopt(self, spoken: Iterable[Spoken]) -> None:
        """Adopt groups that another process, or an earlier one, read; groups known here are newer."""
        for one in spoken:
            if one.group not in self.spoken and len(one.keys) % _SIZE == 0:
                self._take(one)
                self._changed.add(one.group)

    def changed(self) -> list[Group]:
        """Return the days and sessions that were read and changed since, after `follow`."""
        return [group for group in self._unread if group in self.spoken and group not in self._not_here]

    def unread(self, kinds: Container[str]) -> list[Group]:
        """Return the groups of some kinds that are to be read."""
        return [one for one in self._unread if one.kind in kinds and one not in self._not_here]

    @property
    def all_here(self) -> bool:
        """Whether all days and sessions are complete on this device."""
        return not self._not_here

    def try_again(self) -> None:
        """Mark the groups that were incomplete on this device as to read again."""
        self._not_here.clear()

    def written(self, group: Group) -> int:
        """Return the approximate time of the last write of a day or a session, in milliseconds since 1970 UTC."""
        if group.kind == "event":
            return ms_of("", group.name)
        ids = (self._ids.get(name, b"") for name in self._pieces.get(group, ()))
        return max((hlc_ms(self.files[id].hlc) for id in ids if id), default=0)

    def read(
        self, group: Group
    ) -> Generator[None, None, tuple[Group, bytes, Callable[[], list[EventSource]] | None]]:
        """Read a day or a session in steps (each inside `reading`); returns the arguments of a `GroupReading`."""
        pieces = dict(self._pieces.get(group, {}))
        together = yield from read_by_pieces(self._memories.in_scope(group.scope), group, pieces)
        return group, self._made_of(pieces), together

    def store(self, reading: GroupReading) -> dict[bytes, str]:
        """Store a group that was read, unless it changed meanwhile; returns its texts by the keys of their vectors, in order, or
        none if the group is incomplete on this device."""
        group = reading.group
        if reading.made_of != self._made_of(self._pieces.get(group, {})):
            return {}
        before = self.spoken.pop(group, None)
        if reading.spoken is None:
            self._not_here.add(group)  # a forgotten entry cannot be distinguished from a missing one
        else:
            self._unread.discard(group)
            self._take(reading.spoken)
        if before is not None:
            self._remove_entries(before, () if reading.spoken is None else reading.spoken.each())
        return reading.texts

    def _take(self, one: Spoken) -> None:
        self.spoken[one.group] = one
        there = {key[:HALF] for key in one.each()}
        self.entries |= there
        self._gone -= there

    def _remove_entries(self, before: Spoken, now: Iterable[bytes]) -> None:
        gone = {key[:HALF] for key in before.each()} - {key[:HALF] for key in now}
        self.entries -= gone
        self._gone |= gone

    def _made_of(self, pieces: Mapping[str, bytes]) -> bytes:
        made_of = b"".join(name.encode() + b"\0" + pieces[name] for name in sorted(pieces))
        return blake2b(self._seen_as[1] + made_of, digest_size=16).digest()

    # -- vectors -------------------------------------------------------------------------------------------------

    def has(self, key: bytes) -> bool:
        """Return whether all entries from which a vector was computed exist."""
        if key in self.files:
            return True
        return key[:HALF] in self.entries and (key[HALF:] == _NONE or key[HALF:] in self.entries)

    def pop_removed(self) -> set[bytes]:
        """Return the keys removed since the last call: of a memory's vector, or the hash of an entry of a day or a session."""
        gone, self._gone = self._gone, set()
        return gone


def _clocks(name: str, text: bytes) -> Mapping[str, _Clock | Value]:
    try:
        return _decode_clocks(text)
    except (msgspec.DecodeError, RecursionError):
        return decode_entry(name, text)  # raises an error with the reason


class GroupReading:
    """The content of a day or a session, combined outside `reading`."""

    def __init__(
        self, group: Group, made_of: bytes, together: Callable[[], list[EventSource]] | None
    ) -> None:
        self.group, self.made_of = group, made_of
        #: None if the group is incomplete on this device.
        self.spoken: Spoken | None = None
        self.texts: dict[bytes, str] = {}
        if together is None:
            return
        sources = together()
        of = {one.id: one for one in sources}
        keys = vector_keys((one.id, one.moment) for one in sources)
        by_half = {key[:HALF]: of[id] for id, key in keys.items()}
        self.texts = {key: read_together(of[id], by_half.get(key[HALF:])) for id, key in keys.items()}
        newest = max((one.moment.at for one in sources), default=0)
        self.spoken = Spoken(group.kind, group.scope, group.name, made_of, newest, b"".join(self.texts))


def strangers_of(replica: Replica) -> bytes:
    """Return a hash of other persons' devices (inside `reading`)."""
    strangers = sorted(device for device in replica.store.frame.ctx if not replica.is_mine(device))
    return blake2b("\n".join(strangers).encode(), digest_size=16).digest()


def group_in_scope(name: str, segment: SegmentName | None) -> Group | None:
    """Return the session, or the day of one scope, that an entry of the state belongs to."""
    group = group_of(name, segment)
    return group if group is None or segment is None else group._replace(scope=segment.scope)


def keys_of_removed(keys: Iterable[bytes], gone: Collection[bytes]) -> list[bytes]:
    """Return the keys of vectors that were computed from a removed entry."""
    return [key for key in keys if key in gone or key[:HALF] in gone or key[HALF:] in gone] if gone else []
