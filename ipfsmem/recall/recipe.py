"""The score: each part and its weight in one table, and the sum.

Which entries are examined, and how the parts are computed, is in `ranking` and `ranking_arrays`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Final, Literal, NamedTuple

import msgspec

from ipfsmem.errors import ConfigError
from ipfsmem.recall.index import GROUPED, MEMORY, NUMBER, QUESTION, TIME, Index, too_long
from ipfsmem.recall.priority import HALF_LIFE_DAYS

#: Each part and its weight. Those of entries of a group were fitted on one half of two kinds of conversations, between two people
#: and of people with agents, `file` on the set of `bench/retrieval_set.py`; salience and recency are chosen, not fitted.
WEIGHTS = {
    "words": 2.5,  # mean BM25 of the entry and of its best passage
    "meaning": 2.5,  # its similarity, if one is given
    "own": 3.5,  # of an entry of a group: words and meaning together, weighted
    "alone": 7.5,  # the same of an entry without a group
    "beside": 1.5,  # mean own score of the two entries before it in its group and the two after; its own if there are none
    "answer": 1.0,  # own score of the entry right before it, if that one is a question
    "best": 2.25,  # the best own score in its group
    "cover": 3.0,  # share, by idf, of the question's terms that its best passage has, or those on either side
    "group": 0.5,  # BM25 of the whole group
    "by": 1.0,  # the question names its speaker
    "date": 1.0,  # the question names its day, month or year
    "when": 1.0,  # the question asks when, and the entry has a time
    "number": 1.0,  # it asks how many, and the entry has a number
    "question": -0.5,  # the entry is itself a question
    "long": -2.0,  # the logarithm of how many times it has 400 characters
    "day": 2.0,  # of an entry without a group, in place of `date`
    "file": 2.5,  # of a memory file, so that it is not behind entries of groups because more parts apply to these
    "header": 2.0,  # of a memory file: share, by idf, of the terms that its header has
    "salience": 0.5,  # of a memory file: its salience, independent of the question
    "recency": 0.5,  # of a memory file: halved each 7 days since its last update
}
#: Upper bound of the difference of sums of the same numbers in another order.
ROUNDING: Final = 1e-9
#: Decimal places of a part of a score, so that rounding all parts changes less than that bound.
_DIGITS: Final = 10
#: Parts with negative weights.
_AGAINST = frozenset({"question", "long"})
#: The weights of words and meaning together, of an entry of a group and of any other.
Together = Literal["own", "alone"]
#: Former parts: settings that name them stay valid, without effect.
_GONE = frozenset({"before", "length"})


class Hit(NamedTuple):
    """An entry that was found. The score is the sum of its parts."""

    id: str
    score: float
    parts: dict[str, float]


class RankingWeights(NamedTuple):
    """The weight of each part: at least 0, except for `question` and `long`. And the half-life of recency in days."""

    weights: Mapping[str, float] = WEIGHTS
    half_life: float = HALF_LIFE_DAYS

    def with_meaning(self, share: float) -> RankingWeights:
        """Return the same with a share of the weight of meaning, 0 to 1."""
        return self._replace(weights={**self.weights, "meaning": self.weights["meaning"] * share})


USUAL: Final = RankingWeights()


def weigh(weights: Mapping[str, float], half_life: float = HALF_LIFE_DAYS) -> RankingWeights:
    """Return the default weights with some replaced. Raises ConfigError for an unknown part, or a negative weight where none is
    allowed."""
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
    """Of more than `all` entries only the `best` by words, or by meaning, and this many `groups` are examined."""

    all: int
    best: int
    groups: int


class QueryFeatures(msgspec.Struct, frozen=True):
    """Features of a question besides its words."""

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
    """Return an entry with its score, from its parts."""
    return hits_of(index, [(number, match)], features, weighed)[0]


def hits_of(
    index: Index,
    matches: Iterable[tuple[int, MatchFeatures]],
    features: QueryFeatures,
    weighed: RankingWeights,
) -> list[Hit]:
    """Return some entries, by number, with their scores."""
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
            # `recency`, without a call for each entry
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
    """Return the best `limit` hits, best first; ties by id. Sums of the same numbers in another order differ in their last
    digits, so each part and the sum are rounded: every implementation gives the same answer."""
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
    """Return the factor for the weights of words and meaning of an entry, so that both together have the weight of that part."""
    return weights[together] / (weights["words"] + (weights["meaning"] if with_meaning else 0.0) or 1.0)
