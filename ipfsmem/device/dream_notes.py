"""Store the progress of dreams on this device, and requests to abort one, in small files that every process can read.

A dream is an automatic clean-up of memories. `dream.json` has times, a phase and the name of an error, and no text of
memories. The process that dreams locks `dream.lock`, which the system releases when the process ends. `dream.abort`
exists while an abort is requested.
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
#: Seconds that a dream waits for the lock: longer than a check whether a dream runs holds it.
_WAIT: Final = 0.5


class DreamNotes(msgspec.Struct, frozen=True, omit_defaults=True):
    """Times in milliseconds since 1970 UTC, 0 for never."""

    #: When a dream last began, and the phase that it reached.
    began: int = 0
    phase: str = ""
    #: When one last succeeded; a failed dream leaves it unchanged, so that the next may begin as soon.
    worked: int = 0
    #: When one last failed, and the name of the error; 0 once one succeeded.
    failed: int = 0
    failure: str = ""


def dream_notes(folder: Path) -> DreamNotes:
    """Return the notes in the folder of a vault; a damaged file reads as empty."""
    with contextlib.suppress(IpfsmemError, msgspec.DecodeError):
        data = read_file(folder / _NOTES, _MAX)
        if data is not None:
            return read_json(data, DreamNotes)
    return DreamNotes()


def note_dreaming(folder: Path, **changes: int | str) -> None:
    """Record changes. A failure to record is ignored."""
    with contextlib.suppress(IpfsmemError):
        before = dream_notes(folder)
        after = msgspec.structs.replace(before, **changes)
        if after != before:
            write_atomic(folder / _NOTES, msgspec.json.encode(after))


@contextlib.contextmanager
def dreaming(folder: Path) -> Iterator[None]:
    """Hold the lock that permits one dream at a time, and clear an old request to abort. Raises LockedError if a
    dream runs."""
    try:
        with file_lock(folder / _LOCK, wait=_WAIT):
            _clear_request(folder)
            yield
            _clear_request(folder)
    except LockedError as error:
        raise LockedError(
            "another process runs a dream on this vault",
            hint="Show its progress: ipfsmem dream status. Abort it: ipfsmem dream abort",
        ) from error


def is_dreaming(folder: Path) -> bool:
    """Return whether a process dreams over the vault in a folder."""
    return is_held(folder / _LOCK)


def ask_to_abort(folder: Path) -> None:
    """Request that the current dream aborts. Raises StorageError."""
    write_atomic(folder / _ABORT, b"{}")


def is_to_abort(folder: Path) -> bool:
    """Return whether an abort is requested."""
    return (folder / _ABORT).exists()


def _clear_request(folder: Path) -> None:
    try:
        (folder / _ABORT).unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(f"cannot remove {folder / _ABORT}: {error.strerror}") from error
