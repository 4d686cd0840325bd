"""Cost limits of one provider: time of silence, retries, requests per minute.

One `Bounds` per provider, made from its settings, covers all its requests by any sender: the HTTP client, or
obstore for buckets. It only decides and records. A sender asks before each attempt how long it may wait
(`patience`), and reports the outcome (`Attempts`, `answer_came`, `stalled`).

Provider calls are not bounded as a whole: a large upload may last while it progresses, which only its sender
sees; and whether a request may be repeated depends on it and the answer.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import msgspec

from ipfsmem_providers.http.policy import (
    PATIENCE_IN_COMPANY,
    SLOWEST,
    Outages,
    RateLimiter,
    Retry,
    Silence,
    Timeouts,
    Timing,
    in_company,
)


class Bounds:
    """The bounds of one provider over all its hosts, and their recorded state."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        *,
        retry: Retry | None = None,
        per_minute: float | None = None,
    ) -> None:
        """`settings`: `timing`, `timeouts`, `retry` and `per_minute`; the last two override the arguments.

        `company` (bool): there are other providers; `silence` (dict): shared by all Bounds of one provider.
        """
        self.timing: Timing = settings.get("timing") or Timing()
        company = bool(settings.get("company"))
        timeouts: Timeouts = settings.get("timeouts") or Timeouts()
        self._longest_stall = timeouts.stall
        self.timeouts: Timeouts = in_company(timeouts) if company else timeouts
        #: Maximum seconds of a whole listing when there are other providers, even if it progresses.
        self.listing: float | None = self.timeouts.stall + 1.0 if company else None
        self.retry: Retry = settings.get("retry") or retry or Retry()
        if settings.get("company"):
            patience = min(self.retry.patience, PATIENCE_IN_COMPANY)
            self.retry = msgspec.structs.replace(self.retry, patience=patience)
        rate = settings.get("per_minute") or per_minute
        self._limiter = RateLimiter(float(rate), timing=self.timing) if rate else None
        self._outages = Outages(self.timing)
        self._silence = Silence(self.timing, settings.get("silence"), company=company)

    def rests(self, host: Hashable) -> bool:
        """Return whether a recently silent host is left alone now: nothing is sent to it."""
        return self._outages.rests(host)

    def attempts(self, host: Hashable) -> Attempts:
        """Return the attempts of one request to a host."""
        return Attempts(host, self.retry, self.timing, self._outages, self._limiter)

    def patience(self, sent: int | None = 0) -> float:
        """Return the seconds without progress that an attempt may wait now.

        `sent`: bytes of its body, None if unknown; a service may need time for a large one before it answers.
        """
        stall = self._longest_stall
        if sent is not None:
            stall = min(stall, self.timeouts.stall + sent / SLOWEST)
        return self._silence.allowed(stall, self.timeouts.little)

    async def turn(self) -> None:
        """Wait until the rate lets one more request out."""
        if self._limiter is not None:
            await self._limiter.wait()

    def answer_came(self, began: float, ended: float) -> None:
        """Note an answer awaited between these instants (seconds of one clock). Late ones are silence when
        there are other providers."""
        self._silence.answered(began, ended, self.timeouts.little)

    def stalled(self, host: Hashable, seconds: float) -> None:
        """Note a host that accepted a request and made no progress for `seconds`. It is left alone for some minutes."""
        self._silence.add(seconds)
        self._outages.stalled(host)


class Attempts:
    """One request to one host, until it is answered or given up."""

    def __init__(
        self, host: Hashable, retry: Retry, timing: Timing, outages: Outages, limiter: RateLimiter | None
    ) -> None:
        self._host, self._retry, self._timing = host, retry, timing
        self._outages, self._limiter = outages, limiter
        self._failures = 0
        #: Seconds that the host asked to be left alone for so far.
        self._asked = 0.0

    def answered(self) -> None:
        """Note an answer of the host, a refusal or request to wait included."""
        self._outages.answered(self._host)

    def stalled(self) -> None:
        """Note a redirect target that accepted the request and fell silent: this host is left alone too."""
        self._outages.stalled(self._host)

    def failed(
        self, *, after: float | None = None, connecting: bool = False, heard: bool = False
    ) -> float | None:
        """Return the seconds to pause before the next attempt; None: give up.

        `after`: requested pause in seconds. `connecting`: the connect time-out expired, which is costlier than a refusal and counted twice.
        `heard`: the host answered nevertheless. A host that failed every attempt of a request gets one attempt per request until it answers
        again. Successive short pauses are waited for as long as a single one would be.
        """
        self._failures += 2 if connecting else 1
        self._asked += after or 0.0
        pause = self._retry.wait(self._failures, after, self._timing.random())
        if self._asked > self._retry.patience:
            pause = None
        if pause is None or self._outages.is_down(self._host):
            if not heard:
                self._outages.failed(self._host, silent=connecting)
            return None
        if after and self._limiter is not None:
            self._limiter.pause(after)
        return pause
