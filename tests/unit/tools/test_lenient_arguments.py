"""Arguments are accepted in the forms that models send; ambiguous ones are refused with their range."""

from __future__ import annotations

from typing import Any

import pytest

from ipfsmem.memory import Memory
from tests.support.tools_lab import Model


@pytest.fixture
def memory() -> Memory:
    return Memory.load("alex", "none")


@pytest.fixture
def model(memory: Memory) -> Model:
    return Model(memory)


@pytest.mark.parametrize(
    "given",
    [
        {"limit": 1.0}, {"limit": "1"}, {"limit": "1.0"}, {"limit": "1", "explain": "true"}, {"limit": 1, "explain": "False"},
        {"limit": "1", "type": "", "tag": "null", "category": "None", "since": "", "by": None, "kind": "", "scope": "null"},
        {"limit": 1, "type": "Feedback"}, {"limit": 1, "type": " feedback "}, {"limit": 1, "reasoning": "as asked"},
    ],
)  # fmt: skip
def test_recall_accepts_numbers_and_empty_values_in_any_form(
    memory: Memory, model: Model, given: dict[str, Any]
) -> None:
    for key in ("one", "two"):
        memory.write(key, "tea", type="feedback")
    found = model("recall", query="tea", **given)
    assert not found.is_error and len(found.structured["hits"]) == 1, found.text
    assert ("Ignored unknown arguments: 'reasoning'" in found.text) == ("reasoning" in given)


@pytest.mark.parametrize(
    ("tags", "kept"),
    [
        ("x, y", ("x", "y")), ('["x", "y"]', ("x", "y")), ("x", ("x",)), (["x, y"], ("x", "y")), ([1, "y"], ("1", "y")),
        ("null", ()), ("", ()), (None, ()), ([], ()),
    ],
)  # fmt: skip
def test_remember_accepts_a_list_in_any_form(
    memory: Memory, model: Model, tags: Any, kept: tuple[str, ...]
) -> None:
    done = model("remember", key="k", body="x", tags=tags, seen="", name="null", type="", description=None)
    assert not done.is_error, done.text
    file = memory.read("k").file  # type: ignore[union-attr]
    assert (file.tags, file.name, file.type, file.body) == (kept, "", "", "x")


def test_texts_that_look_like_json_are_stored_unchanged(memory: Memory, model: Model) -> None:
    for number, body in enumerate(("null", "None", '["a", "b"]', "3.0", "true", "  two blanks")):
        assert not model("remember", key=f"k{number}", body=body).is_error
        assert memory.read(f"k{number}").file.body == body  # type: ignore[union-attr]
    assert "the text is empty" in model.refused("remember", key="empty", body="")
    assert not model("memory_store", key="Some.Key", value="null").is_error
    assert model("memory_recall", key="Some.Key").structured["value"] == "null"


def test_key_is_accepted_as_links_and_files_write_it(model: Model) -> None:
    model("remember", key="feedback_tone", body="direct")
    for said in ("feedback_tone.md", "Feedback_Tone", " feedback_tone "):
        assert model("read_memory", key=said).structured["key"] == "feedback_tone"
    assert "not a memory key" in model.refused("remember", key="My Note: Über", body="x")


def test_objects_are_accepted_as_json_text(memory: Memory, model: Model) -> None:
    assert not model("note", type="decision", data='{"by": "team"}').is_error
    assert memory.timeline.read()[-1]["by"] == "team"
    entity = '{"name": "Ada", "entityType": "person", "observations": ["writes"]}'
    for given in (f"[{entity}]", entity):
        made = model("create_entities", entities=given)
        assert not made.is_error, made.text
    assert model("open_nodes", names="Ada").structured["entities"][0]["observations"] == ["writes"]


@pytest.mark.parametrize(
    ("tool", "given", "said"),
    [
        ("recall", {"query": "x", "limit": "0"}, "limit is 1 to 50, not 0"),
        ("recall", {"query": "x", "limit": 99.0}, "limit is 1 to 50, not 99"),
        ("recall", {"query": "x", "limit": 2.5}, "limit is a whole number"),
        ("recall", {"query": "x", "limit": True}, "limit is a whole number, not true or false"),
        ("recall", {"query": "x", "limit": "1e400"}, "limit is a whole number"),
        ("recall", {"query": "x", "type": "diary"}, "type is one of user, feedback"),
        ("recall", {"query": "x", "explain": "perhaps"}, "explain is true or false, not text"),
        ("recall", {"qery": "x"}, "unknown argument 'qery' (perhaps query)"),
        ("recall", {"query": "null", "limti": 3}, "unknown argument 'limti' (perhaps limit)"),
        ("remember", {"key": "k", "content": "the text", "name": "N"}, "unknown argument 'content'"),
        ("forget", {"key": "k", "confrim": "0" * 16}, "unknown argument 'confrim' (perhaps confirm)"),
        ("note", {"type": "x", "data": "[1]"}, "data is an object, not text"),
        ("note", {"type": "x", "data": "{broken"}, "data is an object, not text"),
        ("remember", {"key": 10**30, "body": "x"}, "key is text, not a whole number"),
    ],
)
def test_ambiguous_argument_is_refused(
    memory: Memory, model: Model, tool: str, given: dict[str, Any], said: str
) -> None:
    before = memory.files(), memory.timeline.read()
    assert said in model.refused(tool, **given)
    assert (memory.files(), memory.timeline.read()) == before
