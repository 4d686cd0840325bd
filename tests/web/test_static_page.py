"""The page without a server: any file host serves it, and the vault is in the browser, shared with Python
through a provider.

Requires Node, Chromium and the package playwright; otherwise skipped, or failed where counterparts are
required."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import os
import re
import resource
import secrets
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.content.car import read_car
from ipfsmem.content.cid import parse_cid
from ipfsmem.errors import StorageError
from ipfsmem.files.static_page import write_static_page
from ipfsmem.memory import Memory
from tests.interop.counterparts import built_page
from tests.servers.gateway_of import below
from tests.servers.pinata import V3_KEY, Pinata
from tests.servers.threaded import serve_here
from tests.support.alone_lab import (
    Page,
    download,
    files_of,
    give_authenticator,
    give_wallet,
    hosted,
    picture,
    until,
)
from tests.support.alone_lab import played as played_alone
from tests.support.browsers import browser
from tests.support.page_lab import faults_of
from tests.support.patience import PATIENCE
from tests.support.web_lab import PEER_TOKEN, WALLET_KEY, root_of, words_of

pytestmark = [pytest.mark.interop, pytest.mark.slow]

#: The words of 32 zero bytes.
OTHER_WORDS = " ".join(["abandon"] * 23 + ["art"])

#: The camera starts, and the page is told when the test decides.
_ASKED_FOR_LONG = """(() => {
  window.given = []
  const media = navigator.mediaDevices
  const start = media.getUserMedia.bind(media)
  media.getUserMedia = async what => {
    const stream = await start(what)
    await new Promise(allow => given.push({ stream, allow }))
    return stream
  }
})()"""


def current_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def played(play: Callable[[Page, str], Awaitable[None]], folder: Path, *arguments: str) -> list[str]:
    """Run a play with the folder hosted; return the pages' requests."""

    async def run(page: Page) -> None:
        async with hosted(folder) as address:
            await play(page, address)

    return played_alone(run, *arguments)


@pytest.fixture
def folder(tmp_path: Path, url: str) -> Path:
    """The page as `ipfsmem ui --static` writes it, with a provider that requires a token for writes."""
    made = tmp_path / "page"
    write_static_page(made, [f"routing:{url}", f"gateway:{url}"], built_page())
    return made


async def at_place(page: Page, number: int, place: str, token: str = PEER_TOKEN) -> None:
    """Type a provider's address, and its token."""
    await page.fill(f"[aria-label='Place {number}']", place)
    await page.fill(f"[aria-label='Token for writing to provider {number}']", token)


async def typed(page: Page, words: str, place: str, token: str = PEER_TOKEN) -> None:
    """Fill in the sign-in form, and open."""
    await page.fill("[name=words]", words)
    await page.fill("[aria-label='Place 2']", "")
    await at_place(page, 1, place, token)
    await page.click("button:has-text('Open with the recovery phrase')")


async def saved(page: Page) -> None:
    """Save, and wait for the reading view."""
    await page.click("button:has-text('Save')")
    await page.wait_for_selector(".memory > .prose")


def test_phrase_opens_the_vault_in_a_browser_which_writes_and_publishes(
    folder: Path, url: str, memory: Memory
) -> None:
    zips: list[bytes] = []
    for agent, cost in (("=SUM(1)", 1.5), ('say "hi"', 0.5)):
        memory.usage.add(model="large", agent=agent, input_tokens=600, cost_usd=cost)
    memory.usage.add(provider="p", cost_usd=0.000001)
    # A time that the format accepts, and no `Date` of a browser does.
    odd = {"ts": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S},5Z", "type": "oddly-dated", "id": "a1"}
    memory.bundles.import_(json.dumps({"version": "memory/0.1", "files": {}, "timeline": [odd]}))
    root_of(memory)

    async def play(page: Page, address: str) -> None:
        await page.goto(address)
        await typed(page, OTHER_WORDS, f"peer:{url}")
        await page.wait_for_selector(".problem:has-text('no vault that this key signed for')")
        await typed(page, "one two", f"peer:{url}")
        await page.wait_for_selector(".problem:has-text('24 words required (got 2)')")
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
        await page.wait_for_selector(".events:has-text('oddly-dated')")
        assert await page.locator("h3:has-text('Not dated')").count() == 0
        await page.goto(f"{address}#/vault")
        await page.wait_for_selector("h3:has-text('Devices')")
        await page.click("button:has-text('Sync now')")
        await page.wait_for_selector("text=Everything here is published.")
        await page.click("button:has-text('Check')")
        await page.wait_for_selector(".things .kind")
        zips.append(await download(page, "Save as files"))
        # Model costs are added up here too.
        await page.click("nav a:has-text('Usage')")
        assert await page.inner_text("tbody tr >> nth=0") == "large\t2\t1,200\t0\t$2.00\t"
        csv = await download(page, "Save as CSV")
        assert csv.decode() == memory.usage.csv().text

        # After a reload it opens with the browser's keys, which no script can read, and the peer's token.
        await page.goto("about:blank")
        await page.goto(address)
        await page.wait_for_selector(".row:has-text('From a page')")
        assert await page.evaluate("localStorage.length + sessionStorage.length") == 0

    asked = played(play, folder)
    root_of(memory)
    tone, made = memory.read("tone"), memory.read("from-a-page")
    assert tone is not None and tone.file.body.strip() == "Be kind." and tone.file.tags == ("style", "voice")
    assert made is not None and made.file.body.strip() == "Written **here**."
    assert all("localhost" in one or one.startswith((url, "data:", "blob:")) for one in asked), asked
    with io.BytesIO() as out:
        memory.bundles.export_zip(out)
        assert files_of(zips[0]) == files_of(out.getvalue())


def test_page_finds_vault_by_wallet_and_writes_wait_for_a_token(
    folder: Path, url: str, memory: Memory
) -> None:
    signed: list[str] = []
    cars: list[bytes] = []
    saved_car = folder.parent / "saved.car"

    async def play(page: Page, address: str) -> None:
        asked = await give_wallet(page, WALLET_KEY)
        await page.goto(address)
        await page.click("button:has-text('Open with Test wallet')")
        await page.click(".row:has-text('Tone')")
        signed.extend(asked)
        await page.click("button:has-text('Edit')")
        await page.fill("textarea", "Be kind.")
        await saved(page)
        await page.click("button:has-text('History')")
        await page.wait_for_selector(".versions li >> nth=1")
        await page.click("button:has-text('Done')")
        await page.evaluate("location.hash = '#/context'")
        await page.wait_for_selector("pre.block:has-text('Tone')")
        await page.evaluate("location.hash = '#/vault'")
        await page.wait_for_selector("text=You have unsynced changes.")
        await page.wait_for_selector(".notices:has-text('Nothing could be published')")
        await page.click("button:has-text('Sync now')")
        said = page.locator("[role=status]:has-text('Nothing could be published')")
        assert "up to date" not in await said.inner_text()
        cars.append(await download(page, "Save as CAR"))
        await memory.sync()
        before = memory.read("tone")
        assert before is not None and "kind" not in before.text
        saved_car.write_bytes(cars[0])
        report = await memory.sync(car=saved_car)
        taken = memory.read("tone")
        assert taken is not None and taken.file.body.strip() == "Be kind." and report.exit_code == 0

        await page.evaluate("location.hash = '#/memories/tone'")
        await page.click("button:has-text('Edit')")
        await page.fill("textarea", "Be kinder.")
        await saved(page)
        await page.evaluate("location.hash = '#/browser'")
        await page.click("button:has-text('Add a provider')")
        await at_place(page, 3, f"peer:{url}")
        await page.click("button:has-text('Use these')")
        await page.wait_for_selector("[role=status]:has-text('published')")
        rows = await page.evaluate(
            "new Promise(done => { const open = indexedDB.open('ipfsmem/default'); open.onsuccess = () => {"
            " const get = open.result.transaction('keys').objectStore('keys').get('places');"
            " get.onsuccess = () => done(Array.from(get.result)) } })"
        )
        assert PEER_TOKEN.encode() not in bytes(rows) and len(rows) > 60

    played(play, folder)
    assert len(signed) == 2 and signed[0] == signed[1]  # twice, as this browser was admitted
    assert len(dict(read_car(cars[0]))) > 5
    root_of(memory)
    tone = memory.read("tone")
    assert tone is not None and tone.file.body.strip() == "Be kinder."


def test_page_app_opens_offline_and_locks_in_every_tab(folder: Path, url: str, memory: Memory) -> None:
    async def play(page: Page, address: str) -> None:
        await page.goto(address)
        await page.evaluate("navigator.serviceWorker.ready.then(() => true)")
        wire = await page.context.new_cdp_session(page)
        found = await wire.send("Page.getInstallabilityErrors")
        assert [
            one["errorId"] for one in found["installabilityErrors"] if one["errorId"] != "in-incognito"
        ] == []
        await page.check("input[type=checkbox]")
        await typed(page, words_of(memory), f"peer:{url}")
        await page.wait_for_selector(".row:has-text('Tone')")

        # It can be read before it is stored in this browser, and published after that.
        await page.evaluate("location.hash = '#/vault'")
        await page.wait_for_selector("text=Everything here is published.")
        await page.evaluate("location.hash = '#/'")
        await page.wait_for_selector(".row:has-text('Tone')")

        await page.context.set_offline(True)
        await page.reload()
        await page.click(".row:has-text('Tone')")
        await page.wait_for_selector(".prose:has-text('Always.')")
        await page.click("button:has-text('Edit')")
        await page.fill("textarea", "Written offline.")
        await saved(page)
        other = await page.context.new_page()
        await other.goto(address)
        await other.click(".row:has-text('Tone')")
        await other.wait_for_selector(".prose:has-text('Written offline.')")
        await page.context.set_offline(False)
        await page.evaluate("location.hash = '#/vault'")
        await page.wait_for_selector("text=Everything here is published.")

        await page.evaluate("location.hash = '#/browser'")
        await page.click("button:has-text('Lock now')")
        for one in (page, other):
            await one.wait_for_selector("h1:has-text('Open your vault')")

    played(play, folder)
    root_of(memory)
    tone = memory.read("tone")
    assert tone is not None and tone.file.body.strip() == "Written offline."


@pytest.mark.parametrize("there", [False, True], ids=["new", "empty"])
def test_full_disk_leaves_no_partial_page(tmp_path: Path, there: bool) -> None:
    where, built = tmp_path / "www", built_page()
    if there:
        where.mkdir()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        with pytest.raises(StorageError):
            write_static_page(where, built=built)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [*tmp_path.rglob("*")] == ([where] if there else [])
    written = write_static_page(where, built=built)
    assert sum(one.is_file() for one in tmp_path.rglob("*")) == written
    assert (where / "index.html").stat().st_mode & 0o044 == 0o044 & ~current_umask()


def test_page_without_storage_quota_hides_its_data_and_explains_it(
    folder: Path, url: str, memory: Memory
) -> None:
    for n in range(4):
        memory.write(f"long-{n}", secrets.token_bytes(200_000).hex("\n", 4))
    root_of(memory)

    async def play(page: Page, address: str) -> None:
        await page.context.add_init_script(
            "new MutationObserver(() => { window.seen ||= document.querySelector('.row') !== null })"
            ".observe(document, { subtree: true, childList: true })"
        )
        await page.goto(address)
        wire = await page.context.new_cdp_session(page)
        quota = {"origin": address, "quotaSize": 300_000}
        await wire.send("Storage.overrideQuotaForOrigin", quota)
        await typed(page, words_of(memory), f"peer:{url}")
        await page.wait_for_selector(".problem:has-text('no storage left')")
        assert await page.evaluate("window.seen")
        assert await page.locator(".row").count() == 0

        await wire.send("Storage.overrideQuotaForOrigin", {"origin": address})
        await typed(page, words_of(memory), f"peer:{url}")
        await page.click(".row:has-text('Tone')")
        await page.wait_for_selector(".prose:has-text('Always.')")
        await page.evaluate("location.hash = '#/vault'")
        await page.wait_for_selector("text=Everything here is published.")

    played(play, folder)


def test_two_pages_on_one_host_have_separate_files(tmp_path: Path, url: str) -> None:
    """They are different builds: the worker of one removes older files of its own page, and none of the
    other."""
    for name, place in (("one", f"gateway:{url}"), ("two", f"routing:{url}")):
        write_static_page(tmp_path / "host" / name, [place], built_page())

    async def play(page: Page, address: str) -> None:
        for name in ("one", "two"):
            await page.goto(f"{address}/{name}/")
            await page.wait_for_selector("h1:has-text('Open your vault')")
            await page.evaluate("navigator.serviceWorker.ready")
            await until(page, "navigator.serviceWorker.controller?.state === 'activated'")
        assert await page.evaluate("caches.keys().then(all => all.length)") == 2

    played(play, tmp_path / "host")


def test_passkey_opens_the_browsers_vault_and_nothing_else_does(
    folder: Path, url: str, memory: Memory
) -> None:
    async def play(page: Page, address: str) -> None:
        await give_authenticator(page)
        await page.goto(address)
        await typed(page, words_of(memory), f"peer:{url}")
        await page.wait_for_selector(".row:has-text('Tone')")
        await page.evaluate("location.hash = '#/browser'")
        await page.click("button:has-text('Add a passkey')")
        await page.fill("unlock-form [name=words]", OTHER_WORDS)
        await page.click("button:has-text('Open with the recovery phrase')")
        await page.wait_for_selector(".problem:has-text('do not unlock the vault in this browser')")
        await page.fill("unlock-form [name=words]", words_of(memory))
        await page.click("button:has-text('Open with the recovery phrase')")
        await page.click("button:has-text('Create the passkey')")
        await page.wait_for_selector(".things code")

        await page.goto(address)  # it was not to stay open
        await page.wait_for_selector("h1:has-text('Open your vault')")
        assert await page.locator(".place").count() == 0  # this browser stores its address
        await page.fill("[name=words]", OTHER_WORDS)
        await page.click("button:has-text('Open with the recovery phrase')")
        await page.wait_for_selector(".problem:has-text('these keys do not open the vault in this browser')")
        await page.click("button:has-text('Open with the passkey')")
        await page.click(".row:has-text('Tone')")
        await page.click("button:has-text('Edit')")
        await page.fill("textarea", "By passkey.")
        await saved(page)
        await page.evaluate("location.hash = '#/vault'")
        await page.wait_for_selector("text=Everything here is published.")

        await page.evaluate("location.hash = '#/browser'")
        await page.click("button:has-text('Remove')")
        await page.wait_for_selector(".things code", state="detached")
        await page.click("button:has-text('Lock now')")
        await page.wait_for_selector("h1:has-text('Open your vault')")
        assert await page.locator("button:has-text('passkey')").count() == 0
        await page.click("summary:has-text('Nothing opens it')")
        await page.click("button:has-text('Delete it in this browser')")
        await page.click("button:has-text('Yes, delete it here')")
        await page.wait_for_selector(".place")

    played(play, folder)
    root_of(memory)
    tone = memory.read("tone")
    assert tone is not None and tone.file.body.strip() == "By passkey."


def test_place_of_a_vault_is_shown_while_the_browser_still_publishes(
    folder: Path, url: str, memory: Memory
) -> None:
    async def play(page: Page, address: str) -> None:
        await page.goto(address)
        goes_on = asyncio.Event()

        async def wait(route: Any) -> None:
            await goes_on.wait()
            await route.continue_()

        await page.context.route(f"{url}/car**", wait)
        await typed(page, words_of(memory), f"peer:{url}")
        await page.wait_for_selector(".row:has-text('Tone')")
        await page.evaluate("location.hash = '#/browser'")
        assert await page.input_value("[aria-label='Place 1']") == f"peer:{url}"
        await page.click("button:has-text('Show the link to this vault')")
        link = await page.input_value("textarea.link")
        told = link.partition("#join=ipfsmem:memory:")[2]
        assert f"peer:{url}".encode() in base64.urlsafe_b64decode(told + "=" * (-len(told) % 4))
        goes_on.set()
        await page.evaluate("location.hash = '#/vault'")
        await page.wait_for_selector("text=Everything here is published.")

    played(play, folder)


def test_browser_without_wallet_is_admitted_by_public_keys_and_six_words(
    tmp_path: Path, folder: Path, url: str, memory: Memory
) -> None:
    seen = tmp_path / "seen.mjpeg"

    async def play(page: Page, address: str) -> None:
        await page.goto(address)
        await typed(page, words_of(memory), f"peer:{url}")
        await page.wait_for_selector(".row:has-text('Tone')")
        await page.evaluate("location.hash = '#/browser'")
        await page.click("button:has-text('Show the link to this vault')")
        link = await page.input_value("textarea.link")

        assert page.context.browser is not None
        phone = await (await page.context.browser.new_context(device_scale_factor=3)).new_page()
        phone.set_default_timeout(PATIENCE * 1_000)
        await phone.goto(link)
        await phone.wait_for_selector("joining-form [name=pointer]")
        assert "join" not in phone.url
        await phone.fill("[name=label]", "phone")
        await phone.click("button:has-text('Request access')")
        request = await phone.input_value("textarea.request")
        words = await phone.inner_text(".six")
        await phone.click("button:has-text('I was added: open')")
        await phone.wait_for_selector(".problem:has-text('is not a member yet')")
        await typed(phone, OTHER_WORDS, f"peer:{url}")  # of no vault: the request waits nevertheless
        await phone.wait_for_selector("unlock-form .problem")

        seen.write_bytes(await picture(phone, "svg.qr"))
        await page.bring_to_front()
        # Closed while the user is asked for the camera, and opened again: a late permission is turned off.
        await page.evaluate(_ASKED_FOR_LONG)
        for turn in (1, 2):
            await page.click("button:has-text('with the camera')")
            await until(page, f"given.length === {turn}")
            await page.click("button:has-text('Close the camera')")
        await page.evaluate("delete navigator.mediaDevices.getUserMedia")
        await page.click("button:has-text('with the camera')")
        await page.evaluate("given.forEach(one => one.allow())")
        await until(
            page, "given.every(one => one.stream.getTracks().every(track => track.readyState === 'ended'))"
        )
        await page.wait_for_selector(".clash h3:has-text('phone')")
        assert await page.input_value("[name=request]") == request
        assert await page.inner_text(".clash .six") == words and len(words.split()) == 6
        await page.fill(".clash [name=words]", words_of(memory))
        await page.click(".clash button:has-text('Open with the recovery phrase')")
        await page.wait_for_selector("[role=status]:has-text('phone is a member of the vault now')")

        await phone.click("button:has-text('I was added: open')")
        await phone.click(".row:has-text('Tone')")
        await phone.click("button:has-text('Edit')")
        await phone.fill("textarea", "From a phone.")
        await saved(phone)
        await phone.evaluate("location.hash = '#/browser'")
        await at_place(phone, 1, f"peer:{url}")
        await phone.click("button:has-text('Use these')")
        # Either this sync published it or the concurrent one, which then reports that all is up to date.
        await phone.evaluate("location.hash = '#/vault'")
        await phone.wait_for_selector("text=Everything here is published.")
        await phone.evaluate("location.hash = '#/browser'")
        await phone.click("button:has-text('Lock now')")
        await phone.wait_for_selector(".problem:has-text('Not locked')")

    camera = (
        "--use-fake-device-for-media-stream",
        "--use-fake-ui-for-media-stream",
        f"--use-file-for-fake-video-capture={seen}",
    )
    played(play, folder, *camera)
    root_of(memory)
    tone = memory.read("tone")
    assert tone is not None and tone.file.body.strip() == "From a phone."
    assert "phone" in {one.label for one in memory.members.list()}


def test_sign_in_and_browser_views_are_accessible(folder: Path, url: str, memory: Memory) -> None:
    """axe-core finds nothing serious, light or dark, wide or as narrow as a phone, and nothing overflows a
    narrow page."""

    async def play(page: Page, address: str) -> None:
        await page.goto(address)
        looks = [(scheme, width) for scheme in ("light", "dark") for width in (1100, 390)]

        async def looked_at(state: str) -> None:
            for scheme, width in looks:
                await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
                await page.set_viewport_size({"width": width, "height": 800})
                assert await faults_of(page) == [], (state, scheme, width)
                assert await page.evaluate("document.documentElement.scrollWidth") <= width, (state, width)

        for summary in await page.locator("summary").all():
            await summary.click()
        await page.fill("[aria-label='Place 1']", f"peer:{url}")
        await looked_at("the door")
        await page.click("button:has-text('Open with the recovery phrase')")
        await typed(page, words_of(memory), f"peer:{url}")
        await page.wait_for_selector(".row:has-text('Tone')")
        await page.evaluate("location.hash = '#/browser'")
        await page.click("button:has-text('Show the link to this vault')")
        await page.click("button:has-text('Add a passkey')")
        await page.wait_for_selector("svg.qr")
        await looked_at("this browser")

    played(play, folder)


def test_pinata_key_typed_into_the_page_publishes_and_a_router_finds_it(
    tmp_path: Path, folder: Path, url: str, memory: Memory
) -> None:
    """The stand-in answers for Pinata's hosts, and the peer is the router."""
    account = Pinata()
    account.pending = 1
    signed: list[str] = []

    async def play(page: Page, address: str) -> None:
        async with serve_here(account.app()) as service:

            async def answered(route: Any) -> None:
                request = route.request
                headers = {
                    "Access-Control-Allow-Origin": "*",
                    "Access-Control-Allow-Headers": "*",
                    "Access-Control-Allow-Methods": "*",
                }
                if request.method == "OPTIONS":
                    await route.fulfill(status=204, headers=headers)
                    return
                signed.append(f"{request.method} {request.url.partition('?')[0]}")
                answer = await route.fetch(url=service + request.url.partition("pinata.cloud")[2])
                await route.fulfill(response=answer, headers={**answer.headers, **headers})

            await page.context.route(re.compile(r"https://(api|uploads)\.pinata\.cloud/"), answered)
            await page.goto(address)
            await typed(page, words_of(memory), f"peer:{url}")
            await page.click(".row:has-text('Tone')")
            await page.click("button:has-text('Edit')")
            await page.fill("textarea", "Kept at Pinata.")
            await saved(page)
            await page.evaluate("location.hash = '#/browser'")
            await page.click("button:has-text('Add a provider')")
            await at_place(page, 2, "pinata", "not a key")
            await page.click("button:has-text('Use these')")
            await page.wait_for_selector("[role=status]:has-text('pinata answered 401')")
            await at_place(page, 2, "pinata", V3_KEY)
            await page.click("button:has-text('Use these')")
            await page.wait_for_selector("[role=status]:has-text('published')")

    played(play, folder)
    [newest] = {
        one["cid"]
        for one in account.files.values()
        if len(dict(below(account.blocks, parse_cid(one["cid"])))) > 5
    }
    tone = memory.read("tone")
    root_of(memory)
    assert newest == root_of(memory) and V3_KEY not in str(account.files)
    assert tone is not None and "POST https://uploads.pinata.cloud/v3/files" in signed
    kept = memory.read("tone")
    assert kept is not None and kept.file.body.strip() == "Kept at Pinata."


_IN_FIREFOX = """(async () => {
  const type = (where, text) => { const field = document.querySelector(where); field.value = text; field.dispatchEvent(new Event('input')) }
  const until = async found => { for (let turn = 0; turn < 2400 && !found(); turn++) await new Promise(done => setTimeout(done, 50)); return found() }
  await until(() => document.querySelector("[aria-label='Place 2']"))
  type("[aria-label='Place 1']", PLACE)
  type("[aria-label='Place 2']", '')
  const token = "[aria-label='Token for writing to provider 1']"
  await until(() => document.querySelector(token))
  type(token, TOKEN)
  document.querySelector('[name=words]').value = WORDS
  document.querySelector('unlock-form form').requestSubmit()
  await until(() => document.querySelector('.row'))
  location.hash = '#/vault'
  await until(() => document.body.innerText.includes('Everything here is published.'))
  return [document.body.innerText.includes('Everything here is published.'), (await navigator.serviceWorker.ready).active !== null]
})()"""


def test_firefox_opens_and_admits_itself_and_keeps_its_files(folder: Path, url: str, memory: Memory) -> None:
    typed_in = {"PLACE": f"peer:{url}", "TOKEN": PEER_TOKEN, "WORDS": words_of(memory)}
    asked = _IN_FIREFOX
    for name, text in typed_in.items():
        asked = asked.replace(name, json.dumps(text))

    async def play() -> Any:
        async with hosted(folder) as address, browser("firefox") as page:
            await page.goto(address)
            return await page.evaluate(asked)

    assert asyncio.run(play()) == [True, True]
    root_of(memory)
    assert "Firefox browser" in {one.label for one in memory.members.list()}
