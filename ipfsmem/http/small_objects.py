"""Serves the small objects of a store (ipfsmem/provider/small_objects.py) to `peer:<url>`, next to its blocks.

    GET  /small?box={box}&box={box} -> {"objects":{name:bytes}}
    POST /small/read    {"names":[...]} -> a CAR of those that are here, each as a raw block
    PUT  /small/{box}/{object}                                            its bytes, with the token
    POST /small/remove  {"names":[...]}                                   with the token

404 if the store has no area for them. Like a pin, an object may be read by anybody who knows its box.
"""

from __future__ import annotations

import msgspec
from aiohttp import web

from ipfsmem.canonical import read_json
from ipfsmem.content.car import header, section
from ipfsmem.content.cid import raw_cid
from ipfsmem.errors import LimitError, UsageError
from ipfsmem.http.gateway_request import CAR_TYPE
from ipfsmem.http.guard import error, json, need_token
from ipfsmem.provider.contract import Provider, SmallArea, small_area
from ipfsmem.provider.small_objects import SMALL_MAX, require_names

#: Paths that a page with the token may request.
SMALL_PATHS = ("/small", "/small/read", "/small/remove", "/small/{box}/{object}")
#: Objects that are read from the store together.
_AHEAD = 8


class _Names(msgspec.Struct):
    names: list[str]


def add_small_objects(server: web.Application, store: Provider, token: str) -> None:
    """Add the routes to a server. Without a token it accepts no writes."""
    handlers = _SmallObjects(small_area(store), token)
    server.router.add_get("/small", handlers.list_all)
    server.router.add_post("/small/read", handlers.read)
    server.router.add_post("/small/remove", handlers.remove)
    server.router.add_put("/small/{box}/{object}", handlers.put)


class _SmallObjects:
    def __init__(self, area: SmallArea | None, token: str) -> None:
        self._area = area
        self._token = token

    async def list_all(self, request: web.Request) -> web.StreamResponse:
        if self._area is None:
            return _no_area()
        return json({"objects": await self._area.list_small(request.query.getall("box", []))})

    async def read(self, request: web.Request) -> web.StreamResponse:
        names = list(dict.fromkeys(await _names(request)))
        if self._area is None:
            return _no_area()
        response = web.StreamResponse(headers={"Content-Type": CAR_TYPE, "Cache-Control": "no-store"})
        first = await self._area.get_small(names[:_AHEAD])  # an error is raised before the answer begins
        await response.prepare(request)
        await response.write(header([]))
        for start in range(0, len(names), _AHEAD):
            found = await self._area.get_small(names[start : start + _AHEAD]) if start else first
            await response.write(
                b"".join(section(raw_cid(bytes.fromhex(name[-64:])), data) for name, data in found.items())
            )
        await response.write_eof()
        return response

    async def put(self, request: web.Request) -> web.StreamResponse:
        need_token(request, self._token)
        if self._area is None:
            return _no_area()
        name = f"{request.match_info['box']}/{request.match_info['object']}"
        data = bytearray()
        async for piece in request.content.iter_any():
            data += piece
            if len(data) > SMALL_MAX:
                raise LimitError(f"a small object has at most {SMALL_MAX} bytes")
        await self._area.put_small(name, bytes(data))
        return json({})

    async def remove(self, request: web.Request) -> web.StreamResponse:
        need_token(request, self._token)
        names = await _names(request)
        if self._area is None:
            return _no_area()
        await self._area.remove_small(names)
        return json({})


def _no_area() -> web.Response:
    return error(404, "NOT_FOUND", "this store keeps no small objects")


async def _names(request: web.Request) -> list[str]:
    try:
        names = read_json(await request.read(), type=_Names).names
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise UsageError(f"small objects are named by a list of names: {problem}") from None
    require_names(names)
    return names
