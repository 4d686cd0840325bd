"""Hold the caches of one open vault by class, so that lower layers need not know the modules that use them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar, runtime_checkable

T = TypeVar("T")


@runtime_checkable
class Stored(Protocol):
    """A cache that is stored on the disk when the vault is closed, for the next process."""

    def keep(self) -> None:
        """Store the cache. A failure is ignored: the next process rebuilds it."""
        ...


class Caches:
    """Caches by class, made on first use."""

    def __init__(self) -> None:
        self._held: dict[type[Any], Any] = {}

    def of(self, kind: type[T], make: Callable[[], T] | None = None) -> T:
        """Return the cache of a class, created by `make` on first use; None: by the class without arguments."""
        cached: T | None = self._held.get(kind)
        if cached is None:
            cached = self._held[kind] = kind() if make is None else make()
        return cached

    def find(self, kind: type[T]) -> T | None:
        """Return the cache of a class if it exists."""
        return self._held.get(kind)

    def forget(self, kind: type[Any]) -> None:
        """Drop the cache of a class."""
        self._held.pop(kind, None)

    def clear(self) -> None:
        """Drop all caches."""
        self._held.clear()

    def keep(self) -> None:
        """Store all caches of the type `Stored`."""
        for one in list(self._held.values()):
            if isinstance(one, Stored):
                one.keep()
