"""The `kubo` provider: the user's own IPFS node, through its RPC.

    kubo:http://127.0.0.1:5001   the RPC's URL (or its multiaddr); the default is this one
    KUBO_RPC_AUTH    what the node's API.Authorizations asks for: bearer:<token> or basic:<user>:<password>;
                     of several nodes each its own (http/tokens.py)
    KUBO_NETWORK=on  let the node look in the network for blocks and names that it lacks; off by default, so that what
                     is missing is known at once
    KUBO_PATIENCE    seconds for the network: to pin, to fetch, to put and get names; 60
    KUBO_ALIAS       name of a key of the node whose IPNS name follows the newest root, for people

Settings of the same names in lower case override the environment. Publishing sends only the blocks that the node
lacks, in one `dag/import`, and pins the root. Single blocks are in blocks.py, small objects in
small_objects.py, listing under a name in pins.py, records in names.py. The files that the user sees in the node (MFS) are not touched. js-ipfs nodes
work too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from ipfsmem.content.car import CarParser
from ipfsmem.content.cid import CID
from ipfsmem.content.limits import OWN_LIMITS
from ipfsmem.errors import BlockError, FormatError, LimitError, ProviderError, ProviderRefused
from ipfsmem.provider.base import ProviderBase
from ipfsmem.provider.contract import Block, Capabilities, Pin
from ipfsmem.provider.small_objects import require_boxes, require_names, require_small
from ipfsmem_providers.http.background import BOUND, BackgroundWork
from ipfsmem_providers.http.body import Multipart, SpooledCar
from ipfsmem_providers.http.tokens import token_for
from ipfsmem_providers.kubo.blocks import Blocks
from ipfsmem_providers.kubo.names import Alias, KuboNames, RoutedNames
from ipfsmem_providers.kubo.pins import KuboPins
from ipfsmem_providers.kubo.rpc import CommandFailed, KuboRpc, node_authorization, rpc_url
from ipfsmem_providers.kubo.small_objects import KuboSmallObjects
from ipfsmem_providers.settings import choice, seconds, setting

_CAPABILITIES: Final = Capabilities(
    has=True,
    partial_car=True,
    blocks=True,
    dag=True,
    pin=True,
    list=True,
    unpin=True,
    names=True,
    raw=True,
    small=True,
)
_IMPORT_MAX: Final = 1024 * 1024
#: Seconds that a connection to another node may take.
_CONNECT: Final = 10
_log = logging.getLogger("ipfsmem.providers")


class _Stats(msgspec.Struct):
    blocks: int = msgspec.field(name="BlockCount")


class _Import(msgspec.Struct):
    stats: _Stats | None = msgspec.field(name="Stats", default=None)


class KuboProvider(ProviderBase):
    """A node as a provider. See ipfsmem.provider.contract for the methods."""

    def __init__(self, rest: str = "", settings: Mapping[str, Any] | None = None) -> None:
        """`rest` is the RPC's URL. No network access. ConfigError for unusable settings."""
        settings = settings or {}

        def url_of(rest: str) -> str:
            return rpc_url(rest or setting(settings, "KUBO_RPC_URL"))[0]

        token = token_for(
            settings, "KUBO_RPC_AUTH", url_of(rest), kind="kubo", url_of=url_of, url_setting="KUBO_RPC_URL"
        )
        url = rest or setting(settings, "KUBO_RPC_URL")
        self._rpc = KuboRpc(url, node_authorization(token), settings)
        self._network = choice(settings, "KUBO_NETWORK", ("off", "on")) == "on"
        self._patience = seconds(settings, "KUBO_PATIENCE", 60.0)
        self._pins = KuboPins(self._rpc, self._patience)
        self._name = f"kubo:{self._rpc.http.redact(self._rpc.url)}"
        self._blocks = Blocks(self._rpc, self._name, self._patience)
        self._small = KuboSmallObjects(self._pins, self._blocks, self._send_and_pin)
        self._background = BackgroundWork(min(BOUND, self._patience))
        self._network_records = RoutedNames(self._rpc, self._patience, ask=self._network)
        self._names = KuboNames(
            self._rpc, self._pins, self._blocks.get, self.put_car, self._network_records, self._background
        )
        alias = setting(settings, "KUBO_ALIAS")
        self._alias = Alias(self._rpc, alias, self._patience) if alias else None

    @property
    def name(self) -> str:
        """Return `kubo:` and the URL."""
        return self._name

    @property
    def capabilities(self) -> Capabilities:
        """Return all capabilities."""
        return _CAPABILITIES

    async def put_car(self, root: CID, blocks: Iterable[Block], *, name: str) -> CID:
        """Import a CAR and pin its root: from then on the node collects none of its blocks."""
        with await SpooledCar.write(root, blocks) as car:
            return await self._send(root, car, name)

    async def has(self, cids: Collection[CID]) -> set[CID]:
        """Return the blocks that the node holds, one request per block, without the network, as far as blocks.py asks."""
        return await self._blocks.has(cids)

    async def get_blocks(self, cids: Sequence[CID]) -> dict[CID, bytes]:
        """Return checked blocks that the node holds; with KUBO_NETWORK=on also what it finds in time."""
        blocks = await self._blocks.get(cids)
        missing = [cid for cid in dict.fromkeys(cids) if cid not in blocks]
        if missing and self._network:
            await self._blocks.find(missing, blocks)
        return blocks

    async def read_stored(self, cids: Sequence[CID]) -> dict[CID, bytes]:
        """Return checked blocks that the node holds, without the network."""
        return await self._blocks.get(cids)

    async def get_dag(self, root: CID) -> AsyncIterator[Block]:
        """Yield the checked blocks of a tree, depth first. Nothing when the node lacks the root."""
        if await self._rpc.is_js() and not await self._blocks.get([root]):
            return  # it would look for it in the network
        params = {"arg": str(root), "progress": "false"}
        if not self._network:
            params["offline"] = "true"
        parser = CarParser(OWN_LIMITS)
        most = 2 * OWN_LIMITS.total_bytes + 128 * OWN_LIMITS.blocks
        try:
            async with self._rpc.stream("dag/export", params, what="get a tree", max_bytes=most) as answer:
                async for piece in answer:
                    for block in parser.feed(piece):
                        yield block
        except CommandFailed as error:
            if not error.absent:
                raise
            return
        except (FormatError, BlockError, LimitError) as error:
            raise ProviderRefused(f"{self._name} answered a bad CAR for {root}: {error}") from None
        try:
            parser.close()
        except FormatError as error:
            # A command that fails late ends its answer like one that is done; before the first block it lacks the root.
            if parser.blocks:
                raise self._rpc.http.unavailable(
                    f"{self._name} broke off the tree of {root}: {error}"
                ) from None

    async def pin(self, root: CID, name: str) -> Pin:
        """Pin a root, and list it under a name."""
        added = await self._pins.add(root, name, self._now())
        if self._alias is not None:
            self._background.begin("the alias", self._alias.point(root))
        return added

    async def pins(self, name: str) -> list[Pin]:
        """Return pins with this name, newest first."""
        return await self._pins.named(name)

    def unread(self) -> list[str]:
        """See `Unreading`."""
        return self._pins.gaps.unread()

    async def unpin(self, pin: Pin) -> None:
        """Take a name off a root, with the last one the pin; the node collects its blocks when it likes."""
        await self._pins.drop(pin)

    async def put_name(self, name: str, record: bytes) -> None:
        """Keep a record at the node; since Kubo 0.40 the node puts it into the network too, afterwards."""
        await self._names.put(name, record, self._now())

    async def get_name(self, name: str) -> bytes | None:
        """Return the greatest record that the node has; with KUBO_NETWORK=on and Kubo 0.40 also of those in
        the network."""
        return await self._names.get(name)

    async def put_small(self, name: str, data: bytes) -> None:
        """See `SmallArea`."""
        require_small(name, data)
        await self._small.put(name, data)

    async def list_small(self, boxes: Collection[str]) -> dict[str, int]:
        """See `SmallArea`."""
        require_boxes(boxes)
        return await self._small.sizes(boxes) if boxes else {}

    async def get_small(self, names: Sequence[str]) -> dict[str, bytes]:
        """See `SmallArea`."""
        require_names(names)
        return await self._small.read(names) if names else {}

    async def remove_small(self, names: Collection[str]) -> None:
        """See `SmallArea`."""
        require_names(names)
        if names:
            await self._small.remove(names)

    async def connect(self, addresses: Sequence[str]) -> int:
        """Have the node connect to others concurrently, ten seconds at most; return the number of successes."""

        async def call(address: str) -> bool:
            params = {"arg": address, "timeout": f"{_CONNECT}s"}
            try:
                await self._rpc.call(
                    "swarm/connect", params, what="connect", repeat=False, stall=_CONNECT + 5
                )
            except ProviderError as error:
                _log.debug("kubo: no connection to %s: %s", address, error)
                return False
            return True

        return sum(await asyncio.gather(*map(call, addresses)))

    async def settle(self) -> list[str]:
        """Wait, at most 20 seconds, until background network publishing has finished."""
        return await self._background.settle()

    async def close(self) -> None:
        """Close connections. Pending network publishing is cancelled."""
        await self._background.end()
        await self._network_records.end()
        await self._rpc.close()

    # -- parts -----------------------------------------------------------------------------------------------------

    def _now(self) -> int:
        return int(self._rpc.http.timing.wall() * 1000)

    async def _send_and_pin(self, root: CID, block: Block, name: str) -> Pin:
        await self.put_car(root, [block], name=name)
        return await self._pins.add(root, name, self._now())

    async def _send(self, root: CID, car: SpooledCar, name: str) -> CID:
        """Import, then pin with the name at once: an import that pins removes a root's names."""
        js = await self._rpc.is_js()
        done = [line.stats async for line in self._lines_of_import(root, car) if line.stats is not None]
        if not done and not js:  # the numbers come last, so without them the import was not finished
            raise self._rpc.http.unavailable(f"{self._name} ended the import without naming a root")
        await self._pins.name_at_once(root, name, self._now())
        return root

    def _lines_of_import(self, root: CID, car: SpooledCar) -> AsyncIterator[_Import]:
        form = Multipart().file("file", f"{root}.car", car, car.content_type)
        params = {"pin-roots": "false", "stats": "true", "allow-big-block": "true"}
        return self._rpc.lines(
            "dag/import", _Import, params, body=form, what="import a CAR", max_bytes=_IMPORT_MAX
        )
