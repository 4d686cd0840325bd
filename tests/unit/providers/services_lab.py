"""Accounts at stand-ins of hosted services, each opened any number of times."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ipfsmem_providers.filebase import FilebaseProvider
from ipfsmem_providers.pinata import PinataProvider

from ipfsmem.content.cid import CID
from ipfsmem.content.fetch import drive_async
from ipfsmem.content.reader import Reader
from ipfsmem.content.tree import BuiltTree, build_tree
from ipfsmem.provider.contract import Provider
from tests.servers import filebase, pinata
from tests.servers.clockwork import Clockwork
from tests.servers.threaded import serve

KINDS = ("pinata-car", "pinata-free", "pinata-legacy", "filebase-s3", "filebase-rpc")
FILES = {
    "keyring.json": b"{}",
    "head.ipm": b"head" * 200,
    "s/top.ipm": b"state" * 300,
    "o/3/aa.ipm": b"object" * 99,
    "o/3/ab.ipm": b"",
    "o/b/large.ipm": bytes(range(256)) * 9_000,  # three chunks
}


def tree(**changed: bytes) -> BuiltTree:
    """A small published root."""
    return build_tree({**FILES, **{name.replace("_", "."): data for name, data in changed.items()}})


class Account:
    """One account at a stand-in."""

    def __init__(self, kind: str, server: Any, url: str) -> None:
        self.kind = kind
        self.server = server
        self.url = url
        self.work = Clockwork()
        self.settings: dict[str, Any] = {"timing": self.work.timing, "per_minute": 1e6}

    def open(self, **settings: Any) -> Provider:
        """Open the provider again, as another device would."""
        given = {**self.settings, **settings}
        if self.kind.startswith("pinata"):
            return PinataProvider(given.pop("rest", ""), given)
        return FilebaseProvider(given.pop("rest", filebase.BUCKET), given)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return the texts that no error may show."""
        return (pinata.ADMIN_KEY, pinata.V3_KEY, pinata.LEGACY_KEY, filebase.SECRET, "RklMRUJBU0VLRVk")


@contextlib.contextmanager
def account(kind: str, upstream: str = "") -> Iterator[Account]:
    """A new account of one of KINDS, or `pinata-field`: v3 accepts folders there, contrary to its
    documentation, as observed."""
    server: Any = pinata.Pinata() if kind.startswith("pinata") else filebase.Filebase(upstream)
    with serve(server.app) as url:
        made = Account(kind, server, url)
        if kind.startswith("pinata"):
            server.paid, server.now = kind in ("pinata-car", "pinata-legacy"), made.work.timing.now
            legacy = kind == "pinata-legacy"
            keys = {"pinata-legacy": pinata.LEGACY_KEY, "pinata-free": pinata.ADMIN_KEY}
            if kind == "pinata-field":
                server.folders = "kept"
            made.settings |= {
                "pinata_jwt": keys.get(kind, pinata.V3_KEY), "pinata_api_url": url,
                "pinata_upload_url": url, "pinata_gateway": url, "pinata_gateway_token": pinata.GATEWAY_TOKEN,
                "pinata_api": "legacy" if legacy else "v3",
                "pinata_upload": "car" if kind == "pinata-car" else "auto",
            }  # fmt: skip
        else:
            made.settings |= {
                "filebase_key": filebase.KEY, "filebase_secret": filebase.SECRET, "filebase_s3_url": url,
                "filebase_rpc_url": url, "filebase_api_url": url, "filebase_gateway": url,
                "filebase_via": kind.removeprefix("filebase-"),
            }  # fmt: skip
        yield made


async def files_under(provider: Provider, root: CID) -> dict[str, bytes]:
    """Return all files that a device reads block by block."""

    async def get(cids: list[CID]) -> dict[CID, bytes]:
        return await provider.get_blocks(cids)

    return await drive_async(Reader().read_tree(root), get)
