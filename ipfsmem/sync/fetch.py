"""Blocks for a pull: from this device first, then from one provider after another, each checked, each fetched once.

What arrives is held until it is worth keeping; nothing is written here.
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
#: What reads that run side by side are told apart by: a root, a prefix.
K = TypeVar("K", bound=Hashable)
#: Blocks in one request.
BATCH = 2_000
#: Bytes that are held at once of an answer, or of objects that are asked for together, before they are kept.
HELD_MAX = 64 * 1024 * 1024
#: Bytes of one answer with a whole tree that are looked at; what lies beyond is asked for as usual.
WHOLE_MAX = OWN_LIMITS.total_bytes


class Fetcher:
    """Gets blocks for one sync and remembers what it got and what was wrong."""

    def __init__(
        self, db: Database, providers: Sequence[Provider], not_opened: Sequence[NotOpened] = ()
    ) -> None:
        """`not_opened`: providers that may hold what the others lack, and that cannot be asked."""
        self._db = db
        self._providers = providers
        self._not_opened = not_opened
        #: Fetched and verified in this sync, not yet kept.
        self.fetched: dict[CID, bytes] = {}
        self.blocks = 0
        self.bytes = 0
        #: What each provider served in this sync, by its name.
        self.served: dict[str, set[CID]] = {}
        #: CIDs that the provider answered with something else, and why.
        self.refused: dict[CID, str] = {}

    async def get(self, cids: Iterable[CID]) -> Mapping[CID, bytes]:
        """Those of these blocks that can be had, verified. A wrong one is refused, noted and left out.

        Raises ProviderError when a block is missing that a provider may have which is down or cannot be opened.
        """
        found, failure = await self.try_get(cids)
        if failure is not None:
            raise failure
        return found

    async def side_by_side(
        self, reads: Mapping[K, Fetch[T]], use: Callable[[K, T], IpfsmemError | None]
    ) -> dict[K, IpfsmemError]:
        """Drive many reads at once, so that one request carries what all of them want next. Then call `use` with the outcome of
        each, in the order of `reads`; it answers the error for which an outcome is refused. Which reads failed, and why.

        A read that fails stops no other. Blocks that only failed reads fetched are dropped.
        """
        before = len(self.fetched)
        done: dict[K, T] = {}
        failed: dict[K, IpfsmemError] = {}
        asked: dict[K, set[CID]] = {key: set() for key in reads}
        answers: dict[K, Mapping[CID, bytes] | None] = dict.fromkeys(reads)
        while answers:
            wanted: dict[K, list[CID]] = {}
            for key, blocks in answers.items():
                try:
                    wanted[key] = next(reads[key]) if blocks is None else reads[key].send(blocks)
                    asked[key].update(wanted[key])
                except StopIteration as end:
                    done[key] = end.value
                except IpfsmemError as error:
                    failed[key] = error
            found, down = await self.try_get(dict.fromkeys(cid for cids in wanted.values() for cid in cids))
            answers = {}
            for key, cids in wanted.items():
                got = {cid: found[cid] for cid in cids if cid in found}
                if down is not None and len(got) < len(cids):
                    failed[key] = down
                else:
                    answers[key] = got
        for key in reads:
            if key in done and (refused := use(key, done[key])) is not None:
                failed[key] = refused
        good = {cid for key, cids in asked.items() if key not in failed for cid in cids}
        for cid in list(self.fetched)[before:]:
            if cid not in good:
                del self.fetched[cid]
        return failed

    async def try_get(self, cids: Iterable[CID]) -> tuple[dict[CID, bytes], ProviderError | None]:
        """Those of these blocks that can be had, verified, and why the others could not be asked for everywhere (None: they were)."""
        found: dict[CID, bytes] = {}
        missing: list[CID] = []
        wanted = list(cids)
        here = read_blocks(self._db, {cid.digest for cid in wanted if cid not in self.fetched})
        for cid in wanted:
            data = self.fetched.get(cid)
            if data is None:
                data = here.get(cid.digest)
            if data is None:
                missing.append(cid)
            else:
                found[cid] = data
        for start in range(0, len(missing), min(BATCH, MAX_BATCH)):
            more, problem = await self._fetch(missing[start : start + BATCH])
            found |= more
            if problem is not None:
                return found, problem
        return found, None

    async def get_tree(self, root: CID, replica: Replica) -> None:
        """Fetch a whole tree in one answer, where a provider gives that, and keep it: for a device that has nothing yet.

        That is one request instead of one for each level and batch; what is missing afterwards is asked for as usual. A block is
        taken when one before it links to it, up to WHOLE_MAX bytes in an answer. Raw blocks that nothing links to are taken too, as
        many bytes as the others have: a provider with a layout of its own sends our blocks behind those of its layout. Errors are
        passed over.
        """
        for provider in self._providers:
            if not provider.capabilities.dag:
                continue
            wanted, size, spare, stored_at = {root}, 0, 0, 0
            try:
                async for cid, data in provider.get_dag(root):
                    size += len(data)
                    if size > WHOLE_MAX or len(wanted) > OWN_LIMITS.blocks:
                        break
                    if cid in wanted:
                        spare += len(data)
                    elif cid.codec == RAW and len(data) <= spare:
                        spare -= len(data)
                    else:
                        continue
                    if self._take(provider, cid, data):
                        wanted.update(_linked(cid, data))
                    if len(self.fetched) >= BATCH or size - stored_at > HELD_MAX:
                        stored_at = size
                        with replica.transaction():
                            self.keep()
            except (ProviderError, FormatError):
                continue
            if wanted != {root}:
                return

    def _take(self, provider: Provider, cid: CID, data: bytes) -> bool:
        """Take a block that is what its CID says; note one that is not."""
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

    async def _fetch(self, wanted: list[CID]) -> tuple[dict[CID, bytes], ProviderError | None]:
        """Ask one provider after another for what is still missing. The error of one that is down, or that cannot be opened,
        counts only when something is missing in the end."""
        found: dict[CID, bytes] = {}
        failure: ProviderError | None = self._not_opened[0].error() if self._not_opened else None
        for provider in self._providers:
            left = [cid for cid in wanted if cid not in found]
            if not left or not provider.capabilities.blocks:
                continue
            try:
                answer: Mapping[CID, bytes] = await provider.get_blocks(left)
            except ProviderError as error:
                failure, answer = error, error.blocks
            for cid, data in answer.items():
                if self._take(provider, cid, data):
                    found[cid] = data
        return found, failure if len(found) < len(wanted) else None

    def forget_since(self, count: int) -> None:
        """Drop what was fetched since there were `count` blocks: it belongs to a head that was refused."""
        for cid in list(self.fetched)[count:]:
            del self.fetched[cid]

    def keep(self) -> None:
        """Put what was fetched among this device's blocks (inside a transaction) and let go of it."""
        self._db.add_blocks((cid.digest, data) for cid, data in self.fetched.items())
        self.fetched.clear()


def _linked(cid: CID, data: bytes) -> Iterable[CID]:
    """The blocks that a verified one links to; none where it is no node."""
    if cid.codec != DAG_PB:
        return ()
    try:
        return [link.cid for link in decode_node(data).links]
    except FormatError:
        return ()
