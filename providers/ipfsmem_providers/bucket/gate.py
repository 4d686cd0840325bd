"""A forward proxy on loopback for the requests of obstore: it limits the length of answers and the hosts of an S3 bucket.

obstore reads whole lists and error bodies, whatever their length, and follows redirects with the session token of S3 in a header. The
gate ends an answer above the limit and refuses hosts that are not the bucket's; of other stores any host is accepted. With https it
sees only lengths. A proxy of the environment is used for the connections of the gate. A client must authenticate with a secret that
only obstore is given.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ipaddress
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from ipfsmem_providers.http.name_lookup import look_up

#: Maximum bytes of a request line with its headers.
_HEAD_MAX: Final = 64 * 1024
_PIECE: Final = 64 * 1024
#: A piece of at most this many bytes from a client is not a request: TLS answers some records of the server automatically.
_NO_REQUEST: Final = 128
_CONNECT: Final = 60.0
#: Seconds until the next address of a host is tried in parallel.
_NEXT: Final = 0.25

#: Reasons to end a request without a complete answer.
ENDLESS: Final = "endless"
ELSEWHERE: Final = "elsewhere"
UNREACHABLE: Final = "unreachable"


class Gate:
    """A gate. It starts to listen when `url` is read for the first time."""

    def __init__(self, hosts: Collection[str], longest: int, proxies: Mapping[str, str]) -> None:
        """`hosts`: the hosts to which it connects, with their subdomains; empty for any. `longest`: maximum bytes of an answer.
        `proxies`: the proxies of the environment by scheme, from `usable_proxies`."""
        self._hosts = tuple(map(_plain, hosts))
        self._longest = longest
        self._proxies = proxies
        self._secret = secrets.token_urlsafe(24)
        self._expected = b"Basic " + base64.b64encode(f"ipfsmem:{self._secret}".encode())
        self._url = ""
        self._stop: Callable[[], object] = lambda: None
        self._lock = threading.Lock()
        #: Number of requests that ended with each of ENDLESS, ELSEWHERE and UNREACHABLE.
        self.problems = Counter({ENDLESS: 0, ELSEWHERE: 0, UNREACHABLE: 0})
        self.requests = 0  #: connections that were accepted, for reports and tests

    @property
    def url(self) -> str:
        """The URL of the proxy, for obstore. Raises OSError if this machine allows no server on loopback."""
        with self._lock:
            if not self._url:
                self._url = self._opened()
            return self._url

    def close(self) -> None:
        """End its thread and all connections; `url` opens it again, at another port."""
        with self._lock:
            self._url = ""
            with contextlib.suppress(RuntimeError):  # its loop has ended by itself
                self._stop()

    def _opened(self) -> str:
        opened: list[int | OSError] = []
        ready = threading.Event()

        async def serve() -> None:
            try:
                server = await asyncio.start_server(self._take, "127.0.0.1", 0, limit=_HEAD_MAX)
            except OSError as error:
                opened.append(error)
                return
            finally:
                if not opened:
                    opened.append(0)
            stopped = asyncio.Event()
            self._stop = partial(asyncio.get_running_loop().call_soon_threadsafe, stopped.set)
            opened[0] = server.sockets[0].getsockname()[1]
            ready.set()
            await stopped.wait()
            server.close()

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

    # -- one connection, in the thread of the gate -----------------------------------------------------------------

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up: asyncio.StreamWriter | None = None
        try:
            async with asyncio.timeout(_CONNECT):
                request = _Request.read(await reader.readuntil(b"\r\n\r\n"))
            # A client that follows a redirect to another host omits the secret.
            if not self._may(request):
                self.problems[ELSEWHERE] += 1
                return
            try:
                down, up, behind = await self._connected(request)
            except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                self.problems[UNREACHABLE] += 1
                return
            self.requests += 1
            if request.tunnel:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await self._relay(request, behind, reader, writer, down, up)
        except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the client is gone, or sent something else than a request
        except asyncio.CancelledError:
            pass  # the gate is closed; Python 3.11 would print it
        finally:
            for each in (writer, up):
                if each is not None:
                    each.close()

    async def _relay(
        self,
        request: _Request,
        behind: bytes | None,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        down: asyncio.StreamReader,
        up: asyncio.StreamWriter,
    ) -> None:
        passed = 0

        async def tunnelled() -> None:
            nonlocal passed
            while piece := await reader.read(_PIECE):
                if len(piece) > _NO_REQUEST:
                    passed = 0
                up.write(piece)
                await up.drain()

        async def plain() -> None:
            nonlocal passed
            following = request
            while following.place == request.place and self._may(following):
                passed, left = 0, following.length
                up.write(following.head(behind))
                while left and (piece := await reader.read(min(left, _PIECE))):
                    left -= len(piece)
                    up.write(piece)
                    await up.drain()
                following = _Request.read(await reader.readuntil(b"\r\n\r\n"))
            self.problems[ELSEWHERE] += 1
            writer.transport.abort()

        async def answers() -> None:
            nonlocal passed
            while piece := await down.read(_PIECE):
                passed += len(piece)
                if passed > self._longest:
                    self.problems[ENDLESS] += 1
                    writer.transport.abort()
                    up.transport.abort()
                    return
                writer.write(piece)
                await writer.drain()

        sending = asyncio.ensure_future(tunnelled() if request.tunnel else plain())
        sending.add_done_callback(lambda done: done.cancelled() or done.exception())
        receiving = asyncio.ensure_future(answers())
        receiving.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            await asyncio.wait((sending, receiving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sending.cancel()
            receiving.cancel()

    def _may(self, request: _Request) -> bool:
        return request.secret == self._expected and self._is_allowed(request.host)

    def _is_allowed(self, host: str) -> bool:
        host = _plain(host)
        return not self._hosts or any(host == one or host.endswith(f".{one}") for one in self._hosts)

    async def _connected(
        self, request: _Request
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, bytes | None]:
        """Connect to the host of a request, through a proxy of the environment if one applies. The third value is None, or for plain
        http through a proxy the header field that the proxy requires, b"" for none."""
        host, port, tunnel = request.host, request.port, request.tunnel
        proxy = _proxy_for(self._proxies, host, port, "https" if tunnel else "http")
        async with asyncio.timeout(_CONNECT):
            if not proxy:
                return (*await asyncio.open_connection(host, port, happy_eyeballs_delay=_NEXT), None)
            at = urlsplit(proxy)
            down, up = await asyncio.open_connection(at.hostname, at.port or 80, limit=_HEAD_MAX)
            behind = b""
            if at.username is not None:
                pair = f"{unquote(at.username)}:{unquote(at.password or '')}"
                behind = b"Proxy-Authorization: Basic " + base64.b64encode(pair.encode())
            if not tunnel:
                return down, up, behind
            try:
                place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
                fields = [
                    f"CONNECT {place} HTTP/1.1".encode(),
                    f"Host: {place}".encode(),
                    *([behind] if behind else []),
                ]
                up.write(b"\r\n".join(fields) + b"\r\n\r\n")
                answer = await down.readuntil(b"\r\n\r\n")
                if answer.split(b" ", 2)[1:2] != [b"200"]:
                    raise ConnectionRefusedError("the proxy refused")
            except BaseException:
                up.close()
                raise
            return down, up, None


class _Loop(asyncio.SelectorEventLoop):
    """An event loop that does not delay the end of the program by look-ups of names."""

    async def getaddrinfo(self, host: Any, port: Any, **how: Any) -> Any:
        """As `socket.getaddrinfo`."""
        return await look_up(host, port, **how)


class _Request(NamedTuple):
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
    def read(cls, head: bytes) -> _Request:
        """Parse a request. Raises ValueError for anything else."""
        line, *fields = head[:-4].split(b"\r\n")
        method, target, version = line.split(b" ")
        tunnel = method == b"CONNECT"
        url = urlsplit(f"//{target.decode()}" if tunnel else target.decode())
        named = dict(map(_field, fields))
        if b"transfer-encoding" in named or not url.hostname:
            raise ValueError("not a request that obstore makes")
        return cls(
            method, target, version, fields, url.hostname, url.port or (443 if tunnel else 80),
            named.get(b"proxy-authorization", b""), 0 if tunnel else int(named.get(b"content-length", b"0")),
        )  # fmt: skip

    @property
    def tunnel(self) -> bool:
        """Whether it is a CONNECT request."""
        return self.method == b"CONNECT"

    @property
    def place(self) -> tuple[str, int]:
        """Host and port of the server that it is for."""
        return self.host, self.port

    def head(self, behind: bytes | None) -> bytes:
        """The request as sent on: to a server, or with the field `behind` to a proxy."""
        path = self.target if behind is not None else _path(self.target)
        kept = [field for field in self.fields if _field(field)[0] != b"proxy-authorization"]
        more = [behind] if behind else []
        return b"\r\n".join((b" ".join((self.method, path, self.version)), *kept, *more)) + b"\r\n\r\n"


def usable_proxies() -> dict[str, str] | None:
    """The proxies of the environment by scheme, and in "no" the hosts that are excluded; None if one is not an http proxy, which the gate does
    not support."""
    from urllib.request import getproxies  # takes long to load

    found = getproxies()
    used = {
        scheme: url if "://" in url else f"http://{url}"
        for scheme in ("http", "https", "all")
        if (url := found.get(scheme))
    }
    if not all(url.lower().startswith("http://") for url in used.values()):
        return None
    return {**used, "no": found.get("no", "")}


def _proxy_for(proxies: Mapping[str, str], host: str, port: int, scheme: str) -> str:
    """The proxy for a host; "" for none."""
    proxy = proxies.get(scheme) or proxies.get("all") or ""
    if proxy:
        from urllib.request import proxy_bypass

        if proxy_bypass(f"{host}:{port}") or proxy_bypass(host) or _in_network(host, proxies.get("no", "")):
            return ""
    return proxy


def _in_network(host: str, networks: str) -> bool:
    """Whether a host is an address in one of the networks that NO_PROXY may name, which urllib does not read."""
    for one in networks.split(","):
        with contextlib.suppress(ValueError):
            if ipaddress.ip_address(host) in ipaddress.ip_network(one.strip(), strict=False):
                return True
    return False


def _plain(host: str) -> str:
    """A host as obstore writes it."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return host.lower().rstrip(".")


def _field(line: bytes) -> tuple[bytes, bytes]:
    name, _, value = line.partition(b":")
    return name.strip().lower(), value.strip()


def _path(target: bytes) -> bytes:
    """The path and query of a URL, as a server expects them."""
    _, _, rest = target.partition(b"://")
    slash = rest.find(b"/")
    mark = rest.find(b"?")
    if slash < 0 or 0 <= mark < slash:
        return b"/" + rest[mark:] if mark >= 0 else b"/"
    return rest[slash:]
