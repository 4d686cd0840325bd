"""`memory.operations`: the audit log of this device, newest first. It has no text of a memory."""

from __future__ import annotations

from collections import Counter

from ipfsmem.device.operations import operations
from ipfsmem.parts.audit import note
from ipfsmem.parts.part import MemoryPart


class MemoryOperations(MemoryPart):
    """The audit log, limited by the setting `operations.kept`."""

    def add(self, operation: str, about: str = "") -> None:
        """Record an operation of an interface that no part records, such as the creation of a token; `about`: its name."""
        note(self._open, operation, "", about, "")

    def counts(self) -> dict[str, int]:
        """Return the number of entries of each operation, most frequent first."""
        limit = self._open.operations_kept
        return dict(Counter(one.operation for one in operations(self._replica, limit)).most_common())
