"""What is in a space: which block lies where in which shard, read from the indexes, and which shards a tree needs.

Indexes are read once and remembered while the provider is open. What is remembered of a shard counts only while the
upload list names it. Everything read is checked by its hash. Nothing here changes the space.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from ipfsmem.content.cid import CID, DAG_PB, RAW
from ipfsmem.content.dagpb import decode_node
from ipfsmem.errors import FormatError
from ipfsmem_providers.w3up_blobs import Blobs, together
from ipfsmem_providers.w3up_shards import INDEX_BYTES, Position, read_index
from ipfsmem_providers.w3up_uploads import Upload

_SHA256: Final = b"\x12\x20"
_BATCH: Final = 2_000
#: Nodes of one tree that are walked to find its shards.
_WALK: Final = 1_000_000


class Contents:
    """Where the blocks of a space lie."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs
        self._positions: dict[bytes, tuple[Position, ...]] = {}
        self._shards: set[bytes] = set()  #: whose blocks are in `_positions`
        self._listed: set[bytes] = set()
        self._indexes: dict[bytes, frozenset[bytes]] = {}  #: index -> the shards that it speaks of
        self._children: dict[CID, tuple[CID, ...]] = {}
        self._lock = asyncio.Lock()

    async def update(self, uploads: Iterable[Upload]) -> None:
        """Read the indexes that are new in the upload list."""
        uploads = list(uploads)
        self._listed = {digest for upload in uploads if not upload.is_index for digest in upload.shards}
        wanted = [next(iter(upload.shards)) for upload in uploads if upload.is_index]
        async with self._lock:
            missing = [digest for digest in dict.fromkeys(wanted) if digest not in self._indexes]
            if missing:
                await self._blobs.locate(missing)
                await together(self._read(digest) for digest in missing)

    async def _read(self, digest: bytes) -> None:
        data = await self._blobs.whole(digest, INDEX_BYTES)
        if data is None:  # perhaps later
            return
        try:
            found = read_index(data)
        except FormatError:  # an upload of somebody else's that only looked like an index
            found = {}
        self._indexes[digest] = frozenset(found)
        for shard, slices in found.items():
            self._add(shard, slices)

    def learn(self, sent: Mapping[bytes, Mapping[bytes, tuple[int, int]]]) -> None:
        """Remember shards that were just stored and listed."""
        for shard, slices in sent.items():
            self._listed.add(shard)
            self._add(shard, ((multihash[2:], *place) for multihash, place in slices.items()))

    def _add(self, shard: bytes, slices: Iterable[tuple[bytes, int, int]]) -> None:
        if shard in self._shards:
            return
        self._shards.add(shard)
        for digest, offset, length in slices:
            self._positions[digest] = (*self._positions.get(digest, ()), Position(shard, offset, length))

    def forget(self, shards: Collection[bytes]) -> None:
        """Shards that are gone."""
        self._listed -= set(shards)

    def about(self, index: Upload) -> frozenset[bytes]:
        """The shards that an index speaks of; none when it was not read or is no index."""
        return self._indexes.get(next(iter(index.shards)), frozenset())

    def find(self, cid: CID) -> list[Position]:
        """Where a block lies, in shards that are listed."""
        if cid.multihash[:2] != _SHA256:
            return []
        return [place for place in self._positions.get(cid.multihash[2:], ()) if place.shard in self._listed]

    async def blocks(self, cids: Sequence[CID]) -> dict[CID, bytes]:
        """Blocks out of their shards; one that cannot be read in one shard is sought in the next."""
        found: dict[bytes, bytes] = {}
        places = {cid.digest: self.find(cid) for cid in cids}
        places = {digest: known for digest, known in places.items() if known}
        turn = 0
        while True:
            by_shard: dict[bytes, list[tuple[int, int, bytes]]] = {}
            for digest, known in places.items():
                if digest not in found and turn < len(known):
                    place = known[turn]
                    by_shard.setdefault(place.shard, []).append((place.offset, place.length, digest))
            if not by_shard:
                break
            await self._blobs.locate(list(by_shard))
            for part in await together(self._blobs.read(shard, slices) for shard, slices in by_shard.items()):
                found |= part
            turn += 1
        return {
            cid: found[cid.digest] for cid in cids if cid.multihash[:2] == _SHA256 and cid.digest in found
        }

    async def shards_of(self, root: CID) -> set[bytes] | None:
        """The shards that a tree needs, one for each block; None when a block of it is not to be found."""
        needed: set[bytes] = set()
        seen: set[CID] = {root}
        front = [root]
        while front:
            for cid in front:
                places = self.find(cid)
                if not places or len(seen) > _WALK:
                    return None
                # The same choice on every device: two that collect at once must not each keep the other's copy.
                needed.add(min(place.shard for place in places))
            nodes = [cid for cid in front if cid.codec != RAW]
            if any(cid.codec != DAG_PB for cid in nodes):
                return None
            following: dict[CID, None] = {}
            for start in range(0, len(nodes), _BATCH):
                batch = nodes[start : start + _BATCH]
                if not await self._open(batch):
                    return None
                for cid in batch:
                    following |= dict.fromkeys(self._children[cid])
            front = [cid for cid in following if cid not in seen]
            seen |= following.keys()
        return needed

    async def _open(self, nodes: Sequence[CID]) -> bool:
        """Read what nodes link to; whether all could be read."""
        missing = [cid for cid in nodes if cid not in self._children]
        read = await self.blocks(missing) if missing else {}
        for cid, data in read.items():
            try:
                self._children[cid] = tuple(link.cid for link in decode_node(data).links)
            except FormatError:
                return False
        return len(read) == len(missing)
