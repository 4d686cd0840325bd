"""Write and strictly parse CAR files, version 1.

Callers feed bytes to the parser, from files, memory or network streams. Each block is checked against its CID before
it is returned. `reader` interprets the blocks.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Protocol

from ipfsmem.content.cid import CID, PB_PREFIX, RAW_PREFIX, decode_cid, read_cid, varint
from ipfsmem.content.limits import BLOCK_MAX, CAR_HEADER_MAX, OWN_LIMITS, Limits
from ipfsmem.content.verify import verify_block
from ipfsmem.errors import BlockError, FormatError, LimitError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ipfsmem.content.unixfs import Block, Readable

#: Maximum bytes of a CID before a block, with margin.
_CID_MAX = 160
_READ = 1 << 18


class Writable(Protocol):
    """A binary stream to write to."""

    def write(self, data: bytes, /) -> object: ...


def header(roots: Sequence[CID]) -> bytes:
    """Return the header of a CAR with these roots: DAG-CBOR after its length."""
    if len(roots) > 0xFF:
        raise LimitError(f"a CAR header with {len(roots)} roots would be too long")
    parts = [b"\xa2\x65roots", bytes((0x80 | len(roots),)) if len(roots) < 24 else bytes((0x98, len(roots)))]
    for root in roots:
        link = b"\0" + root.encode()
        parts += (
            b"\xd8\x2a",
            bytes((0x58, len(link))) if len(link) > 23 else bytes((0x40 | len(link),)),
            link,
        )
    parts.append(b"\x67version\x01")
    body = b"".join(parts)
    if len(body) > CAR_HEADER_MAX:
        raise LimitError(f"a CAR header with {len(roots)} roots would be too long")
    return varint(len(body)) + body


#: Bytes of the header of a CAR with one root that is a CIDv1 with SHA-256.
ONE_ROOT_HEADER = len(header([CID(1, 0x70, b"\x12\x20" + bytes(32))]))


def section(cid: CID, data: bytes) -> bytes:
    """Return one block as stored in a CAR."""
    encoded = cid.encode()
    return varint(len(encoded) + len(data)) + encoded + data


def write_car(out: Writable, roots: Sequence[CID], blocks: Iterable[Block]) -> int:
    """Write a CAR and return the number of bytes written. A repeated CID is written once."""
    head = header(roots)
    out.write(head)
    total = len(head)
    seen: set[CID] = set()
    for cid, data in blocks:
        if cid in seen:
            continue
        if len(data) > BLOCK_MAX:
            raise LimitError(f"block {cid} has {len(data)} bytes, {BLOCK_MAX} allowed")
        seen.add(cid)
        part = section(cid, data)
        out.write(part)
        total += len(part)
    return total


def car_bytes(roots: Sequence[CID], blocks: Iterable[Block]) -> bytes:
    """Return a whole CAR in memory."""
    parts: list[bytes] = []

    class _Sink:
        def write(self, data: bytes, /) -> None:
            parts.append(data)

    write_car(_Sink(), roots, blocks)
    return b"".join(parts)


class CarParser:
    """Parses a CAR incrementally and returns its blocks, each checked against its CID.

    `roots` is None until the header is read. Raises BlockError for a block that does not match its CID, LimitError
    beyond `limits`, FormatError if the input is not a valid CAR.
    """

    def __init__(self, limits: Limits = OWN_LIMITS, *, verify: bool = True) -> None:
        self.roots: tuple[CID, ...] | None = None
        self.blocks = 0
        self.total_bytes = 0
        self._limits = limits
        self._verify = verify
        # Pieces are joined only when their section is complete, so that small pieces cause no repeated copies.
        self._waiting: list[bytes] = []
        self._have = 0
        self._need = 1

    def feed(self, data: bytes) -> list[Block]:
        """Return the blocks completed by `data`."""
        self._waiting.append(data)
        self._have += len(data)
        if self._have < self._need:
            return []
        if len(self._waiting) > 1:
            data = b"".join(self._waiting)
        position = 0
        if self.roots is None:
            position = self._header(data)
        out: list[Block] = []
        if self.roots is not None:
            position = self._sections(data, position, out)
        rest = data[position:]
        self._waiting = [rest] if rest else []
        self._have = len(rest)
        return out

    def close(self) -> None:
        """End the input. Raises FormatError if the CAR ends inside its header or a block."""
        if self.roots is None:
            raise FormatError("a CAR ends inside its header")
        if self._have:
            raise FormatError(f"a CAR ends inside a block, after {self.blocks} whole ones")

    def _header(self, data: bytes) -> int:
        read = _short_varint(data, 0, CAR_HEADER_MAX, "the header of a CAR")
        if read is None:
            self._need = len(data) + 1
            return 0
        size, start = read
        if not size:
            raise FormatError("a CAR has an empty header")
        if len(data) < start + size:
            self._need = start + size
            return 0
        self.roots = _decode_header(data[start : start + size])
        return start + size

    def _sections(self, data: bytes, position: int, out: list[Block]) -> int:
        end = len(data)
        limits = self._limits
        self._need = 1
        while position < end:
            read = _short_varint(data, position, BLOCK_MAX + _CID_MAX, "a block of a CAR")
            if read is None:
                self._need = end - position + 1
                break
            size, start = read
            after = start + size
            if after > end:
                self._need = after - position
                break
            if not size:
                raise FormatError("a CAR has an empty section")
            prefix = data[start : start + 4]
            if size >= 36 and prefix in (RAW_PREFIX, PB_PREFIX):
                block = data[start + 36 : after]
                cid = CID(1, prefix[1], data[start + 2 : start + 36])
                if self._verify and sha256(block).digest() != cid.multihash[2:]:
                    raise BlockError(f"block {cid} does not match its CID")
            else:
                cid, body = read_cid(data[start : min(after, start + _CID_MAX)], 0)
                block = data[start + body : after]
                if self._verify:
                    verify_block(cid, block)
            if len(block) > BLOCK_MAX:
                raise LimitError(f"block {cid} has {len(block)} bytes, {BLOCK_MAX} allowed")
            position = after
            self.blocks += 1
            self.total_bytes += len(block)
            if self.blocks > limits.blocks:
                raise LimitError(f"a CAR has more than {limits.blocks} blocks")
            if self.total_bytes > limits.total_bytes:
                raise LimitError(f"a CAR has more than {limits.total_bytes} bytes in its blocks")
            out.append((cid, block))
        return position


class CarReader:
    """Iterates over the blocks of a CAR in a file or in memory; `roots` is available from the start."""

    roots: tuple[CID, ...]

    def __init__(self, source: bytes | Readable, limits: Limits = OWN_LIMITS, *, verify: bool = True) -> None:
        self._parser = CarParser(limits, verify=verify)
        self._pieces = _pieces(source)
        self._first: list[Block] = []
        while self._parser.roots is None:
            piece = next(self._pieces, None)
            if piece is None:
                self._parser.close()
                break
            self._first = self._parser.feed(piece)
        self.roots = self._parser.roots or ()

    def __iter__(self) -> Iterator[Block]:
        yield from self._first
        self._first = []
        for piece in self._pieces:
            yield from self._parser.feed(piece)
        self._parser.close()


def read_car(source: bytes | Readable, limits: Limits = OWN_LIMITS, *, verify: bool = True) -> CarReader:
    """Open a CAR in memory or in a binary stream: `.roots`, and an iterator over checked blocks."""
    return CarReader(source, limits, verify=verify)


def _pieces(source: bytes | Readable) -> Iterator[bytes]:
    if isinstance(source, (bytes, bytearray, memoryview)):
        # In slices, so that a caller that stops early does not copy the rest.
        view = memoryview(source)
        for start in range(0, len(view), 1 << 22):
            yield bytes(view[start : start + (1 << 22)])
        return
    while True:
        data = source.read(_READ)
        if not data:
            return
        yield data


def _short_varint(data: bytes, position: int, most: int, what: str) -> tuple[int, int] | None:
    """Return a length of at most `most`; None if the data ends inside it."""
    value = shift = 0
    for at in range(position, min(position + 4, len(data))):
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if byte == 0 and shift:
                raise FormatError(f"the length of {what} is not in its shortest form")
            if value > most:
                raise LimitError(f"{what} has {value} bytes, {most} allowed")
            return value, at + 1
        shift += 7
    if len(data) - position >= 4:
        raise LimitError(f"{what} is longer than {most} bytes")
    return None


def _decode_header(data: bytes) -> tuple[CID, ...]:
    if data == b"\xa1\x67version\x02":
        raise FormatError("this is a CAR of version 2; version 1 is needed")
    roots: list[CID] | None = None
    version = 0
    if data[:1] != b"\xa2":
        raise FormatError("the header of a CAR is not a map of roots and version")
    position = 1
    for _ in range(2):
        if roots is None and data[position : position + 6] == b"\x65roots":
            roots, position = _decode_roots(data, position + 6)
        elif not version and data[position : position + 8] == b"\x67version":
            version = data[position + 8] if position + 8 < len(data) else 0
            position += 9
        else:
            raise FormatError("the header of a CAR is not a map of roots and version")
    if version != 1:
        raise FormatError("the header of a CAR does not say version 1")
    if position != len(data) or roots is None:
        raise FormatError("the header of a CAR has bytes after its end")
    return tuple(roots)


def _decode_roots(data: bytes, position: int) -> tuple[list[CID], int]:
    count, position = _cbor_size(data, position, 0x80)
    roots: list[CID] = []
    for _ in range(count):
        if data[position : position + 2] != b"\xd8\x2a":
            raise FormatError("a root in the header of a CAR is not a link")
        size, position = _cbor_size(data, position + 2, 0x40)
        link = data[position : position + size]
        if len(link) != size or link[:1] != b"\0":
            raise FormatError("a root in the header of a CAR is not a CID")
        roots.append(decode_cid(link[1:]))
        position += size
    return roots, position


def _cbor_size(data: bytes, position: int, major: int) -> tuple[int, int]:
    """Return the length of a CBOR array or byte string in its shortest form; headers need at most 255."""
    head = data[position] if position < len(data) else 0
    if head & 0xE0 != major:
        raise FormatError("the header of a CAR is not valid")
    small = head & 0x1F
    if small < 24:
        return small, position + 1
    if small == 24 and position + 1 < len(data) and data[position + 1] >= 24:
        return data[position + 1], position + 2
    raise FormatError("the header of a CAR is not valid")
