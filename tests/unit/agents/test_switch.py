"""One setting disables agents: no context, no saving, no dreams; commands of the user still work."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ipfsmem.agents.session_text import prompt_text, session_text
from ipfsmem.errors import ConfigError
from ipfsmem.memory import Memory
from ipfsmem.operations.settings import set_setting
from ipfsmem.tools import toolset
from tests.support.extras import need_extra
from tests.support.hints import Refused, hinted

HINT = "Allow it again: ipfsmem config set agents.enabled true"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "config.toml").write_text("[dream]\nenabled = true\nhours = 0\nsessions = 0\n")
    monkeypatch.setenv("IPFSMEM_CONFIG", str(tmp_path / "config.toml"))
    with Memory.create("m", "local", home=tmp_path) as memory:
        memory.write("tone", "direct answers please", description="how answers should sound")
        memory.dreams.switch(True)
    return tmp_path


def hook_outputs(home: Path) -> tuple[str, str]:
    """Return the output of the hooks at the start of a session and before a prompt."""
    begun = session_text("m", home, str(home), "claude-code", 2_000)
    fitting = prompt_text("m", home, str(home), "claude-code", "direct answers please", frozenset())
    return begun.text, fitting.text


def test_disabled_agents_receive_nothing_and_commands_still_work(home: Path) -> None:
    assert all("direct answers" in text or "how answers" in text for text in hook_outputs(home))
    set_setting("agents.enabled", "off")
    assert hook_outputs(home) == ("", "")
    (line,) = session_text("m", home, str(home), "claude-code", 2_000).lines
    assert "agents are switched off" in line
    with Memory.load("m", home=home) as memory:
        for tool in toolset(memory, ["all"]):
            if tool.name in ("remember", "recall", "context", "list_memories", "memory_recall"):
                wanted = {"key": "k", "body": "x", "query": "tone"}
                result = tool.call(**{name: wanted[name] for name in tool.parameters.get("required", ())})
                assert result.is_error, tool.name
                hinted(HINT, result.text)
        assert memory.read("k") is None and memory.recall("direct").hits and memory.write("mine", "x")
        assert memory.dreams.status().waits_for == "the settings do not allow it"
        (finding,) = [one for one in memory.check() if one.code == "agents"]
        assert finding.level == "ok" and "switched off" in finding.text
    set_setting("agents.enabled", "true")
    assert "how answers" in hook_outputs(home)[0]
    with Memory.load("m", home=home) as memory:
        assert memory.dreams.status().waits_for == ""


def test_dreams_have_a_separate_setting(home: Path) -> None:
    set_setting("dream.enabled", "false")
    with Memory.load("m", home=home) as memory:
        assert memory.dreams.status().waits_for == "the settings do not allow it"
    assert all(hook_outputs(home))


def test_mcp_resources_and_prompts_are_disabled_too(home: Path) -> None:
    need_extra("mcp", "mcp_types")
    from mcp.shared.exceptions import MCPError

    from ipfsmem.holding import Holder
    from ipfsmem.mcp.server import MemoryServer
    from tests.support.mcp_lab import client_of, play

    set_setting("agents.enabled", "false")

    async def work() -> None:
        with Memory.load("m", home=home) as memory:
            async with client_of(MemoryServer(Holder(lambda: memory)), "auto") as client:
                for ask in (
                    client.list_resources(),
                    client.read_resource("memory:///tone"),
                    client.get_prompt("memory"),
                ):
                    with pytest.raises(MCPError, match="switched off"):
                        await ask
                await asyncio.sleep(0)

    play(work)


def test_unreadable_settings_disable_agents(home: Path) -> None:
    (home / "config.toml").write_text("[agents\n")
    with pytest.raises(ConfigError):
        hook_outputs(home)


def test_refusal_says_how_to_enable_agents(home: Path) -> None:
    from ipfsmem.config import refuse_agents_switched_off

    set_setting("agents.enabled", "false")
    with Refused(HINT):
        refuse_agents_switched_off()
    set_setting("agents.enabled", "true")
    refuse_agents_switched_off()
