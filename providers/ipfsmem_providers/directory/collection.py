"""Removes a marked pack from a shared folder; packs/collection.py decides which, and when."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from ipfsmem_providers.directory.files import FolderObjectStore
from ipfsmem_providers.packs.collection import DAY_MS, Collector
from ipfsmem_providers.packs.hidden import hidden_file, hidden_name
from ipfsmem_providers.packs.lost_blocks import LOST
from ipfsmem_providers.packs.store import GOING, Packs


class FolderCollector(Collector):
    """Marks and removes packs of a shared folder."""

    def __init__(self, packs: Packs, folder: FolderObjectStore, now: int) -> None:
        """`folder`: the folder of the packs."""
        super().__init__(packs, now)
        self._folder = folder

    def _take_away(self, name: str, is_needed: Callable[[], bool]) -> bool:
        """Hide the pack under another name, ask `is_needed`, then remove it or restore its name."""
        folder = self._folder
        aside = hidden_name(name)
        is_due = removed = False
        with contextlib.suppress(FileNotFoundError):  # another device removes it now, or restored it
            folder.replace(name, aside)  # a device that writes this pack from now on writes another file
            try:
                age = self._now - folder.lstat(aside).st_mtime_ns // 1_000_000
                is_due = age >= DAY_MS and not is_needed()
            finally:
                if not is_due:
                    with contextlib.suppress(FileExistsError):  # put again meanwhile; a sweep compares both
                        folder.restore(aside, name)
            if is_due:
                folder.unlink(aside)
                removed = True
        names = folder.names()
        there, elsewhere = name in names, any(hidden_file(one) == name for one in names)
        # What another device hid, or restored and perhaps hid again, keeps its files.
        for ending in [GOING] if there else [] if elsewhere else [GOING, LOST, ".idx"]:
            with contextlib.suppress(OSError):
                folder.unlink(f"{name[:64]}{ending}")
        self._packs.forget(name)
        return removed and not there
