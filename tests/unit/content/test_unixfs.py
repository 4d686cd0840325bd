"""Building files and folders: the tree vectors in memory, streams, names."""

from __future__ import annotations

import io
from typing import Any

import pytest

from ipfsmem.content.cid import CID, parse_cid, raw_cid
from ipfsmem.content.dagpb import decode_node, decode_unixfs
from ipfsmem.content.reader import verify_block
from ipfsmem.content.tree import StoredTree, build_tree
from ipfsmem.content.unixfs import (
    CHUNK,
    SHARD_ABOVE,
    BlockLink,
    FileRoot,
    Readable,
    directory,
    file_blocks,
    file_bytes,
)
from ipfsmem.errors import FormatError
from tests.interop import trees

VECTORS = trees.load()


def finish(source: bytes | Readable) -> tuple[FileRoot, int]:
    """Return root and number of blocks without storing them."""
    builder = file_blocks(source)
    count = 0
    while True:
        try:
            cid, block = next(builder)
        except StopIteration as done:
            return done.value, count
        if not count % 100:
            verify_block(cid, block)
        count += 1


@pytest.mark.parametrize("vector", VECTORS["trees"], ids=lambda vector: vector["name"])
def test_built_trees_equal_the_vectors(vector: dict[str, Any]) -> None:
    files = trees.files(vector)
    if "file" in vector:
        assert str(finish(files[""] or b"")[0].cid) == vector["cid"]
        return
    contents = {path: data for path, data in files.items() if data is not None}
    tree = build_tree(contents, [path for path, data in files.items() if data is None])
    assert str(tree.cid) == vector["cid"]
    assert tree.blocks[-1][0] == tree.cid
    for cid, block in tree.blocks:
        verify_block(cid, block)
    assert len(dict(tree.blocks)) == len(tree.blocks)


@pytest.mark.slow
@pytest.mark.parametrize("vector", VECTORS["large"], ids=lambda vector: vector["name"])
def test_large_files_are_built_from_streams(vector: dict[str, Any]) -> None:
    rule = vector["file"]
    if "zeros" in rule:
        source: Readable = Zeros(rule["zeros"])
        size = rule["zeros"]
    else:
        source = trees.KeystreamFile(rule["chacha20"]["seed"], rule["chacha20"]["size"])
        size = rule["chacha20"]["size"]
    root, _ = finish(source)
    assert (str(root.cid), root.size) == (vector["cid"], size)


class Zeros:
    def __init__(self, size: int) -> None:
        self.left = size

    def read(self, size: int, /) -> bytes:
        taken = min(size, self.left)
        self.left -= taken
        return bytes(taken)


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK])
def test_stream_with_short_reads_gives_the_same_file(size: int) -> None:
    whole, blocks = file_bytes(trees.chacha20("short", size))
    streamed, count = finish(trees.KeystreamFile("short", size, most=7001))
    assert streamed == whole and count == len(blocks)
    assert finish(io.BytesIO(trees.chacha20("short", size)))[0] == whole
    assert whole.size == size and whole.tsize == sum(len(block) for _, block in blocks)


def test_file_builder_holds_one_chunk() -> None:
    """Blocks are returned while the stream is still read."""
    source = Zeros(10 * CHUNK)
    builder = file_blocks(source)
    next(builder)
    assert source.left >= 8 * CHUNK


def test_sharding_threshold_is_exact() -> None:
    exact = next(vector for vector in VECTORS["trees"] if vector["name"] == "threshold_exact")
    tree = build_tree({path: data for path, data in trees.files(exact).items() if data is not None})
    assert len(tree.blocks[-1][1]) == SHARD_ABOVE
    assert len(tree.blocks) == 2


def test_order_of_links_does_not_matter() -> None:
    cid = raw_cid(bytes(32))
    for count in (10, 5000):
        links = [BlockLink(f"n{n}", cid, 5) for n in range(count)]
        assert directory(links).cid == directory(reversed(links)).cid


def test_tsize_includes_every_link() -> None:
    root, _ = file_bytes(b"12345")
    links = [BlockLink(f"n{n}", root.cid, root.tsize) for n in range(4000)]
    sharded = directory(links)
    assert sharded.tsize == sum(len(block) for _, block in sharded.blocks) + 4000 * 5
    plain = directory(links[:3])
    assert plain.tsize == len(plain.blocks[0][1]) + 15


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/", "a\0b", "\ud800"])
def test_invalid_names_are_refused(name: str) -> None:
    with pytest.raises(FormatError):
        directory([BlockLink(name, raw_cid(bytes(32)), 0)])


def test_duplicate_name_is_refused() -> None:
    cid = raw_cid(bytes(32))
    with pytest.raises(FormatError, match="'b'"):
        directory([BlockLink("a", cid, 0), BlockLink("b", cid, 0), BlockLink("b", cid, 1)])


@pytest.mark.parametrize("path", ["/a", "a/", "a//b", "../a", "a/./b", ""])
def test_invalid_paths_are_refused(path: str) -> None:
    with pytest.raises(FormatError):
        build_tree({path: b""})


def test_path_cannot_be_file_and_folder() -> None:
    with pytest.raises(FormatError, match="twice"):
        build_tree({"a": b"", "a/b": b""})


def test_known_parts_give_the_same_root_without_their_blocks() -> None:
    files: dict[str, bytes | StoredTree] = {"a/1": b"one", "a/2": b"two", "b/3": b"three"}
    whole = build_tree(files)
    again = build_tree({"a": whole.folders["a"], "b/3": b"three"})
    assert (again.cid, again.tsize) == (whole.cid, whole.tsize)
    assert {cid for cid, _ in again.blocks} < {cid for cid, _ in whole.blocks}
    assert len(again.blocks) == 3
    with pytest.raises(FormatError, match="twice"):
        build_tree({"a": whole.folders["a"], "a/1": b"one"})


def test_file_node_equals_that_of_go() -> None:
    root, blocks = file_bytes(bytes(CHUNK + 1))
    node = decode_node(blocks[-1][1])
    assert node.data == bytes.fromhex("0802188180402080804020" + "01")
    message = decode_unixfs(node.data)
    assert (message.filesize, message.blocksizes) == (CHUNK + 1, (CHUNK, 1))
    assert [link.tsize for link in node.links] == [CHUNK, 1]
    assert root.cid == parse_cid(str(root.cid)) and isinstance(root.cid, CID)
