"""Run the server until its client or a signal ends it: the transport, the watch for changes, and syncing.

Messages go to stderr, one line each; a repeated problem is printed once.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ipfsmem.device.agent_notes import note_syncing
from ipfsmem.device.lock import LOOK_WAITS
from ipfsmem.ending_signals import ending_signals
from ipfsmem.errors import IpfsmemError, PassphraseError
from ipfsmem.mcp.server import MemoryServer, unexpected
from ipfsmem.open_vault.versions import unpublished_kinds
from ipfsmem.sync.background import Attempt

if TYPE_CHECKING:
    from ipfsmem.agents.background_start import Standby


#: Seconds between checks for an unlocked memory, and before syncing is retried after a failure.
LOCKED_EVERY: Final = 1.0
FAILED_EVERY: Final = 10.0
#: Time limit of the last sync in seconds, once the client is gone; unpublished data is safe here, and the next sync publishes
#: it.
LAST_SYNC: Final = 5.0


async def run(
    served: MemoryServer,
    transport: Callable[[], Awaitable[None]],
    *,
    sync: bool,
    stand_by: Callable[[], Standby] | None = None,
) -> None:
    """Serve over a transport until it ends, or a signal ends it.

    `stand_by` starts a process that syncs when this one ends. It is started before the first write, as programs kill their
    servers: the data is published all the same.
    """
    last = LastSync(served, stand_by) if sync and stand_by is not None else None
    if last is not None:
        served.before_write = last.prepare
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
        if last is not None:
            last.end()
        served.holder.close()
    if not serving.cancelled() and (failure := serving.exception()) is not None:
        raise failure


class LastSync:
    """The sync of data that this process leaves unpublished at its end."""

    def __init__(self, served: MemoryServer, stand_by: Callable[[], Standby]) -> None:
        self._served = served
        self._stand_by: Callable[[], Standby] | None = stand_by
        self._standby: Standby | None = None

    def prepare(self) -> None:
        """Start the process before the first write."""
        if self._stand_by is None:
            return
        with contextlib.suppress(IpfsmemError, OSError):  # the call reports it, or the next sync publishes it
            memory = self._served.holder.memory()
            if memory.mode.published and memory.replica.config.providers:
                self._standby = self._stand_by()
            self._stand_by = None

    def end(self) -> None:
        """End or release the process, once the last sync here has ended."""
        self._stand_by = None
        if self._standby is None:
            return
        with contextlib.suppress(Exception):
            memory = self._served.holder.memory_if_unlocked()
            if memory is not None and not unpublished_kinds(memory.replica):
                self._standby.dismiss()
                return
        self._standby.release()


async def _keep_in_sync(served: MemoryServer, stopped: asyncio.Event) -> None:
    """Keep the memory in sync while it is unlocked, until `stopped` is set."""
    last_words = ""
    place: Path | None = None

    def say(words: str) -> None:
        nonlocal last_words
        if words and words != last_words:
            print(f"ipfsmem serve mcp: {words}", file=sys.stderr)
        last_words = words

    def on_attempt(attempt: Attempt) -> None:
        if place is not None:
            note_syncing(
                place, attempt.error, brought=attempt.brought
            )  # hooks give its changes at the next prompt
        say("" if attempt.error is None else f"not in sync: {attempt.error}")

    while not stopped.is_set():
        pause = LOCKED_EVERY
        try:
            memory = await served.in_thread(served.holder.memory_if_unlocked, wait=LOOK_WAITS)
            if memory is not None:
                place = memory.replica.folder
                async with memory.lock_watch() as locked, memory.autosync(on_attempt=on_attempt):
                    await _first_of(stopped, locked)
        except PassphraseError as error:  # locked meanwhile; may be unlocked again
            say(f"not in sync: {error.diagnostics()}")
        except IpfsmemError as error:
            say(f"not in sync: {error.diagnostics()}")
            pause = FAILED_EVERY
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopped.wait(), pause)


async def _first_of(*events: asyncio.Event) -> None:
    """Wait until one of the events is set."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waits:
            one.cancel()


#: Seconds between checks, and time limit in seconds for a client to accept a notification.
EVERY: Final = 1.0
HEARS: Final = 1.0


async def watch(served: MemoryServer, every: float = EVERY) -> None:
    """Watch until cancelled, for a lock and for changes: a client that does not read delays only the latter.

    Clients are notified of memories changed by this process, another one, or a sync. A counter is checked each
    second, and the memories only if it changed and a client subscribed.
    """
    async with asyncio.TaskGroup() as looks:
        looks.create_task(_let_go_when_locked(served, every))
        looks.create_task(_tell_of_changes(served, every))


async def _let_go_when_locked(served: MemoryServer, every: float) -> None:
    while True:
        await asyncio.sleep(every)
        try:
            await served.in_thread(served.holder.let_go_when_locked)
        except IpfsmemError:
            continue  # the next call of a tool reports it
        except Exception as error:
            unexpected(error)


async def _tell_of_changes(served: MemoryServer, every: float) -> None:
    while True:
        await asyncio.sleep(every)
        before = served.told
        if before is None:
            continue
        try:
            if await served.in_thread(served.holder.mark, wait=LOOK_WAITS) in (None, before[0]):
                continue
            now = await served.in_thread(served.look, wait=LOOK_WAITS)
            if now is None:
                continue
            served.told = now
            if now[1] != before[1]:
                await tell(served, before[1], now[1], await served.in_thread(served.indexes, wait=LOOK_WAITS))
        except IpfsmemError:
            continue  # unreadable now, and checked again; the next call of a tool reports it
        except Exception as error:
            unexpected(error)
            served.told = None  # until a client asks for resources again


async def tell(served: MemoryServer, before: dict[str, str], now: dict[str, str], indexes: list[str]) -> None:
    """Send the changes between two checks to subscribers."""
    import anyio
    from mcp.server.subscriptions import ResourcesListChanged, ResourceUpdated

    changed = [uri for uri in before.keys() | now.keys() if before.get(uri) != now.get(uri)]
    listed = before.keys() != now.keys()
    updated = sorted([*indexes, *changed])
    for uri in updated:
        await served.bus.publish(ResourceUpdated(uri=uri))
    if listed:
        await served.bus.publish(ResourcesListChanged())
    for there in served.conversations:
        session = there.session
        if session is None:
            continue
        # A client that is gone gets nothing, and one that does not read does not delay the others.
        with contextlib.suppress(Exception), anyio.move_on_after(HEARS):
            for uri in updated:
                if uri in there.subscribed:
                    await session.send_resource_updated(uri)
            if listed:
                await session.send_resource_list_changed()
