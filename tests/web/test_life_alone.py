"""Sessions, the graph and dreams in the page without a server equal those of Python.

Requires Node, Chromium and the package playwright; otherwise skipped, or failed where counterparts are
required."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ipfsmem.files.static_page import write_static_page
from ipfsmem.memory import Memory
from ipfsmem.sessions.transcript import as_markdown
from ipfsmem.wording import moment
from tests.interop.counterparts import built_page
from tests.support.alone_lab import Page, download, hosted, played
from tests.support.page_lab import faults_of
from tests.support.web_lab import PEER_TOKEN, root_of, words_of

pytestmark = [pytest.mark.interop, pytest.mark.slow]


def opened(tmp_path: Path, url: str, memory: Memory, look: Callable[[Page], Awaitable[None]]) -> None:
    """Publish, open the page with the words, call `look`, and sync what it published."""
    root_of(memory)
    folder = tmp_path / "page"
    write_static_page(folder, [f"peer:{url}"], built_page())

    async def play(page: Page) -> None:
        async with hosted(folder) as address:
            await page.goto(address)
            await page.fill("[name=words]", words_of(memory))
            await page.fill("[aria-label='Token for writing to provider 1']", PEER_TOKEN)
            await page.click("button:has-text('Open with the recovery phrase')")
            await page.wait_for_selector(".row")
            await look(page)
            await page.evaluate("location.hash = '#/vault'")
            await page.click("button:has-text('Sync now')")
            await page.wait_for_selector("text=Everything here is published.")
            await page.wait_for_selector("text=last published")

    played(play)
    root_of(memory)


async def see(page: Page, view: str, ready: str) -> None:
    """Open a view, wait until it shows something, and check its accessibility."""
    await page.evaluate(f"location.hash = '#/{view}'")
    await page.wait_for_selector(ready)
    assert await faults_of(page) == []


def test_sessions_are_read_searched_saved_and_forgotten(tmp_path: Path, url: str, memory: Memory) -> None:
    for n in range(11):
        memory.sessions.add(f"older_{n}", [{"role": "user", "content": f"Older {n}"}])
    memory.sessions.create("harbour", title="How to get to the island")
    said = [{"role": "user", "content": f"Question {n} <b>bold</b>?"} for n in range(120)]
    memory.sessions.add("harbour", [*said, {"role": "assistant", "content": "By the ferry at nine."}])
    memory.sessions.add("tides", [{"role": "user", "content": "When is high tide?"}])

    async def look(page: Page) -> None:
        await see(page, "sessions", ".item:has-text('How to get')")
        # All views are in one line: none of them is cut off.
        await page.set_viewport_size({"width": 1280, "height": 800})
        cut = "(nav => nav.scrollWidth > nav.clientWidth)(document.querySelector('.top nav'))"
        assert await page.evaluate(cut) is False and await page.locator(".top nav a").count() == 10
        await page.click("button:has-text('Show 3 older sessions')")
        await page.wait_for_selector(".item:has-text('Older 0')")
        await page.click(".item:has-text('How to get')")
        await page.wait_for_selector(".messages li:has-text('By the ferry')")
        assert await page.locator(".messages li").count() == 100
        assert await page.locator(".messages b").count() == 0
        assert await faults_of(page) == []
        await page.click("button:has-text('Show earlier ones')")
        await page.wait_for_selector(".messages li:has-text('Question 0 ')")
        saved = await download(page, "Save as Markdown")
        assert saved.decode() == as_markdown(memory.sessions.told("harbour"), moment)
        await page.fill("input[type=search]", "tide")
        await page.click(".item:has-text('high tide')")
        await page.wait_for_selector(".detail h2:has-text('high tide')")
        await page.click("button:has-text('Forget')")
        await page.click("button:has-text('Forget on every device')")
        await page.wait_for_selector(".count:has-text('0 messages')")

    opened(tmp_path, url, memory, look)
    left = {one.session for one in memory.sessions.list()}
    assert "harbour" in left and "tides" not in left


def test_graph_is_shown_as_list_and_picture_and_follows_writes(
    tmp_path: Path, url: str, memory: Memory
) -> None:
    for name, kind in (("Ada", "person"), ("Acme", "company"), ("Oslo", "city"), ("<i>Bo</i>", "person")):
        memory.graph.add(name, kind, [f"{name} is a {kind}"])
    for begin, type, end in (
        ("Ada", "works_at", "Acme"),
        ("Acme", "is_in", "Oslo"),
        ("<i>Bo</i>", "knows", "Ada"),
    ):
        memory.graph.relate(begin, type, end)

    async def look(page: Page) -> None:
        await see(page, "graph", ".picture a")
        assert await page.locator(".picture a").count() == await page.locator(".items .item").count() == 4
        assert await page.locator(".items i, .picture i").count() == 0
        await page.click(".item:has-text('Ada')")
        await page.wait_for_selector(".relations li:has-text('works_at') a:has-text('Acme')")
        assert await page.is_visible(".relations li:has-text('knows') a:has-text('<i>Bo</i>')")
        await page.select_option("select[aria-label='Relations away']", "2")
        await page.wait_for_selector(".picture a[aria-label='Oslo, city']")
        assert await faults_of(page) == []
        await page.fill("input[type=search]", "company")
        await page.wait_for_selector(".count:has-text('1 entity')")
        await page.click("a:has-text('Open the memory')")
        await page.click("button:has-text('Edit')")
        await page.fill("textarea", "- knows [[Oslo]]")
        await page.click("button:has-text('Save')")
        await page.wait_for_selector(".memory > .prose")
        await see(page, "graph/ada", ".relations li:has-text('knows') a:has-text('Oslo')")

    opened(tmp_path, url, memory, look)
    assert [(one.type, one.end) for one in memory.graph.relations("ada") if one.begin == "ada"] == [
        ("knows", "oslo")
    ]


def test_page_shows_and_undoes_dreams_and_names_the_place_of_a_proposal(
    tmp_path: Path, url: str, memory: Memory
) -> None:
    for key in ("ferry_one", "ferry_two"):
        memory.write(key, "The ferry to the island leaves at nine from the old harbour, on Sundays at ten.")
    memory.write("trip", "See [[ferry_one]] and [[ferry_two]].")
    root_of(memory)
    outcome = None

    async def look(page: Page) -> None:
        nonlocal outcome
        await see(page, "dreams", ".empty:has-text('No dream has changed anything')")
        assert await page.is_visible("text=stays on the device that made it")
        assert await page.locator("button:has-text('Scan the memories')").count() == 0
        outcome = memory.dreams.run().outcome
        await memory.sync()
        await page.evaluate("location.hash = '#/vault'")
        await page.click("button:has-text('Sync now')")
        await see(page, "dreams", ".versions li:has-text('1 memory changed, 1 deleted, by rules, on python')")
        await page.click(".versions a:has-text('trip')")
        await page.click("button:has-text('Edit')")
        await page.fill("textarea", "We go by foot.")
        await page.click("button:has-text('Save')")
        await page.wait_for_selector(".memory > .prose")
        await see(page, "dreams", "button:has-text('Undo')")
        await page.click("button:has-text('Undo')")
        await page.wait_for_selector(
            ".outcome:has-text('1 memory restored'):has-text('Left as it is'):has-text('trip')"
        )
        await page.wait_for_selector(".versions .kind:has-text('undone')")
        assert await page.locator("button:has-text('Undo')").count() == 0
        assert await faults_of(page) == []

    opened(tmp_path, url, memory, look)
    assert outcome is not None
    assert memory.read("ferry_one") is not None is not memory.read("ferry_two")
    trip = memory.read("trip")
    assert trip is not None and trip.file.body.strip() == "We go by foot."
