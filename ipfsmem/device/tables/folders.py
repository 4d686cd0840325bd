"""The table `folders`: folders (and files of plain roots) that were made last, by a path of this device's own.

A path is `s` or `o` with digits for the folders of a root, `p/<scope>/<day>/<hash>` for a day's file of a plain one.
"""

from __future__ import annotations

from collections.abc import Iterable

from ipfsmem.device.connection import Connection, damaged

#: A folder or file: its CID as bytes (36), and the bytes of all blocks below it.
Folder = tuple[bytes, int]


def get(db: Connection, path: str) -> Folder | None:
    """What was made at a path. Raises StorageError for a row that is none any more."""
    row = db.execute("SELECT cid, size FROM folders WHERE path=?", (path,)).fetchone()
    if row is None:
        return None
    if not isinstance(row[0], bytes) or len(row[0]) != 36 or not isinstance(row[1], int):
        raise damaged(db.path, f"the row of the folder {path} is none")
    return row[0], row[1]


def has(db: Connection, path: str) -> bool:
    """Whether something was made at a path."""
    return db.execute("SELECT 1 FROM folders WHERE path=?", (path,)).fetchone() is not None


def between(db: Connection, first: str, end: str) -> dict[str, Folder]:
    """Everything from `first` on and before `end`, by path."""
    rows = db.execute("SELECT path, cid, size FROM folders WHERE path >= ? AND path < ?", (first, end))
    return {path: (bytes(cid), size) for path, cid, size in rows}


def any_below(db: Connection, path: str) -> bool:
    """Whether a path of hex digits has folders below it."""
    row = db.execute("SELECT 1 FROM folders WHERE path > ? AND path < ? LIMIT 1", (path, path + "g"))
    return row.fetchone() is not None


def digests(db: Connection) -> list[bytes]:
    """The top blocks of everything here, by SHA-256."""
    return [bytes(cid)[4:] for (cid,) in db.execute("SELECT cid FROM folders")]


def count(db: Connection) -> int:
    """How many there are."""
    return int(db.execute("SELECT count(*) FROM folders").fetchone()[0])


def put(db: Connection, path: str, folder: Folder) -> None:
    """Keep what was made at a path (inside a transaction)."""
    db.execute("INSERT OR REPLACE INTO folders (path, cid, size) VALUES (?,?,?)", (path, *folder))


def forget(db: Connection, paths: Iterable[str]) -> None:
    """There is nothing at these paths any more (inside a transaction)."""
    db.executemany("DELETE FROM folders WHERE path=?", [(path,) for path in paths])


def forget_below(db: Connection, path: str) -> None:
    """There is nothing below a path of hex digits any more (inside a transaction)."""
    db.execute("DELETE FROM folders WHERE path > ? AND path < ?", (path, path + "g"))


def forget_between(db: Connection, first: str, end: str) -> None:
    """There is nothing from `first` on and before `end` any more (inside a transaction)."""
    db.execute("DELETE FROM folders WHERE path >= ? AND path < ?", (first, end))
