"""A folder of plain files that other programs write too: looking, reading, and putting files there without overwriting
a byte that was not seen.

What stood in a file before is never thrown away by a replacement: it goes to `.ipfsmem/aside/`, in one step with the
new text where the system can exchange two names. So a write that came in the very moment before, or that comes later
through a handle which was open, is still found. Nothing is done through a link, nothing in `.ipfsmem` is believed, and
no file there is touched whose name this device did not make. What the files mean is not known here.
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
from ipfsmem.device.tables.renders import Stat
from ipfsmem.errors import StorageError
from ipfsmem.file_durability import flush_to_disk

HIDDEN = ".ipfsmem"
TIMELINE = "timeline"
_MARKER = "marker"
ASIDE = "aside"
_IGNORE = ".gitignore"
#: How the name of a file begins that is being made ready: it stood nowhere yet, so nobody else has written into it.
_STAGED = "new-"
#: Nanoseconds within which a file can change again without its times telling (2 s on FAT).
RACY = 2_000_000_000
#: Two looks this far apart must miss a file before that is taken for a delete; ms.
MISSING_FOR = 60_000
#: Files above which one flush of the whole system is cheaper than one for each.
_MANY = 16
_MAX_MARKER = 256


class NotPlainError(Exception):
    """A file that is left alone; the message says why."""


class Contents(msgspec.Struct, frozen=True):
    """The bytes of a file. `stat`: that of the file with these bytes; None when it may change again without telling."""

    data: bytes
    stat: Stat | None

    @property
    def sha(self) -> bytes:
        """Their SHA-256."""
        return sha256(self.data).digest()


class Listing(msgspec.Struct, frozen=True):
    """What stands in a folder at one moment, by names that a memory or a day of the timeline may have."""

    files: dict[str, Stat]
    #: Names of what is no regular file.
    irregular: set[str]
    #: Subfolders with texts: they are not looked into.
    unread: list[str]
    #: Whether a link stands in the place of `timeline/`: it is not followed.
    linked: bool

    def leave_out(self, file: str) -> bool:
        """Take a name out; whether it was there."""
        found = file in self.irregular or self.files.pop(file, None) is not None
        self.irregular.discard(file)
        return found

    def __contains__(self, file: str) -> bool:
        return file in self.files or file in self.irregular


class _Marker(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    v: int


class PlainFolder:
    """One such folder. File names are relative: `tone.md`, `timeline/2026-04-14.jsonl`.

    It is opened at its first use and stays open until `close`: all that is done until then is done in that folder.
    """

    def __init__(self, path: Path, secret: bytes = b"") -> None:
        """`secret`: what makes names of files set aside that only this device can make."""
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
        """The folder, or one of the two in it that are used, open. Raises OSError for those in it."""
        known = self._open.get(name)
        if known is None:
            if name == "":
                with storage_errors(self.path, "open"):
                    known = open_directory(str(self.path))
            elif name == ASIDE:
                hidden = self._held(HIDDEN, make)
                known = hidden.make(name) if make else hidden.sub(name)
            else:
                known = self.root.make(name) if make else self.root.sub(name)
            self._open[name] = known
        return known

    def close(self) -> None:
        """Let go of the folder; the next use opens it again."""
        held, self._open = self._open, {}
        for directory in held.values():
            directory.close()

    def exists(self) -> bool:
        """Whether there is a folder. Raises StorageError where that cannot be told: a dead mount, a place that is not ours to look into."""
        with storage_errors(self.path, "look into"):
            return self.path.is_dir()

    def make(self) -> None:
        """Make the folder. Raises StorageError."""
        make_directory(self.path)

    # -- the marker --------------------------------------------------------------------------------------------

    def marker(self) -> str | None:
        """The id that stands in the folder's marker; "" for one that cannot be read. Raises StorageError for links."""
        with storage_errors(self.path / HIDDEN, "use"):
            try:
                data = self._read(self._held(HIDDEN), _MARKER, _MAX_MARKER).data
            except FileNotFoundError:
                return None
            except NotPlainError:
                return ""
        try:
            found = read_json(data, type=_Marker)
        except msgspec.DecodeError:
            return ""
        return found.id if found.v == 1 else ""

    def put_marker(self, mark: str) -> None:
        """Say whose working copy this is; git leaves `.ipfsmem` alone. Raises StorageError."""
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
                except BaseException:  # a full disk, most likely: it is not to hold half a file as well
                    with contextlib.suppress(OSError):
                        hidden.unlink(temporary)
                    raise
            hidden.sync()
            self.root.sync()

    def drop_marker(self) -> None:
        """Take away what `put_marker` put, and `.ipfsmem` when nothing else is in it."""
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

    def look(self) -> Listing:
        """Every file that could be ours, by its name. Raises StorageError."""
        listing = Listing({}, set(), [], False)
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
    def _note(listing: Listing, name: str, entry: os.DirEntry[str]) -> None:
        try:
            known = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return  # gone while looking
        if stat.S_ISREG(known.st_mode):
            listing.files[name] = _stat(known)
        else:
            listing.irregular.add(name)

    def _at(self, file: str, make: bool = False) -> tuple[Directory, str]:
        """Where a file is. Raises NotPlainError when the way there is a link, FileNotFoundError when there is none."""
        if not file.startswith(TIMELINE + "/"):
            return self.root, file
        try:
            return self._held(TIMELINE, make), file[len(TIMELINE) + 1 :]
        except LinkError:
            raise NotPlainError(f"{TIMELINE} is a link") from None

    def stat(self, file: str) -> Stat | None:
        """The stat of one file; None when there is no regular file of that name."""
        try:
            directory, name = self._at(file)
            known = directory.lstat(name)
        except (OSError, NotPlainError):
            return None
        return _stat(known) if stat.S_ISREG(known.st_mode) else None

    def read(self, file: str, limit: int) -> Contents | None:
        """What stands in a file; None when there is none.

        Raises NotPlainError for what is left alone: a link, no regular file, longer than `limit`, unreadable.
        """
        try:
            return self._read(*self._at(file), limit)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise NotPlainError(reason(error)) from None

    def names(self) -> set[str]:
        """What stands in the folder itself, of any kind, at this moment."""
        with storage_errors(self.path, "read"):
            return self.root.names()

    def keeps_names(self, file: str) -> bool:
        """Whether this disk lists a file under the name that it was given: some compose or decompose letters."""
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
        known = _stat(after)
        changing = _stat(before) != known or len(data) != after.st_size
        return Contents(data, None if changing or _is_racy(known) else known)

    # -- putting -----------------------------------------------------------------------------------------------

    def stage(self, file: str, data: bytes, *, durable: bool = True) -> str:
        """Write `data` aside, ready to be put in place; the name it has there. Raises StorageError.

        What a full disk or a kill left of it is told by that name, and never taken for a text.
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
                    # Ours just now: a disk that refuses has no modes of its own.
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
        """Put a staged file where none stands. False, and nothing done, when one does."""
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
                known = getattr(error, "errno", errno.ENOTSUP)
                if known not in (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS):
                    raise
                with contextlib.suppress(FileNotFoundError):
                    directory.lstat(name)
                    return False
                aside.replace(staged, directory, name)
                return True
            aside.unlink(staged)
        return True

    def replace(self, staged: str, file: str) -> str | None:
        """Put a staged file in the place of one that stands there. Returns the name that one has aside now, None when there
        was none (then the staged file goes)."""
        with storage_errors(self.path / file, "write"):
            directory, name = self._at(file)
            aside = self._held(ASIDE)
            # It is whole; from here on what has this name may be what stood in the folder.
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
                    old = ""  # a disk without hard links: the comparison just before has to do
                aside.replace(ready, directory, name)
            except FileNotFoundError:
                self.drop_aside(ready)
                return None
            return old or None

    def take_away(self, file: str) -> str | None:
        """Take a file out of the folder; returns the name that it has aside now."""
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
        """Put a staged file into `.ipfsmem`, where none stands under that name."""
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
        """A name for a file set aside, which says for whom knows the secret which file it was."""
        self._count += 1
        token = f"{os.getpid():x}-{time.time_ns():x}-{self._count:x}"
        return f"{token}.{self._tag(token, file)}"

    def _tag(self, token: str, file: str) -> str:
        return blake2b(
            f"{token}\0{file}".encode("utf-8", "surrogateescape"), key=self._secret, digest_size=16
        ).hexdigest()

    def file_of(self, name: str, files: Iterable[str]) -> str | None:
        """Which of `files` a name aside was made for; None when this device did not make it for one of them."""
        token, _, tag = name.removeprefix("old-").partition(".")
        return next((file for file in files if self._tag(token, file) == tag), None)

    def drop_staged(self, name: str) -> bool:
        """Let go of a file that a run did not finish making ready; False for every other name aside."""
        bare = name.removeprefix(_STAGED)
        if bare == name or self.file_of(bare, [""]) is None:
            return False
        self.drop_aside(name)
        return True

    def asides(self) -> Iterator[str]:
        """Names of all that lies aside, made by us or not."""
        try:
            with self._held(ASIDE).scan() as entries:
                yield from [entry.name for entry in entries]
        except FileNotFoundError:
            return
        except OSError as error:
            raise StorageError(f"cannot use {self.path / HIDDEN / ASIDE}: {reason(error)}") from None

    def read_aside(self, name: str, limit: int) -> Contents | None:
        """What stands in a file set aside; None when it is gone or cannot be read."""
        try:
            return self._read(self._held(ASIDE), name, limit)
        except (OSError, NotPlainError):
            return None

    def aside_mtime(self, name: str) -> int | None:
        """When a file set aside was last written to, in nanoseconds; None when it is gone."""
        try:
            return self._held(ASIDE).lstat(name).st_mtime_ns
        except OSError:
            return None

    def drop_aside(self, name: str) -> None:
        """Let go of a file that was set aside."""
        with contextlib.suppress(OSError):
            self._held(ASIDE).unlink(name)


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


def is_flushed_together(many: int) -> bool:
    """Whether so many files are cheaper flushed by one `sync_all` after the last than each by itself."""
    return many > _MANY and hasattr(os, "sync")


def sync_all() -> None:
    """Wait until all that was written is on the disk."""
    if hasattr(os, "sync"):
        os.sync()


def _is_racy(known: Stat) -> bool:
    """Whether a file is so young that it could change again without its times telling."""
    return max(known.mtime, known.ctime) >= time.time_ns() - RACY


def _stat(known: os.stat_result) -> Stat:
    return Stat(known.st_mtime_ns, known.st_ctime_ns, known.st_size, known.st_ino & INODE)
