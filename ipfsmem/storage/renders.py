"""What this device last put into, or took out of, each plain file: one row a file, and one for each file replaced.

The rows decide what counts as an edit and which texts its writer was shown. They are read and written inside the same
transaction as the state; nothing here touches a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import msgspec

from ipfsmem.replica.database import Database, damaged
from ipfsmem.storage.plain_folder import UNSURE, Stat

T = TypeVar("T")
_COLUMNS = "file, key, body, text, dots, mtime, ctime, size, inode, missed, base, since"


class Render(msgspec.Struct, frozen=True, gc=False):
    """One file.

    `body` is the SHA-256 of the bytes in the file, `text` that of the text it stands for (they differ for a file with
    a foreign name, and while a newer text waits); `dots` are those rendered in it. `missed`: when it was first found
    missing, ms. `base`: the texts that stood there shortly before (SHA-256 each,
    newest first), `since`: when the last one was replaced, ms.
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


class Looks(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Of a row what a look at the folder needs."""

    file: str
    key: str
    mtime: int
    ctime: int
    size: int
    inode: int
    missed: int | None

    def tells(self, stat: Stat) -> bool:
        """Whether a file with this stat is as it was."""
        return (
            self.mtime == stat.mtime
            and self.size == stat.size
            and self.ctime == stat.ctime
            and self.inode == stat.inode
        )


class Texts(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Of a row what a rendering needs; `dots` with spaces between."""

    file: str
    key: str
    text: bytes
    dots: str


class Aside(msgspec.Struct, frozen=True, gc=False, array_like=True):
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
        rows = self._db.connection.execute(f"SELECT {_COLUMNS} FROM renders").fetchall()  # noqa: S608
        return {row.file: _made(row) for row in _typed(self._db, rows, list[_Row])}

    def looks(self) -> dict[str, Looks]:
        """Of every row, by file, what tells whether the file has changed or is missing."""
        query = "SELECT file, key, mtime, ctime, size, inode, missed FROM renders"
        rows = self._db.connection.execute(query).fetchall()
        return {row.file: row for row in _typed(self._db, rows, list[Looks])}

    def texts(self) -> dict[str, Texts]:
        """Of every row, by file, what tells whether the file shows what it should."""
        rows = self._db.connection.execute("SELECT file, key, text, dots FROM renders").fetchall()
        return {row.file: row for row in _typed(self._db, rows, list[Texts])}

    def below(self, folder: str) -> dict[str, Render]:
        """The rows of files in one subfolder, by file."""
        rows = self._db.connection.execute(
            f"SELECT {_COLUMNS} FROM renders WHERE file > ? AND file < ?",  # noqa: S608
            (f"{folder}/", f"{folder}0"),
        ).fetchall()
        return {row.file: _made(row) for row in _typed(self._db, rows, list[_Row])}

    def get(self, file: str) -> Render | None:
        """The row of one file."""
        found = self._db.connection.execute(
            f"SELECT {_COLUMNS} FROM renders WHERE file=?",  # noqa: S608
            (file,),
        ).fetchone()
        return None if found is None else _render(self._db, found)

    def of_key(self, key: str) -> dict[str, Render]:
        """All files that stand for texts of one memory."""
        rows = self._db.connection.execute(f"SELECT {_COLUMNS} FROM renders WHERE key=?", (key,))  # noqa: S608
        return {row.file: row for row in (_render(self._db, found) for found in rows)}

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
            yield _typed(self._db, row, Aside)

    def put_aside(self, row: Aside) -> None:
        """Keep a row."""
        self._db.connection.execute(
            "INSERT OR REPLACE INTO asides VALUES (?,?,?,?,?)",
            (row.name, row.file, row.body, row.mtime, row.since),
        )

    def drop_aside(self, name: str) -> None:
        """Forget a replaced file."""
        self._db.connection.execute("DELETE FROM asides WHERE name=?", (name,))


class _Row(msgspec.Struct, array_like=True, gc=False):
    file: str
    key: str
    body: bytes
    text: bytes
    dots: str
    mtime: int
    ctime: int
    size: int
    inode: int
    missed: int | None
    base: bytes | None
    since: int


def _typed(db: Database, row: object, form: type[T]) -> T:
    """A row, each of its values what the table says; a damaged file may hold anything."""
    try:
        return msgspec.convert(row, form, builtin_types=(bytes,))
    except msgspec.ValidationError as error:
        raise damaged(db.path, f"a row about a plain file: {error}") from None


def _render(db: Database, row: object) -> Render:
    return _made(_typed(db, row, _Row))


def _made(r: _Row) -> Render:
    dots = tuple(r.dots.split(" ")) if r.dots else ()
    stat = Stat(r.mtime, r.ctime, r.size, r.inode)
    return Render(r.file, r.key, r.body, r.text, dots, stat, r.missed, r.base, r.since)
