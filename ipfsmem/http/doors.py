"""Who may hold a connection to one of our servers, how many, and for how long nothing may move on it.

Anybody who reaches a server can open connections and send nothing more. So their number is bounded, in all and for each
address; a request's head must come soon; and where a body or an answer stops moving, the connection ends. When the
bound is reached, the connection that has waited longest without a request makes room for the new one: whoever only holds
connections open keeps nobody out. What requests mean is not known here.
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

#: Connections that the system takes before the program has looked at them.
BACKLOG: Final = 32
#: Files that the program needs beside its connections.
_SPARE: Final = 48 + BACKLOG


class Doors(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of one server; times in seconds."""

    most: int = 512  #: connections at once; fewer where the system gives this program fewer files
    each: int = 128  #: of one address (of IPv6 the first 64 bits)
    head: float = 20.0  #: until the first request's head is there
    idle: float = 75.0  #: between two requests
    stall: float = 60.0  #: without `drip` bytes, while a body is awaited or an answer is not taken
    drip: int = 1024

    def fitting(self) -> Doors:
        """The same within what the system allows this program."""
        try:
            import resource
        except ImportError:  # Windows
            return self
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if files == resource.RLIM_INFINITY:
            return self
        return msgspec.structs.replace(self, most=max(16, min(self.most, (files - _SPARE) // 2)))


class Hall:
    """All connections of one server."""

    def __init__(self, doors: Doors, server: web.Server) -> None:
        """`server` answers; its requests are watched from here on."""
        self._doors = doors.fitting()
        self._server = server
        self._guests: dict[asyncio.BaseTransport, _Guest] = {}
        self._from: Counter[str] = Counter()
        self._timer: asyncio.TimerHandle | None = None
        server.request_handler = self._watched(server.request_handler)

    def __call__(self) -> asyncio.Protocol:
        """A protocol for a new connection."""
        self._tick()
        return _Guest(self, self._server())

    def close(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()

    def admit(self, guest: _Guest, transport: asyncio.Transport) -> bool:
        """Whether there is room, or somebody made some."""
        address = _address(transport)
        while self._from[address] >= self._doors.each:
            if not self._show_out(address):
                return False
        while len(self._guests) >= self._doors.most:
            if not self._show_out(None):
                return False
        self._guests[transport] = guest
        self._from[address] += 1
        guest.address = address
        return True

    def gone(self, transport: asyncio.BaseTransport) -> None:
        """A connection has ended."""
        guest = self._guests.pop(transport, None)
        if guest is not None:
            self._from[guest.address] -= 1
            if not self._from[guest.address]:
                del self._from[guest.address]

    def _show_out(self, address: str | None) -> bool:
        """End the one that waits longest without a request; first those that never made one."""
        waiting = [
            (guest.served, guest.since, transport)
            for transport, guest in self._guests.items()
            if guest.request is None and not guest.owed() and address in (None, guest.address)
        ]
        if not waiting:
            return False
        transport = min(waiting, key=lambda item: item[:2])[2]
        self._end(transport)
        return True

    def _end(self, transport: asyncio.BaseTransport) -> None:
        self.gone(transport)
        if isinstance(transport, asyncio.Transport):
            transport.abort()

    def _watched(
        self, handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
    ) -> Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]:
        async def watched(request: web.BaseRequest) -> web.StreamResponse:
            guest = self._guests.get(request.transport) if request.transport is not None else None
            if guest is None:
                return await handler(request)
            guest.begins(request)
            try:
                return await handler(request)
            finally:
                guest.ends()

        return watched

    def _tick(self) -> None:
        """Look at all of them every now and then, as long as there are any."""
        if self._timer is None:
            often = min(self._doors.head, self._doors.idle, self._doors.stall) / 4
            self._timer = asyncio.get_running_loop().call_later(often, self._look)

    def _look(self) -> None:
        self._timer = None
        for transport, guest in list(self._guests.items()):
            if guest.overstays(self._doors):
                self._end(transport)
        if self._guests:
            self._tick()


class _Guest(asyncio.Protocol):
    """One connection: hands everything on to the server's own protocol, and notes what moves."""

    def __init__(self, hall: Hall, inner: asyncio.Protocol) -> None:
        self._hall = hall
        self._inner = inner
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._moved_at = self.since = self._loop.time()
        self._moved = self._left = 0
        self.address = ""
        self.request: web.BaseRequest | None = None
        self.served = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """In, or out at once."""
        if not isinstance(transport, asyncio.Transport) or not self._hall.admit(self, transport):
            if isinstance(transport, asyncio.Transport):
                transport.abort()
            return
        self._transport = transport
        self._inner.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Out."""
        if self._transport is not None:
            self._hall.gone(self._transport)
            self._inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Something came."""
        self._moved += len(data)
        if self._transport is not None:
            self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        """Nothing more will come."""
        return self._inner.eof_received() if self._transport is not None else None

    def pause_writing(self) -> None:
        """The other side takes nothing more for now."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """It does again."""
        self._inner.resume_writing()

    def begins(self, request: web.BaseRequest) -> None:
        """A request's head is there."""
        self.request = request
        self._moved_at = self._loop.time()

    def ends(self) -> None:
        """It was answered, as far as its handler goes."""
        self.request, self.served = None, True
        self.since = self._moved_at = self._loop.time()

    def owed(self) -> int:
        """Bytes that the other side did not take yet."""
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    def overstays(self, doors: Doors) -> bool:
        """Whether it held the connection long enough for nothing."""
        now, owed = self._loop.time(), self.owed()
        awaited = (
            self.request is not None
            and not self.request.content.is_eof()
            and self._transport is not None
            and self._transport.is_reading()  # else it is us who take nothing now
        )
        if not awaited and not owed:
            self._moved_at, self._moved, self._left = now, 0, 0
            return self.request is None and now - self.since > (doors.idle if self.served else doors.head)
        if self._moved >= doors.drip or (owed and abs(owed - self._left) >= doors.drip):
            self._moved_at, self._moved, self._left = now, 0, owed
        return now - self._moved_at > doors.stall


def _address(transport: asyncio.BaseTransport) -> str:
    """Who is at the other end, as far as is counted: an address, of IPv6 its network."""
    peer: Any = transport.get_extra_info("peername")
    text = str(peer[0]) if isinstance(peer, tuple) and peer else ""
    with contextlib.suppress(ValueError):
        parsed = ipaddress.ip_address(text.partition("%")[0])
        if isinstance(parsed, ipaddress.IPv6Address):
            return str(parsed.ipv4_mapped or ipaddress.ip_network((int(parsed) >> 64 << 64, 64)))
    return text
