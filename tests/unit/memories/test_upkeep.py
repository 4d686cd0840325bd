"""Compacting and cleaning up: freed space is reported, and no only copy is deleted."""

from __future__ import annotations

import asyncio
import os
from collections import namedtuple
from pathlib import Path

import pytest

from ipfsmem.device.recall_image import VERSION
from ipfsmem.device.replica import Environment
from ipfsmem.device.tables import reports
from ipfsmem.errors import (
    IncompleteError,
    LockedError,
    NotFoundError,
    ProviderUnavailable,
    StorageError,
    UsageError,
)
from ipfsmem.memories import search_index
from ipfsmem.memory import Memory
from ipfsmem.testing import MockClock
from ipfsmem.vault.home import Home
from tests.support.device_lab import ROOT

DAY = 86_400
Usage = namedtuple("Usage", "total used free")


@pytest.mark.parametrize("mode", ["local", "encrypted-ipfs"])
def test_vacuum_frees_space_and_changes_no_text(tmp_path: Path, mode: str) -> None:
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
        memory.maintenance.vacuum()  # on a loaded machine the first log may remain
        assert abs(memory.maintenance.vacuum().freed) < 5_000
        memory.write("after", "it goes on")
    with Memory.load("m", home=tmp_path, passphrase=False) as again:
        assert len(again) == 42


def test_failed_vacuum_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory.create("m", "local", home=tmp_path) as memory, Memory.load("m", home=tmp_path) as other:
        memory.write("tone", "direct")
        file = tmp_path / "m" / "state.db"
        memory.replica.db.empty_log()
        data = file.read_bytes()
        with monkeypatch.context() as patch:
            patch.setattr("shutil.disk_usage", lambda path: Usage(10, 10, 0))
            with pytest.raises(StorageError, match="bytes of free space"):
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


def test_cleanup_names_and_removes_old_files_that_are_not_only_copies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_index, "_FEW", 0)
    clock = MockClock()
    home = Home(folder=tmp_path, environment=Environment(now=lambda: clock.ms))
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
            with pytest.raises(UsageError, match="older_than must be 3600-"):
                memory.maintenance.cleanup(less)


def test_sealed_operation_list_is_still_sealed_after_a_cleanup(tmp_path: Path) -> None:
    clock = MockClock()
    home = Home(folder=tmp_path, environment=Environment(now=lambda: clock.ms))
    with Memory.create("m", "encrypted-ipfs", home=home, passphrase=False, provider=str(tmp_path)) as memory:
        memory.write("old", "x")
        clock.advance(3 * DAY)
        memory.write("canary", "x")
        assert memory.maintenance.cleanup(2 * DAY).operations == 1
        assert [one.key for one in memory.operations.list()] == ["", "canary"]
        file = tmp_path / "m" / "operations"
        file.write_bytes(file.read_bytes() + bytes(file.stat().st_size // 2))
        assert memory.maintenance.cleanup(2 * DAY).operations == 1  # a line that does not open
        assert [one.key for one in memory.operations.list()] == ["", "", "canary"]
        assert b"canary" not in (tmp_path / "m" / "operations").read_bytes()


@pytest.mark.parametrize("wrong", [0.0, 3_599.0, -1.0, float("nan"), float("inf"), 1e30])
def test_invalid_cleanup_age_is_refused(tmp_path: Path, wrong: float) -> None:
    with Memory.load("x", "local", home=tmp_path) as memory, pytest.raises(UsageError):
        memory.maintenance.cleanup(wrong)


def test_unreadable_operation_list_is_a_finding(tmp_path: Path) -> None:
    with Memory.load("x", mode="local", home=tmp_path) as memory:
        memory.write("a", "x")
        (listed,) = tmp_path.rglob("operations")
        listed.unlink()
        listed.mkdir()
        (finding,) = [one for one in memory.check() if one.code == "operations"]
        assert finding.level == "error" and str(listed) in finding.text


def _published(tmp_path: Path, clock: MockClock | None = None) -> Memory:
    (tmp_path / "stick").mkdir()
    return Memory.create(
        "m",
        "encrypted-ipfs",
        home=_home(tmp_path, "first", clock),
        unlock=ROOT,
        passphrase=False,
        provider=str(tmp_path / "stick"),
    )


def _home(tmp_path: Path, name: str, clock: MockClock | None) -> Home:
    world = Environment() if clock is None else Environment(now=lambda: clock.ms)
    return Home(folder=tmp_path / name, label=name, environment=world)


def test_compact_dry_run_changes_no_file_and_names_what_compact_frees(tmp_path: Path) -> None:
    with _published(tmp_path) as memory:
        for number in range(40):
            memory.write(f"k{number}", os.urandom(4_000).hex())
        asyncio.run(memory.sync())
        for number in range(40):
            memory.forget(f"k{number}")
        asyncio.run(memory.sync())
        asyncio.run(memory.maintenance.compact(dry_run=True))  # it syncs first
        memory.replica.db.empty_log()
        files = {path: path.read_bytes() for path in tmp_path.rglob("*.p*") if path.is_file()}
        said = asyncio.run(memory.maintenance.compact(dry_run=True))
        assert {path: path.read_bytes() for path in files} == files
        assert said.dry_run and said.versions and said.leftovers and said.files and not said.problems
        memory.replica.db.empty_log()
        alone = asyncio.run(memory.maintenance.compact(only=["files"], dry_run=True)).files
        done = asyncio.run(memory.maintenance.compact(only=["files"])).files
        assert alone and done and 0 < alone.freed <= done.freed
        assert not memory.list() and not [one for one in memory.check() if one.level == "error"]


def test_failing_part_of_a_compact_is_named_and_the_others_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _published(tmp_path) as memory:
        memory.write("tone", "direct")
        asyncio.run(memory.sync())
        (tmp_path / "stick").rename(tmp_path / "away")
        done = asyncio.run(memory.maintenance.compact())
        assert (done.versions, [*done.problems]) == (None, ["versions"])
        assert done.leftovers is not None and done.files is not None and done.files.after["state.db"] > 0
        with pytest.raises(IncompleteError, match=r"versions: .*stick"):
            done.raise_if_incomplete()
        with pytest.raises(ProviderUnavailable):
            asyncio.run(memory.maintenance.compact(only=["versions"]))
        (tmp_path / "away").rename(tmp_path / "stick")
        monkeypatch.setattr("shutil.disk_usage", lambda path: Usage(10, 10, 0))
        done = asyncio.run(memory.maintenance.compact())
        assert done.versions is not None and [*done.problems] == ["files"]
        with pytest.raises(IncompleteError, match="bytes of free space"):
            done.raise_if_incomplete()


def test_refused_compact_does_nothing(tmp_path: Path) -> None:
    with _published(tmp_path) as memory:
        memory.write("tone", "direct")
        asyncio.run(memory.sync())
        before = [one.operation for one in memory.operations.list()]
        for only, older_than, error in (
            (["everything"], None, UsageError),
            ((), 60.0, UsageError),
            ("leftovers", float("nan"), UsageError),
        ):
            with pytest.raises(error):
                asyncio.run(memory.maintenance.compact(only=only, older_than=older_than))
        assert [one.operation for one in memory.operations.list()] == before
        with pytest.raises(NotFoundError):
            asyncio.run(memory.maintenance.compact(drop_guarded="nobody"))
        assert {one.operation for one in memory.operations.list()} - {*before} == {"gc"}


def test_compact_of_local_vault_omits_versions_and_refuses_them_by_name(tmp_path: Path) -> None:
    with Memory.create("m", "local", home=tmp_path) as memory:
        memory.write("tone", "direct")
        done = asyncio.run(memory.maintenance.compact())
        assert done.versions is None and done.leftovers and done.files and not done.problems
        with pytest.raises(UsageError, match="is never published"):
            asyncio.run(memory.maintenance.compact(only=["versions"]))


def test_compact_keeps_blocks_needed_by_a_device_that_is_behind(tmp_path: Path) -> None:
    clock = MockClock()

    def back(name: str) -> Memory:
        home = _home(tmp_path, name, clock)
        return asyncio.run(
            Memory.recover("m", provider=str(tmp_path / "stick"), unlock=ROOT, passphrase=False, home=home)
        )

    with _published(tmp_path, clock) as memory:
        memory.write("tone", "direct")
        asyncio.run(memory.sync())
        with back("other") as other:
            asyncio.run(memory.sync())
            for number in range(6):
                clock.advance(3 * DAY)
                memory.write("tone", f"direct {number}")
                asyncio.run(memory.sync())
            done = asyncio.run(memory.maintenance.compact(keep_roots=1, keep_days=1))
            assert done.versions is not None and any(not one.keep for one in done.versions.here)
            report = asyncio.run(other.sync())
            assert not report.damaged and other.read("tone").body.strip() == "direct 5"
            other.write("role", "writes")
            asyncio.run(other.sync())
            asyncio.run(memory.maintenance.compact(keep_roots=1, keep_days=1))
            assert memory.read("role").body.strip() == "writes"
        with back("third") as third:
            assert [one.key for one in third.list()] == ["role", "tone"]
