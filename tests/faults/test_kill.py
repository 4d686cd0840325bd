"""kill -9 before every change of a file or database that a write, note, import, sync, init or restore makes.

After each kill a new process must open the vault, find everything acknowledged, and sync it to another
device without loss."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ipfsmem.errors import NotFoundError
from ipfsmem.memory import Memory
from tests.faults.fault_lab import (
    ROOT,
    Ack,
    Lab,
    assert_sound,
    closing,
    converge,
    every_boundary,
    lacks,
    merged,
    stay_in_place,
    sync,
    texts,
)

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forks")


@pytest.fixture(autouse=True)
def _place(monkeypatch: pytest.MonkeyPatch) -> None:
    stay_in_place(monkeypatch)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """Two devices that have synced, and have both written since; `b` has published its writes."""
    patch = pytest.MonkeyPatch()
    stay_in_place(patch)
    lab = Lab(tmp_path_factory.mktemp("kill") / "base")
    with closing(lab.create("a")) as (a,):
        files = {f"k{i}.md": f"---\nname: K{i}\n---\n\ntext {i}\n" for i in range(66)}
        a.bundles.import_(json.dumps({"version": "memory/0.1", "index": "", "files": files, "timeline": []}))
        a.note("began", pad="x" * 7900)
        sync(a)
        with closing(lab.restore("b")) as (b,):
            a.write("k1", "by a")
            a.write("only-a", "a alone")
            a.note("walked", by="a")
            b.write("k1", "by b")
            b.write("only-b", "b alone")
            b.note("talked", by="b")
            b.forget("k2")
            sync(b)
    patch.undo()
    return lab


@pytest.fixture
def trial(world: Lab, tmp_path: Path) -> Callable[[int], Lab]:
    """A fresh copy of the world for each kill."""
    return lambda number: world.copy(tmp_path / f"trial-{number}")


def events_of(memory: Memory) -> set[str]:
    return {event["id"] for event in memory.timeline.read()}


def test_killed_write_note_or_forget_is_complete_or_absent(world: Lab, trial: Callable[[int], Lab]) -> None:
    def work(lab: Lab, ack: Ack) -> None:
        memory = lab.open("a")
        memory.write("k0", "second text")
        ack("second")
        memory.write("fresh", "made now")
        ack("fresh")
        ack(memory.note("clapped", n=1, pad="y" * 300)["id"])
        ack(memory.note("clapped", n=2)["id"])
        memory.forget("k5", reason="asked")
        ack("forgot")
        memory.write("k6", "third text")
        ack("third")

    with closing(world.open("a")) as (a,):
        before, events = texts(a), events_of(a)
    count = 0
    for lab, outcome in every_boundary(work, trial, step=2):
        said, count = outcome.acknowledged, count + 1
        with closing(lab.open("a"), lab.open("b")) as (a, b):
            now = texts(a)
            assert now["k0"] == {"second text"} or ("second" not in said and now["k0"] == {"text 0"})
            assert now.get("fresh", set()) == {"made now"} or "fresh" not in said
            assert now["k6"] == {"third text"} or ("third" not in said and now["k6"] == {"text 6"})
            gone = a.read("k5") is None
            assert gone or "forgot" not in said
            assert gone == ("k5" not in now)
            changed = {"k0", "fresh", "k6", "k5"}
            assert {k: v for k, v in now.items() if k not in changed} == {
                k: v for k, v in before.items() if k not in changed
            }
            assert events_of(a) >= events | {text for text in said if "-" in text}
            # "forgot" is recorded after the memory is deleted; a kill in between leaves the memory forgotten.
            assert len(events_of(a)) <= len(events) + 3
            assert_sound(a)
            if count % 3 == 0 or not outcome.killed:
                converge(a, b)
                assert not lacks(texts(a), {k: v for k, v in now.items() if k != "k2"})
    assert count >= 8


def test_killed_import_is_complete_or_absent(world: Lab, trial: Callable[[int], Lab]) -> None:
    """All of an import exists, or nothing; repeated it is complete."""
    files = {f"new{i}.md": f"imported {i}\n" for i in range(5)} | {"k3.md": "another k3\n"}
    timeline = [{"ts": "2026-01-01T00:00:00.000Z", "type": "came", "n": i} for i in range(3)]
    blob = json.dumps({"version": "memory/0.1", "index": "", "files": files, "timeline": timeline})

    def work(lab: Lab, ack: Ack) -> None:
        lab.open("a").bundles.import_(blob)
        ack("imported")

    with closing(world.open("a")) as (a,):
        before = texts(a)
    whole = merged(before, {name[:-3]: {text.strip()} for name, text in files.items()})
    for lab, outcome in every_boundary(work, trial, step=2):
        with closing(lab.open("a"), lab.open("b")) as (a, b):
            came = sum(event["type"] == "came" for event in a.timeline.read())
            assert (texts(a), came) == (whole, 3) or (
                not outcome.acknowledged and (texts(a), came) == (before, 0)
            )
            assert_sound(a)
            a.bundles.import_(blob)
            assert texts(a) == whole
            converge(a, b)


@pytest.mark.parametrize("unlocked", [False, True], ids=["device", "wallet"])
def test_killed_sync_loses_nothing_and_can_be_repeated(
    world: Lab, trial: Callable[[int], Lab], unlocked: bool
) -> None:
    """A sync that dies anywhere loses nothing on this device or another, and the next one finishes it."""

    def work(lab: Lab, ack: Ack) -> None:
        memory = lab.open("a")
        if unlocked:
            memory.unlock(ROOT)
        ack(str(sync(memory).root))

    with closing(world.open("a"), world.open("b")) as (a, b):
        everything = merged(texts(a), texts(b))
        events = events_of(a) | events_of(b)
    del everything["k2"]
    mine = {"k1": {"by a"}, "only-a": {"a alone"}}
    count = 0
    for lab, outcome in every_boundary(work, trial, step=7, first=3 * unlocked):
        count += 1
        with closing(lab.open("b")) as (b,):
            # Another device that syncs meanwhile reads a complete vault, however much was sent.
            report = sync(b)
            assert [n for n in report.notices if n.kind not in ("unlock",)] == [], report.notices
            if outcome.acknowledged:
                assert not lacks(texts(b), mine)
            with closing(lab.open("a")) as (a,):
                assert not lacks(texts(a), mine)
                assert_sound(a)
                converge(a, b)
                # The text changed by both is an alternative of the other; no device had seen both.
                assert not lacks(texts(a), {k: v for k, v in everything.items() if k != "k1"})
                assert {"by a", "by b"} <= texts(a)["k1"]
                assert events_of(a) == events
                assert a.read("k2") is None
    assert count > 5


def test_killed_init_can_be_repeated(tmp_path: Path) -> None:
    def work(lab: Lab, ack: Ack) -> None:
        memory = lab.create("a")
        ack("made")
        memory.write("first", "word")
        ack("wrote")
        memory.close()

    count = 0
    for lab, outcome in every_boundary(work, lambda number: Lab(tmp_path / str(number)), step=4):
        count += 1
        try:
            a = lab.open("a")
        except NotFoundError:
            assert not outcome.acknowledged
            a = lab.create("a")
        with closing(a):
            if "wrote" in outcome.acknowledged:
                assert texts(a) == {"first": {"word"}}
            a.write("second", "word")
            assert_sound(a)
            sync(a)
            with closing(lab.restore("b")) as (b,):
                converge(a, b)
    assert count > 5


def test_killed_restore_can_be_repeated(world: Lab, trial: Callable[[int], Lab]) -> None:
    def work(lab: Lab, ack: Ack) -> None:
        memory = lab.restore("c")
        ack("restored")
        memory.close()

    with closing(world.open("b")) as (b,):
        published = texts(b)
    count = 0
    for lab, outcome in every_boundary(work, trial, step=7):
        count += 1
        if outcome.acknowledged:
            with closing(lab.open("c")) as (c,):
                assert texts(c) == published
        with closing(lab.restore("c"), lab.open("a")) as (c, a):
            assert texts(c) == published
            c.write("only-c", "c alone")
            assert_sound(c)
            if count % 4 == 0:
                converge(c, a)
                assert not lacks(texts(a), {k: v for k, v in published.items() if k != "k1"})
    assert count > 5


def test_killed_copied_device_loses_no_text(
    world: Lab, trial: Callable[[int], Lab], monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(lab: Lab, ack: Ack) -> None:
        monkeypatch.setattr("ipfsmem.device.replica.place", lambda path: "there")
        memory = lab.open("a")
        report = sync(memory)
        assert report.new_identity
        ack(memory.device)

    with closing(world.open("a"), world.open("b")) as (a, b):
        old, events = a.device, events_of(a) | events_of(b)
        mine = {"k1": {"by a"}, "only-a": {"a alone"}}
        before = {key: bodies for key, bodies in texts(a).items() if key != "k2"}
    for lab, outcome in every_boundary(work, trial, step=9):
        monkeypatch.setattr("ipfsmem.device.replica.place", lambda path: "there")
        with closing(lab.open("a")) as (a,):
            if outcome.acknowledged:
                assert a.device == outcome.acknowledged[0] != old
            assert not lacks(texts(a), before)
            # Others find the new id through the anchor, which only an unlocked wallet moves.
            assert "unlock" in {notice.kind for notice in sync(a).notices}
            assert a.device != old
            a.unlock(ROOT)
            sync(a)
            assert not lacks(texts(a), before)
            monkeypatch.setattr("ipfsmem.device.replica.place", lambda path: "here")
            with closing(lab.open("b")) as (b,):
                sync(b)
                assert not lacks(texts(b), mine) and not lacks(texts(b), before)
                # Timeline lines may move to the new id; their contents all remain.
                said = {(e["ts"], e["type"]) for e in b.timeline.read()}
                assert len(said) == len(events)
