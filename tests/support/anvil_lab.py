"""Anvil, a third-party Ethereum node whose accounts sign as a wallet does. Contains no tests."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.interop.counterparts import missing, npm_folder
from tests.support.ports import free_port


class Anvil:
    """One node, called over JSON-RPC on loopback."""

    def __init__(self, url: str) -> None:
        self._url = url

    def ask(self, method: str, *params: str) -> Any:
        """Return the result of a call. Raises AssertionError with the node's error message."""
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        asked = urllib.request.Request(
            self._url, json.dumps(call).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(asked, timeout=60) as response:
            answer = json.load(response)
        assert "error" not in answer, answer
        return answer["result"]

    @property
    def account(self) -> str:
        """The first account, whose key is public (`WALLET_KEY` of `web_lab`)."""
        return str(self.ask("eth_accounts")[0])

    def sign(self, data: str) -> str:
        """Return the `personal_sign` signature of the first account; text and signature in hex."""
        return str(self.ask("personal_sign", data, self.account))


@contextlib.contextmanager
def anvil(folder: Path) -> Iterator[Anvil]:
    """Start a node for one test with its data in `folder`."""
    modules = npm_folder("anvil").parent / "node_modules" / "@foundry-rs"
    programs = list(modules.glob("anvil-*/bin/anvil"))
    if not programs:
        missing("the package of Anvil has no program for this machine")
    port = free_port()
    started = subprocess.Popen(
        [programs[0], "--host", "127.0.0.1", "--port", str(port), "--silent"], env={"HOME": str(folder)}
    )
    try:
        node = Anvil(f"http://127.0.0.1:{port}")
        for _ in range(200):
            with contextlib.suppress(OSError):
                node.ask("web3_clientVersion")
                break
            time.sleep(0.05)
        yield node
    finally:
        started.terminate()
        started.wait(60)
