"""Caches session parts between queries: the first and last line of each part, and all lines of the parts read last."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import msgspec

#: The bytes of a line without an item.
NO_ITEM = msgspec.Raw()
#: Maximum bytes of the cached parts; overhead of a line or a part in addition to its text.
_MAX_BYTES, _OVERHEAD_BYTES = 4_000_000, 200


class PartLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of a part: an item, a piece of one, or the removal of another device's item.

    `at`: milliseconds since 1970 UTC, greater than in all that the writer knew; `n`: its number among those added together.
    """

    at: int
    n: int = 0
    item: msgspec.Raw = NO_ITEM
    #: A piece of an item's JSON, its number from 0 and the number of pieces.
    text: str | None = None
    piece: tuple[int, int] | None = None
    #: The `at`, device and `n` of a removed item.
    gone: tuple[int, str, int] | None = None


class SessionPart(msgspec.Struct):
    """A part of a session on this device, and the dots that were read."""

    key: str
    device: str
    number: int
    lines: list[PartLine]
    dots: tuple[str, ...]
    #: Lines of other programs, which are preserved.
    rest: list[bytes] = []
    #: Whether its header names this session; otherwise it is not written.
    ours: bool = True


class Ends(NamedTuple):
    """The version of a part's entry, and its first and last line, each as (`at`, `n`)."""

    version: int
    first: tuple[int, int]
    last: tuple[int, int]


#: The name of the session and the part; None if a memory is not a part.
Found: TypeAlias = tuple[str, SessionPart] | None


class _Read(NamedTuple):
    version: int
    found: Found
    size: int


class PartsRead:
    """A cache of parts by entry name and version of the entry."""

    def __init__(self) -> None:
        self.ends: dict[str, Ends] = {}
        #: Least recently used first.
        self._parts: dict[str, _Read] = {}
        self._size = 0

    def part(self, name: str, version: int, read: Callable[[], Found]) -> Found:
        """Return a part, read only if it is not cached."""
        entry = self._parts.get(name)
        if entry is None or entry.version != version:
            content = read()
            entry = _Read(version, content, _OVERHEAD_BYTES if content is None else _size(content[1]))
        self.drop(name)
        self._parts[name] = entry
        self._size += entry.size
        while self._size > _MAX_BYTES:
            self.drop(next(iter(self._parts)))
        return entry.found

    def drop(self, name: str) -> None:
        """Drop the text of a part that changed."""
        gone = self._parts.pop(name, None)
        if gone is not None:
            self._size -= gone.size


def _size(part: SessionPart) -> int:
    return _OVERHEAD_BYTES + sum(
        _OVERHEAD_BYTES + len(bytes(line.item)) + len(line.text or "") for line in part.lines
    )
