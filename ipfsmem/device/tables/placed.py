"""The table `placed`: which roots this device stored at which provider."""

from __future__ import annotations

import msgspec

from ipfsmem.device.connection import Connection

_COLUMNS = "provider, root, answered, handle, at"


class PlacedRow(msgspec.Struct, frozen=True):
    """A root at a provider. `answered`: the root by which the provider knows it, which differs if the provider makes its own
    layout; `handle`: what unpins it, "" for none; `at`: when it was placed (milliseconds since 1970 UTC)."""

    provider: str
    root: str
    answered: str
    handle: str
    at: int


def put(db: Connection, row: PlacedRow) -> None:
    """Record that a root was placed (inside a transaction)."""
    db.execute(
        f"INSERT OR REPLACE INTO placed ({_COLUMNS}) VALUES (?,?,?,?,?)",  # noqa: S608
        msgspec.structs.astuple(row),
    )


def get(db: Connection, provider: str, root: str) -> PlacedRow | None:
    """Return the row of a root at a provider, None if absent."""
    row = db.execute(
        f"SELECT {_COLUMNS} FROM placed WHERE provider=? AND root=?",  # noqa: S608
        (provider, root),
    ).fetchone()
    return PlacedRow(*row) if row is not None else None


def under_either_name(db: Connection, provider: str, root: str) -> PlacedRow | None:
    """Return a row as `get`, where `root` may also be the one that the provider answered."""
    row = db.execute(
        f"SELECT {_COLUMNS} FROM placed WHERE provider=? AND (root=? OR answered=?)",  # noqa: S608
        (provider, root, root),
    ).fetchone()
    return PlacedRow(*row) if row is not None else None


def at_provider(db: Connection, provider: str) -> list[PlacedRow]:
    """Return all that was placed at a provider, by root."""
    rows = db.execute(f"SELECT {_COLUMNS} FROM placed WHERE provider=? ORDER BY root", (provider,)).fetchall()  # noqa: S608
    return [PlacedRow(*row) for row in rows]


def newest_at(db: Connection, provider: str, most: int) -> list[PlacedRow]:
    """Return the `most` newest rows of a provider, newest first."""
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM placed WHERE provider=? ORDER BY at DESC LIMIT ?",  # noqa: S608
        (provider, most),
    ).fetchall()
    return [PlacedRow(*row) for row in rows]


def providers_of(db: Connection, root: str) -> set[str]:
    """Return the names of the providers at which a root was placed."""
    return {provider for (provider,) in db.execute("SELECT provider FROM placed WHERE root=?", (root,))}


def was_answered(db: Connection, answered: str) -> bool:
    """Return whether a provider answered this root for one that was placed there."""
    return db.execute("SELECT 1 FROM placed WHERE answered=?", (answered,)).fetchone() is not None


def all_answered(db: Connection) -> set[str]:
    """Return the roots that providers answered."""
    return {answered for (answered,) in db.execute("SELECT answered FROM placed")}


def forget(db: Connection, provider: str, answered: str) -> None:
    """Forget a root at a provider (inside a transaction)."""
    db.execute("DELETE FROM placed WHERE provider=? AND answered=?", (provider, answered))
