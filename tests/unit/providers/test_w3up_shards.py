"""CAR shards and their indexes: the index locates each block, and equal blocks make equal bytes."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ipfsmem_providers.web3storage.shards import Blob, Shard, group_slices, make_index, read_index, shards

from ipfsmem.content.car import read_car
from ipfsmem.content.cid import CID, raw_cid
from ipfsmem.errors import FormatError, ProviderRefused
from ipfsmem.provider.contract import Block
from tests.support.content_lab import pb_cid

ROOT = raw_cid(bytes(32))


def block(data: bytes) -> Block:
    return raw_cid(hashlib.sha256(data).digest()), data


def fill(blocks: Iterable[Block], **most: int) -> list[tuple[bytes, Shard]]:
    async def body() -> list[tuple[bytes, Shard]]:
        found = []
        async for shard in shards(ROOT, blocks, **most):
            found.append((b"".join([piece async for piece in shard.pieces()]), shard))
        return found

    return asyncio.run(body())


@given(st.lists(st.binary(max_size=300), max_size=30), st.integers(200, 2000))
@settings(max_examples=60, deadline=None)
def test_index_locates_every_block(texts: list[bytes], most: int) -> None:
    blocks = [block(text) for text in texts]
    filled = fill(blocks, most_bytes=most)
    held: dict[CID, bytes] = {}
    for data, shard in filled:
        assert hashlib.sha256(data).digest() == shard.sha256 and len(data) == shard.size
        assert shard.size <= most or len(shard.slices) == 1
        held |= dict(read_car(data))
    assert held == dict(blocks)
    index = make_index(ROOT, {shard.sha256: shard.slices for _, shard in filled})
    found = read_index(index.car)
    assert set(found) == {shard.sha256 for _, shard in filled}
    seen = set()
    for data, shard in filled:
        for digest, offset, length in found[shard.sha256]:
            assert hashlib.sha256(data[offset : offset + length]).digest() == digest
            seen.add(digest)
    assert seen == {cid.digest for cid, _ in blocks}
    again = fill(blocks, most_bytes=most)
    assert [data for data, _ in again] == [data for data, _ in filled]


def test_shard_ends_at_a_number_of_blocks() -> None:
    blocks = [block(bytes([n])) for n in range(10)]
    assert [len(shard.slices) for _, shard in fill(blocks, most_blocks=4)] == [4, 4, 2]
    assert fill([]) == []


def test_large_blob_is_read_twice() -> None:
    async def body() -> None:
        with Blob.of(b"x" * (9 << 20)) as blob:
            for _ in range(2):
                assert b"".join([piece async for piece in blob.pieces()]) == b"x" * (9 << 20)
            assert blob.cid.codec == 0x0202 and blob.cid.digest == blob.sha256

    asyncio.run(body())


def test_text_under_two_codecs_has_two_blocks() -> None:
    data = b"\x0a\x02\x08\x01"
    digest = hashlib.sha256(data).digest()
    ((car, shard),) = fill([(raw_cid(digest), data), (pb_cid(digest), data)])
    assert dict(read_car(car)) == {raw_cid(digest): data, pb_cid(digest): data}
    assert len(shard.slices) == 1


@pytest.mark.parametrize(
    "bad",
    [
        (raw_cid(bytes(32)), b"x"),
        (CID(1, 0x55, b"\x00\x01x"), b"x"),
        (CID(1, 0x55, b"\x13\x40" + bytes(64)), b""),
    ],
)
def test_invalid_blocks_are_refused(bad: Block) -> None:
    with pytest.raises(ProviderRefused, match=str(bad[0])):
        fill([block(b"good"), bad])


def test_damaged_indexes_are_refused() -> None:
    ((_, shard),) = fill([block(bytes([n])) for n in range(3)])
    car = make_index(ROOT, {shard.sha256: shard.slices}).car
    for cut in range(0, len(car), 9):
        with pytest.raises(FormatError):
            read_index(car[:cut])
    for position in range(len(car)):  # refused or read, never another error
        damaged = bytearray(car)
        damaged[position] ^= 0xFF
        try:
            read_index(bytes(damaged))
        except FormatError:
            pass


def sizes(parts: list[tuple[int, int, bytes]]) -> list[tuple[int, int]]:
    """Return start and size of each request."""
    return [(group[0][0], max(o + n for o, n, _ in group) - group[0][0]) for group in group_slices(parts)]


def test_adjacent_slices_are_read_in_one_request() -> None:
    parts = [(9000, 10, b"c"), (0, 100, b"a"), (100, 50, b"b"), (50_000, 1, b"d"), (4000, 90, b"e")]
    assert [[name for _, _, name in group] for group in group_slices(parts)] == [
        [b"a", b"b", b"e"],
        [b"c"],
        [b"d"],
    ]
    assert group_slices([]) == []
    assert sizes([(0, 10, b"a"), (0, 10, b"a"), (9000, 10, b"b")]) == [(0, 10), (9000, 10)]


def test_mostly_wanted_shard_is_read_in_one_request() -> None:
    parts = [(n * 10_000, 5_100, b"%d" % n) for n in range(200)]
    assert sizes(parts) == [(0, 199 * 10_000 + 5_100)]
    assert len(group_slices([(at, 4_900, name) for at, _, name in parts])) > 16


@given(st.lists(st.tuples(st.integers(0, 1 << 22), st.integers(1, 5000)), min_size=1, max_size=200))
@settings(max_examples=100, deadline=None)
def test_slice_requests_are_few_and_read_little_extra(places: list[tuple[int, int]]) -> None:
    parts = [(at, size, b"%d" % number) for number, (at, size) in enumerate(places)]
    groups = group_slices(parts)
    assert sorted(part for group in groups for part in group) == sorted(parts)
    assert len(groups) <= 16 + len(parts) // 16
    spans = sizes(parts)
    assert all(start + length < after for (start, length), (after, _) in itertools.pairwise(spans))
    read = sum(length for _, length in spans)
    if len(groups) < 16 and len(groups) > 1:  # every wide gap is left out
        assert read <= sum(size for _, size in places) + 4096 * len(parts)
    if len(groups) == 1 and read > 4096 * len(parts) + sum(size for _, size in places):
        held = {byte for at, size in places for byte in range(at, at + size)}
        assert len(held) * 2 > read
