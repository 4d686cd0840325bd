"""Case `browser`: the page without a server, in Chromium: from the wallet's signature to the list, and how long a key that is typed waits.

A new profile each time, so nothing is kept and the memory is brought from a gateway and a router on this machine. These are a process of their own that has each answer
ready, and the time in which the page waits for an answer has a row of its own. The built page is measured as it is (`npm run page` in `web/`); it is asked nothing else than its users ask.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.process import VAULT_NAME, WALLET, unlock

if TYPE_CHECKING:
    from aiohttp import web

    from bench.context import Context
    from ipfsmem.memory import Memory

#: Budget from the signature to the list, without the network, by the number of memories.
LIST_BUDGETS = {40: 0.1, 5_000: 1.5}
#: Budget of a keystroke while the worker seals: still perceived as immediate.
KEY_BUDGET = 0.05
#: A larger vault is not usual at the first opening of a page.
_MOST = 10_000
_TOKEN = "a-token-of-the-bench-which-is-long-enough"
_KEYS = 80

#: Runs in the page before its own scripts: a wallet with prepared signatures, the timestamps, and the delay
#: of keystrokes until the next frame.
_WATCH = """(signature, account, whole) => {
  const at = (window.bench = { steps: [], keys: [], signed: 0, asked: 0, shown: 0 })
  const request = async ({ method }) => {
    if (method === 'eth_requestAccounts') return [account]
    at.signed = performance.now()
    return signature
  }
  const detail = { info: { uuid: '1', rdns: 'org.example.wallet', name: 'Bench wallet', icon: '' }, provider: { request } }
  window.addEventListener('eip6963:requestProvider', () => window.dispatchEvent(new CustomEvent('eip6963:announceProvider', { detail })))
  const post = Worker.prototype.postMessage
  Worker.prototype.postMessage = function (message, ...more) {
    if (message?.do === 'open') {
      at.asked = performance.now()
      this.addEventListener('message', ({ data }) => at.steps.push([data.step ?? (data.id === message.id ? 'opened' : ''), performance.now()]))
    }
    return post.call(this, message, ...more)
  }
  const painted = done => requestAnimationFrame(() => { const { port1, port2 } = new MessageChannel(); port1.onmessage = () => done(performance.now()); port2.postMessage(0) })
  new MutationObserver((_, watching) => {
    if (document.querySelector('.rows .row') === null || document.querySelector('.count')?.textContent !== whole) return
    watching.disconnect()
    painted(now => (at.shown = now))
  }).observe(document, { subtree: true, childList: true, characterData: true })
  window.addEventListener('keydown', ({ timeStamp }) => painted(now => at.keys.push(now - timeStamp)), true)
}"""

#: Runs in the worker: when requests were pending, as [from, to] on the page's clock.
_ASKED = "performance.getEntriesByType('resource').filter(one => /^https?:/.test(one.name)).map(one => [one.startTime + performance.timeOrigin, one.responseEnd + performance.timeOrigin])"


def browser(ctx: Context) -> None:
    """Add the rows for the size of a run."""
    from ipfsmem.files.built_page import BUILT

    chromium = shutil.which("chromium")
    try:
        import playwright.async_api  # noqa: F401 - whether it is there
    except ImportError:
        return ctx.skip("the page in a browser", "playwright is not installed")
    if chromium is None or not (BUILT / "static" / "index.html").is_file():
        return ctx.skip(
            "the page in a browser",
            "Chromium is not installed"
            if chromium is None
            else "the page is not built: npm run page in web/",
        )
    if ctx.size > _MOST:
        return None
    kept = ctx.fresh("browser-kept")
    with _serving(kept) as place, _memory(ctx, place) as memory:
        asyncio.run(_measure(ctx, chromium, place, memory))
    return None


@contextlib.contextmanager
def _serving(kept: Path) -> Iterator[str]:
    """Return the address of the block and name server in its own process."""
    command = [sys.executable, "-m", "bench.browser", "--serve", str(kept)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1]
    ) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


@contextlib.contextmanager
def _memory(ctx: Context, place: str) -> Iterator[Memory]:
    """Publish the corpus as a sealed vault of the bench's wallet."""
    from ipfsmem.memory import Memory

    os.environ["PEER_TOKEN"] = _TOKEN
    made = Memory.create(
        VAULT_NAME,
        "encrypted-ipfs",
        provider=f"peer:{place}",
        unlock=unlock(),
        passphrase=False,
        home=ctx.fresh("browser-home"),
    )
    with made as memory:
        memory.bundles.import_(ctx.folder.parent)
        asyncio.run(memory.sync())
        yield memory


async def _measure(ctx: Context, chromium: str, place: str, memory: Memory) -> None:
    from playwright.async_api import async_playwright

    from ipfsmem.files.static_page import write_static_page
    from ipfsmem.wallet.message import key_request
    from ipfsmem.wallet.signers import RawKeySigner

    wallet = RawKeySigner(WALLET)
    signature = "0x" + wallet.sign_message(key_request(wallet.address, "default", 1)).hex()
    whole = f"{ctx.size:,} memories"
    watching = (
        f"({_WATCH})({json.dumps(signature)}, {json.dumps('0x' + wallet.address.hex())}, {json.dumps(whole)})"
    )
    folder = ctx.fresh("browser-page") / "page"
    write_static_page(folder, [f"routing:{place}", f"gateway:{place}"])
    assert memory.recovery_words is not None
    words = " ".join(memory.recovery_words)

    async def signed(page: Any) -> None:
        await page.click("button:has-text('Open with Bench wallet')")

    async def typed(page: Any) -> None:
        await page.fill("[name=words]", words)
        await page.evaluate(
            "document.querySelector('unlock-form form').requestSubmit(); bench.signed = performance.now()"
        )

    async with async_playwright() as driver, _hosted(folder) as address:
        chrome = await driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])

        async def new_page() -> Any:
            context = await chrome.new_context(locale="en-US", viewport={"width": 1200, "height": 800})
            await context.add_init_script(watching)
            page = await context.new_page()
            await page.goto(address)
            await page.wait_for_selector("button:has-text('Open with Bench wallet')")
            await page.evaluate("navigator.serviceWorker.ready.then(() => true)")
            return page

        runs = ctx.runs(5)
        for name, opens in (("signature", signed), ("words", typed)):
            found = [await _opened(new_page, opens) for _ in range(runs + 1)][1:]
            if not all(found):
                raise RuntimeError("a page did not show the list")
            _add(ctx, name, found)
        await _again(ctx, address, new_page, typed, runs)
        waits = await _typing(new_page, signed)
        ctx.add(
            "browser: a key typed while the worker seals and stores",
            statistics.median(waits),
            runs=len(waits),
            budget_seconds=KEY_BUDGET,
            note=f"from the key to the next frame; frames are 17 ms apart; the longest of {len(waits)}: {max(waits) * 1000:.0f} ms",
        )
        await chrome.close()


Opens = Callable[[Any], Awaitable[None]]


async def _opened(new_page: Callable[[], Awaitable[Any]], opens: Opens) -> dict[str, float]:
    """Return the seconds of one opening in a new profile, by cause."""
    from playwright.async_api import Error

    page = await new_page()
    await opens(page)
    await _shown(page)
    seen = await page.evaluate("({ ...bench, origin: performance.timeOrigin })")
    asked = []
    for worker in page.workers:
        # A helper worker makes no requests, and may have ended by now.
        with contextlib.suppress(Error):
            asked += await worker.evaluate(_ASKED)
    spans = sorted((start - seen["origin"], end - seen["origin"]) for start, end in asked)
    begun, shown = seen["signed"], seen["shown"]
    waited = _covered([(max(start, begun), min(end, shown)) for start, end in spans if start < shown])
    parts = {"all": shown - begun, "network": waited, "keys": seen["asked"] - begun}
    before, name = seen["asked"], "device"
    for step, at in [*seen["steps"], ("", shown)]:
        if (not step and at != shown) or at > shown:
            continue
        inside = _covered(
            [(max(start, before), min(end, at)) for start, end in spans if start < at and end > before]
        )
        parts[name] = parts.get(name, 0) + at - before - inside
        before, name = at, step
    await page.context.close()
    return {name: took / 1000 for name, took in parts.items()}


async def _shown(page: Any) -> None:
    """Wait for the whole list. The page's policy forbids Playwright's own wait."""
    for _ in range(4_000):
        if await page.evaluate("bench.shown > 0"):
            return
        await asyncio.sleep(0.03)
    raise RuntimeError(f"the page shows: {await page.evaluate('document.body.innerText')}")


def _covered(spans: list[tuple[float, float]]) -> float:
    """Return how long at least one of them lasted."""
    total, until = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


#: Names of the steps of an opening in the table; later steps, such as storing and publishing, are not
#: included.
_PARTS = {
    "keys": "keys of the {by}",
    "device": "keys of this browser, its database",
    "looking": "names followed, blocks checked",
    "reading": "signatures checked, texts opened, joined",
    "opened": "listed, drawn",
}


def _add(ctx: Context, by: str, found: list[dict[str, float]]) -> None:
    beside = [one["all"] - one["network"] for one in found]
    fastest = min(beside)
    ctx.add(
        f"browser: {by} to list, excluding the network",
        statistics.median(beside),
        runs=len(found),
        budget_seconds=LIST_BUDGETS.get(ctx.size),
        note=f"a new profile; fastest {fastest * 1000:.0f} ms; load {os.getloadavg()[0]:.1f}",
    )
    ctx.add(f"browser: {by} to list, total", statistics.median(one["all"] for one in found), runs=len(found))
    ctx.add(
        f"browser: {by} to list, the network",
        statistics.median(one["network"] for one in found),
        runs=len(found),
        note="while a response was pending; a gateway and a router on this machine",
    )
    for part, says in _PARTS.items():
        took = [one[part] for one in found if part in one]
        if took:
            ctx.add(f"browser: {by} to list: {says.format(by=by)}", statistics.median(took), runs=len(found))


async def _again(
    ctx: Context, address: str, new_page: Callable[[], Awaitable[Any]], opens: Opens, runs: int
) -> None:
    """Open again in the same browser, from its stored data."""
    page = await new_page()
    await opens(page)
    await _shown(page)
    await page.evaluate("location.hash = '#/vault'")
    await page.wait_for_selector("text=You have unsynced changes.", timeout=120_000)
    found = []
    for _ in range(runs):
        await page.goto("about:blank")
        await page.goto(address)
        await opens(page)
        await _shown(page)
        found.append(await page.evaluate("bench.shown - bench.signed") / 1000)
    await page.context.close()
    ctx.add(
        "browser: words to list, from stored data",
        statistics.median(found),
        runs=len(found),
        note=f"second start in a browser; no network; load {os.getloadavg()[0]:.1f}",
    )


async def _typing(new_page: Callable[[], Awaitable[Any]], opens: Opens) -> list[float]:
    """Return the seconds from a keystroke to the next frame while the vault is downloaded and sealed."""
    page = await new_page()
    await opens(page)
    await page.click("button:has-text('New')", timeout=120_000)
    await page.click("textarea")
    await page.evaluate("bench.keys.length = 0")
    text = ("what is typed here waits for nobody " * 9)[:_KEYS]
    await page.keyboard.type(text, delay=20)
    assert await page.input_value("textarea") == text
    waits = [one / 1000 for one in await page.evaluate("bench.keys")]
    await page.context.close()
    return waits


@contextlib.asynccontextmanager
async def _hosted(folder: Path) -> AsyncIterator[str]:
    """Return the address of a host of these files."""
    from aiohttp import web

    from ipfsmem.http.running import running

    app = web.Application()

    async def first(_: web.Request) -> web.FileResponse:
        return web.FileResponse(folder / "index.html")

    app.router.add_get("/", first)
    app.router.add_static("/", folder)
    async with running(app) as url:
        yield url.replace("127.0.0.1", "localhost")


async def _serve(kept: Path) -> None:
    from aiohttp import web
    from ipfsmem_providers.directory import DirectoryProvider

    from ipfsmem.http.blocks import app
    from ipfsmem.http.running import running

    answers: dict[str, tuple[bytes, dict[str, str]]] = {}

    @web.middleware
    async def ready(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Answers are immutable by CID: built once, then served at once."""
        if request.method != "GET" or not request.path.startswith("/ipfs/"):
            return await handler(request)
        if request.path_qs not in answers:
            import aiohttp

            async with aiohttp.ClientSession() as asks, asks.get(f"{inside}{request.path_qs}") as given:
                if given.status != 200:
                    return await handler(request)
                kinds = {
                    name: given.headers[name]
                    for name in ("Content-Type", "Access-Control-Allow-Origin")
                    if name in given.headers
                }
                answers[request.path_qs] = (await given.read(), kinds)
        body, kinds = answers[request.path_qs]
        return web.Response(body=body, headers=kinds)

    provider = DirectoryProvider(kept)
    server = app(provider, token=_TOKEN)
    server.middlewares.append(ready)
    async with running(app(provider, token=_TOKEN)) as inside, running(server) as url:
        print(url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.browser", description=__doc__)
    parser.add_argument(
        "--serve", type=Path, required=True, metavar="FOLDER", help="be the gateway and the router"
    )
    asyncio.run(_serve(parser.parse_args().serve))
