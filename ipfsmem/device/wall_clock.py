"""The clock of this machine, which somebody may set: what `World` goes by unless it is told otherwise."""

from __future__ import annotations

import time


def now_ms() -> int:
    """Milliseconds since 1970 UTC by the machine's clock."""
    return time.time_ns() // 1_000_000
