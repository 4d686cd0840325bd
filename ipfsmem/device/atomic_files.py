"""Read and write files atomically: after a crash, a file has its old or its new content, never a part.

Differences between operating systems are handled in `ipfsmem/files`, `device/lock.py`, `device/directory_handle.py`
and this module only. An OSError is raised as a StorageError that names the file.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from ipfsmem.device.database_file import refuse_open_database
from ipfsmem.errors import StorageError
from ipfsmem.file_durability import flush_to_disk, retry_while_held_open

_BINARY = getattr(os, "O_BINARY", 0)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
#: Opening a pipe must not wait for a writer.
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)
_IN_ITS_PLACE = "Move it away: something else is in its place."


@contextlib.contextmanager
def storage_errors(path: Path | str, doing: str) -> Iterator[None]:
    """Raise an OSError in the block as a StorageError that names the action and the file."""
    try:
        yield
    except OSError as error:
        raise storage_error(path, doing, error) from None


def storage_error(path: Path | str, doing: str, error: OSError) -> StorageError:
    """Return the StorageError that names the action and the file."""
    return StorageError(f"cannot {doing} {path}: {reason(error)}")


def reason(error: OSError) -> str:
    """Return the cause of an OSError as a phrase for users."""
    words = {
        errno.ENOSPC: "the disk is full",
        errno.EROFS: "the disk is read-only",
        errno.EACCES: "permission denied",
        errno.EPERM: "permission denied",
        errno.ELOOP: "it is a symbolic link",
        errno.EDQUOT: "the disk quota is used up",
    }
    return words.get(error.errno or 0, error.strerror or str(error))


def make_directory(path: Path) -> None:
    """Create a directory and its parents for this user only; existing ones keep their permissions."""
    with storage_errors(path, "create"):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)


def new_name(path: Path | str) -> str:
    """Return a random path next to `path` for a temporary file. Random, so that nobody can create a link there first."""
    target = Path(path)
    return str(target.with_name(f".{target.name}.{os.urandom(8).hex()}.tmp"))


def sync_directory(path: Path) -> None:
    """Make renames in a directory durable, if the system supports it."""
    if os.name == "nt":
        return
    fd = os.open(path, os.O_RDONLY)
    try:
        flush_to_disk(fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(fd)


class StagedFile:
    """A temporary file next to `path`, readable by this user only. `put` renames it to `path`, `leave` removes it.
    Raises StorageError."""

    def __init__(self, path: Path, data: bytes, *, durable: bool = True) -> None:
        """Write the temporary file. `durable=False`: without fsync; the file may be empty after a power failure."""
        self._path, self._durable, self._temporary = path, durable, Path(new_name(path))
        with storage_errors(path, "write"):
            fd = os.open(self._temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY | _NOFOLLOW, 0o600)
            try:
                with os.fdopen(fd, "wb") as file:
                    file.write(data)
                    if durable:
                        file.flush()
                        flush_to_disk(file.fileno())
            except BaseException:
                self.leave()
                raise

    def put(self, *, durable: bool = True) -> None:
        """Replace the file `path`. `durable=False`: a power failure may restore the old file. Raises StorageError."""
        with storage_errors(self._path, "write"):
            try:
                retry_while_held_open(lambda: self._temporary.replace(self._path))
            except BaseException:
                self.leave()
                raise
            if self._durable and durable:
                sync_directory(self._path.parent)

    def leave(self) -> None:
        """Remove the temporary file."""
        with contextlib.suppress(OSError):
            self._temporary.unlink()


def write_atomic(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Replace the file `path` with `data`, readable by this user only: temporary file, fsync, rename, fsync of the
    folder.

    `durable` as for `StagedFile`. Raises StorageError.
    """
    StagedFile(path, data, durable=durable).put()


def open_regular(path: Path | str, flags: int, *, within: int | None = None) -> int:
    """Return a descriptor of a regular file; O_CREAT in `flags` creates it with mode 0600. Links are not followed, and a pipe
    does not block.

    `within`: the descriptor of a folder in which `path` is a name. Raises OSError, and StorageError for anything but a regular
    file.
    """
    refuse_open_database(path, within=within)
    fd = os.open(path, flags | _BINARY | _NOFOLLOW | _NO_WAIT, 0o600, dir_fd=within)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise StorageError(f"{path} is not a file", hint=_IN_ITS_PLACE)
    return fd


def read_file(path: Path | str, limit: int, *, within: int | None = None) -> bytes | None:
    """Return the bytes of a regular file, None if absent. Symbolic links are refused.

    `within` as for `open_regular`. Raises StorageError, also if the file is longer than `limit` bytes.
    """
    parts = read_in_two_parts(path, 0, limit, within=within)
    return None if parts is None else parts[1]


def read_in_two_parts(
    path: Path | str, first: int, limit: int, *, within: int | None = None
) -> tuple[bytes, bytes] | None:
    """Read a file as `read_file` does, and return its first `first` bytes and the rest. Splitting a long file later
    would need twice the memory."""
    begin, data = b"", None
    with storage_errors(path, "read"):
        try:
            fd = open_regular(path, os.O_RDONLY, within=within)
        except FileNotFoundError:
            return None
        try:
            size = os.fstat(fd).st_size
            if size <= limit:
                begin = os.read(fd, first) if first else b""
                data = _read_all(fd, max(0, size - first), limit)
        finally:
            os.close(fd)
    if data is None or len(begin) + len(data) > limit:
        raise StorageError(f"{path} is longer than {limit} bytes", hint=_IN_ITS_PLACE)
    return begin, data


def read_in_pieces(path: Path | str, first: int, piece: int, limit: int) -> Iterator[bytes]:
    """Yield the first `first` bytes of a regular file, then the rest in pieces of `piece` bytes; nothing for a
    missing file.

    Allocating memory for a long file at once takes longer than reading it. Raises the errors of `read_file`.
    """
    with storage_errors(path, "read"):
        try:
            fd = open_regular(path, os.O_RDONLY)
        except FileNotFoundError:
            return
        try:
            if os.fstat(fd).st_size > limit:
                raise StorageError(f"{path} is longer than {limit} bytes", hint=_IN_ITS_PLACE)
            yield _read_up_to(fd, first)
            while data := _read_up_to(fd, piece):
                yield data
        finally:
            os.close(fd)


def _read_up_to(fd: int, size: int) -> bytes:
    """Read `size` bytes, fewer at the end of the file."""
    data = os.read(fd, size)
    while len(data) < size and (more := os.read(fd, size - len(data))):
        data += more
    return data


def _read_all(fd: int, size: int, limit: int) -> bytes:
    """Read a file of about `size` bytes; a result longer than `limit` means that the file is too long.

    A single read of `limit` bytes would allocate that much, and a file object makes four times as many system calls.
    """
    data = os.read(fd, size + 1)
    while len(data) <= limit and (more := os.read(fd, max(size, 4096))):
        data += more
    return data
