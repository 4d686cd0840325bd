"""Events of the timelines of scopes: appended, and read as one, oldest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING, Any

import msgspec

from ipfsmem.device.scopes import scope_forgotten
from ipfsmem.errors import UsageError
from ipfsmem.wording import LocalDays, day_of, local_days

if TYPE_CHECKING:
    from ipfsmem.open_vault.handle import VaultHandle


class Noted(msgspec.Struct, frozen=True):
    """An event and the scope of its timeline; "" is the default scope."""

    scope: str
    event: dict[str, Any]


def add_event(opened: VaultHandle, scope: str, kind: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Append an event of any type to exactly this scope. It is durable when this returns."""
    with opened.flush_usage(scope):
        event = opened.timeline(scope).note(kind, data)
    if opened.files is not None:
        opened.files.show_day(event["ts"][:10], scope)
    opened.changed()
    return event


def days_between(
    opened: VaultHandle, since: str | None, until: str | None, zone: tzinfo | None
) -> LocalDays | None:
    """Return the days of a time zone from `since` to `until`, both in words (`wording.moment_of`) and inclusive; None for
    all.

    `zone`: None for that of this machine. Raises UsageError.
    """
    if since is None and until is None:
        return None
    now = opened.replica.environment.now()
    first = "0001-01-01" if since is None else day_of(since, now, zone)
    last = "9999-12-31" if until is None else day_of(until, now, zone)
    if first > last:
        raise UsageError(f"{first} comes after {last}, so no day lies between them")
    return local_days(first, last, zone)


def noted(opened: VaultHandle, scopes: Sequence[str], days: LocalDays | None = None) -> list[Noted]:
    """Return all events of these scopes, oldest first; an event in several scopes is returned once."""
    opened.ingest_edits()
    from ipfsmem.bundle.timeline import event_line, union_of_scopes
    from ipfsmem.device.events import Timeline
    from ipfsmem.memories.event_search import ms_of

    sources: dict[bytes, str] = {}
    events, touched = [], None if days is None else days.utc
    with opened.replica.reading():
        segments = opened.replica.store.segments_of(scopes)
        for scope in scopes:
            if scope not in segments:
                continue
            events.append(Timeline(opened.replica, scope).events(touched, held=segments[scope]))
            for event in events[-1]:
                sources.setdefault(event_line(event), scope)
    return [
        Noted(sources[event_line(event)], event)
        for event in union_of_scopes(*events)
        if days is None or days.holds(ms_of(event["ts"], ""))
    ]


def missing(opened: VaultHandle, scopes: Sequence[str], days: LocalDays | None = None) -> int:
    """Return the number of parts of these timelines that are not on this device or damaged: `noted` lacks their events."""
    from ipfsmem.device.events import missing_of

    store = opened.replica.store
    with opened.replica.reading():
        segments = store.segments_of(scopes)
        return sum(
            missing_of(
                store,
                [one for one in segments[scope] if days is None or days.utc[0] <= one[0].day <= days.utc[1]],
            )
            for scope in scopes
            if scope in segments and not scope_forgotten(store, scope)
        )
