"""A loopback forward proxy for obstore: limits the length of answers, and the hosts and ports of an S3 bucket.

obstore reads lists and error bodies of any length, and follows redirects with S3's session token in a header.
The gate ends an answer above the limit and refuses hosts other than the bucket's; for other stores any host
is allowed. With https it sees only lengths. It uses an http or https proxy of the environment; like obstore,
no other kind such as SOCKS. Clients must authenticate with a secret that only obstore gets.

A server that refuses an upload before reading it resets the connection: its answer is read to the end and
passed on first.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ipaddress
import logging
import secrets
import socket
import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from ipfsmem_providers.http.name_lookup import look_up

_log = logging.getLogger("ipfsmem.providers")
#: Maximum bytes of a request line with its headers.
_HEAD_MAX: Final = 64 * 1024
_PIECE: Final = 64 * 1024
#: Bytes that may wait to be sent before no more are read from the other end.
_BUFFER: Final = 512 * 1024
#: A client's piece of at most this many bytes is not a request: TLS answers some server records automatically.
_NO_REQUEST: Final = 128
_CONNECT: Final = 60.0
#: Seconds for which a client may go on to send after the server has ended the connection: a connection that is closed before loses
#: the answer.
_LINGER: Final = 5.0
#: Seconds until the next address of a host is tried in parallel.
_NEXT: Final = 0.25

#: Reasons to end a request without a complete answer.
ENDLESS: Final = "endless"
DRIPPING: Final = "dripping"
ELSEWHERE: Final = "elsewhere"
UNREACHABLE: Final = "unreachable"


class Gate:
    """A gate. It starts to listen when `url` is read for the first time."""

    def __init__(
        self,
        places: Collection[tuple[str, int]],
        longest: int,
        proxies: Mapping[str, str],
        *,
        stall: float = 60.0,
        drip: int = 1,
    ) -> None:
        """Configure the gate.

        `places`: the hosts, with their subdomains, and ports it may connect to; empty for any. `longest`: maximum bytes of an answer.
        `proxies`: the environment's proxies by scheme, from `usable_proxies`. A chunked answer must bring `drip` bytes in `stall` seconds.
        """
        self._places = tuple((_plain(host), port) for host, port in places)
        self.longest, self.stall, self.drip = longest, stall, drip
        self.proxies = proxies
        self._secret = secrets.token_urlsafe(24)
        self._expected = b"Basic " + base64.b64encode(f"ipfsmem:{self._secret}".encode())
        self._url = ""
        self._stop: Callable[[], object] = lambda: None
        self._abort_all: Callable[[], object] = lambda: None
        #: How many callers of `interrupt` have not called `resume`.
        self._interruptions = 0
        self._lock = threading.Lock()
        #: Number of requests that ended with each of these.
        self.problems = Counter({ENDLESS: 0, DRIPPING: 0, ELSEWHERE: 0, UNREACHABLE: 0})
        self.requests = 0  #: connections that were accepted, for reports and tests
        self.relays: set[_Relay] = set()  #: of the thread of the gate

    @property
    def url(self) -> str:
        """Return the URL of the proxy, for obstore. Raises OSError if this machine allows no server on loopback."""
        with self._lock:
            if not self._url:
                self._url = self._opened()
            return self._url

    def close(self) -> None:
        """End its thread and all connections; `url` opens it again, at another port."""
        with self._lock:
            self._url = ""
            with contextlib.suppress(RuntimeError):  # its loop has already ended
                self._stop()

    def interrupt(self) -> None:
        """End all requests, and those that begin before `resume`, as too slow. Callable from any thread."""
        with self._lock:
            self._interruptions += 1
            with contextlib.suppress(RuntimeError):  # its loop has ended
                self._abort_all()

    def resume(self) -> None:
        """Take back one `interrupt`."""
        with self._lock:
            self._interruptions -= 1

    @property
    def is_interrupted(self) -> bool:
        """Return whether requests are refused now."""
        return self._interruptions > 0

    def _end_all(self) -> None:
        self.problems[DRIPPING] += 1
        for relay in [*self.relays]:
            relay.abort()

    def may(self, request: _ProxyRequest) -> bool:
        """Return whether a request has the secret and an allowed host."""
        host = _plain(request.host)
        return request.secret == self._expected and (
            not self._places
            or any(
                request.port == port and (host == one or host.endswith(f".{one}"))
                for one, port in self._places
            )
        )

    def _opened(self) -> str:
        opened: list[int | OSError] = []
        ready = threading.Event()

        async def serve() -> None:
            loop = asyncio.get_running_loop()
            try:
                server = await loop.create_server(lambda: _Relay(self).client, "127.0.0.1", 0)
            except OSError as error:
                opened.append(error)
                return
            finally:
                if not opened:
                    opened.append(0)
            stopped = asyncio.Event()
            self._stop = partial(loop.call_soon_threadsafe, stopped.set)
            self._abort_all = partial(loop.call_soon_threadsafe, self._end_all)
            opened[0] = server.sockets[0].getsockname()[1]
            ready.set()
            await stopped.wait()
            server.close()
            for relay in [*self.relays]:
                relay.abort()
            await asyncio.sleep(0)  # the connections are closed by then

        def run() -> None:
            try:
                with asyncio.Runner(loop_factory=_Loop) as runner:
                    runner.run(serve())
            finally:
                ready.set()

        threading.Thread(target=run, name="ipfsmem-gate", daemon=True).start()
        ready.wait()
        if isinstance(opened[0], OSError):
            raise opened[0]
        return f"http://ipfsmem:{self._secret}@127.0.0.1:{opened[0]}"


class _End(asyncio.Protocol):
    """One end of a connection through the gate. It reads no more than the other end can send."""

    transport: asyncio.Transport

    def __init__(self, took: Callable[[bytes], None], ended: Callable[[Exception | None], None]) -> None:
        self._took, self._ended = took, ended
        self.other: _End | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.set_write_buffer_limits(high=_BUFFER)

    def data_received(self, data: bytes) -> None:
        self._took(data)

    def eof_received(self) -> bool:
        self._ended(None)
        return self.transport.get_extra_info("sslcontext") is None  # with TLS both directions end together

    def connection_lost(self, error: Exception | None) -> None:
        self._ended(error)

    def pause_writing(self) -> None:
        if self.other is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None:
            self.other.transport.resume_reading()


class _Relay:
    """One connection of obstore and its connection to the server, all in the gate's thread."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self.client = _End(self._from_client, self._client_ended)
        self._server: _End | None = None
        #: Bytes from the client not yet forwarded: the start of a request.
        self._waiting = b""
        self._request: _ProxyRequest | None = None
        #: See `_connect`.
        self._behind: bytes | None = None
        self._task: asyncio.Task[None] | None = None
        #: The answer of a proxy to CONNECT.
        self._greeting: asyncio.Future[bytes] | None = None
        self._greeted = b""
        #: A duplicate of the server's socket, for data sent before a reset.
        self._raw: socket.socket | None = None
        #: Bytes of the request's body to come, and of the answer so far.
        self._left = self._passed = 0
        #: Since when an answer comes, its bytes since then, and when the last of them came.
        self._since: float | None = None
        self._came = 0
        self._last = 0.0
        self._over = False
        gate.relays.add(self)
        self._timer = asyncio.get_running_loop().call_later(_CONNECT, self.abort)

    def abort(self) -> None:
        """End both connections at once."""
        self._over = True
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
        self._release()
        if hasattr(self.client, "transport"):
            self.client.transport.abort()
        self._gate.relays.discard(self)

    def _release(self) -> None:
        """End the connection to the server."""
        if self._raw is not None:
            self._raw.close()
            self._raw = None
        if self._server is not None:
            self._server.transport.abort()

    def _refuse(self, problem: str) -> None:
        self._gate.problems[problem] += 1
        self.abort()

    # -- from the client -------------------------------------------------------------------------------------------

    def _from_client(self, data: bytes) -> None:
        if self._over:
            return
        if self._server is not None and self._request is not None and self._task is None:
            self._send(data)
        else:
            self._waiting += data
            if self._task is None:
                self._begin()

    def _begin(self) -> None:
        """Connect for the first request. A client that follows a redirect to another host omits the secret."""
        request = self._next_request()
        if request is None:
            return
        self._request = request
        self.client.transport.pause_reading()
        self._task = asyncio.ensure_future(self._connect(request))

    def _next_request(self) -> _ProxyRequest | None:
        """Return the request that the waiting bytes begin with, without its head in them then; None for one
        that is not here or may not be."""
        head, ending, rest = self._waiting.partition(b"\r\n\r\n")
        if not ending:
            if len(self._waiting) > _HEAD_MAX:
                self.abort()
            return None
        try:
            request = _ProxyRequest.read(head + ending)
        except ValueError:
            self.abort()  # something else than a request
            return None
        if self._gate.is_interrupted:
            self._refuse(DRIPPING)
            return None
        if not self._gate.may(request) or (self._request and request.place != self._request.place):
            self._refuse(ELSEWHERE)
            return None
        self._waiting = rest
        return request

    def _send(self, data: bytes) -> None:
        """Forward bytes from the client."""
        assert self._server is not None and self._request is not None
        server = self._server.transport
        self._since = None
        if self._request.tunnel:
            if len(data) > _NO_REQUEST:
                self._passed = 0
            server.write(data)
            return
        while data and not self._over:
            if self._left:
                part = data if len(data) <= self._left else data[: self._left]
                self._left -= len(part)
                server.write(part)
                data = data[len(part) :]
                continue
            self._waiting += data
            request = self._next_request()
            if request is None:
                return
            data, self._waiting = self._waiting, b""
            self._send_head(request, server)

    def _send_head(self, request: _ProxyRequest, server: asyncio.Transport) -> None:
        self._passed, self._left = 0, request.length
        server.write(request.head(self._behind))

    def _client_ended(self, error: Exception | None) -> None:
        self.abort()

    # -- the connection to the server ------------------------------------------------------------------------------

    async def _connect(self, request: _ProxyRequest) -> None:
        """Connect to the host of the first request, and send that on."""
        try:
            async with asyncio.timeout(_CONNECT):
                await self._connected(request)
        except (OSError, ValueError):  # a proxy's address may be none
            self._task = None
            self._refuse(UNREACHABLE)
            return
        self._task = None
        self._timer.cancel()
        if self._over or self._server is None:
            return
        self._gate.requests += 1
        _log.debug("bucket: connected to %s:%d", request.host, request.port)
        if request.tunnel:
            self.client.transport.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            self._send_head(request, self._server.transport)
        self.client.other, self._server.other = self._server, self.client
        self.client.transport.resume_reading()
        waiting, self._waiting = self._waiting, b""
        if waiting:
            self._send(waiting)

    async def _connected(self, request: _ProxyRequest) -> None:
        """Connect, through a proxy of the environment if one applies.

        `_behind` is None then, or for plain http through a proxy the header field that the proxy requires,
        b"" for none.
        """
        host, port, tunnel = request.host, request.port, request.tunnel
        proxy = _proxy_for(self._gate.proxies, host, port, "https" if tunnel else "http")
        if not proxy:
            await self._open(host, port)
            return
        at = urlsplit(proxy)
        tls = at.scheme == "https"
        await self._open(at.hostname or "", at.port or (443 if tls else 80), tls=tls)
        behind = b""
        if at.username is not None:
            pair = f"{unquote(at.username)}:{unquote(at.password or '')}"
            behind = b"Proxy-Authorization: Basic " + base64.b64encode(pair.encode())
        if not tunnel:
            self._behind = behind
            return
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        fields = [
            f"CONNECT {place} HTTP/1.1".encode(),
            f"Host: {place}".encode(),
            *([behind] if behind else []),
        ]
        self._greeting = asyncio.get_running_loop().create_future()
        assert self._server is not None
        self._server.transport.write(b"\r\n".join(fields) + b"\r\n\r\n")
        answer = await self._greeting
        self._greeting = None
        if answer.split(b" ", 2)[1:2] != [b"200"]:
            raise ConnectionRefusedError("the proxy refused")

    async def _open(self, host: str, port: int, *, tls: bool = False) -> None:
        context = None
        if tls:
            import ssl  # slow to load

            context = ssl.create_default_context()
        transport, server = await asyncio.get_running_loop().create_connection(
            lambda: _End(self._from_server, self._server_ended),
            host,
            port,
            ssl=context,
            happy_eyeballs_delay=_NEXT,
        )
        self._server = server
        if self._over:
            transport.abort()
        elif not tls:
            self._raw = transport.get_extra_info("socket").dup()
            self._raw.setblocking(False)

    # -- from the server -------------------------------------------------------------------------------------------

    def _from_server(self, data: bytes) -> None:
        if self._greeting is not None:
            self._greeted += data
            if not self._greeting.done() and (b"\r\n\r\n" in self._greeted or len(self._greeted) > _HEAD_MAX):
                self._greeting.set_result(self._greeted)
            return
        if self._over:
            return
        self._passed += len(data)
        if self._passed > self._gate.longest:
            self._refuse(ENDLESS)
        elif self._is_dripping(len(data)):
            self._refuse(DRIPPING)
        else:
            self.client.transport.write(data)

    def _is_dripping(self, size: int) -> bool:
        """Return whether too little came in the time that anything may take; `size` bytes more have come now."""
        now = asyncio.get_running_loop().time()
        # After such a silence the client no longer waits: data now, such as the end of TLS, is not part of an answer.
        if self._since is None or now - self._last > self._gate.stall:
            self._since, self._came = now, 0
        self._came += size
        self._last = now
        if now - self._since <= self._gate.stall:
            return False
        little = self._came < self._gate.drip
        self._since, self._came = now, 0
        return little

    def _server_ended(self, error: Exception | None) -> None:
        """Forward what the server sent before it ended the connection, and then the end."""
        if self._greeting is not None:
            if not self._greeting.done():
                self._greeting.set_exception(ConnectionResetError("the proxy ended the connection"))
            return
        if error is not None:
            self._take_rest()
        if self._over or self._request is None:
            return
        self._over = True
        self._release()
        client = self.client.transport
        self.client.other = None
        if not client.is_closing():
            client.resume_reading()
            client.write_eof()
        self._linger()

    def _take_rest(self) -> None:
        """Forward the rest of the answer: after a failed write nothing was read."""
        with contextlib.suppress(OSError):
            while self._raw is not None and (piece := self._raw.recv(_PIECE)):
                self._from_server(piece)

    def _linger(self) -> None:
        """Give the client time to read the answer; what it still sends is dropped."""
        self._timer = asyncio.get_running_loop().call_later(_LINGER, self._end_slowly)

    def _end_slowly(self) -> None:
        if self.client.transport.get_write_buffer_size():
            self._linger()
        else:
            self.abort()


class _Loop(asyncio.SelectorEventLoop):
    """An event loop that does not delay the end of the program by look-ups of names."""

    async def getaddrinfo(self, host: Any, port: Any, **how: Any) -> Any:
        """See `socket.getaddrinfo`."""
        return await look_up(host, port, **how)


class _ProxyRequest(NamedTuple):
    """The request line and headers of a request to a proxy."""

    method: bytes
    target: bytes
    version: bytes
    fields: list[bytes]
    host: str
    port: int
    secret: bytes  #: the value of its Proxy-Authorization header
    length: int  #: bytes of its body

    @classmethod
    def read(cls, head: bytes) -> _ProxyRequest:
        """Parse a request. Raises ValueError for anything else."""
        line, *fields = head[:-4].split(b"\r\n")
        method, target, version = line.split(b" ")
        tunnel = method == b"CONNECT"
        url = urlsplit(f"//{target.decode()}" if tunnel else target.decode())
        headers = dict(map(_field, fields))
        if b"transfer-encoding" in headers or not url.hostname:
            raise ValueError("not a request that obstore makes")
        return cls(
            method, target, version, fields, url.hostname, url.port or (443 if tunnel else 80),
            headers.get(b"proxy-authorization", b""), 0 if tunnel else int(headers.get(b"content-length", b"0")),
        )  # fmt: skip

    @property
    def tunnel(self) -> bool:
        """Return whether it is a CONNECT request."""
        return self.method == b"CONNECT"

    @property
    def place(self) -> tuple[str, int]:
        """Return host and port of its server."""
        return self.host, self.port

    def head(self, behind: bytes | None) -> bytes:
        """Return the request as sent on: to a server, or with the field `behind` to a proxy."""
        path = self.target if behind is not None else _path(self.target)
        headers = [field for field in self.fields if _field(field)[0] != b"proxy-authorization"]
        more = [behind] if behind else []
        return b"\r\n".join((b" ".join((self.method, path, self.version)), *headers, *more)) + b"\r\n\r\n"


def usable_proxies() -> dict[str, str]:
    """Return the http and https proxies of the environment by scheme, and in "no" the hosts that are excluded."""
    from urllib.request import getproxies  # slow to load

    proxies = getproxies()
    used = {
        scheme: url if "://" in url else f"http://{url}"
        for scheme in ("http", "https", "all")
        if (url := proxies.get(scheme))
    }
    used = {scheme: url for scheme, url in used.items() if url.lower().startswith(("http://", "https://"))}
    return {**used, "no": proxies.get("no", "")}


def _proxy_for(proxies: Mapping[str, str], host: str, port: int, scheme: str) -> str:
    """Return the proxy for a host; "" for none."""
    proxy = proxies.get(scheme) or proxies.get("all") or ""
    if proxy:
        from urllib.request import proxy_bypass

        if proxy_bypass(f"{host}:{port}") or proxy_bypass(host) or _in_network(host, proxies.get("no", "")):
            return ""
    return proxy


def _in_network(host: str, networks: str) -> bool:
    """Return whether a host is an address in one of the networks that NO_PROXY may name, which urllib does not read."""
    for one in networks.split(","):
        with contextlib.suppress(ValueError):
            if ipaddress.ip_address(host) in ipaddress.ip_network(one.strip(), strict=False):
                return True
    return False


def _plain(host: str) -> str:
    """Return a host as obstore writes it."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return host.lower().rstrip(".")


def _field(line: bytes) -> tuple[bytes, bytes]:
    name, _, value = line.partition(b":")
    return name.strip().lower(), value.strip()


def _path(target: bytes) -> bytes:
    """Return the path and query of a URL, as a server expects them."""
    _, _, rest = target.partition(b"://")
    slash = rest.find(b"/")
    mark = rest.find(b"?")
    if slash < 0 or 0 <= mark < slash:
        return b"/" + rest[mark:] if mark >= 0 else b"/"
    return rest[slash:]
