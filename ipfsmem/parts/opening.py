"""Opening a memory that is on this device, and nothing that this does not need: a read of one memory pays for what is imported
here. What makes a memory or brings one back is `parts.making`; what meets a provider is `parts.syncing`, begun when it is first
asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ipfsmem import config as configuration
from ipfsmem.errors import ConfigError
from ipfsmem.mode import Mode, ModeName, mode_named
from ipfsmem.parts.vault_handle import VaultHandle
from ipfsmem.vault.home import Home
from ipfsmem.vault.opening import open_replica

if TYPE_CHECKING:
    from ipfsmem.parts.syncing import Syncing
    from ipfsmem.provider.choice import ProviderChoice
    from ipfsmem.provider.contract import Provider
    from ipfsmem.results import Opened
    from ipfsmem.sync.report import SyncReport
    from ipfsmem.vault.owner import DevicePassphrase, OwnerKey


class Origin(msgspec.Struct):
    """How an open memory came to be here; all of it empty for one that was here already."""

    #: Where a foreign bundle came from.
    opened: Opened | None = None
    #: What the sync did that brought it back.
    restored: SyncReport | None = None
    #: The 24 recovery words of a vault made just now; shown once, kept nowhere.
    recovery_words: list[str] | None = None
    #: Why the wallet's vault `default` on this device does not list the vault that was made or brought back just now;
    #: empty when it does, or when there is nothing to list.
    unlisted: str = ""

    def __repr__(self) -> str:
        return "Origin()"


class LoadRequest(msgspec.Struct, frozen=True):
    """What `Memory.load` was asked for."""

    namespace: str | None
    mode: Mode | ModeName | None
    provider: ProviderChoice
    unlock: OwnerKey | None
    passphrase: DevicePassphrase
    home: Home
    create: bool
    public_ok: bool

    def __repr__(self) -> str:
        return f"LoadRequest({self.namespace!r}, {self.mode!r})"

    @property
    def known_mode(self) -> Mode | None:
        """The mode, None when nobody has said one. Raises UsageError for a word that is none."""
        return mode_named(self.mode) if self.mode is not None else None

    def name(self, known: configuration.Settings) -> str:
        """The namespace, by the settings when none was named."""
        return self.namespace or known.namespace or configuration.DEFAULT_NAMESPACE


class Connection:
    """How one open memory meets its providers: begun when it is first asked for, since what only reads and writes here needs no
    provider. All scopes of the memory share it."""

    def __init__(self, opened: VaultHandle, providers: Sequence[str | Provider] = ()) -> None:
        """`providers`: those of the memory; they are opened when the syncing begins, and one that cannot be says so then."""
        self._open = opened
        self._providers = (*providers,)
        self._syncing: Syncing | None = None

    @property
    def syncing(self) -> Syncing:
        """The providers and the root key, and the syncs."""
        if self._syncing is None:
            from ipfsmem.parts.syncing import Syncing

            with self._open.lock:
                if self._syncing is None:
                    begun = Syncing(self._open)
                    if not self._open.closed:
                        begun.places = begun.pool.open(self._providers)
                    self._syncing = begun
        return self._syncing

    @property
    def begun(self) -> Syncing | None:
        """The same, None when nobody has asked for it."""
        return self._syncing


class OpenResult(msgspec.Struct):
    """A memory that was opened, made or brought here just now."""

    opened: VaultHandle
    connection: Connection
    origin: Origin

    def close(self) -> None:
        """Let go of all that it holds."""
        if self.connection.begun is not None:
            self.connection.begun.close()
        self.opened.close()


def has_memory(folder: Path) -> bool:
    """Whether a memory is in this folder."""
    return (folder / configuration.CONFIG_FILE).exists()


def open_here(request: LoadRequest) -> OpenResult | None:
    """The memory that is on this device; None when a mode was named that says what to do where there is none."""
    known = configuration.settings()
    name, mode, home = request.name(known), request.known_mode, request.home
    if mode is not None and not mode.on_disk:
        return None
    folder = configuration.namespace_folder(home.path(known), name)
    if mode is not None and not has_memory(folder):
        return None
    opened = VaultHandle(name, open_replica(folder, request.passphrase or None, home.world))
    usual = (known.provider,) if known.provider else ()
    providers = () if request.provider else opened.replica.config.providers or usual
    made = OpenResult(opened, Connection(opened, providers), Origin())
    try:
        if mode not in (None, opened.mode):
            raise ConfigError(f"the vault {name} is in mode {opened.mode}, not {mode}")
        if request.provider:
            made.connection.syncing.use(request.provider)
        if request.unlock is not None:
            made.connection.syncing.unlock(request.unlock)
        opened.begin_files()
    except BaseException:
        made.close()
        raise
    return made
