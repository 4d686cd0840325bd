"""A deterministic clock and source of randomness for tests.

Neither asks the system for the time or for entropy.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

T = TypeVar("T")

#: 2026-01-01T00:00:00Z in nanoseconds since 1970.
START: Final = 1_767_225_600 * 10**9
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class MockClock:
    """Time that moves only through `advance` and `sleep`. Calling it returns nanoseconds since 1970 UTC."""

    def __init__(self, start: int = START) -> None:
        self.ns = start

    def __call__(self) -> int:
        """Return nanoseconds since 1970 UTC, like `time.time_ns`."""
        return self.ns

    @property
    def ms(self) -> int:
        """Milliseconds since 1970 UTC."""
        return self.ns // 1_000_000

    @property
    def now(self) -> datetime:
        """The time as a datetime in UTC, to the microsecond."""
        return _EPOCH + timedelta(microseconds=self.ns // 1000)

    def advance(self, seconds: float) -> None:
        """Let time pass; a negative number sets the clock back."""
        self.ns += round(seconds * 10**9)

    async def sleep(self, seconds: float) -> None:
        """Let time pass and give other tasks a turn. Returns at once in real time."""
        self.advance(seconds)
        await asyncio.sleep(0)


class SeededRandom:
    """Bytes that look random and depend only on the seed, the same on every Python version.

    Calling it with a number returns that many bytes, like `secrets.token_bytes` and `os.urandom`.
    """

    def __init__(self, seed: int | str = 0) -> None:
        self._seed = str(seed).encode()
        self._count = 0
        self._rest = b""

    def __call__(self, size: int) -> bytes:
        """Return the next `size` bytes."""
        while len(self._rest) < size:
            self._rest += hashlib.sha256(b"%s/%d" % (self._seed, self._count)).digest()
            self._count += 1
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken

    def below(self, limit: int) -> int:
        """Return a number from 0 to `limit` - 1."""
        return int.from_bytes(self(16), "big") % limit

    def shuffled(self, items: Iterable[T]) -> list[T]:
        """Return the items in another order."""
        out = list(items)
        for i in range(len(out) - 1, 0, -1):
            j = self.below(i + 1)
            out[i], out[j] = out[j], out[i]
        return out
