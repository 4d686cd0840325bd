"""A provider that fails between two blocks: received blocks are used, and missing ones are not reported as
absent.

A block that an answer omits is absent. If an outage looked the same, a head would seem damaged, and a new
device would restore an older one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from aiohttp import web
from ipfsmem_providers.gateways import Gateways
from ipfsmem_providers.gateways.own_gateway import OwnGateway
from ipfsmem_providers.http.policy import ONCE
from ipfsmem_providers.kubo import KuboProvider
from ipfsmem_providers.peer import PeerProvider

from ipfsmem.content.car import header, section
from ipfsmem.content.cid import CID, parse_cid
from ipfsmem.content.tree import build_tree
from ipfsmem.errors import ProviderUnavailable
from ipfsmem.provider.contract import Provider
from tests.servers.threaded import serve_here
from tests.support import virtual_time

TREE = build_tree({f"{n}.md": f"text {n}".encode() * 50 for n in range(6)})
BLOCKS = dict(TREE.blocks)
GIVEN = list(BLOCKS)[:3]


def app(rest: int) -> web.Application:
    """A server with three blocks that answers `rest` to a request for another one."""

    async def block(request: web.Request) -> web.Response:
        cid = parse_cid(request.match_info.get("cid") or request.query["arg"])
        if cid in GIVEN:
            return web.Response(body=BLOCKS[cid])
        if "arg" in request.query and rest == 404:
            return web.json_response({"Message": "ipld: could not find node", "Type": "error"}, status=500)
        return web.Response(status=rest)

    async def blocks(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Type": "application/vnd.ipld.car"})
        await answer.prepare(request)
        await answer.write(header([GIVEN[0]]))
        for cid in GIVEN:
            await answer.write(section(cid, BLOCKS[cid]))
        if rest == 404:
            await answer.write_eof()
        else:
            await asyncio.sleep(0.05)  # passes only when all sent bytes have been read
            assert request.transport is not None
            request.transport.abort()
        return answer

    async def version(request: web.Request) -> web.Response:
        return web.json_response({"Version": "0.43.1"})

    made = web.Application()
    made.router.add_get("/ipfs/{cid}", block)
    made.router.add_post("/blocks", blocks)
    made.router.add_post("/api/v0/version", version)
    made.router.add_post("/api/v0/block/get", block)
    return made


KINDS: dict[str, Callable[[str], Provider | OwnGateway]] = {
    "gateway": lambda url: Gateways([url], {"retry": ONCE}),
    "own gateway": lambda url: OwnGateway("service", url, settings={"retry": ONCE}),
    "peer": lambda url: PeerProvider(url, {"retry": ONCE}),
    "kubo": lambda url: KuboProvider(url, {"retry": ONCE}),
}


def got(kind: str, rest: int) -> dict[CID, bytes]:
    async def ask() -> dict[CID, bytes]:
        async with serve_here(app(rest)) as url:
            provider = KINDS[kind](url)
            try:
                return await provider.get_blocks(list(BLOCKS))
            finally:
                await provider.close()

    return virtual_time.run(ask())


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_hidden_by_an_outage_are_not_reported_missing(kind: str) -> None:
    with pytest.raises(ProviderUnavailable) as caught:
        got(kind, 503)
    assert set(caught.value.blocks) <= set(GIVEN)
    assert dict(caught.value.blocks) == {cid: BLOCKS[cid] for cid in caught.value.blocks}
    assert caught.value.blocks


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_denied_by_the_provider_are_left_out(kind: str) -> None:
    assert got(kind, 404) == {cid: BLOCKS[cid] for cid in GIVEN}
