"""Services that list a pin only after a delay."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from ipfsmem.device.replica import Environment
from ipfsmem.memory import Memory
from ipfsmem.sync.upload import LIST_LAG_MS
from ipfsmem.testing import MockClock, SeededRandom, SimCloud, SimProvider
from ipfsmem.testing.simulator import FULL
from ipfsmem.vault.home import Home
from tests.support.device_lab import ROOT, says

FOLLOWS = msgspec.structs.replace(FULL, put=False, partial_car=False, has=False, listing=False, names=False)
ONLY_LISTS = msgspec.structs.replace(FULL, partial_car=False, has=False, listing=False)


def synced_beside(service: SimProvider, clock: MockClock, folder: Path) -> Memory:
    """A vault that was synced once with `service`, which stores its root and lists nothing."""
    service.faults.pins = []
    world = Environment(lambda: clock.ms, SeededRandom("late lists"))
    places = (
        [SimProvider(SimCloud(), name="storage"), service] if service.capabilities is FOLLOWS else service
    )
    memory = Memory.create("m", "encrypted-ipfs", provider=places, unlock=ROOT, recovery=False, passphrase=False, home=Home(folder=folder, environment=world))  # fmt: skip
    memory.write("tone", "Be direct.")
    assert asyncio.run(memory.sync()).exit_code == 0
    return memory


@pytest.mark.parametrize(("can", "call"), [(FOLLOWS, "pin"), (ONLY_LISTS, "put_car")])
def test_pin_not_listed_yet_is_requested_again_only_later(tmp_path: Path, can: object, call: str) -> None:
    clock = MockClock()
    service = SimProvider(SimCloud(), name="service", capabilities=can)  # type: ignore[arg-type]
    with synced_beside(service, clock, tmp_path) as memory:
        asked = service.calls.count(call)
        for _ in range(3):
            clock.advance(LIST_LAG_MS / 4000)
            assert says(asyncio.run(memory.sync()), "repaired") == ""
        assert service.calls.count(call) == asked

        clock.advance(LIST_LAG_MS / 1000)
        told = says(asyncio.run(memory.sync()), "repaired")
        assert "service no longer listed" in told
        assert service.calls.count(call) == asked + 1
        clock.advance(LIST_LAG_MS / 2000)
        assert says(asyncio.run(memory.sync()), "repaired") == ""
        assert service.calls.count(call) == asked + 1
