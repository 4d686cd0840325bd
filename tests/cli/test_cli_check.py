"""`ipfsmem vault check`."""

from __future__ import annotations

import contextlib
import sqlite3

import pytest

from ipfsmem.errors import StorageError
from tests.support.cli_lab import Cli
from tests.support.device_lab import Lab


def test_check_of_a_sound_vault_reports_no_errors(sealed: Cli) -> None:
    sealed.ok("write", "tone", "--body", "x")
    said = sealed.ok("vault", "check", "--json").json
    assert said["errors"] == 0 and {"database", "blocks"} <= {f["code"] for f in said["findings"]}
    assert "✓" in sealed.ok("vault", "check").out


def lose_texts(sealed: Cli) -> None:
    """Change the bytes of every text of this vault on disk."""
    with contextlib.closing(sqlite3.connect(sealed.home / "default" / "state.db")) as db, db:
        assert db.execute(
            "UPDATE blocks SET data = zeroblob(length(data)) WHERE digest IN (SELECT digest FROM objects)"
        ).rowcount


def test_text_damaged_on_disk_is_restored_by_the_next_sync(sealed: Cli) -> None:
    """The hint "try again after a sync" is true in a new process, whichever command met the damage."""
    sealed.ok("write", "tone", "--body", "x")
    sealed.ok("sync")
    for meet in (["read", "tone"], ["vault", "check"]):
        lose_texts(sealed)
        assert sealed(*meet).code != 0
        sealed.ok("sync")
        assert sealed.ok("read", "tone", "--body").out == "x\n"
        assert sealed.ok("vault", "check", "--json").json["errors"] == 0


def lose_state(cli: Cli, prefix: str = "", what: str = "data") -> None:
    """Damage a part of the state on disk: its bytes, or the row with their location."""
    with contextlib.closing(sqlite3.connect(cli.home / "default" / "state.db")) as db, db:
        change = {
            "data": "UPDATE blocks SET data = zeroblob(length(data)) WHERE digest IN (SELECT file FROM nodes WHERE prefix=?)",
            "file": "UPDATE nodes SET file = zeroblob(32) WHERE prefix=?",
            "hash": "UPDATE nodes SET hash = zeroblob(32) WHERE prefix=?",
        }
        assert db.execute(change[what], (prefix,)).rowcount == 1


@pytest.mark.parametrize("what", ["data", "file", "hash"])
def test_damaged_state_block_is_reported_and_restored_by_sync(sealed: Cli, what: str) -> None:
    sealed.ok("write", "tone", "--body", "x")
    sealed.ok("sync")
    lose_state(sealed, what=what)
    read = sealed.fails(30, "read", "tone")
    assert "damaged" in read.err and "ipfsmem sync" in read.err and "space" not in read.err
    said = sealed("vault", "check", "--json")
    assert said.code == 1
    codes = [finding["code"] for finding in said.json["findings"]]
    assert {"files", "state-damaged", "members"} <= set(codes), "it goes on behind what is damaged"
    sealed.ok("sync")
    assert sealed.ok("read", "tone", "--body").out == "x\n"
    assert sealed.ok("vault", "check", "--json").json["errors"] == 0
    sealed.ok("write", "role", "--body", "y")
    sealed.ok("sync")


def test_damaged_tree_blocks_of_another_device_are_restored_by_sync(lab: Lab) -> None:
    """A device that adopted another's root has published none of these blocks itself."""
    a, b, _ = lab.three()
    for n in range(200):
        a.write(f"k{n}", f"text {n}")
    lab.sync(a)
    lab.sync(b)
    assert b.replica.db.get_meta("root") == a.replica.db.get_meta("root")
    run = b.replica.db.connection
    run.execute("UPDATE blocks SET data=x'00' WHERE digest IN (SELECT file FROM nodes)")
    b.replica.store.mark_outdated()
    b = lab.open("b")
    found = b.check()
    assert any(finding.code == "state-damaged" for finding in found)
    with pytest.raises(StorageError, match="damaged"):
        b.files()
    lab.sync(b)
    assert len(b.files()) == 200 and not [f for f in b.check() if f.level == "error"]
    b.write("more", "written afterwards")
    lab.sync(b)
    lab.sync(a)
    assert a.files() == b.files()


def test_damage_without_another_copy_remains_and_is_reported(lab: Lab) -> None:
    a, _, _ = lab.three()
    a.write("k", "published")
    lab.sync(a)
    a.write("k2", "written since, and nowhere else")
    with a.replica.transaction():
        a.replica.store.checkpoint(folders=True)
    a.replica.db.connection.execute("UPDATE nodes SET file=zeroblob(32) WHERE prefix=''")
    a = lab.open("a")
    for _ in range(2):
        with pytest.raises(StorageError, match="damaged"):
            lab.sync(a)
        assert [f.code for f in a.check() if f.level == "error"].count("state-damaged") == 1


def test_check_of_a_damaged_vault_exits_with_an_error_code(sealed: Cli) -> None:
    sealed.ok("write", "tone", "--body", "x")
    sealed.ok("sync")
    assert sealed.ok("vault", "check", "--json").json["errors"] == 0
    lose_texts(sealed)
    result = sealed("vault", "check", "--json")
    assert result.code == 1 and result.json["errors"] >= 1
    sealed.ok("sync")
    lose_texts(sealed)
    assert "✗" in sealed("vault", "check").out


def test_check_restores_missing_files_on_request(cli: Cli) -> None:
    cli.ok("write", "tone", "--body", "x")
    (cli.home / "default" / "memory" / "tone.md").unlink()
    assert cli.ok("vault", "check", "--restore-files", "--json").json["restored_files"] >= 1
    assert (cli.home / "default" / "memory" / "tone.md").exists()


def test_clock_far_in_the_future_is_reset(cli: Cli) -> None:
    from ipfsmem.causal.clock import hlc
    from ipfsmem.device.state import StateHeader
    from ipfsmem.memory import Memory

    cli.fails(2, "vault", "check", "--clock-is-right")
    with Memory.load("default", home=cli.home) as memory, memory.replica.transaction():
        frame = memory.replica.store.frame
        memory.replica.store.apply({}, StateHeader(frame.ctx, frame.seen, hlc(2**42)))
    cli.ok("write", "tone", "--body", "x")
    assert "2109-05-15" in cli.ok("vault", "check").out and "--clock-is-right" in cli.ok("vault", "check").out
    assert "minutes back" in cli.ok("vault", "check", "--clock-is-right").out
    assert "clock-is-right" not in cli.ok("vault", "check").out


def test_health_lists_operations_and_agent_access(sealed: Cli) -> None:
    sealed.ok("write", "tone", "--body", "x")
    sealed.ok("recall", "nothing")
    said = {one["code"]: one for one in sealed.ok("vault", "check", "--json").json["findings"]}
    assert said["operations"]["text"].startswith("operations noted here: 1 recall, 1 write")
    assert (
        said["agents"]["text"] == "agents are switched on; no automatic dream: the settings do not allow it"
    )
    assert {"database", "blocks", "state", "members", "files", "operations", "agents"} <= said.keys()
