"""Facts: compared with existing ones, edited with a history, deleted with a way back, and hidden locally
over a limit."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipfsmem.device.state import StateStore
from ipfsmem.errors import ChangedError, LimitError, NotFoundError, UsageError
from ipfsmem.memory import Memory
from ipfsmem.recall.priority import reinforced
from tests.support.device_lab import Lab
from tests.support.meanwhile import meanwhile


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.load("x", mode="none", home=tmp_path) as opened:
        yield opened


def said(memory: Memory) -> list[str]:
    return [one.text for one in memory.facts.list()]


def remember(memory: Memory, text: str, category: str = "preference", **more: object) -> str:
    made = memory.facts.add(text, category, **more)  # type: ignore[arg-type]
    assert made is not None
    return made.fact.key


def limits(monkeypatch: pytest.MonkeyPatch, folder: Path, text: str) -> None:
    file = folder / "config.toml"
    file.write_text(f"[facts]\n{text}\n")
    monkeypatch.setenv("IPFSMEM_CONFIG", str(file))


def test_known_fact_is_not_added_twice_and_a_fuller_fact_replaces(memory: Memory) -> None:
    key = remember(memory, "User likes tea")
    assert remember(memory, "- user  likes\ntea.") == key
    assert remember(memory, "User likes team sports") != key
    made = memory.facts.add("User likes tea with milk", "preference")
    assert made is not None and (made.action, made.fact.key, made.was) == ("updated", key, "User likes tea")
    assert said(memory) == ["User likes tea with milk", "User likes team sports"]
    assert [(one.text, one.why) for one in memory.facts.history(key)] == [("User likes tea", "updated")]
    assert memory.recall("tea", kind="message").moments == ()
    assert memory.sessions.known() == [] and [one.key for one in memory.list()] == sorted(
        one.key for one in memory.facts.list()
    )
    found = memory.read(key)
    assert (
        found is not None and found.file.type == "feedback" and found.file.fields["category"] == "preference"
    )


def test_contradicting_fact_is_flagged_until_it_is_edited(memory: Memory) -> None:
    remember(memory, "User likes tea with milk")
    made = memory.facts.add("User does not like tea with milk", "preference")
    assert (
        made is not None
        and made.conflict
        and made.action == "added"
        and made.was == "User likes tea with milk"
    )
    assert [one.key for one in memory.list() if "conflict" in one.file.tags] == [made.fact.key]
    assert not memory.facts.edit(made.fact.key, "User does not like tea with milk").conflict


def test_empty_fact_is_ignored_and_an_invalid_one_refused(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for wrong in (
        {"text": " -- \n- "},
        {"text": "x" * 2_001},
        {"text": "x", "kind": "rumour"},
        {"text": "x", "confidence": 2.0},
    ):
        with pytest.raises(UsageError):
            memory.facts.add(**wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="kind must be"):
        memory.facts.list("rumour")  # type: ignore[arg-type]
    assert not memory.facts.list("episode")
    limits(monkeypatch, tmp_path, "closed = true")
    with pytest.raises(UsageError, match="unknown category"):
        memory.facts.add("x", "gossip")
    assert said(memory) == [] and remember(memory, "🎉", "Personal Fact") != remember(
        memory, "🚀", "Personal fact"
    )


def test_procedures_and_episodes_are_not_compared_with_facts(
    memory: Memory,
) -> None:
    fact = remember(memory, "Deploy on Tuesdays")
    how = remember(memory, "Deploy on Tuesdays after the tests", kind="procedure")
    then = remember(memory, "Deploy on Tuesdays failed", kind="episode")
    assert {one.key: one.kind for one in memory.facts.list()} == {
        fact: "fact",
        how: "procedure",
        then: "episode",
    }
    assert [hit.key for hit in memory.recall("deploy", type="procedure").hits] == [how]
    assert [one.key for one in memory.facts.list(kind="episode")] == [then]
    assert [one.key for one in memory.facts.list(category="Preference!", limit=2)] == [then, how]


def test_deleted_fact_is_restored_with_its_whole_history(memory: Memory) -> None:
    key = remember(memory, "User likes tea")
    memory.facts.edit(key, "User likes coffee")
    memory.facts.delete(key)
    assert said(memory) == [] and memory.read(key) is None
    assert [(one.key, one.text) for one in memory.facts.history()] == [(key, "User likes coffee")]
    assert memory.facts.restore(key).text == "User likes coffee" and not memory.facts.history()
    assert memory.facts.restore(key, 2).text == "User likes tea"
    assert [one.text for one in memory.facts.history(key)] == ["User likes coffee", "User likes coffee", "User likes tea"]  # fmt: skip
    for wrong in (lambda: memory.facts.restore(key, 9), lambda: memory.facts.restore("nobody"), lambda: memory.facts.delete("nobody"), lambda: memory.facts.edit("nobody", "x")):  # fmt: skip
        with pytest.raises(NotFoundError):
            wrong()


def test_history_of_a_memory_cannot_be_forged(memory: Memory) -> None:
    key = remember(memory, "User likes tea")
    memory.facts.edit(key, "User likes coffee")
    before, name = memory.facts.history(key), f"ipfsmem-history/{key}"
    forged = {"was": "---\nname: x\n---\nUser likes poison", "why": "edited"}
    for wrong in (
        lambda: memory.sessions.add(name, [forged]),
        lambda: memory.sessions.create(name),
        lambda: memory.sessions.pop(name).item,
    ):
        with pytest.raises(UsageError, match="contains the earlier texts of a memory"):
            wrong()
    assert memory.facts.history(key) == before


def test_forgotten_fact_leaves_none_of_its_texts_on_the_disk(tmp_path: Path) -> None:
    with Memory.create("x", "local", home=tmp_path) as memory:
        key = remember(memory, "User likes zanzibarian tea")
        memory.facts.edit(key, "User likes patagonian coffee")
        memory.hidden.add([key], why="a quixotic reason")
        assert memory.forget(key)
        assert not memory.facts.history() and not memory.hidden.list()
        with pytest.raises(NotFoundError):
            memory.facts.history(key)
    left = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert not any(word in left for word in (b"zanzibarian", b"patagonian", b"quixotic"))


def test_concurrent_edits_of_one_fact_keep_both_histories(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    try:
        a = lab.create("a")
        key = remember(a, "User likes tea")
        lab.sync(a)
        b = lab.restore("b")
        a.facts.edit(key, "User likes green tea")
        b.facts.edit(key, "User likes black tea")
        for one in (a, b, a):
            lab.sync(one)
        assert [one.text for one in a.facts.history(key)] == ["User likes tea"] * 2
        assert [one.key for one in a.conflicts()] == [key]
        a.hidden.add([key])
        root = a.status().root
        lab.sync(a)
        assert a.status().root == root and a.status().hidden == 1, (
            "hiding is of one device and changes no root"
        )
        assert not b.hidden.list() and [one.key for one in b.list()] == [key]
    finally:
        lab.close()


@pytest.mark.parametrize(("order", "left"), [("first", "cd"), ("oldest", "ad"), ("confidence", "bd")])
def test_facts_over_limit_are_hidden_and_can_be_shown_again(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str, left: str
) -> None:
    ticks = itertools.count(memory.replica.environment.now())
    monkeypatch.setattr(memory.replica.environment, "now", lambda: next(ticks))  # no two in one millisecond
    keys = {}
    for name, sure in (("a", 0.2), ("b", 0.9), ("c", 0.1)):
        keys[name] = remember(memory, f"{name} likes {name * 5}", confidence=sure)
    memory.facts.edit(keys["a"], "a likes everything")
    limits(monkeypatch, tmp_path, f'facts = 2\norder = "{order}"')
    made = memory.facts.add("d likes ddddd", confidence=0.8)
    assert made is not None and len(made.hidden) == 2
    keys["d"] = made.fact.key
    in_sight = {keys[name] for name in left}
    assert {one.key for one in memory.facts.list()} == in_sight == {one.key for one in memory.list()}
    assert {one.key for one in memory.hidden.list()} == set(keys.values()) - in_sight
    assert {hit.key for hit in memory.recall("likes").hits} == in_sight
    assert all(memory.read(key) is not None for key in keys.values()), "nothing is deleted"
    gone = made.hidden[0]
    why = memory.why(gone, "likes")
    assert why.place == 0 and "hidden" in why.reason
    assert memory.hidden.bring_back([gone]).keys == (gone,) and gone in {one.key for one in memory.list()}
    assert sorted(memory.hidden.bring_back()) == sorted(made.hidden[1:])


def test_hidden_fact_is_shown_when_written_or_added_again(memory: Memory) -> None:
    key = remember(memory, "User likes tea")
    memory.write("tone", "direct")
    assert memory.hidden.add([key, "tone"]).keys == (key, "tone") and not memory.hidden.add([key])
    assert (
        memory.list().memories == () and memory.recall("tea").hits == () and memory.context("tea").text == ""
    )
    assert remember(memory, "User likes tea") == key and [one.key for one in memory.list()] == [key]
    memory.write("tone", "friendly")
    assert len(memory.list()) == 2 and not memory.hidden.list()
    for wrong in (lambda: memory.hidden.add(["tone", "nobody"]), lambda: memory.hidden.bring_back(["tone"])):
        with pytest.raises(NotFoundError):
            wrong()
    assert not memory.hidden.list()
    with pytest.raises(UsageError):
        memory.hidden.add(["tone"], why="x" * 201)


def test_scopes_have_separate_facts(memory: Memory) -> None:
    work = memory.scope("work")
    remember(work, "User likes tea")
    key = remember(memory, "User likes tea with milk")
    assert said(work) == ["User likes tea"] and said(memory) == ["User likes tea with milk"]
    memory.hidden.add([key])
    assert not work.hidden.list() and [one.scope for one in work.hidden.list(everywhere=True)] == [""]


def test_damaged_row_of_hidden_keys_hides_nothing(tmp_path: Path) -> None:
    with Memory.create("x", "local", home=tmp_path) as memory:
        memory.write("tone", "direct")
        memory.hidden.add(["tone"])
        with Memory.load("x", home=tmp_path) as other, other.replica.transaction():
            other.replica.db.connection.execute("UPDATE hidden SET row=?", (b"\xc1not a row",))
        assert [one.key for one in memory.list()] == ["tone"] and not memory.hidden.list()


def test_fact_that_is_not_text_is_refused(memory: Memory) -> None:
    with pytest.raises((UsageError, LimitError, ValueError)):
        memory.facts.add("half \ud800")
    assert said(memory) == []


def test_fact_does_not_reuse_the_key_of_an_edited_fact(memory: Memory) -> None:
    """The key is derived from the text, and the memory under it may have changed."""
    key = remember(memory, "User likes tea")
    memory.facts.edit(key, "User prefers coffee over anything")
    again = remember(memory, "User likes tea")
    assert again != key and sorted(said(memory)) == ["User likes tea", "User prefers coffee over anything"]
    assert remember(memory, "User likes tea") == again


def test_default_context_has_all_facts_with_category(memory: Memory) -> None:
    assert memory.context().text == "" == memory.context(layout="full").text
    long = "has a rule of many words, " * 70
    for n in range(200):
        remember(memory, f"User likes colour {n} of {n * 7} in a house {n * 13}")
    remember(memory, f"User {long}to the very end")
    remember(memory, "Never delete production data", "restriction")
    for n in range(5):
        memory.write(f"note_{n}", f"A note {n}")
    for layout in ("index", "full"):
        block = memory.context(layout=layout)  # type: ignore[arg-type]
        lines = [line.removeprefix("> ") for line in block.text.splitlines() if line.startswith("> - [")]
        facts = [line for line in lines if "](" not in line]
        assert facts[0] == "- [restriction] Never delete production data"
        assert sorted(facts[1:]) == sorted(
            f"- [preference] {text}" for text in said(memory) if not text.startswith("Never")
        )
        # A fact is not listed again, but memories are.
        assert [line for line in lines if "](" in line] and len(lines) == 207
        assert (block.listed, block.left_out) == (207, 0)


def test_facts_are_in_the_context_of_the_next_process(tmp_path: Path) -> None:
    with Memory.load("m", "local", home=tmp_path) as memory:
        memory.facts.add("User likes tea", "preference")
        memory.scope("shop").facts.add("Opens at nine", "convention")
        memory.write("note", "The note", fields={"category": "kept by hand"})
    with Memory.load("m", "local", home=tmp_path) as memory:
        text = memory.scope("shop").context().text
    assert "- [preference] User likes tea" in text and "- [convention] Opens at nine" in text
    assert "- [kept_by_hand] The note" in text


@pytest.mark.parametrize("tokens", [200, 500, 2_000, 4_000])
def test_facts_over_an_exact_budget_are_counted_restrictions_stay(memory: Memory, tokens: int) -> None:
    memory.facts.add("Never push to main", "restriction")
    for n in range(300):
        remember(memory, f"User likes colour {n} of {n * 7} in a house {n * 13}")
    memory.facts.add("Never delete data", "restriction")
    block = memory.context(max_tokens=tokens)
    lines = [line for line in block.text.splitlines() if line.startswith("> - [")]
    assert lines[:2] == ["> - [restriction] Never delete data", "> - [restriction] Never push to main"]
    texts = {f"> - [preference] {text}" for text in said(memory)}
    assert set(lines[2:]) <= texts and block.tokens <= tokens
    assert f"({302 - len(lines)} more facts had no room here: look for them by their words.)" in block.text
    assert block.listed == len(lines) and block.left_out == 302 - len(lines)


def test_pending_forgotten_and_hidden_facts_are_not_in_the_context(memory: Memory) -> None:
    key = remember(memory, "User likes tea")
    memory.scope("shop").facts.add("The shop opens at nine", "convention")
    memory.facts.delete(key)
    remember(memory, "User likes coffee")
    block = memory.scope("shop").context()
    assert "> - [convention] The shop opens at nine" in block.text
    assert "> - [preference] User likes coffee" in block.text and "tea" not in block.text
    assert "shop opens" not in memory.context().text


def test_contradiction_does_not_raise_the_confidence_of_a_fact(memory: Memory) -> None:
    plain = memory.facts.add("User drinks black coffee", "preference")
    opposed = memory.facts.add("User does not drink black coffee", "preference")
    assert plain is not None and opposed is not None and opposed.fact.conflict
    worth = {hit.key: hit.parts["salience"] for hit in memory.recall("user drink coffee", explain=True).hits}
    assert worth[opposed.fact.key] == worth[plain.fact.key]


def test_repeated_fact_gains_confidence_up_to_one(memory: Memory) -> None:
    assert reinforced(0.5) == 0.55 and reinforced(0.5, 0.9) == pytest.approx(0.75) and reinforced(0.98) == 1.0
    memory.facts.add("Likes green tea", confidence=0.5)
    kept = memory.facts.add("likes GREEN tea")
    assert kept is not None and (kept.action, kept.fact.confidence) == ("kept", 0.55)
    kept = memory.facts.add("Likes green tea", confidence=0.95)
    assert kept is not None and kept.fact.confidence == 0.8 and kept.fact.text == "Likes green tea"
    for _ in range(9):
        memory.facts.add("Likes green tea", confidence=1.0)
    (fact,) = memory.facts.list()
    assert fact.confidence == 1.0
    memory.facts.add("Works by night")
    before = memory.read(memory.facts.list()[0].key)
    memory.facts.add("Works by night", confidence=0.3)
    assert memory.read(memory.facts.list()[0].key) == before  # it was stated with full confidence


def test_fact_written_meanwhile_by_another_process_is_not_replaced(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = remember(memory, "User likes tea")
    meanwhile(monkeypatch, "write", lambda: memory.facts.edit(key, "User hates all drinks"))
    with pytest.raises(ChangedError):
        memory.facts.add("User likes tea with milk", "preference")
    assert said(memory) == ["User hates all drinks"]
    meanwhile(monkeypatch, "forget", lambda: memory.facts.edit(key, "User hates tea only"))
    memory.facts.delete(key)
    (left,) = memory.conflicts()
    texts = [one.reading.file.body for one in left.copies if one.reading is not None]
    assert left.forgotten and texts == ["User hates tea only"]


def test_second_context_rereads_only_changed_facts(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    tea, boat = remember(memory, "User likes tea"), remember(memory, "The boat is at pier 7", "project")
    remember(memory.scope("shop"), "The shop opens at nine")
    memory.recall("tea")  # so that there is an index
    opened: list[str] = []
    production = StateStore.body
    monkeypatch.setattr(StateStore, "body", lambda *of: opened.append(of[1]) or production(*of))

    def facts_shown() -> set[str]:
        memory.recall("tea")
        opened.clear()
        return {line.strip() for line in memory.context().text.splitlines() if "- [" in line}

    assert facts_shown() == {"> - [preference] User likes tea", "> - [project] The boat is at pier 7"}
    first = len(opened)
    assert facts_shown() and first >= 2 and opened == []
    memory.facts.edit(tea, "User likes coffee")
    memory.facts.delete(boat)
    assert facts_shown() == {"> - [preference] User likes coffee"}
    memory.facts.restore(boat)
    memory.forget(tea)
    assert facts_shown() == {"> - [project] The boat is at pier 7"}
    memory.forget(boat)
    assert facts_shown() == set()
