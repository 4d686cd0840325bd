"""The server of `ipfsmem serve peer`: the blocks of a store, and under /psa the Pinning Service API over the same store.

One token, one list of host names for both parts.
"""

from __future__ import annotations

from typing import Final

from aiohttp import web

from ipfsmem.http import blocks, psa
from ipfsmem.http.guard import need_token
from ipfsmem.http.psa_requests import PinRequests
from ipfsmem.loopback import LOCAL_HOSTS
from ipfsmem.provider.contract import Provider

PSA_PATH: Final = "/psa"
#: Prefix of the names of pins from the Pinning Service API.
PSA_NAMES: Final = "psa:"


def app(
    store: Provider,
    *,
    token: str = "",
    hosts: frozenset[str] = LOCAL_HOSTS,
    requests: PinRequests | None = None,
) -> web.Application:
    """Return the server over `store`; without a token it accepts no writes and no pin requests.

    `requests` is the list of the Pinning Service API, in memory unless given.
    """
    server = blocks.app(store, token=token, hosts=hosts, closed=PSA_NAMES)
    if token:
        server.add_subapp(
            PSA_PATH, psa.app(store, token=token, requests=requests, hosts=hosts, under=PSA_NAMES)
        )
    else:
        server.router.add_route("*", PSA_PATH + "{rest:(/.*)?}", _refused)
    return server


async def _refused(request: web.Request) -> web.StreamResponse:
    need_token(request, "")
    raise AssertionError("an empty token lets nobody in")
