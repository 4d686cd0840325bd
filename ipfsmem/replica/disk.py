"""Files on this device, written so that a crash leaves the old bytes or the new ones, never a part.

Every OSError leaves here as a StorageError that names the file. Nothing here knows what the bytes mean.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from ipfsmem.errors import StorageError

_BINARY = getattr(os, "O_BINARY", 0)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
#: Opening a pipe must not wait for somebody to write into it.
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)


@contextlib.contextmanager
def storage_errors(path: Path | str, doing: str) -> Iterator[None]:
    """Turn an OSError into a StorageError that says what was being done to which file."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"cannot {doing} {path}: {reason(error)}") from None


def reason(error: OSError) -> str:
    """The cause in the words a person uses."""
    words = {
        errno.ENOSPC: "the disk is full",
        errno.EROFS: "the disk is read-only",
        errno.EACCES: "permission denied",
        errno.EPERM: "permission denied",
        errno.ELOOP: "it is a symbolic link",
        errno.EDQUOT: "the disk quota is used up",
    }
    return words.get(error.errno or 0, error.strerror or str(error))


def make_directory(path: Path, mode: int = 0o700) -> None:
    """Create a directory and its parents; existing ones keep their permissions."""
    with storage_errors(path, "create"):
        path.mkdir(mode=mode, parents=True, exist_ok=True)


def sync_directory(path: Path) -> None:
    """Make renames inside a directory durable (where the system can)."""
    if os.name == "nt":
        return
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(fd)


def write_atomic(path: Path, data: bytes, *, mode: int = 0o600, durable: bool = True) -> None:
    """Replace `path` by `data`: a temporary file beside it, fsync, rename, fsync of the directory."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with storage_errors(path, "write"):
        try:
            fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _BINARY | _NOFOLLOW, mode)
            with os.fdopen(fd, "wb") as file:
                file.write(data)
                if durable:
                    file.flush()
                    os.fsync(file.fileno())
            temporary.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        if durable:
            sync_directory(path.parent)


def read_file(path: Path | str, limit: int) -> bytes | None:
    """The bytes of a regular file, None when there is none. Symbolic links are refused.

    Raises StorageError, also when the file is longer than `limit` bytes.
    """
    data = None
    with storage_errors(path, "read"):
        try:
            fd = os.open(path, os.O_RDONLY | _BINARY | _NOFOLLOW | _NO_WAIT)
        except FileNotFoundError:
            return None
        # Asking for `limit` bytes would make room for as many, which costs more than all the rest.
        with os.fdopen(fd, "rb", buffering=0) as file:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                raise StorageError(f"{path} is not a file")
            if found.st_size <= limit:
                data = file.readall()
    if data is None or len(data) > limit:
        raise StorageError(f"{path} is longer than {limit} bytes", hint="It was left as it is.")
    return data
