"""Checks that a cancelled call whose work runs in a thread returns only after the work has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from ipfsmem.memory import Memory


async def ended_when_cancelled(memory: Memory, call: Coroutine[Any, Any, object]) -> None:
    """Cancel a call twice while another thread locks the vault's database; check that the call ends only
    after the lock is released."""
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
