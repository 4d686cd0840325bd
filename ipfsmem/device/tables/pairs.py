"""The table `pairs`: every pair (n, r) that this device drew for a commit, by the id under which it drew it.

A head with a pair of this device that is in no row comes from a copy of this device (format section 5).
"""

from __future__ import annotations

from ipfsmem.device.connection import Connection


def add(db: Connection, device: str, n: int, r: bytes) -> None:
    """Record a pair that was drawn (inside a transaction): the counter `n`, and 8 random bytes."""
    db.execute("INSERT INTO pairs (device, n, r) VALUES (?,?,?)", (device, n, r))


def was_drawn(db: Connection, device: str, n: int, r: bytes) -> bool:
    """Return whether this device drew the pair under this id."""
    row = db.execute("SELECT 1 FROM pairs WHERE device=? AND n=? AND r=?", (device, n, r)).fetchone()
    return row is not None
