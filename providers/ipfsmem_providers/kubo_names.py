"""IPNS records that we signed, at a Kubo node: kept as pinned blocks, and put into the network where the node can.

Keeping them works on any node and lasts longer than the 48 hours of the network; `name/put` and `name/get` are there
since Kubo 0.40. No key of ours ever reaches the node. The alias is another thing: a name of the node's own key that
follows the newest root, for people who want an address to look at.
"""

from __future__ import annotations

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
    ProviderRefused,
    ProviderUnavailable,
    SealError,
)
from ipfsmem.sync import ipns
from ipfsmem.sync.provider import Block, Pin
from ipfsmem_providers.http_body import Multipart
from ipfsmem_providers.kubo_pins import Pins
from ipfsmem_providers.kubo_rpc import CommandFailed, KuboRpc

_NETWORK_VERSION: Final = (0, 40)
_GREATER: Final = "existing ipns record has sequence"
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


class Names:
    """Records at one node."""

    def __init__(self, rpc: KuboRpc, pins: Pins, read: Read, write: Write, patience: float) -> None:
        """`read` and `write` move blocks; `patience`: seconds for the network's answer."""
        self._rpc = rpc
        self._pins = pins
        self._read = read
        self._write = write
        self._patience = patience
        #: Records of a name that were read: what a CID stands for never changes.
        self._verified: dict[tuple[str, CID], ipns.Record] = {}

    async def put(self, name: str, record: bytes, now: int) -> None:
        """Keep a record unless a greater one is kept, and offer it to the network."""
        try:
            name = ipns.canonical_name(name)
            offered = ipns.verify_record(name, record)
        except (FormatError, LimitError, SealError) as error:
            raise ProviderRefused(f"not a record of {name}: {error}") from error
        kept = await self._kept(name)
        best = ipns.select(kept.values())
        if best is not None and ipns.order(best) > ipns.order(offered):
            return
        cid = raw_cid(hashlib.sha256(record).digest())
        if best is None or best.encoded != record:
            await self._write(cid, [(cid, record)], name=_label(name))
            try:
                await self._pins.replace(cid, _label(name), now, kept)
            except ProviderUnavailable:
                # Another device may have put a greater one at the same moment, and taken ours away.
                newest = ipns.select((await self._kept(name)).values())
                if newest is None or ipns.order(newest) < ipns.order(offered):
                    raise
                return
        else:
            for pin in kept:
                if pin.cid != cid:
                    await self._pins.drop(pin)
        if await self._rpc.at_least(*_NETWORK_VERSION):
            await self._put_network(name, record)

    async def get(self, name: str) -> bytes | None:
        """The greatest record that is kept, or that the network has."""
        try:
            name = ipns.canonical_name(name)
        except FormatError as error:
            raise ProviderRefused(str(error)) from error
        records = list((await self._kept(name)).values())
        if await self._rpc.at_least(*_NETWORK_VERSION):
            heard = await self._get_network(name)
            if heard is not None:
                records.append(heard)
        best = ipns.select(records)
        return best.encoded if best else None

    async def _kept(self, name: str) -> dict[Pin, ipns.Record]:
        pins = (await self._pins.named(_label(name)))[:_READ_MAX]
        found = {pin: self._verified[name, pin.cid] for pin in pins if (name, pin.cid) in self._verified}
        unread = [pin for pin in pins if pin not in found]
        blocks = await self._read([pin.cid for pin in unread]) if unread else {}
        if len(self._verified) > _REMEMBERED:
            self._verified.clear()
        for pin in unread:
            try:
                found[pin] = ipns.verify_record(name, blocks.get(pin.cid, b""))
            except (FormatError, LimitError, SealError):
                continue  # who may pin at this node may pin anything
            self._verified[name, pin.cid] = found[pin]
        return found

    async def _put_network(self, name: str, record: bytes) -> None:
        form = Multipart().file("file", "record", record, "application/vnd.ipfs.ipns-record")
        params = {"arg": name, "allow-offline": "true", "timeout": f"{max(1, int(self._patience))}s"}
        try:
            await self._rpc.call("name/put", params, body=form, what="put a name", stall=self._patience + 30)
        except CommandFailed as error:
            # It says so of an equal sequence too, whichever of the two is greater: what is kept here decides.
            if _GREATER not in error.words:
                raise

    async def _get_network(self, name: str) -> ipns.Record | None:
        params = {"arg": name, "timeout": f"{max(1, int(self._patience))}s"}
        try:
            answer = await self._rpc.call(
                "name/get", params, what="get a name", max_bytes=ipns.MAX_RECORD, stall=self._patience + 30
            )
            return ipns.verify_record(name, answer.body)
        except (ProviderError, FormatError, LimitError, SealError) as error:
            _log.debug("kubo: no record of %s in the network: %s", name, error)
            return None


class Alias:
    """A name of the node's own key that follows the newest root. Nobody's devices look at it."""

    def __init__(self, rpc: KuboRpc, key: str, patience: float) -> None:
        """`key`: what the node calls the key; it is made there when it is missing."""
        self._rpc = rpc
        self._key = key
        self._patience = patience

    async def point(self, root: CID) -> None:
        """Move the alias. That it does not move is told in the log only: nothing depends on it."""
        try:
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
        except ProviderError as error:
            _log.warning("kubo: the alias %s does not point at %s: %s", self._key, root, error)


def _label(name: str) -> str:
    return f"ipns:{name}"
