"""One vault behind the HTTP API: used by one thread at a time, watched for changes, synced meanwhile, and closed when it is
locked.

Requests are only work on a memory here.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

from ipfsmem.api.changes import Change, Comparison, Feed
from ipfsmem.api.tokens import KeptTokens
from ipfsmem.api.turns import MOST, Turns
from ipfsmem.bundle.fence import clean_text
from ipfsmem.device.agent_notes import note_syncing
from ipfsmem.device.lock import LOOK_WAITS, one_wait
from ipfsmem.errors import ConcurrencyError, IpfsmemError, PassphraseError
from ipfsmem.holding import Holder, Mark
from ipfsmem.in_thread import in_thread
from ipfsmem.memory import Memory
from ipfsmem.sync.background import Attempt, Background
from ipfsmem.sync.report import SyncReport
from ipfsmem.sync.schedule import Pace

T = TypeVar("T")
_log = logging.getLogger("ipfsmem.api")

#: Seconds between checks for a lock or a change, and between progress events of a sync.
LOOK_EVERY: Final = 0.25
SAY_EVERY: Final = 0.1
#: Minimum seconds between scans of linked folders, and the same as a multiple of the last scan's duration.
FOLDERS_EVERY: Final = 2.0
_REST: Final = 20.0
#: Seconds from a write to a sync, when it keeps in sync: from the last write, and at most from the first; and between two syncs
#: for others' changes. At the end unpublished data is still published, within the last limit.
AFTER_WRITE: Final = 10.0
MOST_AFTER: Final = 120.0
SYNC_EVERY: Final = 300.0
LAST_SYNC: Final = 10.0
#: Maximum cached answers of one memory.
_MOST_REMEMBERED: Final = 16


class ServedMemory:
    """A memory by its vault name."""

    def __init__(self, vault_name: str, holder: Holder, folder: Path | None = None) -> None:
        """`folder`: of its tokens; None: it has none."""
        self.vault_name = vault_name
        self.holder = holder
        self.tokens = KeptTokens(folder)
        #: Results of calls since the last change, such as its list, so that the cost of a page depends on its own length.
        self._remembered: dict[Any, Any] = {}
        self._mark: Mark | None = None
        self._of: Memory | None = None
        self.feed = Feed()
        self.locked = False
        self._turns = Turns()
        self._syncing = asyncio.Lock()
        self._listeners: set[asyncio.Event] = set()
        self._seen: Mark | None = None
        self._compared: Comparison | None = None
        #: True if comparing failed, and listeners were not yet told that data may have changed.
        self._lost = False
        self._folders_at = 0.0
        self._folder = folder
        self._background: Background | None = None
        self._unsent = False
        #: The kind of error of the last sync, which is printed once in a row; "" without one.
        self._failed = ""
        #: Ends the running sync; None without one.
        self._end_sync: Callable[[], None] | None = None

    async def on(self, work: Callable[[Memory], T], token: str = "") -> T:
        """Run `work` on the memory in a thread, and return its result: one call at a time, taking turns by `token` (the hash of
        a kept one).

        Raises PassphraseError while the memory is locked, TooManyCalls.
        """

        def done() -> T:
            with one_wait():
                return work(self.holder.memory())

        async with self._turns.of(token, most=MOST if token else None):
            return await in_thread(done)

    async def beside(self, work: Callable[[Memory], T]) -> T:
        """Run `work` in a thread on the memory opened once more, while other calls are answered: like a process of its own."""

        def done() -> T:
            with one_wait(), self.holder.another() as memory:
                return work(memory)

        return await in_thread(done)

    def remembered(self, memory: Memory) -> dict[Any, Any]:
        """Return the cache of this memory, emptied by a change (inside `on`)."""
        memory.folders.ingest_edits()
        mark = self.holder.mark()
        if mark != self._mark or memory is not self._of or len(self._remembered) > _MOST_REMEMBERED:
            self._remembered.clear()
            self._mark, self._of = mark, memory
        return self._remembered

    # -- changes ---------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def listening(self) -> Iterator[asyncio.Event]:
        """Yield an event that is set after each change, while listening."""
        event = asyncio.Event()
        self._listeners.add(event)
        try:
            yield event
        finally:
            self._listeners.discard(event)

    def may_have_changed(self) -> None:
        """Compare and list again: local changes of this process outside the state do not change the mark (inside `on`)."""
        self._seen = None
        self._remembered.clear()

    async def begin_to_compare(self) -> None:
        """Begin to report every change; of a locked memory once it is unlocked."""
        if self._compared is None:
            async with self._turns.of():
                changes = await in_thread(self._look_briefly)
            for change in changes:
                self.tell(change)

    def tell(self, change: Change) -> None:
        """Send a change to listeners."""
        self.feed.add(change)
        for event in self._listeners:
            event.set()

    async def look_out(self) -> None:
        """Watch until cancelled, for a lock and for changes."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            try:
                async with self._turns.of():
                    heeded = self._listeners or self._compared or self._lost
                    changes = await in_thread(self._look_briefly if heeded else self._let_go)
            except Exception as error:
                self._failed_to_look(error)
                continue
            for change in changes:
                self.tell(change)
            if changes:
                self.wrote()

    def _let_go(self) -> list[Change]:
        with contextlib.suppress(IpfsmemError):
            self.holder.let_go_when_locked()
        return []

    def _look_briefly(self) -> list[Change]:
        with one_wait(LOOK_WAITS):
            return self._look()

    def _look(self) -> list[Change]:
        was = self.locked
        try:
            self._look_at_folders()
            mark = self.holder.mark()
            memory = None if mark is None else self.holder.memory()
        except IpfsmemError:
            return []  # unreadable now, and checked again; callers get the error
        self.locked = mark is None
        lock_changes = [Change(what="locked", locked=self.locked)] if was != self.locked else []
        if memory is None:
            self._compared, self._seen = None, None
            self._remembered.clear()
            return lock_changes
        try:
            if self._compared is None or not self._compared.of(memory):
                first = self._compared is None and not lock_changes and not self._lost
                self._compared, self._lost = Comparison(memory), False
                changes = [] if first else [Change(what="reset")]
            else:
                changes = [] if mark == self._seen else self._compared.changes()
        except Exception as error:
            self._failed_to_look(error)
            self._lost = True
            return lock_changes  # the lock is reported now, as it is not noticed again
        self._seen = mark
        return [*lock_changes, *changes]

    def _failed_to_look(self, error: Exception) -> None:
        """Log an unexpected error. The checks continue: they also drop the keys of locked memories."""
        if not isinstance(error, IpfsmemError):
            _log.warning("checking the vault %s failed: %s", self.vault_name, type(error).__name__)
        self._lose_track()

    def _lose_track(self) -> None:
        """Stop comparing. A reset is sent once there is a state to compare with again, so that no change is missed."""
        self._lost = self._lost or self._compared is not None
        self._compared = None

    def _look_at_folders(self) -> None:
        """Scan the linked folders for edits, while there are listeners."""
        began = time.monotonic()
        if began < self._folders_at:
            return
        memory = self.holder.memory_if_unlocked()
        if memory is not None:
            memory.folders.ingest_edits()
        self._folders_at = began + max(FOLDERS_EVERY, _REST * (time.monotonic() - began))

    # -- syncs -----------------------------------------------------------------------------------------------

    async def keep_in_sync(self) -> None:
        """Sync until cancelled: now, soon after writes, and at intervals. Results are recorded as those of `sync --every`.

        An unpublished memory is not synced; nor a public one, as each publication of plain text needs consent.
        """
        while (sealed := await self._is_sealed()) is None:
            await asyncio.sleep(FOLDERS_EVERY)
        if not sealed:
            return
        now = asyncio.get_running_loop().time()
        self._background = Background(
            self._sync_in_turn, Pace(AFTER_WRITE, MOST_AFTER, SYNC_EVERY, now), self._note
        )
        self._background.begin()
        try:
            await asyncio.Event().wait()
        finally:
            stopping = asyncio.ensure_future(self._background.stop(finish=True))
            await asyncio.wait([stopping], timeout=LAST_SYNC)
            answers = stopping.done()
            if not answers and self._end_sync is not None:
                self._end_sync()
            await stopping
            if answers:  # a provider that does not answer now would not answer then
                await self._send_the_rest()

    def wrote(self) -> None:
        """Record a write, or a possible one: a memory kept in sync is synced soon."""
        if self._background is not None:
            self._unsent = True
            self._background.wrote()

    async def _is_sealed(self) -> bool | None:
        """Tell whether it is published encrypted; None while it is locked or unreadable."""
        try:
            return await self.on(lambda whole: whole.mode.sealed)
        except IpfsmemError:
            return None

    async def _sync_in_turn(self) -> SyncReport:
        unsent, self._unsent = self._unsent, False  # later writes may miss this sync
        try:
            return await self.sync()
        except BaseException:
            self._unsent |= unsent
            raise

    async def _send_the_rest(self) -> None:
        if not self._unsent:
            return
        with contextlib.suppress(IpfsmemError, TimeoutError):  # safe here, and published by the next sync
            async with asyncio.timeout(LAST_SYNC), self.holder.another() as memory:
                await memory.sync()

    def _note(self, attempt: Attempt) -> None:
        # A concurrent sync, or locked keys, are not a failed sync.
        if isinstance(attempt.error, ConcurrencyError | PassphraseError):
            return
        if self._folder is not None:
            note_syncing(self._folder, attempt.error, brought=attempt.brought)
        kind = type(attempt.error).__name__ if attempt.error is not None else ""
        if kind and kind != self._failed:
            with contextlib.suppress(OSError, ValueError):  # an error here would end the syncs
                reason = " ".join(clean_text(str(attempt.error)).split())
                print(f"ipfsmem: {self.vault_name} is not in sync: {reason}", file=sys.stderr)
        self._failed = kind

    async def sync(self) -> SyncReport:
        """Sync in parallel to other work, like a process of its own; listeners get progress events. Raises ConcurrencyError
        while another sync of this server runs, and errors of a sync."""
        if self._syncing.locked():
            raise ConcurrencyError("a sync of this vault is already running", hint="Wait until it ends.")
        loop = asyncio.get_running_loop()
        said_at, last_step = 0.0, ""

        def progress(what: str, done: int, total: int) -> None:
            nonlocal said_at, last_step
            now = time.monotonic()
            if what == last_step and now - said_at < SAY_EVERY:
                return
            said_at, last_step = now, what
            change = Change(what="sync", doing=what, done=done, total=total)
            loop.call_soon_threadsafe(self.tell, change)

        def work() -> SyncReport:
            async def run() -> SyncReport:
                task, own = asyncio.current_task(), asyncio.get_running_loop()
                assert task is not None
                self._end_sync = lambda: (own.call_soon_threadsafe(task.cancel), None)[1]
                async with self.holder.another() as memory:
                    return await memory.sync(progress=progress)

            try:
                return asyncio.run(run())
            except asyncio.CancelledError:
                raise ConcurrencyError("the sync ended with its server") from None

        end = Change(what="sync", ended=True, exit_code=70, said="the sync ended early")
        async with self._syncing:
            try:
                report = await in_thread(work)
                end = _end_of(report)
                return report
            except IpfsmemError as error:
                end = Change(what="sync", ended=True, exit_code=error.exit_code, said=error.diagnostics())
                raise
            finally:
                self._end_sync = None
                self.tell(end)

    def close(self) -> None:
        """Close the memory."""
        self.holder.close()


def _end_of(report: SyncReport) -> Change:
    """Return the last change of a finished sync, with its notices if it is incomplete."""
    text = "\n".join(notice.text for notice in report.notices) if report.exit_code else ""
    return Change(what="sync", ended=True, exit_code=report.exit_code, said=text)


def until(memory: Memory) -> int | None:
    """Return the time at which its keys are locked, None without one."""
    watch = memory.replica.lock_watch
    return watch.until if watch is not None else None
