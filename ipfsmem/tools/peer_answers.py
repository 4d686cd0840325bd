"""What was found or listed, in the exact texts of another program (`peer_texts`): own texts only, the best first."""

from __future__ import annotations

from collections.abc import Iterable

from ipfsmem.causal.clock import hlc_ms
from ipfsmem.memories.readings import Reading
from ipfsmem.memories.recall import Recall
from ipfsmem.recall.recipe import WEIGHTS
from ipfsmem.tools import peer_texts
from ipfsmem.tools.peer_texts import Texts, Told

#: What a score comes to at most: theirs end at 1.
_MOST = sum(weight for weight in WEIGHTS.values() if weight > 0)


def of_recall(texts: Texts, found: Recall) -> str:
    """What was found, memories and moments, those that fit best first."""
    if not found.searched:
        return peer_texts.NOTHING_STORED
    own = [(hit.score, _told(hit.reading)) for hit in found.hits if hit.reading.own]
    own += [
        (hit.score, Told(hit.text, hit.moment.type, hit.moment.kind, hit.moment.at))
        for hit in found.moments
        if hit.moment.own
    ]
    ranked = sorted(own, key=lambda one: -one[0])
    return peer_texts.recalled(texts, (one._replace(score=min(1.0, score / _MOST)) for score, one in ranked))


def of_list(texts: Texts, found: Iterable[Reading | None], limit: int | None = None) -> str:
    """A list of memories, at most so many, the newest first as there; those that are not here stand in none."""
    told = (_told(one) for one in found if one is not None and one.own)
    return peer_texts.listed(texts, sorted(told, key=lambda one: -one.at)[:limit])


def _told(reading: Reading) -> Told:
    file = reading.readable
    at = hlc_ms(reading.hlc) if reading.hlc else 0
    return Told(file.body, file.fields.get("category") or file.type, file.type, at)
