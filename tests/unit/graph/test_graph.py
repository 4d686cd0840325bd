"""The graph as values: contents of an entity, shortest paths, cycles, limits, and exports for other programs."""

from __future__ import annotations

from collections import deque
from xml.etree import ElementTree

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipfsmem.bundle.memory_file import MemoryFile, parse_memory, render_memory
from ipfsmem.errors import UsageError
from ipfsmem.graph.drawing import drawn
from ipfsmem.graph.entity import Entity, Out, entity_file, entity_key, entity_of, relation_type
from ipfsmem.graph.graph import Graph
from tests.support.effort import cases

TEXT = """Met at the fair, see [[acme]].

- born 1815
- works at [[Acme|the firm]]
- works_for [[acme]]

Relations:

- lives in: London
"""


def test_entity_of_reads_observations_relations_and_links() -> None:
    one = entity_of("ada", MemoryFile({"name": "Ada", "category": "person"}, TEXT))
    assert (one.name, one.kind, one.observations, one.made) == ("Ada", "person", ("born 1815",), False)
    assert set(one.out) == {Out("links_to", "acme"), Out("works_at", "Acme"), Out("works_for", "acme"), Out("lives_in", "London")}  # fmt: skip


@given(
    st.lists(st.text(st.characters(categories=("L", "N", "Zs")), min_size=1, max_size=20).map(lambda t: " ".join(t.split())).filter(bool), max_size=4),
    st.lists(st.tuples(st.sampled_from(["knows", "works_at"]), st.sampled_from(["acme", "bob"])), max_size=4, unique=True),
)  # fmt: skip
@settings(max_examples=cases(25, 500))
def test_written_entity_is_read_back(said: list[str], out: list[tuple[str, str]]) -> None:
    made = entity_file(MemoryFile(), "Ada", "person", said, [Out(*one) for one in out])
    one = entity_of("ada", parse_memory(render_memory(made)))
    assert (one.observations, one.out) == (tuple(said), tuple(Out(*each) for each in out)) and one.made


def test_names_become_keys_and_invalid_ones_are_refused() -> None:
    assert entity_key("Ada Lovelace") == "ada_lovelace" and entity_key("a: ' \" % _ / b") != entity_key("a b")
    assert entity_key("日本語") == entity_key("日本語") and relation_type(" Works  At ") == "works_at"
    for wrong in ("", " ", "a\nb", "x" * 201, "a]]b"):
        with pytest.raises(UsageError):
            entity_key(wrong)


edges = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=24)


def graph_of(found: list[tuple[int, int]]) -> Graph:
    return Graph(
        Entity(
            f"e{n}", f"E {n}", "", (), tuple(Out("r", f"e{end}") for begin, end in found if begin == n), True
        )
        for n in range(12)
    )


def distance(found: list[tuple[int, int]], begin: int, end: int) -> int | None:
    """Return the distance by a textbook breadth-first search."""
    known, waiting = {begin: 0}, deque([begin])
    while waiting:
        here = waiting.popleft()
        for one, other in (*found, *((b, a) for a, b in found)):
            if one == here and other not in known:
                known[other] = known[here] + 1
                waiting.append(other)
    return known.get(end)


@given(edges, st.integers(0, 11), st.integers(0, 11), st.integers(0, 4))
@settings(max_examples=cases(60, 2_000))
def test_paths_are_shortest_and_neighbourhoods_are_within_the_distance(found: list[tuple[int, int]], begin: int, end: int, depth: int) -> None:  # fmt: skip
    graph = graph_of(found)
    way, here = graph.path(f"e{begin}", f"e{end}"), f"e{begin}"
    assert (None if way is None else len(way)) == distance(found, begin, end)
    for one in way or ():
        assert here in (one.begin, one.end) and one in graph.out(one.begin)
        here = one.end if one.begin == here else one.begin
    assert way is None or here == f"e{end}"
    near = {f"e{n}" for n in range(12) if (far := distance(found, begin, n)) is not None and far <= depth}
    assert set(graph.around(f"e{begin}", depth)[0]) == near
    few, more = graph.around(f"e{begin}", 12, 2)
    assert len(few) <= 2 and more == (len(graph.around(f"e{begin}", 12)[0]) > 2)


@given(edges, edges)
@settings(max_examples=cases(25, 500))
def test_changed_graph_equals_a_rebuilt_graph(before: list[tuple[int, int]], after: list[tuple[int, int]]) -> None:  # fmt: skip
    changed, anew = graph_of(before), graph_of(after)
    for one in anew.entities.values():
        changed.put(one)
    assert changed.relations() == anew.relations()
    assert [changed.into(key) for key in changed.entities] == [anew.into(key) for key in changed.entities]


def test_cycles_of_ten_thousand_entities_are_traversed_once() -> None:
    graph = Graph(
        Entity(f"e{n}", f"E {n}", "", (), (Out("next", f"e{(n + 1) % 10_000}"), Out("self", f"e{n}")), True)
        for n in range(10_000)
    )
    way = graph.path("e0", "e40")
    assert way is not None and len(way) == 40
    assert graph.around("e0", 20) == (graph.around("e0", 20, 41)[0], False)


def test_many_equal_names_are_resolved_in_linear_time() -> None:
    graph = Graph(
        Entity(f"e{n:04}", "Notes", "", (), tuple(Out(f"r{link}", "notes") for link in range(40)), True)
        for n in range(1_500)
    )
    assert graph.find("NOTES") == "e0000" and not graph.into("e0001")
    assert len(graph.into("e0000")) == len(graph.relations()) == 60_000
    assert graph.path("e0007", "e0009") is not None and len(graph.around("e0007", 2)[0]) == 1_000
    graph.drop("e0000")
    assert graph.find("notes") == "e0001" and len(graph.into("e0001")) == 59_960


NASTY = '"><script>alert(1)</script>\x00]] & "x" -->|y| \ufffe\uffff\u202e\x9b\u2028\U000e0041\n'


def test_names_are_escaped_in_exports_for_other_programs() -> None:
    entities = [Entity("a", NASTY, NASTY, (NASTY,), (), True), Entity("b", "B", "", (), (), True)]
    relations = Graph(
        [msgspec.structs.replace(entities[0], out=(Out(NASTY.strip(), "b"),)), entities[1]]
    ).relations()
    root = ElementTree.fromstring(drawn("graphml", entities, relations))
    assert len(list(root.iter("{http://graphml.graphdrawing.org/xmlns}node"))) == 2
    assert len(list(root.iter("{http://graphml.graphdrawing.org/xmlns}edge"))) == 1
    chart = drawn("mermaid", entities, relations).splitlines()
    assert len(chart) == 4 and all(line.count('"') == 2 for line in chart[1:])
    page = drawn("html", entities, relations)
    assert (
        "<script" not in page
        and "default-src 'none'" in page
        and "http" not in page.replace("http-equiv", "")
    )
    for one in (*chart, page, drawn("graphml", entities, relations)):
        assert not set("\u202e\x9b\u2028\U000e0041") & set(one)
    assert drawn("html", [], []) and drawn("mermaid", [], []) == "flowchart LR\n"
