"""Polling intervals: they double up to a limit, and their sum is at most the timeout."""

from __future__ import annotations

import asyncio

import pytest
from ipfsmem_providers.http.polling import FIRST, LONGEST, Polling

from tests.servers.clockwork import Clockwork


def pauses(patience: float, *, at_once: bool = False) -> tuple[list[float], int]:
    work = Clockwork()

    async def body() -> int:
        polling = Polling(work.timing, patience, at_once=at_once)
        looks = 0
        while await polling.pause():
            looks += 1
        assert not await polling.pause()
        assert polling.waited == sum(work.pauses)
        return looks

    looks = asyncio.run(body())
    return work.pauses, looks


def test_intervals_double_up_to_a_limit_within_the_timeout() -> None:
    slept, looks = pauses(60)
    assert slept == [0.125, 0.25, 0.5, 1, 2, 4, 8, 10, 10, 10, 10, 4.125]
    assert sum(slept) == 60 and looks == len(slept)
    assert (slept[0], max(slept)) == (FIRST, LONGEST)


def test_immediate_first_poll_has_no_pause() -> None:
    slept, looks = pauses(1, at_once=True)
    assert slept == [0.125, 0.25, 0.5, 0.125] and looks == 5


@pytest.mark.parametrize("patience", [0, -1])
def test_zero_timeout_polls_at_most_once(patience: float) -> None:
    assert pauses(patience) == ([], 0)
    assert pauses(patience, at_once=True) == ([], 1)


@pytest.mark.parametrize("patience", [0.1, 20, 30, 89.9, 180])
def test_intervals_add_up_to_the_timeout(patience: float) -> None:
    assert sum(pauses(patience)[0]) == pytest.approx(patience)
