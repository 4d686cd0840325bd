"""Every view of the page in every state: axe-core finds nothing serious, light or dark, wide or narrow;
the keyboard suffices; a list of ten thousand memories works; and hostile texts have no effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipfsmem.errors import PassphraseError
from ipfsmem.memory import Memory
from tests.support.api_lab import opener
from tests.support.effort import cases
from tests.support.page_lab import Shown, looked_at

pytestmark = [pytest.mark.interop, pytest.mark.slow]

WIDE, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}


def test_every_view_and_state_is_accessible(tmp_path: Path) -> None:
    with opener(tmp_path)() as memory:
        memory.write(
            "tone",
            "Be **brief**.\n\n1. One\n\n> Said\n\n| a | b |\n| - | - |\n| 1 | 2 |\n\n`code`",
            name="Tone",
            type="feedback",
        )
        seen = memory.write("plan", "We ship on Friday.", name="Plan", type="project", tags=["work"])
        memory.write("plan", "We ship on Monday.", seen=seen)
        memory.write("plan", "We ship on Thursday.", seen=seen)
        memory.note("said", text="Something happened")
        memory.scope("shop").write("deploy", "Ask before.")
    locked = False

    def open_memory() -> Memory:
        if locked:
            raise PassphraseError("it is locked")
        return opener(tmp_path)()

    async def look(shown: Shown) -> None:
        page, found = shown.page, {}

        async def see(name: str) -> None:
            for scheme in ("light", "dark") if page.viewport_size == WIDE else ("light",):
                await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
                if faults := await shown.faults():
                    found[name, scheme] = faults

        await page.wait_for_selector(".row")
        await page.evaluate("document.querySelector('main').append(document.createElement('img'))")
        assert any("image-alt" in fault for fault in await shown.faults())  # it sees the fault
        await page.evaluate("document.querySelector('main > img').remove()")
        views = [await one.get_attribute("href") for one in await page.query_selector_all("nav a")]
        assert len(views) >= 5
        for size in (WIDE, PHONE):
            await page.set_viewport_size(size)
            for view in views:
                await page.evaluate(f"location.hash = '{view}'")
                await page.wait_for_selector("main [aria-busy=false], .row")
                await see(f"{view} {size['width']}")
                assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view
            await shown.go("memories/tone", ".memory .prose table")
            await see(f"memory {size['width']}")
            await page.click("button:has-text('Edit')")
            await see(f"editor {size['width']}")
            await page.click("button:has-text('Cancel')")
            await page.click("button:has-text('History')")
            await see(f"history {size['width']}")
            await page.click("button:has-text('Done')")
        await page.set_viewport_size(WIDE)
        await page.fill("input[type=search]", "friday")
        await page.wait_for_selector(".count:has-text('match')")
        await see("search")
        await page.fill("input[type=search]", "")
        await page.click("button:has-text('New')")
        await see("new")
        await shown.go("memories/none", ".empty:has-text('Not here')")
        await see("not here")
        await shown.go("vault", "button:has-text('Check')")
        await page.click("button:has-text('Check')")
        await page.wait_for_selector("details")
        await see("health")
        await page.click(".actions button:has-text('zip')")
        locked_at = shown.lab.served[0]
        async with locked_at._turns.of():
            nonlocal locked
            locked = True
            locked_at.holder.close()
        await page.wait_for_selector(".shut h1:has-text('Locked')")
        await see("locked")
        locked = False
        await page.wait_for_selector(".cards")
        await page.route("**/v1/**", lambda route: route.abort())
        await shown.go("timeline", ".problem:has-text('does not answer')")
        await see("offline")
        await page.unroute("**/v1/**")
        await page.evaluate("location.hash = ''")
        await page.reload()
        await page.wait_for_selector(".shut form")
        await see("ended")
        assert found == {}

    looked_at(tmp_path, look, open_memory=open_memory)


def test_empty_vault_explains_the_next_steps(tmp_path: Path) -> None:
    async def look(shown: Shown) -> None:
        page = shown.page
        await page.wait_for_selector(".empty:has-text('No memories yet')")
        assert await shown.faults() == []
        await shown.go("timeline", ".empty:has-text('No events yet')")
        await shown.go("conflicts", ".empty:has-text('No conflicts')")
        assert await shown.faults() == []
        await shown.go("memories", "button:has-text('New')")
        # The keyboard alone writes one.
        await page.focus("button:has-text('New')")
        await page.keyboard.press("Enter")
        await page.focus(".editor input")
        await page.keyboard.type("First words")
        await page.focus("textarea")
        await page.keyboard.type("Written by hand.")
        await page.keyboard.press("Control+Enter")
        await page.wait_for_selector(".memory > .prose:has-text('Written by hand.')")
        await page.wait_for_selector(".row.chosen:has-text('First words')")
        await page.evaluate("document.activeElement.blur()")
        await page.keyboard.press("/")
        await page.keyboard.type("hand/")
        await page.wait_for_selector(".count:has-text('1 match')")
        assert await page.input_value("input[type=search]") == "hand/"
        await page.keyboard.press("Escape")
        assert await page.evaluate("document.activeElement.className") == "rows"

    looked_at(tmp_path, look)


def test_ten_thousand_memories_are_drawn_only_where_visible(tmp_path: Path) -> None:
    many = cases(1_200, 10_000)
    files = {
        f"key_{n:05}": f"---\nname: Name {n:05}\ndescription: About {n}\ntype: project\n---\n\nText {n}.\n".encode()
        for n in range(many)
    }
    with opener(tmp_path)() as memory:
        folder = tmp_path / "in"
        folder.mkdir()
        for key, data in files.items():
            (folder / f"{key}.md").write_bytes(data)
        memory.bundles.import_(folder)

    async def look(shown: Shown) -> None:
        page = shown.page
        await page.wait_for_selector(f".count:has-text('{many:,}')")
        await page.select_option("select[aria-label=Order]", "name")
        assert await page.locator(".row").count() < 40
        await page.focus(".rows")
        await page.keyboard.press("End")
        await page.wait_for_selector(f".row.chosen:has-text('Name {many - 1:05}')")
        await page.wait_for_selector(f".memory h2:has-text('Name {many - 1:05}')")
        await page.keyboard.press("Home")
        await page.wait_for_selector(".row.chosen:has-text('Name 00000')")
        # The scrolled-to part is drawn in the next frames, and nothing else.
        empty = await page.evaluate("""async () => {
            const rows = document.querySelector('.rows'), wait = () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))
            let empty = 0
            for (let at = 0; at <= 20; at++) {
                rows.scrollTop = (rows.scrollHeight - rows.clientHeight) * at / 20
                await wait()
                const box = rows.getBoundingClientRect()
                for (const y of [box.top + 5, box.top + box.height / 2, box.bottom - 5]) empty += document.elementFromPoint(box.left + 50, y)?.closest('.row') === null ? 1 : 0
            }
            return empty
        }""")
        assert empty == 0 and await page.locator(".row").count() < 40
        with opener(tmp_path)() as other:
            other.write("key_00003", "Changed.", name="Changed name")
        await page.evaluate("document.querySelector('.rows').scrollTop = 0")
        await page.wait_for_selector(".row:has-text('Changed name')")

    looked_at(tmp_path, look)
