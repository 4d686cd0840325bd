"""One process at a time in one directory: an advisory lock of the operating system, gone with its process.

The lock is held for one operation, not for a session, so that a command line and a server can share a memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import AsyncIterator, Collection, Iterator
from pathlib import Path

from ipfsmem.device.atomic_files import open_regular, storage_errors
from ipfsmem.errors import LockedError

if sys.platform == "win32":
    import msvcrt

    def _try(fd: int) -> bool:
        try:
            # A byte far behind the text: whoever waits may read who holds it.
            os.lseek(fd, 0x7FFF0000, os.SEEK_SET)
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try(fd: int) -> bool:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


@contextlib.contextmanager
def directory_lock(path: Path, *, wait: float = 10.0) -> Iterator[None]:
    """Hold the lock file `path`; wait up to `wait` seconds for another process, then raise LockedError."""
    held = False
    while not held:
        with _lock_file(path) as fd:
            for pause in _tries(fd, path, wait):
                time.sleep(pause)
            if held := _stands_at(fd, path):
                yield


@contextlib.asynccontextmanager
async def directory_lock_async(path: Path, *, wait: float = 10.0) -> AsyncIterator[None]:
    """The same beside an event loop, which runs on meanwhile. The holder may be another task of this process: for such a one it
    waits to the end, however long that is, and a task must not ask for what it holds itself."""
    held = False
    while not held:
        with _lock_file(path) as fd:
            for pause in _tries(fd, path, wait, held_here=_held_by_tasks):
                await asyncio.sleep(pause)
            if held := _stands_at(fd, path):
                file = _identity(fd)
                _held_by_tasks.add(file)
                try:
                    yield
                finally:
                    _held_by_tasks.remove(file)


#: The lock files that tasks of this process hold, by device and inode. A process id in the file would not tell: another
#: container may have one alike.
_held_by_tasks: set[tuple[int, int]] = set()


def _identity(fd: int) -> tuple[int, int]:
    status = os.fstat(fd)
    return status.st_dev, status.st_ino


@contextlib.contextmanager
def _lock_file(path: Path) -> Iterator[int]:
    with storage_errors(path, "lock"):
        fd = open_regular(path, os.O_RDWR | os.O_CREAT)
    try:
        yield fd
    finally:
        os.close(fd)


def _locks(fd: int, path: Path) -> bool:
    with storage_errors(path, "lock"):  # some network file systems know no locks
        return _try(fd)


def _stands_at(fd: int, path: Path) -> bool:
    """Whether the locked file is still the one at its path: who held it before may have taken it away, and a lock on what is gone
    keeps nobody out."""
    try:
        return os.path.samestat(os.fstat(fd), path.stat(follow_symlinks=False))
    except FileNotFoundError:
        return False


def _tries(
    fd: int, path: Path, wait: float, *, held_here: Collection[tuple[int, int]] = ()
) -> Iterator[float]:
    """Seconds to pause before the next try, until the lock is held and its file says by whom. While it is one of `held_here`, the
    wait does not end."""
    give_up = time.monotonic() + wait
    pause = 0.001
    while not _locks(fd, path):
        if _identity(fd) in held_here:
            give_up = time.monotonic() + wait
        elif time.monotonic() >= give_up:
            holder = os.pread(fd, 20, 0).decode("ascii", "replace").strip() if hasattr(os, "pread") else ""
            raise LockedError(f"{path.parent} is in use by process {holder or 'unknown'}")
        yield pause
        pause = min(pause * 2, 0.05)
    with contextlib.suppress(OSError):
        os.truncate(fd, 0)
        os.lseek(fd, 0, os.SEEK_SET)
        os.write(fd, f"{os.getpid()}\n".encode())
