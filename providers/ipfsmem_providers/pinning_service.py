"""The `pinning_service` provider: any service that speaks the Pinning Service API 1.0.0.

    pinning_service:<endpoint>   such as https://api.example.com/psa
    PINNING_SERVICE_URL        the endpoint, when the spec names none
    PINNING_SERVICE_TOKEN      the access token; of several services each its own (http/tokens.py)
    PINNING_SERVICE_ORIGINS    addresses (/ip4/.../p2p/...) of a node that holds the blocks, with commas
    PINNING_SERVICE_PATIENCE   seconds to wait for a pin to be made; 5
    PINNING_SERVICE_GATEWAY    trustless gateways to read from, with commas

Settings of the same names in lower case override the environment.

This API has no uploads: the service fetches what it pins from the network. So it complements a provider whose blocks
the network finds, such as `kubo` with its addresses as origins: what is published there is pinned here too, and stays
when that node is gone. The service names its fetching nodes (`delegates`), and the user's node is told to connect to
them. Fetching can take hours. Until the service reports completion, `pin` raises ProviderUnavailable and the next sync
checks again, so no older root is unpinned for one only requested. A failed request is replaced by a new one.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from ipaddress import ip_address
from typing import Any, Final

from yarl import URL

from ipfsmem.content.cid import CID
from ipfsmem.errors import ConfigError, ProviderRefused
from ipfsmem.provider.base import ProviderBase
from ipfsmem.provider.contract import Block, Capabilities, Pin, unsupported
from ipfsmem_providers.gateways import Gateways
from ipfsmem_providers.http.addresses import is_public
from ipfsmem_providers.http.client import Http, origin_of, urls_of
from ipfsmem_providers.http.polling import Polling
from ipfsmem_providers.http.tokens import shown, token_for
from ipfsmem_providers.psa_client import (
    FAILED,
    ORIGINS_MAX,
    PINNED,
    PINNING,
    QUEUED,
    STATUSES,
    PinningClient,
    PinRequest,
)
from ipfsmem_providers.settings import seconds, setting

_LISTED: Final = (QUEUED, PINNING, PINNED)
_MULTIADDR: Final = re.compile(r"/(ip4|ip6|dns|dns4|dns6|dnsaddr)/([^/\s]+)(?:/[^\s]*)?/p2p/[A-Za-z0-9]+")
_HINT: Final = "For instance pinning_service:https://api.example.com/psa, with PINNING_SERVICE_TOKEN."


class PinningServiceProvider(ProviderBase):
    """A pinning service as a provider. See ipfsmem.provider.contract for the methods."""

    def __init__(self, rest: str = "", settings: Mapping[str, Any] | None = None) -> None:
        """`rest` is the endpoint. No network access. ConfigError for unusable settings."""
        settings = settings or {}

        def url_of(rest: str) -> str:
            url = rest or setting(settings, "PINNING_SERVICE_URL")
            if not url:
                raise ConfigError("the pinning service has no endpoint", hint=_HINT)
            return urls_of([url], "pinning service")[0].removesuffix("/pins").rstrip("/")

        endpoint = url_of(rest)
        origin = origin_of(endpoint)
        token = token_for(
            settings, "PINNING_SERVICE_TOKEN", endpoint, kind="pinning_service", url_of=url_of,
            url_setting="PINNING_SERVICE_URL",
        )  # fmt: skip
        if not token or origin is None:
            raise ConfigError(
                f"PINNING_SERVICE_TOKEN is not set for {shown(origin) if origin else endpoint}", hint=_HINT
            )
        self._origins = _origins(setting(settings, "PINNING_SERVICE_ORIGINS"))
        self._patience = seconds(settings, "PINNING_SERVICE_PATIENCE", 5.0)
        self._http = Http(
            "pinning_service",
            trusted=[endpoint],
            auth={"Authorization": f"Bearer {token}"},
            settings=settings,
            auth_setting="PINNING_SERVICE_TOKEN",
        )
        self._client = PinningClient(self._http, endpoint)
        gateway = setting(settings, "PINNING_SERVICE_GATEWAY")
        self._gateway = Gateways(gateway, settings) if gateway else None
        reads = self._gateway is not None
        self._capabilities = Capabilities(put=False, pin=True, list=True, unpin=True, blocks=reads, dag=reads)
        self._name = f"pinning_service:{self._http.redact(endpoint)}"
        #: Whether the service is in our own network. One on the internet may not make our node call addresses in our network.
        self._own_network = not is_public(URL(endpoint).host or "") and _is_address(URL(endpoint).host or "")
        self._delegates: tuple[str, ...] = ()
        #: Requests made here, since a list may show them late.
        self._asked: dict[tuple[CID, str], PinRequest] = {}

    @property
    def name(self) -> str:
        """Return `pinning_service:` and the endpoint."""
        return self._name

    @property
    def capabilities(self) -> Capabilities:
        """Return pins and their list; reading when gateways are named."""
        return self._capabilities

    async def put_car(self, root: CID, blocks: Iterable[Block], *, name: str) -> CID:
        """Refused: the API has no uploads."""
        raise ProviderRefused(
            f"{self._name} accepts no uploads: a pinning service fetches the content that it pins",
            hint="Use it together with a provider that holds the blocks, such as kubo.",
        )

    async def get_blocks(self, cids: Sequence[CID]) -> dict[CID, bytes]:
        """Return checked blocks from the gateways."""
        if self._gateway is None:
            raise unsupported(self, "serve blocks")
        return await self._gateway.get_blocks(cids)

    async def get_dag(self, root: CID) -> AsyncIterator[Block]:
        """Yield the checked blocks of a tree from the gateways."""
        if self._gateway is None:
            raise unsupported(self, "serve trees")
        async for block in self._gateway.get_dag(root):
            yield block

    async def pin(self, root: CID, name: str) -> Pin:
        """Ask for a pin unless it is there; a request that failed is replaced by a new one.

        ProviderUnavailable when it is not done within PINNING_SERVICE_PATIENCE; the request stays in the list.
        """
        requests = [row for row in await self._client.list(name=name, cid=root) if row.cid == root]
        there = [row for row in requests if row.status in _LISTED]
        failed = [row for row in requests if row.status == FAILED]
        if there:
            request = min(there, key=_age)
        else:
            request = await self._asked_before(root, name) or await self._ask(root, name, failed)
            self._asked[root, name] = request
        self._delegates = request.delegates
        request = await self._wait(request)
        if request.status == FAILED:
            why = f": {request.why}" if request.why else ""
            raise self._http.unavailable(f"{self._name} could not pin {root}{why}; the next sync asks again")
        if request.status != PINNED:
            raise self._http.unavailable(f"{self._name} is still fetching {root} ({request.status})")
        return Pin(root, name, request.id, request.created)

    def fetchers(self) -> list[str]:
        """Return the service's delegates that our node may be told to call: those with a peer id and, by the
        internet, a public address."""
        return [one for one in self._delegates if _can_be_called(one, own_network=self._own_network)]

    async def pins(self, name: str) -> list[Pin]:
        """Return pins with this name, newest first; also those that the service is still fetching."""
        return await self._client.pins(name, _LISTED)

    def unread(self) -> list[str]:
        """See `Unreading`."""
        return self._client.gaps.unread()

    async def unpin(self, pin: Pin) -> None:
        """Remove one request; an absent one is ignored."""
        if pin.handle:
            await self._client.delete(pin.handle)

    async def status(self, pin: Pin) -> PinRequest | None:
        """Return the state of a pin at the service now; None when the service does not know it."""
        return await self._client.status(pin.handle, pin.cid)

    async def close(self) -> None:
        """Close connections."""
        await self._http.close()
        if self._gateway is not None:
            await self._gateway.close()

    async def _asked_before(self, root: CID, name: str) -> PinRequest | None:
        """Return an earlier request from here not listed yet; None if the service does not know it or failed
        to fulfil it."""
        earlier = self._asked.pop((root, name), None)
        request = await self._client.status(earlier.id, root) if earlier is not None else None
        return request if request is not None and request.status in _LISTED else None

    async def _ask(self, root: CID, name: str, failed: list[PinRequest]) -> PinRequest:
        if failed:
            request = await self._client.replace(min(failed, key=_age).id, root, name, origins=self._origins)
            if request is not None:
                return request
        return await self._client.add(root, name, origins=self._origins)

    async def _wait(self, request: PinRequest) -> PinRequest:
        """Look until the request is pinned or failed, or patience ends."""
        polling = Polling(self._http.timing, self._patience)
        while request.status not in (PINNED, FAILED) and await polling.pause():
            request = await self._client.status(request.id, request.cid) or request
        return request


def _age(request: PinRequest) -> tuple[int, int, str]:
    """Return a sort key: the most advanced request first, then the oldest, so that concurrent devices choose
    the same one."""
    furthest = STATUSES.index(request.status) if request.status in STATUSES else -1
    return -furthest, request.created, request.id


def _can_be_called(address: str, *, own_network: bool) -> bool:
    match = _MULTIADDR.fullmatch(address)
    if match is None:
        return False
    return own_network or match[1] not in ("ip4", "ip6") or is_public(match[2])


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return host == "localhost"
    return True


def _origins(text: str) -> list[str]:
    addresses = [part.strip() for part in text.split(",") if part.strip()]
    bad = [part for part in addresses if not part.startswith("/")]
    if bad:
        raise ConfigError(
            f"PINNING_SERVICE_ORIGINS has {bad[0]!r}, which is not a multiaddr",
            hint="For instance /ip4/203.0.113.7/tcp/4001/p2p/12D3KooW..., as `ipfs id` shows it.",
        )
    if len(addresses) > ORIGINS_MAX:
        raise ConfigError(
            f"PINNING_SERVICE_ORIGINS has {len(addresses)} addresses, {ORIGINS_MAX} are allowed"
        )
    return addresses
