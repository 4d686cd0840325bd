"""Replicas for the tests of `ipfsmem.device`: cheap to create, in a folder or in memory, plain or sealed."""

from __future__ import annotations

from pathlib import Path

from ipfsmem.config import LocalVaultConfig, VaultConfig
from ipfsmem.device.replica import Environment, Replica
from ipfsmem.mode import Mode
from ipfsmem.testing.clock import MockClock, SeededRandom
from ipfsmem.vault.creating import create_replica
from ipfsmem.vault.opening import open_replica
from ipfsmem.wallet.root_keys import RootKeys

ROOT = RootKeys.from_random(b"\x07" * 64, "default", 1)
VAULT = VaultConfig(ROOT.vault_tag.hex(), "default", 1, None, ROOT.admin_public.hex(), ROOT.head_public.hex())


def world(seed: str = "replica", clock: MockClock | None = None) -> Environment:
    """Return a deterministic world."""
    mock = clock or MockClock()
    return Environment(lambda: mock.ms, SeededRandom(seed))


def make(folder: Path | None, mode: str = "local", where: Environment | None = None) -> Replica:
    """Create a vault."""
    sealed = mode == "encrypted-ipfs"
    config = LocalVaultConfig(Mode(mode), "lab", vault=VAULT if sealed else None)
    return create_replica(folder, config, where or world(), passphrase=None, root=ROOT if sealed else None)


def reopen(replica: Replica, where: Environment | None = None) -> Replica:
    """Reopen the same vault, as another process would."""
    assert replica.folder is not None
    replica.close()
    return open_replica(replica.folder, None, where or replica.environment)
