"""A WebDAV server over a folder, with only what the provider needs: no locks, no custom properties."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit
from xml.sax.saxutils import escape

from aiohttp import encode_basic_auth, web

from tests.servers.faults import Faults

USER, PASSWORD = "me", "a password of these tests"


class DavServer:
    """The server of one folder; `requests` counts requests by method."""

    def __init__(self, root: Path) -> None:
        self.root, self.faults = root, Faults()
        self.requests: dict[str, int] = {}
        #: Prefix of paths in answers, as behind a proxy; ranges can be disabled.
        self.prefix = ""
        self.ranges = True
        #: A server that a proxy reaches without TLS, and that knows its own address with one scheme only.
        self.behind_tls = False
        #: A server that deletes the target of a rename first, and answers 403 for a missing source.
        self.deletes_first = False
        #: False sizes in listings, by name.
        self.sizes: dict[str, int] = {}

    def app(self) -> web.Application:
        """The application, faults first."""
        made = web.Application(client_max_size=1 << 30, middlewares=[self.faults.middleware])
        made.router.add_route("*", "/{tail:.*}", self._handle)
        return made

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        method = request.method
        self.requests[method] = self.requests.get(method, 0) + 1
        if request.headers.get("Authorization") != encode_basic_auth(USER, PASSWORD):
            return web.Response(status=401, headers={"WWW-Authenticate": 'Basic realm="dav"'})
        path = self._path(request.raw_path)
        body = await request.read()
        if method == "GET":
            return self._get(request, path)
        if method == "PROPFIND":
            return self._propfind(request, path)
        if method == "MKCOL":
            if path.exists() or not path.parent.exists():
                return web.Response(status=405 if path.exists() else 409)
            path.mkdir()
        elif method == "PUT":
            if not path.parent.is_dir() or path.is_dir():
                return web.Response(status=409)
            path.write_bytes(body)
        elif method == "DELETE":
            if not path.exists():
                return web.Response(status=404)
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        elif method == "MOVE":
            return self._move(request, path)
        else:
            return web.Response(status=405)
        return web.Response(status=204 if method == "DELETE" else 201)

    def _path(self, raw: str) -> Path:
        return self.root.joinpath(*(unquote(name) for name in urlsplit(raw).path.split("/") if name))

    def _move(self, request: web.Request, path: Path) -> web.Response:
        if self.behind_tls and "://" in request.headers["Destination"]:
            return web.Response(status=502)
        new = self._path(request.headers["Destination"])
        if not path.exists() and not self.deletes_first:
            return web.Response(status=404)
        if new.exists() and request.headers.get("Overwrite") == "F":
            return web.Response(status=412)
        if new.exists():
            shutil.rmtree(new) if new.is_dir() else new.unlink()
        if not path.exists():
            return web.Response(status=403)
        path.replace(new)
        return web.Response(status=201)

    def _get(self, request: web.Request, path: Path) -> web.Response:
        if not path.is_file():
            return web.Response(status=405 if path.is_dir() else 404)
        data = path.read_bytes()
        span = request.headers.get("Range") if self.ranges else None
        if span is None:
            return web.Response(body=data)
        first, _, last = span.removeprefix("bytes=").partition("-")
        start, end = int(first), min(int(last) + 1, len(data))
        if start >= len(data):
            return web.Response(status=416, headers={"Content-Range": f"bytes */{len(data)}"})
        shown = {"Content-Range": f"bytes {start}-{end - 1}/{len(data)}"}
        return web.Response(status=206, body=data[start:end], headers=shown)

    def _propfind(self, request: web.Request, path: Path) -> web.Response:
        if not path.exists():
            return web.Response(status=404)
        shown = [path, *(sorted(path.iterdir()) if path.is_dir() and request.headers["Depth"] == "1" else ())]
        text = "".join(map(self._response, shown))
        xml = f'<?xml version="1.0"?><d:multistatus xmlns:d="DAV:">{text}</d:multistatus>'
        return web.Response(status=207, text=xml, content_type="application/xml")

    def _response(self, path: Path) -> str:
        href = quote(f"{self.prefix}/{path.relative_to(self.root).as_posix()}".removesuffix("."))
        if path.is_dir():
            props = "<d:resourcetype><d:collection/></d:resourcetype>"
        else:
            status = path.stat()
            when = format_datetime(datetime.fromtimestamp(status.st_mtime, UTC), usegmt=True)
            props = f"<d:resourcetype/><d:getcontentlength>{self.sizes.get(path.name, status.st_size)}</d:getcontentlength><d:getlastmodified>{when}</d:getlastmodified>"
            props += f'<d:getetag>"{status.st_mtime_ns}"</d:getetag>'
        return (
            f"<d:response><d:href>{escape(href)}</d:href>"
            f"<d:propstat><d:prop>{props}</d:prop><d:status>HTTP/1.1 200 OK</d:status></d:propstat>"
            "<d:propstat><d:prop><d:other/></d:prop><d:status>HTTP/1.1 404 Not Found</d:status></d:propstat></d:response>"
        )
