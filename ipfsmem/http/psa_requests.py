"""The requests that the Pinning Service face of a peer took: what was asked for, when, and what became of it.

A table in SQLite, in a file or in memory. It knows nothing of HTTP and nothing of blocks.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from ipfsmem.content.cid import CID
from ipfsmem.errors import StorageError

QUEUED: Final = "queued"
PINNED: Final = "pinned"
STATUSES: Final = (QUEUED, "pinning", PINNED, "failed")
#: How a name is compared with the one asked for.
MATCHES: Final = ("exact", "iexact", "partial", "ipartial")


class PinRequest(msgspec.Struct, frozen=True):
    """One request. `cid` and `name` are kept as they came; `handle` is the store's own once it is pinned."""

    id: str
    cid: str
    name: str
    created: int  #: milliseconds since 1970 UTC; no two requests share one
    status: str
    origins: tuple[str, ...] = ()
    meta: dict[str, str] = {}
    handle: str = ""


class Wanted(msgspec.Struct, frozen=True):
    """Which requests a list is to show. Empty fields let everything through; times are milliseconds, exclusive."""

    cids: frozenset[CID] = frozenset()
    name: str = ""
    match: str = "exact"
    statuses: frozenset[str] = frozenset()
    before: int | None = None
    after: int | None = None
    meta: dict[str, str] = {}

    def takes(self, request: PinRequest, cid: CID) -> bool:
        """Whether a request, whose CID is `cid`, is wanted."""
        return (
            (not self.cids or cid.multihash in {wanted.multihash for wanted in self.cids})
            and (not self.name or self._named(request.name))
            and (not self.statuses or request.status in self.statuses)
            and (self.before is None or request.created < self.before)
            and (self.after is None or request.created > self.after)
            and all(request.meta.get(key) == value for key, value in self.meta.items())
        )

    def _named(self, name: str) -> bool:
        mine, theirs = self.name, name
        if self.match.startswith("i"):
            mine, theirs = mine.casefold(), theirs.casefold()
        return mine in theirs if self.match.endswith("partial") else mine == theirs


class PinRequests:
    """All requests, newest first. One thread."""

    def __init__(self, path: Path | None = None) -> None:
        """`path` of the database; None keeps them in memory. StorageError when it cannot be opened."""
        try:
            self._db = sqlite3.connect(str(path) if path else ":memory:", check_same_thread=False)
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS requests (id TEXT PRIMARY KEY, created INTEGER UNIQUE, body BLOB) STRICT"
            )
            self._db.commit()
        except sqlite3.Error as error:
            raise StorageError(f"the list of pins cannot be opened: {error}") from error

    def add(self, cid: str, name: str, origins: Iterable[str], meta: dict[str, str], now: int) -> PinRequest:
        """Note a request. Its time is made one millisecond later than the newest's when that is needed, so that
        pages that go by time neither repeat nor lose one."""
        (newest,) = self._db.execute("SELECT max(created) FROM requests").fetchone()
        created = max(now, (newest or 0) + 1)
        request = PinRequest(secrets.token_hex(16), cid, name, created, QUEUED, tuple(origins), meta)
        self._keep(request)
        return request

    def change(self, request: PinRequest) -> None:
        """Keep a request in its new state."""
        self._keep(request)

    def get(self, request_id: str) -> PinRequest | None:
        """One request."""
        row = self._db.execute("SELECT body FROM requests WHERE id=?", (request_id,)).fetchone()
        return msgspec.json.decode(row[0], type=PinRequest) if row else None

    def drop(self, request_id: str) -> None:
        """Forget a request."""
        with self._db:
            self._db.execute("DELETE FROM requests WHERE id=?", (request_id,))

    def all(self) -> list[PinRequest]:
        """Every request, newest first."""
        rows = self._db.execute("SELECT body FROM requests ORDER BY created DESC").fetchall()
        return [msgspec.json.decode(row[0], type=PinRequest) for row in rows]

    def close(self) -> None:
        """Close the database."""
        self._db.close()

    def _keep(self, request: PinRequest) -> None:
        try:
            with self._db:
                self._db.execute(
                    "INSERT OR REPLACE INTO requests VALUES (?,?,?)",
                    (request.id, request.created, msgspec.json.encode(request)),
                )
        except sqlite3.Error as error:
            raise StorageError(f"a pin cannot be noted: {error}") from error


def instant(ms: int) -> str:
    """Milliseconds since 1970 as RFC 3339 in UTC."""
    whole, rest = divmod(ms, 1000)
    return f"{datetime.fromtimestamp(whole, UTC).strftime('%Y-%m-%dT%H:%M:%S')}.{rest:03d}Z"
