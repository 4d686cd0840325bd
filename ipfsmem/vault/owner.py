"""Check the owner key that a caller passes against the vault.

The key is a wallet, a wallet with its vault's label, a recovery phrase, or the root stored on this device.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from ipfsmem.config import LocalVaultConfig, VaultConfig
from ipfsmem.device.identity import open_row
from ipfsmem.device.local_vaults import FIRST, local_vaults, vault_label
from ipfsmem.device.replica import Replica
from ipfsmem.device.tables import meta
from ipfsmem.errors import PassphraseError, UsageError, WrongWalletError
from ipfsmem.mode import Mode
from ipfsmem.ring.keyring import Ring
from ipfsmem.ring.statements import member_id
from ipfsmem.vault.home import DevicePassphrase
from ipfsmem.wallet.message import WalletSigner, check_vault, key_request, sign_once, sign_twice
from ipfsmem.wallet.root_keys import RootKeys, require_admin


class Unlock(msgspec.Struct, frozen=True):
    """A wallet for unlocking: signer, the vault's label and key number, and the passphrase of the derivation.

    `vault=None`: the label known to this device, or for a new or restored vault that of
    `local_vaults.vault_label`. `key_number=None`: the known one, else 1.
    """

    signer: WalletSigner
    vault: str | None = None
    key_number: int | None = None
    passphrase: str | None = None

    def for_vault_called(self, label: str) -> Unlock:
        """Fill in that label and key number 1 for a new or restored vault; given values stay."""
        return msgspec.structs.replace(self, vault=self.vault or label, key_number=self.key_number or 1)

    def for_vault_of(self, vault: VaultConfig | None) -> Unlock:
        """Fill in label and key number of the vault on this device; given values stay."""
        if vault is None or not vault.name:
            return self
        same = self.vault in (None, vault.name)
        number = self.key_number or (vault.key_number if same else None)
        return msgspec.structs.replace(self, vault=self.vault or vault.name, key_number=number)

    def opens(self, vault: VaultConfig | None) -> bool:
        """Tell whether a vault on this device has this wallet, label and key number, and a passphrase as this has."""
        return vault is not None and (vault.address, vault.name, vault.key_number, vault.passphrase) == (
            f"0x{self.signer.address.hex()}",
            self.label,
            self.number,
            self.passphrase is not None,
        )

    def first_elsewhere(self, home: Path, vault_name: str) -> Unlock | None:
        """Return what opens the wallet's first vault, if another device may have it under the name `vault_name`: it is `default` in the
        wallet, whatever its name on a device. None if another vault is named, and if the first one is on this device."""
        if self.vault is not None or vault_name == FIRST:
            return None
        first = self.for_vault_called(FIRST)
        return None if any(first.opens(one.vault) for one in local_vaults(home).values()) else first

    def searched(self, home: Path, vault_name: str) -> list[Unlock]:
        """Return what opens the wallet's vaults that may have a name which is not on this device, in the order of the
        search: the one of that name, then the first one (`first_elsewhere`). UsageError if neither can exist."""
        first = self.first_elsewhere(home, vault_name)
        if first is None:
            return [self.for_vault_called(vault_label(home, vault_name, self.vault))]
        try:
            check_vault(vault_name)
        except UsageError:
            return [first]
        return [self.for_vault_called(vault_name), first]

    def __repr__(self) -> str:
        passphrase = "" if self.passphrase is None else ", with a passphrase"
        return f"Unlock({self.signer!r}, {self.label!r}, {self.number}{passphrase})"

    @property
    def label(self) -> str:
        """Return the label in the text that the wallet signs."""
        return self.vault or FIRST

    @property
    def number(self) -> int:
        """Return the key number in that text."""
        return self.key_number or 1

    def root(self, *, twice: bool) -> RootKeys:
        """Derive the root keys. Creating a vault or adding a wallet requires `twice`: two signatures that
        must agree."""
        message = key_request(self.signer.address, self.label, self.number)
        signature = (sign_twice if twice else sign_once)(self.signer, message)
        return RootKeys.from_signature(
            signature, self.signer.address, self.label, self.number, self.passphrase
        )

    def config(self, root: RootKeys, *, plain: bool) -> VaultConfig:
        """Return what a device pins of this vault, the plain or the sealed one."""
        return VaultConfig(
            tag=root.tag(plain=plain).hex(),
            name=self.label,
            key_number=self.number,
            address="0x" + self.signer.address.hex(),
            admin=root.admin_public.hex(),
            anchor=root.head_public.hex(),
            passphrase=self.passphrase is not None,
        )


#: Unlocks a vault: a wallet that signs, one with its vault's label, or root keys.
OwnerKey = Unlock | RootKeys | WalletSigner


def owner_key(key: OwnerKey) -> Unlock | RootKeys:
    """Normalise an owner key; a plain wallet becomes an Unlock without a vault. Raises UsageError for anything else."""
    if isinstance(key, Unlock):
        _check_signer(key.signer)
        return key
    if isinstance(key, RootKeys):
        return key
    _check_signer(key)
    return Unlock(key)


def _check_signer(signer: object) -> None:
    if not isinstance(getattr(signer, "address", None), bytes) or not callable(
        getattr(signer, "sign_message", None)
    ):
        raise UsageError(
            f"{type(signer).__name__} cannot unlock a vault",
            hint="In Python: a wallet (KeystoreSigner, MnemonicSigner, RawKeySigner, or what signs like them), an Unlock "
            "around one, or RootKeys.",
        )


def keeps_root(replica: Replica) -> bool:
    """Tell whether this device created its vault without a wallet, and so stores its root."""
    return replica.config.vault is not None and replica.db.get_meta(meta.KEPT_ROOT) is not None


def stored_root(replica: Replica) -> RootKeys | None:
    """Return the root keys stored here: for a vault without a wallet, on the device that made it; else None.

    Raises PassphraseError if the device keys were opened without the passphrase.
    """
    stored, vault = replica.db.get_meta(meta.KEPT_ROOT), replica.config.vault
    if stored is None or vault is None:
        return None
    if replica.lock_watch is not None:
        raise PassphraseError(
            "the first key of this vault opens only with the passphrase of this device, which unlock does not keep",
            hint="Give the passphrase itself: at the prompt, in IPFSMEM_PASSPHRASE or with --passphrase-fd (in Python: load(passphrase=)).",
        )
    # Older vaults keep their root under the row key.
    key = replica.device.root_key or replica.device.row_key
    return RootKeys.from_random(open_row(key, stored), vault.name, vault.key_number)


def check_root(
    config: LocalVaultConfig, root: RootKeys, ring: Ring | None = None, address: str | None = None
) -> None:
    """Refuse a wallet that neither made this vault nor is an admin in `ring`, and a revoked one.

    The ring judges other recovery phrases when they are used. `address`: the wallet's.
    """
    me = member_id(root.admin_public)
    if ring is not None and me in ring.view.revoked:
        raise revoked_owner_error(root)
    if config.vault is None or root.kind == "recovery":
        return
    if ring is not None and ring.view.may_administer(me) and ring.view.sign_key(me) == root.admin_public:
        return
    require_admin(root, bytes.fromhex(config.vault.admin), address, config.vault.address)


def revoked_owner_error(root: RootKeys) -> WrongWalletError:
    """Return the error for a key whose owner was revoked."""
    if root.kind == "recovery":
        return WrongWalletError(
            "this recovery phrase was revoked: it no longer opens this vault",
            hint="Use the newer recovery phrase, or the wallet.",
        )
    return WrongWalletError("this wallet was revoked: it no longer opens this vault")


def check_protection(mode: Mode, passphrase: DevicePassphrase) -> None:
    """Refuse unprotected keys of an encrypted vault unless explicitly requested, and a weak new passphrase."""
    if isinstance(passphrase, str):
        from ipfsmem.wallet.passphrases import require_strong

        require_strong(passphrase)
    if mode.sealed and passphrase is None:
        raise UsageError(
            "an encrypted vault requires a passphrase for this device's keys",
            hint="Give one at the prompt, in IPFSMEM_PASSPHRASE or with --passphrase-fd; or pass --unprotected-keys to rely on the disk (in Python: passphrase=, or passphrase=False).",
        )
