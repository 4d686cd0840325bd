"""`memory.timeline`: what happened, as events of all devices in order."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Any

from ipfsmem.parts.part import MemoryPart
from ipfsmem.parts.vault_handle import VaultHandle

if TYPE_CHECKING:
    from ipfsmem.memories.stacks import ScopeStack


class MemoryTimeline(MemoryPart):
    """The events of one scope. What turned out to be this scope is read with it."""

    def __init__(self, opened: VaultHandle, scope: str) -> None:
        super().__init__(opened)
        self._scope = scope

    def add(self, kind: str, /, **data: Any) -> dict[str, Any]:
        """Append an event, durable when this returns; the event as it stands. Raises UsageError for a type of the program's own."""
        from ipfsmem.bundle.program_events import check_kind

        check_kind(kind)
        scope = self._scope
        return self.record(kind, data, self._open.scopes.target(scope) if scope else "")

    def record(self, kind: str, data: Mapping[str, Any], scope: str) -> dict[str, Any]:
        """Append an event of any type to exactly this scope, wherever new events of that one go."""
        with self._open.flush_usage(scope):
            event = self._open.timeline(scope).note(kind, data)
        if self._open.files is not None:
            self._open.files.show_day(event["ts"][:10], scope)
        self._open.changed()
        return event

    def read(self, days: tuple[str, str] | None = None, *, tz: tzinfo | None = UTC) -> list[dict[str, Any]]:
        """All events in order; `days` limits to days (`2026-11-23`) from the first to the last, in the time zone `tz`: UTC, a
        `ZoneInfo`, or None for that of this machine."""
        self._open.ingest_edits()
        return [noted.event for noted in self._stack().timeline(days, tz)]

    def missing(self, days: tuple[str, str] | None = None, *, tz: tzinfo | None = UTC) -> int:
        """How many pieces of what `read` would give are not on this device, or damaged, so that it lacks their events."""
        return self._stack().timeline_missing(days, tz)

    def _stack(self) -> ScopeStack:
        from ipfsmem.memories.stacks import ScopeStack

        tokens = self._open.scopes.stack(self._scope) if self._scope else [""]
        return ScopeStack([self._open.memories.in_scope(token) for token in tokens])
