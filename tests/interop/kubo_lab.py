"""A node with an RPC port for tests of the `kubo` provider: js-ipfs on loopback, or the user's own Kubo."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ipfsmem_providers.http.policy import Retry, Timing
from ipfsmem_providers.kubo import KuboProvider

from ipfsmem.testing import MockClock
from tests.interop.counterparts import need_program, npm_folder
from tests.support.ports import free_port

#: URL of a Kubo RPC that the suite may use. Only pins and blocks of the tests are removed there.
OWN_NODE = "IPFSMEM_TEST_KUBO_RPC"
QUICK = Retry(attempts=2, first=0.01, most=0.02)


class Node:
    """A node, run by anybody."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.is_js = "ipfs-core" in self.rpc("version")

    def rpc(self, command: str, **params: str) -> dict[str, Any]:
        """Return the first line of a command's answer; {} if empty."""
        rows = self.lines(command, **params)
        return rows[0] if rows else {}

    def lines(self, command: str, **params: str) -> list[dict[str, Any]]:
        query = urllib.parse.urlencode({**params, "cid-base": "base32"})
        request = urllib.request.Request(f"{self.url}/api/v0/{command}?{query}", data=b"", method="POST")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return [json.loads(line) for line in answer.read().splitlines() if line.strip()]

    def open(self, clock: MockClock | None = None, **more: Any) -> KuboProvider:
        settings = {"retry": QUICK, "kubo_patience": "5", **more}
        if clock is not None:
            settings["timing"] = Timing(wall=lambda: clock.ms / 1000)
        return KuboProvider(self.url, settings)

    def pinned(self) -> set[str]:
        found = self.rpc("pin/ls", type="recursive")
        return set(found.get("Keys") or {})

    def stored(self) -> set[str]:
        return {row["Ref"] for row in self.lines("refs/local")}

    def clean(self, pinned: set[str], stored: set[str]) -> None:
        """Restore the earlier pins and blocks without touching the user's own."""
        for cid in self.pinned() - pinned:
            self.rpc("pin/rm", arg=cid)
        for cid in self.stored() - stored:
            with contextlib.suppress(urllib.error.HTTPError):
                self.lines("block/rm", arg=cid, force="true")


class Process:
    """A js-ipfs process on a repository, which can be killed and restarted."""

    def __init__(self, repo: Path) -> None:
        self._repo = repo
        self._port = free_port()
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> Node:
        folder = npm_folder("jsipfs")
        self._process = subprocess.Popen(
            [need_program("node"), "--import", folder / "polyfill.mjs", folder / "serve.mjs",
             self._repo, str(self._port)],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        assert line.startswith("http"), f"js-ipfs did not start: {line}"
        return Node(line)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(60)
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None
        for lock in self._repo.glob("*.lock"):  # left by a killed node
            if lock.is_dir():
                lock.rmdir()
            else:
                lock.unlink()


@contextlib.contextmanager
def running(repo: Path) -> Iterator[Node]:
    """Return the user's node if one is named, else js-ipfs."""
    own = os.environ.get(OWN_NODE)
    if own:
        yield Node(own.rstrip("/"))
        return
    process = Process(repo)
    try:
        yield process.start()
    finally:
        process.kill()
