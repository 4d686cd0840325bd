"""Encode, check and sign values: one write of one device under its dot (format section 5).

A value refers to a body by hash. The device signs the identity (dot, entry, body, clock, bases, kind, author); `loc`
and `base` only locate sealed bytes and are not signed.
"""

import msgspec

from ipfsmem import canonical
from ipfsmem.causal.entries import EntryName, MemoryName, SegmentName, parse_entry
from ipfsmem.errors import FormatError, LimitError, UsageError
from ipfsmem.lazy_pattern import lazy_pattern
from ipfsmem.seal.primitives import Signer25519, verify

LIVE = "live"
FORGOTTEN = "forgotten"
#: The `author` of content from another vault, a chat export or a distillation (format section 5.2).
FOREIGN = "foreign"
#: Maximum number of hashes in `b`, and of dots of one device in an entry (format sections 5 and 8).
MAX_BASES = 4
MAX_DOTS = 4
#: Maximum number of values of an entry after a join: below 512 KiB, so that the entry and the device's own writes fit
#: into one sealed object.
MAX_VALUES = 800
#: Maximum size of a sealed object in bytes (format section 8).
MAX_OBJECT = 1024 * 1024

_VALUE = b"ipfsmem/v1/value\0"
_SEEN = b"ipfsmem/v1/seen\0"

_DEVICE = lazy_pattern(r"[0-9a-f]{16}")
_HASH = lazy_pattern(r"[0-9a-f]{64}")
_BASE = lazy_pattern(r"[0-9a-f]{32}")
_DOT = lazy_pattern(r"[0-9a-f]{16}-[1-9][0-9]{0,15}")
# 64 bytes are 86 base64url digits; the last has two significant bits, so a signature has one spelling.
SIGNATURE = lazy_pattern(r"[A-Za-z0-9_-]{85}[AQgw]")


class Loc(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """Location of a body: `["<EK id>", "<SHA-256 of the stored bytes>", size]`; plain mode has no EK id."""

    ek: str
    sha: str
    size: int


# msgspec sorts dict keys but not struct fields, so these are in canonical JSON order.
class Value(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, gc=False
):
    """One sibling of an entry: a text, or a FORGOTTEN marker (then `body` is None).

    `author`: the first author's device id, or "foreign"; "" if the signer is the author. `s`: the signature; may stay
    empty until the first publish.
    """

    b: tuple[str, ...]
    base: Loc | None = None
    body: str | None
    h: str
    kind: str
    loc: Loc | None = None
    author: str = msgspec.field(name="of", default="")
    s: str = ""


#: All siblings of one entry, by dot.
Entry = dict[str, Value]


class DeviceCounter(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A device's counter `[n, r, s]`; `r` is 8 random bytes in hex, drawn once per published `n`; `s` signs both."""

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
    """Return the dot of the n-th write (from 1) of a device. Raises FormatError."""
    if not _DEVICE.fullmatch(dev):
        raise FormatError(f"{dev!r} is not a device id of 16 hex digits")
    if not 1 <= n <= canonical.MAX_INT:
        raise FormatError(f"a dot cannot have the number {n}")
    return f"{dev}-{n}"


def split_dot(text: str) -> tuple[str, int]:
    """Return device and number of a dot. Raises FormatError for any but the canonical spelling."""
    if not _DOT.fullmatch(text):
        raise FormatError(f"{text!r} is not a dot: device id, hyphen, number")
    n = int(text[17:])
    if n > canonical.MAX_INT:
        raise FormatError(f"dot {text!r} has a number above 2^53-1")
    return text[:16], n


def encode_entry(entry: Entry) -> bytes:
    """Encode an entry as canonical JSON."""
    return _encode(entry)


def decode_entry(name: str, data: bytes) -> Entry:
    """Decode an entry, checking its form only (see check_entry). Raises FormatError."""
    try:
        entry = _decode_entry(data)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise FormatError(f"entry {name!r} is malformed: {error}") from None
    canonical.check_canonical(data, entry, f"entry {name!r}")
    return entry


def check_entry(name: str, entry: Entry, *, published: bool = True) -> None:
    """Check name, dots and values of an entry, and the number of dots of each device.

    Raises FormatError, LimitError. Signatures are not verified.
    """
    if not entry:
        raise FormatError(f"entry {name!r} holds no value")
    if len(entry) > MAX_DOTS:
        check_dots(name, entry)
    for text, value in entry.items():
        check_value(name, text, value, published=published)


def check_dots(name: str, entry: Entry) -> None:
    """Check that an entry has at most four dots of each device (format section 8). Raises LimitError.

    The limit is per device, not per entry, so that added siblings of one device never invalidate another device's
    write.
    """
    count: dict[str, int] = {}
    for text in entry:
        dev = text[:16]
        count[dev] = count.get(dev, 0) + 1
        if count[dev] > MAX_DOTS:
            raise LimitError(f"entry {name!r} holds more than {MAX_DOTS} values of device {dev}")


def check_value(entry_name: str, dot: str, value: Value, *, published: bool = True) -> None:
    """Check the fields of a value. Raises FormatError.

    A `published` value also needs a signature and, for a text, a location.
    """
    name = parse_entry(entry_name)
    dev, _ = split_dot(dot)
    fault = _fault(name, dev, value, published)
    if fault:
        raise FormatError(f"value {dot} of entry {entry_name!r}: {fault}")


def _fault(name: EntryName, dev: str, value: Value, published: bool) -> str | None:
    if not _DEVICE.fullmatch(value.h):
        return "h is not 16 hex digits"
    if value.kind == FORGOTTEN:
        if isinstance(name, SegmentName):
            return "a segment cannot be forgotten"
        if value.body is not None or value.loc is not None:
            return "a forgotten value has a body"
        if value.b:
            return "a forgotten value has bases"
    elif value.kind == LIVE:
        if value.body is None or not _HASH.fullmatch(value.body):
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
    if value.author:
        if not isinstance(name, MemoryName) or value.kind != LIVE:
            return "only a memory's text is of somebody"
        if (value.author != FOREIGN and not _DEVICE.fullmatch(value.author)) or value.author == dev:
            return "of is neither another device's id nor foreign"
    if value.b:
        if len(value.b) > MAX_BASES or len(set(value.b)) < len(value.b):
            return f"b has repeats or more than {MAX_BASES} hashes"
        if not all(map(_BASE.fullmatch, value.b)):
            return "b holds something else than 32 hex digits"
    if value.base is not None and not (value.b and _loc_ok(value.base)):
        return "base is malformed, or without b"
    if not SIGNATURE.fullmatch(value.s) and (published or value.s):
        return "s is not a signature"
    return None


def _loc_ok(loc: Loc) -> bool:
    return bool(
        (not loc.ek or _DEVICE.fullmatch(loc.ek)) and _HASH.fullmatch(loc.sha) and 0 <= loc.size <= MAX_OBJECT
    )


def hash32(body: str) -> str:
    """Return a body's hash as used in `b`: the first 16 bytes of the SHA-256, in hex."""
    return body[:32]


def same_identity(mine: Value, theirs: Value) -> bool:
    """Tell whether two values under one dot of one entry are the same write, ignoring location and signature."""
    return mine is theirs or (
        mine.body == theirs.body
        and mine.h == theirs.h
        and mine.b == theirs.b
        and mine.kind == theirs.kind
        and mine.author == theirs.author
    )


def identity(entry_name: str, dot: str, value: Value, vault: bytes) -> bytes:
    """Return the bytes that the dot's device signs (format section 5). `vault`: the vault tag, 16 bytes."""
    return _VALUE + _encode(
        _Identity(
            b=value.b,
            body=value.body,
            dot=dot,
            e=entry_name,
            h=value.h,
            kind=value.kind,
            of=value.author,
            vault=vault.hex(),
        )
    )


def sign_value(signer: Signer25519, entry_name: str, dot: str, value: Value, vault: bytes) -> Value:
    """Return `value` with its signature. `signer` must be the key of the dot's device."""
    message = identity(entry_name, dot, value, vault)
    return msgspec.structs.replace(value, s=canonical.b64(signer.sign(message)))


def verify_value(public: bytes, entry_name: str, dot: str, value: Value, vault: bytes) -> bool:
    """Tell whether the 32-byte Ed25519 key `public` signed `value`. Never raises."""
    if not SIGNATURE.fullmatch(value.s):
        return False
    signature = canonical.unb64(value.s, "s", 64)
    return verify(public, identity(entry_name, dot, value, vault), signature)


def seen_message(vault: bytes, dev: str, n: int, r: str) -> bytes:
    """Return the bytes that a device signs for its counter (format section 5)."""
    if len(vault) != 16:
        raise UsageError(f"a vault tag has 16 bytes, this has {len(vault)}")
    if not _DEVICE.fullmatch(dev) or not _DEVICE.fullmatch(r) or not 0 < n <= canonical.MAX_INT:
        raise FormatError(f"({n}, {r!r}) of device {dev!r} is not a counter and 8 bytes of hex")
    return _SEEN + vault + bytes.fromhex(dev) + n.to_bytes(8, "big") + bytes.fromhex(r)


def sign_seen(signer: Signer25519, vault: bytes, dev: str, n: int, r: str) -> DeviceCounter:
    """Sign the pair (n, r) as the device itself."""
    return DeviceCounter(n, r, canonical.b64(signer.sign(seen_message(vault, dev, n, r))))


def verify_seen(public: bytes, vault: bytes, dev: str, seen: DeviceCounter) -> bool:
    """Tell whether `public` signed `seen` for device `dev`. False when malformed."""
    try:
        message = seen_message(vault, dev, seen.n, seen.r)
    except FormatError:
        return False
    return bool(SIGNATURE.fullmatch(seen.s)) and verify(public, message, canonical.unb64(seen.s, "s", 64))
