"""The `rclone` provider: a folder at a remote of rclone, with the layout of `directory`.

    rclone:REMOTE:path/of/folder      REMOTE is a remote in rclone's configuration, which holds the account

The `rclone` program connects to the remote and renews logins. While this process uses it, it listens on a loopback port
that requires a password.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from ipfsmem.errors import ProviderRefused
from ipfsmem_providers.packs.store import PackWriter
from ipfsmem_providers.rclone.address import parse
from ipfsmem_providers.rclone.files import RcloneFiles
from ipfsmem_providers.rclone.program import find_rclone
from ipfsmem_providers.remote.provider import RemoteFolder


class RcloneProvider(RemoteFolder):
    """A folder at a remote of rclone. See ipfsmem.provider.contract for the methods."""

    def __init__(
        self,
        rest: str,
        settings: Mapping[str, Any] | None = None,
        *,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """`rest`: the address. `settings["create"]`: make a missing folder. `clock` returns nanoseconds since 1970 UTC.

        No network access. ConfigError for a bad address, and without the rclone program.
        """
        address = parse(rest)
        files = RcloneFiles(address, find_rclone(), settings or {}, now=lambda: clock() / 1e9)
        self._files = files
        super().__init__(files, clock)

    def begin_snapshot(self, cache: bytes) -> None:
        """See `Snapshots`. Folders that rclone remembers may have been replaced since."""
        self._files.forget()
        super().begin_snapshot(cache)

    def _collect(self) -> int:
        """Remove nothing: dates of files may be those of the uploader's clock, a rename may be a copy and a removal, and rclone
        repeats removals. Devices that mount the folder collect. Raises ProviderRefused if there is something to remove."""
        if size := self._collector(self._clock() // 1_000_000).unneeded(self._roots()):
            raise ProviderRefused(
                f"{self.name}: {size:,} bytes that no version needs were not freed, as rclone cannot delete them safely",
                hint="They are freed by a device that mounts the folder, and has its path as a provider.",
            )
        return 0

    def _finish(self, writer: PackWriter) -> None:
        """Place a pack. Packs are not merged: see `collect`."""
        self._packs.place(writer)

    @staticmethod
    def lasting(rest: str) -> str:
        """Return the canonical form of the address. Raises ConfigError for an unusable one."""
        return parse(rest).shown
