"""`packs`, `pins`, `names` or `small` of a folder on another machine, as an object store (packs/object_store.py).

Within one call of the provider, links and placeholders are looked up in the listing that was made for the files. During a
snapshot all calls share one listing of each folder.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
import secrets
import threading
from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import BinaryIO, Final, TypeVar

import msgspec

from ipfsmem.errors import ProviderRefused, ProviderUnavailable
from ipfsmem_providers.packs.blocking_work import heartbeat_of_thread, in_loop
from ipfsmem_providers.packs.collection import DAY_MS
from ipfsmem_providers.packs.hidden import is_hidden, sweep_leftovers
from ipfsmem_providers.packs.object_store import CollectedFile, FileInfo, Head, PassedOver
from ipfsmem_providers.packs.spans import cut, grouped, joined
from ipfsmem_providers.packs.store import is_pack
from ipfsmem_providers.remote.files import Listing, RemoteFiles

K = TypeVar("K")
V = TypeVar("V")

#: The folders inside a shared folder.
STORE_NAMES: Final = ("packs", "pins", "names", "small")
#: The prefix of unfinished files, as in a shared folder.
TEMPORARY: Final = ".new-"
#: A file of up to this many bytes is read whole into memory; a larger one part by part.
WHOLE_MAX: Final = 24 * 1024 * 1024
#: A larger file is not read whole: a server can claim any size.
FILE_MAX: Final = 4 * 1024 * 1024 * 1024
#: Requests at once.
_AT_ONCE: Final = 8
#: Maximum bytes of parts that are read together.
_SPAN: Final = 4 * 1024 * 1024
#: Bytes that a reader of a large file reads ahead.
_AHEAD: Final = 4 * 1024 * 1024
#: Small files, read once for each version in a listing: bytes of each, and of all.
_SMALL: Final = 64 * 1024
_SMALL_TOTAL: Final = 8 * 1024 * 1024
#: Maximum bytes of a file that is cached for later processes, and number of these in a folder.
_CACHED: Final = 10 * 1024
_CACHED_FILES: Final = 128


class Snapshot:
    """The listings that calls share during one sync; `current` is None outside of a snapshot."""

    def __init__(self, scan_seconds: float | None = None) -> None:
        self.current: dict[str, Listing] | None = None
        self._scan_seconds = scan_seconds
        #: Seconds that are left for scans; None without a bound.
        self.scan_left = scan_seconds

    def begin(self) -> None:
        """List each folder once from now on."""
        self.current, self.scan_left = {}, self._scan_seconds

    def drop(self) -> bool:
        """List for each call again; tell whether listings were shared."""
        dropped, self.current = self.current, None
        return bool(dropped)


class CachedFile(msgspec.Struct, frozen=True):
    """A small file that an earlier process read. `read`: when, in milliseconds since 1970 UTC."""

    version: tuple[int | str | None, ...]
    read: int
    data: bytes


class RemoteObjectStore:
    """One folder of a folder on another machine. Methods block; they are called in threads of BlockingWork."""

    cheap_read_bytes = 16 * 1024

    def __init__(self, remote: RemoteFiles, folder: str, snapshot: Snapshot) -> None:
        self.remote, self._folder, self._snapshot = remote, folder, snapshot
        self._listing_lock = threading.Lock()
        #: The listing of this thread, which does one call of the provider, and whether it scans a pack.
        self._last = threading.local()
        self._small: dict[str, tuple[Hashable, bytes]] = {}
        #: When small files were read, in milliseconds since 1970 UTC.
        self._read_at: dict[str, int] = {}
        #: When they were read or taken over, by the clock of the transport.
        self._since: dict[str, float] = {}
        #: Files that are too large to be read whole, for which no time was left, or of another size than the server lists.
        self.unread: set[str] = set()

    def __str__(self) -> str:
        return f"{self.remote.where}/{self._folder}"

    def files(self, prefix: str = "") -> dict[str, FileInfo]:
        """Return the files, by a new listing outside of a snapshot."""
        snapshot = self._snapshot.current
        if snapshot is None:
            listing = self._list()
        else:
            with self._listing_lock:  # concurrent calls share one request
                listing = snapshot.get(self._folder) or self._list()
                snapshot[self._folder] = listing
        self._last.listing = listing
        return {name: info for name, info in listing.files.items() if name.startswith(prefix)}

    def _list(self) -> Listing:
        listing = in_loop(lambda: self.remote.list_folder(self._folder))
        for name in [name for name in self._small.copy() if name not in listing.files]:
            self._small.pop(name, None)
        return listing

    def _known(self) -> Listing:
        """Return the listing that this call of the provider made last."""
        if getattr(self._last, "listing", None) is None:
            self.files()
        listing: Listing = self._last.listing
        return listing

    def load(
        self, cached: Mapping[str, CachedFile], now: int, is_sound: Callable[[str, bytes], bool]
    ) -> set[str]:
        """Take over small files of an earlier `dump`, of the last day: a listed file may be unreadable by now. A file is used
        only while it is listed in the same version. `is_sound` tells whether bytes are those of a name. Return files that were
        read more than a day ago, which are dropped."""
        old: set[str] = set()
        for name, file in cached.items():
            if name not in self._small and 0 <= now - file.read < DAY_MS and is_sound(name, file.data):
                self._small[name] = file.version, file.data
                self._read_at[name], self._since[name] = file.read, self.remote.monotonic()
        for name, read in self._read_at.copy().items():
            if not 0 <= now - read < DAY_MS:
                self._small.pop(name, None)
                self._read_at.pop(name, None)
                old.add(name)
        return old

    def forget(self) -> None:
        """Read all small files again when they are asked for."""
        for cache in (self._small, self._read_at, self._since):
            cache.clear()

    def dump(self, now: int, is_sound: Callable[[str, bytes], bool]) -> dict[str, CachedFile]:
        """Return the small files whose bytes are those of their names."""
        files: dict[str, CachedFile] = {}
        for name, (version, data) in sorted(self._small.copy().items()):
            if isinstance(version, tuple) and len(data) <= _CACHED and is_sound(name, data):
                files[name] = CachedFile(version, self._read_at.setdefault(name, now), data)
                if len(files) == _CACHED_FILES:
                    break
        return files

    def refresh(self) -> bool:
        """Drop the snapshot."""
        self._last.listing = None
        return self._snapshot.drop()

    def not_files(self, prefix: str = "") -> frozenset[str]:
        """Return folders and the like."""
        return frozenset(name for name in self._known().others if name.startswith(prefix))

    def containing(self, part: str) -> frozenset[str]:
        """Return every name that contains `part`."""
        listing = self._known()
        return frozenset(name for name in (*listing.files, *listing.others) if part in name)

    def read(self, name: str, limit: int) -> bytes | None:
        """Return a small file whole."""
        head = self.heads([name], limit + 1).get(name)
        return head.data if head is not None and head.size <= limit else None

    def heads(self, names: Sequence[str], length: int) -> dict[str, Head]:
        """Return the first bytes of the files that exist; several requests run at once."""
        listing: Listing | None = getattr(self._last, "listing", None)
        infos = listing.files if listing is not None else {}
        heads_by_name: dict[str, Head] = {}
        for name in names:
            cached = self._small.get(name)
            if cached is None or self.remote.monotonic() - self._since.get(name, 0.0) >= DAY_MS / 1000:
                continue
            if name in infos and cached[0] == infos[name].version:
                heads_by_name[name] = Head(cached[1][:length], len(cached[1]))
        missing = [name for name in names if name not in heads_by_name]
        read = _all_of(missing, lambda name: self._head(name, length))
        listed = infos
        if any(head is not None and _differs(head, infos.get(name)) for name, head in read.items()):
            infos = self._list().files  # another device may just have replaced a file
        wrong = {name: head.size for name, head in read.items() if head and _differs(head, infos.get(name))}
        for name, size in wrong.items():
            before = listed.get(name)
            if before is None or before.size != infos[name].size or len(wrong) == len(names) > 1:
                raise self._other(name, size)
            self._check_size(name, size)
            self.unread.add(name)
        for name, head in read.items():
            if head is not None and name not in wrong:
                self.unread.discard(name)
                heads_by_name[name] = head
                self._keep(name, head, infos.get(name))
        return {name: heads_by_name[name] for name in names if name in heads_by_name}

    def _keep(self, name: str, head: Head, info: FileInfo | None) -> None:
        if info is not None and len(head.data) == head.size == info.size <= _SMALL:
            if sum(len(data) for _, data in self._small.copy().values()) > _SMALL_TOTAL:
                self._small.clear()
            self._small[name] = info.version, head.data
            self._since[name] = self.remote.monotonic()
            self._read_at.pop(name, None)

    def _check_size(self, name: str, size: int) -> None:
        """Raise unless it is the server that gave a file `size` bytes where it lists others: then it does so again, and knows
        no file that is not there. A proxy or portal may have answered instead of it."""
        absent = f"{TEMPORARY}{secrets.token_hex(8)}.{name.rpartition('.')[2]}"
        again = _all_of([name, absent], lambda one: self._head(one, 1))
        if again[absent] is not None or (head := again[name]) is None or head.size != size:
            raise self._other(name, size)

    def _other(self, name: str, size: int) -> ProviderUnavailable:
        return ProviderUnavailable(f"{self} returned {size} bytes of another file for {name}")

    async def _head(self, name: str, length: int) -> Head | None:
        try:
            return await self.remote.read(self._path(name), 0, length)
        except FileNotFoundError:
            return None

    def ranges(self, name: str, spans: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return parts of one file. Close parts share a request."""
        nonempty = [span for span in spans if span[0] < span[1]]
        near = joined(nonempty, self.remote.gap, _SPAN)
        groups = grouped(near, self.remote.parts_max, _SPAN)
        path = self._path(name)
        read = _all_of(groups, lambda group: self.remote.read_parts(path, group))
        parts = [data for group in groups for data in read[group]]
        return [cut(near, parts, span) if span[0] < span[1] else b"" for span in spans]

    def open_file(self, name: str, *, buffered: bool = False) -> BinaryIO:
        """Return a reader of a file, in memory unless the file is large. One that is too large, or for which no time is left,
        is passed over like a missing one. Nothing is taken from the cache; a small file is cached."""
        self._small.pop(name, None)
        listed: Listing | None = getattr(self._last, "listing", None)
        info = listed.files.get(name) if listed is not None else None
        if info is not None and info.size > FILE_MAX:
            raise self._passed_over(name)
        # The time of a request depends on the bytes that it asks for.
        start = self._part(name, 0, min(WHOLE_MAX, info.size + 1) if info is not None else WHOLE_MAX)
        whole = len(start.data) == start.size
        if name.endswith(".car") and not (whole and hashlib.sha256(start.data).hexdigest() == name[:64]):
            known = self.files().get(name)
            if known is None:
                raise self._other(name, start.size)
            if known.size != start.size:  # even a damaged pack has the right size
                self._check_size(name, start.size)
                raise self._passed_over(name)
        if whole:
            if not is_pack(name):
                self._keep(name, start, info)
            return io.BytesIO(start.data)
        if start.size > FILE_MAX:
            raise self._passed_over(name)
        raw = _Reader(self.remote.where, partial(self._part, name), start.size)
        # A scan reads ahead; a reader of single blocks must not.
        return io.BufferedReader(raw, _AHEAD if buffered else 1)

    def open_listed(self, name: str, size: int) -> BinaryIO:
        """Return a reader of a file that is listed with `size` bytes. ProviderRefused for one that is too large."""
        if size > FILE_MAX:
            raise ProviderRefused(f"{self}/{name} is too large to be read")
        raw = _Reader(self.remote.where, partial(self._part, name), size)
        return io.BufferedReader(raw, max(1, min(size, WHOLE_MAX)))

    def _part(self, name: str, start: int, end: int) -> Head:
        """Read a part of a file that is read whole, within a scan as far as there is time."""
        read = partial(self.remote.read, self._path(name), start, end)
        budget = self._snapshot.scan_left if getattr(self._last, "scans", False) else None
        if budget is None:
            return in_loop(read)
        if budget <= 0:
            raise self._passed_over(name)
        began = self.remote.monotonic()
        try:
            return in_loop(read)
        finally:
            self._snapshot.scan_left = budget - (self.remote.monotonic() - began)

    @contextlib.contextmanager
    def scan(self) -> Iterator[None]:
        """Have files that this thread reads whole while the block runs use the time of a sync for scans."""
        self._last.scans = True
        try:
            yield
        finally:
            self._last.scans = False

    def _passed_over(self, name: str) -> FileNotFoundError:
        self.unread.add(name)
        return FileNotFoundError(f"{self._path(name)} is too large to be read whole now")

    def write(self, name: str, data: bytes, *, flush: bool = True) -> None:
        """Put a file; it is as durable as the server makes it."""
        in_loop(partial(self.remote.put, self._path(name), data, named_by_content=is_pack(name)))
        if flush:
            in_loop(partial(self.remote.flush, self._folder))
        self._small.pop(name, None)

    def new_file(self) -> CollectedFile:
        """Collect a file in memory, to put it at the end."""
        return CollectedFile(self)

    def unlink(self, name: str, *, finish: bool = False, once: bool = False) -> None:
        """Delete a file. `finish`: also when the call was cancelled. `once`, and of a hidden file: see `RemoteFiles.delete`."""
        once = once or is_hidden(name)
        in_loop(partial(self.remote.delete, self._path(name), once=once), finish=finish)

    def hide(self, name: str, hidden: str) -> None:
        """Rename a file out of sight, also when the call was cancelled. FileExistsError when the new name is taken."""
        in_loop(partial(self.remote.hide, self._path(name), self._path(hidden)), finish=True)

    def restore(self, hidden: str, name: str) -> None:
        """Give a hidden file its name again, also when the call was cancelled. FileExistsError when that is taken."""
        in_loop(partial(self.remote.move, self._path(hidden), self._path(name)), finish=True)

    def discard(self, name: str) -> None:
        """Remove a hidden or unfinished file."""
        self.unlink(name)

    def set_aside(self, name: str) -> None:
        """Rename a folder in the place of a file."""
        in_loop(partial(self.remote.set_aside, self._path(name)))

    def flush(self) -> None:
        """Do nothing: `write` does it, and a removal need not last."""

    def sweep(self, oldest: float, passed_over: PassedOver | None = None) -> None:
        """See `sweep_leftovers`, of all folders."""
        for folder in STORE_NAMES:
            store = RemoteObjectStore(self.remote, folder, Snapshot())
            sweep_leftovers(store, oldest * 1000, passed_over)

    def held_open(self) -> AbstractContextManager[None]:
        """Do nothing: each request names the whole path."""
        return nullcontext()

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}"


class _Reader(io.RawIOBase):
    """A large file, read part by part."""

    def __init__(self, where: str, read: Callable[[int, int], Head], size: int) -> None:
        """`where`: the spec, for errors. `read` returns the bytes from its first argument to before the second."""
        self._where, self._read, self._size = where, read, size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        end = min(self._at + len(buffer), self._size)
        if self._at >= end:
            return 0
        data = self._read(self._at, end).data
        if not data:
            raise ProviderUnavailable(f"{self._where} returned nothing of a file")
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def _differs(head: Head, info: FileInfo | None) -> bool:
    """Return whether what was read of a file is not of the size that a list tells."""
    return info is not None and head.size != info.size


def _all_of(keys: Sequence[K], work: Callable[[K], Awaitable[V]]) -> dict[K, V]:
    """Return the result of `work` for each key, several at once. The first failure cancels the others."""
    if not keys:
        return {}
    heartbeat = heartbeat_of_thread()

    async def run() -> dict[K, V]:
        slots = asyncio.Semaphore(_AT_ONCE)
        results: dict[K, V] = {}

        async def one(key: K) -> None:
            async with slots:
                results[key] = await work(key)
                heartbeat()

        tasks = [asyncio.ensure_future(one(key)) for key in keys]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return results

    return in_loop(run)
