"""Resumable uploads to Pinata by TUS 1.0, which uploads above 100 MB need.

When a connection breaks, the server is asked how many bytes it has, and the rest is sent.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Mapping
from typing import Final

from yarl import URL

from ipfsmem.errors import ProviderRefused, ProviderUnavailable
from ipfsmem_providers.http.body import SpooledCar
from ipfsmem_providers.pinata.api import REFUSALS, WRITE, Api

#: Bytes of one PATCH; Pinata accepts up to 50 MiB.
CHUNK: Final = 32 * 1024 * 1024
_OFFSET_TYPE: Final = "application/offset+octet-stream"
_VERSION: Final = {"Tus-Resumable": "1.0.0"}
#: Maximum number of successive failures without progress at the server.
_ATTEMPTS: Final = 5


class _Part:
    """A piece of a CAR, as a body that can be sent again."""

    def __init__(self, car: SpooledCar, start: int, size: int) -> None:
        self._car = car
        self._start = start
        self.size = size
        self.content_type = _OFFSET_TYPE

    async def pieces(self) -> AsyncIterator[bytes]:
        async for piece in self._car.part(self._start, self.size):
            yield piece


async def send(api: Api, car: SpooledCar, metadata: Mapping[str, str], chunk: int | None = None) -> str:
    """Upload `car` with TUS metadata; return the CID in the last answer, or "" while it is being processed.

    Raises NoCars when the plan seems to have no CARs.
    """
    chunk = chunk or CHUNK
    encoded = ",".join(
        f"{key} {base64.b64encode(value.encode()).decode()}" for key, value in metadata.items()
    )
    start = await api.call(
        "POST", str(URL(api.uploads).update_query({"X-Upload-Option-Cid-Version": "v1"})),
        headers={"Upload-Length": str(car.size), "Upload-Metadata": encoded, **_VERSION},
        body=b"", idempotent=True, ok=REFUSALS, what="begin a large upload", scope=WRITE,
    )  # fmt: skip
    if start.status in REFUSALS:
        raise api.refused(start, car=True)
    target = _location(api, start.headers.get("Location", ""), start.url)
    offset = failures = 0
    cid = ""
    while offset < car.size or not offset:
        part = _Part(car, offset, min(chunk, car.size - offset))
        try:
            answer = await api.call(
                "PATCH", target, body=part, idempotent=False, ok=(409,), what="upload", scope=WRITE,
                headers={"Content-Type": _OFFSET_TYPE, "Upload-Offset": str(offset), **_VERSION},
            )  # fmt: skip
            if answer.status == 409:
                raise api.http.unavailable("pinata is at another offset of the upload")
            offset, failures = offset + part.size, 0
            cid = answer.headers.get("upload-cid", "").strip()
        except ProviderUnavailable as error:
            failures += 1
            if failures >= _ATTEMPTS:
                raise
            await api.http.timing.sleep(min(10.0, 0.5 * 2.0**failures))
            there, cid = await _progress(api, target, offset, error)
            if there > offset:
                failures = 0
            offset = there
    return cid


async def _progress(api: Api, target: str, offset: int, error: ProviderUnavailable) -> tuple[int, str]:
    """Return the bytes that the server has after a failure, and the CID when that is all of the upload."""
    answer = await api.call(
        "HEAD", target, headers=_VERSION, ok=(404, 405, 410), what="resume an upload", scope=WRITE
    )
    if answer.status in (404, 410):
        raise api.http.unavailable(f"pinata dropped the upload after: {error}")
    text = answer.headers.get("Upload-Offset", "")
    there = int(text) if text.isascii() and text.isdigit() and len(text) < 16 else offset
    return there, answer.headers.get("upload-cid", "").strip()


def _location(api: Api, location: str, base: URL) -> str:
    """Return the URL that the pieces are sent to. It gets the token, so it must be at one of the configured hosts."""
    try:
        target = str(base.join(URL(location, encoded=True))) if location else ""
    except ValueError:
        target = ""
    if not target or not api.http.is_trusted(target):
        shown = api.http.redact(location) or "nowhere"
        raise ProviderRefused(
            f"pinata wants the upload sent to {shown}, which is not one of its configured hosts",
            hint="If Pinata moved its uploads, set PINATA_UPLOAD_URL.",
        )
    return target
