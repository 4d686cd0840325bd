"""Making the files of a memory on this device: one process at a time, and never over a memory that is there already.

`ipfsmem.json` is written last. Until then whatever lies in the folder is unfinished and is made anew by the next try;
from then on nothing here removes it, not even when that file is lost.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from ipfsmem.config import CONFIG_FILE
from ipfsmem.device.atomic_files import make_directory, storage_errors
from ipfsmem.device.database_file import DATABASE, DATABASE_FILES, find
from ipfsmem.device.identity import KEY_FILE, forget_machine
from ipfsmem.device.lock import file_lock
from ipfsmem.device.replica import Replica, claim_folder, write_config
from ipfsmem.device.tables import meta
from ipfsmem.errors import ConfigError, IpfsmemError, StorageError


@contextlib.contextmanager
def folder_claimed(folder: Path | None) -> Iterator[None]:
    """Claim a folder for a new memory while the block runs. None, which keeps nothing on disk, is always free.

    Raises ConfigError when there is a memory already, LockedError when another process makes one.
    """
    if folder is None:
        yield
        return
    make_directory(folder)
    with file_lock(folder / "create.lock"):
        claim_folder(folder)
        if _holds_memory(folder / DATABASE):
            raise ConfigError(
                f"{folder} holds the state of a memory, but its {CONFIG_FILE} is missing",
                hint=f"Bring {CONFIG_FILE} back from a copy; or move the folder away, then make or restore anew.",
            )
        yield


def remove_unfinished_database(folder: Path) -> None:
    """Remove the database that an unfinished try left (inside `folder_claimed`)."""
    for name in DATABASE_FILES:
        with storage_errors(folder / name, "remove"):
            (folder / name).unlink(missing_ok=True)


def mark_as_memory(replica: Replica) -> None:
    """From here on the folder holds a memory (inside `folder_claimed`)."""
    if replica.folder is None:
        return
    try:
        write_config(replica.folder, replica.config)
    except BaseException:  # it may be there all the same, of a memory whose words nobody has seen
        with contextlib.suppress(OSError):
            (replica.folder / CONFIG_FILE).unlink()
        raise
    with contextlib.suppress(
        IpfsmemError
    ):  # the next opening does it; the memory is made, and its words are still to be shown
        note_finished_in_database(replica)


def note_finished_in_database(replica: Replica) -> None:
    """Have the database say by itself that it holds a memory, should its configuration be lost. Also when a memory is opened: the
    process that made it may have ended just before."""
    if replica.db.get_meta(meta.FINISHED) is None:
        with replica.transaction():
            replica.db.set_meta(meta.FINISHED, b"1")


def remove_unfinished_memory(folder: Path) -> None:
    """Remove what was made and not finished, and the folder when nothing else is in it."""
    leftovers = [*folder.glob(f".{KEY_FILE}.*.tmp"), *folder.glob(f".{CONFIG_FILE}.*.tmp")]
    names = (CONFIG_FILE, *DATABASE_FILES, KEY_FILE, "lock", "sync.lock", "create.lock")
    for path in (*(folder / name for name in names), *leftovers):
        with contextlib.suppress(OSError):
            path.unlink()
    with contextlib.suppress(OSError):
        folder.rmdir()
        forget_machine(folder.parent)


def _holds_memory(database: Path) -> bool:
    """Whether a database without a configuration was finished once, or is too damaged to tell. Raises StorageError when it cannot
    be read now: what holds a memory must not be made anew because a disk or another process was in the way."""
    with storage_errors(database, "read"):
        if find(database) is None:  # SQLite would follow a link
            return False
    try:
        with contextlib.closing(sqlite3.connect(database, timeout=10.0)) as connection:
            return meta.has(connection, meta.FINISHED)
    except sqlite3.OperationalError as error:
        # No such table: whoever made it did not come so far.
        if error.sqlite_errorcode == sqlite3.SQLITE_ERROR:
            return False
        raise StorageError(f"cannot read {database}, and nothing was changed: {error}") from error
    except sqlite3.DatabaseError:
        return True
