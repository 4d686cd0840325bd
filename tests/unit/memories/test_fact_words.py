"""Facts similar to a new one, found by a word index: the same decisions as by recall, also after changes
and in another process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipfsmem.bundle.memory_file import MemoryFile
from ipfsmem.device.state import StateStore
from ipfsmem.errors import StorageError
from ipfsmem.facts.decision import share, stems, words_of
from ipfsmem.graph import entity
from ipfsmem.memories import fact_words, facts
from ipfsmem.memories.fact_words import FactWords
from ipfsmem.memories.facts import AddedFacts
from ipfsmem.memory import Memory


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    file = tmp_path / "config.toml"
    file.write_text('[embeddings]\nprovider = "off"\n')
    monkeypatch.setenv("IPFSMEM_CONFIG", str(file))
    with Memory.load("m", "local", home=tmp_path) as opened:
        yield opened


SAID = (
    "User likes tea",
    "User likes tea with milk",
    "likes tea",
    "User does not like tea with milk",
    "The boat is at pier 7",
    "The boat is at pier 8",
    "the BOAT is at pier 7",
    "User now likes coffee instead of tea",
    "Anna may enter the hall",
    "Berta may enter the hall",
    "User likes tea with milk and one biscuit every morning",
)


def test_decisions_are_the_same_with_and_without_the_word_index(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decided(scope: str, many: int) -> list[tuple[str, bool, str]]:
        monkeypatch.setattr(facts, "_INDEX_AFTER", many)
        there = memory.scope(scope).facts
        for number in range(30):
            there.add(f"Something else entirely, numbered {number}", "other")
        said = [there.add(text, "x") for text in SAID]
        return [(one.action, one.conflict, one.was) for one in said if one is not None]

    by_index = decided("by_index", 0)
    assert memory._open.memories.caches.of(AddedFacts).words
    assert by_index == decided("by_recall", 1_000)
    assert by_index[:4] == [
        ("added", False, ""),
        ("updated", False, "User likes tea"),
        ("kept", False, ""),
        ("added", True, "User likes tea with milk"),
    ]


def test_word_index_follows_edits_and_deletes(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(facts, "_INDEX_AFTER", 0)
    first = memory.facts.add("User likes green tea", "x")
    assert first is not None
    memory.facts.edit(first.fact.key, "User sails at dawn")
    again = memory.facts.add("User likes green tea", "x")
    assert again is not None and again.action == "added"
    kept = memory.facts.add("user SAILS at dawn", "x")
    assert kept is not None and (kept.action, kept.fact.key) == ("kept", first.fact.key)
    memory.facts.delete(again.fact.key)
    with Memory.load("m", "local", home=tmp_path) as other:
        other.facts.add("User reads by night", "x")
    by_other = memory.facts.add("user reads BY night", "x")
    back = memory.facts.add("User likes green tea", "x")
    assert by_other is not None and by_other.action == "kept"
    assert back is not None and back.action == "added"


def test_word_index_adds_a_text_fetched_later(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    added = memory.facts.add("User likes tea", "preference")
    words = FactWords(memory._open.memories)
    with monkeypatch.context() as patch, memory.replica.reading():
        patch.setattr(StateStore, "body", lambda *_: None)
        words.refresh()
    assert not words.entries
    with memory.replica.reading():
        words.refresh()
    assert added is not None and list(words.entries) == [added.fact.key]


sayings = st.lists(
    st.sampled_from(["user", "likes", "tea", "milk", "the", "boats", "boat", "7"]), max_size=8
).map(" ".join)


@given(sayings, sayings)
def test_similarity_is_the_greater_share_of_words_or_stems(said: str, there: str) -> None:
    words, known = words_of(said), words_of(there)
    wanted, stems_there = frozenset(stems(words)), frozenset(stems(known))
    one = fact_words.FactEntry(known, len({*known}), stems_there, "fact", "")
    expected = max(share(words, known), share(tuple(wanted), tuple(stems_there)))
    if wanted and wanted <= stems_there:
        expected = max(expected, 0.9)
    assert list(fact_words._shares(wanted, frozenset(words), [one, one])) == [expected, expected]


lines = st.lists(
    st.sampled_from(
        ["- seen", "- knows: [[a]]", "Relations:", "", "- near: b", "prose [[c]]", "* x [[d]] y"]
    ),
    max_size=8,
)


@given(lines, lines, lines)
def test_text_parsed_incrementally_equals_the_whole_text(
    one: list[str], two: list[str], three: list[str]
) -> None:
    long, before = entity._LONG, entity._READ.copy()
    texts = ["\n".join(part) for part in (one, [*one, *two], [*one, *two, *three])]
    whole = [entity.entity_of("k", MemoryFile({}, text)) for text in texts]
    try:
        entity._LONG = 0  # type: ignore[misc]
        entity._READ.clear()
        assert [entity.entity_of("k", MemoryFile({}, text)) for text in texts] == whole
    finally:
        entity._LONG = long  # type: ignore[misc]
        entity._READ.clear()
        entity._READ.update(before)


@pytest.mark.parametrize("order", ["first", "oldest", "confidence", "salience"])
def test_limits_hide_the_same_with_and_without_the_word_index(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, order: str
) -> None:
    (tmp_path / "config.toml").write_text(
        f'[embeddings]\nprovider = "off"\n[facts]\nfacts = 4\norder = "{order}"\n'
    )

    def hidden(scope: str, many: int) -> list[set[str]]:
        monkeypatch.setattr(facts, "_INDEX_AFTER", many)
        there, seen, keys = memory.scope(scope), list[set[str]](), list[str]()

        def add(number: int) -> None:
            made = there.facts.add(f"Something else entirely, numbered {number}", "other", confidence=0.9)
            assert made is not None
            keys.append(made.fact.key)
            seen.append({one.key for one in there.hidden.list()})

        for number in range(8):
            add(number)
        there.hidden.bring_back([keys[0], keys[1]])
        add(8)
        there.forget(keys[-1])
        there.hidden.add([keys[-2]])
        add(9)
        there.facts.edit(keys[6], "Another sentence about a boat")
        with Memory.load("m", "local", home=tmp_path) as other:  # another process
            other.scope(scope).hidden.bring_back([keys[2]])
            other.scope(scope).facts.edit(keys[3], "What stands at the pier is no boat")
        for number in range(10, 13):
            add(number)
        places = {key: place for place, key in enumerate(keys)}
        return [{places[key] for key in one} for one in seen]

    by_index = hidden("by_index", 0)
    assert by_index == hidden("by_recall", 1_000)
    assert len(by_index[-1]) > 4


def test_failed_refresh_leaves_no_change_partly_indexed(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facts, "_INDEX_AFTER", 0)
    memory.facts.add("The boat is at pier 7", "x")
    memory.write("tea", "User likes tea", fields={"category": "x"})
    readable, failed = fact_words.readable_file, list[bytes]()

    def fails_once(data: bytes) -> MemoryFile:
        if not failed:
            failed.append(data)
            raise StorageError("the disk does not answer")
        return readable(data)

    (index,) = memory._open.memories.caches.of(AddedFacts).words.values()
    with memory.replica.reading(), monkeypatch.context() as at_fault:
        at_fault.setattr(fact_words, "readable_file", fails_once)
        with pytest.raises(StorageError):
            index.refresh()
        index.refresh()
        anew = FactWords(memory._open.memories)
        anew.refresh()
    assert failed and "tea" in index.entries and index.entries == anew.entries
