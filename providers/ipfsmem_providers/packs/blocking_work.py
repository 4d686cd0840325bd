"""Blocking work in threads beside the event loop, for no longer than the place where it is done may be silent.

A network share whose server is gone, or a stick that hangs, blocks whoever asks the system about it, for minutes or for ever,
and nothing can be done about that thread: it is left behind, and nothing more is asked of the place until it comes back.
Work that takes long says that it goes on (`beat`). This module knows nothing of files.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from ipfsmem.errors import ProviderUnavailable

T = TypeVar("T")
#: A place may be silent for so long, in seconds (format section 8: a silent provider).
STALL: Final = 60.0
_here = threading.local()


def beat() -> None:
    """Say that the work of this thread goes on: a file, a pack, a part of one was read or written."""
    call: _Call[Any] | None = getattr(_here, "call", None)
    if call is not None:
        call.beats += 1


class _Call(Generic[T]):
    """One piece of work in a thread of its own, which the end of the program does not wait for."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self.beats = 0
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


class Waiting:
    """The patience with one place."""

    def __init__(self, what: str, stall: float = STALL, *, why: str = "", hint: str = "") -> None:
        """When `what` is silent for `stall` seconds, the error says so, why that may be, and what to do (`hint`)."""
        self._text, self._hint, self._stall = f"{what} does not answer{why and ': '}{why}", hint, stall
        self._late: list[_Call[Any]] = []

    async def run(self, work: Callable[[], T], *, more: float = 0.0) -> T:
        """The result of blocking work; also when cancelled it is waited for, so that files are not torn.

        `more`: seconds that a step of it may take beside the usual. Raises ProviderUnavailable when it is silent for
        longer, and at once while earlier work still hangs.
        """
        self._late = [call for call in self._late if call.thread.is_alive()]
        if self._late:
            raise self._silent()
        call = _Call(work)
        call.thread.start()
        cancelled: asyncio.CancelledError | None = None
        while not call.ended.done():
            beats = call.beats
            try:
                await asyncio.wait([call.ended], timeout=self._stall + more)
            except asyncio.CancelledError as error:
                cancelled = error
                continue
            if not call.ended.done() and call.beats == beats:
                self._late.append(call)
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
