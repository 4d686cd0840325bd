"""The time limit of one attempt of a request: it ends an attempt whose bytes stop moving, in either direction.

Fewer than a given number of bytes within the limit count as none, so neither a service that falls silent nor one that
sends a byte now and then can hold a caller for long. Nothing here sends anything.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterable, AsyncIterator, Callable
from types import TracebackType

from ipfsmem_providers.http.body import Body
from ipfsmem_providers.http.policy import Timeouts

#: Called with "sent" or "received" and a number of bytes as they pass.
CountBytes = Callable[[str, int], None]


class StallTimeout:
    """The time-outs of one attempt: `stall` seconds until the next `drip` bytes have passed, and `total` for all of it.

    Wrap every wait for the service in `async with timeout:`, which raises TimeoutError when no time is left.
    The clock stops between waits: the caller's own work is not the service's fault.
    """

    def __init__(
        self,
        timeouts: Timeouts,
        stall: float | None,
        total: float | None,
        *,
        late_is_silence: bool = False,
    ) -> None:
        """`stall` and `total` are seconds, None for those of `timeouts`.

        `late_is_silence`: report a late answer to the provider's bounds (`Bounds.answer_came`); not for
        requests with their own `stall`.
        """
        self.late_is_silence = late_is_silence
        self._stall = stall if stall is not None else timeouts.stall
        self._drip = timeouts.drip
        self._seconds_left = self._stall
        self._bytes_since = 0
        total = total if total is not None else timeouts.total
        self._deadline = None if total is None else asyncio.get_running_loop().time() + total
        self._running: asyncio.Timeout | None = None
        self._wait_began = 0.0
        #: When the last wait began, counted from its last bytes, and when it ended; seconds of the loop's clock.
        self.last_wait = (0.0, 0.0)

    @property
    def seconds_lost(self) -> float:
        """Return the seconds without progress once `stall` is used up; 0 while time is left."""
        return self._stall if self._seconds_left <= 0 else 0.0

    def bytes_passed(self, size: int) -> None:
        """Note `size` bytes sent or received. After `drip` of them the full time is available again."""
        self._bytes_since += size
        if self._bytes_since < self._drip:
            return
        self._bytes_since = 0
        self._seconds_left = self._stall
        if self._running is not None and not self._running.expired():
            self._wait_began = asyncio.get_running_loop().time()
            with contextlib.suppress(RuntimeError):  # its time just ran out
                self._running.reschedule(self._end_of_wait(self._wait_began))

    def _end_of_wait(self, now: float) -> float:
        end = now + self._seconds_left
        return end if self._deadline is None else min(end, self._deadline)

    async def __aenter__(self) -> None:
        self._wait_began = asyncio.get_running_loop().time()
        self._running = asyncio.timeout_at(self._end_of_wait(self._wait_began))
        await self._running.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._running is not None
        running, self._running = self._running, None
        self.last_wait = (self._wait_began, asyncio.get_running_loop().time())
        self._seconds_left = max(0.0, self._seconds_left - (self.last_wait[1] - self._wait_began))
        await running.__aexit__(kind, error, trace)


class RequestBody:
    """A request's body while being sent. Reports its bytes to the timeout and to `count`.

    `data` is what aiohttp sends. `error` is an exception of the caller's own code while producing it, if any.
    """

    def __init__(
        self,
        body: bytes | Body | AsyncIterable[bytes] | None,
        headers: dict[str, str],
        timeout: StallTimeout,
        count: CountBytes,
    ) -> None:
        """Add type and length of a `Body` to the request's `headers`."""
        self.error: Exception | None = None
        self._timeout = timeout
        self._count = count
        self.data: bytes | AsyncIterator[bytes] | None = None
        if isinstance(body, bytes):
            self.data = body
            count("sent", len(body))
        elif isinstance(body, Body):
            headers.setdefault("Content-Type", body.content_type)
            headers["Content-Length"] = str(body.size)
            self.data = self._pieces(body.pieces())
        elif body is not None:
            self.data = self._pieces(body)

    async def _pieces(self, pieces: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
        try:
            async for piece in pieces:
                yield piece
                self._timeout.bytes_passed(len(piece))
                self._count("sent", len(piece))
        except Exception as error:
            self.error = error
            raise
