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
    """Return the mark of a device; None if no commit of it was seen."""
    row = db.execute("SELECT device, c, digest, h FROM marks WHERE device=?", (device,)).fetchone()
    return MarkRow(*row) if row is not None else None


def put(db: Connection, row: MarkRow) -> None:
    """Move a device's mark (inside a transaction)."""
    db.execute(
        "INSERT OR REPLACE INTO marks (device, c, digest, h) VALUES (?,?,?,?)", msgspec.structs.astuple(row)
    )


def restore(db: Connection, hlc: str) -> None:
    """Give each device without a mark that of its newest known head (inside a transaction).

    `hlc`: the latest clock value that this device has seen, as heads store none: with an earlier one an older version would pass
    for a later write of another copy of the device.
    """
    db.execute(
        "INSERT INTO marks (device, c, digest, h) SELECT device, max(c), digest, ? FROM heads "
        "WHERE device NOT IN (SELECT device FROM marks) GROUP BY device",
        (hlc,),
    )
