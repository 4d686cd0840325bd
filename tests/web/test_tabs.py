"""Real tabs of one browser on one store: concurrent writes lose nothing; a tab that crashes with the lock
blocks nobody and loses nothing; and a browser that lost its storage says so, and restores everything that
was synced."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from typing import Any
from urllib.parse import urlencode

import pytest

from ipfsmem.memory import Memory
from tests.interop.counterparts import missing
from tests.support.browser_lab import served
from tests.support.effort import cases
from tests.support.extras import need_extra
from tests.support.patience import PATIENCE
from tests.support.web_lab import PEER_TOKEN, root_of, words_of

pytestmark = [pytest.mark.interop, pytest.mark.slow]

#: Counts the memories in a tab's vault whose keys begin with `prefix`.
COUNT = "prefix => memory.list().filter(one => one.key.startsWith(prefix)).length"


def test_tabs_that_write_at_once_crash_and_lose_storage_lose_no_text(url: str, memory: Memory) -> None:
    api = need_extra("counterparts", "playwright.async_api")
    chromium = shutil.which("chromium") or missing("chromium is not installed")
    n = cases(40, 300)
    at, words = {"at": f"peer:{url}", "token": PEER_TOKEN}, words_of(memory)

    async def run(home: str) -> None:
        async with api.async_playwright() as driver:
            browser = await driver.chromium.launch(
                executable_path=chromium, args=["--no-sandbox", "--site-per-process"]
            )
            context = await browser.new_context()

            async def tab(play: str, **asked: Any) -> Any:
                page = await context.new_page()
                await page.goto(f"{home}/?{urlencode({'play': play, **at, **asked})}")
                return page

            async def done(page: Any, least: int) -> int:
                await page.wait_for_function(f"globalThis.done >= {least}", timeout=120_000)
                return int(await page.evaluate("globalThis.done"))

            # A tab dies during its writes: acknowledged writes remain, and others continue.
            dies = await tab("forever", words=words)
            acknowledged = await done(dies, 20)
            # A crashed tab does not answer this request.
            crashing = asyncio.ensure_future((await context.new_cdp_session(dies)).send("Page.crash"))
            goes_on = await tab("writes", key="two", n=5)
            await done(goes_on, 5)
            assert (
                await goes_on.evaluate(COUNT, "one_") >= acknowledged
                and await goes_on.evaluate(COUNT, "two_") == 5
            )
            crashing.cancel()
            with contextlib.suppress(asyncio.CancelledError, api.Error):
                await crashing

            # Two tabs concurrently.
            tabs = [await tab("writes", key=key, n=n) for key in ("left", "right")]
            for one in tabs:
                await done(one, n)
            await tabs[0].evaluate("memory.sync()")
            for one in tabs:
                await one.wait_for_function(
                    f"memory.list().filter(one => /^(left|right)_/.test(one.key)).length === {2 * n}"
                )

            # The browser deletes the storage under an open tab: a write that cannot be stored is refused, and
            # synced data returns.
            left = tabs[0]
            devtools = await context.new_cdp_session(left)
            await devtools.send("Storage.clearDataForOrigin", {"origin": home, "storageTypes": "all"})
            message = await left.evaluate("memory.write('lost', 'x').then(() => 'written', message)")
            assert "deleted the data of this vault" in message
            while not answers.empty():
                answers.get()
            await tab("writes", key="three", n=1)
            assert "this vault is locked" in (await asyncio.to_thread(answers.get, timeout=PATIENCE))["error"]
            reopened = await tab("writes", key="four", n=3, words=words)
            await done(reopened, 3)
            assert await reopened.evaluate(COUNT, "left_") == await reopened.evaluate(COUNT, "right_") == n
            assert await reopened.evaluate(COUNT, "lost") == 0
            await reopened.evaluate("memory.sync()")
            await browser.close()

    with served() as (home, answers):
        asyncio.run(run(home))
    root_of(memory)
    keys = [one.key for one in memory.list()]
    assert sum(key.startswith(("left_", "right_")) for key in keys) == 2 * n
    assert sum(key.startswith("four_") for key in keys) == 3
