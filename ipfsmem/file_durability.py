"""Making a file durable, replacing and removing it, where macOS or Windows needs something else than Linux.

What is written where, and what an error means, is the caller's to say. Nothing here opens a file.
"""

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
#: Whether a file that some program has open can be neither replaced nor removed.
_HELD_OPEN: bool = os.name == "nt"
#: For so many seconds a file that is held open is tried again: readers, sync programs and virus scanners let go within that.
PATIENCE: Final = 2.0


def flush_to_disk(fd: int) -> None:
    """Wait until the bytes of an open file are on the disk. On macOS `fsync` leaves them in the drive's own memory."""
    full = getattr(_fcntl, "F_FULLFSYNC", None)
    if full is not None and _fcntl is not None:
        try:
            _fcntl.fcntl(fd, full)
            return
        except OSError:
            pass  # a network disk, or one that does not support it
    os.fsync(fd)


def retry_while_held_open(act: Callable[[], T]) -> T:
    """The result of `act`, which replaces or removes a file. On Windows it is tried again while some program has the file open.

    Raises what the last try raised.
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
