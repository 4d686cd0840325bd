"""Computes the priority factors of a memory file from its header, for `recall/priority`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from ipfsmem.bundle.memory_file import MemoryFile
from ipfsmem.facts.categories import CONFLICT
from ipfsmem.recall.priority import PriorityFactors
from ipfsmem.wording import local_day


def priority_factors(file: MemoryFile, written: int) -> PriorityFactors:
    """Return the priority factors in the header of a memory. `written`: when it was written, in milliseconds since 1970 UTC; 0 if
    unknown."""
    at, until = _last_change(file, written), day_of(file.expires)
    return PriorityFactors(
        file.type,
        worth_tags(file.tags),
        file.important,
        file.confidence,
        file.fields.get("decay", ""),
        at.toordinal() if at else 0,
        until.toordinal() if until else 0,
    )


def expired_on(file: MemoryFile, today: date) -> bool:
    """Return whether a memory expired before today, according to its header."""
    until = day_of(file.expires)
    return until is not None and until < today


def worth_tags(tags: Iterable[str]) -> int:
    """Return the number of tags that raise a memory's rank; the automatic tag `conflict` does not."""
    return sum(tag != CONFLICT for tag in tags)


def _last_change(file: MemoryFile, written: int) -> date | None:
    """Return the later of the day of the last change in the header and the day of the write."""
    there = local_day(written) if written else None
    day = day_of(file.updated) or day_of(file.created)
    return min(day, there) if day and there else day or there


def day_of(text: str) -> date | None:
    """Return the day that an ISO 8601 date or instant begins with."""
    try:
        return date.fromisoformat(text[:10]) if text else None
    except ValueError:
        return None
