"""Notify clients of changed memories, whether by this process, another one, or a sync.

A counter is checked each second, and the memories only if it changed and a client subscribed.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

from ipfsmem.device.lock import LOOK_WAITS
from ipfsmem.errors import IpfsmemError
from ipfsmem.mcp.server import unexpected

if TYPE_CHECKING:
    from ipfsmem.mcp.server import MemoryServer

#: Seconds between checks, and time limit in seconds for a client to accept a notification.
EVERY: Final = 1.0
HEARS: Final = 1.0


async def watch(served: MemoryServer, every: float = EVERY) -> None:
    """Watch until cancelled, for a lock and for changes: a client that does not read delays only the latter."""
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
