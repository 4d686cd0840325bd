"""CAR files: the shared vectors, streaming byte by byte, limits."""

from __future__ import annotations

import io
import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.content.car import ONE_ROOT_HEADER, CarParser, car_bytes, header, read_car, section, write_car
from ipfsmem.content.cid import CID, parse_cid, raw_cid
from ipfsmem.content.limits import BLOCK_MAX, Limits
from ipfsmem.content.tree import build_tree
from ipfsmem.content.unixfs import file_bytes
from ipfsmem.errors import BlockError, FormatError, LimitError
from tests.interop import trees

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[3] / "fixtures" / "vectors" / "cars.json").read_text("utf-8")
)


def blocks_of(vector: dict[str, Any]) -> list[tuple[CID, bytes]]:
    return [(parse_cid(cid), bytes.fromhex(data)) for cid, data in vector["blocks"]]


@pytest.mark.parametrize("vector", VECTORS["valid"], ids=lambda vector: vector["about"])
def test_car_is_read_as_in_the_vectors(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["car"])
    for source in (data, memoryview(data), io.BytesIO(data)):
        car = read_car(source)
        assert [str(root) for root in car.roots] == vector["roots"]
        assert list(car) == blocks_of(vector)


@pytest.mark.parametrize("vector", VECTORS["valid"], ids=lambda vector: vector["about"])
def test_car_is_read_byte_by_byte(vector: dict[str, Any]) -> None:
    parser = CarParser()
    found = []
    for byte in bytes.fromhex(vector["car"]):
        found += parser.feed(bytes((byte,)))
    parser.close()
    assert found == blocks_of(vector)


def test_car_is_written_as_in_the_vectors() -> None:
    vector = VECTORS["valid"][0]
    roots = [parse_cid(root) for root in vector["roots"]]
    assert car_bytes(roots, blocks_of(vector)).hex() == vector["car"]
    out = io.BytesIO()
    twice = blocks_of(vector) * 2
    assert write_car(out, roots, twice) == len(vector["car"]) // 2
    assert out.getvalue().hex() == vector["car"], "each block once"


@pytest.mark.parametrize("vector", VECTORS["refused"], ids=lambda vector: vector["about"])
def test_invalid_car_is_refused(vector: dict[str, str]) -> None:
    data = bytes.fromhex(vector["car"])
    with pytest.raises(FormatError):
        list(read_car(data))
    parser = CarParser()
    with pytest.raises(FormatError):
        for byte in data:
            parser.feed(bytes((byte,)))
        parser.close()


def test_car_cut_outside_a_block_boundary_is_refused() -> None:
    """A cut between two blocks is accepted here; readers of trees detect the missing blocks."""
    data = bytes.fromhex(VECTORS["valid"][0]["car"])
    whole = []
    for end in range(len(data)):
        try:
            list(read_car(data[:end]))
            whole.append(end)
        except FormatError:
            continue
    blocks = blocks_of(VECTORS["valid"][0])
    ends = [ONE_ROOT_HEADER]
    for cid, block in blocks:
        ends.append(ends[-1] + len(section(cid, block)))
    assert whole == ends[:-1]


def test_changed_bit_of_a_block_is_detected() -> None:
    data = bytes.fromhex(VECTORS["valid"][0]["car"])
    honest = blocks_of(VECTORS["valid"][0])
    for position in range(ONE_ROOT_HEADER, len(data)):
        changed = bytearray(data)
        changed[position] ^= 0x10
        try:
            found = list(read_car(bytes(changed)))
        except FormatError:
            continue
        # The hash does not cover the codec: the same bytes under another CID that was not requested.
        (wrong,) = [cid for cid, _ in found if cid not in dict(honest)]
        assert wrong.codec in (0x55 ^ 0x10, 0x70 ^ 0x10)


def test_wrong_block_is_named() -> None:
    root, _ = file_bytes(b"right")
    with pytest.raises(BlockError, match=str(root.cid)):
        list(read_car(header([root.cid]) + section(root.cid, b"wrong")))
    assert list(read_car(header([]) + section(root.cid, b"wrong"), verify=False)) == [(root.cid, b"wrong")]


def test_car_limits_apply() -> None:
    tree = build_tree({f"{n}.md": bytes([n]) * 100 for n in range(20)})
    data = car_bytes([tree.cid], tree.blocks)
    assert len(list(read_car(data, Limits(blocks=21)))) == 21
    with pytest.raises(LimitError, match="more than 20 blocks"):
        list(read_car(data, Limits(blocks=20)))
    with pytest.raises(LimitError, match="bytes"):
        list(read_car(data, Limits(total_bytes=2000)))


def test_block_size_is_limited() -> None:
    for size, good in ((BLOCK_MAX, True), (BLOCK_MAX + 1, False)):
        block = bytes(size)
        cid = raw_cid(sha256(block).digest())
        data = header([cid]) + section(cid, block)
        if good:
            assert list(read_car(data)) == [(cid, block)]
            assert car_bytes([cid], [(cid, block)]) == data
        else:
            with pytest.raises(LimitError):
                list(read_car(data))
            with pytest.raises(LimitError):
                car_bytes([cid], [(cid, block)])


def test_huge_length_is_refused_before_its_bytes_arrive() -> None:
    parser = CarParser()
    parser.feed(header([]))
    with pytest.raises(LimitError):
        parser.feed(b"\xff\xff\xff\x7f")


def test_roots_of_a_stream_are_known_before_its_blocks_are_read() -> None:
    root, blocks = file_bytes(trees.chacha20("roots", 3 << 20))
    source = io.BytesIO(car_bytes([root.cid], blocks))
    car = read_car(source)
    assert car.roots == (root.cid,)
    assert source.tell() < 1 << 20
    assert dict(car) == dict(blocks)


def test_number_of_roots_is_limited() -> None:
    cid = raw_cid(bytes(32))
    assert read_car(header([cid] * 150)).roots == (cid,) * 150
    for count in (200, 300):
        with pytest.raises(LimitError):
            header([cid] * count)


def test_small_pieces_of_a_large_block_are_read_in_linear_time() -> None:
    root, blocks = file_bytes(bytes(1 << 20))
    data = car_bytes([root.cid], blocks)
    parser = CarParser()
    copied = 0
    for start in range(0, len(data), 64):
        before = len(parser._waiting)
        parser.feed(data[start : start + 64])
        copied += before > 1 and len(parser._waiting) <= 1
    parser.close()
    assert parser.blocks == 1 and copied < 5
