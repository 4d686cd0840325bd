"""Take docs/images/page-*.webp anew: every view of the page of `ipfsmem ui`, over the sample memory, in light, dark and at the width of a phone.

It needs the built page (`npm run page` in web/), Chromium, and the packages playwright and pillow. Nothing is loaded from elsewhere. Names
after the script take those views alone, `--out FOLDER` puts them elsewhere.
"""

from __future__ import annotations

import asyncio
import io
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from ipfsmem.api.page import PageFiles
from ipfsmem.api.served import ServedMemory
from ipfsmem.api.serving import Api
from ipfsmem.api.who import AccessControl
from ipfsmem.holding import Holder
from ipfsmem.http.running import running
from ipfsmem.memory import Memory
from ipfsmem.vault.home import Home
from ipfsmem.wallet.signers import RawKeySigner

TARGET: Final = Path(__file__).with_name("images")
#: By name: width, height, and which colours are asked for.
LOOKS: Final = {"light": (1280, 800, "light"), "dark": (1280, 800, "dark"), "phone": (390, 844, "light")}


def make_memory(folder: Path) -> None:
    """The sample on a laptop, which a second device of the same wallet has changed as well."""
    provider = folder / "box"
    provider.mkdir()
    wallet = RawKeySigner(bytes(range(1, 33)))
    laptop = Memory.create(
        "noor", "encrypted-ipfs", provider=str(provider), unlock=wallet, passphrase=False,
        home=Home(folder=folder / "laptop", label="Noor's laptop"),
    )  # fmt: skip
    laptop.bundles.import_(files("ipfsmem").joinpath("data/sample.json").read_bytes())
    laptop.scopes.make("tidewatch", title="Tidewatch")
    here = laptop.scope("tidewatch")
    here.write("release", "Freeze on Thursday, release on Monday.", name="How we release", type="procedure")
    here.write("board", "Rev C has the pull-ups swapped.", name="Board, revision C", type="reference")
    asyncio.run(laptop.sync())
    boat = asyncio.run(
        Memory.recover(
            "noor", provider=str(provider), unlock=wallet, passphrase=False,
            home=Home(folder=folder / "boat", label="Boat computer"),
        )
    )  # fmt: skip
    for text in (
        "Coffee black, light roast, none after two.",
        "Coffee black, light roast, none after two o'clock. Tea is fine later.",
    ):
        laptop.write("user_coffee", text)
    laptop.write(
        "decision_interval", "Measure **every six minutes**; every minute while a storm warning holds.\n"
    )
    boat.write("decision_interval", "Measure **every ten minutes** in summer, to save the battery.\n")
    laptop.note("session", summary="Read the alarm chain again, and cut two steps of it")
    boat.note("visited_station", station="Osen", by="boat")
    _live(laptop)
    for memory in (boat, laptop):
        asyncio.run(memory.sync())
    boat.close()
    laptop.write(
        "note_weather", "Wind from the west until Sunday.", name="Weather for the visit", type="episode"
    )
    laptop.close()


def _live(memory: Memory) -> None:
    """What a few weeks with agents leave: sessions, a graph, what models cost, and two texts that say nearly the same."""
    for session, said in {
        "flood-plan": [
            "Who is called when the water passes 1.85 m?",
            "The guard first, then you; at red the mayor as well.",
            "And at night?",
            "The same, and nobody can mute it.",
        ],
        "release": [
            "What is in the release of August?",
            "Minute readings while a surge lasts, and salinity at Osen.",
        ],
    }.items():
        memory.sessions.add(
            session, [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(said)]
        )
    for name, kind in (
        ("Noor", "person"), ("Tidewatch", "project"), ("Yuki", "person"), ("Łukasz", "person"), ("Osen", "station"), ("Fyret", "station"),
        ("Storholmen", "station"), ("Harbour office", "place"), ("Benedikta", "person"),
    ):  # fmt: skip
        memory.graph.add(name, kind)
    for begin, kind, end in (
        ("Noor", "leads", "Tidewatch"), ("Noor", "works_at", "Harbour office"), ("Yuki", "works_on", "Tidewatch"), ("Łukasz", "works_on", "Tidewatch"),
        ("Osen", "is_part_of", "Tidewatch"), ("Fyret", "is_part_of", "Tidewatch"), ("Storholmen", "is_part_of", "Tidewatch"), ("Benedikta", "advises", "Noor"),
    ):  # fmt: skip
        memory.graph.relate(begin, kind, end)
    for model, agent, tokens, cost in (
        ("large", "coder", 48_000, 0.82),
        ("large", "reader", 21_500, 0.31),
        ("small", "coder", 160_000, 0.12),
    ):
        memory.usage.add(
            model=model, agent=agent, input_tokens=tokens, output_tokens=tokens // 8, cost_usd=cost
        )
    ferry = "The ferry to Storholmen leaves from the north quay at nine on weekdays. On Sundays it leaves at eleven. Tickets are bought on board."
    memory.write("ferry_quay", ferry, name="Ferry", type="reference")
    memory.write("ferry_times", ferry, name="Ferry times", type="reference")


Shot = Callable[[Any], Awaitable[None]]


async def _memories(page: Any) -> None:
    await page.evaluate("location.hash = '#/memories/decision_alarm_chain'")
    await page.wait_for_selector(".memory .facts")


async def _list(page: Any) -> None:
    await page.evaluate("location.hash = '#/memories'")
    await page.wait_for_selector(".row")


async def _search(page: Any) -> None:
    await _list(page)
    await page.fill("input[type=search]", "who do we call when a station floods")
    await page.wait_for_selector(".count:has-text('match')")


async def _edit(page: Any) -> None:
    await _memories(page)
    await page.click("button:has-text('Edit')")
    await page.wait_for_selector("textarea")


async def _history(page: Any) -> None:
    await page.evaluate("location.hash = '#/memories/user_coffee'")
    await page.click("button:has-text('History')")
    await page.click(".versions li:nth-child(2) button:has-text('Look')")
    await page.wait_for_selector(".versions pre")


def _view(name: str, ready: str) -> Shot:
    async def go(page: Any) -> None:
        await page.evaluate(f"location.hash = '#/{name}'")
        await page.wait_for_selector(ready)

    return go


async def _vault(page: Any) -> None:
    await _view("vault", ".cards")(page)
    await page.click("button:has-text('Check')")
    await page.wait_for_selector("details")
    await page.evaluate("document.querySelector('main section').scrollTo(0, 0)")


async def _sessions(page: Any) -> None:
    await _view("sessions", ".item")(page)
    await page.click(".item >> nth=0")
    await page.wait_for_selector(".messages li")


async def _dreams(page: Any) -> None:
    await _view("dreams", "button:has-text('Scan the memories')")(page)
    await page.click("button:has-text('Scan the memories')")
    await page.wait_for_selector(".clash")


VIEWS: Final[dict[str, Shot]] = {
    "list": _list,
    "memory": _memories,
    "search": _search,
    "edit": _edit,
    "history": _history,
    "timeline": _view("timeline", ".events li"),
    "conflicts": _view("conflicts", ".clash"),
    "context": _view("context", ".block"),
    "sessions": _sessions,
    "graph": _view("graph", ".item"),
    "dreams": _dreams,
    "usage": _view("usage", "tbody tr"),
    "vault": _vault,
}


def saved(png: bytes, path: Path) -> None:
    """Keep a picture, each colour to the nearest of 52 steps: nothing is tinted, and the shades of letters become few."""
    from PIL import Image

    steps = [min(255, round(value / 5) * 5) for value in range(256)]
    Image.open(io.BytesIO(png)).convert("RGB").point(steps * 3).save(
        path, lossless=True, quality=60, method=4
    )


async def take(names: list[str], looks: list[str], target: Path) -> None:
    """Take the pictures of these views."""
    from playwright.async_api import async_playwright

    built = PageFiles.built()
    if built is None:
        raise SystemExit("the page is not built: npm ci && npm run page, in web/")
    with tempfile.TemporaryDirectory(prefix="stick-") as folder:
        await asyncio.to_thread(make_memory, Path(folder))
        holder = Holder(lambda: Memory.load("noor", home=Path(folder) / "laptop", passphrase=False))
        served = ServedMemory("noor", holder)
        doors = AccessControl({"noor": served})
        async with running(Api([served], doors, files=built).app()) as url, async_playwright() as driver:
            browser = await driver.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox"]
            )
            for look in looks:
                width, height, scheme = LOOKS[look]
                shape = {
                    "viewport": {"width": width, "height": height},
                    "color_scheme": scheme,
                    "reduced_motion": "reduce",
                }
                for name in names:
                    page = await browser.new_page(**shape)
                    page.on("pageerror", lambda error: print("page:", error, file=sys.stderr))
                    await page.goto(f"{url}/#code={doors.new_code()}")
                    await page.wait_for_selector("main#content")
                    await VIEWS[name](page)
                    await page.wait_for_timeout(150)
                    saved(await page.screenshot(), target / f"page-{name}-{look}.webp")
                    await page.close()
            await browser.close()
        served.close()


if __name__ == "__main__":
    given = sys.argv[1:]
    out = Path(given.pop(given.index("--out") + 1)) if "--out" in given else TARGET
    asked = [one for one in given if one in VIEWS] or list(VIEWS)
    only = [one for one in given if one in LOOKS] or list(LOOKS)
    out.mkdir(exist_ok=True)
    asyncio.run(take(asked, only, out))
