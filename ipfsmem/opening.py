"""Making, opening and restoring a memory on this device: keys, folder, configuration, in the order that survives a crash.

A memory of the modes with a vault is made only where none of the same wallet can be found; a device that has nothing but
the wallet or the recovery words finds the ring, the heads, and only then enrols itself (format sections 2 and 7).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from ipfsmem.causal.clock import hlc
from ipfsmem.config import NamespaceConfig, VaultConfig
from ipfsmem.content.cid import CID, ipns_name, public_of_ipns_name
from ipfsmem.content.fetch import drive_async
from ipfsmem.content.reader import Reader
from ipfsmem.errors import (
    ConfigError,
    FormatError,
    IpfsmemError,
    NotFoundError,
    NoVaultError,
    OpenError,
    ProviderError,
    UsageError,
    WrongWalletError,
)
from ipfsmem.replica.codec import Codec
from ipfsmem.replica.identity import Device, load_device, new_device, open_row, save_device, seal_row
from ipfsmem.replica.making import clear, finish, making
from ipfsmem.replica.replica import Replica, World, read_config
from ipfsmem.seal import ring_ops
from ipfsmem.seal.derive import RootKeys, require_admin
from ipfsmem.seal.ring import Keyring, Ring, parse_keyring
from ipfsmem.seal.signers import WalletSigner
from ipfsmem.seal.statements import member_id
from ipfsmem.seal.wallet import key_request, sign_once, sign_twice
from ipfsmem.storage.codecs import PlainCodec, SealedCodec
from ipfsmem.sync.anchor_pins import MAX_HOPS, PINS_AT_ONCE, learn
from ipfsmem.sync.fetch import Fetcher
from ipfsmem.sync.names import ANCHOR_LIFE_MS, Names, pin_name, target
from ipfsmem.sync.provider import Provider
from ipfsmem.sync.publish import build_ring_root
from ipfsmem.sync.remote import RootFiles, read_root
from ipfsmem.sync.report import SyncReport

VAULT_MODES = ("ipfs", "encrypted-ipfs")
#: Row with the 64 random bytes of a vault without a wallet.
KEPT_ROOT = "kept root"


class Unlock(msgspec.Struct, frozen=True):
    """A wallet to unlock with: the signer, the vault's label and key number, the passphrase of the derivation."""

    signer: WalletSigner
    vault: str = "default"
    key_number: int = 1
    passphrase: str | None = None

    def root(self, *, twice: bool) -> RootKeys:
        """The root keys. A vault is made, or a wallet added, with two signatures that must agree."""
        message = key_request(self.signer.address, self.vault, self.key_number)
        signature = (sign_twice if twice else sign_once)(self.signer, message)
        return RootKeys.from_signature(
            signature, self.signer.address, self.vault, self.key_number, self.passphrase
        )

    def config(self, root: RootKeys, *, plain: bool) -> VaultConfig:
        """What a device pins of this vault, the plain or the sealed one."""
        return VaultConfig(
            tag=root.tag(plain=plain).hex(),
            name=self.vault,
            key_number=self.key_number,
            address="0x" + self.signer.address.hex(),
            admin=root.admin_public.hex(),
            anchor=root.head_public.hex(),
            passphrase=self.passphrase is not None,
        )


def open_replica(folder: Path, passphrase: str | None, world: World) -> Replica:
    """Open a memory that is on this device. Raises NotFoundError, PassphraseError, StorageError."""
    config = read_config(folder)
    if config is None:
        raise NotFoundError(
            f"there is no memory in {folder}",
            hint="Make one with: ipfsmem init. Or check --home and --namespace.",
        )
    device = load_device(folder, passphrase)
    replica = Replica(folder, config, device, codec_for(config, device, world), world)
    try:
        if replica.moved() and config.vault is None:
            # No vault, so nobody has seen this id: the copy just goes on under another one.
            with replica.transaction():
                replica.set_device(device.successor(world.random))
                replica.note_place()
    except BaseException:
        replica.close()
        raise
    return replica


def codec_for(config: NamespaceConfig, device: Device, world: World) -> Codec:
    """The codec of a mode."""
    if config.mode != "encrypted-ipfs":
        return PlainCodec()
    if config.vault is None:
        raise ConfigError("an encrypted memory without a vault: its ipfsmem.json was changed by hand")
    return SealedCodec(bytes.fromhex(config.vault.tag), device.row_key, world.random)


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

    The configuration is written last: a crash before leaves nothing that would be taken for a memory.
    """
    with making(folder):
        replica = begin_replica(
            folder,
            config,
            world,
            passphrase=passphrase,
            root=root,
            recovery=recovery,
            root_secret=root_secret,
        )
        finish(replica)
    return replica


def begin_replica(
    folder: Path | None,
    config: NamespaceConfig,
    world: World,
    *,
    passphrase: str | None,
    root: RootKeys | None = None,
    recovery: RootKeys | None = None,
    root_secret: bytes | None = None,
) -> Replica:
    """The same without the end: inside `making`, to be followed by `finish` once there is something to keep."""
    device = new_device(world.random)
    if folder is not None:
        save_device(folder, device, passphrase, world.random)
        clear(folder)
    replica = Replica(folder, config, device, codec_for(config, device, world), world)
    with replica.transaction():
        replica.note_place()
        if root is not None:
            _make_vault(replica, root, recovery)
        if root_secret is not None:
            # A vault without a wallet: the device keeps its root as it keeps its own keys (format section 2.3).
            replica.db.set_meta(KEPT_ROOT, seal_row(device.row_key, root_secret, world.random(24)))
    return replica


def _make_vault(replica: Replica, root: RootKeys, recovery: RootKeys | None) -> None:
    """The ring of a new vault, and the anchors that lead to it, signed while the secrets are at hand."""
    world, device = replica.world, replica.device
    public = ring_ops.Device(device.sign_public, device.box_public, replica.config.label)
    sealed = replica.config.mode == "encrypted-ipfs"
    ring = ring_ops.create(
        root,
        recovery,
        public,
        ek=world.random(32) if sealed else None,
        since=hlc(world.now()),
        root_label="wallet" if root.kind == "wallet" else "this device",
    )
    replica.set_ring(ring)
    names = Names(replica, (), SyncReport())
    names.sign(root.head_seed, root.head_public, f"/ipfs/{build_ring_root(replica)}", ANCHOR_LIFE_MS)
    if recovery is not None:
        leads = f"/ipns/{ipns_name(root.head_public)}"
        names.sign(recovery.head_seed, recovery.head_public, leads, ANCHOR_LIFE_MS)
    names.keep()


async def find_vault(
    root: RootKeys, providers: Sequence[Provider], replica: Replica
) -> tuple[VaultConfig, bool]:
    """The vault that a root key leads to: its own, or for recovery words and second wallets the one it was enrolled in.

    Returns what to pin, and whether the ring is a sealed one. Raises NoVaultError when nobody knows the wallet,
    ProviderError when its ring cannot be had, WrongWalletError.
    """
    report = SyncReport()
    where = " or ".join(provider.name for provider in providers)
    names, fetcher = Names(replica, providers, report), Fetcher(replica.db, providers)
    anchor = ipns_name(root.head_public)
    record = await names.read(anchor)
    if record is None:
        found = await _listed_vault(root, providers, names, fetcher)
        if found is not None:
            return found
        record = names.known(anchor)
    for _ in range(MAX_HOPS):
        if record is None:
            break
        leads = target(record)
        if isinstance(leads, CID):
            try:
                files = await drive_async(read_root(Reader(), leads), fetcher.get)
            except (NotFoundError, FormatError) as error:
                wrong = "; ".join(fetcher.refused.values())
                # There is one: whoever makes an empty memory now would move the anchor away from it.
                raise ProviderError(
                    f"{where} has a name of this wallet but not the ring that it points at: {error}"
                    + (f" ({wrong})" if wrong else ""),
                    hint="Ask another provider that holds this memory, or a device that has it, to sync first.",
                ) from None
            keyring = parse_keyring(files.keyring)
            main = _main_anchor(root, keyring) or public_of_ipns_name(anchor)
            return _pinned(keyring.vault, keyring.roots[0], main), not keyring.plain
        anchor, record = leads, await names.read(leads)
    raise NoVaultError(f"no memory of this wallet was found at {where}")


async def vault_of_root(
    root: RootKeys, newest: CID, providers: Sequence[Provider], replica: Replica
) -> tuple[VaultConfig, bool]:
    """The same by a root that a person wrote down, where no name or list leads there.

    Whoever gives it says which vault it is: a ring that has a key in it proves nothing by itself. Raises NotFoundError,
    ProviderError, FormatError when there is no such root, WrongWalletError when its ring does not have this key.
    """
    fetcher = Fetcher(replica.db, providers)
    files = await drive_async(read_root(Reader(), newest), fetcher.get)
    keyring = parse_keyring(files.keyring)
    main = _main_anchor(root, keyring)
    if main is None:
        raise FormatError(f"the ring in root {newest} does not name the anchor of its first root")
    return _pinned(keyring.vault, keyring.roots[0], main), not keyring.plain


def _main_anchor(root: RootKeys, keyring: Keyring) -> bytes | None:
    """The anchor of the vault's first root, whatever anchor of another key led here: its pin name is that of all roots.

    Raises WrongWalletError when the ring does not have this key as a root or an admin.
    """
    me = member_id(root.admin_public)
    try:
        view = keyring.unlock(root.box_secret).view
    except OpenError:
        # Revokes are sealed; what every epoch says of those who are out is not.
        if any(me in epoch.not_ for epoch in keyring.epochs):
            raise no_longer(root) from None
        raise WrongWalletError("the ring that this key leads to does not open with it") from None
    if me in view.revoked:
        raise no_longer(root)
    if not view.may_administer(me) or view.sign_key(me) != root.admin_public:
        raise WrongWalletError("the ring that this key leads to does not know it as a root or an admin")
    first = view.people.get(member_id(keyring.roots[0]))
    return first.anchor if first is not None else None


async def _listed_vault(
    root: RootKeys, providers: Sequence[Provider], names: Names, fetcher: Fetcher
) -> tuple[VaultConfig, bool] | None:
    """The vault by pin lists, where no name is kept (Pinata, Filebase): by what is pinned under this key's own pin name.

    A root of the vault whose first root this key is, which says all: its tag is the hash of this key. For other keys the
    records that they signed, which go to `names`; a ring that merely names this key says nothing, anybody can make one.
    What is found is verified like any head when it is joined. Raises ProviderError when nothing was found and a list could not be read.
    """
    failures: list[ProviderError] = []
    for provider in providers:
        if not provider.capabilities.list:
            continue
        try:
            pins = await provider.pins(pin_name(root.head_public))
        except ProviderError as error:
            failures.append(error)
            continue
        roots = list(dict.fromkeys(pin.cid for pin in pins))
        start, end = 0, 1  # the newest is most often all that is needed
        while start < len(roots):
            keyrings, down = await _listed_rings(roots[start:end], fetcher)
            for keyring in keyrings.values():
                if keyring.roots[0] == root.admin_public:
                    return _pinned(keyring.vault, keyring.roots[0], root.head_public), not keyring.plain
            if down is not None:
                raise down
            await learn(names, fetcher, [pin for pin in pins if pin.cid in keyrings], root.head_public)
            start, end = end, end + PINS_AT_ONCE
    if failures and names.known(ipns_name(root.head_public)) is None:
        raise failures[0]  # the memory may be there: nobody is to make an empty one now
    return None


async def _listed_rings(
    roots: list[CID], fetcher: Fetcher
) -> tuple[dict[CID, Keyring], ProviderError | None]:
    """The rings of those of `roots` that hold one, and why one of them could not be read."""
    found: dict[CID, Keyring] = {}

    def use(root: CID, files: RootFiles) -> IpfsmemError | None:
        try:
            found[root] = parse_keyring(files.keyring)
        except IpfsmemError as error:
            return error
        return None

    failed = await fetcher.side_by_side({root: read_root(Reader(), root) for root in roots}, use)
    return found, next((error for error in failed.values() if isinstance(error, ProviderError)), None)


def _pinned(vault: bytes, admin: bytes, anchor: bytes) -> VaultConfig:
    return VaultConfig(
        tag=vault.hex(),
        name="",
        key_number=0,
        address=None,
        admin=admin.hex(),
        anchor=anchor.hex(),
    )


def kept_root(replica: Replica) -> RootKeys | None:
    """The root of a vault without a wallet, on the device that made it; None on every other."""
    stored, vault = replica.db.get_meta(KEPT_ROOT), replica.config.vault
    if stored is None or vault is None:
        return None
    return RootKeys.from_random(open_row(replica.device.row_key, stored), vault.name, vault.key_number)


def check_root(config: NamespaceConfig, root: RootKeys, ring: Ring | None = None) -> None:
    """Refuse a wallet that is neither the one this memory was made with nor one of those that `ring` has as an admin,
    and what was revoked. Other recovery words are judged by the ring when they do something."""
    me = member_id(root.admin_public)
    if ring is not None and me in ring.view.revoked:
        raise no_longer(root)
    if config.vault is None or root.kind == "recovery":
        return
    if ring is not None and ring.view.may_administer(me) and ring.view.sign_key(me) == root.admin_public:
        return
    require_admin(root, bytes.fromhex(config.vault.admin))


def no_longer(root: RootKeys) -> WrongWalletError:
    """The refusal of a key that was an owner's once."""
    if root.kind == "recovery":
        return WrongWalletError(
            "these recovery words were revoked: they do not open this memory any more",
            hint="Use the words that were made after them, or the wallet.",
        )
    return WrongWalletError("this wallet was revoked: it does not open this memory any more")


def check_mode(mode: str, *, passphrase: str | None, unprotected: bool) -> None:
    """Refuse what would leave keys of an encrypted memory readable without anybody having said so."""
    if mode == "encrypted-ipfs" and passphrase is None and not unprotected:
        raise UsageError(
            "an encrypted memory keeps this device's keys under a passphrase",
            hint="Give one at the prompt, in IPFSMEM_PASSPHRASE or with --passphrase-fd; "
            "or say --unprotected-keys and trust the disk.",
        )
