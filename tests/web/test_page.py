"""The page of `ipfsmem ui` in a real browser: single sign-in, reads, writes, hostile texts, foreign changes,
and no external requests.

Requires Node, Chromium and the package playwright; otherwise skipped, or failed where counterparts are
required."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipfsmem.errors import PassphraseError
from ipfsmem.memory import Memory
from tests.support.api_lab import opener
from tests.support.page_lab import Shown, looked_at

pytestmark = [pytest.mark.interop, pytest.mark.slow]

HOSTILE = (
    "<script>document.title='run'</script><img src='https://evil.example/x.png' alt=spy onerror=\"document.title='run'\">"
    "<style>body{display:none}</style><form><input name=pw></form><a href='javascript:document.title=1'>go</a> Fine words."
)


def test_page_reads_writes_and_shows_changes_of_others(tmp_path: Path) -> None:
    with opener(tmp_path)() as memory:
        memory.write("tone", "Be **brief**.", name="Tone", type="feedback")
        memory.write("hostile", HOSTILE, name="<i>Hostile</i>")
        seen = memory.write("plan", "We ship on Friday.")
        memory.write("plan", "We ship on Monday.", seen=seen)
        memory.write("plan", "We ship on Thursday.", seen=seen)
        trip = memory.write("trip", "We go.")
        memory.write("trip", "We go by foot.", seen=trip)
        memory.write("trip", "We go by car.", seen=trip)
        memory.write("how", "Steps.", type="procedure")
    locked = False

    def open_memory() -> Memory:
        if locked:
            raise PassphraseError("it is locked")
        return opener(tmp_path)()

    async def look(shown: Shown) -> None:
        page = shown.page

        async def lock(yes: bool) -> None:
            nonlocal locked
            async with shown.lab.served[0]._turns.of():
                locked = yes
                shown.lab.served[0].holder.close()

        await page.wait_for_selector(".row")
        assert (
            "code=" not in page.url
            and await page.evaluate("localStorage.length + sessionStorage.length") == 0
        )

        await page.click(".row:has-text('Tone')")
        assert await page.inner_html(".prose strong") == "brief"
        await page.click("button:has-text('Edit')")
        await page.fill("textarea", "Be kind.")
        await page.click("button:has-text('Save')")
        await page.wait_for_selector(".prose:has-text('Be kind.')")
        with opener(tmp_path)() as other:
            reading = other.read("tone")
            assert reading is not None and reading.file.body.strip() == "Be kind."
            other.write("new", "Written elsewhere.", name="From elsewhere")
            other.write("tone", "Be kind and brief.")
        await page.wait_for_selector(".row:has-text('From elsewhere')")
        await page.wait_for_selector(".prose:has-text('Be kind and brief.')")

        # Another writer saves while the page edits: no unseen text is replaced.
        await page.click("button:has-text('Edit')")
        await page.fill("textarea", "Mine.")
        with opener(tmp_path)() as other:
            other.write("tone", "Theirs.")
        await page.wait_for_selector(".editor .side pre:has-text('Theirs.')")
        assert await page.is_disabled("button:has-text('Save')")
        with opener(tmp_path)() as other:
            other.write("tone", "Theirs again.", name="Renamed")
        await page.wait_for_selector(".editor .side pre:has-text('Theirs again.')")
        await page.click("button:has-text('Continue with mine')")
        await page.click("button:has-text('Save')")
        await page.wait_for_selector(".memory > .prose:has-text('Mine.')")
        with opener(tmp_path)() as other:
            kept = other.read("tone")
            assert kept is not None and kept.file.body.strip() == "Mine."
            assert kept.file.name == "Renamed"  # this user changed only the text

        # The keys are locked: the input is there after an unlock, and nothing is shown until then.
        await page.evaluate("location.hash = '#/memories/how'")
        await page.click("button:has-text('Edit')")
        await page.fill("textarea", "Half a thought.")
        await lock(True)
        await page.wait_for_selector(".shut h1:has-text('Locked')")
        assert not await page.is_visible("textarea") and not await page.is_visible(".row")
        await lock(False)
        await page.wait_for_selector("textarea")
        assert await page.input_value("textarea") == "Half a thought."
        await page.click("button:has-text('Save')")
        await page.wait_for_selector(".memory > .prose:has-text('Half a thought.')")
        with opener(tmp_path)() as other:
            kept = other.read("how")
            assert kept is not None and kept.file.type == "procedure"
        await page.click("button:has-text('Edit')")
        await page.select_option(".editor select", "")
        await page.click("button:has-text('Save')")
        await page.wait_for_selector(".memory > .prose")
        with opener(tmp_path)() as other:
            kept = other.read("how")
            assert kept is not None and kept.file.type == ""

        await page.evaluate("location.hash = '#/memories/hostile'")
        await page.wait_for_selector(".prose:has-text('Fine words.')")
        assert await page.title() == "ipfsmem"
        assert await page.locator(".prose :is(script, style, form, input, img)").count() == 0
        assert await page.locator(".prose a[href]").count() == 0
        assert await page.locator(".memory h2 i").count() == 0

        await page.evaluate("location.hash = '#/conflicts'")
        await page.click(".side:has-text('Monday') button:has-text('Take this')")
        await page.wait_for_selector(".clash:has-text('plan')", state="detached")
        await page.click(".side:has-text('by foot') button:has-text('Edit this text')")
        await page.fill(".own textarea", "We go by train.")
        with opener(tmp_path)() as other:
            other.write("trip", "We go by boat.", seen=trip)
        await page.wait_for_selector(".own .problem")
        assert await page.is_disabled("button:has-text('Replace all')")
        assert await page.is_visible(".side:has-text('by boat')")
        await page.click(".own button:has-text('Continue with mine')")
        await page.click("button:has-text('Replace all')")
        await page.wait_for_selector(".empty:has-text('No conflicts')")
        with opener(tmp_path)() as other:
            settled = other.read("plan")
            assert settled is not None and "Monday" in settled.text and not other.conflicts()

        await page.goto(shown.entered)  # the code was used
        await page.reload()
        await page.wait_for_selector(".shut")

    looked_at(tmp_path, look, open_memory=open_memory)


def test_unsaved_input_survives_other_memory_other_view_and_session_end(
    tmp_path: Path,
) -> None:
    with opener(tmp_path)() as memory:
        memory.write("tone", "Be brief.", name="Tone")
        memory.write("plan", "We ship on Friday.", name="Plan")
        seen = memory.write("trip", "We go.")
        memory.write("trip", "We go by foot.", seen=seen)
        memory.write("trip", "We go by car.", seen=seen)

    async def look(shown: Shown) -> None:
        page = shown.page
        await shown.go("memories/tone", "button:has-text('Edit')")
        await page.click("button:has-text('Edit')")
        await page.fill("textarea", "Half a thought.")
        await page.click(".row:has-text('Plan')")
        await page.wait_for_selector(".memory > .prose:has-text('Friday')")
        assert await page.is_visible(".row:has-text('Tone') .kind:has-text('draft')")
        await shown.go("conflicts", ".clash")
        await page.click(".side:has-text('by foot') button:has-text('Edit this text')")
        await page.fill(".own textarea", "We go by train.")
        await shown.go("memories/tone", "textarea")
        assert await page.input_value("textarea") == "Half a thought."

        # A restarted server does not know this page: the input stays readable, and returns with a new link.
        shown.lab.doors._run.clear()
        await page.click("button:has-text('Save')")
        await page.wait_for_selector(".shut h1:has-text('terminal')")
        assert not await page.is_visible(".row")
        assert [await one.input_value() for one in await page.query_selector_all(".typed textarea")] == [
            "Half a thought.", "We go by train.",
        ]  # fmt: skip
        await page.fill(".again input", f"{shown.url}#code=wrong")
        await page.click(".again button")
        await page.wait_for_selector(".shut:has-text('Press Enter')")
        await page.fill(".again input", shown.link())
        await page.click(".again button")
        await page.wait_for_selector(".editor textarea")
        assert await page.input_value("textarea") == "Half a thought."
        await page.click("button:has-text('Save')")
        await page.wait_for_selector(".memory > .prose:has-text('Half a thought.')")
        await shown.go("conflicts", ".own textarea")
        assert await page.input_value(".own textarea") == "We go by train."
        await page.click(".own button:has-text('Cancel')")

        # A new link in the address of the same tab does the same. Only a second press discards the input.
        await shown.go("memories/plan", "button:has-text('Edit')")
        await page.click("button:has-text('Edit')")
        await page.fill("textarea", "Perhaps on Monday.")
        shown.lab.doors._run.clear()
        await page.click("button:has-text('Save')")
        await page.wait_for_selector(".shut h1:has-text('terminal')")
        await page.evaluate(f"location.href = '{shown.link()}'")
        await page.wait_for_selector(".editor textarea")
        assert "code=" not in page.url and await page.input_value("textarea") == "Perhaps on Monday."
        await page.click("button:has-text('Cancel')")
        await page.click("button:has-text('Discard my text')")
        await page.wait_for_selector(".memory > .prose:has-text('Friday')")
        assert await page.locator(".kind:has-text('draft')").count() == 0

    looked_at(tmp_path, look)
