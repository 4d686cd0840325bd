"""Drop the keys of long-running work within a second of a lock or expiry.

Each call checks the keys first (`VaultHandle.refuse_closed`); this module checks while nobody calls, and during a sync.
It uses no thread: code that blocks its event loop for a second delays it by as much.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

from ipfsmem.open_vault.handle import VaultHandle

T = TypeVar("T")

#: Seconds between two checks.
LOOK = 0.25
#: Seconds that cancelled work may take to end; then its keys are dropped in any case.
END = 0.4


async def while_unlocked(opened: VaultHandle, name: str, work: Coroutine[Any, Any, T]) -> T:
    """Run the work called `name`. If the keys are locked meanwhile, cancel it, drop the keys, and raise PassphraseError. A
    vault that was opened with its passphrase is not affected."""
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
    """Drop the keys within a second of a lock or expiry while the block runs, and then call `then` once. No effect for a vault that was opened with
    its passphrase."""

    async def look() -> None:
        while not opened.locked:
            await asyncio.sleep(LOOK)
            # A running sync checks itself, and is cancelled first.
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
