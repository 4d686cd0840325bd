"""Opens a vault with an agent key, in this process's memory only: no home, no passphrase, nothing on the disk (format section 4.1)."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from ipfsmem.config import LocalVaultConfig, VaultConfig
from ipfsmem.device.identity import Device
from ipfsmem.device.replica import Environment, Replica
from ipfsmem.errors import ProviderUnavailable
from ipfsmem.mode import Mode
from ipfsmem.open_vault.handle import VaultHandle
from ipfsmem.open_vault.opening import OpeningDetails, OpenResult, ProviderConnection
from ipfsmem.provider.opening import ProviderPool
from ipfsmem.sync.progress import Progress, no_progress
from ipfsmem.vault.unlocking import codec_for
from ipfsmem.wallet.agent_key import AgentKey, parse_key


async def open_by_key(
    text: str, name: str, *, environment: Environment | None = None, progress: Progress | None = None
) -> OpenResult:
    """Open the vault of an agent key, with all that its providers show now. `name`: what this process calls it.

    Raises FormatError for a text that is not an agent key, MembershipError for one that expired or was revoked,
    ProviderError when no provider shows its vault, or only an older one than the key knows.
    """
    key = parse_key(text)
    environment = environment or Environment()
    replica = _replica(key, environment)
    folder = _folder(key)
    opened = VaultHandle(name, replica)
    result = OpenResult(opened, ProviderConnection(opened), OpeningDetails())
    syncing = result.connection.syncing
    syncing.pool = ProviderPool(folder, {one.spec: one.credentials for one in key.providers})
    if folder is not None:
        syncing.when_closed = lambda: shutil.rmtree(folder, ignore_errors=True)
    try:
        syncing.places = syncing.pool.open([one.spec for one in key.providers])
        report = await syncing.pull(progress or no_progress)
        refuse_older(replica, key)
    except BaseException:
        await syncing.aclose()
        result.close()
        raise
    # Connections belong to the event loop that made them, which ends before the vault is used.
    await syncing.pool.aclose()
    syncing.places = syncing.pool.open([one.spec for one in key.providers])
    result.details.restored = report
    return result


def _folder(key: AgentKey) -> Path | None:
    """Return a new folder of mode 0700 for copies of git repositories; None where no provider keeps a copy on the disk."""
    if not any(one.spec.startswith("git:") for one in key.providers):
        return None
    return Path(tempfile.mkdtemp(prefix="ipfsmem-"))


def _replica(key: AgentKey, environment: Environment) -> Replica:
    vault = VaultConfig(
        tag=key.vault.hex(),
        name="",
        key_number=0,
        address=None,
        admin=key.root.hex(),
        anchor=key.anchor.hex(),
    )
    specs = tuple(one.spec for one in key.providers)
    config = LocalVaultConfig(Mode.ENCRYPTED_IPFS, "agent", providers=specs, vault=vault)
    device = Device(key.sign_seed, key.box_secret, environment.random(32))
    replica = Replica(None, config, device, codec_for(config, device, environment), environment)
    replica.as_agent = True
    replica.read_only = "the vault of an agent key"
    return replica


def refuse_older(replica: Replica, key: AgentKey) -> None:
    """Raise ProviderUnavailable if the providers show an older vault than that in which this key was enrolled."""
    device, counter = key.least
    if replica.store.frame.ctx.get(device, 0) < counter:
        raise ProviderUnavailable(
            "the providers show an older version of the vault than the one for which this agent key was created",
            hint="Try again. If it stays, sync the device that created the key.",
        )
