"""Days in the user's time zone, also across clock changes; storage uses UTC."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipfsmem.device.replica import Environment
from ipfsmem.errors import UsageError
from ipfsmem.memory import Memory
from ipfsmem.vault.home import Home
from ipfsmem.wording import day_of, local_day, local_days, local_iso, local_moment, moment_of, zone_of
from tests.support.hints import Refused

pytestmark = pytest.mark.skipif(
    not hasattr(time, "tzset"), reason="this system has no way to set the zone of one process"
)
#: Zones with clock changes at night and at midnight, half hours, a skipped day, and both ends of the map.
ZONES = ("UTC", "America/Los_Angeles", "Europe/Berlin", "America/Santiago", "Asia/Tokyo", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Kiritimati", "Pacific/Apia", "Pacific/Pago_Pago")  # fmt: skip


@pytest.fixture
def machine_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Sets the time zone of this machine."""

    def set_to(zone: str) -> None:
        monkeypatch.setenv("TZ", zone)
        time.tzset()

    yield set_to
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def ms(text: str, zone: str = "UTC") -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp() * 1000)


EVENING = ms("2026-11-10T20:30:00", "America/Los_Angeles")  # 04:30 of the next UTC day
NEXT_MORNING = ms("2026-11-11T09:00:00", "America/Los_Angeles")


@given(st.sampled_from(ZONES), st.integers(ms("1971-01-01T00:00:00"), ms("2037-12-01T00:00:00")))
def test_each_time_is_in_its_local_day_and_days_are_adjacent(zone: str, at: int) -> None:
    tz = ZoneInfo(zone)
    day = datetime.fromtimestamp(at / 1000, tz).date()
    here = local_days(day.isoformat(), day.isoformat(), tz)
    assert here.holds(at) and local_day(at, tz) == day
    assert here.utc[0] <= datetime.fromtimestamp(at / 1000, UTC).date().isoformat() <= here.utc[1]
    assert 22 * 3_600_000 <= here.end - here.begin <= 26 * 3_600_000
    assert moment_of("today", at, tz) == here.begin
    assert day_of("today", at, tz) == day.isoformat() == day_of(day.isoformat(), at, tz)
    after = (day + timedelta(days=1)).isoformat()
    following = local_days(after, after, tz)
    assert here.end == following.begin
    assert following.end > following.begin or zone == "Pacific/Apia"  # 30 December 2011 was left out there


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [("America/Los_Angeles", "2026-03-08", 23), ("America/Los_Angeles", "2026-11-01", 25), ("Europe/Berlin", "2026-03-29", 23), ("Europe/Berlin", "2026-10-25", 25), ("Australia/Lord_Howe", "2026-10-04", 23.5), ("UTC", "2026-03-08", 24)],
)  # fmt: skip
def test_day_of_a_clock_change_has_its_hours(
    zone: str, day: str, hours: float, machine_in: Callable[[str], None]
) -> None:
    machine_in(zone)
    for days in (local_days(day, day), local_days(day, day, ZoneInfo(zone))):
        assert (days.end - days.begin) / 3_600_000 == hours
    noon = ms(f"{day}T12:00:00", zone)
    assert moment_of("yesterday", noon + 86_400_000) == moment_of(day, 0) == moment_of("today", noon)


def test_time_with_an_offset_is_the_same_in_every_zone(machine_in: Callable[[str], None]) -> None:
    for zone in ZONES:
        machine_in(zone)
        assert moment_of("2026-04-14T09:30:00Z", 0) == ms("2026-04-14T09:30:00")
        assert moment_of("24h", EVENING) == EVENING - 86_400_000
        assert moment_of("2026-04-14T09:30", 0) == ms("2026-04-14T09:30:00", zone)
        assert local_days("0001-01-01", "9999-12-31").holds(EVENING)
    with pytest.raises(UsageError):
        moment_of("someday", 0)
    with Refused("Give an IANA name, such as Europe/Berlin or UTC."):
        zone_of("Mars/Olympus")
    assert zone_of("Europe/Berlin") == ZoneInfo("Europe/Berlin") and zone_of("UTC") == ZoneInfo("UTC")
    assert zone_of("Asia/Tokyo") == ZoneInfo("Asia/Tokyo")


def test_shown_times_are_those_of_the_machine(machine_in: Callable[[str], None]) -> None:
    assert local_moment(EVENING) == "2026-11-11 04:30:00" and local_moment(None) == ""
    assert local_iso("2026-11-11T04:30:00.000Z") == "2026-11-11T04:30:00.000Z"
    machine_in("America/Los_Angeles")
    assert local_moment(EVENING) == "2026-11-10 20:30:00"
    assert local_iso("2026-11-11T04:30:00.000Z") == "2026-11-10T20:30:00.000-08:00"
    assert local_iso("no time") == "no time"


class Clock:
    ms = EVENING

    def __call__(self) -> int:
        return self.ms


def test_evening_in_los_angeles_belongs_to_that_day(
    tmp_path: Path, machine_in: Callable[[str], None]
) -> None:
    machine_in("America/Los_Angeles")
    clock = Clock()
    with Memory.create(
        "m", "local", home=Home(folder=tmp_path / "m", environment=Environment(clock))
    ) as memory:
        memory.write("la", "evening walk")
        memory.write("coupon", "coupon for boats", fields={"expires": "2026-11-10"})
        memory.note("walk", where="la")
        assert (memory.read("la") or pytest.fail()).file.created == "2026-11-10"
        assert "coupon" in [line.key for line in memory.recall("coupon boats").hits]
        (event,) = memory.timeline.read()
        assert event["ts"].startswith("2026-11-11T04:30")  # storage is UTC
        clock.ms = NEXT_MORNING
        assert [hit.key for hit in memory.recall("walk", since="yesterday").hits] == ["la"]
        assert not memory.recall("walk", since="today").hits
        assert memory.recall("what did I do yesterday", kind="event").moments
        assert not memory.timeline.read(since="2026-11-10", until="2026-11-10")
        for reader in (memory, memory.stack("")):
            for zone in ("local", "America/Los_Angeles"):
                assert [*reader.timeline.read(since="2026-11-10", until="2026-11-10", tz=zone)] == [event]
                assert not reader.timeline.read(since="2026-11-11", until="2026-11-11", tz=zone)


def test_morning_in_tokyo_belongs_to_that_day(tmp_path: Path, machine_in: Callable[[str], None]) -> None:
    machine_in("Asia/Tokyo")
    clock = Clock()
    clock.ms = ms("2026-11-12T08:00:00", "Asia/Tokyo")
    assert datetime.fromtimestamp(clock.ms / 1000, UTC).date() == date(2026, 11, 11)
    with Memory.create(
        "m", "local", home=Home(folder=tmp_path / "m", environment=Environment(clock))
    ) as memory:
        memory.write("tk", "morning run")
        memory.write("old", "morning swim", fields={"created": "2026-11-11", "updated": "2026-11-11"})
        assert (memory.read("tk") or pytest.fail()).file.created == "2026-11-12"
        assert memory.recall("morning run", since="today").hits
        assert memory.recall("which morning was it today").hits[0].key == "tk"
