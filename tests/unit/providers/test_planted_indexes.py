"""Forged index files in a shared folder: no wait, no followed link, no more memory than the pack has."""

from __future__ import annotations

import asyncio
import os
import threading
import tracemalloc
from hashlib import sha256
from pathlib import Path

import pytest
from ipfsmem_providers.directory import DirectoryProvider
from ipfsmem_providers.directory.files import FolderObjectStore
from ipfsmem_providers.packs import index as pack_index
from ipfsmem_providers.packs.index import BlockLocation, Index, encode_index

from ipfsmem.content.tree import build_tree
from tests.unit.providers.bucket_lab import bucket

TREE = build_tree({"a": b"one", "b/c": b"two" * 999})
GOOD = encode_index([(sha256(b"x").digest(), 40, 10)], 100)


def open_index(path: Path, pack_size: int) -> Index | None:
    return pack_index.open_index(
        FolderObjectStore(path.parent.parent, path.parent.name), path.name, pack_size
    )


def test_named_pipe_is_not_opened_as_an_index(tmp_path: Path) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("this system has no named pipes")
    os.mkfifo(tmp_path / "pack.idx")
    found: list[object] = []
    thread = threading.Thread(
        target=lambda: found.append(open_index(tmp_path / "pack.idx", 100)), daemon=True
    )
    thread.start()
    thread.join(60)
    assert found == [None]


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_link_is_not_opened_as_an_index(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(GOOD)
    (tmp_path / "pack.idx").symlink_to(tmp_path / "real")
    assert open_index(tmp_path / "real", 100) is not None
    assert open_index(tmp_path / "pack.idx", 100) is None


def test_index_that_claims_too_many_blocks_is_refused(tmp_path: Path) -> None:
    """A sparse file can claim any size."""
    places = [BlockLocation(sha256(b"%d" % n).digest(), 40, 10) for n in range(3)]
    for size, opens in ((105, True), (104, False)):
        path = tmp_path / f"{size}.idx"
        path.write_bytes(encode_index(places, size))
        assert (open_index(path, size) is not None) == opens


@pytest.mark.parametrize("bucket", ["one", "all"])
def test_sparse_index_of_a_sparse_pack_uses_little_memory(tmp_path: Path, bucket: str) -> None:
    count = 50_000_000  # 2.2 GB that take a page on the disk
    pack_size = count * 35
    fan = [count if bucket == "one" or byte == 255 else (byte + 1) * count // 256 for byte in range(256)]
    path = tmp_path / "sparse.idx"
    with path.open("wb") as file:
        file.write(pack_index._HEAD.pack(b"ipmidx1\n", pack_size, count, *fan, 0))
        file.truncate(pack_index._HEAD.size + count * 44)
    tracemalloc.start()
    try:
        index = open_index(path, pack_size)
        assert index is not None
        assert index.find([bytes(32), b"\x01" * 32, b"\xff" * 32]) in ([], [BlockLocation(bytes(32), 0, 0)])
        assert not index.intact()
        assert next(index.places()) == BlockLocation(bytes(32), 0, 0)
        assert tracemalloc.get_traced_memory()[1] < 16_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_large_index_finds_the_same_as_a_small_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    places = sorted(BlockLocation(sha256(b"%d" % n).digest(), n, 10) for n in range(900))
    path = tmp_path / "pack.idx"
    path.write_bytes(encode_index(places, 100_000))
    whole = open_index(path, 100_000)
    monkeypatch.setattr(pack_index, "_SMALL", 0)
    monkeypatch.setattr(pack_index, "_KEPT", 0)
    monkeypatch.setattr(pack_index, "_PIECE", 44 * piece)
    pieces = open_index(path, 100_000)
    assert whole is not None and pieces is not None and pieces.intact() and list(pieces.places()) == places
    absent = [sha256(b"no %d" % n).digest() for n in range(20)]
    wanted = {place.digest for place in places[::70]} | set(absent)
    assert sorted(pieces.find(wanted)) == sorted(whole.find(wanted)) == places[::70]
    every = {place.digest for place in places} | set(absent)
    assert sorted(pieces.find(every)) == places
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert not pieces.intact()


#: Offsets that no pack has: behind its end, and at the limit of numbers.
NO_PLACES = [(2**40, 100), (2**63 - 1, 10), (2**63, 10), (2**64 - 5, 2**20), (10, 2**32 - 1)]


@pytest.mark.parametrize(("offset", "length"), NO_PLACES)
def test_index_with_offsets_outside_the_pack_hides_nothing_in_a_folder(
    tmp_path: Path, offset: int, length: int
) -> None:
    asyncio.run(DirectoryProvider(tmp_path).put_car(TREE.cid, TREE.blocks, name="m"))
    [path] = (tmp_path / "packs").glob("*.idx")
    path.write_bytes(displaced(path.read_bytes(), path.with_suffix(".car").stat().st_size, offset, length))
    found = asyncio.run(DirectoryProvider(tmp_path).get_blocks([cid for cid, _ in TREE.blocks]))
    assert found == dict(TREE.blocks)


@pytest.mark.parametrize(("offset", "length"), NO_PLACES)
def test_index_with_offsets_outside_the_pack_hides_nothing_in_a_bucket(offset: int, length: int) -> None:
    with bucket() as at:
        asyncio.run(at.open().put_car(TREE.cid, TREE.blocks, name="m"))
        [key] = [key for key in at.server.objects if key.endswith(".idx")]
        body, *rest = at.server.objects[key]
        size = len(at.server.objects[key[:-4] + ".car"][0])
        at.server.objects[key] = (displaced(body, size, offset, length), *rest)
        found = asyncio.run(at.open().get_blocks([cid for cid, _ in TREE.blocks]))
    assert found == dict(TREE.blocks)


def displaced(index: bytes, pack_size: int, offset: int, length: int) -> bytes:
    """Return an index with valid checksums that places all blocks at this offset."""
    places = pack_index.decode_index(index).places()
    return encode_index([BlockLocation(place.digest, offset, length) for place in places], pack_size)
