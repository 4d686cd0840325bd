"""The table `reports`: findings of unattended commands, which the user must be told."""

from __future__ import annotations

import msgspec

from ipfsmem.device.connection import Connection

#: Maximum number of rows: the newest are kept.
MOST = 1000


class ReportRow(msgspec.Struct, frozen=True):
    """A finding: when (milliseconds since 1970 UTC), its kind (a word of docs/reference/errors.md), and its description."""

    at: int
    kind: str
    text: str


def add(db: Connection, row: ReportRow) -> None:
    """Add a row (inside a transaction); the oldest beyond `MOST` are deleted."""
    db.execute("INSERT INTO reports (at, kind, text) VALUES (?,?,?)", msgspec.structs.astuple(row))
    db.execute("DELETE FROM reports WHERE id <= (SELECT max(id) FROM reports) - ?", (MOST,))


def newest(db: Connection, most: int) -> list[ReportRow]:
    """Return the `most` newest rows, newest first."""
    rows = db.execute("SELECT at, kind, text FROM reports ORDER BY id DESC LIMIT ?", (most,)).fetchall()
    return [ReportRow(*row) for row in rows]


def count_before(db: Connection, moment: int) -> int:
    """Return how many rows are older than a time (milliseconds since 1970 UTC)."""
    return int(db.execute("SELECT count(*) FROM reports WHERE at < ?", (moment,)).fetchone()[0])


def delete_before(db: Connection, moment: int) -> None:
    """Delete the rows that are older than a time (inside a transaction)."""
    db.execute("DELETE FROM reports WHERE at < ?", (moment,))
