"""The routes about what happened and what was said: events of the timeline, and sessions."""

from __future__ import annotations

from collections import Counter
from datetime import UTC
from typing import Any, Final

import msgspec

from ipfsmem.api.bodies import (
    PAGE,
    Day,
    Days,
    EventBody,
    EventPage,
    Messages,
    SearchBody,
    SessionHits,
)
from ipfsmem.api.calls import Call, Download, Reply
from ipfsmem.api.routes import Route
from ipfsmem.errors import NotFoundError, StorageError, UsageError
from ipfsmem.memories.moments import ms_of
from ipfsmem.operations.sessions.list import SessionProblem
from ipfsmem.results import (
    SessionApproved,
    SessionCompacted,
)
from ipfsmem.sessions.compaction import Told, marked
from ipfsmem.sessions.transcript import as_markdown
from ipfsmem.wording import local_day, moment

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


# -- sessions ------------------------------------------------------------------------------------------------


def _told(call: Call) -> Told:
    found = call.memory.sessions.told(call.query["session"])
    if not any(one.session == call.query["session"] for one in call.memory.sessions.known()):
        raise NotFoundError(f"there is no session {call.query['session'][:60]!a}")
    return found


def _items(call: Call) -> Reply:
    seen = call.memory.sessions.seen(call.query["session"])
    shown = marked(_told(call), call.query.get("last"))
    return Reply(Messages(session=call.query["session"], items=shown), seen=seen)


def _resume(call: Call) -> Messages:
    _told(call)
    name = call.query["session"]
    return Messages(session=name, items=call.memory.sessions.resume(name, call.query.get("last")))


def _export(call: Call) -> Download:
    form = call.query.get("format", "markdown")
    if form not in _FORMS:
        raise UsageError(f"a session is written as {' or '.join(_FORMS)}, not as {form[:40]!r}")
    found, (kind, suffix) = _told(call), _FORMS[form]
    if form == "json":
        data = msgspec.json.encode(marked(found))
    else:
        data = as_markdown(found, moment).encode("utf-8", "replace")
    return Download(data, kind, f"session.{suffix}")


def _search(call: Call) -> SessionHits:
    asked: SearchBody = call.body
    problems: dict[str, StorageError] = {}
    zone = call.query.get("tz")
    hits = call.memory.sessions.search(asked.query, asked.limit, problems=problems, zone=zone)
    damaged = [
        SessionProblem(session=name, detail=str(error), hint=error.hint, seen=call.memory.sessions.seen(name))
        for name, error in problems.items()
    ]
    return SessionHits(hits=hits, problems=damaged)


def _compact(call: Call) -> SessionCompacted:
    _told(call)
    name = call.query["session"]
    return SessionCompacted(
        session=name, covered=call.memory.sessions.compact(name, now=bool(call.query.get("all")))
    )


def _approve(call: Call) -> SessionApproved:
    """An import, which makes texts the person's own too, takes the same right; a token for an agent's program has a lower one."""
    name = call.query["session"]
    _told(call)
    found = call.memory.promote_session(name, seen=call.seen)
    return SessionApproved(session=name, messages=sum(one.messages for one in found))


_ONE: Final = "/v1/sessions/{session}"
_DAYS: Final = ("stack", "since", "until", "tz")
_FORMS: Final = {"markdown": ("text/markdown", "md"), "json": ("application/json", "json")}

ROUTES: Final = (
    Route(
        "get",
        "/v1/events",
        "timeline",
        "What happened, the newest first",
        _events,
        EventPage,
        query=(*_DAYS, "type", "cursor", "limit"),
    ),
    Route("get", "/v1/events/days", "days", "On which days how much happened", _days, Days, query=_DAYS),
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
    Route(
        "post",
        "/v1/sessions/search",
        "search_sessions",
        "Find what was said",
        _search,
        SessionHits,
        query=("tz",),
        body=SearchBody,
        led=True,
    ),
    Route(
        "get",
        _ONE + "/items",
        "session_items",
        "All messages of a session",
        _items,
        Messages,
        query=("last",),
        led=True,
        tagged=True,
    ),
    Route(
        "get",
        _ONE + "/resume",
        "resume_session",
        "What an agent goes on with",
        _resume,
        Messages,
        query=("last",),
        led=True,
    ),
    Route(
        "get",
        _ONE + "/export",
        "export_session",
        "All of a session, as Markdown or as the JSON list of its messages",
        _export,
        bytes,
        query=("format",),
        gives=tuple(kind for kind, _ in _FORMS.values()),
        led=True,
    ),
    Route(
        "post",
        _ONE + "/compact",
        "compact_session",
        "Let a summary stand for what was said longer ago",
        _compact,
        SessionCompacted,
        right="write",
        writes=True,
        query=("all",),
    ),
    Route(
        "post",
        _ONE + "/approve",
        "approve_session",
        "Make the imported messages of a session your own word",
        _approve,
        SessionApproved,
        right="admin",
        writes=True,
        seen=True,
        description="A person's act: agents are given these messages from then on. Read them first; `If-Match` says what was read.",
    ),
)
