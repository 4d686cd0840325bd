"""Real servers for the providers that reach a folder, a bucket or a repository over the network, each behind
a relay for faults.

A server runs as long as the `Servers` that started it; each bench has its own folder, prefix or repository
there."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from ipfsmem_providers.bucket import BucketProvider
from ipfsmem_providers.rclone import RcloneProvider
from ipfsmem_providers.sftp import SftpProvider
from ipfsmem_providers.webdav import WebdavProvider

from ipfsmem.provider.contract import Provider
from tests.interop.counterparts import missing, rclone_program
from tests.interop.seaweed import seaweed
from tests.interop.test_git_servers import git_at_apache
from tests.interop.test_webdav_servers import webdav_at_apache
from tests.servers import s3
from tests.servers.dav import PASSWORD, USER
from tests.servers.faults import Faults
from tests.servers.relay import relay
from tests.servers.sshd import ssh_client
from tests.servers.threaded import serve
from tests.support.patience import PATIENCE
from tests.support.ports import free_port
from tests.unit.providers.rclone_lab import configured, need_rclone
from tests.unit.providers.sftp_lab import SshConnection
from tests.unit.providers.sick_lab import Bench

#: Provider, then server. `old` is the installed rclone (Debian's is 1.60), `new` the one built from its
#: module.
KINDS: Final = (
    "webdav-apache", "webdav-wsgidav", "webdav-rclone-old", "webdav-rclone-new",
    "bucket-seaweed", "bucket-rclone-new",
    "sftp-rclone-old", "sftp-rclone-new",
    "git-apache",
    "rclone-new",
)  # fmt: skip
_ACCOUNT: Final = {"webdav_user": USER, "webdav_password": PASSWORD}


def rclone_of(age: str) -> str:
    """The path of rclone: `old` is installed, `new` is built."""
    if age == "new":
        return str(rclone_program())
    need_rclone()
    return "rclone"


def until_listens(port: int, server: subprocess.Popen[bytes], name: str) -> None:
    """Wait until a program accepts connections."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert time.monotonic() < until and server.poll() is None, f"{name} does not answer"
            time.sleep(0.05)
        else:
            return


def started(command: list[str | Path], port: int, stack: ExitStack, name: str, folder: Path) -> None:
    """Start a server, which ends with the stack; its messages are in `folder`."""
    log = stack.enter_context((folder / "log").open("wb"))
    server = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
    stack.callback(server.wait, PATIENCE)
    stack.callback(server.terminate)
    until_listens(port, server, name)


def rclone_serve(kind: str, age: str, folder: Path, stack: ExitStack, *options: str) -> int:
    """Serve the folder `served` with rclone; return the port."""
    (folder / "served").mkdir(parents=True, exist_ok=True)
    port = free_port()
    # Without a configuration of this user; with its default caches.
    command = [rclone_of(age), "serve", kind, folder / "served", f"--addr=127.0.0.1:{port}", f"--config={folder}/none", f"--cache-dir={folder}/cache"]  # fmt: skip
    started([*command, *options], port, stack, f"rclone serve {kind}", folder)
    return port


def wsgidav(folder: Path, stack: ExitStack) -> str:
    """Serve the folder `served` with wsgidav, behind a password; return the URL."""
    program = Path(sys.executable).parent / "wsgidav"
    if not program.exists():
        missing("wsgidav is not installed (pip install 'ipfsmem[counterparts]')")
    (folder / "served").mkdir()
    port = free_port()
    config = {
        "provider_mapping": {"/": str(folder / "served")},
        "simple_dc": {"user_mapping": {"*": {USER: {"password": PASSWORD}}}},
        "verbose": 1,
    }
    (folder / "wsgidav.json").write_text(json.dumps(config))
    command = [program, "--host=127.0.0.1", f"--port={port}", f"--config={folder}/wsgidav.json"]
    started([*command], port, stack, "wsgidav", folder)
    return f"http://127.0.0.1:{port}"


class Servers:
    """Servers that start on first use."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self._running: dict[str, Any] = {}
        self._count = itertools.count()

    @contextlib.contextmanager
    def bench(self, kind: str, folder: Path) -> Iterator[Bench]:
        """Return one of KINDS, without faults and empty. `folder`: files of the client."""
        folder.mkdir(parents=True, exist_ok=True)
        number = next(self._count)
        provider, _, server = kind.partition("-")
        made = {"webdav": _webdav, "bucket": _bucket, "sftp": _sftp, "git": _git, "rclone": _rclone}[provider]
        with ExitStack() as stack:
            yield made(self, kind, server, number, folder, stack)

    def running(self, name: str, start: Callable[[Path, ExitStack], Any]) -> Any:
        """Return the result of the first `start` of this name, which is called with a folder. Without its
        program each test that needs it is skipped (or fails)."""
        if name not in self._running:
            folder = self._folder / name
            folder.mkdir()
            try:
                self._running[name] = start(folder, self._stack)
            except (pytest.skip.Exception, pytest.fail.Exception) as missing:
                self._running[name] = missing
        if isinstance(found := self._running[name], (pytest.skip.Exception, pytest.fail.Exception)):
            raise found
        return found


def _relayed(url: str, stack: ExitStack) -> tuple[str, Faults]:
    faults = Faults()
    return stack.enter_context(serve(relay(url, faults))), faults


def _dav_server(servers: Servers, server: str) -> str:
    """Return the URL of a folder that the account may use."""
    if server == "apache":
        return str(
            servers.running("webdav-apache", lambda folder, stack: webdav_at_apache(folder, stack).url)
        )
    if server == "wsgidav":
        return str(servers.running("wsgidav", wsgidav))
    age = server.removeprefix("rclone-")
    account = (f"--user={USER}", f"--pass={PASSWORD}")
    port = servers.running(f"webdav-{server}", lambda folder, stack: rclone_serve("webdav", age, folder, stack, *account))  # fmt: skip
    return f"http://127.0.0.1:{port}"


def _webdav(servers: Servers, kind: str, server: str, number: int, folder: Path, stack: ExitStack) -> Bench:
    url = _dav_server(servers, server)
    path = urlsplit(url).path
    at, faults = _relayed(url.removesuffix(path), stack)

    def make(settings: dict[str, Any]) -> Provider:
        return WebdavProvider(f"{at}{path}/memory{number}", {**_ACCOUNT, "create": True, **settings})

    return Bench(kind, faults, make)


def _bucket(servers: Servers, kind: str, server: str, number: int, folder: Path, stack: ExitStack) -> Bench:
    def weed(folder: Path, stack: ExitStack) -> str:
        running = stack.enter_context(seaweed(folder, s3.KEY, s3.SECRET))
        asyncio.run(running.make_bucket(s3.BUCKET))
        return running.url

    def by_rclone(folder: Path, stack: ExitStack) -> str:
        (folder / "served" / s3.BUCKET).mkdir(parents=True)
        return (
            f"http://127.0.0.1:{rclone_serve('s3', 'new', folder, stack, f'--auth-key={s3.KEY},{s3.SECRET}')}"
        )

    at, faults = _relayed(servers.running(kind, weed if server == "seaweed" else by_rclone), stack)
    account = {"aws_access_key_id": s3.KEY, "aws_secret_access_key": s3.SECRET}
    return Bench(
        kind, faults, lambda settings: BucketProvider(f"{at}/{s3.BUCKET}/memory{number}", {**account, **settings})
    )  # fmt: skip


def _sftp(servers: Servers, kind: str, server: str, number: int, folder: Path, stack: ExitStack) -> Bench:
    age = server.removeprefix("rclone-")

    def start(folder: Path, stack: ExitStack) -> tuple[Path, int]:
        keys = ("host", "user")
        for name in keys:
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
        allowed = (f"--key={folder}/host", f"--authorized-keys={folder}/user.pub")
        return folder, rclone_serve("sftp", age, folder, stack, *allowed)

    keys, port = servers.running(kind, start)
    client = folder / "ssh"
    client.mkdir()
    for name in ("user", "host.pub"):
        (client / name).write_bytes((keys / name).read_bytes())
    (client / "user").chmod(0o600)
    ssh_client(client, port)
    patch = stack.enter_context(pytest.MonkeyPatch.context())
    patch.setenv("PATH", str(client / "bin"), prepend=os.pathsep)
    address = f"u@127.0.0.1:{port}//memory {number}"
    return Bench(
        kind, SshConnection(client), lambda settings: SftpProvider(address, {"create": True, **settings})
    )


def _git(servers: Servers, kind: str, server: str, number: int, folder: Path, stack: ExitStack) -> Bench:
    """A separate server, because creating the repository is the expensive part."""
    repository = git_at_apache(folder, stack)
    origin, slash, path = repository.url.partition("/git/")
    at, faults = _relayed(origin, stack)
    repository.url = f"{at}{slash}{path}"
    return Bench(kind, faults, repository.open)


def _rclone(servers: Servers, kind: str, server: str, number: int, folder: Path, stack: ExitStack) -> Bench:
    """The new rclone as the client, with wsgidav behind it."""
    at, faults = _relayed(_dav_server(servers, "wsgidav"), stack)
    program = rclone_of(server)
    hidden = subprocess.run([program, "obscure", PASSWORD], capture_output=True, text=True, check=True).stdout
    lines = f"[dav]\ntype = webdav\nvendor = other\nurl = {at}\nuser = {USER}\npass = {hidden.strip()}\n"
    stack.enter_context(configured(folder, lines))
    patch = stack.enter_context(pytest.MonkeyPatch.context())
    patch.setenv("PATH", str(Path(program).parent), prepend=os.pathsep)
    return Bench(kind, faults, lambda settings: RcloneProvider(f"dav:memory {number}", {"create": True, **settings}))  # fmt: skip
