"""Read a clock that cannot be set: milliseconds since the machine started, including sleep, and the id of that boot."""

from __future__ import annotations

import functools
import sys
import time
from pathlib import Path

import msgspec

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class ClockReading(msgspec.Struct, frozen=True, array_like=True):
    """A moment by both clocks. Encoded as a list: keys that an earlier version holds unlocked stay unlocked."""

    #: Milliseconds since 1970 UTC, by the clock that can be set.
    wall: int
    #: Milliseconds since the machine was started.
    up: int
    #: Id of the start; "" where the system has none.
    boot: str


def moment(now: int) -> ClockReading:
    """Return the current moment; `now` is the clock that can be set, in milliseconds since 1970 UTC."""
    return ClockReading(now, _milliseconds_up(), boot_id())


def _milliseconds_up() -> int:
    # Linux's CLOCK_MONOTONIC stops while the machine sleeps; macOS has no CLOCK_BOOTTIME, and its CLOCK_MONOTONIC continues.
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    if clock is None and sys.platform == "darwin":
        clock = time.CLOCK_MONOTONIC
    nanoseconds = time.monotonic_ns() if clock is None else time.clock_gettime_ns(clock)
    return nanoseconds // 1_000_000


@functools.cache
def boot_id() -> str:
    """Return an id of this start of the machine, "" if the system has none (then a restart shows in the clock that begins again)."""
    if sys.platform == "darwin":
        return _of_sysctl("kern.bootsessionuuid")
    try:
        return _BOOT_ID.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _of_sysctl(name: str) -> str:
    import ctypes

    buffer, size = ctypes.create_string_buffer(128), ctypes.c_size_t(128)
    failed = ctypes.CDLL(None).sysctlbyname(name.encode(), buffer, ctypes.byref(size), None, 0)
    return "" if failed else buffer.value.decode("ascii", "replace")
