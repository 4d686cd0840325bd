"""The hybrid logical clock (format section 5): wall time that never goes back by itself, as 16 hex digits.

It breaks ties between concurrent siblings of texts: which write saw which is told by dots alone. It never
reads the machine's clock; the time comes in as milliseconds since 1970 UTC, so that a test can hold it still.
"""

from __future__ import annotations

from ipfsmem.errors import FormatError, LimitError
from ipfsmem.lazy_pattern import lazy_pattern

#: A clock is never pulled further than this ahead of its own wall time by what others wrote.
MAX_AHEAD_MS = 5 * 60 * 1000
#: A value that is this far ahead of a machine's clock was made by a clock that was wrong, or that clock is wrong now.
FAR_AHEAD_MS = 24 * 60 * 60 * 1000
MAX_MS = 2**48 - 1
MAX_COUNTER = 2**16 - 1
#: Older than every real write: the clock value of imported texts (format section 1.5).
ZERO = "0" * 16

_is_hlc = lazy_pattern(r"[0-9a-f]{16}").fullmatch


def hlc(ms: int, counter: int = 0) -> str:
    """The text of a clock value: 48 bits of milliseconds and 16 of counter. Raises LimitError outside of these."""
    if not 0 <= ms <= MAX_MS or not 0 <= counter <= MAX_COUNTER:
        raise LimitError(f"clock value {ms} ms, counter {counter} does not fit in 48 and 16 bits")
    return f"{ms << 16 | counter:016x}"


def hlc_ms(value: str) -> int:
    """Milliseconds since 1970 UTC of a clock value. Raises FormatError for other text."""
    return _number(value) >> 16


def next_hlc(last: str, now_ms: int) -> str:
    """The clock value for a new write: later than `last`, and not before `now_ms`.

    A full counter runs over into the milliseconds. Raises LimitError when 2^64-1 was reached.
    """
    value = max(_number(last) + 1, _clamp(now_ms) << 16)
    if value >> 64:
        raise LimitError("the clock of this memory has reached its last value")
    return f"{value:016x}"


def hlc_after_seeing(last: str, seen: str, now_ms: int) -> str:
    """`last` after a value of another device was seen: not before it, but at most five minutes ahead of `now_ms`."""
    limit = min(_clamp(now_ms) + MAX_AHEAD_MS, MAX_MS) << 16
    return f"{max(_number(last), min(_number(seen), limit)):016x}"


def corrected_hlc(last: str, now_ms: int) -> str | None:
    """The clock value that takes the place of `last` when a person says that the machine's clock is right; None when `last`
    is at most a day ahead of it, for then time catches up.

    The one way in which a clock goes back. What was written keeps its values; which write saw which is told by dots.
    """
    if hlc_ms(last) <= _clamp(now_ms) + FAR_AHEAD_MS:
        return None
    return hlc(_clamp(now_ms))


def _number(value: str) -> int:
    if not _is_hlc(value):
        raise FormatError(f"{value!r} is not a clock value of 16 hex digits")
    return int(value, 16)


def _clamp(ms: int) -> int:
    # A machine may believe to be before 1970 or far in the future; its writes are still kept.
    return min(max(ms, 0), MAX_MS)
