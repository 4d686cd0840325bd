"""The table `hidden`: texts that this device leaves out of its lists and answers. No other device hears of it.

A row is found by a keyed hash of its entry's name and is sealed where the memory is (`device.hidden`). It is not derived: who deletes
it has the text in the lists again, and nothing is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ipfsmem.device.connection import Connection


def hide(db: Connection, rows: Iterable[tuple[bytes, bytes]]) -> None:
    """Add rows, each in the place of one with its mark (inside a transaction)."""
    db.executemany("INSERT OR REPLACE INTO hidden (mark, row) VALUES (?,?)", rows)


def show(db: Connection, marks: Iterable[bytes]) -> None:
    """Delete the rows with these marks (inside a transaction)."""
    db.executemany("DELETE FROM hidden WHERE mark=?", [(mark,) for mark in marks])


def rows(db: Connection) -> Iterator[tuple[bytes, bytes]]:
    """Mark and row of all."""
    yield from db.execute("SELECT mark, row FROM hidden")
