"""What the tools of all programs have in common: hints on what takes text away, and a word on likely secrets."""

from __future__ import annotations

import json

import pytest

from ipfsmem.compat.programs import PROGRAMS, definitions, program_tools
from ipfsmem.memory import Memory
from ipfsmem.tools import toolset

SECRET = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"


def test_tools_that_delete_are_marked_destructive_and_no_others() -> None:
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
def test_a_likely_secret_is_saved_with_a_word_on_it(
    program: str, tool: str, given: dict[str, object]
) -> None:
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
