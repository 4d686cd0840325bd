"""Which entries go out of sight when there are more than the settings allow: four orders, each of which leaves an important one to the
end. Nothing is deleted by it."""

from __future__ import annotations

from collections.abc import Collection
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


class Place(NamedTuple):
    """Where an entry stands in an order: the least goes first."""

    important: bool
    by: str | float
    #: The clock of its last write.
    changed: str
    key: str


def beyond(places: Collection[Place], most: int) -> list[Place]:
    """Those that are more than `most`, in the order in which they go. 0: as many as there are may stay."""
    return nsmallest(len(places) - most, places) if most else []


def place_of(one: Ranked, order: Order) -> Place:
    """Where an entry stands in an order."""
    if order == "first":
        return Place(one.important, one.created, one.changed, one.key)
    if order == "confidence":
        return Place(one.important, one.confidence, one.changed, one.key)
    if order == "salience":
        return Place(one.important, one.salience, one.changed, one.key)
    return Place(one.important, "", one.changed, one.key)
