"""Compute the root CID of a file or folder on disk and, on request, its CAR, for `ipfsmem format cid PATH --car OUT`.

The tree is that of content/unixfs.py, so the CID is the one that Kubo and Helia compute; the CAR is the same bytes
for the same tree. Imports little, as the start of the program is in its time budget.
"""

from __future__ import annotations

import os
import stat
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from ipfsmem.content.car import ONE_ROOT_HEADER, header
from ipfsmem.content.cid import CID, RAW_PREFIX, decode_cid, varint
from ipfsmem.content.unixfs import file_blocks, raw_directory
from ipfsmem.errors import FormatError, IpfsmemError, NotFoundError, StorageError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import BinaryIO

    from ipfsmem.content.dagpb import RawLink

#: Bytes requested first of each file: most end within it, and a short read of a regular file is its end. Less than a chunk.
_FIRST = 64 * 1024
#: Bytes of a CAR collected before they are written.
_BUFFER = 4 * 1024 * 1024
# O_NOFOLLOW: a file replaced by a link between listing and opening; O_NONBLOCK: for a pipe, which would block.
_FLAGS = (
    os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
)
_CHANGING = "Try again when nothing else changes the folder."


class Packed(NamedTuple):
    """The result of packing: the root, the files and folders read, the bytes of the files, the length of the CAR (or 0)."""

    root: CID
    files: int
    folders: int
    size: int
    car_size: int


def pack_tree(path: Path | str, car: BinaryIO | None = None) -> Packed:
    """Read the file or folder at `path`, hidden entries included, in the order of names as bytes.

    The CAR holds each block once, children before parents. Its header names the root, which is known last: a seekable `car` gets
    it then, for a pipe the CAR waits in a temporary file. Raises NotFoundError if there is nothing at `path`; UsageError for
    symbolic links, devices, and a `car` inside the folder; FormatError for a name that is not valid UTF-8; StorageError for a
    file that cannot be read or vanishes meanwhile, or if the CAR cannot be written. A CAR left behind by an error has an empty
    header, which no reader accepts.
    """
    top = os.fsencode(path)
    status = _stat_top(top)
    if car is None:
        return _Packer(None, None).run(top, status)
    try:
        return _in_place(top, status, car) if _seekable(car) else _through_temporary(top, status, car)
    except OSError as error:  # reads raise our own errors, so this is the CAR
        raise StorageError(f"the CAR could not be written: {error.strerror or error}") from None


def _in_place(top: bytes, status: os.stat_result, car: BinaryIO) -> Packed:
    start = car.tell()
    car.write(bytes(ONE_ROOT_HEADER))
    packed = _Packer(car.write, _identity(car)).run(top, status)
    car.seek(start)
    car.write(header([packed.root]))
    car.seek(start + packed.car_size)
    return packed


def _through_temporary(top: bytes, status: os.stat_result, car: BinaryIO) -> Packed:
    import shutil
    import tempfile

    with tempfile.TemporaryFile() as spool:
        packed = _Packer(spool.write, None).run(top, status)
        spool.seek(0)
        car.write(header([packed.root]))
        shutil.copyfileobj(spool, car, 1 << 20)
    return packed


class _Folder:
    """A folder that is being read: its remaining entries, last first, and the links collected so far."""

    __slots__ = ("links", "name", "path", "todo")

    def __init__(self, name: bytes, path: bytes, todo: list[os.DirEntry[bytes]]) -> None:
        self.name = name
        self.path = path
        self.todo = todo
        self.links: list[RawLink] = []


class _Packer:
    def __init__(self, write: Callable[[bytes], object] | None, own: tuple[int, int] | None) -> None:
        self._write = write
        self._own = own
        self._buffer: list[bytes] = []
        self._buffered = 0
        self._seen: set[bytes] = set()
        self._car_size = ONE_ROOT_HEADER if write else 0
        self._files = 0
        self._folders = 0
        self._size = 0

    def run(self, top: bytes, status: os.stat_result) -> Packed:
        if stat.S_ISREG(status.st_mode):
            root, _ = self._file(top)
        else:
            root = self._tree(top)
        self._flush()
        return Packed(decode_cid(root), self._files, self._folders, self._size, self._car_size)

    def _tree(self, top: bytes) -> bytes:
        # Our own stack: folders may nest deeper than Python recurses.
        stack = [self._open_folder(b"", top)]
        while True:
            folder = stack[-1]
            if folder.todo:
                below = self._entries(folder)
                if below is not None:
                    stack.append(below)
                continue
            blocks, tsize = raw_directory(folder.links)
            for cid, block in blocks:
                self._put(cid, block)
            stack.pop()
            root = blocks[-1][0]
            if not stack:
                return root
            stack[-1].links.append((folder.name, root, tsize))

    def _open_folder(self, name: bytes, path: bytes) -> _Folder:
        self._folders += 1
        try:
            with os.scandir(path) as scan:
                entries = sorted(scan, key=_entry_name, reverse=True)
        except OSError as error:
            raise _unreadable(path, error) from None
        return _Folder(name, path, entries)

    def _entries(self, folder: _Folder) -> _Folder | None:
        """Read files of `folder` up to its next subfolder, which is returned open."""
        todo = folder.todo
        links = folder.links
        own_inode = self._own[1] if self._own else -1
        while todo:
            entry = todo.pop()
            name = entry.name
            if not name.isascii():
                _check_utf8(entry.path)
            if entry.is_file(follow_symlinks=False):
                if entry.inode() == own_inode:
                    self._check_not_own(entry)
                cid, tsize = self._file(entry.path)
                links.append((name, cid, tsize))
            elif entry.is_dir(follow_symlinks=False):
                return self._open_folder(name, entry.path)
            else:
                raise _not_a_file(entry.path, entry.is_symlink())
        return None

    def _file(self, path: bytes) -> tuple[bytes, int]:
        """Return CID bytes and size of all blocks of one file."""
        try:
            descriptor = os.open(path, _FLAGS)
        except OSError as error:
            raise _unreadable(path, error) from None
        try:
            data = os.read(descriptor, _FIRST)
            size = len(data)
            if size == _FIRST:
                return self._long_file(descriptor, data)
        except OSError as error:
            raise _unreadable(path, error) from None
        finally:
            os.close(descriptor)
        self._files += 1
        self._size += size
        cid = RAW_PREFIX + sha256(data).digest()
        if self._write is not None and cid not in self._seen:
            self._seen.add(cid)
            # varint(36 + size) for up to 64 KiB, cid, data; inlined, as this is the hottest line.
            length = size + 36
            if length < 0x80:
                frame = b"%c%b%b" % (length, cid, data)
            elif length < 0x4000:
                frame = b"%c%c%b%b" % (length & 0x7F | 0x80, length >> 7, cid, data)
            else:
                frame = varint(length) + cid + data
            self._append(frame)
        return cid, size

    def _long_file(self, descriptor: int, first: bytes) -> tuple[bytes, int]:
        source = _Continued(descriptor, first)
        builder = file_blocks(source)
        while True:
            try:
                cid, block = next(builder)
            except StopIteration as done:
                root = done.value
                break
            self._put(cid.encode(), block)
        self._files += 1
        self._size += root.size
        return root.cid.encode(), root.tsize

    def _put(self, cid: bytes, block: bytes) -> None:
        if self._write is not None and cid not in self._seen:
            self._seen.add(cid)
            self._append(varint(len(cid) + len(block)) + cid + block)

    def _append(self, frame: bytes) -> None:
        self._buffer.append(frame)
        self._buffered += len(frame)
        if self._buffered > _BUFFER:
            self._flush()

    def _flush(self) -> None:
        if self._write is None or not self._buffer:
            return
        self._write(b"".join(self._buffer))
        self._car_size += self._buffered
        self._buffer = []
        self._buffered = 0

    def _check_not_own(self, entry: os.DirEntry[bytes]) -> None:
        status = entry.stat(follow_symlinks=False)
        if (status.st_dev, status.st_ino) == self._own:
            raise UsageError(
                f"{_shown(entry.path)} is the CAR that is being written, inside the folder that it is made of",
                hint="Write the CAR to a place outside the folder.",
            )


class _Continued:
    """A descriptor whose first bytes were already read, as the stream for file_blocks."""

    def __init__(self, descriptor: int, first: bytes) -> None:
        self._descriptor = descriptor
        self._first = first

    def read(self, size: int, /) -> bytes:
        if self._first:
            first, self._first = self._first, b""
            return first + os.read(self._descriptor, size - len(first))
        return os.read(self._descriptor, size)


def _entry_name(entry: os.DirEntry[bytes]) -> bytes:
    return entry.name


def _stat_top(top: bytes) -> os.stat_result:
    try:
        status = os.lstat(top)
    except (FileNotFoundError, NotADirectoryError):
        raise NotFoundError(f"there is no file or folder {_shown(top)}") from None
    except (OSError, ValueError) as error:
        raise StorageError(f"{_shown(top)} cannot be read: {error}", hint="") from None
    if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
        raise _not_a_file(top, stat.S_ISLNK(status.st_mode))
    return status


def _check_utf8(path: bytes) -> None:
    try:
        path.decode()
    except UnicodeDecodeError:
        raise FormatError(
            f"the name of {_shown(path)} is not valid UTF-8",
            hint="Rename it; IPFS folders hold Unicode names only.",
        ) from None


def _not_a_file(path: bytes, link: bool) -> IpfsmemError:
    if link:
        return UsageError(
            f"{_shown(path)} is a symbolic link; links are refused, because they can lead out of the folder",
            hint="Replace it by what it points at, or remove it.",
        )
    if not os.path.lexists(path):
        return StorageError(f"{_shown(path)} vanished while its folder was read", hint=_CHANGING)
    return UsageError(f"{_shown(path)} is neither a file nor a folder")


def _unreadable(path: bytes, error: OSError) -> IpfsmemError:
    if isinstance(error, FileNotFoundError):
        return StorageError(f"{_shown(path)} vanished while its folder was read", hint=_CHANGING)
    return StorageError(
        f"{_shown(path)} cannot be read: {error.strerror or error}",
        hint="Check that it is there and may be read.",
    )


def _seekable(car: BinaryIO) -> bool:
    return bool(getattr(car, "seekable", lambda: False)())


def _identity(car: BinaryIO) -> tuple[int, int] | None:
    try:
        status = os.fstat(car.fileno())
    except (OSError, AttributeError, ValueError):
        return None
    return status.st_dev, status.st_ino


def _shown(path: bytes) -> str:
    return path.decode("utf-8", "backslashreplace")
