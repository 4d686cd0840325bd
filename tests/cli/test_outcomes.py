"""Every outcome of every command: the table is complete, each row is run, and no failure exits with 0."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

from ipfsmem.cli.app import HIDDEN, group
from ipfsmem.device import database, lock
from ipfsmem.device.kernel_keyring import has_kernel_keyring
from tests.support.cli_lab import Cli
from tests.support.extras import need_extra
from tests.support.outcomes import ROWS, Place, Row


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Return every executable command of the tree."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from leaves(below, (*path, name))
    else:
        yield " ".join(path)


def test_every_command_is_in_the_table_of_outcomes() -> None:
    """A new command needs a row for success and one for failure."""
    commands = list(leaves(group))
    assert {row.command for row in ROWS} - {*HIDDEN} == set(commands)
    good = {row.command for row in ROWS if row.code == 0}
    assert set(commands) - good <= {"demo"}, "its good end is test_cli_demo.py, which takes seconds"
    always = {
        "scope list",
        "status",
        "member list",
        "folder list",
        "provider list",
        "index status",
        "token list",
        "config path",
        "plugin list",
        "value sweep",
        "vault list",
    }
    always |= {"service status", "version"}
    assert set(commands) - {row.command for row in ROWS if row.code} == always, "these only show"


def test_each_row_runs_its_own_command() -> None:
    for row in ROWS:
        assert row.run.startswith(row.command), row
    assert len({(row.command, row.outcome) for row in ROWS}) == len(ROWS)


#: Outcomes of `unlock` and `lock` in containers without a place for keys.
NEED_KEYRING = ("unlocked", "wrong passphrase", "locked; a linked folder could not be scanned")


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.command}: {row.outcome}" for row in ROWS])
def test_each_outcome_has_its_exit_code(row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if row.outcome in NEED_KEYRING and not has_kernel_keyring():
        pytest.skip("no keyring of the kernel here")
    place = Place(tmp_path, monkeypatch, row.mode)
    place.ok(*row.before)
    if row.prepare is not None:
        row.prepare(place)
    done = place.run(row.run)
    assert done.code == row.code, done
    assert "Traceback" not in done.err + done.out
    if row.code:  # the error names what did not happen
        assert (done.err + done.out).strip()
    if row.code not in (0, 1, 27, 40, 44):  # the report names these
        said = row.code in (7, 14) or "merged nothing from the file" in done.out
        assert said or any(line.startswith("ipfsmem: ") for line in done.err.splitlines()), done


# -- any command on a vault -------------------------------------------------------------------------------------------

#: Commands that open no vault, and the one that never fails.
WITHOUT_VAULT = {
    "hook",
    "demo",
    "connect",
    "disconnect",
    "service install",
    "service status",
    "service uninstall",
    "init",
    "recover",
    "open",
    "key derive",
    "provider policy",
    "provider test",
    "serve peer",
    "format cid",
    "format inspect",
    "lock",
    "unlock",
    "token revoke",
    "ui",
    "config show",
    "config set",
    "config path",
    "help",
    "vault list",
    "version",
}
WITH_VAULT = sorted({row.run for row in ROWS if row.code == 0 and row.command not in WITHOUT_VAULT})


def calls(place: Place) -> list[str]:
    """Return one call of each command; arguments that would have to be looked up are arbitrary."""
    fill = {"ROOT": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi", "SEEN": "00000000"}
    return [" ".join(fill.get(word, word) for word in call.split(" ")) for call in WITH_VAULT]


def assert_exit_codes(place: Place, code: int, waiting: frozenset[str] = frozenset()) -> None:
    said = {}
    for call in calls(place):
        if call in waiting or (call == "serve mcp" and find_spec("mcp") is None):
            continue
        done = place.run(call)
        if done.code != code or "Traceback" in done.err or not done.err.startswith("ipfsmem: "):
            said[call] = done
    assert said == {}, sorted(said)


def test_every_command_without_a_vault_exits_with_4(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_exit_codes(Place(tmp_path, monkeypatch, "none"), 4)


def test_every_command_without_the_passphrase_exits_with_22(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path, monkeypatch, "sealed")
    place.ok("key passphrase --new-passphrase-fd NEWFD")
    # Programs start `mcp` with themselves: it waits for an unlock, and each tool says so.
    assert_exit_codes(place, 22, waiting=frozenset({"serve mcp"}))


def test_every_command_on_a_damaged_database_exits_with_30(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path, monkeypatch, "sealed")
    database = place.cli.home / "default" / "state.db"
    database.write_bytes(b"no database " * 4000)
    for tail in ("-wal", "-shm"):
        database.with_name(f"state.db{tail}").unlink(missing_ok=True)
    assert_exit_codes(place, 30)


def test_every_command_on_an_unusable_database_path_exits_with_30(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path, monkeypatch, "local")
    database = place.cli.home / "default" / "state.db"
    database.unlink()
    database.mkdir()
    assert_exit_codes(place, 30)


@pytest.mark.parametrize(("state", "code"), [("none", 4), ("local", 30)])
def test_serve_mcp_refuses_a_missing_or_damaged_vault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str, code: int
) -> None:
    """The tests above exclude it where mcp is not installed."""
    need_extra("mcp", "mcp")
    place = Place(tmp_path, monkeypatch, state)
    if state != "none":
        (place.cli.home / "default" / "state.db").write_bytes(b"no database " * 4000)
        for tail in ("-wal", "-shm"):
            (place.cli.home / "default" / f"state.db{tail}").unlink(missing_ok=True)
    done = place.run("serve mcp")
    assert done.code == code and done.err.startswith("ipfsmem: ") and "Traceback" not in done.err


@pytest.mark.parametrize("mode", ["local", "sealed"])
def test_full_disk_is_reported_and_leaves_no_partial_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """No file can grow, as on a full disk or at a quota."""
    place = Place(tmp_path, monkeypatch, mode)
    place.ok("write tone --body x")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    outcomes = {}
    for call in ("write more --body y", "forget tone", "timeline add waved", f"export --out {tmp_path}/o.json", "import BASE/note.md",
                 "key passphrase --new-passphrase-fd NEWFD", "sync", "folder attach PLAIN", "provider add USB"):  # fmt: skip
        if (mode == "local" and call.split()[0] in ("member", "key", "sync")) or (
            mode == "sealed" and call.startswith("folder attach")
        ):
            continue
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
        try:
            outcomes[call] = place.run(call)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert {call: done for call, done in outcomes.items() if done.code != 30 or "Traceback" in done.err} == {}
    assert [row["key"] for row in place.cli.ok("list", "--json").json["memories"]] == ["tone"]
    place.cli.ok("vault", "check")
    assert not list(tmp_path.glob("*.tmp")) and not (tmp_path / "o.json").exists()


def test_write_while_another_process_has_the_lock_exits_with_5(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert database.Database.__init__.__kwdefaults__["wait"] == 10.0
    monkeypatch.setitem(database.Database.__init__.__kwdefaults__, "wait", 0.05)
    with lock.file_lock(cli.home / "default" / "lock"):
        assert "Wait for the other ipfsmem process" in cli.fails(5, "write", "tone", "--body", "x").err
    cli.ok("write", "tone", "--body", "x")


def test_every_command_with_an_unknown_option_exits_with_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path, monkeypatch, "none")
    for command in leaves(group):
        wrong = 0 if command == "hook" else 2
        assert place.run(f"{command} --no-such-option").code == wrong, command
