"""The table `nodes`: the parts of the state's tree as it was written last, by the prefix of the names below each."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ipfsmem.device.connection import Connection, damaged

_COLUMNS = "prefix, hash, file, size"


class NodeRow(msgspec.Struct, frozen=True):
    """A part of the tree. `hash`: SHA-256 of its JSON, which the part above it names; `file`: SHA-256 of what is stored, sealed
    or not, which is a block; `size`: its bytes."""

    prefix: str
    hash: bytes
    file: bytes
    size: int


def get(db: Connection, prefix: str) -> NodeRow | None:
    """The part at a prefix ("" for the top). In a damaged file its values may be of any type: check before use."""
    row = db.execute(f"SELECT {_COLUMNS} FROM nodes WHERE prefix=?", (prefix,)).fetchone()  # noqa: S608
    return NodeRow(*row) if row is not None else None


def get_many(db: Connection, prefixes: Iterable[str]) -> list[NodeRow]:
    """The parts at these prefixes, as far as there are any. Raises StorageError for a row that is none any more."""
    found = [
        NodeRow(*row)
        for row in db.rows_where(f"SELECT {_COLUMNS} FROM nodes WHERE prefix IN ({{}})", prefixes)  # noqa: S608
    ]
    for row in found:
        if not isinstance(row.file, bytes) or len(row.file) != 32 or not isinstance(row.size, int):
            raise damaged(db.path, f"the row of the part {row.prefix or 'top'} is none")
    return found


def prefixes(db: Connection) -> set[str]:
    """The prefixes of all parts."""
    return {prefix for (prefix,) in db.execute("SELECT prefix FROM nodes")}


def files(db: Connection) -> list[bytes]:
    """The blocks in which all parts are stored."""
    return [bytes(file) for (file,) in db.execute("SELECT file FROM nodes")]


def any_known(db: Connection) -> bool:
    """Whether a tree was written yet."""
    return db.execute("SELECT 1 FROM nodes LIMIT 1").fetchone() is not None


def count(db: Connection) -> int:
    """How many parts there are."""
    return int(db.execute("SELECT count(*) FROM nodes").fetchone()[0])


def put(db: Connection, rows: Iterable[NodeRow]) -> NodeRow | None:
    """Keep these parts (inside a transaction). The first that is not found again as it was put, which a damaged file does,
    or None: then the transaction must not end well."""
    kept = [msgspec.structs.astuple(row) for row in rows]
    db.executemany(f"INSERT OR REPLACE INTO nodes ({_COLUMNS}) VALUES (?,?,?,?)", kept)  # noqa: S608
    find = db.own_cursor()
    for prefix, digest, file, size in kept:
        found = find.execute("SELECT file, hash FROM nodes WHERE prefix=?", (prefix,)).fetchone()
        if found != (file, digest):
            return NodeRow(prefix, digest, file, size)
    return None


def forget(db: Connection, prefixes: Iterable[str]) -> None:
    """There are no parts at these prefixes any more (inside a transaction)."""
    db.executemany("DELETE FROM nodes WHERE prefix=?", [(prefix,) for prefix in prefixes])
