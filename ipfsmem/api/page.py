"""The files of the page that `ipfsmem ui` serves, and the headers of every answer that keep other origins out. The files are
the same for all users and contain no data of a memory."""

from __future__ import annotations

import mimetypes
from pathlib import Path, PurePosixPath
from typing import Final

from aiohttp import web

from ipfsmem.files.built_page import BUILT, RESCUE, STATIC

#: Libraries that may create markup from text, by the names of their Trusted Types policies.
_MAKERS: Final = ("ipfsmem", "lit-html", "dompurify")
SAFE_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
        "connect-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types " + " ".join(_MAKERS)
    ),
}
_TYPES: Final = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}


class PageFiles:
    """The files of a build, read once."""

    def __init__(self, files: dict[str, bytes]) -> None:
        """`files`: bytes by path, with `index.html`."""
        self._files = files

    @classmethod
    def built(cls, folder: Path = BUILT) -> PageFiles | None:
        """Return the files of this installation; None if the page was not built."""
        if not (folder / "index.html").is_file():
            return None
        paths = [path for path in folder.rglob("*") if path.is_file()]
        files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
        return cls(
            {name: data for name, data in files.items() if not name.startswith((f"{STATIC}/", f"{RESCUE}/"))}
        )

    def answer(self, path: str) -> web.Response | None:
        """Return the answer for a path in the list made at the start, so no path leads elsewhere; None for any other."""
        name = path or "index.html"
        data = self._files.get(name)
        if data is None:
            return None
        suffix = PurePosixPath(name).suffix
        kind = _TYPES.get(suffix) or mimetypes.types_map.get(suffix, "application/octet-stream")
        hashed = name.startswith("assets/")
        return web.Response(
            body=data,
            content_type=kind,
            charset="utf-8" if kind.startswith("text/") else None,
            headers={"Cache-Control": "max-age=31536000, immutable" if hashed else "no-cache"},
        )


def is_open(method: str, path: str) -> bool:
    """Tell whether a request needs no token: a file of the page, or the exchange of the code for a token."""
    if method == "POST":
        return path == "/v1/session"
    return method in ("GET", "HEAD") and not path.startswith("/v1/") and path not in ("/healthz", "/metrics")
