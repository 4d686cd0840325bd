"""`memory.stack()`: several scopes read as one, with the checks and the list of operations that every part of an open memory has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING

from ipfsmem.memories.layouts import Layout
from ipfsmem.memories.memories import Memories
from ipfsmem.memories.stacks import Noted, Stack
from ipfsmem.methods import StackMethods
from ipfsmem.operation import View
from ipfsmem.parts.open_memory import OpenMemory
from ipfsmem.parts.part import MemoryPart, waits_outside

if TYPE_CHECKING:
    from ipfsmem.memories.context import ContextBlock


class MemoryStack(StackMethods, MemoryPart, Stack):
    """Some scopes of an open memory, the first goes before the next; see `memories.stacks.Stack`."""

    def __init__(self, opened: OpenMemory, parts: Sequence[Memories]) -> None:
        MemoryPart.__init__(self, opened)
        Stack.__init__(self, parts)
        self._scope = self.scopes[0]

    def _view(self) -> View:
        return View(self._open, self._scope, tuple(self.scopes))

    @waits_outside
    def context(
        self,
        query: str | None = None,
        *,
        max_tokens: int | None = None,
        layout: Layout = "index",
        count: Callable[[str], int] | None = None,
        without: frozenset[str] = frozenset(),
        by_meaning: bool = True,
        counts: bool = True,
        running: str = "",
    ) -> ContextBlock:
        """What a model is given of these scopes, fenced. Raises UsageError."""
        return Stack.context(
            self,
            query,
            max_tokens=max_tokens,
            layout=layout,
            count=count,
            without=without,
            by_meaning=by_meaning,
            counts=counts,
            running=running,
        )

    def timeline(self, days: tuple[str, str] | None = None, tz: tzinfo | None = UTC) -> list[Noted]:
        """The events of all of them in order. Raises UsageError."""
        return Stack.timeline(self, days, tz)

    def timeline_missing(self, days: tuple[str, str] | None = None, tz: tzinfo | None = UTC) -> int:
        """How many pieces of the timeline are not on this device or damaged."""
        return Stack.timeline_missing(self, days, tz)
