"""A connection to the SQLite file of a memory: its errors are ours, and values of damaged rows are recognised.

Several threads may use one: a statement or a row at a time, and it is closed between two of these, for Python ends the process where
a connection goes under a statement. Transactions are in `device.database`, statements in `device.tables`.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from ipfsmem.device.atomic_files import open_regular, storage_errors
from ipfsmem.errors import ClosedError, IpfsmemError, LockedError, StorageError

T = TypeVar("T")

#: Values in one `IN (...)`; SQLite takes 999 in its oldest builds.
_AT_ONCE = 500


def explained(path: Path, error: Exception) -> IpfsmemError:
    """An error of SQLite as ours."""
    text = str(error)
    if isinstance(error, sqlite3.OperationalError):
        if text.startswith("database is locked"):
            return LockedError(f"{path} is in use by another program")
        if text.startswith(("no such ", "table ")):  # a name in its schema is another one
            return damaged(path, text)
        if text.startswith("Could not decode"):
            return damaged(path, "a text in it is not UTF-8")
        return StorageError(f"cannot use {path}: {_WORDS.get(text, text)}")
    if isinstance(error, sqlite3.ProgrammingError):
        if text.startswith("Cannot operate on a closed database"):
            return ClosedError(f"{path} was closed meanwhile")
        return StorageError(f"cannot use {path}: {text}")
    if text == "file is not a database":
        return unusable(f"{path} is damaged: {text}")  # nothing can be read from it
    return damaged(path, "SQLite gives no reason" if isinstance(error, UnicodeError) else text)


_WORDS = {
    "database or disk is full": "the disk is full",
    "attempt to write a readonly database": "the home is read-only",
    "unable to open database file": "it cannot be opened (missing folder or no permission)",
    "disk I/O error": "the disk is full, or reported an error",
}


class _Cursor(sqlite3.Cursor):
    """A cursor whose errors are ours. (A damaged file makes SQLite speak of names that are not even text.)"""

    connection: Connection

    def execute(self, *args: Any) -> _Cursor:
        try:
            with self.connection.in_use:
                return super().execute(*args)
        except (sqlite3.Error, UnicodeError) as error:
            raise explained(self.connection.path, error) from None

    def executemany(self, *args: Any) -> _Cursor:
        try:
            with self.connection.in_use:
                return super().executemany(*args)
        except (sqlite3.Error, UnicodeError) as error:
            raise explained(self.connection.path, error) from None

    def fetchone(self) -> Any:
        try:
            with self.connection.in_use:
                return super().fetchone()
        except (sqlite3.Error, UnicodeError) as error:
            raise explained(self.connection.path, error) from None

    def fetchall(self) -> list[Any]:
        try:
            with self.connection.in_use:
                return super().fetchall()
        except (sqlite3.Error, UnicodeError) as error:
            raise explained(self.connection.path, error) from None

    def __next__(self) -> Any:
        try:
            with self.connection.in_use:
                return super().__next__()
        except (sqlite3.Error, UnicodeError) as error:
            raise explained(self.connection.path, error) from None


class Connection(sqlite3.Connection):
    """A connection whose errors are ours."""

    path = Path(":memory:")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        #: Held for one step of a statement, and to close.
        self.in_use = threading.RLock()
        super().__init__(*args, **kwargs)

    def close(self) -> None:
        """Close it, once the step that another thread is in has ended. What is begun later raises ClosedError."""
        with self.in_use:
            super().close()

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        try:
            return super().in_transaction
        except sqlite3.Error as error:
            raise explained(self.path, error) from None

    def create_function(self, *args: Any, **kwargs: Any) -> None:
        """A function that statements may call."""
        try:
            with self.in_use:
                super().create_function(*args, **kwargs)
        except sqlite3.Error as error:
            raise explained(self.path, error) from None

    def execute(self, *args: Any) -> _Cursor:
        """One statement."""
        return self.own_cursor().execute(*args)

    def executemany(self, *args: Any) -> _Cursor:
        """One statement for many rows."""
        return self.own_cursor().executemany(*args)

    def rows_where(self, query: str, keys: Iterable[object]) -> list[tuple[Any, ...]]:
        """The rows of `query`, in which `{}` stands for a list of `keys`: "SELECT ... WHERE name IN ({})"."""
        wanted = list(keys)
        rows: list[tuple[Any, ...]] = []
        for start in range(0, len(wanted), _AT_ONCE):
            part = wanted[start : start + _AT_ONCE]
            rows += self.execute(query.format(",".join("?" * len(part))), part).fetchall()
        return rows

    def own_cursor(self) -> _Cursor:
        """A cursor for several statements in a row."""
        try:
            return self.cursor(_Cursor)
        except sqlite3.Error as error:
            raise explained(self.path, error) from None


def open_to_be_read(path: Path) -> Connection:
    """Open a file of which no byte may change. A text in it that is none reads as another one. Raises StorageError."""
    with storage_errors(path, "read"):
        os.close(open_regular(path, os.O_RDONLY))
        log = path.with_name(path.name + "-wal")
        logged = log.stat().st_size if log.exists() else None
    # With a log SQLite has to look into it; without one nobody has the file open, and nothing is made beside it.
    if logged is None:
        return _open_to_be_read(path, "&immutable=1")
    try:
        return _open_to_be_read(path, "")
    except StorageError:
        if logged:
            raise
        # What it needs for that cannot be made, on a full disk for one, and there is nothing in the log.
        return _open_to_be_read(path, "&immutable=1")


def _open_to_be_read(path: Path, quiet: str) -> Connection:
    where = f"file:{quote(str(path))}?mode=ro{quiet}"
    try:
        db = sqlite3.connect(where, uri=True, isolation_level=None, factory=Connection)
    except sqlite3.Error as error:
        raise explained(path, error) from None
    db.path = path
    db.text_factory = lambda text: text.decode("utf-8", "replace")
    try:
        db.execute("PRAGMA cell_size_check=ON")
        db.execute("BEGIN")  # one committed state, until it is closed
        db.execute("PRAGMA schema_version")
    except BaseException:
        db.close()
        raise
    return db


DAMAGED_HINT = (
    "Move the folder away. A memory that is published comes back with: ipfsmem init --wallet FILE, or ipfsmem recover. "
    "One in mode local has its texts in the folder memory/ there: ipfsmem init --mode local, then ipfsmem import FOLDER"
)


class DatabaseDamagedError(StorageError):
    """A database does not contain what was written to it; `device.rescue` reads what can still be read."""

    hint = (
        "What can still be read comes out with: ipfsmem export --dir DIR. Then move the folder away, and begin anew. "
        "A memory that is published comes back with: ipfsmem recover. Any other is made anew: ipfsmem init. "
        "What came out goes in with: ipfsmem import DIR --from-backup. Plain files in the folder memory/ of the old one, "
        "where there is one, may be newer; they go in with: ipfsmem import FOLDER/memory"
    )


def verdict(db: Connection) -> str:
    """SQLite's check of the whole file: "ok", or the first fault. Takes longer for a larger file."""
    return str(db.execute("PRAGMA quick_check(1)").fetchone()[0])


def damaged(path: Path, what: str) -> DatabaseDamagedError:
    """The error for a database that does not contain what was written to it."""
    return DatabaseDamagedError(f"{path} is damaged: {what}")


def unusable(what: str) -> StorageError:
    """The error for a database that cannot be used, with what to do then."""
    return StorageError(what, hint=DAMAGED_HINT)


def not_found_again(path: Path, what: str) -> DatabaseDamagedError:
    """The error for something that was just written and cannot be read back; its transaction must fail."""
    return damaged(path, f"{what} cannot be read back after it was written")


def blob(value: object) -> bytes | None:
    """A value from SQLite when it is a BLOB; None for anything else, which only a damaged row holds."""
    return value if isinstance(value, bytes) else None


def typed(db: Connection, row: object, form: type[T]) -> T:
    """A row (or rows) as the type `form`. StorageError where a value has another type: a damaged file may hold anything."""
    try:
        return msgspec.convert(row, form, builtin_types=(bytes,))
    except msgspec.ValidationError as error:
        raise damaged(db.path, f"a row has a value of the wrong type: {error}") from None
