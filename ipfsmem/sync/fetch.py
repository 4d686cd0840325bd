"""Fetch blocks for a pull, first from this device, then from one provider after another; check and fetch each once.

Received blocks stay in memory until `keep` stores them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from ipfsmem.content.cid import CID, DAG_PB, RAW
from ipfsmem.content.dagpb import decode_node
from ipfsmem.content.limits import OWN_LIMITS
from ipfsmem.content.verify import verify_block
from ipfsmem.device.bulk import read_blocks
from ipfsmem.device.database import Database
from ipfsmem.device.replica import Replica
from ipfsmem.errors import BlockError, FormatError, IpfsmemError, LimitError, ProviderError
from ipfsmem.provider.contract import MAX_BATCH, Provider
from ipfsmem.provider.opening import NotOpened

if TYPE_CHECKING:
    from ipfsmem.content.fetch import Fetch

T = TypeVar("T")
#: Identifies a concurrent read: a root, a prefix.
K = TypeVar("K", bound=Hashable)
#: Maximum number of blocks per request.
BATCH = 2_000
#: Maximum bytes of an answer, or of objects requested together, in memory before they are stored.
HELD_MAX = 64 * 1024 * 1024
#: Maximum bytes read of an answer with a whole tree; the rest is requested normally.
WHOLE_MAX = OWN_LIMITS.total_bytes


class Fetcher:
    """Fetches blocks for one sync, with a record of results and failures."""

    def __init__(
        self, db: Database, providers: Sequence[Provider], not_opened: Sequence[NotOpened] = ()
    ) -> None:
        """`not_opened`: providers that cannot be called and may have blocks that the others lack."""
        self._db = db
        self._providers = providers
        self._not_opened = not_opened
        #: Blocks that were fetched and verified in this sync and are not stored yet.
        self.fetched: dict[CID, bytes] = {}
        self.blocks = 0
        self.bytes = 0
        #: Blocks served in this sync, by provider name.
        self.served: dict[str, set[CID]] = {}
        #: CIDs for which a provider sent other bytes, with the reason.
        self.refused: dict[CID, str] = {}

    async def get(self, cids: Iterable[CID]) -> Mapping[CID, bytes]:
        """Return the available blocks, verified. A wrong block is recorded and omitted.

        Raises ProviderError if a missing block may be at a provider that is down or cannot be opened.
        """
        blocks, failure = await self.try_get(cids)
        if failure is not None:
            raise failure
        return blocks

    async def side_by_side(
        self, reads: Mapping[K, Fetch[T]], use: Callable[[K, T], IpfsmemError | None]
    ) -> dict[K, IpfsmemError]:
        """Drive many reads concurrently with shared requests, then call `use` with each result; return the failures.

        `use` is called in the order of `reads` and returns the error for which a result is refused. A failed
        read stops no other; blocks fetched only by failed reads are dropped.
        """
        before = len(self.fetched)
        done: dict[K, T] = {}
        failed: dict[K, IpfsmemError] = {}
        requested: dict[K, set[CID]] = {key: set() for key in reads}
        answers: dict[K, Mapping[CID, bytes] | None] = dict.fromkeys(reads)
        while answers:
            cids_of: dict[K, list[CID]] = {}
            for key, blocks in answers.items():
                try:
                    cids_of[key] = next(reads[key]) if blocks is None else reads[key].send(blocks)
                    requested[key].update(cids_of[key])
                except StopIteration as end:
                    done[key] = end.value
                except IpfsmemError as error:
                    failed[key] = error
            received, down = await self.try_get(
                dict.fromkeys(cid for cids in cids_of.values() for cid in cids)
            )
            answers = {}
            for key, cids in cids_of.items():
                blocks_of = {cid: received[cid] for cid in cids if cid in received}
                if down is not None and len(blocks_of) < len(cids):
                    failed[key] = down
                else:
                    answers[key] = blocks_of
        for key in reads:
            if key in done and (refused := use(key, done[key])) is not None:
                failed[key] = refused
        good = {cid for key, cids in requested.items() if key not in failed for cid in cids}
        for cid in list(self.fetched)[before:]:
            if cid not in good:
                del self.fetched[cid]
        return failed

    async def try_get(self, cids: Iterable[CID]) -> tuple[dict[CID, bytes], ProviderError | None]:
        """Return the available blocks, verified, and the error for which the others could not be requested
        everywhere, or None."""
        blocks: dict[CID, bytes] = {}
        missing: list[CID] = []
        every = list(cids)
        here = read_blocks(self._db, {cid.digest for cid in every if cid not in self.fetched})
        for cid in every:
            data = self.fetched.get(cid)
            if data is None:
                data = here.get(cid.digest)
            if data is None:
                missing.append(cid)
            else:
                blocks[cid] = data
        for start in range(0, len(missing), min(BATCH, MAX_BATCH)):
            more, problem = await self._fetch(missing[start : start + BATCH])
            blocks |= more
            if problem is not None:
                return blocks, problem
        return blocks, None

    async def get_tree(self, root: CID, replica: Replica) -> None:
        """Fetch and keep a whole tree in one answer, if a provider supports it: for a device that has nothing yet.

        One request replaces one per level and batch; missing blocks are requested later. A block is accepted
        if an earlier one links to it, up to WHOLE_MAX bytes per answer. Unlinked raw blocks are accepted up
        to the same number of bytes: a provider with its own layout sends our blocks after those of its
        layout. Errors are ignored.
        """
        for provider in self._providers:
            if not provider.capabilities.dag:
                continue
            expected, size, spare, stored_at = {root}, 0, 0, 0
            try:
                async for cid, data in provider.get_dag(root):
                    size += len(data)
                    if size > WHOLE_MAX or len(expected) > OWN_LIMITS.blocks:
                        break
                    if cid in expected:
                        spare += len(data)
                    elif cid.codec == RAW and len(data) <= spare:
                        spare -= len(data)
                    else:
                        continue
                    if self._take(provider, cid, data):
                        expected.update(_linked(cid, data))
                    if len(self.fetched) >= BATCH or size - stored_at > HELD_MAX:
                        stored_at = size
                        with replica.transaction():
                            self.keep()
            except (ProviderError, FormatError):
                continue
            if expected != {root}:
                return

    def _take(self, provider: Provider, cid: CID, data: bytes) -> bool:
        """Accept a block that matches its CID; record one that does not."""
        try:
            verify_block(cid, data)
        except (BlockError, LimitError) as error:
            self.refused[cid] = f"{provider.name}: {error}"
            return False
        self.refused.pop(cid, None)
        self.served.setdefault(provider.name, set()).add(cid)
        self.blocks += 1
        self.bytes += len(data)
        self.fetched[cid] = data
        return True

    async def _fetch(self, cids: list[CID]) -> tuple[dict[CID, bytes], ProviderError | None]:
        """Request missing blocks from one provider after another.

        The error of one that is down or cannot be opened matters only if something is missing in the end.
        """
        blocks: dict[CID, bytes] = {}
        failure: ProviderError | None = self._not_opened[0].error() if self._not_opened else None
        for provider in self._providers:
            missing = [cid for cid in cids if cid not in blocks]
            if not missing or not provider.capabilities.blocks:
                continue
            try:
                answer: Mapping[CID, bytes] = await provider.get_blocks(missing)
            except ProviderError as error:
                failure, answer = error, error.blocks
            for cid, data in answer.items():
                if self._take(provider, cid, data):
                    blocks[cid] = data
        return blocks, failure if len(blocks) < len(cids) else None

    def forget_since(self, count: int) -> None:
        """Drop the blocks fetched since there were `count`: they belong to a refused head."""
        for cid in list(self.fetched)[count:]:
            del self.fetched[cid]

    def keep(self) -> None:
        """Store the fetched blocks on this device (inside a transaction)."""
        self._db.add_blocks((cid.digest, data) for cid, data in self.fetched.items())
        self.fetched.clear()


def _linked(cid: CID, data: bytes) -> Iterable[CID]:
    """Return the links of a verified block; none if it is not a node."""
    if cid.codec != DAG_PB:
        return ()
    try:
        return [link.cid for link in decode_node(data).links]
    except FormatError:
        return ()
