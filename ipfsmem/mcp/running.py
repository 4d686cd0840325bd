"""Runs the server until its client or a signal ends it: the transport, the look-out for changes, and syncing beside it.

What is said while it runs goes to stderr, one line each; a problem that stays the same is said once.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from ipfsmem.device.agent_notes import note_syncing
from ipfsmem.ending_signals import ending_signals
from ipfsmem.errors import IpfsmemError, PassphraseError
from ipfsmem.mcp.server import MemoryServer
from ipfsmem.mcp.watching import watch
from ipfsmem.sync.background import Attempt

#: Seconds between two looks whether a locked memory was unlocked, and until syncing begins again that could not begin.
LOCKED_EVERY: Final = 1.0
FAILED_EVERY: Final = 10.0
#: Seconds that the last sync may take when the client is gone; what was not sent is safe here, and sent by the next.
LAST_SYNC: Final = 5.0


async def run(served: MemoryServer, transport: Callable[[], Awaitable[None]], *, sync: bool) -> None:
    """Serve over a transport until it ends, or a signal ends it."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    with contextlib.suppress(NotImplementedError):  # Windows: Ctrl-C comes as KeyboardInterrupt
        for number in ending_signals():
            loop.add_signal_handler(number, ended.set)
    stopped = asyncio.Event()
    serving = asyncio.ensure_future(transport())
    watching = asyncio.create_task(watch(served))
    syncing = asyncio.create_task(_keep_in_sync(served, stopped)) if sync else None
    signalled = asyncio.create_task(ended.wait())
    try:
        await asyncio.wait([serving, signalled], return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopped.set()
        for task in (serving, watching, signalled):
            if not task.done():
                task.cancel()
        if syncing is not None:
            await asyncio.wait([syncing], timeout=LAST_SYNC)
            syncing.cancel()
        tasks = [task for task in (serving, watching, signalled, syncing) if task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)
        served.holder.close()
    if not serving.cancelled() and (failure := serving.exception()) is not None:
        raise failure


async def _keep_in_sync(served: MemoryServer, stopped: asyncio.Event) -> None:
    """Keep the memory in sync whenever it is unlocked, until it is told to stop."""
    said = ""
    place: Path | None = None

    def say(words: str) -> None:
        nonlocal said
        if words and words != said:
            print(f"ipfsmem mcp: {words}", file=sys.stderr)
        said = words

    def on_attempt(attempt: Attempt) -> None:
        if place is not None:
            note_syncing(
                place, attempt.error, brought=attempt.brought
            )  # hooks give at the next prompt what it brought
        say("" if attempt.error is None else f"not in sync: {attempt.error}")

    while not stopped.is_set():
        pause = LOCKED_EVERY
        try:
            memory = await served.in_thread(served.holder.memory_if_unlocked)
            if memory is not None:
                place = memory.replica.folder
                async with memory.lock_watch() as locked, memory.autosync(on_attempt=on_attempt):
                    await _first_of(stopped, locked)
        except PassphraseError as error:  # it was locked meanwhile, and may be unlocked again
            say(f"not in sync: {error.diagnostics()}")
        except IpfsmemError as error:
            say(f"not in sync: {error.diagnostics()}")
            pause = FAILED_EVERY
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopped.wait(), pause)


async def _first_of(*events: asyncio.Event) -> None:
    """Wait until one of them is set."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waits:
            one.cancel()
