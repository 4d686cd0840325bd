"""Hostile providers next to an honest one: their answers have a bounded cost and hide nothing of the honest one."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from aiohttp import web
from ipfsmem_providers.directory import DirectoryProvider

from ipfsmem.content.car import car_bytes
from ipfsmem.content.cid import parse_cid
from ipfsmem.content.tree import build_tree
from ipfsmem.http import serving
from ipfsmem.memory import Memory
from tests.servers.threaded import serve
from tests.support.browser_lab import playing
from tests.support.web_lab import PEER_TOKEN, Client, ClientError, web_client, words_of

pytestmark = [pytest.mark.interop, pytest.mark.slow]

_PIECE = b"a" * (1 << 20)


class _Endless:
    """A server whose answers never end, except its list of pins; with `has_names` also its answer about a
    name."""

    def __init__(self) -> None:
        self.sent = 0
        self.has_names = False
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path.startswith("/pins"):
                    name = self.path.partition("name=")[2]
                    pins = [{"cid": "../../no cid", "name": name}]
                    self._start(200, "application/json")
                    self.wfile.write(json.dumps({"pins": pins}).encode())
                    return
                if self.path.startswith("/routing/") and outer.has_names:
                    self._start(404, "application/json")
                    self.wfile.write(b'{"error":{"reason":"NOT_FOUND"}}')
                    return
                self._start(404 if "/routing/" in self.path else 200, "text/plain")
                try:
                    while True:
                        self.wfile.write(_PIECE)
                        outer.sent += len(_PIECE)
                except OSError:
                    self.close_connection = True

            def do_POST(self) -> None:
                self._start(200, "application/vnd.ipld.car")

            def _start(self, status: int, kind: str) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def endless() -> Iterator[_Endless]:
    server = _Endless()
    yield server
    server.close()


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with web_client() as started:
        yield started


@pytest.mark.parametrize("kind", ["routing", "gateway"])
def test_endless_answer_is_bounded_and_the_honest_provider_is_read(
    kind: str, client: Client, url: str, memory: Memory, endless: _Endless
) -> None:
    at = [f"{kind}:{endless.url}", f"gateway:{url}", f"routing:{url}"]
    device = client.open(f"beside {kind}", url, words=words_of(memory), at=at)
    assert device.read("tone")["body"].startswith("Be direct.")
    assert 0 < endless.sent < 1 << 30


def test_invalid_cids_in_a_list_are_ignored(
    client: Client, url: str, memory: Memory, endless: _Endless
) -> None:
    endless.has_names = True
    with pytest.raises(ClientError) as failed:
        client.open("lists", url, words=words_of(memory), at=[f"peer:{endless.url}"], token=PEER_TOKEN)
    assert failed.value.kind == "none"


def test_listed_tree_is_downloaded_only_if_proved_to_be_of_this_vault(
    client: Client, url: str, memory: Memory
) -> None:
    """A provider lists a tree of 64 MiB under this wallet's name: only its folder and ring are read, which
    are of another vault."""
    tree = build_tree({"keyring.json": b"{}", **{f"o/{number}": os.urandom(1 << 20) for number in range(64)}})
    held, sent = dict(tree.blocks), 0

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = parse_qs(urlsplit(self.path).query).get("name", [""])[0]
            is_list = self.path.startswith("/pins")
            said = (
                {"pins": [{"cid": str(tree.cid), "name": name}]}
                if is_list
                else {"error": {"reason": "NOT_FOUND"}}
            )
            self._answer(200 if is_list else 404, json.dumps(said).encode())

        def do_POST(self) -> None:
            nonlocal sent
            wanted = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["cids"]
            cids = [parse_cid(one) for one in wanted]
            answer = car_bytes([tree.cid], [(cid, held[cid]) for cid in cids if cid in held])
            sent += len(answer)
            self._answer(200, answer)

        def _answer(self, status: int, data: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        at = f"peer:http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(ClientError) as failed:
            client.open("listed", url, words=words_of(memory), at=[at], token=PEER_TOKEN)
        server.shutdown()
    assert failed.value.kind == "none" and 0 < sent < 1 << 20


def test_request_with_a_token_follows_no_redirect(client: Client, url: str, memory: Memory) -> None:
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(307)
            self.send_header("Location", f"{there}/other{self.path}")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        there = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(ClientError):
            client.open("led", url, words=words_of(memory), at=[f"peer:{there}"], token=PEER_TOKEN)
        server.shutdown()
    assert asked and not [path for path in asked if path.startswith("/other")]


def test_refused_upload_is_reported_next_to_a_failed_read(
    tmp_path: Path, client: Client, url: str, memory: Memory
) -> None:
    failing: dict[str, type[web.HTTPException]] = {}

    @web.middleware
    async def fails(request: web.Request, handler: Any) -> web.StreamResponse:
        await request.read()
        for part, error in failing.items():
            if request.path.startswith(part):
                raise error()
        answer: web.StreamResponse = await handler(request)
        return answer

    def peer() -> web.Application:
        app = serving.app(DirectoryProvider(tmp_path / "kept"), token=PEER_TOKEN)
        app.middlewares.append(fails)
        return app

    with serve(peer) as sick:
        at = [f"peer:{sick}", f"routing:{url}"]
        device = client.open("refused", url, words=words_of(memory), at=at, token=PEER_TOKEN)
        failing |= {"/routing": web.HTTPServiceUnavailable, "/car": web.HTTPForbidden}
        device.write("tone", "Be brief.")
        said = [one["text"] for one in device.sync()["notices"] if one["kind"] == "provider"]
    assert len(said) == 2 and "503" in said[0] and "403" in said[1], said


def test_device_awaiting_admission_is_not_locked_and_keeps_its_keys(url: str, memory: Memory) -> None:
    """Unsent writes would be lost."""
    with playing("chromium") as play:
        said = play("asked", {"at": f"peer:{url}", "token": PEER_TOKEN, "words": words_of(memory)})
    assert said["said"].startswith("these keys do not open the vault")
    assert said["again"] == "opened"
    assert said["locked"].startswith("not locked") and said["kept"]
