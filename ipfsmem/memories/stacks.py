"""Several scopes read as one: the first that has a memory shows it, and each answer names its scope. A text of others hides no
own one of a later scope: otherwise a writer of one scope could hide the person's own texts.

A stack only reads. A write goes to exactly one scope, which the writer names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Any

import msgspec

from ipfsmem.device.scopes import scope_forgotten
from ipfsmem.errors import UsageError
from ipfsmem.memories.context_layouts import Layout
from ipfsmem.memories.memories import MemoryStore
from ipfsmem.wording import local_days

if TYPE_CHECKING:
    from ipfsmem.memories.context import ContextBlock


class Noted(msgspec.Struct, frozen=True):
    """An event and the scope of its timeline; "" is the nameless one."""

    scope: str
    event: dict[str, Any]


class ScopeStack:
    """Some scopes of one vault, in order of precedence. Scopes that are forgotten show nothing."""

    def __init__(self, parts: Sequence[MemoryStore]) -> None:
        self._parts = list({part.scope: part for part in parts}.values())

    @property
    def scopes(self) -> list[str]:
        """The scopes that are read, in this order."""
        return [part.scope for part in self._parts]

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
        """Return the context of a model from these scopes, fenced, in at most `max_tokens`; see `memories.context`. Raises
        UsageError."""
        from ipfsmem.memories.context import context, tokens_of

        return context(
            self._parts,
            query=query,
            max_tokens=max_tokens,
            layout=layout,
            count=count or tokens_of,
            exclude=exclude,
            by_meaning=by_meaning,
            counts=counts,
            running=running,
        )

    def timeline(self, days: tuple[str, str] | None = None, tz: tzinfo | None = UTC) -> list[Noted]:
        """Return the events of all of them in order; one with the same id and line in several scopes once.

        `days`: only these days, the first and the last (`2026-11-23`), in the time zone `tz`: UTC, or None for that of this
        machine. UsageError if the first comes after the last.
        """
        if days is not None and days[0] > days[1]:
            raise UsageError(f"{days[0]} comes after {days[1]}, so no day lies between them")
        from ipfsmem.bundle.timeline import event_line, union_of_scopes
        from ipfsmem.device.events import Timeline
        from ipfsmem.memories.event_search import ms_of

        within = None if days is None or tz is UTC else local_days(*days, tz)
        days = days if within is None else within.utc
        sources: dict[bytes, str] = {}
        found = []
        first = self._parts[0]
        with first.replica.reading():
            held = first.replica.store.segments_of(self.scopes)
            for part in self._parts:
                if part.scope not in held:
                    continue
                found.append(Timeline(part.replica, part.scope).events(days, held=held[part.scope]))
                for event in found[-1]:
                    sources.setdefault(event_line(event), part.scope)
        return [
            Noted(sources[event_line(event)], event)
            for event in union_of_scopes(*found)
            if within is None or within.holds(ms_of(event["ts"], ""))
        ]

    def timeline_missing(self, days: tuple[str, str] | None = None, tz: tzinfo | None = UTC) -> int:
        """Return how many segments of the timeline, of these days, are missing in `timeline`, as they are not on this device or
        damaged."""
        if days is not None and tz is not UTC:
            days = local_days(*days, tz).utc
        from ipfsmem.device.events import missing_of

        first = self._parts[0]
        with first.replica.reading():
            held = first.replica.store.segments_of(self.scopes)
            return sum(
                missing_of(
                    first.replica.store,
                    [one for one in held[scope] if days is None or days[0] <= one[0].day <= days[1]],
                )
                for scope in self.scopes
                if scope in held and not scope_forgotten(first.replica.store, scope)
            )
