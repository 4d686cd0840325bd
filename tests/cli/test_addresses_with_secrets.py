"""No error, list, status or log shows a password or token of a provider's address."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipfsmem.provider.contract import shown_spec
from tests.cli.conftest import Cli

SECRET = "c4n4ry"
MISTYPED = (
    f"kubox:https://user:{SECRET}@127.0.0.1:1/",
    f"https://user:{SECRET}@127.0.0.1:1",
    f"https:/user:{SECRET}@127.0.0.1:1",
    f"kubox:https:/user:{SECRET}@127.0.0.1:1",
    f"kubo:htps://user:{SECRET}@127.0.0.1:1",
    f"kubo:https//user:{SECRET}@127.0.0.1:1",
    f"kubo:http://user:pa/{SECRET}@127.0.0.1:1",
    f"kubo:http://user:pa#{SECRET}@127.0.0.1:1",
    f"kubo:http://user:{SECRET}@[::1",
    f"gateway:https://127.0.0.1:1/?token={SECRET}",
    f"gateway:https://127.0.0.1:1,htps://127.0.0.1:1#{SECRET}",
    f"routing:htps://user:{SECRET}@127.0.0.1:1",
    f"peer:ftp://user:{SECRET}@127.0.0.1:1",
    f"bucket:htps://user:{SECRET}@127.0.0.1:1/b",
    f"pinning_service:htps://user:{SECRET}@127.0.0.1:1",
    f"filebase:https://user:{SECRET}@127.0.0.1:1",
    f"web3storage:ftp://user:{SECRET}@127.0.0.1:1",
    f"pinata:https://user:{SECRET}@127.0.0.1:1",
)


@pytest.mark.parametrize("spec", MISTYPED)
def test_error_about_mistyped_address_hides_its_secret(sealed: Cli, spec: str) -> None:
    for command in (
        ["provider", "test", spec],
        ["provider", "add", spec],
        ["provider", "remove", spec],
        ["vault", "move", spec],
        ["vault", "move", "--from", spec, "elsewhere"],
    ):
        said = sealed(*command)
        assert said.code not in (0, 70)
        assert SECRET not in said.out + said.err, (command, said.err)


@pytest.mark.usefixtures("short_pauses")
def test_address_in_use_is_shown_and_removed_without_its_secret(
    sealed: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    monkeypatch.setenv("IPFSMEM_LOG", str(log))
    monkeypatch.setenv("IPFSMEM_REQUEST_TIMEOUT", "5")
    sealed.ok("write", "tone", "--body", "x")
    spec, shown = f"kubo:http://user:{SECRET}@127.0.0.1:1", "kubo:http://...@127.0.0.1:1"
    said = [sealed("provider", "add", spec)]
    commands = (
        ["provider", "list"],
        ["provider", "list", "--json"],
        ["status"],
        ["status", "--json"],
        ["vault", "list", "--json"],
        ["key", "sheet"],
        ["sync", "--json"],
        ["--verbose", "sync"],
        ["provider", "check"],
        ["provider", "remove", "kubo:http://127.0.0.1:2"],
    )
    said += [sealed(*command) for command in commands]
    assert all(one.code != 70 and SECRET not in one.out + one.err for one in said)
    assert shown in said[0].out and shown in said[1].out and shown in said[3].out
    assert SECRET not in log.read_text() and log.stat().st_mode & 0o077 == 0
    removed = sealed.ok("provider", "remove", shown).out
    assert f"Removed: {shown}." in removed and shown not in removed.partition("Providers:")[2]


@pytest.mark.parametrize(
    "spec",
    [
        "/media/a?b#c@d",
        "directory:/media/a@b",
        "./a@b",
        "C:\\a@b",
        "pinata:gate.example",
        "kubo",
        "kubo:http://[fe80::1%25eth0]:5001",
    ],
)
def test_address_without_a_secret_is_shown_in_full(spec: str) -> None:
    assert shown_spec(spec) == spec


@given(
    before=st.sampled_from(["", "kubo:", "kubox:", "gateway:https://other,", "peer:"]),
    scheme=st.sampled_from(["https://", "https:/", "htps://", "https:", "https//", "https:///", ""]),
    password=st.text(st.characters(codec="utf-8", exclude_categories=("Cc",)), max_size=8),
    encoded=st.booleans(),
    rest=st.sampled_from(["", ":5001", ":port", "/path", "/a:b", ":5001/api/v0?x=1", "[::1"]),
)
def test_credentials_of_a_random_address_are_never_shown(
    before: str, scheme: str, password: str, encoded: bool, rest: str
) -> None:
    written = quote(password, safe="") if encoded else password
    shown = shown_spec(f"{before}{scheme}user:{SECRET}{written}{SECRET}@host{rest}")
    assert SECRET not in shown, shown
