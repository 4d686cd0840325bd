"""SQLite's locks survive other file operations of this process on a vault, and a replaced log is detected."""

from __future__ import annotations

import ast
import gc
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path

import pytest

from ipfsmem.device.atomic_files import read_file
from ipfsmem.device.connection import open_to_be_read
from ipfsmem.device.creation import folder_claimed
from ipfsmem.device.database import Database
from ipfsmem.device.database_file import DATABASE_FILES
from ipfsmem.errors import ConfigError, StorageError
from ipfsmem.holding import Holder
from ipfsmem.memory import Memory
from tests.support import database_opens
from tests.support.hints import hinted

PACKAGE = Path(__file__).parents[3] / "ipfsmem"


def another_process(folder: Path, name: str, value: str = "") -> str:
    """Set a value, if given, in a new process; return the value it reads before it closes the file."""
    program = """
import sys
from pathlib import Path
from ipfsmem.device.database import Database
folder, name, value = sys.argv[1:]
db = Database(Path(folder))
if value:
    with db.transaction():
        db.set_meta(name, value.encode())
print((db.get_meta(name) or b"").decode())
db.close()
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder), name, value], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def put(db: Database, name: str, value: bytes) -> None:
    with db.transaction():
        db.set_meta(name, value)


def second_database(folder: Path) -> None:
    with closing(Database(folder)):
        pass


def read_only(folder: Path) -> None:
    with closing(open_to_be_read(folder / "state.db")):
        pass


def claim_for_a_new_vault(folder: Path) -> None:
    with suppress(ConfigError), folder_claimed(folder):
        pass


def read_as_a_file(folder: Path) -> None:
    for name in DATABASE_FILES:
        with pytest.raises(StorageError, match="is the database of a vault that is open here"):
            read_file(folder / name, 1 << 20)


@pytest.mark.parametrize("use", [second_database, read_only, claim_for_a_new_vault, read_as_a_file])
def test_database_used_a_second_time_keeps_its_locks(tmp_path: Path, use: Callable[[Path], None]) -> None:
    with closing(Database(tmp_path)) as db:
        put(db, "first", b"1")
        log = (tmp_path / "state.db-wal").stat().st_ino
        use(tmp_path)
        assert another_process(tmp_path, "first") == "1"
        assert (tmp_path / "state.db-wal").stat().st_ino == log
        put(db, "second", b"2")
        assert another_process(tmp_path, "second") == "2"
        assert another_process(tmp_path, "third", "3") == "3"
        assert db.get_meta("third") == b"3"
    assert another_process(tmp_path, "second") == "2"
    assert another_process(tmp_path, "third") == "3"


@pytest.mark.parametrize("names", [DATABASE_FILES[1:2], DATABASE_FILES[2:], DATABASE_FILES[1:]], ids=" ".join)
def test_write_after_log_removal_is_refused_and_earlier_writes_remain(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    db = Database(tmp_path)
    put(db, "first", b"1")
    name = names[0]
    for one in names:
        (tmp_path / one).unlink()
    with pytest.raises(StorageError, match=f"{name} is gone"):
        put(db, "second", b"2")
    with closing(Database(tmp_path)) as again:
        assert again.get_meta("first") == b"1"
        put(again, "third", b"3")
        assert another_process(tmp_path, "third") == "3"
        with pytest.raises(StorageError, match=f"{name} is gone"):
            db.version()
        db.close()
        assert another_process(tmp_path, "third") == "3"
    assert another_process(tmp_path, "first") == "1"


def test_write_is_refused_when_log_is_replaced_before_commit(tmp_path: Path) -> None:
    db = Database(tmp_path)
    put(db, "first", b"1")
    with (
        pytest.raises(StorageError, match=r"state\.db-wal is not the file that is open here"),
        db.transaction(),
    ):
        db.set_meta("second", b"2")
        (tmp_path / "other").write_bytes(b"")
        (tmp_path / "other").replace(tmp_path / "state.db-wal")
    db.close()
    assert another_process(tmp_path, "second") == ""


def test_stale_connection_does_not_write_its_log_into_the_file(tmp_path: Path) -> None:
    """Another process removed the log, wrote, and closed the file."""
    db = Database(tmp_path)
    put(db, "first", b"1")
    os.close(os.open(tmp_path / "state.db", os.O_RDONLY))  # drops the locks
    assert another_process(tmp_path, "second", "2") == "2"
    assert not (tmp_path / "state.db-wal").exists()
    with pytest.raises(StorageError, match="is gone"):
        put(db, "first", b"overwritten")
    db.close()
    assert another_process(tmp_path, "first") == "1"
    assert another_process(tmp_path, "second") == "2"


def test_server_reopens_vault_whose_log_was_removed(tmp_path: Path) -> None:
    with Memory.create("default", "local", home=tmp_path) as memory:
        memory.write("old", "x")
    holder = Holder(lambda: Memory.load("default", home=tmp_path))
    holder.memory().write("new", "x")
    with holder.another() as another:
        (tmp_path / "default" / "state.db-wal").unlink()
        with pytest.raises(StorageError, match=r"state\.db-wal is gone"):
            another.write("newer", "x")
        holder.memory().write("newer", "x")
    holder.close()
    with Memory.load("default", home=tmp_path) as memory:
        assert {item.key for item in memory.list()} == {"old", "new", "newer"}


def test_database_is_reported_as_damaged_only_if_another_process_agrees(tmp_path: Path) -> None:
    with closing(Database(tmp_path)) as sound:
        put(sound, "first", b"1")
        error = sqlite3.DatabaseError("database disk image is malformed")
        error.sqlite_errorname = "SQLITE_CORRUPT"
        refused = sound.connection.explained(error)
        assert "another process reads it and finds it sound" in str(refused)
        hinted("Start this program again. Only if the error repeats: VALUE", refused.hint)
        assert another_process(tmp_path, "first") == "1"
    (tmp_path / "damaged").mkdir()
    with closing(Database(tmp_path / "damaged")) as damaged:
        with damaged.transaction():
            damaged.add_blocks((sha256(bytes([i])).digest(), bytes(3000)) for i in range(100))
        damaged.empty_log()
        whole = (tmp_path / "damaged" / "state.db").read_bytes()
        with (tmp_path / "damaged" / "state.db").open("r+b") as file:
            file.seek(4096)
            file.write(bytes(len(whole) - 4096))
        with pytest.raises(StorageError) as found, closing(Database(tmp_path / "damaged")):
            pass
        assert "is damaged" in str(found.value)
        assert "Start this program again" not in str(found.value.hint)


def test_database_files_are_named_in_one_module_only() -> None:
    """Other modules get the path from `device.database_file`, and do not open it."""
    named = []
    for path in PACKAGE.rglob("*.py"):
        if path.name == "database_file.py":
            continue
        text = path.read_text(encoding="utf-8")
        if ".db" not in text:
            continue  # parsing every module takes two seconds
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Constant) and node.value in DATABASE_FILES:
                named.append(f"{path.relative_to(PACKAGE)}:{node.lineno}")
    assert named == []


def test_open_of_a_database_file_by_the_package_fails_in_tests(tmp_path: Path) -> None:
    (tmp_path / "state.db").write_bytes(b"x")
    assert database_opens  # installed by conftest
    with pytest.raises(AssertionError, match="drops SQLite's locks"):
        read_file(tmp_path / "state.db", 10)


def test_file_of_a_closed_database_can_be_read(tmp_path: Path) -> None:
    """The system may reuse the inode of a deleted database."""
    db = Database(tmp_path)
    same = tmp_path / "same inode"
    os.link(tmp_path / "state.db", same)
    with pytest.raises(StorageError, match="open here"):
        read_file(same, 1 << 20)
    del db  # without close()
    gc.collect()
    assert read_file(same, 1 << 20) is not None
