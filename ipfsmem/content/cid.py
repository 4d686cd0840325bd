"""Encode and decode CIDv0, CIDv1 and IPNS names, as bytes and text.

Supports SHA-256 and identity; raw, dag-pb, dag-cbor, libp2p-key and CAR. `verify` checks content. `multiformats`,
imported on demand, decodes bases other than base32 and base36.
"""

from __future__ import annotations

import base64
import functools
from typing import TYPE_CHECKING, NamedTuple

from ipfsmem.content.limits import IDENTITY_MAX
from ipfsmem.errors import FormatError, LimitError

if TYPE_CHECKING:
    from collections.abc import Callable

RAW = 0x55
DAG_PB = 0x70
DAG_CBOR = 0x71
LIBP2P_KEY = 0x72
CAR = 0x0202
SHA2_256 = 0x12
IDENTITY = 0x00

#: The first four bytes of the CIDs that ipfsmem creates; the digest follows.
RAW_PREFIX = b"\x01\x55\x12\x20"
PB_PREFIX = b"\x01\x70\x12\x20"
#: Maximum characters of a CID as text; longer text is refused before decoding.
_TEXT_MAX = 512
_DIGEST_MAX = 128
_KEY_PREFIX = b"\x08\x01\x12\x20"  # protobuf of libp2p's PublicKey: type Ed25519, 32 bytes
_B58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_B36 = "0123456789abcdefghijklmnopqrstuvwxyz"
_B58_VALUE = {char: value for value, char in enumerate(_B58)}
# Maps RFC 4648 lower case to the digits of int(text, 32), any other character to one that it refuses.
_B32 = b"abcdefghijklmnopqrstuvwxyz234567"
_B32_DIGITS = bytes(
    b"0123456789abcdefghijklmnopqrstuv"[_B32.index(i)] if i in _B32 else 33 for i in range(256)
)


@functools.lru_cache(maxsize=1 << 14)
def _base32(data: bytes) -> str:
    """Encode in lower-case base32; cached, since the same CIDs recur in lists of roots, rows and messages."""
    return "b" + base64.b32encode(data).decode("ascii").rstrip("=").lower()


@functools.lru_cache(maxsize=1 << 12)
def _base36(data: bytes) -> str:
    """Encode in lower-case base36; cached, since each sync writes the names of a vault's devices many times."""
    return "k" + _digits(data, _B36)


class CID(NamedTuple):
    """One content identifier. CIDs are equal if version, codec and multihash are."""

    version: int
    codec: int
    multihash: bytes

    def __bytes__(self) -> bytes:
        return self.encode()

    def encode(self) -> bytes:
        """Return the binary form: the multihash alone for version 0, else version, codec and multihash."""
        if self.version == 0:
            return self.multihash
        if self.codec < 0x80:
            return bytes((1, self.codec)) + self.multihash
        return b"\x01" + varint(self.codec) + self.multihash

    def __str__(self) -> str:
        """base58btc for version 0, base36 for libp2p keys, lower-case base32 for the rest."""
        if self.version == 0:
            return base58_encode(self.multihash)
        if self.codec == LIBP2P_KEY:
            return _base36(self.encode())
        return _base32(self.encode())

    def __repr__(self) -> str:
        return f"CID({str(self)!r})"

    @property
    def hash_code(self) -> int:
        """Return the multihash function, for instance SHA2_256."""
        return read_varint(self.multihash, 0)[0]

    @property
    def digest(self) -> bytes:
        """Return the digest bytes of the multihash."""
        if self.multihash[:2] == b"\x12\x20":
            return self.multihash[2:]
        _, offset = read_varint(self.multihash, 0)
        return self.multihash[read_varint(self.multihash, offset)[1] :]


def varint(value: int) -> bytes:
    """Encode unsigned LEB128, as in multiformats and protobuf."""
    if value < 0x80:
        return bytes((value,))
    if value < 0x4000:  # the most frequent case
        return bytes((value & 0x7F | 0x80, value >> 7))
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_varint(data: bytes, offset: int) -> tuple[int, int]:
    """Return the number at `offset` and the next offset. Raises FormatError beyond 63 bits or if not in
    shortest form."""
    value = shift = 0
    for position in range(offset, min(offset + 9, len(data))):
        byte = data[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if byte == 0 and shift:
                raise FormatError("a number is not in its shortest form")
            return value, position + 1
        shift += 7
    if len(data) - offset >= 9:
        raise FormatError("a number is longer than 63 bits")
    raise FormatError("data ends inside a number")


def raw_cid(digest: bytes) -> CID:
    """Return the CIDv1 of a raw block with this SHA-256 digest."""
    return CID(1, RAW, b"\x12\x20" + digest)


def decode_cid(data: bytes) -> CID:
    """Decode a CID from exactly these bytes. Raises FormatError, or LimitError for a large identity CID."""
    if len(data) == 36:
        prefix = data[:4]
        if prefix == RAW_PREFIX:
            return CID(1, RAW, data[2:])
        if prefix == PB_PREFIX:
            return CID(1, DAG_PB, data[2:])
    cid, end = read_cid(data, 0)
    if end != len(data):
        raise FormatError(f"{len(data) - end} bytes follow a CID")
    return cid


def read_cid(data: bytes, offset: int) -> tuple[CID, int]:
    """Return the CID that starts at `offset`, and the next offset."""
    if data[offset : offset + 2] == b"\x12\x20":
        if len(data) < offset + 34:
            raise FormatError("data ends inside a CID")
        return CID(0, DAG_PB, data[offset : offset + 34]), offset + 34
    version, position = read_varint(data, offset)
    if version != 1:
        raise FormatError(f"CID version {version} is not known")
    codec, start = read_varint(data, position)
    code, position = read_varint(data, start)
    size, position = read_varint(data, position)
    if code == IDENTITY and size > IDENTITY_MAX:
        raise LimitError(f"an identity CID carries {size} bytes, {IDENTITY_MAX} allowed")
    if size > _DIGEST_MAX or (code == SHA2_256 and size != 32):
        raise FormatError(f"a CID has a digest of {size} bytes")
    end = position + size
    if end > len(data):
        raise FormatError("data ends inside a CID")
    return CID(1, codec, data[start:end]), end


def parse_cid(text: str) -> CID:
    """Parse a CID in any multibase. Raises FormatError."""
    if not text or len(text) > _TEXT_MAX:
        raise FormatError(f"{text[:32]!r} is not a CID: it has {len(text)} characters")
    if not text.isascii():
        raise FormatError(f"{text!r} is not a CID")
    if len(text) == 46 and text.startswith("Qm"):
        data = base58_decode(text, text)
        if data[:2] != b"\x12\x20" or len(data) != 34:
            raise FormatError(f"{text!r} is not a CID")
        return CID(0, DAG_PB, data)
    decode = _BASES.get(text[0], _foreign_base)
    try:
        cid = decode_cid(decode(text[1:], text))
    except LimitError:
        raise
    except FormatError as error:
        raise FormatError(f"{text!r} is not a CID: {error}") from None
    if cid.version == 0:
        raise FormatError(f"{text!r} is not a CID: version 0 has no multibase prefix")
    return cid


def is_cid(text: object) -> bool:
    """Tell whether `text` is a CID as text. Accepts any type, since a damaged row can contain any value."""
    try:
        return isinstance(text, str) and bool(parse_cid(text))
    except (FormatError, LimitError):
        return False


def ipns_name(public: bytes) -> str:
    """Return the IPNS name (`k51...`, format section 7) of a raw Ed25519 public key of 32 bytes."""
    if len(public) != 32:
        raise FormatError(f"an Ed25519 public key has 32 bytes, not {len(public)}")
    return str(CID(1, LIBP2P_KEY, b"\x00\x24" + _KEY_PREFIX + public))


def public_of_ipns_name(name: str) -> bytes:
    """Return the raw Ed25519 public key in an IPNS name. Raises FormatError for a name without such a key."""
    cid = parse_cid(name)
    if cid.codec != LIBP2P_KEY or len(cid.multihash) != 38 or cid.multihash[:6] != b"\x00\x24" + _KEY_PREFIX:
        raise FormatError(f"{name!r} is not the IPNS name of an Ed25519 key")
    return cid.multihash[6:]


def _b32decode(text: str, whole: str) -> bytes:
    bits = len(text) * 5
    spare = bits % 8
    try:
        number = int(text.encode("ascii").translate(_B32_DIGITS), 32)
    except ValueError:
        raise FormatError("not base32") from None
    if spare >= 5 or number & ((1 << spare) - 1):
        raise FormatError("not canonical base32")
    return (number >> spare).to_bytes(bits // 8, "big")


def _b36decode(text: str, whole: str) -> bytes:
    if not text.isalnum() or text != text.lower():
        raise FormatError("not base36")
    return _decode_number(int(text, 36), text, "0")


def base58_encode(data: bytes) -> str:
    """Return the digits of base58btc, without a multibase prefix."""
    return _digits(data, _B58)


def _digits(data: bytes, alphabet: str) -> str:
    """Encode `data` as a number in this alphabet; each leading zero byte becomes the first character."""
    number = int.from_bytes(data, "big")
    digits = []
    while number:
        number, rest = divmod(number, len(alphabet))
        digits.append(alphabet[rest])
    return alphabet[0] * (len(data) - len(data.lstrip(b"\0"))) + "".join(reversed(digits))


def base58_decode(text: str, whole: str) -> bytes:
    """Decode base58btc digits. `whole`: the surrounding text, for the FormatError."""
    number = 0
    for char in text:
        value = _B58_VALUE.get(char)
        if value is None:
            raise FormatError(f"{whole!r} is not a CID: not base58")
        number = number * 58 + value
    return _decode_number(number, text, "1")


def _decode_number(number: int, text: str, zero: str) -> bytes:
    zeros = len(text) - len(text.lstrip(zero))
    return b"\0" * zeros + number.to_bytes((number.bit_length() + 7) // 8, "big")


def _foreign_base(text: str, whole: str) -> bytes:
    from multiformats import multibase

    # In all other bases the digits have the case of the prefix letter.
    if whole[0] not in "zZmMuU" and text != (text.lower() if whole[0].islower() else text.upper()):
        raise FormatError("small and capital letters in one CID")
    if whole[0] == "p":
        raise FormatError("proquint, which this format does not use")
    group = _PADDED.get(whole[0].lower() if whole[0] in "CT" else whole[0], 1)
    digits = text.rstrip("=") if group > 1 else text
    if "=" in digits or len(text) != -(-len(digits) // group) * group:
        raise FormatError("padding that its base does not have")
    try:
        return bytes(multibase.decode(whole))
    except Exception as error:  # the library raises many types, from KeyError to its own
        raise FormatError(f"no known base: {error}") from None


#: Bases with padding, and the number of digits of a group.
_PADDED = {"c": 8, "t": 8, "M": 4, "U": 4}
_BASES: dict[str, Callable[[str, str], bytes]] = {
    "b": _b32decode,
    "k": _b36decode,
}
