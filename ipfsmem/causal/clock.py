"""Hybrid logical clock (HLC, format section 5): wall time that never decreases, as 16 hex digits.

The clock only orders concurrent siblings; dots record which write saw which. Time is an argument, in milliseconds
since 1970 UTC: this module never reads the system clock.
"""

from __future__ import annotations

from ipfsmem.errors import FormatError, LimitError
from ipfsmem.lazy_pattern import lazy_pattern

#: Maximum milliseconds by which clock values of other devices can advance a clock ahead of its own wall time.
MAX_AHEAD_MS = 5 * 60 * 1000
#: Milliseconds by which a value can be ahead of the local clock; beyond that, one of the two clocks is wrong.
FAR_AHEAD_MS = 24 * 60 * 60 * 1000
MAX_MS = 2**48 - 1
MAX_COUNTER = 2**16 - 1
#: The clock value of imported texts; sorts before every other write (format section 1.5).
ZERO = "0" * 16

_HLC = lazy_pattern(r"[0-9a-f]{16}")


def hlc(ms: int, counter: int = 0) -> str:
    """Encode a clock value: 48 bits of milliseconds, 16 bits of counter. Raises LimitError if out of range."""
    if not 0 <= ms <= MAX_MS or not 0 <= counter <= MAX_COUNTER:
        raise LimitError(f"clock value {ms} ms, counter {counter} does not fit in 48 and 16 bits")
    return f"{ms << 16 | counter:016x}"


def hlc_ms(value: str) -> int:
    """Return the milliseconds since 1970 UTC of a clock value. Raises FormatError for malformed text."""
    return _number(value) >> 16


def next_hlc(last: str, now_ms: int) -> str:
    """Return the clock value of a new write: greater than `last`, not less than `now_ms`.

    A full counter overflows into the milliseconds. Raises LimitError at 2^64-1.
    """
    value = max(_number(last) + 1, _clamp(now_ms) << 16)
    if value >> 64:
        raise LimitError("the clock of this memory has reached its last value")
    return f"{value:016x}"


def hlc_after_seeing(last: str, seen: str, now_ms: int) -> str:
    """Advance `last` to the value `seen` of another device, to at most five minutes after `now_ms`."""
    limit = min(_clamp(now_ms) + MAX_AHEAD_MS, MAX_MS) << 16
    return f"{max(_number(last), min(_number(seen), limit)):016x}"


def corrected_hlc(last: str, now_ms: int) -> str | None:
    """Return the value that replaces `last` after the user confirms that the system clock is right; None if `last` is
    at most a day ahead, since wall time then catches up.

    This is the only function that sets a clock back. Existing writes keep their clock values.
    """
    if hlc_ms(last) <= _clamp(now_ms) + FAR_AHEAD_MS:
        return None
    return hlc(_clamp(now_ms))


def _number(value: str) -> int:
    if not _HLC.fullmatch(value):
        raise FormatError(f"{value!r} is not a clock value of 16 hex digits")
    return int(value, 16)


def _clamp(ms: int) -> int:
    # A device whose clock is set before 1970 or far in the future must still be able to write.
    return min(max(ms, 0), MAX_MS)
