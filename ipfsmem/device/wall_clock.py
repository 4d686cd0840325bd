"""The clock of this machine, which can be set: the default of `Environment`."""

from __future__ import annotations

import time


def now_ms() -> int:
    """Return milliseconds since 1970 UTC by the machine's clock."""
    return time.time_ns() // 1_000_000
