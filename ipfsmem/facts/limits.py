"""Decides which entries are hidden beyond the limits in the settings, by one of four orders; important entries are hidden last."""

from __future__ import annotations

from collections.abc import Collection
from heapq import nsmallest
from typing import Literal, NamedTuple

#: The entries to hide first. `first`: the earliest created; `oldest`: the earliest changed; `confidence`: the lowest confidence;
#: `salience`: the lowest priority. Ties by the earliest change.
Order = Literal["first", "oldest", "confidence", "salience"]


class Ranked(NamedTuple):
    """The data that determines an entry's place in such an order."""

    key: str
    #: ISO 8601; "" is the earliest.
    created: str
    #: The clock of its last write.
    changed: str
    #: 0 to 1.
    confidence: float = 1.0
    salience: float = 0.5
    important: bool = False


class FactRank(NamedTuple):
    """The sort key of an entry: the least is hidden first."""

    important: bool
    by: str | float
    #: The clock of its last write.
    changed: str
    key: str


def beyond(places: Collection[FactRank], most: int) -> list[FactRank]:
    """Return the entries beyond the first `most`, in the order in which they are hidden. `most` 0: no limit."""
    return nsmallest(len(places) - most, places) if most else []


def place_of(one: Ranked, order: Order) -> FactRank:
    """Return the sort key of an entry in an order."""
    if order == "first":
        return FactRank(one.important, one.created, one.changed, one.key)
    if order == "confidence":
        return FactRank(one.important, one.confidence, one.changed, one.key)
    if order == "salience":
        return FactRank(one.important, one.salience, one.changed, one.key)
    return FactRank(one.important, "", one.changed, one.key)
