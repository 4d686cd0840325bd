"""Who a memory belongs to, as somebody says it: a wallet, a wallet with its vault's label, recovery words, or the root that this
device keeps; and whether that is who the memory says it is."""

from __future__ import annotations

from typing import Literal

import msgspec

from ipfsmem.config import NamespaceConfig, VaultConfig
from ipfsmem.device.identity import open_row
from ipfsmem.device.namespaces import FIRST
from ipfsmem.device.replica import Replica
from ipfsmem.device.tables import meta
from ipfsmem.errors import PassphraseError, UsageError, WrongWalletError
from ipfsmem.mode import Mode
from ipfsmem.ring.keyring import Ring
from ipfsmem.ring.statements import member_id
from ipfsmem.wallet.message import key_request, sign_once, sign_twice
from ipfsmem.wallet.root_keys import RootKeys, require_admin
from ipfsmem.wallet.signers import WalletSigner

#: The passphrase of this device's keys: False means that they have none and the disk is trusted, None that nobody has said.
DevicePassphrase = str | Literal[False] | None


class Unlock(msgspec.Struct, frozen=True):
    """A wallet to unlock with: the signer, the vault's label and key number, the passphrase of the derivation.

    `vault` None: the label that this device knows of the memory, or when one is made or brought back the one that
    `namespaces.vault_label` gives. `key_number` None: the one that it knows, else 1.
    """

    signer: WalletSigner
    vault: str | None = None
    key_number: int | None = None
    passphrase: str | None = None

    def for_vault_called(self, label: str) -> Unlock:
        """This wallet with that label and key number 1, for a vault that is made or brought back. What was given of the two stays."""
        return msgspec.structs.replace(self, vault=self.vault or label, key_number=self.key_number or 1)

    def for_vault_of(self, vault: VaultConfig | None) -> Unlock:
        """This wallet with the label and key number of the vault that a memory on this device holds. A label or number that was
        given stays."""
        if vault is None or not vault.name:
            return self
        same = self.vault in (None, vault.name)
        number = self.key_number or (vault.key_number if same else None)
        return msgspec.structs.replace(self, vault=self.vault or vault.name, key_number=number)

    def __repr__(self) -> str:
        passphrase = "" if self.passphrase is None else ", with a passphrase"
        return f"Unlock({self.signer!r}, {self.label!r}, {self.number}{passphrase})"

    @property
    def label(self) -> str:
        """The label in the text that the wallet signs."""
        return self.vault or FIRST

    @property
    def number(self) -> int:
        """The key number in that text."""
        return self.key_number or 1

    def root(self, *, twice: bool) -> RootKeys:
        """The root keys. A vault is made, or a wallet added, with two signatures that must agree."""
        message = key_request(self.signer.address, self.label, self.number)
        signature = (sign_twice if twice else sign_once)(self.signer, message)
        return RootKeys.from_signature(
            signature, self.signer.address, self.label, self.number, self.passphrase
        )

    def config(self, root: RootKeys, *, plain: bool) -> VaultConfig:
        """What a device pins of this vault, the plain or the sealed one."""
        return VaultConfig(
            tag=root.tag(plain=plain).hex(),
            name=self.label,
            key_number=self.number,
            address="0x" + self.signer.address.hex(),
            admin=root.admin_public.hex(),
            anchor=root.head_public.hex(),
            passphrase=self.passphrase is not None,
        )


#: What unlocks a memory: a wallet that signs, one with its vault's label, or root keys.
OwnerKey = Unlock | RootKeys | WalletSigner


def owner_key(given: OwnerKey) -> Unlock | RootKeys:
    """A key as it was given; a wallet alone is one whose vault is not named. Raises UsageError for what is none."""
    if isinstance(given, Unlock):
        _check_signer(given.signer)
        return given
    if isinstance(given, RootKeys):
        return given
    _check_signer(given)
    return Unlock(given)


def _check_signer(given: object) -> None:
    if not isinstance(getattr(given, "address", None), bytes) or not callable(
        getattr(given, "sign_message", None)
    ):
        raise UsageError(
            f"{type(given).__name__} unlocks no memory",
            hint="In Python: a wallet (KeystoreSigner, MnemonicSigner, RawKeySigner, or what signs like them), an Unlock "
            "around one, or RootKeys.",
        )


def keeps_root(replica: Replica) -> bool:
    """Whether this device made its vault without a wallet, and so keeps the root of it."""
    return replica.config.vault is not None and replica.db.get_meta(meta.KEPT_ROOT) is not None


def stored_root(replica: Replica) -> RootKeys | None:
    """The root keys that this device stores: those of a vault without a wallet, on the device that made it. None on every other.

    Raises PassphraseError where the keys came without the passphrase.
    """
    stored, vault = replica.db.get_meta(meta.KEPT_ROOT), replica.config.vault
    if stored is None or vault is None:
        return None
    if replica.lock_watch is not None:
        raise PassphraseError(
            "the first key of this memory opens only with the passphrase of this device, which unlock does not keep",
            hint="Give the passphrase itself: at the prompt, in IPFSMEM_PASSPHRASE or with --passphrase-fd (in Python: load(passphrase=)).",
        )
    # A memory that was made before there was such a key keeps its root under the row key.
    key = replica.device.root_key or replica.device.row_key
    return RootKeys.from_random(open_row(key, stored), vault.name, vault.key_number)


def check_root(
    config: NamespaceConfig, root: RootKeys, ring: Ring | None = None, address: str | None = None
) -> None:
    """Refuse a wallet that is neither the one this memory was made with nor one of those that `ring` has as an admin,
    and what was revoked. Other recovery words are judged by the ring when they do something. `address`: the wallet's."""
    me = member_id(root.admin_public)
    if ring is not None and me in ring.view.revoked:
        raise revoked_owner_error(root)
    if config.vault is None or root.kind == "recovery":
        return
    if ring is not None and ring.view.may_administer(me) and ring.view.sign_key(me) == root.admin_public:
        return
    require_admin(root, bytes.fromhex(config.vault.admin), address, config.vault.address)


def revoked_owner_error(root: RootKeys) -> WrongWalletError:
    """The error for a key whose owner was revoked."""
    if root.kind == "recovery":
        return WrongWalletError(
            "these recovery words were revoked: they do not open this memory any more",
            hint="Use the words that were made after them, or the wallet.",
        )
    return WrongWalletError("this wallet was revoked: it does not open this memory any more")


def check_protection(mode: Mode, passphrase: DevicePassphrase) -> None:
    """Refuse what would leave keys of an encrypted memory readable without anybody having said so, and a new passphrase
    that is too easy."""
    if isinstance(passphrase, str):
        from ipfsmem.wallet.passphrases import require_strong

        require_strong(passphrase)
    if mode.sealed and passphrase is None:
        raise UsageError(
            "an encrypted memory keeps this device's keys under a passphrase",
            hint="Give one at the prompt, in IPFSMEM_PASSPHRASE or with --passphrase-fd; or say "
            "--unprotected-keys and trust the disk (in Python: passphrase=, or passphrase=False).",
        )
