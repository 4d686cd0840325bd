"""The memories on this device by name, and which vault each of them holds: one vault a namespace, never two of one.

Format section 2.1 has the vault's label in the text that a wallet signs, so a name decides which keys come out. Reads the
configurations beside each other; opens no memory and changes nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ipfsmem.config import NamespaceConfig, VaultConfig, is_namespace
from ipfsmem.device.atomic_files import storage_errors
from ipfsmem.device.replica import read_config
from ipfsmem.errors import ConfigError, IpfsmemError, UsageError
from ipfsmem.wallet.message import check_vault

#: The vault of the first namespace, whatever its folder is called: one signature brings it back anywhere.
FIRST: Final = "default"


def namespaces(home: Path) -> dict[str, NamespaceConfig]:
    """Every memory under `home` that can be read, by its name. Raises StorageError when the folder cannot be listed."""
    found: dict[str, NamespaceConfig] = {}
    if not home.is_dir():
        return found
    with storage_errors(home, "list"):
        folders = sorted(path for path in home.iterdir() if is_namespace(path.name) and path.is_dir())
    for folder in folders:
        try:
            config = read_config(folder)
        except IpfsmemError:
            continue  # whoever opens that one hears of it
        if config is not None:
            found[folder.name] = config
    return found


def vault_label(home: Path, namespace: str, given: str | None) -> str:
    """The label of the vault that a wallet is asked for: `given`, else `default` for the first namespace with a vault on
    this device, and for a further one its own name. Raises UsageError when that cannot be a label."""
    if given is not None:
        return given
    others = [name for name, config in namespaces(home).items() if config.vault and name != namespace]
    if not others:
        return FIRST
    try:
        check_vault(namespace)
    except UsageError as error:
        raise UsageError(
            f"this device has a vault already ({', '.join(others)}), and the name of this memory cannot be the name of "
            f"another one: {error}",
            hint="Name the vault: --vault NAME (in Python: Unlock(vault=NAME)).",
        ) from None
    return namespace


def refuse_shared(home: Path, namespace: str, vault: VaultConfig) -> None:
    """Refuse a vault that another namespace on this device holds, or whose anchor it would move. Raises ConfigError."""
    for name, config in namespaces(home).items():
        other = config.vault
        if name == namespace or other is None or (vault.tag != other.tag and vault.anchor != other.anchor):
            continue
        raise ConfigError(
            f"the memory {name} on this device is that vault already: two namespaces cannot share one",
            hint=f"Use it: -n {name}. For memories that are kept apart give the new one a vault of its own: --vault NAME "
            f"(in Python: Unlock(vault=NAME)). "
            f"If {name} is a damaged copy, move its folder out of {home} first.",
        )
