"""Read rows of another program's SQLite file from a copy in memory, without locks or files next to the original.

The file may be hostile. Only requested plain tables are read, no function of a schema runs, no extension is loaded,
and work and sizes are limited.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, Final

from ipfsmem.errors import FormatError, LimitError
from ipfsmem.memories.bundle_tree import MAX_BYTES

_MAGIC: Final = b"SQLite format 3\0"
#: Maximum bytes of a file, so of one value too: values too long for a memory are reported. Maximum steps of SQLite's virtual
#: machine: some seconds.
_MOST: Final = 256 * 1024 * 1024
_EACH: Final = 100_000
_TIMES: Final = 5_000
#: Maximum bytes of all rows of a file together.
_ROWS: Final = MAX_BYTES
_ALLOWED: Final = frozenset((sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ))


def is_sqlite(data: bytes) -> bool:
    """Return whether bytes begin like a SQLite file."""
    return data.startswith(_MAGIC)


class Tables:
    """The requested plain tables of a file."""

    def __init__(self, connection: sqlite3.Connection, what: str) -> None:
        self._connection = connection
        self._what = what
        self._left = _ROWS
        #: Tables with a column that is computed on reading, by functions of the file's schema.
        self.computed: set[str] = set()

    def columns(self, table: str) -> list[str]:
        """Return the names of a table's columns; empty if there is no such plain table. Raises FormatError."""
        with self._faults():
            rows = self._connection.execute(
                "SELECT sql FROM sqlite_master WHERE type='table' AND name=?", (table.encode().decode(),)
            ).fetchall()
            if not rows or not isinstance(rows[0][0], bytes) or b"VIRTUAL" in rows[0][0].upper().split()[:2]:
                return []
            if table.lower() in self.computed:
                raise FormatError(
                    f"{self._what} has a table {table} with columns that are computed, as its program makes none"
                )
            description = self._connection.execute(f'SELECT * FROM "{table}" LIMIT 0').description  # noqa: S608 - a name of ours
            return [str(column[0]) for column in description]

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Yield these columns of all rows; texts as bytes, as they may not be UTF-8. Raises FormatError, LimitError."""
        chosen = ", ".join(f'"{column}"' for column in columns)
        with self._faults():
            for row in self._connection.execute(f'SELECT {chosen} FROM "{table}"'):  # noqa: S608 - names of ours
                self._left -= sum(len(value) for value in row if isinstance(value, bytes))
                if self._left < 0:
                    raise LimitError(f"{self._what} has more than {_ROWS:,} bytes in its rows")
                yield row

    @contextlib.contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            if str(error) == "interrupted":
                raise LimitError(f"{self._what} takes too long to read") from None
            raise FormatError(f"{self._what} cannot be read: {error}") from None
        except (sqlite3.Error, UnicodeError, OverflowError, ValueError) as error:
            raise FormatError(f"{self._what} cannot be read: {error}") from None


def _computed(connection: sqlite3.Connection) -> set[str]:
    """Return the tables with generated columns, hidden 2 or 3 in `table_xinfo`: read before the connection is restricted to
    reads."""
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    columns = connection.execute(
        "SELECT name FROM sqlite_master WHERE type='table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
    ).fetchall()
    return {
        str(name).lower()
        for (name,) in columns
        if connection.execute(
            "SELECT 1 FROM pragma_table_xinfo(?) WHERE hidden IN (2, 3)", (name,)
        ).fetchone()
    }


@contextlib.contextmanager
def open_tables(data: bytes, what: str) -> Iterator[Tables]:
    """Open the tables of a file. Raises FormatError for an invalid one, LimitError."""
    if not is_sqlite(data):
        raise FormatError(f"{what} is not an SQLite file")
    if len(data) > _MOST:
        raise LimitError(f"{what} has more than {_MOST:,} bytes")
    # These two bytes mark write-ahead mode; in memory there is no log next to the file.
    plain = data[:18] + b"\x01\x01" + data[20:] if data[18:20] == b"\x02\x02" else data
    connection = sqlite3.connect(":memory:")
    try:
        tables = Tables(connection, what)
        steps = 0

        def watch() -> int:
            nonlocal steps
            steps += 1
            return int(steps > _TIMES)

        with tables._faults():
            connection.deserialize(plain)
            connection.execute("PRAGMA trusted_schema=OFF")
            connection.execute("PRAGMA cell_size_check=ON")
            connection.execute("PRAGMA query_only=ON")
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST)
            connection.set_progress_handler(watch, _EACH)
            tables.computed = _computed(connection)
            connection.text_factory = bytes
            connection.set_authorizer(
                lambda action, *_: sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY
            )
        yield tables
    finally:
        connection.close()
