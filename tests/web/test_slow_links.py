"""Timeouts of the browser client for a slow but steady response, and for one that drips."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from tests.servers.threaded import serve
from tests.support.web_lab import ClientError, web_client

pytestmark = [pytest.mark.interop, pytest.mark.slow]

#: The longest silence in milliseconds. A response may take this long plus a millisecond for every 16 bytes.
LIMIT = 4_000
CHUNK = b"a" * (1 << 16)
#: The number of chunks of a response that takes longer than LIMIT.
CHUNKS = 14


def application() -> web.Application:
    """A server with one response that progresses and one that drips forever."""

    async def steady(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(CHUNKS):
            await response.write(CHUNK)
            await asyncio.sleep(0.4)
        return response

    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"a")
            await asyncio.sleep(0.2)

    app = web.Application()
    app.router.add_get("/steady", steady)
    app.router.add_get("/drip", drip)
    return app


def test_steady_response_may_exceed_the_limit() -> None:
    with serve(application) as url, web_client() as client:
        received = client.ask({"do": "get", "url": f"{url}/steady", "ms": LIMIT})
        assert received == CHUNKS * len(CHUNK)


def test_dripping_response_is_aborted() -> None:
    with serve(application) as url, web_client() as client, pytest.raises(ClientError, match="broke off"):
        client.ask({"do": "get", "url": f"{url}/drip", "ms": LIMIT})
