"""The Pinning Service API 1.0.0 over a peer's store, so that any IPFS tool can pin here (`ipfs pin remote add`, ...).

    POST   /pins               {"cid","name"?,"origins"?,"meta"?} -> 202 and its status
    GET    /pins               the list, filtered and in pages
    GET    /pins/{requestid}   one request
    POST   /pins/{requestid}   replace it, with another id -> 202
    DELETE /pins/{requestid}   -> 202

Every call needs the token. This server fetches nothing from the network: a request is `queued` until the whole tree
is in the store, uploaded by its owner (`POST /car`), and `pinned` from the next check on. `info` says so, and the
delegates are the given addresses. Stored blocks never change. Trees of raw and dag-pb blocks only: the server could not
keep a tree that it cannot follow completely.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from aiohttp import web

from ipfsmem.canonical import read_json
from ipfsmem.content.cid import CID, DAG_PB, IDENTITY, RAW, parse_cid
from ipfsmem.content.dagpb import decode_node
from ipfsmem.content.limits import OWN_LIMITS, Limits
from ipfsmem.content.verify import verify_block
from ipfsmem.errors import BlockError, FormatError, LimitError, UsageError
from ipfsmem.http.guard import error, guard, json, need_token
from ipfsmem.http.psa_requests import (
    MATCHES,
    PINNED,
    QUEUED,
    STATUSES,
    PinFilter,
    PinRequest,
    PinRequests,
    instant,
)
from ipfsmem.loopback import LOCAL_HOSTS
from ipfsmem.provider.contract import Pin, Provider

NAME_MAX: Final = 255
ORIGINS_MAX: Final = 20
LIMIT_MAX: Final = 1_000
LIMIT_DEFAULT: Final = 10
_CIDS_MAX: Final = 10
_BODY_MAX: Final = 256 * 1024
_META_MAX: Final = 1_000
_AHEAD: Final = 256
_FOLLOWED: Final = (RAW, DAG_PB)
#: Names that a store accepts, see Provider.put_car; requests with others are stored under the second one.
_STORE_NAME_MAX: Final = 100
_OTHER_NAMES: Final = "psa"
#: An address that leads nowhere: the specification requires at least one, and this server has none of that kind.
NOWHERE: Final = "/ip4/127.0.0.1/tcp/9"
_INFO: Final = {
    "status_details": "waiting for its blocks: this service fetches nothing, upload them as a CAR"
}


class _PinBody(msgspec.Struct):
    cid: str
    name: str = ""
    origins: list[str] = []
    meta: dict[str, str] = {}


def app(
    store: Provider,
    *,
    token: str,
    requests: PinRequests | None = None,
    delegates: Iterable[str] = (),
    hosts: frozenset[str] = LOCAL_HOSTS,
    limits: Limits = OWN_LIMITS,
    under: str = "",
    now: Callable[[], int] = lambda: int(time.time() * 1000),
) -> web.Application:
    """Return the server over `store`. `requests` is its list, in memory unless given; `now` is milliseconds since 1970.

    `delegates`: multiaddrs of a node that has the store's blocks, if there is one. `limits`: of a checked tree. `under`: a prefix
    of the names of pins in the store, so that no request removes a pin that was made in another way. Raises UsageError without a
    token.
    """
    if not token:
        raise UsageError("a pinning service needs a token: everybody who reaches it could pin")
    handlers = _Psa(store, token, requests or PinRequests(), list(delegates) or [NOWHERE], limits, under, now)
    server = web.Application(middlewares=[guard(hosts), handlers.authorised], client_max_size=_BODY_MAX)
    server.router.add_get("/pins", handlers.list)
    server.router.add_post("/pins", handlers.add)
    server.router.add_get("/pins/{id}", handlers.get)
    server.router.add_post("/pins/{id}", handlers.replace)
    server.router.add_delete("/pins/{id}", handlers.delete)
    return server


class _Psa:
    def __init__(
        self,
        store: Provider,
        token: str,
        requests: PinRequests,
        delegates: list[str],
        limits: Limits,
        under: str,
        now: Callable[[], int],
    ) -> None:
        self._store = store
        self._token = token
        self._requests = requests
        self._delegates = delegates
        self._limits = limits
        self._under = under
        self._now = now
        self.authorised = _authorised(token)

    async def add(self, request: web.Request) -> web.StreamResponse:
        body, _ = await _pin_body(request)
        made = self._requests.add(body.cid, body.name, body.origins, body.meta, self._now())
        return json(self._shown(await self._advance(made)), 202)

    async def get(self, request: web.Request) -> web.StreamResponse:
        pin_request = self._requests.get(request.match_info["id"])
        return _unknown() if pin_request is None else json(self._shown(await self._advance(pin_request)))

    async def replace(self, request: web.Request) -> web.StreamResponse:
        old = self._requests.get(request.match_info["id"])
        if old is None:
            return _unknown()
        body, _ = await _pin_body(request)
        made = self._requests.add(body.cid, body.name, body.origins, body.meta, self._now())
        made = await self._advance(made)  # the new one first, so that blocks of both trees stay
        await self._release(old)
        return json(self._shown(made), 202)

    async def delete(self, request: web.Request) -> web.StreamResponse:
        old = self._requests.get(request.match_info["id"])
        if old is None:
            return _unknown()
        await self._release(old)
        return web.Response(status=202)

    async def list(self, request: web.Request) -> web.StreamResponse:
        wanted, limit = _filter_and_limit(request)
        anyhow = msgspec.structs.replace(wanted, statuses=frozenset())
        matching = []
        for each in self._requests.all():
            cid = parse_cid(each.cid)
            if not anyhow.matches(each, cid):
                continue
            current = await self._advance(each)
            if wanted.matches(current, cid):
                matching.append(current)
        shown = [self._shown(each) for each in matching[:limit]]
        return json({"count": len(matching), "results": shown})

    async def _advance(self, request: PinRequest) -> PinRequest:
        """Pin a queued request if its whole tree is in the store by now; returns the request."""
        cid = parse_cid(request.cid)
        if request.status != QUEUED or not await self._whole(cid):
            return request
        pin = await self._store.pin(cid, self._store_name(request.name))
        made = msgspec.structs.replace(request, status=PINNED, handle=pin.handle)
        self._requests.change(made)
        return made

    async def _release(self, request: PinRequest) -> None:
        """Delete a request; the store's pin is removed with the last request for it."""
        self._requests.drop(request.id)
        if request.status != PINNED:
            return
        cid, name = parse_cid(request.cid), self._store_name(request.name)
        for other in self._requests.all():
            same = other.status == PINNED and parse_cid(other.cid) == cid
            if same and self._store_name(other.name) == name:
                return
        await self._store.unpin(Pin(cid, name, request.handle, 0))

    async def _whole(self, root: CID) -> bool:
        """Return whether every block of a tree is in the store and valid."""
        seen = {root}
        waiting = [root]
        while waiting:
            part, waiting = waiting[:_AHEAD], waiting[_AHEAD:]
            blocks = await self._store.get_blocks([cid for cid in part if cid.hash_code != IDENTITY])
            for cid in part:
                data = cid.digest if cid.hash_code == IDENTITY else blocks.get(cid)
                if data is None:
                    return False
                if cid.codec not in _FOLLOWED:
                    return False
                try:
                    verify_block(cid, data)
                    links = [link.cid for link in decode_node(data).links] if cid.codec == DAG_PB else []
                except (FormatError, BlockError, LimitError):
                    return False
                new = [link for link in dict.fromkeys(links) if link not in seen]
                seen.update(new)
                waiting += new
            if len(seen) > self._limits.blocks:
                return False
        return True

    def _store_name(self, name: str) -> str:
        full = self._under + name
        fits = len(name) > 0 and len(full) <= _STORE_NAME_MAX and full.isascii() and full.isprintable()
        return full if fits else self._under + _OTHER_NAMES

    def _shown(self, request: PinRequest) -> dict[str, Any]:
        pin: dict[str, Any] = {"cid": request.cid}
        if request.name:
            pin["name"] = request.name
        if request.origins:
            pin["origins"] = list(request.origins)
        if request.meta:
            pin["meta"] = request.meta
        shown = {
            "requestid": request.id,
            "status": request.status,
            "created": instant(request.created),
            "pin": pin,
            "delegates": self._delegates,
        }
        return shown if request.status == PINNED else {**shown, "info": _INFO}


def _authorised(token: str) -> Any:
    @web.middleware
    async def middleware(request: web.Request, handler: Callable[[web.Request], Any]) -> web.StreamResponse:
        need_token(request, token)
        answer: web.StreamResponse = await handler(request)
        return answer

    return middleware


def _unknown() -> web.Response:
    return error(404, "NOT_FOUND", "no such pin request")


async def _pin_body(request: web.Request) -> tuple[_PinBody, CID]:
    body = await request.read()
    if len(body) > _BODY_MAX:  # the server above this one may accept more
        raise LimitError(f"a request of {len(body)} bytes, {_BODY_MAX} allowed")
    try:
        pin_body = read_json(body, type=_PinBody)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise UsageError(
            f"a pin is asked for with a cid, and a name if it is to have one: {problem}"
        ) from None
    if len(pin_body.name) > NAME_MAX:
        raise UsageError(f"a name of {len(pin_body.name)} characters, {NAME_MAX} allowed")
    if len(pin_body.origins) > ORIGINS_MAX:
        raise UsageError(f"{len(pin_body.origins)} origins, {ORIGINS_MAX} allowed")
    if len(pin_body.meta) > _META_MAX:
        raise UsageError(f"{len(pin_body.meta)} entries of meta, {_META_MAX} allowed")
    cid = parse_cid(pin_body.cid)
    if cid.codec not in _FOLLOWED:
        raise UsageError(
            f"{cid} is neither raw nor dag-pb: what it needs cannot be told, so it is not kept here"
        )
    return pin_body, cid


def _filter_and_limit(request: web.Request) -> tuple[PinFilter, int]:
    """Return the parameters of a list. UsageError or FormatError for unknown ones."""
    query = request.query
    cids = [parse_cid(text) for text in _several(query.getall("cid", []))]
    if len(cids) > _CIDS_MAX:
        raise UsageError(f"{len(cids)} CIDs asked for, {_CIDS_MAX} allowed")
    statuses = frozenset(_several(query.getall("status", []))) or frozenset((PINNED,))
    if unknown := statuses.difference(STATUSES):
        raise UsageError(f"no status {min(unknown)!r}")
    match = query.get("match", "exact")
    if match not in MATCHES:
        raise UsageError(f"match is {match!r}; it can be {', '.join(MATCHES)}")
    name = query.get("name", "")
    if len(name) > NAME_MAX:
        raise UsageError(f"a name of {len(name)} characters, {NAME_MAX} allowed")
    limit = query.get("limit", str(LIMIT_DEFAULT))
    if not (limit.isascii() and limit.isdigit() and len(limit) <= 9 and 1 <= int(limit) <= LIMIT_MAX):
        raise UsageError(f"limit is {limit!r}; it can be 1 to {LIMIT_MAX}")
    try:
        meta = read_json(query.get("meta", "{}") or "{}", type=dict[str, str])
    except (msgspec.DecodeError, RecursionError) as problem:
        raise UsageError(f"meta is not an object of texts: {problem}") from None
    times = {key: _time(query[key], key) if query.get(key) else None for key in ("before", "after")}
    return PinFilter(frozenset(cids), name, match, statuses, times["before"], times["after"], meta), int(
        limit
    )


def _several(values: list[str]) -> list[str]:
    return [part.strip() for text in values for part in text.split(",") if part.strip()]


def _time(text: str, what: str) -> int:
    """Return the milliseconds of an instant; a `+` of its zone may have become a space."""
    try:
        value = datetime.fromisoformat(text.strip().replace("Z", "+00:00").replace(" ", "+"))
        value = value if value.tzinfo else value.replace(tzinfo=UTC)
        # Round up to the next millisecond for `before`: a request within it is before its end.
        whole = value.replace(microsecond=0)
        extra = -(-value.microsecond // 1000) if what == "before" else value.microsecond // 1000
        return int(whole.timestamp()) * 1000 + extra
    except (ValueError, OverflowError):
        raise UsageError(f"{what} is {text[:40]!r}, which is not a time") from None
