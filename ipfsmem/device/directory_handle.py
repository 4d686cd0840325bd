"""Keep a folder open, so that each operation happens in that folder even if its path later leads elsewhere.

Where the system can, the folder is a descriptor and each file is reached through it; elsewhere (Windows) it is its
path, checked for links just before each operation. Names are single names, never paths, and links are never followed.
The renames that each system offers are here too. OSErrors pass through unchanged.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator
from functools import lru_cache

from ipfsmem.file_durability import flush_to_disk, retry_while_held_open

_BINARY = getattr(os, "O_BINARY", 0)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
#: Opening a pipe must not wait for a writer.
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)
_DIRECTORY = getattr(os, "O_DIRECTORY", 0)
#: Whether this system can open folders as descriptors.
_BY_DESCRIPTOR = bool(_DIRECTORY) and {os.open, os.stat, os.rename, os.unlink, os.mkdir} <= os.supports_dir_fd
#: Whether a plain rename never overwrites, as on Windows.
_RENAME_NEVER_REPLACES = os.name == "nt"
_REPARSE = 0x400  # FILE_ATTRIBUTE_REPARSE_POINT: a link or junction of Windows


#: The bits of an inode number that fit into a database; some systems have 128.
INODE = (1 << 63) - 1


class LinkError(OSError):
    """A folder was expected, and a link or something else was found."""


class Directory:
    """One folder, open until `close`."""

    def __init__(self, path: str, fd: int | None, status: os.stat_result) -> None:
        """Use `open_directory` or `sub`."""
        self.path = path
        self.inode = status.st_ino & INODE
        self.device = status.st_dev
        self._fd = fd

    def sub(self, name: str) -> Directory:
        """Open a folder in this one. Raises FileNotFoundError, LinkError."""
        path = self._path(name)
        try:
            if self._fd is not None:
                fd = os.open(name, os.O_RDONLY | _DIRECTORY | _NOFOLLOW, dir_fd=self._fd)
                return Directory(path, fd, os.fstat(fd))
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
                raise LinkError(errno.ELOOP, "it is a link, or not a folder", path) from None
            raise
        self._check()
        status = os.lstat(path)
        if not stat.S_ISDIR(status.st_mode) or _is_link(status):
            raise LinkError(errno.ELOOP, "it is a link, or not a folder", path)
        return Directory(path, None, status)

    def make(self, name: str, mode: int = 0o700) -> Directory:
        """Open a folder in this one, created if it is missing. Raises LinkError."""
        try:
            return self.sub(name)
        except FileNotFoundError:
            with contextlib.suppress(FileExistsError):
                os.mkdir(self._name(name), mode, dir_fd=self._fd)
            return self.sub(name)

    def again(self) -> Directory:
        """Open the same folder once more."""
        fd = None if self._fd is None else os.dup(self._fd)
        return Directory(self.path, fd, os.stat(self.path) if fd is None else os.fstat(fd))  # noqa: PTH116

    @contextlib.contextmanager
    def scan(self) -> Iterator[Iterator[os.DirEntry[str]]]:
        """Yield an iterator over its entries."""
        if self._fd is None:
            self._check()
        with os.scandir(self.path if self._fd is None else self._fd) as entries:
            yield entries

    def names(self) -> set[str]:
        """Return the names of its entries."""
        with self.scan() as entries:
            return {entry.name for entry in entries}

    def lstat(self, name: str) -> os.stat_result:
        """Return the status of a name; for a link, that of the link itself."""
        return os.stat(self._name(name), dir_fd=self._fd, follow_symlinks=False)

    def open(self, name: str, flags: int, mode: int = 0o600) -> int:
        """Return a descriptor of a file. A link is refused (LinkError or ELOOP), and opening a pipe does not wait."""
        target = self._name(name)
        if not _NOFOLLOW and not flags & os.O_EXCL:
            with contextlib.suppress(FileNotFoundError):
                if _is_link(os.lstat(target)):
                    raise LinkError(errno.ELOOP, "it is a link", target)
        return os.open(target, flags | _BINARY | _NOFOLLOW | _NONBLOCK, mode, dir_fd=self._fd)

    def unlink(self, name: str) -> None:
        """Remove a file, or a link."""
        retry_while_held_open(lambda: os.unlink(self._name(name), dir_fd=self._fd))

    def rmdir(self, name: str) -> None:
        """Remove an empty folder."""
        os.rmdir(self._name(name), dir_fd=self._fd)

    def link(self, name: str, other: Directory, new: str) -> None:
        """Create a hard link to a file."""
        os.link(
            self._name(name),
            other._name(new),
            src_dir_fd=self._fd,
            dst_dir_fd=other._fd,
            follow_symlinks=False,
        )

    def replace(self, name: str, other: Directory, new: str) -> None:
        """Rename a file, replacing any entry with the new name."""
        retry_while_held_open(
            lambda: os.replace(self._name(name), other._name(new), src_dir_fd=self._fd, dst_dir_fd=other._fd)
        )

    def rename_new(self, name: str, other: Directory, new: str) -> bool | None:
        """Rename a file to a free name; False if the name is taken, None if the system or disk cannot do this in one step."""
        if _RENAME_NEVER_REPLACES:
            try:
                os.rename(self._name(name), other._name(new))  # noqa: PTH104 - on Windows it never overwrites
            except FileExistsError:
                return False
            return True
        error = self._rename(name, other, new, _NEW)
        if error == errno.EEXIST:
            return False
        if error:
            raise OSError(error, os.strerror(error), other._path(new))
        return None if error is None else True

    def exchange(self, name: str, other: Directory, new: str) -> bool:
        """Exchange two files in one step. False if the system or disk cannot."""
        error = self._rename(name, other, new, _SWAP)
        if error:
            raise OSError(error, os.strerror(error), other._path(new))
        return error == 0

    def _rename(self, name: str, other: Directory, new: str, how: tuple[int, int]) -> int | None:
        """Rename with the flags `how`. Returns the error number, 0 for success, None if the system or disk cannot."""
        call = _renamer()
        if call is None or self._fd is None or other._fd is None:
            return None
        if call(self._fd, os.fsencode(name), other._fd, os.fsencode(new), how) == 0:
            return 0
        import ctypes

        error = ctypes.get_errno()
        return None if error in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM) else error

    def sync(self) -> None:
        """Make renames in the folder durable, where the system can."""
        if self._fd is None:
            return
        try:
            flush_to_disk(self._fd)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):  # some shares cannot
                raise

    def close(self) -> None:
        """Close the folder."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)

    def _name(self, name: str) -> str:
        if self._fd is not None:
            return name
        self._check()
        return self._path(name)

    def _check(self) -> None:
        """Raise LinkError if the path no longer leads to the opened folder (only without a descriptor)."""
        status = os.stat(self.path)  # noqa: PTH116
        if (status.st_ino & INODE, status.st_dev) != (self.inode, self.device):
            raise LinkError(errno.ELOOP, "it is another folder now", self.path)

    def _path(self, name: str) -> str:
        return f"{self.path}{os.sep}{name}"


def open_directory(path: str) -> Directory:
    """Open the folder at a path that the user chose; links on that path are followed. Raises OSError."""
    if _BY_DESCRIPTOR:
        fd = os.open(path, os.O_RDONLY | _DIRECTORY)
        return Directory(path, fd, os.fstat(fd))
    status = os.stat(path)  # noqa: PTH116
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    return Directory(path, None, status)


def _is_link(status: os.stat_result) -> bool:
    return stat.S_ISLNK(status.st_mode) or bool(getattr(status, "st_file_attributes", 0) & _REPARSE)


#: Flags of the system's rename call on (Linux, macOS): never overwrite, or exchange two files.
_NEW, _SWAP = (1, 4), (2, 2)


@lru_cache(maxsize=1)
def _renamer() -> Callable[[int, bytes, int, bytes, tuple[int, int]], int] | None:
    """Return the system's rename call with flags, None if it has none."""
    import ctypes

    try:
        library = ctypes.CDLL(None, use_errno=True)
        if hasattr(library, "renameat2"):  # Linux
            return lambda a, b, c, d, how: int(library.renameat2(a, b, c, d, how[0]))
        if hasattr(library, "renameatx_np"):  # macOS
            return lambda a, b, c, d, how: int(library.renameatx_np(a, b, c, d, how[1]))
    except (OSError, AttributeError, TypeError):
        pass
    return None
