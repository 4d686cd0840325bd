"""A stand-in for Pinata: v3 (uploads, CARs, TUS, list, pin queue, delete), the legacy API, and a dedicated
gateway.

It follows the service's published client and documentation, and tests/interop/test_pinata_sdk.py uses it
with that client. Undocumented behaviour is our choice, marked in comments."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from aiohttp import web
from aiohttp.helpers import parse_mimetype
from aiohttp.multipart import parse_content_disposition

from ipfsmem.content.car import read_car
from ipfsmem.content.cid import CID, parse_cid
from ipfsmem.content.dagpb import TYPE_FILE, BlockLink, UnixFS, encode_unixfs
from ipfsmem.content.unixfs import directory, file_bytes
from ipfsmem.errors import FormatError
from tests.servers import gateway_of
from tests.servers.faults import Faults
from tests.support.content_lab import encode_node, pb_cid

#: A key of each kind.
ADMIN_KEY = "eyJhbGciOiJIUzI1NiJ9.admin-key.signature"
V3_KEY = "eyJhbGciOiJIUzI1NiJ9.v3-key.signature"
LEGACY_KEY = "eyJhbGciOiJIUzI1NiJ9.legacy-key.signature"
BARE_KEY = "eyJhbGciOiJIUzI1NiJ9.scopeless-key.signature"
GATEWAY_TOKEN = "gateway-secret"
_CHUNK = 256 * 1024
#: Maximum bytes of a request that is not resumable, and of one piece of a resumable one (docs.pinata.cloud,
#: "Limits", "Upload"). The documentation says 50 MiB for a piece; SDK 2.5.6 sends one byte more, and the
#: service accepts it.
REQUEST_MAX = 100 * 1000**2
PATCH_MAX = 50 * 1024**2 + 1
_KEYVALUES_MAX = 10


class Pinata:
    """One account."""

    def __init__(self) -> None:
        self.faults = Faults()
        self.blocks: dict[CID, bytes] = {}
        self.files: dict[str, dict[str, Any]] = {}
        self.jobs: dict[str, dict[str, Any]] = {}
        self.uploads: dict[str, dict[str, Any]] = {}
        self.seen: list[str] = []
        self.sizes: list[int] = []  # bytes of each upload's body
        self.paid = True  # accepts CARs
        #: How v3 treats several files in one request: "refused", as documented; "kept" (a folder, as
        #: observed), "first" (one of the files is stored), or "uncounted" (one is stored, without saying so).
        #: The legacy API accepts folders as documented, except with the last two.
        self.folders = "refused"
        self.rooted = True  # its gateway serves roots only
        self.pending = 0  # lookups of an entry until a CAR's CID is available
        self.lost = False  # CARs vanish while they are processed
        self.wrong_root: CID | None = None  # the CID that CARs get instead of their root
        self.network_blocks: dict[CID, bytes] = {}  # the blocks that pin_by_cid finds
        self.ignores_filters = False
        self.page = 1000  # maximum page size
        self.now: Callable[[], float] = time.monotonic
        #: Requests per minute: of the plan (None: unlimited), and below `/data/`, which has its own limit in
        #: each plan.
        self.per_minute: int | None = None
        self.data_per_minute = 30
        self._asked: dict[str, deque[float]] = {"": deque(), "/data/": deque()}
        self._ticks = 0

    def app(self) -> web.Application:
        """The application: all hosts of the service in one."""
        app = web.Application(middlewares=[self.faults.middleware], client_max_size=1 << 30)
        add = app.router.add_route
        add("POST", "/v3/files", self.upload)
        add("PATCH", "/v3/files/tus/{id}", self.tus_patch)
        add("HEAD", "/v3/files/tus/{id}", self.tus_head)
        add("POST", "/v3/files/public/pin_by_cid", self.pin_by_cid)
        add("GET", "/v3/files/public/pin_by_cid", self.queue)
        add("GET", "/v3/files/{network}", self.list)
        add("GET", "/v3/files/{network}/{id}", self.file)
        add("PUT", "/v3/files/{network}/{id}", self.update)
        add("DELETE", "/v3/files/{network}/{id}", self.delete)
        for base in ("", "/v3"):  # the SDK sends requests below its endpoint, whichever that is
            add("GET", base + "/data/testAuthentication", self.test_authentication)
        add("POST", "/pinning/pinFileToIPFS", self.legacy_upload)
        add("POST", "/pinning/pinByHash", self.legacy_pin)
        add("PUT", "/pinning/hashMetadata", self.legacy_rename)
        add("DELETE", "/pinning/unpin/{cid}", self.legacy_unpin)
        add("GET", "/data/pinList", self.legacy_list)
        app.router.add_get("/ipfs/{tail:.+}", self.gateway)
        return app

    # -- keys --------------------------------------------------------------------------------------------------

    def _check(self, request: web.Request, kind: str) -> None:
        self.seen.append(f"{request.method} {request.path}")
        self._count(request.path)
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if token not in (ADMIN_KEY, V3_KEY, LEGACY_KEY, BARE_KEY):
            raise _error(401, "INVALID_CREDENTIALS", "Invalid or missing token")
        if kind and token not in (kind, ADMIN_KEY):
            raise _error(
                403, "NO_SCOPES_FOUND", "This key does not have the required scopes associated with it"
            )

    def _count(self, path: str) -> None:
        """Refuse requests beyond the documented rates."""
        limits = {"": self.per_minute, "/data/": self.data_per_minute}
        for part, limit in limits.items():
            asked = self._asked[part]
            while asked and asked[0] <= self.now() - 60:
                asked.popleft()
            if limit is None or not path.startswith(part):
                continue
            if len(asked) >= limit:
                wait = max(1, round(asked[0] + 60 - self.now() + 0.5))
                text = json.dumps({"error": {"reason": "RATE_LIMITED", "details": "Too many requests"}})
                raise web.HTTPTooManyRequests(
                    text=text, content_type="application/json", headers={"Retry-After": str(wait)}
                )
            asked.append(self.now())

    async def test_authentication(self, request: web.Request) -> web.Response:
        self._check(request, "")  # true for a key without any scope
        return web.json_response({"message": "Congratulations! You are communicating with the Pinata API!"})

    # -- v3 ----------------------------------------------------------------------------------------------------

    async def upload(self, request: web.Request) -> web.Response:
        self._check(request, V3_KEY)
        self.sizes.append(request.content_length or 0)
        if "Upload-Length" in request.headers:
            return self._tus_begin(request)
        if (request.content_length or 0) > REQUEST_MAX:
            raise _error(413, "PAYLOAD_TOO_LARGE", "Files over 100 MB need resumable uploads")
        fields, files = await _form(request)
        return web.json_response({"data": self._add(fields, files)})

    def _add(self, fields: dict[str, str], files: list[tuple[str, bytes]]) -> dict[str, Any]:
        if not files:
            raise _error(400, "INVALID_REQUEST", "no file")
        network = fields.get("network", "private")  # the service's default
        keyvalues = _keyvalues(json.loads(fields.get("keyvalues", "{}")))
        name = fields.get("name") or files[0][0]
        if fields.get("car") == "true":
            if not self.paid:
                raise _error(403, "FORBIDDEN", "CAR uploads are only available on paid plans")
            if network != "public":
                raise _error(400, "INVALID_REQUEST", "car is for the public network")
            return self._add_car(files[0][1], name, keyvalues)
        if len(files) > 1 and self.folders == "refused":
            raise _error(400, "INVALID_REQUEST", "The V3 Upload endpoint does not support folder uploads")
        kept = files[:1] if self.folders in ("first", "uncounted") else files
        cid = self._layout(kept)
        size = sum(len(data) for _, data in kept)
        entry = self._entry(str(cid), name, keyvalues, network, size, len(kept))
        if self.folders == "uncounted":
            del entry["number_of_files"]
        return entry

    def _add_car(self, data: bytes, name: str, keyvalues: dict[str, str]) -> dict[str, Any]:
        try:
            reader = read_car(data)
            blocks = dict(reader)
            [root] = reader.roots
        except (FormatError, ValueError) as error:
            raise _error(400, "INVALID_CAR", str(error)) from None
        self.blocks |= blocks
        root = self.wrong_root or root
        entry = self._entry(str(root), name, keyvalues, "public", len(data), 1)
        if self.pending and not entry["is_duplicate"]:
            entry |= {"_later": str(root), "_looks": self.pending, "cid": "pending"}
        return _shown(entry)

    def _entry(
        self, cid: str, name: str, keyvalues: dict[str, str], network: str, size: int, count: int
    ) -> dict[str, Any]:
        for entry in self.files.values():  # our choice: the same content in one network is one entry
            if entry["network"] == network and cid in (entry["cid"], entry.get("_later")):
                entry["is_duplicate"] = True
                return entry
        self._ticks += 1
        created = datetime(2026, 11, 1, tzinfo=UTC) + timedelta(seconds=self._ticks)
        entry = {
            "id": f"0192{self._ticks:04x}-0000-7000-8000-{self._ticks:012x}", "user_id": "u", "name": name, "cid": cid,
            "created_at": created.isoformat(timespec="milliseconds").replace("+00:00", "Z"), "size": size,
            "number_of_files": count, "mime_type": "application/octet-stream", "group_id": None,
            "keyvalues": keyvalues, "vectorized": False, "network": network, "is_duplicate": False,
        }  # fmt: skip
        self.files[entry["id"]] = entry
        return entry

    def _layout(self, files: list[tuple[str, bytes]]) -> CID:
        """Return a layout other than ours, as Pinata's is unknown: every file of a folder is a separate
        dag-pb node."""
        if len(files) == 1 and "/" not in files[0][0]:
            root, blocks = file_bytes(files[0][1])
            self.blocks |= dict(blocks)
            return root.cid
        tops = {path.partition("/")[0] for path, _ in files}
        if len(tops) != 1:
            raise _error(
                400, "INVALID_REQUEST", "More than one file and/or directory was provided for pinning."
            )
        tree: dict[str, Any] = {}
        for path, data in files:
            *folders, name = path.split("/")[1:]
            at = tree
            for folder in folders:
                at = at.setdefault(folder, {})
            at[name] = data
        return self._folder(tree)[0]

    def _folder(self, tree: dict[str, Any]) -> tuple[CID, int]:
        links = []
        for name, value in tree.items():
            cid, size = self._folder(value) if isinstance(value, dict) else self._leaf(value)
            links.append(BlockLink(name, cid, size))
        made = directory(links)
        self.blocks |= dict(made.blocks)
        return made.cid, made.tsize

    def _leaf(self, data: bytes) -> tuple[CID, int]:
        """A file as older importers made it: nodes of 256 KiB below one node."""
        if len(data) <= _CHUNK:
            return self._node([], UnixFS(TYPE_FILE, data, len(data)))
        chunks = [data[start : start + _CHUNK] for start in range(0, len(data), _CHUNK)]
        links = [BlockLink("", *self._node([], UnixFS(TYPE_FILE, chunk, len(chunk)))) for chunk in chunks]
        return self._node(links, UnixFS(TYPE_FILE, b"", len(data), tuple(len(chunk) for chunk in chunks)))

    def _node(self, links: list[BlockLink], message: UnixFS) -> tuple[CID, int]:
        block = encode_node(links, encode_unixfs(message))
        cid = pb_cid(hashlib.sha256(block).digest())
        self.blocks[cid] = block
        return cid, len(block) + sum(link.tsize for link in links)

    async def list(self, request: web.Request) -> web.Response:
        self._check(request, V3_KEY)
        query = request.query
        limit = min(int(query.get("limit", "10")), self.page)
        pending = query.get("cidPending") == "true"
        rows = [
            entry for entry in self.files.values()
            if entry["network"] == request.match_info["network"] and (entry["cid"] == "pending") == pending
        ]  # fmt: skip
        if not self.ignores_filters:
            for field in ("name", "cid"):
                if field in query:
                    rows = [row for row in rows if row[field] == query[field]]
            for key, value in query.items():
                if key.startswith(("keyvalues[", "metadata[")):
                    rows = [row for row in rows if row["keyvalues"].get(key.partition("[")[2][:-1]) == value]
        rows.sort(key=lambda row: row["created_at"], reverse=query.get("order", "DESC") == "DESC")
        start = int(base64.b64decode(query["pageToken"])) if query.get("pageToken") else 0
        more = start + limit < len(rows)
        token = base64.b64encode(str(start + limit).encode()).decode() if more else None
        shown = [_shown(row) for row in rows[start : start + limit]]
        return web.json_response({"data": {"files": shown, "next_page_token": token}})

    def _find(self, request: web.Request) -> dict[str, Any]:
        entry = self.files.get(request.match_info["id"])
        if entry is None or entry["network"] != request.match_info["network"]:
            raise _error(404, "NOT_FOUND", "File not found")
        return entry

    async def file(self, request: web.Request) -> web.Response:
        self._check(request, V3_KEY)
        entry = self._find(request)
        if entry["cid"] == "pending":
            if self.lost:
                del self.files[entry["id"]]
                raise _error(404, "NOT_FOUND", "File not found")
            entry["_looks"] -= 1
            if entry["_looks"] <= 0:
                entry["cid"] = entry.pop("_later")
        return web.json_response({"data": _shown(entry)})

    async def update(self, request: web.Request) -> web.Response:
        self._check(request, V3_KEY)
        entry = self._find(request)
        entry |= {key: value for key, value in (await request.json()).items() if key in ("name", "keyvalues")}
        return web.json_response({"data": _shown(entry)})

    async def delete(self, request: web.Request) -> web.Response:
        self._check(request, V3_KEY)
        del self.files[self._find(request)["id"]]
        return web.json_response({"data": None})

    async def pin_by_cid(self, request: web.Request) -> web.Response:
        self._check(request, V3_KEY)
        asked = await request.json()
        try:
            cid = parse_cid(asked["cid"])
        except (KeyError, FormatError):
            raise _error(400, "INVALID_CID", "invalid cid") from None
        found = self.network_blocks | self.blocks
        job = {
            "id": f"job-{len(self.jobs)}", "cid": str(cid), "name": asked.get("name"), "status": "searching",
            "date_queued": "2026-11-01T00:00:00Z", "keyvalues": asked.get("keyvalues"), "host_nodes": [],
            "group_id": None,
        }  # fmt: skip
        self.jobs[job["id"]] = job
        if cid in found:
            job["status"] = "prechecking"
        return web.json_response({"data": job})

    async def queue(self, request: web.Request) -> web.Response:
        self._check(request, V3_KEY)
        shown = [job for job in self.jobs.values() if request.query.get("cid", job["cid"]) == job["cid"]]
        answer = web.json_response({"data": {"jobs": shown, "next_page_token": None}})
        for job in shown:  # each lookup advances it
            cid = parse_cid(job["cid"])
            if job["status"] == "prechecking":
                found = dict(gateway_of.below(self.network_blocks | self.blocks, cid))
                self.blocks |= found
                self._entry(job["cid"], job["name"] or job["cid"], job["keyvalues"] or {}, "public", 0, 1)
                del self.jobs[job["id"]]
        return answer

    # -- TUS ---------------------------------------------------------------------------------------------------

    def _tus_begin(self, request: web.Request) -> web.Response:
        pairs = [
            item.partition(" ") for item in request.headers.get("Upload-Metadata", "").split(",") if item
        ]
        fields = {key: base64.b64decode(value).decode() for key, _, value in pairs}
        if fields.get("car") == "true" and not self.paid:
            raise _error(403, "FORBIDDEN", "CAR uploads are only available on paid plans")
        number = f"upload{len(self.uploads)}"
        self.uploads[number] = {
            "length": int(request.headers["Upload-Length"]), "fields": fields, "data": bytearray(), "cid": "",
        }  # fmt: skip
        return web.Response(status=201, headers={"Location": f"{request.url.origin()}/v3/files/tus/{number}"})

    async def tus_head(self, request: web.Request) -> web.Response:
        self._check(request, V3_KEY)
        upload = self.uploads.get(request.match_info["id"])
        if upload is None:
            return web.Response(status=404)
        headers = {"Upload-Offset": str(len(upload["data"])), "Upload-Length": str(upload["length"])}
        return web.Response(headers=headers | ({"upload-cid": upload["cid"]} if upload["cid"] else {}))

    async def tus_patch(self, request: web.Request) -> web.Response:
        self._check(request, V3_KEY)
        upload = self.uploads.get(request.match_info["id"])
        if upload is None:
            return web.Response(status=404)
        if request.content_type != "application/offset+octet-stream":
            return web.Response(status=415)
        if int(request.headers["Upload-Offset"]) != len(upload["data"]):
            return web.Response(status=409)
        if (request.content_length or 0) > PATCH_MAX:
            return web.Response(status=413)
        async for piece in request.content.iter_any():  # bytes received before a break are kept
            upload["data"] += piece
        headers = {"Upload-Offset": str(len(upload["data"]))}
        if len(upload["data"]) == upload["length"]:
            fields = upload["fields"]
            entry = self._add(
                fields | {"name": fields["filename"]}, [(fields["filename"], bytes(upload["data"]))]
            )
            upload["cid"] = headers["upload-cid"] = entry["cid"]
        return web.Response(status=204, headers=headers)

    # -- legacy ------------------------------------------------------------------------------------------------

    async def legacy_upload(self, request: web.Request) -> web.Response:
        self._check(request, LEGACY_KEY)
        self.sizes.append(request.content_length or 0)
        fields, files = await _form(request)
        about = json.loads(fields.get("pinataMetadata", "{}"))
        files = files[:1] if self.folders in ("first", "uncounted") else files
        cid = self._layout(files)
        entry = self._entry(
            str(cid), about.get("name") or "", _keyvalues(about.get("keyvalues") or {}), "public",
            sum(len(data) for _, data in files), len(files),
        )  # fmt: skip
        return web.json_response({
            "IpfsHash": str(cid), "PinSize": entry["size"], "Timestamp": entry["created_at"], "ID": entry["id"],
            "Name": entry["name"], "NumberOfFiles": None if self.folders == "uncounted" else entry["number_of_files"], "MimeType": entry["mime_type"],
            "GroupId": None, "Keyvalues": entry["keyvalues"], "isDuplicate": entry["is_duplicate"],
        })  # fmt: skip

    async def legacy_list(self, request: web.Request) -> web.Response:
        self._check(request, LEGACY_KEY)
        query = request.query
        rows = [
            {
                "id": entry["id"], "ipfs_pin_hash": entry["cid"], "size": entry["size"],
                "date_pinned": entry["created_at"], "number_of_files": entry["number_of_files"],
                "metadata": {"name": entry["name"], "keyvalues": entry["keyvalues"]},
            }
            for entry in self.files.values()
            if query.get("hashContains", "") in entry["cid"]
            # the service's name filter matches substrings
            and query.get("metadata[name]", "") in entry["name"]
        ]  # fmt: skip
        rows.sort(key=lambda row: row["date_pinned"], reverse=True)
        start, limit = int(query.get("pageOffset", "0")), min(int(query.get("pageLimit", "10")), 1000)
        return web.json_response({"count": len(rows), "rows": rows[start : start + limit]})

    async def legacy_pin(self, request: web.Request) -> web.Response:
        self._check(request, LEGACY_KEY)
        asked = await request.json()
        cid = asked["hashToPin"]
        found = dict(gateway_of.below(self.network_blocks | self.blocks, parse_cid(cid)))
        name = (asked.get("pinataMetadata") or {}).get("name") or ""
        if found:
            self.blocks |= found
            self._entry(cid, name, {}, "public", 0, 1)
        return web.json_response({"id": "job", "ipfsHash": cid, "status": "prechecking", "name": name})

    async def legacy_rename(self, request: web.Request) -> web.Response:
        self._check(request, LEGACY_KEY)
        asked = await request.json()
        for entry in self.files.values():
            if entry["cid"] == asked["ipfsPinHash"]:
                entry["name"] = asked["name"]
        return web.Response(text="OK")

    async def legacy_unpin(self, request: web.Request) -> web.Response:
        self._check(request, LEGACY_KEY)
        for key, entry in list(self.files.items()):
            if entry["cid"] == request.match_info["cid"]:
                del self.files[key]
                return web.Response(text="OK")
        raise _error(400, "CURRENT_USER_HAS_NOT_PINNED_CID", "The current user has not pinned the cid")

    # -- gateway -----------------------------------------------------------------------------------------------

    async def gateway(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(f"GET {request.path}?{request.query_string}")
        given = request.headers.get("x-pinata-gateway-token") or request.query.get("pinataGatewayToken")
        if given != GATEWAY_TOKEN:
            return web.Response(status=401, text="no access")
        return await gateway_of.answer(request, self.blocks, roots=self._roots, rooted=self.rooted)

    def _roots(self) -> set[CID]:
        return {
            parse_cid(e["cid"])
            for e in self.files.values()
            if e["network"] == "public" and e["cid"] != "pending"
        }


async def _form(request: web.Request) -> tuple[dict[str, str], list[tuple[str, bytes]]]:
    """Return the parts of a form. Split by hand, because aiohttp's reader is slow for a folder of
    thousands of files."""
    boundary = parse_mimetype(request.headers["Content-Type"]).parameters["boundary"]
    fields: dict[str, str] = {}
    files: list[tuple[str, bytes]] = []
    start, *parts = (b"\r\n" + await request.read()).split(f"\r\n--{boundary}".encode())
    if start or not parts or not parts[-1].startswith(b"--"):
        raise _error(400, "INVALID_REQUEST", "a form that does not end")
    for part in parts[:-1]:
        head, _, data = part.partition(b"\r\n\r\n")
        lines = (line.partition(b":") for line in head.strip().split(b"\r\n"))
        about = {name.lower(): value.strip().decode() for name, _, value in lines}
        _, options = parse_content_disposition(about[b"content-disposition"])
        if options["name"] == "file":
            files.append((options.get("filename") or "file", data))
        else:
            fields[options["name"]] = data.decode()
    return fields, files


def _keyvalues(given: Any) -> dict[str, str]:
    """Parse the key-values of a file: texts, ten at most."""
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise _error(400, "INVALID_REQUEST", "keyvalues must be an object of strings")
    if len(given) > _KEYVALUES_MAX:
        raise _error(400, "INVALID_REQUEST", "a maximum of 10 keyvalues")
    return given


def _shown(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if not key.startswith("_")}


def _error(status: int, reason: str, details: str) -> web.HTTPException:
    kinds: dict[int, type[web.HTTPException]] = {
        400: web.HTTPBadRequest, 401: web.HTTPUnauthorized, 403: web.HTTPForbidden, 404: web.HTTPNotFound,
    }  # fmt: skip
    text = json.dumps({"error": {"reason": reason, "details": details}})
    if status == 413:
        return web.HTTPRequestEntityTooLarge(0, 0, text=text, content_type="application/json")
    return kinds[status](text=text, content_type="application/json")
