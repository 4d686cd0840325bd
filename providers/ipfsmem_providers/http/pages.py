"""Detect paged listings that never end: repeated pages, endless pages, endless empty pages. Requests nothing itself.

A few empty or repeated pages in a row are valid: a service may filter after it cut the pages, and numbered pages shift when entries are
added. More empty pages in a row end the list. A list that repeats itself, or is longer than any of ours, is unread from there on.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final

from ipfsmem.errors import ProviderRefused

#: Empty pages in a row that end a listing, and pages of known entries in a row that make it unread.
EMPTY_MAX: Final = 3
#: Maximum pages, entries and bytes of one listing; a longer one is not ours.
PAGES_MAX: Final = 1_000
ENTRIES_MAX: Final = 200_000
BYTES_MAX: Final = 64 * 1024 * 1024


class Pages:
    """The pages of one listing so far."""

    def __init__(self, service: str) -> None:
        """`service`: its short name, for errors."""
        self._service = service
        self._seen: set[Hashable] = set()
        self._after: set[str] = set()
        self._empty = self._known = self._pages = self._bytes = 0

    def goes_on(self, entries: Iterable[Hashable], after: str = "", *, size: int = 0) -> bool:
        """Count one more page of `size` bytes that is not the last one, with the cursor `after` of the next page. Returns whether to request
        the next page. Raises ProviderRefused if the list repeats itself or is too long."""
        known, found = len(self._seen), 0
        for entry in entries:
            self._seen.add(entry)
            found += 1
        self._known = self._known + 1 if found and len(self._seen) == known else 0
        if self._known >= EMPTY_MAX or (after and after in self._after):
            raise self.unread("repeats the pages of its list")
        self._after.add(after)
        self._empty = 0 if found else self._empty + 1
        self._pages += 1
        self._bytes += size
        if self._pages >= PAGES_MAX or len(self._seen) > ENTRIES_MAX or self._bytes > BYTES_MAX:
            raise self.unread("sends an endless list")
        return self._empty < EMPTY_MAX

    def unread(self, what: str) -> ProviderRefused:
        """The error for a list that is unread in part; `what`: what the service does wrong."""
        return ProviderRefused(f"{self._service} {what}, so the rest is unread")
