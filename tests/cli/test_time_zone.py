"""An unknown time zone in `TZ` is named; the system silently uses UTC for it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli_lab import Cli

pytestmark = pytest.mark.skipif(not hasattr(time, "tzset"), reason="this system sets no zone of one process")


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cli]:
    cli = Cli(tmp_path / "home", monkeypatch)
    cli.ok("init", "--mode", "local")
    yield cli
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


@pytest.mark.parametrize("zone", ["Nonsense", "Europe/Nowhere", "/no/such/file"])
def test_unknown_time_zone_prints_a_note(cli: Cli, monkeypatch: pytest.MonkeyPatch, zone: str) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    assert cli.ok("list").err == f"note: unknown time zone in TZ: {zone!r}; days and times are in UTC\n"


@pytest.mark.parametrize(
    "zone", ["", "UTC", "Europe/London", "Africa/Abidjan", "EST5EDT", "XYZ0", ":Asia/Tokyo"]
)
def test_known_time_zone_prints_nothing(cli: Cli, monkeypatch: pytest.MonkeyPatch, zone: str) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    assert cli.ok("list").err == ""
