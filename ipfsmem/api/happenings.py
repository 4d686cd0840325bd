"""The routes about what happened: events of the timeline."""

from __future__ import annotations

from collections import Counter
from datetime import UTC
from typing import Any, Final

from ipfsmem.api.bodies import (
    PAGE,
    Day,
    Days,
    EventBody,
    EventPage,
)
from ipfsmem.api.calls import Call, Reply
from ipfsmem.api.routes import Route
from ipfsmem.errors import UsageError
from ipfsmem.memories.event_search import ms_of
from ipfsmem.wording import local_day

Event = dict[str, Any]


def _found(call: Call) -> tuple[list[Event], int]:
    since, until = call.query.get("since"), call.query.get("until")
    days = (since or "0001-01-01", until or "9999-12-31") if since or until else None
    zone = call.query.get("tz") or UTC
    if call.stack:
        stack = call.whole.stack(*call.stack)
        return [one.event for one in stack.timeline(days, zone)], stack.timeline_missing(days, zone)
    return call.memory.timeline.read(days, tz=zone), call.memory.timeline.missing(days, tz=zone)


def _place(event: Event) -> str:
    return f"{event['ts']} {event.get('id', '')}"


def _events(call: Call) -> EventPage:
    found, missing = _found(call)
    kind, cursor = call.query.get("type"), call.query.get("cursor")
    fitting = [
        one for one in found if (kind is None or one["type"] == kind) and (not cursor or _place(one) < cursor)
    ]
    fitting.sort(key=_place, reverse=True)
    shown = fitting[: call.query.get("limit") or PAGE]
    more = _place(shown[-1]) if len(shown) < len(fitting) else None
    return EventPage(events=shown, next=more, missing=missing)


def _days(call: Call) -> Days:
    zone = call.query.get("tz") or UTC
    days = (local_day(ms_of(event["ts"], ""), zone) for event in _found(call)[0])
    counted = Counter(day.isoformat() for day in days if day is not None)
    return Days(days=[Day(day=day, events=number) for day, number in sorted(counted.items())])


def _note(call: Call) -> Reply:
    given: EventBody = call.body
    if clashing := {"ts", "type", "id"} & given.data.keys():
        raise UsageError(f"an event has its own {', '.join(sorted(clashing))}, so data cannot say one")
    return Reply(call.memory.note(given.type, **given.data), 201)


_DAYS: Final = ("stack", "since", "until", "tz")

ROUTES: Final = (
    Route(
        "get",
        "/v1/events",
        "timeline",
        "List events, newest first",
        _events,
        EventPage,
        query=(*_DAYS, "type", "cursor", "limit"),
    ),
    Route("get", "/v1/events/days", "days", "Count events by day", _days, Days, query=_DAYS),
    Route(
        "post",
        "/v1/events",
        "note",
        "Add an event",
        _note,
        dict,
        right="write",
        writes=True,
        body=EventBody,
        statuses=("201",),
    ),
)
