"""Who is told how far a sync, or something like it, is."""

from __future__ import annotations

from collections.abc import Callable

#: (what is being done, how much is done, of how much; 0 when not known)
Progress = Callable[[str, int, int], None]


def no_progress(what: str, done: int, total: int) -> None:
    """Tell nobody."""
