"""Gateways that withhold, falsify, break off or flood: every returned block is correct."""

from __future__ import annotations

import asyncio
import hashlib
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web
from ipfsmem_providers.gateways import Gateways
from ipfsmem_providers.gateways.client import base_of
from ipfsmem_providers.gateways.own_gateway import OwnGateway
from ipfsmem_providers.http import addresses
from ipfsmem_providers.http.policy import ONCE, Timeouts
from ipfsmem_providers.routing.client import RoutingClient
from yarl import URL

from ipfsmem.content.car import car_bytes, header, section
from ipfsmem.content.cid import CID, ipns_name, parse_cid, raw_cid
from ipfsmem.content.dagpb import decode_node
from ipfsmem.content.limits import BLOCK_MAX, Limits
from ipfsmem.content.tree import build_tree
from ipfsmem.errors import ConfigError, ProviderError, ProviderRefused, ProviderUnavailable
from ipfsmem.provider.contract import Block, Pin, Provider, open_provider
from ipfsmem.published import ipns_record
from ipfsmem.seal.primitives import Signer25519
from tests.servers.clockwork import Clockwork
from tests.servers.threaded import serve
from tests.support.ports import free_port
from tests.support.provider_lab import run

TREE = build_tree({f"memory/{n}.md": f"text {n}".encode() * 50 for n in range(40)})
BLOCKS: dict[CID, bytes] = dict(TREE.blocks)
ORDER: list[Block] = list(reversed(TREE.blocks))  # parents first
SEED = b"\x07" * 32
NAME = ipns_name(Signer25519(SEED).public)
UNTIL = datetime(2036, 1, 1, tzinfo=UTC)

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def stranger(number: int, size: int = 100) -> Block:
    data = number.to_bytes(4, "big") * (size // 4)
    return raw_cid(hashlib.sha256(data).digest()), data


def dfs(root: CID) -> list[Block]:
    from ipfsmem.content.dagpb import decode_node

    out, stack = [], [root]
    while stack:
        cid = stack.pop()
        out.append((cid, BLOCKS[cid]))
        if cid.codec == 0x70:
            stack += reversed([link.cid for link in decode_node(BLOCKS[cid]).links])
    return out


class Gateway:
    """A gateway with the behaviour of a test: `raw` and `car` answer requests; `asked` records the URLs."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.blocks = dict(BLOCKS)
        self.record: bytes | None = None
        self.raw: Answer = self.honest_raw
        self.car: Answer = self.honest_car

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/ipfs/{cid}", self.handle)
        app.router.add_get("/ipns/{name}", self.name)
        return app

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append((str(request.rel_url), request.headers["Accept"]))
        return await (self.raw if request.query["format"] == "raw" else self.car)(request)

    async def honest_raw(self, request: web.Request) -> web.StreamResponse:
        data = self.blocks.get(parse_cid(request.match_info["cid"]))
        return web.Response(status=404) if data is None else web.Response(body=data)

    async def honest_car(self, request: web.Request) -> web.StreamResponse:
        root = parse_cid(request.match_info["cid"])
        return (
            web.Response(status=404)
            if root not in self.blocks
            else web.Response(body=car_bytes([root], dfs(root)))
        )

    async def name(self, request: web.Request) -> web.StreamResponse:
        if self.record is None:
            return web.Response(status=404)
        return web.Response(body=self.record, content_type="application/vnd.ipfs.ipns-record")


@pytest.fixture
def two() -> Iterator[tuple[Gateway, Gateway, Gateways, Clockwork]]:
    work = Clockwork()
    with ExitStack() as stack:
        gateways = [Gateway(), Gateway()]
        urls = [stack.enter_context(serve(gateway.app)) for gateway in gateways]
        yield gateways[0], gateways[1], Gateways(urls, {"timing": work.timing}), work


Two = tuple[Gateway, Gateway, Gateways, Clockwork]


async def dag(provider: Gateways, root: CID = TREE.cid) -> list[Block]:
    return [block async for block in provider.get_dag(root)]


def status(code: int, body: bytes | str = b"", **headers: str) -> Answer:
    async def answer(_: web.Request) -> web.StreamResponse:
        raw = body.encode() if isinstance(body, str) else body
        shown = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(status=code, body=raw, headers=shown)

    return answer


def sends(data: bytes, end: bool = True) -> Answer:
    """A CAR answer with these bytes, then its end or a broken connection."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(data)
        if end:
            await response.write_eof()
        else:
            await asyncio.sleep(0.05)  # the bytes arrive before the break
            assert request.transport is not None
            request.transport.abort()
        return response

    return answer


# -- blocks --------------------------------------------------------------------------------------------------------


def test_blocks_are_requested_from_the_first_gateway_first(two: Two) -> None:
    one, other, provider, _ = two
    cids = list(BLOCKS)
    missing = stranger(1)[0]
    assert run(provider, provider.get_blocks([*cids, missing, cids[0]])) == BLOCKS
    assert {url for url, _ in one.asked} == {f"/ipfs/{cid}?format=raw" for cid in [*cids, missing]}
    assert {accept for _, accept in one.asked} == {"application/vnd.ipld.raw"}
    assert [url for url, _ in other.asked] == [f"/ipfs/{missing}?format=raw"]


def test_identity_cids_cause_no_request(two: Two) -> None:
    one, _, provider, _ = two
    cid = parse_cid("bafkqaaa")
    assert run(provider, provider.get_blocks([cid])) == {cid: b""}
    assert one.asked == []


@pytest.mark.parametrize(
    "bad",
    [status(code) for code in (400, 401, 403, 404, 406, 410, 412, 429, 451, 500, 502, 503, 504)]
    + [
        status(200, b"other bytes"),
        status(200, b""),
        status(200, bytes(BLOCK_MAX + 1)),
        status(200, "<html>Sign in</html>", Content_Type="text/html"),
        status(301, Location="http://169.254.169.254/latest"),
        status(302, Location="http://127.0.0.1:1/x"),
        sends(b"half of", end=False),
    ],
)
def test_next_gateway_is_asked_after_a_bad_answer(two: Two, bad: Answer) -> None:
    one, _, provider, _ = two
    one.raw = bad
    assert run(provider, provider.get_blocks(list(BLOCKS))) == BLOCKS


def test_gateway_with_a_false_answer_is_asked_last(two: Two) -> None:
    one, other, provider, _ = two
    first, second = provider.urls
    one.raw = status(200, b"other bytes")
    run(provider, provider.get_blocks(list(BLOCKS)))
    assert provider.urls == [second, first]
    one.asked.clear()
    run(provider, provider.get_blocks(list(BLOCKS)))
    assert one.asked == [] and len(other.asked) == 2 * len(BLOCKS)


def test_gateway_without_the_blocks_is_asked_last(two: Two) -> None:
    one, _, provider, _ = two
    one.blocks.clear()
    assert run(provider, provider.get_blocks(list(BLOCKS))) == BLOCKS
    one.asked.clear()
    assert run(provider, provider.get_blocks(list(BLOCKS))) == BLOCKS
    assert one.asked == []
    one.blocks.update([stranger(1)])
    assert run(provider, provider.get_blocks([stranger(1)[0]])) == dict([stranger(1)])
    one.asked.clear()
    run(provider, provider.get_blocks(list(BLOCKS)[:1]))
    assert len(one.asked) == 1  # worth asking first again


def test_redirects_on_the_same_gateway_are_followed(two: Two) -> None:
    one, other, provider, _ = two

    async def moved(request: web.Request) -> web.StreamResponse:
        if "again" in request.query:
            return await one.honest_raw(request)
        return web.Response(status=301, headers={"Location": f"{request.rel_url}&again=1"})

    one.raw = moved
    assert run(provider, provider.get_blocks(list(BLOCKS))) == BLOCKS
    assert other.asked == []


def test_short_retry_after_is_awaited_and_a_long_one_is_not(two: Two) -> None:
    one, other, provider, work = two
    one.raw = status(429, Retry_After="3600")
    other.raw = status(429, Retry_After="1")
    with pytest.raises(ProviderUnavailable, match="3600"):
        run(provider, provider.get_blocks(list(BLOCKS)[:1]))
    assert len(one.asked) == 1 and len(other.asked) == 2 and work.pauses == [1.3]


def test_failing_gateways_are_an_error_and_missing_blocks_are_not(two: Two) -> None:
    one, other, provider, _ = two
    one.raw = other.raw = status(503)
    with pytest.raises(ProviderUnavailable):
        run(provider, provider.get_blocks(list(BLOCKS)))
    assert len(one.asked) < 2 * 32 + 8  # not every block was requested
    one.raw = other.raw = status(401, '{"error":"no token"}')
    with pytest.raises(ProviderRefused, match="no token"):
        run(provider, provider.get_blocks(list(BLOCKS)[:2]))
    one.raw = status(404)
    assert run(provider, provider.get_blocks(list(BLOCKS)[:2])) == {}


def test_concurrent_requests_are_bounded() -> None:
    gateway = Gateway()
    now, peak, full = [0], [0], asyncio.Event()

    async def slow(request: web.Request) -> web.StreamResponse:
        now[0] += 1
        peak[0] = max(peak[0], now[0])
        if now[0] == 8:
            full.set()
        await asyncio.wait_for(full.wait(), 60)
        await asyncio.sleep(0.02)  # a ninth would come now
        now[0] -= 1
        return await gateway.honest_raw(request)

    gateway.raw = slow
    with serve(gateway.app) as url:
        provider = Gateways(url, {"concurrency": 8})
        assert run(provider, provider.get_blocks(list(BLOCKS))) == BLOCKS
    assert peak[0] == 8


# -- trees ---------------------------------------------------------------------------------------------------------


def test_tree_is_read_from_one_answer(two: Two) -> None:
    one, other, provider, _ = two
    assert run(provider, dag(provider)) == dfs(TREE.cid)
    [(url, accept)] = one.asked
    assert url == f"/ipfs/{TREE.cid}?format=car&dag-scope=all&car-order=dfs&car-dups=n"
    assert accept == "application/vnd.ipld.car; version=1; order=dfs; dups=n"
    assert other.asked == []


WHOLE = car_bytes([TREE.cid], dfs(TREE.cid))
FIRST = header([TREE.cid]) + section(*dfs(TREE.cid)[0])


@pytest.mark.parametrize(
    "bad",
    [
        status(404), status(504), status(500), status(429), status(401), status(406), status(200, b""),
        status(200, "<html>Sign in</html>"), status(200, b"\0" * 100), status(200, b"\xff" * 100),
        status(200, WHOLE[:30]), status(200, WHOLE[:200]), sends(WHOLE[: len(WHOLE) // 2], end=False),
        status(200, WHOLE[: len(WHOLE) // 2]), status(200, FIRST + section(stranger(1)[0], b"other")),
        status(200, header([stranger(1)[0]])), status(302, Location="http://10.0.0.1/"),
    ],
)  # fmt: skip
def test_next_gateway_continues_an_interrupted_tree(two: Two, bad: Answer) -> None:
    """Blocks received before the break are not returned twice."""
    one, other, provider, _ = two
    one.car = bad
    found = run(provider, dag(provider))
    assert dict(found) == BLOCKS and len(found) == len(BLOCKS)
    assert len(other.asked) == 1


def test_root_in_the_car_header_is_ignored(two: Two) -> None:
    one, other, provider, _ = two
    one.car = status(200, car_bytes([stranger(1)[0]], dfs(TREE.cid)))
    assert dict(run(provider, dag(provider))) == BLOCKS and other.asked == []


def test_extra_blocks_are_dropped_and_a_missing_block_ends_the_tree(two: Two) -> None:
    one, other, provider, _ = two
    good = dfs(TREE.cid)
    data = header([TREE.cid]) + b"".join(
        section(*block) for number, item in enumerate(good[:20]) for block in (stranger(number), item, item)
    )
    one.car = status(200, data)
    assert run(provider, dag(provider)) == good[:20]
    assert other.asked == []  # a reader of the tree requests the rest


def test_blocks_before_their_parents_are_dropped(two: Two) -> None:
    one, _, provider, _ = two
    one.car = status(200, car_bytes([TREE.cid], reversed(dfs(TREE.cid))))
    assert run(provider, dag(provider)) == dfs(TREE.cid)[:1]


@pytest.mark.parametrize("size", [100, 64 * 1024])
def test_flood_of_unrelated_blocks_is_aborted(two: Two, size: int) -> None:
    one, other, provider, _ = two
    sent = [0]

    async def bomb(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(FIRST)
        for number in range(0, 1_000_000, 100):
            piece = b"".join(section(*stranger(number + i, size)) for i in range(100))
            await response.write(piece)
            sent[0] += len(piece)
        return response

    one.car = bomb
    assert dict(run(provider, dag(provider))) == BLOCKS and len(other.asked) == 1
    assert sent[0] < 64 * 1024 * 1024


def test_limits_of_the_caller_apply(two: Two) -> None:
    one, other, provider, _ = two

    async def ask(limits: Limits) -> list[Block]:
        return [block async for block in provider.tree(TREE.cid, limits)]

    for limits in (Limits(blocks=10), Limits(total_bytes=1000)):
        with pytest.raises(ProviderRefused, match="more than"):
            run(provider, ask(limits))
    assert len(one.asked) == len(other.asked) == 2


def test_tree_that_no_gateway_has_is_empty(two: Two) -> None:
    one, other, provider, _ = two
    one.car = other.car = status(404)
    assert run(provider, dag(provider)) == []
    one.car = other.car = status(200, header([TREE.cid]) + b"block was not found locally")  # as boxo does
    assert run(provider, dag(provider)) == []
    one.car = other.car = status(503)
    with pytest.raises(ProviderUnavailable):
        run(provider, dag(provider))
    other.car = status(404)
    assert run(provider, dag(provider)) == []


# -- names, and unsupported calls ---------------------------------------------------------------------------------


def record(sequence: int, seed: bytes = SEED) -> bytes:
    return ipns_record.make_record(seed, "/ipfs/bafkqaaa", sequence, UNTIL)


def test_newest_record_of_all_gateways_is_returned(two: Two) -> None:
    one, other, provider, _ = two
    assert run(provider, provider.get_name(NAME)) is None
    one.record, other.record = record(3), record(4)
    assert run(provider, provider.get_name(NAME)) == record(4)
    other.record = record(9, b"\x08" * 32)  # of another name
    assert run(provider, provider.get_name(NAME)) == record(3)
    one.record = bytes(20_000)
    with pytest.raises(ProviderRefused):
        run(provider, provider.get_name(NAME))
    with pytest.raises(ProviderRefused):
        run(provider, provider.get_name("nonsense"))


def test_gateway_provider_only_reads() -> None:
    provider = open_provider("gateway:http://127.0.0.1:1,https://example.com/ipfs/")
    assert isinstance(provider, Gateways) and isinstance(provider, Provider)
    assert provider.name == "gateway:http://127.0.0.1:1,https://example.com"
    can = provider.capabilities
    assert can.blocks and can.dag and not (can.has or can.pin or can.list or can.names or can.partial_car)
    cid, data = stranger(1)
    calls = [
        provider.put_car(cid, [(cid, data)], name="n"), provider.has([cid]), provider.pin(cid, "n"),
        provider.pins("n"), provider.unpin(Pin(cid, "n", "", 0)), provider.put_name(NAME, record(1)),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(ProviderRefused, match="cannot"):
            asyncio.run(call)
    for spec in ("gateway", "gateway:", "gateway:nonsense", "gateway:https://a,ftp://b"):
        with pytest.raises(ConfigError):
            open_provider(spec)
    assert open_provider("gateway", {"gateways": "https://a"}).name == "gateway:https://a"
    assert base_of("https://a/x/ipfs/") == "https://a/x"


def test_gateway_token_is_sent_and_redacted() -> None:
    seen: list[str] = []
    gateway = Gateway()

    async def closed(request: web.Request) -> web.StreamResponse:
        seen.append(request.headers.get("x-pinata-gateway-token", ""))
        return web.Response(status=403, text="wrong token gateway-token")

    gateway.raw = closed
    settings = {"gateway_token": "gateway-token", "gateway_token_header": "x-pinata-gateway-token"}
    with serve(gateway.app) as url:
        provider = Gateways(url, settings)
        with pytest.raises(ProviderRefused) as caught:
            run(provider, provider.get_blocks(list(BLOCKS)[:1]))
    assert seen == ["gateway-token"] and "gateway-token" not in str(caught.value)


class Seen:
    """A gateway that records a header of each request."""

    def __init__(self) -> None:
        self.gateway = Gateway()
        self.tokens: list[str | None] = []
        self.own: list[str | None] = []
        self.moved = ""  # the target of redirects

    def app(self) -> web.Application:
        @web.middleware
        async def look(request: web.Request, handler: Callable[..., Any]) -> web.StreamResponse:
            self.tokens.append(request.headers.get("Authorization"))
            self.own.append(request.headers.get("x-own"))
            if self.moved:
                return web.Response(status=302, headers={"Location": self.moved + str(request.rel_url)})
            answer: web.StreamResponse = await handler(request)
            return answer

        app = self.gateway.app()
        app.middlewares.append(look)
        return app


@pytest.fixture
def seen() -> Iterator[tuple[list[Seen], list[str]]]:
    with ExitStack() as stack:
        servers = [Seen(), Seen()]
        yield servers, [stack.enter_context(serve(server.app)) for server in servers]


async def everything(provider: Gateways) -> None:
    await provider.get_blocks([*BLOCKS, stranger(1)[0]])
    await dag(provider, stranger(1)[0])
    await provider.get_name(NAME)


@pytest.mark.parametrize("named", [None, 0, 1])
def test_gateway_token_is_sent_to_its_own_gateway_only(
    seen: tuple[list[Seen], list[str]], named: int | None
) -> None:
    servers, urls = seen
    settings = {"gateway_token": "secret-token"}
    if named is not None:
        settings["gateway_token_for"] = urls[named] + "/ipfs/"
    provider = Gateways(urls, {**settings, "timing": Clockwork().timing})
    run(provider, everything(provider))
    owner, other = servers[named or 0], servers[1 - (named or 0)]
    assert owner.tokens and set(owner.tokens) == {"Bearer secret-token"}
    assert other.tokens and set(other.tokens) == {None}


def test_gateway_token_is_not_sent_along_a_redirect(seen: tuple[list[Seen], list[str]]) -> None:
    servers, urls = seen
    servers[0].moved = urls[1]
    settings = {"gateway_token": "secret-token", "retry": ONCE, "timing": Clockwork().timing}
    provider = Gateways(urls, settings)
    run(provider, everything(provider))
    assert set(servers[0].tokens) == {"Bearer secret-token"} and set(servers[1].tokens) == {None}
    for server in servers:
        server.tokens.clear()
    servers[0].moved, servers[1].moved = "", urls[0]
    provider = Gateways(urls[::-1], {**settings, "gateway_token_for": urls[1]})
    run(provider, everything(provider))
    assert set(servers[1].tokens) == {"Bearer secret-token"} and None in servers[0].tokens
    assert "Bearer secret-token" not in servers[0].tokens


def test_gateway_token_is_not_sent_to_gateways_found_by_routing(
    seen: tuple[list[Seen], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    servers, urls = seen
    servers[0].gateway.blocks.clear()

    async def found(*_: object) -> list[str]:
        return [urls[1]]

    monkeypatch.setattr(RoutingClient, "gateways", found)
    monkeypatch.setattr(addresses, "is_public", lambda _: True)  # so that the foreign gateway is asked at all
    monkeypatch.setattr(addresses, "PORTS", {URL(url).port for url in urls})
    provider = Gateways(urls[0], {"gateway_token": "secret-token", "routing": "http://127.0.0.1:1"})
    assert run(provider, provider.get_blocks(list(BLOCKS))) == BLOCKS
    assert set(servers[0].tokens) == {"Bearer secret-token"} and set(servers[1].tokens) == {None}


@pytest.mark.parametrize("named", [False, True])
def test_gateway_token_is_sent_to_the_named_gateway_only(
    seen: tuple[list[Seen], list[str]], named: bool
) -> None:
    servers, urls = seen
    servers[0].gateway.blocks.clear()
    settings = {"gateway_token": "secret-token", **({"gateway_token_for": urls[1]} if named else {})}
    own = OwnGateway("service", urls[0], [urls[1]], headers={"x-own": "own-secret"}, settings=settings)

    async def read() -> dict[CID, bytes]:
        try:
            return await own.get_blocks(list(BLOCKS))
        finally:
            await own.close()

    assert asyncio.run(read()) == BLOCKS
    assert set(servers[0].tokens) == {None}
    assert set(servers[1].tokens) == {"Bearer secret-token" if named else None}
    assert set(servers[0].own) == {"own-secret"} and set(servers[1].own) == {None}


def test_token_for_an_unlisted_gateway_is_refused() -> None:
    settings = {"gateway_token": "secret-token", "gateway_token_for": "https://c.example"}
    with pytest.raises(ConfigError, match=r"c\.example"):
        Gateways("https://a.example,https://b.example", settings)


@pytest.mark.parametrize("host", ["/ip4/127.0.0.1", "/ip6/::1", "/dns4/localhost", "/dns/localhost"])
@pytest.mark.parametrize("ruled", [True, False])
def test_local_gateways_named_by_routing_are_not_requested(
    two: Two, monkeypatch: pytest.MonkeyPatch, host: str, ruled: bool
) -> None:
    """A listener counts connections; without the address rule there are some."""
    one, _, _, _ = two
    one.raw = status(404)
    with ExitStack() as stack:
        listeners = [stack.enter_context(listener) for listener in _listeners(host)]
        port = listeners[0].getsockname()[1]

        async def providers(request: web.Request) -> web.Response:
            peer = {
                "Schema": "peer", "ID": "x", "Addrs": [f"{host}/tcp/{port}/https"],
                "Protocols": ["transport-ipfs-gateway-http"],
            }  # fmt: skip
            return web.json_response({"Providers": [peer]})

        def make() -> web.Application:
            app = web.Application()
            app.router.add_get("/routing/v1/providers/{cid}", providers)
            return app

        monkeypatch.setattr(
            addresses, "PORTS", {port}
        )  # the rule about ports would hide the one about addresses
        if not ruled:
            monkeypatch.setattr(addresses, "is_public", lambda _: True)
        routing, url = stack.enter_context(serve(make)), stack.enter_context(serve(one.app))
        settings = {"routing": routing, "retry": ONCE, "timing": Clockwork().timing}
        settings["timeouts"] = Timeouts(connect=1, stall=0.5)
        provider = Gateways(url, settings)
        asked = provider.get_blocks([next(iter(BLOCKS))])
        if ruled and host.startswith("/ip"):  # not even treated as a gateway
            assert run(provider, asked) == {} and provider.urls == [url]
        else:
            with pytest.raises(ProviderError, match="not a public" if ruled else "no progress"):
                run(provider, asked)
            assert len(provider.urls) == 2
        assert any(map(_came, listeners)) is not ruled


def _listeners(host: str) -> list[socket.socket]:
    """Sockets of this machine that accept connections and send nothing: a name may lead to either family."""
    families = {"/ip4/127.0.0.1": [socket.AF_INET], "/ip6/::1": [socket.AF_INET6]}
    port, made = free_port(), []
    for family in families.get(host, [socket.AF_INET, socket.AF_INET6]):
        try:
            one = socket.socket(family)
            made.append(one)
            one.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", port))
        except OSError:
            made.pop().close()
            if not made and host == "/ip6/::1":
                pytest.skip("no IPv6 on this machine")
            continue
        one.listen()
        one.setblocking(False)
    return made


def _came(listener: socket.socket) -> bool:
    try:
        listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True


def test_stored_file_that_its_gateway_cannot_serve_is_an_outage() -> None:
    body = b"an object that the provider laid out in its own way"
    wanted = raw_cid(hashlib.sha256(body).digest())
    name = wanted.digest.hex()[:40]
    tree = build_tree({f"o/{name}": body})
    blocks = dict(tree.blocks)
    (folder,) = (link.cid for link in decode_node(blocks[tree.cid]).links)
    served = {f"{tree.cid}": tree.cid, f"{tree.cid}/o": folder}

    async def answer(request: web.Request) -> web.Response:
        place = request.match_info["place"]
        if place in served:
            return web.Response(body=blocks[served[place]])
        return web.Response(status=503 if place.endswith(name) else 404)

    def app() -> web.Application:
        made = web.Application()
        made.router.add_get("/ipfs/{place:.+}", answer)
        return made

    async def ask(url: str) -> None:
        own = OwnGateway("service", url, settings={"retry": ONCE})
        try:
            assert await own.get_blocks([tree.cid]) == {tree.cid: blocks[tree.cid]}
            with pytest.raises(ProviderUnavailable, match="503"):
                await own.get_blocks([wanted])
        finally:
            await own.close()

    with serve(app) as url:
        asyncio.run(ask(url))
