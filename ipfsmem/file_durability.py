"""What differs between systems when a file is made durable, replaced or removed: macOS and Windows answer otherwise.

Only these answers; what is written where, and what an error means, is said by who calls. Nothing here opens a file.
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
#: For so many seconds that is tried again: readers, sync programs and virus scanners let go within that.
PATIENCE: Final = 2.0


def flush_to_disk(fd: int) -> None:
    """Wait until the bytes of an open file are on the disk. On macOS `fsync` leaves them in the drive's own memory."""
    full = getattr(_fcntl, "F_FULLFSYNC", None)
    if full is not None and _fcntl is not None:
        try:
            _fcntl.fcntl(fd, full)
            return
        except OSError:
            pass  # a disk of the network, or one that does not know it
    os.fsync(fd)


def retry_while_held_open(act: Callable[[], T]) -> T:
    """Replace or remove a file; on Windows again while somebody has it open. Raises what the last try raised."""
    give_up, pause = time.monotonic() + PATIENCE, 0.01
    while True:
        try:
            return act()
        except PermissionError:
            if not _HELD_OPEN or time.monotonic() >= give_up:
                raise
        time.sleep(pause)
        pause = min(pause * 2, 0.2)
