"""The table `journal`: the changes since the last checkpoint, in the order of writing.

`device.state` encodes the rows, and the mode's codec seals them; `meta` has the hash that proves that none is missing.
"""

from __future__ import annotations

from collections.abc import Iterator

from ipfsmem.device.connection import Connection, blob, damaged, not_found_again


def append(db: Connection, row: bytes, after: int) -> int:
    """Add a row (inside a transaction). Returns its number, which is greater than `after`, that of the last row.

    StorageError when it cannot be read back, which happens in a damaged file.
    """
    seq = int(db.execute("INSERT INTO journal (row) VALUES (?)", (row,)).lastrowid or 0)
    found = db.execute("SELECT row FROM journal WHERE seq=?", (seq,)).fetchone()
    if seq <= after or found is None or found[0] != row:
        raise not_found_again(db.path, "a row of the journal")
    return seq


def rows(db: Connection) -> Iterator[tuple[int, bytes]]:
    """Number and content of each row, in order. StorageError at a damaged one."""
    for seq, stored in db.execute("SELECT seq, row FROM journal ORDER BY seq"):
        row = blob(stored)
        if row is None:
            raise damaged(db.path, f"journal row {seq} has a value of the wrong type")
        yield seq, row


def last_number(db: Connection) -> int:
    """The greatest number that a row ever had, 0 before the first: it changes with every write."""
    row = db.execute("SELECT seq FROM sqlite_sequence WHERE name='journal'").fetchone()
    return int(row[0]) if row else 0


def clear(db: Connection) -> None:
    """Delete all rows (inside a transaction)."""
    db.execute("DELETE FROM journal")
