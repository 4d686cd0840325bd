"""The table `hidden`: texts that this device hides from its lists and answers; local to this device.

A row is found by a keyed hash of its entry's name and is sealed if the vault is (`device.hidden`). It is not derived: deleting it
shows the text again, and loses nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ipfsmem.device.connection import Connection


def hide(db: Connection, rows: Iterable[tuple[bytes, bytes]]) -> None:
    """Add rows, replacing any with the same mark (inside a transaction)."""
    db.executemany("INSERT OR REPLACE INTO hidden (mark, row) VALUES (?,?)", rows)


def show(db: Connection, marks: Iterable[bytes]) -> None:
    """Delete the rows with these marks (inside a transaction)."""
    db.executemany("DELETE FROM hidden WHERE mark=?", [(mark,) for mark in marks])


def rows(db: Connection) -> Iterator[tuple[bytes, bytes]]:
    """Yield mark and row of every hidden text."""
    yield from db.execute("SELECT mark, row FROM hidden")
