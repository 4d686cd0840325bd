"""The time of the next background sync."""

from __future__ import annotations

import math

import pytest

from ipfsmem.errors import (
    ConfigError,
    LockedError,
    NoVaultError,
    ProviderRefused,
    ProviderUnavailable,
    SecretsError,
    StorageError,
    UsageError,
)
from ipfsmem.sync.schedule import Pace, may_pass


def test_first_sync_is_immediate_and_later_ones_regular() -> None:
    pace = Pace(30, 600, 300, 1000)
    assert pace.due() == 1000
    pace.begins()
    pace.worked(1007)
    assert pace.due() == 1307


def test_only_writes_cause_a_sync_without_an_interval() -> None:
    pace = Pace(30, 600, None, 1000)
    assert pace.due() is None
    pace.wrote(1010)
    assert pace.due() == 1040
    pace.begins()
    pace.worked(1041)
    assert pace.due() is None


def test_idle_time_and_maximum_delay_start_at_the_last_and_first_write() -> None:
    pace = Pace(30, 100, None, 0)
    for now in range(0, 90, 10):
        pace.wrote(now)
        assert pace.due() == min(now + 30, 100)
    pace.wrote(95)
    assert pace.due() == 100


def test_write_during_a_sync_waits_for_the_next() -> None:
    pace = Pace(30, 600, None, 0)
    pace.wrote(0)
    pace.begins()
    pace.wrote(31)
    pace.worked(40)
    assert pace.due() == 61


def test_write_makes_the_next_sync_earlier_and_never_later() -> None:
    pace = Pace(30, 600, 300, 0)
    pace.begins()
    pace.worked(0)
    pace.wrote(10)
    assert pace.due() == 40
    pace.wrote(290)
    assert pace.due() == 300


def test_edit_of_a_file_is_synced_a_fifth_of_a_second_after_the_first() -> None:
    pace = Pace(30, 600, None, 1000)
    pace.edited(1010)
    pace.edited(1010.1)
    assert pace.due() == 1010.2
    pace.begins()
    pace.worked(1011)
    assert pace.due() is None


@pytest.mark.parametrize(("took", "rest"), [(0.0, 0.5), (0.25, 0.5), (3.0, 6.0)])
def test_edit_after_a_sync_waits_twice_as_long_as_that_took(took: float, rest: float) -> None:
    pace = Pace(30, 600, None, 1000)
    pace.worked(1000, took)
    pace.edited(1000)
    assert pace.due() == 1000 + rest
    pace.edited(1000 + rest)
    pace.begins()
    pace.edited(1100)
    assert pace.due() == 1100.2  # the pause is over by then


def test_outages_double_the_delay_up_to_a_cap_regardless_of_writes() -> None:
    pace = Pace(30, 600, 300, 0)
    now, waits = 0.0, []
    for _ in range(8):
        pace.begins()
        pace.failed(now)
        pace.wrote(now)
        due = pace.due()
        assert due is not None
        waits.append(due - now)
        now = due
    assert waits == [30, 60, 120, 240, 480, 600, 600, 600]
    pace.begins()
    pace.worked(now)
    assert pace.due() == now + 300
    pace.failed(now)
    assert pace.due() == now + 30  # a successful sync resets the count


def test_outage_is_retried_also_without_an_interval() -> None:
    pace = Pace(30, 600, None, 0)
    pace.wrote(0)
    pace.begins()
    pace.failed(35)
    assert pace.due() == 65


def test_delay_never_becomes_zero_or_infinite() -> None:
    pace = Pace(0, 0, 0.001, 0)
    for _ in range(5000):
        pace.failed(0)
        assert pace.due() == 1.0
    pace = Pace(1, 1e9, 5, 0)
    for _ in range(5000):
        pace.failed(0)
    assert pace.due() == 1e9


@pytest.mark.parametrize(
    ("idle", "most", "every", "named"),
    [
        (-1, 1, 1, "idle"), (1, -1, 1, "most"), (1, 1, 0, "every"), (1, 1, -5, "every"), (math.nan, 1, 1, "idle"),
        (1, math.inf, 1, "most"), (1, 1, math.inf, "every"),
    ],
)  # fmt: skip
def test_invalid_times_are_refused_by_name(idle: float, most: float, every: float, named: str) -> None:
    with pytest.raises(UsageError, match=f"^{named} must be a number of seconds"):
        Pace(idle, most, every, 0)


def test_transient_errors_are_those_worth_a_retry() -> None:
    assert may_pass(ProviderUnavailable("x")) and may_pass(LockedError("x"))
    for error in (
        ProviderRefused("x"), NoVaultError("x"), SecretsError("x"), ConfigError("x"), StorageError("x"), ValueError("x")
    ):  # fmt: skip
        assert not may_pass(error), error
