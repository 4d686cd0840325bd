"""Spans of time in milliseconds, and whether one has passed by a clock that may be set back."""

from __future__ import annotations

from typing import Final

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
WEEK_MS: Final = 7 * DAY_MS


def passed(last: int, now: int, span: int) -> bool:
    """Whether `span` has passed since `last` (all in milliseconds). A time in the future is one of a clock that was set back, and
    counts as long ago."""
    return not now - span < last <= now
