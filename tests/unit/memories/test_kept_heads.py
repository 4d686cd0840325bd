"""The headers saved by a list for the next process: it opens no text and returns the same list."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.causal.entries import memory_name
from ipfsmem.device.state import StateStore
from ipfsmem.errors import NotFoundError
from ipfsmem.memories import kept_heads, search_index
from ipfsmem.memory import Memory
from tests.support.device_lab import Lab


@pytest.fixture(autouse=True)
def each_header_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_heads, "NEW", 1)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the names of the texts that are opened."""
    found: list[str] = []
    body = StateStore.body

    def seen(self: StateStore, name: str, *given: Any) -> bytes | None:
        if memory_name(name) is not None:
            found.append(name)
        return body(self, name, *given)

    monkeypatch.setattr(StateStore, "body", seen)
    return found


def images(home: Path) -> list[Path]:
    return sorted(home.rglob("recall-*.image"))


def lines(memory: Memory, scope: str = "") -> list[Any]:
    return (memory.scope(scope) if scope else memory).list()


def test_next_process_opens_only_changed_texts(lab: Lab, opened: list[str]) -> None:
    memory = lab.create("a")
    for n in range(5):
        memory.write(f"k{n}", f"Text {n}", name=f"Name {n}", tags=["a", f"t{n}"])
    memory.scope("work").write("k0", "Text 0", name="Elsewhere")
    before = [lines(memory), lines(memory, "work")]
    memory.close()
    opened.clear()
    memory = lab.open("a")
    assert [lines(memory), lines(memory, "work")] == before and opened == []
    memory.write("k1", "Changed", name="Another")
    memory.forget("k2")
    memory.close()
    opened.clear()
    memory = lab.open("a")
    changed = lines(memory)
    assert set(opened) == {"m/k1"}
    assert [one.file.name for one in changed] == ["Name 0", "Another", "Name 3", "Name 4"]
    memory.close()
    for image in images(lab.home("a")):
        image.unlink()
    memory = lab.open("a")
    assert lines(memory) == changed
    memory.close()


def test_text_lost_on_disk_is_not_listed_as_present_by_a_cached_header(lab: Lab) -> None:
    memory = lab.create("a")
    for key in ("lost", "same", "other"):
        memory.write(key, "tea" if key != "other" else "coffee", name="Drink")
    memory.close()
    memory = lab.open("a")
    lines(memory)
    with memory.replica.transaction():
        (value,) = memory.replica.store.entry("m/lost").values()
        assert value.loc is not None
        memory.replica.db.connection.execute(
            "DELETE FROM blocks WHERE digest=?", (bytes.fromhex(value.loc.sha),)
        )
    memory.close()
    memory = lab.open("a")
    found = {one.key: one.fetched for one in lines(memory)}
    with pytest.raises(NotFoundError):
        memory.read("lost")
    assert found == {"lost": False, "same": True, "other": True}
    memory.close()


def test_cached_headers_of_sealed_vault_are_sealed_and_damage_is_repaired(
    lab: Lab, opened: list[str]
) -> None:
    memory = lab.create("a")
    memory.scope("zebrascope").write("zebrakey", "tea", name="Zebraname", description="Zebradescription")
    memory.write("k", "tea", name="Zebraother")
    before = [lines(memory), lines(memory, "zebrascope")]
    memory.close()
    found = images(lab.home("a"))
    assert len(found) == 2
    for path in lab.home("a").rglob("*"):
        assert "zebra" not in path.name and (path.is_dir() or b"zebra" not in path.read_bytes().lower())
    # Each under the other's name, truncated, and empty.
    one, other = (path.read_bytes() for path in found)
    for data in ((other, one), (one[:-1], other[:40]), (b"", b"x")):
        for path, stored in zip(found, data, strict=True):
            path.write_bytes(stored)
        memory = lab.open("a")
        assert [lines(memory), lines(memory, "zebrascope")] == before
        memory.close()
    opened.clear()
    memory = lab.open("a")
    assert [lines(memory), lines(memory, "zebrascope")] == before and opened == []
    memory.close()


def test_forgotten_text_is_in_no_cached_header(tmp_path: Path) -> None:
    with Memory.load("alex", "local", home=tmp_path) as memory:
        memory.write("k", "tea", name="Zebra")
        memory.write("other", "tea", name="Other")
        lines(memory)
        assert images(tmp_path)
        memory.forget("k")
        assert images(tmp_path) == []
        lines(memory)
    shutil.rmtree(tmp_path / "alex" / "memory")
    with Memory.load("alex", "local", home=tmp_path) as memory:
        assert "Zebra" not in {file.name for file in kept_heads.load_heads(memory.replica, "").values()}


def test_list_of_many_scopes_rebuilds_no_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_index, "_FEW", 0)
    monkeypatch.setattr(search_index, "_STALE", 1)
    scopes = ("", "one", "two")
    with Memory.load("alex", "local", home=tmp_path) as memory:
        for scope in scopes:
            (memory.scope(scope) if scope else memory).write("k", "tea")
    for _ in range(2):
        for scope in scopes:
            with Memory.load("alex", "local", home=tmp_path) as memory:
                stack = memory.stack(scope) if scope else memory.stack()
                assert len(stack.recall("tea").hits) == 1 == len(stack.list())
        found = sorted(tmp_path.rglob("recall*.image"))
        assert len(found) == 6
        written = [path.stat().st_mtime_ns for path in found]
    for scope in scopes:
        with Memory.load("alex", "local", home=tmp_path) as memory:
            (memory.stack(scope) if scope else memory.stack()).list()
    assert [path.stat().st_mtime_ns for path in found] == written


def test_small_list_saves_no_headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    with Memory.load("alex", "local", home=tmp_path) as memory:
        memory.write("k", "tea")
        lines(memory)
    assert images(tmp_path) == []


def test_rewritten_text_has_its_new_date(lab: Lab) -> None:
    memory = lab.create("a")
    part = memory._open.memories

    def changed() -> int:
        with memory.replica.reading():
            (value,) = part.entry("tone").values()
            line = part.overview.line(part.name("tone"), value)
        assert line is not None
        return line.factors.changed

    memory.write_text("tone", b"calm\n")
    first = changed()
    memory.write_text("tone", b"loud\n", seen=memory.read("tone"))
    lab.clock.advance(40 * 86_400)
    memory.write_text("tone", b"calm\n", seen=memory.read("tone"))
    assert changed() == first + 40
