"""Blocking work in threads, abandoned when it makes no progress for too long.

A dead network share or a hung stick blocks system calls for minutes or forever, and their thread cannot be
stopped: it is left behind, and no further work begins at that location until it returns. Long work reports
its progress (`heartbeat`).
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, Final, Generic, TypeVar

from ipfsmem.errors import ProviderUnavailable
from ipfsmem_providers.http.policy import Timeouts

T = TypeVar("T")
#: Seconds without progress after which work is given up (format section 8: a silent provider).
STALL: Final = Timeouts().stall
_here = threading.local()


def heartbeat() -> None:
    """Report that the work of this thread makes progress: it read or wrote a file or a part of one."""
    heartbeat_of_thread()()


def heartbeat_of_thread() -> Callable[[], None]:
    """Return a `heartbeat` of this thread for what runs in the event loop."""
    call: _ThreadWork[Any] | None = getattr(_here, "call", None)
    return call.beat if call is not None else lambda: None


def is_cancelled() -> bool:
    """Return whether nobody needs the work of this thread any more. Work that can end early asks."""
    call: _ThreadWork[Any] | None = getattr(_here, "call", None)
    return call is not None and call.cancelled


def in_loop(work: Callable[[], Coroutine[Any, Any, T]], *, finish: bool = False) -> T:
    """Run the coroutine that `work` returns in the event loop that waits for the work of this thread; return its result.

    When nobody needs that work any more, the coroutine is cancelled, and ProviderUnavailable raised when it has ended.
    `finish`: it is run to its end nevertheless, unless it makes no progress.
    """
    call: _ThreadWork[Any] | None = getattr(_here, "call", None)
    if call is None:
        raise RuntimeError("no event loop waits for this thread")
    try:
        result: T = call.run_in_loop(work, finish)
    except CancelledError:
        raise ProviderUnavailable("the call was cancelled") from None
    call.heartbeats += 1
    return result


class _ThreadWork(Generic[T]):
    """One piece of work in a thread of its own, which the end of the program does not wait for."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self.heartbeats = 0
        self.cancelled = False
        #: Whether the loop gave this work up, because it made no progress.
        self._abandoned = False
        #: The event in the loop that the thread waits for, and the same for the loop while it may be cancelled.
        self._in_loop: Future[Any] | None = None
        self._task: asyncio.Task[Any] | None = None
        self.result: T
        self.error: BaseException | None = None
        # Work in the loop for the thread tells the caller of pauses.
        context = contextvars.copy_context()
        self.thread = threading.Thread(
            target=context.run, args=(self._run,), name="ipfsmem-store", daemon=True
        )

    def _run(self) -> None:
        _here.call = self
        try:
            self.result = self._work()
        except BaseException as error:
            self.error = error
        with contextlib.suppress(RuntimeError):  # nobody waits any more, and the loop is gone
            self._loop.call_soon_threadsafe(self._end)

    def beat(self) -> None:
        """Note progress."""
        self.heartbeats += 1

    def cancel(self) -> None:
        """Tell the work that nobody needs it any more, and cancel what it waits for in the loop; for the loop."""
        self.cancelled = True
        if self._task is not None:
            self._task.cancel()

    def abandon(self) -> None:
        """Do `cancel`, and let the thread wait for nothing in the loop any more; for the loop."""
        self._abandoned = True
        self.cancel()
        if (waiting := self._in_loop) is not None:
            waiting.cancel()

    def run_in_loop(self, work: Callable[[], Coroutine[Any, Any, Any]], finish: bool) -> Any:
        """Run a coroutine in the loop; for the thread."""
        task = self._cancellable(work, finish)
        try:
            self._in_loop = future = asyncio.run_coroutine_threadsafe(task, self._loop)
        except RuntimeError:  # the loop is gone
            task.close()
            raise CancelledError from None
        try:
            if self._abandoned:  # the loop may not have seen the future
                future.cancel()
            return future.result()
        finally:
            self._in_loop = None

    async def _cancellable(self, work: Callable[[], Coroutine[Any, Any, Any]], finish: bool) -> Any:
        if self._abandoned or (self.cancelled and not finish):
            raise asyncio.CancelledError
        self._task = None if finish else asyncio.current_task()
        try:
            return await work()
        finally:
            self._task = None

    def _end(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)


class BlockingWork:
    """Runs the blocking work of one location."""

    def __init__(self, what: str, stall: float = STALL, *, why: str = "", hint: str = "") -> None:
        """`what`: the location in words. After `stall` seconds without progress, the error names it, the
        likely reason `why` and the next step `hint`."""
        self._text, self._hint, self._stall = f"{what} does not answer{why and ': '}{why}", hint, stall
        self._hanging: list[_ThreadWork[Any]] = []

    async def run(self, work: Callable[[], T], *, more: float = 0.0) -> T:
        """Return the result of `work`. A task that is cancelled still waits for it, so that no file is left
        half written; the work is told (`is_cancelled`).

        `more`: seconds without progress to allow beyond the usual. Raises ProviderUnavailable when they have
        passed, and at once while earlier work still hangs.
        """
        self._hanging = [call for call in self._hanging if call.thread.is_alive()]
        if self._hanging:
            raise self._silent()
        call = _ThreadWork(work)
        call.thread.start()
        cancelled: asyncio.CancelledError | None = None
        while not call.ended.done():
            heartbeats = call.heartbeats
            try:
                await asyncio.wait([call.ended], timeout=self._stall + more)
            except asyncio.CancelledError as error:
                cancelled = error
                call.cancel()
                continue
            if not call.ended.done() and call.heartbeats == heartbeats:
                call.abandon()
                self._hanging.append(call)
                break
        if cancelled is not None:
            raise cancelled
        if not call.ended.done():
            raise self._silent()
        if call.error is not None:
            raise call.error
        return call.result

    def _silent(self) -> ProviderUnavailable:
        return ProviderUnavailable(self._text, hint=self._hint)
