"""A provider with packs, pins, name records and small objects in four object stores: the common part of `directory`, `bucket`, `git` and
`webdav`.

    packs/<sha256>.car                       blocks, as ordinary CAR files (store.py)
    packs/<sha256>.idx                       where each block lies in it; a cache (index.py)
    packs/<sha256>.going                     a mark: this pack will be removed (collection.py)
    packs/<sha256>.lost                      its blocks found damaged (lost_blocks.py)
    pins/...                                 pins, one by one and in lists (pins.py)
    names/...                                signed records (names.py)
    small/...                                small objects (small_files.py)

Files are immutable and named after their content, so any number of devices may use one location concurrently without a
lock. Files of others are left alone. Their provider.py, or remote/provider.py, defines location, errors and time limits.
"""

from __future__ import annotations

import contextlib
import math
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Final, TypeVar

from ipfsmem.content.cid import CID
from ipfsmem.errors import ProviderError, ProviderRefused
from ipfsmem.provider.base import ProviderBase
from ipfsmem.provider.contract import Block, Capabilities, Pin
from ipfsmem.provider.small_objects import require_boxes, require_names, require_small
from ipfsmem_providers.name_records import canonical_name, checked_record
from ipfsmem_providers.packs.blocking_work import BlockingWork
from ipfsmem_providers.packs.collection import DAY_MS, Collector, Roots
from ipfsmem_providers.packs.names import NameRecords
from ipfsmem_providers.packs.object_store import PassedOver
from ipfsmem_providers.packs.pins import PackPins
from ipfsmem_providers.packs.small_files import SmallFiles
from ipfsmem_providers.packs.store import Packs, PackWriter

T = TypeVar("T")

_CAPABILITIES: Final = Capabilities(
    has=True,
    partial_car=True,
    blocks=True,
    pin=True,
    list=True,
    unpin=True,
    names=True,
    listing=True,
    raw=True,
    small=True,
)
_SHA256: Final = b"\x12\x20"
_NAME_MAX: Final = 255
_FLUSH: Final = 2 * 1024 * 1024
#: Bytes per second of even a slow location: a pack is written in one step.
_SLOWEST: Final = 1024 * 1024
#: Seconds that one step of a collection may take beyond the usual: it rewrites packs.
_COLLECT_SECONDS: Final = 900.0


class PackedStore(ProviderBase):
    """Four object stores as a provider. See ipfsmem.provider.contract for the methods."""

    #: A new pack of this many bytes is placed, and another one begun. None: one pack for each upload.
    pack_bytes: int | None = None
    #: Seconds that a step which moves a whole pack may take beyond the usual.
    step_seconds: float = 0.0

    def __init__(
        self,
        packs: Packs,
        pins: PackPins,
        names: NameRecords,
        small: SmallFiles,
        blocking: BlockingWork,
        clock: Callable[[], int],
    ) -> None:
        """`clock` returns nanoseconds since 1970 UTC."""
        self._packs, self._pins, self._names, self._small = packs, pins, names, small
        self._blocking = blocking
        self._clock = clock

    @property
    @abstractmethod
    def name(self) -> str:
        """Return the spec, without secrets."""

    @property
    def capabilities(self) -> Capabilities:
        """Return all capabilities except whole trees in one answer: single blocks are cheap here."""
        return _CAPABILITIES

    async def put_car(self, root: CID, blocks: Iterable[Block], *, name: str) -> CID:
        """Write packs. Blocks that are stored already may be left out or sent again."""
        writer = await self._run(self._new_pack, root)
        try:
            for cid, data in blocks:
                writer.add(cid, data)
                if self.pack_bytes is not None and writer.size >= self.pack_bytes:
                    await self._run(self._packs.place, writer, more=self._placing(writer))
                    writer = await self._run(self._new_pack, root)
                elif writer.unwritten > _FLUSH:
                    await self._run(writer.flush)
            await self._run(self._finish, writer, more=self._placing(writer))
        except BaseException:
            writer.drop()
            raise
        return root

    async def has(self, cids: Collection[CID]) -> set[CID]:
        """Return the blocks that an index names and that were not found damaged."""
        by_digest = _by_digest(cids)
        digests = await self._run(self._packs.has, by_digest)
        return {cid for digest in digests for cid in by_digest[digest]}

    async def get_blocks(self, cids: Sequence[CID]) -> dict[CID, bytes]:
        """Return the blocks that are stored and sound; each was checked."""
        by_digest = _by_digest(cids)
        blocks = await self._run(self._packs.get, by_digest, more=self.step_seconds, snapshot=True)
        return {cid: data for digest, data in blocks.items() for cid in by_digest[digest]}

    async def read_stored(self, cids: Sequence[CID]) -> dict[CID, bytes]:
        """Do `get_blocks`: all blocks come from this location itself."""
        return await self.get_blocks(cids)

    async def listing(self) -> dict[str, int]:
        """Return packs and pins by name and size; no file is opened. A newly marked pack, or one with lost
        blocks, has changed.

        Name records change with each publish, and are read by name.
        """
        return await self._run(self._listing, snapshot=True)

    async def pin(self, root: CID, name: str) -> Pin:
        """List `root` under `name`. A pin that exists keeps its time."""
        if not 0 < len(name) <= _NAME_MAX:
            raise ProviderRefused(f"a pin name has 1 to {_NAME_MAX} characters, this has {len(name)}")
        return await self._run(self._pin, root, name, more=self.step_seconds)

    async def pins(self, name: str) -> list[Pin]:
        """Return the pins under a name, newest first. Files that are no pins are passed over."""
        return await self._run(self._pins.named, name, snapshot=True)

    async def unpin(self, pin: Pin) -> None:
        """Remove one pin. Its blocks stay until they are collected."""
        await self._run(self._pins.remove, [pin])

    async def unpin_all(self, pins: Sequence[Pin]) -> None:
        """Remove many pins; a list that holds some of them is rewritten once."""
        await self._run(self._pins.remove, pins)

    async def collect(self) -> int:
        """Mark packs with unneeded blocks, and remove those marked a day ago; return the bytes freed now or later.

        ProviderRefused when a pin's tree is incomplete here, so that its needs are unknown.
        """
        return await self._run(self._collect, more=_COLLECT_SECONDS)

    async def put_small(self, name: str, data: bytes) -> None:
        """See `SmallArea`."""
        require_small(name, data)
        await self._run(self._small.put, name, data)

    async def list_small(self, boxes: Collection[str]) -> dict[str, int]:
        """See `SmallArea`."""
        require_boxes(boxes)
        return await self._run(self._small.sizes, boxes, snapshot=True) if boxes else {}

    async def get_small(self, names: Sequence[str]) -> dict[str, bytes]:
        """See `SmallArea`."""
        require_names(names)
        return await self._run(self._small.read, names, more=self.step_seconds, snapshot=True)

    async def remove_small(self, names: Collection[str]) -> None:
        """See `SmallArea`."""
        require_names(names)
        if names:
            await self._run(self._small.remove, names)

    async def missing_blocks(self) -> list[CID]:
        """Return blocks found damaged here that no other pack holds."""
        return await self._run(self._packs.missing_blocks, snapshot=True)

    async def put_name(self, name: str, record: bytes) -> None:
        """Keep a record unless a greater one is there; then remove the lesser ones."""
        await self._run(self._names.put, *checked_record(name, record))

    async def get_name(self, name: str) -> bytes | None:
        """Return the greatest record of this name, however old, or None."""
        best = await self._run(self._names.best, canonical_name(name), snapshot=True)
        return best.encoded if best else None

    def unread(self) -> list[str]:
        """See `Unreading`."""
        return sorted([*self._names.unread, *self._pins.unread])

    async def _run(
        self, work: Callable[..., T], *args: object, more: float = 0.0, snapshot: bool = False
    ) -> T:
        """Do blocking work in a thread; see `BlockingWork.run`. `snapshot`: an earlier listing suffices."""
        if not snapshot:
            self._packs.store.refresh()
        return await self._blocking.run(partial(self._checked, work, *args), more=more)

    @abstractmethod
    def _checked(self, work: Callable[..., T], *args: object) -> T:
        """Do blocking work, converting the location's errors to ProviderError."""

    @abstractmethod
    def _collector(self, now: int) -> Collector:
        """Return the collector of this location; `now` in milliseconds since 1970 UTC."""

    def _placing(self, writer: PackWriter) -> float:
        return max(writer.size / _SLOWEST, self.step_seconds)

    def _new_pack(self, root: CID) -> PackWriter:
        return PackWriter(self._packs.store.new_file(), root)

    def _finish(self, writer: PackWriter) -> None:
        self._packs.place(writer)
        with contextlib.suppress(OSError, ProviderError):
            # The blocks are durable; tidying up can wait for another day.
            inventory = self._packs.inventory(recent=True)
            self._packs.compact(inventory)
            collector = self._collector(self._clock() // 1_000_000)
            if collector.due(inventory):
                collector.remove(self._roots)

    def _pin(self, root: CID, name: str) -> Pin:
        pin = self._pins.add(root, name)
        now = self._clock() // 1_000_000
        if self._collector(now).unsettled(self._pins.listed):
            with contextlib.suppress(OSError, ProviderError):  # the pin is durable
                self._packs.sweep((now - DAY_MS) / 1000)
        return pin

    def _collect(self) -> int:
        collector = self._collector(self._clock() // 1_000_000)
        passed_over = self._packs.passed_over = PassedOver(math.inf)  # each is tried again, whatever its size
        try:
            return collector.remove(self._roots) + collector.mark(self._roots())
        finally:
            passed_over.limit = PassedOver().limit

    def _roots(self) -> Roots:
        """Return every root protected by a pin or a name record, whoever put it there."""
        return Roots(frozenset(self._pins.roots()), frozenset(self._names.roots()))

    def _listing(self) -> dict[str, int]:
        pins = {f"pins/{name}": info.size for name, info in self._pins.store.files().items()}
        return self._packs.listing() | pins


def _by_digest(cids: Iterable[CID]) -> dict[bytes, list[CID]]:
    """Group CIDs by SHA-256 digest: CIDs with one digest name the same bytes. Other hashes cannot be stored here."""
    cids_of: dict[bytes, list[CID]] = {}
    for cid in cids:
        if cid.multihash[:2] == _SHA256:
            cids_of.setdefault(cid.multihash[2:], []).append(cid)
    return cids_of
