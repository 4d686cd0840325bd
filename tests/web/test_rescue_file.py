"""`export --html` in Chromium, opened as a single file: with the words, a wallet, its key file; with wrong
ones; damaged.

Requires Node, Chromium and the package playwright; otherwise skipped, or failed where counterparts are
required."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import re
from pathlib import Path

import pytest

from ipfsmem.content.car import read_car
from ipfsmem.errors import IncompleteError
from ipfsmem.files import rescue_page
from ipfsmem.memory import Memory
from ipfsmem.wallet.signers import create_keystore
from tests.interop.counterparts import built_page
from tests.support.alone_lab import Page, download, files_of, give_wallet, played
from tests.support.browsers import browser
from tests.support.web_lab import WALLET_KEY, root_of, words_of

pytestmark = [pytest.mark.interop, pytest.mark.slow]

#: The words of 32 zero bytes.
OTHER_WORDS = " ".join(["abandon"] * 23 + ["art"])
_CAR = re.compile(rb'(id="car">)([^<]*)(<)')


@pytest.fixture
def saved(tmp_path: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A vault saved as a page on the disk."""
    monkeypatch.setattr(rescue_page, "BUILT", built_page())
    memory.write("plan", "We ship on **Friday**.", name="The plan", type="project")
    with pytest.raises(IncompleteError, match="since the last sync"):
        memory.bundles.export_html(io.BytesIO())
    root_of(memory)
    page = tmp_path / "rescue.html"
    with page.open("wb") as out:
        memory.bundles.export_html(out)
    return page


def with_car(page: Path, change: bytes) -> None:
    """Put another CAR into the page."""
    text = base64.b64encode(change)
    page.write_bytes(_CAR.sub(lambda found: found[1] + text + found[3], page.read_bytes()))


def car_blocks(car: bytes) -> list[tuple[str, bytes]]:
    """Return its blocks by CID."""
    return [(str(cid), data) for cid, data in read_car(car)]


def car_of(page: Path) -> bytes:
    found = _CAR.search(page.read_bytes())
    assert found is not None
    return base64.b64decode(found[2])


async def opened(page: Page, words: str) -> None:
    await page.fill("[name=words]", words)
    await page.click("button:has-text('Open with the recovery phrase')")


def test_saved_page_opens_offline_with_the_recovery_phrase(saved: Path, memory: Memory) -> None:
    held = saved.read_bytes()
    assert not any(text in held for text in (b"Friday", b"Be direct", b"waved", words_of(memory).encode()))
    zips: list[bytes] = []

    async def play(page: Page) -> None:
        await page.goto(saved.as_uri())
        await opened(page, OTHER_WORDS)
        await page.wait_for_selector(".problem:has-text('These keys do not open this file.')")
        await opened(page, words_of(memory).replace(" ", "\n  ").upper())
        await page.click(".row:has-text('The plan')")
        assert await page.inner_html(".prose strong") == "Friday"
        await page.fill("input[type=search]", "direct")
        await page.wait_for_selector(".row:has-text('The plan')", state="detached")
        await page.click(".row:has-text('Tone')")
        await page.select_option("select.scope", "shop")
        await page.fill("input[type=search]", "")
        await page.wait_for_selector(".row:has-text('deploy')")
        await page.select_option("select.scope", "")
        await page.evaluate("location.hash = '#/timeline'")
        await page.wait_for_selector(".events:has-text('waved')")
        await page.evaluate("location.hash = '#/vault'")
        zips.append(await download(page, "Save as files"))
        for words in ("Sync now", "Save as CAR"):
            assert await page.locator(f"button:has-text('{words}')").count() == 0
        await page.evaluate("location.hash = '#/memories/tone'")
        await page.wait_for_selector(".prose")
        for words in ("New", "Edit", "Forget"):
            assert await page.locator(f"button:has-text('{words}')").count() == 0
        assert await page.evaluate("localStorage.length") == 0
        assert await page.evaluate("indexedDB.databases().then(all => all.length)") == 0

    asked = played(play)
    assert all(one.startswith(("file:", "data:", "blob:")) for one in asked), asked
    with io.BytesIO() as out:
        memory.bundles.export_zip(out)
        assert files_of(zips[0]) == files_of(out.getvalue())


def test_saved_page_opens_with_a_wallet_or_its_key_file(saved: Path, tmp_path: Path) -> None:
    keystore = tmp_path / "wallet.json"
    create_keystore(keystore, "open sesame, please", bytes.fromhex(WALLET_KEY), scrypt_n=1024)
    signed: list[str] = []

    async def play(page: Page) -> None:
        await page.goto(saved.as_uri())
        await page.click("summary:has-text('key file')")
        for typed in ("another one", "open sesame, please"):
            await page.set_input_files("[name=keyfile]", keystore)
            await page.fill("[name=filepass]", typed)
            await page.click("button:has-text('Open with the key file')")
            if typed.startswith("another"):
                await page.wait_for_selector(".problem:has-text('The passphrase of this key file is wrong.')")
        await page.wait_for_selector(".row:has-text('The plan')")
        asked = await give_wallet(page, WALLET_KEY)
        await page.goto(saved.as_uri() + "?again")
        await page.click("button:has-text('Open with Test wallet')")
        await page.wait_for_selector(".row:has-text('The plan')")
        signed.extend(asked)

    played(play)
    assert len(signed) == 1 and signed[0].endswith("Vault: default\nKey number: 1")


def test_damage_in_a_saved_page_is_reported_and_the_rest_opens(saved: Path, memory: Memory) -> None:
    whole = car_of(saved)
    blocks = dict(car_blocks(whole))
    broken = saved.with_name("broken.html")
    opens: list[bool] = []

    async def said(page: Page, car: bytes, words: str) -> None:
        broken.write_bytes(saved.read_bytes())
        with_car(broken, car)
        await page.goto(f"{broken.as_uri()}?{len(opens)}")
        await opened(page, words_of(memory))
        await page.wait_for_selector(f":is(.problem, .offline):has-text('{words}')")
        opens.append(await page.locator(".row").count() > 0)

    async def play(page: Page) -> None:
        for data in blocks.values():
            at = whole.index(data) + len(data) - 1
            await said(page, whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :], "damaged")
        await said(page, whole[: len(whole) - 10], "damaged")
        await said(page, b"", "contains no vault")

    played(play)
    # Damage of a text loses only that text; the structure is needed for all texts.
    assert opens.count(True) >= 4 and opens.count(False) >= 4


_TITLES = """(async () => {
  document.querySelector('[name=words]').value = WORDS
  document.querySelector('unlock-form form').requestSubmit()
  const rows = () => [...document.querySelectorAll('.row .title')].map(one => one.textContent)
  for (let turn = 0; turn < 2400 && rows().length < 2; turn++) await new Promise(done => setTimeout(done, 50))
  return rows()
})()"""


def test_saved_page_opens_in_firefox(saved: Path, memory: Memory) -> None:
    async def titles() -> list[str]:
        async with browser("firefox") as page:
            await page.goto(saved.as_uri())
            found: list[str] = await page.evaluate(_TITLES.replace("WORDS", json.dumps(words_of(memory))))
            return found

    assert asyncio.run(titles()) == ["The plan", "Tone"]
