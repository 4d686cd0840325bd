"""Uses are counted for opened and delivered memories, slow their decay, change no recall, and are shared once a day."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from ipfsmem.bundle.program_events import is_use
from ipfsmem.device.access_counts import _FILES, AccessCounts
from ipfsmem.memory import Memory
from ipfsmem.recall.priority import faded, priority
from tests.support.device_lab import Lab

DAY = timedelta(days=1).total_seconds()


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def scores(memory: Memory, query: str = "tea") -> dict[str, dict[str, float]]:
    return {hit.key: hit.parts for hit in memory.recall(query, explain=True).hits}


def used(memory: Memory) -> dict[tuple[str, str], int]:
    return {place: use.times for place, use in memory._open.uses().all()}


def test_opened_and_delivered_memories_are_used_and_found_ones_are_not(lab: Lab) -> None:
    memory = lab.create("a")
    for key in ("green", "black"):
        memory.write(key, f"{key} tea", description=f"tea {key}")
    memory.list(), memory.read("green", counts=False), memory.index(), memory.why("green", "tea")
    memory.context(), memory.context("tea", preview=True), memory.files(), memory.conflicts()
    memory.duplicates(), memory.recall("green tea"), memory.recall("tea", kind="all"), memory.read("none")
    memory.stack("work", "").recall("tea"), memory.write("black", "black tea, strong")
    assert used(memory) == {}
    assert memory.read("green") is not None
    assert used(memory) == {("", "green"): 1}
    memory.context("black tea", layout="turn")
    assert used(memory) == {("", "green"): 2, ("", "black"): 1}
    memory.scope("work").write("green", "work tea")
    assert memory.scope("work").read("green") is not None
    assert used(memory)["work", "green"] == 1 and used(memory)["", "green"] == 2
    assert memory.stack("work", "").read("black") is not None
    assert used(memory)["", "black"] == 2


def test_memory_compared_with_a_new_fact_is_not_used(lab: Lab) -> None:
    memory = lab.create("a")
    memory.write("green", "green tea")
    memory.facts.add("Whoever likes green tea likes black tea")
    assert used(memory) == {}


@pytest.mark.parametrize("again", [False, True])
def test_use_slows_fading_and_changes_no_answer_of_recall(lab: Lab, again: bool) -> None:
    memory = lab.create("a")
    for key in ("green", "black"):
        memory.write(key, f"{key} tea", fields={"decay": "30d", "confidence": "0.5", "category": "drink"})
    lab.clock.advance(14 * DAY)
    before = scores(memory)
    assert before["green"]["recency"] == before["black"]["recency"] == pytest.approx(0.5 * 0.25)
    for _ in range(2):
        memory.read("green")
    if again:
        memory.close()
        memory = lab.open("a")
    assert scores(memory) == before
    left = {fact.key: fact.confidence_now for fact in memory.facts.list()}
    assert left["green"] == 1.0  # 0.5, twice
    assert left["black"] == pytest.approx(0.5 * 2.718281828 ** (-14 / 30), abs=1e-6)
    lab.clock.advance(DAY)
    day = scores(memory)
    assert day["green"] == day["black"]


def test_context_block_is_constant_within_a_day(lab: Lab) -> None:
    memory = lab.create("a")
    for n in range(60):
        memory.write(f"k{n:02}", f"tea number {n}", description="of a certain length, so that few have room")
    lab.clock.advance(60 * DAY)
    blocks = {memory.context("tea number 3", max_tokens=900).text for _ in range(3)}
    assert len(blocks) == 1
    for _ in range(3):
        memory.read("k07")
    memory.close()
    memory = lab.open("a")
    assert memory.context("tea number 3", max_tokens=900).text in blocks
    before = memory.context(max_tokens=300).text
    assert "(k07.md)" not in before
    lab.clock.advance(DAY)
    assert "(k07.md)" in memory.context(max_tokens=300).text  # uses of yesterday


def test_use_table_of_an_earlier_version_is_read(lab: Lab) -> None:
    memory = lab.create("a")
    memory.write("green", "green tea")
    assert memory.read("green") is not None
    uses = memory._open.uses()
    uses.write()
    rows = [("", "green", 3, memory.replica.environment.utc_today().toordinal(), 3)]
    path = lab.home("a").rglob("recall.uses").__next__()
    _FILES.save(memory.replica, path, msgspec.msgpack.encode([rows, 0]), durable=False)
    use = AccessCounts(memory.replica).of(("", "green"))
    assert use is not None and use.times == 3
    assert AccessCounts(memory.replica).before_today() == {}


def told(memory: Memory) -> list[dict[str, int]]:
    return [event["counts"] for event in memory.timeline.read() if is_use(event)]


def test_uses_of_a_day_are_shared_once_with_the_next_write(lab: Lab) -> None:
    memory = lab.create("a")
    memory.write("green", "green tea")
    memory.scope("work").write("plan", "tea at work")
    memory.read("green")
    memory.scope("work").read("plan")
    memory.write("black", "black tea")
    assert told(memory) == []  # the day is not over
    lab.clock.advance(DAY)
    assert told(memory) == []
    memory.note("visit", text="x")
    memory.write("black", "black tea, strong")
    assert told(memory) == [{"green": 1}]
    assert "green" not in memory.context("tea", layout="full").text.split("<memory-timeline")[1]
    assert not memory.recall("green", kind="event").moments
    memory.scope("work").write("more", "x")
    assert told(memory.scope("work")) == []  # one event per device and day
    lab.clock.advance(DAY)
    memory.scope("work").write("more", "y")
    assert told(memory.scope("work")) == [{"plan": 1}] and told(memory) == [{"green": 1}]
    lab.clock.advance(DAY)
    memory.note("visit", text="y")
    assert told(memory) == [{"green": 1}, {"green": 1, "black": 1}]  # for the context, two days ago
    lab.clock.advance(DAY)
    memory.note("visit", text="z")
    assert len(told(memory)) == 2


@pytest.mark.parametrize("again", [False, True])
def test_clock_ahead_does_not_distort_uses(lab: Lab, again: bool) -> None:
    memory = lab.create("a")
    for key in ("green", "black"):
        memory.write(key, f"{key} tea", fields={"decay": "30d"})
    lab.clock.advance(3650 * DAY)
    memory.read("green")
    if again:
        memory.close()
        memory = lab.open("a")
    lab.clock.advance(-3636 * DAY)
    assert memory._open.uses().of(("", "green")) == (1, 0, 1, 0, 0)
    memory.read("green")
    uses = memory._open.uses()
    assert uses.before_today() == {("", "green"): (1, 0, 0, 0, 0)}
    lab.clock.advance(DAY)
    memory.write("other", "Something else")
    assert told(memory) == [{"green": 2}]


def test_failed_write_shares_no_uses(lab: Lab) -> None:
    memory = lab.create("a")
    memory.write("green", "green tea")
    memory.read("green")
    lab.clock.advance(DAY)
    with pytest.raises(Exception, match="changed since it was read"):
        memory.write("green", "x", if_match="0" * 64)
    assert told(memory) == []
    memory.write("green", "x")
    assert told(memory) == [{"green": 1}]


def test_use_table_is_sealed_and_a_damaged_one_is_ignored(lab: Lab) -> None:
    memory = lab.create("a")
    memory.write("greenish", "green tea")
    memory.read("greenish")
    memory.close()
    (path,) = lab.home("a").rglob("recall.uses")
    assert b"greenish" not in path.read_bytes()
    for damage in (b"", b"x" * 40, path.read_bytes()[:-3]):
        path.write_bytes(damage)
        memory = lab.open("a")
        assert used(memory) == {}
        memory.read("greenish")
        memory.close()
        memory = lab.open("a")
        assert used(memory) == {("", "greenish"): 1}
        memory.close()


def test_two_processes_count_uses_together(lab: Lab) -> None:
    memory = lab.create("a")
    memory.write("green", "green tea")
    one, other = AccessCounts(memory.replica), AccessCounts(memory.replica)
    for _ in range(3):
        one.count([("", "green")])
        other.count([("", "green")])
    one.write(), other.write()
    assert AccessCounts(memory.replica).of(("", "green")).times == 6  # type: ignore[union-attr]


def test_decay_depends_only_on_its_inputs() -> None:
    """The number of sweeps does not matter."""
    assert faded(0.8, 0.01, 70) == pytest.approx(0.8 * 2.718281828**-0.7)
    assert faded(0.8, 0.01, 1) == 0.8 and faded(0.8, 0.01, -5) == 0.8
    assert faded(0.1, 0.01, 70, uses=0) == faded(0.1, 0.01, 70, uses=1) < faded(0.1, 0.01, 70, uses=2)
    assert faded(0.8, 0.01, 70, uses=10**9) == 1.0
    assert priority("user", 0, confidence=0.5, uses=4) == priority("user", 0)
