"""Create the files of a vault on this device, one process at a time and never over an existing vault.

`ipfsmem.json` is written last. Until then the folder is unfinished, and the next attempt starts over. A finished
vault is never removed, even if that file is lost.
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
    """Claim a folder for a new vault while the block runs. None (a vault without files) is always free.

    Raises ConfigError if the folder has a vault, LockedError if another process is creating one.
    """
    if folder is None:
        yield
        return
    make_directory(folder)
    with file_lock(folder / "create.lock"):
        claim_folder(folder)
        if _holds_memory(folder / DATABASE):
            raise ConfigError(
                f"{folder} has the state of a vault, but its {CONFIG_FILE} is missing",
                hint=f"Restore {CONFIG_FILE} from a copy; or move the folder away, then create or recover the vault.",
            )
        yield


def remove_unfinished_database(folder: Path) -> None:
    """Remove the database of an unfinished attempt (inside `folder_claimed`)."""
    for name in DATABASE_FILES:
        with storage_errors(folder / name, "remove"):
            (folder / name).unlink(missing_ok=True)


def mark_as_memory(replica: Replica) -> None:
    """Mark the folder as holding a vault (inside `folder_claimed`)."""
    if replica.folder is None:
        return
    try:
        write_config(replica.folder, replica.config)
    except BaseException:  # the file may exist in spite of the error, and the recovery phrase was not shown
        with contextlib.suppress(OSError):
            (replica.folder / CONFIG_FILE).unlink()
        raise
    with contextlib.suppress(
        IpfsmemError
    ):  # opening the vault repeats this; the vault exists, and its recovery phrase must still be shown
        note_finished_in_database(replica)


def note_finished_in_database(replica: Replica) -> None:
    """Record in the database that the vault is finished, in case its configuration is lost.

    Also called when a vault is opened, since the process that created it may have ended before this step.
    """
    if replica.db.get_meta(meta.FINISHED) is None:
        with replica.transaction():
            replica.db.set_meta(meta.FINISHED, b"1")


def remove_unfinished_memory(folder: Path) -> None:
    """Remove an unfinished vault, and its folder if that is empty then."""
    leftovers = [*folder.glob(f".{KEY_FILE}.*.tmp"), *folder.glob(f".{CONFIG_FILE}.*.tmp")]
    names = (CONFIG_FILE, *DATABASE_FILES, KEY_FILE, "lock", "sync.lock", "create.lock")
    for path in (*(folder / name for name in names), *leftovers):
        with contextlib.suppress(OSError):
            path.unlink()
    with contextlib.suppress(OSError):
        folder.rmdir()
        forget_machine(folder.parent)


def _holds_memory(database: Path) -> bool:
    """Return whether a database without a configuration belongs to a finished vault, or is too damaged to tell.

    Raises StorageError if it cannot be read at the moment: a temporary failure must not cause a vault to be replaced.
    """
    with storage_errors(database, "read"):
        if find(database) is None:  # SQLite would follow a link
            return False
    try:
        with contextlib.closing(sqlite3.connect(database, timeout=10.0)) as connection:
            return meta.has(connection, meta.FINISHED)
    except sqlite3.OperationalError as error:
        # no such table: the creation ended before it
        if error.sqlite_errorcode == sqlite3.SQLITE_ERROR:
            return False
        raise StorageError(f"cannot read {database}, and nothing was changed: {error}") from error
    except sqlite3.DatabaseError:
        return True
