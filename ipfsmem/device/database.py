"""Open the SQLite file of a vault, run transactions on it, and read blocks that match their digests.

The tables and their SQL are in `device.tables`. In encrypted mode, the callers seal confidential data before they
pass it. Each transaction is one fsync (write-ahead log, synchronous FULL).
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from hashlib import sha256
from pathlib import Path

from ipfsmem.config import CONFIG_FILE
from ipfsmem.device.atomic_files import storage_errors
from ipfsmem.device.connection import Connection, explained, not_found_again, unusable, verdict
from ipfsmem.device.database_file import (
    DATABASE,
    DATABASE_FILES,
    FileId,
    find,
    find_or_make,
    held_open,
    open_here,
    orphan_copies,
    orphan_copy,
    register,
    unregister,
)
from ipfsmem.device.lock import WAIT, file_lock, waiting
from ipfsmem.device.tables import blocks, journal, meta, schema
from ipfsmem.errors import ConfigError, IpfsmemError, LockedError, StorageError

#: Seconds for which closing an abandoned connection waits for a writing process.
_CLOSE_WAIT_S = 2.0
#: Maximum number of blocks in one statement, and maximum of their total bytes.
_MAX_BLOCKS = 250
_MAX_BLOCK_BYTES = 4 * 1024 * 1024
#: Maximum number of blocks that are read back in the same statement as other rows.
_MAX_READ_BACK = 4
#: Number of pages that one transaction frees: two megabytes.
_FREED_PAGES = 512


def _replaced(what: str) -> StorageError:
    return StorageError(what, hint="Open the vault again (in Python: Memory.load), or restart this program.")


class Database:
    """A vault's database. Every use must be inside `transaction()`, except reads of the last committed state."""

    def __init__(self, folder: Path | None, *, wait: float = WAIT, make: bool = True) -> None:
        """Open the file `state.db` in `folder`, and create it if it is missing; None: in this process's memory.

        `make=False`: the file must exist. Raises StorageError if it is missing or empty, since a new file would look
        like an empty vault.
        """
        self._make = make
        self.path = Path(":memory:") if folder is None else folder / DATABASE
        self._lock_path = None if folder is None else folder / "lock"
        self._wait = wait
        self._depth = 0
        #: Held by the one thread that reads or writes.
        self.lock = threading.RLock()
        #: Digests of damaged blocks, which are treated as missing and replaced when they arrive again.
        self._bad: set[bytes] = set()
        self._order_is_checked = False
        #: Whether the tables are up to date.
        self._ready = False
        #: `PRAGMA data_version` in the current transaction, and when the tables were last found up to date.
        self._version = self._version_of_tables = -1
        #: The open files by path: database, log and index of the log; empty without a file.
        self._files: dict[Path, FileId] = {}
        #: Modification time and length of the file at the last check that it was not replaced.
        self._intact_at: tuple[int, int] | None = None
        #: The reason why this connection was abandoned; "" while it is usable.
        self._gone = ""
        #: The reason why committed writes may be lost with a removed log; "" if none are.
        self._lost = ""
        if folder is not None:
            self._files[self.path] = self._find_or_make(make)
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
            self._note_files()
        except BaseException:
            # Closing alone would write a removed log over later writes of other processes.
            if not self.abandon_if_replaced():
                self._unregister()
                self.connection.close()
            raise

    def _find_or_make(self, make: bool) -> FileId:
        """Return the file to open, created so that SQLite follows no link, and that neither it nor the files that
        SQLite creates next to it are readable by other users."""
        with storage_errors(self.path, "open"):
            file = find_or_make(self.path) if make else find(self.path)
        if file is None:
            saved = orphan_copies(self.path.parent)
            saved_copy = (
                f". A program that had it open saved it: rename {saved[-1]} to {DATABASE}" if saved else ""
            )
            raise unusable(f"{self.path} is missing, and with it this device's copy of the vault{saved_copy}")
        # A new connection would share the index of a removed log.
        for other in open_here(file):
            other.abandon_if_replaced()
        return file

    def _note_files(self) -> None:
        """Record the files that this connection has open. No program that respects SQLite's locks replaces them
        meanwhile."""
        if not self._files:
            return
        with storage_errors(self.path, "read"):
            # A removed database that is open here has its own log.
            only_ours = {*held_open(self.path)} <= {self._files[self.path]}
            for name in DATABASE_FILES[1:]:
                path = self.path.with_name(name)
                file, open_files = find(path), held_open(path)
                # The file was removed and created again since SQLite opened it, perhaps by this process.
                if only_ours or file not in open_files:
                    file = next((one for one in open_files if one != file), file)
                if file is not None:
                    self._files[path] = file
        for file in self._files.values():
            register(file, self)
        if replaced := self.replaced():
            raise StorageError(f"{replaced}: another program replaced it meanwhile")

    def _prepare(self) -> None:
        run = self.connection.execute
        with self._limited_wait():
            version = schema.check(self.connection)
        if version == 0 and not self._make:
            raise unusable(f"{self.path} is damaged: it is empty")
        if version == 0:
            # Effective only while there is no table (see shrink); repeated, it would write to the file each time.
            run("PRAGMA auto_vacuum=INCREMENTAL")
        run("PRAGMA journal_mode=WAL")
        run("PRAGMA synchronous=FULL")
        # The only way to flush to the disk itself on macOS; no effect elsewhere.
        run("PRAGMA fullfsync=ON")
        run("PRAGMA checkpoint_fullfsync=ON")
        run("PRAGMA secure_delete=ON")
        run("PRAGMA cache_size=-16000")
        # Detects a page with invalid cells when it is read, before it is written.
        run("PRAGMA cell_size_check=ON")
        if version != schema.VERSION:
            with self.transaction():
                schema.bring_up_to_date(self.connection)

        self._ready = True

    def _check_tables(self) -> None:
        # A newer version of the program may have changed the tables since this process opened the file.
        if not self._ready or self._version == self._version_of_tables:
            return
        if (current := schema.version(self.connection)) != schema.VERSION:
            raise ConfigError(
                f"{self.path} was changed meanwhile by another version of this program (schema {current}, this one knows {schema.VERSION})",
                hint=schema.HINT,
            )
        self._version_of_tables = self._version

    def replaced(self) -> str:
        """Return how the file or log at this path differs from the open one (restored from a backup, moved or
        deleted), so that writes would be lost; "" if it does not."""
        if self._gone:
            return self._gone
        intact_at = None
        for path, file in self._files.items():
            try:
                now = os.lstat(path)
            except FileNotFoundError:
                return f"{path} is gone"
            except OSError:
                continue  # the next read or write reports it
            if (now.st_dev, now.st_ino) != file:
                return f"{path} is not the file that is open here"
            if path is self.path:
                intact_at = now.st_mtime_ns, now.st_size
        self._intact_at = intact_at
        return ""

    def _written_at(self) -> tuple[int, int] | None:
        """Return the modification time and length of the file; None if unknown."""
        try:
            status = os.lstat(self.path)
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size

    def abandon_if_replaced(self) -> str:
        """Close the connection if the file was `replaced`, and return the reason. Every later use raises
        StorageError."""
        if not self._gone and (problem := self.replaced()):
            self._unregister()
            self._gone = problem
            with contextlib.ExitStack() as stack:
                # SQLite's locks are in the index of the log. Without the index, only this lock prevents another
                # process from writing to the file while this process checks for such writes and writes its log into
                # the file.
                alone = self._is_alone(stack)
                stale = self._is_stale()
                saved = self._save_copy(stale)
                self.connection.give_up(_replaced(problem), checkpoint=not stale and (alone or not saved))
        return self._gone

    def _is_alone(self, stack: contextlib.ExitStack) -> bool:
        """Take the lock under which all processes write; False if another process has it."""
        if self._depth or self._lock_path is None:
            return True
        try:
            stack.enter_context(file_lock(self._lock_path, wait=_CLOSE_WAIT_S))
        except (LockedError, StorageError):
            return False
        return True

    def _save_copy(self, stale: bool) -> bool:
        """Copy the content to a file in the folder after the log, its index or the database was removed.

        The content may exist nowhere else. The next opening of the vault merges the copy (`vault.rescue`). Returns
        whether there is a copy.
        """
        try:
            there = find(self.path)
            if there is None:
                if not (self.path.parent / CONFIG_FILE).exists():
                    return False  # the whole folder was moved or deleted
                stale = True
            elif there != self._files[self.path]:
                return False  # another database took its place
            self.connection.copy_to(orphan_copy(self.path.parent))
            return True
        except (OSError, sqlite3.Error, StorageError) as error:
            if stale:
                self._lost = f"{self._gone}: the last writes are only in a removed file, and a copy could not be saved ({error})"
                import logging  # imported late: 4 ms that other processes do not need

                logging.getLogger("ipfsmem.database").error("%s", self._lost)
            return False

    def _is_stale(self) -> bool:
        """Return whether the file may have newer pages than the open log.

        False if the log was removed and nothing was written since: the open log is complete, and SQLite writes it
        into the file on closing, unless another process has the file open. False for a replaced file too, which
        SQLite does not write.
        """
        log, index = (self.path.with_name(name) for name in DATABASE_FILES[1:])
        try:
            if find(self.path) != self._files[self.path]:
                return False
            if find(log) is not None:
                return True
            if find(index) is None:
                return self._written_at() != self._intact_at
            return find(index) != self._files.get(index)
        except (OSError, StorageError):
            return True

    def _refuse_replaced(self) -> None:
        if problem := self.replaced():
            raise _replaced(problem)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Hold the lock file and one SQLite transaction; nested uses in this thread join the outer one."""
        with self.lock:
            yield from self._transaction()

    def _transaction(self) -> Iterator[None]:
        if self._depth:
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
            return
        lock = file_lock(self._lock_path, wait=self._wait) if self._lock_path else contextlib.nullcontext()
        with lock:
            self._refuse_replaced()
            with self._limited_wait():
                self.connection.execute("BEGIN IMMEDIATE")
            try:
                self._version = self.version()
                self._depth = 1
                self._check_tables()
                yield
            except BaseException:
                self._depth = 0
                self._roll_back()
                raise
            self._depth = 0
            try:
                self._refuse_replaced()
                self.connection.execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise
            self._refuse_replaced()

    @contextlib.contextmanager
    def _limited_wait(self) -> Iterator[None]:
        """Limit the time for which a statement in the block waits for other programs to that of `one_wait`."""
        with waiting(self._wait) as allowed:
            if allowed == self._wait:
                yield
                return
            self._set_wait(allowed)
            try:
                yield
            finally:
                self._set_wait(self._wait)

    def _set_wait(self, seconds: float) -> None:
        self.connection.execute(f"PRAGMA busy_timeout={int(seconds * 1000)}")

    def shrink(self) -> None:
        """Return the space of deleted rows to the disk, in many short transactions, so that no process waits long."""
        while self.connection.execute("PRAGMA freelist_count").fetchone()[0]:
            with self.transaction():
                before = self.connection.execute("PRAGMA freelist_count").fetchone()[0]
                self.connection.execute(f"PRAGMA incremental_vacuum({_FREED_PAGES})").fetchall()
                after = self.connection.execute("PRAGMA freelist_count").fetchone()[0]
            if after >= before:  # the file was created without auto_vacuum
                return
        self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def unused_bytes(self) -> int:
        """Return the number of unused bytes in the file."""
        with self.lock, storage_errors(self.path, "read"):
            (pages,), (size,) = (
                self.connection.execute(f"PRAGMA {name}").fetchone()
                for name in ("freelist_count", "page_size")
            )
        return int(pages) * int(size)

    def compact(self) -> None:
        """Rewrite the file without free space, while no other process writes. Temporarily needs twice its size on the
        disk.

        Raises LockedError; StorageError, before any write, if the file is damaged or the disk lacks that space.
        """
        with self.lock:
            state = self.verdict()
            if state != "ok":
                raise unusable(f"{self.path} is damaged, and was left as it is: {state}")
            if self._lock_path is None:
                schema.compact(self.connection)
                return
            with storage_errors(self.path, "read"):
                needed = 2 * self.path.stat().st_size
                import shutil  # imported late: it loads all compression modules of Python

                free = shutil.disk_usage(self.path.parent).free
            if free < needed:
                raise StorageError(
                    f"compacting {self.path} needs {needed:,} bytes of free space, and {free:,} are free"
                )
            with file_lock(self._lock_path, wait=self._wait):
                self._version = self.version()  # as at the start of a transaction
                self._check_tables()
                # Sort in memory, so that no text of a plain vault gets into the system's temporary folder.
                self.connection.execute("PRAGMA temp_store=MEMORY")
                schema.compact(self.connection)
                self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _roll_back(self) -> None:
        # If the disk is full or broken, SQLite has already rolled back. Report the first error.
        if not self._gone and self.connection.in_transaction:
            with contextlib.suppress(IpfsmemError):
                self.connection.execute("ROLLBACK")

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """Make all reads in the block see the same committed state."""
        with self.lock:
            if self.connection.in_transaction:
                yield
                return
            self._refuse_replaced()
            self.connection.execute("BEGIN")
            try:
                yield
            finally:
                self._end_reading()

    def _end_reading(self) -> None:
        if not self._gone and self.connection.in_transaction:
            self.connection.execute("COMMIT")

    def version(self) -> int:
        """Return a number that changes whenever another connection commits something."""
        if self._depth:
            return self._version  # no other process commits during a transaction
        return int(self.connection.execute("PRAGMA data_version").fetchone()[0])

    def get_meta(self, name: str) -> bytes | None:
        """Return one named value; the names are in `tables.meta`. Raises StorageError if it differs from the value
        set."""
        return meta.get(self.connection, name)

    def set_meta(self, name: str, value: bytes) -> None:
        """Set one named value (inside a transaction). Raises StorageError if it cannot be read back."""
        meta.put(self.connection, name, value)

    def block(self, digest: bytes) -> bytes | None:
        """Return a block by its SHA-256; None if it is missing or damaged."""
        data = blocks.get(self.connection, digest)
        return data if data is not None and self.is_sound(digest, data) else None

    def check_order(self) -> None:
        """Raise StorageError if rows of blocks are out of order, which can hide blocks. Called when a block is
        missing; the check runs once."""
        if not self._order_is_checked:
            blocks.check_order(self.connection)
            self._order_is_checked = True

    def is_sound(self, digest: bytes, data: object) -> bool:
        """Return whether the content of a block's row has the block's digest. If not, the block is treated as
        missing."""
        if isinstance(data, bytes) and sha256(data).digest() == digest:
            self._bad.discard(digest)
            return True
        self._bad.add(digest)
        return False

    @property
    def suspects(self) -> Set[bytes]:
        """Blocks that were found damaged before; `is_damaged` checks them again."""
        return self._bad

    def is_damaged(self, digest: bytes) -> bool:
        """Return whether a block is damaged. It is read again, since another process may have replaced it."""
        return digest in self._bad and self.block(digest) is None

    def has_block(self, digest: bytes) -> bool:
        """Return whether a block is on this device. Its bytes are checked only by a read."""
        return not self.is_damaged(digest) and blocks.has(self.connection, digest)

    def add_blocks(self, new: Iterable[tuple[bytes, bytes]]) -> None:
        """Store (SHA-256, bytes) pairs (inside a transaction). Raises StorageError if one cannot be read back.

        Each block is read back, since SQLite may not find a row that it wrote into a damaged file.
        """
        some: list[tuple[bytes, bytes]] = []
        size = 0
        for block in new:
            some.append(block)
            size += len(block[1])
            if len(some) == _MAX_BLOCKS or size > _MAX_BLOCK_BYTES:
                self._add_some(some)
                some, size = [], 0
        if some:
            self._add_some(some)

    def _add_some(self, new: list[tuple[bytes, bytes]]) -> None:
        for digest, data in blocks.put(self.connection, new):
            if not blocks.replace(self.connection, digest, data):
                raise not_found_again(self.path, f"the block {digest.hex()}")
        self._bad.difference_update(digest for digest, _ in new)

    def append(
        self, row: bytes, after: int, values: Mapping[str, bytes], new: Sequence[tuple[bytes, bytes]]
    ) -> int:
        """Add a row to the journal, with the blocks that it needs and values of `meta` (inside a transaction).
        Returns the row's number, which is greater than `after`, the number of the last row.

        Raises StorageError if a row, block or value cannot be read back.
        """
        if len(new) > _MAX_READ_BACK:
            self.add_blocks(new)
            new = ()
        run = self.connection
        if new:
            blocks.add(run, new)
        seq, stored = journal.append(run, row)
        placed = meta.add(run, values)
        stored_seq, found_values, found_blocks = journal.read_back(
            run, seq, list(placed), [digest for digest, _ in new]
        )
        if seq <= after or stored_seq != stored:
            raise not_found_again(self.path, "a row of the journal")
        for (name, value), read in zip(placed.items(), found_values, strict=True):
            if read != value:
                raise not_found_again(self.path, f"the value {name!r}")
        for (digest, data), read in zip(new, found_blocks, strict=True):
            if read != data and not blocks.replace(run, digest, data):
                raise not_found_again(self.path, f"the block {digest.hex()}")
            self._bad.discard(digest)
        return seq

    def drop_damaged(self) -> list[bytes]:
        """Delete the rows of damaged objects (inside a transaction), so that every process finds them missing.
        Returns their digests."""
        return [
            digest
            for digest in sorted(self._bad)
            if self.is_damaged(digest) and blocks.forget_object(self.connection, digest)
        ]

    def verdict(self) -> str:
        """Return the result of SQLite's check of the whole file: "ok", or the first fault. Takes longer for a larger file."""
        return verdict(self.connection)

    def empty_log(self) -> None:
        """Move the log into the file and truncate it, so that it contains no deleted text (outside a transaction).

        Pages that another process is reading stay in the log until the next call, or until the last process closes
        the file.
        """
        self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the file. Raises StorageError after closing if writes may be lost with a log that was removed."""
        if not self.abandon_if_replaced():
            self._unregister()
            self._files.clear()
            self.connection.close()
        lost, self._lost = self._lost, ""
        if lost:
            raise StorageError(lost, hint="Compare with ipfsmem list, and write missing texts again.")

    def _unregister(self) -> None:
        for file in self._files.values():
            unregister(file, self)
