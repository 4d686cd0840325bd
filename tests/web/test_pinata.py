"""The browser client's provider for Pinata, in Node before the stand-in for its service."""

from __future__ import annotations

import asyncio

import pytest

from ipfsmem.memory import Memory
from tests.servers.pinata import V3_KEY
from tests.support.web_lab import by_wallet, web_client
from tests.unit.providers.services_lab import account

pytestmark = [pytest.mark.interop, pytest.mark.slow]


def test_a_version_on_the_last_page_of_a_list_is_found(url: str, memory: Memory) -> None:
    with account("pinata-car") as service, web_client() as client:
        asyncio.run(memory.sync(service.open()))
        service.server.page, service.server.ignores_filters = 1, True
        for number in range(3):
            service.server._add({"network": "public", "name": f"other {number}"}, [("file", b"%d" % number)])
        at = ["pinata", f"gateway:{url}"]
        new = client.open("new", url, at=at, token=V3_KEY, pinata=service.url, **by_wallet())
        assert new.read("tone")["body"].startswith("Be direct.")
