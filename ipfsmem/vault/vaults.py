"""Further vaults of a wallet: their names stand sealed in its vault `default`, so that one signature lists them all.

Format sections 1.4 and 2.1. A name opens nothing: each vault takes a signature of its own. In a public memory no name is
kept, for everybody could read it.
"""

from __future__ import annotations

from pathlib import Path

from ipfsmem.bundle.program_events import VAULT, FurtherVault, read_vault, vault_data
from ipfsmem.config import NamespaceConfig, VaultConfig
from ipfsmem.device.events import Timeline
from ipfsmem.device.namespaces import FIRST, namespaces
from ipfsmem.device.replica import Replica, World
from ipfsmem.errors import IpfsmemError
from ipfsmem.vault.opening import open_replica


def further_vaults(replica: Replica) -> list[FurtherVault]:
    """The further vaults whose names this memory keeps, sorted."""
    found = {read_vault(event) for event in Timeline(replica).events()}
    return sorted(vault for vault in found if vault is not None)


def keep_name(replica: Replica, vault: FurtherVault) -> bool:
    """Note the name of a further vault. Returns False, and notes nothing, when it is noted already."""
    if vault in further_vaults(replica):
        return False
    Timeline(replica).note(VAULT, vault_data(vault))
    return True


def list_in_default_vault(
    home: Path, namespace: str, vault: VaultConfig, passphrase: str | None, world: World
) -> str:
    """Note the vault of `namespace` in the vault `default` of the same wallet, when that one is on this device and sealed.

    Returns why it could not be noted; empty when it was, or when there is nothing to note.
    """
    default = next(
        (name for name, config in namespaces(home).items() if _is_default_vault(config, vault)), None
    )
    if vault.address is None or vault.name in ("", FIRST) or default is None or default == namespace:
        return ""
    further = FurtherVault(vault.name, vault.key_number, vault.address)
    how = f"ipfsmem key vaults --add {vault.name} --key-number {vault.key_number} --vault {default}"
    try:
        replica = open_replica(home / default, passphrase, world)
    except IpfsmemError as error:
        return f"{default} does not list this vault yet, as it could not be opened ({error}). To list it there: {how}"
    try:
        keep_name(replica, further)
    except IpfsmemError as error:
        return f"{default} does not list this vault yet ({error}). To list it there: {how}"
    finally:
        replica.close()
    return ""


def _is_default_vault(config: NamespaceConfig, vault: VaultConfig) -> bool:
    other = config.vault
    return config.mode.sealed and other is not None and (other.name, other.address) == (FIRST, vault.address)
