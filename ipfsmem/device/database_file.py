"""Examine the files of a vault's SQLite database without opening them.

POSIX releases all record locks of a process on a file when the process closes any descriptor of that file (fcntl(2);
"How To Corrupt An SQLite Database File", section 2.2). SQLite's locks are record locks, so only SQLite may open these
files.
"""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path
from typing import Final, Protocol
from weakref import WeakSet

from ipfsmem.errors import StorageError

DATABASE: Final = "state.db"
#: The database, its write-ahead log, and the index of the log that all processes map.
DATABASE_FILES: Final = (DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm")

#: Prefix and suffix, around 16 hex digits, of the copy of a database that was open when its log was removed.
_ORPHAN, _ORPHAN_END = "state-left-", ".db"

#: Device and inode.
FileId = tuple[int, int]


class OpenDatabase(Protocol):
    """A connection to a database file."""

    def abandon_if_replaced(self) -> str:
        """Close the connection if its files were replaced; return the reason, else ""."""


_lock = threading.Lock()
_open: dict[FileId, WeakSet[OpenDatabase]] = {}


def file_id(status: os.stat_result) -> FileId:
    """Device and inode of a file."""
    return status.st_dev, status.st_ino


def find(path: Path) -> FileId | None:
    """Return the file at `path`, None if it is missing. Raises OSError; StorageError unless it is a regular file."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return None
    if stat.S_ISREG(status.st_mode):
        return file_id(status)
    problem = "is a symbolic link" if stat.S_ISLNK(status.st_mode) else "is not a file"
    raise StorageError(f"{path} {problem}", hint="Move it away: something else is in its place.")


def held_open(path: Path) -> list[FileId]:
    """Return the files that this process has open under this path, including removed ones; empty if not on Linux.

    Opens no descriptor.
    """
    real, open_files = f"{os.path.realpath(path.parent)}/{path.name}", []
    try:
        numbers = os.listdir("/proc/self/fd")  # noqa: PTH208 - creating a Path for each number costs more than the check
    except OSError:
        return []
    for number in numbers:
        descriptor = f"/proc/self/fd/{number}"
        try:
            if os.readlink(descriptor).removesuffix(" (deleted)") == real:  # noqa: PTH115
                open_files.append(file_id(os.stat(descriptor)))  # noqa: PTH116
        except OSError:
            continue  # closed meanwhile
    return open_files


def find_or_make(path: Path) -> FileId:
    """Return the file at `path`, created with mode 0600 if it is missing. Raises OSError and StorageError."""
    with _lock:  # no thread of this process opens the new file before its only descriptor is closed
        if (file := find(path)) is not None:
            return file
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        try:
            fd = os.open(path, flags, 0o600)
        except FileExistsError:  # another process created it meanwhile
            pass
        else:
            os.close(fd)
    file = find(path)
    if file is None:
        raise FileNotFoundError(f"{path} was removed meanwhile")
    return file


def orphan_copy(folder: Path) -> Path:
    """Return a new path for a copy of a database whose log was removed."""
    return folder / f"{_ORPHAN}{os.urandom(8).hex()}{_ORPHAN_END}"


def orphan_copies(folder: Path) -> list[Path]:
    """Return the copies of databases whose log was removed, if they are not merged yet."""
    try:
        with os.scandir(folder) as inside:  # each command calls this once: keep it fast
            names = [one.name for one in inside if one.name.startswith(_ORPHAN)]
    except OSError:
        return []  # opening the database reports it
    return sorted(folder / name for name in names if name.endswith(_ORPHAN_END))


def register(file: FileId, database: OpenDatabase) -> None:
    """Record that `database` has the file open in this process."""
    with _lock:
        _open.setdefault(file, WeakSet()).add(database)


def unregister(file: FileId, database: OpenDatabase) -> None:
    """Remove a closed database from the record."""
    with _lock:
        if (others := _open.get(file)) is not None:
            others.discard(database)
            if not others:
                del _open[file]


def open_here(file: FileId) -> list[OpenDatabase]:
    """Return the databases of this process that have the file open."""
    with _lock:
        return list(_open.get(file, ()))


def refuse_open_database(path: Path | str, *, within: int | None = None) -> None:
    """Raise StorageError if `path` is a database that this process has open, since closing a descriptor would unlock
    it.

    `within`: the descriptor of a folder in which `path` is a name. Links are not followed.
    """
    if not _open:
        return
    try:
        status = os.stat(path, dir_fd=within, follow_symlinks=False)
    except OSError:
        return  # opening it reports the error
    if open_here(file_id(status)):
        raise StorageError(
            f"{path} is the database of a vault that is open here; its texts come out by export"
        )
