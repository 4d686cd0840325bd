"""Headless Chromium and Firefox for browser tests, driven over WebDriver BiDi (W3C).

Uses Debian's packages (`chromium`, `chromium-driver`, `firefox-esr`) or programs of these names. Without
the browser a test is skipped, or fails where counterparts are required. Each start uses a new temporary
profile."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp

from tests.interop.counterparts import missing, need_program
from tests.support.ports import free_port

BROWSERS = ("chromium", "firefox")
#: Timeouts in seconds for the start of a browser and for an answer of a page.
_START, _ANSWER = 60.0, 480.0


class Page:
    """The single tab of a browser."""

    def __init__(self, wire: aiohttp.ClientWebSocketResponse) -> None:
        self._wire = wire
        self._sent = 0
        self._tab = ""

    async def call(self, method: str, **given: Any) -> Any:
        """Send a command of the protocol; return its result. AssertionError with the browser's error
        message."""
        self._sent += 1
        await self._wire.send_json({"id": self._sent, "method": method, "params": given})
        while True:
            said = await self._wire.receive_json(timeout=_ANSWER)
            if said.get("id") == self._sent:  # other messages are events
                assert said["type"] == "success", f"{method}: {said.get('message')}"
                return said["result"]

    async def begin(self) -> None:
        """Find the tab."""
        self._tab = (await self.call("browsingContext.getTree"))["contexts"][0]["context"]

    async def goto(self, url: str) -> None:
        """Load a page."""
        await self.call("browsingContext.navigate", context=self._tab, url=url, wait="complete")

    async def evaluate(self, expression: str) -> Any:
        """Return the value of an expression in the page as JSON; promises are awaited. AssertionError if
        it throws."""
        found = await self.call(
            "script.evaluate",
            expression=f"Promise.resolve({expression}).then(JSON.stringify)",
            target={"context": self._tab},
            awaitPromise=True,
        )
        assert found["type"] == "success", found["exceptionDetails"]["text"]
        return json.loads(found["result"]["value"]) if found["result"]["type"] == "string" else None


@contextlib.asynccontextmanager
async def browser(name: str) -> AsyncIterator[Page]:
    """Start a browser with an empty page; end it with all its child processes."""
    with tempfile.TemporaryDirectory(prefix=f"{name}-", ignore_cleanup_errors=True) as profile:
        async with (_chromium if name == "chromium" else _firefox)(profile) as page:
            await page.begin()
            yield page
            with contextlib.suppress(
                AssertionError, TypeError, ConnectionError
            ):  # it may exit before it answers
                await page.call("browser.close")


@contextlib.asynccontextmanager
async def _chromium(profile: str) -> AsyncIterator[Page]:
    """Start Chromium through its driver, which speaks the protocol."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        missing("chromium is not installed")
    # It opens one port on IPv6 and then the same on IPv4, where a port that the system assigned (`--port=0`)
    # may be in use.
    driver = [need_program("chromedriver"), f"--port={free_port()}"]
    # The sandbox does not work for root; all pages are ours, on loopback.
    arguments = ["--headless=new", "--no-sandbox", f"--user-data-dir={profile}"]
    wanted = {"webSocketUrl": True, "goog:chromeOptions": {"binary": program, "args": arguments}}
    async with (
        _started(driver, profile, r"started successfully on port (\d+)") as port,
        aiohttp.ClientSession() as http,
    ):
        url = f"http://127.0.0.1:{port}/session"
        async with http.post(url, json={"capabilities": {"alwaysMatch": wanted}}) as answer:
            made = (await answer.json())["value"]
        assert "capabilities" in made, made.get("message")
        try:
            async with http.ws_connect(made["capabilities"]["webSocketUrl"], max_msg_size=0) as wire:
                yield Page(wire)
        finally:  # answered after the browser has exited
            await (await http.delete(f"{url}/{made['sessionId']}")).read()


@contextlib.asynccontextmanager
async def _firefox(profile: str) -> AsyncIterator[Page]:
    """Start Firefox, which speaks the protocol itself."""
    program = shutil.which("firefox-esr") or need_program("firefox")
    command = [program, "--headless", "--no-remote", "--profile", profile, "--remote-debugging-port=0"]
    async with (
        _started(command, profile, r"WebDriver BiDi listening on (ws://\S+)") as url,
        aiohttp.ClientSession() as http,
        http.ws_connect(f"{url}/session", max_msg_size=0) as wire,
    ):
        page = Page(wire)
        await page.call("session.new", capabilities={})
        yield page


@contextlib.asynccontextmanager
async def _started(command: list[str], profile: str, ready: str) -> AsyncIterator[str]:
    """Start a program and yield its first output that matches `ready`; end it with all its child
    processes."""
    told = Path(profile, "told")
    with told.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True)
    try:
        yield await _said(process, told, re.compile(ready))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


async def _said(process: subprocess.Popen[bytes], told: Path, ready: re.Pattern[str]) -> str:
    until = time.monotonic() + _START
    while (found := ready.search(text := told.read_text("utf-8", "replace"))) is None:
        assert process.poll() is None and time.monotonic() < until, f"it was never ready: {text[-2000:]}"
        await asyncio.sleep(0.05)
    return found[1]
