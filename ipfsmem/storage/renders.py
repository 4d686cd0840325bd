"""What this device last put into, or took out of, each plain file: one row a file, and one for each file replaced.

The rows decide what counts as an edit and which texts its writer was shown. They are read and written inside the same
transaction as the state; nothing here touches a file.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ipfsmem.replica.database import Database
from ipfsmem.storage.plain_folder import UNSURE, Stat

_COLUMNS = "file, key, body, text, dots, mtime, ctime, size, inode, missed, base, since"


class Render(msgspec.Struct, frozen=True, gc=False):
    """One file.

    `body` is the SHA-256 of the bytes in the file, `text` that of the text it stands for (they differ for a file with
    a foreign name, and while a newer text waits); `dots` are those rendered in it. `missed`: when it was first found
    missing, ms. `base`: the text that stood there before, `since`: when it was replaced, ms.
    """

    file: str
    key: str
    body: bytes
    text: bytes
    dots: tuple[str, ...]
    stat: Stat = UNSURE
    missed: int | None = None
    base: bytes | None = None
    since: int = 0


class Aside(msgspec.Struct, frozen=True, gc=False):
    """A file that was replaced: its name beside, which file it was, the SHA-256 of what was in it as far as known."""

    name: str
    file: str
    body: bytes
    mtime: int
    since: int


class Renders:
    """The two tables. Writing must stand inside a transaction."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def all(self) -> dict[str, Render]:
        """Every row, by file."""
        rows = self._db.connection.execute(f"SELECT {_COLUMNS} FROM renders")  # noqa: S608
        return {row[0]: _render(row) for row in rows}

    def get(self, file: str) -> Render | None:
        """The row of one file."""
        found = self._db.connection.execute(
            f"SELECT {_COLUMNS} FROM renders WHERE file=?",  # noqa: S608
            (file,),
        ).fetchone()
        return None if found is None else _render(found)

    def of_key(self, key: str) -> dict[str, Render]:
        """All files that stand for texts of one memory."""
        rows = self._db.connection.execute(f"SELECT {_COLUMNS} FROM renders WHERE key=?", (key,))  # noqa: S608
        return {row[0]: _render(row) for row in rows}

    def put(self, row: Render) -> None:
        """Keep a row."""
        s = row.stat
        self._db.connection.execute(
            "INSERT OR REPLACE INTO renders VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
            (
                row.file,
                row.key,
                row.body,
                row.text,
                " ".join(row.dots),
                s.mtime,
                s.ctime,
                s.size,
                s.inode,
                row.missed,
                row.base,
                row.since,
            ),
        )

    def drop(self, file: str) -> None:
        """Forget a file."""
        self._db.connection.execute("DELETE FROM renders WHERE file=?", (file,))

    def drop_all(self) -> None:
        """Forget every file: the folder is another one now."""
        self._db.connection.execute("DELETE FROM renders")

    def any(self) -> bool:
        """Whether a file was ever rendered here."""
        return self._db.connection.execute("SELECT 1 FROM renders LIMIT 1").fetchone() is not None

    def asides(self) -> Iterator[Aside]:
        """Every file that was replaced and is still kept."""
        for row in self._db.connection.execute(
            "SELECT name, file, body, mtime, since FROM asides"
        ).fetchall():
            yield Aside(row[0], row[1], bytes(row[2]), row[3], row[4])

    def put_aside(self, row: Aside) -> None:
        """Keep a row."""
        self._db.connection.execute(
            "INSERT OR REPLACE INTO asides VALUES (?,?,?,?,?)",
            (row.name, row.file, row.body, row.mtime, row.since),
        )

    def drop_aside(self, name: str) -> None:
        """Forget a replaced file."""
        self._db.connection.execute("DELETE FROM asides WHERE name=?", (name,))


def _render(row: tuple[object, ...]) -> Render:
    file, key, body, text, dots, mtime, ctime, size, inode, missed, base, since = row
    return Render(
        file,  # type: ignore[arg-type]
        key,  # type: ignore[arg-type]
        body,  # type: ignore[arg-type]
        text,  # type: ignore[arg-type]
        tuple(dots.split(" ")) if dots else (),  # type: ignore[attr-defined]
        Stat(mtime, ctime, size, inode),  # type: ignore[arg-type]
        missed,  # type: ignore[arg-type]
        base,  # type: ignore[arg-type]
        since,  # type: ignore[arg-type]
    )
