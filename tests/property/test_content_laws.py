"""Laws of content addressing: round trips hold, and hostile bytes raise our errors and nothing else."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import multiformats
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ipfsmem.content import unixfs
from ipfsmem.content.car import CarParser, car_bytes, read_car
from ipfsmem.content.cid import CID, DAG_PB, PB_PREFIX, decode_cid, parse_cid, raw_cid
from ipfsmem.content.dagpb import (
    TYPE_FILE,
    TYPE_HAMT,
    BlockLink,
    UnixFS,
    decode_node,
    decode_unixfs,
    encode_unixfs,
)
from ipfsmem.content.limits import Limits
from ipfsmem.content.reader import Reader, drive, from_mapping
from ipfsmem.content.tree import build_tree
from ipfsmem.errors import FormatError, IpfsmemError
from tests.support.content_lab import encode_node, pb_cid
from tests.support.effort import cases

MODEST = settings(
    max_examples=cases(50, 750), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
digests = st.binary(min_size=32, max_size=32)
cids = st.one_of(
    digests.map(raw_cid),
    digests.map(pb_cid),
    digests.map(lambda digest: CID(0, DAG_PB, b"\x12\x20" + digest)),
    st.builds(
        lambda codec, data: CID(1, codec, bytes((0, len(data))) + data),
        st.sampled_from([0x55, 0x70, 0x71, 0x72, 0x0202]),
        st.binary(max_size=64),
    ),
)
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
sizes = st.integers(0, 2**63 - 1)
links = st.lists(st.builds(BlockLink, text, cids, sizes), max_size=8)
names = text.filter(lambda name: name not in ("", ".", "..") and "/" not in name and "\0" not in name)


@MODEST
@given(cids)
def test_cids_round_trip_and_agree_with_multiformats(cid: CID) -> None:
    assert decode_cid(bytes(cid)) == parse_cid(str(cid)) == cid
    assert bytes(multiformats.CID.decode(str(cid))) == bytes(cid)


@MODEST
@given(st.one_of(st.binary(max_size=80), st.binary(max_size=60).map(lambda tail: b"\x01\x55" + tail)))
def test_random_bytes_are_a_cid_or_refused(data: bytes) -> None:
    try:
        cid = decode_cid(data)
    except FormatError:
        return
    assert bytes(cid) == data


@MODEST
@given(
    st.one_of(st.text(max_size=80), st.text("abcdefghijklmnopqrstuvwxyz234567", max_size=70).map("b".__add__))
)
def test_random_text_is_a_cid_or_refused(value: str) -> None:
    try:
        cid = parse_cid(value)
    except FormatError:
        return
    assert parse_cid(str(cid)) == cid


@MODEST
@given(links, st.none() | st.binary(max_size=60))
def test_nodes_round_trip(given_links: list[BlockLink], data: bytes | None) -> None:
    block = encode_node(given_links, data)
    node = decode_node(block)
    assert node.data == data
    assert list(node.links) == sorted(given_links, key=lambda link: link.name.encode())
    assert encode_node(node.links, node.data) == block


@MODEST
@given(
    st.builds(
        UnixFS,
        st.integers(0, 5),
        st.binary(max_size=40),
        st.none() | sizes,
        st.lists(sizes, max_size=5).map(tuple),
        st.integers(0, 100),
        st.integers(0, 1024),
    )
)
def test_unixfs_messages_round_trip(message: UnixFS) -> None:
    assert decode_unixfs(encode_unixfs(message)) == message


def mangled(good: bytes) -> st.SearchStrategy[bytes]:
    """Return `good` with a few bytes changed, removed or inserted."""
    edits = st.lists(
        st.tuples(
            st.integers(0, max(len(good) - 1, 0)), st.integers(0, 2), st.binary(min_size=1, max_size=3)
        ),
        min_size=1,
        max_size=4,
    )

    def apply(changes: list[tuple[int, int, bytes]]) -> bytes:
        data = bytearray(good)
        for at, kind, new in changes:
            data[at : at + kind * len(new)] = new if kind < 2 else b""
        return bytes(data)

    return edits.map(apply)


NODE = encode_node(
    [
        BlockLink("a", raw_cid(bytes(32)), 1),
        BlockLink("b" * 130, CID(0, DAG_PB, b"\x12\x20" + bytes(32)), 300),
    ],
    encode_unixfs(UnixFS(TYPE_HAMT, b"\x80\x01", 5, (1, 2), 0x22, 256)),
)
TREE = build_tree({"a.md": b"A", "b/c.md": b"C", **{f"d/{n}": b"x" for n in range(30)}})
CAR = car_bytes([TREE.cid], TREE.blocks)


@MODEST
@given(st.one_of(st.binary(max_size=200), mangled(NODE)))
def test_foreign_dag_pb_raises_only_our_errors(data: bytes) -> None:
    for decode in (decode_node, decode_unixfs):
        try:
            decode(data)
        except IpfsmemError:
            continue


@MODEST
@given(st.one_of(st.binary(max_size=300), mangled(CAR), st.binary(max_size=80).map(lambda tail: CAR + tail)))
def test_foreign_cars_raise_only_our_errors(data: bytes) -> None:
    try:
        blocks = list(read_car(data))
    except IpfsmemError:
        return
    for cid, block in blocks:
        assert sha256(block).digest() == cid.digest or cid.digest == block


@MODEST
@given(st.data())
def test_cars_are_read_the_same_in_any_pieces(data: Any) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(CAR)), max_size=12)))
    parser = CarParser()
    found = []
    for start, end in zip([0, *cuts], [*cuts, len(CAR)], strict=True):
        found += parser.feed(CAR[start:end])
    parser.close()
    assert found == TREE.blocks and parser.roots == (TREE.cid,)


@MODEST
@given(mangled(NODE), st.sampled_from(["walk", "list", "file", "path"]))
def test_foreign_trees_raise_only_our_errors(block: bytes, what: str) -> None:
    cid = decode_cid(PB_PREFIX + sha256(block).digest())
    reader = Reader(Limits(blocks=50, entries=100))
    fetch: Any = {
        "walk": lambda: reader.read_tree(cid),
        "list": lambda: reader.list_directory(cid),
        "file": lambda: reader.read_file(cid),
        "path": lambda: reader.resolve(cid, "a"),
    }[what]()
    try:
        drive(fetch, from_mapping({cid: block}))
    except IpfsmemError:
        pass


@MODEST
@given(
    st.dictionaries(
        st.lists(names, min_size=1, max_size=3).map("/".join), st.binary(max_size=50), max_size=12
    )
)
def test_trees_round_trip(files: dict[str, bytes]) -> None:
    folders = {path[:at] for path in files for at, char in enumerate(path) if char == "/"}
    files = {path: data for path, data in files.items() if path not in folders}
    tree = build_tree(files)
    reader = Reader()
    assert drive(reader.read_tree(tree.cid), from_mapping(dict(tree.blocks))) == files
    assert {cid for cid, _ in tree.blocks} == set(reader._seen), "no block too many, none missing"


@MODEST
@given(st.sets(names, min_size=1, max_size=60))
def test_sharded_folders_round_trip(monkeypatch: pytest.MonkeyPatch, entries: set[str]) -> None:
    monkeypatch.setattr(unixfs, "SHARD_ABOVE", 10)
    target = raw_cid(bytes(32))
    made = unixfs.directory([BlockLink(name, target, len(name)) for name in entries])
    listed = drive(Reader().list_directory(made.cid), from_mapping(dict(made.blocks)))
    assert [(link.name, link.tsize) for link in listed] == [(name, len(name)) for name in sorted(entries)]


@MODEST
@given(st.binary(max_size=120), st.integers(2, 4))
def test_chunked_files_are_balanced(monkeypatch: pytest.MonkeyPatch, data: bytes, width: int) -> None:
    """Against the obvious way: all leaves, then level by level from the bottom."""
    monkeypatch.setattr(unixfs, "CHUNK", 2)
    monkeypatch.setattr(unixfs, "WIDTH", width)
    root, blocks = unixfs.file_bytes(data)
    level = [
        (raw_cid(sha256(data[at : at + 2]).digest()), len(data[at : at + 2]), len(data[at : at + 2]))
        for at in range(0, max(len(data), 1), 2)
    ]
    while len(level) > 1:
        above = []
        for at in range(0, len(level), width):
            part = level[at : at + width]
            size = sum(item[2] for item in part)
            message = UnixFS(TYPE_FILE, filesize=size, blocksizes=tuple(item[2] for item in part))
            block = encode_node([BlockLink("", item[0], item[1]) for item in part], encode_unixfs(message))
            above.append((pb_cid(sha256(block).digest()), len(block) + sum(item[1] for item in part), size))
        level = above
    assert root == level[0]
    limits = Limits(file_bytes=1000)
    assert drive(Reader(limits).read_file(root.cid), from_mapping(dict(blocks))) == data
