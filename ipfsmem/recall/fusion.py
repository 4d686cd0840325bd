"""The hits of several phrasings of one question as one list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ipfsmem.recall.recipe import Hit

#: Places that count nearly as much as the first.
_FLAT: Final = 60


def fused(lists: Sequence[Sequence[Hit]]) -> list[Hit]:
    """The hits of some lists, the best first; of equal ones the first by id. Reciprocal ranks are added: a list gives its hit at
    place n 1 / (60 + n). The parts of a score are what each list gives. The order of the lists changes no score."""
    found: dict[str, dict[str, float]] = {}
    for number, hits in enumerate(lists, 1):
        for place, hit in enumerate(hits, 1):
            found.setdefault(hit.id, {})[f"phrasing {number}"] = 1 / (_FLAT + place)
    made = [Hit(id, sum(sorted(parts.values())), parts) for id, parts in found.items()]
    return sorted(made, key=lambda hit: (-hit.score, hit.id))
