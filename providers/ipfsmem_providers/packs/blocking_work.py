"""Blocking work in threads, abandoned when it makes no progress for too long.

A dead network share or a hung stick blocks system calls for minutes or forever, and their thread cannot be
stopped: it is left behind, and no further work begins at that location until it returns. Long work reports
its progress (`heartbeat`).
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from ipfsmem.errors import ProviderUnavailable
from ipfsmem_providers.http.policy import Timeouts

T = TypeVar("T")
#: Seconds without progress after which work is given up (format section 8: a silent provider).
STALL: Final = Timeouts().stall
_here = threading.local()


def heartbeat() -> None:
    """Report that the work of this thread makes progress: it read or wrote a file or a part of one."""
    call: _ThreadWork[Any] | None = getattr(_here, "call", None)
    if call is not None:
        call.heartbeats += 1


def is_cancelled() -> bool:
    """Tell whether nobody needs the work of this thread any more. Work that can end early asks."""
    call: _ThreadWork[Any] | None = getattr(_here, "call", None)
    return call is not None and call.cancelled


class _ThreadWork(Generic[T]):
    """One piece of work in a thread of its own, which the end of the program does not wait for."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self.heartbeats = 0
        self.cancelled = False
        self.result: T
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._run, name="ipfsmem-store", daemon=True)

    def _run(self) -> None:
        _here.call = self
        try:
            self.result = self._work()
        except BaseException as error:
            self.error = error
        with contextlib.suppress(RuntimeError):  # nobody waits any more, and the loop is gone
            self._loop.call_soon_threadsafe(self._end)

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
                cancelled, call.cancelled = error, True
                continue
            if not call.ended.done() and call.heartbeats == heartbeats:
                call.cancelled = True
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
