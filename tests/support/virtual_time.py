"""An event loop whose clock jumps to the next timer when it is idle: waits take no time, and load delays
none.

Only for code that runs in one loop, servers included: while a thread works, the loop is idle and its clock
jumps."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
#: Seconds of real silence after which no more data is expected: data sent on this machine arrives at once.
_SILENCE = 0.005
#: Maximum duration of a test in seconds of the loop's own time.
_MOST = 3600.0


class _Selector(selectors.DefaultSelector):
    loop: VirtualTimeLoop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        events = super().select(_SILENCE)
        if not events:
            self.loop.now += timeout
        return events


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """A loop whose `time()` stands still while it is busy."""

    def __init__(self) -> None:
        self.now = 0.0
        selector = _Selector()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self.now


def run(work: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` in such a loop. TimeoutError after an hour of the loop's time."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(asyncio.wait_for(work, _MOST))
