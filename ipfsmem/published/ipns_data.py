"""The signed part of an IPNS record: a flat DAG-CBOR map of five fields (IPNS record specification, `data`).

Only the needed CBOR is implemented: on untrusted bytes a general decoder would accept more (nesting, tags,
floats, duplicate keys) than a record may hold. Neither signature nor time is checked.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ipfsmem.errors import FormatError

_KEYS: Final = ("TTL", "Value", "Sequence", "Validity", "ValidityType")
_MAX_INT: Final = 2**63 - 1
_MAX_DEPTH: Final = 16


class RecordData(NamedTuple):
    """The five fields; `value` and `validity` are bytes, `ttl` is in nanoseconds."""

    value: bytes
    validity: bytes
    validity_type: int
    sequence: int
    ttl: int


def encode(value: bytes, validity: bytes, sequence: int, ttl: int) -> bytes:
    """Encode the map with keys in DAG-CBOR's order (shorter first), validity type 0 (end of life)."""
    return b"".join(
        (
            b"\xa5",
            b"\x63TTL" + _head(0, ttl),
            b"\x65Value" + _head(2, len(value)) + value,
            b"\x68Sequence" + _head(0, sequence),
            b"\x68Validity" + _head(2, len(validity)) + validity,
            b"\x6cValidityType\x00",
        )
    )


def decode(data: bytes) -> RecordData:
    """Decode the map, skipping unknown fields. Raises FormatError for a missing, duplicate or mistyped field."""
    major, count, position = _read_head(data, 0)
    if major != 5:
        raise FormatError("the data of an IPNS record is not a map")
    fields: dict[str, int | bytes] = {}
    seen: set[bytes] = set()
    for _ in range(count):
        major, size, position = _read_head(data, position)
        if major != 3:
            raise FormatError("the data of an IPNS record has a key that is not text")
        raw, position = _take(data, position, size)
        if raw in seen:
            raise FormatError(f"the data of an IPNS record has the key {raw[:40]!r} twice")
        seen.add(raw)
        key = raw.decode("utf-8", "replace")
        if key not in _KEYS:
            position = _skip(data, position)
            continue
        major, argument, position = _read_head(data, position)
        if key in ("Value", "Validity"):
            if major != 2:
                raise FormatError(f"{key} of an IPNS record is not bytes")
            fields[key], position = _take(data, position, argument)
        elif major != 0 or argument > _MAX_INT:
            raise FormatError(f"{key} of an IPNS record is not a number from 0 to 2^63-1")
        else:
            fields[key] = argument
    if position != len(data):
        raise FormatError("bytes follow the data of an IPNS record")
    return _record_data(fields)


def _record_data(fields: dict[str, int | bytes]) -> RecordData:
    for key in _KEYS:
        if key not in fields:
            raise FormatError(f"the data of an IPNS record has no {key}")
    value, validity = fields["Value"], fields["Validity"]
    kind, sequence, ttl = fields["ValidityType"], fields["Sequence"], fields["TTL"]
    if (
        isinstance(value, bytes)
        and isinstance(validity, bytes)
        and isinstance(kind, int)
        and isinstance(sequence, int)
        and isinstance(ttl, int)
    ):
        return RecordData(value, validity, kind, sequence, ttl)
    raise FormatError("the data of an IPNS record has a field of another type")


def _head(major: int, argument: int) -> bytes:
    first = major << 5
    if argument < 24:
        return bytes((first | argument,))
    for code, size in ((24, 1), (25, 2), (26, 4)):
        if argument < 1 << (8 * size):
            return bytes((first | code,)) + argument.to_bytes(size, "big")
    return bytes((first | 27,)) + argument.to_bytes(8, "big")


def _read_head(data: bytes, position: int) -> tuple[int, int, int]:
    """Return major type, argument and next position. DAG-CBOR: definite lengths and shortest numbers only."""
    first, position = _take(data, position, 1)
    major, info = first[0] >> 5, first[0] & 31
    if info < 24:
        return major, info, position
    if info > 27:
        raise FormatError("the data of an IPNS record has an item of no fixed length")
    size = 1 << (info - 24)
    raw, position = _take(data, position, size)
    argument = int.from_bytes(raw, "big")
    if major != 7 and argument < (24 if size == 1 else 1 << (4 * size)):
        raise FormatError("the data of an IPNS record has a number that is not in its shortest form")
    return major, argument, position


def _take(data: bytes, position: int, size: int) -> tuple[bytes, int]:
    end = position + size
    if end > len(data):
        raise FormatError("the data of an IPNS record ends inside an item")
    return data[position:end], end


def _skip(data: bytes, position: int) -> int:
    """Return the position after one item of any kind."""
    pending = [1]
    while pending:
        if pending[-1] == 0:
            pending.pop()
            continue
        pending[-1] -= 1
        major, argument, position = _read_head(data, position)
        if major in (2, 3):
            _, position = _take(data, position, argument)
        elif major in (4, 5):
            pending.append(argument * (major - 3))
        elif major == 6:
            pending.append(1)
        if len(pending) > _MAX_DEPTH:
            raise FormatError("the data of an IPNS record is nested too deep")
    return position
