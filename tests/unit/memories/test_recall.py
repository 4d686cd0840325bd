"""Memories found by plain words, and the block that a model is given."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipfsmem.bundle.fence import unquote
from ipfsmem.errors import UsageError
from ipfsmem.memories.context import TOKEN_BYTES
from ipfsmem.memories.words import needle, query_words, spaced
from ipfsmem.memory import Memory
from ipfsmem.recall.terms import fold
from tests.support.device_lab import Lab


@pytest.fixture
def memory() -> Memory:
    return Memory.load("alex", "none")


def keys(memory: Memory, query: str, **more: object) -> list[str]:
    return [hit.reading.key for hit in memory.recall(query, **more).hits]  # type: ignore[arg-type]


def others(memory: Memory, **texts: str) -> None:
    files = {f"{key}.md": text for key, text in texts.items()}
    memory.bundles.import_(
        json.dumps({"version": "memory/0.1", "files": files, "timeline": []}), foreign=True
    )


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("CAFE", ["a"]),
        ("café", ["a"]),
        ("caf", []),
        ("Straße", ["b"]),
        ("STRASSE", ["b"]),
        ("tokyo weather", ["c"]),
        ("東京の天気", ["d"]),
        ("feedback tone", ["feedback_tone"]),
        ("categ", ["e"]),
        ("cat", []),
        ("blue-green", ["f"]),
        ("prod", ["f"]),
    ],
)
def test_words_match_whatever_their_case_and_accents(memory: Memory, query: str, found: list[str]) -> None:
    memory.write("a", "We met in the Café\u0301.")
    memory.write("b", "an der STRASSE")
    memory.write("c", "x", description="Tokyo weather station")
    memory.write("d", "昨日の東京は雨")
    memory.write("e", "categories")
    memory.write("f", "y", tags=["blue", "prod"])
    memory.write("feedback_tone", "z")
    assert keys(memory, query) == found


def test_the_order_says_what_counts_and_is_always_the_same(memory: Memory) -> None:
    others(memory, theirs="tea and milk and sugar", also="tea")
    memory.write("one", "tea")
    memory.write("header", "x", name="tea")
    memory.write("two", "milk with tea")
    memory.write("newer", "a tea")
    found = memory.recall("tea milk", why=True)
    assert [hit.reading.key for hit in found.hits] == ["two", "header", "newer", "one", "theirs", "also"]
    assert [hit.words for hit in found.hits][:2] == [("tea", "milk"), ("tea",)]
    assert [hit.reading.own for hit in found.hits] == [True] * 4 + [False] * 2
    assert found.hits[1].in_header == ("tea",) and found.found == 6
    assert memory.recall("tea milk", why=True) == found
    assert memory.recall("tea milk").hits[0].words == ()
    assert keys(memory, "tea milk", limit=2) == ["two", "header"]


def test_what_was_changed_forgotten_or_is_in_another_scope(memory: Memory) -> None:
    memory.write("role", "baker")
    assert keys(memory, "baker") == ["role"]
    memory.write("role", "teacher")
    assert keys(memory, "baker") == [] and keys(memory, "teacher") == ["role"]
    memory.forget("role")
    assert keys(memory, "teacher") == []
    memory.scope("work").write("role", "pilot")
    memory.write("home", "pilot")
    assert keys(memory, "pilot") == ["home"] and keys(memory, "pilot", scope="work") == ["role"]
    assert {hit.reading.scope for hit in memory.stack("work").recall("pilot").hits} == {"work", ""}
    memory.scopes.forget("work")
    assert keys(memory, "pilot", scope="work") == []


def test_a_scope_s_text_stands_for_everybody_s_of_the_same_key(memory: Memory) -> None:
    memory.write("tone", "direct and blue")
    memory.scope("work").write("tone", "formal")
    assert memory.stack("work").recall("blue").hits == ()


def test_filters(lab: Lab) -> None:
    a = lab.create("a")
    a.write("old", "tea", type="user", tags=["x"])
    lab.clock.advance(3 * 86_400)
    a.write("new", "tea", type="project")
    a.sessions.add("talk", [{"content": "tea"}])
    (part,) = (one.key for one in a._open.memories.listing(sessions=True) if one.key not in ("old", "new"))
    assert keys(a, "tea") == ["new", "old"]
    assert keys(a, "tea", type="user") == ["old"] and keys(a, "tea", tag="x") == ["old"]
    assert keys(a, "tea", type="session") == [part]
    written = a.recall("tea").hits[1].reading
    day = lab.clock.ms // 1000 - 86_400
    from datetime import UTC, datetime

    assert keys(a, "tea", since=datetime.fromtimestamp(day, UTC).isoformat()) == ["new"]
    assert keys(a, "tea", since=datetime.fromtimestamp(day, UTC).date().isoformat()) == ["new"]
    assert written.key == "old"


@pytest.mark.parametrize(
    ("query", "more"),
    [
        ("", {}),
        (" ,;- ", {}),
        ("x" * 4001, {}),
        ("x", {"limit": 0}),
        ("x", {"limit": 201}),
        ("x", {"since": "soon"}),
    ],
)
def test_what_cannot_be_meant_is_refused(memory: Memory, query: str, more: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        memory.recall(query, **more)  # type: ignore[arg-type]


@given(st.text(), st.text(max_size=40))
def test_a_text_is_found_by_each_of_its_own_words(text: str, query: str) -> None:
    for word in query_words(text) if spaced(text).strip() else ():
        assert needle(word) in spaced(text)
    assert fold(fold(query)) == fold(query)


# -- context -------------------------------------------------------------------------------------------------


def test_the_context_holds_own_texts_only(memory: Memory) -> None:
    assert memory.context().text == ""
    others(memory, theirs="---\nname: Their name\ndescription: Their line\n---\n\ntea")
    assert memory.context("tea").text == ""
    memory.write("mine", "tea </memory-index>", name="Mine", description="my line")
    block = memory.context("tea")
    assert block.shown == ("mine",) and (block.listed, block.left_out) == (1, 0)
    assert "Their" not in block.text and "theirs" not in block.text
    assert "> - [Mine](mine.md) — my line\n" in block.text
    memory.promote("theirs")
    assert set(memory.context("tea").shown) == {"mine", "theirs"}
    assert memory.context().shown == () and memory.context("tea", layout="turn").listed == 0
    assert memory.context("coffee", layout="turn").text == ""


def test_the_context_of_a_scope_has_what_is_everybody_s(memory: Memory) -> None:
    memory.write("tone", "x", name="Everybody's tone")
    memory.write("role", "x", name="Role")
    work = memory.scope("work")
    work.write("tone", "x", name="Tone at work")
    text = work.context().text
    assert "Tone at work" in text and "Role" in text and "Everybody's tone" not in text
    assert '<memory-index scope="work">' in text and "Tone at work" not in memory.context().text
    assert text.index("Tone at work") < text.index("Role")


@pytest.mark.parametrize("tokens", [200, 201, 257, 400, 1000, 5000])
@pytest.mark.parametrize("layout", ["index", "turn"])
def test_the_context_never_has_more_tokens_than_were_asked_for(
    memory: Memory, tokens: int, layout: str
) -> None:
    draw = random.Random(tokens)
    for n in range(60):
        body = "tea " * draw.randrange(1, 3000) + "日本" * draw.randrange(40)
        memory.write(
            f"k{n}", body, name="é" * draw.randrange(80), type=draw.choice(["user", "project", "feedback"])
        )
    block = memory.context("tea", max_tokens=tokens, layout=layout)  # type: ignore[arg-type]
    assert block.tokens <= tokens and len(block.text.encode()) <= tokens * TOKEN_BYTES
    if layout == "index":
        assert block.listed + block.left_out == 60
        assert unquote(block.text).count("](k") == block.listed
        assert (f"({block.left_out} more memor" in block.text) == (block.left_out > 0)
    assert tokens < 1000 or block.shown
    assert memory.context("tea", max_tokens=tokens, layout=layout) == block  # type: ignore[arg-type]


def test_what_cannot_be_meant_by_a_context_is_refused(memory: Memory) -> None:
    with pytest.raises(UsageError, match="needs one"):
        memory.context(layout="turn")
    with pytest.raises(UsageError, match="no layout"):
        memory.context(layout="all")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="max_tokens"):
        memory.context(max_tokens=10)
