"""A Timing for providers with a MockClock: pauses pass at once and are recorded."""

from __future__ import annotations

from ipfsmem_providers.http.policy import Timing

from ipfsmem.testing import MockClock


class Clockwork:
    """`timing` for a provider's settings; `pauses` are the seconds it slept."""

    def __init__(self, chance: float = 1.0) -> None:
        self.clock = MockClock()
        self.pauses: list[float] = []

        async def sleep(seconds: float) -> None:
            self.pauses.append(seconds)
            await self.clock.sleep(seconds)

        def now() -> float:
            return self.clock.ns / 1e9

        self.timing = Timing(now=now, wall=now, sleep=sleep, random=lambda: chance)
