"""The tables `presence` and `sent_again`: which blocks a provider's copy lacks, and which were sent there again.

`sync.presence` encodes the rows of `presence`, and decides what a damaged one means.
"""

from __future__ import annotations

from collections.abc import Iterable

from ipfsmem.device.connection import Connection, blob


def get(db: Connection, provider: str) -> bytes | None:
    """Return the row of a provider; None if absent, b"" for a damaged one."""
    row = db.execute("SELECT row FROM presence WHERE provider=?", (provider,)).fetchone()
    return None if row is None else blob(row[0]) or b""


def put(db: Connection, provider: str, row: bytes) -> None:
    """Set the row of a provider (inside a transaction)."""
    db.execute("INSERT OR REPLACE INTO presence (provider, row) VALUES (?,?)", (provider, row))


def often_sent(db: Connection, provider: str, times: int, after: int, until: int) -> set[bytes]:
    """Return the digests of blocks that were sent again to a provider at least `times` times, the last time after `after` and not
    after `until` (milliseconds since 1970 UTC)."""
    rows = db.execute(
        "SELECT digest FROM sent_again WHERE provider=? AND times>=? AND at>? AND at<=?",
        (provider, times, after, until),
    )
    return {bytes(digest) for (digest,) in rows}


def count_sent(db: Connection, provider: str, digests: Iterable[bytes], at: int) -> None:
    """Count blocks as sent there again, at `at` (milliseconds since 1970 UTC) (inside a transaction)."""
    db.executemany(
        "INSERT INTO sent_again (provider, digest, times, at) VALUES (?,?,1,?) "
        "ON CONFLICT(provider, digest) DO UPDATE SET times=times+1, at=excluded.at",
        [(provider, digest, at) for digest in digests],
    )


def forget_sent(db: Connection, provider: str) -> None:
    """Delete all counts of a provider (inside a transaction)."""
    db.execute("DELETE FROM sent_again WHERE provider=?", (provider,))


def forget_sent_outside(db: Connection, first: int, last: int) -> None:
    """Delete the counts of blocks, at all providers, that were last sent before `first` or after `last` (inside a transaction)."""
    db.execute("DELETE FROM sent_again WHERE at < ? OR at > ?", (first, last))
