"""The page of `ipfsmem ui` in headless Chromium over a test vault. Contains no tests.

Without Node, Chromium or the package playwright its tests are skipped, or fail where counterparts are
required."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from ipfsmem.api.page import PageFiles
from ipfsmem.memory import Memory
from tests.interop.counterparts import built_page, missing, of_web_packages
from tests.support.api_lab import Client, Lab
from tests.support.extras import need_extra
from tests.support.patience import PATIENCE


class Shown:
    """A page that is signed in, and the requests to its server."""

    def __init__(self, lab: Lab, page: Any, url: str) -> None:
        self.lab = lab
        self.page = page
        self.url = url
        #: The link that signed it in.
        self.entered = self.link()
        self.asked: list[str] = []
        self.failed: list[str] = []
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("pageerror", lambda error: self.failed.append(str(error)))

    def link(self) -> str:
        """Return a link that opens the page once."""
        return f"{self.url}#code={self.lab.doors.new_code()}"

    async def go(self, view: str, ready: str) -> None:
        """Show a view, and wait for the element `ready`."""
        await self.page.evaluate(f"location.hash = '#/{view}'")
        await self.page.wait_for_selector(ready)

    async def faults(self) -> list[str]:
        """Return the accessibility faults that axe-core finds in the view, one line each."""
        return await faults_of(self.page)


async def faults_of(page: Any) -> list[str]:
    """Return the accessibility faults of any page."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(of_web_packages("axe-core/axe.min.js") + ";0")
    found = await page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']} ({one['impact']}): {node['html'][:160]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


Look = Callable[[Shown], Awaitable[None]]


def looked_at(
    home: Path,
    look: Look,
    *,
    names: Sequence[str] = (),
    open_memory: Callable[[], Memory] | None = None,
    arguments: Sequence[str] = (),
    **shape: Any,
) -> None:
    """Open the page over the local vaults `names` (`m`) of `home` and call `look`. The page may load
    nothing from elsewhere, and throw nothing. `arguments`: for Chromium; `shape`: for its Playwright
    context."""
    api = need_extra("counterparts", "playwright.async_api")
    chromium = shutil.which("chromium") or missing("chromium is not installed")
    files = PageFiles.built(built_page())
    assert files is not None
    lab = Lab(home, *names, files=files, open_memory=open_memory)

    async def ask(client: Client) -> None:
        async with api.async_playwright() as driver:
            browser = await driver.chromium.launch(
                executable_path=chromium, args=["--no-sandbox", *arguments]
            )
            context = await browser.new_context(**shape)
            context.set_default_timeout(PATIENCE * 1_000)
            shown = Shown(lab, await context.new_page(), str(client._base_url))
            await shown.page.goto(shown.entered)
            await shown.page.wait_for_selector("main#content, main.shut h1")
            await look(shown)
            await browser.close()
        assert all(one.startswith((shown.url, "data:", "blob:")) for one in shown.asked), shown.asked
        assert shown.failed == []

    lab.run(ask)
