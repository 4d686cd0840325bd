"""The `directory` provider: a folder on a stick, a share, or kept in step by a sync program.

    packs/<sha256>.car                       blocks, as ordinary CAR files (pack_store.py)
    packs/<sha256>.idx                       where they lie; a cache
    packs/<sha256>.going                     this pack is to go (pack_collect.py)
    packs/<sha256>.lost                      blocks of it that were found damaged (pack_lost.py)
    pins/<cid>.<16 hex of SHA-256(name)>.json            one pin (pin_files.py)
    pins/<sha256>.pins                                   many pins
    names/<k51...>.<16 hex of SHA-256(record)>.ipns-record

No file is ever changed and its name says what is in it, so any number of devices may use the folder at the same time,
without a lock and through sync programs that know nothing of us. Files of others are left alone. This provider never
makes the folder itself unless told to: an unplugged stick must not become a folder on the system's disk.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from ipfsmem.content.cid import CID
from ipfsmem.device.shared_folder import Folder
from ipfsmem.errors import ConfigError, FormatError, ProviderRefused, SealError
from ipfsmem.provider.contract import Block, Capabilities, Pin, unsupported
from ipfsmem.published import ipns_record
from ipfsmem_providers.blocking_work import STALL, Waiting, beat
from ipfsmem_providers.directory_files import disk_errors, gone
from ipfsmem_providers.pack_collect import Collector, Roots
from ipfsmem_providers.pack_store import Packs, PackWriter
from ipfsmem_providers.pin_files import Pins

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
)
_SHA256: Final = b"\x12\x20"
_NAME_MAX: Final = 255
_FLUSH: Final = 2 * 1024 * 1024
#: Bytes a second that a stick takes at the least: a pack is brought out of the system's memory in one step.
_SLOWEST: Final = 1024 * 1024
#: Packs are written anew, and brought out, before a collection goes on.
_COLLECT_SECONDS: Final = 900.0


class DirectoryProvider:
    """A folder as a provider. See ipfsmem.provider.contract for what the methods promise."""

    def __init__(
        self,
        path: str | Path,
        settings: Mapping[str, Any] | None = None,
        *,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """Use the folder at `path`; `settings["create"]` makes it when missing, else it must be there.

        `settings["stall"]`: seconds for which it may be silent. `clock` gives nanoseconds since 1970 UTC. The disk is not touched unless the folder is to be made. Raises
        ConfigError for an empty path, ProviderUnavailable when the folder cannot be made.
        """
        if not str(path):
            raise ConfigError(
                "the directory provider needs a folder", hint="For instance directory:/media/stick"
            )
        try:
            self._folder = Path(path).expanduser().absolute()
        except (RuntimeError, ValueError) as error:
            raise ConfigError(f"{path!r} is not a folder's path: {error}") from None
        self._packs = Packs(Folder(self._folder, "packs"))
        self._clock = clock
        self._pins = Pins(Folder(self._folder, "pins"), lambda: clock() // 1_000_000)
        self._names = Folder(self._folder, "names")
        self._waiting = Waiting(f"folder {self._folder}", float((settings or {}).get("stall") or STALL))
        self._used = False
        if (settings or {}).get("create"):
            with disk_errors(self._folder):
                self._folder.mkdir(parents=True, exist_ok=True)

    @property
    def name(self) -> str:
        """`directory:` and the path."""
        return f"directory:{self._folder}"

    @property
    def capabilities(self) -> Capabilities:
        """Everything but whole trees in one answer: single blocks cost nothing here."""
        return _CAPABILITIES

    async def put_car(self, root: CID, blocks: Iterable[Block], *, name: str) -> CID:
        """Write one pack. Blocks that are there already may be left out or sent again."""
        writer = await self._run(self._new_pack, root)
        try:
            for cid, data in blocks:
                writer.add(cid, data)
                if writer.due > _FLUSH:
                    await self._run(writer.flush)
            await self._run(self._finish, writer, more=writer.size / _SLOWEST)
        except BaseException:
            writer.drop()
            raise
        return root

    async def has(self, cids: Collection[CID]) -> set[CID]:
        """Those that an index names and nobody found damaged."""
        by_digest = _by_digest(cids)
        found = await self._run(self._packs.has, by_digest)
        return {cid for digest in found for cid in by_digest[digest]}

    async def get_blocks(self, cids: Sequence[CID]) -> dict[CID, bytes]:
        """Blocks that are there and sound; all of them were checked."""
        by_digest = _by_digest(cids)
        found = await self._run(self._packs.get, by_digest)
        return {cid: data for digest, data in found.items() for cid in by_digest[digest]}

    async def read_stored(self, cids: Sequence[CID]) -> dict[CID, bytes]:
        """The same: everything here is its own."""
        return await self.get_blocks(cids)

    async def listing(self) -> dict[str, int]:
        """Packs and pins by name and size; nothing is opened. A pack that is to go, or lost blocks, counts as changed.

        Records come and go with each publish, and are read by their names.
        """
        return await self._run(self._listing)

    def get_dag(self, root: CID) -> AsyncIterator[Block]:
        """Not here: raises ProviderRefused."""
        raise unsupported(self, "send a whole tree at once")

    async def pin(self, root: CID, name: str) -> Pin:
        """List `root` under `name`; a pin that is there keeps its time."""
        if not 0 < len(name) <= _NAME_MAX:
            raise ProviderRefused(f"a pin name has 1 to {_NAME_MAX} characters, this has {len(name)}")
        return await self._run(self._pins.add, root, name)

    async def pins(self, name: str) -> list[Pin]:
        """Pins with this name, newest first. Files that are no pins are passed over."""
        return await self._run(self._pins.named, name)

    async def unpin(self, pin: Pin) -> None:
        """Remove one pin. Its blocks stay until they are collected."""
        await self._run(self._pins.remove, [pin])

    async def unpin_all(self, pins: Sequence[Pin]) -> None:
        """Remove many; a list that holds some of them is written anew once."""
        await self._run(self._pins.remove, pins)

    async def collect(self) -> int:
        """Mark packs with blocks that no pin needs, and remove those that were marked a day ago. Bytes that are or
        will be free. ProviderRefused when a pin's tree is not whole here, so that nobody can say what it needs.
        """
        return await self._run(self._collect, more=_COLLECT_SECONDS)

    async def lacking(self) -> list[CID]:
        """Blocks that were found damaged here and stand nowhere else in the folder."""
        return await self._run(self._packs.lacking)

    async def put_name(self, name: str, record: bytes) -> None:
        """Keep a record unless a greater one is there; lesser ones go after it is in place."""
        try:
            name = ipns_record.canonical_name(name)
            offered = ipns_record.verify_record(name, record)
        except (FormatError, SealError) as error:
            raise ProviderRefused(f"not a record of {name}: {error}") from error
        await self._run(self._put_name, name, offered)

    async def get_name(self, name: str) -> bytes | None:
        """The greatest record that this name signed, however old, or None."""
        try:
            name = ipns_record.canonical_name(name)
        except FormatError as error:
            raise ProviderRefused(str(error)) from error
        best = await self._run(self._best, name)
        return best.encoded if best else None

    async def close(self) -> None:
        """Nothing is held open."""

    async def _run(self, work: Callable[..., T], *args: object, more: float = 0.0) -> T:
        """Do blocking work beside the event loop; see Waiting."""
        return await self._waiting.run(partial(self._checked, work, *args), more=more)

    def _checked(self, work: Callable[..., T], *args: object) -> T:
        with disk_errors(self._folder):
            if not self._folder.is_dir():
                raise gone(self._folder)
            with self._packs.folder.kept(), self._pins.folder.kept(), self._names.kept():
                if self._packs.folder.is_there():
                    self._used = True
                elif self._used:  # a mount point without its mount looks like an empty folder
                    raise gone(self._packs.folder.path)
                return work(*args)

    def _new_pack(self, root: CID) -> PackWriter:
        return PackWriter(self._packs.folder, root)

    def _finish(self, writer: PackWriter) -> None:
        self._packs.forget(writer.finish())
        with contextlib.suppress(
            OSError, ProviderRefused
        ):  # the blocks are safe; the rest can be done another day
            self._packs.compact()
            collector = self._collector()
            if collector.due():
                collector.remove(self._roots)

    def _collector(self) -> Collector:
        return Collector(self._packs, self._clock() // 1_000_000)

    def _collect(self) -> int:
        collector = self._collector()
        return collector.remove(self._roots) + collector.mark(self._roots())

    def _roots(self) -> Roots:
        """Every root that a pin or a name record keeps, whoever put it there."""
        named: set[CID] = set()
        for file in self._names.names():
            beat()
            data = self._names.read(file, ipns_record.MAX_RECORD) if file.endswith(".ipns-record") else None
            if data is not None:
                with contextlib.suppress(FormatError, SealError):
                    leads = ipns_record.split_value(
                        ipns_record.verify_record(file.partition(".")[0], data).value
                    )
                    if isinstance(leads, CID):
                        named.add(leads)
        return Roots(frozenset(self._pins.roots()), frozenset(named))

    def _listing(self) -> dict[str, int]:
        pins = {f"pins/{name}": size for name, size in self._pins.folder.sizes().items()}
        return self._packs.listing() | pins

    def _put_name(self, name: str, offered: ipns_record.Record) -> None:
        self._names.make()
        best = self._best(name)
        if best is None or ipns_record.order(best) < ipns_record.order(offered):
            self._names.write(f"{name}.{_tag(offered.encoded)}.ipns-record", offered.encoded)
        # Only what is less than something that is there is removed, so whoever else puts a record now, the greatest
        # stays.
        records = self._records(name)
        best = ipns_record.select(records.values())
        for file, record in records.items():
            if best is not None and ipns_record.order(record) < ipns_record.order(best):
                with contextlib.suppress(OSError):
                    self._names.unlink(file)

    def _best(self, name: str) -> ipns_record.Record | None:
        return ipns_record.select(self._records(name).values())

    def _records(self, name: str) -> dict[str, ipns_record.Record]:
        found = {}
        for file in self._names.names():
            if file.startswith(f"{name}.") and file.endswith(".ipns-record"):
                beat()
                data = self._names.read(file, ipns_record.MAX_RECORD)
                if data is not None:
                    with contextlib.suppress(FormatError, SealError):
                        found[file] = ipns_record.verify_record(name, data)
        return found


def _tag(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:16]


def _by_digest(cids: Iterable[CID]) -> dict[bytes, list[CID]]:
    """CIDs by SHA-256 digest; two CIDs of one digest name the same bytes. Others cannot be stored here."""
    found: dict[bytes, list[CID]] = {}
    for cid in cids:
        if cid.multihash[:2] == _SHA256:
            found.setdefault(cid.multihash[2:], []).append(cid)
    return found
