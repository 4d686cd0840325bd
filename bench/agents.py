"""What an agent waits for: a call of a tool through `ipfsmem mcp` and the official client, and commands as processes, before and after an
index of recall is kept."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from bench.context import Context, program
from bench.measure import median_process

#: A read or a write on an unlocked memory, and the hook at the start of a session, whole process (issue 11).
COMMAND_BUDGET = 0.12
HOOK_BUDGET = 0.3


def agents(ctx: Context) -> None:
    """A sealed memory of this size whose keys no passphrase protects, so that none is part of it, and without a provider."""
    found = program()
    if found is None or find_spec("mcp_types") is None:
        ctx.skip("commands and MCP calls", "the extra mcp or the command is not installed")
        return
    home = ctx.fresh("agents")
    key = _make(home, ctx.folder)
    runs = ctx.runs(7)

    def timed(name: str, *words: str, budget: float | None = None) -> None:
        done = median_process(lambda _: [found, "--home", home, *words], runs)
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
    timed("note", "note", "said", budget=COMMAND_BUDGET)
    timed("list", "list")
    timed("hook stop", "hook", "stop", "--program", "claude-code", budget=COMMAND_BUDGET)
    session = ("hook", "session-start", "--program", "claude-code")
    timed("context, no index kept", "context")
    timed("hook session-start, no index kept", *session)
    timed("make the index of recall", "reindex")
    timed("context", "context")
    timed("recall", "recall", "memory station")
    timed(
        "context for a query", "context", "--query", "memory station", "--layout", "turn", budget=HOOK_BUDGET
    )
    timed("hook session-start", *session, budget=HOOK_BUDGET)
    for name, seconds in asyncio.run(_calls(found, home, ctx.runs(15))).items():
        ctx.add(f"MCP: {name}", seconds, runs=ctx.runs(15))


def _make(home: Path, folder: Path) -> str:
    """The memory, and a key in it."""
    from ipfsmem.memory import Memory

    with Memory.create("default", "encrypted-ipfs", passphrase=False, home=home) as memory:
        memory.bundles.import_(folder)
        return memory.list()[0].key


async def _calls(found: str, home: Path, runs: int) -> dict[str, float]:
    """Medians of each tool, over pipes; the first call of each is not counted."""
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters

    server = StdioServerParameters(command=found, args=["--home", str(home), "mcp"], env=dict(os.environ))
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
