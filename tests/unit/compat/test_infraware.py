"""Infraware's tools over a vault."""

from __future__ import annotations

import json

import pytest

from ipfsmem.compat.programs import program_tools
from ipfsmem.memory import Memory
from ipfsmem.tools.tool import Tool


def tools(memory: Memory) -> dict[str, Tool]:
    return {one.name: one for one in program_tools(memory, "infraware")}


def test_fact_is_sanitised_and_saved() -> None:
    with Memory.load("alex", "none") as memory:
        there = tools(memory)
        assert list(there) == ["save_memory", "save_session_context"]
        answer = there["save_memory"].call(fact="  - Prefers   tabs \n over spaces ", category="preference")
        assert answer.text == '{"saved":true,"message":"Remembered: Prefers tabs over spaces"}'
        (item,) = memory.list()
        assert (item.file.fields["category"], item.file.type) == ("preference", "feedback")
        assert memory.read(item.key).readable.body == "Prefers tabs over spaces"  # type: ignore[union-attr]


def test_empty_fact_is_not_an_error() -> None:
    with Memory.load("alex", "none") as memory:
        answer = tools(memory)["save_memory"].call(fact=" - - ", category="workflow")
        assert not answer.is_error and json.loads(answer.text)["saved"] is False and not memory.list()


@pytest.mark.parametrize("tool", ["save_memory", "save_session_context"])
def test_unknown_category_is_refused(tool: str) -> None:
    with Memory.load("alex", "none") as memory:
        assert tools(memory)[tool].call(fact="x", category="bogus").is_error and not memory.list()


def test_second_fact_never_replaces_the_first() -> None:
    with Memory.load("alex", "none") as memory:
        save = tools(memory)["save_memory"]
        for fact in ("Likes tea", "Likes tea with milk", "Likes tea"):
            assert json.loads(save.call(fact=fact, category="preference").text)["saved"] is True
        bodies = sorted(memory.read(one.key).readable.body for one in memory.list())  # type: ignore[union-attr]
        assert bodies == ["Likes tea", "Likes tea with milk"]


def test_session_fact_is_not_stored() -> None:
    with Memory.load("alex", "none") as memory:
        answer = tools(memory)["save_session_context"].call(fact="Shell is zsh", category="environment")
        assert json.loads(answer.text) == {"saved": True, "message": "Session context saved: Shell is zsh"}
        assert not memory.list()
