"""Layout of packs, pins and name records in a bucket, where it differs from a folder (packs/provider.py).

    packs/<sha256>.car, .idx, .going, .lost
    pins/<16 hex of SHA-256(name)>/<cid>.<milliseconds>.json       one pin, fully described by its key
    pins/<16 hex of SHA-256(name)>/<sha256>.pins                   many pins under this name
    names/<k51...>/<SHA-256 of the record>
    small/<box>/<label>.<sha256>                                   small objects: one list request finds those of a box

A bucket cannot rename, and devices that write at the same time do not see each other. So:

- A pack is put before its index, and is valid once both exist: the index says that the pack is complete.
- A mark is never withdrawn. A device that would write exactly a marked pack adds a random block, so that its pack has
  another name and is not removed with the marked one. Blocks of a marked pack that turn out to be needed go to another pack.
- One list request finds all pins under a name, or all records of a name; a pin is known by its key, without reading it.
- A pack is small enough for a single put, and a large pack is never merged.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import BinaryIO, Final, TypeAlias

import msgspec

from ipfsmem.canonical import read_json
from ipfsmem.content.cid import CID, parse_cid, raw_cid
from ipfsmem.errors import FormatError, ProviderError, ProviderUnavailable, SealError
from ipfsmem.provider.contract import Pin
from ipfsmem.published import ipns_record
from ipfsmem_providers.bucket.objects import Objects
from ipfsmem_providers.packs.collection import DAY_MS, Collector, Roots
from ipfsmem_providers.packs.index import decode_index
from ipfsmem_providers.packs.lost_blocks import LOST
from ipfsmem_providers.packs.names import NameRecords
from ipfsmem_providers.packs.object_store import CollectedFile, FileInfo, Head, PassedOver
from ipfsmem_providers.packs.pins import PackPins, is_list, is_single, tag_of
from ipfsmem_providers.packs.small_files import SmallFiles
from ipfsmem_providers.packs.spans import cut, joined
from ipfsmem_providers.packs.store import GOING, Inventory, Packs, PackWriter

#: A new pack of this many bytes is put, and another one begun.
PACK_BYTES: Final = 16 * 1024 * 1024
#: Nanoseconds since 1970 UTC. Not a monotonic clock, which stops while the machine sleeps and would make old
#: listings look recent.
Clock: TypeAlias = Callable[[], int]
#: Maximum number of name records that are cached for later processes.
_CACHED_MAX: Final = 256
#: Seconds for which a listing, or an object read whole, is recent.
_RECENT: Final = 60
#: Parts with at most this many bytes between them are read in one request, which costs about as much as the bytes.
_GAP: Final = 128 * 1024
_INDEX_GAP: Final = 4 * 1024
#: An object that is put to learn the server's time from its date.
_NOW: Final = "now"
#: The folder of pins.
_PINS: Final = "pins"
#: An object is read whole when parts of more than `_LITTLE` bytes were wanted lately, by a device that has nothing from here of
#: more than one in `_SHARE` of its bytes: that device wants all of it. Up to `_KEPT` bytes of these are cached.
_LITTLE: Final = 4 * 1024 * 1024
_SHARE: Final = 20
_KEPT: Final = 64 * 1024 * 1024


class BucketObjectStore:
    """`packs`, `pins`, `names` or `small` in a bucket, as an object store (packs/object_store.py)."""

    cheap_read_bytes = 16 * 1024

    def __init__(self, objects: Objects, folder: str, clock: Clock) -> None:
        self._objects, self._folder = objects, folder
        self._whole = _Whole(clock)
        #: Whether everything is likely to be read, and the bytes of the objects that were listed last.
        self.wants_all = False
        self._sizes: dict[str, int] = {}

    def __str__(self) -> str:
        return f"{self._objects.where}/{self._folder}"

    def files(self, prefix: str = "") -> dict[str, FileInfo]:
        """Return the objects; `prefix` is empty, or ends with a slash."""
        below = f"{self._folder}/{prefix}".rstrip("/")
        found = {f"{prefix}{name}": info for name, info in self._objects.list(below).items()}
        if not prefix:
            self._sizes = {name: info.size for name, info in found.items()}
        return found

    @property
    def in_snapshot(self) -> bool:
        """Return whether `files` may answer from an earlier listing."""
        return self._objects.in_snapshot

    def refresh(self) -> bool:
        """Drop the snapshot."""
        return self._objects.drop_snapshot()

    def not_files(self, prefix: str = "") -> frozenset[str]:
        """Return nothing: a bucket has none."""
        return frozenset()

    def containing(self, part: str) -> frozenset[str]:
        """Return nothing: only devices put objects."""
        return frozenset()

    def set_aside(self, name: str) -> None:
        """Do nothing: there is nothing to set aside."""

    def read(self, name: str, limit: int) -> bytes | None:
        """Return a small object whole."""
        head = self._objects.head(self._key(name), limit + 1)
        return head.data if head is not None and head.size <= limit else None

    def heads(self, names: Sequence[str], length: int) -> dict[str, Head]:
        """Return the first bytes of the objects that exist; several requests run at once."""
        heads_by_name = self._objects.all_of(names, lambda name: self._objects.head(self._key(name), length))
        return {name: head for name, head in heads_by_name if head is not None}

    def ranges(self, name: str, spans: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return parts of one object. Close parts share a request; many parts are cut from the whole object."""
        data = self._whole.get(name)
        if data is None:
            nonempty = [span for span in spans if span[0] < span[1]]  # servers refuse empty ranges
            is_car = name.endswith(".car")
            near = joined(nonempty, _GAP if is_car else _INDEX_GAP)
            size = sum(end - start for start, end in near)
            if (self._whole.asked(name, size) if is_car else size) <= self._little(name):
                parts = self._objects.ranges(self._key(name), near)
                return [cut(near, parts, span) if span[0] < span[1] else b"" for span in spans]
            self._whole.forget(name)  # one that is damaged is read in parts again
            data = self._objects.read(self._key(name))
            if hashlib.sha256(data).hexdigest() == name[:64]:  # not another server's answer
                self._whole.put(name, data)
        return [data[start:end] for start, end in spans]

    def _little(self, name: str) -> int:
        """Return the bytes of an object that are read in parts."""
        if self.wants_all and name.endswith(".car") and name in self._sizes:
            return min(_LITTLE, self._sizes[name] // _SHARE)
        return _LITTLE

    def open_file(self, name: str, *, buffered: bool = False) -> BinaryIO:
        """Return a whole object in memory: packs are small in a bucket."""
        data = self._objects.read(self._key(name))
        if name.endswith(".car") and hashlib.sha256(data).hexdigest() != name[:64]:
            info = self.files().get(name)
            # A proxy or portal may have answered instead of the bucket. A damaged pack has at least the right size.
            if info is None or info.size != len(data):
                raise ProviderUnavailable(f"{self} returned {len(data)} bytes of another file for {name}")
        return io.BytesIO(data)

    def write(self, name: str, data: bytes, *, flush: bool = True) -> None:
        """Put an object; it is durable when this returns."""
        self._objects.put(self._key(name), data)

    def new_file(self) -> CollectedFile:
        """Collect an object in memory, to put it at the end."""
        return CollectedFile(self)

    def unlink(self, name: str) -> None:
        """Delete an object."""
        self.remove([name])

    def remove(self, names: Sequence[str]) -> None:
        """Delete several objects."""
        self._objects.delete([self._key(name) for name in names])

    def flush(self) -> None:
        """Do nothing: a put is durable."""

    def sweep(self, oldest: float, passed_over: PassedOver | None = None) -> None:
        """Do nothing: an interrupted put leaves nothing."""

    def held_open(self) -> AbstractContextManager[None]:
        """Do nothing: a bucket never changes location."""
        return nullcontext()

    def _key(self, name: str) -> str:
        return f"{self._folder}/{name}"


def _is_recent(then: int, now: int) -> bool:
    return 0 <= now - then <= _RECENT * 1_000_000_000


class _Whole:
    """Cache of objects recently read whole: a device that fetches everything asks for parts of them many times.

    Entries are short-lived, since later calls check whether the objects still exist.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[str, tuple[int, bytes]] = {}
        #: When parts of an object were last wanted, and the bytes of those that were.
        self._parts: dict[str, tuple[int, int]] = {}
        self._lock = threading.Lock()

    def asked(self, name: str, size: int) -> int:
        """Note that parts of `size` bytes are wanted; return the bytes of all that were wanted lately."""
        with self._lock:
            self._clean()
            _, before = self._parts.get(name, (0, 0))
            self._parts[name] = self._clock(), before + size
            return before + size

    def forget(self, name: str) -> None:
        """Drop the bytes that `asked` noted."""
        with self._lock:
            self._parts.pop(name, None)

    def get(self, name: str) -> bytes | None:
        with self._lock:
            self._clean()
            entry = self._kept.get(name)
            return entry[1] if entry is not None else None

    def put(self, name: str, data: bytes) -> None:
        with self._lock:
            self._clean()
            self._kept[name] = (self._clock(), data)
            while sum(len(data) for _, data in self._kept.values()) > _KEPT and len(self._kept) > 1:
                del self._kept[next(iter(self._kept))]

    def _clean(self) -> None:
        now = self._clock()
        self._kept = {name: kept for name, kept in self._kept.items() if _is_recent(kept[0], now)}
        self._parts = {name: asked for name, asked in self._parts.items() if _is_recent(asked[0], now)}


class BucketPacks(Packs):
    """The packs of a bucket."""

    max_packs = 32
    merge_bytes = PACK_BYTES
    large_bytes = PACK_BYTES // 4
    consistent_listing = True

    def __init__(self, store: BucketObjectStore, clock: Clock) -> None:
        super().__init__(store)
        self._objects = store
        self._clock = clock
        self._seen: tuple[int, Inventory] | None = None

    def inventory(self, *, recent: bool = False) -> Inventory:
        """Return the current packs, or with `recent` a cached listing."""
        now = self._clock()
        if recent and self._seen is not None and _is_recent(self._seen[0], now):
            return self._seen[1]
        in_snapshot = self._objects.in_snapshot  # then the listing may be older than `now`
        inventory = Inventory(self.store.files(), index_last=True)
        if not in_snapshot:
            self._seen = (now, inventory)
        return inventory

    def place(self, writer: PackWriter) -> str:
        """Put a pack, then its index. Returns the pack's name; "" when it holds no block."""
        writer.flush()
        if not writer.stem:
            return ""
        files = self.inventory(recent=True).files
        while f"{writer.stem}{GOING}" in files:
            salt = os.urandom(16)
            writer.add(raw_cid(hashlib.sha256(salt).digest()), salt)
            writer.flush()
        stem, index = writer.stem, writer.index()
        writer.place()
        self.store.write(f"{stem}.idx", index)
        self.forget(f"{stem}.car")
        self._indexes[f"{stem}.car", writer.size] = decode_index(index)
        if f"{stem}{LOST}" in files:
            self.store.unlink(f"{stem}{LOST}")  # it is whole again
        return f"{stem}.car"

    def _remove(self, packs: Sequence[str]) -> None:
        if packs:
            self._objects.remove([f"{name[:64]}{ending}" for name in packs for ending in (".car", ".idx")])


class BucketCollector(Collector):
    """Marks and removes packs of a bucket. The age of an object, and the time, are those of the server: the clock of this
    device may be days ahead, and not every server refuses requests that are signed then."""

    def __init__(self, packs: BucketPacks, store: BucketObjectStore, now: int) -> None:
        super().__init__(packs, now)
        self._objects = store

    def remove(self, read: Callable[[], Roots]) -> int:
        """Do `Collector.remove` by the server's clock."""
        if self.due(self._packs.inventory(recent=True)):
            self._now = self._time()
        return super().remove(read)

    def mark(self, roots: Roots) -> int:
        """Do `Collector.mark` by the server's clock.

        Old packs without an index, whose writer was interrupted, get one first, so that their blocks are
        known.
        """
        self._now = self._time()
        for name, size in self._packs.inventory().unfinished.items():
            if self._now - self._packs.inventory(recent=True).files[name].modified >= DAY_MS:
                self._packs.index(name, size)
        return super().mark(roots)

    def _time(self) -> int:
        """Return the server's time, in milliseconds since 1970 UTC."""
        self._objects.write(_NOW, b"now")
        info = self._objects.files().get(_NOW)
        if info is None:
            raise ProviderUnavailable(f"{self._objects} does not list an object that was just written")
        return info.modified

    def _due(self, inventory: Inventory) -> list[str]:
        marks = {name: inventory.files[f"{name[:64]}{GOING}"] for name in inventory.marked}
        return sorted(name for name, info in marks.items() if self._now - info.modified >= DAY_MS)

    def _take_away(self, name: str, is_needed: Callable[[], bool]) -> bool:
        """Delete a marked pack, unless it was put again lately or a new root needs a block that no other pack holds."""
        info = self._packs.inventory().files.get(name)
        if info is None:
            return False  # another device removes it now; its leftovers are swept later
        if self._now - info.modified < DAY_MS or is_needed():
            return False
        # The mark is deleted last: as long as the pack exists, it is marked.
        self._objects.remove([f"{name[:64]}{ending}" for ending in (".car", ".idx", LOST)])
        self._objects.unlink(f"{name[:64]}{GOING}")
        self._packs.forget(name)
        return True


class BucketSmallFiles(SmallFiles):
    """The small objects of a bucket: those of one box have keys with one prefix."""

    separator = "/"

    def __init__(self, store: BucketObjectStore) -> None:
        super().__init__(store)
        self._objects = store

    def remove(self, names: Collection[str]) -> None:
        """Do `SmallFiles.remove` with one request."""
        self._objects.remove([*names])


class BucketPins(PackPins):
    """The pins of a bucket: those under one name have keys with one prefix."""

    def named(self, name: str) -> list[Pin]:
        """Do `PackPins.named`. An object that cannot be listed or read raises with the pins of the others."""
        try:
            return super().named(name)
        except ProviderError as error:
            keys = (key.removeprefix(f"{_PINS}/") for key in error.listed)
            shown = [file for file in keys if file.startswith(self._prefix(name))]
            pins = {pin.cid: pin for pin in self._of_lists(filter(is_list, shown), name)}
            pins |= {pin.cid: pin for pin in self._single_pins(shown, name)}
            error.pins = sorted(pins.values(), key=lambda pin: (-pin.created, pin.handle))
            raise

    def _of_lists(self, lists: Iterable[str], name: str) -> Iterator[Pin]:
        """Return the pins under `name` in the lists that can be read, up to one that cannot be read now."""
        for file in lists:
            try:
                lists_read = self._read_lists([file]).values()
            except ProviderError as error:
                if not error.permanent:
                    return
                continue
            for each in lists_read:
                yield from each.by_name.get(name, ())

    def _prefix(self, name: str) -> str:
        return f"{tag_of(name)}/"

    def _pin(self, root: CID, name: str, created: int) -> Pin:
        return Pin(root, name, f"{tag_of(name)}/{root}.{created}.json", created)

    def _files_of(self, root: CID, name: str, files: Collection[str]) -> list[str]:
        prefix = f"{tag_of(name)}/{root}."
        return [file for file in files if file.startswith(prefix) and is_single(file)]

    def _single_pins(self, files: Iterable[str], name: str, *, damaged: bool = False) -> list[Pin]:
        pins = (self._of_key(file, name) for file in files if is_single(file))
        return [pin for pin in pins if pin is not None]

    def _holds(self, file: str) -> bool:
        return is_single(file) or super()._holds(file)  # a listed key has all data of its pin

    def _pins_in(self, file: str, name: str) -> Mapping[tuple[str, str], int] | None:
        if is_list(file):
            return super()._pins_in(file, name)
        pin = self._of_key(file, name)
        return {(str(pin.cid), name): pin.created} if pin is not None else None

    def _of_key(self, file: str, name: str) -> Pin | None:
        """Return the pin of a key; None for a key that is not ours."""
        cid, created, _ = file.rpartition("/")[2].split(".")
        with contextlib.suppress(FormatError, ValueError):
            pin = self._pin(parse_cid(cid), name, int(created))
            return pin if pin.handle == file else None
        return None


class _CachedRecord(msgspec.Struct, frozen=True):
    """An object read earlier. `read`: when, in milliseconds since 1970 UTC."""

    version: tuple[int, int, str | None]
    read: int
    record: bytes


class BucketNameRecords(NameRecords):
    """The name records of a bucket: those of one name have keys with one prefix.

    A record is read again when its object changed, and once a day, since a listed object may be unreadable.
    """

    separator = "/"
    ending = ""
    tag_length = 64

    def __init__(self, store: BucketObjectStore, clock: Clock) -> None:
        super().__init__(store)
        self._clock = clock
        self._when_read: dict[str, int] = {}
        self._asked: set[str] = set()
        self._given = b""

    def load(self, cache: bytes) -> None:
        """Take over the result of an earlier `dump`; each record is verified."""
        self._asked, self._given = set(), cache
        try:
            cached = read_json(cache, type=dict[str, _CachedRecord]) if cache else {}
        except msgspec.DecodeError:
            return
        for file, one in cached.items():
            name, _, tag = file.partition(self.separator)
            if file not in self._known and hashlib.sha256(one.record).hexdigest() == tag:
                with contextlib.suppress(FormatError, SealError):
                    self._known[file] = one.version, ipns_record.verify_record(name, one.record)
                    self._when_read[file] = one.read

    def dump(self) -> bytes:
        """Return the records of the names that were asked for since `load`."""
        records, when_read = dict(self._known), dict(self._when_read)
        cached = {
            file: {"version": records[file][0], "read": when_read[file], "record": records[file][1].encoded}
            for file in sorted(self._asked & records.keys() & when_read.keys())[:_CACHED_MAX]
        }
        return msgspec.json.encode(cached) if self._asked else self._given

    def _read(self, files: Mapping[str, FileInfo]) -> dict[str, ipns_record.IpnsRecord]:
        before = dict(self._known)
        records = super()._read(files)
        self._asked |= records.keys()
        now = self._clock() // 1_000_000
        for file in records:
            if self._known.get(file) is not before.get(file):
                self._when_read[file] = now
        for file in self._when_read.keys() - self._known.keys():
            self._when_read.pop(file, None)
        return records

    def _of_cache(self, file: str, info: FileInfo) -> ipns_record.IpnsRecord | None:
        age = self._clock() // 1_000_000 - self._when_read.get(file, 0)
        return super()._of_cache(file, info) if 0 <= age < DAY_MS else None
