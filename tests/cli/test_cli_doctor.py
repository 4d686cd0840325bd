"""`ipfsmem doctor`."""

from __future__ import annotations

import contextlib
import sqlite3

from tests.cli_lab import Cli


def test_a_sound_memory(sealed: Cli) -> None:
    sealed.ok("write", "tone", "--body", "x")
    said = sealed.ok("doctor", "--json").json
    assert said["errors"] == 0 and {"database", "blocks"} <= {f["code"] for f in said["findings"]}
    assert "✓" in sealed.ok("doctor").out


def lose_texts(sealed: Cli) -> None:
    """The disk changes the bytes of every text of this memory."""
    with contextlib.closing(sqlite3.connect(sealed.home / "default" / "state.db")) as db, db:
        assert db.execute(
            "UPDATE blocks SET data = zeroblob(length(data)) WHERE digest IN (SELECT digest FROM objects)"
        ).rowcount


def test_a_text_whose_bytes_the_disk_changed_comes_back_with_the_next_sync(sealed: Cli) -> None:
    """What says "try again after a sync" is true in a process of its own, whichever command met the damage."""
    sealed.ok("write", "tone", "--body", "x")
    sealed.ok("sync")
    for meet in (["read", "tone"], ["doctor"]):
        lose_texts(sealed)
        assert sealed(*meet).code != 0
        sealed.ok("sync")
        assert sealed.ok("read", "tone", "--body").out == "x\n"
        assert sealed.ok("doctor", "--json").json["errors"] == 0


def test_damage_is_an_exit_code(sealed: Cli) -> None:
    sealed.ok("write", "tone", "--body", "x")
    sealed.ok("sync")
    assert sealed.ok("doctor", "--json").json["errors"] == 0
    lose_texts(sealed)
    result = sealed("doctor", "--json")
    assert result.code == 1 and result.json["errors"] >= 1
    sealed.ok("sync")
    lose_texts(sealed)
    assert "✗" in sealed("doctor").out


def test_restore_files(cli: Cli) -> None:
    cli.ok("write", "tone", "--body", "x")
    (cli.home / "default" / "memory" / "tone.md").unlink()
    assert cli.ok("doctor", "--restore-files", "--json").json["restored_files"] >= 1
    assert (cli.home / "default" / "memory" / "tone.md").exists()


def test_l16_a_clock_far_ahead_is_put_right(cli: Cli) -> None:
    """Finding L16 on the command line."""
    from ipfsmem.causal.clock import hlc
    from ipfsmem.memory import Memory
    from ipfsmem.replica.store import Frame

    cli.fails(2, "doctor", "--clock-is-right")
    with Memory.load("default", home=cli.home) as memory, memory.replica.transaction():
        frame = memory.replica.store.frame
        memory.replica.store.apply({}, Frame(frame.ctx, frame.seen, hlc(2**42)))
    cli.ok("write", "tone", "--body", "x")
    assert "2109-05-15" in cli.ok("doctor").out and "--clock-is-right" in cli.ok("doctor").out
    assert "minutes back" in cli.ok("doctor", "--clock-is-right").out
    assert "clock-is-right" not in cli.ok("doctor").out
