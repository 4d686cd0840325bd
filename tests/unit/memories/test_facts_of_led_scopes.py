"""Facts, values and the graph of a redirected scope are reached through both scopes, like its memories and sessions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ipfsmem.errors import ChangedError, NotFoundError
from ipfsmem.memories.facts import Fact
from ipfsmem.memory import Memory
from tests.support.device_lab import Lab


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.create("m", "local", home=tmp_path / "home") as memory:
        for scope in ("sub", "top"):
            memory.scopes.make(scope)
        yield memory


def added(memory: Memory, text: str) -> Fact:
    made = memory.facts.add(text)
    assert made is not None
    return made.fact


def texts(memory: Memory) -> list[tuple[str, str]]:
    return sorted((one.scope, one.text) for one in memory.facts.list())


@pytest.mark.parametrize("scope", ["sub", "top"])
def test_facts_of_redirected_scope_are_listed_read_and_deleted(memory: Memory, scope: str) -> None:
    sub, top, part = memory.scope("sub"), memory.scope("top"), memory.scope(scope)
    old = added(sub, "Ada likes tea.")
    both = added(sub, "The team meets on Monday.")
    assert added(top, "The team meets on Monday.").key == both.key
    added(top, "Bob plays the cello.")
    memory.scopes.redirect("sub", "top")
    assert texts(part) == [
        ("sub", "Ada likes tea."),
        ("top", "Bob plays the cello."),
        ("top", "The team meets on Monday."),
    ]
    first = part.facts.list(limit=2)
    second = part.facts.list(limit=2, cursor=first.next or "")
    assert sorted((one.scope, one.text) for one in (*first.facts, *second.facts)) == texts(part)
    assert second.next is None
    found = part.facts.get(old.key)
    assert found is not None and found.text == "Ada likes tea." and found.scope == "sub"
    with pytest.raises(ChangedError):
        part.facts.delete(old.key, seen="0" * 16)
    assert part.facts.delete(old.key, seen=found.seen).text == "Ada likes tea."
    assert part.facts.delete(both.key).scope == "top"
    assert [one.text for one in part.facts.list()] == ["Bob plays the cello."]
    assert {one.key for one in part.facts.history().facts} == {old.key, both.key}
    assert part.facts.restore(old.key).scope == "top" and part.facts.restore(both.key).scope == "top"
    assert part.facts.history().facts == () and len(part.facts.list()) == 3
    assert top.forget(old.key) and part.facts.get(old.key) is None
    assert part.facts.history().facts == ()
    with pytest.raises(NotFoundError):
        part.facts.history(old.key)


@pytest.mark.parametrize("scope", ["sub", "top"])
def test_fact_of_redirected_scope_is_compared_with_new_one_and_edited(memory: Memory, scope: str) -> None:
    sub, part = memory.scope("sub"), memory.scope(scope)
    tea = added(sub, "Ada likes tea.")
    meets = added(sub, "The team meets on Monday.")
    memory.scopes.redirect("sub", "top")
    kept = part.facts.add("Ada likes tea.")
    assert kept is not None and (kept.action, kept.fact.scope) == ("kept", "sub")
    for more in ("Ada likes tea with milk and sugar.", "Ada likes tea with milk and sugar, and lemon."):
        updated = part.facts.add(more)
        assert updated is not None and (updated.action, updated.fact.key) == ("updated", tea.key)
    assert [one.text for one in part.facts.history(tea.key)] == [
        "Ada likes tea with milk and sugar.",
        "Ada likes tea.",
    ]
    with pytest.raises(ChangedError):
        part.facts.edit(meets.key, "The team meets on Tuesday.", seen="0" * 16)
    edited = part.facts.edit(meets.key, "The team meets on Tuesday.", seen=meets.seen)
    assert (edited.scope, edited.text) == ("top", "The team meets on Tuesday.")
    assert part.facts.restore(meets.key, seen=edited.seen).text == "The team meets on Monday."
    memory.scopes.redirect("sub", None)  # no text of it was replaced
    assert texts(sub) == [("sub", "Ada likes tea."), ("sub", "The team meets on Monday.")]


def test_many_facts_are_compared_with_those_of_a_redirected_scope(memory: Memory) -> None:
    tea = added(memory.scope("sub"), "Ada likes green tea with milk.")
    memory.scopes.redirect("sub", "top")
    top = memory.scope("top")
    for number in range(6):  # from the third on, the words of all are cached
        added(top, f"Room {number} has {number * 7} grey chairs and a window.")
    again = top.facts.add("Ada likes green tea with milk, and with sugar.")
    assert again is not None and (again.action, again.fact.key) == ("updated", tea.key)


def test_history_of_redirected_scope_continues_after_a_clock_ahead(lab: Lab) -> None:
    a = lab.create("a")
    for scope in ("sub", "top"):
        a.scopes.make(scope)
    lab.clock.advance(3_600_000)
    sub, top = a.scope("sub"), a.scope("top")
    key = added(sub, "one").key
    sub.facts.edit(key, "two")
    lab.clock.advance(-3_600_000)
    a.scopes.redirect("sub", "top")
    top.facts.edit(key, "three")
    assert [one.text for one in sub.facts.history(key)] == ["two", "one"]
    assert top.facts.restore(key).text == "two"


@pytest.mark.parametrize("scope", ["sub", "top"])
def test_values_of_redirected_scope_are_listed_read_set_and_deleted(memory: Memory, scope: str) -> None:
    sub, top, part = memory.scope("sub"), memory.scope("top"), memory.scope(scope)
    sub.values.set("colour", "red")
    sub.values.set("both", 1)
    top.values.set("both", 2)
    sub.values.set("short", True, ttl=60)
    memory.scopes.redirect("sub", "top")
    assert {one.key: one.value for one in part.values.list()} == {"both": 2, "colour": "red", "short": True}
    found = part.values.get("colour")
    assert found is not None and (found.value, found.scope) == ("red", "sub")
    with pytest.raises(ChangedError):
        part.values.set("colour", "green", seen="")
    made = part.values.set("colour", "green", seen=found.seen)
    assert (made.value, made.scope) == ("green", "top")
    assert [one.value for one in part.values.history("colour")] == ["red"]
    assert part.values.restore("colour").value == "red"
    assert part.values.delete("both").value == 2 and part.values.get("both") is None
    assert part.values.restore("both").value == 2
    assert part.values.clear(keys=["colour"]).keys == ("colour",) and part.values.get("colour") is None
    memory.scopes.redirect("sub", None)
    assert sub.values.get("colour") is None and sub.values.get("both") is None


@pytest.mark.parametrize("scope", ["sub", "top"])
def test_graph_of_redirected_scope_is_read_changed_and_deleted(memory: Memory, scope: str) -> None:
    sub, top, part = memory.scope("sub"), memory.scope("top"), memory.scope(scope)
    before = part.graph
    sub.graph.add("Ada", "person", ["likes tea"])
    sub.graph.add("Acme", "company")
    sub.graph.relate("Ada", "works at", "Acme")
    top.graph.add("Bob", "person")
    memory.scopes.redirect("sub", "top")
    assert before.list() == part.graph.list()
    names = [one.name for one in part.graph.list()]
    assert names == ["Acme", "Ada", "Bob"]
    assert part.graph.relate("Bob", "knows", "Ada")
    path = part.graph.path("Bob", "Acme")
    assert path is not None and len(path) == 2
    assert [one.name for one in part.graph.search("tea")] == ["Ada"]
    assert part.graph.observe("Ada", ["plays chess"]).observations == ("plays chess",)
    ada = part.graph.get("Ada")
    assert ada is not None and ada.observations == ("likes tea", "plays chess")
    assert [one.text for one in part.facts.history(ada.key)]
    assert [one.type for one in part.graph.relations("Ada")] == ["works_at", "knows"]
    assert part.graph.unrelate("Ada", "works at", "Acme") and len(part.graph.relations("Ada")) == 1
    assert part.graph.delete("Acme") and part.graph.delete("Ada", relations=True)
    assert [one.name for one in part.graph.list()] == ["Bob"] and not part.graph.relations()
    part.facts.restore(ada.key)
    assert part.graph.get("Ada") is not None
    memory.scopes.redirect("sub", None)
    assert not sub.graph.list()


def test_graph_and_facts_of_nested_scopes_are_read_through_each(memory: Memory) -> None:
    memory.scopes.make("deep")
    for scope in ("deep", "sub", "top"):
        memory.scope(scope).graph.add(f"entity {scope}", "thing")
        added(memory.scope(scope), f"Fact of {scope} alone.")
    memory.scopes.redirect("deep", "sub")
    memory.scopes.redirect("sub", "top")
    for scope in ("deep", "sub", "top"):
        part = memory.scope(scope)
        assert [one.name for one in part.graph.list()] == ["entity deep", "entity sub", "entity top"]
        assert [one for one, _ in texts(part)] == ["deep", "sub", "top"]
    memory.scopes.forget("sub")  # then it redirects no further
    assert [one for one, _ in texts(memory.scope("deep"))] == ["deep"]
    assert [one.name for one in memory.scope("top").graph.list()] == ["entity top"]


def test_pending_text_in_redirected_scope_hides_no_own_fact(memory: Memory) -> None:
    sub, top = memory.scope("sub"), memory.scope("top")
    fact = added(sub, "Ada likes tea.")
    with Memory.load(mode="none") as other:
        other.scope("x").facts.add("Ada likes tea.")
        blob = other.scope("x").bundles.export(partial=True)
    top.bundles.import_(blob, foreign=True)
    memory.scopes.redirect("sub", "top")
    found = top.facts.get(fact.key)
    assert found is not None and found.own and found.scope == "sub"
    assert texts(top) == [("sub", "Ada likes tea.")]
