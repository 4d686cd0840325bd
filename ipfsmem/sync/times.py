"""Time spans in milliseconds, measured with a clock that may be set back."""

from __future__ import annotations

from typing import Final

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
WEEK_MS: Final = 7 * DAY_MS


def passed(last: int, now: int, span: int) -> bool:
    """Tell whether `span` has passed since `last` (all in milliseconds). A future `last` comes from a clock
    that was set back, and is long ago."""
    return not now - span < last <= now
