"""Store the connections of `connect` in the home folder: the written entries, and a copy of each earlier file.

One file per program in `.agents/`, which is not a valid vault name; only this user can read it and the copies, as
settings of programs contain tokens.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from ipfsmem.agents.edits import Done
from ipfsmem.canonical import read_json
from ipfsmem.device.atomic_files import make_directory, read_file, storage_errors, write_atomic
from ipfsmem.device.config_files import LONGEST
from ipfsmem.device.lock import file_lock
from ipfsmem.errors import FormatError, StorageError

_FOLDER: Final = ".agents"
_VERSION: Final = 1


class FileWritten(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One file of a program after `connect`."""

    path: str
    #: Hex SHA-256 of its new content.
    sha256: str
    done: tuple[Done, ...]
    #: Hex SHA-256 of its old content, whose bytes are stored, too; None: the file was missing.
    before: str | None = None
    #: The initial content of a new file; the folders created for it, the outermost first.
    seed: str = ""
    folders: tuple[str, ...] = ()
    #: True if our entry replaced one of our name by others, which the old copy has.
    others_gave_way: bool = False


class ProgramConnection(msgspec.Struct, frozen=True, kw_only=True):
    """A connected program."""

    program: str
    #: Milliseconds since 1970 UTC.
    since: int
    files: tuple[FileWritten, ...]
    #: The earlier entries of these files until all are written; empty afterwards.
    replaced: tuple[FileWritten, ...] = ()
    v: int = _VERSION

    def of_file(self, path: Path) -> tuple[FileWritten, ...]:
        """Return the entries written to a file: several if an interrupted write leaves unknown which of them it has."""
        return tuple(one for one in (*self.files, *self.replaced) if one.path == str(path))


def folder(home: Path) -> Path:
    """Return the folder of connections."""
    return home / _FOLDER


def known(home: Path, program: str) -> ProgramConnection | None:
    """Return the connection of a program. Raises StorageError, FormatError if it is unreadable."""
    path = _record(home, program)
    data = read_file(path, LONGEST) if folder(home).is_dir() else None
    if data is None:
        return None
    try:
        connection = read_json(data, type=ProgramConnection)
    except msgspec.DecodeError as error:
        raise FormatError(
            f"{path} cannot be read: {error}",
            hint=f"Move it away. Then remove our entries: ipfsmem disconnect {program} --replace",
        ) from None
    if connection.v != _VERSION:
        raise FormatError(f"{path} is of another version of ipfsmem ({connection.v})")
    return connection


def keep(home: Path, connection: ProgramConnection, before: dict[str, bytes]) -> None:
    """Store a connection, and the old bytes of its files, by their SHA-256."""
    make_directory(home)
    make_directory(folder(home))
    for digest, data in before.items():
        if not _copy(home, connection.program, digest).exists():
            write_atomic(_copy(home, connection.program, digest), data)
    write_atomic(
        _record(home, connection.program), msgspec.json.format(msgspec.json.encode(connection), indent=1)
    )
    needed = {one.before for one in (*connection.files, *connection.replaced)}
    _drop_copies(home, connection.program, needed)


def keep_for_good(home: Path, program: str, data: bytes) -> None:
    """Store the bytes of a file with others' changes until a person deletes them."""
    make_directory(home)
    make_directory(folder(home))
    write_atomic(kept_for_good(home, program, data), data)


def kept_for_good(home: Path, program: str, data: bytes) -> Path:
    """Return the path of such a stored file."""
    return folder(home) / f"{program}.{sha256(data).hexdigest()[:32]}.kept"


def before(home: Path, program: str, digest: str) -> bytes:
    """Return the old bytes of a file. Raises StorageError if the copy is missing or changed."""
    data = read_file(_copy(home, program, digest), LONGEST)
    if data is None or sha256(data).hexdigest() != digest:
        raise StorageError(
            f"the copy {_copy(home, program, digest)} is gone, or was changed",
            hint="Remove our entries from the current file: --replace. Preview the change: --dry-run.",
        )
    return data


@contextlib.contextmanager
def locked(home: Path) -> Iterator[None]:
    """Hold the lock of connections. Raises LockedError."""
    make_directory(home)
    lock = home / f"{_FOLDER}.lock"
    with file_lock(lock):
        try:
            yield
        finally:
            with contextlib.suppress(OSError):  # some systems cannot remove an open file
                lock.unlink()


def forget(home: Path, program: str) -> None:
    """Delete the connection and the copies."""
    with storage_errors(_record(home, program), "remove"):
        _record(home, program).unlink(missing_ok=True)
    _drop_copies(home, program, set())
    with contextlib.suppress(OSError):
        folder(home).rmdir()


def _record(home: Path, program: str) -> Path:
    return folder(home) / f"{program}.json"


def _copy(home: Path, program: str, digest: str) -> Path:
    return folder(home) / f"{program}.{digest[:32]}.before"


def _drop_copies(home: Path, program: str, digests: set[str | None]) -> None:
    names = {_copy(home, program, digest).name for digest in digests if digest}
    for path in folder(home).glob(f"{program}.*.before"):
        if path.name not in names:
            with storage_errors(path, "remove"):
                path.unlink(missing_ok=True)
