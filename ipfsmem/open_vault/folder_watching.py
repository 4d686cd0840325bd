"""Watches linked folders during `autosync`: edits are imported at once, or within five seconds without file events; synced texts are
written before the sync ends. Also notices writes of other processes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from ipfsmem.errors import IpfsmemError
from ipfsmem.files.watching import FolderWatcher
from ipfsmem.open_vault.handle import VaultHandle

#: Seconds between two polls without file events.
POLL = 5.0
#: Seconds between two polls while a sync runs, which may fetch texts.
POLL_AT_WORK = 0.5
#: Pause after a poll, as a multiple of its duration, so that polling uses a small share of the time.
_PAUSE_FACTOR = 4.0
_MIN_PAUSE_S = 0.1


@contextlib.asynccontextmanager
async def watched_folders(opened: VaultHandle, edited: Callable[[], None]) -> AsyncIterator[None]:
    """Import edits of linked folders while the block runs, and call `edited` after each edit that is on disk."""
    event = asyncio.Event()
    eye = FolderWatcher(event.set)
    loop = asyncio.get_running_loop()

    async def look() -> None:
        polled, rest = loop.time(), POLL
        while not opened.closed:
            with contextlib.suppress(IpfsmemError):
                eye.look_at(opened.folder_paths())
            # Not `wait_for`: Python 3.11's forgets that it was cancelled when an edit is told in the same moment.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_AT_WORK if opened.sync_threads else rest):
                    await event.wait()
            if opened.closed or not opened.still_unlocked():
                event.clear()  # waiting for a set event would not yield to other tasks
                await asyncio.sleep(_MIN_PAUSE_S)
                continue
            begins = loop.time()
            with contextlib.suppress(IpfsmemError):  # the next sync scans too, and reports the error
                if event.is_set() or begins - polled >= rest:
                    at_once = event.is_set()
                    event.clear()
                    polled = begins
                    by_others = opened.written_by_others()  # another process may have imported the edit
                    if opened.scan() or (by_others and at_once):
                        edited()
                    elif by_others:
                        opened.changed()
                opened.render_what_changed()
            took = loop.time() - begins
            rest = max(POLL, took * _PAUSE_FACTOR * 5)
            await asyncio.sleep(max(_MIN_PAUSE_S, took * _PAUSE_FACTOR))

    watch = asyncio.ensure_future(look()) if opened.files is not None else None
    try:
        yield
    finally:
        if watch is not None:
            watch.cancel()
            await asyncio.wait([watch])
            await eye.close()
