"""Read, replace and remove settings files of other programs without overwriting concurrent edits.

A symbolic link is followed and kept; a file with several hard links is refused, since a write would separate them. A
file is replaced atomically, with the same permissions, and only if it is unchanged. If the system can exchange two
files, the old file is checked after the exchange, and restored after a concurrent edit.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from ipfsmem.device.atomic_files import new_name, storage_errors
from ipfsmem.device.directory_handle import Directory, open_directory
from ipfsmem.errors import ChangedError, StorageError
from ipfsmem.file_durability import flush_to_disk

#: Maximum bytes of a settings file; Claude Code keeps its state there, too.
LONGEST: Final = 64 * 1024 * 1024
AGAIN: Final = "Run it again; if this repeats, close the program first."


class ConfigFileState(NamedTuple):
    """A file as it was read: its real path, content (None: missing), permissions and number of hard links."""

    path: Path
    real: Path
    data: bytes | None
    mode: int
    #: Number of hard links.
    names: int = 1


def read(path: Path) -> ConfigFileState:
    """Read a file, which may be a link or missing. Raises StorageError for anything else."""
    real = Path(os.path.realpath(path))
    with storage_errors(path, "read"):
        try:
            fd = os.open(real, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0))
        except FileNotFoundError:
            return ConfigFileState(path, real, None, 0o600)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            raise StorageError(
                f"{path} is a symbolic link that leads back to itself",
                hint="Remove the link, then try again.",
            ) from None
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            os.close(fd)
            raise StorageError(f"{path} is not a file", hint="Move it away: something else is in its place.")
        with os.fdopen(fd, "rb") as file:
            data = file.read(LONGEST + 1)
    if len(data) > LONGEST:
        raise StorageError(
            f"{path} is longer than {LONGEST} bytes",
            hint="Make it shorter, or add the settings by hand (those of a program: ipfsmem connect PROGRAM --print).",
        )
    return ConfigFileState(path, real, data, stat.S_IMODE(status.st_mode), status.st_nlink)


def check_writable(state: ConfigFileState) -> None:
    """Raise StorageError if the file or its folder is read-only, or the file has several hard links."""
    if state.data is not None and (not state.mode & 0o222 or not os.access(state.real, os.W_OK)):
        raise StorageError(
            f"{state.path} is read-only",
            hint="It is probably managed by another program (a dotfile manager): add the settings there (those of a program: ipfsmem connect PROGRAM --print).",
        )
    if state.names > 1:
        raise StorageError(
            f"{state.path} has {state.names} hard links, and a write would change only this one",
            hint="Remove the other links, or add the settings by hand (those of a program: ipfsmem connect PROGRAM --print).",
        )
    folder = state.real.parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise StorageError(f"nothing can be written to the folder {folder}")


class Ready(NamedTuple):
    """A replacement that is already on the disk: the open folder, and the name of the new file; "" for a removal."""

    found: ConfigFileState
    data: bytes | None
    folder: Directory
    new: str


@contextlib.contextmanager
def prepared(state: ConfigFileState, data: bytes | None) -> Iterator[Ready]:
    """Write `data` to a temporary file next to the file, for `put` (None: no file). The block's end deletes an unused
    one."""
    with storage_errors(state.path, "write"):
        state.real.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = open_directory(str(state.real.parent))
    try:
        with storage_errors(state.path, "write"):
            new = "" if data is None else _write_temporary(folder, state, data)
        try:
            yield Ready(state, data, folder, new)
        finally:
            with contextlib.suppress(OSError):
                if data is not None and _has_content(folder, new, data):
                    folder.unlink(new)
    finally:
        folder.close()


def put(ready: Ready) -> None:
    """Replace the file with the prepared one, or remove it. Raises ChangedError if it changed since it was read."""
    with storage_errors(ready.found.path, "write"):
        if ready.data is None:
            _remove(ready.folder, ready.found)
        else:
            _replace(ready.folder, ready.found, ready.new, ready.data)
        ready.folder.sync()


def replace(state: ConfigFileState, data: bytes | None) -> None:
    """Replace the file with `data`, or remove it if None. Raises ChangedError if it changed since it was read."""
    with prepared(state, data) as ready:
        put(ready)


def _replace(folder: Directory, state: ConfigFileState, new: str, data: bytes) -> None:
    name = state.real.name
    try:
        if state.data is None:
            free = folder.rename_new(new, folder, name)
            if free is None:
                folder.link(new, folder, name)  # FileExistsError if the name is taken
                folder.unlink(new)
            elif not free:
                raise _changed(state)
            return
        if not _has_content(folder, name, state.data):
            raise _changed(state)
        if not folder.exchange(new, folder, name):
            folder.replace(new, folder, name)
            return
        if not _has_content(folder, new, state.data):  # written between check and exchange
            folder.exchange(new, folder, name)
            if not _has_content(folder, new, data):  # written again: keep the newer text
                folder.exchange(new, folder, name)
                raise ChangedError(
                    f"{state.path} was written concurrently twice; it has the newer text, and {new} has the one before",
                    hint=AGAIN,
                )
            raise _changed(state)
        folder.unlink(new)
    except (FileExistsError, FileNotFoundError):
        raise _changed(state) from None


def _remove(folder: Directory, state: ConfigFileState) -> None:
    name = state.real.name
    aside = Path(new_name(name)).name
    try:
        folder.replace(name, folder, aside)
    except FileNotFoundError:
        return  # already removed
    if state.data is not None and _has_content(folder, aside, state.data):
        folder.unlink(aside)
        return
    if folder.rename_new(aside, folder, name) is not True:
        raise StorageError(f"{state.path} was written concurrently; its earlier text is in {aside}")
    raise _changed(state)


def _write_temporary(folder: Directory, state: ConfigFileState, data: bytes) -> str:
    """Write a temporary file with the permissions and owner of the file that it will replace. Return its name."""
    name = Path(new_name(state.real.name)).name
    fd = folder.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            if state.data is not None and os.name != "nt":
                with contextlib.suppress(OSError):
                    status = folder.lstat(state.real.name)
                    if (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
                        os.fchown(file.fileno(), status.st_uid, status.st_gid)
                os.fchmod(file.fileno(), state.mode)
            flush_to_disk(file.fileno())
    except BaseException:  # leave no settings in a temporary file
        with contextlib.suppress(OSError):
            folder.unlink(name)
        raise
    return name


def _has_content(folder: Directory, name: str, data: bytes) -> bool:
    with os.fdopen(folder.open(name, os.O_RDONLY), "rb") as file:
        return file.read(len(data) + 1) == data


def _changed(state: ConfigFileState) -> ChangedError:
    return ChangedError(f"{state.path} was written concurrently, and is unchanged", hint=AGAIN)
