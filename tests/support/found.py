"""Searches some scopes below the operation `recall` and loads the texts of the matches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ipfsmem.memories.memories import MemoryStore
from ipfsmem.memories.recall import Hit, Matches, MomentHit, Question, search


class FoundTexts(NamedTuple):
    """The matches of a query and their texts."""

    matches: Matches
    hits: list[Hit]
    moments: list[MomentHit]


def found_in(parts: Sequence[MemoryStore], query: str | None, **how: Any) -> FoundTexts:
    """Search for a query; `how`: further fields of `Question`."""
    matches = search(parts, Question(query, **how), read=True)
    hits = [hit for one in matches.memories if (hit := one.hit) is not None]
    return FoundTexts(matches, hits, [hit for one in matches.moments if (hit := one.moment_hit) is not None])
