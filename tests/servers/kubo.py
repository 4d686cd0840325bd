"""A stand-in for current Kubo, as far as the `kubo` provider uses it; a test cannot install the real program.

It follows Kubo's documentation and source, clause by clause as in docs/reference/providers.md: one name
per pin, a second `pin/add` renames it, an import that pins removes the name, `name` filters by substring,
errors are 500 with JSON, `name/put` refuses records that are not greater, and `name/get` and `name/put`
ask the network first, with a scripted delay. Older versions lack newer features. There is no garbage
collection, and the network is a dictionary."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

from aiohttp import web

from ipfsmem.content.car import car_bytes, read_car
from ipfsmem.content.cid import CID, parse_cid
from ipfsmem.content.dagpb import decode_node
from ipfsmem.errors import SignatureError
from ipfsmem.published import ipns_record
from ipfsmem.testing import SimCloud
from tests.servers.faults import Faults


class FakeKubo:
    """The state of the node; `app()` serves it. `requests` lists commands in order."""

    def __init__(self, version: str = "0.43.1", authorization: str = "") -> None:
        self.version = version
        self.number = tuple(int(part) for part in version.split("."))
        self.authorization = authorization
        self.cloud = SimCloud()
        self.pins: dict[CID, str] = {}
        self.let_go: list[CID] = []  # roots that were momentarily held by no pin, directly or indirectly
        self.records: dict[str, bytes] = {}  # in the node's own store
        self.network: dict[str, bytes] = {}  # in the DHT
        self.delay = 0.0  # seconds that a DHT lookup or put takes
        self.waits: list[tuple[float, float]] = []  # start and end of each lookup that a caller waited for
        #: Number of pins after which a list fails: a streamed list reports it only in an HTTP trailer, which
        #: clients ignore.
        self.breaks_after: int | None = None
        self.nameless = False  # like the proxy of IPFS Cluster: accepts names of pins and shows none
        self.keys = ["self"]
        self.published: list[tuple[str, str]] = []
        self.requests: list[str] = []
        self.connected: list[str] = []
        self.unreachable: set[str] = set()
        self.faults = Faults()

    def app(self) -> web.Application:
        """The server."""
        app = web.Application(middlewares=[self._door, self.faults.middleware], client_max_size=1 << 30)
        app.router.add_post("/api/v0/{command:.*}", self._command)
        return app

    @web.middleware
    async def _door(self, request: web.Request, handler: Any) -> web.StreamResponse:
        if self.authorization and request.headers.get("Authorization") != self.authorization:
            return web.Response(status=403, text="403 - Forbidden\n")
        if request.headers.get("Origin") or request.headers.get("Referer"):
            return web.Response(status=403, text="403 - Forbidden\n")
        answer: web.StreamResponse = await handler(request)
        return answer

    async def _command(self, request: web.Request) -> web.StreamResponse:
        command = request.match_info["command"]
        self.requests.append(command)
        handler = getattr(self, "_" + command.replace("/", "_"), None)
        if handler is None or (command in ("name/put", "name/get") and self.number < (0, 40)):
            return web.Response(status=404, text="404 page not found\n")
        try:
            answer: web.StreamResponse = await handler(request)
        except _Failed as failure:
            return web.json_response({"Message": str(failure), "Code": 0, "Type": "error"}, status=500)
        return answer

    async def _version(self, request: web.Request) -> web.StreamResponse:
        return web.json_response(
            {"Version": self.version, "Commit": "", "Repo": "18", "System": "amd64/linux"}
        )

    async def _dag_import(self, request: web.Request) -> web.StreamResponse:
        reader = read_car(await _file(request))
        blocks = dict(reader)
        self.cloud.blocks.update(blocks)
        lines: list[dict[str, Any]] = []
        for root in reader.roots if request.query.get("pin-roots", "true") == "true" else ():
            problem = self._missing(root)
            if not problem:
                self.pins[root] = "" if self.number >= (0, 35) else self.pins.get(root, "")
            lines.append({"Root": {"Cid": {"/": str(root)}, "PinErrorMsg": problem}})
        if request.query.get("stats") == "true":
            size = sum(map(len, blocks.values()))
            lines.append({"Stats": {"BlockCount": len(blocks), "BlockBytesCount": size}})
        return web.Response(text="".join(json.dumps(line) + "\n" for line in lines))

    async def _dag_export(self, request: web.Request) -> web.StreamResponse:
        root = self._argument(request)
        if root not in self.cloud.blocks:
            raise _Failed(f"block was not found locally (offline): ipld: could not find {root}")
        tree = self.cloud.tree(root)
        return web.Response(body=car_bytes([root], [(cid, self.cloud.blocks[cid]) for cid in tree]))

    async def _block_stat(self, request: web.Request) -> web.StreamResponse:
        cid = self._argument(request)
        return web.json_response({"Key": str(cid), "Size": len(self._block(cid))})

    async def _block_get(self, request: web.Request) -> web.StreamResponse:
        return web.Response(body=self._block(self._argument(request)), content_type="text/plain")

    async def _pin_add(self, request: web.Request) -> web.StreamResponse:
        root = self._argument(request)
        problem = self._missing(root)
        if problem:
            raise _Failed(f"pin: {problem}")
        name = request.query.get("name", "")
        if len(name.encode()) > 255:
            raise _Failed("pin name is too long")
        if self.number >= (0, 35):
            self.pins[root] = name
        elif self.number >= (0, 29):
            self.pins.setdefault(root, name)  # a second name was refused
        else:
            self.pins[root] = ""
        return web.json_response({"Pins": [str(root)]})

    async def _pin_rm(self, request: web.Request) -> web.StreamResponse:
        root = self._argument(request)
        if self.pins.pop(root, None) is None:
            raise _Failed("not pinned or pinned indirectly")
        if not self.is_held(root):
            self.let_go.append(root)
        return web.json_response({"Pins": []})

    async def _pin_ls(self, request: web.Request) -> web.StreamResponse:
        if "arg" in request.query:
            root = self._argument(request)
            if root not in self.pins:
                raise _Failed(f"path '/ipfs/{root}' is not pinned")
            told = request.query.get("names") == "true" and self.number >= (0, 37) and not self.nameless
            return web.json_response(
                {"Keys": {str(root): {"Type": "recursive", "Name": self.pins[root] if told else ""}}}
            )
        part = request.query.get("name", "")
        named = (bool(part) or request.query.get("names") == "true") and not self.nameless
        rows = [
            {"Cid": str(root), "Type": "recursive", **({"Name": name} if named and name else {})}
            for root, name in self.pins.items()
            if part in name
        ]
        if request.query.get("stream") == "true":
            return web.Response(text="".join(json.dumps(row) + "\n" for row in rows[: self.breaks_after]))
        if self.breaks_after is not None:
            raise _Failed("pin: datastore closed")
        return web.json_response({"Keys": {row.pop("Cid"): row for row in rows}})

    async def _name_put(self, request: web.Request) -> web.StreamResponse:
        name, record = request.query["arg"], await _file(request)
        if not record:
            raise _Failed("record is empty")
        if len(record) > ipns_record.MAX_RECORD:
            raise _Failed(
                f"record exceeds maximum size of {ipns_record.MAX_RECORD} bytes, use --force to skip size check"
            )
        try:
            offered = ipns_record.verify_record(name, record)
        except SignatureError:
            raise _Failed("record validation failed: signature verification failed") from None
        known = await self._routed(request, name)
        if known is not None and known != record:
            sequence = ipns_record.parse_record(known).sequence
            if sequence >= offered.sequence:
                raise _Failed(
                    f"existing IPNS record has sequence {sequence} >= new record sequence {offered.sequence}, "
                    "use 'ipfs name put --force' to skip this check"
                )
        self.records[name] = record
        if request.query.get("offline") != "true":
            await self._asks(request)
            self.network[name] = record
        return web.json_response({"Name": name, "Value": offered.value})

    async def _name_get(self, request: web.Request) -> web.StreamResponse:
        record = await self._routed(request, request.query["arg"])
        if record is None:
            raise _Failed("routing: not found")
        return web.Response(body=record, content_type="application/vnd.ipfs.ipns-record")

    async def _routed(self, request: web.Request, name: str) -> bytes | None:
        """Return the best record of the node's own store and, unless offline, of the network."""
        found = [self.records.get(name)]
        if request.query.get("offline") != "true":
            await self._asks(request)
            found.append(self.network.get(name))
        there = [ipns_record.parse_record(record) for record in found if record is not None]
        best = max(there, key=ipns_record.record_order, default=None)
        return best.encoded if best is not None else None

    async def _asks(self, request: web.Request) -> None:
        """Simulate the network's delay, up to the `timeout` of the request."""
        match = re.fullmatch(r"(\d+)s", request.query.get("timeout", ""))
        most = float(match[1]) if match else self.delay
        began = asyncio.get_running_loop().time()
        await asyncio.sleep(min(self.delay, most))
        self.waits.append((began, began + min(self.delay, most)))
        if self.delay > most:
            raise _Failed("context deadline exceeded")

    def waited(self) -> int:
        """Return the number of waits since the last call; concurrent waits count once."""
        times, until = 0, 0.0
        for began, ended in sorted(self.waits):
            times += began >= until
            until = max(until, ended)
        self.waits.clear()
        return times

    async def _swarm_connect(self, request: web.Request) -> web.StreamResponse:
        address = request.query["arg"]
        peer = address.rpartition("/p2p/")[2] if "/p2p/" in address else ""
        if not peer or address in self.unreachable:
            raise _Failed(f"failed to dial {peer}: all dials failed")
        self.connected.append(address)
        return web.json_response({"Strings": [f"connect {peer} success"]})

    async def _key_list(self, request: web.Request) -> web.StreamResponse:
        return web.json_response({"Keys": [{"Name": name, "Id": f"k51{name}"} for name in self.keys]})

    async def _key_gen(self, request: web.Request) -> web.StreamResponse:
        self.keys.append(request.query["arg"])
        return web.json_response({"Name": request.query["arg"], "Id": "k51"})

    async def _name_publish(self, request: web.Request) -> web.StreamResponse:
        await self._asks(request)
        self.published.append((request.query["key"], request.query["arg"]))
        return web.json_response({"Name": "k51", "Value": request.query["arg"]})

    def is_held(self, root: CID) -> bool:
        """Return whether a garbage collection would keep the tree of this root."""
        return any(root in self.cloud.tree(pinned) for pinned in self.pins)

    def _argument(self, request: web.Request) -> CID:
        return parse_cid(request.query["arg"])

    def _block(self, cid: CID) -> bytes:
        data = next(
            (data for known, data in self.cloud.blocks.items() if known.multihash == cid.multihash), None
        )
        if data is None:
            raise _Failed(f"block was not found locally (offline): ipld: could not find {cid}")
        return data

    def _missing(self, root: CID) -> str:
        waiting, seen = [root], set()
        while waiting:
            cid = waiting.pop()
            if cid in seen:
                continue
            seen.add(cid)
            data = self.cloud.blocks.get(cid)
            if data is None:
                return f"ipld: could not find {cid}"
            if cid.codec == 0x70:
                waiting += [link.cid for link in decode_node(data).links]
        return ""


class _Failed(Exception):
    pass


async def _file(request: web.Request) -> bytes:
    part = await (await request.multipart()).next()
    assert part is not None
    return bytes(await part.read())  # type: ignore[union-attr]
