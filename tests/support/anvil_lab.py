"""Anvil: an Ethereum node whose accounts sign as a wallet does, written by others. Nothing here is a test."""

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
    """One node, asked over JSON-RPC on this machine."""

    def __init__(self, url: str) -> None:
        self._url = url

    def ask(self, method: str, *params: str) -> Any:
        """The result of a call. Raises AssertionError with what the node says against it."""
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
        """The signature of the first account under a text, both in hex, as `personal_sign` makes it."""
        return str(self.ask("personal_sign", data, self.account))


@contextlib.contextmanager
def anvil(folder: Path) -> Iterator[Anvil]:
    """A node that is started for one test; what it keeps lies in `folder`."""
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
