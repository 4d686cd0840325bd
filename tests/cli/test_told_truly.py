"""What a command says of what it did, and of the way out, is so: found by a first reader of the README who typed all of it."""

from __future__ import annotations

import re
import shlex
import zipfile
from pathlib import Path

import pytest

from tests.cli_lab import Cli


def test_what_is_forgotten_in_mode_local_is_learnt_by_nobody_else(cli: Cli) -> None:
    cli.ok("write", "tone", "--body", "x")
    assert cli.ok("forget", "tone").out == "tone is forgotten here.\n"
    cli.ok("write", "tone", "--scope", "work", "--body", "x")
    assert (
        cli.ok("scope", "forget", "work", "--yes").out == "The scope work is forgotten here with 1 memory.\n"
    )
    assert cli.ok("scope", "restore", "work").out == "The scope work is back, and empty.\n"


def test_a_memory_in_mode_local_takes_no_provider(cli: Cli, tmp_path: Path) -> None:
    """It said "Publishes at: ..." and ended with 0, and nothing was ever published there."""
    (tmp_path / "stick").mkdir()
    hint = cli.fails(2, "providers", "add", str(tmp_path / "stick")).err
    assert "mode local is not published" in hint
    cli.ok("write", "tone", "--body", "x")
    cli.ok("init", "-n", "new", "--no-wallet", "--unprotected-keys")
    for step in re.findall(r"ipfsmem (export[^,]*|import[^.]*)", hint):
        cli.ok(*shlex.split(step.replace("NEW", "new").replace("DIR", str(tmp_path / "taken"))))
    assert "tone" in cli.ok("list", "-n", "new").out


def test_an_empty_file_settles_no_conflict(clash: tuple[Cli, Cli]) -> None:
    """As an empty `write`: most often it is a file that a program failed to fill."""
    first, _ = clash
    seen = first.ok("conflicts", "--json").json[0]["seen"]
    first.fails(2, "resolve", "tone", "--seen", seen, "--file", "-", stdin=b"\n")
    assert first.ok("conflicts").out != ""
    first.ok("resolve", "tone", "--seen", seen, "--keep")
    first.ok("forget", "tone")
    assert first.ok("conflicts").out == first.ok("list").out == ""


def test_each_secret_says_its_own_way_in(
    sealed: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them named IPFSMEM_PASSPHRASE, which is that of this device's keys."""
    monkeypatch.setenv("IPFSMEM_PASSPHRASE", "four words that differ")
    wallet = str(tmp_path / "wallet.json")
    sealed.ok("init", "-n", "other", "--new-wallet", wallet)
    monkeypatch.setenv("IPFSMEM_WALLET_PASSPHRASE", "not this one at all")
    wrong = sealed.fails(22, "keys", "unlock", "-n", "other", "--wallet", wallet)
    assert "IPFSMEM_WALLET_PASSPHRASE" in wrong.err and "in IPFSMEM_PASSPHRASE" not in wrong.err
    missing = sealed.fails(22, "keys", "passphrase", "-n", "other")
    assert "IPFSMEM_NEW_PASSPHRASE" in missing.err and "in IPFSMEM_PASSPHRASE" not in missing.err
    phrase = sealed.fails(22, "keys", "unlock", "--mnemonic")
    assert "IPFSMEM_MNEMONIC" in phrase.err and "in IPFSMEM_PASSPHRASE" not in phrase.err


@pytest.mark.parametrize("strategy", [(), ("--strategy", "replace", "--prune")])
def test_an_import_of_a_place_without_memories_says_so(
    cli: Cli, tmp_path: Path, strategy: tuple[str, ...]
) -> None:
    """A wrong folder ended with 0, and with --prune everything was forgotten on every device."""
    cli.ok("write", "tone", "--body", "x")
    (tmp_path / "wrong").mkdir()
    (tmp_path / "wrong" / "shopping.txt").write_text("milk")
    with zipfile.ZipFile(tmp_path / "wrong.zip", "w") as archive:
        archive.writestr("shopping.txt", "milk")
    for place in ("wrong", "wrong.zip"):
        assert "there are no memories in" in cli.fails(10, "import", str(tmp_path / place), *strategy).err
    assert "tone" in cli.ok("list").out


def test_an_empty_export_prunes_nothing(cli: Cli, tmp_path: Path) -> None:
    """Of a program that failed to fill it, most often; taken in as it is, it changes nothing."""
    cli.ok("init", "-n", "none", "--mode", "local")
    cli.ok("export", "-n", "none", "--dir", str(tmp_path / "none"))
    cli.ok("write", "tone", "--body", "x")
    cli.ok("import", str(tmp_path / "none"))
    cli.fails(2, "import", str(tmp_path / "none"), "--strategy", "replace", "--prune")
    cli.fails(2, "import", "-", "--strategy", "replace", "--prune", stdin=b"{}")
    assert "tone" in cli.ok("list").out
