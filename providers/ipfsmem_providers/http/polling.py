"""Polling intervals for deferred work of a service: short at first, then doubled each time.

The caller checks the work, and decides what an expired patience means.
"""

from __future__ import annotations

from typing import Final

from ipfsmem_providers.http.policy import Timing

#: The first pause and the longest, in seconds. Halves add up without rounding, so sums of pauses are exact.
FIRST: Final = 0.125
LONGEST: Final = 10.0


class Polling:
    """The pauses of one wait: 0.125 s, 0.25 s, ... up to 10 s each, and together no more than the patience.

    That is seven looks in the first sixteen seconds and six a minute later on, below the limits of all services.
    """

    def __init__(self, timing: Timing, patience: float, *, at_once: bool = False) -> None:
        """`patience` in seconds; `at_once`: no pause before the first check."""
        self._sleep = timing.sleep
        self._patience = patience
        self._at_once = at_once
        self._next = FIRST
        self.waited = 0.0  #: seconds slept

    async def pause(self) -> bool:
        """Sleep until the next check. False, at once, when patience has ended."""
        if self._at_once:
            self._at_once = False
            return True
        length = min(self._next, self._patience - self.waited)
        if length <= 0:
            return False
        self._next = min(2 * self._next, LONGEST)
        self.waited += length
        await self._sleep(length)
        return True
