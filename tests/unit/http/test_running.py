"""What a server of ours does with requests that cost more than they look."""

from __future__ import annotations

import asyncio
import gzip

import aiohttp
from aiohttp import web

from ipfsmem.http.running import running


def test_s14_nothing_that_is_sent_is_decompressed() -> None:
    """Finding S14: a megabyte of gzip cost two and a half seconds, and a gigabyte if it had to."""
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
