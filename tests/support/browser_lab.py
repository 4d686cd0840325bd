"""Runs plays of the browser client in real browsers and returns their results.

The plays are in `web/tests/page.ts`. Contains no tests."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from typing import Any
from urllib.parse import urlencode

from tests.interop.counterparts import built_web
from tests.support.browsers import browser

_SECONDS = 120
_PAGE = b'<!doctype html><meta charset="utf-8"><body><script type="module" src="/page.js"></script>'

#: The name of a play, and its arguments.
Play = tuple[str, dict[str, str | int]]


def played(name: str, plays: Sequence[Play]) -> list[Any]:
    """Run plays one after another in one browser; return their results. AssertionError with the error of a
    page."""
    with playing(name) as play:
        return [play(*one) for one in plays]


@contextlib.contextmanager
def playing(name: str) -> Iterator[Callable[[str, dict[str, str | int]], Any]]:
    """Yield a function that runs a play in a new page of one browser and returns its result."""
    with served() as (url, said), contextlib.closing(asyncio.new_event_loop()) as loop:
        opened = browser(name)
        page = loop.run_until_complete(opened.__aenter__())

        def play(name: str, asked: dict[str, str | int]) -> Any:
            loop.run_until_complete(page.goto(f"{url}/?{urlencode({'play': name, **asked})}"))
            answer = loop.run_until_complete(asyncio.to_thread(said.get, timeout=_SECONDS))
            assert "error" not in answer, answer["error"]
            return answer["answer"]

        try:
            yield play
        finally:
            loop.run_until_complete(opened.__aexit__(None, None, None))


@contextlib.contextmanager
def served() -> Iterator[tuple[str, Queue[Any]]]:
    """Serve the client's page on loopback; yield its address and the results that it reports."""
    built = built_web()
    said: Queue[Any] = Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.partition("?")[0].lstrip("/")
            # The library in its packaged form is in the tests' build folder.
            path = (built.parent if name.startswith("lib/") else built) / name
            data, kind = (path.read_bytes(), "text/javascript") if path.is_file() else (_PAGE, "text/html")
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(data)

        def do_POST(self) -> None:
            said.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Suppress the log."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", said
        finally:
            server.shutdown()
