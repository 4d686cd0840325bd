"""Places that mean harm beside an honest one: what they send costs what it may, and keeps nobody from the rest."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ipfsmem.memory import Memory
from tests.support.browser_lab import playing
from tests.support.web_lab import PEER_TOKEN, Client, ClientError, web_client, words_of

pytestmark = [pytest.mark.interop, pytest.mark.slow]

_PIECE = b"a" * (1 << 20)


class _Endless:
    """A server whose answers go on until somebody hangs up; a list of pins it ends, and with `has_names` what it says of a name."""

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
def test_an_answer_that_never_ends_costs_what_it_may_and_the_honest_place_is_read(
    kind: str, client: Client, url: str, memory: Memory, endless: _Endless
) -> None:
    at = [f"{kind}:{endless.url}", f"gateway:{url}", f"routing:{url}"]
    web = client.open(f"beside {kind}", url, words=words_of(memory), at=at)
    assert web.read("tone")["body"].startswith("Be direct.")
    assert 0 < endless.sent < 1 << 30


def test_a_list_of_what_is_no_cid_names_nothing(
    client: Client, url: str, memory: Memory, endless: _Endless
) -> None:
    endless.has_names = True
    with pytest.raises(ClientError) as failed:
        client.open("lists", url, words=words_of(memory), at=[f"peer:{endless.url}"], token=PEER_TOKEN)
    assert failed.value.kind == "none"


def test_who_asks_with_a_token_is_led_nowhere_else(client: Client, url: str, memory: Memory) -> None:
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


def test_who_asks_to_be_let_in_takes_no_keys_away_and_locks_nothing_for_ever(
    url: str, memory: Memory
) -> None:
    """A browser whose keys nothing else opens is not locked: what was written there and not yet sent would be lost."""
    with playing("chromium") as play:
        said = play("asked", {"at": f"peer:{url}", "token": PEER_TOKEN, "words": words_of(memory)})
    assert said["said"].startswith("this browser keeps a memory")
    assert said["again"] == "opened"
    assert said["locked"].startswith("nothing was locked") and said["kept"]
