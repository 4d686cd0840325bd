"""An OpenSSH server of this user on loopback, with keys made for it, and an `ssh` program that knows them."""

from __future__ import annotations

import contextlib
import getpass
import os
import shlex
import shutil
import subprocess
import time
import urllib.parse
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.interop.counterparts import missing
from tests.support.patience import PATIENCE
from tests.support.ports import free_port

HOST = "127.0.0.1"


class Sshd:
    """One server; its files are in `folder`: `known_hosts`, `authorized`, `config`, and `bin/ssh`, to be first in PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port, self.user = folder, free_port(), getpass.getuser()
        self._server: subprocess.Popen[bytes] | None = None
        self._has_begun = False
        self._log = folder / "sshd.log"

    @property
    def origin(self) -> str:
        """User, host and port, as in a URL."""
        return f"{urllib.parse.quote(self.user)}@{HOST}:{self.port}"

    @property
    def config(self) -> Path:
        """The configuration of the client."""
        return self.folder / "config"

    def start(self, *, sftp: str = "internal-sftp") -> None:
        """Start the server and wait until it answers. `sftp`: the command of the subsystem."""
        program = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
        if program is None:
            missing("sshd is not installed")
        folder = self.folder
        for name in ("host", "user"):
            if not (folder / name).exists():
                subprocess.run(
                    ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True
                )
        (folder / "authorized").write_bytes((folder / "user.pub").read_bytes())
        (folder / "authorized").chmod(0o600)
        ssh_client(folder, self.port)
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)
        options = [
            f"HostKey={folder}/host", f"AuthorizedKeysFile={folder}/authorized", "StrictModes=no", "UsePAM=no", "PasswordAuthentication=no",
            "PermitRootLogin=prohibit-password", f"ListenAddress={HOST}", f"PidFile={folder}/sshd.pid", f"Subsystem=sftp {sftp}",
            "SetEnv=SHLVL=2",  # bash then reads no startup file of this user
        ]  # fmt: skip
        command = [program, "-D", "-e", "-f", "/dev/null", *(part for one in options for part in ("-o", one))]
        ends = time.monotonic() + PATIENCE
        while not self._answers([*command, "-p", str(self.port)], ends):
            assert time.monotonic() < ends and not self._has_begun, f"sshd does not answer: {self._said()}"
            time.sleep(0.1)  # the system does not restart a service that ends at once
            self.port = free_port()  # another program took the port between the choice and the start
            ssh_client(folder, self.port)
        self._has_begun = True

    def _answers(self, command: Sequence[str], ends: float) -> bool:
        """Start the server, and tell whether it answers; it does not if it ended."""
        with self._log.open("ab") as log:
            self._server = subprocess.Popen(command, stderr=log)
        while self._ssh("-G", HOST).returncode or self._ssh(HOST, "true").returncode:
            if self._server.poll() is not None:
                return False
            assert time.monotonic() < ends, f"sshd does not answer: {self._said()}"
            time.sleep(0.05)
        return True

    def _said(self) -> str:
        """Return the last messages of the servers that were started."""
        return self._log.read_text(errors="replace")[-2_000:]

    def stop(self) -> None:
        """End the server; sessions that are open stay."""
        if self._server is not None:
            self._server.terminate()
            self._server.wait(PATIENCE)
            self._server = None

    def _ssh(self, *args: str) -> subprocess.CompletedProcess[bytes]:
        command = [
            "ssh",
            "-F",
            str(self.config),
            "-oBatchMode=yes",
            "-oConnectTimeout=10",
            "-p",
            str(self.port),
            *args,
        ]
        return subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False)


def ssh_client(folder: Path, port: int) -> None:
    """Make `config`, `known_hosts` and `bin/ssh` for the server with the key `host.pub` and the client's key `user`.

    The program does what the file `illness` says, if there is one; else it is the real one with this configuration.
    """
    real = shutil.which("ssh")
    if real is None:
        missing("ssh is not installed")
    (folder / "known_hosts").write_text(f"[{HOST}]:{port} {(folder / 'host.pub').read_text()}")
    (folder / "config").write_text(
        f"UserKnownHostsFile {folder}/known_hosts\nGlobalKnownHostsFile /dev/null\nIdentityFile {folder}/user\n"
        "IdentitiesOnly yes\nIdentityAgent none\nKexAlgorithms curve25519-sha256\n"
    )
    program = folder / "bin" / "ssh"
    program.parent.mkdir(exist_ok=True)
    run = f'{shlex.quote(real)} -F {shlex.quote(str(folder / "config"))} "$@"'
    hits = shlex.quote(str(folder / "hits"))
    illness = shlex.quote(str(folder / "illness"))
    program.write_text(
        f"#!/bin/sh\nwell() {{ {run}; }}\necho >> {hits}\n[ -e {illness} ] && . {illness}\nexec {run}\n"
    )
    program.chmod(0o700)


@contextlib.contextmanager
def sshd(folder: Path, *, sftp: str = "internal-sftp") -> Iterator[Sshd]:
    """A running server."""
    folder.mkdir(parents=True, exist_ok=True)
    server = Sshd(folder)
    try:
        server.start(sftp=sftp)
        yield server
    finally:
        server.stop()
