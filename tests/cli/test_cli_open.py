"""`ipfsmem open`, and what a plain publish asks for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli_lab import KEY, Cli


@pytest.fixture
def public(bare: Cli, stick: Path) -> tuple[Cli, str]:
    """A plain memory, and its published root."""
    bare.ok("init", "--mode", "ipfs", "--unprotected-keys", "--yes-public", key=KEY)
    bare.ok("write", "hello", "--name", "Hello", "--body", "Hello, world.")
    return bare, bare.ok("sync", "--json").json["root"]


def test_list_read_and_take_away(
    public: tuple[Cli, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, root = public
    reader = Cli(tmp_path / "reader", monkeypatch)
    assert reader.ok("open", root).out.startswith("hello\t")
    assert "Hello, world." in reader.ok("open", root, "hello").out
    out = tmp_path / "taken.json"
    reader.ok("open", root, "--export", str(out))
    assert "hello.md" in json.loads(out.read_text())["files"]
    assert not reader.home.exists()


def test_what_cannot_be_opened(public: tuple[Cli, str]) -> None:
    cli, root = public
    cli.fails(4, "open", root, "nothing")
    nowhere = "bafybeiaqihpb4m7wt6vvtafbr6lqn2ynakoghdo2kfobnd3kz6h7nyegvy"
    assert cli("open", nowhere).code in (4, 40, 41)
    assert cli("open", "nonsense").code in (2, 3, 4, 10)


def test_nothing_becomes_public_without_a_word(bare: Cli, stick: Path) -> None:
    said = bare.ok("init", "--mode", "ipfs", "--unprotected-keys", key=KEY)
    assert "not published" in said.err
    bare.ok("write", "hello", "--body", "Hello.")
    bare.fails(31, "sync")
    assert not list(stick.glob("packs/*.car"))
    bare.ok("sync", "--yes-public")
    bare.ok("sync")


def test_a_secret_stops_a_plain_publish(public: tuple[Cli, str]) -> None:
    cli, _ = public
    token = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
    cli.ok("write", "oops", "--body", f"the token is {token}")
    result = cli.fails(32, "sync")
    assert "oops" in result.err and token not in result.err
    cli.ok("sync", "--allow", "oops")
