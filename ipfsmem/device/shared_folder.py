"""Read and write files in a folder that other devices and programs write too: on a stick or share, or a synced
folder.

Its content is not trusted. Each file is written under a temporary name, flushed and renamed; the folder is used
through a descriptor and single names, so that a link that appears at any moment leads nowhere else; only regular
files are read, and a pipe does not block. The user chose the path of the outer folder, so links on that path are
followed. OSErrors pass through unchanged.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

from ipfsmem.device.directory_handle import Directory, open_directory
from ipfsmem.file_durability import flush_to_disk as flush_file

TEMPORARY: Final = ".new-"
#: Errors of opening anything but a regular file: a link, a folder, a pipe, a socket or a device.
_NOT_REGULAR_ERRORS: Final = frozenset((errno.ELOOP, errno.EMLINK, errno.EISDIR, errno.ENXIO, errno.ENODEV))


class SharedFolder:
    """A folder inside a shared folder, such as `packs`. Raises OSErrors; for reads, a missing folder is an empty one.

    It is opened for each operation and not held open in between, so that a stick can be unmounted.
    """

    def __init__(self, parent: Path, name: str, *, private: bool = False) -> None:
        """Use the folder `name` in `parent`. `private`: files created in it are readable by this user only."""
        self.parent = parent
        self.path = parent / name
        # Before the umask: on a share, devices of other people use it.
        self.modes = (0o700, 0o600) if private else (0o777, 0o666)
        self._name = name
        self._thread = threading.local()

    def __str__(self) -> str:
        return str(self.path)

    def beside(self, name: str) -> SharedFolder:
        """Return another folder in the same shared folder."""
        return SharedFolder(self.parent, name)

    @contextlib.contextmanager
    def held_open(self) -> Iterator[None]:
        """Have all operations of this thread use one open folder while the block runs."""
        if getattr(self._thread, "keeps", False):
            yield
            return
        self._thread.keeps = True
        try:
            yield
        finally:
            opened, self._thread.opened = getattr(self._thread, "opened", None), None
            self._thread.keeps = False
            if opened is not None:
                opened.close()

    @contextlib.contextmanager
    def opened(self, *, make: bool = False) -> Iterator[Directory]:
        """Open the folder; `make`: create it if it is missing. Raises FileNotFoundError, and LinkError for anything but a folder."""
        inside: Directory | None = getattr(self._thread, "opened", None)
        if inside is not None:
            yield inside
            return
        inside = self._open(make)
        if getattr(self._thread, "keeps", False):
            self._thread.opened = inside
            yield inside
            return
        try:
            yield inside
        finally:
            inside.close()

    def _open(self, make: bool) -> Directory:
        shared = open_directory(str(self.parent))
        try:
            try:
                return shared.sub(self._name)
            except FileNotFoundError:
                if not make:
                    raise
            directory = shared.make(self._name, self.modes[0])
            shared.sync()
            return directory
        finally:
            shared.close()

    def is_there(self) -> bool:
        """Return whether the folder exists."""
        try:
            with self.opened():
                return True
        except FileNotFoundError:
            return False

    def make(self) -> None:
        """Create the folder, durably, if it is missing."""
        with self.opened(make=True):
            pass

    def names(self) -> list[str]:
        """Return the names of its regular files; links are omitted."""
        with contextlib.suppress(FileNotFoundError), self.opened() as inside, inside.scan() as entries:
            return [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
        return []

    def sizes(self, is_wanted: Callable[[str], bool] = bool) -> dict[str, int]:
        """Return its regular files whose names pass `is_wanted`, with their sizes in bytes."""
        sizes_of = {}
        with contextlib.suppress(FileNotFoundError), self.opened() as inside, inside.scan() as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    if is_wanted(entry.name) and entry.is_file(follow_symlinks=False):
                        sizes_of[entry.name] = entry.stat(follow_symlinks=False).st_size
        return sizes_of

    def lstat(self, name: str) -> os.stat_result:
        """Return the status of a name, of a link that of the link itself. Raises FileNotFoundError."""
        with self.opened() as inside:
            return inside.lstat(name)

    def open_file(self, name: str, *, buffered: bool = False) -> BinaryIO:
        """Open a regular file for reading. FileNotFoundError if it is missing, or anything else has its name."""
        with self.opened() as inside:
            try:
                fd = inside.open(name, os.O_RDONLY)
            except OSError as error:
                if error.errno in _NOT_REGULAR_ERRORS or (
                    os.name == "nt" and isinstance(error, PermissionError)
                ):
                    raise FileNotFoundError(errno.ENOENT, "no file", str(self.path / name)) from None
                raise
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise FileNotFoundError(errno.ENOENT, "no file", str(self.path / name))
        return os.fdopen(fd, "rb") if buffered else os.fdopen(fd, "rb", buffering=0)

    def read(self, name: str, limit: int) -> bytes | None:
        """Read a whole regular file; None if it is missing, longer than `limit` bytes, or not a regular file."""
        try:
            file = self.open_file(name)
        except FileNotFoundError:
            return None
        with file:
            data = bytearray()
            while piece := file.read(limit + 1 - len(data)):
                data += piece
        return bytes(data) if len(data) <= limit else None

    def write(self, name: str, data: bytes, *, flush: bool = True) -> None:
        """Write a whole small file, replacing one of that name; the folder is created if it is missing.

        It is durable on return, unless `flush` is off: a cache need not wait for a slow medium.
        """
        file = NewFile(self)
        try:
            file.write(data)
            file.place(name, flush=flush)
        except BaseException:
            file.drop()
            raise
        if flush:
            self.flush()

    def unlink(self, name: str) -> None:
        """Remove a file, or a link. Raises FileNotFoundError."""
        with self.opened() as inside:
            inside.unlink(name)

    def replace(self, name: str, new: str) -> None:
        """Rename a file, replacing any entry with the new name."""
        with self.opened() as inside:
            inside.replace(name, inside, new)

    def set_aside(self, name: str) -> None:
        """Rename a folder or link at the path of a file, see `_set_aside`; an empty folder is removed."""
        with self.opened() as inside:
            _set_aside(inside, name)

    def flush(self) -> None:
        """Make renames in the folder durable, where the system can."""
        with contextlib.suppress(FileNotFoundError), self.opened() as inside:
            inside.sync()

    def restore(self, hidden: str, name: str) -> None:
        """Give a hidden file its name again. Raises FileExistsError if that is taken, FileNotFoundError."""
        with self.opened() as inside:
            placed = inside.rename_new(hidden, inside, name)
            if placed is None and (placed := name not in inside.names()):  # this disk has no such rename
                inside.replace(hidden, inside, name)
        if not placed:
            raise FileExistsError(errno.EEXIST, "the name is taken", str(self.path / name))


class NewFile:
    """A file under a temporary name: `write` its bytes, then `place` it under its own name, or `drop` it."""

    def __init__(self, folder: SharedFolder) -> None:
        """Create it in `folder`, which is created if it is missing and stays open, so that the file is placed where it was begun."""
        with folder.opened(make=True) as inside:
            self._folder: Directory | None = inside.again()
        self._name = f"{TEMPORARY}{os.getpid()}-{secrets.token_hex(8)}"
        try:
            self._fd = self._folder.open(self._name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, folder.modes[1])
        except BaseException:
            self._folder.close()
            raise

    def write(self, data: bytes | bytearray) -> None:
        """Append all of `data`."""
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._fd, rest) :]

    def place(self, name: str, *, flush: bool = True) -> None:
        """Flush the file and rename it to `name`, replacing any entry with that name; a folder that is not empty is
        kept next to the file, see `_set_aside`."""
        if flush:
            flush_file(self._fd)
        self._close()
        if self._folder is not None:
            try:
                self._folder.replace(self._name, self._folder, name)
            except OSError:
                if not _is_folder(self._folder, name):
                    raise
                _set_aside(self._folder, name)
                self._folder.replace(self._name, self._folder, name)
            self._folder.close()
            self._folder = None

    def drop(self) -> None:
        """Discard the file. Never fails: `sweep` removes leftovers later."""
        with contextlib.suppress(OSError):
            self._close()
        folder, self._folder = self._folder, None
        if folder is not None:
            with contextlib.suppress(OSError):
                folder.unlink(self._name)
            with contextlib.suppress(OSError):
                folder.close()

    def _close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


def _is_folder(inside: Directory, name: str) -> bool:
    try:
        return stat.S_ISDIR(inside.lstat(name).st_mode)
    except OSError:
        return False


def _set_aside(inside: Directory, name: str) -> None:
    """Rename `a.b` to `a-b.aside-` and eight hex digits, which no reader mistakes for a file of the old name."""
    if stat.S_ISREG(inside.lstat(name).st_mode):
        return  # another device or a sync program wrote the file meanwhile
    try:
        inside.rmdir(name)
    except OSError:
        inside.replace(name, inside, f"{name.replace('.', '-')}.aside-{secrets.token_hex(4)}")
