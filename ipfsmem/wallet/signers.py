"""Sign without a browser, with a raw key, a keystore file or a wallet's seed phrase.

Signatures are deterministic (RFC 6979); `message.key_request` builds the text. This is the only module of the package
that uses the disk. Ethereum libraries are imported when a signer is created.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from ipfsmem.canonical import check_depth, read_json
from ipfsmem.errors import FormatError, LimitError, PassphraseError, StorageError, UsageError
from ipfsmem.file_durability import flush_to_disk
from ipfsmem.wallet.message import ORDER, signing_hash

DEFAULT_ACCOUNT_PATH: Final = "m/44'/60'/0'/0/0"
#: The scrypt parameter N of wallets: 256 MiB, about a second.
SCRYPT_N: Final = 262144
MAX_KEYSTORE_BYTES: Final = 64 * 1024

_MAX_SCRYPT_BYTES: Final = 1024 * 1024 * 1024
_MAX_SCRYPT_P: Final = 16
_MAX_PBKDF2_ROUNDS: Final = 10_000_000


class RawKeySigner:
    """Signs with a secp256k1 key of 32 bytes."""

    def __init__(self, key32: bytes) -> None:
        """Raise UsageError if `key32` is not a secp256k1 private key."""
        from ipfsmem.wallet.secp256k1 import account_of

        if len(key32) != 32 or not 0 < int.from_bytes(key32, "big") < ORDER:
            raise UsageError("this is not a secp256k1 private key of 32 bytes")
        self._key = key32
        self.address: bytes = account_of(key32)

    def sign_message(self, text: bytes) -> bytes:
        """Return the signature of `text` by EIP-191 `personal_sign`: `r | s | v`, v 27 or 28."""
        from ipfsmem.wallet.secp256k1 import sign_hash

        signature = sign_hash(self._key, signing_hash(text))
        return signature[:64] + bytes((signature[64] + 27,))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(0x{self.address.hex()})"


class MnemonicSigner(RawKeySigner):
    """Signs with one account of a wallet's BIP-39 seed phrase."""

    def __init__(self, words: str, account_path: str = DEFAULT_ACCOUNT_PATH) -> None:
        """Derive the key; `account_path` is a BIP-32 path. Raises FormatError if words or path are invalid."""
        with wallet_library():
            from eth_account.hdaccount import key_from_seed, seed_from_mnemonic
            from eth_utils.exceptions import ValidationError

        try:
            seed = seed_from_mnemonic(" ".join(words.lower().split()), "")
        except (ValidationError, ValueError):
            # The library's message is not used: it contains the words.
            raise FormatError(
                "the seed phrase is not valid BIP-39: a word, their number or the checksum"
            ) from None
        try:
            key = key_from_seed(seed, account_path)
        except (ValidationError, ValueError) as error:
            raise FormatError(f"account path {account_path!r} is not valid: {error}") from None
        super().__init__(key)


class KeystoreSigner(RawKeySigner):
    """Signs with the key in a Web3 secret storage file, version 3, as written by geth and most wallets."""

    def __init__(self, path: str | os.PathLike[str], passphrase: str) -> None:
        """Read and decrypt the file; about a second with a wallet's usual scrypt parameters.

        Raises StorageError if it cannot be read, FormatError or LimitError if it is not a keystore, PassphraseError
        if the passphrase is wrong.
        """
        super().__init__(_open_keystore(read_keystore(path), passphrase, f"keystore {Path(path)}"))


def read_keystore(path: str | os.PathLike[str]) -> bytes:
    """Return the first MAX_KEYSTORE_BYTES + 1 bytes of a keystore file. Raises StorageError."""
    where = Path(path)
    try:
        with where.open("rb") as file:
            return file.read(MAX_KEYSTORE_BYTES + 1)
    except OSError as error:
        raise StorageError(
            f"keystore {where} cannot be read: {error.strerror}",
            hint="Check the path and its permissions.",
        ) from None


def create_keystore(
    path: str | os.PathLike[str], passphrase: str, key32: bytes, *, scrypt_n: int = SCRYPT_N
) -> bytes:
    """Write a new keystore file with mode 0600 and return the account's address.

    `scrypt_n`: a power of two; smaller than the default only in tests. Raises StorageError if the file exists or
    cannot be written, PassphraseError if the passphrase is too weak, UsageError if `key32` is not a key.
    """
    from ipfsmem.wallet.passphrases import require_strong

    require_strong(passphrase, "the passphrase of the new wallet")
    with wallet_library():
        from eth_keyfile.keyfile import create_keyfile_json

    address = RawKeySigner(key32).address
    if scrypt_n < 2 or scrypt_n & (scrypt_n - 1) or scrypt_n * 8 * 128 > _MAX_SCRYPT_BYTES:
        raise UsageError(f"scrypt's N is a power of two up to {_MAX_SCRYPT_BYTES // 1024}, not {scrypt_n}")
    content = create_keyfile_json(key32, _passphrase_bytes(passphrase), kdf="scrypt", iterations=scrypt_n)
    _write_new(Path(path), msgspec.json.format(msgspec.json.encode(content)) + b"\n")
    return address


def _write_new(path: Path, data: bytes) -> None:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise StorageError(
            f"{path} exists and is not overwritten", hint="Choose another name, or move the file away."
        ) from None
    except OSError as error:
        raise StorageError(f"{path} cannot be made: {error.strerror}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            flush_to_disk(file.fileno())
    except OSError as error:
        # A partial keystore would occupy the name, and its key would be lost.
        path.unlink(missing_ok=True)
        raise StorageError(f"{path} cannot be written: {error.strerror}") from None


class _Cipher(msgspec.Struct, frozen=True):
    iv: str


class _Scrypt(msgspec.Struct, frozen=True):
    dklen: int
    n: int
    r: int
    p: int
    salt: str


class _Pbkdf2(msgspec.Struct, frozen=True):
    dklen: int
    c: int
    prf: str
    salt: str


class _Crypto(msgspec.Struct, frozen=True):
    cipher: str
    cipherparams: _Cipher
    ciphertext: str
    kdf: str
    kdfparams: dict[str, Any]
    mac: str


class _Keystore(msgspec.Struct, frozen=True):
    version: int
    crypto: _Crypto
    address: str | None = None


def _open_keystore(data: bytes, passphrase: str, what: str) -> bytes:
    with wallet_library():
        from eth_keyfile.exceptions import EthKeyfileValueError
        from eth_keyfile.keyfile import decode_keyfile_json

    keystore = _read_keystore(data, what)
    try:
        key: bytes = decode_keyfile_json(msgspec.to_builtins(keystore), _passphrase_bytes(passphrase))
    except EthKeyfileValueError:
        raise PassphraseError(
            f"the passphrase of {what} is wrong",
            hint="Give the wallet's own: at the prompt, in IPFSMEM_WALLET_PASSPHRASE, or with --wallet-passphrase-fd "
            "(in Python: KeystoreSigner).",
        ) from None
    if len(key) != 32 or not 0 < int.from_bytes(key, "big") < ORDER:
        raise FormatError(f"{what} does not hold a secp256k1 private key")
    if keystore.address and _hex(keystore.address, "address", what) != RawKeySigner(key).address:
        raise FormatError(f"{what} holds the key of another account than it says")
    return key


def _read_keystore(data: bytes, what: str) -> _Keystore:
    if len(data) > MAX_KEYSTORE_BYTES:
        raise LimitError(f"{what} is longer than {MAX_KEYSTORE_BYTES} bytes")
    check_depth(data, what)
    try:
        # Old files write "Crypto" and "Version".
        keystore = msgspec.convert(_lower_keys(read_json(data)), _Keystore)
        if keystore.version != 3:
            raise FormatError(f"{what} has version {keystore.version}; 3 is read")
        params = _read_kdf(keystore.crypto, what)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError, RecursionError) as error:
        raise FormatError(f"{what} is not a Web3 secret storage file: {error}") from None
    crypto = keystore.crypto
    if crypto.cipher != "aes-128-ctr":
        raise FormatError(f"{what} uses the cipher {crypto.cipher[:32]!r}; aes-128-ctr is read")
    for name, text, size in (
        ("iv", crypto.cipherparams.iv, 16),
        ("ciphertext", crypto.ciphertext, 32),
        ("mac", crypto.mac, 32),
    ):
        if len(_hex(text, name, what)) != size:
            raise FormatError(f"{what}: {name} does not have {size} bytes")
    crypto = msgspec.structs.replace(crypto, kdfparams=msgspec.to_builtins(params))
    return msgspec.structs.replace(keystore, crypto=crypto)


def _read_kdf(crypto: _Crypto, what: str) -> _Scrypt | _Pbkdf2:
    params: _Scrypt | _Pbkdf2
    if crypto.kdf == "scrypt":
        params = msgspec.convert(crypto.kdfparams, _Scrypt)
        n, r, p = params.n, params.r, params.p
        if n < 2 or n & (n - 1) or r < 1 or p < 1:
            raise FormatError(f"{what} has impossible scrypt parameters")
        if n * r * 128 > _MAX_SCRYPT_BYTES or p > _MAX_SCRYPT_P:
            raise LimitError(f"{what} asks scrypt for more than 1 GiB or {_MAX_SCRYPT_P} rounds")
    elif crypto.kdf == "pbkdf2":
        params = msgspec.convert(crypto.kdfparams, _Pbkdf2)
        if params.prf != "hmac-sha256" or params.c < 1:
            raise FormatError(f"{what} has PBKDF2 parameters that are not read")
        if params.c > _MAX_PBKDF2_ROUNDS:
            raise LimitError(
                f"{what} asks PBKDF2 for {params.c} rounds, at most {_MAX_PBKDF2_ROUNDS} are done"
            )
    else:
        raise FormatError(f"{what} uses the key derivation {crypto.kdf[:32]!r}; scrypt and pbkdf2 are read")
    if params.dklen != 32:
        raise FormatError(f"{what} derives {params.dklen} bytes, 32 expected")
    _hex(params.salt, "salt", what)
    return params


def _lower_keys(value: Any, depth: int = 4) -> Any:
    if not isinstance(value, dict) or not depth:
        return value
    return {key.lower(): _lower_keys(item, depth - 1) for key, item in value.items()}


def _hex(text: str, name: str, what: str) -> bytes:
    digits = text.removeprefix("0x")
    try:
        data = bytes.fromhex(digits)
    except ValueError:
        raise FormatError(f"{what}: {name} is not hex") from None
    if len(data) * 2 != len(digits):
        raise FormatError(f"{what}: {name} has white space in its hex")
    return data


def _passphrase_bytes(passphrase: str) -> bytes:
    # Like geth: the bytes as typed, without normalisation.
    try:
        raw = passphrase.encode()
    except UnicodeEncodeError:
        raise PassphraseError("the passphrase is not valid text") from None
    if not raw:
        raise PassphraseError("the passphrase is empty")
    return raw


@contextlib.contextmanager
def wallet_library() -> Iterator[None]:
    """Restore Python's recursion limit after the block, in which the wallet library is imported.

    A dependency raises it to 100,000, more than the C stack holds: deeply nested JSON would then crash a decoder
    instead of raising an error.
    """
    limit = sys.getrecursionlimit()
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
