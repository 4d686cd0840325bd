"""The index of a pack: the position of each block in the CAR file.

`<pack>.idx` = "ipmidx1\n" | pack size (64 bit) | count (32 bit) | 256 running counts by first digest byte (32
bit) | CRC-32 of all else (32 bit) | records, sorted: SHA-256 digest (32) | offset of the block's bytes (64
bit) | their length (32 bit). Big-endian. "ipmidx1-" at the start marks a pack that was damaged when the index
was made.

An index is an untrusted cache: it is rebuilt from its pack when the two do not match, and each block read
through it is checked. It never decides what is stored. A sparse file can claim any size at no cost, so reads
of an index are bounded.
"""

from __future__ import annotations

import contextlib
import hashlib
import struct
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import BinaryIO, Final, NamedTuple

from ipfsmem.content.cid import SHA2_256, read_cid
from ipfsmem.content.limits import BLOCK_MAX
from ipfsmem.errors import FormatError, LimitError
from ipfsmem_providers.packs.blocking_work import heartbeat
from ipfsmem_providers.packs.object_store import Head, ObjectStore

_MAGIC: Final = b"ipmidx1\n"
_MAGIC_DAMAGED: Final = b"ipmidx1-"
_HEAD: Final = struct.Struct(">8sQI256II")
_RECORD: Final = struct.Struct(">32sQI")
_SIZE: Final = _RECORD.size
#: Indexes up to this many bytes are read whole and checked when they are opened; of larger ones only parts are read.
_SMALL: Final = 1 << 20
#: Bytes of a large index that are read in one go: whole records.
_PIECE: Final = _SIZE * 8192
#: Larger indexes are not kept in memory.
_KEPT: Final = _PIECE * 128
#: Minimum bytes of a block in a pack: its length and a CID with a SHA-256.
_LEAST: Final = 35
_HEADER_MAX: Final = 1 << 20
#: Number of non-block sections, beyond the number of blocks, after which the rest of a pack is treated as garbage.
JUNK_MAX: Final = 1_000
_SECTION_MAX: Final = BLOCK_MAX + 256


class BlockLocation(NamedTuple):
    """Position of a block's bytes in its pack."""

    digest: bytes
    offset: int
    length: int


class Section(NamedTuple):
    """One entry of a CAR file in a scan; `sound`: the block matches the SHA-256 in its CID."""

    cid: bytes
    digest: bytes
    offset: int
    data: bytes
    sound: bool


class Index:
    """Maps digests to positions, for one pack."""

    def __init__(self, store: ObjectStore | None, name: str, head: bytes, body: bytes | None) -> None:
        """The index `name` in `store`; without a store it is in memory only."""
        fields = _HEAD.unpack(head)
        #: Whether the pack had blocks that are not named here, because they were not sound.
        self.damaged: bool = fields[0] == _MAGIC_DAMAGED
        self.count: int = fields[2]
        self._fan = (0, *fields[3:259])
        self._head_crc = zlib.crc32(head[:-4])
        self._crc: int = fields[259]
        self._store = store
        self._name = name
        self._body = body

    def find(self, digests: Collection[bytes]) -> list[BlockLocation]:
        """Return the positions of `digests` in this index."""
        if self._body is None and len(digests) * 64 > self.count:
            self._load()
        body = self._body
        if len(digests) > self.count:
            return [place for place in self.places() if place.digest in digests]
        if body is None:
            return self._find_in_store(digests)
        locations = []
        fan = self._fan
        for digest in digests:
            first = digest[0]
            start, end = fan[first], fan[first + 1]
            if start != end:
                place = _search(body, digest, start * _SIZE, end * _SIZE)
                if place is not None:
                    locations.append(place)
        return locations

    def places(self) -> Iterator[BlockLocation]:
        """Yield all positions; reads the whole index. FileNotFoundError when its file was replaced since opening."""
        for piece in self._pieces():
            yield from map(BlockLocation._make, _RECORD.iter_unpack(piece))

    def intact(self) -> bool:
        """Return whether the index is as it was written; reads it up to the first fault."""
        crc, before = self._head_crc, b""
        try:
            for piece in self._pieces():
                # Digests are unique and in order: a hole of a sparse file is a fault.
                first, last = piece[:32], piece[-_SIZE:][:32]
                if (before and first <= before) or (len(piece) > _SIZE and last <= first):
                    return False
                crc, before = zlib.crc32(piece, crc), last
        except FileNotFoundError:
            return False
        return crc == self._crc

    def _pieces(self) -> Iterator[bytes]:
        """Yield the records in pieces of whole records."""
        self._load()
        if self._body is not None:
            yield self._body
            return
        if self._store is None:
            return
        rest = self.count * _SIZE
        with self._store.open_file(self._name, buffered=True) as file:
            file.seek(_HEAD.size)
            while rest:
                piece = file.read(min(rest, _PIECE))
                if not piece or len(piece) % _SIZE:
                    raise FileNotFoundError("the index changed during the read")
                rest -= len(piece)
                yield piece

    def _load(self) -> None:
        """Read the records into memory, unless there are too many."""
        size = self.count * _SIZE
        if self._body is None and self._store is not None and size <= _KEPT:
            [body] = self._store.ranges(self._name, [(_HEAD.size, _HEAD.size + size)])
            if len(body) != size:
                raise FileNotFoundError("the index changed during the read")
            self._body = body

    def _find_in_store(self, digests: Collection[bytes]) -> list[BlockLocation]:
        if self._store is None:
            return []
        present: list[bytes] = []
        spans: list[tuple[int, int]] = []
        for digest in digests:
            start, end = self._fan[digest[0]], self._fan[digest[0] + 1]
            while (end - start) * _SIZE > _PIECE:
                middle = (start + end) // 2
                at = _HEAD.size + middle * _SIZE
                [entry] = self._store.ranges(self._name, [(at, at + 32)])
                start, end = (middle, end) if entry <= digest else (start, middle)
            if start != end:
                present.append(digest)
                spans.append((_HEAD.size + start * _SIZE, _HEAD.size + end * _SIZE))
        pieces = self._store.ranges(self._name, spans) if spans else []
        places = [
            _search(piece, digest, 0, len(piece)) for digest, piece in zip(present, pieces, strict=True)
        ]
        return [place for place in places if place is not None]


def encode_index(places: Iterable[BlockLocation], pack_size: int, *, damaged: bool = False) -> bytes:
    """Return the bytes of an index file."""
    pack = _RECORD.pack
    records = sorted([pack(*place) for place in places])
    body = b"".join(records)
    counts = [0] * 256
    for record in records:
        counts[record[0]] += 1
    total = 0
    for byte, count in enumerate(counts):
        total += count
        counts[byte] = total
    magic = _MAGIC_DAMAGED if damaged else _MAGIC
    head = _HEAD.pack(magic, pack_size, len(records), *counts, 0)[:-4]
    return head + zlib.crc32(body, zlib.crc32(head)).to_bytes(4, "big") + body


def decode_index(data: bytes) -> Index:
    """Parse an index in memory, unchecked: for one just made."""
    return Index(None, "", data[: _HEAD.size], data[_HEAD.size :])


def open_indexes(store: ObjectStore, packs: Mapping[str, int]) -> dict[str, Index]:
    """Return the indexes of these packs, by name. `packs`: name of the index -> bytes of its pack. Indexes
    that are missing or damaged are left out."""
    length = _HEAD.size + min(_SMALL, store.cheap_read_bytes)
    heads: dict[str, Head] = {}
    try:
        heads = store.heads(list(packs), length)
    except OSError:  # one of them is unreadable: read them one by one, and rebuild that one from its pack
        for name in packs:
            with contextlib.suppress(OSError):
                heads |= store.heads([name], length)
    opened = {name: _checked_index(store, name, packs[name], head) for name, head in heads.items()}
    return {name: index for name, index in opened.items() if index is not None}


def open_index(store: ObjectStore, name: str, pack_size: int) -> Index | None:
    """Return the index in a file; None when it is missing, damaged, or not that of a pack of `pack_size` bytes."""
    return open_indexes(store, {name: pack_size}).get(name)


def _checked_index(store: ObjectStore, name: str, pack_size: int, head: Head) -> Index | None:
    """Return the index whose file begins with `head`; None when damaged or of another pack."""
    data, size = head
    if len(data) < _HEAD.size:
        return None
    magic, covers, count, *fan = _HEAD.unpack_from(data)
    fan.pop()  # the checksum
    if magic not in (_MAGIC, _MAGIC_DAMAGED) or covers != pack_size or size != _HEAD.size + count * _SIZE:
        return None
    # A pack cannot have more blocks than room for their CIDs, so an index that claims more is not its own.
    if fan[-1] != count or fan != sorted(fan) or count * _LEAST > pack_size:
        return None
    whole = len(data) == size
    index = Index(store, name, data[: _HEAD.size], data[_HEAD.size :] if whole else None)
    return index if not whole or index.intact() else None


def scan(file: BinaryIO) -> Iterator[Section]:
    """Yield the sections of a CAR file in order, as far as readable.

    A section that is not a block with a SHA-256 is skipped. Raises FormatError when the framing breaks, when
    such sections far outnumber blocks (garbage can be parsed as a million of them per megabyte), or when the
    file ends inside a section; earlier sections remain valid.
    """
    header = _length(file)
    if header is None or not 0 < header <= _HEADER_MAX:
        raise FormatError("a pack has no CAR header")
    position = file.seek(header, 1)
    room = JUNK_MAX
    while (length := _length(file)) is not None:
        if not 0 < length <= _SECTION_MAX:
            raise FormatError(f"a pack has a section of {length} bytes")
        section = file.read(length)
        heartbeat()
        end = file.tell()
        if len(section) != length:
            raise FormatError(f"a pack ends inside the section at {position}")
        last = _section(section, end)
        room += 1 if last.digest else -1
        if room < 0:
            raise FormatError(f"a pack holds garbage before {end}")
        yield last
        position = end


def _section(section: bytes, end: int) -> Section:
    """Return a section that ends at `end`, without a digest if it is not a block."""
    try:
        cid, start = read_cid(section, 0)
    except (FormatError, LimitError):
        return Section(b"", b"", end, b"", False)
    digest = cid.digest if cid.hash_code == SHA2_256 else b""
    data = section[start:]
    sound = digest != b"" and hashlib.sha256(data).digest() == digest
    return Section(section[:start], digest, end - len(data), data, sound)


def read_at(file: BinaryIO, offset: int, length: int) -> bytes:
    """Return `length` bytes from `offset`, fewer only at the end of the file: a single system read may return fewer."""
    file.seek(offset)
    data = file.read(length)
    while len(data) < length:
        more = file.read(length - len(data))
        if not more:
            break
        data += more
    return data


def _length(file: BinaryIO) -> int | None:
    """Return the varint at the position of `file`; None at its end."""
    value = shift = 0
    while shift < 35:
        byte = file.read(1)
        if not byte:
            if shift:
                raise FormatError("a pack ends inside a length")
            return None
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return value
        shift += 7
    raise FormatError("a pack has a length that is too large")


def _search(body: bytes, digest: bytes, start: int, end: int) -> BlockLocation | None:
    base = start % _SIZE
    while (position := body.find(digest, start, end)) >= 0:
        if position % _SIZE == base:
            return BlockLocation(*_RECORD.unpack_from(body, position)) if position + _SIZE <= end else None
        start = position + 1
    return None
