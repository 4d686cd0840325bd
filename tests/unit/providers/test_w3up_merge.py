"""Merging small shards: the merged shard has the reachable blocks of the tree in an order that one pass can read."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st
from ipfsmem_providers.web3storage.contents import Contents
from ipfsmem_providers.web3storage.merge import MergePlan, plan_merge, with_merged_blocks
from ipfsmem_providers.web3storage.shards import Shard, read_shard, shard_cid
from ipfsmem_providers.web3storage.uploads import IndexKind, Upload, mark_of

from ipfsmem.content.cid import CID, raw_cid
from ipfsmem.content.dagpb import decode_node
from ipfsmem.content.tree import BuiltTree, build_tree
from ipfsmem.provider.contract import Block


def shard(root: CID, blocks: Sequence[Block]) -> bytes:
    async def body() -> bytes:
        with Shard(root) as made:
            for cid, data in blocks:
                made.add(cid, data)
            return b"".join([piece async for piece in made.pieces()])

    return asyncio.run(body())


def tree(texts: Sequence[int]) -> BuiltTree:
    return build_tree({f"o/{number % 4}/{number}.md": b"%d" % text for number, text in enumerate(texts)})


@given(st.lists(st.lists(st.integers(0, 3), min_size=6, max_size=6), min_size=2, max_size=6), st.data())
@settings(max_examples=60, deadline=None)
def test_merge_has_exactly_the_blocks_of_the_tree(history: list[list[int]], data: st.DataObject) -> None:
    trees = [tree(texts) for texts in history]
    stored: set[CID] = set()
    shards: list[bytes] = []
    for made in trees[:-1]:
        shards.append(shard(made.cid, [item for item in made.blocks if item[0] not in stored]))
        stored |= {cid for cid, _ in made.blocks}
    small = data.draw(st.lists(st.sampled_from(shards), unique=True))
    last = trees[-1]
    new = [item for item in reversed(last.blocks) if item[0] not in stored]
    got = list(with_merged_blocks(last.cid, iter(new), small))
    assert got[: len(new)] == new
    carried = dict(got[len(new) :])
    inside = {cid for one in small for cid, _, _ in read_shard(one)}
    # What is needed, lies in a small shard, and hangs below the root through new and small ones only.
    reached, front = set(), [last.cid]
    everything = dict(last.blocks)
    while front:
        cid = front.pop()
        if cid in reached or cid not in inside | {one for one, _ in new}:
            continue
        reached.add(cid)
        if cid.codec == 0x70:
            front += [link.cid for link in decode_node(everything[cid]).links]
    assert set(carried) == reached - {cid for cid, _ in new}
    assert all(everything[cid] == block for cid, block in carried.items())
    seen = {last.cid}
    for cid, block in [item for item in got if item[0] in reached]:
        assert cid in seen
        if cid.codec == 0x70:
            seen |= {link.cid for link in decode_node(block).links}


def test_wrong_blocks_are_not_merged() -> None:
    made = tree([1, 2, 3])
    whole = shard(made.cid, made.blocks)
    leaf = next(cid for cid, _ in made.blocks if cid.codec == 0x55)
    at = next(offset for cid, offset, _ in read_shard(whole) if cid == leaf)
    damaged = bytearray(whole)
    damaged[at] ^= 1
    assert set(dict(with_merged_blocks(made.cid, [], [bytes(damaged)]))) == {
        cid for cid, _ in made.blocks
    } - {leaf}
    assert dict(with_merged_blocks(made.cid, [], [whole])) == dict(made.blocks)


class StoredBlobs:
    """Blobs in memory; counts reads."""

    def __init__(self, blobs: Mapping[bytes, bytes]) -> None:
        self.held = dict(blobs)
        self.reads: list[bytes] = []

    async def locate(self, digests: Sequence[bytes]) -> dict[bytes, str]:
        return dict.fromkeys(digests, "here")

    async def whole(self, digest: bytes, most: int) -> bytes | None:
        self.reads.append(digest)
        return self.held.get(digest)


def listed(count: int) -> tuple[StoredBlobs, dict[CID, Upload], list[bytes]]:
    """A space with `count` small shards, each with a root and an index."""
    known: dict[CID, Upload] = {}
    blobs: dict[bytes, bytes] = {}
    digests = []
    for number in range(count):
        data = b"block %d" % number
        cid = raw_cid(hashlib.sha256(data).digest())
        car = shard(cid, [(cid, data)])
        digest = hashlib.sha256(car).digest()
        blobs[digest] = car
        digests.append(digest)
        known[cid] = Upload(
            cid, frozenset([digest]), frozenset([shard_cid(bytes(32))]), frozenset(), number, ""
        )
        root = CID(1, 0x71, b"\x12\x20" + hashlib.sha256(b"index %d" % number).digest())
        index = hashlib.sha256(b"blob %d" % number).digest()
        known[root] = Upload(
            root, frozenset([index]), frozenset(), frozenset(), number, "", IndexKind.SMALL, digest
        )
    return StoredBlobs(blobs), known, digests


def planned(stored: StoredBlobs, known: Mapping[CID, Upload], most: int) -> MergePlan | None:
    return asyncio.run(plan_merge(Contents(stored), known, most))  # type: ignore[arg-type]


def test_few_small_shards_are_left_and_not_read() -> None:
    stored, known, _ = listed(5)
    assert planned(stored, known, 5) is None and stored.reads == []


def test_many_small_shards_are_read_once_each() -> None:
    stored, known, digests = listed(6)
    merge = planned(stored, known, 5)
    assert merge is not None and set(merge.small) == set(merge.slices) == set(digests)
    assert sorted(stored.reads) == sorted(digests)
    assert {item.root for item in merge.replaced} == {root for root in known if root.codec == 0x71}
    assert [len(slices) for slices in merge.slices.values()] == [1] * 6


def test_unreadable_shard_keeps_its_index() -> None:
    stored, known, digests = listed(6)
    del stored.held[digests[2]]
    stored.held[digests[3]] = b"\x05nonsense"
    merge = planned(stored, known, 5)
    assert merge is not None and set(merge.small) == set(digests) - set(digests[2:4])
    assert {item.small for item in merge.replaced} == set(merge.small)


def test_index_of_an_unlisted_shard_is_not_merged() -> None:
    stored, known, digests = listed(6)
    known = {root: item for root, item in known.items() if item.is_index or item.shards != {digests[0]}}
    assert planned(stored, known, 5) is None


def test_mark_is_a_small_car_and_not_a_name() -> None:
    mark = mark_of(IndexKind.SMALL, bytes(range(32)))
    assert mark.codec == 0x0202 and mark.hash_code == 0 and len(mark.digest) <= 96
    assert len({mark_of(kind) for kind in IndexKind}) == 3
