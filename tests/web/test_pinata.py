"""The browser client's provider for Pinata, in Node with the service's stand-in."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from ipfsmem.memory import Memory
from tests.servers.pinata import V3_KEY
from tests.support.web_lab import WebDevice, by_wallet, web_client
from tests.unit.providers.services_lab import Account, account

pytestmark = [pytest.mark.interop, pytest.mark.slow]


def others(service: Account) -> None:
    """Three uploads of somebody else, in an account whose lists are not filtered."""
    service.server.ignores_filters = True
    for number in range(3):
        service.server._add({"network": "public", "name": f"other {number}"}, [("file", b"%d" % number)])


def test_version_on_the_last_page_of_a_list_is_found(url: str, memory: Memory) -> None:
    with account("pinata-car") as service, web_client() as client:
        asyncio.run(memory.sync(service.open()))
        others(service)
        service.server.page = 1
        at = ["pinata", f"gateway:{url}"]
        new: WebDevice = client.open("new", url, at=at, token=V3_KEY, pinata=service.url, **by_wallet())
        assert new.read("tone")["body"].startswith("Be direct.")


def test_list_that_fails_after_its_first_page_shows_that_page(url: str, memory: Memory) -> None:
    with account("pinata-car") as service, web_client() as client:
        others(service)
        asyncio.run(memory.sync(service.open()))
        service.server.page = len(service.server.files) - 3
        failed = 0

        async def fault(request: web.Request) -> web.StreamResponse:
            nonlocal failed
            await request.read()
            if "pageToken" in request.query:
                failed += 1
                return web.Response(status=403)
            answer: web.Response = await service.server.list(request)
            return answer

        service.server.faults.add("GET", "/v3/files/public", fault, -1)
        at = ["pinata", f"gateway:{url}"]
        new: WebDevice = client.open("new", url, at=at, token=V3_KEY, pinata=service.url, **by_wallet())
        assert new.read("tone")["body"].startswith("Be direct.")
    assert failed
