"""The trial script for real hosts, run at servers of this machine."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.interop.seaweed import seaweed
from tests.interop.test_git_servers import git_at_apache
from tests.interop.test_webdav_servers import webdav_at_apache
from tests.servers import s3
from tests.support.effort import THOROUGH

SCRIPT = Path(__file__).parents[2] / "tools" / "host_trial.py"
CHECKS = (
    "provider test", "create a vault", "first publish of 3 memories", "publish one change", "sync without changes",
    "restore on a second device", "two devices at once, 1 times", "publish 0 MiB of large memories", "read every block back", "compact",
    "restore on a third device",
)  # fmt: skip

Server = Callable[[Path, ExitStack, pytest.MonkeyPatch], str]


def _git(folder: Path, stack: ExitStack, patch: pytest.MonkeyPatch) -> str:
    return f"git:{git_at_apache(folder, stack).url}"


def _webdav(folder: Path, stack: ExitStack, patch: pytest.MonkeyPatch) -> str:
    at = webdav_at_apache(folder, stack)
    for name, value in at.account.items():
        patch.setenv(name.upper(), value)
    return f"webdav:{at.url}"


def _bucket(folder: Path, stack: ExitStack, patch: pytest.MonkeyPatch) -> str:
    server = stack.enter_context(seaweed(folder, s3.KEY, s3.SECRET))
    asyncio.run(server.make_bucket(s3.BUCKET))
    patch.setenv("AWS_ACCESS_KEY_ID", s3.KEY)
    patch.setenv("AWS_SECRET_ACCESS_KEY", s3.SECRET)
    return f"bucket:{server.url}/{s3.BUCKET}/trial"


def trial(spec: str) -> subprocess.CompletedProcess[str]:
    """A short trial."""
    return subprocess.run(
        [sys.executable, SCRIPT, spec, "--memories", "3", "--large", "0", "--rounds", "1"], capture_output=True, text=True, check=False
    )  # fmt: skip


#: A trial takes a minute, so a short run has one.
SERVERS = [_git, _webdav, _bucket] if THOROUGH else [_git]


@pytest.mark.parametrize("server", SERVERS)
def test_trial_holds_at_a_server_of_this_machine(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack:
        spec = server(tmp_path, stack, monkeypatch)
        done = trial(spec)
    assert done.returncode == 0, (done.stdout, done.stderr)
    rows = [line.split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")][2:]
    assert {name.removeprefix("| "): held for name, held, *_ in rows}.items() >= dict.fromkeys(
        CHECKS, "yes"
    ).items()
    if spec.startswith("git:"):
        assert "forced push allowed" in rows[0][-1]
        assert rows[1][0] == "| provider test with #refs/ipfsmem/trial" and rows[1][1] == "yes"


def test_trial_of_a_missing_folder_says_so_and_fails(tmp_path: Path) -> None:
    done = trial(str(tmp_path / "gone"))
    assert done.returncode == 1 and "| provider test | **no** |" in done.stdout
    assert str(tmp_path / "gone") in done.stdout and "Traceback" not in done.stderr
    assert "Delete the data" not in done.stderr  # nothing was stored


def test_trial_whose_vault_cannot_be_created_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "there"
    folder.mkdir()
    monkeypatch.setenv("IPFSMEM_VAULT", "no name?")  # only the creation of a vault uses it
    done = trial(str(folder))
    assert done.returncode == 1 and "| create a vault | **no** |" in done.stdout
    assert "first publish" not in done.stdout and "Traceback" not in done.stderr
    assert f"Delete the data of the trial at {folder} by hand." in done.stderr


def test_trial_shows_no_secret_of_an_address(tmp_path: Path) -> None:
    done = trial("git:https://me:hunter22@github.com/me/trial.git")
    assert done.returncode == 1 and "hunter22" not in done.stdout + done.stderr
    done = trial("git:origin")
    assert done.returncode == 1 and "names a remote" in done.stderr and "Traceback" not in done.stderr
