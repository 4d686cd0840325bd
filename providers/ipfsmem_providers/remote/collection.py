"""Removes a marked pack from a folder on another machine; packs/collection.py decides which, and when.

The age of a file, and the time, are those of the server: the clock of this device may be days ahead.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable

from ipfsmem.errors import ProviderError, ProviderUnavailable
from ipfsmem_providers.packs.collection import DAY_MS, Collector, Roots
from ipfsmem_providers.packs.hidden import hidden_file, hidden_name, is_hidden_pack
from ipfsmem_providers.packs.lost_blocks import LOST
from ipfsmem_providers.packs.store import GOING, Inventory, Packs
from ipfsmem_providers.remote.object_store import TEMPORARY, RemoteObjectStore


class RemoteCollector(Collector):
    """Marks and removes packs of a folder on another machine."""

    def __init__(self, packs: Packs, folder: RemoteObjectStore, now: int) -> None:
        """`folder`: the folder of the packs."""
        super().__init__(packs, now)
        self._folder = folder
        self._asked = False

    def mark(self, roots: Roots) -> int:
        """Do `Collector.mark` by the server's clock."""
        self._ask_time()
        return super().mark(roots)

    def remove(self, read: Callable[[], Roots]) -> int:
        """Do `Collector.remove` by the server's clock."""
        inventory = self._packs.inventory()
        if inventory.marked or any(map(is_hidden_pack, inventory.files)):
            self._ask_time()
        return super().remove(read)

    def _sweep(self) -> Inventory:
        """Do `Collector._sweep`; by the server's clock even without a newer pack."""
        oldest = (self._now - DAY_MS) / 1000
        return Packs.sweep(self._packs, oldest) if self._asked else self._packs.sweep(oldest)

    def _ask_time(self) -> None:
        """Learn the server's time from a file that is written now."""
        if self._asked:
            return
        name = f"{TEMPORARY}{secrets.token_hex(8)}"
        self._folder.write(name, b"now")
        try:
            info = self._folder.files().get(name)
        finally:
            with contextlib.suppress(OSError, ProviderError):
                self._folder.unlink(name, finish=True)
        if info is None:
            raise ProviderUnavailable(f"{self._folder} does not list a file that was just written")
        self._now, self._asked = info.modified, True

    def _due(self, inventory: Inventory) -> list[str]:
        """Return packs whose mark is a day old by its own time and by that of its file: another device's clock may be wrong."""
        files = inventory.files
        return [
            name
            for name in super()._due(inventory)
            if self._now - files[f"{name[:64]}{GOING}"].modified >= DAY_MS
        ]

    def _take_away(self, name: str, is_needed: Callable[[], bool]) -> bool:
        """Hide the pack under another name, ask `is_needed`, then remove it or restore its name."""
        folder = self._folder
        aside = hidden_name(name)
        is_due = removed = False
        try:
            # Missing, or renamed and the answer was lost: the list tells.
            with contextlib.suppress(FileNotFoundError):
                folder.hide(name, aside)  # a device that writes this pack from now on writes another file
            if not is_needed():
                hidden = folder.files().get(aside)  # last: another device may have put it again
                is_due = hidden is not None and self._now - hidden.modified >= DAY_MS
        except FileExistsError:
            pass  # both are there
        finally:
            with contextlib.suppress(FileNotFoundError):  # another device removes it now, or restored it
                # A sweep restores what it leaves.
                if is_due:
                    folder.unlink(aside, finish=True, once=True)
                    removed = True
                else:
                    with contextlib.suppress(FileExistsError):  # put again meanwhile; a sweep compares both
                        folder.restore(aside, name)
        names = folder.files()
        there, elsewhere = name in names, any(hidden_file(one) == name for one in names)
        # What another device hid, or restored and perhaps hid again, keeps its files.
        for ending in [GOING] if there else [] if elsewhere else [GOING, LOST, ".idx"]:
            with contextlib.suppress(OSError):
                folder.unlink(f"{name[:64]}{ending}")
        self._packs.forget(name)
        return removed and not there
