"""Look-ups of host names that keep no program from ending.

A thread of an event loop's usual executor is waited for when the loop ends, so a name server that does not answer held up a sync
that was done. Here each look-up has a thread that nobody waits for.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from typing import Any


async def look_up(host: Any, port: Any, **how: Any) -> list[tuple[Any, ...]]:
    """The rows of `socket.getaddrinfo`, whose arguments these are. OSError as there."""
    loop = asyncio.get_running_loop()
    found: asyncio.Future[list[tuple[Any, ...]]] = loop.create_future()

    def tell(rows: list[tuple[Any, ...]], error: Exception | None) -> None:
        if not found.done():
            found.set_exception(error) if error is not None else found.set_result(rows)

    def look() -> None:
        rows: list[tuple[Any, ...]] = []
        failed: Exception | None = None
        try:
            rows = list(socket.getaddrinfo(host, port, **how))
        except (OSError, ValueError) as error:  # a name that is none is a ValueError
            failed = error
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(tell, rows, failed)

    threading.Thread(target=look, name="ipfsmem-name", daemon=True).start()
    return await found
