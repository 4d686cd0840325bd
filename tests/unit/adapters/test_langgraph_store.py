"""A LangGraph store on a vault answers like the package's in-memory store, and its items are on other devices too."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest

from ipfsmem.adapters.langgraph import store
from ipfsmem.adapters.store_items import item_of, memory_key, render_item, value_of
from ipfsmem.bundle.keys import is_key
from ipfsmem.bundle.memory_file import parse_memory
from ipfsmem.errors import ClosedError, LimitError, UsageError
from ipfsmem.memory import Memory
from ipfsmem.testing.clock import SeededRandom
from tests.support.cancelling import ended_when_cancelled
from tests.support.device_lab import Lab
from tests.support.effort import cases
from tests.support.extras import need_extra
from tests.support.hints import Refused

#: One worker for all tests: importing the package takes seconds.
pytestmark = pytest.mark.xdist_group("langgraph")
NAMES = ["users", "a", "b", "prefs", "*", "Ünï", "x.y", "", "a/b", '["', "\n", "\ud800"]
KEYS = ["1", "a", "A", "note 1", "", "日本", "a" * 300, "../x", "\x00", "\udfff"]
VALUES: list[dict[str, Any]] = [
    {},
    {"a": 1},
    {"a": 1.0, "b": "tea"},
    {"a": "1", "n": None, "t": True},
    {"a": {"b": [1, {"c": "Ü\u2028"}]}, "z": 2**70},
    {"a": 5, "text": "likes green tea\n---\n"},
    {"a": [1, 2], "s": "\ud800"},
]
FILTERS: list[dict[str, Any] | None] = [
    None,
    None,
    {"a": 1},
    {"a": {"$ne": 1}},
    {"a": {"$eq": "1"}},
    {"a": {"b": [1, {"c": "Ü\u2028"}]}},
    {"a": [1, 2]},
    {"missing": None},
    {"b": "tea", "a": 1},
]


@pytest.fixture(scope="module")
def package() -> ModuleType:
    need_extra("langgraph", "langgraph.store.memory")
    return need_extra("langgraph", "langgraph.store.base")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.load("x", mode="none", home=tmp_path) as opened:
        yield opened


def facts(item: Any) -> Any:
    """Return an item without its times."""
    return None if item is None else (item.namespace, item.key, json.dumps(item.value, sort_keys=True))


def answers(result: Any) -> Any:
    if isinstance(result, list):
        return sorted((one if isinstance(one, tuple) else facts(one) for one in result), key=repr)
    return facts(result)


@pytest.mark.parametrize("seed", range(cases(4, 200)))
def test_langgraph_store_answers_like_the_in_memory_store(
    package: ModuleType, memory: Memory, seed: int
) -> None:
    from langgraph.store.memory import InMemoryStore

    random, ours, theirs = Random(seed), store(memory), InMemoryStore()
    for _ in range(40):
        ops = [_drawn(random, package) for _ in range(random.randint(1, 4))]
        listing = [op for op in ops if isinstance(op, package.ListNamespacesOp)]
        ops = listing[:1] or ops  # the in-memory store also lists what the same batch looked up
        given, expected = ours.batch(ops), theirs.batch(ops)
        for op, one, other in zip(ops, given, expected, strict=True):
            assert answers(one) == answers(other), op
        for name in [name for name, items in theirs._data.items() if not items]:
            del theirs._data[name]  # the in-memory store lists a namespace forever once it was looked up
    whole = theirs.search((), limit=1000)
    assert answers(ours.search((), limit=1000)) == answers(whole)
    pages = [ours.search((), limit=3, offset=at) for at in range(0, len(whole) + 3, 3)]
    assert [facts(one) for page in pages for one in page] == [
        facts(one) for one in ours.search((), limit=1000)
    ]


def _drawn(random: Random, package: ModuleType) -> Any:
    name = tuple(random.choices(NAMES, k=random.choice([0, 1, 1, 2, 2, 3])))
    kind = random.randrange(8)
    if kind < 3:
        return package.PutOp(name, random.choice(KEYS), random.choice(VALUES))
    if kind == 3:
        return package.PutOp(name, random.choice(KEYS), None)
    if kind < 6:
        return package.GetOp(name, random.choice(KEYS))
    if kind == 6:
        return package.SearchOp(name[:1], random.choice(FILTERS), limit=1000)
    path = tuple(random.choice([*NAMES, "*"]) for _ in range(random.randint(0, 2)))
    condition = package.MatchCondition(random.choice(["prefix", "suffix"]), path)
    return package.ListNamespacesOp(
        random.choice([None, (condition,)]), random.choice([None, 1, 2]), limit=1000
    )


def test_common_store_methods_work(package: ModuleType, memory: Memory) -> None:
    ours = store(memory)
    assert isinstance(ours, package.BaseStore) and ours.supports_ttl is False
    ours.put(("users", "1"), "food", {"text": "likes green tea", "rating": 4})
    ours.put(("users", "1"), "drink", {"text": "likes coffee", "rating": 2}, index=["text"])
    ours.put(("users", "2"), "food", {"text": "hates tea", "rating": 3}, index=False)
    item = ours.get(("users", "1"), "food")
    assert item is not None and item.value["rating"] == 4 and item.created_at == item.updated_at
    ours.put(("users", "1"), "food", {"text": "likes green tea", "rating": 5})
    again = ours.get(("users", "1"), "food")
    assert again is not None and again.created_at == item.created_at < again.updated_at
    # Newest first; with a query the one with most of its words, then the rest.
    assert [one.key for one in ours.search(("users", "1"))] == ["food", "drink"]
    found = ours.search(("users",), query="green TEA")
    assert [(one.namespace[1], one.key, one.score) for one in found] == [
        ("1", "food", 1.0), ("2", "food", 0.5), ("1", "drink", None)
    ]  # fmt: skip
    assert [one.value["rating"] for one in ours.search((), filter={"rating": {"$gte": 3, "$lt": 5}})] == [3]
    assert ours.search((), filter={"text": {"$gt": 3}}) == []
    with pytest.raises(ValueError, match="Unsupported operator"):
        ours.search((), filter={"rating": {"$in": [1]}})
    assert ours.list_namespaces(prefix=("users", "*"), max_depth=1) == [("users",)]
    ours.delete(("users", "1"), "food")
    assert ours.get(("users", "1"), "food") is None and ours.get(("users", "1"), "drink") is not None
    ours.put(("users", "1"), "food", {"text": "again"})
    assert ours.get(("users", "1"), "food") is not None


def test_fifty_asynchronous_store_calls_run_concurrently(package: ModuleType, memory: Memory) -> None:
    ours = store(memory)

    async def one(number: int) -> None:
        await ours.aput(("n",), str(number), {"number": number})
        item = await ours.aget(("n",), str(number))
        assert item is not None and item.value == {"number": number}

    async def all_of_them() -> list[Any]:
        await asyncio.gather(*(one(number) for number in range(50)))
        await ours.adelete(("n",), "0")
        assert await ours.alist_namespaces() == [("n",)]
        return await ours.asearch(("n",), limit=100)

    assert len(asyncio.run(all_of_them())) == 49


def test_time_to_live_is_refused(package: ModuleType, memory: Memory) -> None:
    ours = store(memory)
    with pytest.raises(NotImplementedError):
        ours.put(("a",), "b", {}, ttl=5)
    with pytest.raises(UsageError, match="no time to live"):
        ours.batch([package.PutOp(("a",), "c", {}), package.PutOp(("a",), "b", {}, None, 5.0)])
    assert memory.list().memories == ()
    ours.batch([package.PutOp(("a",), "b", {})])
    assert ours.get(("a",), "b") is not None
    ours.delete(("a",), "b")
    assert ours.get(("a",), "b") is None


@pytest.mark.parametrize(
    "value", [{"a": float("nan")}, {"a": {1}}, {"a": {1: 2}}, {"a": object()}, {"a": b"bytes"}, {1: 2}]
)
def test_store_value_that_is_not_json_is_refused(package: ModuleType, memory: Memory, value: Any) -> None:
    with pytest.raises(UsageError, match="value of the store"):
        store(memory).put(("a",), "b", value)
    assert memory.list().memories == ()


@pytest.mark.parametrize("value", ["content", "", ["a"], 5, True, 0.5])
def test_value_that_is_not_an_object_is_refused(package: ModuleType, memory: Memory, value: Any) -> None:
    with Refused('Store a text as {"text": "..."}.'):
        store(memory).put(("u",), "k", value)
    with pytest.raises(UsageError, match="tuple of texts"):
        store(memory).put("users", "k", {"a": 1})  # type: ignore[arg-type]
    assert not memory.list()
    store(memory).put(("u",), "k", {"text": str(value)})
    assert store(memory).get(("u",), "k").value == {"text": str(value)}


def test_batch_with_an_invalid_value_writes_nothing(package: ModuleType, memory: Memory) -> None:
    ours = store(memory)
    ours.put(("a",), "old", {"kept": 1})
    for bad in ({"a": object()}, {"a": 10**5000}, {"text": "x" * 1_000_000}):
        puts = [package.PutOp(("a",), "1", {"x": 1}), package.PutOp(("a",), "old", None)]
        with pytest.raises((UsageError, LimitError)):
            ours.batch([*puts, package.PutOp(("a",), "2", bad)])
        assert [one.value for one in ours.search(())] == [{"kept": 1}]


def test_whole_numbers_too_large_for_a_float_are_compared(package: ModuleType, memory: Memory) -> None:
    ours = store(memory)
    ours.put(("a",), "b", {"n": 10**400})
    for wanted, found in (
        ({"$gt": 1}, 1),
        ({"$lte": 10**400}, 1),
        ({"$lt": 1.5}, 0),
        ({"$gt": "x"}, 0),
        ({1: 1}, 0),
    ):
        assert len(ours.search((), filter={"n": wanted})) == found, wanted


def test_cancelled_batch_is_complete_when_it_ends(package: ModuleType, memory: Memory) -> None:
    ours = store(memory)

    async def use() -> None:
        await ended_when_cancelled(memory, ours.aput(("a",), "b", {"kept": 1}))
        item = await ours.aget(("a",), "b")
        assert item is not None and item.value == {"kept": 1}

    asyncio.run(use())


def test_store_limits_are_explained(package: ModuleType, memory: Memory) -> None:
    ours = store(memory)
    deep: dict[str, Any] = {}
    for _ in range(300):
        deep = {"a": deep}
    with pytest.raises(UsageError, match="deeper"):
        ours.put(("a",), "b", deep)
    with pytest.raises(LimitError):
        ours.put(("a",), "b", {"text": "x" * 1_000_000})
    with pytest.raises(LimitError):
        ours.put(("a",), "k" * 5000, {})
    assert memory.list().memories == ()
    memory.close()
    with pytest.raises(ClosedError):
        ours.get(("a",), "b")


def test_two_items_never_share_a_key() -> None:
    places = [
        (tuple(names), key) for names in ([], ["a"], ["a", "b"], ["a,b"], ["a/b"], ['a","b']) for key in KEYS
    ]
    keys = {memory_key(*place) for place in places}
    assert len(keys) == len(places) and all(is_key(key) for key in keys)
    random = SeededRandom("items")
    many = {memory_key(("n" * 60,), random(8).hex()) for _ in range(1000)}
    assert len(many) == 1000


def test_store_item_is_a_memory_on_every_device(package: ModuleType, lab: Lab) -> None:
    a = lab.create("a")
    store(a.scope("bot")).put(("users", "1"), "food", {"text": "likes tea"})
    (listed,) = a.scope("bot").list()
    assert listed.file.name == "users / 1 / food" and listed.file.source == "langgraph"
    lab.sync(a)
    b = lab.restore("b")
    there = store(b.scope("bot"))
    assert [one.value for one in there.search(("users",))] == [{"text": "likes tea"}]
    # Concurrent writes: one is shown, the other is a conflict copy, and no third text is made of them.
    store(a.scope("bot")).put(("users", "1"), "food", {"text": "of a", "same": 1})
    there.put(("users", "1"), "food", {"text": "of b", "same": 1})
    lab.settle(a, b)
    (shown,) = there.search(("users",))
    assert shown.value["text"] in ("of a", "of b")
    (conflict,) = b.scope("bot").conflicts()
    assert len(conflict.copies) == 1
    there.put(("users", "1"), "food", {"text": "of both"})
    lab.settle(a, b)
    assert [one.value for one in store(a.scope("bot")).search(())] == [{"text": "of both"}]


def test_pending_texts_and_other_memories_are_not_items(package: ModuleType, memory: Memory) -> None:
    ours = store(memory)
    ours.put(("a",), "b", {"mine": 1})
    (key,) = memory
    reading = memory.read(key)
    assert reading is not None
    memory.write(
        "copied", reading.file.body, fields={"langgraph_item": reading.file.fields["langgraph_item"]}
    )
    memory.write("tone", "direct")
    assert [one.value for one in ours.search(())] == [{"mine": 1}]
    memory.write(key, "no json any more", seen=reading)
    assert ours.get(("a",), "b") is None and ours.search(()) == []
    of_others = reading.data.replace(b"mine", b"others'")
    other = memory_key(("c",), "d")
    blob = {"version": "memory/0.1", "files": {f"{other}.md": of_others.decode()}, "timeline": []}
    memory.bundles.import_(json.dumps(blob), foreign=True)
    assert ours.get(("c",), "d") is None and ours.search(()) == []
    ours.delete(("c",), "d")
    assert memory.read(other) is not None
    ours.put(("c",), "d", {"mine": 2})
    assert [one.value for one in ours.search(())] == [{"mine": 2}]


@pytest.mark.parametrize(
    "text", ["", "7", "[]", '[["a"]]', '[["a"],7]', '[[7],"a"]', '{"a":1}', "[" * 3000, '[["a"],"b","c"]']
)
def test_invalid_header_lines_are_not_items(text: str) -> None:
    made = parse_memory(render_item(("a",), "b", {}, *[_instant()] * 2))
    where = memory_key(("a",), "b")
    assert item_of(where, made) is not None
    assert item_of(where, made.with_fields({"langgraph_item": text})) is None
    for day in ("yesterday", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"):
        assert item_of(where, made.with_fields({"created": day})) is None
    assert value_of(b"---\na: b\n---\n\n[1]\n") is None


def _instant() -> Any:
    from datetime import UTC, datetime

    return datetime(2026, 11, 23, tzinfo=UTC)


def test_missing_package_error_names_the_extra(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langgraph.store.base", None)
    monkeypatch.delitem(sys.modules, "ipfsmem.adapters.langgraph_store", raising=False)
    with pytest.raises(UsageError, match="needs the extra langgraph"):
        store(memory)


def test_namespaces_work_as_in_the_tests_of_the_package(package: ModuleType, memory: Memory) -> None:
    """Namespace checks of langchain-ai/langgraph, libs/checkpoint/tests/test_store.py at
    01b4d15aca3c732db878b50d2acb028a08f0431d (its other tests are about vectors and a batching store)."""
    ours = store(memory)
    for name in ("abc", "abde", "abdi", "abf", "acf", "baf"):
        ours.put(tuple(name), "id", {"data": name})
    ours.put(("users", "123"), "id", {})
    ours.put(("users", "456", "settings"), "id", {})
    ours.put(("admin", "users", "789"), "id", {})

    def listed(**how: Any) -> list[str]:
        return ["".join(name) for name in ours.list_namespaces(**how)]

    assert listed(prefix=("a", "b")) == ["abc", "abde", "abdi", "abf"]
    assert listed(suffix=("f",)) == ["abf", "acf", "baf"]
    assert listed(prefix=("a",), suffix=("f",)) == ["abf", "acf"]
    assert listed(prefix=("a", "b"), max_depth=3) == ["abc", "abd", "abf"]
    assert listed(prefix=("a", "b"), limit=2) == ["abc", "abde"]
    assert listed(prefix=("a", "b"), offset=2) == ["abdi", "abf"]
    assert listed(prefix=("a", "*", "f")) == ["abf", "acf"]
    assert listed(suffix=("*", "f")) == ["abf", "acf", "baf"]
    assert listed(prefix=("nonexistent",)) == []
    assert listed(prefix=("users", "*")) == ["users123", "users456settings"]
    assert listed(prefix=("*", "users"), suffix=("*", "settings")) == []
    for refused in ((), ("the", "thing.about"), ("some", "fun", ""), ("langgraph", "foo")):
        with pytest.raises(package.InvalidNamespaceError):
            ours.put(refused, "foo", {"foo": "bar"})
        with pytest.raises(package.InvalidNamespaceError):
            asyncio.run(ours.aput(refused, "foo", {"foo": "bar"}))
    # Methods below the check accept any namespace.
    ours.batch([package.PutOp(("langgraph", "foo"), "bar", {"foo": "bar"})])
    assert [one.value for one in ours.search(("langgraph", "foo"))] == [{"foo": "bar"}]
    ours.delete(("langgraph", "foo"), "bar")
    assert ours.get(("langgraph", "foo"), "bar") is None
