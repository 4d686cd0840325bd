"""Memories that say nearly the same, for a person who tidies up. Nothing is changed."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ipfsmem.errors import UsageError
from ipfsmem.memories.memories import Listed, Memories, NotHereError
from ipfsmem.recall.duplicates import How
from ipfsmem.recall.duplicates import duplicates as pairs_of


class Duplicate(msgspec.Struct, frozen=True):
    """Two memories. `how`: `same` in all words, `contained` the first in the second, or `alike`; `similarity`: the share of their
    different words that both have, 0 to 1."""

    key: str
    scope: str
    other: str
    other_scope: str
    how: How
    similarity: float


def duplicates(parts: Sequence[Memories], listed: Sequence[Listed], least: float) -> list[Duplicate]:
    """The pairs among these memories of some scopes, by their texts without headers; where a text is empty by its description.

    Raises UsageError for a share that is none.
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
    return [
        Duplicate(
            pair.one, scopes[pair.one], pair.other, scopes[pair.other], pair.how, round(pair.similarity, 3)
        )
        for pair in pairs_of(texts, least)
    ]
