"""`memory.stack()`: several scopes read as one, with the checks and the list of operations that every part of an open memory has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING

from ipfsmem.memories.context_layouts import Layout
from ipfsmem.memories.memories import MemoryStore
from ipfsmem.memories.stacks import Noted, ScopeStack
from ipfsmem.methods import StackMethods
from ipfsmem.operation import View
from ipfsmem.parts.part import MemoryPart, releases_lock
from ipfsmem.parts.vault_handle import VaultHandle

if TYPE_CHECKING:
    from ipfsmem.memories.context import ContextBlock


class MemoryStack(StackMethods, MemoryPart, ScopeStack):
    """Some scopes of an open memory, the first goes before the next; see `memories.stacks.ScopeStack`."""

    def __init__(self, opened: VaultHandle, parts: Sequence[MemoryStore]) -> None:
        MemoryPart.__init__(self, opened)
        ScopeStack.__init__(self, parts)
        self._scope = self.scopes[0]

    def _view(self) -> View:
        return View(self._open, self._scope, tuple(self.scopes))

    @releases_lock
    def context(
        self,
        query: str | None = None,
        *,
        max_tokens: int | None = None,
        layout: Layout = "index",
        count: Callable[[str], int] | None = None,
        exclude: frozenset[str] = frozenset(),
        by_meaning: bool = True,
        counts: bool = True,
        running: str = "",
    ) -> ContextBlock:
        """What a model is given of these scopes, fenced. Raises UsageError."""
        return ScopeStack.context(
            self,
            query,
            max_tokens=max_tokens,
            layout=layout,
            count=count,
            exclude=exclude,
            by_meaning=by_meaning,
            counts=counts,
            running=running,
        )

    def timeline(self, days: tuple[str, str] | None = None, tz: tzinfo | None = UTC) -> list[Noted]:
        """The events of all of them in order. Raises UsageError."""
        return ScopeStack.timeline(self, days, tz)

    def timeline_missing(self, days: tuple[str, str] | None = None, tz: tzinfo | None = UTC) -> int:
        """How many pieces of the timeline are not on this device or damaged."""
        return ScopeStack.timeline_missing(self, days, tz)
