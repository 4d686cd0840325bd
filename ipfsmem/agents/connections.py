"""What `connect` remembers of each program, in the home: what it wrote into which file, and a copy of the file before.

One file a program in `.agents/`, which no memory can be called; it and the copies are readable by this user alone, for
settings of programs hold tokens.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from ipfsmem.agents.config_files import LONGEST
from ipfsmem.agents.edits import Done
from ipfsmem.canonical import read_json
from ipfsmem.device.atomic_files import make_directory, read_file, storage_errors, write_atomic
from ipfsmem.device.lock import file_lock
from ipfsmem.errors import FormatError, StorageError

_FOLDER: Final = ".agents"
_VERSION: Final = 1


class FileWritten(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One file of a program after `connect`."""

    path: str
    #: Hex SHA-256 of what it was left as.
    sha256: str
    done: tuple[Done, ...]
    #: Hex SHA-256 of what it was before, whose bytes are kept beside; None: there was no file.
    before: str | None = None
    #: What a new file begins with; folders that were made for it, the outermost first.
    seed: str = ""
    folders: tuple[str, ...] = ()
    #: Whether an entry by somebody else, which is in the copy of before, gave way to ours.
    others_gave_way: bool = False


class Connection(msgspec.Struct, frozen=True, kw_only=True):
    """A program that was connected."""

    program: str
    #: Milliseconds since 1970.
    since: int
    files: tuple[FileWritten, ...]
    #: What stood in these files until they are all written; empty from then on.
    replaced: tuple[FileWritten, ...] = ()
    v: int = _VERSION

    def of_file(self, path: Path) -> tuple[FileWritten, ...]:
        """What was written there: more than one when it is not known which was, as the writing was interrupted."""
        return tuple(one for one in (*self.files, *self.replaced) if one.path == str(path))


def folder(home: Path) -> Path:
    """Where this is kept."""
    return home / _FOLDER


def known(home: Path, program: str) -> Connection | None:
    """What is remembered of a program. Raises StorageError, FormatError when it cannot be read."""
    path = _record(home, program)
    data = read_file(path, LONGEST) if folder(home).is_dir() else None
    if data is None:
        return None
    try:
        found = read_json(data, type=Connection)
    except msgspec.DecodeError as error:
        raise FormatError(
            f"{path} cannot be read: {error}",
            hint=f"Move it away. What it stood for is then taken out with: ipfsmem disconnect {program} --replace",
        ) from None
    if found.v != _VERSION:
        raise FormatError(f"{path} is of another version of ipfsmem ({found.v})")
    return found


def keep(home: Path, connection: Connection, before: dict[str, bytes]) -> None:
    """Remember a connection, and the bytes of its files before, by their SHA-256."""
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
    """Keep the bytes of a file that others wrote in, until somebody removes them."""
    make_directory(home)
    make_directory(folder(home))
    write_atomic(kept_for_good(home, program, data), data)


def kept_for_good(home: Path, program: str, data: bytes) -> Path:
    """Where they are kept then."""
    return folder(home) / f"{program}.{sha256(data).hexdigest()[:32]}.kept"


def before(home: Path, program: str, digest: str) -> bytes:
    """The bytes of a file as it was. Raises StorageError when the copy is gone or is not that any more."""
    data = read_file(_copy(home, program, digest), LONGEST)
    if data is None or sha256(data).hexdigest() != digest:
        raise StorageError(
            f"the copy {_copy(home, program, digest)} is gone, or was changed",
            hint="Have ours taken out of the file as it is now: --replace. What would be written is shown by --dry-run.",
        )
    return data


@contextlib.contextmanager
def locked(home: Path) -> Iterator[None]:
    """One at a time: what is remembered is not changed by anybody else meanwhile. Raises LockedError."""
    make_directory(home)
    lock = home / f"{_FOLDER}.lock"
    with file_lock(lock):
        try:
            yield
        finally:
            with contextlib.suppress(OSError):  # some systems remove no file that is open
                lock.unlink()


def forget(home: Path, program: str) -> None:
    """Let go of what is remembered, and of the copies."""
    with storage_errors(_record(home, program), "remove"):
        _record(home, program).unlink(missing_ok=True)
    _drop_copies(home, program, set())
    with contextlib.suppress(OSError):
        folder(home).rmdir()


def _record(home: Path, program: str) -> Path:
    return folder(home) / f"{program}.json"


def _copy(home: Path, program: str, digest: str) -> Path:
    return folder(home) / f"{program}.{digest[:32]}.before"


def _drop_copies(home: Path, program: str, kept: set[str | None]) -> None:
    names = {_copy(home, program, digest).name for digest in kept if digest}
    for path in folder(home).glob(f"{program}.*.before"):
        if path.name not in names:
            with storage_errors(path, "remove"):
                path.unlink(missing_ok=True)
