"""The tables of `tracked_files` for a sealed vault, with names, texts and hashes readable only with this device's
keys.

Two tables are added: `file_names`, the sealed name of each file that ever was in a linked folder, and `file_texts`,
the sealed texts that edits of a file are merged with (a plain vault uses the blocks of the state for these).

Files, keys and texts are found by keyed hashes. `text` is the sealed row; `mark` is a keyed hash of the file's name,
times, size and inode, so that a check of an unchanged folder opens no row; the plain columns of these fields are
empty. Only the dots of values, and times of actions of this device, are in the clear.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from ipfsmem.device.connection import Connection, typed
from ipfsmem.device.tables.row_cipher import RowCipher
from ipfsmem.device.tables.tracked_files import (
    Differences,
    FileRow,
    Missing,
    RenderedTexts,
    ReplacedFile,
    Return,
    Stat,
    StoredRow,
    TrackedFiles,
    fold,
    from_stored,
    to_stored,
)
from ipfsmem.errors import OpenError

_encode = msgspec.msgpack.Encoder().encode
_UNKNOWN_MTIME = -1


class _Sealed(msgspec.Struct, array_like=True, gc=False):
    """The columns that are sealed in `text`."""

    file: str
    key: str
    body: bytes
    text: bytes
    mtime: int
    ctime: int
    size: int
    inode: int
    base: bytes | None


class _Replaced(msgspec.Struct, array_like=True, gc=False):
    """The sealed columns of a row of `asides`, or of `returns` (then without a text)."""

    file: str
    body: bytes
    text: bytes = b""


_rows = msgspec.msgpack.Decoder(_Sealed)
_replaced = msgspec.msgpack.Decoder(_Replaced)
_SELECT = "SELECT file, text, dots, missed, since FROM renders"


class SealedTrackedFiles(TrackedFiles):
    """The rows of one linked folder of a sealed vault."""

    def __init__(self, db: Connection, copy: str, cover: RowCipher) -> None:
        super().__init__(db, copy)
        self._cover = cover

    def _file(self, file: str) -> str:
        return self._cover.mark("file", self._copy, _bytes(file)).hex()

    def _key(self, key: str) -> str:
        return self._cover.mark("key", key).hex() if key else ""

    def _body(self, file: str, body: bytes) -> bytes:
        return self._cover.mark("body", self._copy, _bytes(file), body)

    def _look(self, file: str, stat: Stat) -> bytes:
        times = stat.mtime, stat.ctime, stat.size, stat.inode
        return self._cover.mark("look", self._copy, _bytes(file), *times)

    # -- reading -----------------------------------------------------------------------------------------------

    def all(self) -> dict[str, FileRow]:
        """Return every row, by file."""
        return self._opened("WHERE copy=?", self._copy)

    def _opened(self, condition: str, *values: str) -> dict[str, FileRow]:
        sealed = self._db.execute(f"{_SELECT} {condition}", values).fetchall()
        rows = (
            self._open(*row) for row in typed(self._db, sealed, list[tuple[str, bytes, str, int | None, int]])
        )
        return {row.file: row for row in rows if row is not None}

    def _open(self, file: str, stored: bytes, dots: str, missed: int | None, since: int) -> FileRow | None:
        """Return a row; None if it is damaged, or was moved to the place of another."""
        try:
            row = _rows.decode(self._cover.open_row(stored))
        except (OpenError, msgspec.DecodeError):
            return None
        if self._file(row.file) != file:
            return None
        times = row.mtime, row.ctime, row.size, row.inode
        return from_stored(
            StoredRow(row.file, row.key, row.body, row.text, dots, *times, missed, row.base, since, b"")
        )

    def differences(self, stats: Mapping[str, Stat]) -> Differences:
        """Return how the files in a folder differ from their rows, by times and sizes; none is read."""
        query = f"{_SELECT.replace('file,', 'file, mark,')} WHERE copy=?"
        rows = self._db.execute(query, (self._copy,)).fetchall()
        as_known = {mark for _, mark, _, _, missed, _ in rows if missed is None}
        changed = sorted(file for file, stat in stats.items() if self._look(file, stat) not in as_known)
        if len(stats) - len(changed) == len(rows):
            return Differences(changed, [], len(rows))
        there = {self._file(file) for file in stats}
        missing = [
            Missing(row.file, row.key or "", row.missing_since)
            for file, _, *columns in rows
            if file not in there and (row := self._open(file, *columns)) is not None
        ]
        return Differences(changed, missing, len(rows))

    def texts(self) -> dict[str, RenderedTexts]:
        """Return the rendered text of each file, by its name."""
        return {
            file: RenderedTexts(file, row.key or "", row.text or b"", to_stored(row).dots)
            for file, row in self.all().items()
        }

    def files(self) -> tuple[list[str], int]:
        """Return the name of every file that has or had a row, and the number of damaged rows, whose names are unknown."""
        sealed = self._db.execute("SELECT name FROM file_names WHERE copy=?", (self._copy,)).fetchall()
        rows = self.all()
        names, damaged = set(rows), self._damaged(len(rows))
        for (name,) in typed(self._db, sealed, list[tuple[bytes]]):
            try:
                names.add(self._cover.open_row(name).decode())
            except OpenError:
                damaged += 1
        return sorted(names), damaged

    def below(self, folder: str) -> dict[str, FileRow]:
        """Return the rows of files in one subfolder, by file."""
        of_no_memory = self._opened("INDEXED BY renders_by_key WHERE copy=? AND key=?", self._copy, "")
        return {file: row for file, row in of_no_memory.items() if file.startswith(f"{folder}/")}

    def of_key(self, key: str) -> dict[str, FileRow]:
        """Return the rows of one memory's files, by file."""
        return self._opened("INDEXED BY renders_by_key WHERE copy=? AND key=?", self._copy, self._key(key))

    def get(self, file: str) -> FileRow | None:
        """Return the row of one file."""
        return self._opened("WHERE copy=? AND file=?", self._copy, self._file(file)).get(file)

    def meeting(self, file: str) -> str | None:
        """Return another known file whose name is the same on a disk that folds case or composes letters."""
        same = self._opened("WHERE copy=? AND fold=?", self._copy, self._fold(file))
        return next((other for other in same if other != file), None)

    def _fold(self, file: str) -> str:
        return self._cover.mark("fold", self._copy, fold(file)).hex()

    # -- writing -----------------------------------------------------------------------------------------------

    def put(self, row: FileRow, *, new: bool = False) -> None:
        """Store a row. A replaced text is kept as an earlier one. `new`: the file has no row yet."""
        if not new:
            self._remember(row.file, row.body)
        file, stored = self._file(row.file), to_stored(row)
        sealed = _Sealed(
            stored.file,
            stored.key,
            stored.body,
            stored.text,
            stored.mtime,
            stored.ctime,
            stored.size,
            stored.inode,
            stored.base,
        )
        self._db.execute(
            "INSERT OR REPLACE INTO renders (copy, file, key, body, text, dots, mtime, ctime, size, inode, missed, base, since, "
            "fold, mark) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
            (
                self._copy,
                file,
                self._key(stored.key),
                self._body(row.file, row.body),
                self._cover.seal_row(_encode(sealed)),
                stored.dots,
                *(_UNKNOWN_MTIME,) * 4,
                row.missing_since,
                None,
                stored.since,
                self._fold(row.file),
                b"" if row.stat is None else self._look(row.file, row.stat),
            ),
        )
        self._keep_name(row.file, file)
        if not new:
            self._drop_texts(row)

    def _keep_name(self, name: str, file: str) -> None:
        cursor = self._db.execute("SELECT 1 FROM file_names WHERE copy=? AND file=?", (self._copy, file))
        if cursor.fetchone() is None:
            self._db.execute(
                "INSERT INTO file_names (copy, file, name) VALUES (?,?,?)",
                (self._copy, file, self._cover.seal_row(name.encode())),
            )

    def drop(self, file: str) -> None:
        """Delete the row of a file; its text is kept as an earlier one."""
        super().drop(file)
        self._db.execute("DELETE FROM file_texts WHERE copy=? AND file=?", (self._copy, self._file(file)))

    # -- texts that edits are merged with ------------------------------------------------------------------------

    def keep_text(self, file: str, sha: bytes, text: bytes) -> None:
        """Store a text for edits of a file, by its SHA-256, as long as a row names it. Call it before `put`."""
        self._db.execute(
            "INSERT OR IGNORE INTO file_texts (copy, file, text, row) VALUES (?,?,?,?)",
            (self._copy, self._file(file), self._body(file, sha), self._cover.seal_row(text)),
        )

    def text(self, file: str, sha: bytes) -> bytes | None:
        """Return a stored text; None if it is missing or damaged."""
        row = self._db.execute(
            "SELECT row FROM file_texts WHERE copy=? AND file=? AND text=?",
            (self._copy, self._file(file), self._body(file, sha)),
        ).fetchone()
        try:
            return None if row is None else self._cover.open_row(row[0])
        except OpenError:
            return None

    def drop_aside(self, name: str) -> None:
        """Delete the row of a replaced file, and the texts that only it needed."""
        row = self._db.execute(
            "SELECT file FROM asides WHERE copy=? AND name=?", (self._copy, name)
        ).fetchone()
        super().drop_aside(name)
        if row is not None:
            for file_row in self._opened("WHERE copy=? AND file=?", self._copy, str(row[0])).values():
                self._drop_texts(file_row)

    def _drop_texts(self, row: FileRow) -> None:
        """Delete texts that the row no longer names, unless a replaced file may still need them."""
        digests = [sha for sha in (row.text, *(row.before.texts if row.before else ())) if sha is not None]
        marks = [self._body(row.file, sha) for sha in digests]
        file = self._file(row.file)
        self._db.execute(
            f"DELETE FROM file_texts WHERE copy=? AND file=? AND text NOT IN ({','.join('?' * len(marks))}) "  # noqa: S608
            "AND NOT EXISTS (SELECT 1 FROM asides WHERE copy=? AND file=?)",
            (self._copy, file, *marks, self._copy, file),
        )

    # -- earlier texts -------------------------------------------------------------------------------------------

    def returns(self) -> dict[str, Return]:
        """Return every file that was last found to hold an earlier text, by its name."""
        rows = self._db.execute("SELECT body, at FROM returns WHERE copy=?", (self._copy,)).fetchall()
        returned = [
            (self._replaced(sealed), at) for sealed, at in typed(self._db, rows, list[tuple[bytes, int]])
        ]
        return {row.file: Return(row.file, row.body, at) for row, at in returned if row is not None}

    def _replaced(self, stored: bytes) -> _Replaced | None:
        try:
            return _replaced.decode(self._cover.open_row(stored))
        except (OpenError, msgspec.DecodeError):
            return None

    def put_return(self, row: Return) -> None:
        """Store a row."""
        sealed = self._cover.seal_row(_encode(_Replaced(row.file, row.body)))
        self._db.execute(
            "INSERT OR REPLACE INTO returns (copy, file, body, at) VALUES (?,?,?,?)",
            (self._copy, self._file(row.file), sealed, row.at),
        )

    # -- replaced files ------------------------------------------------------------------------------------------

    def asides(self) -> Iterator[ReplacedFile]:
        """Yield every file that was replaced and is still kept."""
        rows = self._db.execute(
            "SELECT name, body, mtime, since FROM asides WHERE copy=?", (self._copy,)
        ).fetchall()
        for name, sealed, mtime, since in typed(self._db, rows, list[tuple[str, bytes, int, int]]):
            row = self._replaced(sealed)
            if row is not None:
                yield ReplacedFile(
                    name,
                    row.file,
                    row.body,
                    row.text or None,
                    None if mtime == _UNKNOWN_MTIME else mtime,
                    since,
                )

    def put_aside(self, row: ReplacedFile) -> None:
        """Store a row."""
        sealed = self._cover.seal_row(_encode(_Replaced(row.file, row.body, row.text or b"")))
        mtime = _UNKNOWN_MTIME if row.mtime is None else row.mtime
        self._db.execute(
            "INSERT OR REPLACE INTO asides (copy, name, file, body, text, mtime, since) VALUES (?,?,?,?,?,?,?)",
            (self._copy, row.name, self._file(row.file), sealed, b"", mtime, row.since),
        )


def _bytes(file: str) -> bytes:
    """Return a file's name as the disk has it, which need not be Unicode."""
    return file.encode("utf-8", "surrogateescape")


def tracked_files_of(db: Connection, copy: str, cover: RowCipher | None) -> TrackedFiles:
    """Return the rows of a linked folder as its vault stores them: plain, or sealed with `cover`."""
    return TrackedFiles(db, copy) if cover is None else SealedTrackedFiles(db, copy, cover)


def add_tables(db: Connection) -> None:
    """Create the two tables (inside a transaction)."""
    for statement in _TABLES:
        db.execute(statement)


_TABLES: Iterable[str] = (
    "CREATE TABLE file_names (copy TEXT NOT NULL, file TEXT NOT NULL, name BLOB NOT NULL, PRIMARY KEY (copy, file)) WITHOUT ROWID",
    "CREATE TABLE file_texts (copy TEXT NOT NULL, file TEXT NOT NULL, text BLOB NOT NULL, row BLOB NOT NULL, "
    "PRIMARY KEY (copy, file, text))",
)
