"""A vault's tools in a PydanticAI agent with a scripted model: calls, answers, refusals and instructions."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ipfsmem import tools
from ipfsmem.adapters.pydantic_ai import toolset
from ipfsmem.errors import UsageError
from ipfsmem.memory import Memory
from tests.support.extras import need_extra

#: One worker for all tests: importing the package takes seconds.
pytestmark = pytest.mark.xdist_group("pydantic-ai")


@pytest.fixture(scope="module")
def package() -> ModuleType:
    need_extra("pydantic-ai", "pydantic_ai.models.function")
    return need_extra("pydantic-ai", "pydantic_ai")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.load("x", mode="none", home=tmp_path) as opened:
        yield opened


def conversation(
    memory: Memory, *turns: list[tuple[str, dict[str, Any]]], **how: Any
) -> tuple[list[Any], Any]:
    """Return the tools' answers to these calls of a model, as (tool, outcome, text), and the model's
    instructions."""
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    left, told = list(turns), []

    def model(messages: list[Any], info: Any) -> ModelResponse:
        told.append(info)
        calls = left.pop(0) if left else []
        return ModelResponse(parts=[ToolCallPart(name, given) for name, given in calls] or [TextPart("done")])

    agent = Agent(FunctionModel(model), toolsets=[toolset(memory, **how)])
    result = asyncio.run(agent.run("go on"))
    answers = [
        (part.tool_name, part.outcome, str(part.content))
        for message in result.all_messages()
        for part in message.parts
        if part.part_kind == "tool-return"
    ]
    return answers, told[0]


def test_model_calls_tools_and_receives_errors(package: ModuleType, memory: Memory) -> None:
    answers, told = conversation(
        memory,
        [("remember", {"key": "tone", "body": "direct critique"})],
        [("recall", {"query": "critique"}), ("read_memory", {"key": "NO KEY"}), ("read_memory", {})],
    )
    assert [(name, outcome) for name, outcome, _ in answers] == [
        ("remember", "success"), ("recall", "success"), ("read_memory", "failed"), ("read_memory", "failed")
    ]  # fmt: skip
    assert "> direct critique" in answers[1][2] and "not a memory key" in answers[2][2]
    reading = memory.read("tone")
    assert reading is not None and reading.file.body == "direct critique"
    assert told.instructions.startswith(tools.GUIDANCE[:60])
    given = {one.name: one for one in told.function_tools}
    assert list(given) == list(tools.EVERYDAY)
    for one in tools.toolset(memory, tools.EVERYDAY):
        assert given[one.name].parameters_json_schema == one.parameters
        assert given[one.name].description == one.description


def test_toolset_is_limited_to_some_or_reading_tools(package: ModuleType, memory: Memory) -> None:
    _, told = conversation(memory, names=None, read_only=True)
    named = {one.name for one in told.function_tools}
    assert "memory_recall" in named and "remember" not in named and "forget" not in named
    with pytest.raises(UsageError, match="unknown tool"):
        toolset(memory, ["promote"])


def test_toolset_of_a_scope_runs_many_calls_concurrently(package: ModuleType, memory: Memory) -> None:
    calls = [("remember", {"key": f"k{number}", "body": f"text {number}"}) for number in range(50)]
    answers, _ = conversation(memory, calls, scope="bot")
    assert {outcome for _, outcome, _ in answers} == {"success"}
    assert len(memory.scope("bot").list()) == 50 and memory.list().memories == ()


def test_closed_vault_is_reported_to_the_model(package: ModuleType, memory: Memory) -> None:
    memory.close()
    answers, _ = conversation(memory, [("recall", {"query": "tea"})])
    assert answers[0][1] == "failed" and "is closed" in answers[0][2]


def test_missing_package_error_names_the_extra(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    with pytest.raises(UsageError, match="needs the extra pydantic-ai"):
        toolset(memory)
