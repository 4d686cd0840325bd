"""Reading trees from untrusted blocks: paths, files, limits, and false trees."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import pytest

from ipfsmem.content.cid import CID, RAW, raw_cid
from ipfsmem.content.dagpb import (
    TYPE_DIRECTORY,
    TYPE_FILE,
    TYPE_HAMT,
    TYPE_SYMLINK,
    BlockLink,
    UnixFS,
    encode_unixfs,
)
from ipfsmem.content.limits import BLOCK_MAX, STRANGER_LIMITS, Limits
from ipfsmem.content.reader import BATCH, Reader, drive, drive_async, from_mapping, verify_block
from ipfsmem.content.tree import build_tree
from ipfsmem.content.unixfs import directory, file_bytes
from ipfsmem.errors import BlockError, FormatError, IpfsmemError, LimitError, NotFoundError
from tests.interop import trees
from tests.support.content_lab import encode_node, pb_cid

FILES = {"a.md": b"A", "b/c.md": b"C", "b/d/e.md": b"", "b/d/big": trees.chacha20("big", (2 << 20) + 3)}
TREE = build_tree(FILES)
BLOCKS = dict(TREE.blocks)
GET = from_mapping(BLOCKS)


def node(links: list[BlockLink], message: UnixFS) -> tuple[CID, bytes]:
    block = encode_node(links, encode_unixfs(message))
    return pb_cid(sha256(block).digest()), block


def raw(data: bytes) -> tuple[CID, bytes]:
    return raw_cid(sha256(data).digest()), data


@pytest.mark.parametrize("vector", trees.load()["trees"], ids=lambda vector: vector["name"])
def test_every_tree_of_the_vectors_is_read(vector: dict[str, Any]) -> None:
    if "file" in vector:
        data = trees.content(vector["file"])
        root, blocks = file_bytes(data)
        assert drive(Reader().read_tree(root.cid), from_mapping(dict(blocks))) == {"": data}
        return
    files = {path: data for path, data in trees.files(vector).items() if data is not None}
    tree = build_tree(files)
    asked: list[CID] = []
    get = from_mapping(dict(tree.blocks))

    def recording(cids: list[CID]) -> Mapping[CID, bytes]:
        asked.extend(cids)
        return get(cids)

    assert drive(Reader().read_tree(tree.cid), recording) == files
    assert sorted(asked) == sorted(cid for cid, _ in tree.blocks), "everything once, nothing twice"


def test_resolve_and_stat_find_files_and_folders() -> None:
    reader = Reader()
    found = drive(reader.resolve(TREE.cid, "b/d/big"), GET)
    assert (found.path, found.is_dir, found.size) == ("b/d/big", False, (2 << 20) + 3)
    assert drive(reader.read_file(found.cid), GET) == FILES["b/d/big"]
    assert drive(reader.resolve(TREE.cid, "/b/d/"), GET).is_dir
    assert drive(reader.resolve(TREE.cid, ["a.md"]), GET).size == 1
    assert drive(reader.resolve(TREE.cid, ""), GET).cid == TREE.cid
    for path in ("b/x", "x", "a.md/x", "b/d/big/x"):
        with pytest.raises((NotFoundError, FormatError)):
            drive(reader.resolve(TREE.cid, path), GET)
    with pytest.raises(NotFoundError, match="no b/x in"):
        drive(reader.resolve(TREE.cid, "b/x/y"), GET)
    with pytest.raises(FormatError):
        drive(reader.resolve(TREE.cid, "b/../a.md"), GET)


def test_directory_is_listed() -> None:
    listed = drive(Reader().list_directory(TREE.cid), GET)
    assert [(link.name, link.tsize) for link in listed] == [("a.md", 1), ("b", TREE.folders["b"].tsize)]
    with pytest.raises(FormatError, match="neither"):
        drive(Reader().list_directory(listed[0].cid), GET)
    several = drive(Reader().list_directories([TREE.cid, TREE.folders["b"].cid]), GET)
    assert several[TREE.cid] == listed
    assert [link.name for link in several[TREE.folders["b"].cid]] == ["c.md", "d"]


def test_requests_are_batched_by_level_and_bounded() -> None:
    files = {f"{n:04d}/{n}.md": str(n).encode() for n in range(600)}
    tree = build_tree(files)
    get = from_mapping(dict(tree.blocks))
    asked: list[int] = []

    def counting(cids: list[CID]) -> Mapping[CID, bytes]:
        assert len(set(cids)) == len(cids)
        asked.append(len(cids))
        return get(cids)

    assert drive(Reader().read_tree(tree.cid), counting) == files
    assert max(asked) == BATCH
    assert asked == [1, 256, 256, 88, 256, 256, 88], "root, folders, files; nothing twice"


def test_async_driver_reads_a_tree() -> None:
    async def get(cids: list[CID]) -> Mapping[CID, bytes]:
        await asyncio.sleep(0)
        return GET(cids)

    assert asyncio.run(drive_async(Reader().read_tree(TREE.cid), get)) == FILES


def test_walk_can_leave_known_folders_out() -> None:
    asked: list[CID] = []

    def get(cids: list[CID]) -> Mapping[CID, bytes]:
        asked.extend(cids)
        return GET(cids)

    known = TREE.folders["b/d"].cid
    walked = drive(Reader().walk(TREE.cid, enter=lambda path, cid: cid != known), get)
    assert set(walked) == {"a.md", "b/c.md"}
    assert asked == [TREE.cid, TREE.folders["b"].cid]


def test_foreign_blocks_are_verified_by_their_cid() -> None:
    evil = dict(BLOCKS)
    (victim,) = [cid for cid, data in BLOCKS.items() if data == b"C"]
    evil[victim] = b"D"
    with pytest.raises(BlockError, match=str(victim)):
        drive(Reader().read_tree(TREE.cid), from_mapping(evil))
    del evil[victim]
    with pytest.raises(NotFoundError, match=str(victim)):
        drive(Reader().read_tree(TREE.cid), from_mapping(evil))


def test_block_with_a_wrong_hash_is_refused() -> None:
    cid, data = raw(b"data")
    verify_block(cid, data)
    verify_block(CID(1, RAW, b"\0\4data"), data)
    verify_block(CID(0, 0x70, cid.multihash), data)
    with pytest.raises(BlockError, match=str(cid)):
        verify_block(cid, b"other")
    with pytest.raises(BlockError):
        verify_block(CID(1, RAW, b"\0\4data"), b"date")
    with pytest.raises(BlockError, match="0x13"):
        verify_block(CID(1, RAW, b"\x13\x40" + bytes(64)), data)
    with pytest.raises(LimitError):
        verify_block(cid, bytes(BLOCK_MAX + 1))


def test_inline_blocks_are_not_requested() -> None:
    inline = CID(1, RAW, b"\0\5hello")
    made = directory([BlockLink("f", inline, 5)])
    asked: list[CID] = []

    def get(cids: list[CID]) -> Mapping[CID, bytes]:
        asked.extend(cids)
        return dict(made.blocks)

    assert drive(Reader().read_tree(made.cid), get) == {"f": b"hello"}
    assert asked == [made.cid]


def test_files_of_other_writers_are_read() -> None:
    """CIDv0, dag-pb leaves, data next to links."""
    leaf_block = encode_node([], encode_unixfs(UnixFS(TYPE_FILE, b"lo", 2)))
    leaf = CID(0, 0x70, b"\x12\x20" + sha256(leaf_block).digest())
    top, block = node([BlockLink("", leaf, 10)], UnixFS(TYPE_FILE, b"hel", 5, (2,)))
    assert drive(Reader().read_file(top), from_mapping({leaf: leaf_block, top: block})) == b"hello"


@pytest.mark.parametrize(
    ("links", "message", "words"),
    [
        (
            [BlockLink("", raw(b"abc")[0], 3)],
            UnixFS(TYPE_FILE, filesize=4, blocksizes=(4,)),
            "its file says 4",
        ),
        ([BlockLink("", raw(b"abc")[0], 3)], UnixFS(TYPE_FILE, filesize=4, blocksizes=(3,)), "says it has 4"),
        ([BlockLink("", raw(b"abc")[0], 3)], UnixFS(TYPE_FILE, filesize=3), "1 chunks and 0 sizes"),
        ([], UnixFS(TYPE_FILE, filesize=3, blocksizes=(3,)), "0 chunks and 1 sizes"),
        ([], UnixFS(TYPE_SYMLINK, b"/etc/passwd"), "symbolic link"),
        ([], UnixFS(TYPE_DIRECTORY), "is not a file"),
    ],
)
def test_file_with_a_false_layout_is_refused(links: list[BlockLink], message: UnixFS, words: str) -> None:
    blocks = dict([node(links, message), raw(b"abc")])
    with pytest.raises(FormatError, match=words):
        drive(Reader().read_file(next(iter(blocks))), from_mapping(blocks))


def test_symbolic_link_in_a_tree_is_refused() -> None:
    link = node([], UnixFS(TYPE_SYMLINK, b"../../secret"))
    made = directory([BlockLink("a", link[0], 10)])
    blocks = from_mapping(dict([link, *made.blocks]))
    for fetch in (Reader().read_tree(made.cid), Reader().resolve(made.cid, "a"), Reader().walk(made.cid)):
        with pytest.raises(FormatError, match="symbolic link"):
            drive(fetch, blocks)


@pytest.mark.parametrize("names", [["a", "a"], [".."], ["a/b"], [""], ["."], ["a\0"]])
def test_folder_with_invalid_names_is_refused(names: list[str]) -> None:
    target = raw(b"x")
    folder = node([BlockLink(name, target[0], 1) for name in names], UnixFS(TYPE_DIRECTORY))
    with pytest.raises(FormatError):
        drive(Reader().read_tree(folder[0]), from_mapping(dict([folder, target])))


def test_reader_limits_apply() -> None:
    with pytest.raises(LimitError, match="more than 7 blocks"):
        drive(Reader(Limits(blocks=7)).read_tree(TREE.cid), GET)
    assert drive(Reader(Limits(blocks=len(BLOCKS))).read_tree(TREE.cid), GET) == FILES
    with pytest.raises(LimitError, match="bytes"):
        drive(Reader(Limits(total_bytes=1 << 20)).read_tree(TREE.cid), GET)
    with pytest.raises(LimitError, match="deeper than 2"):
        drive(Reader(Limits(depth=2)).walk(TREE.cid), GET)
    assert len(drive(Reader(Limits(depth=3)).walk(TREE.cid), GET)) == 4
    with pytest.raises(LimitError, match="entries"):
        drive(Reader(Limits(entries=3)).walk(TREE.cid), GET)
    with pytest.raises(LimitError, match="4 parts"):
        drive(Reader(Limits(depth=3)).resolve(TREE.cid, "a/b/c/d"), GET)


def test_file_over_limit_is_refused_before_its_chunks_are_requested() -> None:
    big = drive(Reader().resolve(TREE.cid, "b/d/big"), GET).cid
    asked: list[CID] = []

    def get(cids: list[CID]) -> Mapping[CID, bytes]:
        asked.extend(cids)
        return GET(cids)

    with pytest.raises(LimitError, match="1000 allowed"):
        drive(Reader().read_file(big, max_bytes=1000), get)
    assert asked == [big]


def test_budget_adds_up_over_calls_and_counts_unique_blocks() -> None:
    reader = Reader(Limits(blocks=len(BLOCKS)))
    for _ in range(3):
        drive(reader.read_tree(TREE.cid), GET)
    assert reader.blocks == len(BLOCKS)
    assert reader.total_bytes == sum(len(data) for data in BLOCKS.values())
    other = raw(b"one too many")
    with pytest.raises(LimitError):
        drive(reader.read_file(other[0]), from_mapping(dict([other])))


def test_bytes_add_up_over_calls() -> None:
    reader = Reader(Limits(total_bytes=2500))
    blocks = [raw(bytes((n,)) * 1000) for n in range(3)]
    for cid, data in (*blocks[:2], *blocks[:2]):
        assert drive(reader.read_file(cid), from_mapping(dict(blocks))) == data
    with pytest.raises(LimitError, match="more than 2500 bytes"):
        drive(reader.read_file(blocks[2][0]), from_mapping(dict(blocks)))


def test_folder_bomb_is_limited() -> None:
    """Fifteen blocks describe 10^42 paths."""
    blocks = dict([raw(b"x")])
    below = next(iter(blocks))
    for _ in range(14):
        cid, block = node([BlockLink(f"{n}", below, 1) for n in range(1000)], UnixFS(TYPE_DIRECTORY))
        blocks[cid] = block
        below = cid
    with pytest.raises(LimitError, match="entries"):
        drive(Reader(Limits(entries=20_000)).walk(below), from_mapping(blocks))


def test_file_bomb_is_limited() -> None:
    """A few blocks claim very many chunks."""
    for size in (0, 1):
        cid, data = raw(bytes(size))
        blocks = {cid: data}
        for _ in range(5):
            message = UnixFS(TYPE_FILE, filesize=size * 2000, blocksizes=(size,) * 2000)
            size *= 2000
            top, block = node([BlockLink("", cid, 1)] * 2000, message)
            blocks[top] = block
            cid = top
        with pytest.raises(LimitError):
            drive(Reader(Limits(blocks=20_000)).read_file(cid, max_bytes=1 << 60), from_mapping(blocks))


def test_many_files_of_one_chunk_are_bounded_in_bytes() -> None:
    chunk = raw(bytes(1 << 20))
    blocks = dict([chunk])
    tops = []
    for count in range(100, 120):
        message = UnixFS(TYPE_FILE, filesize=count << 20, blocksizes=(1 << 20,) * count)
        cid, block = node([BlockLink("", chunk[0], 1)] * count, message)
        blocks[cid] = block
        tops.append(cid)
    with pytest.raises(LimitError, match="bytes"):
        drive(Reader().read_files(tops), from_mapping(blocks))


def test_file_with_too_many_levels_is_refused() -> None:
    cid, data = raw(b"x")
    blocks = {cid: data}
    for level in range(9):
        cid, block = node([BlockLink("", cid, 1)], UnixFS(TYPE_FILE, filesize=1, blocksizes=(1,)))
        blocks[cid] = block
        if level == 7:
            assert drive(Reader().read_file(cid), from_mapping(blocks)) == b"x"
    with pytest.raises(LimitError, match="levels"):
        drive(Reader().read_file(cid), from_mapping(blocks))


def test_other_codecs_are_not_a_tree() -> None:
    data = b"\xa0"
    cid = CID(1, 0x71, b"\x12\x20" + sha256(data).digest())
    for fetch in (Reader().read_tree(cid), Reader().read_file(cid), Reader().list_directory(cid)):
        with pytest.raises(IpfsmemError, match="codec 0x71"):
            drive(fetch, from_mapping({cid: data}))


def crowded(count: int, kind: int) -> tuple[CID, dict[CID, bytes]]:
    """Return a node over `count` blocks of 128 KiB, each full of links of eight bytes (empty identity
    CIDs)."""
    link = b"\x12\x06\x0a\x04\x01\x55\x00\x00"
    links: list[BlockLink] = []
    blocks: dict[CID, bytes] = {}
    for n in range(count):
        message = encode_unixfs(UnixFS(kind, b"", hash_type=0x22 if kind == TYPE_HAMT else None,
                                       fanout=256 if kind == TYPE_HAMT else None))  # fmt: skip
        data = link * ((BLOCK_MAX >> 4) // len(link) - 8 - n) + b"\x0a" + bytes((len(message),)) + message
        cid = pb_cid(sha256(data).digest())
        blocks[cid] = data
        links.append(BlockLink(f"{n:02X}" if kind == TYPE_HAMT else "", cid, len(data)))
    if kind == TYPE_HAMT:
        top = UnixFS(kind, (2**count - 1).to_bytes(32, "big").lstrip(b"\0"), hash_type=0x22, fanout=256)
    else:
        top = UnixFS(kind, b"", filesize=0, blocksizes=(0,) * count)
    root, block = node(links, top)
    return root, {**blocks, root: block}


@pytest.mark.parametrize("way", ["folder", "file", "tree"])
def test_links_are_counted_before_they_are_decoded(way: str) -> None:
    import tracemalloc

    root, blocks = crowded(6, TYPE_FILE if way == "file" else TYPE_HAMT)
    reader = Reader(STRANGER_LIMITS._replace(entries=5_000, blocks=5_000))
    read = {"folder": reader.list_directory, "file": reader.read_file, "tree": reader.read_tree}[way]
    tracemalloc.start()
    with pytest.raises(LimitError):
        drive(read(root), from_mapping(blocks))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < BLOCK_MAX
