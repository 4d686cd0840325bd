"""The table `marks`: the newest commit of each device that was seen, its high-water mark (format section 5)."""

from __future__ import annotations

import msgspec

from ipfsmem.device.connection import Connection


class MarkRow(msgspec.Struct, frozen=True):
    """The commit with the greatest number that a device was seen to sign: number, digest (hex), clock value."""

    device: str
    number: int
    digest: str
    hlc: str


def get(db: Connection, device: str) -> MarkRow | None:
    """The mark of a device; None when no commit of it was seen."""
    row = db.execute("SELECT device, c, digest, h FROM marks WHERE device=?", (device,)).fetchone()
    return MarkRow(*row) if row is not None else None


def put(db: Connection, row: MarkRow) -> None:
    """Move a device's mark (inside a transaction)."""
    db.execute(
        "INSERT OR REPLACE INTO marks (device, c, digest, h) VALUES (?,?,?,?)", msgspec.structs.astuple(row)
    )


def restore(db: Connection, hlc: str) -> None:
    """Give each device that has no mark the one that its newest known head makes (inside a transaction).

    `hlc`: the latest clock value that this device has seen, since heads keep none of their own: with an earlier one an older
    version would pass for what another copy of the device wrote later.
    """
    db.execute(
        "INSERT INTO marks (device, c, digest, h) SELECT device, max(c), digest, ? FROM heads "
        "WHERE device NOT IN (SELECT device FROM marks) GROUP BY device",
        (hlc,),
    )
