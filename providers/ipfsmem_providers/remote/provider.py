"""A folder on another machine as a provider: the layout of `directory`, over any RemoteFiles.

One folder may be mounted on one device and used over the network by another. Packs that this provider writes have at
most 16 MiB, and only small ones are merged; those of other devices may be larger.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Mapping
from typing import Final, TypeVar

import msgspec

from ipfsmem.canonical import read_json
from ipfsmem.errors import ProviderRefused, ProviderUnavailable
from ipfsmem_providers.packs.blocking_work import BlockingWork
from ipfsmem_providers.packs.collection import DAY_MS, Collector, Roots
from ipfsmem_providers.packs.index import Index
from ipfsmem_providers.packs.names import NameRecords
from ipfsmem_providers.packs.pins import PackPins, holds_pins
from ipfsmem_providers.packs.provider import PackedStore
from ipfsmem_providers.packs.small_files import SmallFiles
from ipfsmem_providers.packs.store import LEFTOVER_SECONDS, Inventory, Packs
from ipfsmem_providers.remote.collection import RemoteCollector
from ipfsmem_providers.remote.files import RemoteFiles
from ipfsmem_providers.remote.object_store import STORE_NAMES, CachedFile, RemoteObjectStore, Snapshot

T = TypeVar("T")
#: A new pack of this many bytes is put, and another one begun.
PACK_BYTES: Final = 16 * 1024 * 1024
#: Seconds that one request, with its attempts and pauses, may take; one that puts a pack twice as many.
_REQUEST_SECONDS: Final = 900.0
_PIECE: Final = 1024 * 1024
#: What a snapshot's cache calls hidden files that have nothing to restore, and the most that it has.
_HIDDEN: Final = "hidden"
_HIDDEN_FILES: Final = 256


class RemotePacks(Packs):
    """The packs of a folder on another machine."""

    max_packs = 32
    merge_bytes = PACK_BYTES
    large_bytes = PACK_BYTES // 4

    def __init__(self, store: RemoteObjectStore) -> None:
        super().__init__(store)
        self._remote_store = store

    def _rebuild(self, name: str, size: int) -> Index:
        """Do `Packs._rebuild`, in the time that a sync has for it. Merges read what they need."""
        with self._remote_store.scan():
            return super()._rebuild(name, size)

    def sweep(self, oldest: float) -> Inventory:
        """Do `Packs.sweep`, of what is a day older than the newest pack: the clock of this device may be ahead of the server's,
        and another file may have any date."""
        inventory = self.inventory()
        newest = max((inventory.files[name].modified for name in inventory.packs), default=0) / 1000
        return super().sweep(min(oldest, newest - LEFTOVER_SECONDS))

    def write_merged(self, blocks: dict[bytes, tuple[bytes, str, int, int]]) -> tuple[str, int]:
        """Do `Packs.write_merged`, and read the new pack back: others are removed because of it, and a server that says that it
        stored a file may not have."""
        name, size = super().write_merged(blocks)
        self.inventory()  # the size that is listed now bounds what is read
        digest = hashlib.sha256()
        with self._remote_store.open_file(name) as file:
            while piece := file.read(_PIECE):
                digest.update(piece)
        if digest.hexdigest() != name[:64]:
            raise ProviderUnavailable(f"{self._remote_store} did not store pack {name} as it was sent")
        return name, size


class RemoteFolder(PackedStore):
    """A folder on another machine as a provider. See ipfsmem.provider.contract for the methods."""

    pack_bytes = PACK_BYTES
    step_seconds = _REQUEST_SECONDS

    def __init__(self, remote: RemoteFiles, clock: Callable[[], int]) -> None:
        """`clock` returns nanoseconds since 1970 UTC."""
        self._remote = remote
        self._snapshot = Snapshot(remote.scan_seconds)
        packs, pins, names, small = (
            RemoteObjectStore(remote, folder, self._snapshot) for folder in STORE_NAMES
        )
        self._packs_store, self._remote_stores = packs, (packs, pins, names)
        super().__init__(
            RemotePacks(packs),
            PackPins(pins, lambda: clock() // 1_000_000, lambda: clock() / 1e9),
            NameRecords(names),
            SmallFiles(small),
            # Requests have their own time-outs; this bounds one that drips.
            BlockingWork(remote.where, _REQUEST_SECONDS),
            clock,
        )
        #: When hidden files were read, in milliseconds since 1970 UTC.
        self._worthless_at: dict[tuple[str, Hashable, Hashable], int] = {}
        self._cached: dict[str, tuple[RemoteObjectStore, Callable[[str, bytes], bool]]] = {
            "names": (names, self._names.holds_record),
            "pins": (pins, holds_pins),
        }

    @property
    def name(self) -> str:
        """Return the spec, without secrets."""
        return self._remote.where

    def begin_snapshot(self, cache: bytes) -> None:
        """See `Snapshots`. The cache has small files of pins and names. Without one, what this process read is dropped too."""
        try:
            cached = read_json(cache, type=dict[str, dict[str, CachedFile]]) if cache else {}
        except msgspec.DecodeError:
            cached = {}
        for folder, (store, is_sound) in self._cached.items():
            if not cache:
                store.forget()
            old = store.load(cached.get(folder, {}), self._clock() // 1_000_000, is_sound)
            objects = self._names if folder == "names" else self._pins
            objects.forget(old if cache else objects.known())
        self._load_worthless(cached.get(_HIDDEN, {}))
        self._snapshot.begin()
        self._forget_unread()

    def end_snapshot(self) -> bytes:
        """See `Snapshots`."""
        self._snapshot.drop()
        now = self._clock() // 1_000_000
        dumped = {folder: store.dump(now, is_sound) for folder, (store, is_sound) in self._cached.items()}
        return msgspec.json.encode({**dumped, _HIDDEN: self._dump_worthless(now)})

    def _load_worthless(self, cached: Mapping[str, CachedFile]) -> None:
        """Take over hidden files that an earlier process read within the last day and could not restore: each publish would read
        them again."""
        now, passed_over = self._clock() // 1_000_000, self._packs.passed_over
        for name, file in cached.items():
            if 0 <= now - file.read < DAY_MS:
                try:
                    own = (
                        None
                        if file.data in (b"", b"null")
                        else read_json(file.data, tuple[int | str | None, ...])
                    )
                except msgspec.DecodeError:
                    continue
                key = name, file.version, own
                passed_over.add(key)
                passed_over.worthless.add(key)
                self._worthless_at[key] = file.read

    def _dump_worthless(self, now: int) -> dict[str, CachedFile]:
        files: dict[str, CachedFile] = {}
        for key in self._packs.passed_over.worthless:
            name, version, own = key
            if isinstance(version, tuple) and len(files) < _HIDDEN_FILES:
                data = msgspec.json.encode(own) if own is not None else b""
                files[name] = CachedFile(version, self._worthless_at.setdefault(key, now), data)
        return files

    async def collect(self) -> int:
        """See `PackedStore.collect`: large packs are read whole, for as long as that takes."""
        self._snapshot.scan_left = None
        self._forget_unread()
        return await super().collect()

    def _forget_unread(self) -> None:
        for store in self._remote_stores:
            store.unread.clear()

    def _roots(self) -> Roots:
        roots = super()._roots()
        if unread := self._remote_stores[2].unread:
            raise ProviderUnavailable(
                f"{self.name}: record {min(unread)} cannot be read, so nothing was removed"
            )
        return roots

    def unread(self) -> list[str]:
        """See `Unreading`."""
        return sorted({*super().unread(), *(name for store in self._remote_stores for name in store.unread)})

    async def close(self) -> None:
        """Close connections."""
        await self._remote.close()

    def _checked(self, work: Callable[..., T], *args: object) -> T:
        try:
            return work(*args)
        except FileNotFoundError:  # another device has just removed something
            raise ProviderUnavailable(f"{self.name} changed during the read", hint="Sync again.") from None
        except PermissionError as error:
            raise ProviderRefused(
                f"{self.name} refuses access: {error}",
                hint="Give this user permission to read and write the folder.",
            ) from None
        except OSError as error:
            raise ProviderUnavailable(f"{self.name} cannot be used: {error}") from None

    def _collector(self, now: int) -> Collector:
        return RemoteCollector(self._packs, self._packs_store, now)
