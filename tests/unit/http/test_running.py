"""Our servers with requests of disproportionate cost."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
from urllib.parse import quote

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from yarl import URL

from ipfsmem.errors import UsageError
from ipfsmem.http import psa
from ipfsmem.http.running import running
from tests.support.hints import Refused


def test_request_body_is_never_decompressed() -> None:
    seen: list[int] = []

    async def take(request: web.Request) -> web.Response:
        seen.append(len(await request.read()))
        return web.Response()

    async def run() -> None:
        app = web.Application(client_max_size=1 << 30)
        app.router.add_post("/", take)
        bomb = gzip.compress(bytes(50_000_000))
        packed = {"Content-Encoding": "gzip"}
        async with (
            running(app) as url,
            aiohttp.ClientSession() as session,
            session.post(url, data=bomb, headers=packed) as answer,
        ):
            assert answer.status == 200
        assert seen == [len(bomb)]

    asyncio.run(run())


def test_answers_do_not_name_software_versions() -> None:
    async def well(_: web.Request) -> web.Response:
        return web.Response()

    async def broken(_: web.Request) -> web.Response:
        raise web.HTTPConflict

    async def run() -> None:
        app = web.Application()
        app.add_routes([web.get("/well", well), web.get("/broken", broken)])
        async with running(app) as url, aiohttp.ClientSession(url) as session:
            for path, status in (("/well", 200), ("/broken", 409), ("/nowhere", 404)):
                async with session.get(path) as answer:
                    assert (answer.status, answer.headers["Server"]) == (status, "ipfsmem")

    asyncio.run(run())


@pytest.mark.parametrize(
    "sent",
    [
        b"canary canary canary\r\n\r\n",
        b"GET /canary HTTP/1.1\r\nHost: a\r\nbad header canary\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: canary\r\n\r\n",
        b"GET /" + b"canary" * 5_000 + b" HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01canary\r\n\r\n",
    ],
)
def test_malformed_request_gets_a_plain_answer_and_is_not_quoted(
    sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """The library's own answer would quote the line and name its version and Python's."""

    async def run() -> None:
        async with running(web.Application()) as url:
            reader, writer = await asyncio.open_connection("127.0.0.1", URL(url).port)
            writer.write(sent)
            answer = await reader.read()
            writer.close()
            assert answer.startswith(b"HTTP/1.1 400 ") or answer.startswith(b"HTTP/1.0 400 "), answer
            assert b"The request cannot be read." in answer and b"Server: ipfsmem\r\n" in answer
            assert b"canary" not in answer and b"ython" not in answer

    asyncio.run(run())
    assert "canary" not in caplog.text


def test_used_port_or_public_address_has_a_hint_that_works() -> None:
    async def run() -> None:
        app = web.Application
        async with running(app()) as url:
            with Refused("Choose another --port; 0 takes a free one."):
                await asked(running(app(), port=URL(url).port or 0))
            assert await asked(running(app(), port=0)) == 404
        with Refused(
            "Serve on 127.0.0.1, or say that it is meant to be public and name the host names it is asked by."
        ):
            await asked(running(app(), "0.0.0.0"))
        assert await asked(running(app(), "127.0.0.1")) == 404
        assert await asked(running(app(), "0.0.0.0", public=True)) == 404

    async def asked(server: contextlib.AbstractAsyncContextManager[str]) -> int:
        async with (
            server as url,
            aiohttp.ClientSession() as session,
            session.get(URL(url).with_host("127.0.0.1")) as answer,
        ):
            return answer.status

    asyncio.run(run())


@pytest.mark.parametrize("limit", ["0" * 8 + "1" + "0" * 5000, "1000000000", "0", "-1", "1e1", "²", ""])
def test_invalid_limit_is_refused(limit: str) -> None:
    request = make_mocked_request("GET", f"/psa/pins?limit={quote(limit)}")
    with pytest.raises(UsageError, match="limit is"):
        psa._filter_and_limit(request)
