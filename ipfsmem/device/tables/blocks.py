"""The table `blocks`: every block on this device, by SHA-256.

The rows of a damaged file may contain anything: `device.database` checks each block that it returns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ipfsmem.device.connection import Connection, damaged

_DATA = "SELECT data FROM blocks WHERE digest=?"


def get(db: Connection, digest: bytes) -> Any:
    """Return the content of a block's row, unchecked; None without a row."""
    row = db.execute(_DATA, (digest,)).fetchone()
    return row[0] if row is not None else None


def get_many(db: Connection, digests: Iterable[bytes]) -> list[tuple[bytes, Any]]:
    """Return digest and content, unchecked, of those of these blocks that have a row."""
    return db.rows_where("SELECT digest, data FROM blocks WHERE digest IN ({})", digests)


def has(db: Connection, digest: bytes) -> bool:
    """Return whether a block has a row."""
    return db.execute("SELECT 1 FROM blocks WHERE digest=?", (digest,)).fetchone() is not None


def known_among(db: Connection, digests: Iterable[bytes]) -> list[bytes]:
    """Return those of these blocks that have a row."""
    return [digest for (digest,) in db.rows_where("SELECT digest FROM blocks WHERE digest IN ({})", digests)]


def sizes_among(db: Connection, digests: Iterable[bytes]) -> list[tuple[bytes, int]]:
    """Return digest and number of bytes of those of these blocks that have a row."""
    return db.rows_where("SELECT digest, length(data) FROM blocks WHERE digest IN ({})", digests)


def rows(db: Connection) -> Iterator[tuple[bytes, Any]]:
    """Yield all rows, unchecked."""
    yield from db.execute("SELECT digest, data FROM blocks")


def sizes(db: Connection) -> Iterator[tuple[bytes, int]]:
    """Yield digest and number of bytes of all blocks."""
    for digest, size in db.execute("SELECT digest, length(data) FROM blocks").fetchall():
        yield bytes(digest), size


def put(db: Connection, blocks: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Add blocks that have no row (inside a transaction). Returns those that cannot be read back with these bytes: their row was
    damaged before, or SQLite put it where it does not find it, as happens in a damaged file."""
    add(db, blocks)
    stored = dict(get_many(db, [digest for digest, _ in blocks]))
    return [(digest, data) for digest, data in blocks if stored.get(digest) != data]


def add(db: Connection, blocks: Sequence[tuple[bytes, bytes]]) -> None:
    """Add blocks that have no row (inside a transaction). Check that they can be read back: see `put`."""
    db.executemany("INSERT OR IGNORE INTO blocks (digest, data) VALUES (?,?)", blocks)


def replace(db: Connection, digest: bytes, data: bytes) -> bool:
    """Replace the damaged row of a block (inside a transaction). Returns whether it can be read back. If the index leads to
    another block's row, that one stays unchanged."""
    run = db.own_cursor()
    stored = run.execute(
        "SELECT digest FROM blocks NOT INDEXED WHERE rowid=(SELECT rowid FROM blocks WHERE digest=?)",
        (digest,),
    ).fetchone()
    if stored is None or stored[0] != digest:
        return False
    run.execute("DELETE FROM blocks WHERE digest=?", (digest,))
    run.execute("INSERT INTO blocks (digest, data) VALUES (?,?)", (digest, data))
    row = run.execute(_DATA, (digest,)).fetchone()
    return row is not None and row[0] == data


def forget_object(db: Connection, digest: bytes) -> bool:
    """Delete the row of a block that is an object (inside a transaction). Returns whether there was one. If the index leads to
    another block's row, that one stays unchanged."""
    run = db.own_cursor()
    row = run.execute(
        "SELECT digest FROM blocks NOT INDEXED WHERE rowid=(SELECT rowid FROM blocks WHERE digest=?) "
        "AND EXISTS (SELECT 1 FROM objects WHERE objects.digest=?)",
        (digest, digest),
    ).fetchone()
    if row is None or row[0] != digest:
        return False
    run.execute("DELETE FROM blocks WHERE digest=?", (digest,))
    return True


def forget(db: Connection, digests: Iterable[bytes]) -> None:
    """Delete blocks (inside a transaction)."""
    db.executemany("DELETE FROM blocks WHERE digest=?", [(digest,) for digest in digests])


def check_order(db: Connection) -> None:
    """Raise StorageError if the rows or their index are out of order. Reads no block.

    Whether an out-of-order row is found depends on chance: an added row can hide another one.
    """
    for query in (
        "SELECT digest FROM blocks INDEXED BY sqlite_autoindex_blocks_1 ORDER BY digest",
        "SELECT rowid FROM blocks NOT INDEXED",
    ):
        last = None
        for (value,) in db.execute(query):
            if last is not None and (type(value) is not type(last) or value <= last):
                raise damaged(db.path, "its blocks are not in the order in which they are looked for")
            last = value
