"""Making, opening and restoring a memory on this device: keys, folder, configuration, in the order that survives a crash.

`ipfsmem.json` is written last. Which vault a wallet or the recovery words lead to is found out by `finding`; which one a
new namespace gets, by `device/namespaces` (format sections 2 and 7).
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from ipfsmem.causal.clock import hlc
from ipfsmem.config import NamespaceConfig, VaultConfig, settings
from ipfsmem.content.cid import ipns_name
from ipfsmem.device.codec import Codec, PlainCodec, SealedCodec
from ipfsmem.device.creation import (
    folder_claimed,
    mark_as_memory,
    note_finished_in_database,
    remove_unfinished_database,
)
from ipfsmem.device.identity import Device, new_device, open_row, save_device, seal_row
from ipfsmem.device.namespaces import FIRST
from ipfsmem.device.replica import Replica, World, require_config
from ipfsmem.device.rescue import rescue
from ipfsmem.device.tables import meta
from ipfsmem.errors import ConfigError, UsageError
from ipfsmem.mode import Mode
from ipfsmem.ring import operations
from ipfsmem.ring.keyring import Ring
from ipfsmem.ring.statements import member_id
from ipfsmem.sync.anchors import build_ring_root
from ipfsmem.sync.names import ANCHOR_LIFE_MS, Names
from ipfsmem.sync.report import Notices
from ipfsmem.vault.finding import revoked_owner_error
from ipfsmem.vault.unlocking import open_device
from ipfsmem.wallet.message import key_request, sign_once, sign_twice
from ipfsmem.wallet.passphrases import require_strong
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

    def named(self, label: str) -> Unlock:
        """With the label and number of a vault that is made or brought back."""
        return msgspec.structs.replace(self, vault=self.vault or label, key_number=self.key_number or 1)

    def known(self, vault: VaultConfig | None) -> Unlock:
        """With the label and number of the vault that a memory on this device holds, as far as it knows them."""
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


def open_replica(folder: Path, passphrase: str | None, world: World) -> Replica:
    """Open a memory that is on this device; without a passphrase with its keys as they are unlocked.

    Raises NotFoundError, PassphraseError, StorageError.
    """
    config = require_config(folder)
    device, watch = open_device(folder, passphrase, world)
    replica = Replica(folder, config, device, codec_for(config, device, world), world, make=False)
    replica.lock_watch = watch
    try:
        note_finished_in_database(replica)
        if replica.was_moved() and config.vault is None:
            # No vault, so nobody has seen this id: the copy just goes on under another one.
            with replica.transaction():
                replica.set_device(device.successor(world.random))
                replica.note_place()
    except BaseException:
        replica.close()
        raise
    return replica


def open_damaged(folder: Path, passphrase: str | None, world: World) -> Replica:
    """What can still be read of a memory whose database is damaged, in this process only; `lost` names the rest.

    Nothing is written to the disk. Raises NotFoundError, PassphraseError, StorageError when nothing can be read.
    """
    config = require_config(folder)
    device, watch = open_device(folder, passphrase, world)
    codec = codec_for(config, device, world)
    found = rescue(folder, device, codec, sealed=config.mode.sealed)
    replica = Replica(None, config, device, codec, world, db=found.db)
    replica.lock_watch = watch
    replica.lost = found.lost
    if config.vault is not None and replica.ring is None:
        replica.own_without_ring = frozenset({device.id, replica.device.id, replica.enrolled().id})
        replica.lost += ("who wrote what is not known: only texts that this device signed count as yours",)
    replica.read_only = f"what can be read of {folder}"
    return replica


def codec_for(config: NamespaceConfig, device: Device, world: World) -> Codec:
    """The codec of a mode."""
    if not config.mode.sealed:
        return PlainCodec()
    if config.vault is None:
        raise ConfigError("an encrypted memory without a vault: its ipfsmem.json was changed by hand")
    return SealedCodec(
        bytes.fromhex(config.vault.tag), device.row_key, world.random, compress=settings().compresses
    )


def create_replica(
    folder: Path | None,
    config: NamespaceConfig,
    world: World,
    *,
    passphrase: str | None,
    root: RootKeys | None = None,
    recovery: RootKeys | None = None,
    root_secret: bytes | None = None,
) -> Replica:
    """Make a new memory. `folder` None keeps it in this process (mode `none`).

    `root`: whose vault it is, with the recovery key made for it; `root_secret`: where the root is this device's own, its secret.
    The configuration is written last: a crash before leaves nothing that would be taken for a memory.
    """
    with folder_claimed(folder):
        replica = begin_replica(folder, config, world, passphrase=passphrase)
        with replica.transaction():
            if root is not None:
                _make_vault(replica, root, recovery)
            if root_secret is not None:
                # A vault without a wallet: the device keeps its root as it keeps its own keys (format section 2.3).
                row = seal_row(replica.device.row_key, root_secret, world.random(24))
                replica.db.set_meta(meta.KEPT_ROOT, row)
        mark_as_memory(replica)
    return replica


def begin_replica(
    folder: Path | None, config: NamespaceConfig, world: World, *, passphrase: str | None
) -> Replica:
    """The device and the database of a memory: inside `folder_claimed`, to be followed by `mark_as_memory` once there is
    something to keep."""
    device = new_device(world.random)
    if folder is not None:
        save_device(folder, device, passphrase, world.random)
        remove_unfinished_database(folder)
    replica = Replica(folder, config, device, codec_for(config, device, world), world)
    with replica.transaction():
        replica.note_place()
    return replica


def scratch_replica(world: World) -> Replica:
    """An empty memory in this process, for reading what belongs to no memory of this device."""
    return create_replica(None, NamespaceConfig(Mode.NONE, "scratch"), world, passphrase=None)


def _make_vault(replica: Replica, root: RootKeys, recovery: RootKeys | None) -> None:
    """The ring of a new vault, and the anchors that lead to it, signed while the secrets are at hand."""
    world, device = replica.world, replica.device
    sealed = replica.config.mode.sealed
    public = operations.enrollee_of(
        device.signer, device.box_public, replica.config.label, root.tag(plain=not sealed)
    )
    ring = operations.create(
        root,
        recovery,
        public,
        ek=world.random(32) if sealed else None,
        since=hlc(world.now()),
        root_label="wallet" if root.kind == "wallet" else "this device",
    )
    replica.set_ring(ring)
    names = Names(replica, (), Notices())
    names.sign(root.head_seed, root.head_public, f"/ipfs/{build_ring_root(replica)}", ANCHOR_LIFE_MS)
    if recovery is not None:
        leads = f"/ipns/{ipns_name(root.head_public)}"
        names.sign(recovery.head_seed, recovery.head_public, leads, ANCHOR_LIFE_MS)
    names.keep()


def kept_root(replica: Replica) -> RootKeys | None:
    """The root of a vault without a wallet, on the device that made it; None on every other."""
    stored, vault = replica.db.get_meta(meta.KEPT_ROOT), replica.config.vault
    if stored is None or vault is None:
        return None
    return RootKeys.from_random(open_row(replica.device.row_key, stored), vault.name, vault.key_number)


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


def check_protection(mode: Mode, passphrase: DevicePassphrase) -> None:
    """Refuse what would leave keys of an encrypted memory readable without anybody having said so, and a new passphrase
    that is too easy."""
    if isinstance(passphrase, str):
        require_strong(passphrase)
    if mode.sealed and passphrase is None:
        raise UsageError(
            "an encrypted memory keeps this device's keys under a passphrase",
            hint="Give one at the prompt, in IPFSMEM_PASSPHRASE or with --passphrase-fd; or say "
            "--unprotected-keys and trust the disk (in Python: passphrase=, or passphrase=False).",
        )
