"""The `gateway` provider: reads through trustless gateways, several of them, the ones that work first.

`gateway:https://one.example,https://two.example`. Every block is checked, so a gateway can only withhold. When the settings
name routing servers, more gateways that have a missing block are found through them; their URLs come from strangers, so they
are reached at public addresses only. Read-only.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from ipfsmem.content.cid import CID
from ipfsmem.content.limits import OWN_LIMITS, Limits
from ipfsmem.errors import (
    ConfigError,
    FormatError,
    ProviderError,
    ProviderRefused,
    SealError,
)
from ipfsmem.provider.base import ProviderBase
from ipfsmem.provider.contract import Block, Capabilities, with_blocks
from ipfsmem.published import ipns_record
from ipfsmem_providers.gateways.client import GatewayClient, base_of
from ipfsmem_providers.gateways.foreign_layout import with_files
from ipfsmem_providers.http.client import Http, origin_of, urls_of
from ipfsmem_providers.http.concurrency import for_each
from ipfsmem_providers.http.errors import combined
from ipfsmem_providers.http.policy import Retry
from ipfsmem_providers.http.tokens import others_of
from ipfsmem_providers.name_records import canonical_name
from ipfsmem_providers.routing.client import RoutingClient

#: Few and short retries: another gateway can be asked.
_RETRY: Final = Retry(attempts=2, first=0.3, patience=5.0)
_CAPABILITIES: Final = Capabilities(put=False, blocks=True, dag=True, durable=False)
_FOUND_MAX: Final = 4
#: Maximum number of blocks for which every gateway failed, before the rest is skipped, if none was found.
_GIVE_UP: Final = 4
#: Requests at once: a block of a few kilobytes costs a round trip and nothing else.
_AT_ONCE: Final = 32


class Gateways(ProviderBase):
    """Several gateways as a read-only provider. See ipfsmem.provider.contract for the methods."""

    def __init__(self, urls: str | Iterable[str], settings: Mapping[str, Any] | None = None) -> None:
        """`urls` are configured ones, so they may be on this machine.

        Settings: `concurrency` (concurrent requests, 32), `routing` (URLs of routing servers, to find more
        gateways), `gateway_token` with `gateway_token_header` and `gateway_token_for` (the one gateway that
        gets it; by default the first of `urls`), `public_only` (a stranger named these URLs: they are reached
        at public addresses only and get no token), and those of Http. ConfigError without a URL.
        """
        settings = settings or {}
        configured = urls_of(urls, "gateway")
        self._concurrency = int(settings.get("concurrency") or _AT_ONCE)
        self._http = Http(
            "gateway",
            trusted=() if settings.get("public_only") else configured,
            settings=settings,
            retry=_RETRY,
            concurrency=self._concurrency,
        )
        #: The session for the one gateway that gets the token; all others have other operators.
        self._member = _with_token(configured, settings, self._concurrency)
        self._gateways = [GatewayClient(self._way(url), url) for url in configured]
        self._routing = (
            RoutingClient(settings["routing"], settings=settings) if settings.get("routing") else None
        )
        self._asked: set[CID] = set()
        self._name = "gateway:" + ",".join(self._http.redact(gateway.url) for gateway in self._gateways)

    @property
    def name(self) -> str:
        """Return `gateway:` and the URLs."""
        return self._name

    @property
    def capabilities(self) -> Capabilities:
        """Return the capabilities: blocks and trees only."""
        return _CAPABILITIES

    @property
    def urls(self) -> list[str]:
        """Return all gateways, also those found by routing, in the order in which they are asked."""
        return [gateway.url for gateway in self._ordered()]

    async def get_blocks(self, cids: Sequence[CID]) -> dict[CID, bytes]:
        """Return checked blocks, each from the first gateway that has it; several requests at once."""
        unique = list(dict.fromkeys(cids))
        blocks, unknown = await self._fetch(unique, self._ordered())
        missing = [cid for cid in unique if cid not in blocks]
        if missing and (more := await self._discover(missing[0])):
            again, unknown = await self._fetch(missing, more)
            blocks.update(again)
        if hides_some(unknown, blocks, unique):
            raise with_blocks(combined(unknown), blocks)
        return blocks

    async def get_dag(self, root: CID) -> AsyncIterator[Block]:
        """Yield checked blocks of a tree, from the first gateway that sends some without breaking off.

        Files in another layout than ours are given as raw blocks too (foreign_layout.py).
        """
        async for block in with_files(self.tree(root)):
            yield block

    async def tree(self, root: CID, limits: Limits = OWN_LIMITS) -> AsyncIterator[Block]:
        """Yield the blocks of the tree as stored, within `limits`."""
        known: set[CID] = set()
        problems: list[ProviderError] = []
        absent = False
        for gateway in self._ordered():
            before = len(known)
            try:
                async for block in gateway.dag(root, limits=limits, known=known):
                    yield block
            except ProviderError as error:
                problems.append(error)
                continue
            if len(known) > before:
                return
            absent = True
        if not known and problems and not absent:
            raise combined(problems)

    async def get_name(self, name: str) -> bytes | None:
        """Return the greatest record of a name that a gateway has; checked."""
        name = canonical_name(name)
        answers = await asyncio.gather(
            *(gateway.record(name) for gateway in self._gateways), return_exceptions=True
        )
        best, problems = greatest(name, answers)
        if best is None and problems and len(problems) == len(answers):
            raise combined(problems)
        return best

    async def close(self) -> None:
        """Close connections."""
        await self._http.close()
        if self._member is not None:
            await self._member.close()
        if self._routing is not None:
            await self._routing.close()

    def _way(self, url: str) -> Http:
        """Return the session for a configured gateway, with the token if it is its owner."""
        return self._member if self._member is not None and self._member.is_trusted(url) else self._http

    def _ordered(self) -> list[GatewayClient]:
        """Return the gateways that work before those that fail, otherwise in the order given."""
        return sorted(self._gateways, key=_asked_last)

    async def _fetch(
        self, cids: list[CID], gateways: list[GatewayClient]
    ) -> tuple[dict[CID, bytes], list[ProviderError]]:
        """Return the blocks found, and the problems of blocks for which every gateway failed."""
        blocks: dict[CID, bytes] = {}
        unknown: list[ProviderError] = []

        async def fetch(cid: CID) -> None:
            if len(unknown) >= _GIVE_UP and not blocks:
                return  # nothing works: ten thousand time-outs would not tell more
            problems: list[ProviderError] = []
            absent = False
            # Sorted for each block, so that a gateway that broke down is not asked first ten thousand times.
            for gateway in sorted(gateways, key=_asked_last):
                try:
                    data = await gateway.block(cid)
                except ProviderError as error:
                    problems.append(error)
                    continue
                if data is not None:
                    blocks[cid] = data
                    return
                absent = True
            if problems and not absent:
                unknown.append(combined(problems))

        await for_each(cids, fetch, self._concurrency)
        return blocks, unknown

    async def _discover(self, cid: CID) -> list[GatewayClient]:
        """Return new gateways that routing servers name for a CID."""
        if self._routing is None or cid in self._asked or len(self._asked) >= 64:
            return []
        self._asked.add(cid)
        try:
            urls = await self._routing.gateways(cid)
        except ProviderError:
            return []
        urls_here = {gateway.url for gateway in self._gateways}
        new = [GatewayClient(self._http, url) for url in urls if base_of(url) not in urls_here][:_FOUND_MAX]
        self._gateways += new
        return new


def _with_token(configured: list[str], settings: Mapping[str, Any], concurrency: int) -> Http | None:
    """Return a session that sends the token to its one origin; None without a token."""
    token = str(settings.get("gateway_token") or "")
    if not token or settings.get("public_only"):
        return None
    header = str(settings.get("gateway_token_header") or "Authorization")
    gateway = str(settings.get("gateway_token_for") or "")
    owner = urls_of(gateway, "gateway")[0] if gateway else configured[0]
    others = [list_of for rest in others_of(settings, "gateway") if (list_of := _list_of(rest, settings))]
    firsts = {origin_of(urls[0]) for urls in others} | {origin_of(owner)}
    if not gateway and len(firsts) > 1:
        raise ConfigError(
            "gateway_token is one token, and there are several lists of gateways; it was sent to none of them",
            hint="Name the gateway: gateway_token_for, under [providers.gateway] in the settings file.",
        )
    member = Http(
        "gateway",
        trusted=[owner],
        auth={header: f"Bearer {token}" if header == "Authorization" else token},
        settings=settings,
        retry=_RETRY,
        concurrency=concurrency,
    )
    if not any(member.is_trusted(url) for url in configured):
        if any(member.is_trusted(url) for urls in others for url in urls):
            return None
        raise ConfigError(
            f"gateway_token_for names {member.redact(owner)}, which is not one of the gateways",
            hint="Name it in the list too: gateway:https://its.example,https://another.example",
        )
    return member


def _list_of(rest: str, settings: Mapping[str, Any]) -> list[str]:
    """Return the gateways of another spec; empty when invalid, which is reported when that one is opened."""
    try:
        return urls_of(rest or settings.get("gateways") or "", "gateway")
    except ConfigError:
        return []


def hides_some(problems: Sequence[ProviderError], blocks: Mapping[CID, bytes], cids: Collection[CID]) -> bool:
    """Return whether a block not found may exist, because a gateway is down.

    A block refused permanently, or answered with other bytes, is missing, unless no block came at all.
    """
    outage = not blocks or any(not problem.permanent for problem in problems)
    return bool(problems) and outage and any(cid not in blocks for cid in cids)


def _asked_last(gateway: GatewayClient) -> bool:
    return gateway.is_shaky


def greatest(
    name: str, answers: Iterable[bytes | BaseException | None]
) -> tuple[bytes | None, list[ProviderError]]:
    """Return the greatest valid record among `answers`, and the failures. Re-raises other exceptions than
    ProviderError."""
    records: list[ipns_record.IpnsRecord] = []
    problems: list[ProviderError] = []
    for answer in answers:
        if isinstance(answer, ProviderError):
            problems.append(answer)
        elif isinstance(answer, BaseException):
            raise answer
        elif answer is not None:
            try:
                records.append(ipns_record.verify_record(name, answer))
            except (FormatError, SealError) as error:
                problems.append(ProviderRefused(f"a record for {name} was refused: {error}"))
    best = ipns_record.newest_record(records)
    return (best.encoded if best else None), problems


def open_gateways(rest: str, settings: Mapping[str, Any] | None = None) -> Gateways:
    """Open `gateway:<url>[,<url>]`; by default the gateways of the setting `gateways`."""
    spec = rest or (settings or {}).get("gateways") or ""
    if not spec:
        raise ConfigError("no gateway is named", hint="For instance gateway:https://trustless-gateway.link")
    return Gateways(spec, settings)
