"""Rows of another program's SQLite file, read from a copy of its bytes in memory: nothing is opened, locked or written beside it.

The file may be made to hurt. Only plain tables that are asked for are read, no function of a schema runs, no extension is
loaded, and work and sizes are bounded.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, Final

from ipfsmem.errors import FormatError, LimitError
from ipfsmem.memories.bundle_tree import MAX_BYTES

_MAGIC: Final = b"SQLite format 3\0"
#: Bytes of a file, so of one value too: which are too long for a memory is said of each. Steps of SQLite's machine: some seconds.
_MOST: Final = 256 * 1024 * 1024
_EACH: Final = 100_000
_TIMES: Final = 5_000
#: Bytes of all rows of a file together.
_ROWS: Final = MAX_BYTES
_ALLOWED: Final = frozenset((sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ))


def is_sqlite(data: bytes) -> bool:
    """Whether bytes begin as a SQLite file does."""
    return data.startswith(_MAGIC)


class Tables:
    """The plain tables of a file that are asked for."""

    def __init__(self, connection: sqlite3.Connection, what: str) -> None:
        self._connection = connection
        self._what = what
        self._left = _ROWS
        #: Tables with a column that the file computes, by functions of its schema, while it is read.
        self.computed: set[str] = set()

    def columns(self, table: str) -> list[str]:
        """The names of a table's columns; none when there is no such plain table. Raises FormatError."""
        with self._faults():
            found = self._connection.execute(
                "SELECT sql FROM sqlite_master WHERE type='table' AND name=?", (table.encode().decode(),)
            ).fetchall()
            if (
                not found
                or not isinstance(found[0][0], bytes)
                or b"VIRTUAL" in found[0][0].upper().split()[:2]
            ):
                return []
            if table.lower() in self.computed:
                raise FormatError(
                    f"{self._what} has a table {table} with columns that are computed, as its program makes none"
                )
            named = self._connection.execute(f'SELECT * FROM "{table}" LIMIT 0').description  # noqa: S608 - a name of ours
            return [str(column[0]) for column in named]

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """These columns of all rows; texts as bytes, for they may not be UTF-8. Raises FormatError, LimitError."""
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
    """The tables that have generated columns, hidden 2 or 3 in `table_xinfo`: looked at before nothing but reading is allowed."""
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    named = connection.execute(
        "SELECT name FROM sqlite_master WHERE type='table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
    ).fetchall()
    return {
        str(name).lower()
        for (name,) in named
        if connection.execute(
            "SELECT 1 FROM pragma_table_xinfo(?) WHERE hidden IN (2, 3)", (name,)
        ).fetchone()
    }


@contextlib.contextmanager
def open_tables(data: bytes, what: str) -> Iterator[Tables]:
    """The tables of a file. Raises FormatError for what is none, LimitError."""
    if not is_sqlite(data):
        raise FormatError(f"{what} is no SQLite file")
    if len(data) > _MOST:
        raise LimitError(f"{what} has more than {_MOST:,} bytes")
    # A file in write-ahead mode says so in these two bytes; in memory there is no log beside it.
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
