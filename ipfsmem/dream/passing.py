"""Whether a day is really over: a clock that jumped far ahead makes everything expire at once.

Between the time at which such a clock was right and now no device wrote anything. A vault that was unused for long looks the
same, and only a person can tell them apart. Writes by the wrong clock since prove nothing: the gap stays.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Final, NamedTuple

#: Minimum days without a write that cause doubt.
FAR: Final = 30


class Gap(NamedTuple):
    """The last day with a write before another day ended, and the first one after, or today."""

    before: date
    after: date


def doubtful(ended: date, written: Iterable[date], today: date) -> Gap | None:
    """Return the gap in which a day ended, if it is so long that the day may not be over; None if others' days show that it is,
    and if the day ended before anything was written."""
    before, after = date.min, today
    for day in written:
        if day <= ended:
            before = max(before, day)
        else:
            after = min(after, day)
    far = before > date.min and (after - before).days > FAR
    return Gap(before, after) if far else None
