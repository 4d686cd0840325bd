"""`--verbose` and IPFSMEM_LOG: requests of a command to its providers, without secrets and texts."""

from __future__ import annotations

import re
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from ipfsmem_providers.directory import DirectoryProvider

from ipfsmem.http import blocks
from tests.servers.threaded import serve
from tests.support.cli_lab import KEY, Cli

TOKEN = "token-canary-1234567890"
TEXT = "text-canary"
LINE = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z peer (GET|HEAD|PUT|POST) http://127\.0\.0\.1:\d+\S* ?.*"
)


@pytest.fixture
def published(bare: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cli]:
    """A vault at a peer, with an unpublished text."""
    monkeypatch.setenv("PEER_TOKEN", TOKEN)
    (tmp_path / "theirs").mkdir()
    with serve(lambda: blocks.app(DirectoryProvider(tmp_path / "theirs"), token=TOKEN)) as url:
        monkeypatch.setenv("IPFSMEM_PROVIDER", f"peer:{url}")
        bare.ok("init", "--unprotected-keys", key=KEY)
        bare.ok("write", "key-canary", "--body", TEXT)
        yield bare


def has_no_secrets(log: str) -> bool:
    """Return whether a log contains no secret, text or key."""
    return not any(secret in log for secret in (TOKEN, TEXT, KEY, "key-canary"))


@pytest.mark.parametrize("words", [("sync", "--verbose"), ("--verbose", "sync")], ids=["behind", "before"])
def test_verbose_prints_each_request_on_standard_error_without_secrets(
    published: Cli, words: tuple[str, ...]
) -> None:
    said = published.ok(*words)
    lines = said.err.splitlines()
    assert any(" PUT " in line or " POST " in line for line in lines) and all(map(LINE.fullmatch, lines))
    assert has_no_secrets(said.err) and "Published" in said.out
    assert published.ok("sync").err == ""


def test_verbose_prints_each_contact_of_a_repository(cli: Cli, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "--bare", tmp_path / "memory.git"], check=True)
    spec = f"git:{tmp_path / 'memory.git'}"
    lines = cli.ok("provider", "test", spec, "--verbose").err.splitlines()
    done = [re.sub(r"^\S+Z (.*) in \d+ ms$", r"\1", line) for line in lines]
    assert f"{spec} push: done" in done and f"{spec} fetch: done" in done


def test_request_log_gets_requests_of_all_commands_and_is_private(
    published: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "requests.log"
    monkeypatch.setenv("IPFSMEM_LOG", str(log))
    assert published.ok("sync").err == ""
    first = log.read_text()
    published.ok("provider", "check")
    both = log.read_text()
    assert both.startswith(first) and len(both) > len(first) > 0 and has_no_secrets(both)
    assert all(map(LINE.fullmatch, both.splitlines()))
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_unwritable_request_log_stops_command_before_it_starts(
    published: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IPFSMEM_LOG", str(tmp_path / "none" / "requests.log"))
    assert "set in IPFSMEM_LOG, cannot be written" in published.fails(3, "write", "other", "--body", "x").err
    monkeypatch.delenv("IPFSMEM_LOG")
    published.fails(4, "read", "other")


def test_failed_request_is_logged_without_its_body(published: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEER_TOKEN", "wrong-canary-1234567890")
    said = published("sync", "--verbose")
    assert said.code == 42 and ": 401" in said.err
    assert has_no_secrets(said.err) and "wrong-canary" not in said.err
