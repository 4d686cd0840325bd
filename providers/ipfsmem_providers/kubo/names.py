"""Our signed IPNS records at a Kubo node: kept as pinned blocks, and put into the network if the node can.

Pinned blocks work on any node and outlast the network's 48 hours; `name/put` and `name/get` exist since Kubo
0.40. Both query the DHT first, which takes seconds to a minute, so a record is put once the node keeps it,
and the network is told afterwards. Records are looked up in the network only if the user also wants that for
blocks: within a bound, and for one name again only after a while. The node never gets our keys. The alias is
a name of the node's own key that follows the newest root, for users who want to browse it.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, Protocol

import msgspec

from ipfsmem.content.cid import CID, raw_cid
from ipfsmem.errors import (
    FormatError,
    LimitError,
    ProviderError,
    ProviderUnavailable,
    SealError,
)
from ipfsmem.provider.contract import Block, Pin
from ipfsmem.published import ipns_record
from ipfsmem_providers.http.background import BackgroundWork
from ipfsmem_providers.http.body import Multipart
from ipfsmem_providers.http.per_loop import PerLoop
from ipfsmem_providers.kubo.pins import KuboPins
from ipfsmem_providers.kubo.rpc import CommandFailed, KuboRpc
from ipfsmem_providers.name_records import canonical_name, checked_record

#: Seconds that the network may take for all names that are asked for within a minute, which are those of one sync.
LOOK: Final = 20.0
_ONE_SYNC: Final = 60.0
#: Seconds after which the network is asked about the same name again.
_LOOK_AGAIN: Final = 600.0
_NETWORK_VERSION: Final = (0, 40)
_NOT_NEWER: Final = "existing ipns record has sequence"
#: Records kept of one name are few; more were put there by somebody else and are not read.
_READ_MAX: Final = 16
_REMEMBERED: Final = 1000
_log = logging.getLogger("ipfsmem.providers")

Read = Callable[[list[CID]], Awaitable[dict[CID, bytes]]]


class Write(Protocol):
    """`put_car` of a provider."""

    async def __call__(self, root: CID, blocks: Iterable[Block], *, name: str) -> object: ...


class _Key(msgspec.Struct):
    name: str = msgspec.field(name="Name")


class _Keys(msgspec.Struct):
    keys: list[_Key] = msgspec.field(name="Keys")


class KuboNames:
    """Records at one node."""

    def __init__(
        self,
        rpc: KuboRpc,
        pins: KuboPins,
        read: Read,
        write: Write,
        network: RoutedNames,
        background: BackgroundWork,
    ) -> None:
        """`read` and `write` transfer blocks."""
        self._rpc = rpc
        self._pins = pins
        self._read = read
        self._write = write
        self._network = network
        self._background = background
        #: Records that were read and verified, by name and CID of their block, whose bytes never change.
        self._verified: dict[tuple[str, CID], ipns_record.IpnsRecord] = {}

    async def put(self, name: str, record: bytes, now: int) -> None:
        """Keep a record unless a greater one is kept. The node puts it into the network afterwards."""
        name, offered = checked_record(name, record)
        records = await self._records(name)
        best = ipns_record.newest_record(records.values())
        if best is not None and ipns_record.record_order(best) > ipns_record.record_order(offered):
            return
        cid = raw_cid(hashlib.sha256(record).digest())
        if best is None or best.encoded != record:
            await self._write(cid, [(cid, record)], name=_label(name))
            try:
                await self._pins.replace(cid, _label(name), now, records)
            except ProviderUnavailable:
                # Another device may have put a greater one concurrently, and removed ours.
                newest = ipns_record.newest_record((await self._records(name)).values())
                if newest is None or ipns_record.record_order(newest) < ipns_record.record_order(offered):
                    raise
                return
        else:
            for pin in records:
                if pin.cid != cid:
                    await self._pins.drop(pin)
        if await self._rpc.at_least(*_NETWORK_VERSION):
            self._background.begin(f"the network and the name {name[:16]}…", self._network.put(name, record))

    async def get(self, name: str) -> bytes | None:
        """Return the newest record of the node, or of the network in time."""
        name = canonical_name(name)
        records = list((await self._records(name)).values())
        if await self._rpc.at_least(*_NETWORK_VERSION):
            from_network = (await self._network.cached(name), await self._network.look_up(name))
            records += [record for record in from_network if record is not None]
        best = ipns_record.newest_record(records)
        return best.encoded if best else None

    async def _records(self, name: str) -> dict[Pin, ipns_record.IpnsRecord]:
        pins = (await self._pins.named(_label(name)))[:_READ_MAX]
        records = {pin: self._verified[name, pin.cid] for pin in pins if (name, pin.cid) in self._verified}
        unread = [pin for pin in pins if pin not in records]
        blocks = await self._read([pin.cid for pin in unread]) if unread else {}
        if len(self._verified) > _REMEMBERED:
            self._verified.clear()
        for pin in unread:
            try:
                records[pin] = ipns_record.verify_record(name, blocks.get(pin.cid, b""))
            except (FormatError, LimitError, SealError):
                continue  # anyone who may pin at this node may pin anything
            self._verified[name, pin.cid] = records[pin]
        return records


class RoutedNames:
    """The records that other nodes have, through this node."""

    def __init__(self, rpc: KuboRpc, patience: float, *, ask: bool) -> None:
        """`patience`: seconds for one answer; `ask`: whether records are looked up there too."""
        self._rpc = rpc
        self._patience = patience
        self._ask = ask
        self._now = rpc.http.timing.now
        self._began = -_ONE_SYNC
        self._looked: dict[str, float] = {}
        self._looking: PerLoop[dict[str, asyncio.Task[ipns_record.IpnsRecord | None]]] = PerLoop(dict)

    async def put(self, name: str, record: bytes) -> None:
        """Offer a record. Raises ProviderError."""
        form = Multipart().file("file", "record", record, "application/vnd.ipfs.ipns-record")
        params = {"arg": name, "allow-offline": "true", "timeout": f"{max(1, int(self._patience))}s"}
        try:
            await self._rpc.call("name/put", params, body=form, what="put a name", stall=self._patience + 30)
        except CommandFailed as error:
            # It reports so of an equal sequence too, whichever is greater: our stored record decides.
            if _NOT_NEWER not in error.words:
                raise

    async def cached(self, name: str) -> ipns_record.IpnsRecord | None:
        """Return the network's record if cached by the node; answers at once."""
        return await self._get(name, {"offline": "true"})

    async def look_up(self, name: str) -> ipns_record.IpnsRecord | None:
        """Return the network's record if it comes in time. A slower lookup continues, and the next call
        returns its answer."""
        if not self._ask:
            return None
        looking = self._looking()
        task = looking.get(name)
        if task is None:
            if self._now() - self._looked.get(name, -_LOOK_AGAIN) < _LOOK_AGAIN:
                return None
            if len(self._looked) > _REMEMBERED:
                self._looked.clear()
            self._looked[name] = self._now()
            wait = {"timeout": f"{max(1, int(self._patience))}s"}
            task = looking[name] = asyncio.get_running_loop().create_task(self._get(name, wait))
        if self._now() - self._began >= _ONE_SYNC:
            self._began = self._now()
        seconds = min(LOOK, self._patience) - (self._now() - self._began)
        done, _ = await asyncio.wait([task], timeout=max(0.0, seconds))
        if not done:
            return None
        looking.pop(name, None)
        return None if task.cancelled() else task.result()

    async def end(self) -> None:
        """Cancel running lookups."""
        looking = self._looking()
        for task in looking.values():
            task.cancel()
        await asyncio.gather(*looking.values(), return_exceptions=True)
        looking.clear()

    async def _get(self, name: str, how: dict[str, str]) -> ipns_record.IpnsRecord | None:
        try:
            answer = await self._rpc.call(
                "name/get", {"arg": name, **how}, what="get a name", max_bytes=ipns_record.MAX_RECORD,
                stall=None if "offline" in how else self._patience + 30,
            )  # fmt: skip
            return ipns_record.verify_record(name, answer.body)
        except (ProviderError, FormatError, LimitError, SealError) as error:
            _log.debug("kubo: no record of %s in the network: %s", name, error)
            return None


class Alias:
    """A name of the node's own key that follows the newest root. Nobody's devices look at it."""

    def __init__(self, rpc: KuboRpc, key: str, patience: float) -> None:
        """`key`: the node's name for the key, which is created if missing."""
        self._rpc = rpc
        self._key = key
        self._patience = patience

    async def point(self, root: CID) -> None:
        """Move the alias. Raises ProviderError; nothing depends on it."""
        keys = (await self._rpc.call("key/list", what="list keys")).decode(_Keys).keys
        if self._key not in {key.name for key in keys}:
            await self._rpc.call(
                "key/gen", {"arg": self._key, "type": "ed25519"}, what="make a key", repeat=False
            )
        params = {
            "arg": f"/ipfs/{root}", "key": self._key, "resolve": "false", "allow-offline": "true",
            "lifetime": "48h", "ttl": "5m", "timeout": f"{max(1, int(self._patience))}s",
        }  # fmt: skip
        await self._rpc.call("name/publish", params, what="move the alias", stall=self._patience + 30)


def _label(name: str) -> str:
    return f"ipns:{name}"
