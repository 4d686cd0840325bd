"""HTTP requests of providers: retries, limits, and the error for each kind of failure."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
import time
import types
import zlib
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any

import msgspec
import pytest
from aiohttp import web
from ipfsmem_providers.http import addresses
from ipfsmem_providers.http.answer import LineCutter
from ipfsmem_providers.http.body import Multipart, SpooledCar
from ipfsmem_providers.http.client import Http, NotConnected, urls_of
from ipfsmem_providers.http.policy import ONCE, Timeouts

from ipfsmem.content.cid import raw_cid
from ipfsmem.errors import ConfigError, ProviderError, ProviderRefused, ProviderUnavailable
from ipfsmem.provider.contract import told_of_pauses
from tests.servers.clockwork import Clockwork
from tests.servers.rude import Talk, reset, rude, rude_here
from tests.servers.threaded import serve
from tests.support import virtual_time
from tests.support.patience import PATIENCE

TOKEN = "very-secret-token"
Handler = Callable[[web.Request], Coroutine[Any, Any, web.StreamResponse]]


class Site:
    """A server with scripted answers that records its requests."""

    def __init__(self) -> None:
        self.url = ""
        self.seen: list[tuple[str, str, dict[str, str], bytes]] = []
        self.answers: list[Callable[[], web.StreamResponse] | Handler] = []

    def app(self) -> web.Application:
        app = web.Application(client_max_size=1 << 30)
        app.router.add_route("*", "/{path:.*}", self.handle)
        return app

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.seen.append((request.method, str(request.rel_url), dict(request.headers), body))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        made = answer(request) if answer.__code__.co_argcount else answer()  # type: ignore[call-arg]
        return await made if asyncio.iscoroutine(made) else made  # type: ignore[return-value]


def plain(status: int = 200, text: str = "ok", **headers: str) -> Callable[[], web.StreamResponse]:
    shown = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda: web.Response(status=status, text=text, headers=shown)


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    made.answers = [plain()]
    with serve(made.app) as url:
        made.url = url
        yield made


@pytest.fixture
def work() -> Clockwork:
    return Clockwork()


def client(
    url: str,
    work: Clockwork | None = None,
    *,
    timeouts: Timeouts | None = None,
    company: bool = False,
    **options: Any,
) -> Http:
    settings: dict[str, Any] = {"company": company, **({"timing": work.timing} if work else {})}
    if timeouts is not None:
        settings["timeouts"] = timeouts
    options.setdefault("auth", {"Authorization": f"Bearer {TOKEN}"})
    return Http("service", trusted=[url], settings=settings, **options)


async def answers(http: Http, *bodies: Coroutine[Any, Any, Any]) -> list[Any]:
    try:
        return [await body for body in bodies]
    finally:
        await http.close()


def run(http: Http, *bodies: Coroutine[Any, Any, Any]) -> list[Any]:
    return asyncio.run(answers(http, *bodies))


def fails(http: Http, body: Coroutine[Any, Any, Any]) -> ProviderError:
    return asyncio.run(failure(http, body))


async def failure(http: Http, body: Coroutine[Any, Any, Any]) -> ProviderError:
    """Return the error, which must contain no secret."""
    with pytest.raises(ProviderError) as caught:
        await answers(http, body)
    error = caught.value
    assert TOKEN not in str(error) + repr(error) + str(error.hint)
    assert error.__cause__ is None and error.__context__ is None  # aiohttp's own contain headers
    return error


UNAVAILABLE = (408, 425, 429, 500, 502, 503, 504)
REFUSED = (400, 401, 402, 403, 404, 405, 409, 410, 413, 422, 451)


@pytest.mark.parametrize("status", UNAVAILABLE)
def test_transient_status_is_retried(site: Site, work: Clockwork, status: int) -> None:
    site.answers = [plain(status), plain(status), plain(200, "fine")]
    http = client(site.url, work)
    [answer] = run(http, http.request("GET", site.url))
    assert answer.text == "fine" and len(site.seen) == http.requests == 3
    assert work.pauses == [0.5, 1.0]


@pytest.mark.parametrize("status", UNAVAILABLE)
def test_transient_status_is_given_up_after_four_attempts(site: Site, work: Clockwork, status: int) -> None:
    site.answers = [plain(status, '{"error":{"reason":"BUSY","details":"come back"}}')]
    http = client(site.url, work)
    error = fails(http, http.request("GET", site.url, what="list pins"))
    assert isinstance(error, ProviderUnavailable) and not error.permanent
    assert str(error) == f"service answered {status} to list pins: BUSY: come back"
    assert len(site.seen) == 4 and len(work.pauses) == 3


@pytest.mark.parametrize("status", REFUSED)
def test_permanent_status_is_refused_at_once(site: Site, work: Clockwork, status: int) -> None:
    site.answers = [plain(status, f'{{"error":"no, {TOKEN}!"}}')]
    http = client(site.url, work)
    error = fails(http, http.request("GET", site.url))
    assert isinstance(error, ProviderRefused) and "no, [redacted]!" in str(error)
    assert len(site.seen) == 1 and work.pauses == []
    assert bool(error.hint) is (status in (401, 402, 403, 410, 413, 451))


def test_post_is_repeated_only_after_429_or_where_it_is_idempotent(site: Site, work: Clockwork) -> None:
    site.answers = [plain(503)]
    http = client(site.url, work)
    fails(http, http.request("POST", site.url, body=b"x"))
    assert len(site.seen) == 1
    fails(http, http.request("POST", site.url, body=b"x", idempotent=True))
    assert len(site.seen) == 5
    site.answers = [plain(429), plain(200)]
    run(
        http, http.request("POST", site.url, body=b"x")
    )  # 429: nothing was done, so any request may be repeated
    assert len(site.seen) == 7


def test_permitted_error_status_is_an_answer(site: Site, work: Clockwork) -> None:
    site.answers = [plain(404, '{"message":"no pin"}'), plain(503)]
    http = client(site.url, work)
    absent, busy = run(
        http, http.request("GET", site.url, allow={404}), http.request("GET", site.url, allow={503})
    )
    assert (absent.status, str(absent.reason), busy.status) == (404, "no pin", 503)
    assert str(http.failure(absent, "unpin")) == "service answered 404 to unpin: no pin"
    assert work.pauses == []


def test_retry_after_is_respected(site: Site, work: Clockwork) -> None:
    date = "Thu, 01 Jan 2026 00:00:30 GMT"
    site.answers = [plain(429, Retry_After="7"), plain(503, Retry_After="soon"), plain(200)]
    http = client(site.url, work)
    run(http, http.request("GET", site.url))
    assert work.pauses == [7.5, 1.0]
    later = Clockwork()
    site.answers = [plain(429, Retry_After=date), plain(200)]
    http = client(site.url, later)
    run(http, http.request("GET", site.url))
    assert later.pauses == [30.5]


def test_pause_of_one_of_several_providers_is_not_awaited(site: Site, work: Clockwork) -> None:
    site.answers = [plain(429, Retry_After="7"), plain(200)]
    http = client(site.url, work, company=True)
    error = fails(http, http.request("GET", site.url))
    assert isinstance(error, ProviderUnavailable) and error.again_after == 7.0
    assert work.pauses == [] and len(site.seen) == 1


def test_short_pauses_of_one_of_several_providers_share_one_bound(site: Site, work: Clockwork) -> None:
    site.answers = [plain(429, Retry_After="3")] * 4
    http = client(site.url, work, company=True)
    error = fails(http, http.request("GET", site.url))
    assert isinstance(error, ProviderUnavailable) and error.again_after == 3.0
    assert work.pauses == [3.5] and len(site.seen) == 2


def test_awaited_pause_is_reported_before_the_wait(site: Site, work: Clockwork) -> None:
    site.answers = [plain(429, Retry_After="7"), plain(200)]
    http, said = client(site.url, work), []

    async def ask() -> None:
        told_of_pauses.set(lambda text: said.append((text, list(work.pauses))))
        await http.request("GET", site.url)

    run(http, ask())
    assert said == [("service answered 429: ok (try again in 7 s): waiting 8 s", [])]


def test_429_without_retry_after_is_retried_then_waits_half_a_minute(site: Site, work: Clockwork) -> None:
    site.answers = [plain(429)] * 4
    http = client(site.url, work)
    error = fails(http, http.request("GET", site.url))
    assert isinstance(error, ProviderUnavailable) and error.again_after == 30.0
    assert len(site.seen) == 4


def test_long_retry_after_is_reported_and_not_awaited(site: Site, work: Clockwork) -> None:
    site.answers = [plain(429, Retry_After="3600")]
    http = client(site.url, work)
    error = fails(http, http.request("GET", site.url))
    assert isinstance(error, ProviderUnavailable) and "3600 s" in str(error)
    assert work.pauses == [] and len(site.seen) == 1


def test_refused_connection_is_reported(work: Clockwork) -> None:
    http = client("http://127.0.0.1:1", work)
    error = fails(http, http.request("POST", "http://127.0.0.1:1/x?token=abcdefgh", body=b"x"))
    assert isinstance(error, NotConnected) and "refused" in str(error)
    assert len(work.pauses) == 3  # no connection was made, so even a POST may be repeated


def against(talk: Talk, ask: Callable[[str], Coroutine[Any, Any, None]]) -> None:
    """Call a server with the behaviour `talk`, in virtual time."""

    async def both() -> None:
        async with rude_here(talk) as url:
            await ask(url)

    virtual_time.run(both())


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nsome"])
def test_connection_reset_is_retried_and_reported(head: bytes, work: Clockwork) -> None:
    count = [0]

    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        count[0] += 1
        writer.write(head)
        await writer.drain()
        await asyncio.sleep(0.02)  # until the head has been read
        reset(writer)

    async def ask(url: str) -> None:
        http = client(url, work)
        error = await failure(http, http.request("GET", url))
        assert isinstance(error, ProviderUnavailable) and "broke off" in str(error)

    against(talk, ask)
    assert count[0] == (4 if head else 8)  # without a head the library itself tries once more
    assert len(work.pauses) == 3


@pytest.mark.parametrize("head", [b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000])
def test_answer_that_is_not_http_is_an_error(head: bytes, work: Clockwork) -> None:
    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        await writer.drain()

    with rude(talk) as url:
        http = client(url, work, retry=ONCE)
        assert isinstance(fails(http, http.request("GET", url)), ProviderUnavailable)


QUICK = Timeouts(stall=0.3, connect=0.3)


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"])
@pytest.mark.parametrize("drips", [False, True])
def test_silent_or_slow_answers_time_out(head: bytes, drips: bool) -> None:
    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while drips or not writer.is_closing():
            await asyncio.sleep(0.05)
            if drips:
                writer.write(b"x" if head else b"HTTP/1.1 100 Continue\r\n\r\n")
                await writer.drain()

    async def ask(url: str) -> None:
        http = client(url, timeouts=QUICK, retry=ONCE)
        error = await failure(http, http.request("GET", url, max_bytes=1 << 30))
        assert isinstance(error, ProviderUnavailable) and "no progress" in str(error)

    against(talk, ask)


def test_slow_but_steady_answer_is_accepted() -> None:
    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 40960\r\nConnection: close\r\n\r\n")
        for _ in range(10):
            await asyncio.sleep(0.08)
            writer.write(b"x" * 4096)
            await writer.drain()

    async def ask(url: str) -> None:
        http = client(url, timeouts=QUICK, retry=ONCE)
        [answer] = await answers(http, http.request("GET", url))
        assert len(answer.body) == 40960
        http = client(url, timeouts=QUICK, retry=ONCE)
        error = await failure(http, http.request("GET", url, total=0.4))
        assert "no progress in time" in str(error)

    against(talk, ask)


def test_stalled_upload_times_out() -> None:
    async def talk(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
        await asyncio.sleep(5)

    async def much() -> AsyncIterator[bytes]:
        for _ in range(1000):
            yield b"x" * 100_000

    with rude(talk) as url:
        http = client(url, timeouts=QUICK, retry=ONCE)
        assert isinstance(fails(http, http.request("POST", url, body=much())), ProviderUnavailable)


def test_answer_of_another_protocol_is_named() -> None:
    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
        await writer.drain()

    with rude(talk) as url:
        http = client(url, retry=ONCE)
        error = fails(http, http.request("GET", url))
    assert isinstance(error, ProviderUnavailable) and str(error).endswith("the answer is not valid HTTP")


def test_answer_size_is_bounded(site: Site, work: Clockwork) -> None:
    site.answers = [plain(200, "x" * 5000)]
    http = client(site.url, work)
    error = fails(http, http.request("GET", site.url, max_bytes=4999))
    assert isinstance(error, ProviderRefused) and "4,999 bytes" in str(error) and len(site.seen) == 1
    [answer] = run(http, http.request("GET", site.url, max_bytes=5000))
    assert len(answer.body) == 5000


def test_endless_answers_are_bounded() -> None:
    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
            await writer.drain()

    with rude(talk) as url:
        http = client(url)
        assert isinstance(fails(http, http.request("GET", url, max_bytes=1 << 20)), ProviderRefused)


@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "GZIP"])
@pytest.mark.parametrize("size", [10, 50_000_000])
def test_response_with_a_content_encoding_is_refused(
    site: Site, status: int, encoding: str, size: int
) -> None:
    """Format 8."""
    packed = zlib.compress(bytes(size), wbits=-15 if encoding == "deflate" else 31)
    site.answers = [lambda: web.Response(status=status, body=packed, headers={"Content-Encoding": encoding})]
    http = client(site.url)
    error = fails(http, http.request("GET", site.url))
    assert isinstance(error, ProviderRefused) and "\x1f" not in str(error)
    assert status == 400 or f"in the encoding {encoding.lower()!r}" in str(error)
    assert site.seen[0][2]["Accept-Encoding"] == "identity"


def test_name_server_without_answer_does_not_delay_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    released, ended = threading.Event(), threading.Event()

    def hangs(*_: Any, **__: Any) -> list[Any]:
        released.wait(PATIENCE)
        ended.set()
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", hangs)
    settings = {"timeouts": Timeouts(connect=0.05, stall=0.05), "retry": ONCE}

    async def ask() -> None:
        http = Http("test", trusted=["http://hangs.example"], settings=settings)
        with pytest.raises(ProviderUnavailable, match=r"no progress in time|no connection"):
            await http.request("GET", "http://hangs.example/")
        await http.close()

    asyncio.run(ask())
    assert not ended.is_set()
    released.set()
    assert ended.wait(PATIENCE)


def test_redirects_are_followed_only_on_request(site: Site, work: Clockwork) -> None:
    site.answers = [plain(302, Location="/there?x=1"), plain(200, "there")]
    http = client(site.url, work)
    error = fails(http, http.request("GET", f"{site.url}/here"))
    assert isinstance(error, ProviderRefused) and "not followed" in str(error)
    site.answers = [plain(302, Location="/there?x=1"), plain(200, "there")]
    [answer] = run(http, http.request("GET", f"{site.url}/here", redirects=1))
    assert answer.text == "there" and site.seen[-1][1] == "/there?x=1"
    assert site.seen[-1][2]["Authorization"] == f"Bearer {TOKEN}"  # the same origin
    site.answers = [plain(302, Location="/again")]
    assert "not followed" in str(fails(http, http.request("GET", site.url, redirects=3)))
    site.answers = [plain(307, Location="/again")]
    assert "not followed" in str(fails(http, http.request("PUT", site.url, body=b"", redirects=3)))
    site.answers = [plain(302)]
    assert "without a location" in str(fails(http, http.request("GET", site.url, redirects=3)))
    for bad in ("ftp://example.com/", "file:///etc/passwd", "javascript:1", "http://[", "http:///x"):
        site.answers = [plain(302, Location=bad)]
        assert isinstance(fails(http, http.request("GET", site.url, redirects=3)), ProviderRefused)


def test_redirect_to_another_trusted_origin_carries_no_request_headers(site: Site) -> None:
    other = Site()
    other.answers = [plain(200, "other")]
    with serve(other.app) as url:
        site.answers = [plain(302, Location=f"{url}/x")]
        http = Http("service", trusted=[site.url, url], auth={"X-Api-Key": TOKEN})
        own = {"Authorization": "Bearer of-this-call", "Accept": "a/b"}
        [answer] = run(http, http.request("GET", site.url, headers=own, redirects=1))
        assert answer.text == "other"
        assert "Authorization" not in other.seen[0][2] and other.seen[0][2]["Accept"] == "a/b"


def test_redirect_from_https_to_http_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    async def send(self: Http, call: Any, url: Any, *rest: Any) -> Any:
        asked.append(str(url))
        return types.SimpleNamespace(
            status=302, url=url, headers={"Location": "http://a.example/x"}, close=lambda: None
        )

    monkeypatch.setattr(Http, "_send", send)
    http = client("https://a.example")
    http.trust("http://a.example")
    error = fails(http, http.request("GET", "https://a.example/x", redirects=3))
    assert isinstance(error, ProviderRefused) and "from https" in str(error)
    assert asked == ["https://a.example/x"]


def test_redirect_to_a_private_address_is_refused(site: Site) -> None:
    other = Site()
    other.answers = [plain(200, "internal")]
    with serve(other.app) as url:
        port = url.rpartition(":")[2]
        for target in (url, f"http://localhost:{port}/", "http://169.254.169.254/latest/meta-data/"):
            site.answers = [plain(302, Location=target)]
            http = client(site.url)
            error = fails(http, http.request("GET", site.url, redirects=5))
            assert isinstance(error, ProviderRefused)
        assert other.seen == []


def test_credentials_are_sent_to_trusted_origins_only(site: Site) -> None:
    async def lookup(host: str, port: int) -> list[tuple[Any, ...]]:
        raise OSError("no name service here")

    http = Http("service", trusted=["https://api.example.com"], auth={"Authorization": TOKEN}, lookup=lookup)
    assert http.is_trusted("https://api.example.com/v1") and http.is_trusted("https://api.example.com:443/")
    for other in (
        "http://api.example.com/",
        "https://api.example.com:8443/",
        "https://example.com/",
        "nonsense",
    ):
        assert not http.is_trusted(other)
    assert isinstance(
        fails(http, http.request("GET", site.url)), ProviderRefused
    )  # 127.0.0.1 and not trusted
    assert site.seen == []


def test_untrusted_origin_receives_no_credentials(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    port = int(site.url.rpartition(":")[2])

    async def lookup(host: str, _: int) -> list[tuple[Any, ...]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(addresses, "is_public", lambda _: True)
    monkeypatch.setattr(addresses, "PORTS", {port})
    http = Http("service", trusted=["https://api.example.com"], auth={"Authorization": TOKEN}, lookup=lookup)
    [answer] = run(http, http.request("GET", f"http://stranger.example:{port}/"))
    assert answer.text == "ok"
    assert "Authorization" not in site.seen[0][2] and site.seen[0][2]["Host"].startswith("stranger.example")


def test_answer_with_an_excessive_length_is_refused_at_once() -> None:
    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\nsome")
        await writer.drain()
        await asyncio.Event().wait()

    with rude(talk) as url:
        http = client(url, retry=ONCE)
        assert isinstance(fails(http, http.request("GET", url)), ProviderRefused)


def test_request_body_is_resent_completely_on_retry(site: Site, work: Clockwork) -> None:
    import hashlib

    data = [bytes([i]) * 100_000 for i in range(30)]
    blocks = [(raw_cid(hashlib.sha256(item).digest()), item) for item in data]
    site.answers = [plain(503), plain(200)]
    http = client(site.url, work)
    passed: dict[str, int] = {}
    http._progress = lambda way, size: passed.__setitem__(way, passed.get(way, 0) + size)

    async def body() -> None:
        with await SpooledCar.write(blocks[0][0], iter(blocks)) as car:
            form = (
                Multipart("b" * 20).field("name", 'a "quoted" ü').file("file", "x.car", car, car.content_type)
            )
            await http.request("POST", site.url, body=form, idempotent=True)
            assert len(site.seen[0][3]) == form.size
            assert int(site.seen[0][2]["Content-Length"]) == form.size
            assert hashlib.sha256(b"".join([p async for p in car.pieces()])).digest() == car.sha256
            assert passed["sent"] == 2 * form.size

    run(http, body())
    assert site.seen[0][3] == site.seen[1][3]
    assert "Transfer-Encoding" not in site.seen[0][2]


def test_streamed_body_is_sent_once(site: Site, work: Clockwork) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"a"
        yield b"b"

    site.answers = [plain(503)]
    http = client(site.url, work)
    fails(http, http.request("PUT", site.url, body=pieces()))
    assert len(site.seen) == 1 and site.seen[0][3] == b"ab"


def test_exception_of_a_body_iterator_is_raised_unchanged(site: Site, work: Clockwork) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"a" * 100_000
        raise ZeroDivisionError

    http = client(site.url, work)
    with pytest.raises(ZeroDivisionError):
        run(http, http.request("PUT", site.url, body=pieces()))
    assert work.pauses == []


class Named(msgspec.Struct):
    name: str


@pytest.mark.parametrize(
    "body", ["<html>Sign in to the hotel</html>", "", "[" * 100_000, '{"name": 1}', "\ud800"]
)
def test_answer_that_is_not_json_is_an_error(site: Site, body: str) -> None:
    raw = body.encode("utf-8", "surrogatepass")
    site.answers = [lambda: web.Response(body=raw, content_type="text/html")]
    http = client(site.url)

    async def ask() -> None:
        (await http.request("GET", site.url)).decode(Named)

    with pytest.raises(ProviderUnavailable, match="text/html"):
        run(http, ask())


def test_lines_of_an_answer_are_read(site: Site) -> None:
    site.answers = [plain(200, '{"a":1}\r\n\n{"b":2}\n{"c":3}')]
    http = client(site.url)

    async def ask() -> list[bytes]:
        async with http.stream("GET", site.url, max_bytes=1000) as answer:
            return [line async for line in answer.lines()]

    assert run(http, ask()) == [[b'{"a":1}', b'{"b":2}', b'{"c":3}']]


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_lines_are_the_same_however_they_are_split(size: int) -> None:
    body = b'{"a":1}\r\n\n{"b":2}\n \n{"c":3}\n'
    cut = LineCutter()
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    assert [line for piece in pieces for line in cut.add(piece)] == [b'{"a":1}', b'{"b":2}', b'{"c":3}']
    assert cut.waiting == 0


def test_endless_line_is_buffered_in_linear_time() -> None:
    def seconds(count: int) -> float:
        cut, piece = LineCutter(), b" " * 4096
        start = time.process_time()
        for _ in range(count):
            cut.add(piece)
        assert cut.waiting == count * len(piece)
        return time.process_time() - start

    assert seconds(8_000) < 40 * max(seconds(1_000), 0.002)


def test_rate_limit_is_respected(site: Site, work: Clockwork) -> None:
    http = Http("service", trusted=[site.url], settings={"timing": work.timing, "per_minute": 60})

    async def many() -> None:
        await asyncio.gather(*(http.request("GET", site.url) for _ in range(13)))

    run(http, many())
    assert len(site.seen) == 13
    assert work.pauses == pytest.approx(
        [1.2, 1.2, 1.2]
    )  # ten at once, then fifty a minute: sixty in any minute


def test_secrets_are_absent_from_logs_and_repr(
    site: Site, caplog: pytest.LogCaptureFixture, work: Clockwork
) -> None:
    site.answers = [plain(503, f"bad token {TOKEN}"), plain(200)]
    http = client(site.url, work, secrets=["another-secret"])
    url = f"{site.url}/a?pinataGatewayToken=abcdef&X-Amz-Signature=cafe0123&name=another-secret&ok=1"
    with caplog.at_level(logging.DEBUG, logger="ipfsmem.providers"):
        [answer] = run(http, http.request("GET", url))
    told = caplog.text + repr(http) + repr(answer)
    assert "503" in caplog.text and "ok=1" in caplog.text
    for secret in (TOKEN, "abcdef", "cafe0123", "another-secret"):
        assert secret not in told
    assert site.seen[0][1].endswith("name=another-secret&ok=1")  # they are sent nevertheless


def test_cancelled_call_ends(site: Site) -> None:
    async def hang(_: web.Request) -> web.StreamResponse:
        await asyncio.sleep(10)
        return web.Response()

    site.answers = [hang]
    http = client(site.url)

    async def body() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await http.request("GET", site.url)

    run(http, body())


def test_client_works_in_successive_event_loops(site: Site) -> None:
    http = client(site.url)
    for _ in range(3):
        asyncio.run(_once(http, site.url))
    run(http, http.request("GET", site.url))
    assert len(site.seen) == 4


async def _once(http: Http, url: str) -> None:
    await http.request("GET", url)
    await http.close()


@pytest.mark.parametrize(
    "bad", ["", "x", "ftp://a", "http://", "http://[", "http://a:99999", "https://a?b", "https://a#b"]
)
def test_invalid_url_is_refused(bad: str) -> None:
    with pytest.raises(ConfigError):
        urls_of(bad, "gateway")


def test_service_urls_are_normalised() -> None:
    assert urls_of(" https://a/ ,http://b:8080/x,https://a", "gateway") == ["https://a", "http://b:8080/x"]
    with pytest.raises(ConfigError):
        Http("service", trusted=["nonsense"])
    http = client("http://127.0.0.1:1")
    assert isinstance(fails(http, http.request("GET", "http://")), ProviderRefused)


def test_unavailable_service_is_tried_once_until_it_answers(site: Site, work: Clockwork) -> None:
    site.answers = [plain(503)]
    http = client(site.url, work)

    async def body() -> None:
        for requests in (4, 5, 6):
            with pytest.raises(ProviderUnavailable):
                await http.request("GET", site.url)
            assert len(site.seen) == requests
        assert len(work.pauses) == 3
        site.answers = [plain(200, "back"), plain(503)]
        assert (await http.request("GET", site.url)).text == "back"
        with pytest.raises(ProviderUnavailable):
            await http.request("GET", site.url)
        assert len(site.seen) == 7 + 4

    run(http, body())


def test_refusals_and_rate_limits_are_not_outages(site: Site, work: Clockwork) -> None:
    http = client(site.url, work)

    async def asked(*statuses: int) -> int:
        site.answers = [plain(status) for status in statuses]
        before = len(site.seen)
        with pytest.raises(ProviderError):
            await http.request("GET", site.url)
        return len(site.seen) - before

    async def body() -> None:
        assert [await asked(429), await asked(429)] == [4, 4]
        assert [await asked(503), await asked(503), await asked(404), await asked(503)] == [4, 1, 1, 4]

    run(http, body())


def test_silent_host_is_skipped_for_a_while(work: Clockwork) -> None:
    """Its connection queue is full, so new connections get no answer."""
    with contextlib.ExitStack() as stack:
        host = stack.enter_context(socket.socket())
        host.bind(("127.0.0.1", 0))
        host.listen(0)
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(host.getsockname())
        url = f"http://127.0.0.1:{host.getsockname()[1]}"
        http = client(url, work, timeouts=Timeouts(connect=0.05))

        async def body() -> None:
            for method, requests in (("POST", 2), ("GET", 2), ("PUT", 2)):
                with pytest.raises(NotConnected):
                    await http.request(method, url, body=b"x")
                assert http.requests == requests
            await work.clock.sleep(61)
            with pytest.raises(NotConnected):
                await http.request("GET", url)
            assert http.requests == 3

        run(http, body())


def test_silent_server_costs_one_timeout(work: Clockwork) -> None:
    """Without the limit each attempt of each call takes a minute."""

    async def talk(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
        await asyncio.sleep(30)

    kept: dict[str, float] = {}

    async def ask() -> None:
        async with rude_here(talk) as one, rude_here(talk) as two:
            first = Http("service", trusted=[one], settings={"silence": kept, "timeouts": QUICK})
            second = Http(
                "service",
                trusted=[two],
                settings={"silence": kept, "timeouts": Timeouts(stall=1.6, connect=0.3, little=1)},
            )
            loop, took = asyncio.get_running_loop(), []
            for http, url in [(first, one)] * 10 + [(second, two)] * 10:
                began = loop.time()
                with pytest.raises(ProviderUnavailable):
                    await http.request("GET", url)
                took.append(loop.time() - began)
            await first.close()
            await second.close()
        # The second one, whose timeout is longer, waits for the rest of it.
        assert took == pytest.approx([0.3, *[0] * 9, 1.3, *[0] * 9])
        assert first.requests == second.requests == 1

    virtual_time.run(ask())


def test_second_host_of_a_silent_provider_has_a_short_timeout() -> None:
    from ipfsmem_providers.http.policy import REST_AFTER_STALL, Silence, Timing

    now = [1000.0]
    kept: dict[str, float] = {}
    timing = Timing(now=lambda: now[0])
    silence, other = Silence(timing, kept), Silence(timing, kept)
    assert silence.allowed(60) == 60 and other.allowed(60) == 60
    silence.add(60)
    assert other.allowed(60) == Timeouts().little == 5 and other.allowed(2) == 2
    now[0] += REST_AFTER_STALL
    assert other.allowed(60) == 60
