"""kill -9 before every change of a file or database that a dream makes: proposed, applied, undone, applied at
once.

A new process finds the memories as before the dream or as after it, reports the truth, and can dream
again."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ipfsmem.device.dream_notes import is_dreaming
from ipfsmem.memory import Memory
from ipfsmem.operations.dreams import DreamLines
from tests.faults.fault_lab import Ack, Lab, assert_sound, closing, every_boundary, stay_in_place, texts

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forks")

TEA = "They drink green tea every morning. They never add sugar."


@pytest.fixture(autouse=True)
def _place(monkeypatch: pytest.MonkeyPatch) -> None:
    stay_in_place(monkeypatch)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """Three memories of which a dream removes one, changes one and rewrites one, and an expiring one."""
    patch = pytest.MonkeyPatch()
    stay_in_place(patch)
    lab = Lab(tmp_path_factory.mktemp("dream") / "base")
    with closing(lab.create("a")) as (a,):
        a.write("tea", TEA)
        a.write("tea_too", TEA, description="What they drink")
        a.write("see", "See [[tea]] and [[tea_too]].")
        a.write("offer", "Half the price.", fields={"expires": "2020-01-01"})
    patch.undo()
    return lab


@pytest.fixture
def trial(world: Lab, tmp_path: Path) -> Callable[[int], Lab]:
    """A fresh copy of the world for each kill."""
    return lambda number: world.copy(tmp_path / f"trial-{number}")


def test_killed_dream_is_applied_completely_or_not_at_all(world: Lab, trial: Callable[[int], Lab]) -> None:
    def work(lab: Lab, ack: Ack) -> None:
        memory = lab.open("a")
        made = memory.dreams.propose()
        ack("proposed")
        memory.dreams.apply(made.id)
        ack("done")
        memory.dreams.undo()
        ack("undone")
        memory.dreams.run()
        ack("run")

    with closing(world.open("a")) as (a,):
        before = texts(a)
    with closing(trial(-1).open("a")) as (a,):
        a.dreams.run()
        after = texts(a)
    assert before != after and {"offer"} | {"tea"} == before.keys() - after.keys()
    seen = set[tuple[bool, str]]()
    for lab, outcome in every_boundary(work, trial, step=2):
        said = outcome.acknowledged[-1] if outcome.acknowledged else ""
        with closing(lab.open("a")) as (a,):
            now = texts(a)
            assert now in (before, after), "never a part of it"
            dreamt = now == after
            seen.add((dreamt, said))
            assert {"": False, "proposed": None, "done": None, "undone": None, "run": True}[said] in (
                None,
                dreamt,
            )
            assert counted(a) == ("dream" if dreamt else "none"), "the timeline says what is so"
            assert [one.written + one.removed for one in lines(a)] == ([3] if dreamt else [])
            folder, status = a.replica.folder, a.dreams.status()
            assert folder is not None and not is_dreaming(folder) and not status.under_way
            if said == "proposed" and not dreamt:
                assert status.changes == 3, "what was proposed is there until it is done"
            if dreamt:
                assert set(a.dreams.undo().back) == {"tea", "see", "offer"} and texts(a) == before
            a.dreams.run()
            assert texts(a) == after and counted(a) == "dream"
            assert_sound(a)
    assert {dreamt for dreamt, _ in seen} == {True, False}


def counted(memory: Memory) -> str:
    """Return the number of applied dreams that were not undone, by the events."""
    kinds = [event["type"] for event in memory.timeline.read() if event["type"].startswith("dream")]
    return {0: "none", 1: "dream"}[kinds.count("dream") - kinds.count("dream_undone")]


def lines(memory: Memory) -> DreamLines:
    return memory.dreams.list()
