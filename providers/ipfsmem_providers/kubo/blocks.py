"""Single blocks at a Kubo node: presence and bytes, without waiting for the network.

Kubo is told to stay offline. js-ipfs always searches the network for missing blocks, so each gets a short
time-out: blocks on its disk come at once. Its list of all blocks grows with the whole node, so it is read
only for blocks that timed out.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from ipfsmem.content.cid import CID, IDENTITY, parse_cid
from ipfsmem.content.limits import BLOCK_MAX
from ipfsmem.content.verify import verify_block
from ipfsmem.errors import BlockError, FormatError, LimitError, ProviderError, ProviderRefused
from ipfsmem.provider.contract import with_blocks
from ipfsmem_providers.http.concurrency import for_each
from ipfsmem_providers.kubo.rpc import CommandFailed, KuboRpc

_AT_ONCE: Final = 32
#: How many blocks `has` asks for before the rest.
_FIRST: Final = _AT_ONCE
#: Time-outs for a js-ipfs node to read a block from its own disk: when most likely it lacks it, and when most likely it has it.
_HAS_TIMEOUT: Final = "500ms"
_GET_TIMEOUT: Final = "1s"
_REFS_MAX: Final = 1024 * 1024 * 1024


class _Ref(msgspec.Struct):
    ref: str = msgspec.field(name="Ref", default="")
    error: str = msgspec.field(name="Err", default="")


class Blocks:
    """The blocks of one node."""

    def __init__(self, rpc: KuboRpc, name: str, patience: float) -> None:
        """`name`: the provider's, for errors; `patience`: seconds for the network's answer."""
        self._rpc = rpc
        self._name = name
        self._patience = patience

    async def has(self, cids: Collection[CID]) -> set[CID]:
        """Return those that the node holds, asked one by one.

        Blocks are asked in the order in which an import stores them, so when none of the first 32 is there,
        the rest is taken as missing: else a first publish would ask ten thousand times.
        """
        unique = list(dict.fromkeys(cids))
        if not unique:
            return set()
        present = await self._has_each(unique[:_FIRST])
        if not present or len(present) == len(unique):
            return present
        if not await self._rpc.is_js():
            return present | await self._has_each(unique[_FIRST:])
        there = await self._stored(unique)  # what timed out may be there
        return present | {cid for cid in unique if cid.multihash in there}

    async def get(self, cids: Sequence[CID]) -> dict[CID, bytes]:
        """Return checked blocks that the node holds."""
        blocks = {cid: cid.digest for cid in cids if cid.hash_code == IDENTITY}
        missing = [cid for cid in dict.fromkeys(cids) if cid not in blocks]
        if not missing:
            return blocks
        if not await self._rpc.is_js():
            await self._fetch(missing, blocks, {"offline": "true"})
            return blocks
        late = await self._fetch(missing, blocks, {"timeout": _GET_TIMEOUT}, all_or_stop=True)
        if late:
            there = await self._stored(late)
            await self._fetch(
                [cid for cid in late if cid.multihash in there], blocks, self._network_timeout()
            )
        return blocks

    async def find(self, cids: Sequence[CID], blocks: dict[CID, bytes]) -> None:
        """Add to `blocks` the checked blocks that the node finds in the network in time."""
        await self._fetch(cids, blocks, self._network_timeout())

    def _network_timeout(self) -> dict[str, str]:
        return {"timeout": f"{max(1, int(self._patience))}s"}

    async def _has_each(self, cids: Sequence[CID]) -> set[CID]:
        present: set[CID] = set()
        # js-ipfs keeps searching for a block after a `block/stat` has timed out.
        js = await self._rpc.is_js()
        command, how = ("block/get", {"timeout": _HAS_TIMEOUT}) if js else ("block/stat", {"offline": "true"})

        async def look(cid: CID) -> None:
            try:
                await self._rpc.call(
                    command, {"arg": str(cid), **how}, what="list the stored blocks", max_bytes=BLOCK_MAX
                )
                present.add(cid)
            except CommandFailed as error:
                if not error.absent and not (js and error.timed_out):
                    raise
            except ProviderRefused:
                return  # a kind of CID that it does not know, so it has no such block

        await for_each(cids, look, _AT_ONCE)
        return present

    async def _fetch(
        self,
        cids: Sequence[CID],
        blocks: dict[CID, bytes],
        how: Mapping[str, str],
        *,
        all_or_stop: bool = False,
    ) -> list[CID]:
        """Add blocks to `blocks`; return those that timed out. `all_or_stop`: stop after the first of these."""
        problems: list[ProviderError] = []
        late: list[CID] = []

        async def get(cid: CID) -> None:
            if problems and not blocks:
                return  # nothing works: the other ten thousand would fail as well
            if late and all_or_stop:
                late.append(cid)
                return
            try:
                answer = await self._rpc.call(
                    "block/get", {"arg": str(cid), **how}, what="get a block", max_bytes=BLOCK_MAX,
                    stall=None if "offline" in how else self._patience + 30,
                )  # fmt: skip
                verify_block(cid, answer.body)
            except CommandFailed as error:
                if error.timed_out:
                    late.append(cid)
                elif not error.absent:
                    problems.append(error)
            except (BlockError, LimitError) as error:
                problems.append(ProviderRefused(f"{self._name} answered other bytes: {error}"))
            except ProviderError as error:
                problems.append(error)
            else:
                blocks[cid] = answer.body

        await for_each(cids, get, _AT_ONCE)
        # An error from the node concerns one block; an unreachable node concerns all.
        unreachable = [
            problem
            for problem in problems
            if not problem.permanent and not isinstance(problem, CommandFailed)
        ]
        if unreachable or (problems and not blocks):
            raise with_blocks((unreachable or problems)[0], blocks)
        return late

    async def _stored(self, cids: Iterable[CID]) -> set[bytes]:
        """Return the multihashes of those in a js-ipfs node's list of all its blocks."""
        multihashes, stored = {cid.multihash for cid in cids}, set[bytes]()
        async for line in self._rpc.lines("refs/local", _Ref, what="list its blocks", max_bytes=_REFS_MAX):
            with contextlib.suppress(FormatError):
                if (multihash := parse_cid(line.ref).multihash) in multihashes:
                    stored.add(multihash)
        return stored
