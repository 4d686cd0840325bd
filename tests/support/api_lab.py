"""A running HTTP API server and a third-party client for tests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp

from ipfsmem.api.calls import Caller
from ipfsmem.api.page import PageFiles
from ipfsmem.api.served import ServedMemory
from ipfsmem.api.serving import Api
from ipfsmem.api.who import AccessControl
from ipfsmem.holding import Holder
from ipfsmem.http.running import running
from ipfsmem.memory import Memory

TOKEN = "a token of enough length"
NEW = {"If-None-Match": "*"}
JSON = {"Content-Type": "application/json"}

Client = aiohttp.ClientSession


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


AUTH = bearer(TOKEN)


def opener(home: Path, name: str = "m") -> Callable[[], Memory]:
    return lambda: Memory.load(name, "local", home=home, passphrase=False, create=True)


class Lab:
    """A server over the vaults of a home; vault `m` is created if missing."""

    def __init__(
        self, home: Path, *names: str, open_memory: Callable[[], Memory] | None = None, **options: Any
    ) -> None:
        self.home = home
        self.served = [
            ServedMemory(name, Holder(open_memory or opener(home, name)), home / name)
            for name in names or ("m",)
        ]
        self.doors = AccessControl(
            {one.vault_name: one for one in self.served}, names=options.pop("hosts", ())
        )
        self.doors.accept_token(TOKEN, Caller("admin"))
        self.api = Api(self.served, self.doors, **options)

    def run(self, ask: Callable[[Client], Awaitable[None]]) -> None:
        """Run `ask` against the server with the token that grants everything."""

        async def within() -> None:
            async with (
                running(self.api.app()) as url,
                aiohttp.ClientSession(url, headers=AUTH) as client,
            ):
                await ask(client)

        try:
            asyncio.run(within())
        finally:
            for one in self.served:
                one.close()


def asked(home: Path, ask: Callable[[Client], Awaitable[None]], **options: Any) -> None:
    """Run `ask` against the API of a local vault in `home`."""
    Lab(home, **options).run(ask)


def a_page() -> PageFiles:
    return PageFiles({"index.html": b"<!doctype html><title>x</title>", "assets/app-1.js": b"0"})


async def told(answer: Any, status: int, kind: str) -> dict[str, Any]:
    """Check that an answer is a problem of this status and kind; return it."""
    async with answer as got:
        text = await got.text()
        assert got.status == status, text
        assert got.content_type == "application/problem+json" and "Traceback" not in text
        problem: dict[str, Any] = json.loads(text)
    assert (problem["status"], problem["kind"]) == (status, kind), problem
    assert problem["type"] == f"urn:ipfsmem:error:{kind}" and problem["detail"]
    return problem


async def good(answer: Any, status: int = 200) -> tuple[Any, str]:
    """Check that an answer has this status; return its value and ETag."""
    async with answer as got:
        assert got.status == status, await got.text()
        return await got.json(), got.headers.get("ETag", "")
