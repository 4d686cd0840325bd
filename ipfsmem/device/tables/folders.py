"""The table `folders`: the newest folders (and files of plain roots) of this device's root, by a path.

A path is `s` or `o` with digits for the folders of a root, `p/<scope>/<day>/<hash>` for a day's file of a plain one.
"""

from __future__ import annotations

from collections.abc import Iterable

from ipfsmem.content.cid import PB_PREFIX, RAW_PREFIX
from ipfsmem.device.connection import Connection, damaged

#: A folder or file: the 36 bytes of its CID, and the size in bytes of all its blocks.
Folder = tuple[bytes, int]


def get(db: Connection, path: str) -> Folder | None:
    """Return the folder or file at a path, None if absent. StorageError for a damaged row."""
    row = db.execute("SELECT cid, size FROM folders WHERE path=?", (path,)).fetchone()
    if row is None:
        return None
    if not _is_folder(*row):
        raise damaged(db.path, f"the row of the folder {path} has an invalid value")
    return row[0], row[1]


def _is_folder(cid: object, size: object) -> bool:
    """Return whether this is a row that `put` accepts: any other CID would make a root that nobody could read."""
    return (
        isinstance(cid, bytes)
        and len(cid) == 36
        and cid.startswith((RAW_PREFIX, PB_PREFIX))
        and isinstance(size, int)
    )


def has(db: Connection, path: str) -> bool:
    """Return whether there is a folder or file at a path."""
    return db.execute("SELECT 1 FROM folders WHERE path=?", (path,)).fetchone() is not None


def between(db: Connection, first: str, end: str) -> dict[str, Folder]:
    """Return by path the folders and files from the path `first` on and before `end`, without damaged rows: they can be computed
    again."""
    rows = db.execute("SELECT path, cid, size FROM folders WHERE path >= ? AND path < ?", (first, end))
    return {path: (cid, size) for path, cid, size in rows if _is_folder(cid, size)}


def any_below(db: Connection, path: str) -> bool:
    """Return whether a path of hex digits has folders below it."""
    row = db.execute("SELECT 1 FROM folders WHERE path > ? AND path < ? LIMIT 1", (path, path + "g"))
    return row.fetchone() is not None


def digests(db: Connection) -> list[bytes]:
    """Return the SHA-256 of the top block of each folder and file."""
    return [bytes(cid)[4:] for (cid,) in db.execute("SELECT cid FROM folders").fetchall()]


def count(db: Connection) -> int:
    """Return how many folders and files there are."""
    return int(db.execute("SELECT count(*) FROM folders").fetchone()[0])


def put(db: Connection, path: str, folder: Folder) -> None:
    """Set the folder or file at a path (inside a transaction)."""
    db.execute("INSERT OR REPLACE INTO folders (path, cid, size) VALUES (?,?,?)", (path, *folder))


def forget(db: Connection, paths: Iterable[str]) -> None:
    """Delete the rows of these paths (inside a transaction)."""
    db.executemany("DELETE FROM folders WHERE path=?", [(path,) for path in paths])


def forget_below(db: Connection, path: str) -> None:
    """Delete the rows below a path of hex digits (inside a transaction)."""
    db.execute("DELETE FROM folders WHERE path > ? AND path < ?", (path, path + "g"))


def forget_between(db: Connection, first: str, end: str) -> None:
    """Delete the rows from the path `first` on and before `end` (inside a transaction)."""
    db.execute("DELETE FROM folders WHERE path >= ? AND path < ?", (first, end))
