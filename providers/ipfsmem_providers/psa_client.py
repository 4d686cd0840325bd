"""A client of the Pinning Service API 1.0.0 (ipfs.github.io/pinning-services-api-spec): add, status, list,
replace, delete.

Services deviate from the specification in every way, so answers are parsed leniently: unreadable entries are
noted as gaps of the list, and only a useless answer is an error. The API has no cursor; pages go back in time
and overlap by a millisecond, or entries of one instant would be lost between two pages.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote

import msgspec

from ipfsmem.content.cid import CID, parse_cid
from ipfsmem.errors import FormatError, ProviderRefused
from ipfsmem.provider.contract import Pin, with_pins
from ipfsmem_providers.http.client import Answer, Http
from ipfsmem_providers.http.errors import short
from ipfsmem_providers.http.pages import ListGaps, Pages, readable

QUEUED: Final = "queued"
PINNING: Final = "pinning"
PINNED: Final = "pinned"
FAILED: Final = "failed"
STATUSES: Final = (QUEUED, PINNING, PINNED, FAILED)
#: Shown for a status outside the specification: a service may send any text of any length.
UNKNOWN: Final = "unknown"
#: Longest name and most origins that the specification allows.
NAME_MAX: Final = 255
ORIGINS_MAX: Final = 20
#: Maximum number of delegates used; the specification allows no more.
DELEGATES_MAX: Final = 20
_PAGE: Final = 1_000
#: Minimum number of entries on a page of a service that paginates: the specification's default.
_PAGE_LEAST: Final = 10
#: The last representable instant, in milliseconds since 1970 UTC. Earlier ones can be queried for older entries.
_LATEST: Final = 253_402_300_799_999
_LIST_MAX: Final = 16 * 1024 * 1024
#: Maximum characters of a delegate.
DELEGATE_MAX: Final = 300


class PinRequest(msgspec.Struct, frozen=True):
    """A pin request as the service describes it (PinStatus)."""

    id: str
    status: str
    cid: CID
    name: str
    created: int  #: milliseconds since 1970 UTC; 0 when unknown
    why: str = ""  #: the service's explanation, mostly of a failure
    delegates: tuple[str, ...] = ()  #: multiaddrs of its nodes that fetch this


class _PinObject(msgspec.Struct):
    cid: str
    name: str | None = None


class _Status(msgspec.Struct):
    requestid: str
    pin: _PinObject
    status: str = QUEUED
    created: str | None = None
    info: Any = None
    delegates: Any = None


class _Results(msgspec.Struct):
    count: Any = 0
    results: list[msgspec.Raw] | None = None


class PinningClient:
    """A pinning service as the holder of one token sees it."""

    def __init__(self, http: Http, endpoint: str) -> None:
        """`endpoint`: the URL that users get from their service; `/pins` at its end is optional."""
        self._http = http
        self._url = f"{endpoint.rstrip('/').removesuffix('/pins')}/pins"
        #: Unreadable entries in pin lists, by name.
        self.gaps = ListGaps(http.redact)

    async def add(self, cid: CID, name: str, *, origins: Iterable[str] = ()) -> PinRequest:
        """Request a pin. Never repeated automatically: check the list before requesting again."""
        answer = await self._http.request(
            "POST", self._url, json=_pin_object(cid, name, origins), what="ask for a pin"
        )
        return self._one(answer, cid)

    async def status(self, request_id: str, cid: CID) -> PinRequest | None:
        """Return the state of a request for a CID; None when the service does not know it."""
        answer = await self._http.request("GET", self._at(request_id), allow={404}, what="look at a pin")
        return None if answer.status == 404 else self._one(answer, cid)

    async def replace(
        self,
        request_id: str,
        cid: CID,
        name: str,
        *,
        origins: Iterable[str] = (),
    ) -> PinRequest | None:
        """Replace a request by another one; None when the service does not know the old one."""
        answer = await self._http.request(
            "POST",
            self._at(request_id),
            json=_pin_object(cid, name, origins),
            allow={404},
            what="replace a pin",
        )
        return None if answer.status == 404 else self._one(answer, cid)

    async def delete(self, request_id: str) -> None:
        """Remove a request; an absent one is ignored."""
        await self._http.request("DELETE", self._at(request_id), allow={404, 410}, what="unpin")

    async def pins(self, name: str, statuses: Iterable[str]) -> list[Pin]:
        """Return the pins with a name, newest first. A list that fails part-way raises with those it showed."""
        pin_list: list[Pin] = []
        with with_pins(pin_list):
            async for one in self.requests(name=name, statuses=statuses):
                pin_list.append(Pin(one.cid, name, one.id, one.created))
        return sorted(pin_list, key=lambda pin: (-pin.created, pin.handle))

    async def list(
        self, *, name: str = "", cid: CID | None = None, statuses: Iterable[str] = STATUSES
    ) -> list[PinRequest]:
        """Return all requests that match, the newest page first. All filters are applied here too, as some
        services ignore them. ProviderRefused when a part of the list cannot be read."""
        return [request async for request in self.requests(name=name, cid=cid, statuses=statuses)]

    async def requests(
        self, *, name: str = "", cid: CID | None = None, statuses: Iterable[str] = STATUSES
    ) -> AsyncIterator[PinRequest]:
        """Yield what `list` returns, as each page is read."""
        names = list(statuses)
        params = {"status": ",".join(names), "limit": str(_PAGE)}
        if name:
            params |= {"name": name, "match": "exact"}
        if cid is not None:
            params["cid"] = str(cid)
        seen: set[str] = set()
        unread, others = list[str](), 0
        pages, total, step, skipped = Pages(self._http.service), -1, 1, False
        while True:
            answer = await self._http.request(
                "GET", self._url, params=params, what="list pins", max_bytes=_LIST_MAX
            )
            page = answer.decode(_Results)
            before = len(unread)
            rows = list(readable(page.results or (), _Status, name, ("pin", "name"), unread))
            others += len(page.results or ()) - len(rows) - (len(unread) - before)
            new = [row for row in rows if row.requestid not in seen]
            for row in new:
                # A page may hold an entry twice.
                request = None if row.requestid in seen else _request(row, self._http.redact)
                if request is None and row.requestid not in seen and row.pin.name == name:
                    unread.append(row.requestid)
                seen.add(row.requestid)
                if request is not None and _matches(request, name, cid, names):
                    yield request
            count = page.count if isinstance(page.count, int) else 0
            total = count if total < 0 else total
            if count <= len(page.results or ()) or not page.results:
                break
            times = [time for row in rows if (time := milliseconds(row.created))]
            if not times or (not new and step == 0):
                raise pages.unread("repeats the pages of its list" if times else "lists pins without times")
            # One millisecond more than the oldest, to include others of that instant. If that brought nothing
            # new, the instant itself: a page full of one instant would otherwise repeat forever.
            step = 1 if new else 0
            skipped = skipped or (not new and len(page.results) >= _PAGE_LEAST)
            params["before"] = _instant(min(times) + step)
            pages.goes_on((row.requestid for row in new), size=len(answer.body))
        if skipped and len(seen) < total:
            raise pages.unread("has more pins with the same time than fit on a page")
        if name and cid is None:
            hidden = 0 if page.results else count - len(seen.union(unread)) - others
            self.gaps.note(name, dict.fromkeys(unread), hidden=hidden)

    def _one(self, answer: Answer, cid: CID) -> PinRequest:
        request = _request(answer.decode(_Status), self._http.redact)
        if request is None:
            raise ProviderRefused(f"{self._http.service} answered a pin without a CID")
        if request.cid.multihash != cid.multihash:
            raise ProviderRefused(
                f"{self._http.service} was asked about {cid} and answered about {request.cid}"
            )
        return request

    def _at(self, request_id: str) -> str:
        if not request_id or request_id in (".", ".."):
            raise ProviderRefused(f"{self._http.service} has no pin {request_id!r}")
        return f"{self._url}/{quote(request_id, safe='')}"


def _pin_object(cid: CID, name: str, origins: Iterable[str]) -> dict[str, Any]:
    pin: dict[str, Any] = {"cid": str(cid), "name": name[:NAME_MAX]}
    if some := list(origins)[:ORIGINS_MAX]:
        pin["origins"] = some
    return pin


def _request(row: _Status, redact: Callable[[str], str] = str) -> PinRequest | None:
    try:
        cid = parse_cid(row.pin.cid)
    except FormatError:
        return None
    cid = cid._replace(version=1)  # some services tell the text of version 0, whatever was asked for
    delegates = row.delegates if isinstance(row.delegates, list) else []
    return PinRequest(
        row.requestid, status if (status := row.status.lower()) in STATUSES else UNKNOWN, cid, row.pin.name or "", milliseconds(row.created), _why(row.info, redact),
        tuple(one for one in delegates[:DELEGATES_MAX] if isinstance(one, str) and len(one) <= DELEGATE_MAX),
    )  # fmt: skip


def _matches(request: PinRequest, name: str, cid: CID | None, statuses: Collection[str]) -> bool:
    return (
        request.status in statuses
        and (not name or request.name == name)
        and (cid is None or request.cid.multihash == cid.multihash)
    )


def _why(info: Any, redact: Callable[[str], str]) -> str:
    """Return the text that explains a status. The fields of `info` are not specified."""
    if isinstance(info, Mapping):
        for key in ("status_details", "error", "reason", "message"):
            if isinstance(info.get(key), str):
                return short(str(info[key]), redact)
    return ""


def milliseconds(text: str | None) -> int:
    """Return an RFC 3339 time as milliseconds since 1970 UTC, rounded down; 0 for anything else."""
    try:
        value = datetime.fromisoformat((text or "").strip().replace("Z", "+00:00"))
        stamp = (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp() * 1000
    except (ValueError, OverflowError):
        return 0
    return int(stamp) if 0 < stamp < _LATEST else 0


def _instant(ms: int) -> str:
    whole, rest = divmod(ms, 1000)
    return f"{datetime.fromtimestamp(whole, UTC).strftime('%Y-%m-%dT%H:%M:%S')}.{rest:03d}Z"
