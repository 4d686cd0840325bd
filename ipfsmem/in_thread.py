"""Work for a caller with an event loop: done in a thread, and never left behind half done.

A thread cannot be stopped. So a call that is cancelled ends when its work has ended, and what follows it finds all of it or, where
it was not begun or was taken back, nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def in_thread(work: Callable[[], T], undo: Callable[[T], None] | None = None) -> T:
    """What `work` returns, done in a thread. Cancelled, however often, it waits for the end of the work, gives what was made to
    `undo` and raises CancelledError then; what the work raised by then is lost."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([task])
        # The error is asked for, so that the loop does not report it as nobody's.
        if not task.cancelled() and task.exception() is None and undo is not None:
            undo(task.result())
        raise


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine from synchronous code, also when this thread already runs an event loop, which waits."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    result: list[T] = []
    failure: list[BaseException] = []

    def target() -> None:
        try:
            result.append(asyncio.run(work))
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=target)
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return result[0]
