"""Waiting times of an agent: tool calls through `ipfsmem serve mcp` and the official client, and commands
as processes, with and without a stored index of recall."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from bench.context import Context, program
from bench.measure import median_process

#: Budgets of a read or a write on an unlocked vault, and of the session-start hook, whole process.
COMMAND_BUDGET = 0.12
HOOK_BUDGET = 0.3
PROMPT_BUDGET = 0.15
#: Budgets of the first answers of a started server, without a client of ours.
FIRST_BUDGETS = {"initialize": 0.25, "tools/list": 0.25, "first recall": 0.9}


def agents(ctx: Context) -> None:
    """Measure a sealed vault of this size without a passphrase and without a provider."""
    found = program()
    if found is None or find_spec("mcp_types") is None:
        ctx.skip("commands and MCP calls", "the extra mcp or the command is not installed")
        return
    home = ctx.fresh("agents")
    key = _make(home, ctx.folder)
    runs = ctx.runs(7)

    def timed(name: str, *words: str, budget: float | None = None) -> None:
        done = median_process(lambda _: [found, *words, "--home", home], runs)  # as `connect` writes it
        ctx.add(f"{name}, whole process", done.seconds, runs=runs, budget_seconds=budget)

    start = median_process(lambda _: [sys.executable, "-c", "import click, msgspec"], runs)
    ctx.add(
        "Python with two packages, whole process",
        start.seconds,
        runs=runs,
        note="the least that a command of ours takes",
    )
    timed("read", "read", key, budget=COMMAND_BUDGET)
    timed("write", "write", "made", "--body", "text", budget=COMMAND_BUDGET)
    timed("timeline add", "timeline", "add", "said", budget=COMMAND_BUDGET)
    timed("list", "list")
    timed("hook stop", "hook", "stop", "--program", "claude-code", budget=COMMAND_BUDGET)
    session = ("hook", "session-start", "--program", "claude-code")
    timed("context, no index kept", "context")
    timed("hook session-start, no index kept", *session)
    timed("make the index of recall", "index", "rebuild")
    timed("context", "context")
    timed("recall", "recall", "memory station")
    timed(
        "context for a query", "context", "--query", "memory station", "--layout", "turn", budget=HOOK_BUDGET
    )
    timed("hook session-start", *session, budget=HOOK_BUDGET)
    prompts = [_prompt(home, number) for number in range(runs)]
    run = 'file=$1; shift; exec "$@" < "$file"'
    words = (found, "hook", "prompt", "--program", "claude-code", "--home", home)
    done = median_process(lambda number: ["sh", "-c", run, "sh", prompts[number], *words], runs)
    ctx.add("hook prompt, whole process", done.seconds, runs=runs, budget_seconds=PROMPT_BUDGET)
    for name, (seconds, processor) in _first_answers(found, home, runs).items():
        ctx.add(
            f"MCP from the start of the process: {name}",
            seconds,
            runs=runs,
            budget_seconds=FIRST_BUDGETS[name],
            note=f"{processor:.3f} s of processor time" if processor else "",
        )
    for name, seconds in asyncio.run(_calls(found, home, ctx.runs(15))).items():
        ctx.add(f"MCP: {name}", seconds, runs=ctx.runs(15))


def _prompt(home: Path, number: int) -> Path:
    """Write the hook input of a prompt in a new session to a file."""
    path = home / f"prompt-{number}.json"
    said = {
        "session_id": f"bench {number}",
        "cwd": str(home),
        "prompt": "what do we know of the memory station",
    }
    path.write_text(json.dumps(said))
    return path


def _make(home: Path, folder: Path) -> str:
    """Create the vault; return a key in it."""
    from ipfsmem.memory import Memory

    with Memory.create("default", "encrypted-ipfs", passphrase=False, home=home) as memory:
        memory.bundles.import_(folder)
        return memory.list()[0].key


def _first_answers(found: str, home: Path, runs: int) -> dict[str, tuple[float, float]]:
    """Return medians over pipes, in JSON as any program writes it: seconds from the start of the process
    to each answer, and its processor time by then (0 where the system does not say)."""
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    }
    asked: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("initialize", "initialize", hello),
        ("tools/list", "tools/list", {}),
        ("first recall", "tools/call", {"name": "recall", "arguments": {"query": "memory station"}}),
    )
    took: dict[str, list[tuple[float, float]]] = {name: [] for name, _, _ in asked}
    for _ in range(runs):
        begun = time.perf_counter()
        server = subprocess.Popen(
            [found, "--home", str(home), "serve", "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert server.stdin is not None and server.stdout is not None
        for number, (name, method, params) in enumerate(asked):
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            server.stdin.write(json.dumps(message).encode() + b"\n")
            server.stdin.flush()
            assert "result" in json.loads(server.stdout.readline())
            took[name].append((time.perf_counter() - begun, _processor_time(server.pid)))
            if method == "initialize":
                server.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        server.stdin.close()
        server.wait()
    return {
        name: (median(one for one, _ in each), median(one for _, one in each)) for name, each in took.items()
    }


def _processor_time(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return 0.0


async def _calls(found: str, home: Path, runs: int) -> dict[str, float]:
    """Return the median of each tool over pipes, without the first call of each."""
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters

    arguments = ["--home", str(home), "serve", "mcp", "--structured", "--tools", "everyday,timeline"]
    server = StdioServerParameters(command=found, args=arguments, env=dict(os.environ))
    times: dict[str, float] = {}
    begun = time.perf_counter()
    async with Client(server) as client:
        times["connected"] = time.perf_counter() - begun
        listed = (await client.call_tool("list_memories", {"limit": 1})).structured_content
        key = listed["memories"][0]["key"]

        async def timed(name: str, call: Callable[[int], Awaitable[Any]]) -> None:
            took = []
            for n in range(runs + 1):
                before = time.perf_counter()
                assert not (await call(n)).is_error
                took.append(time.perf_counter() - before)
            times[f"{name}, first"] = took[0]
            times[name] = median(took[1:])

        await timed("read_memory", lambda n: client.call_tool("read_memory", {"key": key}))
        await timed("remember", lambda n: client.call_tool("remember", {"key": f"made_{n}", "body": "text"}))
        await timed("recall", lambda n: client.call_tool("recall", {"query": "memory station"}))
        await timed("context", lambda n: client.call_tool("context", {}))
    return times
