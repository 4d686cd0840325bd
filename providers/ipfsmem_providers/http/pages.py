"""Ends a listing that its service does not end: the same page again, or empty ones without end.

A page may be empty where a filter is applied after it was cut, so a few in a row are looked at. It asks for no page
itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final

#: Empty pages in a row after which no more are asked for.
EMPTY_MAX: Final = 3


class Pages:
    """What the pages of one listing brought so far."""

    def __init__(self) -> None:
        self._seen: set[Hashable] = set()
        self._after: set[str] = set()
        self._empty = 0

    def goes_on(self, entries: Iterable[Hashable], after: str = "") -> bool:
        """Take note of one more page, and of the cursor that it names; whether the next one is worth asking for."""
        known, found = len(self._seen), 0
        for entry in entries:
            self._seen.add(entry)
            found += 1
        round_again = (found > 0 and len(self._seen) == known) or (after != "" and after in self._after)
        self._after.add(after)
        self._empty = 0 if found else self._empty + 1
        return not round_again and self._empty < EMPTY_MAX
