"""The table `objects`: the texts and segments, sealed or plain, that the state names, by SHA-256.

Derived from the state: `device.root_folders` counts them, and once a day a publish counts them again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from ipfsmem.device.connection import Connection

_COLUMNS = "digest, size, refs, held"


class ObjectRow(msgspec.Struct, frozen=True):
    """An object: its size in bytes, how many values name it, and whether it is in `o/` (then its block was here)."""

    digest: bytes
    size: int
    refs: int
    held: bool


def get_many(db: Connection, digests: Iterable[bytes]) -> dict[bytes, ObjectRow]:
    """Return the rows of those of these objects that have one."""
    rows = db.rows_where(f"SELECT {_COLUMNS} FROM objects WHERE digest IN ({{}})", digests)  # noqa: S608
    return {
        bytes(digest): ObjectRow(bytes(digest), size, refs, bool(held)) for digest, size, refs, held in rows
    }


def known_among(db: Connection, digests: Iterable[bytes]) -> set[bytes]:
    """Return those of these digests that are objects; a damaged row may add another one."""
    return {digest for (digest,) in db.rows_where("SELECT digest FROM objects WHERE digest IN ({})", digests)}


def digests(db: Connection) -> list[bytes]:
    """Return the digests of all objects."""
    return [bytes(digest) for (digest,) in db.execute("SELECT digest FROM objects").fetchall()]


def counts(db: Connection) -> dict[bytes, int]:
    """Return how often each is named, by the rows. In a damaged file a key may not be a digest."""
    return dict(db.execute("SELECT digest, refs FROM objects").fetchall())


def put(db: Connection, rows: Iterable[ObjectRow]) -> None:
    """Set these rows (inside a transaction)."""
    db.executemany(
        f"INSERT OR REPLACE INTO objects ({_COLUMNS}) VALUES (?,?,?,?)",  # noqa: S608
        [(row.digest, row.size, row.refs, int(row.held)) for row in rows],
    )


def forget(db: Connection, digests: Iterable[bytes]) -> None:
    """Delete the rows of these objects (inside a transaction)."""
    db.executemany("DELETE FROM objects WHERE digest=?", [(digest,) for digest in digests])


def hold(db: Connection, sizes: Iterable[tuple[bytes, int]]) -> None:
    """Record that these objects are in `o/`: digest, and the size of the block (inside a transaction)."""
    db.executemany(
        "UPDATE objects SET held=1, size=? WHERE digest=?", [(size, digest) for digest, size in sizes]
    )


def drop_lost(db: Connection, digests: Iterable[bytes]) -> list[bytes]:
    """Record that these are not in `o/` (inside a transaction). Returns those that were."""
    rows = db.rows_where("SELECT digest FROM objects WHERE held = 1 AND digest IN ({})", digests)
    gone = [bytes(digest) for (digest,) in rows]
    db.executemany("UPDATE objects SET held=0 WHERE digest=?", [(digest,) for digest in gone])
    return gone


def held_between(db: Connection, first: bytes, last: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield digest and size of the objects in `o/` from `first` to `last`, sorted."""
    rows = db.execute(
        "SELECT digest, size FROM objects WHERE digest BETWEEN ? AND ? AND held=1 ORDER BY digest",
        (first, last),
    )
    for digest, size in rows:
        yield bytes(digest), size


def not_held(db: Connection) -> set[bytes]:
    """Return the digests of the objects that are not in `o/`."""
    return {bytes(digest) for (digest,) in db.execute("SELECT digest FROM objects WHERE held=0")}


def came(db: Connection) -> list[bytes]:
    """Return objects that are not in `o/` and whose block is here by now."""
    rows = db.execute(
        "SELECT digest FROM objects WHERE held = 0 AND EXISTS (SELECT 1 FROM blocks WHERE blocks.digest = objects.digest)"
    )
    return [bytes(digest) for (digest,) in rows]


def without_block(db: Connection) -> list[bytes]:
    """Return objects whose block is not here, sorted."""
    rows = db.execute("SELECT digest FROM objects WHERE digest NOT IN (SELECT digest FROM blocks)")
    return sorted(bytes(digest) for (digest,) in rows)


def count(db: Connection) -> int:
    """Return how many objects the state names."""
    return int(db.execute("SELECT count(*) FROM objects").fetchone()[0])
