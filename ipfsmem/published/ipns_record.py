"""Make, parse, verify and compare IPNS records (IPNS record specification; format section 7).

A record is signed by the key in the name and holds a target, a sequence number and an expiry. Nothing is fetched, no
clock is read. V1 fields are written for old readers; when read, they are only compared with the signed data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

import msgspec

from ipfsmem.content.cid import (
    CID,
    ipns_name,
    parse_cid,
    public_of_ipns_name,
    read_varint,
    varint,
)
from ipfsmem.errors import FormatError, LimitError, SignatureError, UsageError
from ipfsmem.published import ipns_data
from ipfsmem.seal.primitives import Signer25519, verify

#: Maximum bytes of a record that other nodes pass on.
MAX_RECORD: Final = 10 * 1024
#: Nanoseconds for which other nodes may cache an answer: five minutes.
DEFAULT_TTL: Final = 5 * 60 * 10**9
#: Highest sequence number that can be written or read.
MAX_SEQUENCE: Final = 2**63 - 1
#: Latest expiry that can be written: the last nanosecond of the year 9999.
MAX_VALIDITY: Final = 253_402_300_800 * 10**9 - 1

_SIGN_V2: Final = b"ipns-signature:"
_PUBLIC_KEY: Final = b"\x08\x01\x12\x20"  # libp2p PublicKey protobuf: Ed25519, 32 bytes follow
_SECOND: Final = 10**9
_TIME = re.compile(r"(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?(Z|[+-]\d{2}:\d{2})", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Protobuf tags of IpnsEntry.
_VALUE, _SIG1, _TYPE, _VALIDITY, _SEQUENCE, _TTL, _KEY, _SIG2, _DATA = range(1, 10)
_BYTE_FIELDS = frozenset((_VALUE, _SIG1, _VALIDITY, _KEY, _SIG2, _DATA))
_INT_FIELDS = frozenset((_TYPE, _SEQUENCE, _TTL))


class IpnsRecord(msgspec.Struct, frozen=True):
    """The contents of an IPNS record. `parse_record` only reads it; `verify_record` checks the signer."""

    value: str  #: target of the name, for instance `/ipfs/bafy...` or `/ipns/k51...`
    sequence: int  #: the greater one wins
    validity: int  #: expiry, nanoseconds since 1970-01-01 UTC
    ttl: int  #: how long an answer may be cached, nanoseconds
    data: bytes  #: the signed DAG-CBOR
    signature: bytes  #: Ed25519 over "ipns-signature:" and `data`
    public_key: bytes | None  #: the key inside the record, raw 32 bytes; usually absent with Ed25519
    encoded: bytes  #: the whole record as read

    def has_expired(self, now: int) -> bool:
        """Tell whether it has expired at `now`, nanoseconds since 1970-01-01 UTC."""
        return now >= self.validity


def nanoseconds(when: datetime | int) -> int:
    """Return nanoseconds since 1970-01-01 UTC; an int is returned unchanged. Raises UsageError without a time zone."""
    if isinstance(when, int):
        return when
    if when.tzinfo is None:
        raise UsageError(f"{when.isoformat()} has no time zone")
    span = when - _EPOCH
    return (span.days * 86400 + span.seconds) * _SECOND + span.microseconds * 1000


def make_record(
    seed: bytes,
    value: str,
    sequence: int,
    validity: datetime | int,
    ttl_ns: int = DEFAULT_TTL,
) -> bytes:
    """Make a signed record that readers of V2 and of V1 accept.

    `seed` is the 32-byte Ed25519 seed of the name, `value` is `/ipfs/<cid>` or `/ipns/<name>`, `validity` the
    expiry (datetime with a zone, or nanoseconds since 1970 UTC). Equal arguments return equal bytes. Raises
    UsageError for values that no record can hold.
    """
    try:
        value_target(value)
    except FormatError as error:
        raise UsageError(str(error)) from None
    if not 0 <= sequence <= MAX_SEQUENCE:
        raise UsageError(f"sequence {sequence} is not between 0 and 2^63-1")
    if not 0 <= ttl_ns <= MAX_SEQUENCE:
        raise UsageError(f"time to live {ttl_ns} ns is not between 0 and 2^63-1")
    signer = Signer25519(seed)
    target = value.encode("ascii")
    until = _time_text(nanoseconds(validity)).encode("ascii")
    data = ipns_data.encode(target, until, sequence, ttl_ns)
    return b"".join(
        (
            _bytes_field(_VALUE, target),
            _bytes_field(_SIG1, signer.sign(target + until + b"EOL")),
            _int_field(_TYPE, 0),
            _bytes_field(_VALIDITY, until),
            _int_field(_SEQUENCE, sequence),
            _int_field(_TTL, ttl_ns),
            _bytes_field(_SIG2, signer.sign(_SIGN_V2 + data)),
            _bytes_field(_DATA, data),
        )
    )


def parse_record(encoded: bytes) -> IpnsRecord:
    """Parse a record without checking signature or expiry.

    Raises LimitError above 10 KiB, FormatError if it is not a record with a V2 signature, a field is duplicated, or
    its V1 fields contradict the signed data.
    """
    if len(encoded) > MAX_RECORD:
        raise LimitError(f"an IPNS record has {len(encoded)} bytes, {MAX_RECORD} allowed")
    numbers, texts = _fields(encoded)
    data, signature = texts.get(_DATA), texts.get(_SIG2)
    if not data or not signature:
        raise FormatError("an IPNS record has no V2 signature")
    signed = ipns_data.decode(data)
    if signed.validity_type != 0:
        raise FormatError(f"an IPNS record has validity type {signed.validity_type}, only 0 is known")
    _check_v1(numbers, texts, signed)
    try:
        value = signed.value.decode("utf-8")
        until = signed.validity.decode("ascii")
    except UnicodeDecodeError:
        raise FormatError("an IPNS record has a value or a time that is not text") from None
    return IpnsRecord(
        value=value,
        sequence=signed.sequence,
        validity=_parse_time(until),
        ttl=signed.ttl,
        data=data,
        signature=signature,
        public_key=_raw_key(texts.get(_KEY)),
        encoded=bytes(encoded),
    )


def verify_record(name: str, encoded: bytes) -> IpnsRecord:
    """Parse a record of `name` and check its signature, but not its expiry: an old record still shows a sequence.

    Raises FormatError or LimitError if it is not a record, SignatureError when the key of `name` did not sign it.
    """
    return _verified(name, bytes(encoded))


@lru_cache(maxsize=128)
def _verified(name: str, encoded: bytes) -> IpnsRecord:
    # Cached: each sync checks the same records several times. At most 4 MiB.
    public = public_of_ipns_name(name)
    record = parse_record(encoded)
    if record.public_key is not None and record.public_key != public:
        raise SignatureError(f"the IPNS record carries a key that is not the key of {name}")
    if not verify(public, _SIGN_V2 + record.data, record.signature):
        raise SignatureError(f"the IPNS record is not signed by {name}")
    return record


def newest_record(records: Iterable[IpnsRecord]) -> IpnsRecord | None:
    """Return the record with the greatest (sequence, expiry, bytes)."""
    return max(records, key=record_order, default=None)


def record_order(record: IpnsRecord) -> tuple[int, int, bytes]:
    """Return the sort key of `newest_record`; greater is newer."""
    return record.sequence, record.validity, record.encoded


def value_target(value: str) -> CID | str:
    """Return the target of a value: the CID of `/ipfs/<cid>`, or the canonical name of `/ipns/<name>`.

    Raises FormatError for any other form, and for a path after either.
    """
    if value.startswith("/ipfs/"):
        return parse_cid(value[6:])
    if value.startswith("/ipns/"):
        return canonical_name(value[6:])
    raise FormatError(f"{value[:80]!r} is neither /ipfs/<cid> nor /ipns/<name>")


def canonical_name(name: str) -> str:
    """Return the canonical spelling (`k51...`) of an IPNS name in any base. Raises FormatError."""
    return ipns_name(public_of_ipns_name(name))


def _check_v1(numbers: dict[int, int], texts: dict[int, bytes], signed: ipns_data.RecordData) -> None:
    # With a V1 value or signature all V1 fields are compared, an absent one as protobuf's default; without
    # them, only the fields present.
    whole = _VALUE in texts or _SIG1 in texts
    for tag, name, is_value in (
        (_VALUE, "value", signed.value),
        (_VALIDITY, "validity", signed.validity),
    ):
        if (whole or tag in texts) and texts.get(tag, b"") != is_value:
            raise FormatError(f"an IPNS record has a {name} that differs from the signed one")
    for tag, name, is_number in (
        (_TYPE, "validity type", signed.validity_type),
        (_SEQUENCE, "sequence", signed.sequence),
        (_TTL, "time to live", signed.ttl),
    ):
        if (whole or tag in numbers) and numbers.get(tag, 0) != is_number:
            raise FormatError(f"an IPNS record has a {name} that differs from the signed one")


def _raw_key(field: bytes | None) -> bytes | None:
    if not field:
        return None
    if len(field) != 36 or not field.startswith(_PUBLIC_KEY):
        raise FormatError("an IPNS record carries a key that is not Ed25519")
    return field[4:]


def _bytes_field(tag: int, content: bytes) -> bytes:
    return bytes((tag << 3 | 2,)) + varint(len(content)) + content


def _int_field(tag: int, number: int) -> bytes:
    return bytes((tag << 3,)) + varint(number)


def _fields(encoded: bytes) -> tuple[dict[int, int], dict[int, bytes]]:
    """Return protobuf fields by number, skipping unknown ones. Raises FormatError for a duplicate."""
    numbers: dict[int, int] = {}
    texts: dict[int, bytes] = {}
    position = 0
    while position < len(encoded):
        key, position = read_varint(encoded, position)
        tag, wire = key >> 3, key & 7
        if wire == 0:
            number, position = read_varint(encoded, position)
            if tag in _INT_FIELDS:
                _once(numbers, tag)
                numbers[tag] = number
        elif wire == 2:
            size, position = read_varint(encoded, position)
            if size > len(encoded) - position:
                raise FormatError("an IPNS record ends inside a field")
            if tag in _BYTE_FIELDS:
                _once(texts, tag)
                texts[tag] = encoded[position : position + size]
            position += size
        else:
            raise FormatError(f"an IPNS record has a field of wire type {wire}")
        if (wire == 2 and tag in _INT_FIELDS) or (wire == 0 and tag in _BYTE_FIELDS) or tag == 0:
            raise FormatError(f"an IPNS record has field {tag} in another type")
    return numbers, texts


def _once(fields: dict[int, int] | dict[int, bytes], tag: int) -> None:
    if tag in fields:
        raise FormatError(f"an IPNS record has field {tag} twice")


def _time_text(ns: int) -> str:
    """Return RFC 3339 in UTC with nine digits, as used in records."""
    seconds, rest = divmod(ns, _SECOND)
    try:
        when = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        raise UsageError(f"{ns} ns is not a time that a record can hold") from None
    return f"{when.isoformat()[:19]}.{rest:09d}Z"


def _parse_time(text: str) -> int:
    match = _TIME.fullmatch(text)
    if match is None:
        raise FormatError(f"an IPNS record is good until {text[:40]!r}, which is not a time")
    day, clock, fraction, zone = match.groups()
    try:
        when = datetime.fromisoformat(f"{day}T{clock}{'+00:00' if zone == 'Z' else zone}")
        whole = nanoseconds(when)
        _time_text(whole)  # an offset can move it out of the valid years
    except (ValueError, OverflowError, UsageError):
        raise FormatError(f"an IPNS record is good until {text[:40]!r}, which is not a time") from None
    return whole + int((fraction or "0").ljust(9, "0"))
