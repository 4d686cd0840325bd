"""What a memory file says of its worth in its header, as `recall/worth` takes it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from ipfsmem.bundle.memory_file import MemoryFile
from ipfsmem.facts.categories import CONFLICT
from ipfsmem.recall.worth import Merits
from ipfsmem.wording import local_day


def merits_of(file: MemoryFile, written: int) -> Merits:
    """What the header of a memory says that was written down here at this moment, in ms since 1970 UTC; 0 when that is not known."""
    at, until = _last_change(file, written), day_of(file.expires)
    return Merits(
        file.type,
        worth_tags(file.tags),
        file.important,
        file.confidence,
        file.fields.get("decay", ""),
        at.toordinal() if at else 0,
        until.toordinal() if until else 0,
    )


def expired_on(file: MemoryFile, today: date) -> bool:
    """Whether a memory held until an earlier day, as its header says."""
    until = day_of(file.expires)
    return until is not None and until < today


def worth_tags(tags: Iterable[str]) -> int:
    """The number of tags that raise a memory's rank; the automatic tag `conflict` does not."""
    return sum(tag != CONFLICT for tag in tags)


def _last_change(file: MemoryFile, written: int) -> date | None:
    """The day of the last change: as the header says, unless that lies behind the day on which it was written down here."""
    there = local_day(written) if written else None
    said = day_of(file.updated) or day_of(file.created)
    return min(said, there) if said and there else said or there


def day_of(text: str) -> date | None:
    """The day that an ISO 8601 date or instant begins with."""
    try:
        return date.fromisoformat(text[:10]) if text else None
    except ValueError:
        return None
