"""CAR shards and their indexes: how blocks are stored in the blobs of a w3up service.

A shard is an ordinary CAR, spooled to disk until it is sent. An index (`index/sharded/dag@0.1`) is a small CAR with the
position of each block in its shards. The same blocks in the same order make the same shards and the same index, byte for
byte, so an upload that was cut off sends nothing twice. Nothing here sends anything.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

import msgspec

from ipfsmem.content.car import car_bytes, header, section
from ipfsmem.content.cid import CAR, CID, read_cid, read_varint
from ipfsmem.content.limits import BLOCK_MAX
from ipfsmem.content.verify import verify_block
from ipfsmem.errors import BlockError, FormatError, LimitError, ProviderRefused
from ipfsmem.provider.contract import Block
from ipfsmem_providers.http.body import SpooledFile
from ipfsmem_providers.web3storage import dag_cbor

INDEX: Final = "index/sharded/dag@0.1"
#: Maximum bytes of a shard, as in the service's own client.
SHARD_BYTES: Final = 133_169_152
#: Maximum number of blocks of a shard, so that its index stays small.
SHARD_BLOCKS: Final = 20_000
#: Maximum bytes of a small shard: it is read whole, without its index, and eventually merged with others.
SMALL_BYTES: Final = 1024 * 1024
#: Largest index that is read, in bytes; SHARD_BLOCKS blocks take about one MiB.
INDEX_BYTES: Final = 32 * 1024 * 1024
#: Reading a gap of this many bytes between wanted parts costs less than another request.
_NARROW: Final = 4 * 1024
#: Maximum number of requests for parts of one shard, and parts per additional request.
_REQUESTS: Final = 16
_PIECE: Final = 256 * 1024
_SHA256: Final = b"\x12\x20"


#: A part of a shard: offset, length, SHA-256 of the block.
Slice: TypeAlias = tuple[int, int, bytes]
#: The blocks of one shard: multihash -> offset, length.
Slices: TypeAlias = dict[bytes, tuple[int, int]]


class Position(NamedTuple):
    """Position of a block's bytes: the SHA-256 digest of the shard, and bytes in it."""

    shard: bytes
    offset: int
    length: int


class Blob(SpooledFile):
    """Bytes to store, named by their SHA-256."""

    @classmethod
    def of(cls, data: bytes) -> Blob:
        """Return a blob of these bytes."""
        blob = cls()
        blob.append(data)
        return blob

    @property
    def multihash(self) -> bytes:
        """Return its name at the service."""
        return _SHA256 + self.sha256

    @property
    def cid(self) -> CID:
        """Return the blob as a CAR."""
        return shard_cid(self.sha256)


class Shard(Blob):
    """A CAR that is being filled, with the position of each block."""

    def __init__(self, root: CID) -> None:
        super().__init__()
        self.slices: Slices = {}  #: multihash -> offset, length
        self.append(header([root]))

    def add(self, cid: CID, data: bytes) -> None:
        """Add a block. ProviderRefused when it does not match its CID."""
        try:
            verify_block(cid, data)
        except (BlockError, LimitError) as error:
            raise ProviderRefused(f"block {cid} was not sent: {error}") from error
        if cid.multihash[:2] != _SHA256:
            raise ProviderRefused(f"block {cid} was not sent: its hash is not SHA-256")
        self.append(section(cid, data))
        self.slices.setdefault(cid.multihash, (self.size - len(data), len(data)))


async def shards(
    root: CID, blocks: Iterable[Block], *, most_bytes: int = SHARD_BYTES, most_blocks: int = SHARD_BLOCKS
) -> AsyncGenerator[Shard, None]:
    """Fill shards with blocks, which are read once, in order, on this thread. The caller closes each shard."""
    shard: Shard | None = None
    seen: set[CID] = set()
    try:
        for cid, data in blocks:
            if cid in seen:
                continue
            if shard is not None and (
                shard.size + len(data) + 64 > most_bytes or len(shard.slices) >= most_blocks
            ):
                full, shard = shard, None
                yield full
            shard = shard or Shard(root)
            before = shard.size // _PIECE
            shard.add(cid, data)
            seen.add(cid)
            if shard.size // _PIECE != before:
                await asyncio.sleep(0)
        if shard is not None:
            full, shard = shard, None
            yield full
    finally:
        if shard is not None:
            shard.close()


def shard_cid(digest: bytes) -> CID:
    """Return the CID of a CAR with this SHA-256 digest."""
    return CID(1, CAR, _SHA256 + digest)


# -- indexes -------------------------------------------------------------------------------------------------------


class ShardIndex(msgspec.Struct, frozen=True):
    """An index as it is sent: the CID of its first block, and the CAR."""

    root: CID
    car: bytes


def make_index(content: CID, slices: Mapping[bytes, Mapping[bytes, tuple[int, int]]]) -> ShardIndex:
    """Return the index of shards (digest -> multihash -> offset and length) that hold blocks of the tree `content`.

    Format: w3-index, `index/sharded/dag@0.1`; shards and blocks in the order of their digests.
    """
    parts = [dag_cbor.block_of(_shard_index(digest, slices[digest])) for digest in sorted(slices)]
    root = dag_cbor.block_of(
        dag_cbor.encode({INDEX: {"content": content, "shards": [cid for cid, _ in parts]}})
    )
    return ShardIndex(root[0], car_bytes([root[0]], [*parts, root]))


def read_index(data: bytes) -> dict[bytes, list[tuple[bytes, int, int]]]:
    """Return shards (by digest) of an index and their blocks: digest, offset, length. FormatError when invalid.

    Only shards and blocks named by SHA-256 within the block limit are returned, which is all that we store.
    """
    try:
        return _read_index(data)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise FormatError(f"an index cannot be read: {error}") from None


def _read_index(data: bytes) -> dict[bytes, list[tuple[bytes, int, int]]]:
    blocks = dict(_sections(data))
    index: dict[bytes, list[tuple[bytes, int, int]]] = {}
    # Our own reader bounds the depth; with a faster library a block that nests deep enough ends the process.
    root = next((dag_cbor.decode(block) for block in blocks.values() if INDEX.encode() in block[:64]), None)
    if root is None:
        raise FormatError("an index cannot be read: no index in it")
    for link in root[INDEX]["shards"]:
        shard, slices = dag_cbor.decode(blocks[link])
        if shard[:2] != _SHA256 or len(shard) != 34:
            continue
        index[shard[2:]] = [
            (multihash[2:], offset, length)
            for multihash, (offset, length) in slices
            if multihash[:2] == _SHA256 and offset >= 0 and 0 <= length <= BLOCK_MAX
        ]
    return index


def _sections(data: bytes) -> Iterable[Block]:
    """Yield the blocks of a CAR whose whole digest was checked; those of an index may be longer than those of trees."""
    for cid, start, length in _places(data):
        yield cid, data[start : start + length]


def _places(data: bytes) -> Iterable[tuple[CID, int, int]]:
    size, at = read_varint(data, 0)
    at += size
    while at < len(data):
        size, at = read_varint(data, at)
        cid, start = read_cid(data, at)
        if at + size > len(data) or start > at + size:
            raise FormatError("a CAR ends inside a block")
        yield cid, start, at + size - start
        at += size


def _shard_index(digest: bytes, slices: Mapping[bytes, tuple[int, int]]) -> bytes:
    """Encode [shard multihash, [[block multihash, [offset, length]], ...]] as DAG-CBOR; written directly for speed."""
    head = dag_cbor.head
    out = [b"\x82", head(2, 34), _SHA256, digest, head(4, len(slices))]
    for multihash in sorted(slices):
        offset, length = slices[multihash]
        out += (b"\x82", head(2, len(multihash)), multihash, b"\x82", head(0, offset), head(0, length))
    return b"".join(out)


def group_slices(slices: Iterable[Slice]) -> list[list[Slice]]:
    """Group parts of a shard into few requests with few unwanted bytes.

    One group if more than half of the bytes from first to last are wanted. Otherwise the widest gaps separate
    groups, as long as a further request is worth it; narrow gaps are read as well.
    """
    ordered = sorted(slices)
    groups: list[list[Slice]] = []
    if not ordered:
        return groups
    gaps: list[tuple[int, int]] = []  # how wide, and before which part
    end = size = 0
    for number, (offset, length, _) in enumerate(ordered):
        if number and offset - end > _NARROW:
            gaps.append((offset - end, number))
        size += max(0, offset + length - max(end, offset))
        end = max(end, offset + length)
    if size * 2 > end - ordered[0][0]:
        return [ordered]
    most = _REQUESTS + len(ordered) // _REQUESTS
    splits = sorted(number for _, number in sorted(gaps, reverse=True)[: most - 1])
    for start, stop in zip([0, *splits], [*splits, len(ordered)], strict=True):
        groups.append(ordered[start:stop])
    return groups


def read_shard(data: bytes) -> list[tuple[CID, int, int]]:
    """Return blocks of a shard whose whole digest was checked: CID, offset, length. FormatError when it is
    not a CAR."""
    try:
        return [(cid, start, length) for cid, start, length in _places(data)]
    except (ValueError, IndexError) as error:
        raise FormatError(f"a shard cannot be read: {error}") from None
