"""Many versions and names that refer to each other: the search for the newest ends, and its cost is linear
in their number."""

from __future__ import annotations

import asyncio
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ipfsmem.content.cid import ipns_name
from ipfsmem.memory import Memory
from ipfsmem.published.ipns_record import make_record
from ipfsmem.seal.primitives import Signer25519
from ipfsmem.vault.home import Home
from tests.support.web_lab import PEER_TOKEN, WALLET, by_wallet, root_of, web_client

pytestmark = [pytest.mark.interop, pytest.mark.slow]


@pytest.fixture
def nameless(url: str) -> Iterator[str]:
    """The peer at `url` as a service that lists pins and stores no names."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._pass_on(None)

        def do_POST(self) -> None:
            self._pass_on(self.rfile.read(int(self.headers.get("Content-Length", 0))))

        def _pass_on(self, body: bytes | None) -> None:
            if self.path.startswith("/routing/"):
                self._answer(404, "application/json", b'{"error":{"reason":"NOT_FOUND"}}')
                return
            kept = {
                name: self.headers[name]
                for name in ("Accept", "Authorization", "Content-Type")
                if name in self.headers
            }
            try:
                with urllib.request.urlopen(urllib.request.Request(url + self.path, body, kept)) as got:
                    self._answer(got.status, got.headers["Content-Type"], got.read())
            except urllib.error.HTTPError as error:
                self._answer(error.code, error.headers["Content-Type"], error.read())

        def _answer(self, status: int, kind: str, data: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_vault_published_by_two_devices_in_turns_opens_by_a_pin_list(
    nameless: str, url: str, memory: Memory, tmp_path: Path
) -> None:
    home = Home(folder=tmp_path / "second", label="second")
    how = {"provider": f"peer:{url}", "unlock": WALLET, "passphrase": False, "home": home}
    with asyncio.run(Memory.recover("shared", **how)) as second:  # type: ignore[arg-type]
        for turn in range(22):
            for device in (memory, second):
                device.write(f"turn-{device.replica.config.label}", f"turn {turn}")
                last = root_of(device)
        assert last
        with web_client() as client:
            web = client.open("listed", nameless, at=[f"peer:{nameless}"], token=PEER_TOKEN, **by_wallet())
            assert web.read("turn-second")["body"].startswith("turn 21")


def test_endless_chain_of_device_names_is_not_followed(url: str, memory: Memory) -> None:
    """Only an anchor leads to another name, over at most eight."""
    keys = {memory.replica.device.sign_public: memory.replica.device.sign_seed}
    names = {ipns_name(public): public for public in keys}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            public = names.get(self.path.rpartition("/")[2])
            self.send_response(404 if public is None else 200)
            self.send_header("Content-Type", "application/vnd.ipfs.ipns-record")
            self.end_headers()
            if public is not None:
                seed = len(names).to_bytes(32, "big")
                following = Signer25519(seed).public
                keys[following], names[ipns_name(following)] = seed, following
                self.wfile.write(
                    make_record(keys[public], f"/ipns/{ipns_name(following)}", sequence=2**40, validity=2**62)
                )

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        at = [f"routing:http://127.0.0.1:{server.server_address[1]}", f"peer:{url}"]
        with web_client() as client:
            web = client.open("led on", url, token=PEER_TOKEN, at=at, **by_wallet())
            assert web.read("tone")["body"].startswith("Be direct.")
            report = web.sync()
        server.shutdown()
    assert len(names) < 10
    assert [one["kind"] for one in report["notices"]].count("bad-record") == 1
