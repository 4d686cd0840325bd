"""The `directory` provider: a folder on a stick, a share, or a folder of a sync program.

    pins/<cid>.<16 hex of SHA-256(name)>.json, pins/<sha256>.pins
    names/<k51...>.<16 hex of SHA-256(record)>.ipns-record
    small/<box>.<label>.<sha256>

and packs as in packs/provider.py. Any sync program may copy the folder, file by file. It is created only if the settings
say so: an unplugged stick must not become a folder on the system's disk.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from ipfsmem.errors import ConfigError
from ipfsmem_providers.directory.collection import FolderCollector
from ipfsmem_providers.directory.files import (
    STORE_NAMES,
    FolderObjectStore,
    disk_errors,
    gone,
    refuse_repository,
)
from ipfsmem_providers.http.policy import Timeouts, in_company
from ipfsmem_providers.packs.blocking_work import STALL, BlockingWork
from ipfsmem_providers.packs.collection import Collector
from ipfsmem_providers.packs.names import NameRecords
from ipfsmem_providers.packs.pins import PackPins
from ipfsmem_providers.packs.provider import PackedStore
from ipfsmem_providers.packs.small_files import SmallFiles
from ipfsmem_providers.packs.store import Packs

T = TypeVar("T")


class DirectoryProvider(PackedStore):
    """A folder as a provider. See ipfsmem.provider.contract for the methods."""

    def __init__(
        self,
        path: str | Path,
        settings: Mapping[str, Any] | None = None,
        *,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """`path`: the folder. `settings["create"]`: make it if missing; otherwise the disk is not accessed yet.

        `settings["stall"]`: seconds without progress after which work there is abandoned. `clock` returns
        nanoseconds since 1970 UTC. Raises ConfigError for an empty path, ProviderUnavailable when the folder
        cannot be made.
        """
        if not str(path):
            raise ConfigError(
                "the directory provider needs a folder", hint="For instance directory:/media/stick"
            )
        try:
            self._folder = Path(path).expanduser().absolute()
        except (RuntimeError, ValueError) as error:
            raise ConfigError(f"{path!r} is not the path of a folder: {error}") from None
        packs, pins, names, small = (FolderObjectStore(self._folder, kind) for kind in STORE_NAMES)
        self._stores = (packs, pins, names, small)
        super().__init__(
            Packs(packs),
            PackPins(pins, lambda: clock() // 1_000_000, lambda: clock() / 1e9),
            NameRecords(names),
            SmallFiles(small),
            BlockingWork(
                f"folder {self._folder}",
                _silence(settings or {}),
                why="its disk or network share hangs",
                hint="Check the share or the stick, or unmount it. It gets no more requests until then.",
            ),
            clock,
        )
        self._used = False
        if (settings or {}).get("create"):
            with disk_errors(self._folder):
                self._folder.mkdir(parents=True, exist_ok=True)

    @property
    def name(self) -> str:
        """Return `directory:` and the path."""
        return f"directory:{self._folder}"

    def _checked(self, work: Callable[..., T], *args: object) -> T:
        packs, pins, names, small = self._stores
        with disk_errors(self._folder):
            if not self._folder.is_dir():
                raise gone(self._folder)
            with packs.held_open(), pins.held_open(), names.held_open(), small.held_open():
                if packs.is_there():
                    self._used = True
                elif self._used:  # a mount point without its mount looks like an empty folder
                    raise gone(packs.path)
                else:
                    refuse_repository(self._folder)
                return work(*args)

    def _collector(self, now: int) -> Collector:
        return FolderCollector(self._packs, self._stores[0], now)


def _silence(settings: Mapping[str, Any]) -> float:
    text = settings.get("stall") or (in_company(Timeouts()).stall if settings.get("company") else STALL)
    try:
        value = float(text)
    except (TypeError, ValueError):
        value = -1.0
    if not 0 < value < 1e6:
        raise ConfigError(f"stall is {text!r}, not a number of seconds")
    return value
