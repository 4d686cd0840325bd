"""How packs, pins and records lie in a bucket, where that is not as in a folder (packs/provider.py).

    packs/<sha256>.car, .idx, .going, .lost
    pins/<16 hex of SHA-256(name)>/<cid>.<milliseconds>.json       one pin; its key says all
    pins/<16 hex of SHA-256(name)>/<sha256>.pins                   many of this name
    names/<k51...>/<SHA-256 of the record>

A bucket renames nothing, and two who write do not see each other. So:

- A pack is put before its index, and counts when both are there: the index says that it was finished.
- A mark is for good. Who writes just the bytes of a pack that is marked puts a few others with them, so that it has another
  name, and nothing that was put after the mark goes with the pack. What is needed after all is written to another pack.
- One list of a name's pins, and of a name's records, finds them all; no other object is read to know a pin.
- A pack is at most as large as one put takes easily, and a large one is not merged any more.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import sys
import threading
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import BinaryIO, Final, TypeAlias

from ipfsmem.content.cid import CID, parse_cid, raw_cid
from ipfsmem.errors import FormatError, ProviderUnavailable
from ipfsmem.provider.contract import Pin
from ipfsmem_providers.bucket.objects import Objects
from ipfsmem_providers.packs.collection import DAY_MS, Collector, Roots
from ipfsmem_providers.packs.index import decode_index
from ipfsmem_providers.packs.lost import LOST
from ipfsmem_providers.packs.names import Records
from ipfsmem_providers.packs.pins import Pins, is_list, is_one, tag_of
from ipfsmem_providers.packs.shelf import Seen, Start
from ipfsmem_providers.packs.store import GOING, Packs, PackWriter, View

#: A pack that has this many bytes is put, and the next one begun.
PACK_BYTES: Final = 16 * 1024 * 1024
#: Gives nanoseconds since 1970 UTC. A clock that only runs while the machine is awake would take a mark of two days ago for
#: one of a moment ago.
Clock: TypeAlias = Callable[[], int]
#: What a list showed, and what was read whole, serves so long, in seconds, for what need not be newer.
_RECENT: Final = 60
#: Bytes between two parts that are read along, rather than asked for each: a request costs about what they do.
_GAP: Final = 128 * 1024
_INDEX_GAP: Final = 4 * 1024
#: Put anew whenever it matters what time the server has.
_NOW: Final = "now"
#: More bytes than this in near parts, and the object is read whole; so many of such bytes are kept for a moment.
_LITTLE: Final = 4 * 1024 * 1024
_KEPT: Final = 64 * 1024 * 1024


class BucketShelf:
    """`packs`, `pins` or `names` in a bucket, as a shelf (packs/shelf.py)."""

    at_once = 16 * 1024

    def __init__(self, objects: Objects, folder: str, clock: Clock) -> None:
        self._objects, self._folder = objects, folder
        self._whole = _Whole(clock)

    def __str__(self) -> str:
        return f"{self._objects.where}/{self._folder}"

    def look(self, start: str = "") -> dict[str, Seen]:
        """The objects; `start` is empty, or ends with a slash."""
        below = f"{self._folder}/{start}".rstrip("/")
        return {f"{start}{name}": seen for name, seen in self._objects.list(below).items()}

    def read(self, name: str, limit: int) -> bytes | None:
        """All of a small object."""
        start = self._objects.start(self._key(name), limit + 1)
        return start.data if start is not None and start.size <= limit else None

    def starts(self, names: Sequence[str], length: int) -> dict[str, Start]:
        """The first bytes of those that are there, several at once."""
        found = self._objects.all_of(names, lambda name: self._objects.start(self._key(name), length))
        return {name: start for name, start in found if start is not None}

    def ranges(self, name: str, spans: Sequence[tuple[int, int]]) -> list[bytes]:
        """Parts of one object. What lies near is read in one request, and where that is much of a pack, all of it."""
        data = self._whole.get(name)
        if data is None:
            # Of an index twelve records are wanted or all; blocks of one read lie here and there in a pack.
            asked = [span for span in spans if span[0] < span[1]]  # of no bytes servers are not asked
            near = _near(asked, _GAP if name.endswith(".car") else _INDEX_GAP)
            if sum(end - start for start, end in near) <= _LITTLE:
                parts = self._objects.ranges(self._key(name), near)
                return [_cut(near, parts, span) if span[0] < span[1] else b"" for span in spans]
            data = self._objects.read(self._key(name))
            if hashlib.sha256(data).hexdigest() == name[:64]:  # what answered in its place is not kept
                self._whole.put(name, data)
        return [data[start:end] for start, end in spans]

    def file(self, name: str, *, buffered: bool = False) -> BinaryIO:
        """An object whole, in memory: packs are not large here."""
        data = self._objects.read(self._key(name))
        if name.endswith(".car") and hashlib.sha256(data).hexdigest() != name[:64]:
            known = self.look().get(name)
            # Something between here and the bucket may answer in its place. What is damaged has its size at least.
            if known is None or known.size != len(data):
                raise ProviderUnavailable(f"{self} gave {len(data)} bytes for {name} that are not it")
        return io.BytesIO(data)

    def write(self, name: str, data: bytes, *, flush: bool = True) -> None:
        """Put an object; it is durable when that has ended."""
        self._objects.put(self._key(name), data)

    def new(self) -> _NewObject:
        """An object in the making."""
        return _NewObject(self)

    def unlink(self, name: str) -> None:
        """Delete an object."""
        self.remove([name])

    def remove(self, names: Sequence[str]) -> None:
        """Delete objects together."""
        self._objects.delete([self._key(name) for name in names])

    def flush(self) -> None:
        """Nothing is left to do."""

    def sweep(self, oldest: float) -> None:
        """Nothing is left by a put that was not ended."""

    def kept(self) -> AbstractContextManager[None]:
        """A bucket does not go away between two requests."""
        return nullcontext()

    def _key(self, name: str) -> str:
        return f"{self._folder}/{name}"


def _is_recent(then: int, now: int) -> bool:
    return 0 <= now - then <= _RECENT * 1_000_000_000


def _near(spans: Sequence[tuple[int, int]], gap: int) -> list[tuple[int, int]]:
    """The same bytes and those between spans that are no farther than `gap` from each other, in order."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1] + gap:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def _cut(near: Sequence[tuple[int, int]], parts: Sequence[bytes], span: tuple[int, int]) -> bytes:
    at = bisect_right(near, (span[0], sys.maxsize)) - 1
    return parts[at][span[0] - near[at][0] : span[1] - near[at][0]]


class _Whole:
    """Objects that were read whole a moment ago: a device that fetches all asks for a little here and there, many times.
    Not for longer, as a later question is whether they are still there."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[str, tuple[int, bytes]] = {}
        self._lock = threading.Lock()

    def get(self, name: str) -> bytes | None:
        with self._lock:
            self._clean()
            found = self._kept.get(name)
            return found[1] if found is not None else None

    def put(self, name: str, data: bytes) -> None:
        with self._lock:
            self._clean()
            self._kept[name] = (self._clock(), data)
            while sum(len(data) for _, data in self._kept.values()) > _KEPT and len(self._kept) > 1:
                del self._kept[next(iter(self._kept))]

    def _clean(self) -> None:
        now = self._clock()
        self._kept = {name: kept for name, kept in self._kept.items() if _is_recent(kept[0], now)}


class _NewObject:
    """The bytes of an object that nobody sees yet, in memory."""

    def __init__(self, shelf: BucketShelf) -> None:
        self._shelf = shelf
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        self._parts.append(data)

    def place(self, name: str) -> None:
        self._shelf.write(name, b"".join(self._parts))
        self._parts = []

    def drop(self) -> None:
        self._parts = []


class BucketPacks(Packs):
    """The packs of a bucket."""

    most = 32
    merge_bytes = PACK_BYTES
    grown = PACK_BYTES // 4
    one_look = True

    def __init__(self, shelf: BucketShelf, clock: Clock) -> None:
        super().__init__(shelf)
        self._objects = shelf
        self._clock = clock
        self._seen: tuple[int, View] | None = None

    def look(self, *, recent: bool = False) -> View:
        """What is there now, or was a moment ago."""
        now = self._clock()
        if recent and self._seen is not None and _is_recent(self._seen[0], now):
            return self._seen[1]
        view = View(self.shelf.look(), index_last=True)
        self._seen = (now, view)
        return view

    def place(self, writer: PackWriter) -> str:
        """Put a pack, then its index. The pack's name; "" when it holds nothing."""
        writer.flush()
        if not writer.stem:
            return ""
        files = self.look(recent=True).files
        while f"{writer.stem}{GOING}" in files:
            salt = os.urandom(16)
            writer.add(raw_cid(hashlib.sha256(salt).digest()), salt)
            writer.flush()
        stem, index = writer.stem, writer.index()
        writer.place()
        self.shelf.write(f"{stem}.idx", index)
        self.forget(f"{stem}.car")
        self._indexes[f"{stem}.car", writer.size] = decode_index(index)
        if f"{stem}{LOST}" in files:
            self.shelf.unlink(f"{stem}{LOST}")  # it is whole again
        return f"{stem}.car"

    def _remove(self, packs: Sequence[str]) -> None:
        if packs:
            self._objects.remove([f"{name[:64]}{ending}" for name in packs for ending in (".car", ".idx")])


class BucketCollector(Collector):
    """Marks and removes packs of a bucket. How old an object is, and what time it is, says its server: the clock of this
    device may be days ahead, and not every server refuses what it signs then."""

    def __init__(self, packs: BucketPacks, shelf: BucketShelf, now: int) -> None:
        super().__init__(packs, now)
        self._objects = shelf

    def remove(self, read: Callable[[], Roots]) -> int:
        """As ever, by the server's clock."""
        if self.due(self._packs.look(recent=True)):
            self._now = self._time()
        return super().remove(read)

    def mark(self, roots: Roots) -> int:
        """As ever, by the server's clock; packs whose maker ended before their index was put get one first, so that they can be judged."""
        self._now = self._time()
        for name, size in self._packs.look().unfinished.items():
            if self._now - self._packs.look(recent=True).files[name].changed >= DAY_MS:
                self._packs.index(name, size)
        return super().mark(roots)

    def _time(self) -> int:
        """When the server says that something was put just now, in milliseconds since 1970 UTC."""
        self._objects.write(_NOW, b"now")
        seen = self._objects.look().get(_NOW)
        if seen is None:
            raise ProviderUnavailable(f"{self._objects} does not list what was put there just now")
        return seen.changed

    def _due(self, view: View) -> list[str]:
        marks = {name: view.files[f"{name[:64]}{GOING}"] for name in view.going}
        return sorted(name for name, seen in marks.items() if self._now - seen.changed >= DAY_MS)

    def _take_away(self, name: str, is_needed: Callable[[], bool]) -> bool:
        """A new root that needs anything of it comes first: then it stays, until that stands in another pack."""
        seen = self._packs.look().files.get(name)
        if seen is None:
            return False  # another device is at it; what is left of the pack is swept away another day
        if self._now - seen.changed < DAY_MS or is_needed():
            return False
        # The mark goes last: while the pack is there, it is marked.
        self._objects.remove([f"{name[:64]}{ending}" for ending in (".car", ".idx", LOST)])
        self._objects.unlink(f"{name[:64]}{GOING}")
        self._packs.forget(name)
        return True


class BucketPins(Pins):
    """The pins of a bucket: those of one name in one folder of keys."""

    def _start(self, name: str) -> str:
        return f"{tag_of(name)}/"

    def _pin(self, root: CID, name: str, created: int) -> Pin:
        return Pin(root, name, f"{tag_of(name)}/{root}.{created}.json", created)

    def _files_of(self, root: CID, name: str, files: Collection[str]) -> list[str]:
        start = f"{tag_of(name)}/{root}."
        return [file for file in files if file.startswith(start) and is_one(file)]

    def _ones(self, files: Iterable[str], name: str) -> list[Pin]:
        pins = (self._of_key(file, name) for file in files if is_one(file))
        return [pin for pin in pins if pin is not None]

    def _held(self, file: str, name: str) -> Mapping[tuple[str, str], int] | None:
        if is_list(file):
            return super()._held(file, name)
        pin = self._of_key(file, name)
        return {(str(pin.cid), name): pin.created} if pin is not None else None

    def _of_key(self, file: str, name: str) -> Pin | None:
        """The pin that a key says, unless it is no key of ours."""
        cid, created, _ = file.rpartition("/")[2].split(".")
        with contextlib.suppress(FormatError, ValueError):
            pin = self._pin(parse_cid(cid), name, int(created))
            return pin if pin.handle == file else None
        return None


class BucketRecords(Records):
    """The records of a bucket: those of one name in one folder of keys."""

    between = "/"
    ending = ""
    tag_length = 64
