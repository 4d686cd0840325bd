"""Faults for stand-in servers: the next matching requests get another answer, or break."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable

from aiohttp import web

Fault = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Faults:
    """A queue of faults that a test adds and the server consumes."""

    def __init__(self) -> None:
        self._waiting: list[tuple[str, re.Pattern[str], int, Fault]] = []
        self.hits = 0
        self.delay = 0.0  # seconds before each answer
        self.cuts = False  # the second half of each body never arrives

    def answer(
        self, method: str, path: str, status: int, text: str = "", *, times: int = 1, kind: str = "application/json",
        **headers: str,
    ) -> None:  # fmt: skip
        """The next `times` requests of `method` (or *) whose path contains the pattern get this answer; -1
        is always."""

        async def fault(request: web.Request) -> web.StreamResponse:
            await request.read()
            shown = {name.replace("_", "-"): value for name, value in headers.items()}
            return web.Response(status=status, text=text, content_type=kind, headers=shown)

        self.add(method, path, fault, times)

    def reset(self, method: str, path: str, *, after: int = 0, times: int = 1) -> None:
        """Cut the connection after some bytes of the request's body."""

        async def fault(request: web.Request) -> web.StreamResponse:
            seen = 0
            while seen < after:
                piece = await request.content.readany()
                if not piece:
                    break
                seen += len(piece)
            assert request.transport is not None
            request.transport.abort()
            raise ConnectionResetError

        self.add(method, path, fault, times)

    def add(self, method: str, path: str, fault: Fault, times: int = 1) -> None:
        """Add any fault."""
        self._waiting.append((method, re.compile(path), times, fault))

    def clear(self) -> None:
        """Remove all faults."""
        self._waiting.clear()

    @web.middleware
    async def middleware(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Middleware; put it first in an application."""
        for index, (method, path, times, fault) in enumerate(self._waiting):
            if method in ("*", request.method) and path.search(request.path):
                if times == 1:
                    del self._waiting[index]
                elif times > 1:
                    self._waiting[index] = (method, path, times - 1, fault)
                self.hits += 1
                return await fault(request)
        if self.delay:
            await asyncio.sleep(self.delay)
        answer = await handler(request)
        return await self._cut(request, answer) if self.cuts and isinstance(answer, web.Response) else answer

    async def _cut(self, request: web.Request, answer: web.Response) -> web.StreamResponse:
        body = answer.body if isinstance(answer.body, bytes) else b""
        if len(body) < 2:
            return answer
        half = web.StreamResponse(status=answer.status, headers=answer.headers)
        half.content_length = len(body)
        await half.prepare(request)
        await half.write(body[: len(body) // 2])
        assert request.transport is not None
        request.transport.abort()
        return half
