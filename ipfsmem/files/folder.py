"""List, read and replace files in a folder that other programs write too, without losing an unread change.

A replaced file is never deleted: it moves to `.ipfsmem/aside/`, in one step with the new text where the system can
exchange two names. So a write at the same moment, or later through an open handle, is found. Links are not followed,
files in `.ipfsmem` are not trusted, and a file there is changed only if this device chose its name. `scan` and
`render` interpret the files.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
import unicodedata
from collections.abc import Iterable, Iterator
from hashlib import blake2b, sha256
from pathlib import Path

import msgspec

from ipfsmem.canonical import read_json
from ipfsmem.device.atomic_files import make_directory, new_name, reason, storage_errors
from ipfsmem.device.directory_handle import INODE, Directory, LinkError, open_directory
from ipfsmem.device.tables.tracked_files import Stat
from ipfsmem.errors import StorageError
from ipfsmem.file_durability import flush_to_disk

HIDDEN = ".ipfsmem"
TIMELINE = "timeline"
_MARKER = "marker"
ASIDE = "aside"
_IGNORE = ".gitignore"
#: Prefix of a staged file, which no other program has written into.
_STAGED = "new-"
#: Nanoseconds within which a file can change again with the same times (2 s on FAT).
RACY = 2_000_000_000
#: Two checks this far apart must miss a file before it counts as deleted; ms.
MISSING_FOR = 60_000
#: Number of files above which one flush of the whole system is cheaper than one for each.
_MANY = 16
_MAX_MARKER = 256


class NotPlainError(Exception):
    """A file that is not read or written; the message is the reason."""


class Contents(msgspec.Struct, frozen=True):
    """The bytes of a file. `stat`: that of the file with these bytes; None if it may change again undetectably."""

    data: bytes
    stat: Stat | None

    @property
    def sha(self) -> bytes:
        """Their SHA-256."""
        return sha256(self.data).digest()


class FolderListing(msgspec.Struct, frozen=True):
    """The content of a folder at one moment, by names that a memory or a day of the timeline may have."""

    files: dict[str, Stat]
    #: Names of anything but regular files.
    irregular: set[str]
    #: Subfolders with texts: they are not read.
    unread: list[str]
    #: Whether `timeline/` is a link: it is not followed.
    linked: bool

    def leave_out(self, file: str) -> bool:
        """Remove a name; returns whether it was there."""
        was_listed = file in self.irregular or self.files.pop(file, None) is not None
        self.irregular.discard(file)
        return was_listed

    def __contains__(self, file: str) -> bool:
        return file in self.files or file in self.irregular


class _Marker(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    v: int


class PlainFolder:
    """One such folder. File names are relative: `tone.md`, `timeline/2026-04-14.jsonl`.

    It is opened at its first use and stays open until `close`: all operations until then happen in that folder.
    """

    def __init__(self, path: Path, secret: bytes = b"") -> None:
        """`secret`: the key of names of files set aside that only this device can make."""
        self.path = path
        self._secret = secret
        self._open: dict[str, Directory] = {}
        self._count = 0
        self._keeps: bool | None = None

    # -- the folder itself -------------------------------------------------------------------------------------

    @property
    def root(self) -> Directory:
        """The folder. Raises StorageError."""
        return self._held("")

    def _held(self, name: str, make: bool = False) -> Directory:
        """Return the folder, or one of its two used subfolders, open. Raises OSError for those."""
        directory = self._open.get(name)
        if directory is None:
            if name == "":
                with storage_errors(self.path, "open"):
                    directory = open_directory(str(self.path))
            elif name == ASIDE:
                hidden = self._held(HIDDEN, make)
                directory = hidden.make(name) if make else hidden.sub(name)
            else:
                directory = self.root.make(name) if make else self.root.sub(name)
            self._open[name] = directory
        return directory

    def close(self) -> None:
        """Close the folder; the next use opens it again."""
        open_directories, self._open = self._open, {}
        for directory in open_directories.values():
            directory.close()

    def exists(self) -> bool:
        """Return whether there is a folder. Raises StorageError if that cannot be determined: a dead mount, or no permission."""
        with storage_errors(self.path, "look into"):
            return self.path.is_dir()

    def make(self) -> None:
        """Create the folder. Raises StorageError."""
        make_directory(self.path)

    # -- the marker --------------------------------------------------------------------------------------------

    def marker(self) -> str | None:
        """Return the id in the folder's marker; "" for an unreadable one. Raises StorageError for links."""
        with storage_errors(self.path / HIDDEN, "use"):
            try:
                data = self._read(self._held(HIDDEN), _MARKER, _MAX_MARKER).data
            except FileNotFoundError:
                return None
            except NotPlainError:
                return ""
        try:
            content = read_json(data, type=_Marker)
        except msgspec.DecodeError:
            return ""
        return content.id if content.v == 1 else ""

    def put_marker(self, mark: str) -> None:
        """Write the marker; git ignores `.ipfsmem`. Raises StorageError."""
        with storage_errors(self.path / HIDDEN, "write"):
            hidden = self._held(HIDDEN, make=True)
            self._held(ASIDE, make=True)
            for name, data in ((_IGNORE, b"*\n"), (_MARKER, msgspec.json.encode(_Marker(mark, 1)) + b"\n")):
                temporary = Path(new_name(name)).name
                fd = hidden.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
                try:
                    try:
                        _write_all(fd, data)
                        flush_to_disk(fd)
                    finally:
                        os.close(fd)
                    hidden.replace(temporary, hidden, name)
                except BaseException:  # a full disk, most likely: leave no partial file on it
                    with contextlib.suppress(OSError):
                        hidden.unlink(temporary)
                    raise
            hidden.sync()
            self.root.sync()

    def drop_marker(self) -> None:
        """Remove the marker, and `.ipfsmem` if nothing else is in it."""
        with contextlib.suppress(OSError):
            hidden = self._held(HIDDEN)
            with contextlib.suppress(OSError):
                hidden.rmdir(ASIDE)
            hidden.unlink(_MARKER)
            if hidden.names() == {_IGNORE}:
                hidden.unlink(_IGNORE)
                self.root.rmdir(HIDDEN)
        self.close()

    # -- looking -----------------------------------------------------------------------------------------------

    def list_files(self) -> FolderListing:
        """List every file that could be ours, by name. Raises StorageError."""
        listing = FolderListing({}, set(), [], False)
        folders: list[str] = []
        linked = False
        with storage_errors(self.path, "read"):
            with self.root.scan() as entries:
                for entry in entries:
                    name = entry.name
                    if name[0] == "." or name[:2] == "~$":
                        continue
                    if name[-3:].lower() == ".md":
                        self._note(listing, name, entry)
                    elif name == TIMELINE and entry.is_symlink():
                        linked = True
                    elif entry.is_dir(follow_symlinks=False):
                        folders.append(name)
            if TIMELINE in folders:
                folders.remove(TIMELINE)
                with self._held(TIMELINE).scan() as entries:
                    for entry in entries:
                        if entry.name.endswith(".jsonl") and entry.name[0] != ".":
                            self._note(listing, f"{TIMELINE}/{entry.name}", entry)
            unread = [name for name in sorted(folders) if self._has_texts(name)]
        return msgspec.structs.replace(listing, unread=unread, linked=linked)

    def _has_texts(self, folder: str) -> bool:
        try:
            inside = self.root.sub(folder)
            try:
                with inside.scan() as entries:
                    return any(entry.name[-3:].lower() == ".md" for entry in entries)
            finally:
                inside.close()
        except OSError:
            return False

    @staticmethod
    def _note(listing: FolderListing, name: str, entry: os.DirEntry[str]) -> None:
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return  # removed during the listing
        if stat.S_ISREG(status.st_mode):
            listing.files[name] = _stat(status)
        else:
            listing.irregular.add(name)

    def _at(self, file: str, make: bool = False) -> tuple[Directory, str]:
        """Return where a file is. Raises NotPlainError if a folder on the way is a link, FileNotFoundError if it is missing."""
        if not file.startswith(TIMELINE + "/"):
            return self.root, file
        try:
            return self._held(TIMELINE, make), file[len(TIMELINE) + 1 :]
        except LinkError:
            raise NotPlainError(f"{TIMELINE} is a link") from None

    def stat(self, file: str) -> Stat | None:
        """Return the stat of one file; None if there is no regular file of that name."""
        try:
            directory, name = self._at(file)
            status = directory.lstat(name)
        except (OSError, NotPlainError):
            return None
        return _stat(status) if stat.S_ISREG(status.st_mode) else None

    def read(self, file: str, limit: int) -> Contents | None:
        """Return the content of a file; None if it is missing.

        Raises NotPlainError for a file that must not be used: a link, not a regular file, longer than `limit`,
        unreadable.
        """
        try:
            return self._read(*self._at(file), limit)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise NotPlainError(reason(error)) from None

    def names(self) -> set[str]:
        """Return the current names in the folder itself, of any kind."""
        with storage_errors(self.path, "read"):
            return self.root.names()

    def keeps_names(self, file: str) -> bool:
        """Return whether this disk lists a file under its given name: some compose or decompose letters."""
        if unicodedata.is_normalized("NFC", file) and unicodedata.is_normalized("NFD", file):
            return True
        if self._keeps is None:
            self._keeps = all(map(self._keeps_name, ("\u00e9", "e\u0301")))
        return self._keeps

    def _keeps_name(self, letter: str) -> bool:
        name = _STAGED + self._new_name("") + letter
        try:
            aside = self._held(ASIDE, make=True)
            os.close(aside.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
            try:
                return name in aside.names()
            finally:
                aside.unlink(name)
        except OSError:
            return False

    @staticmethod
    def _read(directory: Directory, name: str, limit: int) -> Contents:
        fd = directory.open(name, os.O_RDONLY)
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
        stat_after = _stat(after)
        changing = _stat(before) != stat_after or len(data) != after.st_size
        return Contents(data, None if changing or _is_racy(stat_after) else stat_after)

    # -- putting -----------------------------------------------------------------------------------------------

    def stage(self, file: str, data: bytes, *, durable: bool = True) -> str:
        """Write `data` to a staged file; returns its name. Raises StorageError.

        The remains of a full disk or a killed process are recognised by that name, and never read as a text.
        """
        with storage_errors(self.path / file, "write"):
            staged = _STAGED + self._new_name("")
            mode = 0o600
            with contextlib.suppress(OSError):
                directory, name = self._at(file)
                mode = stat.S_IMODE(directory.lstat(name).st_mode) & 0o777
            fd = self._held(ASIDE, make=True).open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            try:
                if mode != 0o600 and hasattr(os, "fchmod"):
                    # We created it just now: a disk that refuses has no modes of its own.
                    with contextlib.suppress(OSError):
                        os.fchmod(fd, mode)
                _write_all(fd, data)
                if durable:
                    flush_to_disk(fd)
            except OSError:
                self.drop_aside(staged)
                raise
            finally:
                os.close(fd)
        return staged

    def create(self, staged: str, file: str) -> bool:
        """Rename a staged file to a free name. False, without changes, if it is taken."""
        with storage_errors(self.path / file, "write"):
            directory, name = self._at(file, make=True)
            aside = self._held(ASIDE)
            placed = aside.rename_new(staged, directory, name)
            if placed is not None:
                return placed
            try:
                aside.link(staged, directory, name)
            except FileExistsError:
                return False
            except (OSError, NotImplementedError) as error:
                code = getattr(error, "errno", errno.ENOTSUP)
                if code not in (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS):
                    raise
                with contextlib.suppress(FileNotFoundError):
                    directory.lstat(name)
                    return False
                aside.replace(staged, directory, name)
                return True
            aside.unlink(staged)
        return True

    def replace(self, staged: str, file: str) -> str | None:
        """Replace a file by a staged one. Returns the name of the old one aside, None if there was none (then the staged file is
        removed)."""
        with storage_errors(self.path / file, "write"):
            directory, name = self._at(file)
            aside = self._held(ASIDE)
            # It is complete; from here on this name may be that of the replaced file.
            ready = self._new_name(file)
            aside.replace(staged, aside, ready)
            try:
                if aside.exchange(ready, directory, name):
                    return ready
                old = "old-" + ready
                try:
                    directory.link(name, aside, old)
                except FileNotFoundError:
                    raise
                except (OSError, NotImplementedError):
                    old = ""  # a disk without hard links: the comparison just before must suffice
                aside.replace(ready, directory, name)
            except FileNotFoundError:
                self.drop_aside(ready)
                return None
            return old or None

    def take_away(self, file: str) -> str | None:
        """Remove a file from the folder; returns its name aside."""
        old = self._new_name(file)
        with storage_errors(self.path / file, "remove"):
            try:
                directory, name = self._at(file)
                directory.replace(name, self._held(ASIDE, make=True), old)
            except FileNotFoundError:
                return None
        return old

    def append(self, file: str, data: bytes) -> None:
        """Append to a file in one write, so that lines of two writers never mix. Raises StorageError."""
        with storage_errors(self.path / file, "write"):
            directory, name = self._at(file)
            fd = directory.open(name, os.O_WRONLY | os.O_APPEND)
            try:
                _write_all(fd, data)
                flush_to_disk(fd)
            finally:
                os.close(fd)

    def keep_hidden(self, staged: str, name: str) -> None:
        """Move a staged file into `.ipfsmem`, if that name is free."""
        with storage_errors(self.path / HIDDEN / name, "write"):
            aside, hidden = self._held(ASIDE), self._held(HIDDEN)
            try:
                hidden.lstat(name)
                aside.unlink(staged)
            except FileNotFoundError:
                aside.replace(staged, hidden, name)

    def settle(self) -> None:
        """Make renames durable."""
        with storage_errors(self.path, "write"):
            self.root.sync()
            if TIMELINE in self._open:
                self._open[TIMELINE].sync()

    # -- what was replaced -------------------------------------------------------------------------------------

    def _new_name(self, file: str) -> str:
        """Return a name for a file set aside, from which a holder of the secret can tell the original file."""
        self._count += 1
        token = f"{os.getpid():x}-{time.time_ns():x}-{self._count:x}"
        return f"{token}.{self._tag(token, file)}"

    def _tag(self, token: str, file: str) -> str:
        return blake2b(
            f"{token}\0{file}".encode("utf-8", "surrogateescape"), key=self._secret, digest_size=16
        ).hexdigest()

    def file_of(self, name: str, files: Iterable[str]) -> str | None:
        """Return which of `files` a name aside was made for; None if this device did not make it for one of them."""
        token, _, tag = name.removeprefix("old-").partition(".")
        return next((file for file in files if self._tag(token, file) == tag), None)

    def drop_staged(self, name: str) -> bool:
        """Delete a file that an interrupted run was preparing; False for every other name aside."""
        bare = name.removeprefix(_STAGED)
        if bare == name or self.file_of(bare, [""]) is None:
            return False
        self.drop_aside(name)
        return True

    def asides(self) -> Iterator[str]:
        """Yield the names of all files aside, made by us or not."""
        try:
            with self._held(ASIDE).scan() as entries:
                yield from [entry.name for entry in entries]
        except FileNotFoundError:
            return
        except OSError as error:
            raise StorageError(f"cannot use {self.path / HIDDEN / ASIDE}: {reason(error)}") from None

    def read_aside(self, name: str, limit: int) -> Contents | None:
        """Return the content of a file set aside; None if it is missing or unreadable."""
        try:
            return self._read(self._held(ASIDE), name, limit)
        except (OSError, NotPlainError):
            return None

    def aside_mtime(self, name: str) -> int | None:
        """Return the modification time of a file set aside, in nanoseconds since 1970; None if it is missing."""
        try:
            return self._held(ASIDE).lstat(name).st_mtime_ns
        except OSError:
            return None

    def drop_aside(self, name: str) -> None:
        """Delete a file that was set aside."""
        with contextlib.suppress(OSError):
            self._held(ASIDE).unlink(name)


def _read_up_to(fd: int, most: int, expected: int) -> bytes:
    """Read at most `most` bytes, probably `expected`: more memory is not allocated before it is needed."""
    data = os.read(fd, min(most, expected + 1))
    if len(data) == expected:
        return data  # one byte more was requested, so this is the end
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


def is_flushed_together(many: int) -> bool:
    """Return whether this many files are cheaper flushed by one `sync_all` after the last than individually."""
    return many > _MANY and hasattr(os, "sync")


def sync_all() -> None:
    """Flush all writes to the disk."""
    if hasattr(os, "sync"):
        os.sync()


def _is_racy(file_stat: Stat) -> bool:
    """Return whether a file is so young that it could change again with the same times."""
    return max(file_stat.mtime, file_stat.ctime) >= time.time_ns() - RACY


def _stat(status: os.stat_result) -> Stat:
    return Stat(status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino & INODE)
