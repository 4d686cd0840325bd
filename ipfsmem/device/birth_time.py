"""Read the creation time of a file or folder, which identifies it together with its inode number, which can be
reused.

Linux returns it by `statx` (man 2 statx), for which Python has a function since 3.15; macOS and Windows by `os.stat`.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

_AT_FDCWD: Final = -100
#: AT_SYMLINK_NOFOLLOW, STATX_BTIME.
_NOFOLLOW, _BTIME = 0x100, 0x800
#: `struct statx` has 256 bytes; the positions of its mask and of the birth time (seconds, then nanoseconds).
_SIZE, _MASK, _SECONDS, _NANOSECONDS = 256, slice(0, 4), slice(80, 88), slice(88, 92)


def birth_time(path: Path) -> int:
    """Return the creation time of the file at a path in nanoseconds since 1970; 0 if unknown. Links are not followed."""
    if sys.platform != "linux":
        try:
            status = path.lstat()
        except OSError:
            return 0
        seconds: float = getattr(status, "st_birthtime", 0.0)
        return getattr(status, "st_birthtime_ns", int(seconds * 1_000_000_000))
    statx = _statx()
    if statx is None:
        return 0
    import ctypes

    buffer = ctypes.create_string_buffer(_SIZE)
    if statx(_AT_FDCWD, os.fsencode(path), _NOFOLLOW, _BTIME, buffer) != 0:
        return 0
    mask, seconds_, nanoseconds = (
        int.from_bytes(buffer.raw[part], sys.byteorder) for part in (_MASK, _SECONDS, _NANOSECONDS)
    )
    return seconds_ * 1_000_000_000 + nanoseconds if mask & _BTIME else 0


@functools.cache
def _statx() -> Callable[..., int] | None:
    """Return the C library's `statx`; None if it has none."""
    import ctypes  # only needed with connected projects, and slower to load than most of a hook's modules

    try:
        function: Callable[..., int] = ctypes.CDLL(None).statx
    except (OSError, AttributeError):
        return None
    return function
