"""Filebase by S3: an object that is a CAR is imported and pinned, and its metadata then names its CID.

One object per root, at `ipfsmem/<name>/<root>.car`: the pins under a name are the objects under that prefix,
and deleting an object unpins. The CID is checked here; an object without one is in a bucket that pins
nothing.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Final
from urllib.parse import quote, urlencode
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from ipfsmem.content.cid import CID, parse_cid
from ipfsmem.errors import FormatError, ProviderRefused
from ipfsmem.provider.contract import Pin, with_pins
from ipfsmem_providers.filebase.signing import RequestSigner
from ipfsmem_providers.http.body import SpooledCar
from ipfsmem_providers.http.client import ANSWER_MAX, Answer, Http
from ipfsmem_providers.http.pages import ListGaps, Pages
from ipfsmem_providers.http.polling import Polling

PREFIX: Final = "ipfsmem/"
_CID: Final = "x-amz-meta-cid"
#: One PUT, in bytes.
_PUT_MAX: Final = 5 * 1000**3
_LIST_MAX: Final = 8 * 1024 * 1024
_KEY: Final = re.compile(r"/([A-Za-z0-9]{10,120})\.car\Z")


class Bucket:
    """One bucket."""

    def __init__(self, http: Http, signer: RequestSigner, url: str, bucket: str, patience: float) -> None:
        """`url`: of the service. `patience`: seconds to wait for a CID; large objects get more."""
        self._http = http
        self._signer = signer
        self._base = f"{url}/{quote(bucket, safe='')}"
        self._bucket = bucket
        self._patience = patience
        #: Keys below a name when it was listed last: an object that is not among them is put without asking for it first.
        self._listed: dict[str, set[str]] = {}
        #: Keys below a name that are not those of pins.
        self.gaps = ListGaps(http.redact)

    async def put(self, root: CID, car: SpooledCar, name: str) -> CID:
        """Put a CAR, wait for its CID, and return it. When it is not `root`, the object is deleted and ProviderRefused raised;
        ProviderUnavailable when no CID comes.
        """
        key = _key(root, name)
        listed = self._listed.pop(
            name, None
        )  # unknown until the PUT succeeds: one that failed may have stored it
        if listed is None or key in listed:
            earlier = await self._cid(key)
            if earlier == str(root):  # an upload whose answer was lost
                self._keep(name, listed, key)
                return root
        if car.size > _PUT_MAX:
            raise ProviderRefused(f"filebase accepts {_PUT_MAX} bytes in one request, the CAR has {car.size}")
        url = self._url(key)
        headers = self._signer.headers(
            "PUT", url, {"Content-Type": car.content_type, "x-amz-meta-import": "car"}, car.sha256.hex()
        )
        answer = await self._call("PUT", url, headers, body=car, what="put a CAR")
        answered = answer.headers.get(_CID, "").strip() or await self._wait(key, car.size)
        if _same(answered, root):
            self._keep(name, listed, key)
            return root
        await self.delete(key)
        raise ProviderRefused(
            f"filebase answered root {answered} for a CAR whose root is {root}",
            hint="The object was deleted again, and nothing points to the other root. Report it.",
        )

    async def pins(self, name: str) -> list[Pin]:
        """Return the roots under a name, newest first."""
        unread: list[str] = []
        pin_list: list[Pin] = []
        with with_pins(pin_list):
            async for page in self._pages(f"{PREFIX}{name}/"):
                pin_list += _pins(page, name, unread)
        self.gaps.note(name, unread)
        by_key = {pin.handle: pin for pin in pin_list}
        self._listed[name] = set(by_key)
        return sorted(by_key.values(), key=lambda pin: pin.created, reverse=True)

    async def listing(self) -> dict[str, int]:
        """Return all of our objects, with their sizes in bytes."""
        sizes = {}
        async for page in self._pages(PREFIX):
            for entry in page.iterfind("{*}Contents"):
                size = entry.findtext("{*}Size") or ""
                sizes[entry.findtext("{*}Key") or ""] = (
                    int(size) if size.isdecimal() and len(size) < 19 else 0
                )
        return sizes

    async def _pages(self, prefix: str) -> AsyncIterator[Element]:
        """Yield the pages of the list of keys below a prefix."""
        params = {"list-type": "2", "prefix": prefix}
        pages = Pages(self._http.service)
        while True:
            url = f"{self._base}?{urlencode(sorted(params.items()), quote_via=quote, safe='-_.~')}"
            answer = await self._call(
                "GET", url, self._signer.headers("GET", url), what="list pins", max_bytes=_LIST_MAX
            )
            page = _page(answer)
            yield page
            token = page.findtext("{*}NextContinuationToken") or ""
            keys = [entry.findtext("{*}Key") for entry in page.iterfind("{*}Contents")]
            if not token:
                if (page.findtext("{*}IsTruncated") or "").strip().lower() == "true":
                    raise pages.unread("ends its list before its end")
                break
            pages.goes_on(keys, token, size=len(answer.body))
            params["continuation-token"] = token

    async def delete(self, key: str) -> None:
        """Delete an object; an absent one is ignored."""
        url = self._url(key)
        await self._call("DELETE", url, self._signer.headers("DELETE", url), what="unpin", ok=(404,))

    def _keep(self, name: str, listed: set[str] | None, key: str) -> None:
        if listed is not None:
            self._listed[name] = {*listed, key}

    async def _wait(self, key: str, size: int) -> str:
        """Wait for the CID of an object."""
        polling = Polling(self._http.timing, self._patience + size / 1_000_000, at_once=True)
        while await polling.pause():
            answered = await self._cid(key)
            if answered:
                return answered
        raise self._http.unavailable(
            f"filebase stored the object {key} but gave it no CID within {polling.waited:.0f} s: either it is still being "
            f"imported, or {self._bucket} is not an IPFS bucket and pins nothing (FILEBASE_S3_URL can name another host: "
            "https://s3.filebase.com or https://s3.filebase.io)"
        )

    async def _cid(self, key: str) -> str:
        """Return the CID in an object's metadata; "" without one."""
        url = self._url(key)
        answer = await self._call(
            "HEAD", url, self._signer.headers("HEAD", url), what="ask for a CID", ok=(404,)
        )
        return answer.headers.get(_CID, "").strip() if answer.status == 200 else ""

    async def _call(
        self,
        method: str,
        url: str,
        headers: dict[str, str],
        *,
        what: str,
        ok: tuple[int, ...] = (),
        body: SpooledCar | None = None,
        max_bytes: int = ANSWER_MAX,
    ) -> Answer:
        answer = await self._http.request(
            method, url, headers=headers, body=body, max_bytes=max_bytes, what=what,
            allow={301, 307, 401, 403, 404, *ok},
        )  # fmt: skip
        if answer.status < 300 or answer.status in ok:
            return answer
        if method == "HEAD" and answer.status in (401, 403):
            await self._why()
        code = answer.reason.code
        shown = f" ({answer.reason})" if str(answer.reason) else ""
        if answer.status in (301, 307):
            raise ProviderRefused(
                f"filebase sends requests for bucket {self._bucket} elsewhere{shown}",
                hint="Make an IPFS bucket, or name the host that has it: FILEBASE_S3_URL=https://s3.filebase.io.",
            )
        if code == "NoSuchBucket" or (answer.status == 404 and method != "HEAD"):
            raise ProviderRefused(
                f"filebase: unknown bucket {self._bucket}{shown}",
                hint="Make an IPFS bucket in the console, or name another: filebase:<bucket>.",
            )
        if code == "RequestTimeTooSkewed":
            raise ProviderRefused(f"filebase: this device's clock is wrong{shown}", hint="Set the clock.")
        if answer.status in (401, 403):
            raise ProviderRefused(
                f"filebase does not allow to {what} in bucket {self._bucket}{shown}",
                hint="Check FILEBASE_KEY and FILEBASE_SECRET, and that the bucket is of that account.",
            )
        raise self._http.failure(answer, what)

    async def _why(self) -> None:
        """Raise the reason of a refused HEAD, by a GET: an answer to HEAD has no body, so a wrong clock looks like a wrong key."""
        url = f"{self._base}?list-type=2&max-keys=1"
        await self._call("GET", url, self._signer.headers("GET", url), what="list pins", max_bytes=_LIST_MAX)

    def _url(self, key: str) -> str:
        return f"{self._base}/{quote(key, safe='/')}"


def _key(root: CID, name: str) -> str:
    return f"{PREFIX}{name}/{root}.car"


def _same(answered: str, root: CID) -> bool:
    try:
        return parse_cid(answered) == root
    except FormatError:
        return False


def _page(answer: Answer) -> Element:
    """Parse one page of ListObjectsV2."""
    text = answer.text
    if "<!" in text[:65536].replace(
        "<!--", ""
    ):  # a document type could define entities that grow without end
        raise ProviderRefused("filebase answered a list with a document type")
    try:
        page = ElementTree.fromstring(text)  # noqa: S314 - bounded, and no document type gets here
    except ElementTree.ParseError as error:
        problem = str(error)
    else:
        problem = ""
    if problem:
        raise ProviderRefused(f"filebase answered a list that cannot be read: {problem}")
    return page


def _pins(page: Element, name: str, unread: list[str]) -> list[Pin]:
    """Return the pins under a name on one page; the keys of those that cannot be read go to `unread`."""
    pins = []
    for entry in page.iterfind("{*}Contents"):
        key = entry.findtext("{*}Key") or ""
        match = _KEY.search(key)
        if match is None or key != f"{PREFIX}{name}/{match[1]}.car":
            continue
        try:
            cid = parse_cid(match[1])
        except FormatError:
            unread.append(key)
            continue
        pins.append(Pin(cid, name, key, _milliseconds(entry.findtext("{*}LastModified") or "")))
    return pins


def _milliseconds(text: str) -> int:
    try:
        return max(0, int(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000))
    except (ValueError, OverflowError):
        return 0
