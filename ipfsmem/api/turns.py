"""Fair access to a vault: one call at a time, with tokens in turn, so that many calls of one do not delay the others.

Callers are only texts here; the only waits are for turns.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator
from typing import Final

#: Maximum concurrent calls of one token, running or waiting.
MOST: Final = 16


class TooManyCalls(Exception):
    """A token has its maximum number of concurrent calls."""


class Turns:
    """A fair lock: callers get it in turn. All calls without a token share one turn."""

    def __init__(self) -> None:
        self._busy = False
        self._last = ""
        #: The waiting calls by caller, in the order of their next turn.
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._calls: dict[str, int] = {}

    @contextlib.asynccontextmanager
    async def of(self, caller: str = "", *, most: int | None = None) -> AsyncIterator[None]:
        """Acquire a turn. Raises TooManyCalls at once if this caller has `most` calls pending."""
        if most is not None and self._calls.get(caller, 0) >= most:
            raise TooManyCalls
        self._calls[caller] = self._calls.get(caller, 0) + 1
        try:
            await self._begin(caller)
            try:
                yield
            finally:
                self._end(caller)
        finally:
            self._calls[caller] -= 1
            if not self._calls[caller]:
                del self._calls[caller]

    async def _begin(self, caller: str) -> None:
        if not self._busy:
            self._busy = True
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._end(caller)  # it got the turn just now
            raise

    def _end(self, caller: str) -> None:
        """Pass the turn to the caller that has waited longest since its last one."""
        self._last = caller
        while self._waiting:
            name = next((one for one in self._waiting if one != self._last), self._last)
            queue = self._waiting.pop(name)
            turn = queue.popleft()
            if queue:
                self._waiting[name] = queue  # behind the others
            if not turn.done():
                turn.set_result(None)
                return
        self._busy = False
