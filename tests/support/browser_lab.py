"""The browser client in a real browser: a page of it is opened, plays something, and sends back what came out.

Chromium without a window, driven by nothing but its address: no driver is needed. Nothing here is a test.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Empty, Queue
from typing import Any
from urllib.parse import urlencode

from tests.interop.counterparts import built_web, missing

_SECONDS = 90
_PAGE = b'<!doctype html><meta charset="utf-8"><body><script type="module" src="/page.js"></script>'


def _chromium() -> str:
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next((found for name in names if (found := shutil.which(name))), None)
    return found or missing("no Chromium is installed")


class Pages:
    """Serves the client's page to a browser that keeps one profile."""

    def __init__(self, url: str, said: Queue[Any], profile: Path) -> None:
        self._url = url
        self._said = said
        self._profile = profile

    def play(self, play: str, **asked: str | int) -> Any:
        """What comes out of a play of `web/tests/page.ts`. AssertionError with the page's error."""
        address = f"{self._url}/?{urlencode({'play': play, **asked})}"
        command = [
            _chromium(), "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
            f"--user-data-dir={self._profile}", address,
        ]  # fmt: skip
        browser = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            said = self._said.get(timeout=_SECONDS)
        except Empty:
            raise AssertionError(f"the page said nothing in {_SECONDS} s") from None
        finally:
            browser.terminate()
            browser.wait(30)
        assert "error" not in said, said["error"]
        return said["answer"]


@contextlib.contextmanager
def pages(profile: Path) -> Iterator[Pages]:
    """The client's page at an address of this machine; the test is skipped where there is no Chromium."""
    _chromium()
    built = built_web()
    said: Queue[Any] = Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = built / self.path.partition("?")[0].lstrip("/")
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
            """Nothing is logged."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield Pages(f"http://127.0.0.1:{server.server_port}", said, profile)
        finally:
            server.shutdown()
