"""A folder inside one that others write too: a stick, a share, a folder that some program keeps in step.

Other devices use it at the same moment, and what somebody put there is never trusted. So every file is written beside its
place, flushed and renamed; the folder is used through a descriptor and single names, so that no link, in whatever moment
it appears, leads anything elsewhere; only regular files are read, and a pipe is not waited for. The path of the outer
folder is its user's, links on it are followed. What files mean is not known here; OSErrors come out as they are.
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

from ipfsmem.device.held_folder import Directory, open_directory
from ipfsmem.systems import flush as flush_file

TEMPORARY: Final = ".new-"
#: What stands under a name that is no file: a link, a folder, a pipe, a socket or a device.
_NO_FILE: Final = frozenset((errno.ELOOP, errno.EMLINK, errno.EISDIR, errno.ENXIO, errno.ENODEV))


class Folder:
    """`packs`, `pins` or `names` in a shared folder. Raises OSErrors; a folder that is not there is an empty one to who
    reads. It is opened for each thing that is done in it, and not held: a stick must come out."""

    def __init__(self, parent: Path, name: str, *, private: bool = False) -> None:
        """`name` in `parent`. `private`: nobody but this user may read what is made."""
        self.parent = parent
        self.path = parent / name
        # Less the umask: other people's devices use it on a share.
        self.modes = (0o700, 0o600) if private else (0o777, 0o666)
        self._name = name
        self._thread = threading.local()

    def __str__(self) -> str:
        return str(self.path)

    def beside(self, name: str) -> Folder:
        """Another one in the same shared folder."""
        return Folder(self.parent, name)

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """What this thread does until the end is done in one and the same open folder."""
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
        """It, open. Raises FileNotFoundError, unless it may be made; LinkError when it is a link or no folder."""
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
            made = shared.make(self._name, self.modes[0])
            shared.sync()
            return made
        finally:
            shared.close()

    def is_there(self) -> bool:
        """Whether there is such a folder."""
        try:
            with self.opened():
                return True
        except FileNotFoundError:
            return False

    def make(self) -> None:
        """Make it when it is missing; its name is flushed too."""
        with self.opened(make=True):
            pass

    def names(self) -> list[str]:
        """Names of the regular files in it, links left out."""
        with contextlib.suppress(FileNotFoundError), self.opened() as inside, inside.scan() as entries:
            return [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
        return []

    def sizes(self, wanted: Callable[[str], bool] = bool) -> dict[str, int]:
        """The regular files in it whose names are `wanted`, and their sizes in bytes."""
        found = {}
        with contextlib.suppress(FileNotFoundError), self.opened() as inside, inside.scan() as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    if wanted(entry.name) and entry.is_file(follow_symlinks=False):
                        found[entry.name] = entry.stat(follow_symlinks=False).st_size
        return found

    def lstat(self, name: str) -> os.stat_result:
        """What stands under a name; of a link the link. Raises FileNotFoundError."""
        with self.opened() as inside:
            return inside.lstat(name)

    def file(self, name: str, *, buffered: bool = False) -> BinaryIO:
        """A regular file, to be read. Raises FileNotFoundError when there is none, or something that is no file."""
        with self.opened() as inside:
            try:
                fd = inside.open(name, os.O_RDONLY)
            except OSError as error:
                if error.errno in _NO_FILE or (os.name == "nt" and isinstance(error, PermissionError)):
                    raise FileNotFoundError(errno.ENOENT, "no file", str(self.path / name)) from None
                raise
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise FileNotFoundError(errno.ENOENT, "no file", str(self.path / name))
        return os.fdopen(fd, "rb") if buffered else os.fdopen(fd, "rb", buffering=0)

    def read(self, name: str, limit: int) -> bytes | None:
        """All of a regular file of at most `limit` bytes; None when it is absent, larger, or something else."""
        try:
            file = self.file(name)
        except FileNotFoundError:
            return None
        with file:
            data = bytearray()
            while piece := file.read(limit + 1 - len(data)):
                data += piece
        return bytes(data) if len(data) <= limit else None

    def write(self, name: str, data: bytes, *, flush: bool = True) -> None:
        """Write a small file whole, making this folder when it is missing.

        Durably, unless `flush` is off: a cache need not wait for a slow medium.
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
        """Rename a file, over whatever has the new name."""
        with self.opened() as inside:
            inside.replace(name, inside, new)

    def flush(self) -> None:
        """Make renames in it durable, where the system has a way to."""
        with contextlib.suppress(FileNotFoundError), self.opened() as inside:
            inside.sync()

    def sweep(self, oldest: float) -> None:
        """Remove files in the making that a crash left behind: those last changed before `oldest` (seconds, 1970)."""
        for name in self.names():
            if name.startswith(TEMPORARY):
                self.unlink_old(name, oldest)

    def unlink_old(self, name: str, oldest: float) -> None:
        """Remove a file that was last changed before `oldest`. Never fails."""
        with contextlib.suppress(OSError):
            if self.lstat(name).st_mtime < oldest:
                self.unlink(name)


class NewFile:
    """A file in the making: write, then `place` it under its name, or `drop` it. Nobody sees it before."""

    def __init__(self, folder: Folder) -> None:
        """In `folder`, which is made when it is missing, and stays open: the file appears where it was begun."""
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
        """Flush to the medium and put the file there as `name`, in place of what has that name."""
        if flush:
            flush_file(self._fd)
        self._close()
        if self._folder is not None:
            self._folder.replace(self._name, self._folder, name)
            self._folder.close()
            self._folder = None

    def drop(self) -> None:
        """Forget the file. Never fails: a leftover is cleaned up by a later compaction."""
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
