"""Entries ranked for a question: a sum of parts, each between 0 and its weight, of which one table says all.

Of few entries all are looked at that anything speaks for, of very many only the best by words or by meaning. What a group can
come to at most says which need no looking at, so the hits are those of the whole computation.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable, Mapping
from datetime import date
from functools import cache
from heapq import heappush, heappushpop, nlargest
from importlib.util import find_spec
from math import inf
from typing import NamedTuple

from ipfsmem.recall.dates import days_named
from ipfsmem.recall.index import MEMORY, NUMBER, QUESTION, SIZE, TIME, Document, Index
from ipfsmem.recall.postings import Row, bm25, lowered
from ipfsmem.recall.recipe import (
    USUAL,
    WEIGHTS,
    Asked,
    Found,
    Hit,
    Limits,
    Weighed,
    hit_of,
    weigh,
)
from ipfsmem.recall.spelling import spelled
from ipfsmem.recall.terms import terms
from ipfsmem.recall.worth import HALF_LIFE_DAYS, recency, salience

__all__ = [
    "HALF_LIFE_DAYS",
    "MAX_TERMS",
    "USUAL",
    "WEIGHTS",
    "Document",
    "Hit",
    "Index",
    "Weighed",
    "rank",
    "recency",
    "salience",
    "weigh",
]

#: Of more entries than these only the best by words, or by meaning, and the best groups are looked at.
_ALL, _BEST, _BEST_GROUPS = 5_000, 1_000, 40
#: NumPy ranks an index of so many entries or more, and where it must be loaded first, after so many questions.
_MANY, _FIRST = 2_000, 10
#: Share of the weight of meaning for a question of which a term was spelled anew: the model read what stands there. It was
#: chosen on the half to tune on of the set of `bench/retrieval_set.py`: none at all finds as much there, and would leave a question
#: with a name that is in no entry without its meaning.
_MISREAD = 0.25
#: Different terms of a question that count.
MAX_TERMS = 64
#: More than sums of the same numbers in another order differ by.
_ROUNDING = 1e-9
_asks_when = re.compile(r"\b(?:when|what (?:day|date|month|year|time)|how long ago)\b", re.I)
_asks_number = re.compile(r"\bhow (?:many|much|old|often|long|far|big|tall|high|heavy|fast|large)\b", re.I)


class _Words:
    """The words of a question, and what they say of each entry: BM25, not yet scaled, and which of the terms it has, a bit each.

    Adding a term's shares costs as much as entries have it, and what all have says too little to bring another entry among the
    best. So of very many entries such common terms are added only to those that are looked at.
    """

    def __init__(self, index: Index, wanted: list[str], only: frozenset[int] | None) -> None:
        self.index, self.only = index, only
        self.rows = [index.words.row(term) for term in wanted]
        self.groups = [index.group_row(term) for term in wanted] if index.has_groups else []
        #: By number of the entry.
        self.scores, self.has = [0.0] * len(index.ids), [0] * len(index.ids)
        #: Which of the terms a conversation or day has; see `group_scores`.
        self.group_has: dict[int, int] = {}
        self._total = sum(row.worth for row in self.rows)
        self._covers: dict[int, float] = {}
        #: Terms that were not added to all entries, and the entries to which they were.
        self._common: list[tuple[int, Row]] = []
        self._settled: set[int] = set()
        self._seen = self._add()
        #: Which of the terms the header of an entry has.
        self.headers: dict[int, int] = {}
        for bit, term in enumerate(wanted):
            for number in index.headers.row(term).numbers:
                self.headers[number] = self.headers.get(number, 0) | 1 << bit

    def _add(self) -> Collection[int]:
        """Adds the terms, the rarest first. Gives the entries that have one of them, without such as are surely not among the best."""
        scores, has, seen = self.scores, self.has, set[int]()
        many = len(self.index) > _ALL
        rest = sum(row.most for row in self.rows)
        rows = sorted(enumerate(self.rows), key=lambda one: -one[1].most)
        for at, (bit, row) in enumerate(rows):
            if many and 2 * len(row.numbers) > len(seen) >= _BEST:
                least = _at_place([scores[number] for number in seen], _BEST) - rest - _ROUNDING
                if least > 0:
                    self._common = rows[at:]
                    near = [number for number in seen if scores[number] >= least]
                    self.settle(near)
                    return near
            one = 1 << bit
            for number, share in zip(row.numbers, row.shares, strict=True):
                scores[number] += share
                has[number] |= one
            seen.update(row.numbers if self.only is None else self.only.intersection(row.numbers))
            rest -= row.most
        return seen

    def settle(self, numbers: Iterable[int]) -> None:
        """Adds the common terms to these entries."""
        if not self._common:
            return
        new = [number for number in dict.fromkeys(numbers) if number not in self._settled]
        self._settled.update(new)
        against = self.index.words.against
        for bit, row in self._common:
            for number, times in zip(new, map(row.times, new), strict=True):
                if times:
                    self.scores[number] += bm25(row.worth, times, against[number])
                    self.has[number] |= 1 << bit

    def alone(self, number: int) -> float:
        """BM25 of an entry alone in its group, among all groups. Its own terms are added."""
        if not self.groups:
            return self.scores[number]
        against = lowered(self.index.words.lengths[number], self.index.group_average()[1])
        score, has = 0.0, self.has[number]
        for bit, row in enumerate(self.rows):
            if has >> bit & 1:
                score += bm25(self.groups[bit].worth, row.times(number) or 0, against)
        return score

    def cover(self, has: int) -> float:
        """Which share of the terms these are, by what each is worth."""
        share = self._covers.get(has)
        if share is None:
            there = sum(row.worth for bit, row in enumerate(self.rows) if has >> bit & 1)
            share = self._covers[has] = there / self._total if self._total else 0.0
        return share

    def best(self) -> list[int]:
        """The best entries by their words, of equal ones the first by id; of few entries all that have one. In any order."""
        if len(self.index) <= _ALL or len(self._seen) <= _BEST:
            return list(self._seen)
        scores = self.scores
        least = _at_place([scores[number] for number in self._seen], _BEST)
        near = [number for number in self._seen if scores[number] >= least]
        if len(near) == _BEST:
            return near
        return sorted(near, key=lambda n: (-scores[n], self.index.ids[n]))[:_BEST]

    def group_scores(self) -> dict[int, float]:
        """BM25 of each conversation and day that has one of the terms, taken as one text. Notes in `group_has` which it has."""
        found, has = dict[int, float](), self.group_has
        for bit, row in enumerate(self.groups):
            one = 1 << bit
            for group, share in row.shares.items():
                found[group] = found.get(group, 0.0) + share
                has[group] = has.get(group, 0) | one
        return found


def _at_place(values: list[float], place: int) -> float:
    """The value that so many are at least as great as; there are as many. A few of them tell about where it is."""
    few = sorted(values[:: max(1, len(values) // 500)], reverse=True)
    guess = few[min(len(few) - 1, place * len(few) * 3 // (2 * len(values)) + 2)]
    great = [value for value in values if value >= guess]
    if len(great) < place:
        great = values
    return sorted(great, reverse=True)[place - 1]


class _Near(NamedTuple):
    """What speaks for an entry by itself, what for those before it, and which terms it and its neighbours have."""

    own: float
    before: float
    has: int


class _Ranking:
    """One question to one index: how much speaks for each entry that is looked at."""

    def __init__(
        self, index: Index, words: _Words, similar: dict[int, float], asked: Asked, weighed: Weighed
    ) -> None:
        self.index, self.words, self.similar, self.asked = index, words, similar, asked
        self.weighed, self.weights = weighed, weighed.weights
        cut = len(index) > _ALL
        best = words.best()
        self._top = max([words.scores[number] for number in best], default=0.0) or 1.0
        close = _best_by_meaning(similar, index) if cut else list(similar)
        # Where neither counts, nothing speaks for an entry by itself.
        self._weight = (self.weights["words"] + (self.weights["meaning"] if similar else 0.0)) or 1.0
        self._groups = words.group_scores()
        self._looked = self._look_at(best, close, cut=cut)
        self._best = self._best_of_groups(best, close, cut=cut)
        for number in self._looked.get(0, ()):
            self._groups[-number] = words.alone(number)
        self._top_group = max(self._groups.values(), default=0.0) or 1.0
        sizes = index.columns.sizes
        lengths = [sizes[number] for group, row in self._looked.items() if group for number in row]
        low = SIZE[min(lengths, default=0)]
        apart = SIZE[max(lengths, default=0)] - low
        #: What so many characters give.
        self._lengths = [(size - low) / apart if apart else 1.0 for size in SIZE]

    def own(self, number: int) -> float:
        """What speaks for an entry by itself."""
        value = self.weights["words"] * (self.words.scores[number] / self._top)
        if self.similar:
            value += self.weights["meaning"] * self.similar.get(number, 0.0)
        return value / self._weight

    def _look_at(self, best: list[int], close: list[int], *, cut: bool) -> dict[int, list[int]]:
        """The entries that can be hits, by group, those alone as of group 0: all that anything speaks for, of very many only the
        best."""
        index = self.index
        dated = self.asked.dated
        if cut and len(dated) > _BEST:
            dated = set(nlargest(_BEST, dated, key=lambda n: (index.columns.days[n], index.ids[n])))
        found = {*best, *close, *dated}
        of, before, after = index.columns.groups, index.before, index.after
        whole: Iterable[int] = self._groups
        if cut:
            for number in [number for number in found if of[number]]:
                one, two = before[number], after[number]
                found.update((one, before[one], two, after[two]))
            whole = nlargest(
                _BEST_GROUPS, self._groups, key=lambda g: (self._groups[g], index.group_names[g])
            )
        for group in whole:
            found.update(index.members(group))
        found.discard(0)
        if self.words.only is not None:
            found &= self.words.only
        self.words.settle(found)
        looked: dict[int, list[int]] = {}
        for number in found:
            looked.setdefault(of[number], []).append(number)
        return looked

    def _best_of_groups(self, best: list[int], close: list[int], *, cut: bool) -> dict[int, float]:
        """The best own score in each group. Where one of the best entries is not less than any other can be, nobody else of its
        group is looked at."""
        least, found = 0.0, dict[int, float]()
        if cut and len(best) >= _BEST:
            least += self.weights["words"] * min([self.words.scores[number] for number in best]) / self._top
        if cut and len(close) >= _BEST:
            least += self.weights["meaning"] * min([self.similar[number] for number in close])
        of = self.index.columns.groups
        for number in {*best, *close}:
            if of[number]:
                own = self.own(number)
                if own > found.get(of[number], -1.0):
                    found[of[number]] = own
        for group in self._looked:
            # Those that may be no hits are not among the best, and may be better than these.
            if group and (self.words.only is not None or found.get(group, -1.0) < least / self._weight):
                members = list(self.index.members(group))
                self.words.settle(members)
                found[group] = max(map(self.own, members))
            else:
                found.setdefault(group, 0.0)
        return found

    def _at_most(self) -> list[tuple[float, int]]:
        """What each entry comes to at most, and its number, the most first: all but what its neighbours say is counted."""
        index, words, asked = self.index, self.words, self.asked
        scores, similar = words.scores, self.similar
        sizes, marks = index.columns.sizes, index.columns.marks
        date = self.weights["date"] * bool(asked.dated)
        by_words = self.weights["words"] / self._top
        by_group = self.weights["group"] / self._top_group
        shared = self.weights["before"] + self.weights["best"]
        lengths = [self.weights["length"] * length for length in self._lengths]
        marked = [
            self.weights["when"] * (asked.when and bool(mark & TIME))
            + self.weights["number"] * (asked.number and bool(mark & NUMBER))
            + self.weights["question"] * bool(mark & QUESTION)
            for mark in range(2 * NUMBER)
        ]
        found = []
        for group, row in self._looked.items():
            if group:
                most = shared * self._best[group] + by_group * self._groups.get(group, 0.0)
                most += self.weights["cover"] * words.cover(words.group_has.get(group, 0)) + date
                found += [
                    (most + by_words * scores[n] + lengths[sizes[n]] + marked[marks[n]], n) for n in row
                ]
                continue
            # The one weight of all that is its own score.
            of_own = by_words * (1 + shared / self._weight)
            cover, headers, has, groups = words.cover, words.headers, words.has, self._groups
            for n in row:
                most = (
                    of_own * scores[n] + by_group * groups[-n] + self.weights["cover"] * cover(has[n]) + date
                )
                if marks[n] & MEMORY:
                    most += self.weights["file"] + self.weights["salience"] + self.weights["recency"]
                    if n in headers:
                        most += self.weights["header"] * cover(headers[n])
                found.append((most, n))
        if similar:
            alone = self.weights["meaning"] * (1 + shared / self._weight)
            of = index.columns.groups
            found = [
                (most + (self.weights["meaning"] if of[n] else alone) * similar.get(n, 0.0), n)
                for most, n in found
            ]
        found.sort(reverse=True)
        return found

    def hits(self, limit: int) -> list[Hit]:
        """The best entries, the best first; of equal ones the first by id."""
        found: list[Hit] = []
        scores: list[float] = []
        of, words, least = self.index.columns.groups, self.words, -inf
        for most, number in self._at_most() if limit else ():
            if most < least:
                break
            own = self.own(number)
            near = _Near(own, own, words.has[number])
            if group := of[number]:
                near = self._near(number, own)
                most -= self.weights["before"] * (self._best[group] - near.before)
                missing = words.cover(words.group_has.get(group, 0)) - words.cover(near.has)
                if most - self.weights["cover"] * missing < least:
                    continue
            hit = self._hit(number, near)
            found.append(hit)
            if len(scores) < limit:
                heappush(scores, hit.score)
            else:
                heappushpop(scores, hit.score)
            if len(scores) == limit:
                least = scores[0] - _ROUNDING
        return sorted(found, key=lambda hit: (-hit.score, hit.id))[:limit]

    def _near(self, number: int, own: float) -> _Near:
        """What stands around an entry of a group."""
        index, words = self.index, self.words
        before, after = index.before[number], index.after[number]
        further, last = index.before[before], index.after[after]
        words.settle((further, before, after, last))
        has = words.has
        around = has[number] | has[further] | has[before] | has[after] | has[last]
        if not before:
            return _Near(own, own, around)
        earlier = self.own(before)
        return _Near(own, (self.own(further) + earlier) / 2 if further else earlier, around)

    def _hit(self, number: int, near: _Near) -> Hit:
        index, words = self.index, self.words
        group = index.columns.groups[number]
        found = Found(
            words=words.scores[number] / self._top,
            meaning=self.similar.get(number, 0.0) if self.similar else None,
            before=near.before,
            best=self._best[group] if group else near.own,
            cover=words.cover(near.has),
            group=self._groups.get(group or -number, 0.0) / self._top_group,
            header=words.cover(words.headers.get(number, 0)),
            length=self._lengths[index.columns.sizes[number]],
        )
        return hit_of(index, number, found, self.asked, self.weighed)


def _best_by_meaning(similar: Mapping[int, float], index: Index) -> list[int]:
    """The best entries by their similarity; of equal ones the first by id."""
    if len(similar) <= _BEST:
        return list(similar)
    floor = _at_place(list(similar.values()), _BEST)
    near = [number for number, value in similar.items() if value >= floor]
    return sorted(near, key=lambda n: (-similar[n], index.ids[n]))[:_BEST]


def rank(
    index: Index,
    question: str,
    *,
    today: date,
    limit: int = 10,
    meaning: Mapping[str, float] | None = None,
    wanted: Iterable[str] | None = None,
    weighed: Weighed = USUAL,
    only: frozenset[int] | None = None,
) -> list[Hit]:
    """The best entries for a question, the best first; of equal ones the first by id. `wanted`: terms in place of the question's;
    `weighed`: weights in place of the usual ones; `only`: the numbers of those that may be hits, else all.

    A term of the question that none of them has counts as the near one that most have (`spelling`), and meaning less then. Only
    entries come that share a term with it, themselves or by their group, whose day it names, or for which a similarity is
    given in `meaning`, by id.
    """
    having = index.words.having

    def having_it(term: str) -> int:
        there = having(term)
        return there if not there or only is None else len(only.intersection(index.words.row(term).numbers))

    if wanted is None:
        asked_for = list(dict.fromkeys(terms(question)))
        wanted = spelled(asked_for, having_it)
        if wanted != asked_for:
            weighed = weighed.with_meaning(_MISREAD)
    wanted_terms = list(dict.fromkeys(wanted))[:MAX_TERMS]
    similar = _between(
        {
            n: value
            for id, value in (meaning or {}).items()
            if (n := index.number(id)) is not None and (only is None or n in only)
        }
    )
    named = days_named(question, today)
    dated: set[int] = set()
    if named:
        for day, numbers in index.by_day().items():
            if any(date.fromordinal(day) in days for days in named):
                dated.update(numbers if only is None else only.intersection(numbers))
    asked = Asked(
        today.toordinal(), dated, bool(_asks_when.search(question)), bool(_asks_number.search(question))
    )
    limit = max(0, limit)
    index.asked += 1
    if _by_arrays(index):
        from ipfsmem.recall.ranking_arrays import hits_by_arrays

        limits = Limits(_ALL, _BEST, _BEST_GROUPS)
        return hits_by_arrays(index, wanted_terms, similar, asked, weighed, limits, limit, only)
    words = _Words(index, wanted_terms, only)
    return _Ranking(index, words, similar, asked, weighed).hits(limit)


def _by_arrays(index: Index) -> bool:
    """Whether NumPy ranks: where it is there, of many entries, and not for the first questions of a process that has not loaded it,
    which take less time than that."""
    return len(index) >= _MANY and ("numpy" in sys.modules or (index.asked > _FIRST and _numpy_is_there()))


@cache
def _numpy_is_there() -> bool:
    return find_spec("numpy") is not None


def _between(scores: dict[int, float]) -> dict[int, float]:
    """Scores between the least, 0, and the greatest, 1; all 1 where they are equal."""
    low, top = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
    if top <= low:
        return dict.fromkeys(scores, 1.0)
    return {key: (score - low) / (top - low) for key, score in scores.items()}
