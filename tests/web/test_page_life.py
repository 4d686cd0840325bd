"""Sessions, the graph by keyboard, dreams (shown, applied, undone) and usage in a real browser.

Requires Node, Chromium and the package playwright; otherwise skipped, or failed where counterparts are
required."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from ipfsmem.device.replica import Environment
from ipfsmem.memory import Memory
from ipfsmem.testing.clock import SeededRandom
from ipfsmem.vault.home import Home
from ipfsmem.wording import zone_of
from tests.cli.test_cli_promote import conversation_database
from tests.support.api_lab import opener
from tests.support.page_lab import Shown, looked_at

pytestmark = [pytest.mark.interop, pytest.mark.slow]

FERRY = "The ferry to the island leaves at nine from the old harbour, on Sundays at ten."


def lived(home: Path) -> None:
    """A vault with sessions, entities, duplicate texts, and model usage."""
    with opener(home)() as memory:
        for n in range(10):
            memory.sessions.add(f"older_{n}", [{"role": "user", "content": f"Older {n}"}])
        memory.sessions.create("harbour", title="How to get to the island")
        said = [{"role": "user", "content": f"Question {n} <b>bold</b>?"} for n in range(120)]
        memory.sessions.add("harbour", [*said, {"role": "assistant", "content": "By the ferry at nine."}])
        memory.sessions.add("tides", [{"role": "user", "content": "When is high tide?"}])
        for name, kind in (("Ada", "person"), ("Acme", "company"), ("Oslo", "city"), ("<i>Bo</i>", "person")):
            memory.graph.add(name, kind, [f"{name} is a {kind}"])
        for begin, type, end in (
            ("Ada", "works_at", "Acme"),
            ("Acme", "is_in", "Oslo"),
            ("<i>Bo</i>", "knows", "Ada"),
        ):
            memory.graph.relate(begin, type, end)
        for key in ("ferry_one", "ferry_two"):
            memory.write(key, FERRY)
        memory.write("trip", "See [[ferry_one]] and [[ferry_two]], and [[nowhere]].")
        for model, agent, cost in (
            ("large", "coder", 1.5),
            ("small", "reader", 0.25),
            ("small", "coder", 0.25),
        ):
            memory.usage.add(model=model, agent=agent, input_tokens=1_200, output_tokens=300, cost_usd=cost)


def test_sessions_are_read_searched_saved_and_forgotten_as_shown(tmp_path: Path) -> None:
    lived(tmp_path)

    async def look(shown: Shown) -> None:
        page = shown.page
        await page.click("nav a:has-text('Sessions')")
        await page.click(".item:has-text('How to get')")
        await page.wait_for_selector(".messages li:has-text('By the ferry')")
        assert (
            await page.locator(".messages li").count() == 100
            and await page.locator(".messages b").count() == 0
        )
        assert await shown.faults() == []
        assert await page.locator(".items .item").count() == 10
        await page.click("button:has-text('Show 2 older sessions')")
        await page.wait_for_selector(".item:has-text('Older 0')")
        await page.click("button:has-text('Show earlier ones')")
        await page.wait_for_selector(".messages li:has-text('Question 0 ')")
        async with page.expect_download() as saving:
            await page.click("button:has-text('Save as Markdown')")
        path = await (await saving.value).path()
        assert path.read_text("utf-8").startswith("# How to get to the island")
        await page.fill("input[type=search]", "tide")
        await page.wait_for_selector(".count:has-text('1 message')")
        await page.click(".item:has-text('high tide')")
        await page.wait_for_selector(".detail h2:has-text('high tide')")
        await page.fill("input[type=search]", "")

        # A message added elsewhere appears, and a pending confirmation to forget the session is asked again.
        await page.click("button:has-text('Forget')")
        with opener(tmp_path)() as other:
            other.sessions.add("tides", [{"role": "assistant", "content": "At noon."}])
        await page.wait_for_selector(".messages li:has-text('At noon.')")
        await page.wait_for_selector("button:has-text('Forget on every device')", state="detached")
        await page.click("button:has-text('Forget')")
        await page.click("button:has-text('Forget on every device')")
        await page.wait_for_selector(".item:has-text('high tide')", state="detached")
        with opener(tmp_path)() as other:
            left = {one.session for one in other.sessions.list()}
            assert "harbour" in left and "tides" not in left

    looked_at(tmp_path, look)


def test_imported_messages_are_marked_and_approved_after_a_question(tmp_path: Path) -> None:
    with opener(tmp_path)() as memory:
        memory.bundles.import_from(
            "initrunner", conversation_database(tmp_path / "agent.db", "Otters like rain.", "Obey.")
        )
        memory.sessions.add("talk", [{"role": "user", "content": "Mine."}])

    def pending() -> int:
        with opener(tmp_path)() as other:
            return len(other.sessions.told("talk").pending)

    async def look(shown: Shown) -> None:
        page = shown.page
        await page.click("nav a:has-text('Sessions')")
        await page.click(".item:has-text('imported, not approved')")
        await page.wait_for_selector(".messages li:has-text('Mine.')")
        assert await page.locator(".messages li:has-text('imported, not approved')").count() == 2
        assert await shown.faults() == []
        # A pending confirmation to approve is asked again when something changed.
        await page.click("button:has-text('Approve')")
        with opener(tmp_path)() as other:
            other.sessions.add("talk", [{"role": "user", "content": "More."}])
        await page.wait_for_selector(".messages li:has-text('More.')")
        await page.wait_for_selector("button:has-text('Approve them')", state="detached")
        await page.click("button:has-text('Approve')")
        await page.click("button:has-text('Leave them pending')")
        assert pending() == 2
        await page.click("button:has-text('Approve')")
        await page.click("button:has-text('Approve them')")
        await page.wait_for_selector(":text('imported, not approved')", state="detached")
        assert await page.locator("button:has-text('Approve')").count() == 0
        assert pending() == 0

    looked_at(tmp_path, look)


def test_imported_messages_are_all_shown_before_they_are_approved(tmp_path: Path) -> None:
    """Also those that arrive while the session is opened."""
    with opener(tmp_path)() as memory:
        memory.bundles.import_from(
            "initrunner", conversation_database(tmp_path / "agent.db", *(f"Otter {n}." for n in range(120)))
        )

    async def look(shown: Shown) -> None:
        page = shown.page
        asked = []

        async def noted(route: Any) -> None:
            what = "messages" if "/messages" in route.request.url else "facts"
            asked.append(f"{what} asked")
            answer = await route.fetch()
            asked.append(f"{what} answered")
            await route.fulfill(response=answer)

        await page.route("**/v1/sessions/talk*", noted)
        await page.route("**/v1/sessions/talk/messages*", noted)
        await page.click("nav a:has-text('Sessions')")
        await page.click(".item:has-text('imported, not approved')")
        await page.wait_for_selector(".messages li:has-text('Otter 119.')")
        assert await page.locator(".messages li:has-text('Otter 19.')").count() == 0
        await page.click("button:has-text('Approve')")
        await page.wait_for_selector("button:has-text('Approve them')")
        assert await page.locator(".messages li:has-text('imported, not approved')").count() == 120
        one = ["facts asked", "facts answered", "messages asked", "messages answered"]
        assert asked == one * (len(asked) // 4) and len(asked) >= 8
        await page.click("button:has-text('Approve them')")
        await page.wait_for_selector(":text('imported, not approved')", state="detached")

    looked_at(tmp_path, look)
    with opener(tmp_path)() as other:
        assert not other.sessions.told("talk").pending


def test_damaged_session_is_shown_and_can_be_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("[sessions]\nhere_only = true\n")
    monkeypatch.setenv("IPFSMEM_CONFIG", str(file))
    with opener(tmp_path)() as memory:
        for name in ("torn", "sound"):
            memory.sessions.add(name, [{"role": "user", "content": f"The {name} one"}, {"content": "more"}])
        with memory.replica.transaction():
            db = memory.replica.db.connection
            (mark,) = db.execute("SELECT mark FROM sessions_here ORDER BY rowid").fetchone()
            db.execute("UPDATE sessions_here SET row = x'00' WHERE mark = ? AND n = 0", (mark,))

    async def look(shown: Shown) -> None:
        page = shown.page
        await page.click("nav a:has-text('Sessions')")
        await page.wait_for_selector(".item:has-text('The sound one')")
        await page.wait_for_selector(".list .problem:has-text(\"'torn' differs from the written one\")")
        assert await shown.faults() == []
        await page.click(".list .problem button:has-text('Forget')")
        await page.click(".list .problem button:has-text('Forget on every device')")
        await page.wait_for_selector(".list .problem", state="detached")
        with opener(tmp_path)() as other:
            assert [one.session for one in other.sessions.list()] == ["sound"]

    looked_at(tmp_path, look)


def test_graph_is_shown_as_list_and_picture_and_works_by_keyboard(tmp_path: Path) -> None:
    lived(tmp_path)

    async def look(shown: Shown) -> None:
        page = shown.page
        await shown.go("graph", ".picture a")
        assert await page.locator(".picture a").count() == await page.locator(".items .item").count()
        assert await page.locator(".items i, .picture i").count() == 0
        await page.click(".item:has-text('Ada')")
        await page.wait_for_selector(".detail h2:has-text('Ada')")
        await page.wait_for_selector(".relations li:has-text('works_at') a:has-text('Acme')")
        assert await page.is_visible(".relations li:has-text('knows') a:has-text('<i>Bo</i>')")
        assert await page.locator(".picture a").count() == 3
        await page.select_option("select[aria-label='Relations away']", "2")
        await page.wait_for_selector(".picture a[aria-label='Oslo, city']")
        assert await shown.faults() == []
        await page.focus(".picture a[aria-label='Oslo, city']")
        await page.keyboard.press("Enter")
        await page.wait_for_selector(".detail h2:has-text('Oslo')")
        assert page.url.endswith("#/graph/oslo")
        await page.fill("input[type=search]", "company")
        await page.wait_for_selector(".count:has-text('1 entity')")
        with opener(tmp_path)() as other:
            other.graph.add("Fjord", "water", ["near the company"])
            other.graph.relate("Fjord", "is_at", "Oslo")
        await page.wait_for_selector(".item:has-text('Fjord')")
        await page.wait_for_selector(".relations a:has-text('Fjord')")

    looked_at(tmp_path, look)


def test_dream_is_shown_applied_and_undone(tmp_path: Path) -> None:
    lived(tmp_path)

    async def look(shown: Shown) -> None:
        page = shown.page
        await shown.go("dreams", ".empty:has-text('No proposals')")
        await page.click("button:has-text('Scan the memories')")
        await page.wait_for_selector(".clash:has-text('contains everything that')")
        assert await page.is_visible(".clash .kind:has-text('will be deleted')")
        assert await shown.faults() == []
        assert await page.is_visible(".things li:has-text('has a broken link'):has-text('nowhere')")
        assert "ferry" in await page.inner_text(".side:has-text('Now') pre mark >> nth=0")
        with opener(tmp_path)() as other:
            assert other.read("ferry_one") is not None is not other.read("ferry_two")
        await page.click("button:has-text('Apply all')")
        await page.wait_for_selector(".outcome:has-text('1 memory changed, 1 deleted')")
        with opener(tmp_path)() as other:
            assert [key for key in ("ferry_one", "ferry_two") if other.read(key) is None] != []
            other.write("trip", "We go by foot.")
        await page.click("button:has-text('Undo')")
        await page.wait_for_selector(
            ".outcome:has-text('1 memory restored'):has-text('Left as it is'):has-text('trip')"
        )
        with opener(tmp_path)() as other:
            trip = other.read("trip")
            assert trip is not None and trip.file.body.strip() == "We go by foot."
            assert other.read("ferry_one") is not None is not other.read("ferry_two")

    looked_at(tmp_path, look)


def test_memory_edited_after_the_proposal_is_left_and_reported(tmp_path: Path) -> None:
    lived(tmp_path)

    async def look(shown: Shown) -> None:
        page = shown.page
        await shown.go("dreams", "button:has-text('Scan the memories')")
        await page.click("button:has-text('Scan the memories')")
        await page.wait_for_selector(".clash")
        with opener(tmp_path)() as other:
            other.write("ferry_one", "There is no ferry any more.")
        await page.wait_for_selector(".side pre:has-text('no ferry any more')")
        await page.click("button:has-text('Apply all')")
        await page.wait_for_selector(".outcome:has-text('Left as it is')")
        with opener(tmp_path)() as other:
            assert other.read("ferry_one") is not None is not other.read("ferry_two")

    looked_at(tmp_path, look)


def test_usage_is_added_up_and_saved(tmp_path: Path) -> None:
    lived(tmp_path)

    async def look(shown: Shown) -> None:
        page = shown.page
        await shown.go("usage", "tbody tr")
        assert await page.inner_text("tbody tr:has-text('large')") == "large\t1\t1,200\t300\t$1.50\t"
        assert "$2.00" in await page.inner_text("tfoot") and "$2.00" in await page.inner_text(".cards")
        assert await shown.faults() == []
        await page.select_option("select[aria-label='Add up by']", "agent")
        await page.wait_for_selector("tbody tr:has-text('coder'):has-text('$1.75')")
        async with page.expect_download() as saving:
            await page.click("button:has-text('Save as CSV')")
        assert (await (await saving.value).path()).read_text().count("\n") == 4
        with opener(tmp_path)() as other:
            other.usage.add(model="new", agent="other", cost_usd=3)
        await page.wait_for_selector("tbody tr:has-text('other')")

    looked_at(tmp_path, look)


def test_timeline_and_usage_use_the_days_of_the_viewer(tmp_path: Path) -> None:
    """An evening in Los Angeles is the next day in UTC."""
    there = zone_of("America/Los_Angeles")
    day = datetime.now(there).date() - timedelta(days=2)
    evening = datetime.combine(day, time(20), there)
    world = Environment(lambda: int(evening.timestamp() * 1000), SeededRandom("evening"))
    with Memory.load(
        "m", "local", home=Home(folder=tmp_path, environment=world), passphrase=False, create=True
    ) as memory:
        memory.usage.add(model="late", cost_usd=1)
    utc = day + timedelta(days=1)

    async def look(shown: Shown) -> None:
        page = shown.page
        await shown.go("timeline", f".days button[aria-label='{day}: 1 event']")
        assert await page.locator(f".days button[aria-label^='{utc}']").count() == 0
        await page.click(f".days button[aria-label^='{day}']")
        await page.wait_for_selector(f".filter:has-text('{day}')")
        await page.wait_for_selector(".events li:has-text('usage')")
        await shown.go("usage", "tbody tr")
        await page.select_option("select[aria-label='Add up by']", "day")
        await page.wait_for_selector(f"tbody tr:has-text('{day}')")
        # A server without time zone files knows UTC only.
        refused = {"kind": "UsageError", "detail": "unknown time zone"}
        await page.route("**/*tz=*", lambda route: route.fulfill(status=400, json=refused))
        await shown.go("timeline", f".days button[aria-label='{utc}: 1 event']")

    looked_at(tmp_path, look, timezone_id="America/Los_Angeles")


def test_export_names_omitted_files_and_saves_the_others_on_demand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("[sessions]\nhere_only = true\n")
    monkeypatch.setenv("IPFSMEM_CONFIG", str(file))
    lived(tmp_path)

    async def look(shown: Shown) -> None:
        page = shown.page
        await shown.go("vault", "button:has-text('Save as files')")
        await page.click("button:has-text('Save as files')")
        await page.wait_for_selector(".problem:has-text('kept on this device only'):has-text('harbour')")
        assert await shown.faults() == []
        async with page.expect_download() as saving:
            await page.click("button:has-text('Save the rest')")
        with ZipFile(await (await saving.value).path()) as saved:
            names = saved.namelist()
        assert "memory/trip.md" in names and not any("harbour" in name for name in names)
        assert await page.locator(".problem").count() == 0

    looked_at(tmp_path, look)


def test_proposal_of_one_scope_stays_while_another_is_scanned(tmp_path: Path) -> None:
    lived(tmp_path)
    with opener(tmp_path)() as memory:
        for key in ("one", "two"):
            memory.scope("work").write(key, "At work the printer is on the second floor.")

    async def look(shown: Shown) -> None:
        page = shown.page
        await shown.go("dreams", "button:has-text('Scan the memories')")
        await page.click("button:has-text('Scan the memories')")
        await page.wait_for_selector(".clash:has-text('ferry')")
        with opener(tmp_path)() as other:
            other.scope("work").dreams.propose()
        await page.select_option("select[aria-label='Scope']", "work")
        await page.wait_for_selector(".clash:has-text('printer')")
        await page.select_option("select[aria-label='Scope']", "")
        await page.wait_for_selector(".clash:has-text('ferry')")

    looked_at(tmp_path, look)
