"""A server that answers each connection with given bytes and does what no proper server would."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Awaitable, Callable, Iterator

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.contextmanager
def rude(talk: Talk) -> Iterator[str]:
    """The URL of a server that does `talk` with every connection, once the head of a request has come."""
    ready = threading.Event()
    state: dict[str, object] = {}

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(Exception, asyncio.CancelledError):
            await reader.readuntil(b"\r\n\r\n")
            await talk(reader, writer)
        with contextlib.suppress(Exception):
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(connection, "127.0.0.1", 0)
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        state["stop"] = lambda: loop.call_soon_threadsafe(ended.set)
        state["url"] = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        ready.set()
        await ended.wait()
        server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield str(state["url"])
    finally:
        stop = state["stop"]
        assert callable(stop)
        stop()
        thread.join(10)


def reset(writer: asyncio.StreamWriter) -> None:
    """Break the connection with a reset instead of an end."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
