"""Background work of a provider that callers do not wait for: announcing stored data to a network.

Each piece of work has a subject; newer work on a subject replaces older. A sync waits for all of it once, at
its end and within the bound; work continues as long as its event loop. Nobody may depend on it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any, Final

from ipfsmem.errors import ProviderError
from ipfsmem_providers.http.per_loop import PerLoop

Work = Coroutine[Any, Any, None]

#: Seconds that a sync waits at its end for all of one provider's work, however slow the network is.
BOUND: Final = 20.0


class BackgroundWork:
    """Work in progress, by subject. Usable from one event loop at a time; work unfinished when a loop ends is lost."""

    def __init__(self, bound: float = BOUND) -> None:
        """`bound`: seconds that `settle` may take."""
        self._bound = bound
        self._running: PerLoop[dict[str, asyncio.Task[ProviderError | None]]] = PerLoop(dict)

    def begin(self, subject: str, work: Work) -> None:
        """Start `work`, which raises ProviderError when it cannot be done."""
        running = self._running()
        older = running.pop(subject, None)
        if older is not None:
            older.cancel()
        running[subject] = asyncio.get_running_loop().create_task(_outcome(work))

    async def settle(self) -> list[str]:
        """Wait for the work within the bound; return the failures in words. Unfinished work continues."""
        running = self._running()
        if not running:
            return []
        begun = dict(running)
        await asyncio.wait(begun.values(), timeout=self._bound)
        failed = []
        for subject, task in begun.items():
            if not task.done():
                failed.append(f"{subject}: no end after {self._bound:g} s")
                continue
            if running.get(subject) is task:
                del running[subject]
            error = None if task.cancelled() else task.result()
            if error is not None:
                failed.append(f"{subject}: {error}")
        return failed

    async def end(self) -> None:
        """Cancel all work."""
        running = self._running()
        tasks = list(running.values())
        running.clear()
        for task in tasks:
            task.cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task


async def _outcome(work: Work) -> ProviderError | None:
    """Return the error as a result: asyncio logs a complaint about a task whose exception nobody asked for."""
    try:
        await work
    except ProviderError as error:
        return error
    return None
