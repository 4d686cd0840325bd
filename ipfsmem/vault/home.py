"""Describe the home folder of vaults on this device, with their clock and randomness, and the passphrase argument."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from ipfsmem import config as configuration
from ipfsmem.device.replica import Environment
from ipfsmem.errors import UsageError

if TYPE_CHECKING:
    from ipfsmem.sync.progress import Progress


class Home(msgspec.Struct, frozen=True, kw_only=True):
    """The folder of all vaults on this device, and the environment in which they are made or opened."""

    #: None: from the settings, else the platform's default.
    folder: str | Path | None = None
    #: Display name of this device for others; None: from the settings, else the machine's name.
    label: str | None = None
    #: Clock and randomness.
    environment: Environment = msgspec.field(default_factory=Environment)
    #: Called with the progress of a restore.
    progress: Progress | None = None

    @classmethod
    def of(cls, home: HomeChoice) -> Home:
        """Return a Home for a folder or the default. Raises UsageError for anything else."""
        if isinstance(home, Home):
            return home
        if home is None or isinstance(home, str | os.PathLike):
            return cls(folder=None if home is None else Path(home))
        raise UsageError(f"home is a folder or a Home, not {type(home).__name__}")

    def path(self, known: configuration.Settings) -> Path:
        """Return the folder; without one, that of the settings."""
        return configuration.home(self.folder, known)

    def device_label(self, known: configuration.Settings) -> str:
        """Return this device's display name for others."""
        import platform

        return self.label or known.label or (platform.node() or "device")[:64]


#: Passphrase of this device's keys: False means none, the disk is trusted; None means not stated.
DevicePassphrase = str | Literal[False] | None
#: A folder, or a `Home` with more options.
HomeChoice = Home | str | Path | None
