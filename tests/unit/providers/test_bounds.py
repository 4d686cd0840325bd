"""The limits of one provider: a host that hangs, fails, asks to wait or answers late, and a sync that keeps
calling it.

tests/unit/providers/test_sick_providers.py tests each provider over its own protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Literal

import pytest
from ipfsmem_providers.http.bounds import Bounds
from ipfsmem_providers.http.policy import REST, REST_AFTER_STALL

from tests.servers.clockwork import Clockwork

Mood = Literal["well", "hangs", "fails", "takes no connection", "asks to wait", "late"]
#: Seconds of a `late` answer: less than the timeout, more than a normal answer.
LATE = 12.0


class Sender:
    """Sends requests to hosts with some behaviour, as the HTTP client and the buckets do, on its own
    clock."""

    def __init__(self, mood: Mood, **settings: Any) -> None:
        self.work = Clockwork()
        self.mood = mood
        self.sent: list[str] = []  # the host of each attempt
        self.bounds = Bounds({"timing": self.work.timing, **settings})
        self._now = self.work.timing.now

    def ask(self, host: str = "a") -> str:
        """Return the outcome of one request: `answered`, `rests`, `stalled` or `given up`."""
        return asyncio.run(self._ask(host))

    def spend(self, requests: int, host: str = "a") -> float:
        """Return the seconds of consecutive requests."""
        began = self._now()
        for _ in range(requests):
            self.ask(host)
        return self._now() - began

    async def _ask(self, host: str) -> str:
        if self.bounds.rests(host):
            return "rests"
        attempts = self.bounds.attempts(host)
        while True:
            await self.bounds.turn()
            patience, began = self.bounds.patience(), self._now()
            self.sent.append(host)
            pause = None
            if self.mood in ("well", "late") and (self.mood == "well" or patience >= LATE):
                self.work.clock.advance(LATE if self.mood == "late" else 0.01)
                self.bounds.answer_came(began, self._now())
                attempts.answered()
                return "answered"
            if self.mood in ("hangs", "late"):
                self.work.clock.advance(patience)
                self.bounds.stalled(host, patience)
                return "stalled"
            if self.mood == "takes no connection":
                self.work.clock.advance(self.bounds.timeouts.connect)
                pause = attempts.failed(connecting=True)
            elif self.mood == "asks to wait":
                attempts.answered()
                pause = attempts.failed(after=30.0, heard=True)
            else:
                pause = attempts.failed()
            if pause is None:
                return "given up"
            await self.work.timing.sleep(pause)


def test_silent_host_costs_one_timeout_and_is_then_skipped() -> None:
    sender = Sender("hangs")
    assert sender.ask() == "stalled" and sender.spend(1_000) == 0
    assert (sender.sent, sender.ask()) == (["a"], "rests")
    sender.work.clock.advance(REST_AFTER_STALL)
    sender.mood = "well"
    assert sender.ask() == "answered" and sender.bounds.patience() == sender.bounds.timeouts.stall


def test_all_hosts_of_one_provider_share_one_wait() -> None:
    """However many hosts it has, and in whatever sessions."""
    shared: dict[str, float] = {}
    first = Sender("hangs", silence=shared)
    limits = first.bounds.timeouts
    assert first.spend(10, "a") == limits.stall
    assert [first.spend(10, host) for host in "bcd"] == [limits.little] * 3
    second = Bounds({"timing": first.work.timing, "silence": shared})
    assert second.patience() == limits.little and not second.rests("e")


def test_failing_host_is_retried_a_few_times_and_then_once_per_request() -> None:
    sender = Sender("fails")
    assert sender.ask() == "given up" and len(sender.sent) == sender.bounds.retry.attempts
    assert sender.work.pauses == [0.5, 1.0, 2.0]
    assert sender.spend(1_000) == 0 and len(sender.sent) == 1_000 + sender.bounds.retry.attempts
    sender.mood = "well"
    assert sender.ask() == "answered"
    sender.mood, sender.sent = "fails", []
    assert sender.ask() == "given up" and len(sender.sent) == sender.bounds.retry.attempts


def test_host_that_refuses_connections_costs_two_attempts_and_rests() -> None:
    sender = Sender("takes no connection")
    assert sender.ask() == "given up" and len(sender.sent) == 2
    assert sender.ask() == "rests"
    sender.work.clock.advance(REST)
    sender.sent = []
    assert sender.ask() == "given up" and len(sender.sent) == 1


def test_host_that_asks_to_wait_is_not_marked_as_down() -> None:
    sender = Sender("asks to wait", per_minute=60)
    assert sender.ask() == "given up"
    asked = [pause for pause in sender.work.pauses if pause >= 30]
    assert len(sender.sent) == sender.bounds.retry.attempts and len(asked) >= 3
    sender.mood, sender.sent = "fails", []
    assert sender.ask() == "given up" and len(sender.sent) == sender.bounds.retry.attempts


@pytest.mark.parametrize(
    ("company", "check"),
    [
        (False, lambda took, limits: took == 100 * LATE),  # alone it may take its time
        (True, lambda took, limits: took <= limits.stall + LATE),
    ],
    ids=["alone", "beside others"],
)
def test_late_answers_count_as_failures_next_to_other_providers(
    company: bool, check: Callable[[float, Any], bool]
) -> None:
    sender = Sender("late", company=company)
    assert check(sender.spend(100), sender.bounds.timeouts)


def test_rate_limit_holds_for_failed_requests_too() -> None:
    sender = Sender("well", per_minute=60)
    assert sender.spend(600) >= 9 * 60
