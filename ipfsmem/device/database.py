"""The SQLite file of one memory on this device: tables, transactions, and nothing of what the rows mean.

`blocks` holds every block that this device keeps, by SHA-256. `nodes`, `objects` and `folders` describe the
current tree of the state and of the objects, so that one change touches one path. `journal` holds the changes
since the last checkpoint. In encrypted mode what could tell anything is sealed before it gets here.
Each transaction is one fsync (write-ahead log, synchronous FULL).
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from ipfsmem.device.atomic_files import open_regular, storage_errors
from ipfsmem.device.lock import directory_lock
from ipfsmem.errors import ConfigError, IpfsmemError, LockedError, StorageError

SCHEMA_VERSION = 2
_BLOCK = "SELECT data FROM blocks WHERE digest=?"
#: Blocks that are put in together, and bytes of them.
_TOGETHER = 250
_BYTES_TOGETHER = 4 * 1024 * 1024
#: Pages that are given back in one transaction: two megabytes.
_PAGES = 512
_SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE blocks (digest BLOB PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE journal (seq INTEGER PRIMARY KEY AUTOINCREMENT, row BLOB NOT NULL);
CREATE TABLE nodes (prefix TEXT PRIMARY KEY, hash BLOB NOT NULL, file BLOB NOT NULL, size INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE objects (digest BLOB PRIMARY KEY, size INTEGER NOT NULL, refs INTEGER NOT NULL, held INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX objects_not_held ON objects (digest) WHERE held = 0;
CREATE TABLE folders (path TEXT PRIMARY KEY, cid BLOB NOT NULL, size INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE pairs (device TEXT NOT NULL, n INTEGER NOT NULL, r BLOB NOT NULL, PRIMARY KEY (device, n, r)) WITHOUT ROWID;
CREATE TABLE marks (device TEXT PRIMARY KEY, c INTEGER NOT NULL, digest TEXT NOT NULL, h TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE heads (root TEXT PRIMARY KEY, device TEXT NOT NULL, c INTEGER NOT NULL, digest TEXT NOT NULL,
                    seen INTEGER NOT NULL, prev BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE placed (provider TEXT NOT NULL, root TEXT NOT NULL, answered TEXT NOT NULL, handle TEXT NOT NULL,
                     at INTEGER NOT NULL, PRIMARY KEY (provider, root)) WITHOUT ROWID;
CREATE TABLE copies (id TEXT PRIMARY KEY, path TEXT NOT NULL, scope TEXT NOT NULL, inode INTEGER NOT NULL,
                     timeline INTEGER NOT NULL, secret BLOB NOT NULL, head BLOB NOT NULL, paused TEXT NOT NULL,
                     lines BLOB NOT NULL, in_step BLOB NOT NULL, vanished BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE presence (provider TEXT PRIMARY KEY, row BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE sent_again (provider TEXT NOT NULL, digest BLOB NOT NULL, times INTEGER NOT NULL, at INTEGER NOT NULL,
                         PRIMARY KEY (provider, digest)) WITHOUT ROWID;
CREATE TABLE renders (copy TEXT NOT NULL, file TEXT NOT NULL, key TEXT NOT NULL, body BLOB NOT NULL, text BLOB NOT NULL,
                      dots TEXT NOT NULL, mtime INTEGER NOT NULL, ctime INTEGER NOT NULL, size INTEGER NOT NULL,
                      inode INTEGER NOT NULL, missed INTEGER, base BLOB, since INTEGER NOT NULL, fold TEXT NOT NULL,
                      mark BLOB NOT NULL, PRIMARY KEY (copy, file)) WITHOUT ROWID;
CREATE INDEX renders_by_key ON renders (key, copy);
CREATE INDEX renders_by_fold ON renders (fold, copy);
CREATE TABLE asides (copy TEXT NOT NULL, name TEXT NOT NULL, file TEXT NOT NULL, body BLOB NOT NULL, text BLOB NOT NULL,
                     mtime INTEGER NOT NULL, since INTEGER NOT NULL, PRIMARY KEY (copy, name)) WITHOUT ROWID;
CREATE TABLE earlier (copy TEXT NOT NULL, file TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (copy, file, body)) WITHOUT ROWID;
CREATE TABLE returns (copy TEXT NOT NULL, file TEXT NOT NULL, body BLOB NOT NULL, at INTEGER NOT NULL,
                      PRIMARY KEY (copy, file)) WITHOUT ROWID;
CREATE TABLE kept (mark BLOB PRIMARY KEY, row BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE others (mark BLOB PRIMARY KEY, of TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE authors (mark BLOB PRIMARY KEY, by TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE unscanned (seq INTEGER PRIMARY KEY AUTOINCREMENT, names BLOB NOT NULL);
CREATE TABLE reports (id INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL);
"""


_ASCII = "typeof({0})!='text' OR {0} GLOB '*[^ -~]*'"
_NUMBER = "typeof({0})!='integer' OR {0} NOT BETWEEN 0 AND 9007199254740991"
_BYTES = "typeof({0})!='blob'"


def _strange(
    *, texts: tuple[str, ...] = (), numbers: tuple[str, ...] = (), blobs: tuple[str, ...] = ()
) -> str:
    columns = ((_ASCII, texts), (_NUMBER, numbers), (_BYTES, blobs))
    return " OR ".join(condition.format(name) for condition, names in columns for name in names)


#: What a row of these tables is that nobody put there, for the disk changed it.
_STRANGE = {
    "heads": _strange(texts=("root", "device", "digest"), numbers=("c", "seen"), blobs=("prev",)),
    "marks": _strange(texts=("device", "digest", "h"), numbers=("c",)),
    "placed": _strange(texts=("root", "answered"), numbers=("at",)),
    "objects": _strange(numbers=("refs", "size"), blobs=("digest",))
    + " OR refs=0 OR length(digest)!=32 OR held NOT IN (0, 1)",
    "nodes": _strange(numbers=("size",)),
}


def explained(path: Path, error: Exception) -> IpfsmemError:
    """SQLite's complaint as one of our errors."""
    text = str(error)
    if isinstance(error, sqlite3.OperationalError):
        if text.startswith("database is locked"):
            return LockedError(f"{path} is in use by another program")
        if text.startswith("Could not decode"):
            return damaged(path, "a text in it is none")
        return StorageError(f"cannot use {path}: {_WORDS.get(text, text)}")
    if isinstance(error, sqlite3.ProgrammingError):
        return StorageError(f"cannot use {path}: {text}")
    return damaged(path, "SQLite cannot even say why" if isinstance(error, UnicodeError) else text)


_WORDS = {
    "database or disk is full": "the disk is full",
    "attempt to write a readonly database": "the home is read-only",
    "unable to open database file": "it cannot be opened (missing folder or no permission)",
    "disk I/O error": "the disk is full, or reported an error",
}


class _Cursor(sqlite3.Cursor):
    """A cursor whose errors are ours. (A damaged file makes SQLite speak of names that are not even text.)"""

    connection: Connection

    def execute(self, *args: Any) -> _Cursor:
        try:
            return super().execute(*args)
        except (sqlite3.Error, UnicodeError) as error:
            raise explained(self.connection.path, error) from None

    def executemany(self, *args: Any) -> _Cursor:
        try:
            return super().executemany(*args)
        except (sqlite3.Error, UnicodeError) as error:
            raise explained(self.connection.path, error) from None

    def fetchone(self) -> Any:
        try:
            return super().fetchone()
        except (sqlite3.Error, UnicodeError) as error:
            raise explained(self.connection.path, error) from None

    def fetchall(self) -> list[Any]:
        try:
            return super().fetchall()
        except (sqlite3.Error, UnicodeError) as error:
            raise explained(self.connection.path, error) from None

    def __next__(self) -> Any:
        try:
            return super().__next__()
        except (sqlite3.Error, UnicodeError) as error:
            raise explained(self.connection.path, error) from None


class Connection(sqlite3.Connection):
    """A connection whose errors are ours."""

    path = Path(":memory:")

    def execute(self, *args: Any) -> _Cursor:
        """One statement."""
        return self.own_cursor().execute(*args)

    def executemany(self, *args: Any) -> _Cursor:
        """One statement for many rows."""
        return self.own_cursor().executemany(*args)

    def own_cursor(self) -> _Cursor:
        """For several statements in a row."""
        try:
            return self.cursor(_Cursor)
        except sqlite3.Error as error:
            raise explained(self.path, error) from None


DAMAGED_HINT = (
    "Move the folder away. A memory that is published comes back with: ipfsmem init --wallet FILE, or ipfsmem recover. "
    "One in mode local has its texts in the folder memory/ there: ipfsmem init --mode local, then ipfsmem import FOLDER"
)


def damaged(path: Path, what: str) -> StorageError:
    """The error for a database that does not hold what was put into it."""
    return _unusable(f"{path} is damaged: {what}")


def _unusable(what: str) -> StorageError:
    return StorageError(
        what,
        hint=DAMAGED_HINT,
    )


def _check(name: str, value: bytes) -> bytes:
    return sha256(name.encode() + b"\0" + value).digest()[:8]


def blob(value: object) -> bytes | None:
    """A BLOB as it came from SQLite; None for anything that a damaged row may hold instead."""
    return value if isinstance(value, bytes) else None


class Database:
    """A connection. Every use is inside `transaction()`, except reads that may see the last committed state."""

    def __init__(self, folder: Path | None, *, wait: float = 10.0, make: bool = True) -> None:
        """Open the file `state.db` in `folder`, and make it where there is none; None keeps everything in this process's memory.

        `make` False: one was made there. Raises StorageError when it is gone or empty: a new one in its place would say
        that there is no memory.
        """
        self._make = make
        self.path = Path(":memory:") if folder is None else folder / "state.db"
        self._lock_path = None if folder is None else folder / "lock"
        self._wait = wait
        self._depth = 0
        #: Blocks found to be something else than their digest says: absent, and replaced when they come again.
        self._bad: set[bytes] = set()
        self._looked_over = False
        if self._lock_path:
            # Made here, so that neither it nor the files that SQLite puts beside it are ever open to others; and so
            # that no link in its place leads SQLite elsewhere.
            with storage_errors(self.path, "open"):
                try:
                    os.close(open_regular(self.path, os.O_RDWR | (os.O_CREAT if make else 0)))
                except FileNotFoundError:
                    if make:
                        raise
                    raise _unusable(f"{self.path} is missing: what this memory held here is gone") from None
        try:
            self.connection = sqlite3.connect(
                self.path,
                isolation_level=None,
                timeout=wait,
                check_same_thread=False,
                cached_statements=256,
                factory=Connection,
            )
        except sqlite3.Error as error:
            raise explained(self.path, error) from None
        self.connection.path = self.path
        try:
            self._prepare()
        except BaseException:
            self.connection.close()
            raise

    def _prepare(self) -> None:
        run = self.connection.execute
        version = run("PRAGMA user_version").fetchone()[0]
        if version == 0 and not self._make:
            raise damaged(self.path, "it is empty")
        run("PRAGMA auto_vacuum=INCREMENTAL")  # counts while there is no table yet; see give_back
        run("PRAGMA journal_mode=WAL")
        run("PRAGMA synchronous=FULL")
        # On macOS only this reaches the disk itself; elsewhere it says nothing.
        run("PRAGMA fullfsync=ON")
        run("PRAGMA checkpoint_fullfsync=ON")
        run("PRAGMA secure_delete=ON")
        run("PRAGMA cache_size=-16000")
        # A page whose rows do not fit into it is refused when it is read, before anything is written into it.
        run("PRAGMA cell_size_check=ON")
        if version == 0:
            with self.transaction():
                # Another process may have made the tables while this one waited for the lock.
                if run("PRAGMA user_version").fetchone()[0] == 0:
                    for statement in _SCHEMA.strip().split(";"):
                        if statement.strip():
                            run(statement)
                    run(f"PRAGMA user_version={SCHEMA_VERSION}")
        elif version != SCHEMA_VERSION:
            raise ConfigError(
                f"{self.path} was written by another version of ipfsmem (schema {version}, this one knows {SCHEMA_VERSION})",
                hint="Use that version, or move the folder away and sync anew.",
            )

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """The directory lock and one SQLite transaction; nested uses join the outer one."""
        if self._depth:
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
            return
        lock = (
            directory_lock(self._lock_path, wait=self._wait) if self._lock_path else contextlib.nullcontext()
        )
        with lock:
            self.connection.execute("BEGIN IMMEDIATE")
            self._depth = 1
            try:
                yield
            except BaseException:
                self._depth = 0
                self._roll_back()
                raise
            self._depth = 0
            try:
                self.connection.execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise

    def give_back(self) -> None:
        """Give the room of deleted rows back to the disk, a little in each transaction: nobody waits long for one."""
        while self.connection.execute("PRAGMA freelist_count").fetchone()[0]:
            with self.transaction():
                before = self.connection.execute("PRAGMA freelist_count").fetchone()[0]
                self.connection.execute(f"PRAGMA incremental_vacuum({_PAGES})").fetchall()
                after = self.connection.execute("PRAGMA freelist_count").fetchone()[0]
            if after >= before:  # a file that was made without it
                return
        self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _roll_back(self) -> None:
        # SQLite has done so already when the disk is full or broken; the first error is the one to tell.
        if self.connection.in_transaction:
            with contextlib.suppress(IpfsmemError):
                self.connection.execute("ROLLBACK")

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """Reads inside see one committed state, whatever other processes do meanwhile."""
        if self.connection.in_transaction:
            yield
            return
        self.connection.execute("BEGIN")
        try:
            yield
        finally:
            self._end_reading()

    def _end_reading(self) -> None:
        if self.connection.in_transaction:
            self.connection.execute("COMMIT")

    def version(self) -> int:
        """Changes whenever another connection committed something."""
        return int(self.connection.execute("PRAGMA data_version").fetchone()[0])

    def get_meta(self, name: str) -> bytes | None:
        """One named value. Raises StorageError when it is not what was set: a flipped bit never passes for a value."""
        row = self.connection.execute("SELECT value FROM meta WHERE name=?", (name,)).fetchone()
        if row is None:
            return None
        stored = blob(row[0])
        if stored is None or stored[:8] != _check(name, stored[8:]):
            raise damaged(self.path, f"the value {name!r} does not have its checksum")
        return stored[8:]

    def is_changed(self, name: str) -> bool:
        """Whether the disk changed a named value into something that was not set."""
        row = self.connection.execute("SELECT value FROM meta WHERE name=?", (name,)).fetchone()
        stored = b"" if row is None else blob(row[0])
        return row is not None and (stored is None or stored[:8] != _check(name, stored[8:]))

    def metas(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        """All named values whose name begins with `prefix`; those that are not what was set are left out."""
        rows = self.connection.execute(
            "SELECT name, value FROM meta WHERE name >= ? AND name < ?",
            (prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1)),
        ).fetchall()
        for name, value in rows:
            stored = blob(value)
            if stored is not None and stored[:8] == _check(name, stored[8:]):
                yield name, stored[8:]

    def drop_metas(self, prefix: str) -> None:
        """Forget the named values whose name begins with `prefix` (inside a transaction)."""
        self.connection.execute(
            "DELETE FROM meta WHERE name >= ? AND name < ?", (prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1))
        )

    def drop_meta(self, name: str) -> None:
        """Forget one named value (inside a transaction)."""
        self.connection.execute("DELETE FROM meta WHERE name=?", (name,))

    def set_meta(self, name: str, value: bytes) -> None:
        """Set one named value (inside a transaction). Raises StorageError when it would not be found again."""
        self.connection.execute(
            "INSERT OR REPLACE INTO meta VALUES (?,?)", (name, _check(name, value) + value)
        )
        if self.get_meta(name) != value:
            raise self.not_found_again(f"the value {name!r}")

    def block(self, digest: bytes) -> bytes | None:
        """A block by its SHA-256; one that lost its bytes to the disk is not there."""
        row = self.connection.execute(_BLOCK, (digest,)).fetchone()
        return row[0] if row is not None and self.is_sound(digest, row[0]) else None

    def look_over(self) -> None:
        """For who misses a block that should be here: raises StorageError when damage may hide it. Looks once, reads no block.

        Rows out of order are found or not by chance: one that was there can be hidden by the next that is put in.
        """
        if self._looked_over:
            return
        for query in (
            "SELECT digest FROM blocks INDEXED BY sqlite_autoindex_blocks_1 ORDER BY digest",
            "SELECT rowid FROM blocks NOT INDEXED",
        ):
            last = None
            for (found,) in self.connection.execute(query):
                if last is not None and (type(found) is not type(last) or found <= last):
                    raise damaged(self.path, "its blocks are not in the order in which they are looked for")
                last = found
        self._looked_over = True

    def strange(self) -> set[str]:
        """The tables of what was seen, sent or counted that have rows which nobody put there."""
        find = "SELECT 1 FROM {} WHERE {} LIMIT 1"
        return {
            table
            for table, strange in _STRANGE.items()
            if self.connection.execute(find.format(table, strange)).fetchone() is not None
        }

    def drop_strange(self, tables: Iterable[str]) -> None:
        """Forget such rows (inside a transaction): without them more is read, sent or counted again. A part of the state keeps
        its row, and gets its size back."""
        for table in tables:
            do = (
                "UPDATE nodes SET size=coalesce((SELECT length(data) FROM blocks WHERE digest=file), 0)"
                if table == "nodes"
                else f"DELETE FROM {table}"  # noqa: S608
            )
            self.connection.execute(f"{do} WHERE {_STRANGE[table]}")

    def is_sound(self, digest: bytes, data: object) -> bool:
        """Whether what a row of `blocks` holds is what its digest says. If not, it counts as absent from now on."""
        if isinstance(data, bytes) and sha256(data).digest() == digest:
            self._bad.discard(digest)
            return True
        self._bad.add(digest)
        return False

    def is_damaged(self, digest: bytes) -> bool:
        """Whether the row of a block does not hold what its digest says, as it was found before: another process may have
        put it right since, so that is looked at again."""
        return digest in self._bad and self.block(digest) is None

    def has_block(self, digest: bytes) -> bool:
        """Whether a block is here (its bytes are looked at when it is read)."""
        if self.is_damaged(digest):
            return False
        return (
            self.connection.execute("SELECT 1 FROM blocks WHERE digest=?", (digest,)).fetchone() is not None
        )

    def add_blocks(self, blocks: Iterable[tuple[bytes, bytes]]) -> None:
        """Keep (SHA-256, bytes) pairs (inside a transaction). Raises StorageError when one would not be found again.

        Each is looked for as a reader will: in a damaged file SQLite can put a row where it does not look for it.
        """
        some: list[tuple[bytes, bytes]] = []
        size = 0
        for block in blocks:
            some.append(block)
            size += len(block[1])
            if len(some) == _TOGETHER or size > _BYTES_TOGETHER:
                self._add_some(some)
                some, size = [], 0
        if some:
            self._add_some(some)

    def _add_some(self, blocks: list[tuple[bytes, bytes]]) -> None:
        self.connection.executemany("INSERT OR IGNORE INTO blocks VALUES (?,?)", blocks)
        find = f"SELECT digest, data FROM blocks WHERE digest IN ({','.join('?' * len(blocks))})"  # noqa: S608
        found = dict(self.connection.execute(find, [digest for digest, _ in blocks]).fetchall())
        for digest, data in blocks:
            if found.get(digest) != data:
                self._put_again(digest, data)
            self._bad.discard(digest)

    def drop_damaged(self) -> list[bytes]:
        """Take away the rows of objects that were found not to hold what their digests say (inside a transaction), so that
        every process misses them; whose rows went. Where the index leads to another block's row, that one stays."""
        run = self.connection.own_cursor()
        gone = []
        for digest in sorted(self._bad):
            if not self.is_damaged(digest):
                continue
            row = run.execute(
                "SELECT digest FROM blocks NOT INDEXED WHERE rowid=(SELECT rowid FROM blocks WHERE digest=?) "
                "AND EXISTS (SELECT 1 FROM objects WHERE objects.digest=?)",
                (digest, digest),
            ).fetchone()
            if row is not None and row[0] == digest:
                run.execute("DELETE FROM blocks WHERE digest=?", (digest,))
                gone.append(digest)
        return gone

    def _put_again(self, digest: bytes, data: bytes) -> None:
        """A block in the place of a row that lost its bytes. Where the index leads to another block's row, that one stays."""
        run = self.connection.own_cursor()
        known = run.execute(
            "SELECT digest FROM blocks NOT INDEXED WHERE rowid=(SELECT rowid FROM blocks WHERE digest=?)",
            (digest,),
        ).fetchone()
        if known is not None and known[0] == digest:
            run.execute("DELETE FROM blocks WHERE digest=?", (digest,))
            run.execute("INSERT INTO blocks VALUES (?,?)", (digest, data))
            row = run.execute(_BLOCK, (digest,)).fetchone()
            if row is not None and row[0] == data:
                return
        raise self.not_found_again(f"the block {digest.hex()}")

    def not_found_again(self, what: str) -> StorageError:
        """The error for something that was just put in; its transaction must not end well."""
        return damaged(self.path, f"{what} is not found again where it was put")

    def report(self, at: int, kind: str, text: str) -> None:
        """Remember something that a person must be told (inside a transaction); the newest 1,000 stay."""
        self.connection.execute("INSERT INTO reports(at,kind,text) VALUES (?,?,?)", (at, kind, text))
        self.connection.execute("DELETE FROM reports WHERE id <= (SELECT max(id) FROM reports) - 1000")

    def empty_log(self) -> None:
        """Bring everything into the file itself, so that its log holds no text that has gone (outside a transaction).

        As far as nobody else reads just now; what is left goes at the next time, or when the last one closes the file.
        """
        self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the file."""
        self.connection.close()
