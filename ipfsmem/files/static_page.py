"""Write the page that needs no ipfsmem server to a folder for any static host. Only its list of sources is
configurable."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Final

from ipfsmem.device.atomic_files import new_name, storage_errors
from ipfsmem.errors import UsageError
from ipfsmem.files.built_page import BUILT, STATIC, not_built_error

#: The default sources of a wallet's vault: a public router of names and a public gateway.
PUBLIC_PLACES: Final = ("routing:https://delegated-ipfs.dev", "gateway:https://trustless-gateway.link")

_PLACE: Final = re.compile(r"(peer|webdav|gateway|routing):https?://[^\s@\"'<>]+")
_NAMED: Final = b'<meta name="ipfsmem-places" content=""'
_VERSION: Final = re.compile(rb"ipfsmem-page-[0-9a-f]{16}")
_WORKER: Final = "service_worker.js"


def write_static_page(folder: Path, places: Sequence[str] = PUBLIC_PLACES, built: Path | None = None) -> int:
    """Write the page to a new or empty folder; returns the number of files.

    `places`: its sources unless its user chooses others; everybody who opens the page can read them. Raises UsageError for a
    source that a page cannot use, or if something is in the folder, NotFoundError if the page was not built, StorageError.
    """
    for place in places:
        if not _PLACE.fullmatch(place) or not place.isascii():
            raise UsageError(
                f"{place!a:.80} is not a provider that a page can use",
                hint="peer:https://..., webdav:https://..., gateway:https://... or routing:https://..., without a token: that is typed into the page.",
            )
    top = (built or BUILT) / STATIC
    if not (top / "index.html").is_file():
        raise not_built_error()
    files = {
        path.relative_to(top).as_posix(): path.read_bytes()
        for path in sorted(top.rglob("*"))
        if path.is_file()
    }
    meta_tag = b'<meta name="ipfsmem-places" content="' + escape(" ".join(places)).encode() + b'"'
    files["index.html"] = files["index.html"].replace(_NAMED, meta_tag)
    # A browser loads new files when this one changes.
    version = hashlib.sha256(files["index.html"] + files[_WORKER]).hexdigest()[:16]
    files[_WORKER] = _VERSION.sub(f"ipfsmem-page-{version}".encode(), files[_WORKER])
    with storage_errors(folder, "write"):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(
                f"{folder} is not an empty folder", hint="Nothing was overwritten. Choose another folder."
            )
        _put(folder, files)
    return len(files)


def _put(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write all files or none: under another name, then renamed. An existing folder stays, as it may be a mount point; it gets
    its first page last."""
    there = folder.exists()
    scratch = Path(new_name(folder / folder.name if there else folder))
    try:
        for name, data in files.items():
            path = scratch / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        if not there:
            scratch.rename(folder)
            return
        for one in sorted(scratch.iterdir(), key=lambda one: one.name == "index.html"):
            one.rename(folder / one.name)
        scratch.rmdir()
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
