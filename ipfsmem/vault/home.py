"""Where memories lie on this device, and what a memory that is made or opened there takes from outside: its clock, its randomness."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ipfsmem import config as configuration
from ipfsmem.device.replica import World
from ipfsmem.errors import UsageError

if TYPE_CHECKING:
    from ipfsmem.sync.progress import Progress


class Home(msgspec.Struct, frozen=True, kw_only=True):
    """The folder of all memories on this device, and how a memory is made or opened there."""

    #: None: that of the settings, else the platform's.
    folder: str | Path | None = None
    #: What other devices call this one; None: that of the settings, else the name of this machine.
    label: str | None = None
    #: Clock and randomness.
    world: World = msgspec.field(default_factory=World)
    #: Told how far a restore is.
    progress: Progress | None = None

    @classmethod
    def of(cls, home: HomeChoice) -> Home:
        """A home that was named by its folder, or not at all. Raises UsageError for anything else."""
        if isinstance(home, Home):
            return home
        if home is None or isinstance(home, str | os.PathLike):
            return cls(folder=None if home is None else Path(home))
        raise UsageError(f"home is a folder or a Home, not {type(home).__name__}")

    def path(self, known: configuration.Settings) -> Path:
        """The folder, by the settings when none was named."""
        return configuration.home(self.folder, known)

    def device_label(self, known: configuration.Settings) -> str:
        """What other devices are to call this one."""
        import platform

        return self.label or known.label or (platform.node() or "device")[:64]


#: Where memories lie: a folder, or a `Home` that says more.
HomeChoice = Home | str | Path | None
