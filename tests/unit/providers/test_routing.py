"""Delegated routing with several operators: one suffices, the newest valid record is used, all failures
are reported."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime

import pytest
from aiohttp import web
from ipfsmem_providers.routing import RoutingProvider
from ipfsmem_providers.routing.answers import RECORD_TYPE
from ipfsmem_providers.routing.client import https_url

from ipfsmem.content.cid import ipns_name, parse_cid
from ipfsmem.errors import ConfigError, ProviderError, ProviderRefused, ProviderUnavailable
from ipfsmem.provider.contract import Pin, Provider, open_provider
from ipfsmem.published import ipns_record
from ipfsmem.seal.primitives import Signer25519
from tests.servers.clockwork import Clockwork
from tests.servers.threaded import serve
from tests.support.provider_lab import run

SEED = b"\x07" * 32
NAME = ipns_name(Signer25519(SEED).public)
UNTIL = datetime(2036, 1, 1, tzinfo=UTC)
CID = parse_cid("bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy")


def record(sequence: int, seed: bytes = SEED) -> bytes:
    return ipns_record.make_record(seed, "/ipfs/bafkqaaa", sequence, UNTIL)


class Operator:
    """A routing server with scripted answers."""

    def __init__(self) -> None:
        self.records: dict[str, bytes] = {}
        self.put_status = 200
        self.get: web.Response | None = None
        self.providers: tuple[str, bytes, int] = ("application/json", b'{"Providers":null}', 200)
        self.asked: list[web.Request] = []

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/routing/v1/ipns/{name}", self.handle_get)
        app.router.add_put("/routing/v1/ipns/{name}", self.handle_put)
        app.router.add_get("/routing/v1/providers/{cid}", self.handle_providers)
        return app

    async def handle_get(self, request: web.Request) -> web.Response:
        self.asked.append(request)
        if self.get is not None:
            return web.Response(status=self.get.status, body=self.get.body, headers=self.get.headers)
        held = self.records.get(request.match_info["name"])
        if held is None:
            return web.Response(text="Record not found")  # 200, as Helia does
        return web.Response(body=held, content_type=RECORD_TYPE)

    async def handle_put(self, request: web.Request) -> web.Response:
        self.asked.append(request)
        if self.put_status == 200:
            assert request.content_type == RECORD_TYPE
            self.records[request.match_info["name"]] = await request.read()
        return web.Response(status=self.put_status, text="no")

    async def handle_providers(self, request: web.Request) -> web.Response:
        self.asked.append(request)
        kind, body, code = self.providers
        return web.Response(status=code, body=body, content_type=kind)


Two = tuple[Operator, Operator, RoutingProvider]


@pytest.fixture
def two() -> Iterator[Two]:
    with ExitStack() as stack:
        operators = [Operator(), Operator()]
        urls = [stack.enter_context(serve(operator.app)) for operator in operators]
        spec = f"{urls[0]},{urls[1]}/routing/v1"
        yield operators[0], operators[1], RoutingProvider(spec, {"timing": Clockwork().timing})


def test_records_are_sent_to_all_and_read_from_all_operators(two: Two) -> None:
    one, other, provider = two
    assert run(provider, provider.get_name(NAME)) is None
    run(provider, provider.put_name(NAME, record(1)))
    assert one.records == other.records == {NAME: record(1)}
    other.records[NAME] = record(5)
    assert run(provider, provider.get_name(NAME)) == record(5)
    one.records[NAME] = record(7)
    assert run(provider, provider.get_name(NAME)) == record(7)


@pytest.mark.parametrize("code", [400, 401, 406, 429, 500, 503])
def test_one_working_operator_suffices(two: Two, code: int) -> None:
    one, other, provider = two
    one.put_status = code
    run(provider, provider.put_name(NAME, record(1)))
    assert other.records == {NAME: record(1)}
    assert len(provider.client.failures) == 1 and str(code) in provider.client.failures[0]
    one.put_status = 200
    run(provider, provider.put_name(NAME, record(1)))
    assert provider.client.failures == []


def test_failure_of_all_operators_names_each_reason(two: Two) -> None:
    one, other, provider = two
    one.put_status, other.put_status = 400, 406
    with pytest.raises(ProviderRefused, match=r"400.*406"):
        run(provider, provider.put_name(NAME, record(1)))
    other.put_status = 503
    with pytest.raises(ProviderUnavailable, match=r"400.*503"):
        run(provider, provider.put_name(NAME, record(1)))


def test_operator_with_a_newer_record_may_refuse_ours(two: Two) -> None:
    one, other, provider = two
    one.records[NAME] = other.records[NAME] = record(5)
    one.put_status = other.put_status = 500
    run(provider, provider.put_name(NAME, record(4)))
    run(provider, provider.put_name(NAME, record(5)))
    assert provider.client.failures == []
    with pytest.raises(ProviderUnavailable):
        run(provider, provider.put_name(NAME, record(6)))


@pytest.mark.parametrize(
    "bad",
    [
        web.Response(status=404), web.Response(status=406), web.Response(status=500),
        web.Response(body=record(9, b"\x08" * 32), content_type=RECORD_TYPE),  # of another name
        web.Response(body=record(9)[:-1], content_type=RECORD_TYPE),
        web.Response(body=b"", content_type=RECORD_TYPE),
        web.Response(body=bytes(11_000), content_type=RECORD_TYPE),
        web.Response(body=record(9), content_type="text/plain"),  # not declared as a record
        web.Response(status=302, headers={"Location": "http://169.254.169.254/"}),
    ],
)  # fmt: skip
def test_bad_answers_of_one_operator_are_ignored(two: Two, bad: web.Response) -> None:
    one, other, provider = two
    one.get = bad
    other.records[NAME] = record(3)
    assert run(provider, provider.get_name(NAME)) == record(3)
    other.get = web.Response(status=404)
    assert run(provider, provider.get_name(NAME)) is None


#: Answers of servers without a record of a name (routing/answers.py names the sources), and answers of other
#: servers.
NO_RECORD = [
    web.Response(text="delegate error: routing: not found"),  # boxo, delegated-ipfs.dev
    web.Response(text="Record not found"),  # Helia
    web.Response(status=404),
    web.Response(status=404, text="no record for this name"),
    web.Response(status=404, text='{"error":{"reason":"NOT_FOUND"}}', content_type="application/json"),
]
SOMEBODY_ELSE = [
    web.Response(text="<html><title>Welcome to this hotel</title></html>", content_type="text/html"),
    web.Response(text=" <!doctype html><p>not found", content_type="text/plain"),
    web.Response(text="success\n"),
    web.Response(text=""),
    web.Response(text="{}", content_type="application/json"),
    web.Response(status=404, text="<h1>Not Found</h1>", content_type="text/html"),
    web.Response(status=404, text="404 page not found\n"),
    web.Response(status=404, text="404: Not Found"),
    web.Response(status=404, text='{"detail":"Not Found"}', content_type="application/json"),
    web.Response(status=404, text='{"message":"Route GET:/routing/v1/ipns/x not found"}', content_type="application/json"),
    web.Response(status=404, text="default backend - 404"),
    web.Response(status=404, text='{"message":"Not Found"}', content_type="application/json"),
    web.Response(status=404, text='{"status":404,"error":"Not Found","path":"/routing/v1/ipns/k51"}', content_type="application/json"),
    web.Response(text="Device not found. Please log in."),
    web.Response(status=406),
    web.Response(status=410),
    web.Response(status=451),
    web.Response(status=504),
]  # fmt: skip


@pytest.mark.parametrize("answer", NO_RECORD)
def test_router_without_the_record_returns_none(two: Two, answer: web.Response) -> None:
    one, other, provider = two
    one.get = other.get = answer
    assert run(provider, provider.get_name(NAME)) is None


@pytest.mark.parametrize("answer", SOMEBODY_ELSE)
def test_answer_not_from_a_router_is_an_error(two: Two, answer: web.Response) -> None:
    one, other, provider = two
    one.get = other.get = answer
    with pytest.raises(ProviderError):
        run(provider, provider.get_name(NAME))


def test_failing_lookup_at_all_operators_is_an_error(two: Two) -> None:
    one, other, provider = two
    one.get, other.get = web.Response(status=500), web.Response(status=400)
    with pytest.raises(ProviderUnavailable, match=r"500.*400"):
        run(provider, provider.get_name(NAME))


def test_expired_record_still_shows_its_sequence(two: Two) -> None:
    one, _, provider = two
    one.records[NAME] = ipns_record.make_record(SEED, "/ipfs/bafkqaaa", 3, datetime(2001, 1, 1, tzinfo=UTC))
    assert run(provider, provider.get_name(NAME)) == one.records[NAME]


def test_invalid_record_is_never_sent(two: Two) -> None:
    one, other, provider = two
    for bad in (b"", b"noise", record(1, b"\x08" * 32)):
        with pytest.raises(ProviderRefused):
            run(provider, provider.put_name(NAME, bad))
    for name in ("", "../x", "bafkqaaa"):
        with pytest.raises(ProviderRefused):
            run(provider, provider.get_name(name))
    assert one.asked == other.asked == []


PEER = (
    b'{"Schema":"peer","ID":"x","Addrs":["/dns4/gw.example/tcp/443/https","/ip4/127.0.0.1/tcp/443/https",'
    b'"/dns/b.example/tcp/8443/tls/http/p2p/x","/ip4/1.2.3.4/tcp/4001"],"Protocols":["transport-ipfs-gateway-http"]}'
)
BITSWAP = (
    b'{"Schema":"peer","ID":"y","Addrs":["/dns4/c.example/tcp/443/https"],"Protocols":["transport-bitswap"]}'
)
OTHERS = [
    b'{"Schema":"unknown","Addrs":7}',
    b'{"Schema":"peer","Addrs":"no list"}',
    b"nonsense",
    b"7",
    b"{}",
    BITSWAP,
]


@pytest.mark.parametrize(
    "answer",
    [
        (
            "application/json",
            b'{"Providers":[' + b",".join([PEER, *OTHERS[:2], b"7", b"{}", BITSWAP]) + b"]}",
            200,
        ),
        ("application/x-ndjson", b"\n".join([PEER, b"", *OTHERS]), 200),
    ],
)
def test_gateways_are_read_from_json_and_ndjson(two: Two, answer: tuple[str, bytes, int]) -> None:
    one, other, provider = two
    one.providers = answer
    other.providers = ("text/plain", b"not found", 404)
    assert run(provider, provider.client.gateways(CID)) == ["https://gw.example", "https://b.example:8443"]
    asked = one.asked[0]
    assert asked.query["filter-protocols"] == "transport-ipfs-gateway-http" and str(CID) in asked.path


def test_empty_provider_list_has_no_gateways(two: Two) -> None:
    one, other, provider = two
    assert run(provider, provider.client.gateways(CID)) == []
    one.providers = ("application/json", b"[]", 200)
    assert run(provider, provider.client.gateways(CID)) == []
    other.providers = ("text/html", b"<html>", 500)
    with pytest.raises(ProviderUnavailable):
        run(provider, provider.client.gateways(CID))


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("/dns4/gw.example/tcp/443/https", "https://gw.example"),
        ("/dns/gw.example/tcp/443/tls/http", "https://gw.example"),
        ("/dns6/gw.example/https", "https://gw.example"),
        ("/dns/gw.example/tcp/8443/https/p2p/12D3", "https://gw.example:8443"),
        ("/dns/gw.example/tcp/443/tls/sni/gw.example/http", "https://gw.example"),
        ("/dns/gw.example/tcp/443/https/http-path/ipfs%2Fgw", "https://gw.example/ipfs/gw"),
        ("/ip4/1.1.1.1/tcp/443/https", "https://1.1.1.1"),
        ("/ip6/2606:4700:4700::1111/tcp/443/https", "https://[2606:4700:4700::1111]"),
        ("/dns/gw.example/tcp/443", None),
        ("/dns/gw.example/tcp/80/http", None),
        ("/dns/gw.example/tcp/443/wss", None),
        ("/dns/gw.example/tcp/22/https", None),
        ("/dns/gw.example/tcp/99999/https", None),
        ("/dns/gw.example/tcp/443/https/http-path/..%2F..%2Fx", None),
        ("/dns/gw.example/tcp/443/https/http-path/%3Ftoken", None),
        ("/dns/user@gw.example/tcp/443/https", None),
        ("/dns/-x/tcp/443/https", None),
        ("/ip4/127.0.0.1/tcp/443/https", None),
        ("/ip4/10.0.0.1/https", None),
        ("/ip6/::1/tcp/443/https", None),
        ("/ip6/::ffff:10.0.0.1/tcp/443/https", None),
        ("/ip4/::1/tcp/443/https", None),
        ("/ip4/999.1.1.1/tcp/443/https", None),
        ("/p2p/12D3", None),
        ("", None),
        ("https://gw.example", None),
    ],
)
def test_multiaddr_becomes_an_https_url(address: str, url: str | None) -> None:
    assert https_url(address) == url


def test_routing_provider_supports_names_only() -> None:
    provider = open_provider("routing:https://a.example,https://b.example/routing/v1/")
    assert isinstance(provider, RoutingProvider) and isinstance(provider, Provider)
    assert provider.name == "routing:https://a.example,https://b.example"
    assert provider.capabilities.names and not provider.capabilities.blocks
    calls = [
        provider.put_car(CID, [], name="n"), provider.has([CID]), provider.get_blocks([CID]), provider.pin(CID, "n"),
        provider.pins("n"), provider.unpin(Pin(CID, "n", "", 0)),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(ProviderRefused, match="cannot"):
            asyncio.run(call)
    with pytest.raises(ProviderRefused):
        provider.get_dag(CID)
    for spec in ("routing", "routing:x"):
        with pytest.raises(ConfigError):
            open_provider(spec)
