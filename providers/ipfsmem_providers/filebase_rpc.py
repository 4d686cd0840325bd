"""Filebase's other side: CARs by its node's RPC (`dag/import`), pins by the Pinning Service API, Names.

All with tokens made of key, secret and bucket. Names are signed by Filebase with a key of its own, so they are never
ours: at most an alias for people, and no key of ours is ever sent there.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

import msgspec

from ipfsmem.canonical import read_json
from ipfsmem.content.cid import CID, parse_cid
from ipfsmem.errors import FormatError, ProviderRefused
from ipfsmem.sync.provider import Pin
from ipfsmem_providers.http import Http
from ipfsmem_providers.http_body import Multipart, SpooledCar
from ipfsmem_providers.pinata_api import milliseconds

_PAGE: Final = 1_000
_PAGES_MAX: Final = 1_000
_LIST_MAX: Final = 16 * 1024 * 1024
_STATUSES: Final = "queued,pinning,pinned"


class _Root(msgspec.Struct):
    class Entry(msgspec.Struct):
        cid: dict[str, str] = msgspec.field(name="Cid")
        error: str = msgspec.field(name="PinErrorMsg", default="")

    root: Entry | None = msgspec.field(name="Root", default=None)


class _Inner(msgspec.Struct):
    cid: str
    name: str | None = None


class _Status(msgspec.Struct):
    requestid: str
    status: str
    pin: _Inner
    created: str = ""
    info: Mapping[str, object] | None = None


class _Statuses(msgspec.Struct):
    count: int
    results: list[_Status]


def bucket_token(key: str, secret: str, bucket: str) -> str:
    """What RPC and PSA take as bearer token."""
    return base64.b64encode(f"{key}:{secret}:{bucket}".encode()).decode()


def names_token(key: str, secret: str) -> str:
    """What Names take."""
    return base64.b64encode(f"{key}:{secret}".encode()).decode()


class Rpc:
    """RPC, PSA and Names for one bucket."""

    def __init__(self, http: Http, rpc: str, api: str, patience: float) -> None:
        """`http` carries the bucket token; `rpc` and `api` are base URLs."""
        self._http = http
        self._rpc = rpc
        self._pins = f"{api}/v1/ipfs/pins"
        self._patience = patience

    async def put(self, root: CID, car: SpooledCar) -> CID:
        """Import a CAR and pin its root; ProviderRefused for another root, or what the node says against it."""
        form = Multipart().file("file", f"{root}.car", car, car.content_type)
        async with self._http.stream(
            "POST", f"{self._rpc}/api/v0/dag/import?pin-roots=true&stats=false", body=form, idempotent=True,
            max_bytes=1024 * 1024, what="import a CAR",
        ) as answer:  # fmt: skip
            answered: list[str] = []
            async for line in answer.lines():
                try:
                    entry = read_json(line, type=_Root).root
                except msgspec.DecodeError:
                    entry = None
                if entry is None:
                    continue
                if entry.error:
                    raise ProviderRefused(f"filebase did not pin {root}: {self._http.redact(entry.error)}")
                answered.append(entry.cid.get("/", ""))
        if not answered:
            raise self._http.unavailable("filebase ended the import without naming a root")
        if [_cid(text) for text in answered] != [root]:
            raise ProviderRefused(
                f"filebase answered root {', '.join(answered)} for a CAR whose root is {root}",
                hint="Nothing points at the other root. Please report it.",
            )
        return root

    async def pin(self, root: CID, name: str) -> Pin:
        """The pin of a root under a name, made if there is none, waited for."""
        found = await self._find({"cid": str(root), "name": name})
        ours = [status for status in found if _cid(status.pin.cid) == root and status.pin.name == name]
        if ours:
            status = min(ours, key=lambda status: (status.created, status.requestid))
        else:
            answer = await self._http.request(
                "POST", self._pins, json={"cid": str(root), "name": name}, what="pin"
            )
            status = answer.decode(_Status)
        waited = 0.0
        while status.status in ("queued", "pinning"):
            if waited >= self._patience:
                raise self._http.unavailable(
                    f"filebase is still pinning {root} after {waited:.0f} s ({status.status})"
                )
            pause = min(max(1.0, waited / 4), 10.0)
            await self._http.timing.sleep(pause)
            waited += pause
            answer = await self._http.request(
                "GET", f"{self._pins}/{quote(status.requestid, safe='')}", what="look at a pin"
            )
            status = answer.decode(_Status)
        if status.status != "pinned":
            raise ProviderRefused(f"filebase could not pin {root}: {status.status}")
        return Pin(root, name, status.requestid, milliseconds(status.created))

    async def pins(self, name: str) -> list[Pin]:
        """Pinned roots with exactly this name, newest first."""
        found = []
        for status in await self._find({"name": name, "match": "exact", "status": "pinned"}):
            cid = _cid(status.pin.cid)
            if status.pin.name == name and status.status == "pinned" and cid is not None:
                found.append(Pin(cid, name, status.requestid, milliseconds(status.created)))
        return sorted(found, key=lambda pin: pin.created, reverse=True)

    async def unpin(self, pin: Pin) -> None:
        """Remove a pin by its request id; not there any more is success. The last one of a root takes the node's own
        pin along, which `dag/import` made."""
        await self._http.request(
            "DELETE", f"{self._pins}/{quote(pin.handle, safe='')}", allow={404}, what="unpin"
        )
        if not await self._find({"cid": str(pin.cid)}):
            await self._http.request(
                "POST", f"{self._rpc}/api/v0/pin/rm?arg={pin.cid}", allow={400, 404, 500}, idempotent=True,
                what="unpin",
            )  # fmt: skip

    async def _find(self, filters: Mapping[str, str]) -> list[_Status]:
        """All entries; the API has no cursor, so pages go back in time and may overlap."""
        found: dict[str, _Status] = {}
        params = {"status": _STATUSES, "limit": str(_PAGE), **filters}
        for _ in range(_PAGES_MAX):
            answer = await self._http.request(
                "GET", self._pins, params=params, what="list pins", max_bytes=_LIST_MAX
            )
            page = answer.decode(_Statuses)
            new = [status for status in page.results if status.requestid not in found]
            found.update((status.requestid, status) for status in new)
            if page.count <= len(page.results) or not new:
                break
            params["before"] = min(status.created for status in page.results)
        return list(found.values())


class Alias:
    """A label at Filebase Names that follows the newest root, for people."""

    def __init__(self, http: Http, api: str, label: str) -> None:
        """`http` carries the names token."""
        self._http = http
        self._url = f"{api}/v1/names"
        self._label = label

    async def point(self, root: CID) -> None:
        """Move the label, or make it."""
        answer = await self._http.request(
            "PUT", f"{self._url}/{quote(self._label, safe='')}", json={"cid": str(root), "enabled": True},
            allow={404}, what="move a name",
        )  # fmt: skip
        if answer.status == 404:
            await self._http.request(
                "POST",
                self._url,
                json={"label": self._label, "cid": str(root), "enabled": True},
                what="make a name",
            )


def _cid(text: str) -> CID | None:
    try:
        return parse_cid(text)
    except FormatError:
        return None
