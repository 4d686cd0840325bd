"""Fetching a tree over a network that answers late: one block a request, one tree an answer, and from a peer.

    python -m bench.latency [--size 10000] [--delay 100]

The server is ours, in a process of its own, and waits before each answer. Concurrency is what the client is told.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import time
import urllib.request
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from bench.corpus import corpus
from bench.measure import Row

if TYPE_CHECKING:
    from aiohttp import web

    from bench.context import Context
    from ipfsmem.content.tree import BuiltTree

CONCURRENCY = (1, 4, 16, 64)


def latency(ctx: Context, delay_ms: int = 100) -> None:
    """Add the rows for the size of a run."""
    for row in measure(ctx.size, delay_ms):
        ctx.add(row.name, row.seconds, note=f"{row.note}; {row.requests} at once")


def measure(size: int, delay_ms: int) -> list[Row]:
    """Return the time of each way to fetch a folder of `size` memories."""
    command = [
        sys.executable,
        "-m",
        "bench.latency",
        "--serve",
        "--size",
        str(size),
        "--delay",
        str(delay_ms),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            return asyncio.run(_measure(url, size, delay_ms))
        finally:
            server.terminate()


async def _measure(url: str, size: int, delay_ms: int) -> list[Row]:
    from ipfsmem_providers.gateways import Gateways
    from ipfsmem_providers.peer import PeerProvider

    tree = _tree(size)
    wanted = list(dict(tree.blocks))
    rows = []

    async def timed(name: str, fetch: Callable[[], Awaitable[int]], note: str) -> None:
        began = time.perf_counter()
        got = await fetch()
        assert got == len(wanted), f"{name}: {got} of {len(wanted)} blocks"
        took = time.perf_counter() - began
        name = f"{name}, {delay_ms} ms away"
        rows.append(Row(name, size, took, None, requests=_most(url), note=note))

    for concurrency in CONCURRENCY:
        if size * delay_ms / concurrency > 30_000:
            continue  # half a minute of waiting adds no information
        gateways = Gateways(url, {"concurrency": concurrency})

        async def blocks(gateways: Gateways = gateways) -> int:
            return len(await gateways.get_blocks(wanted))

        await timed(f"gateway, block by block, {concurrency} at once", blocks, f"{len(wanted)} requests")
        await gateways.close()
    gateways, peer = Gateways(url), PeerProvider(url)

    async def whole() -> int:
        return len([1 async for _ in gateways.get_dag(tree.cid)])

    async def batch() -> int:
        return len(await peer.get_blocks(wanted[:10_000])) + len(await peer.get_blocks(wanted[10_000:]))

    await timed("gateway, the tree as one CAR", whole, "1 request")
    batches = -(-len(wanted) // 10_000)
    await timed("peer, blocks in one request", batch, f"{batches} request{'' if batches == 1 else 's'}")
    await gateways.close()
    await peer.close()
    return rows


def _most(url: str) -> int:
    """Return the maximum number of concurrent requests since the last call."""
    with urllib.request.urlopen(f"{url}/bench/most", timeout=30) as answer:
        return int(answer.read())


def _tree(size: int) -> BuiltTree:
    from ipfsmem.content.tree import build_tree

    return build_tree({f"memory/{key}.md": data for key, data in corpus(size).items()})


async def _serve(size: int, delay_ms: int) -> None:
    from aiohttp import web

    from ipfsmem.http.blocks import app
    from ipfsmem.http.running import running
    from ipfsmem.testing import SimCloud, SimProvider

    cloud = SimCloud()
    cloud.blocks.update(dict(_tree(size).blocks))

    seen = [0, 0]  # current and maximum requests

    @web.middleware
    async def late(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        if request.path == "/bench/most":
            most, seen[1] = seen[1], 0
            return web.Response(text=str(most))
        seen[0] += 1
        seen[1] = max(seen)
        try:
            await asyncio.sleep(delay_ms / 1000)
            return await handler(request)
        finally:
            seen[0] -= 1

    server = app(SimProvider(cloud))
    server.middlewares.insert(0, late)
    async with running(server) as url:
        print(url, flush=True)
        await asyncio.Event().wait()


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m bench.latency", description=__doc__)
    parser.add_argument("--size", type=int, default=10_000)
    parser.add_argument("--delay", type=int, default=100, help="milliseconds")
    parser.add_argument("--serve", action="store_true", help="be the server")
    given = parser.parse_args()
    if given.serve:
        asyncio.run(_serve(given.size, given.delay))
        return
    for row in measure(given.size, given.delay):
        assert row.seconds is not None
        print(f"{row.size:>7}  {row.name}: {row.seconds * 1000:.0f} ms ({row.note}; {row.requests} at once)")


if __name__ == "__main__":
    main()
