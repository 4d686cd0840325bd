"""The server over HTTP for programs on this machine: loopback only, with a token, and closed to web pages of other hosts."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ipfsmem.errors import ConfigError
from ipfsmem.loopback import is_loopback, refusal

if TYPE_CHECKING:
    from ipfsmem.mcp.server import MemoryServer


#: The path of the endpoint.
PATH: Final = "/mcp"
MAX_BODY: Final = 4 * 1024 * 1024
#: Maximum connections, seconds until the first request head of a connection, maximum sessions, and seconds until an idle
#: session ends.
MAX_CONNECTIONS: Final = 64
FIRST_HEAD: Final = 20.0
MAX_SESSIONS: Final = 64
SESSION_IDLE: Final = 1_800.0


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket on this machine; port 0 chooses a free one. Raises ConfigError."""
    if not is_loopback(host):
        raise ConfigError(
            f"{host} is reachable from other machines, but this server only serves programs on this machine",
            hint="Give 127.0.0.1:PORT, or let the program start the server itself, over its standard streams.",
        )
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=MAX_CONNECTIONS)
    except OSError as error:
        why = "another program uses it" if error.errno == errno.EADDRINUSE else os.strerror(error.errno or 0)
        raise ConfigError(
            f"cannot serve on {host}:{port}: {why}", hint="Choose another port; 0 takes a free one."
        ) from error


def url_of(listening: socket.socket) -> str:
    """Return the URL of the endpoint."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{PATH}"


async def serve_http(served: MemoryServer, listening: socket.socket, token: str) -> None:
    """Serve until a signal ends it."""
    import uvicorn

    app = served.server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=MAX_BODY,
        session_idle_timeout=SESSION_IDLE,
        max_sessions=MAX_SESSIONS + MAX_CONNECTIONS,  # those above the limit are only just being opened
    )
    config = uvicorn.Config(
        guarded(BoundedSessions(app, MAX_SESSIONS), token),
        http=_bounded_protocol(),
        log_level="critical",
        access_log=False,
        limit_concurrency=MAX_CONNECTIONS + 1,  # one more, to be refused with an answer
        timeout_keep_alive=30,
        timeout_graceful_shutdown=2,
        server_header=False,
    )
    await uvicorn.Server(config).serve(sockets=[listening])


def _bounded_protocol() -> Any:
    """Return the HTTP protocol class with a limit on connections: a new one closes an idle one. Any process on this machine can
    open connections without a token, and could else lock out clients with one."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Bounded(H11Protocol):
        cycle: Any  # None until a head was read
        since = 0.0
        first_head: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            """Accept a connection. At the limit, close the one idle longest, those without any request first."""
            self.since = self.loop.time()
            idle = [one for one in self.connections if isinstance(one, Bounded) and one.is_idle()]
            if idle and len(self.connections) >= MAX_CONNECTIONS:
                gone = min(idle, key=lambda one: (one.cycle is not None, one.since))
                self.connections.discard(gone)
                gone.transport.abort()
            super().connection_made(transport)
            self.first_head = self.loop.call_later(FIRST_HEAD, self._end_without_head)

        def is_idle(self) -> bool:
            """Tell whether the connection has no open request."""
            return self.cycle is None or self.cycle.response_complete

        def _end_without_head(self) -> None:
            if self.cycle is None:
                self.transport.abort()

        def on_response_complete(self) -> None:
            """Record when the answer ended: the connection is idle from then on."""
            self.since = self.loop.time()
            super().on_response_complete()

        def connection_lost(self, exc: Exception | None) -> None:
            """Stop waiting for the first request."""
            if self.first_head is not None:
                self.first_head.cancel()
            super().connection_lost(exc)

    return Bounded


def guarded(app: Asgi, token: str) -> Asgi:
    """Return the application behind checks of host, origin and token."""

    async def guard(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await app(scope, receive, send)
            return
        refused = _refusal(scope, token)
        if refused is None:
            await app(scope, receive, send)
            return
        status, message = refused
        body = f'{{"error":"{message}"}}'.encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        if status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return guard


def _refusal(scope: dict[str, Any], token: str) -> tuple[int, str] | None:
    """Return status and message for a refused request; None for an accepted one."""
    if scope["type"] != "http":
        return 404, "this port serves HTTP only"
    headers: dict[bytes, list[str]] = {}
    for name, value in scope["headers"]:
        headers.setdefault(name.lower(), []).append(value.decode("latin-1"))
    return refusal(
        headers.get(b"host", []), headers.get(b"origin", []), headers.get(b"authorization", []), token
    )


#: The header with the session id.
_SESSION: Final = b"mcp-session-id"
#: Headers that a request to end a session needs.
_NEEDED: Final = (b"host", b"authorization")

Asgi = Callable[[dict[str, Any], Any, Any], Any]


class BoundedSessions:
    """An ASGI application around one of MCP, which ends the sessions beyond `most`.

    A new session is always accepted: at the limit the one idle longest is ended, as its client would end it. A session with an
    open request is never ended.
    """

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
        requested = _session_in(scope["headers"])
        session, status = requested, 0

        async def heard(message: Any) -> None:
            nonlocal session, status
            if message["type"] == "http.response.start":
                status = message["status"]
                if requested is None and status < 400:
                    session = _session_in(message["headers"])
                    self._begins(session)
                    await self._end_beyond(scope)
            await send(message)

        self._begins(requested)
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
