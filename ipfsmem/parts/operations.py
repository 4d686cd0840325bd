"""`memory.operations`: what was done with this memory on this device, the newest first. No text of a memory stands in it."""

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
    """The list of operations, bounded by the setting `operations.kept`."""

    def list(
        self,
        *,
        operation: str | None = None,
        scope: str | None = None,
        since: str | None = None,
        limit: int = 100,
    ) -> builtins.list[Operation]:
        """The newest `limit` that fit: of this `operation` (or those whose name begins with it, as `session`), of this scope ("" is the
        nameless one), done `since` a moment as people say one (`moment_of`). Raises UsageError, KeyNameError, StorageError."""
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
        """Note something that a face did with this memory and none of its parts does, such as making a token; `about`: what it is called."""
        note(self._open, operation, "", about, "")

    def counts(self) -> dict[str, int]:
        """How often each operation stands in the list, the most frequent first."""
        kept = self._open.operations_kept
        return dict(Counter(one.operation for one in operations(self._replica, kept)).most_common())
