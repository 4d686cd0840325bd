"""Ends the reading of a paged listing that the service does not end: a page that comes again, or endless empty pages.

A page may be empty because its service filters after cutting pages, so a few in a row are accepted. Requests nothing itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final

#: Empty pages in a row after which the listing counts as ended.
EMPTY_MAX: Final = 3


class Pages:
    """The pages of one listing so far."""

    def __init__(self) -> None:
        self._seen: set[Hashable] = set()
        self._after: set[str] = set()
        self._empty = 0

    def goes_on(self, entries: Iterable[Hashable], after: str = "") -> bool:
        """Note one more page and the cursor `after` that it names. Returns whether to request the next page."""
        known, found = len(self._seen), 0
        for entry in entries:
            self._seen.add(entry)
            found += 1
        round_again = (found > 0 and len(self._seen) == known) or (after != "" and after in self._after)
        self._after.add(after)
        self._empty = 0 if found else self._empty + 1
        return not round_again and self._empty < EMPTY_MAX
