"""`memory.operations`: what was done with this memory on this device, the newest first. No text of a memory stands in it."""

from __future__ import annotations

import builtins
import re
from collections import Counter
from datetime import UTC, datetime
from typing import Final

from ipfsmem.device.operations import Operation, operations
from ipfsmem.errors import UsageError
from ipfsmem.parts.noting import note
from ipfsmem.parts.part import MemoryPart

_BACK: Final = re.compile(r"(\d{1,6})([smhd])", re.ASCII)
_MILLISECONDS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


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
        nameless one), done `since` a day, a moment (RFC 3339) or so long ago (`24h`). Raises UsageError, StorageError."""
        if limit < 1:
            raise UsageError(f"limit is 1 or more, not {limit}")
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


def moment_of(text: str, now: int) -> int:
    """Milliseconds since 1970 (UTC) of a day, a moment (RFC 3339; UTC where it says no zone) or a time back from `now`, as `24h`. Raises
    UsageError."""
    back = _BACK.fullmatch(text.strip())
    if back is not None:
        return now - int(back[1]) * _MILLISECONDS[back[2]]
    try:
        found = datetime.fromisoformat(text.strip())
        return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise UsageError(f"{text[:40]!a} is no moment: say 24h, 2026-04-14 or 2026-04-14T09:30:00Z") from None
