"""A client of delegated routing V1 (specs.ipfs.tech/routing/http-routing-v1) at several operators at once.

Names are put to and read from all operators. Records are checked and the greatest wins, so an operator can
only withhold. The gateway URLs that it names are untrusted. Stores nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from ipfsmem.canonical import read_json
from ipfsmem.content.cid import CID
from ipfsmem.errors import (
    FormatError,
    ProviderError,
    ProviderRefused,
    SealError,
)
from ipfsmem.published import ipns_record
from ipfsmem_providers.http import addresses
from ipfsmem_providers.http.client import Answer, Http, NotConnected, urls_of
from ipfsmem_providers.http.errors import combined
from ipfsmem_providers.http.policy import Retry
from ipfsmem_providers.routing.answers import RECORD_TYPE, STATUSES, record_in

GATEWAY_PROTOCOL: Final = "transport-ipfs-gateway-http"
_NDJSON: Final = "application/x-ndjson"
_PROVIDERS_MAX: Final = 200
_log = logging.getLogger("ipfsmem.providers")


class PeerRecord(msgspec.Struct):
    """A provider of a CID as a routing server describes it. Unknown fields are ignored."""

    schema: str = msgspec.field(name="Schema", default="")
    id: str | None = msgspec.field(name="ID", default=None)
    addrs: list[str] | None = msgspec.field(name="Addrs", default=None)
    protocols: list[str] | None = msgspec.field(name="Protocols", default=None)


class _ProvidersAnswer(msgspec.Struct):
    providers: list[msgspec.Raw] | None = msgspec.field(name="Providers", default=None)


class RoutingClient:
    """Routing servers of one or more operators."""

    def __init__(self, urls: str | Iterable[str], *, settings: Mapping[str, Any] | None = None) -> None:
        """`urls`: with or without `/routing/v1` at the end. ConfigError if empty."""
        bases = [url.removesuffix("/routing/v1") for url in urls_of(urls, "routing server")]
        self.urls = list(dict.fromkeys(bases))
        self._http = Http(
            "routing", trusted=self.urls, settings=settings, retry=Retry(attempts=3, patience=20)
        )
        #: Failures of single operators in the last call, in words.
        self.failures: list[str] = []

    async def put(self, name: str, record: bytes) -> None:
        """Put a record of a canonical name to all operators. One success suffices; `failures` has those of the others.

        An operator that refuses because it holds a greater or the same record is a success.
        """
        self.failures = []
        outcomes = await asyncio.gather(
            *(self._put(url, name, record) for url in self.urls), return_exceptions=True
        )
        problems = self._problems(outcomes)
        if len(problems) == len(self.urls):
            raise combined(problems, f"no routing server accepted the record of {name}")

    async def get(self, name: str) -> bytes | None:
        """Return the greatest valid record of a canonical name that any operator has."""
        self.failures = []
        outcomes = await asyncio.gather(*(self._get(url, name) for url in self.urls), return_exceptions=True)
        problems = self._problems(outcomes)
        best = ipns_record.newest_record(
            found for found in outcomes if isinstance(found, ipns_record.IpnsRecord)
        )
        if best is None and len(problems) == len(self.urls):
            raise combined(problems, f"no routing server could be asked for {name}")
        return best.encoded if best else None

    async def providers(self, cid: CID) -> list[PeerRecord]:
        """Return the peers that serve a CID over HTTP according to the operators; at most 200 from each."""
        self.failures = []
        outcomes = await asyncio.gather(
            *(self._providers(url, cid) for url in self.urls), return_exceptions=True
        )
        problems = self._problems(outcomes)
        if len(problems) == len(self.urls):
            raise combined(problems, f"no routing server could be asked for {cid}")
        return [record for outcome in outcomes if isinstance(outcome, list) for record in outcome]

    async def gateways(self, cid: CID) -> list[str]:
        """Return https URLs of trustless gateways said to have a CID. Their addresses are checked on use."""
        urls: dict[str, None] = {}
        for record in await self.providers(cid):
            if GATEWAY_PROTOCOL in (record.protocols or ()):
                for address in record.addrs or ():
                    url = https_url(address)
                    if url is not None:
                        urls[url] = None
        return list(urls)

    async def close(self) -> None:
        """Close connections."""
        await self._http.close()

    async def _put(self, url: str, name: str, record: bytes) -> None:
        problem: ProviderError
        try:
            await self._http.request(
                "PUT", f"{url}/routing/v1/ipns/{name}", headers={"Content-Type": RECORD_TYPE}, body=record,
                what="put a name",
            )  # fmt: skip
            return
        except ProviderError as error:
            problem = error
        current = None
        if not isinstance(problem, NotConnected):
            with contextlib.suppress(ProviderError):
                current = await self._get(url, name)
        if current is None or ipns_record.record_order(current) < ipns_record.record_order(
            ipns_record.parse_record(record)
        ):
            raise problem

    async def _get(self, url: str, name: str) -> ipns_record.IpnsRecord | None:
        answer = await self._http.request(
            "GET", f"{url}/routing/v1/ipns/{name}", headers={"Accept": RECORD_TYPE}, allow=STATUSES,
            max_bytes=ipns_record.MAX_RECORD, redirects=2, what="get a name",
        )  # fmt: skip
        record = record_in(answer, self._http)
        try:
            return None if record is None else ipns_record.verify_record(name, record)
        except (FormatError, SealError) as error:
            raise ProviderRefused(f"{url} returned a bad record for {name}: {error}") from None

    async def _providers(self, url: str, cid: CID) -> list[PeerRecord]:
        answer = await self._http.request(
            "GET",
            f"{url}/routing/v1/providers/{cid}",
            params={"filter-protocols": GATEWAY_PROTOCOL, "filter-addrs": "https,tls"},
            headers={"Accept": f"{_NDJSON}, application/json;q=0.9"},
            allow={404},
            redirects=2,
            what="find providers",
        )
        return [] if answer.status == 404 else parse_providers(answer)

    def _problems(self, outcomes: Iterable[object]) -> list[ProviderError]:
        problems: list[ProviderError] = []
        for outcome in outcomes:
            if isinstance(outcome, ProviderError):
                problems.append(outcome)
                self.failures.append(str(outcome))
                _log.warning("%s", outcome)
            elif isinstance(outcome, BaseException):
                raise outcome
        return problems


def parse_providers(answer: Answer) -> list[PeerRecord]:
    """Return the peer records of an answer in JSON or NDJSON; other schemas and broken entries are passed over."""
    if answer.content_type == _NDJSON:
        rows: list[bytes | msgspec.Raw] = [line for line in answer.body.split(b"\n") if line.strip()]
    else:
        rows = list(answer.decode(_ProvidersAnswer).providers or ())
    records = []
    for row in rows[:_PROVIDERS_MAX]:
        try:
            record = read_json(row, type=PeerRecord)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        if record.schema in ("peer", "bitswap", "http"):
            records.append(record)
    return records


def https_url(address: str) -> str | None:
    """Return the https URL that a multiaddr names, or None.

    `/dns4/gw.example/tcp/443/https`, `/dns/gw.example/tcp/443/tls/http`, `/dns/gw.example/https`, with
    `/http-path/<encoded>` and `/p2p/<id>` behind it.
    """
    match = _MULTIADDR.fullmatch(address)
    if match is None:
        return None
    kind, host, port, path = match["kind"], match["host"], match["port"] or "443", match["path"]
    if kind.startswith("dns"):
        if not _HOST.fullmatch(host):
            return None
    else:
        try:
            ip = ipaddress.ip_address(host)
        except ValueError:
            return None
        if ip.version != int(kind[2]):
            return None
        host = f"[{host}]" if ip.version == 6 else host
    tail = "/" + unquote(path).strip("/") if path else ""
    if not re.fullmatch(r"[\w./~-]*", tail, re.ASCII) or ".." in tail:
        return None
    url = f"https://{host}{'' if port == '443' else ':' + port}{tail}"
    try:
        addresses.check_url(url, https_only=True)
    except ProviderRefused:
        return None
    return url.rstrip("/")


_MULTIADDR: Final = re.compile(
    r"/(?P<kind>dns|dns4|dns6|ip4|ip6)/(?P<host>[^/]{1,253})(?:/tcp/(?P<port>\d{1,5}))?(?:/https|/tls(?:/sni/[^/]+)?/http)"
    r"(?:/http-path/(?P<path>[^/]{1,200}))?(?:/p2p/[^/]+)?"
)
_HOST: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?")
