"""A call that is cancelled while its work waits in a thread: it ends when the work has ended, however often it is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from ipfsmem.memory import Memory


async def ended_when_cancelled(memory: Memory, call: Coroutine[Any, Any, object]) -> None:
    """Cancel a call twice while something else holds the memory's database: it is not done before that is let go."""
    memory.replica.db.lock.acquire()
    task = asyncio.ensure_future(call)
    for _ in range(2):
        await asyncio.sleep(0.01)
        task.cancel()
    await asyncio.sleep(0.01)
    done = task.done()
    memory.replica.db.lock.release()
    assert not done
    with pytest.raises(asyncio.CancelledError):
        await task
