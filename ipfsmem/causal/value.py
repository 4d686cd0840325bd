"""Dots, values and their signatures (format section 5): what one write of one device is, and who may say so.

A value names a body by hash; it never holds one. Its identity (dot, entry, body, clock, bases, kind, whose word) is signed by the
device of the dot; `loc` and `base` only tell where sealed bytes lie and prove nothing. Nothing here joins or shows values.
"""

from __future__ import annotations

import msgspec

from ipfsmem import canonical
from ipfsmem.causal.entries import EntryName, MemoryName, SegmentName, parse_entry
from ipfsmem.errors import FormatError, LimitError, UsageError
from ipfsmem.lazy_pattern import lazy_pattern
from ipfsmem.seal.primitives import Signer25519, verify

LIVE = "live"
FORGOTTEN = "forgotten"
#: The `of` of what came from another vault, a chat export or a distillation (format section 5.2).
FOREIGN = "foreign"
#: Hashes in `b`, and dots of one device in one entry (format sections 5 and 8).
MAX_BASES = 4
MAX_DOTS = 4
#: Values of an entry after a join, less than 512 KiB: it must find room in one sealed object, with what its holder writes
#: there itself.
MAX_VALUES = 800
#: The largest sealed object (format section 8).
MAX_OBJECT = 1024 * 1024

_VALUE = b"ipfsmem/v1/value\0"
_SEEN = b"ipfsmem/v1/seen\0"

_is_device = lazy_pattern(r"[0-9a-f]{16}").fullmatch
_is_hash = lazy_pattern(r"[0-9a-f]{64}").fullmatch
_is_base = lazy_pattern(r"[0-9a-f]{32}").fullmatch
_is_dot = lazy_pattern(r"[0-9a-f]{16}-[1-9][0-9]{0,15}").fullmatch
# 64 bytes are 86 digits of base64url, and the last one carries two bits only: one spelling for each signature.
is_signature = lazy_pattern(r"[A-Za-z0-9_-]{85}[AQgw]").fullmatch


class Loc(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """Where the bytes of a body lie: `["<EK id>", "<SHA-256 of the stored bytes>", size]`; plain mode has no EK id."""

    ek: str
    sha: str
    size: int


# The fields stand in the order of canonical JSON: msgspec sorts the keys of a dict but not the fields of a struct.
class Value(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, gc=False
):
    """One sibling of an entry: a text, or the user's wish to forget (`body` is then None).

    `of` is whose word it is when that is not its signer's: the first author's device id, or "foreign"; else empty.
    `s` is empty as long as nobody else was shown the value: signatures may be made as late as the first publish.
    """

    b: tuple[str, ...]
    base: Loc | None = None
    body: str | None
    h: str
    kind: str
    loc: Loc | None = None
    of: str = ""
    s: str = ""


#: All siblings of one entry, by the text of their dots.
Entry = dict[str, Value]


class Seen(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """How far a device has counted: `[n, r, s]`, r being 8 random bytes in hex drawn once for each published n."""

    n: int
    r: str
    s: str


class _Identity(msgspec.Struct, kw_only=True, omit_defaults=True):
    b: tuple[str, ...]
    body: str | None
    dot: str
    e: str
    h: str
    kind: str
    of: str = ""
    vault: str


_encode = msgspec.json.Encoder(order="deterministic").encode
_decode_entry = msgspec.json.Decoder(Entry).decode


def dot(dev: str, n: int) -> str:
    """The text of a dot, the n-th write (from 1) of a device. Raises FormatError."""
    if not _is_device(dev):
        raise FormatError(f"{dev!r} is not a device id of 16 hex digits")
    if not 1 <= n <= canonical.MAX_INT:
        raise FormatError(f"a dot cannot have the number {n}")
    return f"{dev}-{n}"


def split_dot(text: str) -> tuple[str, int]:
    """Device and number of a dot's text, which has one spelling only. Raises FormatError."""
    if not _is_dot(text):
        raise FormatError(f"{text!r} is not a dot: device id, hyphen, number")
    n = int(text[17:])
    if n > canonical.MAX_INT:
        raise FormatError(f"dot {text!r} has a number above 2^53-1")
    return text[:16], n


def encode_entry(entry: Entry) -> bytes:
    """Canonical JSON of an entry."""
    return _encode(entry)


def decode_entry(name: str, data: bytes) -> Entry:
    """An entry from its canonical JSON; form only, see check_entry for the contents. Raises FormatError."""
    try:
        entry = _decode_entry(data)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise FormatError(f"entry {name!r} is malformed: {error}") from None
    canonical.check_canonical(data, entry, f"entry {name!r}")
    return entry


def check_entry(name: str, entry: Entry, *, published: bool = True) -> None:
    """Refuse an entry that the format does not allow: its name, each dot and value, too many dots of one device.

    Raises FormatError, LimitError. Signatures are not looked at.
    """
    if not entry:
        raise FormatError(f"entry {name!r} holds no value")
    if len(entry) > MAX_DOTS:
        check_dots(name, entry)
    for text, value in entry.items():
        check_value(name, text, value, published=published)


def check_dots(name: str, entry: Entry) -> None:
    """Refuse more than four dots of one device in one entry (format section 8): never per entry, so that nobody can
    make another device's write invalid by adding siblings. Raises LimitError.
    """
    count: dict[str, int] = {}
    for text in entry:
        dev = text[:16]
        count[dev] = count.get(dev, 0) + 1
        if count[dev] > MAX_DOTS:
            raise LimitError(f"entry {name!r} holds more than {MAX_DOTS} values of device {dev}")


def check_value(entry_name: str, dot: str, value: Value, *, published: bool = True) -> None:
    """Refuse a value whose fields are not what the format allows. Raises FormatError.

    `published` asks for what a value needs in another device's hands too: a signature, and for a text its location.
    """
    name = parse_entry(entry_name)
    dev, _ = split_dot(dot)
    fault = _fault(name, dev, value, published)
    if fault:
        raise FormatError(f"value {dot} of entry {entry_name!r}: {fault}")


def _fault(name: EntryName, dev: str, value: Value, published: bool) -> str | None:
    if not _is_device(value.h):
        return "h is not 16 hex digits"
    if value.kind == FORGOTTEN:
        if isinstance(name, SegmentName):
            return "a segment cannot be forgotten"
        if value.body is not None or value.loc is not None:
            return "a forgotten value has a body"
        if value.b:
            return "a forgotten value has bases"
    elif value.kind == LIVE:
        if value.body is None or not _is_hash(value.body):
            return "body is not a SHA-256"
        if value.loc is None:
            if published:
                return "loc is missing"
        elif not _loc_ok(value.loc):
            return "loc is malformed"
    else:
        return f"kind {value.kind!r} is unknown"
    if isinstance(name, SegmentName) and name.dev != dev:
        return "a segment is written by its own device only"
    if value.b and not isinstance(name, MemoryName):
        return "only a memory has bases"
    if value.of:
        if not isinstance(name, MemoryName) or value.kind != LIVE:
            return "only a memory's text is of somebody"
        if (value.of != FOREIGN and not _is_device(value.of)) or value.of == dev:
            return "of is neither another device's id nor foreign"
    if value.b:
        if len(value.b) > MAX_BASES or len(set(value.b)) < len(value.b):
            return f"b has repeats or more than {MAX_BASES} hashes"
        if not all(map(_is_base, value.b)):
            return "b holds something else than 32 hex digits"
    if value.base is not None and not (value.b and _loc_ok(value.base)):
        return "base is malformed, or without b"
    if not is_signature(value.s) and (published or value.s):
        return "s is not a signature"
    return None


def _loc_ok(loc: Loc) -> bool:
    return bool((not loc.ek or _is_device(loc.ek)) and _is_hash(loc.sha) and 0 <= loc.size <= MAX_OBJECT)


def hash32(body: str) -> str:
    """A body's hash as it stands in `b`: the first 16 bytes of its SHA-256, as hex."""
    return body[:32]


def same_identity(mine: Value, theirs: Value) -> bool:
    """Whether two values under one dot of one entry are the same write (location and signature apart)."""
    return mine is theirs or (
        mine.body == theirs.body
        and mine.h == theirs.h
        and mine.b == theirs.b
        and mine.kind == theirs.kind
        and mine.of == theirs.of
    )


def identity(entry_name: str, dot: str, value: Value, vault: bytes) -> bytes:
    """The bytes that the dot's device signs; `vault` is the vault tag, 16 bytes (format section 5)."""
    return _VALUE + _encode(
        _Identity(
            b=value.b,
            body=value.body,
            dot=dot,
            e=entry_name,
            h=value.h,
            kind=value.kind,
            of=value.of,
            vault=vault.hex(),
        )
    )


def sign_value(signer: Signer25519, entry_name: str, dot: str, value: Value, vault: bytes) -> Value:
    """`value` with its signature. The signer's key must be the one of the dot's device: that is not checked here."""
    message = identity(entry_name, dot, value, vault)
    return msgspec.structs.replace(value, s=canonical.b64(signer.sign(message)))


def verify_value(public: bytes, entry_name: str, dot: str, value: Value, vault: bytes) -> bool:
    """Whether `value` carries a valid signature by the 32-byte Ed25519 key `public`. Nothing is raised."""
    if not is_signature(value.s):
        return False
    signature = canonical.unb64(value.s, "s", 64)
    return verify(public, identity(entry_name, dot, value, vault), signature)


def seen_message(vault: bytes, dev: str, n: int, r: str) -> bytes:
    """The bytes that a device signs to say how far it has counted (format section 5)."""
    if len(vault) != 16:
        raise UsageError(f"a vault tag has 16 bytes, this has {len(vault)}")
    if not _is_device(dev) or not _is_device(r) or not 0 < n <= canonical.MAX_INT:
        raise FormatError(f"({n}, {r!r}) of device {dev!r} is not a counter and 8 bytes of hex")
    return _SEEN + vault + bytes.fromhex(dev) + n.to_bytes(8, "big") + bytes.fromhex(r)


def sign_seen(signer: Signer25519, vault: bytes, dev: str, n: int, r: str) -> Seen:
    """The pair (n, r), signed by the device itself."""
    return Seen(n, r, canonical.b64(signer.sign(seen_message(vault, dev, n, r))))


def verify_seen(public: bytes, vault: bytes, dev: str, seen: Seen) -> bool:
    """Whether `seen` is signed by `public` for device `dev`. A malformed one is simply not valid."""
    try:
        message = seen_message(vault, dev, seen.n, seen.r)
    except FormatError:
        return False
    return bool(is_signature(seen.s)) and verify(public, message, canonical.unb64(seen.s, "s", 64))
