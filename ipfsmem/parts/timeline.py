"""`memory.timeline`: what happened, as events of all devices in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, tzinfo
from typing import Any

import msgspec

from ipfsmem.device.scopes import scope_forgotten
from ipfsmem.errors import UsageError
from ipfsmem.parts.part import MemoryPart
from ipfsmem.parts.vault_handle import VaultHandle
from ipfsmem.wording import local_days


class Noted(msgspec.Struct, frozen=True):
    """An event and the scope of its timeline; "" is the nameless one."""

    scope: str
    event: dict[str, Any]


class MemoryTimeline(MemoryPart):
    """The events of one scope. What turned out to be this scope is read with it."""

    def __init__(self, opened: VaultHandle, scope: str, scopes: Sequence[str] | None = None) -> None:
        """`scopes`: the scopes to read, in order of precedence; None for `scope` and the scopes that lead to it."""
        super().__init__(opened)
        self._scope, self._read = scope, scopes

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
        return [noted.event for noted in self.noted(days, tz=tz)]

    def noted(self, days: tuple[str, str] | None = None, *, tz: tzinfo | None = UTC) -> list[Noted]:
        """The same, each event with its scope; one with the same id and line in several scopes once. Raises UsageError."""
        if days is not None and days[0] > days[1]:
            raise UsageError(f"{days[0]} comes after {days[1]}, so no day lies between them")
        self._open.ingest_edits()
        from ipfsmem.bundle.timeline import event_line, union_of_scopes
        from ipfsmem.device.events import Timeline
        from ipfsmem.memories.event_search import ms_of

        within = None if days is None or tz is UTC else local_days(*days, tz)
        days = days if within is None else within.utc
        sources: dict[bytes, str] = {}
        found, scopes = [], self._scopes()
        with self._replica.reading():
            held = self._replica.store.segments_of(scopes)
            for scope in scopes:
                if scope not in held:
                    continue
                found.append(Timeline(self._replica, scope).events(days, held=held[scope]))
                for event in found[-1]:
                    sources.setdefault(event_line(event), scope)
        return [
            Noted(sources[event_line(event)], event)
            for event in union_of_scopes(*found)
            if within is None or within.holds(ms_of(event["ts"], ""))
        ]

    def missing(self, days: tuple[str, str] | None = None, *, tz: tzinfo | None = UTC) -> int:
        """How many pieces of what `read` would give are not on this device, or damaged, so that it lacks their events."""
        if days is not None and tz is not UTC:
            days = local_days(*days, tz).utc
        from ipfsmem.device.events import missing_of

        store, scopes = self._replica.store, self._scopes()
        with self._replica.reading():
            held = store.segments_of(scopes)
            return sum(
                missing_of(
                    store, [one for one in held[scope] if days is None or days[0] <= one[0].day <= days[1]]
                )
                for scope in scopes
                if scope in held and not scope_forgotten(store, scope)
            )

    def _scopes(self) -> list[str]:
        """The scopes to read."""
        if self._read is not None:
            return [*self._read]
        return self._open.read_order(self._scope)
