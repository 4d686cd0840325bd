"""Differences of macOS and Windows in flushing, replacing and removing files. Opens no file."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Final, TypeVar

try:
    import fcntl as _fcntl
except ImportError:  # Windows
    _fcntl = None  # type: ignore[assignment]

T = TypeVar("T")
#: Whether this system refuses to replace or remove a file that is open.
_HELD_OPEN: bool = os.name == "nt"
#: Seconds of retries for a file that is open elsewhere: readers, sync programs and virus scanners close it within that.
PATIENCE: Final = 2.0


def flush_to_disk(fd: int) -> None:
    """Wait until the bytes of an open file are on the disk. On macOS `fsync` leaves them in the drive's cache."""
    full = getattr(_fcntl, "F_FULLFSYNC", None)
    if full is not None and _fcntl is not None:
        try:
            _fcntl.fcntl(fd, full)
            return
        except OSError:
            pass  # a network disk, or one that does not support it
    os.fsync(fd)


def retry_while_held_open(act: Callable[[], T]) -> T:
    """Return the result of `act`, which replaces or removes a file; on Windows, retry while another program has it open.

    Raises the error of the last attempt.
    """
    give_up, pause = time.monotonic() + PATIENCE, 0.01
    while True:
        try:
            return act()
        except PermissionError:
            if not _HELD_OPEN or time.monotonic() >= give_up:
                raise
        time.sleep(pause)
        pause = min(pause * 2, 0.2)
