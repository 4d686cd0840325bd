"""Timeouts of the browser client for a provider on a slow link, and for one that drips."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from tests.servers.threaded import serve
from tests.support.web_lab import ClientError, web_client

pytestmark = [pytest.mark.interop, pytest.mark.slow]

#: Milliseconds that an answer may take without progress.
LIMIT = 4_000
PIECE = b"a" * (1 << 16)
#: Pieces of an answer that takes longer than the limit.
PIECES = 14


def application() -> web.Application:
    """A server with one answer that progresses and one that drips forever."""

    async def steady(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        for _ in range(PIECES):
            await answer.write(PIECE)
            await asyncio.sleep(0.4)
        return answer

    async def drip(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        while True:
            await answer.write(b"a")
            await asyncio.sleep(0.2)

    made = web.Application()
    made.router.add_get("/steady", steady)
    made.router.add_get("/drip", drip)
    return made


def test_progressing_answer_may_exceed_the_limit() -> None:
    with serve(application) as url, web_client() as client:
        received = client.ask({"do": "get", "url": f"{url}/steady", "ms": LIMIT})
        assert received == PIECES * len(PIECE)


def test_dripping_answer_ends_at_the_limit() -> None:
    with serve(application) as url, web_client() as client, pytest.raises(ClientError, match="broke off"):
        client.ask({"do": "get", "url": f"{url}/drip", "ms": LIMIT})
