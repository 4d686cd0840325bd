"""Serves the blocks of a store as a trustless gateway, and accepts CARs, pins and names from holders of the token.

The server of `peer:<url>`, readable by any IPFS client with the trustless gateway protocol:

    GET, HEAD /ipfs/{cid}?format=raw                                      also by Accept; `only-if-cached` returns 412
    GET, HEAD /ipfs/{cid}[/{path}]?format=car[&dag-scope=block|entity|all][&entity-bytes=from:to][&car-dups=y|n]
    GET, HEAD /ipns/{name}?format=ipns-record
    OPTIONS   of these, for pages of other origins; of all others for those that will send the token
    GET, PUT  /routing/v1/ipns/{name}                                     a record; PUT with the token
    POST      /has        {"cids":[...]} -> {"cids":[...],"lacking":[...]}   those stored here; with the token also
                                                                          damaged ones that should be sent again
    POST      /blocks     {"cids":[...]} -> a CAR of those stored here
    POST      /car?root={cid}&name={name}                                 a CAR, with the token -> {"root":cid}
    GET       /pins?name={name} -> {"pins":[{"cid","name","handle","created"}]}, with "unread":[file] for lists
                                                                          that cannot be read
    POST      /pins       {"cid","name"} -> the pin, with the token
    DELETE    /pins?cid=...&name=...&handle=...                           with the token
    POST      /unpin      {"pins":[{"cid","name","handle"}]}              many at once, with the token
    GET       /listing -> {"entries":{name:number}}                       stored blocks and pins, with the token; 404 if
                                                                          the store does not list
    POST      /collect    -> {"freed":bytes}                              deletes blocks that no pin needs, with the token
    /small...                                                             small objects, see small_objects.py

Anybody who knows a CID, or the name of a pin, may read it; both are too long to be guessed, and the data is sealed or
meant to be public. Nothing is decrypted, and no files are shown.
"""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
import time
from typing import IO, Final, TypeVar
from urllib.parse import quote

import msgspec
from aiohttp import web

from ipfsmem.canonical import read_json
from ipfsmem.content.car import CarParser, header, read_car, section
from ipfsmem.content.cid import CID, IDENTITY, parse_cid
from ipfsmem.content.limits import OWN_LIMITS, Limits
from ipfsmem.content.verify import verify_block
from ipfsmem.errors import BlockError, LimitError, UsageError
from ipfsmem.http.car_walk import IncompleteWalk, ResolvedPath, resolve_path, walk
from ipfsmem.http.connection_limits import TRUSTED
from ipfsmem.http.gateway_request import (
    CAR_TYPE,
    CORS,
    DEVICE_CORS,
    FOREVER,
    RAW_TYPE,
    RECORD_TYPE,
    GatewayRequest,
    attachment,
    byte_range,
    etag,
    is_known,
    location,
    parse_request,
)
from ipfsmem.http.guard import error, guard, has_token, json, need_token
from ipfsmem.http.small_objects import SMALL_PATHS, add_small_objects
from ipfsmem.loopback import LOCAL_HOSTS
from ipfsmem.provider.contract import (
    MAX_BATCH,
    UNREAD_HEADER,
    Collecting,
    Pin,
    Provider,
    Repair,
    Unpinning,
    Unreading,
    lister,
)
from ipfsmem.published import ipns_record

T = TypeVar("T")

#: Maximum size of an uploaded CAR, in bytes.
CAR_MAX: Final = 1024 * 1024 * 1024
_JSON_MAX: Final = 2 * 1024 * 1024
_AHEAD: Final = 32
_CONTENT: Final = {"raw": RAW_TYPE, "car": CAR_TYPE}
_RECORDS: Final = {"ipns-record": RECORD_TYPE}
#: The same URL has two formats, so a cache must not return one for the other.
_VARY: Final = {"Vary": "Accept"}
_TO_PAGES: Final = ("/ipfs/", "/ipns/", "/routing/")
_TO_DEVICES: Final = ("/has", "/blocks", "/car", "/pins", "/unpin", "/listing", *SMALL_PATHS)


class _Cids(msgspec.Struct):
    cids: list[str]


class _PinEntry(msgspec.Struct):
    cid: str
    name: str
    handle: str = ""


class _Unpin(msgspec.Struct):
    pins: list[_PinEntry]


class _PinCall(msgspec.Struct):
    cid: str
    name: str


def app(
    store: Provider,
    *,
    token: str = "",
    hosts: frozenset[str] = LOCAL_HOSTS,
    car_max: int = CAR_MAX,
    limits: Limits = OWN_LIMITS,
    closed: str = "",
) -> web.Application:
    """Return the server over `store`, which keeps blocks, pins and names. Without a token it accepts no writes.

    `hosts`: accepted host names. `limits`: of an uploaded CAR or a tree that is sent. Pins whose names begin with `closed` are
    listed only to holders of the token: people chose those names, so they can be guessed.
    """
    server = web.Application(middlewares=[guard(hosts)], client_max_size=_JSON_MAX)
    server[TRUSTED] = lambda request: has_token(request, token)
    handlers = _Blocks(store, token, car_max, limits, closed)
    server.on_response_prepare.append(handlers.open_to_pages)
    server.router.add_get("/ipfs/{cid}", handlers.get_content)  # HEAD too
    server.router.add_get("/ipfs/{cid}/{path:.*}", handlers.get_content)
    server.router.add_get("/ipns/{name}", handlers.get_ipns)
    for opened in _TO_PAGES:
        server.router.add_route("OPTIONS", opened + "{rest:.*}", handlers.options)
    for opened in _TO_DEVICES:
        server.router.add_route("OPTIONS", opened, handlers.device_options)
    server.router.add_get("/routing/v1/ipns/{name}", handlers.get_record)
    server.router.add_put("/routing/v1/ipns/{name}", handlers.put_record)
    server.router.add_post("/has", handlers.has)
    server.router.add_post("/blocks", handlers.blocks)
    server.router.add_post("/car", handlers.put_car)
    server.router.add_get("/pins", handlers.pins)
    server.router.add_post("/pins", handlers.pin)
    server.router.add_delete("/pins", handlers.unpin)
    server.router.add_post("/unpin", handlers.unpin_all)
    server.router.add_get("/listing", handlers.listing)
    server.router.add_post("/collect", handlers.collect)
    add_small_objects(server, store, token)
    return server


class _Blocks:
    def __init__(self, store: Provider, token: str, car_max: int, limits: Limits, closed: str) -> None:
        self._store = store
        self._token = token
        self._car_max = car_max
        self._limits = limits
        self._closed = closed
        self._collecting: asyncio.Future[int] | None = None

    async def get_content(self, request: web.Request) -> web.StreamResponse:
        cid = parse_cid(request.match_info["cid"])
        path = tuple(part for part in request.match_info.get("path", "").split("/") if part)
        gateway_request = parse_request(request.headers, request.query, _CONTENT)
        if path and gateway_request.kind == "raw":
            return error(400, "NO_PATHS", "a block is asked for by its CID; paths go with format=car")
        tag = etag(cid, path, gateway_request)
        known_tags = request.headers.get("If-None-Match", "")
        if is_known(known_tags, tag):
            if (
                known_tags.strip() == "*" and await self._block(cid) is None
            ):  # the tag proves that the client has it; an asterisk matches any
                return error(404, "NOT_FOUND", f"{cid} is not here")
            return web.Response(status=304, headers={"Etag": tag, **_VARY})
        if "only-if-cached" in request.headers.get("Cache-Control", "") and await self._block(cid) is None:
            return error(412, "NOT_FOUND", f"{cid} is not here")
        name = "/".join((str(cid), *map(quote, path)))
        common = {
            "Etag": tag,
            "X-Ipfs-Path": f"/ipfs/{name}",
            "X-Ipfs-Roots": str(cid),
            "Ipfs-Uri": f"ipfs://{name}",
            "Cache-Control": FOREVER,
            **_VARY,
        }
        if where := location(f"/ipfs/{name}", request.headers, request.query, gateway_request):
            common["Content-Location"] = where
        if gateway_request.kind == "raw":
            data = await self._block(cid)
            if data is None:
                return error(404, "NOT_FOUND", f"{cid} is not here")
            return _raw(
                request, data, {**common, "Content-Disposition": attachment(request.query, f"{cid}.bin")}
            )
        start = await resolve_path(self._store_blocks, cid, path, self._limits)
        common["X-Ipfs-Roots"] = ",".join(map(str, start.parts))
        return await self._send_car(request, start, gateway_request, common)

    async def _send_car(
        self,
        request: web.Request,
        start: ResolvedPath,
        gateway_request: GatewayRequest,
        common: dict[str, str],
    ) -> web.StreamResponse:
        """Send a CAR of a walk. If it cannot be completed, the connection is aborted, so that nobody keeps it as complete."""
        blocks = walk(self._store_blocks, start, gateway_request, self._limits)
        response = web.StreamResponse(
            headers={
                **common,
                "Content-Type": f"{CAR_TYPE}; version=1; order=dfs; dups={'y' if gateway_request.dups else 'n'}",
                "Content-Disposition": attachment(request.query, f"{start.parts[-1]}.car"),
                "Accept-Ranges": "none",
            }
        )
        pending, size, whole = [header([start.parts[-1]])], 0, True
        try:
            async for (
                block
            ) in blocks:  # the first one before the answer begins, as the range may still be refused
                if request.method == "HEAD":
                    break
                pending.append(section(*block))
                size += len(pending[-1])
                if size > 1 << 18:
                    await self._prepare(request, response)
                    await response.write(b"".join(pending))
                    pending, size = [], 0
        except IncompleteWalk:
            whole = False
        await self._prepare(request, response)
        if request.method != "HEAD":
            await response.write(b"".join(pending))
        if whole:
            await response.write_eof()
        elif request.transport is not None:
            request.transport.close()  # sends what is written, without the end that a cache would wait for
        return response

    @staticmethod
    async def _prepare(request: web.Request, response: web.StreamResponse) -> None:
        if not response.prepared:
            await response.prepare(request)

    async def _store_blocks(self, cids: list[CID]) -> dict[CID, bytes]:
        """Return blocks of the store, and those that are in their CIDs."""
        inline = {cid: cid.digest for cid in cids if cid.hash_code == IDENTITY}
        wanted = [cid for cid in cids if cid not in inline]
        return inline | (await self._store.get_blocks(wanted) if wanted else {})

    async def options(self, request: web.Request) -> web.StreamResponse:
        """Return what pages of other origins may request."""
        return web.Response(status=204, headers={"Access-Control-Max-Age": "86400"})

    async def device_options(self, request: web.Request) -> web.StreamResponse:
        """Return what a page with the token may request; nothing about any other."""
        if not self._announces_token(request):
            raise web.HTTPMethodNotAllowed("OPTIONS", ())
        return await self.options(request)

    def _announces_token(self, request: web.Request) -> bool:
        requested = request.headers.get("Access-Control-Request-Headers", "").lower()
        names = [name.strip() for name in requested.split(",")]
        return bool(self._token) and request.method == "OPTIONS" and "authorization" in names

    async def open_to_pages(self, request: web.Request, response: web.StreamResponse) -> None:
        """Add headers for pages of other origins, also to errors and refusals: for gateway reads, and for holders of the token."""
        tried = "Authorization" in request.headers and response.status in {401, 403}
        if self._announces_token(request) or tried or has_token(request, self._token):
            response.headers.update(DEVICE_CORS)
        elif request.path.startswith(_TO_PAGES):
            for name, value in CORS.items():
                response.headers.setdefault(name, value)

    async def get_ipns(self, request: web.Request) -> web.StreamResponse:
        parse_request(request.headers, request.query, _RECORDS)
        return await self.get_record(request)

    async def get_record(self, request: web.Request) -> web.StreamResponse:
        name = ipns_record.canonical_name(request.match_info["name"])
        record = await self._store.get_name(name)
        unread = [file for file in self._unread() if name in file]
        marks = {UNREAD_HEADER: str(len(unread))} if unread else {}
        if record is None:
            return error(404, "NOT_FOUND", f"no record of {name} is here", marks)
        tag = f'"{hashlib.sha256(record).hexdigest()[:32]}"'
        headers = {
            "Content-Type": RECORD_TYPE,
            "Content-Disposition": attachment(request.query, f"{name}.ipns-record"),
            "Cache-Control": f"public, max-age={_seconds(record)}",
            "Etag": tag,
            "X-Ipfs-Path": f"/ipns/{name}",
            "Accept-Ranges": "none",
            **marks,
        }
        if is_known(request.headers.get("If-None-Match", ""), tag):
            return web.Response(status=304, headers={"Etag": tag, "Cache-Control": headers["Cache-Control"]})
        return web.Response(body=record, headers=headers)

    def _unread(self) -> list[str]:
        return self._store.unread() if isinstance(self._store, Unreading) else []

    async def put_record(self, request: web.Request) -> web.StreamResponse:
        need_token(request, self._token)
        name = ipns_record.canonical_name(request.match_info["name"])
        if request.content_type != RECORD_TYPE:
            return error(406, "NOT_ACCEPTABLE", f"a record comes as {RECORD_TYPE}")
        body = await request.content.read(ipns_record.MAX_RECORD + 1)
        while len(body) <= ipns_record.MAX_RECORD and (
            more := await request.content.read(ipns_record.MAX_RECORD)
        ):
            body += more
        await self._store.put_name(name, body)
        return web.Response(status=200)

    async def has(self, request: web.Request) -> web.StreamResponse:
        cids = await _cids(request)
        present = await self._store.has(cids)
        answer = {"cids": [str(cid) for cid in cids if cid in present]}
        # For holders of the token only: anybody with the CID of another's block can read it.
        if isinstance(self._store, Repair) and has_token(request, self._token):
            answer["lacking"] = [str(cid) for cid in (await self._store.missing_blocks())[:MAX_BATCH]]
        return json(answer)

    async def blocks(self, request: web.Request) -> web.StreamResponse:
        cids = list(dict.fromkeys(await _cids(request)))
        response = web.StreamResponse(headers={"Content-Type": CAR_TYPE, "Cache-Control": "no-store"})
        first = await self._store.get_blocks(cids[:_AHEAD])  # an error is raised before the answer begins
        await response.prepare(request)
        await response.write(header([]))
        for start in range(0, len(cids), _AHEAD):
            part = cids[start : start + _AHEAD]
            answered = first if not start else await self._store.get_blocks(part)
            await response.write(b"".join(section(cid, answered[cid]) for cid in part if cid in answered))
        await response.write_eof()
        return response

    async def put_car(self, request: web.Request) -> web.StreamResponse:
        need_token(request, self._token)
        root = parse_cid(request.query.get("root", ""))
        name = request.query.get("name", "")
        if (request.content_length or 0) > self._car_max:
            raise LimitError(f"a CAR of {request.content_length} bytes, {self._car_max} are taken")
        with tempfile.SpooledTemporaryFile(max_size=8 << 20) as spool:
            await self._receive(request, spool)
            spool.seek(0)
            answered = await self._store.put_car(root, read_car(spool, self._limits, verify=False), name=name)
        return json({"root": str(answered)})

    async def _receive(self, request: web.Request, spool: IO[bytes]) -> None:
        """Receive a whole CAR and check every block before any is stored."""
        parser = CarParser(self._limits)
        size = 0
        async for piece in request.content.iter_any():
            size += len(piece)
            if size > self._car_max:
                raise LimitError(f"a CAR of more than {self._car_max} bytes")
            parser.feed(piece)
            spool.write(piece)
        parser.close()

    async def pins(self, request: web.Request) -> web.StreamResponse:
        name = _name(request)
        if self._closed and name.startswith(self._closed):
            need_token(request, self._token)
        stored_pins = await self._store.pins(name)
        unread = [file for file in self._unread() if "ipns-record" not in file]
        return json(
            {"pins": [_as_json(pin) for pin in stored_pins], **({"unread": unread} if unread else {})}
        )

    async def pin(self, request: web.Request) -> web.StreamResponse:
        need_token(request, self._token)
        body = await _body_of(request, _PinCall, "a pin is asked for with cid and name")
        return json(_as_json(await self._store.pin(parse_cid(body.cid), body.name)))

    async def unpin(self, request: web.Request) -> web.StreamResponse:
        need_token(request, self._token)
        cid = parse_cid(request.query.get("cid", ""))
        await self._store.unpin(Pin(cid, _name(request), request.query.get("handle", ""), 0))
        return json({})

    async def unpin_all(self, request: web.Request) -> web.StreamResponse:
        need_token(request, self._token)
        body = await _body_of(request, _Unpin, "pins are removed by a list of cid, name and handle")
        pins = [Pin(parse_cid(one.cid), one.name, one.handle, 0) for one in body.pins]
        if isinstance(self._store, Unpinning):
            await self._store.unpin_all(pins)
        else:
            for pin in pins:
                await self._store.unpin(pin)
        return json({})

    async def listing(self, request: web.Request) -> web.StreamResponse:
        need_token(request, self._token)
        store = lister(self._store)
        if store is None:
            return error(404, "NOT_FOUND", "this store does not list what it keeps")
        return json({"entries": await store.listing()})

    async def collect(self, request: web.Request) -> web.StreamResponse:
        need_token(request, self._token)
        if not isinstance(self._store, Collecting):
            return json({"freed": 0})
        # One at a time: a request meanwhile (or again, after a lost answer) waits for the running one.
        if self._collecting is None or self._collecting.done():
            self._collecting = asyncio.ensure_future(self._store.collect())
        return json({"freed": await asyncio.shield(self._collecting)})

    async def _block(self, cid: CID) -> bytes | None:
        """Return a checked block: damaged ones of the disk are not passed on."""
        if cid.hash_code == IDENTITY:
            return cid.digest
        data = (await self._store.get_blocks([cid])).get(cid)
        if data is not None:
            try:
                verify_block(cid, data)
            except (BlockError, LimitError):
                return None
        return data


def _raw(request: web.Request, data: bytes, headers: dict[str, str]) -> web.Response:
    """Return a block, or the bytes of it that Range requests."""
    headers |= {"Content-Type": RAW_TYPE, "Accept-Ranges": "bytes"}
    try:
        part = byte_range(request.headers.get("Range", ""), len(data)) if request.method == "GET" else None
    except ValueError:
        return error(
            416, "RANGE_NOT_SATISFIABLE", "there are no such bytes", {"Content-Range": f"bytes */{len(data)}"}
        )
    if part is None or request.headers.get("If-Range", headers["Etag"]) != headers["Etag"]:
        return web.Response(body=data, headers=headers)
    first, last = part
    headers["Content-Range"] = f"bytes {first}-{last}/{len(data)}"
    return web.Response(status=206, body=data[first : last + 1], headers=headers)


def _seconds(record: bytes) -> int:
    """Return how long a record may be cached, in seconds: its time to live, up to its expiry."""
    parsed = ipns_record.parse_record(record)
    left = parsed.validity - time.time_ns()
    return max(0, min(parsed.ttl, left) // 1_000_000_000)


async def _cids(request: web.Request) -> list[CID]:
    try:
        texts = read_json(await request.read(), type=_Cids).cids
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise UsageError(f"blocks are asked for with a list of cids: {problem}") from None
    if len(texts) > MAX_BATCH:
        raise LimitError(f"{len(texts)} blocks asked for at once, {MAX_BATCH} allowed")
    return [parse_cid(text) for text in texts]


def _name(request: web.Request) -> str:
    name = request.query.get("name", "")
    if not name:
        raise UsageError("pins are asked for by their name")
    return name


async def _body_of(request: web.Request, type_: type[T], rule: str) -> T:
    """Return the body of a request. Raises UsageError, which names the `rule`."""
    try:
        return read_json(await request.read(), type=type_)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise UsageError(f"{rule}: {problem}") from None


def _as_json(pin: Pin) -> dict[str, str | int]:
    return {"cid": str(pin.cid), "name": pin.name, "handle": pin.handle, "created": pin.created}
