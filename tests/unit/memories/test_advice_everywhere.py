"""Every interface that writes reports likely secrets and habits that make a memory hard to find."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.memory import Memory
from ipfsmem.open_vault.advising import WritingAdvice
from ipfsmem.open_vault.audit import acting_as, collecting
from tests.support.api_lab import NEW, Client, asked
from tests.support.cli_lab import Cli
from tests.support.tools_lab import Model

SECRET = "ghp_" + "kX9vQ2mL7pR4tW8zB3nJ6cH1fD5sG0aYeUiO"
SAID = "The text appears to contain a secret"
WRITES: dict[str, Callable[[Memory], object]] = {
    "write": lambda memory: memory.write("k", SECRET, description="for the release of the site"),
    "write_text": lambda memory: memory.write_text("k", f"---\nname: K\n---\n{SECRET}".encode()),
    "note": lambda memory: memory.timeline.add("decision", {"text": SECRET}),
    "session": lambda memory: memory.sessions.add("talk", [{"role": "user", "content": SECRET}]),
    "fact": lambda memory: memory.facts.add(f"The token is {SECRET}"),
    "graph": lambda memory: memory.graph.add("Ada", "person", [SECRET]),
}


@pytest.mark.parametrize("name", WRITES)
def test_python_warns_about_a_secret_at_the_calling_line(name: str) -> None:
    memory = Memory.load("alex", "none")
    with pytest.warns(WritingAdvice, match=SAID) as heard:
        WRITES[name](memory)
    (warned,) = heard
    assert Path(warned.filename).name == Path(__file__).name and SECRET not in str(warned.message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        memory.write("tone", "Direct.", description="how answers should sound")
        with acting_as("hook"):
            WRITES[name](memory)
        with acting_as("cli"), collecting() as better:
            WRITES[name](memory)
    assert [one[: len(SAID)] for one in better] == [SAID]


def test_python_warns_of_a_memory_that_is_hard_to_find() -> None:
    memory = Memory.load("alex", "none")
    with pytest.warns(WritingAdvice, match=r"when this memory is useful.*contains a date"):
        memory.write("call-2026-04-14", "x")


def test_python_advises_on_a_missing_description_once_per_vault(tmp_path: Path) -> None:
    with Memory.create("alex", "local", home=tmp_path) as memory, pytest.warns(WritingAdvice):
        memory.write("first", "x")
    with Memory.load("alex", home=tmp_path) as memory, warnings.catch_warnings():
        warnings.simplefilter("error")
        memory.write("second", "x")
        with pytest.warns(WritingAdvice, match=SAID):
            memory.write("third", SECRET)


def test_command_line_prints_advice_on_stderr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cli = Cli(tmp_path, monkeypatch)
    cli.ok("init", "--mode", "local")
    for command in (
        ("write", "k", "--body", SECRET, "--description", "for the release of the site"),
        ("timeline", "add", "decision", f"text={SECRET}"),
        ("fact", "add", f"The token is {SECRET}"),
        ("graph", "add", "Ada", "--say", SECRET),
    ):
        done = cli.ok(*command)
        assert done.err.count(f"note: {SAID}") == 1 and SECRET not in done.err, command
    assert "note: The description is missing" in cli.ok("write", "tone", "--body", "x").err
    assert "note: " not in cli.ok("write", "style", "--body", "x").err  # once per vault
    assert "note: The key contains a date" in cli.ok("write", "call-2026-04-14", "--body", "x").err
    good = cli.ok("write", "tone", "--description", "how answers should sound")
    assert "note: " not in good.err


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("remember", {"key": "k", "body": SECRET, "description": "for the release of the site"}),
        ("memory_store", {"key": "k", "value": SECRET}),
        ("save_memory", {"fact": f"The token is {SECRET}", "category": "workflow"}),
        ("add_fact", {"text": f"The token is {SECRET}"}),
        ("note", {"type": "decision", "text": SECRET}),
        ("create_entities", {"entities": [{"name": "Ada", "entityType": "p", "observations": [SECRET]}]}),
        ("knowledge_add_entity", {"name": "Ada", "entity_type": "p", "properties": {"token": SECRET}}),
    ],
)
def test_each_writing_tool_reports_advice_once(tool: str, given: dict[str, Any]) -> None:
    done = Model(Memory.load("alex", "none"))(tool, **given)
    assert not done.is_error and done.text.count(SAID) == 1, done.text


def test_http_answer_contains_advice(tmp_path: Path) -> None:
    async def ask(client: Client) -> None:
        async with client.put("/v1/memories/k", json={"body": SECRET}, headers=NEW) as made:
            assert made.status == 201
            better = (await made.json())["better"]
        assert better[0].startswith(SAID) and "when this memory is useful" in better[1]
        async with client.put("/v1/memories/other", json={"body": "x"}, headers=NEW) as made:
            assert "when this memory is useful" in (await made.json())["better"][0]
        good = {"body": "Direct.", "description": "how answers should sound"}
        async with client.put("/v1/memories/tone", json=good, headers=NEW) as made:
            assert made.status == 201 and "better" not in await made.json()

    asked(tmp_path, ask)
