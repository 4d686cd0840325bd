"""Build and read the UnixFS hash trie (HAMT) with murmur3, for folders too large for one block.

The trie is a pure function of the set of links. `read_shard` checks the position of every name, so that a lookup and
a listing have the same result. `reader` fetches shards.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from ipfsmem.content.cid import CID, PB_PREFIX
from ipfsmem.content.dagpb import TYPE_HAMT, BlockLink, RawLink, UnixFS, encode_raw, encode_unixfs, name_bytes
from ipfsmem.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ipfsmem.content.dagpb import PbNode

FANOUT = 256
#: Multihash code of murmur3-x64-64, named as the hash in shards.
MURMUR3 = 0x22
_HASH_BITS = 64
_MASK = 0xFFFFFFFFFFFFFFFF
_C1 = 0x87C37B91114253D5
_C2 = 0x4CF5AD432745937F
#: A link, with the hash of its name.
Hashed = tuple[bytes, RawLink]
_LABELS = [b"%02X" % index for index in range(FANOUT)]


def murmur3(data: bytes) -> int:
    """Return the first 64 bits of murmur3 x64 128, seed 0, as in go-unixfs and the JavaScript importer."""
    size = len(data)
    h1 = h2 = 0
    whole = size & ~15
    for start in range(0, whole, 16):
        k1 = int.from_bytes(data[start : start + 8], "little") * _C1 & _MASK
        k1 = (k1 << 31 | k1 >> 33) * _C2 & _MASK
        h1 ^= k1
        h1 = (h1 << 27 | h1 >> 37) + h2 & _MASK
        h1 = h1 * 5 + 0x52DCE729 & _MASK
        k2 = int.from_bytes(data[start + 8 : start + 16], "little") * _C2 & _MASK
        k2 = (k2 << 33 | k2 >> 31) * _C1 & _MASK
        h2 ^= k2
        h2 = (h2 << 31 | h2 >> 33) + h1 & _MASK
        h2 = h2 * 5 + 0x38495AB5 & _MASK
    tail = data[whole:]
    if len(tail) > 8:
        k2 = int.from_bytes(tail[8:], "little") * _C2 & _MASK
        h2 ^= (k2 << 33 | k2 >> 31) * _C1 & _MASK
    if tail:
        k1 = int.from_bytes(tail[:8], "little") * _C1 & _MASK
        h1 ^= (k1 << 31 | k1 >> 33) * _C2 & _MASK
    h1 ^= size
    h2 ^= size
    h1 = h1 + h2 & _MASK
    h2 = h2 + h1 & _MASK
    return _mix(h1) + _mix(h2) & _MASK


def _mix(value: int) -> int:
    value = (value ^ value >> 33) * 0xFF51AFD7ED558CCD & _MASK
    value = (value ^ value >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
    return value ^ value >> 33


def name_hash(name: bytes) -> bytes:
    """Return the hash that determines a name's position: eight bytes, each the slot on its level."""
    return murmur3(name).to_bytes(8, "big")


def build(links: Sequence[RawLink]) -> tuple[list[tuple[bytes, bytes]], int]:
    """Build all shards of a folder, as (CID bytes, block) with the root last, and return them with the total size.

    Raises FormatError if two names have equal 64-bit hashes, which a HAMT cannot represent.
    """
    blocks: list[tuple[bytes, bytes]] = []
    _, tsize = shard([(name_hash(link[0]), link) for link in links], 0, blocks)
    return blocks, tsize


def shard(hashed: Sequence[Hashed], level: int, blocks: list[tuple[bytes, bytes]]) -> tuple[bytes, int]:
    """Build the shard of these links on a level and append its blocks, the shard itself last; return its CID and
    size."""
    # Recursion ends after eight levels: a hash has eight bytes.
    slots: dict[int, list[Hashed]] = {}
    if level == 8:
        raise FormatError(
            f"names collide in all bits of their hash: {hashed[0][1][0]!r}, {hashed[1][1][0]!r}"
        )
    for item in hashed:
        slots.setdefault(item[0][level], []).append(item)
    below: dict[int, RawLink] = {
        index: items[0][1] if len(items) == 1 else (b"", *shard(items, level + 1, blocks))
        for index, items in slots.items()
    }
    cid, size, block = node(below)
    blocks.append((cid, block))
    return cid, size


def node(below: Mapping[int, RawLink]) -> tuple[bytes, int, bytes]:
    """Build one shard and return CID, size and block. `below`: by slot, a file's link, or an unnamed link to a shard."""
    rows: list[RawLink] = []
    bitmap = total = 0
    for index, (name, cid, size) in below.items():
        bitmap |= 1 << index
        rows.append((_LABELS[index] + name, cid, size))
        total += size
    data = UnixFS(
        TYPE_HAMT,
        bitmap.to_bytes((bitmap.bit_length() + 7) // 8, "big"),
        hash_type=MURMUR3,
        fanout=FANOUT,
    )
    block = encode_raw(rows, encode_unixfs(data))
    return PB_PREFIX + sha256(block).digest(), total + len(block), block


class Shard(NamedTuple):
    """One decoded shard: entries by name, and child shards by slot."""

    entries: tuple[tuple[int, BlockLink], ...]
    children: tuple[tuple[int, CID], ...]
    bits: int


def read_shard(node: PbNode, message: UnixFS, prefix: int, used: int) -> Shard:
    """Decode and check one shard. `prefix`: the first `used` bits of the hashes of all names below it.

    Raises FormatError if bitmap and links differ, or a name is not at the position of its hash.
    """
    fanout = message.fanout
    if message.hash_type != MURMUR3 or fanout not in (8, 16, 32, 64, 128, 256, 512, 1024):
        raise FormatError(
            f"a shard has hash {message.hash_type} and fanout {fanout}, not murmur3 and up to 1024"
        )
    bits = fanout.bit_length() - 1
    if used + bits > _HASH_BITS:
        raise FormatError("a sharded folder is deeper than its hash")
    width = len(f"{fanout - 1:X}")
    entries: list[tuple[int, BlockLink]] = []
    children: list[tuple[int, CID]] = []
    bitmap = 0
    for link in node.links:
        index = _slot(link.name[:width], width, fanout)
        if bitmap >> index & 1:
            raise FormatError("a shard has two links in one slot")
        bitmap |= 1 << index
        name = link.name[width:]
        if not name:
            children.append((index, link.cid))
            continue
        if murmur3(name_bytes(name)) >> (_HASH_BITS - used - bits) != prefix << bits | index:
            raise FormatError(f"a shard holds {name!r}, which belongs elsewhere")
        entries.append((index, BlockLink(name, link.cid, link.tsize)))
    if bitmap != int.from_bytes(message.data, "big"):
        raise FormatError("the bitmap of a shard does not fit its links")
    return Shard(tuple(entries), tuple(children), bits)


def _slot(label: str, width: int, fanout: int) -> int:
    try:
        index = int(label, 16)
    except ValueError:
        index = fanout
    if index >= fanout or label != f"{index:0{width}X}":
        raise FormatError(f"a shard has a link with label {label!r}")
    return index
