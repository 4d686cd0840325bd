"""A sync that leaves texts out at a size limit has its own exit code in every command."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipfsmem.errors import IncompleteError
from ipfsmem.sync import join_head
from tests.support.cli_lab import KEY, Cli


@pytest.mark.parametrize(
    "command",
    [
        ["sync"],
        ["member", "admit"],
        ["member", "rotate"],
        ["member", "rename", "first", "laptop"],
        ["member", "revoke", "first"],
        ["key", "phrase"],
        ["vault", "compact"],
        ["vault", "compact", "--dry-run"],
        ["vault", "repair"],
    ],
    ids=" ".join,
)
def test_command_whose_sync_leaves_a_text_out_reports_it_once(
    sealed: Cli, second: Cli, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.setattr(join_head, "MAX_VALUES", 1)
    second.ok("write", "tone", "--body", "from the second")
    sealed.ok("write", "tone", "--body", "from the first")
    sealed.ok("sync")
    key = KEY if command[0] in ("member", "key") else ""
    answer = second(*command, key=key)
    assert answer.code == IncompleteError.exit_code
    assert "left out" in answer.out + answer.err and "tone" in answer.out + answer.err
    assert second("sync").code == 0, "it is told once"


@pytest.mark.parametrize("command", ["init", "recover"])
def test_restore_that_leaves_a_text_out_has_an_exit_code(
    clash: tuple[Cli, Cli], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr(join_head, "MAX_VALUES", 1)
    answer = Cli(tmp_path / "third", monkeypatch)(command, "--unprotected-keys", key=KEY)
    assert answer.code == IncompleteError.exit_code and "left out" in answer.out + answer.err
