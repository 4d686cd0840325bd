"""Defines the score of an entry: its parts, their weights, and their sum.

`ranking` and `ranking_arrays` select the entries and compute the parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Final, Literal, NamedTuple

import msgspec

from ipfsmem.errors import ConfigError
from ipfsmem.recall.index import GROUPED, MEMORY, NUMBER, QUESTION, TIME, Index, too_long
from ipfsmem.recall.priority import HALF_LIFE_DAYS

#: The weight of each part. Weights for entries of a group were fitted on half of two data sets, conversations between two people
#: and of people with agents; `file` on the set of `bench/retrieval_set.py`. Salience and recency were chosen, not fitted.
WEIGHTS = {
    "words": 2.5,  # mean BM25 of the entry and of its best passage
    "meaning": 2.5,  # similarity of the embedding, if there is one
    "own": 3.5,  # of an entry of a group: weighted mean of words and meaning
    "alone": 7.5,  # the same of an entry without a group
    "beside": 1.5,  # mean own score of the two entries before and the two after it in its group; its own score if it has none
    "answer": 1.0,  # own score of the preceding entry, if that is a question
    "best": 2.25,  # the best own score in its group
    "cover": 3.0,  # share, by idf, of the query's terms in its best passage and the neighbouring ones
    "group": 0.5,  # BM25 of the whole group
    "by": 1.0,  # the query names its speaker
    "date": 1.0,  # the query names its day, month or year
    "when": 1.0,  # the query asks for a time, and the entry has one
    "number": 1.0,  # the query asks for a number, and the entry has one
    "question": -0.5,  # the entry is itself a question
    "long": -2.0,  # logarithm of its length in units of 400 characters
    "day": 2.0,  # of an entry without a group, in place of `date`
    "file": 2.5,  # of a memory file: compensates for the parts that only entries of groups have
    "header": 2.0,  # of a memory file: share, by idf, of the query's terms in its header
    "salience": 0.5,  # of a memory file: its salience, independent of the query
    "recency": 0.5,  # of a memory file: halved for each 7 days since its last update
}
#: Upper bound of the difference of sums of the same numbers in another order.
ROUNDING: Final = 1e-9
#: Decimal places of the parts of a score, so that rounding all parts changes less than `ROUNDING`.
_DIGITS: Final = 10
#: Parts with negative weights.
_AGAINST = frozenset({"question", "long"})
#: The parts that combine words and meaning: of an entry of a group, and of any other entry.
Together = Literal["own", "alone"]
#: Removed parts, which settings may still name, without effect.
_GONE = frozenset({"before", "length"})


class Hit(NamedTuple):
    """An entry that was found. `score` is the sum of `parts`."""

    id: str
    score: float
    parts: dict[str, float]


class RankingWeights(NamedTuple):
    """The weight of each part (at least 0, except for `question` and `long`), and the half-life of recency in days."""

    weights: Mapping[str, float] = WEIGHTS
    half_life: float = HALF_LIFE_DAYS

    def with_meaning(self, share: float) -> RankingWeights:
        """Return the weights with that of meaning multiplied by `share`, 0 to 1."""
        return self._replace(weights={**self.weights, "meaning": self.weights["meaning"] * share})


USUAL: Final = RankingWeights()


def weigh(weights: Mapping[str, float], half_life: float = HALF_LIFE_DAYS) -> RankingWeights:
    """Return the default weights with some replaced. Raises ConfigError for an unknown part or an invalid negative weight."""
    unknown = sorted(weights.keys() - WEIGHTS.keys() - _GONE)
    if unknown:
        raise ConfigError(
            f"recall has no part {unknown[0][:40]!a}, so it has no weight",
            hint=f"Its parts are {', '.join(WEIGHTS)}.",
        )
    for part, weight in weights.items():
        if weight < 0 and part not in _AGAINST:
            raise ConfigError(f"the weight of {part} is 0 or more, not {weight}")
    known_weights = {part: weight for part, weight in weights.items() if part in WEIGHTS}
    return RankingWeights({**WEIGHTS, **known_weights}, half_life)


class CandidateLimits(msgspec.Struct, frozen=True):
    """In an index of more than `all` entries, only the `best` entries by words or by meaning, and `groups` groups, are examined."""

    all: int
    best: int
    groups: int


class QueryFeatures(msgspec.Struct, frozen=True):
    """Features of a query in addition to its terms."""

    today: int
    dated: set[int]
    when: bool
    number: bool


class MatchFeatures(msgspec.Struct, frozen=True):
    """The parts of an entry's score, each between 0 and 1. `meaning`: None without similarities."""

    words: float
    meaning: float | None
    beside: float
    answer: float
    best: float
    cover: float
    group: float
    header: float


def hit_of(
    index: Index, number: int, match: MatchFeatures, features: QueryFeatures, weighed: RankingWeights
) -> Hit:
    """Compute the score of an entry from its parts."""
    return hits_of(index, [(number, match)], features, weighed)[0]


def hits_of(
    index: Index,
    matches: Iterable[tuple[int, MatchFeatures]],
    features: QueryFeatures,
    weighed: RankingWeights,
) -> list[Hit]:
    """Compute the scores of some entries, by number."""
    columns, weights, hits = index.columns, weighed.weights, list[Hit]()
    own_weights = dict[tuple[Together, bool], float]()
    for number, match in matches:
        marks = columns.marks[number]
        is_grouped = bool(marks & GROUPED)
        kind: tuple[Together, bool] = "own" if is_grouped else "alone", match.meaning is not None
        if (own := own_weights.get(kind)) is None:
            own = own_weights[kind] = own_weight(weights, *kind)
        dated = "date" if is_grouped else "day"
        parts = {"words": own * match.words, "cover": match.cover, dated: float(number in features.dated)}
        if match.meaning is not None:
            parts["meaning"] = own * match.meaning
        if marks & MEMORY:
            parts["file"] = 1.0
            parts["header"] = match.header
            parts["salience"] = min(1.0, max(0.0, columns.salience[number]))
            day = columns.days[number]
            # inlined `recency`, to avoid a call for each entry
            parts["recency"] = 0.5 ** (max(0.0, features.today - day) / weighed.half_life) if day else 0.0
        elif is_grouped:
            parts["beside"] = match.beside
            parts["answer"] = match.answer
            parts["best"] = match.best
            parts["group"] = match.group
            parts["by"] = float(match.header > 0)
            parts["when"] = float(features.when and bool(marks & TIME))
            parts["number"] = float(features.number and bool(marks & NUMBER))
            parts["question"] = float(bool(marks & QUESTION))
            parts["long"] = too_long(columns.sizes[number])
        sums = {}
        for part, value in parts.items():
            if counts := weights[part] * value:
                sums[part] = counts
        hits.append(Hit(index.ids[number], sum(sums.values()), sums))
    return hits


_score = attrgetter("score")


def best_first(hits: Iterable[Hit], limit: int) -> list[Hit]:
    """Return the best `limit` hits, best first; ties by id. The parts and the sum are rounded, so that every implementation returns
    the same order although floating-point sums differ in their last digits."""
    ranked = sorted(hits, key=_score, reverse=True)
    if not ranked or limit <= 0:
        return []
    least = ranked[min(limit, len(ranked)) - 1].score - ROUNDING
    rounded = []
    for id, score, parts in ranked:
        if score < least:
            break
        sums = {}
        for part, value in parts.items():
            if near := round(value, _DIGITS):
                sums[part] = near
        rounded.append(Hit(id, round(sum(sums.values()), _DIGITS), sums))
    rounded.sort(key=attrgetter("id"))
    rounded.sort(key=_score, reverse=True)  # keeps the order of equal scores
    return rounded[:limit]


def own_weight(weights: Mapping[str, float], together: Together, with_meaning: bool) -> float:
    """Return the factor by which to scale the weights of words and meaning so that their sum is the weight of the part
    `together`."""
    return weights[together] / (weights["words"] + (weights["meaning"] if with_meaning else 0.0) or 1.0)
