"""Read the files of another program from one file, a folder, a zip or standard input, with limits on their size.

Links are not followed, hidden and special files are omitted, and the unpacked size of a zip is limited whatever it
claims. Readers interpret the bytes.
"""

from __future__ import annotations

import contextlib
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from ipfsmem.bundle.memory_file import MAX_FILE
from ipfsmem.device.atomic_files import read_file, storage_errors
from ipfsmem.errors import FormatError, IpfsmemError, LimitError, NotFoundError, StorageError, UsageError
from ipfsmem.exchange.lenient import date_of
from ipfsmem.exchange.records import Item, Problem, Skipped
from ipfsmem.exchange.sqlite_input import is_sqlite
from ipfsmem.memories.bundle_tree import MAX_BYTES
from ipfsmem.memories.containers import ATTACHMENTS, NOTES, folder_files, is_zip, opened, zip_files

#: Extensions of files that are listed in a folder or zip; notes only by name.
ENDINGS = (".md", ".json", ".jsonl", ".db", ".db-wal", ".af", *NOTES)
#: Folders whose name describes their content, so that it stays in the names in a zip with nothing else.
_KEPT = ("memory", "scopes", "conversations", "memories", "projects")
#: Maximum bytes of all files of a place together, and of one that is not Markdown.
MAX_PLACE = MAX_BYTES
#: The name of bytes without a file.
NO_FILE = "standard input"
#: Markdown is read up to here: a longer one is too long for a memory.
_MARKDOWN = 4 * MAX_FILE


class Files(msgspec.Struct, frozen=True):
    """The files of a place by name, with slashes; `single`: it is one file, named by the user."""

    #: The last name of the place.
    called: str
    single: bool
    names: Sequence[str]
    #: Returns the bytes of a file. Raises FormatError, LimitError, StorageError; each file uses quota of the place.
    read: Callable[[str], bytes]
    #: Messages about unreadable folders and other things outside the names.
    said: Sequence[str] = ()
    #: Returns when a file was last written, as ISO 8601; "" if unknown.
    written: Callable[[str], str] = lambda name: ""

    def ending(self, *endings: str) -> list[str]:
        """Return the names with these extensions, in order; for a single file that one, whatever its name."""
        return (
            list(self.names)
            if self.single
            else [name for name in self.names if name.lower().endswith(endings)]
        )

    def named(self, *names: str) -> list[str]:
        """Return the files with one of these last names; for a single file that one."""
        return (
            list(self.names)
            if self.single
            else [name for name in self.names if name.rpartition("/")[2] in names]
        )


def each_file(
    files: Files, names: Iterable[str], read: Callable[[str, bytes], Iterator[Item]]
) -> Iterator[Item]:
    """Yield the items that `read` finds in each of these files, given name and bytes. An invalid file is a problem and the others
    are still read; if it is the only one, its error is raised."""
    for name in names:
        try:
            yield from read(name, files.read(name))
        except IpfsmemError as error:
            if files.single:
                raise
            yield Problem(name, str(error))


def left_out_notes(
    files: Files, of: Callable[[str], bool] = lambda name: True
) -> Iterator[Problem | Skipped]:
    """Yield the notes of a folder or zip that are not read there, among the names that `of` accepts, and the attachments by kind."""
    for name in () if files.single else filter(of, files.ending(*NOTES)):
        if name.lower().endswith(ATTACHMENTS):
            yield Skipped(f"attachment (.{name.lower().rpartition('.')[2]})")
        else:
            yield Problem(name, "of a folder or zip only files that end in .md are read")


def one_file(called: str, data: bytes) -> Files:
    """Return a place of these bytes. Raises LimitError beyond the maximum of a file."""
    if len(data) > MAX_PLACE:
        raise LimitError(f"{called} has {len(data):,} bytes, at most {MAX_PLACE:,} are allowed")
    return Files(called, True, (called,), lambda name: data)


@contextlib.contextmanager
def open_place(path: Path) -> Iterator[Files]:
    """Open the files at a path while the block runs. Raises NotFoundError, UsageError for a link, StorageError, FormatError,
    LimitError."""
    with storage_errors(path, "read"):
        if path.is_symlink():
            raise UsageError(f"{path} is a symbolic link", hint="Pass its target instead.")
        if path.is_dir():
            yield _folder(path)
            return
        if not path.exists():
            raise NotFoundError(f"there is nothing at {path}")
        with opened(path) as file:
            head = file.read(16)
    if is_zip(head):
        problems: list[str] = []
        with zip_files(path, _KEPT, problems=problems) as (names, read):
            inside = _zip(path.name, sorted(names), read, problems)
            yield msgspec.structs.replace(inside, written=lambda name: _written(path))
        return
    data = read_file(path, MAX_PLACE)
    if data is None:
        raise NotFoundError(f"there is nothing at {path}")
    files = msgspec.structs.replace(one_file(path.name, data), written=lambda name: _written(path))
    log = path.with_name(f"{path.name}-wal")
    if is_sqlite(data) and log.is_file() and log.stat().st_size:
        unread = f"{log.name} was not read: its program has not written it into the database yet. End that program first"
        files = msgspec.structs.replace(files, said=(unread,))
    yield files


def _folder(folder: Path) -> Files:
    problems: list[str] = []
    names, read = folder_files(folder, lambda name, top: name.lower().endswith(ENDINGS), _most, problems)

    def read_one(name: str) -> bytes:
        data = read(name, _most(name))
        if data is None:
            raise StorageError("it disappeared while being read")
        return data

    return Files(
        folder.absolute().name, False, tuple(names), read_one, problems, lambda name: _written(folder / name)
    )


def _written(path: Path) -> str:
    try:
        return date_of(path.stat().st_mtime)
    except OSError:
        return ""


def _zip(
    called: str, names: Sequence[str], read: Callable[[str, int], bytes | None], problems: Sequence[str]
) -> Files:
    budget = MAX_PLACE

    def read_one(name: str) -> bytes:
        nonlocal budget
        try:
            data = read(name, min(_most(name), budget)) or b""
        except IpfsmemError:
            raise
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, RuntimeError):
            raise FormatError("it cannot be unpacked") from None
        budget -= len(data)
        if budget <= 0:
            raise LimitError(f"there are more than {MAX_PLACE:,} bytes in the zip")
        return data

    names_wanted = [name for name in names if name.lower().endswith(ENDINGS) and not _hidden(name)]
    return Files(called, False, names_wanted, read_one, problems)


def _most(name: str) -> int:
    lower = name.lower()
    return _MARKDOWN if lower.endswith(".md") else 0 if lower.endswith(NOTES) else MAX_PLACE


def _hidden(name: str) -> bool:
    return any(part.startswith(".") for part in name.split("/"))
