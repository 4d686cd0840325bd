"""Locks for objects that outlive an event loop: asyncio's belong to the loop in which somebody first waited for them.

A provider is open for many syncs, and each may run in a loop of its own, one after the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class PerLoop(Generic[T]):
    """One of something for each event loop, made when the loop first asks for it."""

    def __init__(self, make: Callable[[], T]) -> None:
        """`make` is called in the loop."""
        self._make = make
        self._loop: asyncio.AbstractEventLoop | None = None
        self._one: T

    def __call__(self) -> T:
        """The one of the running loop."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._one = loop, self._make()
        return self._one
