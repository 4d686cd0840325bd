"""Atomic files, the lock and the database file under failures."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
import threading
import time
from pathlib import Path

import pytest

from ipfsmem import file_durability
from ipfsmem.device import atomic_files, lock
from ipfsmem.device.database import Database
from ipfsmem.device.directory_handle import open_directory
from ipfsmem.device.lock import file_lock, file_lock_async
from ipfsmem.device.tables import reports
from ipfsmem.device.tables.reports import ReportRow
from ipfsmem.errors import ClosedError, ConfigError, LockedError, StorageError


def test_atomic_write_replaces_the_whole_file_privately(tmp_path: Path) -> None:
    """New bytes, mode 0600, no other files."""
    path = tmp_path / "file"
    atomic_files.write_atomic(path, b"one")
    atomic_files.write_atomic(path, b"two")
    assert path.read_bytes() == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["file"]


def test_atomic_write_never_writes_through_an_existing_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim, path = tmp_path / "victim", tmp_path / "file"
    victim.write_bytes(b"somebody else's")
    os.link(victim, tmp_path / f".file.{os.getpid()}.tmp")
    atomic_files.write_atomic(path, b"new")
    assert victim.read_bytes() == b"somebody else's" and path.read_bytes() == b"new"
    assert atomic_files.new_name(path) != atomic_files.new_name(path)
    # Even a guessed name is not written through.
    monkeypatch.setattr(atomic_files, "new_name", lambda where: str(tmp_path / "guessed"))
    os.link(victim, tmp_path / "guessed")
    with pytest.raises(StorageError, match="file"):
        atomic_files.write_atomic(path, b"newer")
    assert victim.read_bytes() == b"somebody else's" and path.read_bytes() == b"new"


def test_macos_flushes_to_the_disk_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`fsync` on macOS leaves the bytes in the drive; F_FULLFSYNC does not. Disks without it use fsync."""

    class MacOs:
        F_FULLFSYNC = 51

        def __init__(self) -> None:
            self.refuses = False
            self.asked: list[int] = []

        def fcntl(self, fd: int, what: int) -> None:
            if self.refuses:
                raise OSError(errno.ENOTSUP, "not here")
            self.asked.append(what)

    mac, synced = MacOs(), []
    monkeypatch.setattr(file_durability, "_fcntl", mac)
    monkeypatch.setattr(os, "fsync", synced.append)
    atomic_files.write_atomic(tmp_path / "a", b"a")
    assert mac.asked == [51, 51] and synced == []  # the file, then its folder
    mac.refuses = True
    atomic_files.write_atomic(tmp_path / "a", b"b")
    assert len(synced) == 2


@pytest.mark.parametrize("call", ["replace", "unlink"])
def test_windows_retries_while_another_program_has_the_file_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """An open file can be neither replaced nor deleted there."""
    real, refused = getattr(os, call), []

    def windows(*given: object, **more: object) -> None:
        if len(refused) < 3:
            refused.append(given)
            raise PermissionError(errno.EACCES, "The process cannot access the file", str(given[0]))
        real(*given, **more)

    def act() -> None:
        for name in ("new", "old"):
            (tmp_path / name).write_text(name)
        folder = open_directory(str(tmp_path))
        folder.replace("new", folder, "old") if call == "replace" else folder.unlink("old")

    monkeypatch.setattr(os, call, windows)
    monkeypatch.setattr(file_durability, "_HELD_OPEN", False)
    with pytest.raises(PermissionError):  # on other systems a retry does not help
        act()
    assert len(refused) == 1
    refused.clear()
    monkeypatch.setattr(file_durability, "_HELD_OPEN", True)
    act()
    assert len(refused) == 3
    assert not (tmp_path / "old").exists() or (tmp_path / "old").read_text() == "new"


def test_windows_retries_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def held(*given: object) -> None:
        raise PermissionError(errno.EACCES, "The process cannot access the file")

    monkeypatch.setattr(file_durability, "_HELD_OPEN", True)
    monkeypatch.setattr(file_durability, "PATIENCE", 0.05)
    monkeypatch.setattr(Path, "replace", held)
    with pytest.raises(StorageError, match="permission denied"):
        atomic_files.write_atomic(tmp_path / "a", b"a")
    assert [*tmp_path.iterdir()] == []


def test_macos_database_uses_a_full_flush(tmp_path: Path) -> None:
    """SQLite requests F_FULLFSYNC only when configured."""
    db = Database(tmp_path)
    assert [
        db.connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("fullfsync", "checkpoint_fullfsync")
    ] == [1, 1]
    db.close()


def test_lock_file_on_windows_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The locked byte is at 2 GiB."""
    import importlib.util
    import sys
    import types

    from ipfsmem.device import lock

    asked: list[tuple[int, int, int]] = []
    fake = types.ModuleType("msvcrt")
    fake.LK_NBLCK = 2  # type: ignore[attr-defined]
    fake.locking = lambda fd, how, size: asked.append((os.lseek(fd, 0, os.SEEK_CUR), how, size))  # type: ignore[attr-defined]
    spec = importlib.util.spec_from_file_location("lock_on_windows", lock.__file__)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "msvcrt", fake)
        patch.setattr(sys, "platform", "win32")
        spec.loader.exec_module(module)
    path = tmp_path / "lock"
    for _ in range(2):
        with module.file_lock(path):
            assert path.read_text() == f"{os.getpid():<19}\n"
    assert asked == [(0x7FFF0000, 2, 1)] * 2
    # Python on Windows has no os.pread, so the holder was reported as "unknown".
    monkeypatch.delattr(os, "pread", raising=False)
    monkeypatch.setattr(module, "_try", lambda _: False)
    with pytest.raises(LockedError, match=f"in use by process {os.getpid()}"), module.file_lock(path, wait=0):
        pass
    path.write_text("")  # its holder has not written its name yet
    with pytest.raises(LockedError, match="in use by another process"), module.file_lock(path, wait=0):
        pass


@pytest.mark.parametrize("call", ["fsync", "replace", "open"])
@pytest.mark.parametrize(
    ("code", "words"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EROFS, "the disk is read-only"),
        (errno.EACCES, "permission denied"),
        (errno.EDQUOT, "the disk quota is used up"),
    ],
)
def test_failed_write_leaves_the_old_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, code: int, words: str
) -> None:
    path = tmp_path / "file"
    atomic_files.write_atomic(path, b"old")

    def fail(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(StorageError, match=f"cannot write .*file: {words}"):
            atomic_files.write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_read_file_refuses_links_folders_and_long_files(tmp_path: Path) -> None:
    """A missing file is None."""
    path = tmp_path / "file"
    assert atomic_files.read_file(path, 10) is None
    path.write_bytes(b"0123456789")
    assert atomic_files.read_file(path, 10) == b"0123456789"
    with pytest.raises(StorageError, match="longer than 9 bytes"):
        atomic_files.read_file(path, 9)
    link = tmp_path / "link"
    link.symlink_to(path)
    with pytest.raises(StorageError, match="symbolic link"):
        atomic_files.read_file(link, 10)
    with pytest.raises(StorageError, match=tmp_path.name):
        atomic_files.read_file(tmp_path, 10)
    if hasattr(os, "mkfifo"):
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        with pytest.raises(StorageError, match="not a file"):  # at once: there will never be a writer
            atomic_files.read_file(pipe, 10)


def test_lock_is_exclusive_and_released_by_its_block(tmp_path: Path) -> None:
    """The second waits, then its error names the holder."""
    path = tmp_path / "lock"
    with file_lock(path):
        began = time.monotonic()
        with (
            pytest.raises(LockedError, match=f"in use by process {os.getpid()}"),
            file_lock(path, wait=0.1),
        ):
            pass
        assert time.monotonic() - began >= 0.1
    with file_lock(path, wait=0):
        assert path.read_text() == f"{os.getpid():<19}\n"


def test_lock_is_released_when_the_block_raises(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), file_lock(tmp_path / "lock"):
        raise ZeroDivisionError
    with file_lock(tmp_path / "lock", wait=0):
        pass


def test_two_tasks_waiting_for_one_lock_run_in_turn(tmp_path: Path) -> None:
    """Two tasks that wait for one lock get it one after the other."""
    order: list[str] = []

    async def work(name: str) -> None:
        async with file_lock_async(tmp_path / "lock", wait=60):
            order.append(f"{name} in")
            await asyncio.sleep(0.02)
            order.append(f"{name} out")

    async def both() -> None:
        await asyncio.gather(work("a"), work("b"))

    asyncio.run(both())
    assert order == ["a in", "a out", "b in", "b out"]


def test_lock_in_a_missing_folder_raises_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="gone"), file_lock(tmp_path / "gone" / "lock"):
        pass


def test_database_files_are_private(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        db = Database(tmp_path)
        with db.transaction():
            db.set_meta("a", b"1")
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.glob("state.db*")}
        db.close()
    finally:
        os.umask(old)
    assert modes == {"state.db": 0o600, "state.db-wal": 0o600, "state.db-shm": 0o600}


def test_transactions_nest_and_roll_back(tmp_path: Path) -> None:
    """An error undoes all nested blocks."""
    db = Database(tmp_path)
    with db.transaction():
        db.set_meta("a", b"1")
        with db.transaction():
            db.set_meta("b", b"2")
    with pytest.raises(ZeroDivisionError), db.transaction():
        db.set_meta("a", b"9")
        with db.transaction():
            db.set_meta("c", b"3")
        raise ZeroDivisionError
    assert (db.get_meta("a"), db.get_meta("b"), db.get_meta("c")) == (b"1", b"2", None)
    with db.transaction():
        db.set_meta("c", b"4")
    db.close()
    db = Database(tmp_path)
    assert db.get_meta("c") == b"4"
    db.close()


def test_snapshot_is_stable(tmp_path: Path) -> None:
    """Reads in one snapshot see one state while another connection commits; `version` reveals the commit."""
    one, two = Database(tmp_path), Database(tmp_path)
    version = one.version()
    with one.snapshot():
        assert one.get_meta("a") is None
        with two.transaction():
            two.set_meta("a", b"1")
        assert one.get_meta("a") is None
    assert one.get_meta("a") == b"1"
    assert one.version() != version
    one.close()
    two.close()


def test_meta_values_and_blocks_are_verified(tmp_path: Path) -> None:
    """A damaged value is an error; a damaged block is absent until it is added again."""
    from hashlib import sha256

    db = Database(tmp_path)
    digest = sha256(b"body").digest()
    with db.transaction():
        db.set_meta("a", b"1")
        db.add_blocks([(digest, b"body")])
        db.connection.execute("UPDATE meta SET value=CAST(substr(value,1,8)||x'39' AS BLOB)")
        db.connection.execute("UPDATE blocks SET data=x'00'")
    with pytest.raises(StorageError, match="damaged"):
        db.get_meta("a")
    assert db.block(digest) is None
    assert not db.has_block(digest)
    with db.transaction():
        db.add_blocks([(digest, b"body")])
    assert db.block(digest) == b"body"
    assert db.has_block(digest)
    db.close()


def test_block_repaired_by_another_process_is_not_removed(tmp_path: Path) -> None:
    from hashlib import sha256

    one, two = Database(tmp_path), Database(tmp_path)
    digest = sha256(b"body").digest()
    with one.transaction():
        one.connection.execute("INSERT INTO objects VALUES (?,4,1,1)", (digest,))
        one.add_blocks([(digest, b"body")])
        one.connection.execute("UPDATE blocks SET data=x'00'")
    assert one.block(digest) is None and two.block(digest) is None
    with two.transaction():
        two.add_blocks([(digest, b"body")])
    assert one.has_block(digest) and not one.is_damaged(digest)
    with one.transaction():
        one.connection.execute("UPDATE blocks SET data=x'00'")
    assert one.block(digest) is None
    with two.transaction():
        two.add_blocks([(digest, b"body")])
    with one.transaction():
        assert one.drop_damaged() == [] and one.block(digest) == b"body"
        one.connection.execute("UPDATE blocks SET data=x'00'")
        assert one.block(digest) is None and one.drop_damaged() == [digest]
    one.close()
    two.close()


@pytest.mark.parametrize("junk", ["17", "'text'", "x''"])
def test_rows_of_another_type_raise_storage_error(tmp_path: Path, junk: str) -> None:
    from hashlib import sha256

    db = Database(tmp_path)
    digest = sha256(b"body").digest()
    with db.transaction():
        db.set_meta("a", b"1")
        db.add_blocks([(digest, b"body")])
        for table, column in (("meta", "value"), ("blocks", "data")):
            db.connection.execute(f"UPDATE {table} SET {column}={junk}")
    with pytest.raises(StorageError, match="damaged"):
        db.get_meta("a")
    assert db.block(digest) is None
    db.close()


def test_reports_are_limited_to_the_newest_thousand(tmp_path: Path) -> None:
    db = Database(None)
    with db.transaction():
        for i in range(1100):
            reports.add(db.connection, ReportRow(i, "kind", str(i)))
    found = reports.newest(db.connection, 2000)
    assert [int(row.text) for row in found] == list(range(1099, 99, -1))


def test_missing_folder_or_closed_database_raises_our_error(tmp_path: Path) -> None:
    """Each error has one line."""
    with pytest.raises(StorageError, match="gone"):
        Database(tmp_path / "gone")
    db = Database(tmp_path)
    db.close()
    with pytest.raises(ClosedError, match="closed"):
        db.get_meta("a")


def test_other_schema_version_is_refused_and_unchanged(tmp_path: Path) -> None:
    db = Database(tmp_path)
    db.connection.execute("PRAGMA user_version=7")
    db.close()
    with pytest.raises(ConfigError, match="schema 7"):
        Database(tmp_path)


def test_deleted_lock_file_still_excludes_other_processes(tmp_path: Path) -> None:
    path = tmp_path / "create.lock"
    inside, done = threading.Event(), threading.Event()

    def waits() -> None:
        with file_lock(path):
            inside.set()
            done.wait(60)

    waiter = threading.Thread(target=waits)
    with file_lock(path):
        waiter.start()
        time.sleep(0.1)
        path.unlink()
    assert inside.wait(60)
    try:
        with pytest.raises(LockedError), file_lock(path, wait=0.05):
            pass
    finally:
        done.set()
        waiter.join()


def test_file_lock_without_lock_support_raises_storage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(_: int) -> bool:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(lock, "_try", refuses)
    with pytest.raises(StorageError, match="lock"), file_lock(tmp_path / "lock"):
        pass
