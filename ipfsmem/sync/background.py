"""Sync in the background of a long-running program: a task that follows the `schedule` and reports each attempt.

Failures do not end the task. Each failure is reported; a failure that waiting cannot fix is kept until a sync
succeeds.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

import msgspec

from ipfsmem.errors import PassphraseError
from ipfsmem.sync.report import SyncReport
from ipfsmem.sync.schedule import Pace, may_pass

_log = logging.getLogger("ipfsmem.sync")


class Attempt(msgspec.Struct, frozen=True):
    """One background sync: result or failure, and seconds until the next without further writes (None: only
    after a write)."""

    report: SyncReport | None
    error: Exception | None
    again_in: float | None

    @property
    def passes(self) -> bool:
        """Tell whether waiting may fix the failure."""
        return self.error is not None and may_pass(self.error)

    @property
    def brought(self) -> bool:
        """Tell whether it changed data on this device."""
        return self.report is not None and bool(self.report.entries_changed)


#: Called after each attempt.
OnAttempt = Callable[[Attempt], None]


class Background:
    """The task. Call `begin` and `stop` in the same event loop; `wrote` is thread-safe."""

    def __init__(
        self,
        sync: Callable[[], Awaitable[SyncReport]],
        pace: Pace,
        on_attempt: OnAttempt | None,
    ) -> None:
        """Without `on_attempt`, failures that need the user are logged as warnings."""
        self._sync = sync
        self._pace = pace
        self._on_attempt = on_attempt
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._busy = self._stopping = False
        self._task: asyncio.Task[None] | None = None
        #: The last failure that waiting cannot fix; None after a successful sync.
        self.failure: Exception | None = None

    def begin(self) -> None:
        """Start syncing."""
        self._task = self._loop.create_task(self._run())

    def wrote(self) -> None:
        """Note a write. Needs microseconds and never waits."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: no further syncs
            self._loop.call_soon_threadsafe(self._note_write)

    def edited(self) -> None:
        """Note a saved edit of a plain file: sync soon, since an editor does not signal the last edit."""
        self._pace.edited(self._loop.time())
        self._wake.set()

    async def sync_now(self) -> SyncReport:
        """Sync now. Raises what the sync raises."""
        began = self._loop.time()
        self._pace.begins()
        try:
            report = await self._sync()
        except Exception as error:
            self._note_outcome(error, began)
            raise
        self._note_outcome(None, began)
        self._tell(report, None)
        return report

    def give_up(self) -> None:
        """Stop syncing, because a sync in progress reported that the keys are locked."""
        self._stopping = True
        self._wake.set()
        if not isinstance(self.failure, PassphraseError):
            self.failure = PassphraseError("the keys of this device were locked, so sync stopped")
            self._tell(None, self.failure)

    async def stop(self, *, finish: bool) -> None:
        """End the task; `finish`: wait for a sync in progress. Raises what `on_attempt` raised."""
        task = self._task
        if task is None:
            return
        self._stopping = True
        if finish and self._busy:
            self._wake.set()
        else:
            task.cancel()
        try:
            await asyncio.wait([task])
        finally:
            task.cancel()
        if not task.cancelled():
            task.result()

    def _note_outcome(self, failure: Exception | None, began: float) -> None:
        """Record the outcome of the sync that began at `began`. It determines the time of the next one and the kept
        failure."""
        took = self._loop.time() - began
        if failure is not None and may_pass(failure):
            self._pace.failed(self._loop.time())
        else:
            self.failure = failure
            self._pace.worked(self._loop.time(), took)
        self._wake.set()

    def _note_write(self) -> None:
        self._pace.wrote(self._loop.time())
        self._wake.set()

    async def _run(self) -> None:
        while not self._stopping:
            due = self._pace.due()
            wait = None if due is None else due - self._loop.time()
            if wait is not None and wait <= 0:
                await self._attempt()
                continue
            self._wake.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), wait)

    async def _attempt(self) -> None:
        began = self._loop.time()
        self._pace.begins()
        self._busy = True
        report: SyncReport | None = None
        failure: Exception | None = None
        try:
            report = await self._sync()
        except Exception as error:
            # Any error: it must be reported, and must not prevent the next sync.
            failure = error
        finally:
            self._busy = False
        self._note_outcome(failure, began)
        self._tell(report, failure)

    def _tell(self, report: SyncReport | None, failure: Exception | None) -> None:
        due = None if self._stopping else self._pace.due()
        again_in = None if due is None else max(0.0, due - self._loop.time())
        if self._on_attempt is not None:
            self._on_attempt(Attempt(report, failure, again_in))
        elif failure is not None and not may_pass(failure):
            _log.warning("a sync in the background failed: %s: %s", type(failure).__name__, failure)
