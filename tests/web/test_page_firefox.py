"""The page of `ipfsmem ui` in Firefox over WebDriver BiDi: sign-in, reads, writes, and foreign changes.
`test_page` and `test_page_views` test everything in Chromium; this checks the other engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ipfsmem.api.page import PageFiles
from tests.cli.test_cli_promote import conversation_database
from tests.interop.counterparts import built_page
from tests.support.api_lab import Client, Lab, opener
from tests.support.browsers import Page, browser

pytestmark = [pytest.mark.interop, pytest.mark.slow]

#: Resolves to the first element that matches the selector and contains the words; null after a minute.
SOON = """(async (selector, words) => {
    for (let left = 1200; left > 0; left--) {
        const found = [...document.querySelectorAll(selector)].find(one => one.textContent.includes(words) || String(one.value ?? '').includes(words))
        if (found) return found
        await new Promise(done => setTimeout(done, 50))
    }
    return null
})"""


async def there(page: Page, selector: str, words: str = "", then: str = "true") -> Any:
    """Wait for an element, and return the value of `then`, in which it is called `it`."""
    found = await page.evaluate(
        f"{SOON}({selector!r}, {words!r}).then(it => it === null ? 'not there' : ({then}))"
    )
    assert found != "not there", (selector, words)
    return found


def test_firefox_shows_the_page_writes_and_shows_changes_of_others(tmp_path: Path) -> None:
    files = PageFiles.built(built_page())
    assert files is not None
    with opener(tmp_path)() as memory:
        memory.write("tone", "Be **brief**.", name="Tone", type="feedback")
        seen = memory.write("plan", "We ship on Friday.", name="Plan")
        memory.write("plan", "We ship on Monday.", seen=seen)
        memory.write("plan", "We ship on Thursday.", seen=seen)
        memory.note("said", text="Something happened")
        memory.bundles.import_from(
            "initrunner", conversation_database(tmp_path / "agent.db", "Otters like rain.")
        )
    lab = Lab(tmp_path, files=files)

    async def ask(client: Client) -> None:
        async with browser("firefox") as page:
            await page.goto(f"{client._base_url}#code={lab.doors.new_code()}")
            await there(page, ".row", "Tone", "it.click()")
            assert await there(page, ".prose strong", "brief", "it.textContent") == "brief"
            assert await page.evaluate("location.hash") == "#/memories/tone"
            await there(page, "button", "Edit", "it.click()")
            await there(
                page,
                "textarea",
                "Be",
                "(it.value = 'Be kind.', it.dispatchEvent(new Event('input', { bubbles: true })))",
            )
            await there(page, "button.main", "Save", "it.form.requestSubmit()")
            await there(page, ".memory > .prose", "Be kind.")
            with opener(tmp_path)() as other:
                read = other.read("tone")
                assert read is not None and read.file.body.strip() == "Be kind."
                other.write("new", "Written elsewhere.", name="From elsewhere")
            await there(page, ".row", "From elsewhere")
            for view, selector, words in (
                ("timeline", ".events", "Something happened"), ("conflicts", ".side pre", "Monday"), ("context", ".block", "Tone"),
                ("vault", ".cards", "memories"),
            ):  # fmt: skip
                await page.evaluate(f"location.hash = '#/{view}'")
                await there(page, selector, words)
            await page.evaluate("location.hash = '#/conflicts'")
            await there(page, ".side:nth-child(2) button", "Take this", "it.click()")
            await there(page, ".empty", "No conflicts")
            await page.evaluate("location.hash = '#/sessions'")
            await there(page, ".item", "imported, not approved", "it.click()")
            await there(page, ".messages li", "imported, not approved")
            await there(page, "sessions-view button", "Approve", "it.click()")
            await there(page, "sessions-view button.danger", "Approve them", "it.click()")
            await there(page, "sessions-view:not(:has(.warns)) .messages li", "Otters like rain.")

    lab.run(ask)
    with opener(tmp_path)() as memory:
        assert not memory.conflicts() and not memory.sessions.told("talk").pending
