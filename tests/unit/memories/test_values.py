"""Values under free keys: `memory.values`."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipfsmem import canonical
from ipfsmem.bundle.keys import is_key, key_of_foreign_name
from ipfsmem.bundle.memory_file import parse_memory
from ipfsmem.bundle.value_file import memory_key, name_of, value_file, value_of
from ipfsmem.device.replica import Environment
from ipfsmem.device.writing import Writing
from ipfsmem.errors import ChangedError, NotFoundError, UsageError
from ipfsmem.memories.memories import MemoryStore
from ipfsmem.memories.values import KeyValue, Values
from ipfsmem.memory import Memory
from ipfsmem.testing.clock import MockClock
from ipfsmem.vault.home import Home
from tests.support.effort import cases

KEYS = (
    "user:preference:theme", "a", "A", " a", "a ", "a/b\\c", "..", "%2e%2e", "key with 'quotes' \"and\" more",
    "emoji \U0001f511", "日本語", "e\u0301", "\u00e9", "new\nline", "tab\t", "nul\0", "\ufeff", "\u2028", "k" * 256, "é" * 128,
    "name: value", "[a, b]", "---", "null", "~", "MEMORY", "kv-a",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    "dark", "", " ", "\n", "ends with\n", "\nbegins so", "---\nname: x\n---\n\nbody", "```json\n1\n```", "\ufeffx", "a\r\nb", "1",
    '"quoted"', "true", 1, 1.5, True, None, [], {}, {"a": [1, {"b": "c\n"}]}, "x" * 100_000,
)  # fmt: skip


@pytest.fixture
def memory() -> Any:
    with Memory.load("alex", "none") as memory:
        yield memory


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=64))
@settings(max_examples=cases(50, 1000), deadline=None)
def test_every_free_key_is_read_back_from_its_file(name: str) -> None:
    file = parse_memory(value_file(name, "v", {}))
    assert is_key(memory_key(name)) and name_of(file, memory_key(name)) == name and value_of(file) == "v"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
        lambda one: st.lists(one) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), one),
    )
)
@settings(max_examples=cases(50, 1000), deadline=None)
def test_every_value_is_read_back_from_its_file(value: Any) -> None:
    file = parse_memory(value_file("k", value, {}))
    assert value_of(file) == value and type(value_of(file)) is type(value)


def test_value_nested_too_deep_to_be_read_back_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever recursion limit other packages set."""
    deep = functools.reduce(lambda inner, _: [inner], range(60), cast("Any", 1))
    assert value_of(parse_memory(value_file("k", deep, {}))) == deep
    monkeypatch.setattr(canonical, "MAX_DEPTH", 50)
    with pytest.raises(UsageError, match="nested deeper than 50"):
        value_file("k", deep, {})


def test_two_free_keys_never_share_a_memory() -> None:
    assert len({memory_key(name) for name in KEYS}) == len(KEYS)
    # Python and every other writer agree on these.
    assert (
        memory_key("user:preference:theme")
        == "kv-user_preference_them-4b50298258417ac5b50c0cafa0b9c428c428cab9"
    )


def test_keys_and_values_of_any_characters_round_trip(memory: Memory) -> None:
    for number, key in enumerate(KEYS):
        memory.values.set(key, VALUES[number % len(VALUES)])
    for number, key in enumerate(KEYS):
        found = memory.values.get(key)
        assert found is not None and (found.key, found.value) == (key, VALUES[number % len(VALUES)])
    assert [one.key for one in memory.values.list()] == sorted(KEYS)
    for value in VALUES:
        memory.values.set("k", value)
        assert memory.values.get("k").value == value  # type: ignore[union-attr]


def test_values_survive_reopening(tmp_path: Path) -> None:
    with Memory.create("alex", "local", home=tmp_path) as memory:
        memory.values.set("user:preference:theme", "dark")
    with Memory.load("alex", home=tmp_path) as memory:
        assert memory.values.get("user:preference:theme").value == "dark"  # type: ignore[union-attr]
        (item,) = memory.list()
        assert item.file.name == "user:preference:theme"
        assert memory.recall("preference theme").hits[0].body == "dark"


@pytest.mark.parametrize("key", ["", "k" * 257, "é" * 129, "\ud800"])
def test_key_of_invalid_length_is_refused(memory: Memory, key: str) -> None:
    with pytest.raises(UsageError, match="key"):
        memory.values.set(key, "x")
    with pytest.raises(UsageError, match="key"):
        memory.values.get(key)


def test_value_without_json_form_is_refused(memory: Memory) -> None:
    for value in (object(), float("nan"), {1: object()}, "\ud800"):
        with pytest.raises(UsageError):
            memory.values.set("k", value)
    assert memory.values.get("k") is None


def test_overwritten_value_is_kept_as_a_revision(memory: Memory) -> None:
    for value in ("one", {"two": 2}, "three", "three"):
        memory.values.set("user:x", value)
    assert [(one.number, one.value, one.why) for one in memory.values.history("user:x")] == [
        (1, {"two": 2}, "updated"),
        (2, "one", "updated"),
    ]
    assert memory.values.restore("user:x", 2).value == "one"
    assert [one.value for one in memory.values.history("user:x")] == ["three", {"two": 2}, "one"]


def test_deleted_value_can_be_restored(memory: Memory) -> None:
    memory.values.set("a:b", [1])
    assert memory.values.delete("a:b").value == [1]
    assert memory.values.get("a:b") is None and not memory.values.list()
    with pytest.raises(NotFoundError):
        memory.values.delete("a:b")
    assert memory.values.restore("a:b").value == [1]
    assert memory.values.get("a:b").value == [1]  # type: ignore[union-attr]


def test_set_with_seen_replaces_only_what_was_shown(memory: Memory) -> None:
    first = memory.values.set("k", "one", seen="")
    with pytest.raises(ChangedError):
        memory.values.set("k", "two", seen="")
    memory.values.set("k", "two", seen=first.seen)
    with pytest.raises(ChangedError):
        memory.values.set("k", "three", seen=first.seen)
    with pytest.raises(ChangedError):
        memory.values.delete("k", seen=first.seen)
    assert memory.values.get("k").value == "two"  # type: ignore[union-attr]


def test_values_written_on_two_devices_are_both_shown(memory: Memory) -> None:
    made = memory.values.set("theme", "dark")
    with memory.replica.transaction():
        change = Writing(memory.replica)
        change.put(f"m/{made.memory}", value_file("theme", "light", {"created": made.created}), ())
        change.commit()
    found = memory.values.get("theme")
    assert found is not None and len(found.conflicts) == 1
    (beside,) = memory.values.history("theme")
    assert {found.value, beside.value} == {"dark", "light"} and (beside.number, beside.why) == (0, "conflict")
    memory.values.set("theme", "blue")
    assert [one.why for one in memory.values.history("theme")] == ["conflict", "updated"]
    assert memory.values.restore("theme").value == found.value


def proposed(value: str) -> bytes:
    """An export of somebody else with a value of the key `theme`."""
    with Memory.load("bob", "none") as other:
        other.scope("x").values.set("theme", value)
        return other.scope("x").bundles.export(partial=True)


@pytest.mark.parametrize("how", ["deleted", "kept"])
def test_pending_value_is_not_added_to_the_history(memory: Memory, how: str) -> None:
    memory.bundles.import_(proposed("theirs"), foreign=True)
    pending = memory.values.get("theme")
    assert pending is not None and not pending.own
    if how == "deleted":
        assert memory.values.delete("theme", seen=pending.seen) == pending
        assert memory.values.get("theme") is None
        (event,) = (one for one in memory.timeline.read() if one["type"] == "forgot")
        assert event["reason"] == "pending value deleted"
        with pytest.raises(NotFoundError):
            memory.values.history("theme")
    else:
        memory.facts.keep(pending.memory, seen=pending.seen)
        assert memory.values.get("theme") == pending and not memory.values.history("theme")
    with pytest.raises(NotFoundError):
        memory.values.restore("theme")
    assert memory.facts.history().facts == ()


def test_own_value_is_kept_and_pending_one_next_to_it_is_marked(memory: Memory) -> None:
    memory.values.set("theme", "mine")
    memory.bundles.import_(proposed("theirs"), foreign=True)
    assert [(one.value, one.why) for one in memory.values.history("theme")] == [("theirs", "pending")]
    assert memory.values.delete("theme").value == "mine"
    assert [(one.value, one.why) for one in memory.values.history("theme")] == [
        ("theirs", "pending"),
        ("mine", "deleted"),
    ]
    restored = memory.values.restore("theme")
    assert restored.own and restored.value == "mine"


def test_clear_deletes_by_prefix_level_and_keys(memory: Memory) -> None:
    for key, level in (("a:1", "session"), ("a:2", "user"), ("b:1", "session"), ("b:2", "")):
        memory.values.set(key, "x", level=level)  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        memory.values.clear()
    with pytest.raises(UsageError, match="level must be user, session or agent"):
        memory.values.clear(level="bogus")  # type: ignore[arg-type]
    assert memory.values.clear(prefix="a:", level="session").keys == ("a:1",)
    assert memory.values.clear(keys=["b:2", "nothing"]).keys == ("b:2",)
    assert [one.key for one in memory.values.list()] == ["a:2", "b:1"]
    assert memory.values.clear(prefix="").keys == ("a:2", "b:1")


def test_expired_value_is_absent_and_swept_into_its_history() -> None:
    clock = MockClock()
    with Memory.load("alex", "none", home=Home(environment=Environment(lambda: clock.ms))) as memory:
        memory.values.set("short", "x", ttl=60)
        memory.values.set("long", "y", ttl=3600)
        memory.values.set("ever", "z")
        clock.advance(61)
        assert memory.values.get("short") is None
        assert [one.key for one in memory.values.list()] == ["ever", "long"]
        assert [one.key for one in memory.values.list(expired=True)] == ["short"]
        assert memory.values.sweep().keys == ("short",) and not memory.values.sweep()
        assert [one.value for one in memory.values.history("short")] == ["x"]
        assert memory.values.set("long", "y", ttl=0).expires == ""


def test_scopes_have_separate_values(memory: Memory) -> None:
    memory.scope("coder").values.set("theme", "dark")
    assert memory.values.get("theme") is None and not memory.scope("other").values.list()
    assert memory.scope("coder").values.get("theme").value == "dark"  # type: ignore[union-attr]


def test_values_of_earlier_versions_are_found_by_their_keys(memory: Memory) -> None:
    """Values of `memory_store`, and of the import of a key-value export."""
    memory.write("theme", "dark", name="theme", tags=["key-value"])
    memory.write(key_of_foreign_name("ui.Theme").key, "light", name="ui.Theme", tags=["key-value"])
    memory.write(
        "note-0123456789ab",
        '```json\n{\n  "a": 1\n}\n```',
        name="user:x",
        fields={"category": "kv", "source": "librefang:user:x"},
    )
    assert {one.key: one.value for one in memory.values.list()} == {
        "theme": "dark",
        "ui.Theme": "light",
        "user:x": {"a": 1},
    }
    made = memory.values.set("user:x", "new")
    assert made.memory == "note-0123456789ab" and memory.values.get("user:x").value == "new"  # type: ignore[union-attr]
    assert [one.value for one in memory.values.history("user:x")] == [{"a": 1}]


def test_damaged_value_is_shown_as_text(memory: Memory) -> None:
    made = memory.values.set("k", {"a": 1})
    memory.write(made.memory, "{ broken")
    assert memory.values.get("k").value == "{ broken"  # type: ignore[union-attr]


def test_new_value_is_set_without_reading_the_others(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        memory.values.set(f"key {number}", "text")
    reads: list[str] = []
    real = MemoryStore.reading_of

    def counted(self: MemoryStore, key: str, *given: Any) -> Any:
        reads.append(key)
        return real(self, key, *given)

    monkeypatch.setattr(MemoryStore, "reading_of", counted)
    memory.values.set("another", "text")
    assert len(set(reads)) <= 1


def test_value_with_an_edited_key_is_found_under_one_name(tmp_path: Path) -> None:
    with Memory.create("x", "local", home=tmp_path) as memory:
        file = tmp_path / "x" / "memory" / f"{memory.values.set('old key', 1).memory}.md"
        # In one field it renames nothing.
        file.write_text(file.read_text().replace("value_key: old key", "value_key: new key"))
        memory.folders.scan()
        assert [one.key for one in memory.values.list()] == ["old key"]
        assert memory.values.get("new key") is None
        found = memory.values.get("old key")
        assert found is not None and found.value == 1
        # In both it is renamed.
        file.write_text(file.read_text().replace("old key", "new key"))
        memory.folders.scan()
        assert [one.key for one in memory.values.list()] == ["new key"]
        assert memory.values.get("old key") is None
        renamed = memory.values.get("new key")
        assert renamed is not None and renamed.value == 1
        with pytest.raises(ChangedError, match="so the value was not written"):
            memory.values.set("old key", 2)
        assert memory.values.set("new key", 3).memory == file.stem
        assert [(one.key, one.value) for one in memory.values.list()] == [("new key", 3)]
        assert memory.values.delete("new key").value == 3 and not memory.values.list()


@pytest.mark.parametrize("sweep", [False, True])
def test_value_changed_during_a_bulk_delete_remains(monkeypatch: pytest.MonkeyPatch, sweep: bool) -> None:
    clock = MockClock()
    with Memory.load("alex", "none", home=Home(environment=Environment(lambda: clock.ms))) as memory:
        for key in ("a", "b", "c"):
            memory.values.set(key, 1, ttl=60 if sweep else None)
        memory.values.set("d", 2)
        listed = Values.list

        def overtaken(self: Values, *given: Any, **named: Any) -> list[KeyValue]:
            found = listed(self, *given, **named)
            monkeypatch.setattr(Values, "list", listed)
            memory.values.set("b", 5, ttl=600)
            if not sweep:
                memory.values.delete("a")
            return found

        clock.advance(61)
        monkeypatch.setattr(Values, "list", overtaken)
        if sweep:
            assert memory.values.sweep().keys == ("a", "c")
        else:
            with pytest.raises(ChangedError, match="1 value changed meanwhile and were kept: b; deleted: 1"):
                memory.values.clear(keys=["a", "b", "c"])
        assert [(one.key, one.value) for one in memory.values.list()] == [("b", 5), ("d", 2)]
