"""A limit on sessions over HTTP. A new session is always accepted: at the limit the one idle longest is ended, as its client
would end it. A session with an open request is never ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

#: The header with the session id.
_SESSION: Final = b"mcp-session-id"
#: Headers that a request to end a session needs.
_NEEDED: Final = (b"host", b"authorization")

Asgi = Callable[[dict[str, Any], Any, Any], Any]


class BoundedSessions:
    """An ASGI application around one of MCP, which ends the sessions beyond `most`."""

    def __init__(self, app: Asgi, most: int) -> None:
        self._app = app
        self._most = most
        #: Open requests of each session, and the sessions without one, the one idle longest first.
        self._busy: Counter[bytes] = Counter()
        self._silent: dict[bytes, None] = {}

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Handle a request, and end surplus sessions before a new session gets its answer: its client may open another at once."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        named = _session_in(scope["headers"])
        session, status = named, 0

        async def heard(message: Any) -> None:
            nonlocal session, status
            if message["type"] == "http.response.start":
                status = message["status"]
                if named is None and status < 400:
                    session = _session_in(message["headers"])
                    self._begins(session)
                    await self._end_beyond(scope)
            await send(message)

        self._begins(named)
        try:
            await self._app(scope, receive, heard)
        finally:
            # 404: expired, or unknown.
            self._ends(session, gone=status == 404 or scope["method"] == "DELETE")
        await self._end_beyond(scope)

    async def _end_beyond(self, scope: dict[str, Any]) -> None:
        while len(self._busy) + len(self._silent) > self._most and self._silent:
            await self._end(next(iter(self._silent)), scope)

    def _begins(self, session: bytes | None) -> None:
        if session is not None:
            self._silent.pop(session, None)
            self._busy[session] += 1

    def _ends(self, session: bytes | None, *, gone: bool) -> None:
        if session is None:
            return
        self._busy[session] -= 1
        if not self._busy[session]:
            del self._busy[session]
            if not gone:
                self._silent[session] = None

    async def _end(self, session: bytes, scope: dict[str, Any]) -> None:
        """Make the application end a session. `scope`: of a request that it accepts."""
        del self._silent[session]
        headers = [(name, value) for name, value in scope["headers"] if name.lower() in _NEEDED]

        async def nothing() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def unheard(message: Any) -> None:
            pass

        await self._app(
            {**scope, "method": "DELETE", "headers": [*headers, (_SESSION, session)]}, nothing, unheard
        )


def _session_in(headers: Any) -> bytes | None:
    return next((bytes(value) for name, value in headers if name.lower() == _SESSION), None)
