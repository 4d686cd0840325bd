"""Which entries go out of sight when there are more than the settings allow: four orders, each of which leaves an important one to the
end. Nothing is deleted by it."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import nsmallest
from typing import Literal, NamedTuple

#: `first`: what was written first goes first, however often it was changed since; `oldest`: what was changed longest ago;
#: `confidence`: what is least certain; `salience`: what is worth least. Of equals the one changed longest ago.
Order = Literal["first", "oldest", "confidence", "salience"]


class Ranked(NamedTuple):
    """An entry as its place in such an order depends on it."""

    key: str
    #: ISO 8601; "" counts as the earliest.
    created: str
    #: The clock of its last write.
    changed: str
    #: 0 to 1.
    confidence: float = 1.0
    salience: float = 0.5
    important: bool = False


def beyond(entries: Iterable[Ranked], most: int, order: Order) -> list[str]:
    """The keys that are more than `most`, in the order in which they go. 0: as many as there are may stay."""
    found = list(entries)
    if not most or len(found) <= most:
        return []
    return [one.key for one in nsmallest(len(found) - most, found, key=lambda one: _place(one, order))]


def _place(one: Ranked, order: Order) -> tuple[bool, str | float, str, str]:
    if order == "first":
        return one.important, one.created, one.changed, one.key
    if order == "confidence":
        return one.important, one.confidence, one.changed, one.key
    if order == "salience":
        return one.important, one.salience, one.changed, one.key
    return one.important, "", one.changed, one.key
