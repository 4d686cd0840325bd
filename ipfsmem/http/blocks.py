"""Serves the blocks of a store as a trustless gateway, and takes CARs, pins and names from who has the token.

This is what `peer:<url>` talks to, and any IPFS client that speaks the trustless gateway protocol reads from it:

    GET, HEAD /ipfs/{cid}?format=raw|car[&dag-scope=block|entity|all]     also by Accept; `only-if-cached` gives 412
    GET       /ipns/{name}?format=ipns-record
    GET, PUT  /routing/v1/ipns/{name}                                     a record; PUT with the token
    POST      /has        {"cids":[...]} -> {"cids":[...],"lacking":[...]}   those that are here; with the token also
                                                                          what was found damaged and should come again
    POST      /blocks     {"cids":[...]} -> a CAR of those that are here
    POST      /car?root={cid}&name={name}                                 a CAR, with the token -> {"root":cid}
    GET       /pins?name={name} -> {"pins":[{"cid","name","handle","created"}]}
    POST      /pins       {"cid","name"} -> the pin, with the token
    DELETE    /pins?cid=...&name=...&handle=...                           with the token
    POST      /unpin      {"pins":[{"cid","name","handle"}]}              many at once, with the token
    GET       /listing -> {"entries":{name:number}}                       what is stored, with the token; 404 where
                                                                          the store does not list
    POST      /collect    -> {"freed":bytes}                              lets go of what no pin needs, with the token

Whoever knows a CID, or the name of a pin, may read it; both are long enough not to be guessed, and what they lead to
is sealed or meant to be public. Nothing is decrypted, and no files are shown.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from typing import IO, Final

import msgspec
from aiohttp import web

from ipfsmem.canonical import read_json
from ipfsmem.content.car import CarParser, header, read_car, section
from ipfsmem.content.cid import CID, DAG_PB, IDENTITY, parse_cid
from ipfsmem.content.dagpb import TYPE_DIRECTORY, TYPE_HAMT, decode_node, decode_unixfs
from ipfsmem.content.limits import OWN, Limits
from ipfsmem.content.verify import verify_block
from ipfsmem.errors import BlockError, FormatError, LimitError, UsageError
from ipfsmem.http.guard import LOCAL_HOSTS, error, guard, has_token, json, need_token
from ipfsmem.sync import ipns
from ipfsmem.sync.provider import MAX_BATCH, Block, Collecting, Mending, Pin, Provider, Unpinning, lister

RAW_TYPE: Final = "application/vnd.ipld.raw"
CAR_TYPE: Final = "application/vnd.ipld.car"
RECORD_TYPE: Final = "application/vnd.ipfs.ipns-record"
#: Largest CAR that is taken, in bytes.
CAR_MAX: Final = 1024 * 1024 * 1024
_JSON_MAX: Final = 2 * 1024 * 1024
_AHEAD: Final = 32
_FOREVER: Final = "public, max-age=29030400, immutable"
_OPEN: Final = {"Access-Control-Allow-Origin": "*", "X-Content-Type-Options": "nosniff"}


class _Cids(msgspec.Struct):
    cids: list[str]


class _Entry(msgspec.Struct):
    cid: str
    name: str
    handle: str = ""


class _Unpin(msgspec.Struct):
    pins: list[_Entry]


class _PinWish(msgspec.Struct):
    cid: str
    name: str


def app(
    store: Provider,
    *,
    token: str = "",
    hosts: frozenset[str] = LOCAL_HOSTS,
    car_max: int = CAR_MAX,
    limits: Limits = OWN,
    closed: str = "",
) -> web.Application:
    """The server over `store`, which keeps blocks, pins and names. Without a token it takes no writes.

    `hosts`: names under which it may be asked. `limits`: of a CAR that is taken or a tree that is sent. Pins whose
    names begin with `closed` are listed to who has the token only: people chose those names, they can be guessed.
    """
    server = web.Application(middlewares=[guard(hosts)], client_max_size=_JSON_MAX)
    handlers = _Blocks(store, token, car_max, limits, closed)
    server.router.add_get("/ipfs/{cid}", handlers.get_content)  # HEAD too
    server.router.add_get("/ipns/{name}", handlers.get_ipns)
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
        kind = _format_of(request)
        if kind is None:
            return error(406, "NOT_ACCEPTABLE", "this gateway serves format=raw and format=car only", _OPEN)
        tag = f'"{cid}.{kind}{request.query.get("dag-scope", "") if kind == "car" else ""}"'
        if kind == "raw" and tag in request.headers.get("If-None-Match", ""):
            return web.Response(status=304, headers=_OPEN)
        data = await self._block(cid)
        if data is None:
            cached = "only-if-cached" in request.headers.get("Cache-Control", "")
            return error(412 if cached else 404, "NOT_FOUND", f"{cid} is not here", _OPEN)
        common = {
            **_OPEN,
            "Etag": tag if kind == "raw" else f"W/{tag}",
            "X-Ipfs-Path": f"/ipfs/{cid}",
            "X-Ipfs-Roots": str(cid),
            "Cache-Control": _FOREVER,
        }
        if kind == "raw":
            shown = f'attachment; filename="{cid}.bin"'
            return web.Response(
                body=data, headers={**common, "Content-Type": RAW_TYPE, "Content-Disposition": shown}
            )
        return await self._send_car(request, cid, data, common)

    async def _send_car(
        self, request: web.Request, cid: CID, data: bytes, common: dict[str, str]
    ) -> web.StreamResponse:
        scope = request.query.get("dag-scope", "all")
        if scope not in ("block", "entity", "all"):
            return error(400, "BAD_SCOPE", f"dag-scope {scope!r} is not known", _OPEN)
        response = web.StreamResponse(
            headers={
                **common,
                "Content-Type": f"{CAR_TYPE}; version=1; order=dfs; dups=n",
                "Content-Disposition": f'attachment; filename="{cid}.car"',
            }
        )
        await response.prepare(request)
        if request.method != "HEAD":
            await response.write(header([cid]))
            pending: list[bytes] = []
            size = 0
            async for block in self._walk(cid, data, scope):
                pending.append(section(*block))
                size += len(pending[-1])
                if size > 1 << 18:
                    await response.write(b"".join(pending))
                    pending, size = [], 0
            await response.write(b"".join(pending))
        await response.write_eof()
        return response

    async def _walk(self, root: CID, first: bytes, scope: str) -> AsyncIterator[Block]:
        """The tree depth first, each block once. Ends where a block is missing: the reader must compare anyway."""
        known: dict[CID, bytes] = {root: first}
        seen: set[CID] = set()
        stack = [root]
        total = 0
        while stack:
            cid = stack.pop()
            if cid in seen or cid.hash_code == IDENTITY:
                continue
            seen.add(cid)
            if cid not in known:
                # Those below it on the stack will be asked for anyway: one look into the store for many.
                ahead = [other for other in stack[-_AHEAD:] if other not in seen and other not in known]
                known.update(await self._store.get_blocks([cid, *ahead]))
            data = known.pop(cid, None)
            if data is None:
                return
            total += len(data)
            if len(seen) > self._limits.blocks or total > self._limits.total_bytes:
                return
            try:
                verify_block(cid, data)
                children = _children(data, scope) if cid.codec == DAG_PB else []
            except (FormatError, BlockError, LimitError):
                return  # damaged: not passed on, and the head of the answer is gone already
            yield cid, data
            stack += reversed(children)

    async def get_ipns(self, request: web.Request) -> web.StreamResponse:
        asked: str | None = request.query.get("format")
        accepts: str = request.headers.get("Accept", "")
        if asked != "ipns-record" and (asked is not None or RECORD_TYPE not in accepts):
            return error(406, "NOT_ACCEPTABLE", "this gateway serves format=ipns-record only", _OPEN)
        return await self.get_record(request)

    async def get_record(self, request: web.Request) -> web.StreamResponse:
        name = ipns.canonical_name(request.match_info["name"])
        record = await self._store.get_name(name)
        if record is None:
            return error(404, "NOT_FOUND", f"no record of {name} is here", _OPEN)
        return web.Response(
            body=record, headers={**_OPEN, "Content-Type": RECORD_TYPE, "Cache-Control": "public, max-age=60"}
        )

    async def put_record(self, request: web.Request) -> web.StreamResponse:
        need_token(request, self._token)
        name = ipns.canonical_name(request.match_info["name"])
        if request.content_type != RECORD_TYPE:
            return error(406, "NOT_ACCEPTABLE", f"a record comes as {RECORD_TYPE}")
        body = await request.content.read(ipns.MAX_RECORD + 1)
        while len(body) <= ipns.MAX_RECORD and (more := await request.content.read(ipns.MAX_RECORD)):
            body += more
        await self._store.put_name(name, body)
        return web.Response(status=200)

    async def has(self, request: web.Request) -> web.StreamResponse:
        cids = await _cids(request)
        found = await self._store.has(cids)
        answer = {"cids": [str(cid) for cid in cids if cid in found]}
        # To whom may write only: the CIDs of others' blocks are what lets one read them.
        if isinstance(self._store, Mending) and has_token(request, self._token):
            answer["lacking"] = [str(cid) for cid in (await self._store.lacking())[:MAX_BATCH]]
        return json(answer)

    async def blocks(self, request: web.Request) -> web.StreamResponse:
        cids = list(dict.fromkeys(await _cids(request)))
        response = web.StreamResponse(headers={"Content-Type": CAR_TYPE, "Cache-Control": "no-store"})
        first = await self._store.get_blocks(cids[:_AHEAD])  # fails before the answer begins, if it does
        await response.prepare(request)
        await response.write(header([]))
        for start in range(0, len(cids), _AHEAD):
            part = cids[start : start + _AHEAD]
            found = first if not start else await self._store.get_blocks(part)
            await response.write(b"".join(section(cid, found[cid]) for cid in part if cid in found))
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
        """All of a CAR, every block of it checked, before any of it is stored."""
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
        found = await self._store.pins(name)
        return json({"pins": [_shown(pin) for pin in found]})

    async def pin(self, request: web.Request) -> web.StreamResponse:
        need_token(request, self._token)
        try:
            wish = read_json(await request.read(), type=_PinWish)
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            raise UsageError(f"a pin is asked for with cid and name: {problem}") from None
        return json(_shown(await self._store.pin(parse_cid(wish.cid), wish.name)))

    async def unpin(self, request: web.Request) -> web.StreamResponse:
        need_token(request, self._token)
        cid = parse_cid(request.query.get("cid", ""))
        await self._store.unpin(Pin(cid, _name(request), request.query.get("handle", ""), 0))
        return json({})

    async def unpin_all(self, request: web.Request) -> web.StreamResponse:
        need_token(request, self._token)
        try:
            wish = read_json(await request.read(), type=_Unpin)
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            raise UsageError(f"pins are taken away by a list of cid, name and handle: {problem}") from None
        pins = [Pin(parse_cid(one.cid), one.name, one.handle, 0) for one in wish.pins]
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
        # One at a time: who asks meanwhile (or again, having lost the answer) waits for the one that runs.
        if self._collecting is None or self._collecting.done():
            self._collecting = asyncio.ensure_future(self._store.collect())
        return json({"freed": await asyncio.shield(self._collecting)})

    async def _block(self, cid: CID) -> bytes | None:
        """A checked block: what a damaged disk gives is not passed on."""
        if cid.hash_code == IDENTITY:
            return cid.digest
        data = (await self._store.get_blocks([cid])).get(cid)
        if data is not None:
            try:
                verify_block(cid, data)
            except (BlockError, LimitError):
                return None
        return data


def _format_of(request: web.Request) -> str | None:
    """`raw` or `car`; the query wins over Accept (IPIP-0523)."""
    asked = request.query.get("format")
    if asked is not None:
        return asked if asked in ("raw", "car") else None
    accept = request.headers.get("Accept", "")
    for part in accept.split(","):
        kind = part.partition(";")[0].strip().lower()
        if kind in (RAW_TYPE, CAR_TYPE):
            return "raw" if kind == RAW_TYPE else "car"
    return None


def _children(data: bytes, scope: str) -> list[CID]:
    if scope == "block":
        return []
    node = decode_node(data)
    if scope == "entity" and node.data is not None:
        kind = decode_unixfs(node.data)
        if kind.type == TYPE_DIRECTORY:
            return []
        if (
            kind.type == TYPE_HAMT
        ):  # its own shards belong to it; entries have more than the two digits of a slot
            width = len(f"{kind.fanout - 1:X}") if kind.fanout else 2
            return [link.cid for link in node.links if len(link.name) == width]
    return [link.cid for link in node.links]


async def _cids(request: web.Request) -> list[CID]:
    try:
        asked = read_json(await request.read(), type=_Cids).cids
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise UsageError(f"blocks are asked for with a list of cids: {problem}") from None
    if len(asked) > MAX_BATCH:
        raise LimitError(f"{len(asked)} blocks asked for at once, {MAX_BATCH} allowed")
    return [parse_cid(text) for text in asked]


def _name(request: web.Request) -> str:
    name = request.query.get("name", "")
    if not name:
        raise UsageError("pins are asked for by their name")
    return name


def _shown(pin: Pin) -> dict[str, str | int]:
    return {"cid": str(pin.cid), "name": pin.name, "handle": pin.handle, "created": pin.created}
