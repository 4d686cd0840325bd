"""A "no" to a question of a command changes nothing and ends with exit code 8."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipfsmem.cli import secret_input
from tests.support.cli_lab import Cli


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    cli = Cli(tmp_path / "home", monkeypatch)
    cli.ok("init", "--mode", "local")
    cli.ok("write", "tone", "--scope", "work", "--body", "Be brief.", "--description", "how to answer")
    cli.ok("session", "add", "chat", stdin=b'{"role": "user", "content": "Where is the boat?"}')
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "boat.md").write_text("It is red.")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(secret_input, "can_ask", lambda: True)
    return cli


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("folder attach notes", "not attached"),
        ("session delete chat", "not forgotten"),
        ("scope clear --scope work", "not forgotten"),
        ("scope forget work", "not forgotten"),
        ("vault remove default --force", "not deleted"),
    ],
)
def test_command_answered_with_no_changes_nothing(cli: Cli, command: str, message: str) -> None:
    done = cli(*command.split(), stdin=b"n\n")
    assert (done.code, done.out) == (8, "")
    assert done.err.endswith(f"ipfsmem: {message}; nothing was changed\n")
    assert [one["key"] for one in cli.ok("list", "--scope", "work", "--json").json["memories"]] == ["tone"]
    assert cli.ok("session", "resume", "chat", "--json").json
    assert "notes" not in cli.ok("folder", "list").out
