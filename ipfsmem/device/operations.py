"""What was done with this memory on this device, by which face, when and for whom: a bounded list of the newest, with no text of a memory.

Each operation is one record of a fixed size at the end of the file `operations`, sealed where the memory is, so that neither words nor
lengths of names are seen. A record is written at once and not waited for: a process that is killed loses none, a power failure may lose
the last. Failing to note something fails nothing.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from ipfsmem.device.atomic_files import open_regular, read_file, write_atomic
from ipfsmem.device.lock import file_lock
from ipfsmem.device.replica import Replica
from ipfsmem.errors import IpfsmemError

_FILE: Final = "operations"
#: Bytes of an operation before it is sealed, and those of the longest word in it.
_ROOM: Final = 448
_LONGEST: Final = 64
#: Bytes of a file that is read: what 100,000 records take, and more.
_MOST: Final = 64 * 1024 * 1024


class Operation(msgspec.Struct, frozen=True, array_like=True):
    """Something that was done: when (milliseconds since 1970 UTC), its name, the scope and the key or name that it was about, by which
    face and for whom, and `outcome`, "" where it went well, else the kind of the error."""

    at: int
    operation: str
    scope: str
    key: str
    face: str
    by: str
    outcome: str


_decode = msgspec.msgpack.Decoder(Operation).decode
_encode = msgspec.msgpack.Encoder().encode


def note_operation(replica: Replica, one: Operation, kept: int) -> None:
    """Add one to the list, of which the newest `kept` stay; 0: none is noted."""
    path = _path(replica)
    if path is None or not kept or replica.read_only:
        return
    words = (
        word.encode(errors="replace")[:_LONGEST].decode(errors="ignore")
        for word in msgspec.structs.astuple(one)[1:]
    )
    short = Operation(one.at, *words)
    with contextlib.suppress(IpfsmemError, OSError):
        row = replica.codec.seal_row(_padded(_encode(short)))
        with file_lock(path.with_suffix(".lock"), wait=0.1):
            size = _add(path, row)
            if size >= (kept + max(16, kept // 4)) * len(row):
                _cut(path, len(row), kept)


def operations(replica: Replica, kept: int) -> Iterator[Operation]:
    """The newest `kept`, the newest first. A record that does not open is left out. Raises StorageError."""
    path = _path(replica)
    data = None if path is None else read_file(path, _MOST)
    if data is None:
        return
    size = len(replica.codec.seal_row(bytes(_ROOM)))
    rows = [data[at : at + size] for at in range(0, len(data) - size + 1, size)]
    for row in reversed(rows[-kept:] if kept else []):
        with contextlib.suppress(IpfsmemError, msgspec.DecodeError):
            yield _decode(replica.codec.open_row(row).rstrip(b"\0"))


def operations_size(folder: Path) -> int:
    """Bytes of the list."""
    with contextlib.suppress(OSError):
        return (folder / _FILE).stat().st_size
    return 0


def forget_operations(replica: Replica, before: int, kept: int, *, dry_run: bool = False) -> int:
    """Take those before a moment out of the list (milliseconds since 1970 UTC); how many. Raises StorageError."""
    path = _path(replica)
    if path is None or not path.exists():
        return 0
    with file_lock(path.with_suffix(".lock")):
        known = list(operations(replica, kept))
        left = [one for one in known if one.at >= before]
        if len(left) < len(known) and not dry_run:
            rows = [replica.codec.seal_row(_padded(_encode(one))) for one in reversed(left)]
            write_atomic(path, b"".join(rows))
    return len(known) - len(left)


def _path(replica: Replica) -> Path | None:
    return None if replica.folder is None else replica.folder / _FILE


def _padded(data: bytes) -> bytes:
    """One msgpack value never ends with a zero byte here: it ends with a text, which has none."""
    return data[:_ROOM].ljust(_ROOM, b"\0")


def _add(path: Path, row: bytes) -> int:
    """The size afterwards. What a crash left of half a record is taken away first."""
    fd = open_regular(path, os.O_WRONLY | os.O_CREAT)
    try:
        whole = os.fstat(fd).st_size // len(row) * len(row)
        os.ftruncate(fd, whole)
        os.lseek(fd, whole, os.SEEK_SET)
        os.write(fd, row)
        return whole + len(row)
    finally:
        os.close(fd)


def _cut(path: Path, size: int, kept: int) -> None:
    data = read_file(path, _MOST) or b""
    write_atomic(path, data[-kept * size :], durable=False)
