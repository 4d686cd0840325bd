"""Sign with secp256k1, and compute the account of a key or a signature.

Uses coincurve (libsecp256k1; the extra `fast`) if installed, else eth-keys, whose import is much slower. Both sign by
RFC 6979 with identical bytes. Keys are not stored.
"""

from __future__ import annotations

from typing import Any

coincurve: Any
try:
    import coincurve
except ImportError:
    coincurve = None


def account_of(key32: bytes) -> bytes:
    """Return the account, 20 bytes, of a secp256k1 key."""
    if coincurve is not None:
        return _account(coincurve.PrivateKey(key32).public_key.format(compressed=False))
    from eth_keys.datatypes import PrivateKey

    return bytes(PrivateKey(key32).public_key.to_canonical_address())


def sign_hash(key32: bytes, digest: bytes) -> bytes:
    """Return `r | s | parity`, 65 bytes, of a 32-byte hash."""
    if coincurve is not None:
        signature: bytes = coincurve.PrivateKey(key32).sign_recoverable(digest, hasher=None)
        return signature
    from eth_keys.datatypes import PrivateKey

    return bytes(PrivateKey(key32).sign_msg_hash(digest).to_bytes())


def recover_account(parity: int, r: int, s: int, digest: bytes) -> bytes | None:
    """Return the account of a signature of a 32-byte hash; None if the signature is impossible."""
    if coincurve is not None:
        signature = r.to_bytes(32, "big") + s.to_bytes(32, "big") + bytes((parity,))
        try:
            public = coincurve.PublicKey.from_signature_and_message(signature, digest, hasher=None)
        except Exception:  # the library raises bare Exception and ValueError for an impossible signature
            return None
        return _account(public.format(compressed=False))
    from eth_keys.datatypes import Signature
    from eth_keys.exceptions import BadSignature
    from eth_utils.exceptions import ValidationError

    try:
        public_key = Signature(vrs=(parity, r, s)).recover_public_key_from_msg_hash(digest)
    except (BadSignature, ValidationError):
        return None
    return bytes(public_key.to_canonical_address())


def _account(public65: bytes) -> bytes:
    from eth_hash.auto import keccak

    return bytes(keccak(public65[1:]))[-20:]
