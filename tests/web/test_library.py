"""The library that pages load: its size, and that it loads nothing from elsewhere."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from tests.interop.counterparts import built_page, built_web

#: Maximum compressed bytes that a browser loads before it can show anything. Raised from 114 KiB for the
#: limits of a joined key ring and for foreign words in queries; from 116 for messages and events ranked with
#: their neighbours; from 118 for the two forms of a published root; from 119 for the multibases of CIDs, and
#: for versions of a device whose id was abandoned.
MOST = 120 * 1024


@pytest.fixture(scope="module")
def library() -> Path:
    return built_web().parent / "lib"


def _loaded(library: Path, entry: str) -> dict[str, bytes]:
    """Return the module and everything it imports at load time."""
    found: dict[str, bytes] = {}
    left = [entry]
    while left:
        name = left.pop()
        if name not in found:
            found[name] = (library / name).read_bytes()
            left += re.findall(r'(?:from|import)\s*"\./([^"]+)"', found[name].decode())
    return found


@pytest.mark.parametrize("entry", ["ipfsmem.js", "worker.js"])
def test_first_load_of_a_page_is_small(entry: str, library: Path) -> None:
    loaded = _loaded(library, entry)
    assert sum(len(gzip.compress(data, 9)) for data in loaded.values()) <= MOST


@pytest.mark.parametrize("entry", ["assets/index", "static/assets/static", "static/assets/worker"])
def test_first_load_of_our_page_is_small(entry: str) -> None:
    [script] = built_page().glob(f"{entry}-*.js")
    loaded = _loaded(script.parent, script.name)
    assert sum(len(gzip.compress(data, 9)) for data in loaded.values()) <= MOST


def test_library_requests_only_named_hosts(library: Path) -> None:
    """Hosts of a service appear only for a chosen service with its key."""
    named = {"https://api.pinata.cloud", "https://uploads.pinata.cloud"}
    # These are names of XML namespaces; nothing is loaded from there.
    namespaces = {"http://www.w3.org"}
    for path in library.rglob("*.js"):
        assert not set(re.findall(r"https?://[a-z0-9][a-z0-9.-]+", path.read_text("utf-8"))) - {
            "https://example.org",
            *named,
            *namespaces,
        }, path
