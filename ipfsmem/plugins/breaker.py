"""Whether something that failed is asked again: after some failures in a row it is left alone for a while, then tried once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

#: Failures in a row after which nobody asks any more, and seconds until it is tried again.
FAILURES: Final = 3
REST: Final = 60.0


class Breaker:
    """Counts failures in a row. `clock`: seconds that only go forward."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failures = 0
        self._until = 0.0

    @property
    def is_open(self) -> bool:
        """Whether nothing is asked now."""
        return self._failures >= FAILURES and self._clock() < self._until

    def worked(self) -> None:
        """It answered: what failed before counts no more."""
        self._failures = 0

    def failed(self) -> bool:
        """It did not; whether it is left alone from now on."""
        self._failures += 1
        self._until = self._clock() + REST
        return self._failures >= FAILURES
