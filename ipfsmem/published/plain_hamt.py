"""Build the folder of all memories in the plain layout; if it is a HAMT, rebuild only the changed shards.

The shards below each slot of the top are cached under a hash of all their links (names and CIDs), and reused only
while all their blocks are local. The result is byte-identical to a full build.
"""

from __future__ import annotations

from hashlib import sha256

import msgspec

from ipfsmem.content import dagpb, hamt
from ipfsmem.content.dagpb import RawLink
from ipfsmem.content.hamt import Hashed
from ipfsmem.content.unixfs import SHARD_ABOVE
from ipfsmem.device.database import Database
from ipfsmem.device.root_folders import Folder, add_folder
from ipfsmem.device.source_hash import source_hash
from ipfsmem.device.tables import meta
from ipfsmem.errors import IpfsmemError


class _Slot(msgspec.Struct, frozen=True, array_like=True):
    """Cache entry for one slot of the top shard: its hash, the root of its shards, the digests of all of them."""

    code: bytes
    links: bytes
    cid: bytes
    size: int
    blocks: list[bytes]


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(_Slot)


def flat_folder(db: Database, hashed: list[Hashed], scope: str = "") -> Folder:
    """Build the folder of these links, each with the hash of its name, in the block store (inside a transaction).

    `scope` separates its cached shards from those of other scopes.
    """
    # As in `raw_directory`: a larger folder never fits into one block.
    if sum([len(link[0]) + len(link[1]) + 6 for _, link in hashed]) <= SHARD_ABOVE:
        return add_folder(db, [link for _, link in hashed])
    slots: dict[int, list[Hashed]] = {}
    for item in hashed:
        slots.setdefault(item[0][0], []).append(item)
    below: dict[int, RawLink] = {}
    for index, items in slots.items():
        below[index] = items[0][1] if len(items) == 1 else (b"", *_shards(db, scope, index, items))
    cid, size, block = hamt.node(below)
    db.add_blocks([(cid[4:], block)])
    return cid, size


def _shards(db: Database, scope: str, index: int, items: list[Hashed]) -> Folder:
    items.sort()
    links = sha256(
        b"".join([b"%d,%b,%b,%d;" % (len(n), n, cid, size) for _, (n, cid, size) in items])
    ).digest()
    row, code = f"{meta.PLAIN_SHARD}{scope}/{index:02x}", _code()
    known = _slot(db, row)
    if (
        known is not None
        and known.links == links
        and known.code == code
        and all(db.has_block(digest) for digest in known.blocks)
    ):
        return known.cid, known.size
    blocks: list[tuple[bytes, bytes]] = []
    cid, size = hamt.shard(items, 1, blocks)
    made = [(cid[4:], data) for cid, data in blocks]
    db.add_blocks(made)
    slot = _Slot(code, links, cid, size, [digest for digest, _ in made])
    db.set_meta(row, _encode(slot))
    return cid, size


def forget_flat(db: Database, scope: str) -> None:
    """Remove the cached shards of a deleted scope (inside a transaction)."""
    meta.forget_all(db.connection, f"{meta.PLAIN_SHARD}{scope}/")


def _slot(db: Database, row: str) -> _Slot | None:
    try:
        stored = db.get_meta(row)
        return None if stored is None else _decoder.decode(stored)
    except (IpfsmemError, msgspec.DecodeError, UnicodeDecodeError):
        return None  # derived: rebuilt


def _code() -> bytes:
    return source_hash(hamt, dagpb)
