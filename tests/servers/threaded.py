"""Runs an aiohttp application on a free port of 127.0.0.1: in a thread, for tests that have event loops of their own, or in
the loop that is there."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Iterator

from aiohttp import web


@contextlib.asynccontextmanager
async def serve_here(app: web.Application) -> AsyncIterator[str]:
    """The URL of the application in this loop; it is shut down at the end."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@contextlib.contextmanager
def serve(make: Callable[[], web.Application]) -> Iterator[str]:
    """The URL of the application that `make` builds inside a thread; it is shut down at the end."""
    ready = threading.Event()
    url: list[str] = []
    stop: list[Callable[[], object]] = []

    async def main() -> None:
        async with serve_here(make()) as address:
            ended = asyncio.Event()
            loop = asyncio.get_running_loop()
            stop.append(lambda: loop.call_soon_threadsafe(ended.set))
            url.append(address)
            ready.set()
            await ended.wait()

    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield url[0]
    finally:
        stop[0]()
        thread.join(10)
