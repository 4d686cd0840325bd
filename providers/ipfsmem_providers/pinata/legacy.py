"""Pinata's legacy API, for keys made for it: folders by pinFileToIPFS, pins by CID.

It accepts no CARs, so it returns its own root. One CID has one entry, with one name; it is unpinned by CID.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any, Final
from urllib.parse import quote

import msgspec

from ipfsmem_providers.http.body import Body, Multipart
from ipfsmem_providers.http.pages import Pages, Unread, readable
from ipfsmem_providers.http.policy import RateLimiter
from ipfsmem_providers.pinata.api import Api, NoScopes

_PAGE: Final = 1_000
#: Requests a minute below `/data/`, in every plan (docs.pinata.cloud, "Limits").
_LISTS_PER_MINUTE: Final = 30
_ANSWER_MAX: Final = 16 * 1024 * 1024


class Row(msgspec.Struct):
    """One pin."""

    class Metadata(msgspec.Struct):
        """Its name and keyvalues."""

        name: str | None = None
        keyvalues: dict[str, object] | None = None

    ipfs_pin_hash: str
    date_pinned: str | None = None
    metadata: Metadata | None = None
    number_of_files: int | None = None

    @property
    def key(self) -> tuple[str, str | None]:
        """Return its identity in a list."""
        return self.ipfs_pin_hash, self.date_pinned

    @property
    def name(self) -> str:
        """Return its name, or ""."""
        return (self.metadata.name if self.metadata else None) or ""

    @property
    def keyvalues(self) -> dict[str, object]:
        """Return its keyvalues."""
        return (self.metadata.keyvalues if self.metadata else None) or {}


class _Rows(msgspec.Struct):
    rows: list[msgspec.Raw]
    count: Any = None


class Pinned(msgspec.Struct):
    """The answer to an upload."""

    ipfs_hash: str = msgspec.field(name="IpfsHash")
    id: str | None = msgspec.field(name="ID", default=None)  #: of its entry in v3's list
    name: str | None = msgspec.field(name="Name", default=None)
    created_at: str | None = msgspec.field(name="Timestamp", default=None)
    number_of_files: int | None = msgspec.field(name="NumberOfFiles", default=None)


class Legacy:
    """The legacy API for one key."""

    def __init__(self, api: Api, base: str) -> None:
        self._api = api
        self._base = base
        self._lists = RateLimiter(_LISTS_PER_MINUTE, timing=api.http.timing)

    async def upload(self, parts: Iterable[tuple[str, Body]], name: str, keyvalues: dict[str, str]) -> Pinned:
        """Upload a folder (parts named `folder/path`) or one file; return its answer with the root."""
        form = Multipart()
        for file_name, body in parts:
            form.file("file", file_name, body, body.content_type)
        form.field("pinataMetadata", msgspec.json.encode({"name": name, "keyvalues": keyvalues}).decode())
        form.field("pinataOptions", '{"cidVersion":1}')
        answer = await self._api.call(
            "POST", f"{self._base}/pinning/pinFileToIPFS", body=form, idempotent=True,
            what="upload", scope="pinFileToIPFS",
        )  # fmt: skip
        return answer.decode(Pinned)

    async def takes_key(self) -> bool:
        """Return whether the key is one of this API too, asked for one row."""
        await self._lists.wait()
        try:
            await self._api.call(
                "GET", f"{self._base}/data/pinList", params={"status": "pinned", "pageLimit": "1"},
                max_bytes=_ANSWER_MAX, what="list pins", scope="pinList",
            )  # fmt: skip
        except NoScopes:
            return False
        return True

    async def rows(self, unread: Unread | None = None, /, **filters: str) -> AsyncIterator[Row]:
        """Yield pins; filters as in the query (`metadata[name]`, `hashContains`).

        Unreadable entries, and the number of those counted but not listed, are added to `unread`.
        """
        gaps = unread or Unread()
        name = filters.get("metadata[name]", "")
        seen = most = 0
        pages, keys = Pages(self._api.http.service), set[tuple[str, str | None]]()
        while True:
            await self._lists.wait()
            answer = await self._api.call(
                "GET", f"{self._base}/data/pinList", max_bytes=_ANSWER_MAX,
                params={"status": "pinned", "pageLimit": str(_PAGE), "pageOffset": str(seen), **filters},
                what="list pins", scope="pinList",
            )  # fmt: skip
            page = answer.decode(_Rows)
            rows = list(readable(page.rows, Row, name, ("metadata", "name"), gaps.entries))
            for row in rows:
                if row.key not in keys:
                    keys.add(row.key)
                    yield row
            seen += len(page.rows)
            # The count falls when pins before the offset were removed, so that the page began too late.
            most = max(most, page.count if isinstance(page.count, int) else 0)
            if not page.rows or (len(page.rows) < _PAGE and seen >= most):
                gaps.hidden = max(0, most - seen)
                return
            pages.goes_on((row.key for row in rows), size=len(answer.body))

    async def pin(self, cid: str, name: str) -> None:
        """Ask it to fetch and keep a CID."""
        await self._api.call(
            "POST", f"{self._base}/pinning/pinByHash",
            json={"hashToPin": cid, "pinataMetadata": {"name": name}}, what="pin", scope="pinByHash",
        )  # fmt: skip

    async def rename(self, cid: str, name: str) -> None:
        """Give a pin another name."""
        await self._api.call(
            "PUT", f"{self._base}/pinning/hashMetadata", json={"ipfsPinHash": cid, "name": name},
            what="name a pin", scope="hashMetadata",
        )  # fmt: skip

    async def unpin(self, cid: str) -> None:
        """Unpin by CID; not pinned any more is success."""
        answer = await self._api.call(
            "DELETE", f"{self._base}/pinning/unpin/{quote(cid, safe='')}", ok=(400, 404),
            what="unpin", scope="unpin",
        )  # fmt: skip
        if answer.status == 400 and "NOT_PINNED" not in str(answer.reason).upper().replace(" ", "_"):
            raise self._api.http.failure(answer, "unpin")
