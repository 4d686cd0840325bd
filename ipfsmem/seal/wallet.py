"""What a wallet is asked to sign, and the gates that its answer has to pass before keys are made of it.

Format sections 2.1 and 2.2. It never keeps, logs or returns a signature other than as `r | s`, never says which vault
a wallet owns, and never accepts a signer that might answer differently next time.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ipfsmem.errors import SignerError, UsageError, WrongWalletError

if TYPE_CHECKING:
    from ipfsmem.seal.signers import WalletSigner

MAX_KEY_NUMBER: Final = 2**31 - 1
#: Order of secp256k1 (SEC 2, section 2.4.1).
ORDER: Final = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141

_LABEL: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
_REQUEST: Final = """ipfsmem memory key request, version 1

Signing this text creates the secret keys of an encrypted agent memory.
It is not a login and not a payment. It costs nothing.
Anyone who obtains this signature can read and change that memory.
Sign it only inside an ipfsmem program that you started yourself.
If a website that you do not run asks for it, refuse.

Account: 0x{account}
Vault: {vault}
Key number: {key_number}"""

_CONTRACT_HINT: Final = (
    "A contract account (Safe, Coinbase Smart Wallet, other ERC-4337 accounts) or a passkey has no signature that keys"
    " could be made of. Use an ordinary account, or make the vault without a wallet and keep its recovery words."
)
# The last word of an ERC-6492 signature.
_ERC6492_SUFFIX: Final = bytes.fromhex("6492") * 16


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
    """The exact ASCII text that the wallet signs as EIP-191 `personal_sign` (format section 2.1)."""
    check_address(address20)
    check_vault(vault)
    check_key_number(key_number)
    return _REQUEST.format(account=address20.hex(), vault=vault, key_number=key_number).encode("ascii")
