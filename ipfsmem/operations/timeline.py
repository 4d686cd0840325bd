"""The operations on the timeline of a scope: add an event, read the events, and count them by day."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from ipfsmem.errors import UsageError
from ipfsmem.operation import Cli, Except, ForModels, Http, Items, Stored, View, operation
from ipfsmem.operations.events import Noted, add_event, days_between, missing, noted

if TYPE_CHECKING:
    from datetime import tzinfo

#: Default and maximum events of a page.
PAGE = 100
MAX_PAGE = 1_000
#: The argument `tz` for the time zone of this machine.
_HERE = "local"

Since = Annotated[
    str | None,
    Meta(min_length=1, max_length=64, description="First day: 2026-04-14, yesterday, 7d."),
    Cli(metavar="DAY", moment=True),
]
Until = Annotated[
    str | None,
    Meta(min_length=1, max_length=64, description="Last day, inclusive."),
    Cli(metavar="DAY", moment=True),
]
Zone = Annotated[
    str | None,
    Meta(
        min_length=1,
        max_length=64,
        description="Time zone of the days, such as America/Los_Angeles, or `local` for that of the machine; UTC without one.",
    ),
    Except(("cli",)),
]
RAISES = ("UsageError: a day, the time zone or `cursor` is invalid.",)


class EventPage(Items[dict[str, Any]], frozen=True, kw_only=True):
    """All events that match, or a page of them. It is a sequence of its `events`."""

    events: tuple[dict[str, Any], ...]
    #: The scope of each event, in the same order.
    scopes: tuple[str, ...]
    #: The `cursor` of the page of older events; None after the last page.
    next: str | None
    #: Number of pieces of the timeline that are not on this device, or damaged: their events are not listed.
    missing: int


class EventDay(msgspec.Struct, frozen=True, kw_only=True):
    """A day, such as 2026-11-23, in the time zone of the call, and its number of events."""

    day: str
    events: int


class EventDays(Items[EventDay], frozen=True, kw_only=True):
    """The days with events, the first day first. It is a sequence of its `days`."""

    days: tuple[EventDay, ...]
    #: Number of pieces of the timeline that are not on this device, or damaged: their events are not counted.
    missing: int


@operation(
    name="timeline.read",
    summary="Show the timeline",
    right="read",
    about="stack",
    raises=RAISES,
    command="timeline show",
    http="GET /v1/events",
)
def read(
    view: View,
    *,
    since: Since = None,
    until: Until = None,
    tz: Zone = None,
    type: Annotated[
        str | None, Meta(min_length=1, max_length=200, description="Only events of this type.")
    ] = None,
    limit: Annotated[
        int | None,
        Meta(ge=1, le=MAX_PAGE, description="Maximum number of events: the newest ones."),
        Cli(metavar="N"),
        Http(default=PAGE),
    ] = None,
    cursor: Annotated[
        str | None,
        Meta(max_length=64, description="Only older events: `next` of the previous page."),
    ] = None,
    order: Annotated[
        Literal["oldest", "newest"],
        Meta(description="Whether the oldest or the newest event of the page is first."),
        Except(("cli",)),
        Http(default="newest"),
    ] = "oldest",
) -> EventPage:
    """Show the events of all devices.

    With `limit`, a page has the newest events; `cursor` continues with older ones.
    """
    events, lost = _events_of(view, since, until, _zone(tz))
    entries = [one for one in reversed(events) if type is None or one.event["type"] == type]
    begin = 0 if not cursor else _after(entries, cursor)
    shown = entries[begin:] if limit is None else entries[begin : begin + limit]
    more = _mark(shown[-1]) if shown and begin + len(shown) < len(entries) else None
    if order == "oldest":
        shown.reverse()
    return EventPage(
        events=tuple(one.event for one in shown),
        scopes=tuple(one.scope for one in shown),
        next=more,
        missing=lost,
    )


@operation(
    name="timeline.days",
    summary="Count events by day",
    right="read",
    about="stack",
    raises=("UsageError: a day or the time zone is invalid.",),
    command="",
    http="GET /v1/events/days",
)
def days(view: View, *, since: Since = None, until: Until = None, tz: Zone = None) -> EventDays:
    """Count the events of each day."""
    from collections import Counter

    from ipfsmem.memories.event_search import ms_of
    from ipfsmem.wording import local_day

    zone = _zone(tz)
    events, lost = _events_of(view, since, until, zone)
    each = (local_day(ms_of(one.event["ts"], ""), zone) for one in events)
    counted = Counter(day.isoformat() for day in each if day is not None)
    return EventDays(
        days=tuple(EventDay(day=day, events=number) for day, number in sorted(counted.items())),
        missing=lost,
    )


@operation(
    name="timeline.add",
    summary="Add an event",
    right="write",
    about="target",
    raises=(
        "UsageError: the type is empty or the program's own, or `data` has a ts, type or id.",
        "LimitError: the event has more than 64 KiB.",
        "StorageError: it cannot be stored.",
    ),
    audit="note",
    http="POST /v1/events",
    status=201,
    tool="note",
    title="Note an event",
    for_models="Add an event to the timeline: something that happened (a release, a decision taken, a task done), with its time. For "
    "a lasting fact use remember.",
    less_for_models="The model knows the text that it passed, and each word costs tokens.",
)
def add(
    view: View,
    type: Annotated[
        str,
        Stored(),
        Meta(min_length=1, description="Type of the event, such as decision."),
        ForModels("Kind of event, one word of your own, such as decision.", most=64),
    ],
    data: Annotated[
        Mapping[str, Any] | None,
        Meta(description="Its fields by name."),
        ForModels("Further fields by name."),
        Except(("cli",)),
    ] = None,
) -> dict[str, Any]:
    """Add an event to the timeline. It is durable when this returns."""
    from ipfsmem.bundle.program_events import check_kind

    if not type.strip():
        raise UsageError("the type of the event is empty, so nothing was added")
    check_kind(type)
    return add_event(view.opened, view.target, type, data or {})


def _events_of(
    view: View, since: str | None, until: str | None, zone: tzinfo | None
) -> tuple[list[Noted], int]:
    """The events of some days, oldest first, and the number of missing pieces of these days."""
    days = days_between(view.opened, since, until, zone)
    return noted(view.opened, view.scopes, days), missing(view.opened, view.scopes, days)


def _zone(tz: str | None) -> tzinfo | None:
    from datetime import UTC

    from ipfsmem.wording import zone_of

    if tz is None:
        return UTC
    return None if tz == _HERE else zone_of(tz)


def _mark(one: Noted) -> str:
    """The cursor of an event: its time, and a hash, as an ID is unique only in its scope and has any length."""
    import hashlib

    from ipfsmem.bundle.timeline import event_line, normal_ts

    digest = hashlib.sha256(event_line(one.event) + b"\0" + one.scope.encode()).hexdigest()
    return f"{normal_ts(one.event['ts'])} {digest[:16]}"


def _after(entries: list[Noted], cursor: str) -> int:
    """The place of the first event after that of a cursor, newest first. If the event is gone, those of its time are shown again."""
    from ipfsmem.bundle.timeline import normal_ts

    ts, _, _ = cursor.partition(" ")
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z [0-9a-f]{16}", cursor, re.ASCII):
        raise UsageError("cursor is invalid: pass `next` of a page")
    same = [at for at, one in enumerate(entries) if normal_ts(one.event["ts"]) == ts]
    at = next((at for at in same if _mark(entries[at]) == cursor), None)
    if at is not None:
        return at + 1
    return sum(normal_ts(one.event["ts"]) > ts for one in entries)
