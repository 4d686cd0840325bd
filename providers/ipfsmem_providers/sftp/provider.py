"""The `sftp` provider: a folder at an SSH server, with the layout of `directory`.

    sftp:[user@]host[:port]/path      below the home folder there
    sftp:[user@]host[:port]//path     an absolute path

The `ssh` program connects, so ~/.ssh/config, keys, the agent, known hosts and jump hosts apply. It asks nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from ipfsmem_providers.remote.provider import RemoteFolder
from ipfsmem_providers.sftp.address import parse
from ipfsmem_providers.sftp.files import SftpFiles, ssh_command


class SftpProvider(RemoteFolder):
    """A folder at an SSH server. See ipfsmem.provider.contract for the methods."""

    def __init__(
        self,
        rest: str,
        settings: Mapping[str, Any] | None = None,
        *,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """`rest`: the address. `settings["create"]`: make a missing folder. `clock` returns nanoseconds since 1970 UTC.

        No network access. ConfigError for a bad address, and without the ssh program.
        """
        address = parse(rest)
        ssh_command(address, 1)
        super().__init__(SftpFiles(address, settings or {}, now=lambda: clock() / 1e9), clock)

    @staticmethod
    def lasting(rest: str) -> str:
        """Return the canonical form of the address. Raises ConfigError for an unusable one."""
        return parse(rest).shown
