"""A stand-in for Filebase: S3 with CIDs in the metadata, the node's RPC, the Pinning Service API, Names, a
gateway.

With a real S3 server behind it (SeaweedFS, which checks every signature) it only forwards and adds the
CID; of a CAR only the header is read then, and its blocks are checked on the gateway's first access, which
is later than the service would. Without a real server, objects are stored in memory, botocore checks
signatures, and CARs are read strictly before the answer, as by RPC. tests/interop/test_filebase_sdk.py
uses it with the service's own client."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
from aiohttp import web
from multidict import CIMultiDict

from ipfsmem.content.cid import CID, ipns_name, parse_cid
from ipfsmem.content.unixfs import file_bytes
from ipfsmem.errors import FormatError
from tests.servers import gateway_of, pinning_rules
from tests.servers.car_store import Arriving, CarStore
from tests.servers.s3 import BUCKET as BUCKET
from tests.servers.s3 import KEY as KEY
from tests.servers.s3 import SECRET as SECRET
from tests.servers.s3 import SmallS3, xml_error

_PIECE = 256 * 1024
_HOP: frozenset[str] = frozenset(
    ("connection", "transfer-encoding", "content-length", "keep-alive", "server", "date")
)


class Filebase(SmallS3):
    """One account."""

    def __init__(self, upstream: str = "") -> None:
        """`upstream` is the URL of an S3 server with the same key and secret."""
        super().__init__()
        self.upstream = upstream
        self.blocks = CarStore()
        self.cids: dict[str, str] = {}  # CID of each object, by `bucket/key`
        self.looks: dict[str, int] = {}
        self.pins: dict[str, dict[str, Any]] = {}
        self.node_pins: set[CID] = set()
        self.names: dict[str, dict[str, Any]] = {}
        self.seen: list[str] = []
        self.pending = 0  # HEADs until an object's CID is available
        self.plain = False  # a bucket that is not IPFS: never a CID
        self.wrong_root: CID | None = None
        self.rooted = False

    def app(self) -> web.Application:
        """The application: all hosts of the service in one."""
        app = web.Application(middlewares=[self.faults.middleware], client_max_size=1 << 30)
        add = app.router.add_route
        add("GET", "/ipfs/{tail:.+}", self.gateway)
        add("POST", "/api/v0/dag/import", self.dag_import)
        add("POST", "/api/v0/pin/rm", self.node_unpin)
        add("GET", "/v1/ipfs/pins", self.pin_list)
        add("POST", "/v1/ipfs/pins", self.pin_add)
        add("GET", "/v1/ipfs/pins/{id}", self.pin_get)
        add("POST", "/v1/ipfs/pins/{id}", self.pin_replace)
        add("DELETE", "/v1/ipfs/pins/{id}", self.pin_delete)
        add("GET", "/v1/names", self.name_list)
        add("POST", "/v1/names", self.name_add)
        add("GET", "/v1/names/{label}", self.name_get)
        add("PUT", "/v1/names/{label}", self.name_put)
        add("DELETE", "/v1/names/{label}", self.name_delete)
        add("*", "/{bucket}{key:/?.*}", self.s3)
        return app

    # -- S3 ----------------------------------------------------------------------------------------------------

    async def s3(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(f"{request.method} {request.path}")
        place = f"{request.match_info['bucket']}{request.match_info['key']}"
        if request.method == "PUT" and request.match_info["key"].strip("/"):
            return await self._put(request, place)
        body = await request.read()
        answer = await self._forward(request, body) if self.upstream else self.own(request, body)
        if request.method in ("HEAD", "GET") and answer.status == 200 and place in self.cids:
            self.looks[place] -= 1
            if self.looks[place] < 0:
                answer.headers["x-amz-meta-cid"] = self.cids[place]
        elif request.method == "DELETE" and answer.status < 300:
            self.cids.pop(place, None)
        return answer

    async def _put(self, request: web.Request, place: str) -> web.Response:
        """Store an object; with a real server, forward it while it arrives."""
        car = request.headers.get("x-amz-meta-import") == "car"
        arriving = self.blocks.arriving(strict=not self.upstream) if car else None
        try:
            if self.upstream and arriving is not None:
                answer, body = await self._forward(request, _past(request, arriving)), b""
            else:
                body = await request.read()
                answer = await self._forward(request, body) if self.upstream else self.own(request, body)
            if answer.status == 200:
                self.cids.pop(place, None)
                self.looks[place] = self.pending
                if not self.plain:
                    if arriving is not None and not self.upstream:
                        arriving.feed(body)
                    self.cids[place] = self._import(body, arriving)
                    arriving = None
                    if not self.pending:
                        answer.headers["x-amz-meta-cid"] = self.cids[place]
        except FormatError as error:
            raise xml_error(400, "InvalidCar", str(error)) from None
        finally:
            if arriving is not None:
                arriving.drop()
        return answer

    def _import(self, body: bytes, arriving: Arriving | None) -> str:
        if arriving is None:
            root, blocks = file_bytes(body)
            self.blocks.update(dict(blocks))
            return str(root.cid)
        return str(self.wrong_root or arriving.keep())

    async def _forward(self, request: web.Request, body: bytes | AsyncIterator[bytes]) -> web.Response:
        """Send the same request to the real server, including the signed Host."""
        headers = CIMultiDict(
            (k, v) for k, v in request.headers.items() if k.lower() not in ("expect", "connection")
        )
        async with (
            aiohttp.ClientSession(auto_decompress=False) as session,
            session.request(
                request.method, _encoded(self.upstream + request.raw_path), data=body or None, headers=headers,
                skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"), allow_redirects=False,
            ) as answer,
        ):  # fmt: skip
            data = await answer.read()
            kept = CIMultiDict((k, v) for k, v in answer.headers.items() if k.lower() not in _HOP)
            return web.Response(status=answer.status, body=data, headers=kept)

    # -- RPC ---------------------------------------------------------------------------------------------------

    def _token(self, request: web.Request, *parts: str) -> None:
        self.seen.append(f"{request.method} {request.path}")
        expected = base64.b64encode(":".join(parts).encode()).decode()
        if request.headers.get("Authorization") != f"Bearer {expected}":
            text = json.dumps(
                {"error": {"reason": "UNAUTHORIZED", "details": "Access token is missing or invalid"}}
            )
            raise web.HTTPUnauthorized(text=text, content_type="application/json")

    async def dag_import(self, request: web.Request) -> web.Response:
        self._token(request, KEY, SECRET, BUCKET)
        part = await (await request.multipart()).next()
        assert isinstance(part, aiohttp.BodyPartReader)
        arriving: Arriving | None = self.blocks.arriving(strict=True)
        assert arriving is not None
        try:
            while piece := await part.read_chunk(_PIECE):
                arriving.feed(piece)
            root, arriving = arriving.keep(), None
        except FormatError as error:
            return web.json_response({"Message": str(error), "Code": 0, "Type": "error"}, status=500)
        finally:
            if arriving is not None:
                arriving.drop()
        missing = self._missing(root)
        if not missing:
            self.node_pins.add(root)
        error_text = f"ipld: could not find {missing}" if missing else ""
        line = json.dumps({"Root": {"Cid": {"/": str(self.wrong_root or root)}, "PinErrorMsg": error_text}})
        return web.Response(text=line + "\n", content_type="application/json")

    def _missing(self, root: CID) -> CID | None:
        from ipfsmem.content.cid import DAG_PB
        from ipfsmem.content.dagpb import decode_node

        stack = [root]
        while stack:
            cid = stack.pop()
            if cid not in self.blocks:
                return cid
            if cid.codec == DAG_PB:
                stack += [link.cid for link in decode_node(self.blocks[cid]).links]
        return None

    async def node_unpin(self, request: web.Request) -> web.Response:
        self._token(request, KEY, SECRET, BUCKET)
        cid = parse_cid(request.query["arg"])
        if cid not in self.node_pins:
            text = {"Message": "not pinned or pinned indirectly", "Code": 0, "Type": "error"}
            return web.json_response(text, status=500)
        self.node_pins.discard(cid)
        return web.json_response({"Pins": [str(cid)]})

    # -- PSA ---------------------------------------------------------------------------------------------------

    def _psa_token(self, request: web.Request) -> None:
        self._token(request, KEY, SECRET, BUCKET)

    async def pin_list(self, request: web.Request) -> web.Response:
        self._psa_token(request)
        query = request.query
        pinning_rules.check_query(query)
        statuses = query.get("status", "pinned").split(",")
        rows = [row for row in self.pins.values() if row["status"] in statuses]
        if "cid" in query:
            rows = [row for row in rows if row["pin"]["cid"] in query["cid"].split(",")]
        if "name" in query:
            rows = [row for row in rows if row["pin"].get("name") == query["name"]]
        if "before" in query:
            rows = [row for row in rows if row["created"] < query["before"]]
        rows.sort(key=lambda row: row["created"], reverse=True)
        limit = min(int(query.get("limit", "10")), self.page)
        answer = web.json_response({"count": len(rows), "results": rows[:limit]})
        self._progress()
        return answer

    async def pin_add(self, request: web.Request) -> web.Response:
        self._psa_token(request)
        pin = await request.json()
        pinning_rules.check_pin(pin)
        self._ticks += 1
        when = datetime(2026, 11, 1, tzinfo=UTC) + timedelta(seconds=self._ticks)
        row = {
            "requestid": f"request-{self._ticks}", "status": "queued",
            "created": when.isoformat(timespec="milliseconds").replace("+00:00", "Z"), "pin": pin,
            "delegates": ["/dns4/node.example/tcp/4001/p2p/12D3KooWExample"], "info": {},
        }  # fmt: skip
        self.pins[str(row["requestid"])] = row
        return web.json_response(row, status=202)

    def _row(self, request: web.Request) -> dict[str, Any]:
        row = self.pins.get(request.match_info["id"])
        if row is None:
            text = json.dumps(
                {"error": {"reason": "NOT_FOUND", "details": "The specified resource was not found"}}
            )
            raise web.HTTPNotFound(text=text, content_type="application/json")
        return row

    async def pin_get(self, request: web.Request) -> web.Response:
        self._psa_token(request)
        answer = web.json_response(self._row(request))
        self._progress()
        return answer

    async def pin_replace(self, request: web.Request) -> web.Response:
        self._psa_token(request)
        row = self._row(request)
        pin = await request.json()
        pinning_rules.check_pin(pin)
        row["pin"] = pin
        return web.json_response(
            row
        )  # 200 where the API requires 202: the service's client accepts nothing else

    async def pin_delete(self, request: web.Request) -> web.Response:
        self._psa_token(request)
        del self.pins[self._row(request)["requestid"]]
        return web.Response(status=202)

    def _progress(self) -> None:
        for row in self.pins.values():
            if row["status"] in ("queued", "pinning"):
                here = self._missing(parse_cid(row["pin"]["cid"])) is None
                row["status"] = "pinned" if here else "failed" if row["status"] == "pinning" else "pinning"

    # -- Names -------------------------------------------------------------------------------------------------

    def _name(self, request: web.Request) -> dict[str, Any]:
        self._token(request, KEY, SECRET)
        row = self.names.get(request.match_info["label"])
        if row is None:
            text = json.dumps({"error": {"reason": "NOT_FOUND", "details": "no such name"}})
            raise web.HTTPNotFound(text=text, content_type="application/json")
        return row

    async def name_list(self, request: web.Request) -> web.Response:
        self._token(request, KEY, SECRET)
        return web.json_response(list(self.names.values()))

    async def name_add(self, request: web.Request) -> web.Response:
        self._token(request, KEY, SECRET)
        asked = await request.json()
        assert "network_private_key" not in asked or asked["label"].startswith("import"), "a key was sent"
        key = ipns_name(hashlib.sha256(asked["label"].encode()).digest())
        row = {
            "label": asked["label"],
            "network_key": key,
            "cid": asked["cid"],
            "sequence": 1,
            "enabled": True,
        }
        self.names[asked["label"]] = row
        return web.json_response(row)

    async def name_get(self, request: web.Request) -> web.Response:
        return web.json_response(self._name(request))

    async def name_put(self, request: web.Request) -> web.Response:
        row = self._name(request)
        row |= await request.json()
        row["sequence"] += 1
        return web.json_response(row)

    async def name_delete(self, request: web.Request) -> web.Response:
        del self.names[self._name(request)["label"]]
        return web.Response(status=204)

    # -- gateway -----------------------------------------------------------------------------------------------

    async def gateway(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(f"GET {request.path}?{request.query_string}")
        assert "Authorization" not in request.headers
        return await gateway_of.answer(request, self.blocks, roots=self._roots, rooted=self.rooted)

    def _roots(self) -> set[CID]:
        pinned = {parse_cid(row["pin"]["cid"]) for row in self.pins.values()}
        return pinned | {parse_cid(cid) for cid in self.cids.values()} | self.node_pins


async def _past(request: web.Request, arriving: Arriving) -> AsyncIterator[bytes]:
    async for piece in request.content.iter_any():
        arriving.feed(piece)
        yield piece


def _encoded(url: str) -> Any:
    from yarl import URL

    return URL(url, encoded=True)
