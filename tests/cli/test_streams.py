"""Standard streams that are closed, full, or named as a file."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ipfsmem.cli.app import HIDDEN, USEFUL_WITHOUT_OUTPUT, group
from tests.cli.test_outcomes import leaves
from tests.support.cli_lab import Cli

POSIX = pytest.mark.skipif(os.name != "posix", reason="devices and closed descriptors are those of POSIX")


def shell(cli: Cli, script: str) -> subprocess.CompletedProcess[bytes]:
    """Run a script in a shell whose `ipfsmem` is this one."""
    there = {**os.environ, "IPFSMEM_HOME": str(cli.home)}
    return subprocess.run(
        ["sh", "-c", f'ipfsmem() {{ "{sys.executable}" -m ipfsmem.cli "$@"; }}\n{script}'],
        capture_output=True,
        timeout=60,
        env=there,
    )


@POSIX
def test_write_and_list_run_with_closed_standard_streams(cli: Cli) -> None:
    done = shell(cli, "ipfsmem write tone --body x >&- && ipfsmem list <&- 2>&- && ipfsmem write other - <&-")
    assert done.stdout.startswith(b"tone\t") and done.returncode == 2, done
    assert b"the text is empty" in done.stderr and b"Attribute" not in done.stderr


#: Commands whose purpose is their output, and their arguments.
OUTPUT_COMMANDS = [
    "read tone", "list", "history tone", "timeline show", "export", "export --out -", "export --zip /dev/stdout", "status", "vault log",
    "conflicts", "vault check", "folder list", "scope list", "provider list", "format cid notes.txt", "format cid notes.txt --car -", "format inspect notes.txt",
    "open notes.txt", "key derive", "--version", "--help", "list --help",
]  # fmt: skip


@POSIX
def test_command_with_closed_output_changes_nothing_and_fails(cli: Cli, tmp_path: Path) -> None:
    cli.ok("write", "tone", "--body", "x")
    (tmp_path / "notes.txt").write_text("x")
    told = shell(
        cli,
        f"cd '{tmp_path}'\n"
        + "\n".join(f'ipfsmem {one} >&- 2>/dev/null; echo "{one}: $?"' for one in OUTPUT_COMMANDS),
    )
    codes = dict(line.rsplit(": ", 1) for line in told.stdout.decode().splitlines())
    assert set(codes) == set(OUTPUT_COMMANDS) and set(codes.values()) == {"2"}, codes
    # The hint is followed.
    sent = shell(cli, f"ipfsmem export > '{tmp_path}/all.json' && ipfsmem read tone > /dev/null")
    assert sent.returncode == 0 and b'"tone.md"' in (tmp_path / "all.json").read_bytes()
    # A command that works without output continues: a parent that closes its streams does not listen.
    done = shell(
        cli,
        "ipfsmem write more --body y >&- && ipfsmem export --out all.json --overwrite >&- && ipfsmem forget tone >&-",
    )
    assert done.returncode == 0, done
    assert [item["key"] for item in cli.ok("list", "--json").json["memories"]] == ["more"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_command_with_output_on_full_disk_does_not_exit_0(cli: Cli, tmp_path: Path) -> None:
    cli.ok("write", "tone", "--body", "x")
    (tmp_path / "notes.txt").write_text("x")
    # Commands without output are left out.
    nothing = {
        "vault log",
        "timeline show",
        "conflicts",
        "key derive",
        "open notes.txt",
        "format inspect notes.txt",
        "scope list",
        "provider list",
    }
    shown = [one for one in OUTPUT_COMMANDS if one not in nothing]
    told = shell(
        cli,
        f"cd '{tmp_path}'\n"
        + "\n".join(f'ipfsmem {one} >/dev/full 2>/dev/null; echo "{one}: $?"' for one in shown),
    )
    codes = dict(line.rsplit(": ", 1) for line in told.stdout.decode().splitlines())
    assert set(codes.values()) == {"30"}, codes


def test_export_into_the_folder_of_the_vault_is_refused(cli: Cli, tmp_path: Path) -> None:
    cli.ok("write", "tone", "--body", "x")
    own = cli.home / "default"
    link = tmp_path / "link"
    link.symlink_to(own)
    before = sorted(own.rglob("*"))
    for where in (own / "all", own / "state.db", own / "memory" / "all", link / "all", own):
        for form in ("--out", "--dir", "--zip", "--plain-car", "--car"):
            refused = cli.fails(2, "export", form, str(where))
            assert "is in the vault's own folder" in refused.err
    for form in ("--out", "--dir", "--zip", "--plain-car", "--car"):
        cli.fails(2, "export", form, "")
    assert sorted(own.rglob("*")) == before and cli.ok("read", "tone", "--body").out == "x\n"
    cli.ok("export", "--zip", str(cli.home / "default.zip"))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_version_that_cannot_be_printed_is_an_error(cli: Cli) -> None:
    done = shell(cli, "ipfsmem --version > /dev/full")
    assert done.returncode == 30 and b"Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_context_not_delivered_to_a_session_is_delivered_again(cli: Cli) -> None:
    cli.ok("write", "tone", "--body", "Direct answers.")
    asked = ("context", "--query", "direct answers", "--session", "standup")
    done = shell(cli, f"ipfsmem {' '.join(asked).replace('direct answers', 'direct')} > /dev/full; echo $?")
    assert done.stdout.split() == [b"30"]
    assert "Direct answers." in cli.ok(*asked).out and cli.ok(*asked).out == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_full_output_device_has_its_exit_code(cli: Cli) -> None:
    """Python's own exit code would be 120."""
    cli.ok("write", "tone", "--body", "x")
    done = shell(cli, "ipfsmem list > /dev/full; echo $?; ipfsmem read nothing 2> /dev/full; echo $?")
    assert done.stdout.split() == [b"30", b"4"]
    assert b"the disk is full" in done.stderr and b"Exception" not in done.stderr


WORDS = "init -n new --no-wallet --unprotected-keys", "key phrase --revoke-old -n old"


@POSIX
@pytest.mark.parametrize("call", WORDS)
@pytest.mark.parametrize("form", ["", " --json"])
def test_recovery_phrase_is_not_created_with_closed_output(
    cli: Cli, stick: Path, call: str, form: str
) -> None:
    cli.ok("init", "-n", "old", "--no-wallet", "--unprotected-keys", "--provider", str(stick))
    cli.ok("key", "phrase", "-n", "old")
    members = cli.ok("member", "list", "-n", "old").out
    done = shell(cli, f"ipfsmem {call}{form} >&-")
    assert done.returncode == 2 and b"standard output is closed" in done.stderr
    assert not (cli.home / "new").exists() and cli.ok("member", "list", "-n", "old").out == members


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("call", WORDS)
def test_recovery_phrase_that_could_not_be_shown_is_reported(cli: Cli, stick: Path, call: str) -> None:
    cli.ok("init", "-n", "old", "--no-wallet", "--unprotected-keys", "--provider", str(stick))
    first = cli.ok("key", "phrase", "-n", "old", "--json").json["id"]
    done = shell(cli, f"ipfsmem {call} --json > /dev/full")
    assert done.returncode == 30 and b"could not be shown" in done.stderr and b"key phrase" in done.stderr
    assert first in cli.ok("member", "list", "-n", "old").out


@POSIX
@pytest.mark.parametrize("form", ["--out", "--zip", "--plain-car"])
def test_export_replaces_no_pipe_device_or_link(cli: Cli, tmp_path: Path, form: str) -> None:
    """As root, it would replace /dev/stdout for every program."""
    cli.ok("write", "tone", "--body", "x")
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_bytes(b"old")
    link.symlink_to(real)
    assert "exists already" in cli.fails(2, "export", form, str(link)).err
    cli.ok("export", form, str(link), "--overwrite")
    assert link.is_symlink() and real.stat().st_size > 100
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        cli.ok("export", "--out", str(pipe))
        assert b'"tone.md"' in os.read(reader, 65536)
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.lstat().st_mode)


@POSIX
def test_dash_is_standard_output(cli: Cli, tmp_path: Path) -> None:
    cli.ok("write", "tone", "--body", "x")
    assert cli.ok("export", "--out", "-").out_bytes == cli.ok("export").out_bytes
    taken = tmp_path / "all.zip"
    taken.write_bytes(shell(cli, "ipfsmem export --zip -").stdout)
    cli.ok("init", "-n", "copy", "--mode", "local")
    assert "1 new" in cli.ok("import", str(taken), "-n", "copy").out
    assert not Path("-").exists()


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="there is no /dev/stdout")
def test_export_to_dev_stdout_prints_only_the_archive(cli: Cli, tmp_path: Path) -> None:
    cli.ok("write", "tone", "--body", "x")
    whole = tmp_path / "all.zip"
    assert shell(cli, f"ipfsmem export --zip /dev/stdout > '{whole}'").returncode == 0
    with zipfile.ZipFile(whole) as archive:
        assert archive.testzip() is None and archive.namelist()


@POSIX
def test_failed_export_through_a_link_keeps_the_target(cli: Cli, tmp_path: Path) -> None:
    cli.ok("write", "tone", "--body", "x")
    real, link = tmp_path / "monday.car", tmp_path / "latest.car"
    real.write_bytes(b"of monday")
    link.symlink_to(real)
    assert cli("export", "--car", str(link), "--root", "bafkqaaa", "--overwrite").code != 0
    assert real.read_bytes() == b"of monday" and link.is_symlink()
    cli.ok("export", "--zip", str(link), "--overwrite")
    assert link.is_symlink() and zipfile.is_zipfile(real) and stat.S_IMODE(real.stat().st_mode) == 0o600


@POSIX
@pytest.mark.parametrize("form", ["--out", "--zip", "--plain-car"])
def test_exported_plain_text_is_readable_only_by_its_owner(cli: Cli, tmp_path: Path, form: str) -> None:
    cli.ok("write", "tone", "--body", "x")
    where = tmp_path / "all"
    cli.ok("export", form, str(where))
    assert stat.S_IMODE(where.stat().st_mode) == 0o600


def test_repeated_event_field_is_refused(cli: Cli) -> None:
    cli.fails(2, "timeline", "add", "seen", "place=here", "place=there")
    cli.fails(2, "timeline", "add", "seen", "place=here", "place:=3")
    assert cli.ok("timeline", "show").out == ""
    cli.ok("timeline", "add", "seen", "place:=[1, 2]")
    assert cli.ok("timeline", "show", "--json").json["events"][0]["place"] == [1, 2]


def test_commands_useful_without_output_exist() -> None:
    """A misspelt name in the list would refuse a command that only does its work."""
    names = {one.replace(" ", "_") for one in leaves(group)} | {*HIDDEN}
    assert (
        names >= USEFUL_WITHOUT_OUTPUT
        and {"export", "sync"} <= USEFUL_WITHOUT_OUTPUT
        and not {"read", "member_list"} & USEFUL_WITHOUT_OUTPUT
    )
