"""Ranks entries for a query by a score, the sum of parts between 0 and their weight.

In a small index all entries with any score are examined, in a very large one only the best by words or by meaning. Of these, upper
bounds rule out entries and groups without changing the hits.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date
from heapq import heappush, heappushpop, nlargest
from math import inf

from ipfsmem.recall.dates import days_named
from ipfsmem.recall.image import LONGEST
from ipfsmem.recall.index import NUMBER, QUESTION, SHORT, TIME, Document, Index, too_long
from ipfsmem.recall.postings import numpy_is_there
from ipfsmem.recall.priority import HALF_LIFE_DAYS, recency, salience
from ipfsmem.recall.recipe import (
    ROUNDING,
    USUAL,
    WEIGHTS,
    CandidateLimits,
    Hit,
    MatchFeatures,
    QueryFeatures,
    RankingWeights,
    best_first,
    hit_of,
    own_weight,
    weigh,
)
from ipfsmem.recall.spelling import likened, spelled
from ipfsmem.recall.sums import ScoreBounds
from ipfsmem.recall.terms import terms

__all__ = [
    "HALF_LIFE_DAYS",
    "MAX_TERMS",
    "USUAL",
    "WEIGHTS",
    "Document",
    "Hit",
    "Index",
    "RankingWeights",
    "rank",
    "recency",
    "salience",
    "weigh",
]

#: In an index of more entries than the first number, only this many best entries by words or by meaning, and best groups, are
#: examined.
_ALL, _BEST, _BEST_GROUPS = 5_000, 1_000, 40
#: Minimum entries of an index that is ranked with NumPy; if NumPy is not imported yet, after this many entries were examined
#: without it.
_MANY, _LOOKED = 2_000, 20_000
#: Maximum distinct terms of a query.
MAX_TERMS = 64
_asks_when = re.compile(r"\b(?:when|what (?:day|date|month|year|time)|how long ago)\b", re.I)
_asks_number = re.compile(r"\bhow (?:many|much|old|often|long|far|big|tall|high|heavy|fast|large)\b", re.I)


class _Words:
    """The terms of a query, with their unscaled BM25 for entries, passages and groups, and the terms that each contains."""

    def __init__(self, index: Index, query_terms: list[str], only: frozenset[int] | None) -> None:
        self.index, self.only = index, only
        self.rows = [index.words.row(term) for term in query_terms]
        rarest = sorted(enumerate(self.rows), key=lambda one: -one[1].most)
        self.entries = ScoreBounds([(1 << bit, row) for bit, row in rarest], len(index.ids))
        self.group_rows = [index.group_row(term) for term in query_terms] if index.has_groups else []
        of_groups = [(1 << bit, row) for bit, row in enumerate(self.group_rows)]
        #: Scores of groups, each as one text.
        self.groups = ScoreBounds(of_groups, len(index.group_names))
        #: Scores of passages. An entry that is a single passage has its entry number; other passages are numbered after all
        #: entries.
        self.passages = self.entries
        self._beyond = len(index.ids) if index.has_passages else 0
        if self._beyond:
            of_passages = [(1 << bit, index.passage_row(term)) for bit, term in enumerate(query_terms)]
            of_passages.sort(key=lambda one: -one[1].most)
            self.passages = ScoreBounds(of_passages, self._beyond + len(index.owners))
        self._total = sum([row.worth for row in self.rows])
        self._covers: dict[int, float] = {}
        #: By entry number: the terms in its header, a bit each.
        self.headers: dict[int, int] = {}
        for bit, term in enumerate(query_terms):
            for number in index.headers.row(term).numbers:
                self.headers[number] = self.headers.get(number, 0) | 1 << bit

    def passages_of(self, number: int) -> Sequence[int]:
        """Return the numbers of the passages of an entry."""
        if not self._beyond or not self.index.first_passage[number]:
            return (number,)
        there, beyond = self.index.passages_of(number), self._beyond
        return range(beyond + there.start, beyond + there.stop)

    def best_passage(self, number: int) -> int:
        """Return the best passage of an entry; the first of those whose scores differ only by rounding."""
        there = self.passages_of(number)
        if len(there) == 1:
            return there[0]
        scores = list(map(self.passages.exact, there))
        least = max(scores) - ROUNDING
        return next(one for one, score in zip(there, scores, strict=True) if score >= least)

    def passage_beside(self, passage: int, way: int) -> int:
        """Return the passage before (`way` -1) or after (1) a passage in its entry or group; 0 if there is none."""
        index, beyond = self.index, self._beyond
        entry = passage
        if beyond and passage >= beyond:
            entry = index.owners[passage - beyond]
            other = passage - beyond + way
            if other < len(index.owners) and index.owners[other] == entry:
                return passage + way
        near = index.before[entry] if way < 0 else index.after[entry]
        return self.passages_of(near)[-1 if way < 0 else 0] if near else 0

    def around(self, number: int) -> int:
        """Return the terms in the best passage of an entry and its neighbours, a bit each: on each side one, or two if the first is
        short."""
        passages = self.passages
        middle = self.best_passage(number)
        has = passages.has(middle)
        for way in (-1, 1):
            near = self.passage_beside(middle, way)
            if near:
                has |= passages.has(near)
                if self._is_short(near) and (further := self.passage_beside(near, way)):
                    has |= passages.has(further)
        return has

    def _is_short(self, passage: int) -> bool:
        if self._beyond and passage >= self._beyond:
            return self.index.passage_sizes[passage - self._beyond] < SHORT
        return self.index.columns.sizes[passage] < SHORT

    def cover(self, has: int) -> float:
        """Return the share of the terms in `has`, by weight."""
        share = self._covers.get(has)
        if share is None:
            there = sum([row.worth for bit, row in enumerate(self.rows) if has >> bit & 1])
            share = self._covers[has] = there / self._total if self._total else 0.0
        return share

    def best(self) -> list[int]:
        """Return the best entries by words, ties by id, in any order; in a small index all entries with a term."""
        if len(self.index) <= _ALL:
            return self.entries.seen(self.only)
        return self.entries.best(_BEST, self.index.ids.__getitem__, last=False, only=self.only)

    def best_groups(self) -> list[int]:
        """Return the best groups by words; in a small index all groups with a term."""
        if not self.group_rows:
            return []
        if len(self.index) <= _ALL:
            return self.groups.seen()
        return self.groups.best(_BEST_GROUPS, self.index.group_names.__getitem__, last=True)


def _at_place(values: list[float], place: int) -> float:
    """Return the `place`-th greatest of at least `place` values. A sample yields an estimate first."""
    few = sorted(values[:: max(1, len(values) // 500)], reverse=True)
    guess = few[min(len(few) - 1, place * len(few) * 3 // (2 * len(values)) + 2)]
    great = [value for value in values if value >= guess]
    if len(great) < place:
        great = values
    return sorted(great, reverse=True)[place - 1]


class _Ranking:
    """The ranking of one query on one index."""

    def __init__(
        self,
        index: Index,
        words: _Words,
        similar: dict[int, float],
        features: QueryFeatures,
        weighed: RankingWeights,
    ) -> None:
        self.index, self.words, self.similar, self.features = index, words, similar, features
        self.weighed, self.weights = weighed, weighed.weights
        self._cut = len(index) > _ALL
        self._by_words = words.best()
        self._by_meaning = _best_by_meaning(similar, index) if self._cut else list(similar)
        self._top = words.entries.top(self._by_words) or 1.0
        self._several = words.passages is not words.entries
        self._top_passage, self._at_most = self._top, dict[int, float]()
        if self._several:
            if self._cut or words.only is not None:
                there = [one for number in self._by_words for one in words.passages_of(number)]
                self._top_passage = words.passages.top(there) or 1.0
            else:  # a passage with a term belongs to an entry with the term
                self._top_passage = words.passages.top_of_all() or 1.0
        # Without a weight of words and of meaning, an entry has no own score.
        self._weight = (self.weights["words"] + (self.weights["meaning"] if similar else 0.0)) or 1.0
        whole = words.best_groups()
        self._looked = self._look_at(whole)
        of = index.columns.groups
        self._groups = set(map(of.__getitem__, self._looked))
        #: The entries without a group.
        self._lone = (
            {number for number in self._looked if not of[number]} if 0 in self._groups else set[int]()
        )
        self._groups.discard(0)
        self._top_group = words.groups.top(whole) or 1.0
        #: The best own score in each group that was computed.
        self._best: dict[int, float] = {}

    def _words_of(self, number: int) -> float:
        """Return the BM25 of an entry and of its best passage, each relative to the best of the possible hits."""
        words = self.words
        whole = min(1.0, words.entries.exact(number) / self._top)
        if not self._several:
            return whole
        best = max(map(words.passages.exact, words.passages_of(number))) / self._top_passage
        return (whole + min(1.0, best)) / 2

    def own(self, number: int) -> float:
        """Return the own score of an entry, without neighbours."""
        value = self.weights["words"] * self._words_of(number)
        if self.similar:
            value += self.weights["meaning"] * self.similar.get(number, 0.0)
        return value / self._weight

    def _own_at_most(self) -> Callable[[int], float]:
        """Return a fast function for an upper bound of the own score."""
        at_most, by_words = self.words.entries.at_most, self.weights["words"] / self._top / self._weight
        similar, by_meaning = self.similar, self.weights["meaning"] / self._weight
        if self._several:
            return self._own_at_most_of_several()
        if not similar:
            return lambda number: by_words * at_most(number)
        return lambda number: by_words * at_most(number) + by_meaning * similar.get(number, 0.0)

    def _own_roughly(self) -> Callable[[int], float]:
        """Return a function for an upper bound that examines no passages: it assumes the best passage of each entry to be the best
        of all."""
        if not self._several:
            return self._own_at_most()
        at_most, similar = self.words.entries.at_most, self.similar
        half, by_meaning = self.weights["words"] / 2 / self._weight, self.weights["meaning"] / self._weight
        by_words = half / self._top
        if not similar:
            return lambda number: half + by_words * at_most(number)
        return lambda number: half + by_words * at_most(number) + by_meaning * similar.get(number, 0.0)

    def _own_at_most_of_several(self) -> Callable[[int], float]:
        """Return `_own_at_most` for an index with entries of several passages."""
        words, similar, bounds = self.words, self.similar, self._at_most
        at_most, of_passage, between = (
            words.entries.at_most,
            words.passages.at_most,
            words.passages.at_most_between,
        )
        half, by_meaning = self.weights["words"] / 2 / self._weight, self.weights["meaning"] / self._weight
        by_words, by_passage, beyond = half / self._top, half / self._top_passage, len(self.index.ids)
        firsts, ends = self.index.first_passage, self.index.passage_end

        def own(number: int) -> float:
            value = bounds.get(number)
            if value is None:
                first = firsts[number]
                best = between(beyond + first, beyond + ends[number]) if first else of_passage(number)
                value = by_words * at_most(number) + by_passage * best + by_meaning * similar.get(number, 0.0)
                bounds[number] = value
            return value

        return own

    def _look_at(self, whole: Iterable[int]) -> set[int]:
        """Return the entries to examine: all with any score, in a very large index only the best, and their neighbours."""
        index, dated = self.index, self.features.dated
        if self._cut and len(dated) > _BEST:
            dated = set(nlargest(_BEST, dated, key=lambda n: (index.columns.days[n], index.ids[n])))
        numbers = {*self._by_words, *self._by_meaning, *dated}
        if self._cut and index.has_groups:
            before, after = index.before.__getitem__, index.after.__getitem__
            one, two = set(map(before, numbers)), set(map(after, numbers))
            numbers.update(one, two, map(before, one), map(after, two))
        for group in whole:
            numbers.update(index.members(group))
        numbers.discard(0)
        return numbers if self.words.only is None else numbers & self.words.only

    def hits(self, limit: int) -> list[Hit]:
        """Return the best entries, best first; ties by id."""
        best_hits = _Hits(limit)
        self._rank_lone(best_hits)
        if self._groups:
            self._rank_grouped(best_hits)
        return best_hits.best()

    def _rank_lone(self, best_hits: _Hits) -> None:
        """Rank entries without a group, as long as one can be among the best."""
        words, weights = self.words, self.weights
        roughly, own, has = self._own_roughly(), self._own_at_most(), words.entries.has
        by_own = self._weight * own_weight(weights, "alone", bool(self.similar))
        by_cover, by_header = weights["cover"], weights["header"]
        beside = weights["day"] * bool(self.features.dated)
        beside += weights["file"] + weights["salience"] + weights["recency"]
        salience, worth = weights["salience"], self.index.columns.salience
        headed = self._lone & words.headers.keys()
        for header, numbers in ((by_header, headed), (0.0, self._lone - headed)):
            most_beside = beside + header + by_cover
            for number in self._in_rough_order(numbers):
                most = most_beside + by_own * roughly(number)
                if most < best_hits.least:
                    break
                less = salience * (1 - min(1.0, max(0.0, worth[number])))
                if header:
                    less += header * (1 - words.cover(words.headers[number]))
                if most - less < best_hits.least:
                    continue
                most = most_beside - less + by_own * own(number)
                if most < best_hits.least:
                    continue
                if most - by_cover * (1 - words.cover(has(number))) >= best_hits.least:
                    best_hits.add(self._hit(number))

    def _in_rough_order(self, numbers: Collection[int]) -> list[int]:
        """Return entries in descending order of `_own_roughly`."""
        if self.similar:
            return sorted(numbers, key=self._own_roughly(), reverse=True)
        return self.words.entries.in_order(numbers)

    def _in_order(self, numbers: Collection[int]) -> list[int]:
        """Return entries in descending order of `_own_at_most`."""
        if not self.similar and not self._several:
            return self.words.entries.in_order(numbers)
        return sorted(numbers, key=self._own_at_most(), reverse=True)

    def _bests_at_most(self) -> dict[int, float]:
        """Return an upper bound of the best own score in each examined group. The score of any other entry is at most that of the
        last examined one."""
        words, weights, own = self.words, self.weights, self._own_at_most()
        if words.only is not None:
            # Entries outside `only` are not examined, but may have better scores.
            return {group: max(map(own, self.index.members(group))) for group in self._groups}
        others = 0.0
        if self._cut and len(self._by_words) >= _BEST:
            least = words.entries.least(self._by_words) / self._top
            others += weights["words"] * ((least + 1) / 2 if self._several else least)
        if self._cut and len(self._by_meaning) >= _BEST:
            others += weights["meaning"] * min(map(self.similar.__getitem__, self._by_meaning))
        others /= self._weight
        among = self._in_order({*self._by_words, *self._by_meaning})
        among.reverse()  # the last entry of each group is its best
        best = dict(zip(map(self.index.columns.groups.__getitem__, among), among, strict=True))
        return {group: max(others, own(best[group])) if group in best else others for group in self._groups}

    def _rank_grouped(self, best_hits: _Hits) -> None:
        """Rank entries of groups, group by group, as long as one can be among the best."""
        index, words, weights, groups = self.index, self.words, self.weights, self.words.groups
        marks, before, looked_at = index.columns.marks, index.before, self._looked
        own, sizes, headers = self._own_at_most(), index.columns.sizes, words.headers
        by_group, by_cover = weights["group"] / self._top_group, weights["cover"]
        by_own = self._weight * own_weight(weights, "own", bool(self.similar))
        by_beside, by_best, by_answer = weights["beside"], weights["best"], weights["answer"]
        by_length, by_name = weights["long"], weights["by"]
        marked = [
            weights["when"] * (self.features.when and bool(mark & TIME))
            + weights["number"] * (self.features.number and bool(mark & NUMBER))
            + weights["question"] * bool(mark & QUESTION)
            for mark in range(2 * NUMBER)
        ]
        date = weights["date"] * bool(self.features.dated)
        beside = date + max(0.0, by_length * too_long(LONGEST)) + by_name + max(marked)
        bests, by_all = self._bests_at_most(), by_own + by_beside + by_answer + by_best
        bounds = [
            (by_all * bests[group] + by_group * most, group) for group, most in groups.at_most_of(bests)
        ]
        for bound, group in sorted(bounds, reverse=True):
            if bound + by_cover + beside < best_hits.least:
                break
            best = bests[group]
            covered = words.cover(groups.has(group))
            of_group = by_cover * covered + by_group * groups.exact(group) + by_best * best
            if of_group + (by_own + by_beside + by_answer) * best + beside < best_hits.least:
                continue
            of_group += date
            for number in looked_at.intersection(index.members(group)):
                mark = marks[number]
                by_itself = by_length * too_long(sizes[number]) + marked[mark] + by_name * (number in headers)
                one = before[number]
                by_answered = by_answer if one and marks[one] & QUESTION else 0.0
                if of_group + by_itself + (by_own + by_beside + by_answered) * best < best_hits.least:
                    continue
                by_itself += by_own * own(number)
                if of_group + by_itself + (by_beside + by_answered) * best < best_hits.least:
                    continue
                near = self._beside(number)
                around = sum(map(own, near)) / len(near) if near else own(number)
                by_itself += by_beside * around + (by_answered * own(one) if by_answered else 0.0)
                if of_group + by_itself < best_hits.least:
                    continue
                if group not in self._best:
                    self._best[group] = self._best_of(group)
                    of_group -= by_best * (best - self._best[group])
                if (
                    of_group + by_itself - by_cover * (covered - words.cover(words.around(number)))
                    >= best_hits.least
                ):
                    best_hits.add(self._hit(number))

    def _best_of(self, group: int) -> float:
        """Return the best own score in a group."""
        own, best = self._own_at_most(), -inf
        for most, number in sorted(
            ((own(number), number) for number in self.index.members(group)), reverse=True
        ):
            if most < best:
                break
            best = max(best, self.own(number))
        return best

    def _beside(self, number: int) -> list[int]:
        """Return up to two entries before an entry in its group, and two after."""
        before, after = self.index.before, self.index.after
        one, other = before[number], after[number]
        return [near for near in (before[one], one, other, after[other]) if near]

    def _hit(self, number: int) -> Hit:
        index, words = self.index, self.words
        beside, answer, best, has = 0.0, 0.0, 0.0, words.entries.has(number)
        group = index.columns.groups[number]
        if group:
            near, before = self._beside(number), index.before[number]
            beside = sum(map(self.own, near)) / len(near) if near else self.own(number)
            if before and index.columns.marks[before] & QUESTION:
                answer = self.own(before)
            best, has = self._best[group], words.around(number)
        match = MatchFeatures(
            words=self._words_of(number),
            meaning=self.similar.get(number, 0.0) if self.similar else None,
            beside=beside,
            answer=answer,
            best=best,
            cover=words.cover(has),
            group=words.groups.exact(group) / self._top_group if group else 0.0,
            header=words.cover(words.headers.get(number, 0)),
        )
        return hit_of(index, number, match, self.features, self.weighed)


class _Hits:
    """The hits so far, and the minimum score of a further one."""

    def __init__(self, limit: int) -> None:
        self._limit, self._found, self._scores = limit, list[Hit](), list[float]()
        self.least = -inf

    def add(self, hit: Hit) -> None:
        """Add a hit."""
        self._found.append(hit)
        if len(self._scores) < self._limit:
            heappush(self._scores, hit.score)
        else:
            heappushpop(self._scores, hit.score)
        if len(self._scores) == self._limit:
            self.least = self._scores[0] - ROUNDING

    def best(self) -> list[Hit]:
        """Return the hits, best first; ties by id."""
        return best_first(self._found, self._limit)


def _best_by_meaning(similar: Mapping[int, float], index: Index) -> list[int]:
    """Return the entries with the greatest similarity; ties by id."""
    if len(similar) <= _BEST:
        return list(similar)
    floor = _at_place(list(similar.values()), _BEST)
    near = [number for number, value in similar.items() if value >= floor]
    return sorted(near, key=lambda n: (-similar[n], index.ids[n]))[:_BEST]


def asks_when(question: str) -> bool:
    """Return whether a query asks for a time."""
    return bool(_asks_when.search(question))


def asks_number(question: str) -> bool:
    """Return whether a query asks for a number."""
    return bool(_asks_number.search(question))


def rank(
    index: Index,
    question: str,
    *,
    today: date,
    limit: int = 10,
    meaning: Mapping[str, float] | None = None,
    similar: Mapping[int, float] | None = None,
    wanted: Iterable[str] | None = None,
    weighed: RankingWeights = USUAL,
    only: frozenset[int] | None = None,
) -> list[Hit]:
    """Return the best entries for a query, best first; ties by id. `wanted`: terms in place of the query's; `weighed`: weights in
    place of the default; `only`: the numbers of possible hits, by default all.

    A term that occurs in no entry is replaced by the most frequent term within one typing error, or else by the most similar one
    (`spelling`). `meaning`: similarities by id; `similar`: the same by number. A hit, or its group, shares a term with the query,
    or the query names its day, or it has a similarity.
    """
    having = index.words.having

    @functools.cache
    def having_it(term: str) -> int:
        there = having(term)
        return there if not there or only is None else len(only.intersection(index.words.row(term).numbers))

    if wanted is None:
        wanted = spelled(list(dict.fromkeys(terms(question))), having_it, index.words.among)
        wanted = likened(wanted, having_it, index.words.alike)
    wanted_terms = list(dict.fromkeys(wanted))[:MAX_TERMS]
    if similar is None:
        similar = {n: v for id, v in (meaning or {}).items() if (n := index.number(id)) is not None}
    if only is not None:
        similar = {number: value for number, value in similar.items() if number in only}
    days_asked = days_named(question, today)
    dated: set[int] = set()
    if days_asked:
        for day, numbers in index.by_day().items():
            if any(date.fromordinal(day) in days for days in days_asked):
                dated.update(numbers if only is None else only.intersection(numbers))
    features = QueryFeatures(today.toordinal(), dated, asks_when(question), asks_number(question))
    limit = max(0, limit)
    index.asked += 1
    if _by_arrays(index):
        from ipfsmem.recall.ranking_arrays import hits_by_arrays

        limits = CandidateLimits(_ALL, _BEST, _BEST_GROUPS)
        return hits_by_arrays(index, wanted_terms, similar, features, weighed, limits, limit, only)
    words = _Words(index, wanted_terms, only)
    return _Ranking(index, words, _between(similar), features, weighed).hits(limit) if limit else []


def _by_arrays(index: Index) -> bool:
    """Return whether to rank with NumPy: it is installed and the index is large. If it is not imported yet, only after the first
    queries, which are faster than the import: with ten thousand messages it pays off from the second query."""
    entries_looked_at = (index.asked - 1) * len(index)
    return len(index) >= _MANY and (
        "numpy" in sys.modules or (entries_looked_at >= _LOOKED and numpy_is_there())
    )


def _between(scores: Mapping[int, float]) -> dict[int, float]:
    """Scale scores so that the least is 0 and the greatest is 1; all are 1 if they are equal."""
    low, top = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
    if top <= low:
        return dict.fromkeys(scores, 1.0)
    return {key: (score - low) / (top - low) for key, score in scores.items()}
