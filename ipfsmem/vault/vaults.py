"""Record the names of a wallet's further vaults in its vault `default`, so that one signature lists them (format 1.4,
2.1).

A name does not open a vault: each vault needs its own signature. A public vault stores no names, since everyone could
read them.
"""

from __future__ import annotations

from pathlib import Path

from ipfsmem.bundle.program_events import VAULT, FurtherVault, read_vault, vault_data
from ipfsmem.config import LocalVaultConfig, VaultConfig
from ipfsmem.device.events import Timeline
from ipfsmem.device.local_vaults import FIRST, local_vaults
from ipfsmem.device.replica import Environment, Replica
from ipfsmem.errors import IpfsmemError
from ipfsmem.vault.opening import open_replica


def further_vaults(replica: Replica) -> list[FurtherVault]:
    """Return the further vaults whose names this vault keeps, sorted."""
    listed = {read_vault(event) for event in Timeline(replica).events()}
    return sorted(vault for vault in listed if vault is not None)


def keep_name(replica: Replica, vault: FurtherVault) -> bool:
    """Record the name of a further vault. Return False when already recorded."""
    if vault in further_vaults(replica):
        return False
    Timeline(replica).note(VAULT, vault_data(vault))
    return True


def list_in_default_vault(
    home: Path, vault_name: str, vault: VaultConfig, passphrase: str | None, environment: Environment
) -> str:
    """Record the vault `vault_name` in the same wallet's vault `default`, if that one is on this device and sealed.

    Return why it could not be recorded; "" when it was, or when there is nothing to record.
    """
    default = next(
        (name for name, config in local_vaults(home).items() if _is_default_vault(config, vault)), None
    )
    if vault.address is None or vault.name in ("", FIRST) or default is None or default == vault_name:
        return ""
    further = FurtherVault(name=vault.name, key_number=vault.key_number, address=vault.address)
    how = f"ipfsmem key vaults --add {vault.name} --key-number {vault.key_number} --vault {default}"
    try:
        replica = open_replica(home / default, passphrase, environment)
    except IpfsmemError as error:
        return f"{default} does not list this vault yet, as it could not be opened ({error}). To list it there: {how}"
    try:
        keep_name(replica, further)
    except IpfsmemError as error:
        return f"{default} does not list this vault yet ({error}). To list it there: {how}"
    finally:
        replica.close()
    return ""


def _is_default_vault(config: LocalVaultConfig, vault: VaultConfig) -> bool:
    other = config.vault
    return config.mode.sealed and other is not None and (other.name, other.address) == (FIRST, vault.address)
