"""Look-ups of host names that do not delay the end of the program.

When an event loop ends, it waits for the threads of its default executor, so a name server that does not answer would hold up a
finished command. Here each look-up has a daemon thread of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from typing import Any


async def look_up(host: Any, port: Any, **how: Any) -> list[tuple[Any, ...]]:
    """Return the rows of `socket.getaddrinfo` for these arguments. Raises OSError as it does."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[list[tuple[Any, ...]]] = loop.create_future()

    def tell(rows: list[tuple[Any, ...]], error: Exception | None) -> None:
        if not future.done():
            future.set_exception(error) if error is not None else future.set_result(rows)

    def look() -> None:
        rows: list[tuple[Any, ...]] = []
        failed: Exception | None = None
        try:
            rows = list(socket.getaddrinfo(host, port, **how))
        except (OSError, ValueError) as error:  # ValueError: not a valid name
            failed = error
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(tell, rows, failed)

    threading.Thread(target=look, name="ipfsmem-name", daemon=True).start()
    return await future
