"""A text that another process forgets while an index, a graph or headers are stored is in none of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.device import derived_file, recall_image
from ipfsmem.memories import graph, kept_heads, search_index
from ipfsmem.memory import Memory
from ipfsmem.operations.graph.stored import graph_in

SECRET = b"zebrax"


@pytest.fixture(autouse=True)
def each_change_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, value in (
        (search_index, "_FEW", 0),
        (search_index, "_STALE", 1),
        (graph, "FEW", 0),
        (graph, "STALE", 1),
        (kept_heads, "NEW", 1),
    ):
        monkeypatch.setattr(module, name, value)


def recall_and_close(memory: Memory) -> None:
    memory.recall("tea")


def make_index(memory: Memory) -> None:
    search_index.make_index([memory._open.memories], "all")


def make_index_anew(memory: Memory) -> None:
    memory.maintenance.reindex()


def ask_graph_and_close(memory: Memory) -> None:
    graph_in(memory.graph._view())


def list_scope(memory: Memory) -> None:
    memory.list()


def list_stack(memory: Memory) -> None:
    memory.stack("", "work").list()


EVERY_WAY = (recall_and_close, make_index, make_index_anew, ask_graph_and_close, list_scope, list_stack)


def filled(home: Path) -> None:
    with Memory.create("m", "local", home=home) as memory:
        memory.write("k", "tea with zebrax", name="zebrax", tags=["entity"])
        memory.write("other", "tea", tags=["entity"])
        memory.scope("work").write("more", "tea")


def kept(memory: Memory) -> list[bytes]:
    """Return the content of each stored index."""
    found = []
    for path, _ in recall_image.images(memory.replica):
        image = recall_image._open(memory.replica, path)
        assert image is not None
        found.append(b"".join((image.rest, image.index, image.moments)))
    return found


def forget_before_it_is_written(
    monkeypatch: pytest.MonkeyPatch, forget: Callable[[], object], *, once_it_lies_beside: bool
) -> list[str]:
    """Forget once, after the state was read and before the new index is in place."""
    prepare, done = derived_file.DerivedFiles.prepare, list[str]()

    def prepared(self: derived_file.DerivedFiles, *given: Any, **named: Any) -> Any:
        if not done and not once_it_lies_beside:
            done.append("forgot")
            forget()
        ready = prepare(self, *given, **named)
        if not done:
            done.append("forgot")
            forget()
        return ready

    monkeypatch.setattr(derived_file.DerivedFiles, "prepare", prepared)
    return done


@pytest.mark.parametrize(
    "once_it_lies_beside", [False, True], ids=["before it is on the disk", "beside its place"]
)
@pytest.mark.parametrize("make", EVERY_WAY)
def test_index_saved_during_a_forget_omits_the_forgotten_text(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[Memory], object],
    once_it_lies_beside: bool,
) -> None:
    filled(tmp_path)
    with Memory.load("m", home=tmp_path) as memory:
        make(memory)
    with Memory.load("m", home=tmp_path) as memory:
        assert any(SECRET in one for one in kept(memory))  # else the test would pass trivially
        recall_image.remove_images(memory.replica)

    def forget() -> None:
        with Memory.load("m", home=tmp_path) as beside:
            assert beside.forget("k")

    with monkeypatch.context() as patch:
        done = forget_before_it_is_written(patch, forget, once_it_lies_beside=once_it_lies_beside)
        with Memory.load("m", home=tmp_path) as memory:
            make(memory)
        assert done
    with Memory.load("m", home=tmp_path) as memory:
        assert not any(SECRET in one for one in kept(memory))
        if make in (recall_and_close, make_index, make_index_anew):
            assert any(b"other" in one for one in kept(memory))  # it was rebuilt at once
        assert not list((tmp_path / "m").glob(".recall*"))
