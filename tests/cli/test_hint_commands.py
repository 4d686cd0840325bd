"""The command of a hint acts on the same vault and scope: it repeats --vault, --home and --scope."""

from __future__ import annotations

import contextlib
import re
import shlex
import sqlite3
from pathlib import Path

import pytest

from ipfsmem.cli.app import group
from ipfsmem.cli.hint_commands import with_call_options, without_python
from tests.support.cli_lab import KEY, Cli, Result
from tests.support.hints import FILLED, hints

GIVEN = {"vault_name": "work", "home": "/a home", "scope": None}


def run_hint(device: Cli, text: str, **fill: str) -> Result:
    """Type the first command of a text unchanged; `fill` replaces words in capitals."""
    found = re.search(r"ipfsmem ([^\n]*?)(?:[.,;)]? *(?:$|\n|, or | \(|\. [A-Z]))", text)
    assert found, text
    return device.ok(*(fill.get(word, word) for word in shlex.split(found[1])))


@pytest.fixture
def away(bare: Cli, tmp_path: Path) -> tuple[Cli, list[str]]:
    """A vault of another name in another home, and the flags that select it; the current home has none."""
    flags = ["--vault", "work", "--home", str(tmp_path / "another home")]
    bare.ok("init", "--mode", "local", *flags)
    bare.ok("write", "tone", "--body", "x", *flags)
    return bare, flags


@pytest.mark.parametrize("first", [True, False], ids=["before the command", "behind it"])
def test_hint_repeats_the_given_vault_and_home(away: tuple[Cli, list[str]], first: bool) -> None:
    device, flags = away
    words = ["forget", "tune"]
    told = device.fails(4, *(flags + words if first else words + flags)).err
    assert "tone" in run_hint(device, told).out


@pytest.mark.parametrize(
    "name", ["two words", "it's", "ipfsmem list. ipfsmem sync", 'a "b" (c); d', "'a' 'b", "on that device: x"]
)
def test_hint_quotes_a_home_with_special_characters(bare: Cli, tmp_path: Path, name: str) -> None:
    """A quoted name with special characters is still a single argument."""
    flags = ["--home", str(tmp_path / name)]
    bare.ok("init", "--mode", "local", *flags)
    bare.ok("write", "tone", "--body", "x", *flags)
    told = bare("forget", "tune", "--json", *flags).error["hint"]
    assert "tone" in bare.ok(*shlex.split(told.partition("ipfsmem ")[2].removesuffix("."))).out
    with contextlib.closing(sqlite3.connect(tmp_path / name / "default" / "state.db")) as db, db:
        db.execute("UPDATE blocks SET data = zeroblob(length(data))")
    told = bare("read", "tone", "--json", *flags).error["hint"]
    bare.ok(*shlex.split(told.partition("ipfsmem ")[2]))
    assert bare.ok("read", "tone", "--body", *flags).out == "x\n"


@pytest.mark.parametrize("name", ["two words", "it's", "ipfsmem list. ipfsmem sync"])
def test_hint_quotes_a_folder_with_special_characters(bare: Cli, tmp_path: Path, name: str) -> None:
    folder, flags = tmp_path / name, ["--home", str(tmp_path / "a home")]
    folder.mkdir()
    bare.ok("init", "--mode", "local", *flags)
    bare.ok("folder", "attach", str(folder), *flags)
    bare.ok("scope", "make", "work", *flags)
    told = bare("folder", "attach", str(folder), "--scope", "work", "--json", *flags).error["hint"]
    bare.ok(*shlex.split(told.partition("ipfsmem ")[2].removesuffix(".")))
    bare.ok("folder", "attach", str(folder), "--scope", "work", *flags)
    bare.ok("folder", "pause", str(folder), *flags)
    paused = bare.ok("status", *flags).out
    bare.ok(*shlex.split(paused[paused.index("then run ipfsmem ") + 17 :].partition(" (keep the")[0]))


def test_hint_as_json_repeats_the_given_vault_and_home(away: tuple[Cli, list[str]]) -> None:
    device, flags = away
    assert "tone" in run_hint(device, device("forget", "tune", "--json", *flags).error["hint"]).out


def test_hint_repeats_the_given_scope(away: tuple[Cli, list[str]]) -> None:
    device, flags = away
    device.ok("write", "role", "--body", "y", "--scope", "job", *flags)
    told = device.fails(4, "forget", "rule", "--scope", "job", *flags).err
    out = run_hint(device, told).out
    assert "role" in out and "tone" not in out


def test_printed_resolve_command_works_in_a_scope(sealed: Cli, second: Cli) -> None:
    job = ("--scope", "job")
    sealed.ok("write", "role", "--body", "old", *job)
    sealed.ok("sync")
    second.ok("sync")
    sealed.ok("write", "role", "--body", "first", *job)
    second.ok("write", "role", "--body", "second", *job)
    for device in (sealed, second, sealed):
        device.ok("sync")
    told = sealed.ok("status").out
    listed = run_hint(sealed, told[told.index("1 with conflicts") :]).out  # no conflict was listed
    shown = run_hint(sealed, listed).out
    run_hint(sealed, shown.replace("Resolve it: ", "\n"))
    assert (
        sealed.ok("conflicts", "--json").json["conflicts"]
        == []
        == sealed.ok("conflicts", "--json", *job).json["conflicts"]
    )


def test_notice_of_status_repeats_the_given_vault(away: tuple[Cli, list[str]], stick: Path) -> None:
    device, flags = away
    flags[1] = "sealed"
    device.ok("init", "--unprotected-keys", *flags, key=KEY)
    device.ok("write", "tone", "--body", "x", *flags)
    told = device.ok("status", *flags).out
    run_hint(device, told[told.index("unpublished changes; run ") :])
    assert "no unpublished changes" in device.ok("status", *flags).out


def test_hints_for_other_devices_and_hints_naming_a_vault_stay_unchanged() -> None:
    for text in (
        "Run on a device that has the missing data: ipfsmem sync",
        "If this machine's clock is right, on that device: ipfsmem vault check.",
        "On another device of this memory: ipfsmem member revoke ID --wallet FILE.",
        "Its CID: ipfsmem format cid PATH. A file in it: inspect that.",
        "Install ipfsmem again.",
    ):
        assert with_call_options(text, GIVEN, group) == text
    assert (
        with_call_options("move to a new vault: ipfsmem init --vault NEW, then export", GIVEN, group)
        == "move to a new vault: ipfsmem --home '/a home' init --vault NEW, then export"
    )


@pytest.mark.xdist_group("texts")
def test_command_line_hints_omit_the_python_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = Cli(tmp_path, monkeypatch).fails(2, "init", "--unprotected-keys").err
    assert "--new-wallet (recommended), --wallet FILE, --mnemonic, or --no-wallet.\n" in refused
    assert (
        with_call_options(
            "ipfsmem member revoke ID --wallet FILE (in Python: unlock(), then members.revoke()).", {}, group
        )
        == "ipfsmem member revoke ID --wallet FILE."
    )
    assert with_call_options("(try --context; in Python: contexts=)", {}, group) == "(try --context)"
    for one in hints():
        assert "in Python:" not in without_python(one.text), one


@pytest.mark.xdist_group("texts")
def test_every_hint_is_for_this_vault_or_names_another_device() -> None:
    """A hint without added options names another device or a command that needs no vault."""
    for one in hints():
        if (
            "ipfsmem " in one.text
            and FILLED not in one.text
            and with_call_options(one.text, GIVEN, group) == without_python(one.text)
        ):
            assert re.search(
                r"([Aa]nother|[Aa]|that) device|ipfsmem (format|open|serve|process|again|config|help|mcp;)",
                one.text,
            ), one
