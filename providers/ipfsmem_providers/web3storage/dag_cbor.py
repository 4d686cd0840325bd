"""DAG-CBOR and DAG-JSON with links (ipld.io/specs/codecs): the two codecs of the UCANs and receipts of w3up services.

Values are None, bool, int, float (read only), str, bytes, list, dict and CID. A CID is written as a link and
bytes as bytes. The library `libipld` cannot be used: it writes bytes that look like a CID, such as any
SHA-256 multihash, as a link (docs/internals/decisions/11-own-code.md).
"""

from __future__ import annotations

import base64
import hashlib
import struct
from typing import Any, Final

import msgspec

from ipfsmem.content.cid import CID, DAG_CBOR, IDENTITY, decode_cid, read_varint
from ipfsmem.errors import FormatError, IpfsmemError
from ipfsmem.provider.contract import Block

_DEPTH_MAX: Final = 64
#: Longest CID with inline content, in bytes: that of a CAR with an IPNS record.
_INLINE_MAX: Final = 16 * 1024
_LINK: Final = b"\xd8\x2a"


def encode(value: Any) -> bytes:
    """Encode as DAG-CBOR; map keys are sorted by length, then bytes. FormatError for an unsupported value."""
    out: list[bytes] = []
    _write(out, value, _DEPTH_MAX)
    return b"".join(out)


def block_of(data: bytes) -> Block:
    """Return a value's DAG-CBOR as a block, named by its SHA-256."""
    return CID(1, DAG_CBOR, b"\x12\x20" + hashlib.sha256(data).digest()), data


def head(major: int, number: int) -> bytes:
    """Return the first bytes of a CBOR item, shortest form."""
    if number < 24:
        return bytes((major << 5 | number,))
    for extra, size in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if number < 1 << (8 * size):
            return bytes((major << 5 | extra,)) + number.to_bytes(size, "big")
    raise FormatError(f"{number} is too large for DAG-CBOR")


def _write(out: list[bytes], value: Any, depth: int) -> None:
    if depth == 0:
        raise FormatError("a value is nested too deep for DAG-CBOR")
    if value is None:
        out.append(b"\xf6")
    elif isinstance(value, bool):
        out.append(b"\xf5" if value else b"\xf4")
    elif isinstance(value, int):
        out.append(head(0, value) if value >= 0 else head(1, -1 - value))
    elif isinstance(value, CID):  # before tuple, which it is too
        link = b"\0" + value.encode()
        out += (_LINK, head(2, len(link)), link)
    elif isinstance(value, (bytes, bytearray, memoryview)):
        out += (head(2, len(value)), bytes(value))
    elif isinstance(value, str):
        text = _utf8(value)
        out += (head(3, len(text)), text)
    elif isinstance(value, (list, tuple)):
        out.append(head(4, len(value)))
        for item in value:
            _write(out, item, depth - 1)
    elif isinstance(value, dict):
        out.append(head(5, len(value)))
        keys = sorted((len(text), text, key) for key, text in ((key, _utf8(key)) for key in value))
        for size, text, key in keys:
            out += (head(3, size), text)
            _write(out, value[key], depth - 1)
    else:
        raise FormatError(f"{type(value).__name__} has no form in DAG-CBOR")


def _utf8(text: Any) -> bytes:
    if not isinstance(text, str):
        raise FormatError(f"{type(text).__name__} cannot be a key of a DAG-CBOR map")
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise FormatError("a text has a lone surrogate") from None


def decode(data: bytes) -> Any:
    """Return the value of DAG-CBOR bytes. FormatError for anything else, also when bytes follow."""
    try:
        value, end = _read(data, 0, _DEPTH_MAX)
    except (IndexError, struct.error):
        raise FormatError("DAG-CBOR ends too early") from None
    if end != len(data):
        raise FormatError(f"{len(data) - end} bytes follow a DAG-CBOR value")
    return value


def _read(data: bytes, at: int, depth: int) -> tuple[Any, int]:
    if depth == 0:
        raise FormatError("DAG-CBOR is nested too deep")
    first = data[at]
    major, extra = first >> 5, first & 31
    at += 1
    if major == 7:
        return _read_simple(data, at, extra)
    if extra < 24:
        number = extra
    elif extra < 28:
        size = 1 << (extra - 24)
        if len(data) < at + size:
            raise FormatError("DAG-CBOR ends inside a number")
        number = int.from_bytes(data[at : at + size], "big")
        at += size
    else:
        raise FormatError("DAG-CBOR has no items of unknown length")
    if major == 0:
        return number, at
    if major == 1:
        return -1 - number, at
    if major == 6:
        return _read_link(data, at, number, depth)
    if number > len(data) - at:  # every byte and every item needs a byte
        raise FormatError("DAG-CBOR ends inside an item")
    if major == 2:
        return data[at : at + number], at + number
    if major == 3:
        return _text(data[at : at + number]), at + number
    if major == 4:
        items = []
        for _ in range(number):
            item, at = _read(data, at, depth - 1)
            items.append(item)
        return items, at
    fields: dict[str, Any] = {}
    for _ in range(number):
        key, at = _read(data, at, 2)
        if not isinstance(key, str) or key in fields:
            raise FormatError("a DAG-CBOR map has a key that is duplicated or not text")
        fields[key], at = _read(data, at, depth - 1)
    return fields, at


def _read_simple(data: bytes, at: int, extra: int) -> tuple[Any, int]:
    if extra in (20, 21):
        return extra == 21, at
    if extra == 22:
        return None, at
    if extra == 27:
        return struct.unpack_from(">d", data, at)[0], at + 8
    raise FormatError("DAG-CBOR has an item of an unknown kind")


def _read_link(data: bytes, at: int, tag: int, depth: int) -> tuple[CID, int]:
    link, at = _read(data, at, depth - 1)
    if tag != 42 or not isinstance(link, bytes) or link[:1] != b"\0":
        raise FormatError("DAG-CBOR has a tag that is not a link")
    return _cid(link[1:]), at


def _cid(data: bytes) -> CID:
    """Return a CID; one with inline content may be longer here than in trees."""
    if data[:1] == b"\x01" and len(data) < _INLINE_MAX:
        codec, start = read_varint(data, 1)
        if data[start : start + 1] == bytes((IDENTITY,)):
            size, content = read_varint(data, start + 1)
            if len(data) - content != size:
                raise FormatError("a CID in DAG-CBOR has another length than it says")
            return CID(1, codec, data[start:])
    return decode_cid(data)


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise FormatError("a text in DAG-CBOR is not UTF-8") from None


def encode_json(value: Any) -> bytes:
    """Encode as DAG-JSON: keys sorted by bytes, no spaces, bytes and links as maps with the key `/`."""
    try:
        return msgspec.json.encode(_json(value, _DEPTH_MAX), order=None)
    except IpfsmemError:
        raise
    except (TypeError, ValueError, UnicodeEncodeError) as error:
        raise FormatError(f"no form in DAG-JSON: {error}") from None


def _json(value: Any, depth: int) -> Any:
    if depth == 0:
        raise FormatError("a value is nested too deep for DAG-JSON")
    if isinstance(value, CID):
        return {"/": str(value)}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"/": {"bytes": base64.b64encode(value).decode().rstrip("=")}}
    if isinstance(value, (list, tuple)):
        return [_json(item, depth - 1) for item in value]
    if isinstance(value, dict):
        return {key: _json(value[key], depth - 1) for key in sorted(value, key=_utf8)}
    return value
