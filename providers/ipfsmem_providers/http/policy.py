"""Policies of HTTP providers: retries, waits, requests per minute. Pure; time, sleep and chance come from `Timing`."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Hashable
from email.utils import parsedate_to_datetime
from typing import NamedTuple

import msgspec

from ipfsmem.errors import UsageError


class Timing(NamedTuple):
    """The clock, sleep and chance that policies use."""

    now: Callable[[], float] = time.monotonic  #: seconds, only differences count
    wall: Callable[[], float] = time.time  #: seconds since 1970 UTC, for Retry-After dates
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = random.random  #: 0 <= x < 1


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """How long one attempt may take, in seconds."""

    connect: float = 15.0  #: until connected, TLS included
    #: Without progress. Less than `drip` bytes in this time is no progress, so a slow drip ends too.
    stall: float = 60.0
    drip: int = 1024
    total: float | None = None  #: one attempt in all; None: as long as it makes progress
    #: Maximum wait for anything from a provider that has used up its wait. A later answer is waiting.
    little: float = 5.0


#: Bytes a second that even a slow connection moves.
SLOWEST = 64 * 1024


def in_company(timeouts: Timeouts) -> Timeouts:
    """Return the same for a provider among others: nobody should wait long for what another can provide."""
    return msgspec.structs.replace(
        timeouts, connect=min(timeouts.connect, 3.5), stall=min(timeouts.stall, 7.0)
    )


class Retry(msgspec.Struct, frozen=True, kw_only=True):
    """Exponential backoff with jitter: the n-th wait is `first` * 2^n, at most `most`, times 0.5 to 1 by chance."""

    attempts: int = 4  #: in all; 1 never tries again
    first: float = 0.5
    most: float = 20.0
    #: A longer requested pause (Retry-After) is not waited for: the error states it.
    patience: float = 90.0

    def wait(self, failures: int, retry_after: float | None, chance: float) -> float | None:
        """Return the seconds to wait after the `failures`-th failure (1 is the first); None: give up."""
        if failures >= self.attempts:
            return None
        own = min(self.most, self.first * 2.0 ** min(failures - 1, 60)) * (0.5 + chance / 2)
        if retry_after is None:
            return own
        if retry_after > self.patience:
            return None
        # Jitter on top: all devices that were turned away at once must not come back at once.
        return retry_after + own


#: Never try again.
ONCE = Retry(attempts=1)
#: How long a host that was silent to every attempt to connect is left alone, in seconds.
REST = 60.0
#: The same for one that took a request and fell silent: each try costs a whole wait, and a sync makes many calls.
REST_AFTER_STALL = 300.0


#: Maximum requested pause in seconds that is waited for when there are other providers.
PATIENCE_IN_COMPANY = 5.0


class Outages:
    """Services that failed all attempts of a call. Until one answers again, each call tries it once, without
    pauses: a sync makes many calls, and one dead service of several must not delay it by the pauses of each.

    A host on which connect attempts time out costs much more than a refusing one, so it is not called at all
    for `REST` seconds.
    """

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._until: dict[Hashable, float] = {}

    def is_down(self, service: Hashable) -> bool:
        """Return whether it failed a whole call and has not answered since."""
        return service in self._until

    def rests(self, service: Hashable) -> bool:
        """Return whether it is left alone for now."""
        return self._until.get(service, 0.0) > self._timing.now()

    def failed(self, service: Hashable, *, silent: bool) -> None:
        """Note that all attempts of a call failed; `silent`: without even a refusal."""
        now = self._timing.now()
        self._until[service] = max(self._until.get(service, now), now + REST if silent else now)

    def stalled(self, service: Hashable) -> None:
        """Note that it accepted a request and then made no progress until the time-out."""
        self._until[service] = self._timing.now() + REST_AFTER_STALL

    def answered(self, service: Hashable) -> None:
        """Note that it is back."""
        self._until.pop(service, None)


class Silence:
    """The bound of a provider's total silence over all its hosts: once used up, its hosts get a little each,
    until left alone for a while.

    `kept` is shared by the sessions of one provider. With other providers (`company`) late answers are
    included, since nobody needs to wait for them: others have the data, and uploads are made up for later. A
    sole provider may be slow.
    """

    def __init__(
        self, timing: Timing, state: dict[str, float] | None = None, *, company: bool = False
    ) -> None:
        self._timing = timing
        self._kept = state if state is not None else {}
        self._company = company

    def allowed(self, stall: float, little: float = Timeouts().little) -> float:
        """Return the seconds without progress that may be waited now, of `stall` in total."""
        if self._kept.get("until", 0.0) <= self._timing.now():
            return stall
        return max(min(little, stall), stall - self._kept.get("spent", 0.0))

    def add(self, seconds: float) -> None:
        """Note `seconds` of waiting in vain."""
        now = self._timing.now()
        spent = self._kept.get("spent", 0.0) if self._kept.get("until", 0.0) > now else 0.0
        self._kept["spent"], self._kept["until"] = spent + seconds, now + REST_AFTER_STALL

    def answered(self, began: float, ended: float, little: float) -> None:
        """Note an answer awaited between these instants of one clock; concurrent waits are counted once."""
        if not self._company or ended - began <= little:
            return
        began = max(began, self._kept.get("counted", began))
        if ended > began:
            self._kept["counted"] = ended
            self.add(ended - began)


#: A number of seconds with more than nine digits: do not retry in this run.
_LONGEST_PAUSE = 999_999_999.0


def retry_after(header: str | None, wall: float) -> float | None:
    """Return the seconds of a Retry-After header (a number or an HTTP date); None when absent or invalid."""
    if not header:
        return None
    text = header.strip()
    if text.isascii() and text.isdigit():
        return float(text) if len(text) < 10 else _LONGEST_PAUSE
    try:
        when = parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
    return max(0.0, when - wall)


class RateLimiter:
    """A token bucket: at most `burst` requests at once, and `per_minute` in any minute.

    Tokens are granted in order of request; usable from several tasks.
    """

    def __init__(self, per_minute: float, burst: int | None = None, timing: Timing | None = None) -> None:
        """`burst` defaults to a sixth of a minute's requests, at least one."""
        if not per_minute > 0:
            raise UsageError(f"a rate of {per_minute} requests a minute blocks every request")
        self._timing = timing or Timing()
        self._most = float(max(1, burst if burst is not None else int(per_minute / 6)))
        # The burst is included: services count the requests of a minute.
        self._gap = 60.0 / (per_minute - self._most if self._most < per_minute else per_minute)
        self._tokens = self._most
        self._filled = self._timing.now()

    async def wait(self) -> float:
        """Wait for a token; return the seconds waited."""
        now = self._timing.now()
        self._tokens = min(self._most, self._tokens + max(0.0, now - self._filled) / self._gap)
        self._filled = now
        self._tokens -= 1  # below zero: tokens promised to sleepers
        if self._tokens >= 0:
            return 0.0
        pause = -self._tokens * self._gap
        await self._timing.sleep(pause)
        return pause

    def pause(self, seconds: float) -> None:
        """Block all requests for some seconds, as the service demanded."""
        self._tokens = min(self._tokens, 1 - seconds / self._gap)
