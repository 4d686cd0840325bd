"""Cryptographic primitives for sealing and signing, as functions on bytes.

A thin layer over libsodium's C bindings and the standard library. It stores no keys and draws no nonces. Ed25519
signatures are verified only with libsodium, since other libraries accept more of them (format section 2.4).
"""

from __future__ import annotations

import hmac
import unicodedata
from typing import Final

from nacl import bindings, exceptions

from ipfsmem.errors import FormatError, LimitError, PassphraseError, UsageError

SIGNATURE_BYTES: Final = 64
KEY_BYTES: Final = 32
#: Overhead of a sealed box in bytes: the ephemeral public key and the Poly1305 tag.
BOX_OVERHEAD: Final = 48
#: Argon2id parameters of the format for passphrases (section 2.3): 64 MiB, three passes, one lane.
ARGON2_MEMORY_KIB: Final = 64 * 1024
ARGON2_PASSES: Final = 3
ARGON2_SALT_BYTES: Final = 16

_HASH: Final = 32
# Any scalar detects a Curve25519 point of small order: the product with a clamped scalar is zero only for such a
# point.
_TEST_SCALAR: Final = b"\x01" * 32


def hkdf_extract(salt: bytes, ikm: bytes) -> bytes:
    """HKDF-Extract with SHA-256 (RFC 5869 section 2.2): return the 32-byte pseudorandom key."""
    return hmac.digest(salt, ikm, "sha256")


def hkdf_expand(prk: bytes, info: bytes, n: int) -> bytes:
    """HKDF-Expand with SHA-256 (RFC 5869 section 2.3): return `n` bytes, 0 to 8160. Raises UsageError beyond."""
    if not 0 <= n <= 255 * _HASH:
        raise UsageError(f"HKDF gives 0 to {255 * _HASH} bytes, {n} asked")
    block, output = b"", b""
    for i in range(1, -(-n // _HASH) + 1):
        block = hmac.digest(prk, block + info + bytes([i]), "sha256")
        output += block
    return output[:n]


class Signer25519:
    """An Ed25519 signing key: seed and public key together, as in libsodium."""

    __slots__ = ("_secret", "public")

    def __init__(self, seed: bytes) -> None:
        """Load a 32-byte seed (RFC 8032 private key). Raises UsageError for another length."""
        if len(seed) != KEY_BYTES:
            raise UsageError(f"an Ed25519 seed has {KEY_BYTES} bytes, this has {len(seed)}")
        self.public, self._secret = bindings.crypto_sign_seed_keypair(seed)

    def sign(self, message: bytes) -> bytes:
        """Return the deterministic 64-byte signature of `message`."""
        return bindings.crypto_sign(message, self._secret)[:SIGNATURE_BYTES]

    def __repr__(self) -> str:
        return f"Signer25519(public={self.public.hex()})"

    def __reduce__(self) -> str:
        raise TypeError("a signing key is not pickled")


def verify(public: bytes, message: bytes, signature: bytes) -> bool:
    """Tell whether `public` signed `message`, as decided by libsodium (format section 2.4).

    Returns False for malformed input; never raises.
    """
    if len(public) != KEY_BYTES or len(signature) != SIGNATURE_BYTES:
        return False
    try:
        bindings.crypto_sign_open(signature + message, public)
    except exceptions.BadSignatureError:
        return False
    return True


def public_key_ok(public: bytes) -> bool:
    """Tell whether 32 bytes are a canonical Ed25519 public key in the prime-order subgroup (format section 2.4)."""
    return len(public) == KEY_BYTES and bindings.crypto_core_ed25519_is_valid_point(public)


def x25519_public(secret: bytes) -> bytes:
    """Return the 32-byte X25519 public key of a 32-byte secret (RFC 7748)."""
    if len(secret) != KEY_BYTES:
        raise UsageError(f"an X25519 secret has {KEY_BYTES} bytes, this has {len(secret)}")
    return bindings.crypto_scalarmult_base(secret)


def box_key_ok(public: bytes) -> bool:
    """Tell whether 32 bytes can receive a sealed box: a Curve25519 point that is not of small order."""
    if len(public) != KEY_BYTES:
        return False
    try:
        bindings.crypto_scalarmult(_TEST_SCALAR, public)
    except exceptions.RuntimeError:
        return False
    return True


def box_seal(data: bytes, public: bytes) -> bytes:
    """Seal `data` anonymously with libsodium's `crypto_box_seal`. The result is 48 bytes longer and differs on each
    call.

    Raises FormatError if `public` is not a usable key.
    """
    if len(public) != KEY_BYTES:
        raise FormatError(f"a box key has {KEY_BYTES} bytes, this has {len(public)}")
    try:
        return bindings.crypto_box_seal(data, public)
    except exceptions.RuntimeError:
        raise FormatError(f"box key {public.hex()} is a point of small order") from None


def box_open(data: bytes, public: bytes, secret: bytes) -> bytes | None:
    """Open a sealed box; None if the box is not for this key pair. Readers try each of their keys (format section 4)."""
    if len(data) < BOX_OVERHEAD:
        return None
    try:
        return bindings.crypto_box_seal_open(data, public, secret)
    except exceptions.CryptoError:
        return None


def normalised_passphrase(passphrase: str) -> bytes:
    """Return the passphrase in NFKC and UTF-8. Raises PassphraseError if it is empty or not text."""
    try:
        raw = unicodedata.normalize("NFKC", passphrase).encode()
    except UnicodeEncodeError:
        raise PassphraseError("the passphrase is not valid text") from None
    if not raw:
        raise PassphraseError("the passphrase is empty")
    return raw


def argon2id(
    password: bytes,
    salt: bytes,
    *,
    n: int = KEY_BYTES,
    memory_kib: int = ARGON2_MEMORY_KIB,
    passes: int = ARGON2_PASSES,
) -> bytes:
    """Derive `n` bytes from a password and a 16-byte salt with Argon2id 1.3 (RFC 9106), one lane.

    Defaults are the format's (section 2.3), about 0.2 s. Raises UsageError for parameters that libsodium refuses,
    LimitError if there is not enough memory.
    """
    try:
        return bindings.crypto_pwhash_alg(
            n, password, salt, passes, memory_kib * 1024, bindings.crypto_pwhash_ALG_ARGON2ID13
        )
    except (exceptions.ValueError, exceptions.TypeError) as error:
        raise UsageError(f"Argon2id parameters: {error}") from None
    except exceptions.RuntimeError:
        raise LimitError(f"Argon2id could not get its {memory_kib} KiB of memory") from None
