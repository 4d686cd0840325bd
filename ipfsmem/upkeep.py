"""`memory.maintenance`: the declared operations on the files of this device, and the methods for programs alone."""

from __future__ import annotations

from ipfsmem.methods import MaintenanceMethods
from ipfsmem.operation import View
from ipfsmem.parts.maintenance import MemoryMaintenance


class Maintenance(MaintenanceMethods, MemoryMaintenance):
    """What an open memory needs now and then."""

    def _view(self) -> View:
        return View(self._open, "")
