"""A device of the browser client in Node, driven by a test: its methods are those of the client's `Memory`.

The counterpart of `web/tests/device.ts`. Contains no tests."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import io
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aiohttp import web
from ipfsmem_providers.directory import DirectoryProvider

from ipfsmem.content.car import read_car
from ipfsmem.content.limits import OWN_LIMITS
from ipfsmem.http import serving
from ipfsmem.memory import Memory
from ipfsmem.wallet.message import key_request
from ipfsmem.wallet.signers import RawKeySigner
from tests.interop.counterparts import built_web, need_program

PEER_TOKEN = "a token for tests"
#: The public first account of Hardhat and Anvil.
WALLET_KEY = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
WALLET = RawKeySigner(bytes.fromhex(WALLET_KEY))


def root_of(memory: Memory) -> str:
    """Sync; return the root that this device's name leads to."""
    report = asyncio.run(memory.sync())
    assert report.root is not None
    return str(report.root)


def words_of(memory: Memory) -> str:
    """Return the recovery words of a vault that was just created."""
    assert memory.recovery_words is not None
    return " ".join(memory.recovery_words)


def by_wallet() -> dict[str, str]:
    """Return arguments that open the vault with the wallet, which is faster than with words."""
    signed = WALLET.sign_message(key_request(WALLET.address, "default", 1)).hex()
    return {"address": WALLET.address.hex(), "vault": "default", "first": signed, "second": signed}


class ClientError(Exception):
    """An error of the client: its `kind` and message."""

    def __init__(self, answer: dict[str, Any]) -> None:
        super().__init__(answer.get("stack") or answer["error"])
        self.kind: str = answer["kind"]
        self.hint: str = answer["hint"]


class Client:
    """One Node process with any number of open vaults."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, command: dict[str, Any]) -> Any:
        """Return the answer to one command. Raises ClientError."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise ClientError(answer)
        return answer["answer"]

    def open(self, name: str, url: str, **how: Any) -> WebDevice:
        """Open a device with `words` or a wallet's signatures; `on`: another tab of that device."""
        self.ask({"do": "open", "as": name, "url": url, "label": name, **how})
        return self.device(name)

    def open_early(self, name: str, url: str, **how: Any) -> list[str]:
        """Return what such a device lists before it has stored what it downloaded."""
        answer = self.ask({"do": "open", "as": name, "url": url, "label": name, **how})
        early: list[str] = answer["early"]
        return early

    def device(self, name: str) -> WebDevice:
        """Return a device that was opened before."""
        return WebDevice(self, name)


class WebDevice:
    """An open vault of the client. Calls are forwarded to it."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._name = name

    def take(self, blob: str) -> Any:
        """`import`, which is not a valid name in Python."""
        return self._client.ask({"do": "import", "as": self._name, "with": [blob]})

    def __getattr__(self, method: str) -> Any:
        def call(*given: Any) -> Any:
            return self._client.ask({"do": method, "as": self._name, "with": given})

        return call


def lacking(kept: Path, hidden: set[str]) -> web.Application:
    """Serve a folder without some blocks, by their CIDs, which may be changed."""

    @web.middleware
    async def lacks(request: web.Request, handler: Any) -> web.StreamResponse:
        # A combined answer lacks them too, because without a block there is no whole tree.
        if any(cid in request.path for cid in hidden) or (hidden and request.query.get("format") == "car"):
            raise web.HTTPNotFound
        answer: web.StreamResponse = await handler(request)
        return answer

    app = serving.app(DirectoryProvider(kept))
    app.middlewares.append(lacks)
    return app


def largest_block(device: WebDevice) -> str:
    """Return the CID of the largest block of a device, which is that of the largest text."""
    car = base64.b64decode(device.outbox()["car"])
    return str(max(read_car(io.BytesIO(car), OWN_LIMITS), key=lambda block: len(block[1]))[0])


@contextlib.contextmanager
def web_client(zone: str = "") -> Iterator[Client]:
    """Start the client in Node in the time zone `zone` (an IANA name); the test is skipped if it is not
    available."""
    command = [need_program("node"), str(built_web() / "device.js")]
    env = {**os.environ, "TZ": zone} if zone else None
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
    try:
        yield Client(process)
    finally:
        process.kill()
        process.communicate()
