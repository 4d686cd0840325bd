"""An invalid reason is refused before anything is deleted, and deliveries to agents are recorded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ipfsmem.errors import ClosedError, UsageError
from ipfsmem.memory import Memory
from ipfsmem.operation import MAX_REASON
from tests.support.cli_lab import Cli
from tests.support.hints import hinted
from tests.support.tools_lab import Model

LONG, HALF = "x" * 70_000, "half \ud83d"


def forgets(memory: Memory, reason: str) -> object:
    return memory.forget("tone", reason=reason)


def deletes_a_fact(memory: Memory, reason: str) -> object:
    return memory.facts.delete(memory.facts.list()[0].key, reason=reason)


def deletes_a_session(memory: Memory, reason: str) -> object:
    return memory.sessions.forget("talk", reason=reason)


def forgets_a_scope(memory: Memory, reason: str) -> object:
    return memory.scopes.forget("work", reason=reason)


@pytest.mark.parametrize("reason", [LONG, HALF, "x" * (MAX_REASON + 1)])
@pytest.mark.parametrize("take", [forgets, deletes_a_fact, deletes_a_session, forgets_a_scope])
def test_invalid_reason_deletes_nothing(
    tmp_path: Path, take: Callable[[Memory, str], object], reason: str
) -> None:
    with Memory.create("alex", "local", home=tmp_path) as memory:
        memory.write("tone", "direct")
        memory.facts.add("Likes tea", "preference")
        memory.sessions.add("talk", [{"role": "user", "content": "hello"}])
        memory.scope("work").write("role", "pilot")
        before = memory.files(), memory.timeline.read(), len(memory.sessions.list())
        with pytest.raises(UsageError, match="reason"):
            take(memory, reason)
        assert (memory.files(), memory.timeline.read(), len(memory.sessions.list())) == before
        assert memory.scope("work").read("role") is not None
        take(memory, "x" * MAX_REASON)


def test_command_line_and_tool_refuse_a_long_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cli = Cli(tmp_path, monkeypatch)
    cli.ok("init", "--mode", "local")
    cli.ok("write", "tone", "--body", "direct")
    refused = cli.fails(2, "forget", "tone", "--reason", LONG).err
    assert "--reason has 70,000 characters, at most 1,000 are allowed" in refused
    refused = cli.fails(2, "fact", "delete", "tone", "--reason", LONG).err
    assert "--reason has 70,000 characters, at most 1,000 are allowed" in refused
    cli.ok("write", "tone", "--body", "direct", "--scope", "work")
    refused = cli.fails(2, "scope", "forget", "work", "--yes", "--reason", LONG).err
    assert "--reason has 70,000 characters, at most 1,000 are allowed" in refused
    hinted(
        "Nothing was removed. Leave that character out of the reason.",
        cli.fails(2, "forget", "tone", "--reason", "half \udcff").err,
    )
    assert "direct" in cli.ok("read", "tone").out
    model = Model(Memory.load("alex", "none"))
    seen = model("remember", key="tone", body="direct").structured["seen"]
    assert "at most 1,000" in model.refused("forget", key="tone", confirm=seen, reason=LONG)


def test_recalls_through_stacks_and_tools_are_recorded_and_checked(tmp_path: Path) -> None:
    with Memory.create("alex", "local", home=tmp_path) as memory:
        memory.write("tone", "music")
        memory.scope("work").write("role", "music")
        for recall in (
            lambda: memory.recall("music"),
            lambda: memory.stack("work").recall("music"),
            lambda: Model(memory)("recall", query="music"),
        ):
            before = len(memory.operations.list())
            recall()
            (noted,) = memory.operations.list()[: len(memory.operations.list()) - before]
            assert noted.operation == "recall"
        stack = memory.stack("work")
        with pytest.raises(UsageError, match="query is a text"):
            stack.recall(3)  # type: ignore[arg-type]
    with pytest.raises(ClosedError):
        stack.recall("music")


def test_procedures_and_episodes_are_recalled_by_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli = Cli(tmp_path, monkeypatch)
    cli.ok("init", "--mode", "local")
    cli.ok("fact", "add", "Run the tests before a release", "--kind", "procedure")
    assert "Run the tests" in cli.ok("recall", "release tests", "--type", "procedure").out
    assert "Run the tests" not in cli.ok("recall", "release tests", "--type", "episode").out
    memory = Memory.load("alex", "none")
    memory.facts.add("Run the tests before a release", "release", kind="procedure")
    hits = Model(memory)("recall", query="release", type="procedure").structured["hits"]
    assert len(hits) == 1
