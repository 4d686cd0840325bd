"""What a memory file is worth beside any question, from what its header says and how long it lay untouched."""

from __future__ import annotations

from math import exp, log2

from ipfsmem.recall.ranking import salience

#: Share that fades with each day, by what the header's `decay` says: after so many days a third is left.
DECAY_RATES = {"30d": 1 / 30, "90d": 1 / 90}


def faded(confidence: float, rate: float, idle_days: float, *, uses: int = 0) -> float:
    """What is left of a confidence (0 to 1) of which this share a day fades while nobody uses it; use keeps it up.

    The first day costs nothing. Of times that lie ahead nothing is subtracted.
    """
    left = confidence * exp(-rate * idle_days) if idle_days > 1 else confidence
    return min(1.0, left * (1.0 + log2(max(1, uses))))


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
) -> float:
    """What a memory file is worth, 0 to 1: its salience, times its confidence, faded by its decay since it was last changed or
    used; use keeps it up. An important one does not fade; one that has expired is worth nothing, and is found all the same."""
    if expired:
        return 0.0
    rate = 0.0 if important else DECAY_RATES.get(decay, 0.0)
    return salience(type, tags, important=important) * faded(
        1.0 if confidence is None else confidence, rate, idle_days, uses=uses
    )
