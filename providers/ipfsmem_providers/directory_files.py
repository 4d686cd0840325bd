"""Files in a shared folder: written whole or not at all, and disk errors told in words.

The folder may be a stick, a network share, or kept in step by some sync program, and other devices use it at the same
moment. So every file is written beside its place, flushed and renamed. This module knows nothing of blocks or pins,
and never follows a link that somebody left in the folder.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ipfsmem.errors import ProviderUnavailable

TEMPORARY: Final = ".new-"
_FULL: Final = frozenset((errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)))
_DENIED: Final = frozenset((errno.EACCES, errno.EPERM, errno.EROFS))
_BINARY: Final = getattr(os, "O_BINARY", 0)
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


@contextlib.contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Turn whatever the operating system says about `folder` into ProviderUnavailable with a clear text."""
    try:
        yield
    except OSError as error:
        raise unavailable(folder, error) from error


def unavailable(folder: Path, error: OSError) -> ProviderUnavailable:
    """The error to raise for an OSError met inside `folder`."""
    reason = error.strerror or str(error)
    if error.errno in _FULL:
        return ProviderUnavailable(f"no space left in folder {folder} ({reason})", hint="Free space there.")
    if error.errno in _DENIED:
        return ProviderUnavailable(
            f"no permission in folder {folder} ({reason}: {error.filename})",
            hint="Let this user write there, or name another folder.",
        )
    if not os.path.isdir(folder):  # noqa: PTH112 - Path.is_dir raises on some dead mounts
        return gone(folder)
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        return ProviderUnavailable(
            f"{error.filename} is in the way in folder {folder}: it is not a folder",
            hint="Move it away, or name another folder.",
        )
    return ProviderUnavailable(f"folder {folder} does not work: {reason} ({error.filename})")


def gone(folder: Path) -> ProviderUnavailable:
    """The error for a folder that is not there."""
    return ProviderUnavailable(
        f"folder {folder} is not there",
        hint="Plug the stick in or mount the share. A new folder must be made first.",
    )


class NewFile:
    """A file in the making: write, then `place` it under its name, or `drop` it. Nobody sees it before."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / f"{TEMPORARY}{os.getpid()}-{secrets.token_hex(8)}"
        # Mode 0666 less the umask: other people's devices read it on a share.
        self._fd = os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | _BINARY, 0o666)

    def write(self, data: bytes | bytearray) -> None:
        """Append all of `data`."""
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._fd, rest) :]

    def place(self, name: str, *, flush: bool = True) -> None:
        """Flush to the medium and put the file there as `name`, in place of what has that name."""
        if flush:
            os.fsync(self._fd)
        self._close()
        os.replace(self._path, self._folder / name)  # noqa: PTH105 - hot enough, and str or Path alike

    def drop(self) -> None:
        """Forget the file. Never fails: a leftover is cleaned up by a later compaction."""
        with contextlib.suppress(OSError):
            self._close()
        with contextlib.suppress(OSError):
            self._path.unlink()

    def _close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


def write_file(folder: Path, name: str, data: bytes, *, flush: bool = True) -> None:
    """Write a small file whole, making `folder` (but not its parent) when it is missing.

    Durably, unless `flush` is off: a cache need not wait for a slow medium.
    """
    make_folder(folder)
    file = NewFile(folder)
    try:
        file.write(data)
        file.place(name, flush=flush)
    except BaseException:
        file.drop()
        raise
    if flush:
        flush_folder(folder)


def make_folder(folder: Path) -> None:
    """Make one folder in a folder that exists; its name is flushed too."""
    if folder.is_dir():
        return
    folder.mkdir(exist_ok=True)
    flush_folder(folder.parent)


def flush_folder(folder: Path) -> None:
    """Make renames in `folder` durable, where the system has a way to."""
    if os.name == "nt":
        return
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):  # some shares cannot flush folders
            raise
    finally:
        os.close(fd)


def sweep(folder: Path, oldest: float) -> None:
    """Remove files in the making that a crash left behind: those last changed before `oldest` (seconds, 1970)."""
    for name in names_in(folder):
        if name.startswith(TEMPORARY):
            with contextlib.suppress(OSError):
                if (folder / name).stat().st_mtime < oldest:
                    (folder / name).unlink()


def read_file(path: Path, limit: int) -> bytes | None:
    """All of a regular file of at most `limit` bytes; None when it is absent, larger, or something else."""
    try:
        fd = os.open(path, os.O_RDONLY | _BINARY | _NO_LINK)
    except (FileNotFoundError, IsADirectoryError):
        return None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # a link, a pipe
            return None
        raise
    with os.fdopen(fd, "rb", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        data = bytearray()
        while piece := file.read(limit + 1 - len(data)):
            data += piece
        return bytes(data) if len(data) <= limit else None


def names_in(folder: Path) -> list[str]:
    """Names of the regular files in `folder`, links left out; empty when there is no such folder."""
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
    except FileNotFoundError:
        return []


def sizes_in(folder: Path) -> dict[str, int]:
    """The regular files in `folder` and their sizes in bytes; empty when there is no such folder."""
    found = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    if entry.is_file(follow_symlinks=False):
                        found[entry.name] = entry.stat(follow_symlinks=False).st_size
    except FileNotFoundError:
        pass
    return found
