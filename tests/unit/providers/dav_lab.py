"""A WebDAV server over a folder, and providers for it, each as on another device."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ipfsmem_providers.directory import DirectoryProvider
from ipfsmem_providers.webdav import WebdavProvider

from tests.servers.dav import PASSWORD, USER, DavServer
from tests.servers.threaded import serve

ACCOUNT = {"webdav_user": USER, "webdav_password": PASSWORD}


class DavFolder:
    """One folder at a server: over the network, and on the server's disk."""

    def __init__(self, url: str, folder: Path, account: Mapping[str, str] = ACCOUNT) -> None:
        self.url, self.folder, self.account = url, folder, account

    def open(self, settings: Mapping[str, Any] | None = None) -> WebdavProvider:
        """A provider over the network."""
        return WebdavProvider(self.url, {**self.account, **(settings or {})})

    def mounted(self) -> DirectoryProvider:
        """The same folder as a directory."""
        return DirectoryProvider(self.folder)


class StandIn(DavFolder):
    """A folder at the stand-in for a server."""

    def __init__(self, url: str, server: DavServer) -> None:
        super().__init__(f"{url}/dav/my%20memory", server.root / "dav" / "my memory")
        self.server = server
        self.folder.mkdir(parents=True)


@contextlib.contextmanager
def dav(folder: Path) -> Iterator[StandIn]:
    """The stand-in over a new folder."""
    server = DavServer(folder / "served")
    server.root.mkdir(parents=True)
    with serve(server.app) as url:
        yield StandIn(url, server)
