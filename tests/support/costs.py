"""Measures the processor time of a piece of work, for tests of how a cost grows."""

from __future__ import annotations

import time
from collections.abc import Callable


def cost(work: Callable[[], object], enough: float = 0.0) -> float:
    """Return the least processor time of three runs in seconds; stops after the first run below `enough`."""
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
        if best < enough:
            break
    return best
