"""What a piece of work costs, for tests of how a cost grows: processor time, which a busy machine changes little."""

from __future__ import annotations

import time
from collections.abc import Callable


def cost(work: Callable[[], object], enough: float = 0.0) -> float:
    """Seconds of processor time, the least of three runs; the first run that takes less than `enough` will do."""
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
        if best < enough:
            break
    return best
