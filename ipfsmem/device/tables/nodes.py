"""The table `nodes`: the nodes of the state's tree at the last checkpoint, by the prefix of the names below each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from ipfsmem.device.connection import Connection, damaged

_COLUMNS = "prefix, hash, file, size"


class NodeRow(msgspec.Struct, frozen=True):
    """A node of the tree. `hash`: SHA-256 of its JSON, by which its parent names it; `file`: SHA-256 of the block in which it is
    stored, sealed or not; `size`: bytes of that block."""

    prefix: str
    hash: bytes
    file: bytes
    size: int


def get(db: Connection, prefix: str) -> NodeRow | None:
    """Return the node at a prefix ("" for the top), None if absent. In a damaged file its values may have any type."""
    row = db.execute(f"SELECT {_COLUMNS} FROM nodes WHERE prefix=?", (prefix,)).fetchone()  # noqa: S608
    return NodeRow(*row) if row is not None else None


def rows(db: Connection) -> Iterator[NodeRow]:
    """Yield all nodes. In a damaged file their values may be of any type: check before use."""
    for row in db.execute(f"SELECT {_COLUMNS} FROM nodes"):  # noqa: S608
        yield NodeRow(*row)


def get_many(db: Connection, prefixes: Iterable[str]) -> list[NodeRow]:
    """Return the existing nodes among these prefixes. StorageError for a damaged row."""
    node_rows = [
        NodeRow(*row)
        for row in db.rows_where(f"SELECT {_COLUMNS} FROM nodes WHERE prefix IN ({{}})", prefixes)  # noqa: S608
    ]
    for row in node_rows:
        if not isinstance(row.file, bytes) or len(row.file) != 32 or not isinstance(row.size, int):
            raise damaged(db.path, f"the row of the node {row.prefix or 'top'} has a value of the wrong type")
    return node_rows


def prefixes(db: Connection) -> set[str]:
    """Return the prefixes of all nodes."""
    return {prefix for (prefix,) in db.execute("SELECT prefix FROM nodes")}


def files(db: Connection) -> list[bytes]:
    """Return the SHA-256 of the block of each node."""
    return [bytes(file) for (file,) in db.execute("SELECT file FROM nodes").fetchall()]


def any_known(db: Connection) -> bool:
    """Return whether there is any node."""
    return db.execute("SELECT 1 FROM nodes LIMIT 1").fetchone() is not None


def count(db: Connection) -> int:
    """Return how many nodes there are."""
    return int(db.execute("SELECT count(*) FROM nodes").fetchone()[0])


def put(db: Connection, rows: Iterable[NodeRow]) -> NodeRow | None:
    """Set these nodes (inside a transaction). Return the first node that does not read back, else None; if a node is
    returned, the caller must roll back."""
    values = [msgspec.structs.astuple(row) for row in rows]
    db.executemany(f"INSERT OR REPLACE INTO nodes ({_COLUMNS}) VALUES (?,?,?,?)", values)  # noqa: S608
    find = db.own_cursor()
    for prefix, digest, file, size in values:
        stored = find.execute("SELECT file, hash FROM nodes WHERE prefix=?", (prefix,)).fetchone()
        if stored != (file, digest):
            return NodeRow(prefix, digest, file, size)
    return None


def forget(db: Connection, prefixes: Iterable[str]) -> None:
    """Delete the nodes at these prefixes (inside a transaction)."""
    db.executemany("DELETE FROM nodes WHERE prefix=?", [(prefix,) for prefix in prefixes])
