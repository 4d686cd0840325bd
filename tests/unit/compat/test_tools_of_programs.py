"""Common properties of other programs' tools: hints on destructive ones, and a warning on likely secrets."""

from __future__ import annotations

import json

import pytest

from ipfsmem.compat.programs import MAX_ANSWER, PROGRAMS, definitions, program_tools
from ipfsmem.memory import Memory
from ipfsmem.tools import toolset

SECRET = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"


def test_only_tools_that_delete_are_marked_destructive() -> None:
    with Memory.load("alex", "none") as memory:
        ours = {one.name: one.destructive for one in toolset(memory, ["all"])}
    assert {name for name, takes in ours.items() if takes} == {
        "forget", "resolve_conflict", "memory_delete", "delete_entities", "delete_observations", "delete_relations",
        "delete_fact", "apply_dream",
    }  # fmt: skip
    theirs = {(program, one.name) for program in PROGRAMS for one in definitions(program) if one.destructive}
    assert theirs == {("agh", "memory_delete")}


@pytest.mark.parametrize(
    ("program", "tool", "given"),
    [
        ("agh", "memory_write", {"filename": "x", "type": "project", "description": "d", "content": "TEXT"}),
        ("librefang", "memory_store", {"key": "x", "value": {"a": "TEXT"}}),
        ("librefang", "knowledge_add_entity", {"name": "X", "entity_type": "x", "properties": {"a": "TEXT"}}),
        ("initrunner", "remember", {"content": "TEXT"}),
        ("initrunner-typed", "learn_procedure", {"content": "TEXT"}),
        ("infraware", "save_memory", {"fact": "TEXT", "category": "convention"}),
        ("infraware", "save_session_context", {"fact": "TEXT", "category": "discovery"}),
    ],
)
def test_likely_secret_is_saved_with_a_warning(program: str, tool: str, given: dict[str, object]) -> None:
    with Memory.load("alex", "none") as memory:
        tools = {one.name: one for one in program_tools(memory, program, scope="work")}

        def saved(text: str) -> str:
            words = json.loads(json.dumps(given).replace("TEXT", text))
            answer = tools[tool].call(**words)
            assert not answer.is_error
            if program == "infraware":
                assert json.loads(answer.text) == answer.structured
            return answer.text

        assert "secret" in saved(SECRET)
        assert "secret" not in saved("The tests run before a release.")


@pytest.mark.parametrize(
    ("program", "stores", "reads"),
    [
        ("agh", ("memory_write", {"filename": "x", "type": "project", "description": "d", "content": "TEXT"}), ("memory_read", {"filename": "x"})),
        ("librefang", ("memory_store", {"key": "x", "value": "TEXT"}), ("memory_recall", {"key": "x"})),
        ("initrunner", ("remember", {"content": "TEXT"}), ("recall", {"query": "word"})),
        ("initrunner", ("remember", {"content": "TEXT"}), ("list_memories", {})),
    ],
)  # fmt: skip
@pytest.mark.parametrize("text", ["word " * 40_000, "a word\n" * 30_000, "word €" * 20_000])
def test_long_answer_is_truncated_and_reports_the_shown_size(
    program: str, stores: tuple[str, dict[str, str]], reads: tuple[str, dict[str, str]], text: str
) -> None:
    with Memory.load("alex", "none") as memory:
        tools = {one.name: one for one in program_tools(memory, program, scope="work")}
        stored = {name: text if value == "TEXT" else value for name, value in stores[1].items()}
        assert not tools[stores[0]].call(**stored).is_error
        answer = tools[reads[0]].call(**reads[1])
    assert len(answer.text.encode()) < MAX_ANSWER + 300
    said, _, end = answer.text.rpartition("\n\n[Cut here: ")
    assert f"{len(said.encode()):,} of " in end and "are shown" in end
    assert answer.structured == {"result": answer.text}


@pytest.mark.parametrize(
    ("program", "tool", "given", "key"),
    [
        ("agh", "memory_write", {"filename": "x", "type": "project", "description": "d", "content": "TEXT"}, "x"),
        ("librefang", "memory_store", {"key": "it's x", "value": "TEXT"}, "'it'\"'\"'s x'"),
    ],
)  # fmt: skip
def test_answer_says_how_a_replaced_text_is_restored(
    program: str, tool: str, given: dict[str, str], key: str
) -> None:
    with Memory.load("alex", "none") as memory:
        write = {one.name: one for one in program_tools(memory, program, scope="work")}[tool]
        said = [
            write.call(**{name: text if value == "TEXT" else value for name, value in given.items()}).text
            for text in ("first", "second")
        ]
        assert "restore" not in said[0]
        assert f" restore {key} --scope work" in said[1]
        there = memory.scope("work")
        back = there.facts.restore("x").text if program == "agh" else there.values.restore("it's x").value
    assert back == "first"
