"""A provider that counts: each call is one request, and time inside calls is network time."""

from __future__ import annotations

import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any


class Counting:
    """Forwards every call to another provider and counts it."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.reset()

    def reset(self) -> None:
        """Start from zero."""
        self.requests = 0
        self.seconds = 0.0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not inspect.iscoroutinefunction(found) or name.startswith("_"):
            return found
        return self._counted(found)

    def _counted(self, call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def counted(*args: Any, **options: Any) -> Any:
            self.requests += 1
            started = time.perf_counter()
            try:
                return await call(*args, **options)
            finally:
                self.seconds += time.perf_counter() - started

        return counted
