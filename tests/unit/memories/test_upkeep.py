"""Compacting and cleaning up: what is freed is said, and no only copy goes."""

from __future__ import annotations

import os
from collections import namedtuple
from pathlib import Path

import pytest

from ipfsmem.device.recall_image import VERSION
from ipfsmem.device.replica import World
from ipfsmem.device.tables import reports
from ipfsmem.errors import LockedError, StorageError, UsageError
from ipfsmem.memories import search_index
from ipfsmem.memory import Memory
from ipfsmem.testing import MockClock
from ipfsmem.vault.home import Home

DAY = 86_400
Usage = namedtuple("Usage", "total used free")


@pytest.mark.parametrize("mode", ["local", "encrypted-ipfs"])
def test_a_vacuum_frees_what_changes_left_and_the_memory_says_the_same(tmp_path: Path, mode: str) -> None:
    more = {} if mode == "local" else {"provider": str(tmp_path), "passphrase": False}
    with Memory.create("m", mode, home=tmp_path, **more) as memory:  # type: ignore[arg-type]
        for number in range(40):
            memory.write(f"k{number}", os.urandom(4_000).hex())
        memory.write("tone", "direct")
        for number in range(40):
            memory.write(f"k{number}", "short")
        before = {key: memory.read(key) for key in memory}
        done = memory.maintenance.vacuum()
        assert set(done.before) >= {"state.db"} and done.freed > 100_000
        assert done.freed == sum(done.before.values()) - sum(done.after.values())
        assert {key: memory.read(key) for key in memory} == before and len(memory) == 41
        assert not [one for one in memory.check() if one.level == "error"]
        memory.maintenance.vacuum()  # a busy machine may have left the log of the first one
        assert abs(memory.maintenance.vacuum().freed) < 5_000
        memory.write("after", "it goes on")
    with Memory.load("m", home=tmp_path, passphrase=False) as again:
        assert len(again) == 42


def test_a_vacuum_that_cannot_be_leaves_everything_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory.create("m", "local", home=tmp_path) as memory, Memory.load("m", home=tmp_path) as other:
        memory.write("tone", "direct")
        file = tmp_path / "m" / "state.db"
        memory.replica.db.empty_log()
        data = file.read_bytes()
        with monkeypatch.context() as patch:
            patch.setattr("shutil.disk_usage", lambda path: Usage(10, 10, 0))
            with pytest.raises(StorageError, match="bytes of room"):
                memory.maintenance.vacuum()
        with monkeypatch.context() as patch:
            patch.setattr(memory.replica.db, "verdict", lambda: "row 7 missing from index")
            with pytest.raises(StorageError, match="left as it is: row 7"):
                memory.maintenance.vacuum()
        assert file.read_bytes() == data
        memory.replica.db._wait = 0.1
        with other.replica.transaction(), pytest.raises(LockedError):
            memory.maintenance.vacuum()
        other.write("tone", "softer")
        assert memory.maintenance.vacuum().after["state.db"] > 0


def test_what_is_old_and_no_only_copy_goes_and_is_named_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_index, "_FEW", 0)
    clock = MockClock()
    home = Home(folder=tmp_path, world=World(now=lambda: clock.ms))
    with Memory.create("m", "local", home=home) as memory:
        memory.write("tone", "direct")
        memory.write("tone", "softer")
        memory.recall("softer")
        with memory.replica.transaction():
            reports.add(memory.replica.db.connection, reports.ReportRow(clock.ms, "secret", "old news"))
    folder = tmp_path / "m"
    left = [folder / ".state.json.0123456789abcdef.tmp", folder / "open-17.html"]
    others = [folder / "notes.tmp", folder / ".mine.tmp", folder / "memory" / ".x.0123456789abcdef.tmp"]
    for path in (*left, *others):
        path.write_text("x" * 10)
    for path in folder.rglob("*"):
        os.utime(path, (clock.ms / 1000, clock.ms / 1000))
    clock.advance(3 * DAY)
    with Memory.load("m", home=home) as memory:
        memory.note("said")
        before = {
            path: path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file() and path.suffix != ".db-shm"
        }
        said = memory.maintenance.cleanup(2 * DAY, dry_run=True)
        assert {path: path.read_bytes() for path in before} == before
        assert set(said.files) == {f"recall-v{VERSION}.image", *(path.name for path in left)}
        assert said.bytes == sum(said.files.values()) and (said.operations, said.notices) == (3, 1)
        assert memory.maintenance.cleanup(4 * DAY).files == {}
        done = memory.maintenance.cleanup(2 * DAY)
        assert (done.files, done.operations, done.notices) == (said.files, said.operations, said.notices)
        assert not any(path.exists() for path in left) and all(path.exists() for path in others)
        assert [one.operation for one in memory.operations.list()] == ["cleanup", "cleanup", "note"]
        again = memory.maintenance.cleanup(2 * DAY)
        assert (again.files, again.operations, again.notices) == ({}, 0, 0)
        assert memory.recall("softer").hits and memory.undo().key == "tone"
        for less in (0, 3_599.0, -5, float("nan")):
            with pytest.raises(UsageError, match="hour"):
                memory.maintenance.cleanup(less)


def test_a_sealed_list_of_operations_is_still_sealed_after_a_cleanup(tmp_path: Path) -> None:
    clock = MockClock()
    home = Home(folder=tmp_path, world=World(now=lambda: clock.ms))
    with Memory.create("m", "encrypted-ipfs", home=home, passphrase=False, provider=str(tmp_path)) as memory:
        memory.write("old", "x")
        clock.advance(3 * DAY)
        memory.write("canary", "x")
        assert memory.maintenance.cleanup(2 * DAY).operations == 1
        assert [one.key for one in memory.operations.list()] == ["", "canary"]
        file = tmp_path / "m" / "operations"
        file.write_bytes(file.read_bytes() + bytes(file.stat().st_size // 2))
        assert memory.maintenance.cleanup(2 * DAY).operations == 1  # what does not open
        assert [one.key for one in memory.operations.list()] == ["", "", "canary"]
        assert b"canary" not in (tmp_path / "m" / "operations").read_bytes()


@pytest.mark.parametrize("wrong", [0.0, 3_599.0, -1.0, float("nan"), float("inf"), 1e30])
def test_a_time_that_is_none_is_refused(tmp_path: Path, wrong: float) -> None:
    with Memory.load("x", "local", home=tmp_path) as memory, pytest.raises(UsageError):
        memory.maintenance.cleanup(wrong)


def test_a_list_of_operations_that_cannot_be_read_is_a_finding(tmp_path: Path) -> None:
    with Memory.load("x", mode="local", home=tmp_path) as memory:
        memory.write("a", "x")
        (listed,) = tmp_path.rglob("operations")
        listed.unlink()
        listed.mkdir()
        (finding,) = [one for one in memory.check() if one.code == "operations"]
        assert finding.level == "error" and str(listed) in finding.text
