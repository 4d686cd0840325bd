"""The tables `others` and `kept`: texts of others that were here, and own texts that others replaced (format section 5.2).

Rows are found by keyed hashes (`device.texts_of_others`), so the disk alone reveals no texts or names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ipfsmem.device.connection import Connection


def note_others(db: Connection, rows: Iterable[tuple[bytes, str]]) -> None:
    """Record texts of others: (keyed hash of the text, author). The first row of a text stays (inside a transaction)."""
    db.executemany("INSERT OR IGNORE INTO others (mark, of) VALUES (?,?)", rows)


def forget_others(db: Connection) -> None:
    """Delete all of them (inside a transaction)."""
    db.execute("DELETE FROM others")


def others(db: Connection) -> Iterator[tuple[bytes, str]]:
    """Yield all texts of others: mark of the text's hash, author."""
    yield from db.execute("SELECT mark, of FROM others")


def whose(db: Connection, mark: bytes) -> str | None:
    """Return the author of a text; None if others never wrote it."""
    row = db.execute("SELECT of FROM others WHERE mark=?", (mark,)).fetchone()
    return str(row[0]) if row is not None else None


def are_there(db: Connection) -> tuple[bool, bool]:
    """Return whether there are texts of others, and whether any own text is stored; neither in the vault of one person."""
    others, kept = db.execute("SELECT EXISTS (SELECT 1 FROM others), EXISTS (SELECT 1 FROM kept)").fetchone()
    return bool(others), bool(kept)


def keep(db: Connection, mark: bytes, row: bytes) -> None:
    """Store an own text of a memory, sealed, by the keyed hash of the memory's name (inside a transaction)."""
    db.execute("INSERT OR REPLACE INTO kept (mark, row) VALUES (?,?)", (mark, row))


def kept(db: Connection, mark: bytes) -> bytes | None:
    """Return the stored own text of a memory, sealed."""
    row = db.execute("SELECT row FROM kept WHERE mark=?", (mark,)).fetchone()
    return bytes(row[0]) if row is not None else None


def all_kept(db: Connection) -> list[bytes]:
    """Return all stored own texts, sealed."""
    return [bytes(row) for (row,) in db.execute("SELECT row FROM kept")]


def kept_rows(db: Connection) -> Iterator[tuple[bytes, bytes]]:
    """Yield the mark of the memory's name and the sealed text of all of them."""
    yield from db.execute("SELECT mark, row FROM kept")


def forget_kept(db: Connection, mark: bytes) -> None:
    """Delete the stored own text of a memory (inside a transaction)."""
    db.execute("DELETE FROM kept WHERE mark=?", (mark,))
