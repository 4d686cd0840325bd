"""Locks and the like for objects that outlive an event loop: those of asyncio belong to the loop that first waits for them.

A provider is open for many syncs, and each may run in another event loop, one after the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class PerLoop(Generic[T]):
    """An object for each event loop, made when the loop first asks for it."""

    def __init__(self, make: Callable[[], T]) -> None:
        """`make` is called in the loop."""
        self._make = make
        self._loop: asyncio.AbstractEventLoop | None = None
        self._one: T

    def __call__(self) -> T:
        """Return the object of the running loop."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._one = loop, self._make()
        return self._one
