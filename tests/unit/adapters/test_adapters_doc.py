"""The examples of docs/reference/frameworks.md run and print the expected output."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.support.extras import need_extra

TEXT = (Path(__file__).parents[3] / "docs" / "reference" / "frameworks.md").read_text("utf-8")
EXAMPLES = dict(re.findall(r"<!-- test: ([\w-]+) -->\n```python\n(.*?)```", TEXT, re.S))


@pytest.fixture(autouse=True)
def _isolated_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPFSMEM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("IPFSMEM_CONFIG", os.devnull)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def anthropic() -> None:
    need_extra("anthropic", "anthropic.tools")


@pytest.fixture(scope="module")
def langgraph() -> None:
    need_extra("langgraph", "langgraph.store.base")


@pytest.fixture(scope="module")
def pydantic_ai() -> None:
    need_extra("pydantic-ai", "pydantic_ai.models.test")


@pytest.fixture(scope="module")
def llama_index() -> None:
    need_extra("llama-index", "llama_index.core.memory")


def run_example(example: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the output of an example."""
    exec(compile(EXAMPLES[example], f"docs/reference/frameworks.md, {example}", "exec"), {})
    return capsys.readouterr().out


@pytest.mark.xdist_group("anthropic")
def test_anthropic_example_prints_the_expected_output(
    anthropic: None, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = run_example("anthropic", capsys)
    assert "created successfully at: /memories/tone.md" in shown
    assert "22B\t/memories/tone.md" in shown and shown.endswith("wants direct critique\n\n")


@pytest.mark.xdist_group("langgraph")
def test_langgraph_example_prints_the_expected_output(
    langgraph: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_example("langgraph", capsys).splitlines() == [
        "{'text': 'likes green tea', 'rating': 4}",
        "['food']",
        "[('users', '1')]",
    ]


def test_openai_agents_example_prints_the_expected_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_example("openai-agents", capsys).splitlines() == [
        "[{'role': 'assistant', 'content': 'Hi there'}]",
        "{'role': 'assistant', 'content': 'Hi there'}",
        "[{'role': 'user', 'content': 'Hello'}]",
    ]


@pytest.mark.xdist_group("pydantic-ai")
def test_pydantic_ai_example_prints_the_expected_output(
    pydantic_ai: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "list_memories" in (shown := run_example("pydantic-ai", capsys)) and "tone" in shown


@pytest.mark.xdist_group("llama-index")
def test_llama_index_example_prints_the_expected_output(
    llama_index: None, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = run_example("llama-index", capsys)
    assert "> likes green tea" in shown and "> - [Tea](tea.md)" in shown


@pytest.mark.xdist_group("pydantic-ai")
def test_conversation_example_prints_the_expected_output(
    pydantic_ai: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "added=2" in run_example("pydantic-ai-history", capsys)
