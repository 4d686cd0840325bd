"""Traces of a forgotten memory on this device: in mode `local` no byte of its texts remains."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from ipfsmem import Memory
from ipfsmem.device.tables import tracked_files
from ipfsmem.device.tables.tracked_files import texts_needed
from ipfsmem.memories import purge
from ipfsmem.memories.fact_history import earlier
from ipfsmem.operations.forget import Forgotten
from tests.support.files_lab import Lab

CANARY = b"CANARY-4f1d"


def holding(lab: Lab) -> list[str]:
    """Return the files below this device's folders that contain the canary."""
    places = [lab.home, lab.dir] if lab.adopt else [lab.home]
    return [
        str(path)
        for place in places
        for path in place.rglob("*")
        if path.is_file() and not path.is_symlink() and CANARY in path.read_bytes()
    ]


@pytest.mark.parametrize("count", [1, 60])
@pytest.mark.parametrize("adopt", [False, True])
def test_forgotten_text_leaves_no_byte_on_the_disk_in_mode_local(
    tmp_path: Path, count: int, adopt: bool
) -> None:
    """Name and description are texts too."""
    lab = Lab(tmp_path, adopt=adopt)
    memory = lab.start()
    for n in range(count):
        memory.write_text(f"other{n}", b"another text, number %d\n" % n)
    memory.write("secret", "first " + CANARY.decode(), name=CANARY.decode(), description=CANARY.decode())
    for n in range(12):
        lab.clock.advance(7)
        memory.write("secret", f"version {n} of {CANARY.decode()}")
    (lab.dir / "secret.md").write_bytes(b"by hand: " + CANARY + b"\n")
    lab.look()
    lab.sibling("secret", b"from elsewhere: " + CANARY + b"\n")
    memory.index()
    lab.again()
    memory = lab.memory
    assert holding(lab)
    assert memory.forget("secret")
    lab.look()
    assert holding(lab) == []
    assert memory.read("secret") is None
    lab.again()
    lab.look()
    assert holding(lab) == []
    assert len(lab.memory.list()) == count
    assert [finding for finding in lab.memory.check() if finding.level == "error"] == []
    lab.memory.close()


def test_merge_bases_of_plain_files_survive_forgetting_of_another_memory(tmp_path: Path) -> None:
    """A merged text is not a value of the state, but an edit of its file is still merged with it."""
    lab = Lab(tmp_path)
    memory = lab.start()
    memory.write_text("tone", b"a\nb\nc\n")
    memory.write_text("old", b"old\n")
    memory.write_text("tone", b"a\nb\nC\n", seen=memory.read("tone"))
    memory.forget("old")
    (lab.dir / "tone.md").write_bytes(b"A\nb\nc\n")
    lab.look()
    assert memory.read("tone").data == b"A\nb\nC\n"  # type: ignore[union-attr]
    memory.close()


@pytest.mark.parametrize("parts", [1, 5])
def test_forgotten_session_leaves_no_byte_after_one_collection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: int
) -> None:
    lab = Lab(tmp_path)
    memory = lab.start()
    memory.write_text("other", b"another text\n")
    for _ in range(parts):
        memory.sessions.add("talk", [{"role": "user", "content": CANARY.decode() + " x" * 10_000}])
    memory.recall("other", kind="all")
    assert [one.parts for one in memory.sessions.known()] == [parts]
    lab.again()
    lab.look()
    assert holding(lab)
    collected: list[tuple[str, ...]] = []
    production = purge.collect

    def collect(*of: Any, **named: Any) -> Any:
        collected.append(tuple(named["forgotten"]))
        return production(*of, **named)

    monkeypatch.setattr(purge, "collect", collect)
    assert lab.memory.sessions.forget("talk")
    lab.look()
    assert holding(lab) == [] and [len(keys) for keys in collected] == [parts]
    lab.again()
    lab.look()
    assert holding(lab) == [] and [one.key for one in lab.memory.list()] == ["other"]
    assert [finding for finding in lab.memory.check() if finding.level == "error"] == []
    lab.memory.close()


def test_forgotten_scope_leaves_no_byte_in_mode_local(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    memory = lab.start()
    memory.write_text("other", b"another text\n")
    memory.scopes.make("work")
    work = memory.scope("work")
    for n in range(3):
        work.write("secret", f"version {n} of {CANARY.decode()}", name=CANARY.decode())
    work.sessions.add("talk", [{"role": "user", "content": CANARY.decode()}])
    work.recall("version", kind="all")
    lab.again()
    assert holding(lab)
    assert lab.memory.scopes.forget("work")
    assert holding(lab) == []
    lab.again()
    assert holding(lab) == []
    lab.memory.close()


def test_forget_returns_the_scope_and_false_without_a_memory(tmp_path: Path) -> None:
    with Memory.create("alex", "local", home=tmp_path) as memory:
        shop = memory.scope("shop")
        gone = shop.forget("tone", seen=shop.write("tone", "direct").seen)
        assert gone == Forgotten(key="tone", scope="shop", forgotten=True)
        assert not shop.forget("tone")
        shop.write("tone", "kind")
        memory.scopes.make("store")
        memory.scopes.redirect("shop", "store")
        store = memory.scope("store")
        assert store.forget("tone", seen=store.read("tone")) == gone
        outcomes = [one.outcome for one in memory.operations.list() if one.operation == "forget"]
        assert outcomes == ["", "NotFoundError", ""]


@pytest.mark.parametrize("seen", [True, False], ids=["seen", "not-seen"])
def test_forget_in_a_lower_scope_keeps_earlier_texts_on_request(tmp_path: Path, seen: bool) -> None:
    with Memory.create("alex", "local", home=tmp_path) as memory:
        shop = memory.scope("shop")
        keys = [shop.facts.add(f"{what} opens at nine").fact.key for what in ("The shop", "The bakery")]
        for key in keys:
            shop.facts.edit(key, "It opens at ten")
        memory.scopes.make("store")
        memory.scopes.redirect("shop", "store")
        store = memory.scope("store")
        for key, keep in zip(keys, (True, False), strict=True):
            shown = store.read(key)
            assert shown is not None and shown.scope == "shop"
            assert store.forget(key, seen=shown if seen else None, keep_earlier=keep)
            assert store.read(key) is None
            assert bool(earlier(memory._open.memories.in_scope("shop"), key)) is keep


def test_forget_requires_no_text_of_the_same_key_in_another_scope(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Edits of a linked folder are merged with it."""
    needed: list[bytes] = []

    def noted(*given: Any) -> Iterator[bytes]:
        for text in texts_needed(*given):
            needed.append(text)
            yield text

    monkeypatch.setattr(tracked_files, "texts_needed", noted)
    with Memory.create("default", "local", home=tmp_path / "home") as memory:
        folder = tmp_path / "work"
        folder.mkdir()
        memory.write("plan", "Everybody's plan.")
        memory.scope("work").write("plan", "The plan at work.")
        memory.folders.attach(folder, scope="work")
        text = sha256((folder / "plan.md").read_bytes()).digest()
        memory.forget("plan")
        assert text in needed
        needed.clear()
        memory.scope("work").forget("plan")
        assert needed and text not in needed


@pytest.mark.parametrize("mode", ["local", "encrypted-ipfs"])
def test_forgotten_scope_leaves_no_text_in_its_folder_or_in_mode_local(tmp_path: Path, mode: Any) -> None:
    folder, home = tmp_path / "work", tmp_path / "home"
    folder.mkdir()
    with Memory.create("default", mode, passphrase=False, home=home) as memory:
        work = memory.scope("work")
        work.write("plan", "A zebraquark at work.")
        memory.folders.attach(folder, scope="work")
        work.write("later", "Another zebraquark at work.")
        (folder / "plan.md").write_text("An edited zebraquark at work.\n")
        memory.write("plan", "Everybody's plan.")
        assert memory.scopes.forget("work").forgotten == 2
    found = [path for path in tmp_path.rglob("*") if path.is_file() and b"zebraquark" in path.read_bytes()]
    assert not found
    with Memory.load("default", home=home) as memory:
        assert memory.read("plan") is not None


def test_reading_segments_takes_constant_steps_per_memory(tmp_path: Path) -> None:
    """A forget reads the segments of a day several times."""
    calls = list[int]()
    with Memory.create("alex", "local", home=tmp_path) as memory:
        store = memory._open.replica.store
        for number in range(40):
            memory.write(
                f"k{number}", f"The text of number {number}.", description="When a test counts steps."
            )
            if number in (9, 39):
                seen = list[str]()
                sys.setprofile(lambda frame, event, of, seen=seen: seen.append(event))  # type: ignore[misc]
                try:
                    found = list(store.segments())
                finally:
                    sys.setprofile(None)
                assert not found
                calls.append(seen.count("call"))
    assert calls[1] < calls[0] + 30
