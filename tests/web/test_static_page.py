"""The page without a server: any host of files serves it, and the memory is in the browser, shared with Python through a peer.

Needs Node, Chromium and the package playwright; without one of them it is skipped, and fails where counterparts are required.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import zipfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from ipfsmem.memory import Memory
from tests.interop.counterparts import built_page, need_program
from tests.servers.threaded import serve_here
from tests.support.extras import need_extra
from tests.support.web_lab import PEER_TOKEN, root_of, words_of

pytestmark = [pytest.mark.interop, pytest.mark.slow]

Page = Any
#: The words of 32 zero bytes.
OTHER_WORDS = " ".join(["abandon"] * 23 + ["art"])


@contextlib.asynccontextmanager
async def hosted(folder: Path) -> AsyncIterator[str]:
    """The address of a host that serves files and nothing else."""
    app = web.Application()
    app.router.add_static("/", folder)
    async with serve_here(app) as url:
        yield url.replace("127.0.0.1", "localhost")


def played(play: Callable[[Page, str], Awaitable[None]]) -> list[str]:
    """Play in a new profile of Chromium with the page hosted; what it asked for."""
    api = need_extra("counterparts", "playwright.async_api")
    chromium, folder = need_program("chromium"), built_page() / "static"
    asked: list[str] = []

    async def run() -> None:
        async with hosted(folder) as url, api.async_playwright() as driver:
            browser = await driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            page = await (await browser.new_context()).new_page()
            page.set_default_timeout(10_000)
            said: list[str] = []
            page.context.on("request", lambda request: asked.append(request.url))
            page.on("console", lambda one: said.append(one.text))
            await play(page, f"{url}/static.html")
            await browser.close()
            assert not [one for one in said if "Content Security Policy" in one or "Trusted" in one], said

    asyncio.run(run())
    return asked


async def typed(page: Page, words: str, place: str, token: str = PEER_TOKEN) -> None:
    """Fill in the door, and open."""
    await page.fill("[name=words]", words)
    await page.fill(".place input >> nth=0", place)
    await page.fill(".place input >> nth=1", token)
    await page.click("button:has-text('Open with the words')")


def files_of(data: bytes) -> dict[str, bytes]:
    """What is in a zip, by path."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


async def saved(page: Page) -> None:
    """Save, and wait for the text as it is read."""
    await page.click("button:has-text('Save')")
    await page.wait_for_selector(".memory > .prose")


def test_words_open_it_in_a_browser_which_writes_and_publishes(
    tmp_path: Path, url: str, memory: Memory
) -> None:
    zipped = tmp_path / "page.zip"

    async def play(page: Page, address: str) -> None:
        await page.goto(address)
        await typed(page, OTHER_WORDS, f"peer:{url}")
        await page.wait_for_selector(".problem:has-text('no vault that this key signed for')")
        await typed(page, "one two", f"peer:{url}")
        await page.wait_for_selector(".problem:has-text('recovery words are 24, not 2')")
        await page.check("input[type=checkbox]")
        await typed(page, words_of(memory), f"peer:{url}")
        await page.click(".row:has-text('Tone')")
        await page.wait_for_selector(".prose:has-text('Always.')")

        await page.click("button:has-text('Edit')")
        await page.fill("textarea", "Be kind.")
        await saved(page)
        await page.click("button:has-text('New')")
        await page.fill("input >> nth=1", "From a page")
        await page.fill("textarea", "Written **here**.")
        await saved(page)
        await page.fill("input[type=search]", "written")
        await page.wait_for_selector(".row:has-text('From a page')")

        await page.goto(f"{address}#/timeline")
        await page.wait_for_selector(".events:has-text('waved')")
        await page.goto(f"{address}#/vault")
        await page.wait_for_selector("h3:has-text('Devices')")
        await page.click("button:has-text('Sync now')")
        await page.wait_for_selector("text=Everything here is published.")
        await page.click("button:has-text('Check')")
        await page.wait_for_selector(".things .kind")
        async with page.expect_download() as download:
            await page.click("button:has-text('Save as files')")
        await (await download.value).save_as(zipped)

        # Loaded anew it opens by what this browser keeps: keys that no script reads, and the peer's token.
        await page.goto("about:blank")
        await page.goto(address)
        await page.wait_for_selector(".row:has-text('From a page')")
        assert await page.evaluate("localStorage.length + sessionStorage.length") == 0

    asked = played(play)
    root_of(memory)
    tone, made = memory.read("tone"), memory.read("from-a-page")
    assert tone is not None and tone.file.body.strip() == "Be kind." and tone.file.tags == ("style", "voice")
    assert made is not None and made.file.body.strip() == "Written **here**."
    assert all("localhost" in one or one.startswith((url, "data:", "blob:")) for one in asked), asked
    with io.BytesIO() as out:
        memory.bundles.export_zip(out)
        assert files_of(zipped.read_bytes()) == files_of(out.getvalue())
