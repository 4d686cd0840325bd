"""Ends the reading of a paged listing that the service does not end: a page that comes again, endless pages, endless empty ones.

A page may be empty because its service filters after cutting pages, and one may come again where others were added meanwhile and pages
are counted, so a few in a row are accepted. After empty ones the list has ended. A list that comes round again, or is longer than any
of ours, has not: what was not read of it is unread. Requests nothing itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final

from ipfsmem.errors import ProviderRefused

#: Empty pages in a row after which the listing counts as ended, and pages of known entries after which it counts as unread.
EMPTY_MAX: Final = 3
#: Pages, entries and bytes of one listing at most; more are not ours.
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
        """Note one more page of `size` bytes that is not the last one, and the cursor `after` that it names. Returns whether to request the
        next page. ProviderRefused for a list that repeats itself or is too long: the rest of it cannot be read."""
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
        """The error for a list of which a part cannot be read; `what` the service does."""
        return ProviderRefused(f"{self._service} {what}, so the rest is unread")
