"""The index beside a pack: where in the CAR file each block lies.

`<pack>.idx` = "ipmidx1\\n" | pack size (64 bit) | count (32 bit) | 256 running counts by first digest byte (32 bit) |
CRC-32 of all else (32 bit) | records, sorted: SHA-256 digest (32) | offset of the block's bytes (64 bit) | their
length (32 bit). Big-endian. "ipmidx1-" at the start says that the pack was damaged when the index was made.

An index is a cache that anybody may have damaged or forged: it is made again from its pack when the two do not fit, and each
block that is read by it is checked. It never decides what is stored. A sparse file can claim any size at no cost, so
what is read of an index in one go is bounded.
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
from ipfsmem_providers.packs.shelf import Head, Shelf

_MAGIC: Final = b"ipmidx1\n"
_MAGIC_DAMAGED: Final = b"ipmidx1-"
_HEAD: Final = struct.Struct(">8sQI256II")
_RECORD: Final = struct.Struct(">32sQI")
_SIZE: Final = _RECORD.size
#: Indexes up to this many bytes are read whole and checked when they are opened; of larger ones only parts are read.
_SMALL: Final = 1 << 20
#: Bytes of a large index that are read in one go: whole records.
_PIECE: Final = _SIZE * 8192
#: Indexes of more bytes are not kept in memory.
_KEPT: Final = _PIECE * 128
#: The fewest bytes that a block takes in a pack: its length and a CID with a SHA-256.
_LEAST: Final = 35
_HEADER_MAX: Final = 1 << 20
#: Sections that are no blocks, beyond the number of blocks, after which the rest of a pack is taken for garbage.
JUNK_MAX: Final = 1_000
_SECTION_MAX: Final = BLOCK_MAX + 256


class Place(NamedTuple):
    """Where a block's bytes lie in its pack."""

    digest: bytes
    offset: int
    length: int


class Section(NamedTuple):
    """One entry of a CAR file as a scan finds it; `sound` when the block has the SHA-256 that its CID says."""

    cid: bytes
    digest: bytes
    offset: int
    data: bytes
    sound: bool


class Index:
    """Digest to place, for one pack."""

    def __init__(self, shelf: Shelf | None, name: str, head: bytes, body: bytes | None) -> None:
        """The index `name` on `shelf`; without a shelf it is in memory only."""
        fields = _HEAD.unpack(head)
        #: Whether the pack had blocks that are not named here, because they were not sound.
        self.damaged: bool = fields[0] == _MAGIC_DAMAGED
        self.count: int = fields[2]
        self._fan = (0, *fields[3:259])
        self._head_crc = zlib.crc32(head[:-4])
        self._crc: int = fields[259]
        self._shelf = shelf
        self._name = name
        self._body = body

    def find(self, wanted: Collection[bytes]) -> list[Place]:
        """The places of the digests in `wanted` that this index names."""
        if self._body is None and len(wanted) * 64 > self.count:
            self._load()
        body = self._body
        if len(wanted) > self.count:
            return [place for place in self.places() if place.digest in wanted]
        if body is None:
            return self._find_on_shelf(wanted)
        found = []
        fan = self._fan
        for digest in wanted:
            first = digest[0]
            start, end = fan[first], fan[first + 1]
            if start != end:
                place = _search(body, digest, start * _SIZE, end * _SIZE)
                if place is not None:
                    found.append(place)
        return found

    def places(self) -> Iterator[Place]:
        """All places; reads the whole index. FileNotFoundError when its file is another one than was opened."""
        for piece in self._pieces():
            yield from map(Place._make, _RECORD.iter_unpack(piece))

    def intact(self) -> bool:
        """Whether the index is as it was written; reads it up to the first fault."""
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
        """The records in pieces of whole records."""
        self._load()
        if self._body is not None:
            yield self._body
            return
        if self._shelf is None:
            return
        left = self.count * _SIZE
        with self._shelf.open_file(self._name, buffered=True) as file:
            file.seek(_HEAD.size)
            while left:
                piece = file.read(min(left, _PIECE))
                if not piece or len(piece) % _SIZE:
                    raise FileNotFoundError("the index changed while it was read")
                left -= len(piece)
                yield piece

    def _load(self) -> None:
        """Read the records into memory, unless there are too many."""
        size = self.count * _SIZE
        if self._body is None and self._shelf is not None and size <= _KEPT:
            [body] = self._shelf.ranges(self._name, [(_HEAD.size, _HEAD.size + size)])
            if len(body) != size:
                raise FileNotFoundError("the index changed while it was read")
            self._body = body

    def _find_on_shelf(self, wanted: Collection[bytes]) -> list[Place]:
        if self._shelf is None:
            return []
        asked: list[bytes] = []
        spans: list[tuple[int, int]] = []
        for digest in wanted:
            start, end = self._fan[digest[0]], self._fan[digest[0] + 1]
            while (end - start) * _SIZE > _PIECE:
                middle = (start + end) // 2
                at = _HEAD.size + middle * _SIZE
                [found] = self._shelf.ranges(self._name, [(at, at + 32)])
                start, end = (middle, end) if found <= digest else (start, middle)
            if start != end:
                asked.append(digest)
                spans.append((_HEAD.size + start * _SIZE, _HEAD.size + end * _SIZE))
        pieces = self._shelf.ranges(self._name, spans) if spans else []
        places = [_search(piece, digest, 0, len(piece)) for digest, piece in zip(asked, pieces, strict=True)]
        return [place for place in places if place is not None]


def encode_index(places: Iterable[Place], pack_size: int, *, damaged: bool = False) -> bytes:
    """The bytes of an index file."""
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
    """An index from its bytes, in memory only and not checked: for one that was just made."""
    return Index(None, "", data[: _HEAD.size], data[_HEAD.size :])


def open_indexes(shelf: Shelf, packs: Mapping[str, int]) -> dict[str, Index]:
    """The indexes of these packs, by name. `packs`: name of the index -> bytes of its pack. Indexes that are missing or damaged
    are left out."""
    length = _HEAD.size + min(_SMALL, shelf.cheap_read_bytes)
    heads: dict[str, Head] = {}
    try:
        heads = shelf.heads(list(packs), length)
    except OSError:  # one of them cannot be read: each by itself, and that one is made again from its pack
        for name in packs:
            with contextlib.suppress(OSError):
                heads |= shelf.heads([name], length)
    opened = {name: _checked_index(shelf, name, packs[name], head) for name, head in heads.items()}
    return {name: index for name, index in opened.items() if index is not None}


def open_index(shelf: Shelf, name: str, pack_size: int) -> Index | None:
    """The index in a file; None when it is missing, damaged, or not that of a pack of `pack_size` bytes."""
    return open_indexes(shelf, {name: pack_size}).get(name)


def _checked_index(shelf: Shelf, name: str, pack_size: int, head: Head) -> Index | None:
    """The index whose file begins with `head`; None when it is damaged or belongs to another pack."""
    data, size = head
    if len(data) < _HEAD.size:
        return None
    magic, covers, count, *fan = _HEAD.unpack_from(data)
    fan.pop()  # the checksum
    if magic not in (_MAGIC, _MAGIC_DAMAGED) or covers != pack_size or size != _HEAD.size + count * _SIZE:
        return None
    # No pack has more blocks than it has room for their CIDs: an index that claims more is no index of it.
    if fan[-1] != count or fan != sorted(fan) or count * _LEAST > pack_size:
        return None
    whole = len(data) == size
    index = Index(shelf, name, data[: _HEAD.size], data[_HEAD.size :] if whole else None)
    return index if not whole or index.intact() else None


def scan(file: BinaryIO) -> Iterator[Section]:
    """The sections of a CAR file in order, as far as it can be read.

    A section that is no block with a SHA-256 is skipped. Raises FormatError where the framing breaks, where such sections are many
    more than blocks (garbage can be read as a million of them in a megabyte), or where the file ends inside a section; what came
    before stands.
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
        found = _section(section, end)
        room += 1 if found.digest else -1
        if room < 0:
            raise FormatError(f"a pack holds garbage before {end}")
        yield found
        position = end


def _section(section: bytes, end: int) -> Section:
    """A section that ends at `end`, without a digest where it is no block."""
    try:
        cid, start = read_cid(section, 0)
    except (FormatError, LimitError):
        return Section(b"", b"", end, b"", False)
    digest = cid.digest if cid.hash_code == SHA2_256 else b""
    data = section[start:]
    sound = digest != b"" and hashlib.sha256(data).digest() == digest
    return Section(section[:start], digest, end - len(data), data, sound)


def read_at(file: BinaryIO, offset: int, length: int) -> bytes:
    """`length` bytes from `offset`, fewer only at the end of the file: one read of a system may bring fewer."""
    file.seek(offset)
    data = file.read(length)
    while len(data) < length:
        more = file.read(length - len(data))
        if not more:
            break
        data += more
    return data


def _length(file: BinaryIO) -> int | None:
    """The varint at the position of `file`; None at its end."""
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


def _search(body: bytes, digest: bytes, start: int, end: int) -> Place | None:
    base = start % _SIZE
    while (position := body.find(digest, start, end)) >= 0:
        if position % _SIZE == base:
            return Place(*_RECORD.unpack_from(body, position)) if position + _SIZE <= end else None
        start = position + 1
    return None
