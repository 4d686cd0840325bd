"""Merges the hits of several phrasings of one query into one list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ipfsmem.recall.recipe import Hit

#: Decimal places to which relative scores are rounded, so that the best hits of all phrasings are equal.
_DIGITS: Final = 9


def fused(lists: Sequence[Sequence[Hit]]) -> list[Hit]:
    """Merge several lists of hits, each best first; ties by id. The score of a hit is its highest relative score in any list; the
    best hit of a list has the relative score 1. The order of the lists has no effect."""
    best: dict[str, Hit] = {}
    for hits in lists:
        top = hits[0].score if hits and hits[0].score > 0 else 1.0
        for id, _, parts in hits:
            shares = {part: value / top for part, value in parts.items()}
            hit = Hit(id, sum(shares.values()), shares)
            if id not in best or _worth(best[id]) < _worth(hit):
                best[id] = hit
    return sorted(best.values(), key=lambda hit: (-round(hit.score, _DIGITS), hit.id))


def _worth(hit: Hit) -> tuple[float, list[tuple[str, float]]]:
    return round(hit.score, _DIGITS), sorted(hit.parts.items())
