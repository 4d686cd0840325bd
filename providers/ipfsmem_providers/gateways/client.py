"""One trustless gateway: raw blocks, CARs of trees, and IPNS records, each checked before use.

Speaks the trustless gateway protocol (specs.ipfs.tech/http-gateways/trustless-gateway) and counts the
gateway's failures. provider.py chooses the gateway.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from ipfsmem.content.car import CarParser
from ipfsmem.content.cid import CID, DAG_PB, IDENTITY
from ipfsmem.content.dagpb import decode_node
from ipfsmem.content.limits import BLOCK_MAX, OWN_LIMITS, Limits
from ipfsmem.content.verify import verify_block
from ipfsmem.errors import BlockError, FormatError, LimitError, ProviderError, ProviderRefused
from ipfsmem.provider.contract import UNREAD_HEADER, Block
from ipfsmem.published import ipns_record
from ipfsmem_providers.http.client import Http
from ipfsmem_providers.routing.answers import RECORD_TYPE, STATUSES, record_in

RAW_TYPE: Final = "application/vnd.ipld.raw"
CAR_TYPE: Final = "application/vnd.ipld.car"
#: Statuses of a gateway that does not have a block or refuses to serve it. 504 is "not found in time".
ABSENT: Final = frozenset((404, 410, 412, 451, 504))
_REDIRECTS: Final = 3
#: A gateway is asked last from this many failures on (halved by each success), or this many missing blocks in a row.
_SHAKY: Final = 2.0
_EMPTY: Final = 20
#: Blocks and bytes of a CAR outside the tree that was asked for, after which the CAR is refused.
_STRAY_BLOCKS: Final = 10_000
_STRAY_BYTES: Final = 16 * 1024 * 1024


class GatewayClient:
    """One gateway, with a count of its failures."""

    def __init__(self, http: Http, url: str) -> None:
        """`url` up to, and without, `/ipfs/...`."""
        self.url = base_of(url)
        self._http = http
        self.trouble = 0.0  #: failures, halved by each success
        self.unread: set[str] = (
            set()
        )  #: names of which an `ipfsmem serve peer` holds something that it cannot read
        self.lacking = 0  #: missing blocks since the last success

    @property
    def is_shaky(self) -> bool:
        """Return whether to ask others first."""
        return self.trouble >= _SHAKY or self.lacking >= _EMPTY

    async def block(self, cid: CID, *, absent: frozenset[int] = ABSENT) -> bytes | None:
        """Return the checked block; None for one of the statuses `absent`. ProviderRefused for other bytes."""
        if cid.hash_code == IDENTITY:
            return cid.digest
        try:
            answer = await self._http.request(
                "GET", f"{self.url}/ipfs/{cid}?format=raw", headers={"Accept": RAW_TYPE}, allow=absent,
                max_bytes=BLOCK_MAX, redirects=_REDIRECTS, what="get a block",
            )  # fmt: skip
            if answer.status in absent:
                self.lacking += 1
                return None
            verify_block(cid, answer.body)
        except (BlockError, LimitError) as error:
            raise self._bad(ProviderRefused(f"{self.url} answered other bytes: {error}")) from None
        except ProviderError as error:
            raise self._bad(error) from None
        self._good()
        return answer.body

    async def dag(
        self, root: CID, *, limits: Limits = OWN_LIMITS, known: set[CID] | None = None
    ) -> AsyncIterator[Block]:
        """Yield the checked blocks of a tree, parents before children, each once; none when the gateway lacks the tree.

        Left out are blocks without a link from an earlier block, and those in `known`, to which the others
        are added. The CAR may end early without an error: compare with the tree. Raises ProviderRefused for
        an answer that is not a CAR of this tree or exceeds `limits`, ProviderUnavailable when it breaks off.
        """
        parser = CarParser(limits)
        try:
            async with self._http.stream(
                "GET", f"{self.url}/ipfs/{root}?format=car&dag-scope=all&car-order=dfs&car-dups=n",
                headers={"Accept": f"{CAR_TYPE}; version=1; order=dfs; dups=n"}, allow=ABSENT,
                max_bytes=2 * limits.total_bytes + 128 * limits.blocks, redirects=_REDIRECTS, what="get a tree",
            ) as answer:  # fmt: skip
                if answer.status in ABSENT:
                    return
                tree = _Tree(root, known if known is not None else set())
                async for piece in answer:
                    for cid, data in parser.feed(piece):
                        if tree.takes(cid, data):
                            yield cid, data
                parser.close()
        except (FormatError, LimitError, BlockError) as error:
            bad = self._bad(ProviderRefused(f"{self.url} answered a bad CAR for {root}: {error}"))
            if parser.roots is not None and not parser.blocks and not isinstance(error, LimitError):
                return  # boxo sends 200 and a header before it notices that it lacks the root, then an error as text
            raise bad from None
        except ProviderError as error:
            raise self._bad(error) from None
        self._good()

    async def record(self, name: str, *, ours: bool = False) -> bytes | None:
        """Return the gateway's IPNS record of a name, bounded but not checked; None when it reports none.

        `ours`: the server is `ipfsmem serve peer`.
        """
        answer = await self._http.request(
            "GET", f"{self.url}/ipns/{name}?format=ipns-record", headers={"Accept": RECORD_TYPE},
            allow=STATUSES, max_bytes=ipns_record.MAX_RECORD, redirects=_REDIRECTS, what="get a name",
        )  # fmt: skip
        if ours and answer.headers.get(UNREAD_HEADER):
            self.unread.add(name)
        else:
            self.unread.discard(name)
        return record_in(answer, self._http, ours=ours)

    def _good(self) -> None:
        self.trouble *= 0.5
        self.lacking = 0

    def _bad(self, error: ProviderError) -> ProviderError:
        self.trouble += 1.0
        return error


class _Tree:
    """Decides which blocks of a CAR belong to the requested tree, and bounds the others."""

    def __init__(self, root: CID, known: set[CID]) -> None:
        self._wanted = {root}
        self._known = known
        self._strays = 0
        self._stray_bytes = 0

    def takes(self, cid: CID, data: bytes) -> bool:
        if cid not in self._wanted:
            self._strays += 1
            self._stray_bytes += len(data)
            if self._strays > _STRAY_BLOCKS or self._stray_bytes > _STRAY_BYTES:
                raise LimitError("it is full of blocks that were not asked for")
            return False
        self._wanted.discard(cid)  # a second copy is a stray
        if cid.codec == DAG_PB:
            self._wanted.update(link.cid for link in decode_node(data).links)
        if cid in self._known:
            return False
        self._known.add(cid)
        return True


def base_of(url: str) -> str:
    """Return a gateway's URL without slashes or `/ipfs` at its end."""
    return url.strip().rstrip("/").removesuffix("/ipfs").rstrip("/")
