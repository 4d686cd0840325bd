"""The table `heads`: the verified heads that this device joined or published, by their roots."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ipfsmem.device.connection import Connection

_COLUMNS = "root, device, c, digest, seen"


class HeadRow(msgspec.Struct, frozen=True):
    """A known head: its root as text, whose commit it is, that commit's number and digest (hex), and when the root was first seen
    here (milliseconds since 1970 UTC)."""

    root: str
    device: str
    number: int
    digest: str
    seen: int


def put(db: Connection, row: HeadRow, prev: Iterable[str]) -> None:
    """Add a head (inside a transaction). `prev`: digests (hex) of its commit's predecessors."""
    db.execute(
        f"INSERT OR REPLACE INTO heads ({_COLUMNS}, prev) VALUES (?,?,?,?,?,?)",  # noqa: S608
        (row.root, row.device, row.number, row.digest, row.seen, bytes.fromhex("".join(prev))),
    )


def get(db: Connection, root: str) -> HeadRow | None:
    """Return the head of a root; None if this device does not know it."""
    row = db.execute(f"SELECT {_COLUMNS} FROM heads WHERE root=?", (root,)).fetchone()  # noqa: S608
    return HeadRow(*row) if row is not None else None


def newest_first(db: Connection) -> list[HeadRow]:
    """Return all known heads, the last seen first."""
    rows = db.execute(f"SELECT {_COLUMNS} FROM heads ORDER BY seen DESC, c DESC").fetchall()  # noqa: S608
    return [HeadRow(*row) for row in rows]


def roots(db: Connection) -> list[str]:
    """Return the roots of all known heads, sorted."""
    return [root for (root,) in db.execute("SELECT root FROM heads ORDER BY root")]


def count(db: Connection) -> int:
    """Return how many heads are known."""
    return int(db.execute("SELECT count(*) FROM heads").fetchone()[0])


def last_number(db: Connection, device: str) -> int:
    """Return the greatest number of a device's commits among the known heads; 0 if absent."""
    return db.execute("SELECT max(c) FROM heads WHERE device=?", (device,)).fetchone()[0] or 0


def last_seen(db: Connection) -> dict[str, int]:
    """Return by device id when the newest known head of each device was first seen here."""
    return dict(db.execute("SELECT device, max(seen) FROM heads GROUP BY device"))


def any_known(db: Connection) -> bool:
    """Return whether any head was joined or published yet."""
    return db.execute("SELECT 1 FROM heads LIMIT 1").fetchone() is not None


def past(db: Connection) -> set[str]:
    """Return the digests (hex) of all predecessors of the commits of known heads."""
    rows = db.execute("SELECT prev FROM heads")
    return {prev[at : at + 32].hex() for (prev,) in rows for at in range(0, len(prev), 32)}


def forget(db: Connection, roots: Iterable[str]) -> None:
    """Forget these heads (inside a transaction)."""
    db.executemany("DELETE FROM heads WHERE root=?", [(root,) for root in roots])
