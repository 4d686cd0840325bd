"""Progress callbacks of a sync and similar operations."""

from __future__ import annotations

from collections.abc import Callable

#: (activity, amount done, total; 0 when unknown)
Progress = Callable[[str, int, int], None]


def no_progress(what: str, done: int, total: int) -> None:
    """Ignore progress."""
