"""Folders at remotes of rclone: one on the disk of this machine, and one at the stand-in for a WebDAV server."""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from ipfsmem_providers.directory import DirectoryProvider
from ipfsmem_providers.rclone import RcloneProvider
from ipfsmem_providers.rclone.program import OLDEST

from tests.interop.counterparts import missing, need_program
from tests.servers.dav import PASSWORD, USER
from tests.unit.providers.dav_lab import StandIn, dav


def need_rclone() -> None:
    """Skip the test without rclone, or with an rclone that is too old."""
    need_program("rclone")
    said = subprocess.run(["rclone", "version"], capture_output=True, text=True, check=True).stdout
    found = re.match(r"rclone v(\d+)\.(\d+)", said)
    if found is None or (int(found[1]), int(found[2])) < OLDEST:
        missing("rclone 1.60 is not installed")


class RcloneFolder:
    """One folder at a remote: through rclone, and on the disk."""

    def __init__(self, address: str, folder: Path) -> None:
        self.address, self.folder = address, folder

    def open(self, settings: Mapping[str, Any] | None = None) -> RcloneProvider:
        """A provider over rclone."""
        return RcloneProvider(self.address, settings)

    def mounted(self) -> DirectoryProvider:
        """The same folder as a directory."""
        return DirectoryProvider(self.folder)


@contextlib.contextmanager
def rclone(folder: Path) -> Iterator[RcloneFolder]:
    """A new folder at the remote `nas`, which is a folder of this machine."""
    need_rclone()
    made = folder / "nas" / "my memory"
    made.mkdir(parents=True)
    with configured(folder, f"[nas]\ntype = alias\nremote = {folder / 'nas'}\n"):
        yield RcloneFolder("nas:my memory", made)


@contextlib.contextmanager
def rclone_over_dav(folder: Path) -> Iterator[tuple[RcloneFolder, StandIn]]:
    """A new folder at the remote `dav`, which is the stand-in for a WebDAV server."""
    need_rclone()
    hidden = subprocess.run(["rclone", "obscure", PASSWORD], capture_output=True, text=True, check=True)
    with dav(folder) as server:
        url = server.url.rpartition("/")[0]
        lines = f"[dav]\ntype = webdav\nvendor = other\nurl = {url}\nuser = {USER}\npass = {hidden.stdout.strip()}\n"
        with configured(folder, lines):
            yield RcloneFolder("dav:my memory", server.folder), server


@contextlib.contextmanager
def configured(folder: Path, lines: str) -> Iterator[None]:
    """A configuration for all rclone processes that start within the block."""
    config = folder / "rclone.conf"
    config.write_text(lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RCLONE_CONFIG", str(config))
        yield
