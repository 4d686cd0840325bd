"""The tables `renders`, `earlier`, `returns` and `asides`: what this device knows of the files in a working copy. Of each file
what was last put into it or taken out of it, each text that stood there before, whether one of these stands there again,
and each file that was replaced.

The rows decide what counts as an edit and which texts its writer was shown. They are read and written inside the same
transaction as the state; nothing here touches a file.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from hashlib import sha256

import msgspec

from ipfsmem.device.connection import Connection, typed

_encode = msgspec.json.Encoder().encode
_COLUMNS = "file, key, body, text, dots, mtime, ctime, size, inode, missed, base, since, mark"


class Stat(msgspec.Struct, frozen=True, gc=False):
    """What tells that a file has not changed, without reading it. `mtime` is -1 when the times cannot be trusted."""

    mtime: int
    ctime: int
    size: int
    inode: int


#: Equal to no file's: it will be read at the next look.
UNSURE = Stat(-1, -1, -1, -1)


class Render(msgspec.Struct, frozen=True, gc=False):
    """One file.

    `body` is the SHA-256 of the bytes in the file, `text` that of the text it stands for (they differ for a file with
    a foreign name, for MEMORY.md, and while a newer text waits); `dots` are those rendered in it. `missed`: when it was
    first found missing, ms. `base`: the texts that stood there shortly before (SHA-256 each, newest first), `since`: when
    the last one was replaced, ms.
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
    """A file that was replaced: its name aside, which file it was, the SHA-256 of what was in it as far as known, and of the
    text that this stood for."""

    name: str
    file: str
    body: bytes
    text: bytes
    mtime: int
    since: int


class Return(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A file that holds a text again which stood there before: which one, and since when, ms."""

    file: str
    body: bytes
    at: int


class Renders:
    """The rows of one working copy. Writing must stand inside a transaction.

    A row that does not have its checksum is as good as none: believed, it would make one memory's text an edit of another.
    """

    def __init__(self, db: Connection, copy: str) -> None:
        self._db = db
        self._copy = copy

    def all(self) -> dict[str, Render]:
        """Every row, by file."""
        return self._where("copy=?", self._copy)

    def _where(self, condition: str, *values: str, by: str = "") -> dict[str, Render]:
        rows = self._db.execute(
            f"SELECT {_COLUMNS} FROM renders {by} WHERE {condition}",  # noqa: S608
            values,
        ).fetchall()
        return {
            row.file: _made(row)
            for row in typed(self._db, rows, list[_Row])
            if row.mark == self._mark(row.file, row.key, row.body, row.text, row.dots, row.base)
        }

    def _mark(self, *said: str | bytes | None) -> bytes:
        return sha256(_encode((self._copy, *said))).digest()[:8]

    def looks(self) -> dict[str, Looks]:
        """Of every row, by file, what tells whether the file has changed or is missing."""
        query = "SELECT file, key, mtime, ctime, size, inode, missed FROM renders WHERE copy=?"
        rows = self._db.execute(query, (self._copy,)).fetchall()
        return {row.file: row for row in typed(self._db, rows, list[Looks])}

    def texts(self) -> dict[str, Texts]:
        """Of every row, by file, what tells whether the file shows what it should."""
        rows = self._db.execute(
            "SELECT file, key, text, dots FROM renders WHERE copy=?", (self._copy,)
        ).fetchall()
        return {row.file: row for row in typed(self._db, rows, list[Texts])}

    def files(self) -> list[str]:
        """The name of every file that has a row, or had one."""
        return [
            str(row[0])
            for row in self._db.execute(
                "SELECT file FROM renders WHERE copy=? UNION SELECT file FROM earlier WHERE copy=?",
                (self._copy, self._copy),
            )
        ]

    def below(self, folder: str) -> dict[str, Render]:
        """The rows of files in one subfolder, by file."""
        return self._where("copy=? AND file > ? AND file < ?", self._copy, f"{folder}/", f"{folder}0")

    def of_key(self, key: str) -> dict[str, Render]:
        """The rows of one memory's files, by file."""
        # Left to itself SQLite reads all rows of the folder.
        return self._where("copy=? AND key=?", self._copy, key, by="INDEXED BY renders_by_key")

    def get(self, file: str) -> Render | None:
        """The row of one file."""
        return self._where("copy=? AND file=?", self._copy, file).get(file)

    def meeting(self, file: str) -> str | None:
        """Another known file whose name is the same on a disk that folds case or composes letters."""
        row = self._db.execute(
            "SELECT file FROM renders WHERE copy=? AND fold=? AND file != ? LIMIT 1",
            (self._copy, fold(file), file),
        ).fetchone()
        return None if row is None else str(row[0])

    def put(self, row: Render, *, new: bool = False) -> None:
        """Keep a row. A text that it replaces is remembered as one that stood in the file before. `new`: there is no row yet."""
        if not new:
            self._remember(row.file, row.body)
        s, dots = row.stat, " ".join(row.dots)
        self._db.execute(
            "INSERT OR REPLACE INTO renders (copy, file, key, body, text, dots, mtime, ctime, size, inode, missed, base, since, "
            "fold, mark) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
            (
                self._copy,
                row.file,
                row.key,
                row.body,
                row.text,
                dots,
                s.mtime,
                s.ctime,
                s.size,
                s.inode,
                row.missed,
                row.base,
                row.since,
                fold(row.file),
                self._mark(row.file, row.key, row.body, row.text, dots, row.base),
            ),
        )

    def drop(self, file: str) -> None:
        """Forget a file; the text that stood in it is remembered as such."""
        self._remember(file, b"")
        self._db.execute("DELETE FROM renders WHERE copy=? AND file=?", (self._copy, file))

    def _remember(self, file: str, now: bytes) -> None:
        self._db.execute(
            "INSERT OR IGNORE INTO earlier (copy, file, body) SELECT copy, file, body FROM renders "
            "WHERE copy=? AND file=? AND key != '' AND body != ?",
            (self._copy, file, now),
        )

    def drop_all(self) -> None:
        """Forget every file: the folder is another one now."""
        for table in ("renders", "earlier", "returns"):
            self._db.execute(f"DELETE FROM {table} WHERE copy=?", (self._copy,))  # noqa: S608

    def any(self) -> bool:
        """Whether a file was ever rendered here."""
        found = self._db.execute("SELECT 1 FROM renders WHERE copy=? LIMIT 1", (self._copy,))
        return found.fetchone() is not None

    def count(self) -> int:
        """How many memory files there are."""
        found = self._db.execute(
            "SELECT count(*) FROM renders WHERE copy=? AND key != '' AND dots != ''", (self._copy,)
        )
        return int(found.fetchone()[0])

    def forget_missed(self) -> None:
        """What was missing counts from now on."""
        self._db.execute("UPDATE renders SET missed=NULL WHERE copy=?", (self._copy,))

    # -- texts that stood there before -------------------------------------------------------------------------

    def had(self, file: str) -> bool:
        """Whether a file ever held another text than now."""
        found = self._db.execute("SELECT 1 FROM earlier WHERE copy=? AND file=? LIMIT 1", (self._copy, file))
        return found.fetchone() is not None

    def held(self, file: str, body: bytes) -> bool:
        """Whether these bytes (their SHA-256) stood in a file before."""
        found = self._db.execute(
            "SELECT 1 FROM earlier WHERE copy=? AND file=? AND body=?", (self._copy, file, body)
        )
        return found.fetchone() is not None

    def returns(self) -> dict[str, Return]:
        """Every file that was last found to hold an earlier text, by its name."""
        rows = self._db.execute("SELECT file, body, at FROM returns WHERE copy=?", (self._copy,)).fetchall()
        return {row.file: row for row in typed(self._db, rows, list[Return])}

    def put_return(self, row: Return) -> None:
        """Keep a row."""
        self._db.execute(
            "INSERT OR REPLACE INTO returns (copy, file, body, at) VALUES (?,?,?,?)",
            (self._copy, row.file, row.body, row.at),
        )

    def drop_return(self, file: str) -> None:
        """Forget a row."""
        self._db.execute("DELETE FROM returns WHERE copy=? AND file=?", (self._copy, file))

    # -- what was replaced -------------------------------------------------------------------------------------

    def asides(self) -> Iterator[Aside]:
        """Every file that was replaced and is still kept."""
        for row in self._db.execute(
            "SELECT name, file, body, text, mtime, since FROM asides WHERE copy=?", (self._copy,)
        ).fetchall():
            yield typed(self._db, row, Aside)

    def put_aside(self, row: Aside) -> None:
        """Keep a row."""
        self._db.execute(
            "INSERT OR REPLACE INTO asides (copy, name, file, body, text, mtime, since) VALUES (?,?,?,?,?,?,?)",
            (self._copy, row.name, row.file, row.body, row.text, row.mtime, row.since),
        )

    def drop_aside(self, name: str) -> None:
        """Forget a replaced file."""
        self._db.execute("DELETE FROM asides WHERE copy=? AND name=?", (self._copy, name))


def forget_copy(db: Connection, copy: str) -> None:
    """Forget all that is known of the files of a working copy (inside a transaction)."""
    for table in ("renders", "asides", "earlier", "returns"):
        db.execute(f"DELETE FROM {table} WHERE copy=?", (copy,))  # noqa: S608


def texts_needed(db: Connection, but: str) -> Iterator[bytes]:
    """SHA-256 of every text that an edit of a plain file may have to be merged with, but for those of the memory `but`."""
    for text, base in db.execute("SELECT text, base FROM renders WHERE key != ?", (but,)):
        yield bytes(text)
        yield from (base[start : start + 32] for start in range(0, len(base or b""), 32))


def fold(file: str) -> str:
    """A file's name as a disk may see it that folds case and composes letters."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", file).casefold())


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
    mark: bytes


def _made(r: _Row) -> Render:
    dots = tuple(r.dots.split(" ")) if r.dots else ()
    stat = Stat(r.mtime, r.ctime, r.size, r.inode)
    return Render(r.file, r.key, r.body, r.text, dots, stat, r.missed, r.base, r.since)
