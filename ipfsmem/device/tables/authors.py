"""The table `authors`: of texts that others wrote over, who had written them and who wrote over them.

A row is found by a keyed hash of the text's name, so that the disk alone says nothing of names. `by` are ids of families
(a device and its successors), sorted.
"""

from __future__ import annotations

from collections.abc import Iterable

from ipfsmem.device.connection import Connection


def any_known(db: Connection) -> bool:
    """Whether there is any row: there is none in most memories."""
    return db.execute("SELECT 1 FROM authors LIMIT 1").fetchone() is not None


def get(db: Connection, mark: bytes) -> list[str] | None:
    """Who wrote the text; None when nobody else wrote over it."""
    row = db.execute("SELECT by FROM authors WHERE mark=?", (mark,)).fetchone()
    return row[0].split() if row is not None else None


def everyone(db: Connection) -> dict[bytes, list[str]]:
    """All rows."""
    return {bytes(mark): by.split() for mark, by in db.execute("SELECT mark, by FROM authors")}


def put(db: Connection, rows: Iterable[tuple[bytes, str]]) -> None:
    """Remember who wrote texts: (mark, ids with a space between them) (inside a transaction)."""
    db.executemany("INSERT OR REPLACE INTO authors (mark, by) VALUES (?,?)", rows)


def forget(db: Connection, marks: Iterable[bytes]) -> None:
    """These texts are gone (inside a transaction)."""
    db.executemany("DELETE FROM authors WHERE mark=?", [(mark,) for mark in marks])
