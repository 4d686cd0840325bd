"""Pinata's v3 API: files, the pin queue, uploads.

`network` is always public: v3 keeps uploads private by default. Missing scopes of a key are the most common
failure, so refusals name the scope that a call needs. CARs above 90 MB use TUS (tus.py).
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Iterable, Mapping
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote

import msgspec

from ipfsmem.errors import ProviderError, ProviderRefused
from ipfsmem_providers.http.body import Body, Multipart
from ipfsmem_providers.http.client import Answer, Http
from ipfsmem_providers.http.pages import Pages, Unread, readable

#: The size in bytes at which Pinata's own client switches to TUS; a single request may have 100 MB.
ONE_REQUEST: Final = 94_371_840
NETWORK: Final = "public"
PENDING: Final = "pending"
_PAGE: Final = 100
_ANSWER_MAX: Final = 8 * 1024 * 1024
#: Statuses of a refused upload whose reason is read.
REFUSALS: Final = (400, 402, 403, 413, 422)
_PLAN_WORDS: Final = ("paid", "plan", "upgrade", "car upload", "car file", "invalid field: car")
READ: Final = "org:files:read"
WRITE: Final = "org:files:write"


class ListedFile(msgspec.Struct):
    """One entry of the file list. `cid` is "pending" while content is being processed."""

    id: str
    cid: str | None = None
    name: str | None = None
    created_at: str | None = None
    keyvalues: dict[str, Any] | None = None
    number_of_files: int | None = None

    @property
    def pending(self) -> bool:
        """Return whether its CID is not known yet."""
        return not self.cid or self.cid == PENDING


class Job(msgspec.Struct):
    """One entry of the pin queue."""

    id: str
    cid: str | None = None
    status: str | None = None


class NoCars(ProviderRefused):
    """A CAR was refused, by the plan as it seems."""


class NoScopes(ProviderRefused):
    """The key is not for this call, or not for this generation of the API."""


class _Files(msgspec.Struct):
    files: list[msgspec.Raw] | None = None
    next_page_token: Any = None


class _FilesData(msgspec.Struct):
    data: _Files


class _FileData(msgspec.Struct):
    data: ListedFile


class _Jobs(msgspec.Struct):
    jobs: list[msgspec.Raw] | None = None


class _JobsData(msgspec.Struct):
    data: _Jobs


class Api:
    """v3 for one key."""

    def __init__(self, http: Http, api: str, uploads: str) -> None:
        """`api` and `uploads` are the base URLs without `/v3`."""
        self.http = http
        self._files = f"{api}/v3/files/{NETWORK}"
        self.uploads = f"{uploads}/v3/files"

    async def files(self, unread: Unread | None = None, /, **filters: str) -> AsyncIterator[ListedFile]:
        """Yield entries of the public file list, newest first. An ignored filter lets more through.
        Unreadable entries are added to `unread`."""
        gaps = unread or Unread()
        params = {"order": "DESC", "limit": str(_PAGE), **filters}
        seen: set[str] = set()
        pages = Pages(self.http.service)
        while True:
            answer = await self.call(
                "GET", self._files, params=params, what="list files", scope=READ, max_bytes=_ANSWER_MAX
            )
            page = answer.decode(_FilesData).data
            files = list(
                readable(page.files or (), ListedFile, filters.get("name", ""), ("name",), gaps.entries)
            )
            for file in files:
                if file.id not in seen:
                    seen.add(file.id)
                    yield file
            token = page.next_page_token
            if not token:
                return
            if not isinstance(token, str):
                raise pages.unread("returns a page cursor that is not text")
            pages.goes_on((file.id for file in files), token, size=len(answer.body))
            params["pageToken"] = token

    async def file(self, file_id: str) -> ListedFile | None:
        """Return one entry, or None."""
        answer = await self.call("GET", self._one(file_id), what="look at a file", scope=READ, ok=(404,))
        return None if answer.status == 404 else answer.decode(_FileData).data

    async def rename(self, file_id: str, name: str) -> None:
        """Give an entry another name."""
        await self.call("PUT", self._one(file_id), json={"name": name}, what="name a file", scope=WRITE)

    async def delete(self, file_id: str) -> None:
        """Take an entry off the list: by its id, as CIDs do not do here. Not there any more is success."""
        await self.call("DELETE", self._one(file_id), what="unpin", scope=WRITE, ok=(404,))

    async def upload(
        self, parts: Iterable[tuple[str, Body]], name: str, keyvalues: Mapping[str, str], *, car: bool
    ) -> ListedFile:
        """Make one multipart upload: a CAR, a file, or a folder whose parts are named `folder/path`.

        Raises NoCars when the plan seems to have no CARs.
        """
        form = Multipart().field("network", NETWORK).field("name", name)
        form.field("keyvalues", msgspec.json.encode(keyvalues).decode())
        form.field("cid_version", "v1")
        if car:
            form.field("car", "true")
        for file_name, body in parts:
            form.file("file", file_name, body, body.content_type)
        # The same content again is the same file there, so it may be sent twice.
        answer = await self.call(
            "POST", self.uploads, body=form, idempotent=True, ok=REFUSALS, what="upload", scope=WRITE
        )
        if answer.status in REFUSALS:
            raise self.refused(answer, car=car)
        return answer.decode(_FileData).data

    def refused(self, answer: Answer, *, car: bool) -> ProviderError:
        """Return a refused upload as an error: NoCars if its text suggests that the plan has no CARs."""
        error = self.http.failure(answer, "upload")
        words = str(answer.reason).lower()
        if car and (answer.status in (402, 403) or any(word in words for word in _PLAN_WORDS)):
            return NoCars(f"{error} (a CAR needs a paid plan)", hint=error.hint or None)
        return error

    async def jobs(self, cid: str) -> list[Job]:
        """Return entries of the pin queue for a CID."""
        answer = await self.call(
            "GET", f"{self._files}/pin_by_cid", params={"cid": cid}, what="look at the pin queue", scope=READ
        )
        jobs = readable(answer.decode(_JobsData).data.jobs or (), Job, "", (), [])
        return [job for job in jobs if job.cid == cid]

    async def pin_by_cid(self, cid: str, name: str, keyvalues: Mapping[str, str]) -> None:
        """Ask it to fetch and keep a CID; done when the CID is in the file list."""
        await self.call(
            "POST", f"{self._files}/pin_by_cid", json={"cid": cid, "name": name, "keyvalues": keyvalues},
            what="pin", scope=WRITE,
        )  # fmt: skip

    async def call(
        self, method: str, url: str, *, what: str, scope: str, ok: tuple[int, ...] = (), **options: Any
    ) -> Answer:
        """Send one request. Refusals about the key or its scopes include the next step; statuses in `ok` are
        returned."""
        answer = await self.http.request(method, url, what=what, allow={401, 402, 403, *ok}, **options)
        problem = key_problem(answer, what, scope)
        if problem is not None:
            raise problem
        if answer.status in (401, 402, 403) and answer.status not in ok:
            raise self.http.failure(answer, what)
        return answer

    def _one(self, file_id: str) -> str:
        return f"{self._files}/{quote(file_id, safe='')}"


def key_problem(answer: Answer, what: str, scope: str) -> ProviderRefused | None:
    """Return why a key is insufficient, if a refusal says so."""
    if answer.status not in (401, 403):
        return None
    code = answer.reason.code or answer.reason.text
    if "NO_SCOPES_FOUND" in code:
        return NoScopes(
            f"pinata: this key may not {what}: it lacks the scope {scope} (NO_SCOPES_FOUND)",
            hint=(
                "Make a key with that scope at app.pinata.cloud, API Keys. Keys are for one generation of the API: "
                "one with v3 scopes has none of the legacy ones (pinFileToIPFS, ...), and the other way round "
                "(PINATA_API=legacy). GET /data/testAuthentication answers 200 even for a key without any scope: "
                "that test proves that the key exists, not that it may upload or list."
            ),
        )
    if "API_KEY_REVOKED" in code:
        return ProviderRefused(
            "pinata: this key was revoked (API_KEY_REVOKED)", hint="Make a new key and set PINATA_JWT to it."
        )
    if answer.status == 401:
        return ProviderRefused(
            f"pinata does not know this key ({code or 'no reason given'})",
            hint="PINATA_JWT holds the long text that starts with eyJ, not the API key or the API secret.",
        )
    return None


def milliseconds(text: str | None) -> int:
    """Return an ISO 8601 instant as milliseconds since 1970, 0 when invalid."""
    try:
        value = datetime.fromisoformat((text or "").replace("Z", "+00:00")).timestamp() * 1000
    except (ValueError, OverflowError):
        return 0
    return int(value) if math.isfinite(value) and value > 0 else 0
