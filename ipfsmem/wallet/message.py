"""Build the message that a wallet signs, and check its signature before keys are derived (format sections 2.1, 2.2).

Signatures are never stored or logged, and are returned as `r | s` only. A signer whose signatures may differ from
call to call is refused. Nothing reveals which vault a wallet owns.
"""

from __future__ import annotations

from typing import Final, Protocol

from ipfsmem.errors import SignerError, UsageError, WrongWalletError
from ipfsmem.lazy_pattern import lazy_pattern

MAX_KEY_NUMBER: Final = 2**31 - 1
#: Order of secp256k1 (SEC 2, section 2.4.1).
ORDER: Final = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141

_LABEL: Final = lazy_pattern(r"[a-z0-9][a-z0-9-]{0,31}")
_HEX: Final = lazy_pattern(r"(?:0[xX])?((?:[0-9a-fA-F]{2})*)")
_REQUEST: Final = """ipfsmem memory key request, version 1

Signing this text creates the secret keys of an encrypted agent memory.
It is not a login and not a payment. It costs nothing.
Anyone who obtains this signature can read and change that memory.
Sign it only inside an ipfsmem program that you started yourself.
If a website that you do not run asks for it, refuse.

Account: 0x{account}
Vault: {vault}
Key number: {key_number}"""

_SIGNATURE_BYTES: Final = 65
# The last 32 bytes of an ERC-6492 signature, which wraps that of a contract that is not deployed yet.
_ERC6492_SUFFIX: Final = bytes.fromhex("6492") * 16
_CONTRACT_HINT: Final = (
    "A contract account (Safe, Coinbase Smart Wallet, other ERC-4337 accounts) or a passkey has no signature that keys"
    " could be made of. Use an ordinary account, or make the vault without a wallet and keep its recovery phrase."
)
_COMPACT_HINT: Final = (
    "Compact signatures (ERC-2098) leave out the recovery byte. Switch the signer to 65-byte signatures, or make the"
    " vault without a wallet and keep its recovery phrase."
)
_RANDOM_HINT: Final = (
    "Threshold and MPC wallets and devices with anti-klepto protection (BitBox02, Keycard) sign differently every time,"
    " so they could never open the vault again. Use another wallet, or make the vault without a wallet and keep its"
    " recovery phrase."
)
_ACCOUNT_HINT: Final = (
    "Select that account in the wallet and sign again. A contract account signs with its owner's key and cannot be used:"
    " take an ordinary account, or make the vault without a wallet and keep its recovery phrase."
)


class WalletSigner(Protocol):
    """Signs texts for one account, with a local key or by a wallet on a loopback page."""

    @property
    def address(self) -> bytes:
        """Return the account, 20 bytes."""

    def sign_message(self, text: bytes) -> bytes:
        """Return the signature of `text` by EIP-191 `personal_sign`: `r | s | v`, 65 bytes."""


def check_vault(vault: str) -> None:
    """Raise UsageError unless `vault` is a label: 1 to 32 of a-z, 0-9 and -, not starting with -."""
    if not _LABEL.fullmatch(vault):
        raise UsageError(f"{vault!r} is not a vault label: 1 to 32 of a-z, 0-9 and -, not starting with -")


def check_key_number(key_number: int) -> None:
    """Raise UsageError unless `key_number` is 1 to 2147483647."""
    if not 1 <= key_number <= MAX_KEY_NUMBER:
        raise UsageError(f"a key number is 1 to {MAX_KEY_NUMBER}, not {key_number}")


def check_address(address20: bytes) -> None:
    """Raise UsageError unless `address20` has the 20 bytes of an account address."""
    if len(address20) != 20:
        raise UsageError(f"an account address has 20 bytes, this has {len(address20)}")


def key_request(address20: bytes, vault: str, key_number: int) -> bytes:
    """Return the exact ASCII text that the wallet signs as EIP-191 `personal_sign` (format section 2.1)."""
    check_address(address20)
    check_vault(vault)
    check_key_number(key_number)
    return _REQUEST.format(account=address20.hex(), vault=vault, key_number=key_number).encode("ascii")


def read_signature(text: str) -> bytes:
    """Parse a signature as wallets print it: hex in either case, with or without 0x. Raises SignerError."""
    match = _HEX.fullmatch(text.strip())
    if match is None:
        raise SignerError("the wallet's answer is not a signature in hex")
    return bytes.fromhex(match[1])


def signing_hash(message: bytes) -> bytes:
    """Return the 32 bytes that `personal_sign` signs: Keccak-256 over the EIP-191 version 0x45 prefix and the
    message."""
    from eth_hash.auto import keccak

    return bytes(keccak(b"\x19Ethereum Signed Message:\n%d" % len(message) + message))


def normalise_signature(sig: bytes, address20: bytes, message: bytes) -> bytes:
    """Return `r | s`, 64 bytes, of a wallet's signature of `message` that passes every check of format section 2.2.

    `s` is reduced to the lower half of the order, so that both forms of a signature lead to the same keys. Raises
    SignerError if it is not the signature of an ordinary account, WrongWalletError if it is that of another account.
    """
    check_address(address20)
    _check_length(sig)
    v = sig[64]
    if v not in (0, 1, 27, 28):
        raise SignerError(f"the signature ends in {v}; 0, 1, 27 or 28 expected")
    parity = v % 27
    r, s = int.from_bytes(sig[:32], "big"), int.from_bytes(sig[32:64], "big")
    if not (0 < r < ORDER and 0 < s < ORDER):
        raise SignerError("the signature has r or s outside 1 to n - 1", hint=_CONTRACT_HINT)
    if s > ORDER // 2:
        s, parity = ORDER - s, 1 - parity
    signed_by = _recover(parity, r, s, message)
    if signed_by is None:
        raise SignerError("no account can have made this signature", hint=_CONTRACT_HINT)
    if signed_by != address20:
        raise WrongWalletError(
            f"the signature is by account 0x{signed_by.hex()}, not by 0x{address20.hex()}", hint=_ACCOUNT_HINT
        )
    return r.to_bytes(32, "big") + s.to_bytes(32, "big")


def sign_once(signer: WalletSigner, message: bytes) -> bytes:
    """Return `r | s` for an unlock. The caller compares the derived keys with the pinned ones
    (`root_keys.require_admin`)."""
    return normalise_signature(signer.sign_message(message), signer.address, message)


def sign_twice(signer: WalletSigner, message: bytes) -> bytes:
    """Return `r | s` for creating a vault or adding a wallet to one, after two equal signatures (format section 2.2).

    Unequal signatures are the only sign of MPC, threshold and anti-klepto signers. Raises SignerError with the likely
    cause, and the errors of `normalise_signature` and of the signer.
    """
    first = sign_once(signer, message)
    if sign_once(signer, message) != first:
        raise SignerError(
            f"account 0x{signer.address.hex()} signed the same text twice and gave two different signatures",
            hint=_RANDOM_HINT,
        )
    return first


def _check_length(sig: bytes) -> None:
    size = len(sig)
    if size == _SIGNATURE_BYTES:
        return
    if sig.endswith(_ERC6492_SUFFIX):
        raise SignerError("the answer is an ERC-6492 signature of a contract account", hint=_CONTRACT_HINT)
    if size == 64:
        raise SignerError("the signature has 64 bytes, 65 expected: a compact form", hint=_COMPACT_HINT)
    if size > _SIGNATURE_BYTES:
        raise SignerError(
            f"the signature has {size} bytes, 65 expected: probably an ERC-1271 contract account",
            hint=_CONTRACT_HINT,
        )
    raise SignerError(f"the signature has {size} bytes, 65 expected")


def _recover(parity: int, r: int, s: int, message: bytes) -> bytes | None:
    from ipfsmem.wallet.secp256k1 import recover_account

    return recover_account(parity, r, s, signing_hash(message))
