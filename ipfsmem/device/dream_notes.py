"""How dreams went on this device, and the wish to abort one: small files that any process may read, with no word of a memory.

`dream.json` has moments, a phase and the name of an error; `dream.lock` is held by the process that dreams, and the system lets go of it
when that process ends, however it ends. `dream.abort` is there while somebody wishes it to be aborted.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from ipfsmem.canonical import read_json
from ipfsmem.device.atomic_files import read_file, write_atomic
from ipfsmem.device.lock import file_lock, is_held
from ipfsmem.errors import IpfsmemError, LockedError, StorageError

_NOTES: Final = "dream.json"
_LOCK: Final = "dream.lock"
_ABORT: Final = "dream.abort"
_MAX = 16 * 1024
#: Seconds that a dream waits for the lock: longer than whoever looks whether somebody dreams has it.
_WAIT: Final = 0.5


class DreamNotes(msgspec.Struct, frozen=True, omit_defaults=True):
    """Moments in milliseconds since 1970 UTC, 0 for never."""

    #: When one last began, and how far it came.
    began: int = 0
    phase: str = ""
    #: When one last ended well; a dream that fails leaves it as it was, so that the next may begin as soon.
    worked: int = 0
    #: When one last failed, and by which error; 0 once one ended well.
    failed: int = 0
    failure: str = ""


def dream_notes(folder: Path) -> DreamNotes:
    """What is noted of the memory in a folder; what is damaged is as if it were not there."""
    with contextlib.suppress(IpfsmemError, msgspec.DecodeError):
        data = read_file(folder / _NOTES, _MAX)
        if data is not None:
            return read_json(data, DreamNotes)
    return DreamNotes()


def note_dreaming(folder: Path, **changes: int | str) -> None:
    """Note something. Failing to note it fails nothing."""
    with contextlib.suppress(IpfsmemError):
        before = dream_notes(folder)
        after = msgspec.structs.replace(before, **changes)
        if after != before:
            write_atomic(folder / _NOTES, msgspec.json.encode(after))


@contextlib.contextmanager
def dreaming(folder: Path) -> Iterator[None]:
    """Be the one process that dreams. Raises LockedError where another does; an old wish to abort is none of this dream."""
    try:
        with file_lock(folder / _LOCK, wait=_WAIT):
            _take_back(folder)
            yield
            _take_back(folder)
    except LockedError as error:
        raise LockedError(
            "another process is dreaming over this memory",
            hint="See how far it is: ipfsmem dream status. End it: ipfsmem dream abort",
        ) from error


def is_dreaming(folder: Path) -> bool:
    """Whether a process dreams over the memory in a folder."""
    return is_held(folder / _LOCK)


def ask_to_abort(folder: Path) -> None:
    """Wish the dream to be aborted. Raises StorageError."""
    write_atomic(folder / _ABORT, b"{}")


def is_to_abort(folder: Path) -> bool:
    """Whether somebody wishes that."""
    return (folder / _ABORT).exists()


def _take_back(folder: Path) -> None:
    try:
        (folder / _ABORT).unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(f"cannot remove {folder / _ABORT}: {error.strerror}") from error
