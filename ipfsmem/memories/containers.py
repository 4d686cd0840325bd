"""Reads the files of a bundle from a folder, a zip or a CAR, within limits; writes nothing.

Links and special files in a folder are left out. Of a zip, stored and deflated entries are read, each up to its limit, whatever
size its directory states. Every block of a CAR is verified, from its single root.
"""

from __future__ import annotations

import contextlib
import os
import stat
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from ipfsmem.bundle.memory_file import MAX_FILE
from ipfsmem.content.car import read_car
from ipfsmem.content.cid import CID
from ipfsmem.content.limits import OWN_LIMITS
from ipfsmem.content.reader import Reader, drive, from_mapping
from ipfsmem.device.atomic_files import open_regular, read_file, reason, storage_errors
from ipfsmem.errors import FormatError, IpfsmemError, LimitError, NotFoundError
from ipfsmem.memories.bundle_tree import (
    MAX_BYTES,
    MAX_NAMES,
    MAX_SCOPE_FILE,
    SCOPE_FILE,
    BundleScope,
    ReadFile,
    read_tree,
)
from ipfsmem.wording import count

ZIP_MAGIC = b"PK\x03\x04"
#: The directory of a zip without files.
_EMPTY_ZIP = b"PK\x05\x06"
_ENCRYPTED = 0x1
#: Folder of metadata that macOS adds to a zip.
_FINDER = "__MACOSX/"
#: Extensions of notes in plain text besides `.md`: memories in a folder or zip of notes, reported in an export.
TEXTS = (
    *(".txt", ".text", ".markdown", ".mdown", ".mdwn", ".mkd", ".mkdn", ".mdx"),
    *(".org", ".rst", ".adoc", ".asciidoc", ".textile"),
)
#: Extensions of documents, which are not read but listed as skipped.
ATTACHMENTS = (".doc", ".docx", ".odt", ".pdf", ".epub")
#: Extensions of files that are reported if they are left out: further notes, and attachments.
NOTES = (*TEXTS, ".html", ".htm", ".rtf", ".tex", ".canvas", *ATTACHMENTS)
#: Prefix of each file's entry in the directory of a zip.
_DIRECTORY = b"PK\x01\x02"


def is_zip(head: bytes) -> bool:
    """Return whether a file with these first bytes is a zip."""
    return head.startswith((ZIP_MAGIC, _EMPTY_ZIP))


def is_car(head: bytes) -> bool:
    """Return whether a file with these first bytes is a CAR: a short length, and a CBOR map with roots or version."""
    return any(head[start : start + 1] in (b"\xa1", b"\xa2") for start in (1, 2)) and (
        b"\x65roots" in head[:16] or b"\x67version" in head[:16]
    )


def opened(path: Path) -> BinaryIO:
    """Open a regular file for reading. Raises StorageError for a link, a pipe and anything but a regular file, OSError."""
    return os.fdopen(open_regular(path, os.O_RDONLY), "rb")


def read_folder(folder: Path) -> dict[str, BundleScope]:
    """Return the scopes of a folder of memory files. In a tree of bases all other files are ignored."""
    inside = [_is_folder(folder / "memory"), any(map(_is_folder, (folder / "scopes").glob("*/memory")))]
    tops = ("memory", "scopes") if any(inside) else ()
    problems: list[str] = []

    notes: list[str] = []

    def wanted(name: str, top: bool) -> bool:
        if name == SCOPE_FILE:
            return True
        if top and tops:
            return False
        lower = name.lower()
        if not tops and lower.endswith(TEXTS):
            return True
        if lower.endswith(NOTES) and not name.startswith("."):
            notes.append(name)
        return lower.endswith((".md", ".jsonl"))

    names, read = folder_files(folder, wanted, _most, problems, tops)
    return _read(folder, names, read, problems, notes, texts=not tops)


def folder_files(
    folder: Path,
    is_wanted: Callable[[str, bool], bool],
    most: Callable[[str], int],
    problems: list[str],
    tops: Sequence[str] = (),
) -> tuple[Collection[str], ReadFile]:
    """Read the wanted files in a folder; returns their names, and a reader that returns their bytes. No link is followed.

    `is_wanted` is called with the last part of a file's path and whether the file is at the top; `most` returns the maximum bytes
    of a file. `tops`: read only these top folders. Unreadable folders are appended to `problems`. Raises LimitError.
    """
    base = str(folder)
    contents: dict[str, bytes | IpfsmemError | None] = {}
    budget = MAX_BYTES
    for relative, path, within in _files(base, tops, is_wanted, problems):
        if len(contents) > MAX_NAMES:
            raise LimitError(f"there are more than {MAX_NAMES:,} files in {folder}")
        try:
            data = read_file(path, most(relative), within=within)
        except IpfsmemError as error:
            contents[relative] = error
            continue
        contents[relative] = data
        budget -= len(data or b"")
        if budget < 0:
            raise LimitError(f"there are more than {MAX_BYTES:,} bytes in {folder}")

    def read(name: str, most: int) -> bytes | None:
        data = contents[name]
        if isinstance(data, IpfsmemError):
            raise data
        return data

    return contents, read


def _read(
    place: Path,
    names: Collection[str],
    read: ReadFile,
    problems_before: Sequence[str] = (),
    notes: Sequence[str] = (),
    *,
    texts: bool = False,
) -> dict[str, BundleScope]:
    """Read the tree of a path that a user named, as `read_tree` does. Raises FormatError if it contains no memory: the path is then
    most likely wrong, and an import with `replace` would forget everything. `notes`: files to report as left out, or as skipped if
    they are attachments. `texts`: whether files with an extension in `TEXTS` are memories too."""
    endings = TEXTS if texts else ()
    if not problems_before and not any(
        name.lower().endswith((".md", ".jsonl", SCOPE_FILE, *endings)) for name in names
    ):
        raise FormatError(f"there are no memories in {place}")
    attached = sorted(name for name in notes if name.lower().endswith(ATTACHMENTS))
    unread = [name for name in notes if not name.lower().endswith(ATTACHMENTS)]
    only = "of a folder or zip only plain text is" if texts else "of an export only files that end in .md are"
    problems = [f"{only} read: left out {_some(unread)}"] if unread else []
    scopes = read_tree(names, read, [*problems_before, *problems], endings)
    if attached:
        skipped = f"{count(len(attached), 'attachment')}: {_some(attached)}"
        scopes[""] = msgspec.structs.replace(scopes[""], skipped=(skipped,))
    return scopes


def _some(names: Sequence[str]) -> str:
    """Join the first names, and the number of the others, in a phrase."""
    shown = ", ".join(ascii(name)[1:-1][:60] for name in names[:3])
    return f"{shown} and {len(names) - 3:,} more" if len(names) > 3 else shown


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _most(name: str) -> int:
    """Return the maximum bytes of a file with this name."""
    lower = name.lower()
    return (
        MAX_FILE
        if lower.endswith((".md", *TEXTS))
        else MAX_BYTES
        if lower.endswith(".jsonl")
        else MAX_SCOPE_FILE
    )


def _files(
    base: str, tops: Sequence[str], is_wanted: Callable[[str, bool], bool], problems: list[str]
) -> Iterator[tuple[str, str, int | None]]:
    """Yield the wanted files below `base` as (relative name with slashes, name, descriptor of its folder); with `tops` only files
    at the top and in these folders. The descriptor is of the open folder, so a folder replaced by a link meanwhile is not followed;
    on systems without such descriptors, the name is the path and the descriptor None. Names are strings because creating ten
    thousand `Path` objects takes longer than reading the files. Unreadable folders are appended to `problems`."""

    def unread(error: OSError) -> None:
        called = ascii(Path(os.fsdecode(error.filename or base)).name)[1:-1]
        problems.append(f"a folder called {called} was left out with all that is in it: {reason(error)}")

    for folder, folders, names, within in _walk(base, unread):
        top = folder == base
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and (not tops or not top or name in tops)
        )
        inner = "" if top else Path(folder).relative_to(base).as_posix() + "/"
        for name in sorted(names):
            if is_wanted(name, top) and not name.startswith("."):
                path = name if within is not None else os.path.join(folder, name)  # noqa: PTH118 - see above
                yield inner + name, path, within


def _walk(
    base: str, unread: Callable[[OSError], None]
) -> Iterator[tuple[str, list[str], list[str], int | None]]:
    if hasattr(os, "fwalk"):
        yield from os.fwalk(base, onerror=unread)
    else:
        yield from ((*entry, None) for entry in os.walk(base, onerror=unread))


def read_zip(path: Path) -> dict[str, BundleScope]:
    """Return the scopes of a zip. Raises FormatError, LimitError."""
    problems: list[str] = []
    with zip_files(path, problems=problems) as (names, read):
        inside = ("memory/", "scopes/")
        whole = any(name.startswith(inside) for name in names)
        notes = [
            name
            for name in sorted(names)
            if name.lower().endswith(NOTES if whole else NOTES[len(TEXTS) :])
            and not _hidden(name)
            and (name.startswith(inside) or not whole)
        ]
        return _read(path, names, read, problems, notes, texts=not whole)


@contextlib.contextmanager
def zip_files(
    path: Path, tops: Collection[str] = ("memory", "scopes"), *, problems: list[str]
) -> Iterator[tuple[Collection[str], ReadFile]]:
    """Open a zip; yields the names of its files, without a common top folder unless that is in `tops`, and a reader that is valid
    within the block. Entries with a path outside the zip are appended to `problems`. Raises LimitError, and FormatError, in the
    block also for an entry that cannot be unpacked."""
    with storage_errors(path, "read"), opened(path) as file:
        if _signatures(file) > MAX_NAMES:
            raise LimitError(f"there are more than {MAX_NAMES:,} files in the zip")
        try:
            with zipfile.ZipFile(file) as archive:
                yield _from_zip(archive, tops, problems)
        except (
            zipfile.BadZipFile,
            zlib.error,
            EOFError,
            NotImplementedError,
            UnicodeError,
            ValueError,
        ) as error:
            raise FormatError(f"{path} is not a readable zip: {error}") from None


def _signatures(file: BinaryIO) -> int:
    """Return an upper bound of the number of files in a zip, counted before `zipfile` loads the whole directory into memory."""
    count, tail = 0, b""
    while piece := file.read(1 << 20):
        count += (tail + piece).count(_DIRECTORY)
        tail = piece[-len(_DIRECTORY) + 1 :]
    file.seek(0)
    return count


def _from_zip(
    archive: zipfile.ZipFile, tops: Collection[str], problems: list[str]
) -> tuple[Collection[str], ReadFile]:
    infos: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        name = _plain_name(info.filename)
        if name.endswith("/") or name.startswith(
            _FINDER
        ):  # `is_dir` of older Python versions fails for an empty name
            continue
        if ".." in name.split("/"):
            problems.append(f"{ascii(info.filename)[1:-1][:120]} was left out: it leads out of the zip")
            continue
        if name in infos:
            raise FormatError(f"the name {ascii(info.filename)[:120]} is in the zip twice")
        infos[name] = info

    def read(name: str, most: int) -> bytes:
        info = infos[name]
        if stat.S_ISLNK(info.external_attr >> 16):
            raise FormatError("it is a symbolic link")
        if info.flag_bits & _ENCRYPTED:
            raise FormatError("it is encrypted by the zip")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise FormatError("it is compressed in a way that is not read here")
        with archive.open(info) as file:
            data = file.read(most + 1)
        if len(data) > most:
            raise FormatError(f"it is longer than {most} bytes")
        return data

    names = _without_top(infos, tops)
    return names, lambda name, most: read(names[name], most)


def _plain_name(name: str) -> str:
    """Return an entry's name without a leading `./`, with slashes in place of the backslashes of Windows."""
    return "/".join(part for part in name.replace("\\", "/").split("/") if part != ".")


def _without_top(names: dict[str, zipfile.ZipInfo], kept_tops: Collection[str]) -> dict[str, str]:
    """Return the names without a common top folder, which zipping a folder by hand adds."""
    tops = {name.split("/", 1)[0] for name in names}
    (top,) = tops if len(tops) == 1 else ("",)
    if not top or top in kept_tops or not all(name.startswith(top + "/") for name in names):
        return {name: name for name in names}
    return {name.removeprefix(top + "/"): name for name in names}


def read_plain_car(path: Path) -> dict[str, BundleScope]:
    """Return the scopes of a CAR of plain files. Raises FormatError, also for an encrypted vault, LimitError."""
    with storage_errors(path, "read"), opened(path) as file:
        car = read_car(file)
        blocks = dict(car)
    if len(car.roots) != 1:
        raise FormatError(f"{path} has {len(car.roots)} trees, so which one is meant is not known")
    reader, get = Reader(OWN_LIMITS), from_mapping(blocks)
    root = car.roots[0]
    try:
        paths = drive(reader.walk(root, enter=lambda path, cid: not _hidden(path)), get)
    except NotFoundError as error:
        raise FormatError(f"{path} does not hold the whole tree: {error}") from None
    if "keyring.json" in paths and not any(name.startswith("memory/") for name in paths):
        raise FormatError(
            f"{path} is an encrypted vault: only its members can read it",
            hint="With its wallet: ipfsmem init --wallet ... With its recovery phrase: ipfsmem recover.",
        )
    return _read(path, paths, lambda name, most: _file(reader, paths[name], most, blocks))


def _file(reader: Reader, cid: CID, most: int, blocks: dict[CID, bytes]) -> bytes:
    return drive(reader.read_file(cid, max_bytes=most), from_mapping(blocks))


def _hidden(path: str) -> bool:
    return path.rpartition("/")[2].startswith(".")
