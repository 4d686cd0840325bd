"""`--as PROGRAM`: the calls of other programs over pipes and HTTP, as their clients make them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.memory import Memory
from tests.support.cli_lab import Cli
from tests.support.extras import need_extra
from tests.support.mcp_lab import surroundings

_HELLO: dict[str, Any] = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    need_extra("mcp", "mcp_types")
    Memory.create("default", "local", home=tmp_path / "ipfsmem").close()
    return tmp_path


def call_tools(home: Path, program: str, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """Return the results of some tool calls in one conversation over pipes, preceded by the initialize
    result and the tools."""
    call_tools: list[dict[str, Any]] = [
        {"method": "initialize", "params": _HELLO, "id": 0},
        {"method": "notifications/initialized"},
        {"method": "tools/list", "id": 1},
    ]
    call_tools += [
        {"method": "tools/call", "params": {"name": name, "arguments": given}, "id": number}
        for number, (name, given) in enumerate(calls, 2)
    ]
    done = subprocess.run(
        [sys.executable, "-m", "ipfsmem.cli", "serve", "mcp", "--as", program],
        input="".join(json.dumps({"jsonrpc": "2.0", **one}) + "\n" for one in call_tools).encode(),
        capture_output=True,
        env=surroundings(home),
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    answers = {one["id"]: one["result"] for one in map(json.loads, done.stdout.splitlines()) if "id" in one}
    return [answers[number] for number in range(len(calls) + 2)]


def text(result: Any) -> str:
    assert not result.get("isError"), result
    said: str = result["content"][0]["text"]
    return said


def test_mcp_server_answers_calls_of_an_initrunner_client(home: Path) -> None:
    hello, tools, *results = call_tools(
        home,
        "initrunner",
        ("remember", {"content": "The user prefers dark mode.", "category": "preferences"}),
        ("recall", {"query": "dark", "top_k": 5}),
        ("list_memories", {}),
    )
    names = ["remember", "recall", "list_memories", "learn_procedure", "record_episode"]
    assert [tool["name"] for tool in tools["tools"]] == names
    assert "tools of initrunner" in hello["instructions"] and "seen" not in hello["instructions"]
    stored, found, listed = map(text, results)
    assert stored == "Remembered (id=1, category=preferences)"
    assert found.startswith("[Category: preferences | Score: ") and found.endswith(
        "\nThe user prefers dark mode."
    )
    assert listed.startswith("[preferences] (") and listed.endswith(") The user prefers dark mode.")


def test_compatibility_tools_exclude_other_tool_sets(cli: Cli) -> None:
    refused = cli("serve", "mcp", "--as", "initrunner", "--tool", "graph")
    assert refused.code == 2 and "--as initrunner" in refused.err


def test_mcp_server_answers_calls_of_librefang_infraware_and_agh_clients(home: Path) -> None:
    _, _, *results = call_tools(
        home,
        "librefang",
        ("memory_store", {"key": "user:preference:theme", "value": "dark"}),
        ("memory_recall", {"key": "user:preference:theme"}),
    )
    assert [text(one) for one in results] == ["Stored value under key 'user:preference:theme'.", '"dark"']
    _, _, saved = call_tools(
        home, "infraware", ("save_memory", {"fact": "- Likes tea", "category": "preference"})
    )
    assert json.loads(text(saved)) == {"saved": True, "message": "Remembered: Likes tea"}
    style = {"filename": "style.md", "type": "user", "description": "how", "content": "Findings first."}
    _, _, wrote, listed = call_tools(
        home, "agh", ("memory_write", style), ("memory_list", {"scope": "global"})
    )
    assert text(wrote) == "Wrote style.md (global)"
    assert text(listed).startswith("- [Style](style.md) - how\n")
