"""Whether a day is really over: a clock that jumped far ahead makes everything expire at once.

Between the moment at which such a clock was right and now nothing was written, by whatever device. A memory that was not in use for long
looks the same, and only a person can tell one from the other. What was written by the wrong clock since proves nothing: the gap stays.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Final, NamedTuple

#: Days without anything that leave doubt.
FAR: Final = 30


class Gap(NamedTuple):
    """The last day on which something was written before another day ended, and the first one after, or today."""

    before: date
    after: date


def doubtful(ended: date, written: Iterable[date], today: date) -> Gap | None:
    """The gap in which a day ended, where it is so long that nobody knows whether it did; None where others' days show that it did, and
    where the day was over before anything was written."""
    before, after = date.min, today
    for day in written:
        if day <= ended:
            before = max(before, day)
        else:
            after = min(after, day)
    far = before > date.min and (after - before).days > FAR
    return Gap(before, after) if far else None
