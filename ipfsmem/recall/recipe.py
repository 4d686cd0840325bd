"""What a score is the sum of: each part and its weight in one table, what a memory is worth beside any question, and the sum itself.

Which entries are looked at, and how what speaks for one is counted, is not said here (`ranking`, `ranking_arrays`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ipfsmem.errors import ConfigError
from ipfsmem.recall.index import GROUPED, MEMORY, NUMBER, QUESTION, TIME, Index
from ipfsmem.recall.worth import HALF_LIFE_DAYS, recency

#: Each part and its weight. Those of entries of a group were fitted on conversations, `file` on the set of
#: `bench/retrieval_set.py`; the last three are chosen, not fitted.
WEIGHTS = {
    "words": 2.0,  # BM25 of the entry
    "meaning": 3.0,  # its similarity, where one is given
    "before": 3.0,  # mean own score of the two entries before it in its group; its own where there is none
    "best": 2.0,  # the best own score in its group
    "cover": 3.0,  # share, by idf, of the question's terms that it has, or two entries on either side
    "group": 1.5,  # BM25 of the whole group
    "date": 2.0,  # the question names its day, month or year
    "when": 2.0,  # the question asks when, and the entry has a time
    "number": 1.0,  # it asks how many, and the entry has a number
    "question": -1.5,  # the entry is itself a question
    "length": 5.0,  # the logarithm of its characters
    "file": 2.5,  # of a memory file: what a turn of middling length has, so that a file is not behind turns because these are long
    "header": 2.0,  # of a memory file: share, by idf, of the terms that its header has
    "salience": 0.5,  # of a memory file: what it is worth beside any question
    "recency": 0.5,  # of a memory file: halved each 7 days since its last update or use
}


class Hit(NamedTuple):
    """An entry that was found. The score is the sum of its parts."""

    id: str
    score: float
    parts: dict[str, float]


class Weighed(NamedTuple):
    """What each part counts: not less than 0, but for `question`. And the days after which recency is a half."""

    weights: Mapping[str, float] = WEIGHTS
    half_life: float = HALF_LIFE_DAYS

    def with_meaning(self, share: float) -> Weighed:
        """The same with so much of the weight of meaning, 0 to 1."""
        return self._replace(weights={**self.weights, "meaning": self.weights["meaning"] * share})


USUAL: Final = Weighed()


def weigh(weights: Mapping[str, float], half_life: float = HALF_LIFE_DAYS) -> Weighed:
    """The usual weights with some in their place. Raises ConfigError for a part that there is not, or that cannot count less than
    nothing."""
    unknown = sorted(weights.keys() - WEIGHTS.keys())
    if unknown:
        raise ConfigError(
            f"recall has no part {unknown[0][:40]!a}, so it has no weight",
            hint=f"Its parts are {', '.join(WEIGHTS)}.",
        )
    for part, weight in weights.items():
        if weight < 0 and part != "question":
            raise ConfigError(f"the weight of {part} is 0 or more, not {weight}")
    return Weighed({**WEIGHTS, **weights}, half_life)


class Limits(NamedTuple):
    """Of more than `all` entries only the `best` by words, or by meaning, and so many `groups` are looked at."""

    all: int
    best: int
    groups: int


class Asked(NamedTuple):
    """What a question asks beside its words."""

    today: int
    dated: set[int]
    when: bool
    number: bool


class Found(NamedTuple):
    """What speaks for an entry, each between 0 and 1. `meaning`: None where no similarities are given."""

    words: float
    meaning: float | None
    before: float
    best: float
    cover: float
    group: float
    header: float
    length: float


def hit_of(index: Index, number: int, found: Found, asked: Asked, weighed: Weighed) -> Hit:
    """An entry with its score, by what speaks for it."""
    parts = {
        "words": found.words,
        "before": found.before,
        "best": found.best,
        "cover": found.cover,
        "group": found.group,
        "date": float(number in asked.dated),
    }
    if found.meaning is not None:
        parts["meaning"] = found.meaning
    marks = index.columns.marks[number]
    if marks & MEMORY:
        parts["file"] = 1.0
        parts["header"] = found.header
        parts["salience"] = min(1.0, max(0.0, index.columns.salience[number]))
        day = max(index.columns.days[number], index.used.get(index.ids[number], 0))
        parts["recency"] = recency(asked.today - day, weighed.half_life) if day else 0.0
    elif marks & GROUPED:
        parts["when"] = float(asked.when and bool(marks & TIME))
        parts["number"] = float(asked.number and bool(marks & NUMBER))
        parts["question"] = float(bool(marks & QUESTION))
        parts["length"] = found.length
    sums = {part: counts for part, value in parts.items() if (counts := weighed.weights[part] * value)}
    return Hit(index.ids[number], sum(sums.values()), sums)
