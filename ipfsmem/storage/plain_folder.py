"""A folder of plain files that other programs write too: looking, reading, and putting files there without overwriting
a byte that was not seen.

What stood in a file before is never thrown away by a replacement: it goes to `.ipfsmem/aside/`, in one step with the
new text where the system can exchange two names. So a write that came in the very moment before, or that comes later
through a handle which was open, is still found. Links are never followed. What the files mean is not known here.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

import msgspec

from ipfsmem.errors import StorageError
from ipfsmem.replica.disk import make_directory, reason, storage_errors, sync_directory, write_atomic

HIDDEN = ".ipfsmem"
TIMELINE = "timeline"
_MARKER = "replica"
#: Nanoseconds within which a file can change again without its times telling (2 s on FAT).
RACY = 2_000_000_000
#: Files above which one flush of the whole system is cheaper than one for each.
_MANY = 16
_BINARY = getattr(os, "O_BINARY", 0)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)


class Stat(msgspec.Struct, frozen=True, gc=False):
    """What tells that a file has not changed, without reading it. `mtime` is -1 when the times cannot be trusted."""

    mtime: int
    ctime: int
    size: int
    inode: int


#: Equal to no file's: it will be read at the next look.
UNSURE = Stat(-1, -1, -1, -1)


class NotPlainError(Exception):
    """A file that is left alone; the message says why."""


class PlainFolder:
    """One such folder. File names are relative: `tone.md`, `timeline/2026-04-14.jsonl`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.aside = path / HIDDEN / "aside"
        # As text: joining Paths is most of the work on ten thousand files.
        self._root = f"{path}{os.sep}"
        self._beside = f"{self.aside}{os.sep}"
        self._count = 0
        #: Subfolders with texts, found at the last look: they are not looked into.
        self.unread: list[str] = []
        #: Whether a link stands in the place of `timeline/`: it is not followed.
        self.linked = False

    # -- the marker --------------------------------------------------------------------------------------------

    def exists(self) -> bool:
        """Whether there is a folder."""
        return self.path.is_dir()

    def marker(self) -> str | None:
        """Whose working copy this is."""
        try:
            return self._read(self.path / HIDDEN / _MARKER, 64)[0].decode("ascii", "replace").strip()
        except (NotPlainError, OSError):
            return None

    def put_marker(self, mark: str) -> None:
        """Make the folder where it is missing, and say whose it is. Raises StorageError."""
        make_directory(self.path)
        make_directory(self.aside)
        write_atomic(self.path / HIDDEN / _MARKER, mark.encode() + b"\n")

    # -- looking -----------------------------------------------------------------------------------------------

    def look(self) -> dict[str, Stat | None]:
        """Every file that could be ours by its name, with its stat; None for what is no regular file.

        Raises StorageError.
        """
        found: dict[str, Stat | None] = {}
        folders: list[str] = []
        self.linked = False
        with storage_errors(self.path, "read"):
            timeline = False
            with os.scandir(self.path) as entries:
                for entry in entries:
                    name = entry.name
                    if name[0] == ".":
                        continue
                    if name[-3:].lower() == ".md":
                        self._note(found, name, entry)
                    elif name == TIMELINE and entry.is_symlink():
                        self.linked = True
                    elif entry.is_dir(follow_symlinks=False):
                        timeline = timeline or name == TIMELINE
                        folders.append(name)
            if timeline:
                with os.scandir(self.path / TIMELINE) as entries:
                    for entry in entries:
                        if entry.name.endswith(".jsonl") and entry.name[0] != ".":
                            self._note(found, f"{TIMELINE}/{entry.name}", entry)
        self.unread = [name for name in sorted(folders) if name != TIMELINE and self._has_texts(name)]
        return found

    def _has_texts(self, folder: str) -> bool:
        try:
            with os.scandir(self.path / folder) as entries:
                return any(entry.name[-3:].lower() == ".md" for entry in entries)
        except OSError:
            return False

    @staticmethod
    def _note(found: dict[str, Stat | None], name: str, entry: os.DirEntry[str]) -> None:
        try:
            known = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return  # gone while looking
        found[name] = _stat(known) if stat.S_ISREG(known.st_mode) else None

    def _at(self, file: str) -> str:
        """The path of a file. Raises NotPlainError when it would lead through a link."""
        if file.startswith(TIMELINE + "/") and (self.path / TIMELINE).is_symlink():
            raise NotPlainError(f"{TIMELINE} is a link")
        return self._root + file

    def stat(self, file: str) -> Stat | None:
        """The stat of one file; None when there is no regular file of that name."""
        try:
            known = os.lstat(self._root + file)
        except OSError:
            return None
        return _stat(known) if stat.S_ISREG(known.st_mode) else None

    def read(self, file: str, limit: int) -> tuple[bytes, Stat] | None:
        """The bytes of a file and a stat that belongs to them; None when there is none.

        Raises NotPlainError for what is left alone: a link, no regular file, longer than `limit`, unreadable.
        """
        try:
            return self._read(self._at(file), limit)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise NotPlainError(reason(error)) from None

    def names(self) -> set[str]:
        """What stands in the folder itself, of any kind, at this moment."""
        with storage_errors(self.path, "read"), os.scandir(self.path) as entries:
            return {entry.name for entry in entries}

    def _read(self, path: Path | str, limit: int) -> tuple[bytes, Stat]:
        # Without O_NONBLOCK a pipe under this name would hold us for ever.
        fd = os.open(path, os.O_RDONLY | _BINARY | _NOFOLLOW | _NONBLOCK)
        try:
            before = os.fstat(fd)
            if not stat.S_ISREG(before.st_mode):
                raise NotPlainError("it is not a regular file")
            data = _read_up_to(fd, limit + 1, before.st_size)
            after = os.fstat(fd)
        finally:
            os.close(fd)
        if len(data) > limit:
            raise NotPlainError(f"it is longer than {limit} bytes")
        known = _stat(after)
        changing = _stat(before) != known or len(data) != after.st_size
        return data, UNSURE if changing else trusted(known)

    # -- putting -----------------------------------------------------------------------------------------------

    def stage(self, file: str, data: bytes, *, durable: bool = True) -> Path:
        """Write `data` beside, ready to be put in place. Raises StorageError."""
        path = self._new_name(file)
        with storage_errors(self._root + file, "write"):
            mode = 0o600
            with contextlib.suppress(OSError):
                mode = stat.S_IMODE(os.lstat(self._root + file).st_mode) & 0o777
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o600)
            try:
                if mode != 0o600 and hasattr(os, "fchmod"):
                    os.fchmod(fd, mode)
                _write_all(fd, data)
                if durable:
                    os.fsync(fd)
            finally:
                os.close(fd)
        return Path(path)

    def _new_name(self, file: str) -> str:
        self._count += 1
        return f"{self._beside}{os.getpid()}-{time.time_ns():x}-{self._count}.{name_tag(file)}"

    def create(self, staged: Path, file: str) -> bool:
        """Put a staged file where none stands. False, and nothing done, when one does."""
        path = self._at(file)
        with storage_errors(path, "write"):
            if file.startswith(TIMELINE + "/"):
                make_directory(self.path / TIMELINE)
            placed = _rename_new(staged, path)
            if placed is not None:
                return placed
            try:
                os.link(staged, path)
            except FileExistsError:
                return False
            except OSError as error:
                if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS):
                    raise
                if os.path.lexists(path):
                    return False
                staged.replace(path)
                return True
            staged.unlink()
        return True

    def replace(self, staged: Path, file: str) -> Path | None:
        """Put a staged file in the place of one that stands there. Returns where that one is now, None when there was
        none (and nothing was done)."""
        path = Path(self._at(file))
        with storage_errors(path, "write"):
            try:
                if _exchange(staged, path):
                    return staged
                old = staged.with_name("old-" + staged.name)
                try:
                    os.link(path, old, follow_symlinks=False)
                except FileNotFoundError:
                    raise
                except (OSError, NotImplementedError):
                    pass  # a disk without hard links: the comparison just before has to do
                staged.replace(path)
            except FileNotFoundError:
                return None
            return old if old.exists() else None

    def take_away(self, file: str) -> Path | None:
        """Take a file out of the folder; returns where it is now."""
        aside = Path(self._new_name(file))
        with storage_errors(self.path / file, "remove"):
            try:
                Path(self._at(file)).rename(aside)
            except FileNotFoundError:
                return None
        return aside

    def append(self, file: str, data: bytes) -> None:
        """Append to a file in one write, so that lines of two writers never mix. Raises StorageError."""
        with storage_errors(self.path / file, "write"):
            fd = os.open(self._at(file), os.O_WRONLY | os.O_APPEND | _BINARY | _NOFOLLOW)
            try:
                _write_all(fd, data)
                os.fsync(fd)
            finally:
                os.close(fd)

    def settle(self) -> None:
        """Make renames durable."""
        with storage_errors(self.path, "write"):
            sync_directory(self.path)
            if (self.path / TIMELINE).is_dir() and not (self.path / TIMELINE).is_symlink():
                sync_directory(self.path / TIMELINE)

    # -- what was replaced -------------------------------------------------------------------------------------

    def asides(self) -> Iterator[str]:
        """Names of all files that were set aside."""
        with contextlib.suppress(FileNotFoundError), os.scandir(self.aside) as entries:
            for entry in entries:
                yield entry.name

    def read_aside(self, name: str, limit: int) -> tuple[bytes, Stat] | None:
        """The bytes of a file set aside; None when it is gone or no file of ours to read."""
        try:
            return self._read(self._beside + name, limit)
        except (OSError, NotPlainError):
            return None

    def aside_mtime(self, name: str) -> int:
        """When a file set aside was last written to, in nanoseconds; -1 when it is gone."""
        try:
            return (self.aside / name).lstat().st_mtime_ns
        except OSError:
            return -1

    def drop_aside(self, name: str) -> None:
        """Let go of a file that was set aside."""
        with contextlib.suppress(OSError):
            (self.aside / name).unlink()


def _read_up_to(fd: int, most: int, expected: int) -> bytes:
    """At most `most` bytes, which are probably `expected`: room for more is not made before it is needed."""
    data = os.read(fd, min(most, expected + 1))
    if len(data) == expected:
        return data  # one byte more was asked for, so this is the end
    parts, size = [data], len(data)
    while data and size < most:
        data = os.read(fd, min(most - size, 1 << 20))
        parts.append(data)
        size += len(data)
    return b"".join(parts)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def flush_all(many: int) -> bool:
    """Flush everything at once when that is cheaper; True when it was done and files need no flush of their own."""
    return many > _MANY and hasattr(os, "sync")


def sync_all() -> None:
    """Wait until all that was written is on the disk."""
    if hasattr(os, "sync"):
        os.sync()


def name_tag(file: str) -> str:
    """What names a file in the name of its staged and replaced copies."""
    return sha256(file.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def trusted(known: Stat) -> Stat:
    """The stat, or UNSURE when the file is so young that it could change again without showing it."""
    newest = max(known.mtime, known.ctime)
    return known if newest < time.time_ns() - RACY else UNSURE


def _stat(known: os.stat_result) -> Stat:
    return Stat(known.st_mtime_ns, known.st_ctime_ns, known.st_size, known.st_ino)


#: What the system's call for two names is asked to do: never to overwrite, or to exchange them. Linux, macOS.
_NEW, _SWAP = (1, 4), (2, 2)


@lru_cache(maxsize=1)
def _exchanger() -> Callable[[bytes, bytes, tuple[int, int]], int] | None:
    """The system's call that renames in ways that POSIX does not have, in one step."""
    try:
        library = ctypes.CDLL(None, use_errno=True)
        if hasattr(library, "renameat2"):  # Linux
            return lambda a, b, how: int(library.renameat2(-100, a, -100, b, how[0]))
        if hasattr(library, "renamex_np"):  # macOS
            return lambda a, b, how: int(library.renamex_np(a, b, how[1]))
    except (OSError, AttributeError, TypeError):
        pass
    return None


def _rename(one: Path, other: Path | str, how: tuple[int, int]) -> int | None:
    """The error number of such a rename, 0 when it was done, None where the system or the disk cannot."""
    call = _exchanger()
    if call is None:
        return None
    if call(os.fsencode(one), os.fsencode(other), how) == 0:
        return 0
    error = ctypes.get_errno()
    return None if error in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM) else error


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two names. False where the system or the disk cannot."""
    error = _rename(one, other, _SWAP)
    if error:
        raise OSError(error, os.strerror(error), str(other))
    return error == 0


def _rename_new(one: Path, other: str) -> bool | None:
    """Rename where nothing stands; False when something does. None where the system or the disk cannot."""
    error = _rename(one, other, _NEW)
    if error == errno.EEXIST:
        return False
    if error:
        raise OSError(error, os.strerror(error), other)
    return None if error is None else True


__all__ = [
    "HIDDEN",
    "TIMELINE",
    "UNSURE",
    "NotPlainError",
    "PlainFolder",
    "Stat",
    "StorageError",
    "flush_all",
    "name_tag",
    "sync_all",
    "trusted",
]
