"""Lock a file for one process at a time. The operating system releases the lock when the process ends.

A lock is held for one operation, not for a session, so that a command and a server can share a vault.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import AsyncIterator, Collection, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Final

from ipfsmem.device.atomic_files import open_regular, storage_error, storage_errors
from ipfsmem.errors import LockedError

#: Bytes at the start of a lock file that may contain the process id of its holder.
_HOLDER_BYTES = 20
#: Seconds that an operation waits for another process.
WAIT: Final = 10.0
#: Seconds that a server waits when it checks for changes. It is short, since calls wait meanwhile.
LOOK_WAITS: Final = 0.5


class _WaitBudget:
    """The seconds for which one call may wait for other processes, and the seconds that it already waited without
    success."""

    def __init__(self, most: float) -> None:
        self.most = most
        self._waited = 0.0
        #: Until when, by the monotonic clock, `_waited` is valid.
        self._until = 0.0

    def left(self, wait: float, now: float) -> float:
        """Return the seconds left of a wait of up to `wait` seconds."""
        return max(0.0, min(wait, self.most) - (self._waited if now < self._until else 0.0))

    def note_failed_wait(self, began: float, now: float) -> None:
        """Record a wait that ended without success."""
        self._waited = now - began + (self._waited if began < self._until else 0.0)
        self._until = now + self.most


_WAITS: Final[ContextVar[_WaitBudget | None]] = ContextVar("waits", default=None)


@contextlib.contextmanager
def one_wait(seconds: float = WAIT) -> Iterator[None]:
    """Limit the failed waits in the block, for locks and for the database, to `seconds` in total; an outer limit
    takes precedence.

    Earlier failed waits shorten a wait, so the second one for a file that stays busy ends at once. A successful wait
    shortens none, and a failed one shortens none after further `seconds`.
    """
    if _WAITS.get() is not None:
        yield
        return
    token = _WAITS.set(_WaitBudget(seconds))
    try:
        yield
    finally:
        _WAITS.reset(token)


@contextlib.contextmanager
def waiting(wait: float) -> Iterator[float]:
    """Yield the seconds that `one_wait` leaves of a wait of up to `wait` seconds, which happens in the block."""
    waits = _WAITS.get()
    if waits is None:
        yield wait
        return
    began = time.monotonic()
    try:
        yield waits.left(wait, began)
    except BaseException:
        waits.note_failed_wait(began, time.monotonic())
        raise


if sys.platform == "win32":
    import msvcrt

    def _try(fd: int) -> bool:
        try:
            # Windows keeps other processes from reading locked bytes. So one byte far behind the holder's process id is locked,
            # and waiting processes can read the id.
            os.lseek(fd, 0x7FFF0000, os.SEEK_SET)
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    _is_free = _try

else:
    import fcntl

    def _try(fd: int, how: int = fcntl.LOCK_EX) -> bool:
        try:
            fcntl.flock(fd, how | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _is_free(fd: int) -> bool:
        return _try(fd, fcntl.LOCK_SH)  # shared: several checks can hold it at once


def is_held(path: Path) -> bool:
    """Return whether some process holds the lock file `path`. A process that takes it at the same time waits briefly. Raises
    StorageError."""
    if not path.exists():
        return False
    with _opened(path) as fd, storage_errors(path, "lock"):
        return not _is_free(fd)


@contextlib.contextmanager
def file_lock(path: Path, *, wait: float = WAIT) -> Iterator[None]:
    """Hold the lock file `path`, which is created if it is missing; its folder must exist.

    Waits up to `wait` seconds for another process, then raises LockedError. StorageError if the file cannot be opened or its file
    system has no locks.
    """

    is_locked = False
    while not is_locked:
        fd = _open(path)
        try:
            if _is_locked_now(fd, path):
                _name_holder(fd)  # the usual case: the lock is free
            else:
                with waiting(wait) as allowed:
                    for pause in _pauses_until_locked(fd, path, allowed):
                        time.sleep(pause)
            if is_locked := _is_same_file(fd, path):
                yield
        finally:
            os.close(fd)


@contextlib.asynccontextmanager
async def file_lock_async(path: Path, *, wait: float = WAIT) -> AsyncIterator[None]:
    """Hold a lock file as `file_lock`, and let the event loop run while waiting.

    It waits without a limit for another task of this process; a task must not request a lock that it holds.
    """
    import asyncio  # imported late: 30 ms that a read or write of one memory does not need

    is_locked = False
    while not is_locked:
        with _opened(path) as fd:
            for pause in _pauses_until_locked(fd, path, wait, held_here=_held_by_tasks):
                await asyncio.sleep(pause)
            if is_locked := _is_same_file(fd, path):
                file = _identity(fd)
                _held_by_tasks.add(file)
                try:
                    yield
                finally:
                    _held_by_tasks.remove(file)


#: The lock files that tasks of this process hold, by device and inode. A process id in the file would not tell: another container
#: may have the same.
_held_by_tasks: set[tuple[int, int]] = set()


def _identity(fd: int) -> tuple[int, int]:
    status = os.fstat(fd)
    return status.st_dev, status.st_ino


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    fd = _open(path)
    try:
        yield fd
    finally:
        os.close(fd)


def _open(path: Path) -> int:
    try:
        return open_regular(path, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise storage_error(path, "lock", error) from None


def _is_same_file(fd: int, path: Path) -> bool:
    """Return whether the locked file is still the one at `path`. Its last holder may have deleted it, and the lock on a deleted
    file excludes no process."""
    try:
        return os.path.samestat(os.fstat(fd), os.lstat(path))
    except FileNotFoundError:
        return False


def _pauses_until_locked(
    fd: int, path: Path, wait: float, *, held_here: Collection[tuple[int, int]] = ()
) -> Iterator[float]:
    """Yield the seconds to pause before each further attempt; ends when the lock is held and its file names this process. While
    the file is one of `held_here`, the wait does not end."""
    give_up = time.monotonic() + wait
    pause = 0.001
    while not _is_locked_now(fd, path):
        if _identity(fd) in held_here:
            give_up = time.monotonic() + wait
        elif time.monotonic() >= give_up:
            raise LockedError(f"{path.parent} is in use by {_holder(fd)}")
        yield pause
        pause = min(pause * 2, 0.05)
    _name_holder(fd)


def _name_holder(fd: int) -> None:
    """Write this process's id into a lock file that it holds."""
    with contextlib.suppress(OSError):
        os.lseek(fd, 0, os.SEEK_SET)
        # Overwrite in place, with a fixed length: truncating first may wait for the disk (ext4 writes such a file out when it is
        # closed).
        os.write(fd, f"{os.getpid():<{_HOLDER_BYTES - 1}}\n".encode())


def _is_locked_now(fd: int, path: Path) -> bool:
    try:
        return _try(fd)
    except OSError as error:  # some network file systems have no locks
        raise storage_error(path, "lock", error) from None


def _holder(fd: int) -> str:
    """Return the process that holds the lock, as its file names it."""
    try:
        os.lseek(fd, 0, os.SEEK_SET)
        process = os.read(fd, _HOLDER_BYTES).decode("ascii", "replace").strip()
    except OSError:
        process = ""
    return f"process {process}" if process else "another process"
