"""The table `journal`: the changes since the last checkpoint, in the order of writing.

`device.state` encodes the rows, and the mode's codec seals them. Each row has a checksum, so one damaged row does not make the
others doubtful; the hash in `meta` proves that none is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

from ipfsmem.device.connection import Connection, blob, damaged
from ipfsmem.device.tables import meta

#: Bytes of a checksum.
_CHECK = 8
_ROW = "(SELECT row FROM journal WHERE seq=?)"
_VALUE = "(SELECT value FROM meta WHERE name=?)"
_BLOCK = "(SELECT data FROM blocks WHERE digest=?)"


def append(db: Connection, row: bytes) -> tuple[int, bytes]:
    """Add a row (inside a transaction). Returns its number, and its stored form for a comparison with `read_back`."""
    stored = _check(row) + row
    return int(db.execute("INSERT INTO journal (row) VALUES (?)", (stored,)).lastrowid or 0), stored


def read_back(
    db: Connection, row: int, names: Sequence[str], digests: Sequence[bytes]
) -> tuple[Any, Sequence[Any], Sequence[Any]]:
    """Return in one statement what a write stored: a row by its number, values of `meta` by their names, and blocks; None for each
    that SQLite does not find, as happens in a damaged file."""
    parts = ",".join([_ROW, *[_VALUE] * len(names), *[_BLOCK] * len(digests)])
    first, *rest = db.execute(f"SELECT {parts}", (row, *names, *digests)).fetchone()
    return first, rest[: len(names)], rest[len(names) :]


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
    unchecked = list(without_checksums(db))
    for seq, row in unchecked:
        if row is None:
            raise damaged(db.path, f"journal row {seq} is invalid")
        chain = link(chain, row)
        db.execute("UPDATE journal SET row=? WHERE seq=?", (_check(row) + row, seq))
    if chain != (meta.get(db, meta.JOURNAL_CHAIN) or b""):
        raise damaged(db.path, "the journal is not as it was written")


def _check(row: bytes) -> bytes:
    return sha256(b"journal\0" + row).digest()[:_CHECK]
