"""Watches whether a request makes progress, in either direction.

Fewer than some bytes in a minute are no progress, so neither a service that falls silent nor one that drips can hold a caller for
long. Nothing here sends anything.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterable, AsyncIterator, Callable
from types import TracebackType

from ipfsmem_providers.http.body import Body
from ipfsmem_providers.http.policy import Timeouts

#: Called with "sent" or "received" and a number of bytes as they pass.
Progress = Callable[[str, int], None]


class Budget:
    """The seconds that one attempt may wait: `stall` until the next `drip` bytes have passed, and a deadline for all.

    Wait inside `async with budget`, which raises TimeoutError when nothing is left.
    """

    def __init__(
        self, timeouts: Timeouts, stall: float | None, total: float | None, *, counts: bool = False
    ) -> None:
        """`counts`: the wait is an ordinary one, so that a long one says that the service is slow."""
        self.counts = counts
        self._stall = stall if stall is not None else timeouts.stall
        self._drip = timeouts.drip
        self._left = self._stall
        self._since = 0
        total = total if total is not None else timeouts.total
        self._deadline = None if total is None else asyncio.get_running_loop().time() + total
        self._running: asyncio.Timeout | None = None
        self._began = 0.0
        #: When the last wait began, counted from its last progress, and when it ended; by the loop's clock.
        self.idle = (0.0, 0.0)

    @property
    def stalled(self) -> float:
        """Seconds that were waited in vain; 0 while there is time left."""
        return self._stall if self._left <= 0 else 0.0

    def moved(self, size: int) -> None:
        """`size` bytes passed. After `drip` bytes the full time is available again."""
        self._since += size
        if self._since < self._drip:
            return
        self._since = 0
        self._left = self._stall
        if self._running is not None and not self._running.expired():
            self._began = asyncio.get_running_loop().time()
            with contextlib.suppress(RuntimeError):  # its time just ran out
                self._running.reschedule(self._until(self._began))

    def _until(self, now: float) -> float:
        until = now + self._left
        return until if self._deadline is None else min(until, self._deadline)

    async def __aenter__(self) -> None:
        self._began = asyncio.get_running_loop().time()
        self._running = asyncio.timeout_at(self._until(self._began))
        await self._running.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._running is not None
        running, self._running = self._running, None
        self.idle = (self._began, asyncio.get_running_loop().time())
        self._left = max(0.0, self._left - (self.idle[1] - self._began))
        await running.__aexit__(kind, error, trace)


class WatchedBody:
    """The body of a request while it is sent: its bytes are counted and reported to the budget, and an exception of the caller's
    own code is remembered."""

    def __init__(
        self,
        body: bytes | Body | AsyncIterable[bytes] | None,
        headers: dict[str, str],
        budget: Budget,
        count: Progress,
    ) -> None:
        self.error: Exception | None = None
        self._budget = budget
        self._count = count
        self.data: bytes | AsyncIterator[bytes] | None = None
        if isinstance(body, bytes):
            self.data = body
            count("sent", len(body))
        elif isinstance(body, Body):
            headers.setdefault("Content-Type", body.content_type)
            headers["Content-Length"] = str(body.size)
            self.data = self._watch(body.pieces())
        elif body is not None:
            self.data = self._watch(body)

    async def _watch(self, pieces: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
        try:
            async for piece in pieces:
                yield piece
                self._budget.moved(len(piece))
                self._count("sent", len(piece))
        except Exception as error:
            self.error = error
            raise
