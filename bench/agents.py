"""What an agent waits for: a call of a tool through `ipfsmem mcp` and the official client, and `ipfsmem context` as a process."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from bench.context import Context, program
from bench.measure import median_process

#: A session begins with this at most, whole process (issue 11).
CONTEXT_BUDGET = 0.3


def agents(ctx: Context) -> None:
    """A memory of this size on an unsealed disk, so that no passphrase is part of it."""
    found = program()
    if found is None or find_spec("mcp_types") is None:
        ctx.skip("MCP calls", "the extra mcp or the command is not installed")
        return
    home = ctx.fresh("agents")
    _make(home, ctx.folder)
    done = median_process(lambda _: [found, "--home", home, "context"], ctx.runs(7))
    ctx.add("context, whole process", done.seconds, runs=ctx.runs(7), budget_seconds=CONTEXT_BUDGET)
    for name, seconds in asyncio.run(_calls(found, home, ctx.runs(15))).items():
        ctx.add(f"MCP: {name}", seconds, runs=ctx.runs(15))


def _make(home: Path, folder: Path) -> None:
    from ipfsmem.memory import Memory

    with Memory.create("default", "local", home=home) as memory:
        memory.bundles.import_(folder)


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
