"""Create a vault on this device: keys, folder, database and ring, in a crash-safe order.

`ipfsmem.json` is written last. `device/local_vaults` chooses the label of a new vault (format sections 2 and
7).
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from ipfsmem.causal.clock import hlc
from ipfsmem.config import LocalVaultConfig
from ipfsmem.content.cid import ipns_name
from ipfsmem.device.creation import folder_claimed, mark_as_memory, remove_unfinished_database
from ipfsmem.device.identity import new_device, save_device, seal_row
from ipfsmem.device.replica import Environment, Replica
from ipfsmem.device.tables import meta
from ipfsmem.mode import Mode
from ipfsmem.ring import operations
from ipfsmem.sync.anchors import build_ring_root
from ipfsmem.sync.names import ANCHOR_LIFE_MS, Names
from ipfsmem.sync.report import Notices
from ipfsmem.vault.unlocking import codec_for
from ipfsmem.wallet.root_keys import RootKeys


def create_replica(
    folder: Path | None,
    config: LocalVaultConfig,
    environment: Environment,
    *,
    passphrase: str | None,
    root: RootKeys | None = None,
    recovery: RootKeys | None = None,
    root_secret: bytes | None = None,
) -> Replica:
    """Create a new vault. `folder=None` keeps it in this process (mode `none`).

    `root`: the vault's root keys, `recovery`: its recovery keys; `root_secret`: the secret of a root that
    this device owns. The configuration is written last, so a crash leaves nothing that looks like a vault.
    """
    with folder_claimed(folder):
        # Derived from the secret kept under it, which nobody has without it, so no further random bytes are drawn.
        root_key = b"" if root_secret is None else sha256(b"ipfsmem/root key\0" + root_secret).digest()
        replica = begin_replica(folder, config, environment, passphrase=passphrase, root_key=root_key)
        with replica.transaction():
            if root is not None:
                _make_vault(replica, root, recovery)
            if root_secret is not None:
                # Without a wallet the device keeps its root like its own keys (format section 2.3), under a
                # key that `unlock` never holds.
                row = seal_row(replica.device.root_key, root_secret, environment.random(24))
                replica.db.set_meta(meta.KEPT_ROOT, row)
        mark_as_memory(replica)
    return replica


def begin_replica(
    folder: Path | None,
    config: LocalVaultConfig,
    environment: Environment,
    *,
    passphrase: str | None,
    root_key: bytes = b"",
) -> Replica:
    """Create the device and database of a vault, inside `folder_claimed`; `mark_as_memory` follows once there
    is data to keep.

    `root_key`: for a vault without a wallet, the key under which this device keeps its root.
    """
    device = new_device(environment.random, root_key=root_key)
    if folder is not None:
        save_device(folder, device, passphrase, environment.random)
        remove_unfinished_database(folder)
    replica = Replica(folder, config, device, codec_for(config, device, environment), environment)
    with replica.transaction():
        replica.note_place()
    return replica


def scratch_replica(environment: Environment) -> Replica:
    """Return an empty in-memory vault, for reading data of no vault on this device."""
    return create_replica(None, LocalVaultConfig(Mode.NONE, "scratch"), environment, passphrase=None)


def _make_vault(replica: Replica, root: RootKeys, recovery: RootKeys | None) -> None:
    """Make the ring of a new vault and the anchors that lead to it, signed while the secrets are available."""
    environment, device = replica.environment, replica.device
    sealed = replica.config.mode.sealed
    public = operations.enrollee_of(
        device.signer, device.box_public, replica.config.label, root.tag(plain=not sealed)
    )
    ring = operations.create(
        root,
        recovery,
        public,
        ek=environment.random(32) if sealed else None,
        since=hlc(environment.now()),
        root_label="wallet" if root.kind == "wallet" else "this device",
    )
    replica.set_ring(ring)
    names = Names(replica, (), Notices())
    names.sign(root.head_seed, root.head_public, f"/ipfs/{build_ring_root(replica)}", ANCHOR_LIFE_MS)
    if recovery is not None:
        leads = f"/ipns/{ipns_name(root.head_public)}"
        names.sign(recovery.head_seed, recovery.head_public, leads, ANCHOR_LIFE_MS)
    names.keep()
