"""Static pages in Chromium, driven by Playwright, with a wallet whose key the test holds. Contains no
tests."""

from __future__ import annotations

import asyncio
import contextlib
import io
import zipfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.interop.counterparts import need_program
from tests.servers.threaded import serve_here
from tests.support.extras import need_extra
from tests.support.patience import PATIENCE

Page = Any

#: A wallet announced by EIP-6963, whose signatures the test makes.
_WALLET = """(() => {
  const provider = { request: async ({ method, params = [] }) => {
    if (method === 'eth_requestAccounts') return [await window.testAccount()]
    if (method === 'personal_sign') return window.testSign(params[0])
    throw Object.assign(new Error(method), { code: 4200 })
  } }
  const detail = { info: { uuid: '1', rdns: 'org.example.wallet', name: 'Test wallet', icon: 'data:image/svg+xml,' }, provider }
  const announce = () => window.dispatchEvent(new CustomEvent('eip6963:announceProvider', { detail }))
  window.addEventListener('eip6963:requestProvider', announce)
})()"""


@contextlib.asynccontextmanager
async def hosted(folder: Path) -> AsyncIterator[str]:
    """Serve a folder (with `index.html` in any subfolder) and yield the address."""
    app = web.Application()

    async def first(request: web.Request) -> web.FileResponse:
        return web.FileResponse(folder / request.match_info["page"] / "index.html")

    app.router.add_get("/{page:(?:[a-z]+/)?}", first)
    app.router.add_static("/", folder)
    async with serve_here(app) as url:
        yield url.replace(
            "127.0.0.1", "localhost"
        )  # a passkey's relying party must be a host name, not an IP address


def played(play: Callable[[Page], Awaitable[None]], *arguments: str) -> list[str]:
    """Run `play` in a new Chromium profile; return the URLs that its pages requested. AssertionError if a
    page violated its content security policy."""
    api = need_extra("counterparts", "playwright.async_api")
    chromium = need_program("chromium")
    asked: list[str] = []
    said: list[str] = []

    async def run() -> None:
        async with api.async_playwright() as driver:
            browser = await driver.chromium.launch(
                executable_path=chromium, args=["--no-sandbox", *arguments]
            )
            context = await browser.new_context()
            context.set_default_timeout(PATIENCE * 1_000)
            context.on("request", lambda request: asked.append(request.url))
            context.on("console", lambda one: said.append(one.text))
            page = await context.new_page()
            try:
                await play(page)
            except Exception as error:
                pages = [one for each in browser.contexts for one in each.pages]
                shown = "\n---\n".join([await one.evaluate("document.body.innerText") for one in pages])
                raise AssertionError(f"{error}\nThe page shows: {shown}\nIt said: {said}") from error
            await browser.close()

    asyncio.run(run())
    assert not [one for one in said if "Content Security Policy" in one or "Trusted" in one], said
    return asked


async def give_wallet(page: Page, key: str) -> list[str]:
    """Install a wallet with this key (hex) into all later pages; return the list of texts that it is asked
    to sign."""
    from eth_account import Account  # takes most of a second
    from eth_account.messages import encode_defunct

    def sign(data: str) -> str:
        made = Account.sign_message(encode_defunct(hexstr=data), private_key=key)
        return str(made.signature.to_0x_hex())

    return await give_signer(page, Account.from_key(key).address, sign)


async def give_signer(page: Page, account: str, sign: Callable[[str], str]) -> list[str]:
    """Install a wallet with this account into all later pages. `sign` makes its signatures, hex to hex.
    Return the list of texts that it is asked to sign."""
    signed: list[str] = []

    def noted(data: str) -> str:
        signed.append(bytes.fromhex(data.removeprefix("0x")).decode())
        return sign(data)

    await page.context.expose_function("testSign", noted)
    await page.context.expose_function("testAccount", lambda: account)
    await page.context.add_init_script(_WALLET)
    return signed


async def until(page: Page, holds: str) -> None:
    """Wait until an expression is true in a page. Playwright's own wait evaluates text on each poll, which
    the pages' content security policy forbids."""
    look = f"() => new Promise(done => {{ const look = () => ({holds}) ? done() : setTimeout(look, 50); look() }})"
    await asyncio.wait_for(page.evaluate(look), PATIENCE)


async def give_authenticator(page: Page) -> None:
    """Add a virtual passkey authenticator that supports PRF and needs no user."""
    wire = await page.context.new_cdp_session(page)
    await wire.send("WebAuthn.enable")
    kind = {"protocol": "ctap2", "ctap2Version": "ctap2_1", "transport": "internal"}
    can = dict.fromkeys(("hasResidentKey", "hasUserVerification", "isUserVerified", "hasPrf"), True)
    await wire.send(
        "WebAuthn.addVirtualAuthenticator", {"options": {**kind, **can, "automaticPresenceSimulation": True}}
    )


async def picture(page: Page, what: str) -> bytes:
    """Return a JPEG of a square element, sized for Chromium's fake camera: an even number of rows and
    columns."""
    found = page.locator(what)
    await found.scroll_into_view_if_needed()
    box = await found.bounding_box()
    side = 2 * int(box["width"] / 2)
    clip = {"x": int(box["x"]), "y": int(box["y"]), "width": side, "height": side}
    return bytes(await page.screenshot(type="jpeg", quality=100, clip=clip))


async def download(page: Page, button: str) -> bytes:
    """Click a button of the page and return the file that it downloads."""
    async with page.expect_download() as coming:
        await page.click(f"button:has-text('{button}')")
    return await asyncio.to_thread((await (await coming.value).path()).read_bytes)


def files_of(data: bytes) -> dict[str, bytes]:
    """Return the files of a zip by path."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}
