"""Filebase without S3: CARs by its node's RPC (`dag/import`), pins by the Pinning Service API (psa_client.py), and Names.

The tokens are derived from key, secret and bucket. Filebase signs Names with its own keys, so they are only an alias for people,
and no key of the vault is sent.
"""

from __future__ import annotations

import base64
from typing import Final
from urllib.parse import quote

import msgspec

from ipfsmem.canonical import read_json
from ipfsmem.content.cid import CID, parse_cid
from ipfsmem.errors import FormatError, ProviderRefused
from ipfsmem.provider.contract import Pin
from ipfsmem_providers.http.body import Multipart, SpooledCar
from ipfsmem_providers.http.client import Http
from ipfsmem_providers.http.polling import Polling
from ipfsmem_providers.psa_client import PINNED, PINNING, QUEUED, PinningClient

_LISTED: Final = (QUEUED, PINNING, PINNED)


class _Root(msgspec.Struct):
    class Entry(msgspec.Struct):
        cid: dict[str, str] = msgspec.field(name="Cid")
        error: str = msgspec.field(name="PinErrorMsg", default="")

    root: Entry | None = msgspec.field(name="Root", default=None)


def bucket_token(key: str, secret: str, bucket: str) -> str:
    """Return the bearer token of RPC and PSA."""
    return base64.b64encode(f"{key}:{secret}:{bucket}".encode()).decode()


def names_token(key: str, secret: str) -> str:
    """Return the bearer token of Names."""
    return base64.b64encode(f"{key}:{secret}".encode()).decode()


class Rpc:
    """RPC and PSA of one bucket."""

    def __init__(self, http: Http, rpc: str, api: str, patience: float) -> None:
        """`http` carries the bucket token; `rpc` and `api` are base URLs."""
        self._http = http
        self._rpc = rpc
        self._client = PinningClient(http, f"{api}/v1/ipfs")
        self._patience = patience

    async def put(self, root: CID, car: SpooledCar) -> CID:
        """Import a CAR and pin its root. ProviderRefused when the node does not pin it, or returns another root."""
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
                hint="Nothing points to the other root. Report it.",
            )
        return root

    async def pin(self, root: CID, name: str) -> Pin:
        """Return the pin of a root under a name; create it and wait for it if it is missing."""
        requests = await self._client.list(name=name, cid=root, statuses=_LISTED)
        ours = [request for request in requests if request.cid == root]
        if ours:
            request = min(ours, key=lambda request: (request.created, request.id))
        else:
            request = await self._client.add(root, name)
        # The import brought its blocks, so the pin is usually complete.
        polling = Polling(self._http.timing, self._patience, at_once=True)
        while request.status in (QUEUED, PINNING):
            if not await polling.pause():
                raise self._http.unavailable(
                    f"filebase is still pinning {root} after {polling.waited:.0f} s ({request.status})"
                )
            request = await self._client.status(request.id, request.cid) or request
        if request.status != PINNED:
            why = f" ({self._http.redact(request.why)})" if request.why else ""
            raise ProviderRefused(f"filebase could not pin {root}: {request.status}{why}")
        return Pin(root, name, request.id, request.created)

    def unread(self) -> list[str]:
        """See `Unreading`."""
        return self._client.gaps.unread()

    async def pins(self, name: str) -> list[Pin]:
        """Return pinned roots with exactly this name, newest first."""
        return await self._client.pins(name, (PINNED,))

    async def unpin(self, pin: Pin) -> None:
        """Remove a pin; an absent one is ignored. With a root's last pin the node's own pin from `dag/import`
        is removed too."""
        await self._client.delete(pin.handle)
        if not await self._client.list(cid=pin.cid, statuses=_LISTED):
            await self._http.request(
                "POST", f"{self._rpc}/api/v0/pin/rm?arg={pin.cid}", allow={400, 404, 500}, idempotent=True,
                what="unpin",
            )  # fmt: skip


class NameLabel:
    """A label at Filebase Names that points at the newest root, for people."""

    def __init__(self, http: Http, api: str, label: str) -> None:
        """`http` carries the names token."""
        self._http = http
        self._url = f"{api}/v1/names"
        self._label = label

    async def point(self, root: CID) -> None:
        """Move the label, or create it."""
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
