"""The tables `others` and `kept`: texts of others that were here, and own texts that others replaced (format section 5.2).

Rows are found by keyed hashes (`device.others_texts`), so the disk alone says nothing of texts or names.
"""

from __future__ import annotations

from collections.abc import Iterable

from ipfsmem.device.connection import Connection


def note_others(db: Connection, rows: Iterable[tuple[bytes, str]]) -> None:
    """Remember texts of others: (mark of the text's hash, whose it is); the first word counts (inside a transaction)."""
    db.executemany("INSERT OR IGNORE INTO others (mark, of) VALUES (?,?)", rows)


def forget_others(db: Connection) -> None:
    """Forget all of them (inside a transaction)."""
    db.execute("DELETE FROM others")


def whose(db: Connection, mark: bytes) -> str | None:
    """Whose text this was; None for one that nobody else's was."""
    row = db.execute("SELECT of FROM others WHERE mark=?", (mark,)).fetchone()
    return str(row[0]) if row is not None else None


def any_others(db: Connection) -> bool:
    """Whether texts of others were here: none were in the memory of one person."""
    return db.execute("SELECT 1 FROM others LIMIT 1").fetchone() is not None


def keep(db: Connection, mark: bytes, row: bytes) -> None:
    """Keep an own text of a memory, sealed, by the mark of the memory's name (inside a transaction)."""
    db.execute("INSERT OR REPLACE INTO kept (mark, row) VALUES (?,?)", (mark, row))


def kept(db: Connection, mark: bytes) -> bytes | None:
    """The own text of a memory that was kept, sealed."""
    row = db.execute("SELECT row FROM kept WHERE mark=?", (mark,)).fetchone()
    return bytes(row[0]) if row is not None else None


def all_kept(db: Connection) -> list[bytes]:
    """All of them."""
    return [bytes(row) for (row,) in db.execute("SELECT row FROM kept")]


def any_kept(db: Connection) -> bool:
    """Whether there is any."""
    return db.execute("SELECT 1 FROM kept LIMIT 1").fetchone() is not None


def let_go(db: Connection, mark: bytes) -> None:
    """An own text stands there again, or the memory is gone (inside a transaction)."""
    db.execute("DELETE FROM kept WHERE mark=?", (mark,))
