"""Seal and open objects ("IPM1"): deterministic encryption under an epoch key (format section 3).

Type, epoch, vault and context come from the reader and are authenticated, so an object that was moved to another
name, type, epoch or vault does not open. Callers choose the key; errors do not reveal the reason; signatures, not
seals, prove an author.
"""

from __future__ import annotations

import hashlib
import hmac
from functools import lru_cache
from typing import Final

import msgspec
from nacl import bindings, exceptions

from ipfsmem.errors import LimitError, OpenError, UsageError
from ipfsmem.seal.compression import MAX_INFLATED, deflate, inflate
from ipfsmem.seal.primitives import hkdf_expand, hkdf_extract

RING_BODY: Final = 1
COMMIT: Final = 2
MEMORY: Final = 3
SEGMENT: Final = 4
MAILBOX_ENTRY: Final = 6
STATE_NODE: Final = 7
CARD: Final = 8
TYPES: Final = frozenset({RING_BODY, COMMIT, MEMORY, SEGMENT, MAILBOX_ENTRY, STATE_NODE, CARD})

MAGIC: Final = b"IPM1"
SUITE: Final = 1
NONCE_BYTES: Final = 24
#: Bytes of an object in addition to its padded text: magic, nonce and tag.
OVERHEAD: Final = len(MAGIC) + NONCE_BYTES + 16
EK_BYTES: Final = 32
VAULT_TAG_BYTES: Final = 16
MAX_EPOCH: Final = 2**32 - 1
#: Maximum size of a sealed object in bytes (format section 8).
MAX_OBJECT: Final = 1024 * 1024

_MIN_BUCKET: Final = 512
_MAX_POWER_BUCKET: Final = 8192
_HEADER: Final = len(MAGIC) + NONCE_BYTES
_LENGTH: Final = 4
#: Flag in a memory's length field: a raw deflate stream of that length follows.
_DEFLATED: Final = 0x8000_0000

_encrypt = bindings.crypto_aead_xchacha20poly1305_ietf_encrypt
_decrypt = bindings.crypto_aead_xchacha20poly1305_ietf_decrypt


class EpochKey(msgspec.Struct, frozen=True):
    """A content key with its epoch number and id. Build it with `epoch_key`."""

    epoch: int
    key: bytes
    id: str

    def __repr__(self) -> str:
        return f"EpochKey(epoch={self.epoch}, id={self.id!r})"

    def __rich_repr__(self) -> list[tuple[str, object]]:
        return [("epoch", self.epoch), ("id", self.id)]


@lru_cache(maxsize=4096)
def epoch_key(epoch: int, key: bytes, vault_tag: bytes) -> EpochKey:
    """Build an EpochKey with its id. Raises UsageError if an argument has the wrong size."""
    if not 0 <= epoch <= MAX_EPOCH:
        raise UsageError(f"an epoch is a number of 32 bits, not {epoch}")
    return EpochKey(epoch, key, ek_id(epoch, key, vault_tag))


def ek_id(epoch: int, ek: bytes, vault_tag: bytes) -> str:
    """Return the 16 hex digits that name an epoch key and its number in their vault (format section 3).

    The id reveals nothing about the key. It depends on the number, so that nobody can claim another number for the
    key.
    """
    return hkdf_expand(_prk(ek, vault_tag), b"ipfsmem/v1/ek-id\x00" + epoch.to_bytes(4, "big"), 8).hex()


def _prk(ek: bytes, vault_tag: bytes) -> bytes:
    if len(ek) != EK_BYTES:
        raise UsageError(f"an epoch key has {EK_BYTES} bytes, this has {len(ek)}")
    if len(vault_tag) != VAULT_TAG_BYTES:
        raise UsageError(f"a vault tag has {VAULT_TAG_BYTES} bytes, this has {len(vault_tag)}")
    return hkdf_extract(vault_tag, ek)


def padded_size(n: int) -> int:
    """Return the size in bytes to which a text of `n` bytes is padded (format section 3).

    That is the next power of two from 512 to 8192, and above 8192 the size by Padmé (Nikitin et al., PoPETs 2019(4)).
    """
    if n <= _MIN_BUCKET:
        return _MIN_BUCKET
    if n <= _MAX_POWER_BUCKET:
        return 1 << (n - 1).bit_length()
    exponent = n.bit_length() - 1
    mask = (1 << (exponent - exponent.bit_length())) - 1
    return (n + mask) & ~mask


def deflate_if_smaller(payload: bytes) -> bytes | None:
    """Return `payload` as a raw deflate stream if that makes the object smaller, else None (format section 3)."""
    plain = padded_size(_LENGTH + len(payload))
    if plain == _MIN_BUCKET or len(payload) > MAX_INFLATED:
        return None
    stream = deflate(payload)
    return stream if padded_size(_LENGTH + len(stream)) < plain else None


class ObjectKey:
    """Encryption and nonce keys for one object type under one epoch key, with the constant part of the AAD."""

    __slots__ = ("aad_head", "enc", "nonce_hash")

    def __init__(self, prk: bytes, kind: int, epoch: int, vault_tag: bytes) -> None:
        """Derive both keys from `prk` = HKDF-Extract(vault_tag, EK)."""
        scope = b"\x00" + epoch.to_bytes(4, "big") + bytes((kind,))
        self.enc = hkdf_expand(prk, b"ipfsmem/v1/obj-enc" + scope, 32)
        # Copying this keyed state is cheaper than keying a new hash.
        self.nonce_hash = hashlib.blake2b(
            digest_size=NONCE_BYTES, key=hkdf_expand(prk, b"ipfsmem/v1/obj-nonce" + scope, 32)
        )
        self.aad_head = MAGIC + bytes((kind, SUITE)) + epoch.to_bytes(4, "big") + vault_tag

    def aad(self, ctx: bytes) -> bytes:
        """Return the associated data for this context. It is never stored."""
        return self.aad_head + len(ctx).to_bytes(2, "big") + ctx

    def nonce(self, aad: bytes, text: bytes) -> bytes:
        """Return the synthetic nonce: a keyed hash of the object's AAD and text."""
        state = self.nonce_hash.copy()
        state.update(len(aad).to_bytes(4, "big") + aad)
        state.update(text)
        return state.digest()


class Sealer:
    """Seals and opens the objects of one vault under one epoch key; caches derived keys."""

    __slots__ = ("_keys", "_prk", "_vault_tag", "epoch_key")

    def __init__(self, key: EpochKey, vault_tag: bytes) -> None:
        """Bind an epoch key to its vault. Raises UsageError if either has the wrong size."""
        self._prk = _prk(key.key, vault_tag)
        self._vault_tag = vault_tag
        self._keys: dict[int, ObjectKey] = {}
        self.epoch_key = key

    def __repr__(self) -> str:
        return f"Sealer({self.epoch_key!r})"

    def seal(self, kind: int, ctx: bytes | str, payload: bytes) -> bytes:
        """Seal `payload`. Equal arguments result in equal bytes on every device.

        `kind` is one of the type constants, `ctx` the memory key, segment name or prefix (format section 3), empty
        for ring body and commit. Raises LimitError if the object would exceed 1 MiB.
        """
        return self._seal(kind, ctx, payload, 0)

    def seal_deflated(self, ctx: bytes | str, stream: bytes) -> bytes:
        """Seal a memory from the stream of `deflate_if_smaller`; `open` returns the inflated text."""
        return self._seal(MEMORY, ctx, stream, _DEFLATED)

    def _seal(self, kind: int, ctx: bytes | str, data: bytes, form: int) -> bytes:
        key = self._keys.get(kind) or self._derive(kind)
        aad = key.aad(_context(ctx))
        size = _LENGTH + len(data)
        bucket = padded_size(size)
        if bucket + OVERHEAD > MAX_OBJECT:
            raise LimitError(f"{len(data)} bytes are too many for one sealed object of {MAX_OBJECT} bytes")
        text = (form | len(data)).to_bytes(_LENGTH, "big") + data + bytes(bucket - size)
        nonce = key.nonce(aad, text)
        return MAGIC + nonce + _encrypt(text, aad, nonce, key.enc)

    def open(self, kind: int, ctx: bytes | str, data: bytes) -> bytes:
        """Open an object that was sealed with this kind, context and key.

        Raises the same OpenError for any fault of `data`.
        """
        key = self._keys.get(kind) or self._derive(kind)
        aad = key.aad(_context(ctx))
        if not _MIN_BUCKET + OVERHEAD <= len(data) <= MAX_OBJECT or data[:4] != MAGIC:
            raise OpenError
        nonce = data[4:_HEADER]
        try:
            text = _decrypt(data[_HEADER:], aad, nonce, key.enc)
        except exceptions.CryptoError:
            raise OpenError from None
        length = int.from_bytes(text[:_LENGTH], "big")
        # Otherwise the length is one that no object can have.
        deflated = kind == MEMORY and length >= _DEFLATED
        end = _LENGTH + (length - _DEFLATED if deflated else length)
        # Bitwise operators on purpose, so that every check runs.
        good = (
            hmac.compare_digest(key.nonce(aad, text), nonce)
            & (len(text) == padded_size(end))
            & (not text[end:].strip(b"\x00"))
        )
        if not good:
            raise OpenError
        payload = text[_LENGTH:end]
        if deflated:
            payload = inflate(payload)
            if padded_size(_LENGTH + len(payload)) <= len(text):
                raise OpenError
        return payload

    def _derive(self, kind: int) -> ObjectKey:
        if kind not in TYPES:
            raise UsageError(f"unknown type of sealed object: {kind}")
        key = ObjectKey(self._prk, kind, self.epoch_key.epoch, self._vault_tag)
        self._keys[kind] = key
        return key


def _context(ctx: bytes | str) -> bytes:
    try:
        raw = ctx.encode() if isinstance(ctx, str) else ctx
    except UnicodeEncodeError:
        raise UsageError("the context of a sealed object is not text") from None
    if len(raw) > 0xFFFF:
        raise UsageError(f"the context of a sealed object has at most 65535 bytes, this has {len(raw)}")
    return raw
