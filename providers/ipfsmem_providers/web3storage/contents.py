"""The contents of a space: the shard of each block, and the shards that a tree needs.

Indexes are read once and cached while the provider is open, and only as many as a search needs; instead of a
small shard's index the shard itself is read. A shard's data is valid only while the upload list names it.
Everything read is checked by hash. Nothing here changes the space.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence
from typing import Final

from ipfsmem.content.cid import CID, DAG_PB, RAW
from ipfsmem.content.dagpb import decode_node
from ipfsmem.errors import FormatError, ProviderRefused
from ipfsmem.provider.contract import Block
from ipfsmem_providers.http.concurrency import together
from ipfsmem_providers.http.per_loop import PerLoop
from ipfsmem_providers.web3storage.blobs import Blobs
from ipfsmem_providers.web3storage.shards import (
    INDEX_BYTES,
    SMALL_BYTES,
    Position,
    Slice,
    read_index,
    read_shard,
)
from ipfsmem_providers.web3storage.uploads import IndexKind, Upload

_SHA256: Final = b"\x12\x20"
_BATCH: Final = 2_000
#: Maximum number of nodes walked in one tree to find its shards.
_WALK: Final = 1_000_000
#: Maximum bytes of small shards kept in memory.
_HELD: Final = 16 * SMALL_BYTES
#: Number of indexes that a search reads first, unless one belongs to a wanted root; then twice as many, and so on.
_WAVE: Final = 4


class Contents:
    """The locations of a space's blocks."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs
        self._positions: dict[bytes, tuple[Position, ...]] = {}  #: best shard first
        self._counts: dict[bytes, int] = {}  #: number of blocks of each known shard
        self._ends: dict[bytes, int] = {}  #: bytes of each known shard up to its last block
        self._listed: set[bytes] = set()
        self._sources: list[Upload] = []
        self._roots: dict[CID, int] = {}  #: listed roots, and when they were listed (ms)
        self._indexes: dict[bytes, frozenset[bytes]] = {}  #: digest of an index -> its shards
        self._children: dict[CID, tuple[CID, ...]] = {}
        self._held: dict[bytes, bytes] = {}  #: small shards
        self._lock = PerLoop(asyncio.Lock)

    # -- learning --------------------------------------------------------------------------------------------------

    def set_uploads(self, uploads: Iterable[Upload]) -> None:
        """Take over the upload list. Requests nothing."""
        uploads = list(uploads)
        self._listed = {digest for upload in uploads if not upload.is_index for digest in upload.shards}
        self._sources = [upload for upload in uploads if upload.is_index]
        self._roots = {upload.root: upload.created for upload in uploads if upload.is_pin}

    async def read_all_indexes(self, uploads: Iterable[Upload]) -> None:
        """Take over the upload list, and read all its indexes that were not read yet."""
        self.set_uploads(uploads)
        async with self._lock():
            await self._learn(self._unread())

    async def search(self, cids: Collection[CID]) -> bool:
        """Read indexes until each of `cids` is found, or none is left. Returns whether all were found.

        The index that was listed with a root that is sought is read first, then the newest; those of merged shards last.
        """
        async with self._lock():
            unread = None
            wave = 1 if any(cid in self._roots for cid in cids) else _WAVE
            while any(not self.positions(cid) for cid in cids):
                if unread is None:
                    unread = self._ordered(cids)
                if not unread:
                    return False
                batch, unread = unread[:wave], unread[wave:]
                wave *= 2
                await self._learn(batch)
        return True

    async def read_indexes(self, sources: Iterable[Upload]) -> None:
        """Read those of these indexes (or their small shards) that were not read yet."""
        async with self._lock():
            await self._learn([item for item in sources if not self._is_read(item)])

    def _unread(self) -> list[Upload]:
        return [item for item in self._sources if not self._is_read(item)]

    def _is_read(self, source: Upload) -> bool:
        if source.small:
            return source.small in self._counts or source.small not in self._listed
        return source.index in self._indexes

    def _ordered(self, cids: Collection[CID]) -> list[Upload]:
        times = [self._roots[cid] for cid in cids if cid in self._roots and not self.positions(cid)]

        def order(item: Upload) -> tuple[bool, bool, int]:
            # The index of a root is listed just before it.
            before = [time - item.created for time in times if item.created <= time]
            near = min(before) if before else -item.created
            return item.kind is IndexKind.MERGED, bool(times) and not before, near

        return sorted(self._unread(), key=order)

    async def _learn(self, sources: Sequence[Upload]) -> None:
        if sources:
            await self._blobs.locate([item.small or item.index for item in sources])
            await together(self._learn_one(item) for item in sources)

    async def _learn_one(self, source: Upload) -> None:
        if source.small and await self._learn_small(source.small):
            return
        data = await self._blobs.whole(source.index, INDEX_BYTES)
        if data is None:  # another attempt may succeed
            return
        try:
            slices_of = read_index(data)
        except FormatError:  # an upload of another program that only looked like an index
            slices_of = {}
        self._indexes[source.index] = frozenset(slices_of)
        for shard, slices in slices_of.items():
            self._add(shard, slices)

    async def _learn_small(self, shard: bytes) -> bool:
        """Read a small shard, which costs as much as its index and brings the blocks too; tell whether that
        was possible."""
        try:
            data = await self._blobs.whole(shard, SMALL_BYTES)
            places = read_shard(data) if data is not None else []
        except (
            FormatError,
            ProviderRefused,
        ):  # marked as small though it is large or no shard; its index may do
            return False
        if data is None:
            return False
        self._hold(shard, data)
        first: dict[bytes, tuple[int, int]] = {}
        for cid, at, size in places:
            if cid.multihash[:2] == _SHA256:
                first.setdefault(cid.digest, (at, size))
        self._add(shard, [(digest, *place) for digest, place in first.items()])
        return True

    def _hold(self, shard: bytes, data: bytes) -> None:
        self._held[shard] = data
        room = _HELD - sum(map(len, self._held.values()))
        while room < 0:
            oldest = next(iter(self._held))
            room += len(self._held.pop(oldest))

    def add_shards(self, shards: Mapping[bytes, Mapping[bytes, tuple[int, int]]]) -> None:
        """Add shards that were just stored and listed."""
        for shard, slices in shards.items():
            self._listed.add(shard)
            self._add(shard, [(multihash[2:], *place) for multihash, place in slices.items()])

    def _add(self, shard: bytes, slices: Sequence[tuple[bytes, int, int]]) -> None:
        if shard in self._counts:
            return
        self._counts[shard] = len(slices)
        self._ends[shard] = max((offset + length for _, offset, length in slices), default=0)
        for digest, offset, length in slices:
            places = (*self._positions.get(digest, ()), Position(shard, offset, length))
            self._positions[digest] = tuple(sorted(places, key=self._rank)) if len(places) > 1 else places

    def _rank(self, place: Position) -> tuple[int, bytes]:
        """Sort fuller shards first, equally on every device: two concurrent collections must not each remove
        the copy that the other keeps."""
        return -self._counts[place.shard], place.shard

    def forget_shards(self, shards: Collection[bytes]) -> None:
        """Note that shards were removed."""
        self._listed -= set(shards)

    def shards_of_index(self, index: Upload) -> frozenset[bytes]:
        """Return the shards of an index; empty when it was not read or is not an index."""
        return frozenset((index.small,)) if index.small else self._indexes.get(index.index, frozenset())

    async def load_small(self, shards: Iterable[bytes]) -> None:
        """Read small shards into memory, as far as readable and within the limit."""
        missing = [shard for shard in shards if shard not in self._held]
        async with self._lock():
            if missing:
                await self._blobs.locate(missing)
                await together(self._learn_small(shard) for shard in missing)

    def small_shard(self, shard: bytes) -> bytes | None:
        """Return the bytes of a small shard in memory."""
        return self._held.get(shard)

    # -- finding ---------------------------------------------------------------------------------------------------

    def positions(self, cid: CID) -> list[Position]:
        """Return a block's positions in listed shards, the best shard first."""
        if cid.multihash[:2] != _SHA256:
            return []
        return [place for place in self._positions.get(cid.multihash[2:], ()) if place.shard in self._listed]

    async def blocks(self, cids: Sequence[CID]) -> dict[CID, bytes]:
        """Return checked blocks from their shards; one that cannot be read from one shard is read from the next."""
        places = {cid.digest: self.positions(cid) for cid in cids}
        data_of: dict[bytes, bytes] = {}
        for digest, candidates in places.items():
            data = next(
                (data for place in candidates if (data := self._here(place, digest)) is not None), None
            )
            if data is not None:
                data_of[digest] = data
        turn = 0
        while True:
            by_shard: dict[bytes, list[Slice]] = {}
            for digest, candidates in places.items():
                if digest not in data_of and turn < len(candidates):
                    place = candidates[turn]
                    by_shard.setdefault(place.shard, []).append((place.offset, place.length, digest))
            if not by_shard:
                break
            await self._blobs.locate(list(by_shard))
            for part in await together(self._blobs.read(shard, slices) for shard, slices in by_shard.items()):
                data_of |= part
            turn += 1
        return {
            cid: data_of[cid.digest] for cid in cids if cid.multihash[:2] == _SHA256 and cid.digest in data_of
        }

    def _here(self, place: Position, digest: bytes) -> bytes | None:
        shard = self._held.get(place.shard)
        if shard is None:
            return None
        data = shard[place.offset : place.offset + place.length]
        return data if hashlib.sha256(data).digest() == digest else None

    async def tree(self, root: CID) -> AsyncGenerator[Block, None]:
        """Yield the checked blocks of a tree, parents first, as far as they can be found.

        Each shard is read once, the small ones first: they are newer, and older blocks are linked from them.
        Our publishes store parents before children, so one pass over a shard finds all blocks that are
        reached through it; of shards in another order, some blocks are kept until a parent links to them.
        """
        missing: dict[bytes, list[CID]] = {root.digest: [root]}
        seen = {root}
        spare: dict[bytes, bytes] = {}
        room = _HELD
        passed: set[bytes] = set()
        failed: set[bytes] = set()
        more = True
        while missing:
            ready = [(digest, spare[digest]) for digest in missing if digest in spare]
            if ready:
                shard, parts = None, _each(ready)
            else:
                more = more and await self.search([cid for cids in missing.values() for cid in cids])
                shard, slices = self._next(missing, failed)
                if shard is None:
                    return
                # Most of what is below a directory is next to it in its shard.
                folders = any(cid.codec != RAW for _, _, digest in slices for cid in missing[digest])
                whole = shard not in passed and (
                    folders or sum(length for _, length, _ in slices) * 2 > self._ends[shard]
                )
                passed.add(shard)
                failed.add(shard)
                parts = self._pass(shard, slices, whole)
            async with contextlib.aclosing(parts):
                async for digest, data in parts:
                    if digest not in missing:
                        if room > len(data) and shard is not None and digest not in spare:
                            spare[digest] = data
                            room -= len(data)
                        continue
                    if digest in spare:
                        room += len(spare.pop(digest))
                    if hashlib.sha256(data).digest() != digest:
                        continue
                    if shard is not None:
                        failed.discard(shard)
                    for cid in missing.pop(digest):
                        yield cid, data
                        for child in links_of(cid, data):
                            if child not in seen:
                                seen.add(child)
                                missing.setdefault(child.digest, []).append(child)
                    if not missing:
                        return

    def _next(
        self, missing: Mapping[bytes, Sequence[CID]], failed: Collection[bytes]
    ) -> tuple[bytes | None, list[Slice]]:
        """Return the shard to read next, and its wanted parts."""
        slices_of: dict[bytes, list[Slice]] = {}
        for digest, cids in missing.items():
            places = [place for place in self.positions(cids[0]) if place.shard not in failed]
            if places:
                place = next((place for place in places if place.shard in self._held), places[0])
                slices_of.setdefault(place.shard, []).append((place.offset, place.length, digest))
        shard = min(slices_of, key=lambda one: (one not in self._held, self._ends[one]), default=None)
        return shard, slices_of[shard] if shard is not None else []

    async def _pass(
        self, shard: bytes, slices: Sequence[Slice], whole: bool
    ) -> AsyncGenerator[tuple[bytes, bytes], None]:
        data = self._held.get(shard)
        if data is not None:
            for cid, offset, length in read_shard(data):
                yield cid.digest, data[offset : offset + length]
        elif whole:
            start = min(slices)[0]
            every = [
                (place.offset, place.length, digest)
                for digest, places in self._positions.items()
                for place in places
                if place.shard == shard and place.offset >= start
            ]
            async with contextlib.aclosing(self._blobs.stream(shard, every)) as parts:
                async for part in parts:
                    yield part
        else:
            for part in (await self._blobs.read(shard, slices)).items():
                yield part

    # -- walking ---------------------------------------------------------------------------------------------------

    async def shards_of(self, root: CID) -> set[bytes] | None:
        """Return the shards that a tree needs, one for each block; None when a block cannot be found."""
        needed: set[bytes] = set()
        seen: set[CID] = {root}
        front = [root]
        while front:
            for cid in front:
                places = self.positions(cid)
                if not places or len(seen) > _WALK:
                    return None
                needed.add(places[0].shard)
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
        """Read the links of nodes. Returns whether all could be read."""
        missing = [cid for cid in nodes if cid not in self._children]
        read = await self.blocks(missing) if missing else {}
        for cid, data in read.items():
            try:
                self._children[cid] = tuple(link.cid for link in decode_node(data).links)
            except FormatError:
                return False
        return len(read) == len(missing)


async def _each(parts: Iterable[tuple[bytes, bytes]]) -> AsyncGenerator[tuple[bytes, bytes], None]:
    for part in parts:
        yield part


def links_of(cid: CID, data: bytes) -> tuple[CID, ...]:
    """Return the links of a block; empty when it is not a directory or is unreadable."""
    if cid.codec != DAG_PB:
        return ()
    try:
        return tuple(link.cid for link in decode_node(data).links)
    except FormatError:
        return ()
