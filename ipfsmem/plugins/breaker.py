"""A circuit breaker: after some failures in a row no calls for a while, then one attempt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

#: Failures in a row after which calls stop, and seconds until the next attempt.
FAILURES: Final = 3
REST: Final = 60.0


class Breaker:
    """Counts failures in a row. `clock`: monotonic seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failures = 0
        self._until = 0.0

    @property
    def is_open(self) -> bool:
        """Whether calls are stopped now."""
        return self._failures >= FAILURES and self._clock() < self._until

    def worked(self) -> None:
        """Record a success, which resets the count."""
        self._failures = 0

    def failed(self) -> bool:
        """Record a failure; returns whether calls stop from now on."""
        self._failures += 1
        self._until = self._clock() + REST
        return self._failures >= FAILURES
