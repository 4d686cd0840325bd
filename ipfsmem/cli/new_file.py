"""The file that a command writes: a whole new one, or none; an existing one is replaced only if that was asked for."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from ipfsmem.cli.app import output_closed_error, output_is_closed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

_HINT: Final = "Name a new file, or replace it with --overwrite."


def is_stdout(path: str) -> bool:
    """Tell whether a path is standard output, by any name (`-`, `/dev/stdout`)."""
    import os

    if path == "-":
        return True
    with contextlib.suppress(OSError):
        return os.path.samestat(os.stat(path), os.fstat(1))  # noqa: PTH116
    return False


@contextlib.contextmanager
def new_file(path: str, *, mode: int, overwrite: bool) -> Iterator[BinaryIO]:
    """Yield the file to write; -: standard output. An unfinished file is removed; an existing one is replaced at the end, when
    the new one is on the disk. A link is followed, also one to a file that does not exist. A device or a pipe is written to
    directly: a file in its place would take it away from every other program. `mode`: of the new file, less the system's mask.
    `overwrite` False: a file that is not empty, also one that another program made meanwhile, is not replaced (UsageError)."""
    import os
    import sys
    from pathlib import Path

    from ipfsmem.device.atomic_files import new_name, sync_directory
    from ipfsmem.errors import StorageError, UsageError
    from ipfsmem.file_durability import flush_to_disk, retry_while_held_open

    if is_stdout(path):
        if output_is_closed():
            raise output_closed_error("this")
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    is_direct = _is_no_file(path)
    if not is_direct and Path(path).is_symlink():
        path = os.path.realpath(path)
    unfinished = new_name(path)
    try:
        if is_direct:
            with open(path, "wb") as out:  # noqa: PTH123
                yield out
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        with open(os.open(unfinished, flags, mode), "wb") as out:  # noqa: PTH123
            yield out
            out.flush()
            flush_to_disk(out.fileno())
        if overwrite or not _put_new(unfinished, path):
            retry_while_held_open(lambda: os.replace(unfinished, path))  # noqa: PTH105
        else:  # the other name of this file goes before its folder is flushed: it may hold plain texts
            retry_while_held_open(lambda: os.unlink(unfinished))  # noqa: PTH108
        sync_directory(Path(path).parent)
    except IsADirectoryError:
        raise UsageError(f"{path} is a folder: name a file in it") from None
    except FileNotFoundError:
        raise StorageError(
            f"cannot write {path}: its folder does not exist",
            hint="Create the folder, or name a file in another one.",
        ) from None
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        with contextlib.suppress(OSError):
            os.unlink(unfinished)  # noqa: PTH108


def refuse_existing(path: str) -> None:
    """Raise UsageError for a file that is not empty, before any work: it may be the only copy of its content."""
    import stat

    from ipfsmem.cli.printing import clean
    from ipfsmem.config import expanded
    from ipfsmem.errors import UsageError

    if path == "-":
        return
    try:
        status = expanded(path).stat()
    except OSError:
        return  # the write reports any error
    if stat.S_ISREG(status.st_mode) and status.st_size and not is_stdout(path):
        raise UsageError(f"{clean(path)} exists already", hint=_HINT)


def _put_new(unfinished: str, path: str) -> bool:
    """Give a file a second name in one step; False if an empty file has it, or the disk has no second names. Raises UsageError
    for a file that is not empty, OSError."""
    import os
    import stat

    from ipfsmem.errors import UsageError

    try:
        os.link(unfinished, path)
        return True
    except OSError:
        try:
            status = os.lstat(path)
            if os.path.samestat(status, os.lstat(unfinished)):
                return True  # a network disk repeated the request, and refused the second one
            is_taken = not stat.S_ISDIR(status.st_mode) and (
                not stat.S_ISREG(status.st_mode) or status.st_size > 0
            )
        except FileNotFoundError:
            is_taken = False
    if is_taken:
        raise UsageError(f"{path} exists already", hint=_HINT) from None
    return False


def _is_no_file(path: str) -> bool:
    """Tell whether a path leads to something that is neither a file nor a folder."""
    import os
    import stat

    try:
        mode = os.stat(path).st_mode  # noqa: PTH116
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)
