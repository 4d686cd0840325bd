"""Limits of open connections, tested with real sockets and a real server."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import ClientSession, web

from ipfsmem.http.connection_limits import TRUSTED, ConnectionLimits, _address
from ipfsmem.http.running import running
from tests.support import virtual_time

HALF = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"
Wire = tuple[asyncio.StreamReader, asyncio.StreamWriter]
QUICK = ConnectionLimits(total=20, per_address=20, head=0.4, idle=0.8, stall=0.4)


class Server:
    """Answers `/` at once, `/slow` after a while, `/big` with a large body, and accepts a body at `/put`."""

    def __init__(self) -> None:
        self.cancelled = 0

    def app(self) -> web.Application:
        app = web.Application(client_max_size=1 << 30)
        app.router.add_get("/", self.plain)
        app.router.add_get("/slow", self.slow)
        app.router.add_get("/big", self.big)
        app.router.add_put("/put", self.put)
        return app

    async def plain(self, request: web.Request) -> web.Response:
        return web.Response(text="here")

    async def slow(self, request: web.Request) -> web.Response:
        await asyncio.sleep(1.5)
        return web.Response(text="late")

    async def forever(self, request: web.Request) -> web.Response:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    async def big(self, request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        try:
            for _ in range(100):
                await answer.write(bytes(1 << 16))
        except (asyncio.CancelledError, ConnectionError):
            self.cancelled += 1
            raise
        return answer

    async def put(self, request: web.Request) -> web.Response:
        try:
            return web.Response(text=str(len(await request.read())))
        except (asyncio.CancelledError, ConnectionError):
            self.cancelled += 1
            raise


def with_server(
    work: Callable[[str, int, Server], Awaitable[None]], limits: ConnectionLimits = QUICK
) -> None:
    async def main() -> None:
        server = Server()
        async with running(server.app(), limits=limits) as url:
            await work(url, int(url.rpartition(":")[2]), server)

    virtual_time.run(main())


@contextlib.asynccontextmanager
async def wires(
    port: int, number: int, start: bytes = HALF, host: str = "127.0.0.1"
) -> AsyncIterator[list[Wire]]:
    """Open connections that send `start` and then nothing."""
    opened: list[Wire] = []
    try:
        for _ in range(number):
            wire = await asyncio.open_connection("127.0.0.1", port, local_addr=(host, 0))
            opened.append(wire)
            with contextlib.suppress(ConnectionError):
                wire[1].write(start)
                await wire[1].drain()
        yield opened
    finally:
        for _, writer in opened:
            writer.close()


async def ask(url: str, path: str = "/", **more: object) -> str:
    async with ClientSession() as session, session.get(url + path) as answer:
        return await answer.text()


async def is_closed(wire: Wire, seconds: float) -> bool:
    try:
        return await asyncio.wait_for(wire[0].read(1), seconds) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


@pytest.mark.parametrize("start", [b"", b"G", HALF], ids=["nothing", "a letter", "half a head"])
def test_idle_connections_do_not_block_an_honest_request(start: bytes) -> None:
    """Three hundred half-open requests at a limit of forty connections."""

    async def work(url: str, port: int, server: Server) -> None:
        async with wires(port, 300, start) as held:
            for _ in range(5):
                assert await asyncio.wait_for(ask(url), 2) == "here"
            still = [wire for wire in held if not await is_closed(wire, 0.001)]
            assert len(still) <= 40

    with_server(work, ConnectionLimits(total=40, per_address=400))


def test_request_head_must_arrive_in_time() -> None:
    async def work(url: str, port: int, server: Server) -> None:
        async with wires(port, 3, HALF) as held, wires(port, 1, b"") as silent:
            for _ in range(4):  # trickled bytes are not a head
                await asyncio.sleep(0.1)
                with contextlib.suppress(ConnectionError):
                    held[0][1].write(b"X: y\r\n")
            assert all([await is_closed(wire, 2) for wire in (*held, *silent)])
        assert await ask(url) == "here"

    with_server(work)


def test_connection_can_be_reused_for_a_while() -> None:
    async def work(url: str, port: int, server: Server) -> None:
        async with wires(port, 1, b"") as [(reader, writer)]:
            for _ in range(3):  # longer in total than a first head may take
                writer.write(HALF + b"\r\n")
                await asyncio.sleep(0.25)
                assert b"here" in await reader.readuntil(b"here")
            assert await is_closed((reader, writer), 3)

    with_server(work)


def test_one_address_cannot_use_all_connections() -> None:
    """A busy connection is never closed for another one."""

    async def work(url: str, port: int, server: Server) -> None:
        async with (
            wires(port, 4, b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n") as busy,
            wires(port, 30, HALF) as held,
        ):
            assert sum([not await is_closed(wire, 0.001) for wire in held]) <= 6
            async with wires(port, 5, HALF + b"\r\n", host="127.0.0.2") as others:
                for reader, _ in others:
                    assert b"here" in await asyncio.wait_for(reader.readuntil(b"here"), 2)
            for reader, _ in busy:
                assert b"late" in await asyncio.wait_for(reader.readuntil(b"late"), 4)

    with_server(work, ConnectionLimits(total=20, per_address=10))


def test_connection_over_busy_limit_is_refused_and_others_continue() -> None:
    async def work(url: str, port: int, server: Server) -> None:
        async with wires(port, 4, b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n") as busy:
            await asyncio.sleep(0.1)
            async with wires(port, 2, HALF) as late:
                assert all([await is_closed(wire, 1) for wire in late])
            for reader, _ in busy:
                assert b"late" in await asyncio.wait_for(reader.readuntil(b"late"), 4)

    with_server(work, ConnectionLimits(total=4, per_address=4))


def test_slow_body_and_unread_answer_are_aborted() -> None:
    async def work(url: str, port: int, server: Server) -> None:
        head = b"PUT /put HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"
        async with wires(port, 1, head) as [body], wires(port, 1, b"GET /big HTTP/1.1\r\nHost: x\r\n\r\n"):
            for _ in range(8):
                await asyncio.sleep(0.15)
                with contextlib.suppress(ConnectionError):
                    body[1].write(b"x")
            assert await is_closed(body, 2)
            for _ in range(40):
                if server.cancelled == 2:
                    break
                await asyncio.sleep(0.05)
            assert server.cancelled == 2

    with_server(work)


def test_body_and_answer_with_progress_may_take_long() -> None:
    async def work(url: str, port: int, server: Server) -> None:
        head = b"PUT /put HTTP/1.1\r\nHost: x\r\nContent-Length: 20480\r\n\r\n"
        async with wires(port, 1, head) as [(reader, writer)]:
            for _ in range(10):
                await asyncio.sleep(0.12)
                writer.write(bytes(2048))
            assert b"20480" in await asyncio.wait_for(reader.readuntil(b"20480"), 2)
        async with wires(port, 1, b"GET /big HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n") as [
            (reader, _)
        ]:
            size = 0
            while piece := await reader.read(1 << 20):
                size += len(piece)
                await asyncio.sleep(0.02)
            assert size > 100 << 16
        assert server.cancelled == 0

    with_server(work)


def test_addresses_are_grouped_by_network() -> None:
    class Transport(asyncio.BaseTransport):
        def __init__(self, peer: object) -> None:
            super().__init__({"peername": peer})

    assert (
        _address(Transport(("10.0.0.1", 5)))
        == _address(Transport(("::ffff:10.0.0.1", 5, 0, 0)))
        == "10.0.0.1"
    )
    assert _address(Transport(("2001:db8::1", 5, 0, 0))) == _address(
        Transport(("2001:db8::ffff:2%eth0", 5, 0, 0))
    )
    assert _address(Transport(("2001:db8::1", 5, 0, 0))) != _address(Transport(("2001:db8:0:1::1", 5, 0, 0)))
    assert _address(Transport(None)) == ""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="no such limit")
def test_connections_stay_below_the_file_limit_of_the_system(tmp_path: Path) -> None:
    """Three hundred half-open requests to the real command with few file descriptors."""
    code = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (110, 110))
from ipfsmem.cli import main
sys.argv = ["ipfsmem", "serve", "peer", {str(tmp_path / "f")!r}, "--create", "--port", "0", "--json"]
main()
"""
    server = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        import json

        url = json.loads(server.stdout.readline())["url"]

        async def work() -> None:
            async with wires(int(url.rpartition(":")[2]), 300):
                assert '"pins"' in await ask(url, "/pins?name=x")

        asyncio.run(asyncio.wait_for(work(), 120))
    finally:
        server.terminate()
        server.wait(60)


OWNER = {"Authorization": "Bearer the owner"}
DRIP = b"PUT /put HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\n\r\n{"
BIG = b"GET /big HTTP/1.1\r\nHost: x\r\n\r\n"
BUSY = b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n"


def with_owner(work: Callable[[str, int, Server], Awaitable[None]], limits: ConnectionLimits) -> None:
    """Start a server that recognises its owner by a header and never ends slow answers."""

    async def main() -> None:
        server = Server()
        server.slow = server.forever  # type: ignore[method-assign]
        app = server.app()
        app[TRUSTED] = lambda request: request.headers.get("Authorization") == OWNER["Authorization"]
        async with running(app, limits=limits) as url:
            await work(url, int(url.rpartition(":")[2]), server)

    virtual_time.run(main())


async def ask_as_owner(url: str) -> str:
    async with ClientSession(headers=OWNER) as session, session.get(url) as answer:
        return await answer.text()


@pytest.mark.parametrize("start", [DRIP, BIG, BUSY], ids=["a body that drips", "an answer not taken", "work"])
@pytest.mark.parametrize("addresses", [1, 4])
def test_requests_without_a_token_do_not_block_the_owner(start: bytes, addresses: int) -> None:
    """As many as permitted, from one or several addresses."""
    limits = ConnectionLimits(total=64, per_address=64 // addresses)

    async def work(url: str, port: int, server: Server) -> None:
        async with contextlib.AsyncExitStack() as stack:
            for address in range(1, addresses + 1):
                held = wires(port, 80 // addresses, start, f"127.0.0.{address}")
                await stack.enter_async_context(held)
            await asyncio.sleep(0.1)
            for _ in range(5):
                assert await asyncio.wait_for(ask_as_owner(url), 2) == "here"

    with_owner(work, limits)


def test_request_of_the_owner_is_never_closed_for_another() -> None:
    head = DRIP.replace(b"Host: x\r\n", b"Host: x\r\nAuthorization: Bearer the owner\r\n")

    async def work(url: str, port: int, server: Server) -> None:
        async with wires(port, 1, head) as [owner]:
            await asyncio.sleep(0.1)
            async with wires(port, 80, DRIP, "127.0.0.2"):
                assert not await is_closed(owner, 0.5)

    with_owner(work, ConnectionLimits(total=16, per_address=16))


def test_body_without_a_token_ends_at_its_time_limit() -> None:
    async def work(url: str, port: int, server: Server) -> None:
        async with wires(port, 1, DRIP) as [wire]:
            for _ in range(20):
                await asyncio.sleep(0.2)
                with contextlib.suppress(ConnectionError):
                    wire[1].write(bytes(1100))
            assert await is_closed(wire, 2)

    with_owner(work, ConnectionLimits(total=16, per_address=16, body=3.0, stall=0.4))


def test_excess_request_without_token_gets_retry_after() -> None:
    async def work(url: str, port: int, server: Server) -> None:
        async with wires(port, 20, BUSY):
            await asyncio.sleep(0.1)
            async with ClientSession() as session, session.get(url) as answer:
                assert answer.status == 503 and answer.headers["Retry-After"] == "1"
            assert await ask_as_owner(url) == "here"

    with_owner(work, ConnectionLimits(total=16, per_address=16))
