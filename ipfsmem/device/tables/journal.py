"""The table `journal`: the changes since the last checkpoint, in the order of writing.

`device.state` encodes the rows, and the mode's codec seals them. Each row has a checksum, so one damaged row does not make the others
doubtful; `meta` has the hash that proves that none is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from ipfsmem.device.connection import Connection, blob, damaged, not_found_again

#: Bytes of a checksum.
_CHECK = 8


def append(db: Connection, row: bytes, after: int) -> int:
    """Add a row (inside a transaction). Returns its number, which is greater than `after`, that of the last row.

    StorageError when it cannot be read back, which happens in a damaged file.
    """
    stored = _check(row) + row
    seq = int(db.execute("INSERT INTO journal (row) VALUES (?)", (stored,)).lastrowid or 0)
    found = db.execute("SELECT row FROM journal WHERE seq=?", (seq,)).fetchone()
    if seq <= after or found is None or found[0] != stored:
        raise not_found_again(db.path, "a row of the journal")
    return seq


def rows(db: Connection) -> Iterator[tuple[int, bytes]]:
    """Number and content of each row, in order. DatabaseDamagedError at one without its checksum."""
    for seq, row in readable(db):
        if row is None:
            raise damaged(db.path, f"journal row {seq} does not have its checksum")
        yield seq, row


def readable(db: Connection) -> Iterator[tuple[int, bytes | None]]:
    """Number and content of each row, in order; None for a damaged one."""
    for seq, stored in db.execute("SELECT seq, row FROM journal ORDER BY seq"):
        data = blob(stored) or b""
        yield seq, data[_CHECK:] if data[:_CHECK] == _check(data[_CHECK:]) else None


def last_number(db: Connection) -> int:
    """The greatest number that a row ever had, 0 before the first: it changes with every write."""
    row = db.execute("SELECT seq FROM sqlite_sequence WHERE name='journal'").fetchone()
    return int(row[0]) if row else 0


def clear(db: Connection) -> None:
    """Delete all rows (inside a transaction)."""
    db.execute("DELETE FROM journal")


def add_checksums(db: Connection) -> None:
    """Give rows of a version without them their checksums (inside a transaction)."""
    for seq, row in db.execute("SELECT seq, row FROM journal").fetchall():
        db.execute("UPDATE journal SET row=? WHERE seq=?", (_check(row) + row, seq))


def _check(row: bytes) -> bytes:
    return sha256(b"journal\0" + row).digest()[:_CHECK]
