"""The hits of several phrasings of one question as one list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ipfsmem.recall.recipe import Hit

#: Decimal places to which hits are compared: the best of each phrasing come to the same.
_DIGITS: Final = 9


def fused(lists: Sequence[Sequence[Hit]]) -> list[Hit]:
    """The hits of some lists, each the best first, as one; of equal ones the first by id. A hit counts as in the list where it comes
    nearest to the best of that list, which counts 1. The order of the lists changes nothing."""
    found: dict[str, Hit] = {}
    for hits in lists:
        top = hits[0].score if hits and hits[0].score > 0 else 1.0
        for id, _, parts in hits:
            shares = {part: value / top for part, value in parts.items()}
            hit = Hit(id, sum(shares.values()), shares)
            if id not in found or _worth(found[id]) < _worth(hit):
                found[id] = hit
    return sorted(found.values(), key=lambda hit: (-round(hit.score, _DIGITS), hit.id))


def _worth(hit: Hit) -> tuple[float, list[tuple[str, float]]]:
    return round(hit.score, _DIGITS), sorted(hit.parts.items())
