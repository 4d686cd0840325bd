"""Watches linked folders during `autosync`: edits are imported at once, or within five seconds without file events; synced texts are
written before the sync ends. Also notices writes of other processes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from ipfsmem.errors import IpfsmemError
from ipfsmem.files.watching import FolderEye
from ipfsmem.open_vault.handle import VaultHandle

#: Seconds between two looks where nobody tells of a change.
POLL = 5.0
#: And while a sync is under way, which may bring texts.
POLL_AT_WORK = 0.5
#: After a look so many times what it took pass before the next: however much is edited, this is a small part of the time.
_REST = 4.0
_LEAST_REST = 0.1


@contextlib.asynccontextmanager
async def watched_folders(opened: VaultHandle, edited: Callable[[], None]) -> AsyncIterator[None]:
    """Import edits of linked folders while the block runs, and call `edited` after each edit that is on disk."""
    event = asyncio.Event()
    eye = FolderEye(event.set)
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
                event.clear()  # to wait for what is set gives nobody else a turn
                await asyncio.sleep(_LEAST_REST)
                continue
            begins = loop.time()
            with contextlib.suppress(IpfsmemError):  # the next sync looks too, and says what is the matter
                if event.is_set() or begins - polled >= rest:
                    at_once = event.is_set()
                    event.clear()
                    polled = begins
                    by_others = opened.written_by_others()  # another process may have taken the edit in
                    if opened.scan() or (by_others and at_once):
                        edited()
                    elif by_others:
                        opened.changed()
                opened.render_what_changed()
            took = loop.time() - begins
            rest = max(POLL, took * _REST * 5)
            await asyncio.sleep(max(_LEAST_REST, took * _REST))

    watch = asyncio.ensure_future(look()) if opened.files is not None else None
    try:
        yield
    finally:
        if watch is not None:
            watch.cancel()
            await asyncio.wait([watch])
            await eye.close()
