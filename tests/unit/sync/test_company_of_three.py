"""A healthy provider next to two faulty ones with different faults."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import combinations_with_replacement, pairwise
from pathlib import Path

import pytest

from ipfsmem.cli.sync_cmd import paragraph
from ipfsmem.sync.company import HURRY
from ipfsmem.sync.report import SyncReport
from ipfsmem.testing import SimCloud, SimProvider
from ipfsmem.testing.clock import MockClock
from tests.support import virtual_time
from tests.support.effort import THOROUGH
from tests.unit.sync.test_company import ILLNESSES, Healthy, Neighbour, device, lying, slow

Illness = Callable[[Neighbour, Healthy], None]
#: All pairs in a long run, else each fault with the next one.
PAIRS = (
    list(combinations_with_replacement(ILLNESSES, 2))
    if THOROUGH
    else list(pairwise([*ILLNESSES, ILLNESSES[0]]))
)


def well(neighbour: Neighbour, healthy: Healthy) -> None:
    """No fault."""


class World:
    """A vault at three providers, and the clock of its device."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.clouds = SimCloud(), SimCloud(), SimCloud()
        self.clock = MockClock()

    def sync(self, one: Illness, other: Illness, text: str | None) -> tuple[SyncReport, float, float]:
        """Return the report of a sync, and the times at which the healthy provider had the write and the
        sync ended, in the loop's seconds."""

        async def main() -> tuple[SyncReport, float, float]:
            healthy = Healthy(self.clouds[0])
            sick = [Neighbour(self.clouds[1]), Neighbour(self.clouds[2])]
            sick[1]._name = "further"
            for neighbour, illness in zip(sick, (one, other), strict=True):
                illness(neighbour, healthy)
            with device(self.home, "a", [sick[0], healthy, sick[1]], self.clock) as memory:
                if text is not None:
                    memory.write("k", text)
                loop = asyncio.get_running_loop()
                began = loop.time()
                work = asyncio.ensure_future(memory.sync())
                if text is not None:
                    await healthy.held.wait()
                held = loop.time() - began
                return await work, held, loop.time() - began

        return virtual_time.run(main())

    def read_at(self, which: int) -> str:
        """Return what a new device reads at one of the three."""
        home = self.home / f"reader {which} {len(list(self.home.iterdir()))}"
        with device(home, "b", [SimProvider(self.clouds[which], name="only")]) as memory:
            return memory.read("k").file.body  # type: ignore[union-attr]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_write_next_to_two_failing_providers_reaches_the_healthy_one_soon(
    one: Illness, other: Illness, tmp_path: Path
) -> None:
    world = World(tmp_path)
    assert world.sync(well, well, "text")[0].exit_code == 0
    report, held, ended = world.sync(one, other, "new text")
    assert report.published and world.read_at(0) == "new text"
    assert held <= 2 * HURRY + 0.2 and ended <= 20
    missed = {name for name, illness in (("neighbour", one), ("further", other)) if illness is not slow}
    if lying not in (one, other):  # what it claims to have is checked over time
        assert missed == set(report.not_placed) and bool(report.exit_code) == bool(missed)
    unchanged, *_ = world.sync(one, other, None)
    assert "Up to date" not in paragraph(unchanged) or not unchanged.exit_code
    world.clock.advance(61)
    later, *_ = world.sync(well, well, None)
    if lying not in (one, other):
        assert later.exit_code == 0 and {world.read_at(n) for n in range(3)} == {"new text"}
