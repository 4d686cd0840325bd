"""Run blocking work in a thread for callers with an event loop, always to its end.

A thread cannot be stopped, so a cancelled call waits until its work has ended or was undone.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def in_thread(work: Callable[[], T], undo: Callable[[T], None] | None = None) -> T:
    """Run `work` in a thread and return its result.

    A cancelled call waits for the end of the work, passes its result to `undo` and then raises CancelledError; an error of the
    work is dropped.
    """
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([task])
        # Retrieve the error, so that the loop does not report it as never retrieved.
        if not task.cancelled() and task.exception() is None and undo is not None:
            undo(task.result())
        raise
    finally:
        # An error holds this frame: without the name, what the work used is freed with it, not at some later collection.
        del task


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
