"""The graph saved for the next process gives the same answers as one derived from the texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ipfsmem.errors import StorageError
from ipfsmem.memories import graph as graphs
from ipfsmem.memories.graph import GraphIndex, Graphs, graph_of
from ipfsmem.memory import Memory
from ipfsmem.operations.graph.stored import graph_in
from tests.support.device_lab import Lab, lab_in
from tests.support.effort import cases


@pytest.fixture(autouse=True)
def each_change_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "FEW", 0)
    monkeypatch.setattr(graphs, "STALE", 1)


def images(home: Path) -> list[Path]:
    return sorted(home.rglob("recall-graph-*.image"))


def shown(graph: graphs.Graph) -> Any:
    """Return everything that a reader sees of the graph."""
    return (
        sorted(graph.entities.items()),
        graph.relations(),
        [(key, graph.into(key), graph.neighbours(key)) for key in sorted(graph.entities)],
        [graph.path(one, other) for one in sorted(graph.entities) for other in sorted(graph.entities)],
        [graph.find(said) for said in ("a", "One", "two", "nobody")],
    )


def fresh(memory: Memory, scope: str = "") -> Any:
    return shown(GraphIndex(memory._open.memories.in_scope(scope)).graph())


def kept(memory: Memory) -> Any:
    return shown(graph_in(memory.graph._view()))


KEYS = ("a", "b", "c", "d")
TEXTS = (
    "- knows [[b]]\n- is tall",
    "See [[One]] and [[c]].",
    "Relations:\n\n- likes: Two",
    "Nothing.",
    "[[a]] [[d]]",
)
operations = st.lists(
    st.one_of(
        st.tuples(
            st.just("write"),
            st.sampled_from(KEYS),
            st.sampled_from(TEXTS),
            st.sampled_from(["", "One", "Two"]),
        ),
        st.tuples(st.just("forget"), st.sampled_from(KEYS)),
        st.tuples(st.just("hide"), st.sampled_from(KEYS)),
        st.tuples(st.just("ask")),
        st.tuples(st.just("reopen")),
    ),
    max_size=14,
)


@settings(max_examples=cases(15, 150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(operations)
def test_saved_graph_equals_a_fresh_one_after_any_changes(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, ...]]
) -> None:
    home = tmp_path_factory.mktemp("kept")
    memory = Memory.create("m", "local", home=home)
    try:
        for what, *given in steps:
            if what == "write":
                memory.write(given[0], given[1], name=given[2] or None)
            elif what == "forget":
                memory.forget(given[0])
            elif what == "hide" and memory.read(given[0]) is not None:
                memory.hidden.add([given[0]])
            elif what == "ask":
                assert kept(memory) == fresh(memory)
            elif what == "reopen":
                memory.close()
                memory = Memory.load("m", home=home)
        assert kept(memory) == fresh(memory)
        memory.close()
        memory = Memory.load("m", home=home)
        assert kept(memory) == fresh(memory)
    finally:
        memory.close()


def test_next_process_reads_no_text_with_a_saved_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory.create("m", "local", home=tmp_path) as memory:
        for number in range(20):
            memory.write(f"e{number}", f"- knows [[e{(number * 7 + 1) % 20}]]")
        before = kept(memory)
    assert len(images(tmp_path)) == 1
    looked = []
    look = GraphIndex._update
    monkeypatch.setattr(GraphIndex, "_update", lambda self, name: (looked.append(name), look(self, name)))
    with Memory.load("m", home=tmp_path) as memory:
        assert kept(memory) == before and not looked
        memory.write("e3", "- knows [[e4]]")
        assert kept(memory) != before and len(looked) == 1
        assert kept(memory.scope("work")) == fresh(memory, "work")


def test_small_graph_is_not_saved_and_a_damaged_one_is_rebuilt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory.create("m", "local", home=tmp_path) as memory:
        memory.write("a", "[[b]]")
        memory.write("b", "[[a]]")
        before = kept(memory)
    (file,) = images(tmp_path)
    whole = file.read_bytes()
    for damaged in (b"", whole[:40], whole[:-1], b"x" + whole, whole[:-9] + bytes(9)):
        file.write_bytes(damaged)
        with Memory.load("m", home=tmp_path) as memory:
            assert kept(memory) == before
    file.unlink(missing_ok=True)
    monkeypatch.setattr(graphs, "FEW", 3)
    with Memory.load("m", home=tmp_path) as memory:
        assert kept(memory) == before
    assert images(tmp_path) == []


def test_saved_graph_of_a_sealed_vault_is_sealed_and_forgets(tmp_path: Path) -> None:
    with lab_in(tmp_path) as lab:
        a = lab.create("a")
        a.write("secret_key", "- knows [[somebody_secret]]", name="Secret Name")
        kept(a)
        a.close()
        (file,) = images(lab.home("a"))
        for word in (b"secret", b"Secret", b"knows", b"somebody"):
            assert word not in file.read_bytes()
    with Memory.create("m", "local", home=tmp_path / "plain") as memory:
        memory.write("a", "[[b]]")
        memory.write("b", "Told.")
        kept(memory)
    assert images(tmp_path / "plain")
    with Memory.load("m", home=tmp_path / "plain") as memory:
        memory.forget("b")
        assert images(tmp_path / "plain") == []


def test_saved_graph_includes_a_text_fetched_later(lab: Lab) -> None:
    a = lab.create("a")
    a.write("one", "- knows [[two]]")
    a.write("two", "Here.")
    lab.sync(a)
    b = lab.restore("b")
    lab.settle(a, b)
    with b.replica.reading():
        place = b._open.memories.name("one")
        (value,) = b.replica.store.entry(place).values()
    with pytest.MonkeyPatch.context() as patch:
        body = type(b.replica.store).body
        patch.setattr(
            type(b.replica.store),
            "body",
            lambda self, name, of: None if name == place else body(self, name, of),
        )
        assert not b.graph.relations()
        graph_of(b._open.memories).keep()
    assert value.body is not None and [one.end for one in b.graph.relations()] == ["two"]
    b._open.memories.caches.of(Graphs).clear()
    b.__dict__.pop("graph")
    assert [one.end for one in b.graph.relations()] == ["two"]


def test_failed_refresh_leaves_no_change_partly_applied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither in this process nor in the saved graph."""
    decode, failed = graphs.decode_entry, list[str]()

    def fails_once(name: str, text: bytes) -> Any:
        if not failed:
            failed.append(name)
            raise StorageError("the disk does not answer")
        return decode(name, text)

    with Memory.load("m", "local", home=tmp_path) as memory:
        memory.write("a", "- knows [[b]]", tags=["entity"])
        assert kept(memory) == fresh(memory)
        memory.write("b", "- knows [[c]]", tags=["entity"])
        memory.write("c", "- knows [[a]]", tags=["entity"])
        monkeypatch.setattr(graphs, "decode_entry", fails_once)
        with pytest.raises(StorageError):
            kept(memory)
        assert failed and kept(memory) == fresh(memory)
    with Memory.load("m", "local", home=tmp_path) as memory:
        assert kept(memory) == fresh(memory)
