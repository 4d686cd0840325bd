"""The git provider at real servers: Apache with `git http-backend`, OpenSSH, `git daemon` and a path."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ipfsmem.errors import ProviderRefused
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.signers import RawKeySigner
from tests.interop.apache import apache, apache_folder, give
from tests.servers.sshd import sshd
from tests.support.device_lab import load
from tests.support.patience import PATIENCE
from tests.support.ports import free_port
from tests.unit.providers.git_lab import Repository

WALLET = Unlock(RawKeySigner(bytes(31) + b"\x2b"))
_APACHE_MODULES = ("mpm_event", "authn_core", "authz_core", "alias", "env", "cgid", "setenvif")


def git_at_apache(folder: Path, stack: ExitStack) -> Repository:
    """A repository behind Apache's CGI, as in `git help http-backend`."""
    folder = apache_folder(folder, stack)
    repository = Repository(folder)
    repository.git("config", "http.receivepack", "true")
    give(repository.path)
    execs = subprocess.run(["git", "--exec-path"], capture_output=True, text=True, check=True).stdout.strip()
    url = apache(
        folder, stack, _APACHE_MODULES,
        [
            f"ScriptSock {folder}/cgisock", f"SetEnv GIT_PROJECT_ROOT {folder}", "SetEnv GIT_HTTP_EXPORT_ALL 1",
            f"ScriptAlias /git/ {execs}/git-http-backend/", "<Location /git/>", "Require all granted", "</Location>",
            "SetEnvIf Git-Protocol .* GIT_PROTOCOL=$0", f"<Directory {execs}>", "Require all granted", "</Directory>",
        ],
    )  # fmt: skip
    repository.url = f"{url}/git/{repository.path.name}"
    _until_answers(repository)
    return repository


def _ssh(folder: Path, stack: ExitStack) -> Repository:
    """A repository at an OpenSSH server of this user, with new keys."""
    repository = Repository(folder)
    server = stack.enter_context(sshd(folder))
    patch = stack.enter_context(pytest.MonkeyPatch.context())
    patch.setenv("GIT_SSH_COMMAND", f"ssh -F {server.config}")
    repository.url = f"ssh://{server.origin}{repository.path}"
    return repository


def _daemon(folder: Path, stack: ExitStack) -> Repository:
    """A repository at `git daemon`, which accepts pushes."""
    repository, port = Repository(folder), free_port()
    server = subprocess.Popen(
        ["git", "daemon", "--reuseaddr", "--export-all", "--enable=receive-pack", "--listen=127.0.0.1", f"--port={port}", f"--base-path={folder}", folder],
        start_new_session=True,
    )  # fmt: skip
    stack.callback(_end, server, group=True)
    repository.url = f"git://127.0.0.1:{port}/{repository.path.name}"
    _until_answers(repository)
    return repository


def _path(folder: Path, stack: ExitStack) -> Repository:
    return Repository(folder)


def _end(server: subprocess.Popen[bytes], *, group: bool = False) -> None:
    if group:  # git starts the daemon as a separate program
        os.killpg(server.pid, 15)
    server.terminate()
    server.wait(PATIENCE)


def _until_answers(repository: Repository) -> None:
    ends = time.monotonic() + PATIENCE
    while subprocess.run(["git", "ls-remote", repository.url], capture_output=True, check=False).returncode:
        assert time.monotonic() < ends, f"{repository.url} does not answer"
        time.sleep(0.1)


@pytest.fixture(params=[_path, _daemon, _ssh, git_at_apache], ids=["path", "daemon", "ssh", "apache"])
def at(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Repository]:
    with ExitStack() as stack:
        yield request.param(tmp_path, stack)


def test_two_devices_share_a_vault_in_a_branch(at: Repository, tmp_path: Path) -> None:
    one = at.open()
    a = load(tmp_path, "a", [one], wallet=WALLET)
    a.write("note", "from a")
    asyncio.run(a.sync())
    b = load(tmp_path, "b", [at.open()], wallet=WALLET)
    assert b.read("note").file.body == "from a"  # type: ignore[union-attr]
    b.write("note", "from b")
    b.write("other", "also from b")
    asyncio.run(b.sync())
    asyncio.run(a.sync())
    assert a.read("note").file.body == "from b"  # type: ignore[union-attr]
    assert {entry.key for entry in a.list()} == {"note", "other"}
    before = dict(one.repository.connections)
    assert not asyncio.run(a.sync()).blocks_sent
    assert one.repository.connections == {"fetch": before["fetch"] + 1, "push": before["push"]}
    a.write("note", "changed")
    asyncio.run(a.sync())
    assert one.repository.connections == {"fetch": before["fetch"] + 2, "push": before["push"] + 1}


def test_unknown_ssh_host_key_is_explained_without_a_prompt(tmp_path: Path) -> None:
    with ExitStack() as stack:
        at = _ssh(tmp_path, stack)
        (tmp_path / "known_hosts").write_text("")
        with pytest.raises(ProviderRefused, match="ssh key is not known") as raised:
            asyncio.run(at.open().pins("n"))
        assert "~/.ssh/known_hosts" in raised.value.hint


def test_unknown_ssh_key_of_the_user_is_explained(tmp_path: Path) -> None:
    with ExitStack() as stack:
        at = _ssh(tmp_path, stack)
        (tmp_path / "authorized").write_text("")
        with pytest.raises(ProviderRefused, match="refuses access"):
            asyncio.run(at.open().pins("n"))
