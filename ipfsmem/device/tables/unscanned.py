"""The table `unscanned`: entries that this device wrote and that were not searched for secrets yet.

A row is a sealed list of names: see `device.writing`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ipfsmem.device.connection import Connection


def add(db: Connection, names: bytes) -> None:
    """Add a sealed list of names (inside a transaction)."""
    db.execute("INSERT INTO unscanned (names) VALUES (?)", (names,))


def rows(db: Connection) -> Iterator[tuple[int, bytes]]:
    """Yield number and names of each row, the oldest first."""
    yield from db.execute("SELECT seq, names FROM unscanned ORDER BY seq")


def forget(db: Connection, numbers: Iterable[int]) -> None:
    """Delete these rows (inside a transaction)."""
    db.executemany("DELETE FROM unscanned WHERE seq=?", [(number,) for number in numbers])
