"""The `pinning_service` provider with our own service and with simulations of real ones."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web
from ipfsmem_providers import psa_client
from ipfsmem_providers.http.policy import Retry, Timing
from ipfsmem_providers.kubo import KuboProvider
from ipfsmem_providers.pinning_service import PinningServiceProvider
from ipfsmem_providers.psa_client import PinningClient, milliseconds

from ipfsmem.content.cid import CID, raw_cid
from ipfsmem.content.tree import build_tree
from ipfsmem.device.replica import Environment
from ipfsmem.errors import ConfigError, ProviderError, ProviderRefused, ProviderUnavailable
from ipfsmem.http import psa
from ipfsmem.memory import Memory
from ipfsmem.provider.contract import Pin, Provider, open_provider
from ipfsmem.sync.upload import LIST_LAG_MS
from ipfsmem.testing import MockClock, SeededRandom, SimCloud, SimProvider
from ipfsmem.vault.home import Home
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.signers import RawKeySigner
from tests.servers.clockwork import Clockwork
from tests.servers.faults import Faults
from tests.servers.kubo import FakeKubo
from tests.servers.threaded import serve

TOKEN = "a token of the service"
TREE = build_tree({"a.md": b"one", "sub/b.md": b"two"})
OTHER = build_tree({"c.md": b"three"})


def cid(number: int) -> CID:
    return raw_cid(hashlib.sha256(str(number).encode()).digest())


def opened(url: str, **more: Any) -> PinningServiceProvider:
    return PinningServiceProvider(
        url,
        {
            "pinning_service_token": TOKEN,
            "pinning_service_patience": "0",
            "retry": Retry(attempts=3, first=0.01, most=0.02),
            **more,
        },
    )


@pytest.fixture
def cloud() -> SimCloud:
    cloud = SimCloud()
    cloud.blocks.update(TREE.blocks)
    cloud.blocks.update(OTHER.blocks)
    return cloud


@pytest.fixture
def faults() -> Faults:
    return Faults()


@pytest.fixture
def clock() -> MockClock:
    return MockClock()


@pytest.fixture
def url(cloud: SimCloud, faults: Faults, clock: MockClock) -> Iterator[str]:
    def make() -> web.Application:
        app = psa.app(SimProvider(cloud, clock=clock), token=TOKEN, now=lambda: clock.ms)
        app.middlewares.insert(0, faults.middleware)
        return app

    with serve(make) as url:
        yield url


# -- the contract -----------------------------------------------------------------------------------------------------


def test_pins_are_added_listed_and_removed(url: str, cloud: SimCloud, clock: MockClock) -> None:
    async def body() -> None:
        one, two = opened(url), opened(f"{url}/pins")
        assert isinstance(one, Provider) and not one.capabilities.put
        first = await one.pin(TREE.cid, "mine")
        clock.advance(60)
        assert await two.pin(TREE.cid, "mine") == first
        await two.pin(OTHER.cid, "mine")
        await one.pin(TREE.cid, "another vault")
        assert [pin.cid for pin in await two.pins("mine")] == [OTHER.cid, TREE.cid]
        assert [pin.cid for pin in await two.pins("another vault")] == [TREE.cid]
        assert await two.pins("min") == []
        await two.unpin(first)
        await two.unpin(first)
        assert [pin.cid for pin in await one.pins("mine")] == [OTHER.cid]
        assert [pin.cid for pin in await one.pins("another vault")] == [TREE.cid]
        assert {(pin.cid, pin.name) for pin in cloud.pins} == {
            (OTHER.cid, "mine"),
            (TREE.cid, "another vault"),
        }
        await one.close()
        await one.close()

    asyncio.run(body())


def test_method_without_capability_is_refused(url: str) -> None:
    async def body() -> None:
        service = opened(url)
        with pytest.raises(ProviderRefused, match="accepts no uploads"):
            await service.put_car(TREE.cid, TREE.blocks, name="n")
        for call in (service.has([TREE.cid]), service.get_blocks([TREE.cid]), service.get_name("k"),
                     service.put_name("k", b"")):  # fmt: skip
            with pytest.raises(ProviderRefused):
                await call
        with pytest.raises(ProviderRefused):
            [item async for item in service.get_dag(TREE.cid)]

    asyncio.run(body())


def test_root_is_pinned_after_its_blocks_have_arrived(url: str, cloud: SimCloud) -> None:
    late = build_tree({"late.md": b"four", "x/y.md": b"five"})

    async def body() -> None:
        service = opened(url)
        with pytest.raises(ProviderUnavailable, match="still fetching"):
            await service.pin(late.cid, "mine")
        assert [pin.cid for pin in await service.pins("mine")] == [late.cid]
        cloud.blocks.update(late.blocks[:-1])
        with pytest.raises(ProviderUnavailable):
            await service.pin(late.cid, "mine")
        cloud.blocks.update(late.blocks)
        await service.pin(late.cid, "mine")
        assert len(await service.pins("mine")) == 1

    asyncio.run(body())


def test_pin_is_awaited_within_the_configured_time(url: str, cloud: SimCloud) -> None:
    late = build_tree({"late.md": b"four"})
    work = Clockwork()

    async def sleep(seconds: float) -> None:
        await work.timing.sleep(seconds)
        if work.timing.now() > 20:
            cloud.blocks.update(late.blocks)

    timing = Timing(now=work.timing.now, wall=work.timing.wall, sleep=sleep, random=work.timing.random)

    async def body() -> None:
        service = opened(url, pinning_service_patience="100", timing=timing)
        assert (await service.pin(late.cid, "mine")).cid == late.cid

    asyncio.run(body())


# -- settings --------------------------------------------------------------------------------------------------------


def test_pinning_service_settings_are_read_and_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PINNING_SERVICE_TOKEN", raising=False)
    with pytest.raises(ConfigError, match="PINNING_SERVICE_TOKEN"):
        PinningServiceProvider("https://api.example.com/psa")
    monkeypatch.setenv("PINNING_SERVICE_TOKEN", TOKEN)
    made = open_provider("pinning_service:https://api.example.com/psa/pins")
    assert made.name == "pinning_service:https://api.example.com/psa"
    for bad, more in (("", {}), ("ftp://x", {}), ("https://x", {"pinning_service_origins": "here"}),
                      ("https://x", {"pinning_service_origins": ",".join(["/ip4/1.2.3.4/tcp/1"] * 21)})):  # fmt: skip
        with pytest.raises(ConfigError) as caught:
            PinningServiceProvider(bad, more)
        assert TOKEN not in str(caught.value)
    reads = PinningServiceProvider("https://x", {"pinning_service_gateway": "https://gateway.example"})
    assert reads.capabilities.blocks and reads.capabilities.dag


def test_configured_origins_are_sent_with_a_pin(url: str, cloud: SimCloud) -> None:
    async def body() -> None:
        origin = "/ip4/203.0.113.7/tcp/4001/p2p/12D3KooWJTvXP56hmqJbfk1513pT1CPEo9m365MHyDXNj2Y1tjAx"
        service = opened(url, pinning_service_origins=f"{origin}, {origin}9")
        pin = await service.pin(TREE.cid, "mine")
        answer = await service._http.request("GET", f"{url}/pins/{pin.handle}")
        assert answer.json()["pin"]["origins"] == [origin, f"{origin}9"]

    asyncio.run(body())


PEER = "12D3KooWJTvXP56hmqJbfk1513pT1CPEo9m365MHyDXNj2Y1tjAx"


@pytest.mark.parametrize("reachable", [True, False])
def test_local_node_connects_to_the_delegates(tmp_path: Path, reachable: bool) -> None:
    one, two = f"/ip4/203.0.113.7/tcp/4001/p2p/{PEER}", f"/ip4/127.0.0.1/tcp/4001/p2p/{PEER}"
    kubo, cloud = FakeKubo(), SimCloud()
    kubo.unreachable = {one} if reachable else {one, two}

    class Fetches(SimProvider):
        async def get_blocks(self, cids: Sequence[CID]) -> dict[CID, bytes]:
            if kubo.connected:  # its node requests missing blocks from ours
                cloud.blocks.update(kubo.cloud.blocks)
            return await super().get_blocks(cids)

    unlock = Unlock(RawKeySigner(bytes(31) + b"\x22"))
    with (
        serve(kubo.app) as node,
        serve(lambda: psa.app(Fetches(cloud), token=TOKEN, delegates=[psa.NOWHERE, one, two])) as url,
        Memory.load("m", "encrypted-ipfs", provider=[KuboProvider(node, {"kubo_patience": "2"}), opened(url)], unlock=unlock, passphrase=False, home=tmp_path, create=True) as memory,
    ):  # fmt: skip
        memory.write("note", "text")
        report = asyncio.run(memory.sync())
        listed = {pin.cid for pin in cloud.pins}
    down = [notice for notice in report.notices if notice.kind == "provider-down"]
    assert kubo.connected == ([two] * len(kubo.connected) if reachable else [])
    assert (bool(listed), bool(down)) == (reachable, not reachable)


def test_pin_that_a_service_lost_is_requested_again(tmp_path: Path) -> None:
    kubo, cloud, clock = FakeKubo(), SimCloud(), MockClock()

    class Fetches(SimProvider):
        async def get_blocks(self, cids: Sequence[CID]) -> dict[CID, bytes]:
            cloud.blocks.update(kubo.cloud.blocks)
            return await super().get_blocks(cids)

    unlock = Unlock(RawKeySigner(bytes(31) + b"\x22"))
    with (
        serve(kubo.app) as node,
        serve(lambda: psa.app(Fetches(cloud), token=TOKEN)) as url,
        Memory.load("m", "encrypted-ipfs", provider=[KuboProvider(node, {"kubo_patience": "2"}), opened(url)], unlock=unlock, passphrase=False, home=Home(folder=tmp_path, environment=Environment(lambda: clock.ms, SeededRandom("forgot"))), create=True) as memory,
    ):  # fmt: skip
        memory.write("note", "text")
        assert asyncio.run(memory.sync()).exit_code == 0
        before, name = {pin.cid for pin in cloud.pins}, next(iter(cloud.pins)).name

        async def forget() -> list[Pin]:
            service = opened(url)
            for pin in await service.pins(name):
                await service.unpin(pin)
            return await service.pins(name)

        assert asyncio.run(forget()) == []
        clock.advance(LIST_LAG_MS / 1000)
        assert asyncio.run(memory.sync()).exit_code == 0
        again = {pin.cid for pin in asyncio.run(opened(url).pins(name))}
        assert again and again <= before


def test_service_with_version_0_cids_is_asked_once() -> None:
    made: list[dict[str, Any]] = []

    def app() -> web.Application:
        async def add(request: web.Request) -> web.Response:
            pin = await request.json()
            old = str(TREE.cid._replace(version=0))
            made.append({**rows(1)[0], "requestid": f"r{len(made)}", "pin": {**pin, "cid": old}})
            return web.json_response(made[-1], status=202)

        async def found(request: web.Request) -> web.Response:
            return web.json_response({"count": len(made), "results": made})

        app = web.Application()
        app.router.add_post("/pins", add)
        app.router.add_get("/pins", found)
        return app

    async def body() -> None:
        service = opened(url)
        first = await service.pin(TREE.cid, "mine")
        assert await service.pin(TREE.cid, "mine") == first and len(made) == 1
        assert [pin.cid for pin in await service.pins("mine")] == [TREE.cid]

    with serve(app) as url:
        asyncio.run(body())


def test_invalid_delegates_are_ignored() -> None:
    """A remote service must not direct our node to private addresses."""
    bad = ["", "x", "/ip4/10.0.0.1/tcp/22", f"/ip4/10.0.0.1/tcp/22/p2p/{PEER}", f"/ip6/::1/tcp/1/p2p/{PEER}", 7, None,
           f"/ip4/169.254.169.254/tcp/80/p2p/{PEER}", f"/dns4/a b/tcp/1/p2p/{PEER}", "/dns4/x/" + "y" * 400 + f"/p2p/{PEER}"]  # fmt: skip
    good = [f"/dns4/node.example/tcp/4001/p2p/{PEER}", f"/ip4/8.8.8.8/udp/4001/quic-v1/p2p/{PEER}"]
    row = {
        "requestid": "r",
        "status": "queued",
        "created": "2026-11-01T00:00:00Z",
        "pin": {"cid": str(TREE.cid)},
    }
    for delegates in ([*bad, *good], "text", None, {}):
        found = msgspec.json.decode(
            msgspec.json.encode(row | {"delegates": delegates}), type=psa_client._Status
        )
        request = psa_client._request(found)
        assert request is not None
        service = opened("https://pinning.example/psa")
        service._delegates = request.delegates
        assert service.fetchers() == (good if isinstance(delegates, list) else [])


# -- lists -----------------------------------------------------------------------------------------------------------


class Service:
    """A service with a custom list and faults."""

    def __init__(self, rows: list[dict[str, Any]], **habits: Any) -> None:
        self.rows = rows
        self.habits = habits
        self.asked = 0

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/pins", self._list)
        return app

    async def _list(self, request: web.Request) -> web.StreamResponse:
        self.asked += 1
        rows = sorted(self.rows, key=lambda row: row["created"], reverse=True)
        if "before" in request.query and not self.habits.get("ignores_before"):
            before = _stamp(request.query["before"])
            rows = [row for row in rows if _stamp(row["created"]) < before]
        limit = min(int(request.query["limit"]), self.habits.get("most", 1000))
        count = self.habits.get("count", len(rows))
        return web.json_response({"count": count, "results": rows[:limit]})


def _stamp(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def rows(count: int, *, each: int = 1, form: str = "%Y-%m-%dT%H:%M:%S.000Z") -> list[dict[str, Any]]:
    """Return `count` requests, `each` of them in the same second."""
    return [
        {
            "requestid": f"r{number}",
            "status": "pinned",
            "created": datetime.fromtimestamp(1_900_000_000 + number // each, UTC).strftime(form),
            "pin": {"cid": str(cid(number)), "name": "n"},
            "delegates": ["/ip4/127.0.0.1/tcp/9"],
        }
        for number in range(count)
    ]


def listed(service: Service) -> list[Pin]:
    with serve(service.app) as url:
        return asyncio.run(opened(url).pins("n"))


@pytest.mark.parametrize("each", [1, 3, 9])
def test_paged_list_has_each_pin_once(each: int) -> None:
    """Also when pins with equal times span two pages."""
    found = listed(Service(rows(105, each=each), most=10))
    assert [pin.handle for pin in found if found.count(pin) > 1] == []
    assert {pin.handle for pin in found} == {f"r{number}" for number in range(105)}
    assert [pin.created for pin in found] == sorted((pin.created for pin in found), reverse=True)


def test_page_full_of_equal_times_ends_with_an_error() -> None:
    service = Service(rows(40, each=20), most=10)
    with pytest.raises(ProviderRefused, match="more pins with the same time than fit on a page"):
        listed(service)
    assert service.asked < 12


def test_list_that_repeats_a_page_is_unread() -> None:
    service = Service(rows(30), most=10, ignores_before=True)
    with pytest.raises(ProviderRefused, match="repeats the pages of its list, so the rest is unread"):
        listed(service)
    assert service.asked < 5


@pytest.mark.parametrize(
    "created",
    ["9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999999999-23:59", "0001-01-01T00:00:00+23:59"],
)
def test_pages_with_times_at_the_ends_of_the_calendar_are_unread(created: str) -> None:
    odd = [{**row, "created": created} for row in rows(30)]
    with pytest.raises(ProviderRefused, match="so the rest is unread"):
        listed(Service(odd, most=10))


def test_wrong_count_of_a_list_is_ignored() -> None:
    for count in (10**9, "many", None, 0, -1):
        service = Service(rows(30), count=count)
        assert len(listed(service)) == 30 and service.asked < 5


def test_unreadable_entries_are_skipped() -> None:
    good = rows(2)
    odd: list[Any] = [
        {**good[0], "requestid": "a", "pin": {"cid": "no cid", "name": "n"}},
        {**good[0], "requestid": "b", "pin": {"name": "n"}},
        {**good[0], "requestid": 7},
        {**good[0], "requestid": "c", "status": "burned"},
        {**good[0], "requestid": "d", "pin": {"cid": str(cid(9)), "name": "other"}},
        {**good[0], "requestid": "e", "pin": {"cid": str(cid(9)), "name": None}},
        {**good[0], "requestid": "f", "status": "failed"},
    ]
    found = listed(Service([*good, *odd], count=9))
    assert {pin.handle for pin in found} == {"r0", "r1"}


@pytest.mark.parametrize("when", ["asked", "looked at"])
def test_answer_about_another_cid_is_not_a_pin(url: str, faults: Faults, when: str) -> None:
    row = {**rows(1)[0], "pin": {"cid": str(OTHER.cid), "name": "n"}}
    ours = {**row, "status": "queued", "pin": {"cid": str(TREE.cid), "name": "n"}}
    faults.answer("POST", "/pins", 202, json.dumps(row if when == "asked" else ours))
    faults.answer("GET", "/pins/r0", 200, json.dumps(row))

    async def body() -> None:
        with pytest.raises(
            ProviderRefused, match=f"was asked about {TREE.cid} and answered about {OTHER.cid}"
        ):
            await opened(url, pinning_service_patience="5").pin(TREE.cid, "n")

    asyncio.run(body())


def test_unknown_status_is_not_repeated(url: str, faults: Faults) -> None:
    row = {**rows(1)[0], "status": "\x1b[2J" + "z" * 70_000, "pin": {"cid": str(TREE.cid), "name": "n"}}
    faults.answer("POST", "/pins", 202, json.dumps(row))
    faults.answer("GET", "/pins/r0", 200, json.dumps(row), times=-1)

    async def body() -> None:
        with pytest.raises(ProviderUnavailable, match=r"is still fetching \S+ \(unknown\)$"):
            await opened(url).pin(TREE.cid, "n")
        faults.clear()
        listed = {"count": 1, "results": [row]}
        faults.answer("GET", "/pins$", 200, json.dumps(listed), times=-1)
        assert await opened(url).pins("n") == []

    asyncio.run(body())


def test_times_are_parsed() -> None:
    assert milliseconds("2026-11-22T01:02:03.456Z") == 1795309323456
    assert milliseconds("2026-11-22T01:02:03.456789+00:00") == 1795309323456
    assert milliseconds("2026-11-22T01:02:03") == 1795309323000
    for bad in (None, "", "yesterday", "0000-00-00T00:00:00Z", "1900-01-01T00:00:00Z"):
        assert milliseconds(bad) == 0


def test_list_without_times_is_read_once() -> None:
    bare = [{**row, "created": ""} for row in rows(5)]
    found = listed(Service(bare, count=5))
    assert len(found) == 5 and {pin.created for pin in found} == {0}
    with pytest.raises(ProviderRefused, match="lists pins without times, so the rest is unread"):
        listed(Service(bare, count=9))


# -- faults ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "text", "error"),
    [
        (400, '{"error":{"reason":"INVALID_ORIGINS","details":"x"}}', ProviderRefused),
        (401, "", ProviderRefused),
        (403, "<html><title>no</title></html>", ProviderRefused),
        (409, '{"error":{"reason":"INSUFFICIENT_FUNDS"}}', ProviderRefused),
        (410, "", ProviderRefused),
        (429, "", ProviderUnavailable),
        (500, '{"error":"oops"}', ProviderUnavailable),
        (503, "<html>", ProviderUnavailable),
        (200, "<html>a portal</html>", ProviderUnavailable),
        (200, "", ProviderUnavailable),
        (200, "[]", ProviderUnavailable),
    ],
)
def test_each_error_status_has_its_error_class(
    url: str, faults: Faults, status: int, text: str, error: type[ProviderError]
) -> None:
    faults.answer("*", "/pins", status, text, times=-1, kind="text/html")

    async def body() -> None:
        service = opened(url)
        for call in (service.pins("n"), service.pin(TREE.cid, "n")):
            with pytest.raises(error) as caught:
                await call
            assert TOKEN not in str(caught.value)

    asyncio.run(body())


def test_request_with_a_lost_answer_is_not_made_twice(url: str, faults: Faults) -> None:
    """POST is not retried; the next call finds the pin of the first."""

    async def body() -> None:
        service = opened(url)
        await service.pin(OTHER.cid, "n")
        faults.reset("POST", "/pins", after=10)
        with pytest.raises(ProviderUnavailable):
            await service.pin(TREE.cid, "n")
        await service.pin(TREE.cid, "n")
        assert len([pin for pin in await service.pins("n") if pin.cid == TREE.cid]) == 1

    asyncio.run(body())


def test_request_listed_late_is_not_made_twice(url: str, cloud: SimCloud, faults: Faults) -> None:
    unfetched = raw_cid(hashlib.sha256(b"nobody has this").digest())
    faults.answer("GET", "/pins$", 200, '{"count": 0, "results": []}', times=3)

    async def body() -> None:
        service = opened(url)
        for _ in range(3):
            with pytest.raises(ProviderUnavailable, match="is still fetching"):
                await service.pin(unfetched, "n")
        (listed,) = await service.pins("n")
        await service.unpin(listed)
        faults.answer("GET", "/pins$", 200, '{"count": 0, "results": []}')
        with pytest.raises(ProviderUnavailable, match="is still fetching"):
            await service.pin(unfetched, "n")
        (again,) = await service.pins("n")
        assert again.handle != listed.handle

    asyncio.run(body())


def test_rate_limit_is_awaited(url: str, faults: Faults) -> None:
    work = Clockwork()
    faults.answer("GET", "/pins", 429, Retry_After="7")

    async def body() -> None:
        assert await opened(url, timing=work.timing).pins("n") == []

    asyncio.run(body())
    assert work.timing.now() >= 7


def test_pin_handle_cannot_change_the_request_path(url: str, faults: Faults) -> None:
    async def body() -> None:
        service = opened(url)
        for handle in (".", ".."):
            with pytest.raises(ProviderRefused):
                await service.unpin(Pin(TREE.cid, "n", handle, 0))
        await service.unpin(Pin(TREE.cid, "n", "", 0))  # it never existed: no request is made
        assert service._http.requests == 0
        await service.unpin(Pin(TREE.cid, "n", "../../admin?x=1", 0))  # one path segment, not known there

    asyncio.run(body())


# -- our service -----------------------------------------------------------------------------------------------------


def ask(url: str, method: str, path: str, token: str = TOKEN, body: Any = None) -> tuple[int, Any]:
    import http.client
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    assert parts.hostname
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    connection.request(
        method, path, body=body if isinstance(body, bytes) else json.dumps(body), headers=headers
    )
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, json.loads(text) if text else None


@pytest.mark.parametrize("token", ["", "wrong", TOKEN[:-1]])
@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/pins"), ("POST", "/pins"), ("GET", "/pins/x"), ("POST", "/pins/x"), ("DELETE", "/pins/x")],
)
def test_every_request_requires_the_token(url: str, token: str, method: str, path: str) -> None:
    status, answer = ask(url, method, path, token, {"cid": str(TREE.cid)})
    assert status == 401 and answer["error"]["reason"]


@pytest.mark.parametrize(
    "query",
    [
        "limit=0", "limit=1001", "limit=x", "limit=-1", "limit=99999999999999999999", "status=burned", "match=fuzzy",
        "cid=nonsense", "before=yesterday", "after=x", "meta=x", "meta=[]", "meta={\"a\":1}",
        "name=" + "x" * 256, "cid=" + ",".join([str(TREE.cid)] * 11),
    ],
)  # fmt: skip
def test_invalid_list_queries_are_refused(url: str, query: str) -> None:
    status, answer = ask(url, "GET", f"/pins?{query.replace(' ', '%20').replace(chr(34), '%22')}")
    assert status == 400 and answer["error"]["details"]


@pytest.mark.parametrize(
    "wish",
    [
        b"", b"{", b"[]", b"\xff", {}, {"cid": 7}, {"cid": "nonsense"}, {"cid": str(TREE.cid), "name": "x" * 256},
        {"cid": str(TREE.cid), "origins": ["/x"] * 21}, {"cid": str(TREE.cid), "meta": {"a": 1}},
        b'{"cid":' + b"[" * 5000,
    ],
)  # fmt: skip
def test_invalid_pin_requests_are_refused(url: str, wish: Any) -> None:
    status, answer = ask(url, "POST", "/pins", body=wish)
    assert status == 400 and answer["error"]["reason"]
    assert ask(url, "GET", "/pins?status=queued,pinned")[1]["count"] == 0


def test_pin_list_filters_work(url: str, clock: MockClock) -> None:
    for number, (name, meta) in enumerate(
        [("Alpha", {"app": "a"}), ("alphabet", {}), ("beta", {"app": "a", "x": "y"})]
    ):
        body = {"cid": str(TREE.cid if number < 2 else cid(1)), "name": name, "meta": meta}
        assert ask(url, "POST", "/pins", body=body)[0] == 202
        clock.advance(1)

    def names(query: str) -> list[str]:
        status, answer = ask(url, "GET", f"/pins?{query}")
        assert status == 200 and answer["count"] >= len(answer["results"])
        return [row["pin"]["name"] for row in answer["results"]]

    every = "status=queued,pinning,pinned,failed"
    assert names("") == ["alphabet", "Alpha"]  # pinned only, newest first
    assert names(every) == ["beta", "alphabet", "Alpha"]
    assert names("status=queued") == ["beta"]
    assert names("name=Alpha") == ["Alpha"]
    assert names("name=alpha&match=iexact") == ["Alpha"]
    assert names("name=alpha&match=partial") == ["alphabet"]
    assert names("name=LPHA&match=ipartial") == ["alphabet", "Alpha"]
    assert names(f"{every}&meta=%7B%22app%22:%22a%22%7D") == ["beta", "Alpha"]
    assert names(f"{every}&cid={TREE.cid}") == ["alphabet", "Alpha"]
    assert names(f"{every}&limit=1") == ["beta"]
    created = ask(url, "GET", f"/pins?{every}")[1]["results"][1]["created"]
    assert names(f"{every}&before={created}") == ["Alpha"]
    assert names(f"{every}&after={created}") == ["beta"]


def test_two_requests_for_one_root_are_independent(url: str, cloud: SimCloud) -> None:
    ids = [
        ask(url, "POST", "/pins", body={"cid": str(TREE.cid), "name": "n"})[1]["requestid"] for _ in range(2)
    ]
    assert ids[0] != ids[1]
    assert ask(url, "DELETE", f"/pins/{ids[0]}") == (202, None)
    assert [pin.cid for pin in cloud.pins] == [TREE.cid]
    assert ask(url, "DELETE", f"/pins/{ids[1]}") == (202, None)
    assert cloud.pins == []
    assert ask(url, "DELETE", f"/pins/{ids[1]}")[0] == 404


def test_replacing_a_pin_keeps_shared_blocks(url: str, cloud: SimCloud) -> None:
    first = ask(url, "POST", "/pins", body={"cid": str(TREE.cid), "name": "n"})[1]["requestid"]
    status, second = ask(url, "POST", f"/pins/{first}", body={"cid": str(OTHER.cid), "name": "n"})
    assert status == 202 and second["requestid"] != first and second["status"] == "pinned"
    assert ask(url, "GET", f"/pins/{first}")[0] == 404
    assert [pin.cid for pin in cloud.pins] == [OTHER.cid]
    assert ask(url, "POST", "/pins/unknown", body={"cid": str(OTHER.cid)})[0] == 404


def test_damaged_blocks_are_not_pinned(url: str, cloud: SimCloud) -> None:
    damaged = next(item for item, _ in TREE.blocks if item != TREE.cid)
    cloud.blocks[damaged] = b"something else"
    assert ask(url, "POST", "/pins", body={"cid": str(TREE.cid)})[1]["status"] == "queued"
    assert cloud.pins == []


def test_pin_requests_outlive_the_server(tmp_path: Path, cloud: SimCloud) -> None:
    from ipfsmem.http.psa_requests import PinRequests

    path = tmp_path / "pins"
    for count in (1, 2):
        requests = PinRequests(path)
        with serve(lambda kept=requests: psa.app(SimProvider(cloud), token=TOKEN, requests=kept)) as url:
            ask(url, "POST", "/pins", body={"cid": str(TREE.cid), "name": f"n{count}"})
            assert ask(url, "GET", "/pins")[1]["count"] == count


def test_client_accepts_any_form_of_the_endpoint() -> None:
    from ipfsmem_providers.http.client import Http

    http = Http("x", trusted=["https://api.example.com"])
    for given in (
        "https://api.example.com/psa",
        "https://api.example.com/psa/",
        "https://api.example.com/psa/pins",
    ):
        assert PinningClient(http, given)._url == "https://api.example.com/psa/pins"
