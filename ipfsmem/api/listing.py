"""Pages of the list of a memory. The list is made once for each state of the memory, so that a page of ten thousand costs what its
lines cost."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from ipfsmem.api.bodies import PAGE, MemoryPage
from ipfsmem.holding import Mark
from ipfsmem.memories.memories import Listed
from ipfsmem.memories.stacks import Stack
from ipfsmem.memory import Memory
from ipfsmem.results import MemoryLine

#: Lists that are kept, by what was asked.
_MOST: Final = 16
Asked = tuple[tuple[str, ...], str, str, str]


class Lists:
    """The lists of one memory, as long as nothing changes."""

    def __init__(self) -> None:
        self._mark: Mark | None = None
        self._of: Memory | None = None
        self._kept: dict[Asked, list[Listed]] = {}

    def page(
        self,
        whole: Memory,
        mark: Mark,
        read: Memory | Stack,
        asked: Asked,
        *,
        after: str,
        limit: int | None,
    ) -> MemoryPage:
        """The lines after a key. `asked` is what `read` reads, a type, a tag, and what must stand in key, name or description."""
        if mark != self._mark or whole is not self._of:
            self._kept.clear()
            self._mark, self._of = mark, whole
        found = self._kept.get(asked)
        if found is None:
            if len(self._kept) >= _MOST:
                self._kept.pop(next(iter(self._kept)))
            found = self._kept[asked] = _fitting(read.list(), *asked[1:])
        begin = bisect_right(found, after, key=lambda one: one.key) if after else 0
        shown = found[begin : begin + (limit or PAGE)]
        more = shown[-1].key if shown and begin + len(shown) < len(found) else None
        return MemoryPage(memories=[MemoryLine.of(one) for one in shown], next=more, total=len(found))

    def clear(self) -> None:
        """Keep nothing."""
        self._kept.clear()
        self._mark = self._of = None


def _fitting(found: list[Listed], kind: str, tag: str, match: str) -> list[Listed]:
    wanted = match.casefold()
    return [
        one
        for one in found
        if (not kind or one.file.type == kind)
        and (not tag or tag in one.file.tags)
        and (not wanted or wanted in f"{one.key}\n{one.file.name}\n{one.file.description}".casefold())
    ]
