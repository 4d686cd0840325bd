"""Pages of the timeline: every event once, whatever its scope, time and ID."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from ipfsmem.device.events import Timeline
from ipfsmem.device.writing import writing
from ipfsmem.errors import UsageError
from ipfsmem.memory import Memory
from ipfsmem.operations.timeline import EventPage

TIMES = ("2026-11-10T10:00:00.000Z", "2026-11-10T10:00:00.000Z", "2026-11-11T10:00:00.000Z")


@pytest.fixture
def memory() -> Iterator[Memory]:
    """Two scopes whose events have the same ids and times, one id with 10,000 characters."""
    with Memory.load("alex", "none") as memory:
        for scope in ("", "work"):
            lines = [
                {"ts": ts, "type": "seen", "id": id, "in": scope}
                for ts, id in zip(TIMES, ("first", "x" * 10_000, "last"), strict=True)
            ]
            with writing(memory.replica) as change:
                Timeline(memory.replica, scope).add_lines(change, lines)
        yield memory


def pages(memory: Memory, limit: int, **asked: str) -> list[EventPage]:
    found = [memory.stack("work").timeline.read(limit=limit, **asked)]  # type: ignore[arg-type]
    while (cursor := found[-1].next) is not None:
        assert len(cursor) <= 64
        found.append(memory.stack("work").timeline.read(limit=limit, cursor=cursor, **asked))  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5])
def test_pages_have_every_event_once(memory: Memory, limit: int) -> None:
    whole = memory.stack("work").timeline.read()
    assert len(whole) == 6 and whole.next is None
    assert [event["in"] for event in whole] == [*whole.scopes]
    assert [event["ts"] for event in whole] == sorted(event["ts"] for event in whole)
    read = pages(memory, limit)
    assert all(len(page) == limit for page in read[:-1])
    assert [event for page in reversed(read) for event in page] == [*whole]
    newest = [event for page in pages(memory, limit, order="newest") for event in page]
    assert newest == [*reversed(whole.events)]


def test_page_continues_when_its_last_event_is_gone(memory: Memory) -> None:
    first = memory.stack("work").timeline.read(limit=4)
    memory.scopes.forget("work")
    after = memory.stack().timeline.read(cursor=first.next)
    assert {event["id"][:5] for event in after} == {"first", "xxxxx"}


@pytest.mark.parametrize("cursor", ["x", "2026-11-10T10:00:00.000Z", "2026-11-10 0123456789abcdef"])
def test_foreign_cursor_is_refused(memory: Memory, cursor: str) -> None:
    with pytest.raises(UsageError, match="cursor is invalid"):
        memory.timeline.read(cursor=cursor)


def test_days_are_counted_in_a_time_zone(memory: Memory) -> None:
    assert [(one.day, one.events) for one in memory.timeline.days()] == [("2026-11-10", 2), ("2026-11-11", 1)]
    east = memory.timeline.days(tz="Pacific/Kiritimati")
    assert [one.day for one in east] == ["2026-11-11", "2026-11-12"]
    assert all(
        one.day < two.day for one, two in pairwise(memory.stack("work").timeline.days(since="2026-11-01"))
    )
    assert sum(one.events for one in memory.stack("work").timeline.days(until="2026-11-10")) == 4
