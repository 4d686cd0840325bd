"""List the vaults on this device by name, and prevent two names from leading to the same vault.

The label of a vault is part of the text that a wallet signs (format section 2.1), so it determines the keys. Only the
configurations are read; no vault is opened and nothing changed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ipfsmem.config import CONFIG_FILE, LocalVaultConfig, VaultConfig, is_vault_name
from ipfsmem.device.atomic_files import storage_errors
from ipfsmem.device.database_file import DATABASE
from ipfsmem.device.identity import KEY_FILE
from ipfsmem.device.replica import read_config
from ipfsmem.errors import ConfigError, IpfsmemError, UsageError
from ipfsmem.wallet.message import check_vault

#: The label of the first vault, whatever its name on this device: one signature restores it anywhere.
FIRST: Final = "default"


def local_vaults(home: Path) -> dict[str, LocalVaultConfig]:
    """Return the configuration of each vault under `home` that can be read, by name. StorageError if `home` cannot be listed."""
    configs: dict[str, LocalVaultConfig] = {}
    if not home.is_dir():
        return configs
    with storage_errors(home, "list"):
        folders = sorted(path for path in home.iterdir() if is_vault_name(path.name) and path.is_dir())
    for folder in folders:
        try:
            config = read_config(folder)
        except IpfsmemError:
            continue  # opening that vault reports it
        if config is not None:
            configs[folder.name] = config
    return configs


def vault_label(home: Path, vault_name: str, label: str | None) -> str:
    """Return the label of a new vault named `vault_name`: `label`; otherwise `default` for the first sealed vault on
    this device, and the vault's own name for a further one. UsageError if that is not a valid label."""
    if label is not None:
        return label
    others = [name for name, config in local_vaults(home).items() if config.vault and name != vault_name]
    if not others:
        return FIRST
    try:
        check_vault(vault_name)
    except UsageError as error:
        raise UsageError(
            f"this device has a vault already ({', '.join(others)}), and the name of this memory cannot be the name of "
            f"another one: {error}",
            hint="Name the vault: --wallet-vault NAME (in Python: Unlock(vault=NAME)).",
        ) from None
    return vault_name


def refuse_shared(home: Path, vault_name: str, vault: VaultConfig) -> None:
    """Refuse a vault that this device has under another name, or whose anchor it would move. Raises ConfigError."""
    for name, config in local_vaults(home).items():
        other = config.vault
        if name == vault_name or other is None or (vault.tag != other.tag and vault.anchor != other.anchor):
            continue
        raise ConfigError(
            f"the vault {name} on this device is the same vault",
            hint=f"Use it: --vault {name}. For a separate vault of the same wallet: --wallet-vault NAME (in Python: Unlock(vault=NAME)). If {name} is a damaged copy, move its folder out of {home} first.",
        )


def memories_in(folder: Path) -> str:
    """Describe the vaults of this program in a folder: one vault, or a home with several; "" for none. Only the folder and its
    direct entries are examined. Other programs have a `state.db` too, so it is recognised only next to the keys of a device.
    Raises OSError."""
    if (folder / CONFIG_FILE).exists() or ((folder / DATABASE).exists() and (folder / KEY_FILE).exists()):
        return "a memory itself"
    return "the vaults of this device" if next(folder.glob(f"*/{CONFIG_FILE}"), None) is not None else ""
