"""A relay for faults in front of a real HTTP server: it forwards requests and answers unchanged."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import aiohttp
from aiohttp import web
from yarl import URL

from tests.servers.faults import Faults

#: Headers of one connection only, and those that aiohttp writes for each body.
_OF_THE_CONNECTION = frozenset(("connection", "keep-alive", "transfer-encoding", "upgrade", "te", "trailer", "content-length"))  # fmt: skip


def relay(server: str, faults: Faults) -> Callable[[], web.Application]:
    """Return a function that makes a relay in front of the server at the URL `server`, which sees the
    client's Host header."""

    async def forward(request: web.Request) -> web.StreamResponse:
        kept = [
            (name, text) for name, text in request.headers.items() if name.lower() not in _OF_THE_CONNECTION
        ]
        async with session[0].request(
            request.method, URL(server + request.raw_path, encoded=True), headers=kept, allow_redirects=False,
            data=await request.read() if request.body_exists else None,
        ) as answer:  # fmt: skip
            body = await answer.read()
            back = web.Response(status=answer.status, body=body)
            for name in {*answer.headers} - {"Content-Length"}:
                if name.lower() not in _OF_THE_CONNECTION:
                    back.headers.popall(name, None)
                    back.headers.extend((name, text) for text in answer.headers.getall(name))
            if request.method == "HEAD" and "Content-Length" in answer.headers:
                back.headers["Content-Length"] = answer.headers["Content-Length"]
            return back

    session: list[aiohttp.ClientSession] = []

    async def connected(_: web.Application) -> AsyncIterator[None]:
        async with aiohttp.ClientSession(
            auto_decompress=False,
            skip_auto_headers=("Accept", "Accept-Encoding", "User-Agent", "Content-Type"),
        ) as made:
            session.append(made)
            yield

    def app() -> web.Application:
        made = web.Application(client_max_size=1 << 30, middlewares=[faults.middleware])
        made.cleanup_ctx.append(connected)
        made.router.add_route("*", "/{tail:.*}", forward)
        return made

    return app
