"""What questions read of the parts of sessions, for the next question: between which lines each part lies, and the lines of those read last."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from ipfsmem.memories.sessions import Part

#: Bytes that the cached parts take, and those of a line or a part beside its text.
_MOST, _BESIDE = 4_000_000, 200


class Ends(NamedTuple):
    """Between which lines a part lies, each as its `at` and `n`, and of which version of its entry that is so."""

    version: int
    first: tuple[int, int]
    last: tuple[int, int]


#: The session of a part, and what it has of it; None where it is a part of none.
Found: TypeAlias = "tuple[str, Part] | None"


class _Read(NamedTuple):
    version: int
    found: Found
    size: int


class PartsRead:
    """By the names of the parts' entries, each with the version of the entry that it is of."""

    def __init__(self) -> None:
        self.ends: dict[str, Ends] = {}
        #: The one used last at the end.
        self._parts: dict[str, _Read] = {}
        self._size = 0

    def part(self, name: str, version: int, read: Callable[[], Found]) -> Found:
        """A part, read only where it is not cached."""
        known = self._parts.get(name)
        if known is None or known.version != version:
            found = read()
            known = _Read(version, found, _BESIDE if found is None else _size(found[1]))
        self.drop(name)
        self._parts[name] = known
        self._size += known.size
        while self._size > _MOST:
            self.drop(next(iter(self._parts)))
        return known.found

    def drop(self, name: str) -> None:
        """Keep nothing of the text of a part that changed."""
        gone = self._parts.pop(name, None)
        if gone is not None:
            self._size -= gone.size


def _size(part: Part) -> int:
    return _BESIDE + sum(_BESIDE + len(bytes(line.item)) + len(line.text or "") for line in part.lines)
