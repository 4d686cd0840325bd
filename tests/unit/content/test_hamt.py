"""The hash trie: murmur3 against known answers, and forged shards."""

from __future__ import annotations

from hashlib import sha256

import pytest

from ipfsmem.content import hamt
from ipfsmem.content.cid import CID, raw_cid
from ipfsmem.content.dagpb import TYPE_HAMT, BlockLink, UnixFS, encode_unixfs
from ipfsmem.content.reader import Reader, drive, from_mapping
from ipfsmem.content.unixfs import Directory, directory
from ipfsmem.errors import FormatError, NotFoundError
from tests.support.content_lab import encode_node, pb_cid

#: First 64 bits of murmur3 x64 128 of prefixes of this text; computed by spaolacci/murmur3, which Kubo uses.
TEXT = b"The quick brown fox jumps over the lazy dog"
CID_X = raw_cid(sha256(b"x").digest())


def test_murmur3_equals_known_values() -> None:
    assert hamt.murmur3(b"") == 0
    assert f"{hamt.murmur3(b'hello'):016x}" == "cbd8a7b341bd9b02"
    assert f"{hamt.murmur3(b'hello, world'):016x}" == "342fac623a5ebc8e"
    assert f"{hamt.murmur3(TEXT):016x}" == "e34bbc7bbc071b6c"


def entries(count: int) -> Directory:
    return directory([BlockLink(f"entry_{n:06d}", CID_X, 1) for n in range(count)])


def test_lookup_and_list_agree() -> None:
    made = entries(5000)
    get = from_mapping(dict(made.blocks))
    listed = drive(Reader().list_directory(made.cid), get)
    assert [link.name for link in listed] == [f"entry_{n:06d}" for n in range(5000)]
    blocks = dict(made.blocks) | {CID_X: b"x"}
    reader = Reader()
    for n in (0, 1, 777, 4999):
        assert drive(reader.resolve(made.cid, f"entry_{n:06d}"), from_mapping(blocks)).cid == CID_X
    assert reader.blocks < 12, "a lookup reads only the shards on its way"
    with pytest.raises(NotFoundError, match="entry_5000"):
        drive(reader.resolve(made.cid, "entry_5000"), from_mapping(blocks))


def shard(links: list[BlockLink], bitmap: int, fanout: int = 256, hash_type: int = 0x22) -> tuple[CID, bytes]:
    data = bitmap.to_bytes((bitmap.bit_length() + 7) // 8, "big")
    block = encode_node(links, encode_unixfs(UnixFS(TYPE_HAMT, data, hash_type=hash_type, fanout=fanout)))
    return pb_cid(sha256(block).digest()), block


def slot_of(name: str, level: int = 0) -> int:
    return hamt.murmur3(name.encode()).to_bytes(8, "big")[level]


def read(block: tuple[CID, bytes], *others: tuple[CID, bytes]) -> list[BlockLink]:
    return drive(Reader().list_directory(block[0]), from_mapping(dict([block, *others])))


def test_small_shard_is_read() -> None:
    slot = slot_of("a")
    assert read(shard([BlockLink(f"{slot:02X}a", CID_X, 1)], 1 << slot)) == [BlockLink("a", CID_X, 1)]
    bits = hamt.murmur3(b"a") >> 61
    assert read(shard([BlockLink(f"{bits:X}a", CID_X, 1)], 1 << bits, fanout=8)) == [BlockLink("a", CID_X, 1)]


def test_forged_shards_are_refused() -> None:
    slot = slot_of("a")
    other = (slot + 1) % 256
    label = f"{slot:02X}"
    cases = {
        "elsewhere": shard([BlockLink(f"{other:02X}a", CID_X, 1)], 1 << other),
        "bitmap": shard([BlockLink(f"{label}a", CID_X, 1)], 1 << slot | 1 << other),
        "bitmap ": shard([BlockLink(f"{label}a", CID_X, 1)], 1 << other),
        "label": shard([BlockLink("g0a", CID_X, 1)], 1),
        "label ": shard(
            [BlockLink(f"{label.lower()}a" if label.lower() != label else "0xa", CID_X, 1)], 1 << slot
        ),
        "label  ": shard([BlockLink("7", CID_X, 1)], 1 << 7),
        "one slot": shard([BlockLink(f"{label}a", CID_X, 1), BlockLink(f"{label}a", CID_X, 1)], 1 << slot),
        "fanout 0": shard([], 0, fanout=0),
        "fanout 12": shard([], 0, fanout=12),
        "hash 18": shard([], 0, hash_type=0x12),
        "fanout 1048576": shard([], 0, fanout=1 << 20),
    }
    for words, block in cases.items():
        with pytest.raises(FormatError, match=words.split(" ")[0]):
            read(block)


def test_plain_folder_below_a_shard_is_refused() -> None:
    plain = directory([BlockLink("a", CID_X, 1)])
    top = shard([BlockLink("07", plain.cid, 1)], 1 << 7)
    with pytest.raises(FormatError, match="not a folder"):
        read(top, *plain.blocks)


def test_nested_shards_end_at_the_depth_limit() -> None:
    """A cycle of hashes is impossible, but a deep chain is not."""
    below = shard([], 0)
    chain = [below]
    for _ in range(9):
        below = shard([BlockLink("00", below[0], 1)], 1)
        chain.append(below)
    with pytest.raises(FormatError, match="deeper"):
        read(chain[-1], *chain)


def test_names_with_equal_hashes_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hamt, "murmur3", lambda name: 7)
    with pytest.raises(FormatError, match="collide"):
        hamt.build([(b"a", CID_X.encode(), 1), (b"b", CID_X.encode(), 1)])
