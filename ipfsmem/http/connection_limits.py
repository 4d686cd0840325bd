"""Limits on the connections of a server: their number, in total and per address, and how long one may stall.

Anybody who reaches a server can open connections and send nothing more. So their number is limited; a request's head must arrive
soon; and a body or an answer that stalls ends the connection. At the limit, a new connection replaces the one that has been idle
longest or, if none is idle, the one without a token that has waited longest for its client, so that open connections cannot
exclude other clients. The application decides which requests are trusted (`TRUSTED`).
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from aiohttp import web

#: Connections that the system accepts before the program handles them.
BACKLOG: Final = 32
#: Files that the program needs besides its connections.
_SPARE: Final = 48 + BACKLOG


#: Set by an application: whether a request is from an authorised client, by its head alone.
TRUSTED: Final[web.AppKey[Callable[[web.BaseRequest], bool]]] = web.AppKey("trusted")


class ConnectionLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one server; times in seconds."""

    total: int = 512  #: connections at once; fewer if the system allows this program fewer files
    per_address: int = 128  #: of one address (of IPv6 the first 64 bits)
    head: float = 20.0  #: until the first request's head has arrived
    idle: float = 75.0  #: between two requests
    stall: float = 60.0  #: without `drip` bytes, while a body is awaited or an answer is not read
    drip: int = 1024
    body: float = 60.0  #: for the whole body of a request that is not trusted, at any speed

    def within_system_limits(self) -> ConnectionLimits:
        """Return these limits, lowered if the system allows this program less."""
        try:
            import resource
        except ImportError:  # Windows
            return self
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if files == resource.RLIM_INFINITY:
            return self
        return msgspec.structs.replace(self, total=max(16, min(self.total, (files - _SPARE) // 2)))


class Connections:
    """The open connections of one server: the factory of their protocols, and the check of their limits."""

    def __init__(
        self,
        limits: ConnectionLimits,
        server: web.Server,
        trusted: Callable[[web.BaseRequest], bool] = lambda request: False,
    ) -> None:
        """`server` answers; requests are tracked from here on. `trusted`: requests that are never closed for others."""
        self._trusted = trusted
        self._limits = limits.within_system_limits()
        self._server = server
        self._open: dict[asyncio.BaseTransport, _Connection] = {}
        self._per_address: Counter[str] = Counter()
        self._timer: asyncio.TimerHandle | None = None
        server.request_handler = self._noting_requests(server.request_handler)

    def __call__(self) -> asyncio.Protocol:
        """Return a protocol for a new connection."""
        self._schedule_check()
        protocol = self._server()
        protocol.__class__ = _PlainErrors  # independent of how the server makes its protocols
        return _Connection(self, protocol)

    def close(self) -> None:
        """Stop checking."""
        if self._timer is not None:
            self._timer.cancel()

    def add(self, connection: _Connection, transport: asyncio.Transport) -> bool:
        """Add a new connection, closing an idle one for it if necessary. False: all places are taken."""
        address = _address(transport)
        while self._per_address[address] >= self._limits.per_address:
            if not self._close_longest_idle(address):
                return False
        while len(self._open) >= self._limits.total:
            if not self._close_longest_idle(None):
                return False
        self._open[transport] = connection
        self._per_address[address] += 1
        connection.address = address
        return True

    def remove(self, transport: asyncio.BaseTransport) -> None:
        """Remove a connection that has ended."""
        connection = self._open.pop(transport, None)
        if connection is not None:
            self._per_address[connection.address] -= 1
            if not self._per_address[connection.address]:
                del self._per_address[connection.address]

    def _has_room(self, connection: _Connection) -> bool:
        """Return whether an untrusted request may be answered: an eighth of all places, and of those of an address, is reserved
        for trusted ones. Others that wait are closed for it."""
        limits, address = self._limits, connection.address
        while self._per_address[address] > limits.per_address - _reserved(limits.per_address):
            if not self._close_longest_idle(address, but=connection):
                return False
        while len(self._open) > limits.total - _reserved(limits.total):
            if not self._close_longest_idle(None, but=connection):
                return False
        return True

    def _close_longest_idle(self, address: str | None, but: _Connection | None = None) -> bool:
        """Close the connection idle for the longest time, first those without any request; else that of an untrusted request that
        waits for its client. False: there is none. `address`: only of this one."""
        waiting = [
            (connection.rank, connection.since, transport)
            for transport, connection in self._open.items()
            if connection.rank is not None and connection is not but and address in (None, connection.address)
        ]
        if not waiting:
            return False
        transport = min(waiting, key=lambda item: item[:2])[2]
        self._abort(transport)
        return True

    def _abort(self, transport: asyncio.BaseTransport) -> None:
        self.remove(transport)
        if isinstance(transport, asyncio.Transport):
            transport.abort()

    def _noting_requests(
        self, handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
    ) -> Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]:
        async def noted_handler(request: web.BaseRequest) -> web.StreamResponse:
            connection = self._open.get(request.transport) if request.transport is not None else None
            if connection is None:
                return await handler(request)
            connection.request_began(request, trusted=self._trusted(request))
            if not connection.trusted and not self._has_room(connection):
                connection.request_ended()
                return _no_room()
            try:
                return await handler(request)
            finally:
                connection.request_ended()

        return noted_handler

    def _schedule_check(self) -> None:
        """Schedule the next check, as long as there are connections."""
        if self._timer is None:
            interval = min(self._limits.head, self._limits.idle, self._limits.stall) / 4
            self._timer = asyncio.get_running_loop().call_later(interval, self._check)

    def _check(self) -> None:
        self._timer = None
        for transport, connection in list(self._open.items()):
            if connection.is_stalled(self._limits):
                self._abort(transport)
        if self._open:
            self._schedule_check()


def _reserved(places: int) -> int:
    """Return how many of these places are reserved for trusted requests."""
    return min(16, places // 8)


def _no_room() -> web.Response:
    answer = web.Response(status=503, text="Too many requests are under way.\n", headers={"Retry-After": "1"})
    answer.force_close()
    return answer


class _PlainErrors(web.RequestHandler):
    """Answers an invalid request with a fixed text: the library's own messages quote and log the request line."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Return the answer for an invalid request (400), or a failed one (500)."""
        if status >= 500:
            return super().handle_error(request, status, exc, None)
        answer = web.Response(
            status=status, text="The request cannot be read.\n", headers={"Server": "ipfsmem"}
        )
        answer.force_close()
        return answer


class _Connection(asyncio.Protocol):
    """One connection: passes everything on to the server's own protocol, and records how many bytes pass and when."""

    def __init__(self, connections: Connections, inner: asyncio.Protocol) -> None:
        self._connections = connections
        self._inner = inner
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._progress_at = self.since = self._loop.time()
        self._received = self._unsent_before = 0
        self.address = ""
        self.request: web.BaseRequest | None = None
        self.served = self.trusted = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count this connection, or close it at once if there is no room."""
        if not isinstance(transport, asyncio.Transport) or not self._connections.add(self, transport):
            if isinstance(transport, asyncio.Transport):
                transport.abort()
            return
        self._transport = transport
        self._inner.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop counting this connection."""
        if self._transport is not None:
            self._connections.remove(self._transport)
            self._inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count the bytes and pass them on."""
        self._received += len(data)
        if self._transport is not None:
            self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        """Handle the end of the client's data."""
        return self._inner.eof_received() if self._transport is not None else None

    def pause_writing(self) -> None:
        """Handle a client that does not read for now."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Handle a client that reads again."""
        self._inner.resume_writing()

    def request_began(self, request: web.BaseRequest, *, trusted: bool) -> None:
        """Record that the head of a request was read."""
        self.request, self.trusted = request, trusted
        self.since = self._progress_at = self._loop.time()

    @property
    def rank(self) -> int | None:
        """The order in which connections are closed for new ones, 0 first; None: never."""
        if self.request is None and not self.unsent_bytes():
            return 1 if self.served else 0
        if self.trusted:
            return None
        return 2 if self._awaits_body() else 3 if self.unsent_bytes() else None

    def _awaits_body(self) -> bool:
        return (
            self.request is not None
            and not self.request.content.is_eof()
            and self._transport is not None
            and self._transport.is_reading()  # otherwise we are the ones not reading
        )

    def request_ended(self) -> None:
        """Record that its handler has answered."""
        self.request, self.served = None, True
        self.since = self._progress_at = self._loop.time()

    def unsent_bytes(self) -> int:
        """Return how many bytes of the answer the client did not read yet."""
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    def is_stalled(self, limits: ConnectionLimits) -> bool:
        """Return whether nothing moved for longer than the limits allow."""
        now, unsent = self._loop.time(), self.unsent_bytes()
        awaited = self._awaits_body()
        if awaited and not self.trusted and now - self.since > limits.body:
            return True
        if not awaited and not unsent:
            self._progress_at, self._received, self._unsent_before = now, 0, 0
            return self.request is None and now - self.since > (limits.idle if self.served else limits.head)
        if self._received >= limits.drip or (unsent and abs(unsent - self._unsent_before) >= limits.drip):
            self._progress_at, self._received, self._unsent_before = now, 0, unsent
        return now - self._progress_at > limits.stall


def _address(transport: asyncio.BaseTransport) -> str:
    """Return the counted address of the other end, of IPv6 its network."""
    peer: Any = transport.get_extra_info("peername")
    text = str(peer[0]) if isinstance(peer, tuple) and peer else ""
    with contextlib.suppress(ValueError):
        parsed = ipaddress.ip_address(text.partition("%")[0])
        if isinstance(parsed, ipaddress.IPv6Address):
            return str(parsed.ipv4_mapped or ipaddress.ip_network((int(parsed) >> 64 << 64, 64)))
    return text
