"""The table `authors`: the authors of texts that several members overwrote.

A row is found by a keyed hash of the text's name, so that the disk alone reveals no names. `by` are ids of families
(a device and its successors), sorted.
"""

from __future__ import annotations

from collections.abc import Iterable

from ipfsmem.device.connection import Connection


def any_known(db: Connection) -> bool:
    """Return whether there is any row; most vaults have none."""
    return db.execute("SELECT 1 FROM authors LIMIT 1").fetchone() is not None


def get(db: Connection, mark: bytes) -> list[str] | None:
    """Return the authors of the text; None if no device overwrote another's."""
    row = db.execute("SELECT by FROM authors WHERE mark=?", (mark,)).fetchone()
    return row[0].split() if row is not None else None


def everyone(db: Connection) -> dict[bytes, list[str]]:
    """Return all rows."""
    return {bytes(mark): by.split() for mark, by in db.execute("SELECT mark, by FROM authors")}


def put(db: Connection, rows: Iterable[tuple[bytes, str]]) -> None:
    """Set the authors of texts: (keyed hash, ids separated by spaces) (inside a transaction)."""
    db.executemany("INSERT OR REPLACE INTO authors (mark, by) VALUES (?,?)", rows)


def forget(db: Connection, marks: Iterable[bytes]) -> None:
    """Delete the rows of these texts (inside a transaction)."""
    db.executemany("DELETE FROM authors WHERE mark=?", [(mark,) for mark in marks])
