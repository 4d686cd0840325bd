"""Concurrent first syncs and restores, and a clock that is a year off, lose nothing and converge."""

from __future__ import annotations

import asyncio

import pytest

from ipfsmem.memory import Memory
from tests.support.device_lab import Lab, all_texts, events, same

YEAR = 366 * 86400


def at_once(*memories: Memory) -> None:
    """Sync all devices with their calls interleaved."""

    async def all_of_them() -> None:
        await asyncio.gather(*(memory.sync() for memory in memories))

    asyncio.run(all_of_them())


def alike(lab: Lab, texts: set[str], kinds: set[str], *memories: Memory) -> None:
    """Check that all devices, and a new one, end with these texts and events."""
    lab.settle(*memories)
    lab.rest(*memories)
    same(*memories)
    for memory in (*memories, lab.restore("new")):
        assert texts <= all_texts(memory) and kinds <= set(events(memory))


def test_two_concurrent_first_syncs_to_an_empty_provider_converge(lab: Lab) -> None:
    """One wallet creates its vault on two devices."""
    a, b = lab.create("a"), lab.create("b")
    for name, memory in (("a", a), ("b", b)):
        memory.write("tone", f"by {name}")
        memory.write(f"of_{name}", f"only {name}")
        memory.note(f"noted by {name}")
    at_once(a, b)
    alike(lab, {"by a", "by b", "only a", "only b"}, {"noted by a", "noted by b"}, a, b)


def test_two_concurrent_restores_converge(lab: Lab) -> None:
    a = lab.create("a")
    a.write("tone", "by a")
    lab.sync(a)
    b, c = lab.restore_at_once("b", "c")
    for name, memory in (("b", b), ("c", c)):
        assert all_texts(memory) == {"by a"}
        memory.write("role", f"by {name}")
        memory.note(f"noted by {name}")
    at_once(a, b, c)
    alike(lab, {"by a", "by b", "by c"}, {"noted by b", "noted by c"}, a, b, c)


@pytest.mark.parametrize("years", [1, -1])
def test_device_with_a_clock_off_by_a_year_loses_nothing(lab: Lab, years: int) -> None:
    a, b, c = lab.three()
    lab.skew["b"] = years * YEAR
    for turn in range(3):
        for name, memory in (("a", a), ("b", b), ("c", c)):
            memory.write(f"k{turn}", f"{turn} by {name}")
            memory.note(f"{turn} noted by {name}")
            lab.sync(memory)
        lab.clock.advance(3601)
    for _ in range(3):
        for memory in (a, b, c):
            lab.sync(memory)
        lab.clock.advance(3601)
    written = {text for text in all_texts(b) if text.startswith("2 ")}
    assert written and written <= all_texts(a) and written <= all_texts(c)
    lab.skew["b"] = 0
    b.write("after", "after it was put right")
    alike(
        lab,
        {"after it was put right", *written},
        {f"{turn} noted by {name}" for turn in range(3) for name in "abc"},
        a, b, c,
    )  # fmt: skip
