"""Containers of a bundle's files: a folder, a zip, a CAR. Their names and bounded reads; nothing is ever written to a disk.

Links and special files in a folder are left out; a zip is read for stored and deflated entries only, each within its limit,
whatever its directory claims; a CAR is checked block by block against its one root.
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
#: macOS's own files in a zip, without content of a user.
_FINDER = "__MACOSX/"
#: Extensions of notes in plain text besides `.md`: memories in a folder or zip of notes, reported in an export.
TEXTS = (
    *(".txt", ".text", ".markdown", ".mdown", ".mdwn", ".mkd", ".mkdn", ".mdx"),
    *(".org", ".rst", ".adoc", ".asciidoc", ".textile"),
)
#: Extensions of documents that lie beside notes: never read, and named, as they are no notes.
ATTACHMENTS = (".doc", ".docx", ".odt", ".pdf", ".epub")
#: Extensions of further notes, which are never read, and so are reported as left out; and of attachments.
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
    """Return the names of the wanted files in a folder, and a reader for them; all are read now, no link is followed.

    `is_wanted` gets a file's last name and whether it is at the top, `most` returns the maximum bytes of a file. With `tops` only
    those folders are read. Unreadable folders are appended to `problems`. Raises LimitError.
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
    """Read the tree of a place that a user named, as `read_tree`. Raises FormatError if it has no file of a memory: most often it
    is the wrong place, and replacing with it would forget everything. `notes` are files that are reported as left out, attachments
    among them as skipped; `texts`: files with the extensions `TEXTS` are memories too."""
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
    """Return some names, and how many more there are."""
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
    """Yield the wanted files below `base`, with `tops` only in these and at the top: the relative name with slashes; then the
    name in the open folder of the descriptor, so that a folder replaced by a link meanwhile leads nowhere, or the path on
    systems without descriptors. As text: ten thousand `Path` objects take longer to make than their files to read. Unreadable
    folders are appended to `problems`."""

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
    with zip_files(path, said=problems) as (names, read):
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
    path: Path, tops: Collection[str] = ("memory", "scopes"), *, said: list[str]
) -> Iterator[tuple[Collection[str], ReadFile]]:
    """Open a zip: the names of its files, without a common top folder unless it is one of `tops`, and a reader for them within
    the block. Entries whose name leads out of the zip are appended to `said`. Raises FormatError, also in the block for
    entries that cannot be unpacked, LimitError."""
    with storage_errors(path, "read"), opened(path) as file:
        if _signatures(file) > MAX_NAMES:
            raise LimitError(f"there are more than {MAX_NAMES:,} files in the zip")
        try:
            with zipfile.ZipFile(file) as archive:
                yield _from_zip(archive, tops, said)
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
    """Return the maximum number of files in a zip: its directory is read whole, so they are counted before."""
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
        ):  # not `is_dir`: older versions index the last letter of an empty name
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
    """Return an entry's name with slashes, also if Windows wrote it, and without a leading `./`."""
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
