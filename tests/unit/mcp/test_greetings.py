"""Prepared answers of the MCP server equal those of the tools and the SDK, without importing either."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from ipfsmem.holding import Holder
from ipfsmem.mcp import greetings
from ipfsmem.memory import Memory
from ipfsmem.tools import GUIDANCE, toolset
from tests.support.extras import need_extra
from tests.support.mcp_lab import memory, play

__all__ = ["memory"]

CLIENT = {"capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


def request(number: int, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


class Lines:
    """Both ends of a pipe for the SDK, with all requests available at once."""

    def __init__(self, *messages: dict[str, Any]) -> None:
        self._messages = messages
        self.answers: dict[int, Any] = {}
        self._all = asyncio.Event()

    async def __aiter__(self) -> Any:
        for message in self._messages:
            yield json.dumps(message)
        await self._all.wait()

    async def write(self, text: str) -> None:
        answer = json.loads(text)
        self.answers[answer["id"]] = answer["result"]
        if len(self.answers) == sum("id" in one for one in self._messages):
            self._all.set()

    async def flush(self) -> None:
        pass


async def answers_of_the_sdk(memory: Memory, *messages: dict[str, Any], **more: Any) -> dict[int, Any]:
    from mcp.server.lowlevel.server import NotificationOptions
    from mcp.server.stdio import stdio_server

    from ipfsmem.mcp.server import MemoryServer

    server = MemoryServer(Holder(lambda: memory), **more).server
    wire = Lines(*messages)
    options = server.create_initialization_options(NotificationOptions(resources_changed=True))
    async with stdio_server(wire, wire) as (reads, writes):  # type: ignore[arg-type]
        await server.run(reads, writes, options)
    return wire.answers


def test_prepared_file_equals_the_current_tools() -> None:
    """Also after an update of the SDK; `python -m ipfsmem.mcp.preparing` writes it."""
    need_extra("mcp", "mcp_types")
    from ipfsmem.mcp import preparing

    assert greetings.FILE.read_bytes() == preparing.encoded()


@pytest.mark.parametrize("structured", [False, True])
@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("names", [None, ["all"], ["graph,recall", "facts"]])
def test_greetings_equal_the_answers_of_the_sdk(
    memory: Memory, names: list[str] | None, read_only: bool, structured: bool
) -> None:
    known = greetings.prepared()
    tools = greetings.chosen(known, names, read_only=read_only, structured=structured)
    assert tools is not None
    prepared = greetings.Greetings(known, tools)

    async def work() -> None:
        for version in (*known["protocols"], "2019-01-01", "2099-01-01"):
            hello = {"protocolVersion": version, **CLIENT}
            asked = ("tools/list", "prompts/list", "resources/templates/list", "ping")
            found = await answers_of_the_sdk(
                memory,
                request(0, "initialize", **hello),
                {"jsonrpc": "2.0", "method": "notifications/initialized"},
                *(request(number, method) for number, method in enumerate(asked, 1)),
                names=names,
                read_only=read_only,
                structured=structured,
            )
            assert prepared.initialize(hello) == found[0]
            for number, method in enumerate(asked, 1):
                assert prepared.answer(method, {}) == found[number], method

    play(work)


def test_unknown_names_and_handshakes_are_left_to_the_sdk() -> None:
    known = greetings.prepared()
    for names in (["promote"], ["recall,promote"], [","], []):
        assert greetings.chosen(known, names, read_only=False, structured=False) is None
    prepared = greetings.Greetings(known, [])
    for params in (None, {}, {"protocolVersion": 1, **CLIENT}, {"protocolVersion": "2025-06-18"}):
        assert prepared.initialize(params) is None
    assert prepared.answer("tools/list", {"cursor": "x"}) is None
    assert prepared.answer("resources/list", {}) is None


def test_everyday_tools_and_instructions_use_under_2000_tokens() -> None:
    """Estimated as 3.5 characters per token."""
    known = greetings.prepared()
    tools = greetings.chosen(known, None, read_only=False, structured=False)
    assert tools is not None and len(tools) == 6
    told = json.dumps(tools, separators=(",", ":"), ensure_ascii=False) + GUIDANCE
    assert len(told) / 3.5 <= 2_000
    searched = {one["name"]: f"{one['name']} {one['title']} {one['description']}".lower() for one in tools}
    for word, name in (
        ("remember", "remember"),
        ("save", "remember"),
        ("memory", "remember"),
        ("recall", "recall"),
        ("memory", "recall"),
    ):
        assert word in searched[name]


def test_names_choose_the_same_tools_before_and_after_the_import(memory: Memory) -> None:
    known = greetings.prepared()
    for names in (
        None,
        ["everyday"],
        ["all"],
        ["life", "graph"],
        ["facts,dreams", "recall"],
        ["usage"],
        ["write"],
    ):
        before = greetings.chosen(known, names, read_only=False, structured=False)
        after = [tool.name for tool in toolset(memory, names)]
        assert before is None or [one["name"] for one in before] == after
        assert (before is None) == (names == ["write"])
