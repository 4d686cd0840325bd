"""URLs from outside lead to public addresses only, in any form and whatever the DNS answers later."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from ipfsmem_providers.http import addresses
from ipfsmem_providers.http.client import Http
from ipfsmem_providers.http.policy import ONCE

from ipfsmem.errors import ProviderRefused, ProviderUnavailable
from tests.servers.threaded import serve

REFUSED = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::8.8.8.8",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:7f00:1",
    "64:ff9b::7f00:1",
    "64:ff9b::10.0.0.1",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "3fff::1",
    "2002:7f00:1::",
    "2002:a00:1::1",
    "fc00::1",
    "fd00:ec2::254",
    "fdff::1",
    "fe80::1",
    "fe80::1%eth0",
    "febf::1",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
    "nonsense",
    "1.2.3",
    "1.2.3.4.5",
    "0x7f000001",
    "2130706433",
]
ALLOWED = [
    "1.1.1.1",
    "8.8.8.8",
    "93.184.216.34",
    "172.15.255.255",
    "172.32.0.1",
    "192.167.1.1",
    "100.63.255.255",
    "100.128.0.1",
    "168.63.129.17",
    "2606:4700:4700::1111",
    "2a00:1450:4001:830::200e",
    "::ffff:8.8.8.8",
    "64:ff9b::808:808",
    "2002:808:808::1",
]


@pytest.mark.parametrize("address", REFUSED)
def test_private_address_is_not_public(address: str) -> None:
    assert not addresses.is_public(address)


@pytest.mark.parametrize("address", ALLOWED)
def test_public_address_is_public(address: str) -> None:
    assert addresses.is_public(address)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/", "https://10.0.0.1/", "http://[::1]/", "http://[::ffff:10.0.0.1]/", "http://169.254.169.254/",
        "https://example.com:22/", "https://example.com:5001/", "https://user:pw@example.com/", "https://user@example.com",
        "ftp://example.com/", "file:///etc/passwd", "gopher://example.com", "https://", "nonsense", "https://[",
        "http://example.com:0/", "https://example.com:99999/", "http://0x7f.1:9999/",
    ],
)  # fmt: skip
def test_invalid_or_private_url_is_refused_before_the_lookup(url: str) -> None:
    with pytest.raises(ProviderRefused):
        addresses.check_url(url)


def test_refused_private_url_has_a_hint_for_its_owner() -> None:
    for url in ("http://127.0.0.1/ipfs/x", "http://example.com:18787/ipfs/x"):
        with pytest.raises(ProviderRefused) as caught:
            addresses.check_url(url)
        assert "--provider gateway:" in caught.value.hint


def test_public_urls_are_accepted() -> None:
    for url in (
        "https://example.com/ipfs/x",
        "http://example.com:8080",
        "https://example.com:8443/",
        "http://1.1.1.1/",
    ):
        assert str(addresses.check_url(url)).startswith("http")
    with pytest.raises(ProviderRefused, match="https"):
        addresses.check_url("http://example.com/", https_only=True)


Rows = list[tuple[Any, ...]]


def rows(*found: str, port: int = 80) -> Rows:
    return [
        (
            socket.AF_INET6 if ":" in address else socket.AF_INET,
            socket.SOCK_STREAM,
            6,
            "",
            (address, port, 0, 0) if ":" in address else (address, port),
        )
        for address in found
    ]


def answers(*each: Rows) -> tuple[Callable[[str, int], Coroutine[Any, Any, Rows]], list[str]]:
    """A name service that answers each lookup with the next of these."""
    asked: list[str] = []
    left = list(each)

    async def lookup(host: str, port: int) -> Rows:
        asked.append(host)
        return left.pop(0) if len(left) > 1 else left[0]

    return lookup, asked


def ask(lookup: Any, url: str = "http://gateway.example/x") -> None:
    async def body() -> None:
        http = Http("outside", lookup=lookup, retry=ONCE)
        try:
            await http.request("GET", url)
        finally:
            await http.close()

    asyncio.run(body())


@pytest.mark.parametrize(
    "found",
    [
        rows("127.0.0.1"), rows("::1"), rows("192.168.1.1"), rows("::ffff:127.0.0.1"), rows("169.254.169.254"),
        rows("fd00::1"), rows("224.0.0.1"), rows("93.184.216.34", "127.0.0.1"), rows("10.0.0.1", "93.184.216.34"),
    ],
)  # fmt: skip
def test_host_name_that_resolves_to_a_private_address_is_refused(found: Rows) -> None:
    lookup, asked = answers(found)
    with pytest.raises(ProviderRefused, match=r"gateway\.example resolves to"):
        ask(lookup)
    assert asked == ["gateway.example"]


def test_host_name_without_addresses_is_unreachable() -> None:
    lookup, _ = answers([])
    with pytest.raises(ProviderUnavailable):
        ask(lookup)


@pytest.mark.parametrize(
    "host", ["127.1", "0x7f.0.0.1", "0177.0.0.1", "2130706433", "localhost", "LOCALHOST"]
)
def test_other_spellings_of_loopback_are_refused(host: str) -> None:
    with pytest.raises(ProviderRefused):
        ask(None, f"http://{host}/")


def test_request_connects_to_the_address_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """DNS rebinding: the name is public when checked, and would be private in a second lookup."""
    tried: list[str] = []

    def refuse(info: Any) -> socket.socket:
        tried.append(info[4][0])
        raise OSError("no network in this test")

    monkeypatch.setattr(addresses, "_socket", refuse)
    lookup, asked = answers(rows("93.184.216.34"), rows("127.0.0.1"))
    with pytest.raises(ProviderUnavailable):
        ask(lookup)
    assert asked == ["gateway.example"] and tried == ["93.184.216.34"]
    # The next connection makes a new lookup, and a new check.
    with pytest.raises(ProviderRefused):
        ask(lookup)


def test_socket_refuses_a_private_address_last() -> None:
    """After a resolver that allowed it."""
    seen = []

    async def page(request: web.Request) -> web.Response:
        seen.append(request.path)
        return web.Response()

    def make() -> web.Application:
        app = web.Application()
        app.router.add_get("/", page)
        return app

    async def body(url: str) -> None:
        async with aiohttp.ClientSession(connector=addresses.public_connector(4)) as session:
            with pytest.raises(aiohttp.ClientConnectorError):
                await session.get(url)  # an IP address: aiohttp calls no resolver

    with serve(make) as url:
        asyncio.run(body(url))
    assert seen == []
