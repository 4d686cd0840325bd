"""Compute the time of the next sync: soon after writes, periodically for other devices' writes, with back-off on
failure.

Pure arithmetic: no waiting, no clock.
"""

from __future__ import annotations

import math
from typing import Final

from ipfsmem.errors import LockedError, ProviderError, UsageError

#: Seconds from an edit of a plain file to a sync: editors write in several steps.
AFTER_EDIT: Final = 0.2
#: Minimum seconds between two syncs for edits, also as a multiple of the last sync's duration: a slow
#: provider is called less often.
LEAST_REST: Final = 0.5
REST: Final = 2.0
#: Minimum first wait after a failure, in seconds.
LEAST_WAIT: Final = 1.0


def may_pass(error: Exception) -> bool:
    """Tell whether waiting may fix this failure: an outage, or another process that syncs. Others need the user."""
    return isinstance(error, LockedError) or (isinstance(error, ProviderError) and not error.permanent)


class Pace:
    """The schedule's state. All times are seconds of one monotonic clock."""

    def __init__(self, idle: float, most: float, every: float | None, now: float) -> None:
        """Sync `idle` seconds after the last write, at most `most` after the first, and in any case at
        `every`, starting now.

        `every=None`: after writes only. Raises UsageError for invalid times.
        """
        for name, value in (("idle", idle), ("most", most)):
            if not (math.isfinite(value) and value >= 0):
                raise UsageError(f"{name} must be a number of seconds (got {value})")
        if every is not None and not (math.isfinite(every) and every > 0):
            raise UsageError(f"every must be a number of seconds above 0 (got {every})")
        self._idle, self._most, self._every = idle, most, every
        self._first: float | None = None
        self._last = now
        self._edited: float | None = None
        self._rested = now
        self._next = None if every is None else now
        self._not_before = now
        self._failures = 0

    def wrote(self, now: float) -> None:
        """Note a write."""
        self._first = now if self._first is None else self._first
        self._last = now

    def edited(self, now: float) -> None:
        """Note an edit of a plain file. Other writes wait for a pause of their writer; an edit is complete
        when saved."""
        self._edited = now if self._edited is None else self._edited

    def due(self) -> float | None:
        """Return the time of the next sync; None: not before a write."""
        times = [] if self._next is None else [self._next]
        if self._first is not None:
            times.append(min(self._last + self._idle, self._first + self._most))
        if self._edited is not None:
            times.append(max(self._edited + AFTER_EDIT, self._rested))
        return max(min(times), self._not_before) if times else None

    def begins(self) -> None:
        """Note the start of a sync: it covers all writes so far."""
        self._first = self._edited = None

    def worked(self, now: float, took: float = 0.0) -> None:
        """Note a success, or a failure that waiting cannot fix: the next sync is at its normal time. `took`:
        seconds."""
        self._failures = 0
        self._rested = now + max(LEAST_REST, took * REST)
        self._not_before = now
        self._next = None if self._every is None else now + self._every

    def failed(self, now: float) -> None:
        """Note an outage: retry with doubled waits, up to `most`; writes do not advance it."""
        first = max(self._idle, LEAST_WAIT)
        wait = min(first * 2 ** min(self._failures, 30), max(self._most, first))
        self._failures += 1
        self._next = self._not_before = now + wait
