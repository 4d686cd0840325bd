"""Finds pairs of memories with nearly the same content. Changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec

from ipfsmem.errors import UsageError
from ipfsmem.memories.memories import MemoryStore
from ipfsmem.memories.memory_reader import MemorySummary, NotHereError
from ipfsmem.memories.search_index import entry_id
from ipfsmem.recall.duplicates import How
from ipfsmem.recall.duplicates import duplicates as pairs_of

#: Minimum cosine of the vectors of two texts with nearly the same meaning.
MIN_COSINE: Final = 0.9


class Duplicate(msgspec.Struct, frozen=True):
    """Two similar memories. `how`: `same` (all words are equal), `contained` (the first in the second) or `alike`, with
    `similarity` the share of their distinct words that occur in both, 0 to 1; or `meaning`, with `similarity` the cosine of their
    vectors by the embedding model of recall."""

    key: str
    scope: str
    other: str
    other_scope: str
    how: How | Literal["meaning"]
    similarity: float


def duplicates(
    parts: Sequence[MemoryStore], listed: Sequence[MemorySummary], least: float
) -> list[Duplicate]:
    """Return the similar pairs among these memories of some scopes. Compares the texts without headers, or the description of a
    memory without a text; then the vectors of recall's model.

    Raises UsageError for an invalid `least`.
    """
    if not 0.5 <= least <= 1:
        raise UsageError(f"the similarity is a share of the words, 0.5 to 1, not {least:g}")
    by_scope = {part.scope: part for part in parts}
    texts: dict[str, str] = {}
    scopes = {one.key: one.scope for one in listed}
    with parts[0].replica.reading():
        for one in listed:
            part = by_scope[one.scope]
            try:
                reading = part.reading_of(one.key, part.replica.store.entry(part.name(one.key)))
            except NotHereError:
                continue
            if reading is not None:
                file = reading.readable
                texts[one.key] = file.body if file.body.strip() else file.description
    pairs = [
        Duplicate(
            pair.one, scopes[pair.one], pair.other, scopes[pair.other], pair.how, round(pair.similarity, 3)
        )
        for pair in pairs_of(texts, least)
    ]
    known_pairs = {frozenset((one.key, one.other)) for one in pairs}
    return pairs + [
        Duplicate(one, scopes[one], other, scopes[other], "meaning", round(cosine, 3))
        for one, other, cosine in pairs_by_meaning(parts, sorted(texts), scopes)
        if frozenset((one, other)) not in known_pairs
    ]


def pairs_by_meaning(
    parts: Sequence[MemoryStore], keys: Sequence[str], scopes: Mapping[str, str]
) -> list[tuple[str, str, float]]:
    """Return the pairs of memories whose vectors have at least the cosine `MIN_COSINE`, highest first. `scopes`: the scope of each key.
    Uses stored vectors only and asks no model."""
    meaning = parts[0].meaning()
    vectors = None if meaning is None else meaning.at_hand()
    if vectors is None:
        return []
    store, by_scope = parts[0].replica.store, {part.scope: part for part in parts}
    with parts[0].replica.reading():
        names = {key: by_scope[scopes[key]].name(key) for key in keys}
        rows = {
            key: vectors.at.get(entry_id(name, store.raw(name) or b""), -1) for key, name in names.items()
        }
    there = [key for key in keys if rows[key] >= 0]
    pairs = vectors.pairs([rows[key] for key in there], MIN_COSINE)
    return [
        (there[one], there[two], cosine)
        for one, two, cosine in sorted(pairs, key=lambda pair: (-pair[2], pair[0], pair[1]))
    ]
