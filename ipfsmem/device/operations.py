"""Record the newest operations on this vault on this device, with time, interface and caller, without text of
memories.

Each operation is one record of a fixed size at the end of the file `operations`, sealed if the vault is, so that the
disk reveals neither words nor lengths. A record is written at once, without fsync: a killed process loses none, a
power failure may lose the last. A failure to record is ignored.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from ipfsmem.device.atomic_files import open_regular, read_file, storage_errors, write_atomic
from ipfsmem.device.lock import file_lock
from ipfsmem.device.replica import Replica
from ipfsmem.errors import IpfsmemError

_FILE: Final = "operations"
#: Bytes of an operation before it is sealed, and of the longest word in it.
_RECORD_BYTES: Final = 448
_MAX_WORD_BYTES: Final = 64
#: Maximum bytes of a file that is read: more than 100,000 records.
_MAX_FILE_BYTES: Final = 64 * 1024 * 1024
#: Maximum seconds to wait for another process before recording.
_WAIT: Final = 2.0
#: Maximum attempts to append a record when other processes interfere.
_MAX_ATTEMPTS: Final = 100


class Operation(msgspec.Struct, frozen=True, array_like=True):
    """An operation: time (milliseconds since 1970 UTC), name, scope and key or name that it was about, interface, caller, and
    `outcome`: "" for success, else the kind of the error."""

    at: int
    operation: str
    scope: str
    key: str
    face: str
    by: str
    outcome: str


@functools.cache
def _decoder() -> msgspec.msgpack.Decoder[Operation]:
    """Return the decoder, created on first use: most calls need none."""
    return msgspec.msgpack.Decoder(Operation)


_encode = msgspec.msgpack.Encoder().encode


def note_operation(replica: Replica, one: Operation, limit: int) -> None:
    """Append an operation to the list, of which the newest `limit` stay; 0 records nothing."""
    path = _path(replica)
    if path is None or not limit or replica.read_only:
        return
    words = [
        word.encode(errors="replace")[:_MAX_WORD_BYTES].decode(errors="ignore")
        for word in msgspec.structs.astuple(one)[1:]
    ]
    short = Operation(one.at, *words)
    with contextlib.suppress(IpfsmemError, OSError):
        row = replica.codec.seal_row(_padded(_encode(short)))
        size = len(row)
        if _add(path, row) >= (limit + max(16, limit // 4)) * size:
            with file_lock(_lock(path), wait=_WAIT):
                _rewrite(path, size, lambda data: b"".join(_rows(data, size)[-limit:]))


def operations(replica: Replica, limit: int) -> Iterator[Operation]:
    """Yield the newest `limit` operations, newest first. A record that does not open is omitted. Raises StorageError."""
    path = _path(replica)
    data = None if path is None else read_file(path, _MAX_FILE_BYTES)
    rows = _rows(data or b"", _size(replica))
    for row in reversed(rows[-limit:] if limit else []):
        one = _opened(replica, row)
        if one is not None:
            yield one


def forget_operations(replica: Replica, before: int, *, dry_run: bool = False) -> int:
    """Remove operations before a time (milliseconds since 1970 UTC) and records that do not open; returns how many. Raises
    StorageError."""
    path = _path(replica)
    data = None if path is None else read_file(path, _MAX_FILE_BYTES)
    if path is None or not data:
        return 0
    size = _size(replica)

    def left(data: bytes) -> bytes:
        opened = ((row, _opened(replica, row)) for row in _rows(data, size))
        return b"".join(row for row, one in opened if one is not None and one.at >= before)

    gone = (len(data) - len(left(data))) // size
    if gone and not dry_run:
        with file_lock(_lock(path)), storage_errors(path, "write"):
            _rewrite(path, size, left)
    return gone


def _rows(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data) - size + 1, size)]


def _size(replica: Replica) -> int:
    """Return the bytes of a record."""
    return len(replica.codec.seal_row(bytes(_RECORD_BYTES)))


def _opened(replica: Replica, row: bytes) -> Operation | None:
    with contextlib.suppress(IpfsmemError, msgspec.DecodeError):
        return _decoder().decode(replica.codec.open_row(row).rstrip(b"\0"))
    return None


def _path(replica: Replica) -> Path | None:
    return None if replica.folder is None else replica.folder / _FILE


def _padded(data: bytes) -> bytes:
    """Pad a msgpack value with zero bytes. The value itself never ends with one: it ends with a text, which has none."""
    return data[:_RECORD_BYTES].ljust(_RECORD_BYTES, b"\0")


def _lock(path: Path) -> Path:
    """Return the path of the lock for replacing this file and for repairing its end."""
    return path.with_suffix(".lock")


def _add(path: Path, row: bytes) -> int:
    """Append a record and return the length of the file. One append needs no lock, except in two cases: a power failure left half
    a record, which is filled up to a whole one that does not open; or another file replaced this one meanwhile."""
    fd = open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        if not _appended(fd, row):
            with file_lock(_lock(path), wait=_WAIT):
                _append_aligned(fd, row)
        now = os.fstat(fd)
        if os.path.samestat(now, path.stat(follow_symlinks=False)):
            return now.st_size
    finally:
        os.close(fd)
    with file_lock(
        _lock(path), wait=_WAIT
    ):  # the replacing process has ended then, with or without the record
        data = read_file(path, _MAX_FILE_BYTES) or b""
        if row not in _rows(data, len(row)):
            fd = open_regular(path, os.O_WRONLY | os.O_APPEND)
            try:
                _append_aligned(fd, row)
            finally:
                os.close(fd)
    return len(data)


def _appended(fd: int, row: bytes) -> bool:
    """Append a record; returns whether it is aligned. The size of the file cannot tell that in advance, as it may include half of
    the append of another process; the position of one's own append can, as appends are serialised. A disk may accept it in
    pieces: then no record of another process may be between them."""
    rest = memoryview(row)
    end: int | None = None
    while rest:
        written = os.write(fd, rest)
        before, end = end, os.lseek(fd, 0, os.SEEK_CUR)
        if before is not None and end != before + written:
            return False
        rest = rest[written:]
    return end is not None and end % len(row) == 0


def _append_aligned(fd: int, row: bytes) -> None:
    """Append a record after half a record (holding the lock); other processes realign their own records. Raises OSError if they
    leave no room for a whole one."""
    for _ in range(_MAX_ATTEMPTS):
        if _appended(fd, row):
            return
        os.write(fd, bytes(-os.lseek(fd, 0, os.SEEK_CUR) % len(row)))
    raise OSError(errno.EAGAIN, "other processes append all the time")


def _rewrite(path: Path, size: int, change: Callable[[bytes], bytes]) -> None:
    """Replace the records, of `size` bytes each (holding the lock). Records that another process adds to the old file meanwhile
    are added to the new one, also if half of one was there before; later ones that process adds again itself."""
    fd = open_regular(path, os.O_RDONLY)
    with os.fdopen(fd, "rb") as old:
        data = old.read(_MAX_FILE_BYTES)
        whole = len(data) - len(data) % size
        write_atomic(path, change(data[:whole]), durable=False)
        if more := b"".join(_rows(data[whole:] + old.read(_MAX_FILE_BYTES), size)):
            fd = open_regular(path, os.O_WRONLY | os.O_APPEND)
            try:
                os.write(fd, more)
            finally:
                os.close(fd)
