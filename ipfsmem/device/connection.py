"""Connect to the SQLite file of a vault, translate its errors, and check values of rows that may be damaged.

Several threads can use a connection, one statement or row at a time. It is closed only between two of these, since
Python crashes if a connection is closed during a statement. Transactions are in `device.database`, statements in
`device.tables`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from ipfsmem.device.atomic_files import new_name, storage_errors, sync_directory
from ipfsmem.device.database_file import find
from ipfsmem.errors import ClosedError, IpfsmemError, LockedError, StorageError

T = TypeVar("T")

#: Number of values in one `IN (...)`; SQLite's oldest builds accept 999.
_MAX_PLACEHOLDERS = 500


def explained(path: Path, error: Exception) -> IpfsmemError:
    """Return the IpfsmemError for an error of SQLite."""
    text = str(error)
    if isinstance(error, sqlite3.OperationalError):
        if text.startswith("database is locked"):
            return LockedError(
                f"{path} is in use by another program",
                hint="Wait until it ends, or stop it; then try again.",
            )
        if text.startswith(("no such ", "table ")):  # the schema is damaged and has another name
            return damaged(path, text)
        if text.startswith("Could not decode"):
            return damaged(path, "a text in it is not UTF-8")
        return StorageError(f"cannot use {path}: {_WORDS.get(text, text)}")
    if isinstance(error, sqlite3.ProgrammingError):
        if text.startswith("Cannot operate on a closed database"):
            return ClosedError(f"{path} was closed meanwhile")
        return StorageError(f"cannot use {path}: {text}")
    if text == "file is not a database":
        return unusable(f"{path} is damaged: {text}")  # the file cannot be read at all
    return damaged(path, "SQLite gives no reason" if isinstance(error, UnicodeError) else text)


_WORDS = {
    "database or disk is full": "the disk is full",
    "attempt to write a readonly database": "the home is read-only",
    "unable to open database file": "it cannot be opened (missing folder or no permission)",
    "disk I/O error": "the disk is full, or reported an error",
}


class _Cursor(sqlite3.Cursor):
    """A cursor that raises IpfsmemErrors. A damaged file can make SQLite report names that are not text."""

    connection: Connection

    def execute(self, *args: Any) -> _Cursor:
        try:
            with self.connection.in_use:
                return super().execute(*args)
        except (sqlite3.Error, UnicodeError) as error:
            raise self.connection.explained(error) from None

    def executemany(self, *args: Any) -> _Cursor:
        try:
            with self.connection.in_use:
                return super().executemany(*args)
        except (sqlite3.Error, UnicodeError) as error:
            raise self.connection.explained(error) from None

    def fetchone(self) -> Any:
        try:
            with self.connection.in_use:
                return super().fetchone()
        except (sqlite3.Error, UnicodeError) as error:
            raise self.connection.explained(error) from None

    def fetchall(self) -> list[Any]:
        try:
            with self.connection.in_use:
                return super().fetchall()
        except (sqlite3.Error, UnicodeError) as error:
            raise self.connection.explained(error) from None

    def __next__(self) -> Any:
        try:
            with self.connection.in_use:
                return super().__next__()
        except (sqlite3.Error, UnicodeError) as error:
            raise self.connection.explained(error) from None


class Connection(sqlite3.Connection):
    """A connection that raises IpfsmemErrors."""

    path = Path(":memory:")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        #: Held during one step of a statement, and while closing.
        self.in_use = threading.RLock()
        #: The reason why it was closed; None while it is usable.
        self._given_up: IpfsmemError | None = None
        #: Whether another process found the file sound after an error here; None before the first check.
        self._sound_elsewhere: bool | None = None
        super().__init__(*args, **kwargs)

    def close(self) -> None:
        """Close the connection after the current step of another thread. Later uses raise ClosedError."""
        with self.in_use:
            super().close()

    def copy_to(self, path: Path) -> None:
        """Copy the database as this connection reads it to a new file, durably. Uncommitted changes are rolled back.

        Raises OSError and sqlite3.Error, and then leaves no file.
        """
        temporary = Path(new_name(path))
        try:
            os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            with self.in_use, contextlib.closing(sqlite3.connect(temporary)) as target:
                if super().in_transaction:
                    self.rollback()
                self.backup(target)
            temporary.replace(path)
            sync_directory(path.parent)
        except BaseException:
            for name in (temporary, *(Path(f"{temporary}{end}") for end in ("-journal", "-wal", "-shm"))):
                with contextlib.suppress(OSError):
                    name.unlink()
            raise

    def give_up(self, reason: IpfsmemError, *, checkpoint: bool) -> None:
        """Close the connection; every later use raises `reason`.

        SQLite writes the log into the file when the last connection is closed. `checkpoint=False` prevents it, since
        it would destroy a file whose log was replaced.
        """
        with self.in_use:
            self._given_up = reason
            if checkpoint:
                super().close()
            elif sys.version_info >= (3, 12):
                self.setconfig(sqlite3.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, True)
                super().close()
            else:
                with _shared_lock_elsewhere(self.path):
                    super().close()

    def explained(self, error: Exception) -> IpfsmemError:
        """Return the IpfsmemError for an error of SQLite on this connection.

        A file is reported as damaged only after another process found it damaged too.
        """
        if self._given_up is not None:
            return self._given_up
        reason = explained(self.path, error)
        if getattr(error, "sqlite_errorname", "") not in _DAMAGE or str(self.path) == ":memory:":
            return reason
        if self._sound_elsewhere is None:
            self._sound_elsewhere = _is_sound_elsewhere(self.path)
        if not self._sound_elsewhere:
            return reason
        return StorageError(
            f"cannot use {self.path} any more: {error}; another process reads it and finds it sound",
            hint=f"Start this program again. Only if the error repeats: {reason.hint}",
        )

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        try:
            return super().in_transaction
        except sqlite3.Error as error:
            raise self.explained(error) from None

    def create_function(self, *args: Any, **kwargs: Any) -> None:
        """Define a function for statements."""
        try:
            with self.in_use:
                super().create_function(*args, **kwargs)
        except sqlite3.Error as error:
            raise self.explained(error) from None

    def execute(self, *args: Any) -> _Cursor:
        """Execute one statement."""
        try:
            cursor = self.cursor(_Cursor)
        except sqlite3.Error as error:
            raise self.explained(error) from None
        return cursor.execute(*args)

    def executemany(self, *args: Any) -> _Cursor:
        """Execute one statement for many rows."""
        return self.own_cursor().executemany(*args)

    def rows_where(self, query: str, keys: Iterable[object]) -> list[tuple[Any, ...]]:
        """Return the rows of `query`, in which `{}` is a placeholder for `keys`: "SELECT ... WHERE name IN ({})"."""
        every = list(keys)
        rows: list[tuple[Any, ...]] = []
        for start in range(0, len(every), _MAX_PLACEHOLDERS):
            part = every[start : start + _MAX_PLACEHOLDERS]
            rows += self.execute(query.format(",".join("?" * len(part))), part).fetchall()
        return rows

    def own_cursor(self) -> _Cursor:
        """Return a cursor for several statements in a row."""
        try:
            return self.cursor(_Cursor)
        except sqlite3.Error as error:
            raise self.explained(error) from None


#: SQLite's error names for a file that differs from what was written.
_DAMAGE = frozenset({"SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_IOERR_SHORT_READ"})
_CHECK = """
import sqlite3, sys
print(sqlite3.connect(sys.argv[1], uri=True).execute("PRAGMA quick_check(1)").fetchone()[0])
"""


def _is_sound_elsewhere(path: Path) -> bool:
    """Return whether SQLite's integrity check in a new process finds no fault. False if no process can be started."""
    import subprocess  # imported late: 3 ms that a read of one memory does not need

    command = [sys.executable, "-I", "-S", "-c", _CHECK, f"file:{quote(str(path))}?mode=ro"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.SubprocessError):
        return False
    return done.stdout == "ok\n"


#: Holds SQLite's shared lock on a file (os_unix.c: SHARED_FIRST, SHARED_SIZE) until its input ends.
_LOCK_HOLDER = """
import fcntl, os, sys
fcntl.lockf(os.open(sys.argv[1], os.O_RDWR), fcntl.LOCK_SH, 510, 0x40000002)
print(flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def _shared_lock_elsewhere(path: Path) -> Iterator[None]:
    """Have another process hold SQLite's shared lock, so that closing a connection here causes no checkpoint.

    Needed on Python 3.11, whose sqlite3 has no other way to prevent a checkpoint. On Windows the log of an open file
    cannot be replaced.
    """
    if sys.platform == "win32":
        yield
        return
    import subprocess

    command = [sys.executable, "-I", "-S", "-c", _LOCK_HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin is not None and other.stdout is not None
        other.stdout.readline()
        try:
            yield
        finally:
            other.stdin.close()


def open_to_be_read(path: Path) -> Connection:
    """Open a file read-only, without changing it. Invalid text is decoded with replacement characters. Raises
    StorageError."""
    with storage_errors(path, "read"):
        if find(path) is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        log = path.with_name(path.name + "-wal")
        logged = log.stat().st_size if log.exists() else None
    # SQLite must read a log. Without a log no process has the file open, and SQLite creates no files next to it.
    if logged is None:
        return _open_to_be_read(path, "&immutable=1")
    try:
        return _open_to_be_read(path, "")
    except StorageError:
        if logged:
            raise
        # SQLite cannot create the files that it needs (on a full disk, for example), and the log is empty.
        return _open_to_be_read(path, "&immutable=1")


def _open_to_be_read(path: Path, quiet: str) -> Connection:
    uri = f"file:{quote(str(path))}?mode=ro{quiet}"
    try:
        db = sqlite3.connect(uri, uri=True, isolation_level=None, factory=Connection)
    except sqlite3.Error as error:
        raise explained(path, error) from None
    db.path = path
    db.text_factory = lambda text: text.decode("utf-8", "replace")
    try:
        db.execute("PRAGMA cell_size_check=ON")
        db.execute("BEGIN")  # one committed state until it is closed
        db.execute("PRAGMA schema_version")
    except BaseException:
        db.close()
        raise
    return db


DAMAGED_HINT = "Move the folder away. Bring a published vault back: ipfsmem init --wallet FILE, or ipfsmem recover. A vault in mode local has its texts in the folder memory/ there: ipfsmem init --mode local, then ipfsmem import FOLDER"


class DatabaseDamagedError(StorageError):
    """A database does not contain what was written to it. `vault.rescue` reads the readable part."""

    hint = "Export the readable part: ipfsmem export --dir DIR. Then move the folder away. Bring a published vault back: ipfsmem recover. Create any other again: ipfsmem init. Then import the export: ipfsmem import DIR --from-backup. Plain files in the old folder memory/, if any, may be newer; import them with: ipfsmem import FOLDER/memory"


def verdict(db: Connection) -> str:
    """Return the result of SQLite's integrity check: "ok", or the first fault. The time grows with the file."""
    return str(db.execute("PRAGMA quick_check(1)").fetchone()[0])


def damaged(path: Path, what: str) -> DatabaseDamagedError:
    """Return the error for a database that does not contain what was written to it."""
    return DatabaseDamagedError(f"{path} is damaged: {what}")


def unusable(what: str) -> StorageError:
    """Return the error for a database that cannot be used, with a hint."""
    return StorageError(what, hint=DAMAGED_HINT)


def not_found_again(path: Path, what: str) -> DatabaseDamagedError:
    """Return the error for data that was written and cannot be read back. The transaction must fail with it."""
    return damaged(path, f"{what} cannot be read back after it was written")


def blob(value: object) -> bytes | None:
    """Return a value from SQLite if it is a BLOB; None for any other type, which only a damaged row has."""
    return value if isinstance(value, bytes) else None


def typed(db: Connection, row: object, form: type[T]) -> T:
    """Return a row (or rows) as the type `form`. Raises StorageError if a value has another type, as in a damaged
    file."""
    try:
        return msgspec.convert(row, form, builtin_types=(bytes,))
    except msgspec.ValidationError as error:
        raise damaged(db.path, f"a row has a value of the wrong type: {error}") from None
