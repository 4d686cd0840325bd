"""The tables `renders`, `earlier`, `returns` and `asides`, which track the files of a linked folder.

They store, for each file, its last written or read content, its earlier texts, whether it contains one of these
again, and the files that it replaced.

The rows decide what counts as an edit and which texts its writer was shown. They are read and written in the same
transaction as the state; nothing here touches a file. For a sealed vault see `sealed_tracked_files`.
"""

from __future__ import annotations

import enum
import unicodedata
from collections.abc import Container, Iterator, Mapping
from hashlib import sha256

import msgspec

from ipfsmem.device.connection import Connection, typed

_encode = msgspec.json.Encoder().encode
_COLUMNS = "file, key, body, text, dots, mtime, ctime, size, inode, missed, base, since, mark"
#: Maximum number of stored earlier texts of a file.
_MAX_EARLIER = 8


class Stat(msgspec.Struct, frozen=True, gc=False):
    """Detects an unchanged file without reading it: times in nanoseconds, size in bytes, inode."""

    mtime: int
    ctime: int
    size: int
    inode: int


class Shows(enum.Enum):
    """The part of the state that a file shows."""

    #: The values that the row names.
    VALUES = enum.auto()
    #: An edit that was merged with newer values. The merged text is not in the file yet, so a further edit has seen
    #: no value.
    EDIT = enum.auto()
    #: The same, but the edit had no effect: a program wrote an old text again.
    OLD_TEXT = enum.auto()


class PreviousTexts(msgspec.Struct, frozen=True, gc=False):
    """Earlier texts of a file, newest first, by their SHA-256, and when the last one was replaced, ms."""

    texts: tuple[bytes, ...]
    at: int

    @classmethod
    def of(cls, text: bytes, older: PreviousTexts | None, at: int) -> PreviousTexts:
        """Return a text that was replaced at time `at`, followed by those before it."""
        return cls((text, *(older.texts if older else ()))[:_MAX_EARLIER], at)

    def is_within(self, span: int, now: int) -> bool:
        """Return whether the last one was replaced less than `span` ms ago."""
        return 0 <= now - self.at < span


class FileRow(msgspec.Struct, frozen=True, gc=False):
    """One file, as this device last read or wrote it."""

    file: str
    #: The memory that it belongs to; None for a day of the timeline and for an index that only ipfsmem writes.
    key: str | None
    #: SHA-256 of the bytes in the file.
    body: bytes
    #: SHA-256 of the corresponding text in the state, which differs from the bytes in MEMORY.md and in files with a
    #: foreign name; for a day, of the names of its segments. None: no text in the state corresponds, and the next
    #: rendering compares the file.
    text: bytes | None
    #: The values that are shown in it, if `shows` is VALUES.
    dots: tuple[str, ...] = ()
    shows: Shows = Shows.VALUES
    #: None: it may have changed undetectably, so the next check reads it.
    stat: Stat | None = None
    #: When it was first found missing, ms; None while it is there.
    missing_since: int | None = None
    before: PreviousTexts | None = None

    @property
    def has_values(self) -> bool:
        """Whether values of the state were ever shown in it."""
        return self.shows is not Shows.VALUES or bool(self.dots)

    def is_unchanged(self, stat: Stat | None) -> bool:
        """Return whether the file has not changed, by its current stat (None: it is missing)."""
        return stat is not None and stat == self.stat


class Missing(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A file that has a row and was not found: its memory (empty: none), and when it was first missed, ms."""

    file: str
    key: str
    missing_since: int | None


class Differences(msgspec.Struct, frozen=True):
    """The differences between a folder and its rows."""

    #: Files that are new, changed, or back again.
    changed: list[str]
    missing: list[Missing]
    #: The number of files with a row.
    known: int


class RenderedTexts(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The text of a file as its row is stored (`dots` separated by spaces), to decide whether the file must be
    rendered."""

    file: str
    key: str
    text: bytes
    dots: str


class ReplacedFile(msgspec.Struct, frozen=True, gc=False):
    """A replaced file: its new name, its old name, the SHA-256 of its content if known, and of the corresponding text
    (or None)."""

    name: str
    file: str
    body: bytes
    text: bytes | None
    #: When it was last written, ns; None: unreliable so far, and it is read again.
    mtime: int | None
    #: When it was replaced, or last changed after that, ms.
    since: int


class Return(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A file that holds an earlier text again: which one, and since when, ms."""

    file: str
    body: bytes
    at: int


class TrackedFiles:
    """The rows of one linked folder. Writes must be inside a transaction.

    A row without its checksum is ignored: trusting it would make one memory's text an edit of another.
    """

    def __init__(self, db: Connection, copy: str) -> None:
        self._db = db
        self._copy = copy

    def _file(self, file: str) -> str:
        """Return the key of a file in the tables."""
        return file

    def _body(self, file: str, body: bytes) -> bytes:
        """Return the key of a file's content in the tables."""
        return body

    def all(self) -> dict[str, FileRow]:
        """Return every row, by file."""
        return self._where("copy=?", self._copy)

    def _where(self, condition: str, *values: str, by: str = "") -> dict[str, FileRow]:
        rows = self._db.execute(
            f"SELECT {_COLUMNS} FROM renders {by} WHERE {condition}",  # noqa: S608
            values,
        ).fetchall()
        return {
            row.file: from_stored(row)
            for row in typed(self._db, rows, list[StoredRow])
            if row.mark == self._mark(row.file, row.key, row.body, row.text, row.dots, row.base)
        }

    def _mark(self, *columns: object) -> bytes:
        return sha256(_encode((self._copy, *columns))).digest()[:8]

    def differences(self, stats: Mapping[str, Stat]) -> Differences:
        """Return how the files in a folder differ from their rows, by times and sizes; none is read."""
        query = "SELECT file, mtime, ctime, size, inode, missed, key FROM renders WHERE copy=?"
        rows = self._db.execute(query, (self._copy,)).fetchall()
        unchanged: set[str] = set()
        missing: list[tuple[object, ...]] = []
        for file, mtime, ctime, size, inode, missed, key in rows:
            stat = stats.get(file)
            if stat is None:
                missing.append((file, key, missed))
            elif (
                stat.mtime == mtime
                and stat.size == size
                and stat.ctime == ctime
                and stat.inode == inode
                and missed is None
            ):
                unchanged.add(file)
        changed = [] if len(unchanged) == len(stats) else sorted(stats.keys() - unchanged)
        return Differences(changed, typed(self._db, missing, list[Missing]), len(rows))

    def texts(self) -> dict[str, RenderedTexts]:
        """Return the rendered text of each file, by its name."""
        rows = self._db.execute(
            "SELECT file, key, text, dots FROM renders WHERE copy=?", (self._copy,)
        ).fetchall()
        return {row.file: row for row in typed(self._db, rows, list[RenderedTexts])}

    def files(self) -> tuple[list[str], int]:
        """Return the name of every file that has or had a row, and the number of damaged rows, whose names are unknown."""
        rows = self._db.execute(
            "SELECT file FROM renders WHERE copy=? UNION SELECT file FROM earlier WHERE copy=?",
            (self._copy, self._copy),
        ).fetchall()
        return typed(self._db, [row[0] for row in rows], list[str]), self._damaged(len(self.all()))

    def _damaged(self, sound: int) -> int:
        rows = self._db.execute("SELECT count(*) FROM renders WHERE copy=?", (self._copy,)).fetchone()[0]
        return int(rows) - sound

    def below(self, folder: str) -> dict[str, FileRow]:
        """Return the rows of files in one subfolder, by file."""
        return self._where("copy=? AND file > ? AND file < ?", self._copy, f"{folder}/", f"{folder}0")

    def of_key(self, key: str) -> dict[str, FileRow]:
        """Return the rows of one memory's files, by file."""
        # Without the hint SQLite reads all rows of the folder.
        return self._where("copy=? AND key=?", self._copy, key, by="INDEXED BY renders_by_key")

    def get(self, file: str) -> FileRow | None:
        """Return the row of one file."""
        return self._where("copy=? AND file=?", self._copy, file).get(file)

    def meeting(self, file: str) -> str | None:
        """Return another known file whose name is the same on a disk that folds case or composes letters."""
        row = self._db.execute(
            "SELECT file FROM renders WHERE copy=? AND fold=? AND file != ? LIMIT 1",
            (self._copy, fold(file), file),
        ).fetchone()
        return None if row is None else str(row[0])

    def put(self, row: FileRow, *, new: bool = False) -> None:
        """Store a row. A replaced text is kept as an earlier one. `new`: the file has no row yet."""
        if not new:
            self._remember(row.file, row.body)
        r = to_stored(row)
        r.mark = self._mark(r.file, r.key, r.body, r.text, r.dots, r.base)
        self._db.execute(
            f"INSERT OR REPLACE INTO renders (copy, {_COLUMNS}, fold) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",  # noqa: S608
            (self._copy, *msgspec.structs.astuple(r), fold(row.file)),
        )

    def drop(self, file: str) -> None:
        """Delete the row of a file; its text is kept as an earlier one."""
        self._remember(file, b"")
        self._db.execute("DELETE FROM renders WHERE copy=? AND file=?", (self._copy, self._file(file)))

    def _remember(self, file: str, now: bytes) -> None:
        self._db.execute(
            "INSERT OR IGNORE INTO earlier (copy, file, body) SELECT copy, file, body FROM renders "
            "WHERE copy=? AND file=? AND key != '' AND body != ?",
            (self._copy, self._file(file), self._body(file, now)),
        )

    def drop_all(self) -> None:
        """Delete the rows of all files: the folder was replaced."""
        for table in ("renders", "earlier", "returns", "file_names", "file_texts"):
            self._db.execute(f"DELETE FROM {table} WHERE copy=?", (self._copy,))  # noqa: S608

    def any(self) -> bool:
        """Return whether a file was ever rendered here."""
        cursor = self._db.execute("SELECT 1 FROM renders WHERE copy=? LIMIT 1", (self._copy,))
        return cursor.fetchone() is not None

    def count(self) -> int:
        """Return how many memory files there are."""
        cursor = self._db.execute(
            "SELECT count(*) FROM renders WHERE copy=? AND key != '' AND dots != ''", (self._copy,)
        )
        return int(cursor.fetchone()[0])

    def missing_before(self, moment: int) -> bool:
        """Return whether something was first missed before a time, in milliseconds."""
        cursor = self._db.execute(
            "SELECT 1 FROM renders WHERE copy=? AND missed<? LIMIT 1", (self._copy, moment)
        )
        return cursor.fetchone() is not None

    def reset_missing(self, before: int | None = None) -> None:
        """Reset when files were first missed; `before`: only those first missed before that time, in milliseconds."""
        self._db.execute(
            "UPDATE renders SET missed=NULL WHERE copy=? AND missed<coalesce(?, missed+1)",
            (self._copy, before),
        )

    # -- earlier texts -----------------------------------------------------------------------------------------

    def had(self, file: str) -> bool:
        """Return whether a file ever held another text than now."""
        cursor = self._db.execute(
            "SELECT 1 FROM earlier WHERE copy=? AND file=? LIMIT 1", (self._copy, self._file(file))
        )
        return cursor.fetchone() is not None

    def held(self, file: str, body: bytes) -> bool:
        """Return whether a file held these bytes (their SHA-256) before."""
        cursor = self._db.execute(
            "SELECT 1 FROM earlier WHERE copy=? AND file=? AND body=?",
            (self._copy, self._file(file), self._body(file, body)),
        )
        return cursor.fetchone() is not None

    def returns(self) -> dict[str, Return]:
        """Return every file that was last found to hold an earlier text, by its name."""
        rows = self._db.execute("SELECT file, body, at FROM returns WHERE copy=?", (self._copy,)).fetchall()
        return {row.file: row for row in typed(self._db, rows, list[Return])}

    def put_return(self, row: Return) -> None:
        """Store a row."""
        self._db.execute(
            "INSERT OR REPLACE INTO returns (copy, file, body, at) VALUES (?,?,?,?)",
            (self._copy, row.file, row.body, row.at),
        )

    def drop_return(self, file: str) -> None:
        """Delete a row."""
        self._db.execute("DELETE FROM returns WHERE copy=? AND file=?", (self._copy, self._file(file)))

    # -- replaced files ----------------------------------------------------------------------------------------

    def asides(self) -> Iterator[ReplacedFile]:
        """Yield every file that was replaced and is still kept."""
        for row in self._db.execute(
            "SELECT name, file, body, text, mtime, since FROM asides WHERE copy=?", (self._copy,)
        ).fetchall():
            name, file, body, text, mtime, since = typed(
                self._db, row, tuple[str, str, bytes, bytes, int, int]
            )
            yield ReplacedFile(name, file, body, text or None, None if mtime == _UNKNOWN else mtime, since)

    def put_aside(self, row: ReplacedFile) -> None:
        """Store a row."""
        mtime = _UNKNOWN if row.mtime is None else row.mtime
        self._db.execute(
            "INSERT OR REPLACE INTO asides (copy, name, file, body, text, mtime, since) VALUES (?,?,?,?,?,?,?)",
            (self._copy, row.name, row.file, row.body, row.text or b"", mtime, row.since),
        )

    def drop_aside(self, name: str) -> None:
        """Delete the row of a replaced file."""
        self._db.execute("DELETE FROM asides WHERE copy=? AND name=?", (self._copy, name))


def forget_copy(db: Connection, copy: str) -> None:
    """Delete all rows of a linked folder (inside a transaction)."""
    for table in ("renders", "asides", "earlier", "returns", "file_names", "file_texts"):
        db.execute(f"DELETE FROM {table} WHERE copy=?", (copy,))  # noqa: S608


def texts_needed(db: Connection, but: Container[tuple[str, str]]) -> set[bytes]:
    """Return the SHA-256 of every text that an edit of a plain file may have to be merged with, except those of the memories
    `but`, by scope and key. For a plain vault: a sealed one has its own table of them."""
    rows = db.execute(
        "SELECT copies.scope, key, text, base FROM renders LEFT JOIN copies ON copies.id = copy"
    )
    needed = [(text, base) for scope, key, text, base in rows.fetchall() if (scope, key) not in but]
    bases = (base[start : start + 32] for _, base in needed if base for start in range(0, len(base), 32))
    return {text for text, _ in needed}.union(bases)


def fold(file: str) -> str:
    """Return a file's name as seen by a disk that folds case and composes letters."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", file).casefold())


# -- how the states of a row are stored ----------------------------------------------------------------------------

#: In place of a file's unreliable times, size and inode.
_UNKNOWN = -1
#: In place of dots, and with `since` below zero for `Shows.OLD_TEXT`.
_EDIT = "-"


class StoredRow(msgspec.Struct, array_like=True, gc=False):
    """A row with its columns as they are stored."""

    file: str
    key: str
    body: bytes
    text: bytes
    dots: str
    mtime: int
    ctime: int
    size: int
    inode: int
    missing_since: int | None
    base: bytes | None
    since: int
    mark: bytes


def from_stored(r: StoredRow) -> FileRow:
    """Return the row of these columns."""
    dots, shows = tuple(r.dots.split(" ")) if r.dots else (), Shows.VALUES
    if r.dots == _EDIT:
        dots, shows = (), Shows.OLD_TEXT if r.since < 0 else Shows.EDIT
    stat = None if r.mtime == _UNKNOWN else Stat(r.mtime, r.ctime, r.size, r.inode)
    before = None
    if r.base is not None and r.since >= 0:
        before = PreviousTexts(tuple(r.base[at : at + 32] for at in range(0, len(r.base), 32)), r.since)
    return FileRow(r.file, r.key or None, r.body, r.text or None, dots, shows, stat, r.missing_since, before)


def to_stored(row: FileRow) -> StoredRow:
    """Return the columns of a row, without its checksum."""
    dots = " ".join(row.dots) if row.shows is Shows.VALUES else _EDIT
    stat = row.stat or Stat(_UNKNOWN, _UNKNOWN, _UNKNOWN, _UNKNOWN)
    base, since = (None, 0) if row.before is None else (b"".join(row.before.texts), row.before.at)
    if row.shows is Shows.OLD_TEXT:
        since = -1
    return StoredRow(
        file=row.file,
        key=row.key or "",
        body=row.body,
        text=row.text or b"",
        dots=dots,
        mtime=stat.mtime,
        ctime=stat.ctime,
        size=stat.size,
        inode=stat.inode,
        missing_since=row.missing_since,
        base=base,
        since=since,
        mark=b"",
    )
