"""What runs for long with keys that were unlocked looks whether they still are, and drops them within a second of the end.

Each call on a memory looks before it begins (`VaultHandle.refuse_closed`). Here are the looks for while nobody calls, and for a
sync that is under way. Nothing here is a thread: what does not let its event loop run for a second puts that off.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

from ipfsmem.parts.vault_handle import VaultHandle

T = TypeVar("T")

#: Seconds between two looks.
LOOK = 0.25
#: Seconds that work which is cut off may take to end. Then what it holds is dropped, whatever it does.
END = 0.4


async def while_unlocked(opened: VaultHandle, name: str, work: Coroutine[Any, Any, T]) -> T:
    """Do the work called `name`. When the keys are locked meanwhile it is cut off, they are dropped, and PassphraseError is
    raised; a memory that was opened with its passphrase goes on."""
    if opened.replica.lock_watch is None:
        return await work
    task = asyncio.ensure_future(work)
    try:
        while not (await asyncio.wait([task], timeout=LOOK))[0]:
            if opened.locked or not opened.still_unlocked():
                task.cancel()
                await asyncio.wait([task], timeout=END)
                opened.drop_keys()
                opened.refuse_closed(name)
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=END)


@contextlib.asynccontextmanager
async def lock_watch(opened: VaultHandle, then: Callable[[], None]) -> AsyncIterator[None]:
    """While the block runs: drop the keys within a second of their end, and call `then` once. It does nothing for a memory that
    was opened with its passphrase."""

    async def look() -> None:
        while not opened.locked:
            await asyncio.sleep(LOOK)
            # What is at work looks itself, and is cut off first.
            if not opened.sync_threads and not opened.closed and not opened.still_unlocked():
                opened.drop_keys()
        then()

    watch = asyncio.ensure_future(look()) if opened.replica.lock_watch is not None else None
    try:
        yield
    finally:
        if watch is not None:
            watch.cancel()
            await asyncio.wait([watch])
            if not watch.cancelled():
                watch.result()  # what `then` raised
