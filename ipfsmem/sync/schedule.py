"""When to sync next, beside a program that runs for long: soon after writes, now and then for what others wrote, and
later and later while nobody answers.

Arithmetic only: it waits for nothing, syncs nothing and never asks for the time.
"""

from __future__ import annotations

import math
from typing import Final

from ipfsmem.errors import LockedError, ProviderError, UsageError

#: So long after an edit of a plain file a sync begins, in seconds: editors write in several steps.
AFTER_EDIT: Final = 0.2
#: Between two syncs for edits at least this passes, and so many times what the last sync took: a slow provider is asked less often.
LEAST_REST: Final = 0.5
REST: Final = 2.0
#: The first wait after a failure is never shorter, in seconds.
LEAST_WAIT: Final = 1.0


def may_pass(error: Exception) -> bool:
    """Whether waiting may help against this failure: an outage, or another process that syncs. Else a person must."""
    return isinstance(error, LockedError) or (isinstance(error, ProviderError) and not error.permanent)


class Pace:
    """What has happened so far, and what follows. All times are seconds of one clock that only goes forward."""

    def __init__(self, idle: float, most: float, every: float | None, now: float) -> None:
        """Sync `idle` after the last write and at most `most` after the first, and `every` so often all the same,
        beginning at once; None: after writes only. Raises UsageError for times that are none."""
        for name, value in (("idle", idle), ("most", most)):
            if not (math.isfinite(value) and value >= 0):
                raise UsageError(f"{name} is a number of seconds, not {value}")
        if every is not None and not (math.isfinite(every) and every > 0):
            raise UsageError(f"every is a number of seconds above 0, not {every}")
        self._idle, self._most, self._every = idle, most, every
        self._first: float | None = None
        self._last = now
        self._edited: float | None = None
        self._rested = now
        self._next = None if every is None else now
        self._not_before = now
        self._failures = 0

    def wrote(self, now: float) -> None:
        """Something was written."""
        self._first = now if self._first is None else self._first
        self._last = now

    def edited(self, now: float) -> None:
        """A plain file was edited. What else is written waits for its writer to pause; an edit was somebody's last step."""
        self._edited = now if self._edited is None else self._edited

    def due(self) -> float | None:
        """When the next sync begins; None: not before something is written."""
        times = [] if self._next is None else [self._next]
        if self._first is not None:
            times.append(min(self._last + self._idle, self._first + self._most))
        if self._edited is not None:
            times.append(max(self._edited + AFTER_EDIT, self._rested))
        return max(min(times), self._not_before) if times else None

    def begins(self) -> None:
        """A sync begins: it takes all that was written so far."""
        self._first = self._edited = None

    def worked(self, now: float, took: float = 0.0) -> None:
        """It worked, or failed for a reason that waiting does not help against: the next comes in its time. `took`: seconds."""
        self._failures = 0
        self._rested = now + max(LEAST_REST, took * REST)
        self._not_before = now
        self._next = None if self._every is None else now + self._every

    def failed(self, now: float) -> None:
        """Nobody answers: try again, each time after twice the wait, `most` at last; writes do not make it sooner."""
        first = max(self._idle, LEAST_WAIT)
        wait = min(first * 2 ** min(self._failures, 30), max(self._most, first))
        self._failures += 1
        self._next = self._not_before = now + wait
