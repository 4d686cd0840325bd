"""Encode a secret as a JSON file, encrypted under a passphrase or, without a passphrase, in the clear.

Pure: the caller passes salt and nonce and writes the file with mode 0600.

    {"argon2":{"memory_kib":65536,"passes":3,"salt":B},"box":B,"nonce":B,"sum":H,"v":1}      B = base64url, H = 16 hex
    {"clear":B,"sum":H,"v":1}

`box` is XChaCha20-Poly1305-IETF under Argon2id(NFKC passphrase), with the canonical JSON of `argon2`, `nonce` and `v`
as associated data. `sum`, a prefix of the SHA-256 of the rest, tells a damaged file from a wrong passphrase.
"""

import hashlib
from typing import Final

import msgspec
from nacl import bindings, exceptions

from ipfsmem.canonical import b64, check_canonical, encode, read_json, unb64
from ipfsmem.errors import FormatError, LimitError, PassphraseError, UsageError
from ipfsmem.seal.primitives import (
    ARGON2_MEMORY_KIB,
    ARGON2_PASSES,
    ARGON2_SALT_BYTES,
    argon2id,
    normalised_passphrase,
)

VERSION: Final = 1
NONCE_BYTES: Final = 24
MAX_SECRET: Final = 32 * 1024
MAX_FILE: Final = 64 * 1024
#: Limits of a file's parameters, so that a forged file cannot exhaust the machine: 1 GiB, 16 passes.
MAX_MEMORY_KIB: Final = 1024 * 1024
MAX_PASSES: Final = 16

_WHAT: Final = "protected secret"


class _Argon2(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    memory_kib: int
    passes: int
    salt: str


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    # The fields are in the order of canonical JSON, since msgspec encodes a struct in the order of declaration.
    argon2: _Argon2 | None = None
    box: str | None = None
    clear: str | None = None
    nonce: str | None = None
    sum: str
    v: int


def protect(
    secret: bytes,
    passphrase: str | None,
    *,
    salt: bytes,
    nonce: bytes,
    memory_kib: int = ARGON2_MEMORY_KIB,
    passes: int = ARGON2_PASSES,
) -> bytes:
    """Return the file content: `secret` encrypted under `passphrase`, or in the clear if `passphrase` is None.

    `salt` (16 bytes) and `nonce` (24 bytes) must be fresh random bytes. The call needs about 0.2 s with the default
    parameters. Raises UsageError for wrong sizes, PassphraseError for an empty passphrase.
    """
    if len(secret) > MAX_SECRET:
        raise UsageError(f"a secret has at most {MAX_SECRET} bytes, this has {len(secret)}")
    if len(salt) != ARGON2_SALT_BYTES or len(nonce) != NONCE_BYTES:
        raise UsageError(f"salt and nonce have {ARGON2_SALT_BYTES} and {NONCE_BYTES} bytes")
    if passphrase is None:
        return _with_checksum(_File(sum="", v=VERSION, clear=b64(secret)))
    if not (0 < memory_kib <= MAX_MEMORY_KIB and 0 < passes <= MAX_PASSES):
        raise UsageError(f"Argon2id takes at most {MAX_MEMORY_KIB} KiB and {MAX_PASSES} passes here")
    argon2 = _Argon2(memory_kib=memory_kib, passes=passes, salt=b64(salt))
    key = argon2id(normalised_passphrase(passphrase), salt, memory_kib=memory_kib, passes=passes)
    box = bindings.crypto_aead_xchacha20poly1305_ietf_encrypt(secret, _aad(argon2, b64(nonce)), nonce, key)
    return _with_checksum(_File(sum="", v=VERSION, argon2=argon2, box=b64(box), nonce=b64(nonce)))


def unprotect(data: bytes, passphrase: str | None) -> bytes:
    """Return the secret of a file made by `protect`. The passphrase is ignored if the secret is in the clear.

    Raises PassphraseError if the passphrase is missing or wrong, FormatError if the file is damaged, LimitError if
    the file or its Argon2id parameters are too large.
    """
    file = _read(data)
    if file.clear is not None:
        return unb64(file.clear, _WHAT)
    if file.argon2 is None or file.box is None or file.nonce is None:
        raise FormatError(f"{_WHAT} has neither a box nor a clear text")
    if passphrase is None:
        raise PassphraseError("this secret needs a passphrase")
    argon2 = file.argon2
    if not (0 < argon2.memory_kib <= MAX_MEMORY_KIB and 0 < argon2.passes <= MAX_PASSES):
        raise LimitError(f"{_WHAT} asks for {argon2.memory_kib} KiB and {argon2.passes} passes of Argon2id")
    salt = unb64(argon2.salt, f"salt of {_WHAT}", ARGON2_SALT_BYTES)
    nonce = unb64(file.nonce, f"nonce of {_WHAT}", NONCE_BYTES)
    box = unb64(file.box, f"box of {_WHAT}")
    if len(box) < 16:
        raise FormatError(f"box of {_WHAT} is too short")
    try:
        key = argon2id(
            normalised_passphrase(passphrase), salt, memory_kib=argon2.memory_kib, passes=argon2.passes
        )
    except UsageError as error:
        raise FormatError(f"{_WHAT}: {error}") from None
    try:
        return bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(box, _aad(argon2, file.nonce), nonce, key)
    except exceptions.CryptoError:
        raise PassphraseError("the passphrase is wrong") from None


def is_protected(data: bytes) -> bool:
    """Tell whether the file needs a passphrase. Raises FormatError if the file is damaged."""
    return _read(data).clear is None


def _read(data: bytes) -> _File:
    if len(data) > MAX_FILE:
        raise LimitError(f"{_WHAT} has {len(data)} bytes, at most {MAX_FILE} allowed")
    try:
        file = read_json(data, type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FormatError(f"{_WHAT} is damaged: {error}") from None
    check_canonical(data, file, _WHAT)
    if file.v != VERSION:
        raise FormatError(f"{_WHAT} has version {file.v}, this program reads {VERSION}")
    if file.sum != _sum(file):
        raise FormatError(f"{_WHAT} is damaged: its checksum is wrong")
    if (file.clear is None) == (file.box is None):
        raise FormatError(f"{_WHAT} must have either a box or a clear text")
    return file


def _with_checksum(file: _File) -> bytes:
    return encode(msgspec.structs.replace(file, sum=_sum(file)))


def _sum(file: _File) -> str:
    return hashlib.sha256(encode(msgspec.structs.replace(file, sum=""))).hexdigest()[:16]


def _aad(argon2: _Argon2, nonce: str) -> bytes:
    return encode({"argon2": argon2, "nonce": nonce, "v": VERSION})
