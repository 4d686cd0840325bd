"""Making a memory on this device: keys, folder, database, the ring of a new vault, in the order that survives a crash.

`ipfsmem.json` is written last. Which vault a new namespace gets, `device/namespaces` says (format sections 2 and 7).
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from ipfsmem.causal.clock import hlc
from ipfsmem.config import NamespaceConfig
from ipfsmem.content.cid import ipns_name
from ipfsmem.device.creation import folder_claimed, mark_as_memory, remove_unfinished_database
from ipfsmem.device.identity import new_device, save_device, seal_row
from ipfsmem.device.replica import Replica, World
from ipfsmem.device.tables import meta
from ipfsmem.mode import Mode
from ipfsmem.ring import operations
from ipfsmem.sync.anchors import build_ring_root
from ipfsmem.sync.names import ANCHOR_LIFE_MS, Names
from ipfsmem.sync.report import Notices
from ipfsmem.vault.opening import codec_for
from ipfsmem.wallet.root_keys import RootKeys


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
        # Of what is kept under it, which nobody has without it: so nothing else is drawn at random than before there was such a key.
        root_key = b"" if root_secret is None else sha256(b"ipfsmem/root key\0" + root_secret).digest()
        replica = begin_replica(folder, config, world, passphrase=passphrase, root_key=root_key)
        with replica.transaction():
            if root is not None:
                _make_vault(replica, root, recovery)
            if root_secret is not None:
                # A vault without a wallet: the device keeps its root as it keeps its own keys (format section 2.3), under one
                # that `unlock` never holds.
                row = seal_row(replica.device.root_key, root_secret, world.random(24))
                replica.db.set_meta(meta.KEPT_ROOT, row)
        mark_as_memory(replica)
    return replica


def begin_replica(
    folder: Path | None,
    config: NamespaceConfig,
    world: World,
    *,
    passphrase: str | None,
    root_key: bytes = b"",
) -> Replica:
    """The device and the database of a memory: inside `folder_claimed`, to be followed by `mark_as_memory` once there is
    something to keep. `root_key`: the vault is to have no wallet, and this device keeps its root under this key."""
    device = new_device(world.random, root_key=root_key)
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
