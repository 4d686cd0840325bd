"""A folder at an OpenSSH server, and the faults of the connection to it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from ipfsmem_providers.directory import DirectoryProvider
from ipfsmem_providers.sftp import SftpProvider

from tests.servers.sshd import Sshd, sshd


class SshConnection:
    """The behaviour of the tests' `ssh` program, from the next connection on."""

    def __init__(self, folder: Path) -> None:
        self._script, self._hits = folder / "illness", folder / "hits"

    @property
    def hits(self) -> int:
        """Return how often the program was started."""
        return len(self._hits.read_bytes()) if self._hits.exists() else 0

    def does(self, script: str) -> None:
        """Make it run a shell script; `well "$@"` in it is the real program."""
        new = self._script.with_suffix(".new")
        new.write_text(f"{script}\n")
        new.replace(self._script)


class SftpFolder:
    """One folder at a server: over the network, and on the server's disk."""

    def __init__(self, server: Sshd, folder: Path, subsystem: str) -> None:
        self.subsystem = subsystem
        self.server, self.folder, self.connection = server, folder, SshConnection(server.folder)
        self.address = f"{server.origin}/{folder}"

    def open(self, settings: Mapping[str, Any] | None = None) -> SftpProvider:
        """A provider over the network."""
        return SftpProvider(self.address, settings)

    def mounted(self) -> DirectoryProvider:
        """The same folder as a directory."""
        return DirectoryProvider(self.folder)


@contextlib.contextmanager
def sftp(folder: Path, *, subsystem: str = "internal-sftp") -> Iterator[SftpFolder]:
    """A new folder at a server; `ssh` in PATH is the tests' own."""
    with sshd(folder / "sshd", sftp=subsystem) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(server.folder / "bin"), prepend=":")
        made = SftpFolder(server, folder / "my memory", subsystem)
        made.folder.mkdir()
        yield made


# -- faults -----------------------------------------------------------------------------------------------------------


def ssh_never(at: SshConnection) -> None:
    """Connects and sends nothing."""
    at.does("exec sleep 3600")


def ssh_stuck(at: SshConnection) -> None:
    """Answers a little, then stops."""
    at.does('well "$@" | (dd bs=1 count=1500 status=none; exec sleep 3600); exit')


def ssh_cut(at: SshConnection) -> None:
    """Breaks off each answer."""
    at.does('well "$@" | dd bs=1 count=1500 status=none; exit 255')


def ssh_page(at: SshConnection) -> None:
    """Sends text of a startup file instead of SFTP."""
    at.does("echo 'Welcome to the machine room, all users of it'; exec sleep 3600")


def ssh_closed(at: SshConnection) -> None:
    """Refuses the key."""
    at.does("echo 'me@host: Permission denied (publickey).' >&2; exit 255")


SSH_ILLNESSES = (ssh_never, ssh_stuck, ssh_cut, ssh_page, ssh_closed)
