"""Single files from web servers named by strangers: a `manifest.json` and the Markdown files next to it.

Only the server vouches for these bytes. Requests and redirects reach public addresses only
(http/addresses.py), and each answer is bounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ipfsmem_providers.http.client import Http
from ipfsmem_providers.http.policy import Retry

_RETRY: Final = Retry(attempts=2, first=0.3, patience=5.0)
_ABSENT: Final = frozenset((404, 410))
_REDIRECTS: Final = 3


class WebFiles:
    """See ipfsmem.provider.contract.FileReader."""

    def __init__(self, settings: Mapping[str, Any] | None = None) -> None:
        """`settings["trusted"]`: URLs of servers that the user configured; they may be on this machine."""
        settings = settings or {}
        trusted = settings.get("trusted") or ()
        origins: Iterable[str] = [trusted] if isinstance(trusted, str) else trusted
        self._http = Http("web", trusted=origins, settings=settings, retry=_RETRY, concurrency=8)

    async def get(self, url: str, *, max_bytes: int) -> bytes | None:
        """Return the bytes at `url`; None when absent (404, 410)."""
        answer = await self._http.request(
            "GET", url, allow=_ABSENT, max_bytes=max_bytes, redirects=_REDIRECTS, what="get a file"
        )
        return answer.body if answer.status == 200 else None

    async def close(self) -> None:
        """Close connections."""
        await self._http.close()
