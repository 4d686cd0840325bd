"""What modules remember of one open vault, each under a class of its own, so that nothing below them has to know them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar, runtime_checkable

T = TypeVar("T")


@runtime_checkable
class Stored(Protocol):
    """A cache that is stored for the next process when the vault is closed."""

    def keep(self) -> None:
        """Store it. What cannot be stored is made again there."""
        ...


class Caches:
    """Caches by class, made on first use."""

    def __init__(self) -> None:
        self._held: dict[type[Any], Any] = {}

    def of(self, kind: type[T], make: Callable[[], T] | None = None) -> T:
        """Return the cache of a class. `make` makes the first one; None: the class, without arguments."""
        cached: T | None = self._held.get(kind)
        if cached is None:
            cached = self._held[kind] = kind() if make is None else make()
        return cached

    def find(self, kind: type[T]) -> T | None:
        """Return the cache of a class if there is one."""
        return self._held.get(kind)

    def forget(self, kind: type[Any]) -> None:
        """Forget the cache of a class."""
        self._held.pop(kind, None)

    def clear(self) -> None:
        """Forget all."""
        self._held.clear()

    def keep(self) -> None:
        """Store those that are stored for the next process."""
        for one in list(self._held.values()):
            if isinstance(one, Stored):
                one.keep()
