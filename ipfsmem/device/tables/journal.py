"""The table `journal`: what was written since the tree was, in the order of writing.

A row is a value of `device.state`, sealed as the mode seals; what proves that none is missing stands in `meta`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ipfsmem.device.connection import Connection, blob, damaged, not_found_again


def append(db: Connection, row: bytes, after: int) -> int:
    """Add a row (inside a transaction); its number, greater than `after`, which was the last one.

    Raises StorageError when it is not found again, which happens in a damaged file.
    """
    seq = int(db.execute("INSERT INTO journal (row) VALUES (?)", (row,)).lastrowid or 0)
    found = db.execute("SELECT row FROM journal WHERE seq=?", (seq,)).fetchone()
    if seq <= after or found is None or found[0] != row:
        raise not_found_again(db.path, "a row of the journal")
    return seq


def rows(db: Connection) -> Iterator[tuple[int, bytes]]:
    """Number and content of each row, in order. Raises StorageError at one that holds no bytes any more."""
    for seq, stored in db.execute("SELECT seq, row FROM journal ORDER BY seq"):
        row = blob(stored)
        if row is None:
            raise damaged(db.path, f"journal row {seq} is no longer one")
        yield seq, row


def last_number(db: Connection) -> int:
    """The greatest number that a row ever had, 0 before the first: it changes with every write."""
    row = db.execute("SELECT seq FROM sqlite_sequence WHERE name='journal'").fetchone()
    return int(row[0]) if row else 0


def clear(db: Connection) -> None:
    """All of it is in the tree now (inside a transaction)."""
    db.execute("DELETE FROM journal")
