"""The table `journal`: the changes since the last checkpoint, in the order of writing.

`device.state` encodes the rows, and the mode's codec seals them. Each row has a checksum, so one damaged row does not make the
others doubtful; the hash in `meta` proves that none is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from ipfsmem.device.connection import Connection, blob, damaged, not_found_again
from ipfsmem.device.tables import meta

#: Bytes of a checksum.
_CHECK = 8


def append(db: Connection, row: bytes, after: int) -> int:
    """Add a row (inside a transaction). Returns its number, which is greater than `after`, that of the last row.

    StorageError if it cannot be read back, which happens in a damaged file.
    """
    stored = _check(row) + row
    seq = int(db.execute("INSERT INTO journal (row) VALUES (?)", (stored,)).lastrowid or 0)
    found = db.execute("SELECT row FROM journal WHERE seq=?", (seq,)).fetchone()
    if seq <= after or found is None or found[0] != stored:
        raise not_found_again(db.path, "a row of the journal")
    return seq


def rows(db: Connection) -> Iterator[tuple[int, bytes]]:
    """Yield number and content of each row, in order. DatabaseDamagedError at one without its checksum."""
    for seq, row in readable(db):
        if row is None:
            raise damaged(db.path, f"journal row {seq} does not have its checksum")
        yield seq, row


def readable(db: Connection) -> Iterator[tuple[int, bytes | None]]:
    """Yield number and content of each row, in order; None for a damaged one."""
    for seq, stored in db.execute("SELECT seq, row FROM journal ORDER BY seq"):
        data = blob(stored) or b""
        yield seq, data[_CHECK:] if data[:_CHECK] == _check(data[_CHECK:]) else None


def without_checksums(db: Connection) -> Iterator[tuple[int, bytes | None]]:
    """Yield the rows as `readable` for a file of the first version, whose rows have no checksum; None for an invalid row."""
    for seq, stored in db.execute("SELECT seq, row FROM journal ORDER BY seq"):
        yield seq, blob(stored)


def link(chain: bytes, row: bytes) -> bytes:
    """Return the hash over the state and the rows of the journal up to this one; it begins with `link(b"", state)`."""
    return sha256(chain + row).digest()[:16]


def last_number(db: Connection) -> int:
    """Return the greatest number that a row ever had, 0 before the first: it changes with every write."""
    row = db.execute("SELECT seq FROM sqlite_sequence WHERE name='journal'").fetchone()
    return int(row[0]) if row else 0


def clear(db: Connection) -> None:
    """Delete all rows (inside a transaction)."""
    db.execute("DELETE FROM journal")


def add_checksums(db: Connection) -> None:
    """Give rows of a version without checksums their checksums (inside a transaction). DatabaseDamagedError if they differ from
    what was written, which a checksum would hide."""
    state = meta.get(db, meta.STATE)
    chain = b"" if state is None else link(b"", state)
    found = list(without_checksums(db))
    for seq, row in found:
        if row is None:
            raise damaged(db.path, f"journal row {seq} is none")
        chain = link(chain, row)
        db.execute("UPDATE journal SET row=? WHERE seq=?", (_check(row) + row, seq))
    if chain != (meta.get(db, meta.JOURNAL_CHAIN) or b""):
        raise damaged(db.path, "the journal is not as it was written")


def _check(row: bytes) -> bytes:
    return sha256(b"journal\0" + row).digest()[:_CHECK]
