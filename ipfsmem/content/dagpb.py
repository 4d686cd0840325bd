"""Encode and decode dag-pb nodes (data with named links) and the UnixFS message in their data.

The encoder writes the canonical form: links sorted by the bytes of their names, links before data, fields in order.
The decoder is strict, except that links may be unsorted and data may precede them, as older programs write.
`reader` and `hamt` interpret nodes.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from ipfsmem.content.cid import CID, decode_cid, read_varint, varint
from ipfsmem.content.limits import BLOCK_MAX
from ipfsmem.errors import FormatError, LimitError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

# UnixFS Data.Type
TYPE_RAW = 0
TYPE_DIRECTORY = 1
TYPE_FILE = 2
TYPE_SYMLINK = 4
TYPE_HAMT = 5

#: A link: (name as UTF-8, CID as bytes, size in bytes of all blocks below).
RawLink = tuple[bytes, bytes, int]
_by_name = itemgetter(0)


class BlockLink(NamedTuple):
    """A named link to a block. `tsize`: bytes of that block and all blocks below it, repeated ones counted again."""

    name: str
    cid: CID
    tsize: int


class PbNode(NamedTuple):
    """A decoded dag-pb node."""

    links: tuple[BlockLink, ...]
    data: bytes | None


class UnixFS(NamedTuple):
    """The UnixFS message in a node's data. `mode` and `mtime` are ignored."""

    type: int
    data: bytes = b""
    filesize: int | None = None
    blocksizes: tuple[int, ...] = ()
    hash_type: int = 0
    fanout: int = 0


def name_bytes(name: str) -> bytes:
    """Return a link name in UTF-8. Raises FormatError for lone surrogates."""
    try:
        return name.encode()
    except UnicodeEncodeError:
        raise FormatError(f"{name!r} is not valid Unicode") from None


def raw_links(links: Iterable[BlockLink]) -> list[RawLink]:
    """Return the links with names and CIDs as bytes."""
    return [(name_bytes(link.name), link.cid.encode(), link.tsize) for link in links]


def encode_raw_link(link: RawLink) -> bytes:
    """Encode one link as a field of its node."""
    name, cid, tsize = link
    size = len(name)
    if size < 0x80 and len(cid) < 0x80:  # one byte each, except for very long names
        body = b"\x0a%c%b\x12%c%b\x18%b" % (len(cid), cid, size, name, varint(tsize))
    else:
        body = b"".join((b"\x0a", varint(len(cid)), cid, b"\x12", varint(size), name, b"\x18", varint(tsize)))
    return b"\x12" + varint(len(body)) + body


def encode_raw(links: Sequence[RawLink], data: bytes | None) -> bytes:
    """Encode a node. Sorts the links by name; equal names keep their order."""
    parts = [encode_raw_link(link) for link in sorted(links, key=_by_name)]
    if data is not None:
        parts.append(b"\x0a" + varint(len(data)) + data)
    return b"".join(parts)


def decode_node(block: bytes) -> PbNode:
    """Decode a dag-pb block, links in the order written. Raises FormatError or LimitError."""
    if len(block) > BLOCK_MAX:
        raise LimitError(f"a dag-pb block has {len(block)} bytes, {BLOCK_MAX} allowed")
    links: list[BlockLink] = []
    data: bytes | None = None
    closed = False  # links came before the data, so none may follow it
    position = 0
    end = len(block)
    while position < end:
        tag = block[position]
        if tag not in (0x0A, 0x12):
            raise FormatError(f"a dag-pb node has an unknown field (byte {tag})")
        size, start = read_varint(block, position + 1)
        position = start + size
        if position > end:
            raise FormatError("a dag-pb node ends inside a field")
        if tag == 0x0A:
            if data is not None:
                raise FormatError("a dag-pb node has two data fields")
            data = block[start:position]
            closed = bool(links)
        else:
            if closed:
                raise FormatError("a dag-pb node has links on both sides of its data")
            links.append(_decode_link(block[start:position]))
    return PbNode(tuple(links), data)


def link_fields(block: bytes) -> list[bytes]:
    """Return the encoded links of a dag-pb block, to compare many links before decoding any.

    Raises FormatError for broken framing.
    """
    fields: list[bytes] = []
    position, end = 0, len(block)
    while position < end:
        size = block[position + 1] if position + 1 < end else 0x80
        if size < 0x80:
            start = position + 2
        else:
            size, start = read_varint(block, position + 1)
        if block[position] == 0x12:
            fields.append(block[start : start + size])
        position = start + size
    if position > end:
        raise FormatError("a dag-pb node ends inside a field")
    return fields


def count_links(block: bytes) -> int:
    """Count the links of a dag-pb block without decoding them, since an eight-byte link decodes to a Python object of
    hundreds of bytes.

    Raises FormatError for broken framing.
    """
    count = position = 0
    end = len(block)
    while position < end:
        count += block[position] == 0x12
        size, start = read_varint(block, position + 1)
        position = start + size
    if position > end:
        raise FormatError("a dag-pb node ends inside a field")
    return count


def decode_link(body: bytes) -> BlockLink:
    """Decode a link returned by `link_fields`. Raises FormatError or LimitError."""
    return _decode_link(body)


def _decode_link(body: bytes) -> BlockLink:
    size = len(body)
    # Fast path for the common form: 36 bytes of CID, a name under 128 bytes, a size.
    if size > 42 and body[0] == 0x0A and body[1] == 36 and body[38] == 0x12 and body[39] < 0x80:
        after = 40 + body[39]
        if after + 1 < size and body[after] == 0x18:
            tsize, end = read_varint(body, after + 1)
            if end == size:
                return BlockLink(_text(body[40:after]), decode_cid(body[2:38]), tsize)
    cid: CID | None = None
    name = ""
    tsize = 0
    seen = 0
    for field, number, value in _fields(body, "a dag-pb link"):
        if field <= seen:
            raise FormatError("a dag-pb link has fields out of order or twice")
        seen = field
        if field == 1 and value is not None:
            cid = decode_cid(value)
        elif field == 2 and value is not None:
            name = _text(value)
        elif field == 3 and value is None:
            tsize = number
        else:
            raise FormatError(f"a dag-pb link has an unknown field {field}")
    if cid is None:
        raise FormatError("a dag-pb link has no CID")
    return BlockLink(name, cid, tsize)


def encode_unixfs(message: UnixFS) -> bytes:
    """Encode the UnixFS message like go-unixfs: fields in order, block sizes unpacked."""
    parts = [b"\x08", varint(message.type)]
    if message.data:
        parts += (b"\x12", varint(len(message.data)), message.data)
    if message.filesize is not None:
        parts += (b"\x18", varint(message.filesize))
    for size in message.blocksizes:
        parts += (b"\x20", varint(size))
    if message.hash_type:
        parts += (b"\x28", varint(message.hash_type))
    if message.fanout:
        parts += (b"\x30", varint(message.fanout))
    return b"".join(parts)


def decode_unixfs(body: bytes) -> UnixFS:
    """Decode the UnixFS message in a node's data. Raises FormatError for anything else."""
    numbers: dict[int, int] = {}
    data: bytes | None = None
    sizes: list[int] = []
    seen: set[int] = set()
    for field, number, value in _fields(body, "a UnixFS message"):
        if field == 4:
            sizes.extend(_packed(value) if value is not None else (number,))
            continue
        if field in seen:
            raise FormatError(f"a UnixFS message has field {field} twice")
        seen.add(field)
        if field == 2 and value is not None:
            data = value
        elif field in (1, 3, 5, 6, 7) and value is None:
            numbers[field] = number
        elif field != 8 or value is None:
            raise FormatError(f"a UnixFS message has an unknown field {field}")
    if 1 not in numbers or numbers[1] > TYPE_HAMT:
        raise FormatError("a UnixFS message has no known type")
    return UnixFS(numbers[1], data or b"", numbers.get(3), tuple(sizes), numbers.get(5, 0), numbers.get(6, 0))


def _fields(body: bytes, what: str) -> Iterator[tuple[int, int, bytes | None]]:
    """Yield every field of a protobuf message as (number, value, None) or (number, 0, bytes)."""
    position = 0
    end = len(body)
    while position < end:
        tag, position = read_varint(body, position)
        number, position = read_varint(body, position)
        if tag & 7 == 0:
            yield tag >> 3, number, None
        elif tag & 7 == 2:
            start = position
            position += number
            if position > end:
                raise FormatError(f"{what} ends inside a field")
            yield tag >> 3, 0, body[start:position]
        else:
            raise FormatError(f"{what} has a field of unknown kind {tag & 7}")


def _packed(value: bytes) -> Iterator[int]:
    position = 0
    while position < len(value):
        number, position = read_varint(value, position)
        yield number


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise FormatError(f"the name of a link is not valid UTF-8: {value[:64]!r}") from None
