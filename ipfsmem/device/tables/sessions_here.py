"""The table `sessions_here`: messages of sessions that are kept on this device only.

A session is found by a keyed hash of its scope and name, and each row is sealed if the vault is (`memories.sessions_here`). It is
not derived: deleted rows are lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ipfsmem.device.connection import Connection


def add_table(db: Connection) -> None:
    """Create the table (inside a transaction)."""
    db.execute(
        "CREATE TABLE sessions_here (mark BLOB NOT NULL, n INTEGER NOT NULL, row BLOB NOT NULL, PRIMARY KEY (mark, n))"
    )


def add(db: Connection, mark: bytes, rows: Iterable[tuple[int, bytes]]) -> None:
    """Add numbered rows (inside a transaction)."""
    db.executemany(
        "INSERT INTO sessions_here (mark, n, row) VALUES (?,?,?)", [(mark, n, row) for n, row in rows]
    )


def rows(db: Connection, mark: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield number and row of all of a session, in order."""
    yield from db.execute("SELECT n, row FROM sessions_here WHERE mark=? ORDER BY n", (mark,))


def last(db: Connection, mark: bytes) -> tuple[int, bytes] | None:
    """Return number and row of the last of a session; None if absent."""
    row: tuple[int, bytes] | None = db.execute(
        "SELECT n, row FROM sessions_here WHERE mark=? ORDER BY n DESC LIMIT 1", (mark,)
    ).fetchone()
    return row


def last_of_each(db: Connection) -> Iterator[tuple[bytes, bytes]]:
    """Yield mark and last row of each session."""
    yield from db.execute(
        "SELECT mark, row FROM sessions_here AS one WHERE n = (SELECT MAX(n) FROM sessions_here WHERE mark = one.mark)"
    )


def marks(db: Connection) -> Iterator[bytes]:
    """Yield the mark of each session, of a damaged file too."""
    yield from (mark for (mark,) in db.execute("SELECT DISTINCT mark FROM sessions_here"))


def delete(db: Connection, mark: bytes, n: int | None = None) -> None:
    """Delete one row of a session, or all (inside a transaction)."""
    if n is None:
        db.execute("DELETE FROM sessions_here WHERE mark=?", (mark,))
    else:
        db.execute("DELETE FROM sessions_here WHERE mark=? AND n=?", (mark, n))
