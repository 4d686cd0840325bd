"""A server that answers each connection with given bytes and misbehaves."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def rude_here(talk: Talk) -> AsyncIterator[str]:
    """Yield the URL of a server in this loop that runs `talk` with every connection, once the head of a
    request has arrived."""

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(Exception, asyncio.CancelledError):
            await reader.readuntil(b"\r\n\r\n")
            await talk(reader, writer)
        with contextlib.suppress(Exception):
            writer.close()

    before = asyncio.all_tasks()
    server = await asyncio.start_server(connection, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in asyncio.all_tasks() - before:
            task.cancel()


@contextlib.contextmanager
def rude(talk: Talk) -> Iterator[str]:
    """Do the same in a thread, for tests with their own event loops."""
    ready = threading.Event()
    state: dict[str, object] = {}

    async def main() -> None:
        async with rude_here(talk) as url:
            ended = asyncio.Event()
            loop = asyncio.get_running_loop()
            state["stop"] = lambda: loop.call_soon_threadsafe(ended.set)
            state["url"] = url
            ready.set()
            await ended.wait()

    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    assert ready.wait(60)
    try:
        yield str(state["url"])
    finally:
        stop = state["stop"]
        assert callable(stop)
        stop()
        thread.join(60)


def reset(writer: asyncio.StreamWriter) -> None:
    """Break the connection with a reset."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
