"""The table `reports`: what a person must be told and a command that nobody watched found."""

from __future__ import annotations

import msgspec

from ipfsmem.device.connection import Connection

#: So many stay, the newest.
MOST = 1000


class ReportRow(msgspec.Struct, frozen=True):
    """Something found: when (milliseconds since 1970 UTC), of which kind (a word of docs/ERRORS.md), in words."""

    at: int
    kind: str
    text: str


def add(db: Connection, row: ReportRow) -> None:
    """Remember it (inside a transaction); the oldest beyond `MOST` go."""
    db.execute("INSERT INTO reports (at, kind, text) VALUES (?,?,?)", msgspec.structs.astuple(row))
    db.execute("DELETE FROM reports WHERE id <= (SELECT max(id) FROM reports) - ?", (MOST,))


def newest(db: Connection, most: int) -> list[ReportRow]:
    """The newest ones, at most so many, newest first."""
    rows = db.execute("SELECT at, kind, text FROM reports ORDER BY id DESC LIMIT ?", (most,)).fetchall()
    return [ReportRow(*row) for row in rows]
