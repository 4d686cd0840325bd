"""What a memory file is worth beside any question, from what its header says and how long it lay untouched."""

from __future__ import annotations

from datetime import date
from math import exp, log2

import msgspec

HALF_LIFE_DAYS = 7
#: What a confidence gains when the same is said again.
REINFORCED = 0.05
#: Share that fades with each day, by what the header's `decay` says: after so many days a third is left.
DECAY_RATES = {"never": 0.0, "30d": 1 / 30, "90d": 1 / 90}
#: The same for a confidence without a `decay`, unless the settings say otherwise: it halves in 70 days.
FADING = 0.01


def salience(type: str, tags: int, *, important: bool = False) -> float:
    """What a memory file of this type and with so many tags is worth beside any question, 0 to 1."""
    if important:
        return 1.0
    bonus = {"feedback": 0.3, "user": 0.2, "project": 0.1}.get(type, 0.0)
    return min(1.0, 0.5 + bonus + min(0.05 * tags, 0.2))


def recency(days: float, half_life: float = HALF_LIFE_DAYS) -> float:
    """1 for what was changed or used now, a half after so many days; what lies ahead is now."""
    return float(0.5 ** (max(0.0, days) / half_life))


def faded(confidence: float, rate: float, idle_days: float, *, uses: int = 0) -> float:
    """What is left of a confidence (0 to 1) of which this share a day fades while nobody uses it; use keeps it up.

    The first day costs nothing. Of times that lie ahead nothing is subtracted.
    """
    left = confidence * exp(-rate * idle_days) if idle_days > 1 else confidence
    return min(1.0, left * (1.0 + log2(max(1, uses))))


def reinforced(confidence: float, again: float | None = None) -> float:
    """The confidence of what is said once more: a little above the mean of both, at most 1. `again`: how sure it is said now; None is
    as before."""
    return min(1.0, (confidence + (confidence if again is None else again)) / 2 + REINFORCED)


def rate_of(decay: str, confidence: float | None, *, important: bool, fading: float = FADING) -> float:
    """The share that fades with each day."""
    if important:
        return 0.0
    return DECAY_RATES.get(decay, fading if confidence is not None else 0.0)


def worth(
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
    """What a memory file is worth, 0 to 1: its salience, times its confidence, faded since it was last changed or used; use keeps it
    up. `decay` says how fast, and of a confidence without one `fading`. An important one does not fade; one that has expired is worth
    nothing."""
    if expired:
        return 0.0
    rate = rate_of(decay, confidence, important=important, fading=fading)
    return salience(type, tags, important=important) * faded(
        1.0 if confidence is None else confidence, rate, idle_days, uses=uses
    )


class Merits(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a memory is worth on any day is worked out of this, so that its text need not be read again."""

    type: str
    tags: int
    important: bool
    confidence: float | None
    decay: str
    #: The day of the last change, and the last on which it holds, as `date.toordinal`; 0 for none.
    changed: int
    until: int

    def expired(self, today: date) -> bool:
        """Whether it held until an earlier day."""
        return 0 < self.until < today.toordinal()

    def confidence_on(
        self, today: date, *, used: int = 0, uses: int = 0, fading: float = FADING
    ) -> float | None:
        """What is left of its confidence on a day; None where it has none."""
        if self.confidence is None:
            return None
        last = max(self.changed, used)
        rate = rate_of(self.decay, self.confidence, important=self.important, fading=fading)
        return faded(self.confidence, rate, today.toordinal() - last if last else 0, uses=uses)

    def worth(self, today: date, *, used: int = 0, uses: int = 0, fading: float = FADING) -> float:
        """What it is worth beside any question, 0 to 1. `used`: the day on which it was used last, 0 for none, and how often it was;
        `fading`: the share of a confidence without a decay that fades with each day."""
        last = max(self.changed, used)
        return worth(
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
        """What says which memories stand in a list that has no room for all: worth and recency, which count as much in the ranking of
        a question as each other."""
        last = max(self.changed, used)
        fresh = recency(today.toordinal() - last) if last else 0.0
        return self.worth(today, used=used, uses=uses, fading=fading) + (
            0.0 if self.expired(today) else fresh
        )
