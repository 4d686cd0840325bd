"""Detect paged listings that never end: repeated pages, endless pages, endless empty pages. Requests nothing itself.

A few empty or repeated pages in a row are valid: a service may filter after it cut the pages, and numbered pages shift when entries are
added. A list that has more of them in a row, or is longer than any of ours, is unread from there on. Entries that cannot be read one by
one are noted for the report of a sync.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, Final, TypeVar

import msgspec

from ipfsmem.canonical import read_json
from ipfsmem.errors import ProviderRefused
from ipfsmem_providers.http.errors import short

T = TypeVar("T")
#: Pages of known entries in a row, and empty pages in a row, that make a listing unread.
KNOWN_MAX: Final = 3
EMPTY_MAX: Final = 10
#: Maximum pages, entries and bytes of one listing; a longer one is not ours.
PAGES_MAX: Final = 1_000
ENTRIES_MAX: Final = 200_000
BYTES_MAX: Final = 64 * 1024 * 1024
#: Bytes of an unreadable entry that are shown.
_SHOWN: Final = 60


class Pages:
    """The pages of one listing so far."""

    def __init__(self, service: str) -> None:
        """`service`: its short name, for errors."""
        self._service = service
        self._seen: set[Hashable] = set()
        self._after: set[str] = set()
        self._empty = self._known = self._pages = self._bytes = 0

    def goes_on(self, entries: Iterable[Hashable], after: str = "", *, size: int = 0) -> None:
        """Count one more page of `size` bytes that is not the last one, with the cursor `after` of the next page. Raises ProviderRefused if
        the list repeats itself or is too long."""
        before, count = len(self._seen), 0
        for entry in entries:
            self._seen.add(entry)
            count += 1
        self._known = self._known + 1 if count and len(self._seen) == before else 0
        if self._known >= KNOWN_MAX or (after and after in self._after):
            raise self.unread("repeats the pages of its list")
        self._after.add(after)
        self._empty = 0 if count else self._empty + 1
        self._pages += 1
        self._bytes += size
        if self._empty >= EMPTY_MAX:
            raise self.unread("sends one empty page after another")
        if self._pages >= PAGES_MAX or len(self._seen) > ENTRIES_MAX or self._bytes > BYTES_MAX:
            raise self.unread("sends an endless list")

    def unread(self, what: str) -> ProviderRefused:
        """Return the error for a partly unread list; `what`: the service's fault."""
        return ProviderRefused(f"{self._service} {what}, so the rest is unread")


def readable(
    page: Iterable[msgspec.Raw], kind: type[T], name: str, path: Iterable[str], unread: list[str]
) -> Iterator[T]:
    """Yield the entries of a page that parse as `kind`; add the starts of the others to `unread`.

    Ignored are those with another name than `name` at `path`.
    """
    for raw in page:
        try:
            yield read_json(raw, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            text = _at(raw, path)
            if not name or not isinstance(text, str) or text == name:
                unread.append(bytes(raw)[:_SHOWN].decode("utf-8", "replace"))


def _at(raw: msgspec.Raw, path: Iterable[str]) -> Any:
    try:
        value = read_json(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


class Unread(msgspec.Struct):
    """Entries that one listing omitted or garbled."""

    entries: list[str] = []  #: ids or beginnings of the entries
    hidden: int = 0  #: entries counted but not shown


class ListGaps:
    """Entries of a service's pin lists that could not be read, by the name of the pins."""

    def __init__(self, redact: Callable[[str], str] = str) -> None:
        """`redact` removes secrets from the service's name of an entry."""
        self._redact = redact
        self._gaps: dict[str, list[str]] = {}

    def note(self, name: str, entries: Iterable[str], *, hidden: int = 0, more: bool = False) -> None:
        """Record the last reading of the pins under `name`: `entries`: ids of unreadable ones; `hidden`:
        number of those counted but not shown; `more`: whether its end may not be that of the list."""
        ids = list(entries)
        gaps = []
        if ids:
            number = "an entry" if len(ids) == 1 else f"{len(ids):,} entries"
            gaps.append(f"{number} in its pin list (for instance {short(ids[0], self._redact)})")
        if hidden > 0:
            gaps.append(f"{hidden:,} pins that its list counts and does not show")
        if more:
            gaps.append("perhaps more pins than its list showed")
        self._gaps[name] = gaps

    def unread(self) -> list[str]:
        """See `Unreading`."""
        return [gap for gaps in self._gaps.values() for gap in gaps]
