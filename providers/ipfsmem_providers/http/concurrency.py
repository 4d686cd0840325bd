"""Run tasks concurrently: the first failure cancels the others and is raised unchanged.

`asyncio.TaskGroup` raises an ExceptionGroup instead, which `except ProviderError` does not catch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


async def together(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Return the results of all of `work`, in its order."""
    tasks = [asyncio.ensure_future(item) for item in work]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def for_each(items: Sequence[T], work: Callable[[T], Awaitable[None]], at_once: int) -> None:
    """Run `work` for each item, at most `at_once` concurrently."""
    queue = iter(items)

    async def worker() -> None:
        for item in queue:
            await work(item)

    await together(worker() for _ in range(min(at_once, len(items))))
