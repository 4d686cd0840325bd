"""Counts what this process says over HTTP: requests, and every byte of them both ways, headers too.

It looks into aiohttp's connections, below everything of ours. It measures no time.
"""

from __future__ import annotations

import asyncio
from typing import Any


class Wire:
    """The counters; `watch` starts them for the whole process."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Start from zero."""
        self.requests = 0
        self.sent = 0
        self.received = 0

    def numbers(self) -> dict[str, int]:
        """What was counted."""
        return {"requests": self.requests, "sent": self.sent, "received": self.received}

    def watch(self) -> None:
        """From now on, count all of aiohttp's connections."""
        from aiohttp.client_proto import ResponseHandler
        from aiohttp.client_reqrep import ClientRequest

        wire, made, got, send = (
            self,
            ResponseHandler.connection_made,
            ResponseHandler.data_received,
            ClientRequest.send,
        )

        def connection_made(handler: Any, transport: asyncio.BaseTransport) -> None:
            made(handler, transport)
            handler.transport = _Counted(transport, wire)

        def data_received(handler: Any, data: bytes) -> None:
            wire.received += len(data)
            got(handler, data)

        async def counted(request: Any, *args: Any, **options: Any) -> Any:
            wire.requests += 1
            return await send(request, *args, **options)

        patched: Any = ResponseHandler
        patched.connection_made, patched.data_received = connection_made, data_received
        asked: Any = ClientRequest
        asked.send = counted


class _Counted:
    """A transport that counts what is written."""

    def __init__(self, inner: Any, wire: Wire) -> None:
        self._inner = inner
        self._wire = wire

    def write(self, data: bytes) -> None:
        self._wire.sent += len(data)
        self._inner.write(data)

    def writelines(self, parts: list[bytes]) -> None:
        self._wire.sent += sum(map(len, parts))
        self._inner.writelines(parts)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
