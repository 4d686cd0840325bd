"""Opens a vault on this device. Imports little, because each read of one memory pays for it: `open_vault.creating` (creates
and restores vaults) and `open_vault.syncing` (uses providers) are imported on first use."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ipfsmem import config as configuration
from ipfsmem.errors import ConfigError
from ipfsmem.locations import agent_key_text
from ipfsmem.mode import Mode, ModeName, mode_named
from ipfsmem.open_vault.handle import VaultHandle
from ipfsmem.vault.home import DevicePassphrase, Home
from ipfsmem.vault.opening import open_replica

if TYPE_CHECKING:
    from ipfsmem.open_vault.syncing import Syncing
    from ipfsmem.provider.choice import ProviderChoice
    from ipfsmem.provider.contract import Provider
    from ipfsmem.results import Opened
    from ipfsmem.sync.report import SyncReport
    from ipfsmem.vault.owner import OwnerKey


class OpeningDetails(msgspec.Struct):
    """How an open vault was created or restored; empty for one that was on this device."""

    #: Where a foreign bundle came from.
    opened: Opened | None = None
    #: The report of the sync that restored it.
    restored: SyncReport | None = None
    #: The recovery phrase of a vault that was just created; shown once, stored nowhere.
    recovery_words: list[str] | None = None
    #: Why the wallet's vault `default` on this device does not list the vault that was just created or restored;
    #: empty if it does, or if there is nothing to list.
    unlisted: str = ""

    def __repr__(self) -> str:
        return "OpeningDetails()"


class LoadRequest(msgspec.Struct, frozen=True):
    """The arguments of `Memory.load`. Raises UsageError for a wrong provider or owner key."""

    vault_name: str | None
    mode: Mode | ModeName | None
    provider: ProviderChoice
    unlock: OwnerKey | None
    passphrase: DevicePassphrase
    home: Home
    create: bool
    public_ok: bool

    def __post_init__(self) -> None:
        if self.provider is not None:
            from ipfsmem.provider.choice import each_of  # most loads name no provider, and no owner key

            each_of(self.provider)
        if self.unlock is not None:
            from ipfsmem.vault.owner import owner_key

            owner_key(self.unlock)

    def __repr__(self) -> str:
        return f"LoadRequest({self.vault_name!r}, {self.mode!r})"

    @property
    def agent_key(self) -> str:
        """The agent key in the environment; empty without one, and where the call names a mode, provider, owner or home."""
        chosen = (self.mode, self.provider, self.unlock, self.home.folder)
        return agent_key_text() if all(one is None for one in chosen) else ""

    @property
    def known_mode(self) -> Mode | None:
        """The mode; None if unstated. Raises UsageError for an unknown one."""
        return mode_named(self.mode) if self.mode is not None else None

    def name(self, config: configuration.Settings) -> str:
        """Return the name of the vault, by the settings if unstated."""
        return configuration.chosen_vault(self.vault_name, config)


class ProviderConnection:
    """The providers of an open vault, opened on first use. All scopes share it."""

    def __init__(self, opened: VaultHandle, providers: Sequence[str | Provider] = ()) -> None:
        """`providers`: the configured ones, opened with the first sync, which reports those that cannot be opened."""
        self._open = opened
        self._providers = (*providers,)
        self._syncing: Syncing | None = None

    @property
    def syncing(self) -> Syncing:
        """The providers, root keys and syncs; created on first use."""
        if self._syncing is None:
            from ipfsmem.open_vault.syncing import Syncing

            with self._open.lock:
                if self._syncing is None:
                    begun = Syncing(self._open)
                    if not self._open.closed:
                        begun.places = begun.pool.open(self._providers)
                    self._syncing = begun
        return self._syncing

    @property
    def begun(self) -> Syncing | None:
        """Return `syncing`; None before its first use."""
        return self._syncing


class OpenResult(msgspec.Struct):
    """A vault that was just opened, created or restored."""

    opened: VaultHandle
    connection: ProviderConnection
    details: OpeningDetails

    def close(self) -> None:
        """Close files and providers, and drop secrets."""
        if self.connection.begun is not None:
            self.connection.begun.close()
        self.opened.close()


def has_memory(folder: Path) -> bool:
    """Tell whether a folder has a vault."""
    return (folder / configuration.CONFIG_FILE).exists()


def open_here(request: LoadRequest) -> OpenResult | None:
    """Open the vault on this device; None if it is not here and the request has a mode to create it in."""
    config = configuration.settings()
    name, mode, home = request.name(config), request.known_mode, request.home
    if mode is not None and not mode.on_disk:
        return None
    folder = configuration.vault_folder(home.path(config), name)
    if mode is not None and not has_memory(folder):
        return None
    opened = VaultHandle(name, open_replica(folder, request.passphrase or None, home.environment))
    usual = (config.provider,) if config.provider else ()
    providers = () if request.provider else opened.replica.config.providers or usual
    result = OpenResult(opened, ProviderConnection(opened, providers), OpeningDetails())
    try:
        if mode not in (None, opened.mode):
            raise ConfigError(f"the vault {name} is in mode {opened.mode}, not {mode}")
        if request.provider:
            result.connection.syncing.use(request.provider)
        if request.unlock is not None:
            result.connection.syncing.unlock(request.unlock)
        opened.begin_files()
    except BaseException:
        result.close()
        raise
    return result
