"""Read through a provider's own gateway, which may serve only pinned roots and their paths, then through others.

Dedicated gateways answer 403 for a block inside a tree and 200 for the same block by its path below the root. So the paths
of blocks are learned from folders, and used where a gateway needs them. Blocks without their own path (shards of a
large folder, chunks of a large file) come in a CAR of the whole folder or file. A block without a link from a known
folder is searched as a file below the known roots (stored_files.py), which also finds it in a provider's own chunking;
from a whole tree as a CAR, such files are reassembled (foreign_layout.py). Every block is checked; only the provider's
gateway gets its credentials.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from ipfsmem.content.car import CarParser
from ipfsmem.content.cid import CID, DAG_PB, RAW
from ipfsmem.content.dagpb import TYPE_DIRECTORY, TYPE_HAMT, decode_node, decode_unixfs
from ipfsmem.content.limits import BLOCK_MAX, OWN_LIMITS
from ipfsmem.content.verify import verify_block
from ipfsmem.errors import BlockError, FormatError, LimitError, ProviderError, ProviderRefused
from ipfsmem.provider.contract import Block, with_blocks
from ipfsmem_providers.gateways.client import ABSENT, CAR_TYPE, RAW_TYPE, GatewayClient, base_of
from ipfsmem_providers.gateways.foreign_layout import with_files
from ipfsmem_providers.gateways.provider import Gateways, hides_some
from ipfsmem_providers.gateways.stored_files import StoredFiles
from ipfsmem_providers.http.client import CONCURRENCY, Http, urls_of
from ipfsmem_providers.http.concurrency import for_each
from ipfsmem_providers.http.errors import combined
from ipfsmem_providers.http.policy import Retry

#: Statuses for a block that is not served by its CID, but perhaps by its path.
_NOT_BY_CID: Final = frozenset((400, 403, *ABSENT))
_MAX_PATHS: Final = 500_000
_ROOTS_KEPT: Final = 64
_MAX_CANDIDATES: Final = 3
#: Failures, while nothing was found, after which the other blocks are not asked for.
_GIVE_UP: Final = 4
_RETRY: Final = Retry(attempts=3)


class BlockPath(NamedTuple):
    """Location of a block: the root, the path below it, and whether it is only a part of the folder or file there."""

    root: CID
    path: tuple[str, ...]
    part: bool = False


class OwnGateway:
    """A provider's own gateway, and other gateways for blocks that it does not serve."""

    def __init__(
        self,
        service: str,
        url: str,
        others: str | Iterable[str] = (),
        *,
        headers: Mapping[str, str] | None = None,
        settings: Mapping[str, Any] | None = None,
        rooted: bool = False,
    ) -> None:
        """`url`: the provider's gateway ("" for none). `others`: fallback gateways. `headers`: sent to the
        provider's gateway only.

        `rooted`: the provider's gateway serves blocks below a root by path only, so paths are tried first; detected
        automatically if not known beforehand. ConfigError for a bad URL.
        """
        self._service = service
        self._url = base_of(urls_of([url], "gateway")[0]) if url else ""
        self._http = Http(
            service,
            trusted=[self._url] if url else [],
            auth=headers or {},
            settings=settings,
            retry=_RETRY,
        )
        self._client = GatewayClient(self._http, self._url) if url else None
        urls = others.split(",") if isinstance(others, str) else list(others)
        rest = [other for other in urls if other.strip() and base_of(other) != self._url]
        about = dict(settings or {})
        if not about.get(
            "gateway_token_for"
        ):  # the token's default owner is the first gateway of a `gateway:` spec
            about.pop("gateway_token", None)
        self._others = Gateways(rest, about) if rest else None
        self._places: dict[CID, BlockPath] = {}
        #: Roots that were read, the newest last; ordered like a set.
        self._roots: dict[CID, None] = {}
        self._pinned: list[CID] = []
        self._files = StoredFiles(self._path)
        self._rooted = rooted  #: whether it serves blocks by path only

    @property
    def reads(self) -> bool:
        """Return whether there is any gateway."""
        return self._client is not None or self._others is not None

    async def get_blocks(self, cids: Sequence[CID]) -> dict[CID, bytes]:
        """Return checked blocks; missing ones are left out. ProviderUnavailable when an outage may hide one."""
        blocks, problems = await self._own_blocks(cids)
        missing = [cid for cid in dict.fromkeys(cids) if cid not in blocks]
        if missing and self._others is not None:
            try:
                more: Mapping[CID, bytes] = await self._others.get_blocks(missing)
            except ProviderError as error:
                problems.append(error)
                more = error.blocks
            for cid, data in more.items():
                self._learn(cid, data)
            blocks.update(more)
        if hides_some(problems, blocks, cids):
            raise with_blocks(combined(problems), blocks)
        return blocks

    @property
    def reads_own(self) -> bool:
        """Return whether the provider has a gateway."""
        return self._client is not None

    async def own_blocks(self, cids: Sequence[CID]) -> dict[CID, bytes]:
        """Return checked blocks from the provider's gateway only. Raises when a request for one of them failed."""
        blocks, problems = await self._own_blocks(cids)
        if problems:
            raise combined(problems)
        return blocks

    async def _own_blocks(self, cids: Sequence[CID]) -> tuple[dict[CID, bytes], list[ProviderError]]:
        """Return the blocks served by the provider's gateway, and the failures."""
        unique = list(dict.fromkeys(cids))
        blocks: dict[CID, bytes] = {}
        problems: list[ProviderError] = []
        if self._client is not None:
            unplaced: set[CID] = set()
            if self._rooted:  # it would refuse each of these by its CID
                unplaced = {cid for cid in unique if cid.codec == RAW and cid not in self._places}
                await self._as_files(unplaced, blocks, problems)
            problems += await self._from_own(
                self._client, [cid for cid in unique if cid not in blocks], blocks
            )
            if blocks or not problems:
                await self._as_files(
                    {cid for cid in unique if cid not in blocks} - unplaced, blocks, problems
                )
        return blocks, problems

    async def get_dag(self, root: CID) -> AsyncIterator[Block]:
        """Yield checked blocks of a tree: from the provider's gateway, and the rest from others if it breaks off.

        Files in a foreign layout are returned as raw blocks too (foreign_layout.py).
        """
        async for block in with_files(self._dag(root)):
            yield block

    async def file(self, root: CID, path: tuple[str, ...], *, max_bytes: int) -> bytes | None:
        """Return the bytes of a file at a path below a root, unchecked, from the provider's gateway; None if it
        does not serve it."""
        return await self._path(root, path, False, max_bytes) if self._client is not None else None

    def note_pins(self, roots: Iterable[CID]) -> None:
        """Remember the pinned roots, newest first. Blocks not found below the roots that were read are searched below these.

        (A root that this device already has is not read again, though some of its blocks may be missing locally.)
        """
        self._pinned = list(dict.fromkeys([*roots, *self._pinned]))[:_ROOTS_KEPT]

    async def close(self) -> None:
        """Close connections."""
        await self._http.close()
        if self._others is not None:
            await self._others.close()

    # -- the provider's gateway -----------------------------------------------------------------------------------

    async def _dag(self, root: CID) -> AsyncIterator[Block]:
        problem: ProviderError | None = None
        known: set[CID] = set()
        if self._client is not None:
            try:
                async for cid, data in self._client.dag(root, known=known):
                    self._learn(cid, data)
                    yield cid, data
            except ProviderError as error:
                problem = error
            if known and problem is None:
                return
        if self._others is not None:
            async for cid, data in self._others.tree(root):
                if cid not in known:
                    self._learn(cid, data)
                    yield cid, data
        elif problem is not None and not known:
            raise problem

    async def _from_own(
        self, client: GatewayClient, cids: list[CID], blocks: dict[CID, bytes]
    ) -> list[ProviderError]:
        """Add blocks to `blocks`; return the failures."""
        problems: list[ProviderError] = []
        everything = set(cids)
        locks: dict[BlockPath, asyncio.Lock] = {}  # one CAR of a file serves all its chunks

        async def fetch(cid: CID) -> None:
            if cid in blocks or (len(problems) >= _GIVE_UP and not blocks):
                return
            try:
                await self._one(client, cid, everything, blocks, locks)
            except ProviderError as error:
                problems.append(error)

        await for_each(cids, fetch, CONCURRENCY)
        return problems

    async def _one(
        self,
        client: GatewayClient,
        cid: CID,
        cids: set[CID],
        blocks: dict[CID, bytes],
        locks: dict[BlockPath, asyncio.Lock],
    ) -> None:
        place = self._places.get(cid)
        by_path = place is not None and self._rooted
        data = None if by_path else await client.block(cid, absent=_NOT_BY_CID)
        if data is None and place is not None:
            if place.part:
                async with locks.setdefault(place, asyncio.Lock()):
                    if cid not in blocks:
                        await self._parts(cid, place, cids, blocks)
            else:
                data = await self._by_path(cid, place)
            if not by_path and (data is not None or cid in blocks):
                self._rooted = True
        if data is None and by_path and cid not in blocks:
            data = await client.block(cid, absent=_NOT_BY_CID)
        if data is not None:
            self._learn(cid, data)
            blocks[cid] = data

    def _candidates(self, place: BlockPath) -> list[BlockPath]:
        """Return the candidate locations of a block: the same path below all known roots, its own first, then newest
        first, since its root may be unpinned."""
        roots = dict.fromkeys([place.root, *list(self._roots)[::-1]])
        return [place._replace(root=root) for root in roots if root in self._roots][:_MAX_CANDIDATES]

    async def _by_path(self, cid: CID, place: BlockPath) -> bytes | None:
        for one in self._candidates(place):
            data = await self._path(one.root, one.path, True)
            if data is None:
                continue
            try:
                verify_block(cid, data)
            except (BlockError, LimitError) as error:
                if one == place:
                    raise ProviderRefused(f"{self._url} answered other bytes: {error}") from None
                continue  # another file has this path by now
            return data
        return None

    async def _as_files(
        self, cids: Iterable[CID], blocks: dict[CID, bytes], problems: list[ProviderError]
    ) -> None:
        """Look for blocks as whole files below the roots that were read, the last first, then below the pinned ones."""
        roots = list(dict.fromkeys([*list(self._roots)[::-1], *self._pinned]))
        missing = [cid for cid in cids if cid not in blocks]
        if missing and roots:
            try:
                blocks.update(await self._files.find(missing, roots))
            except ProviderError as error:
                problems.append(error)

    async def _path(
        self, root: CID, path: tuple[str, ...], raw: bool, max_bytes: int = BLOCK_MAX
    ) -> bytes | None:
        """Return the data at a path, unchecked: its first block (`raw`), or the whole file."""
        answer = await self._http.request(
            "GET", f"{self._url}/ipfs/{_address(BlockPath(root, path))}{'?format=raw' if raw else ''}",
            headers={"Accept": RAW_TYPE} if raw else None, allow=_NOT_BY_CID, max_bytes=max_bytes, redirects=3,
            what="get a file",
        )  # fmt: skip
        if answer.status == 403:
            self._roots.pop(root, None)  # it is not pinned any more
        return answer.body if answer.status == 200 else None

    async def _parts(self, cid: CID, place: BlockPath, cids: set[CID], blocks: dict[CID, bytes]) -> None:
        """Fetch the blocks of a folder or file in one CAR, and keep all that are wanted, until `cid` is among them."""
        for one in self._candidates(place):
            await self._some_parts(one, cids, blocks)
            if cid in blocks:
                return

    async def _some_parts(self, place: BlockPath, cids: set[CID], blocks: dict[CID, bytes]) -> None:
        try:
            async with self._http.stream(
                "GET", f"{self._url}/ipfs/{_address(place)}?format=car&dag-scope=entity",
                headers={"Accept": f"{CAR_TYPE}; version=1"}, allow=_NOT_BY_CID,
                max_bytes=2 * OWN_LIMITS.total_bytes, redirects=3, what="get a file",
            ) as answer:  # fmt: skip
                if answer.status in _NOT_BY_CID:
                    return
                parser = CarParser(OWN_LIMITS)
                async for piece in answer:
                    for cid, data in parser.feed(piece):
                        if cid in cids and cid in self._places:
                            self._learn(cid, data)
                            blocks[cid] = data
                parser.close()
        except (FormatError, LimitError, BlockError) as error:
            raise ProviderRefused(f"{self._url} answered a bad CAR: {error}") from None

    def _learn(self, cid: CID, data: bytes) -> None:
        """Record the locations of a block's children; the last one seen wins, since roots are unpinned over time."""
        if cid.codec != DAG_PB:
            return
        if len(self._places) > _MAX_PATHS:
            self._places.clear()
        here = self._places.get(cid) or BlockPath(cid, ())
        if not here.path and not here.part:
            self._roots.pop(cid, None)
            self._roots[cid] = None
            if len(self._roots) > _ROOTS_KEPT:
                self._roots.pop(next(iter(self._roots)))
        with contextlib.suppress(FormatError):  # the reader of the tree reports it
            node = decode_node(data)
            kind = decode_unixfs(node.data or b"").type
            for link in node.links:
                if kind == TYPE_DIRECTORY:
                    place = BlockPath(here.root, (*here.path, link.name))
                elif kind == TYPE_HAMT and len(link.name) > 2:
                    place = BlockPath(here.root, (*here.path, link.name[2:]))
                else:
                    place = BlockPath(here.root, here.path, True)
                self._places[link.cid] = place


def _address(place: BlockPath) -> str:
    return "/".join((str(place.root), *(quote(name, safe="") for name in place.path)))
