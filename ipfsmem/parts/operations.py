"""`memory.operations`: the audit log of this device, newest first. It has no text of a memory."""

from __future__ import annotations

import builtins
from collections import Counter

from ipfsmem.bundle.keys import check_scope
from ipfsmem.device.operations import Operation, operations
from ipfsmem.errors import UsageError
from ipfsmem.parts.audit import note
from ipfsmem.parts.part import MemoryPart
from ipfsmem.wording import moment_of


class MemoryOperations(MemoryPart):
    """The audit log, limited by the setting `operations.kept`."""

    def list(
        self,
        *,
        operation: str | None = None,
        scope: str | None = None,
        since: str | None = None,
        limit: int = 100,
    ) -> builtins.list[Operation]:
        """Return the newest `limit` entries: of an `operation` (or those whose names begin with it, such as `session`), of a scope ("" is the
        unnamed one), `since` a time in words (`moment_of`). Raises UsageError, KeyNameError, StorageError."""
        if limit < 1:
            raise UsageError(f"limit is 1 or more, not {limit}")
        if scope:
            check_scope(scope)
        begin = 0 if since is None else moment_of(since, self._replica.world.now())
        found = []
        for one in operations(self._replica, self._open.operations_kept):
            if (
                (operation is None or one.operation == operation or one.operation.startswith(operation + " "))
                and (scope is None or one.scope == scope)
                and one.at >= begin
            ):
                found.append(one)
                if len(found) == limit:
                    break
        return found

    def add(self, operation: str, about: str = "") -> None:
        """Record an operation of an interface that no part records, such as the creation of a token; `about`: its name."""
        note(self._open, operation, "", about, "")

    def counts(self) -> dict[str, int]:
        """Return the number of entries of each operation, most frequent first."""
        kept = self._open.operations_kept
        return dict(Counter(one.operation for one in operations(self._replica, kept)).most_common())
