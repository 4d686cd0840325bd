"""Computes the priority of a memory file, independent of a query, from its header and the time since its last change or use."""

from __future__ import annotations

from datetime import date
from math import exp, log2

import msgspec

HALF_LIFE_DAYS = 7
#: Increase of a confidence when a fact is repeated.
REINFORCED = 0.05
#: Daily loss of confidence by the header's `decay`: 1/e (37%) is left after 30 or 90 days.
DECAY_RATES = {"never": 0.0, "30d": 1 / 30, "90d": 1 / 90}
#: Default daily loss of a confidence without a `decay`: half is left after 70 days.
FADING = 0.01


def salience(type: str, tags: int, *, important: bool = False) -> float:
    """Return the salience of a memory file of this type and number of tags, independent of a question, 0 to 1."""
    if important:
        return 1.0
    bonus = {"feedback": 0.3, "user": 0.2, "project": 0.1}.get(type, 0.0)
    return min(1.0, 0.5 + bonus + min(0.05 * tags, 0.2))


def recency(days: float, half_life: float = HALF_LIFE_DAYS) -> float:
    """Return 1 for a change or use today, 0.5 after `half_life` days; a day in the future counts as today."""
    return float(0.5 ** (max(0.0, days) / half_life))


def faded(confidence: float, rate: float, idle_days: float, *, uses: int = 0) -> float:
    """Return a confidence (0 to 1) after fading by the share `rate` per day without use; uses raise it.

    It does not fade within the first day, nor for a time in the future.
    """
    rest = confidence * exp(-rate * idle_days) if idle_days > 1 else confidence
    return min(1.0, rest * (1.0 + log2(max(1, uses))))


def reinforced(confidence: float, again: float | None = None) -> float:
    """Return the confidence after a repetition: slightly above the mean of both, at most 1. `again`: the confidence of the
    repetition; None: the same."""
    return min(1.0, (confidence + (confidence if again is None else again)) / 2 + REINFORCED)


def rate_of(decay: str, confidence: float | None, *, important: bool, fading: float = FADING) -> float:
    """Return the share of a confidence that fades each day."""
    if important:
        return 0.0
    return DECAY_RATES.get(decay, fading if confidence is not None else 0.0)


def priority(
    type: str,
    tags: int,
    *,
    important: bool = False,
    confidence: float | None = None,
    decay: str = "",
    idle_days: float = 0.0,
    uses: int = 0,
    expired: bool = False,
    fading: float = FADING,
) -> float:
    """Return the priority of a memory file, 0 to 1: its salience times its confidence, faded since the last change or use; uses
    raise it. `decay` sets the rate of fading, and `fading` the rate of a confidence without a decay. An important memory does not
    fade; an expired memory has 0."""
    if expired:
        return 0.0
    rate = rate_of(decay, confidence, important=important, fading=fading)
    return salience(type, tags, important=important) * faded(
        1.0 if confidence is None else confidence, rate, idle_days, uses=uses
    )


class PriorityFactors(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The inputs for the priority of a memory on any day, so that its text need not be read again."""

    type: str
    tags: int
    important: bool
    confidence: float | None
    decay: str
    #: The day of the last change, and the last valid day, as `date.toordinal`; 0 for none.
    changed: int
    until: int

    def expired(self, today: date) -> bool:
        """Return whether it expired before a day."""
        return 0 < self.until < today.toordinal()

    def confidence_on(
        self, today: date, *, used: int = 0, uses: int = 0, fading: float = FADING
    ) -> float | None:
        """Return its faded confidence on a day; None without a confidence."""
        if self.confidence is None:
            return None
        last = max(self.changed, used)
        rate = rate_of(self.decay, self.confidence, important=self.important, fading=fading)
        return faded(self.confidence, rate, today.toordinal() - last if last else 0, uses=uses)

    def priority(self, today: date, *, used: int = 0, uses: int = 0, fading: float = FADING) -> float:
        """Return its priority on a day, 0 to 1. `used`: the day of the last use, 0 for none; `uses`: the number of uses; `fading`:
        the daily loss of a confidence without a decay."""
        last = max(self.changed, used)
        return priority(
            self.type,
            self.tags,
            important=self.important,
            confidence=self.confidence,
            decay=self.decay,
            idle_days=today.toordinal() - last if last else 0,
            uses=uses,
            expired=self.expired(today),
            fading=fading,
        )

    def place(self, today: date, *, used: int = 0, uses: int = 0, fading: float = FADING) -> float:
        """Return the sort key of a memory in a list that has not room for all: the sum of priority and recency."""
        last = max(self.changed, used)
        fresh = recency(today.toordinal() - last) if last else 0.0
        return self.priority(today, used=used, uses=uses, fading=fading) + (
            0.0 if self.expired(today) else fresh
        )
