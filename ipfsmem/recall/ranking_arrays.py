"""Ranks a large index with NumPy: the same hits as `ranking`, with each step vectorised over many entries.

Sums are computed in another order, so they only select candidates; the scores of hits are computed by `recipe`, as in `ranking`.
Imported only if NumPy is installed and pays off.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ipfsmem.recall.image import LONGEST
from ipfsmem.recall.index import GROUPED, MEMORY, NUMBER, QUESTION, SHORT, TIME, USUAL_SIZE, Index
from ipfsmem.recall.postings import FURTHER, PostingList, idf, lowered
from ipfsmem.recall.recipe import (
    ROUNDING,
    CandidateLimits,
    Hit,
    MatchFeatures,
    QueryFeatures,
    RankingWeights,
    best_first,
    hits_of,
    own_weight,
)

#: `too_long` of each size.
_LONG = np.log10(np.maximum(np.arange(LONGEST + 1), USUAL_SIZE) / USUAL_SIZE)


class _PostingArrays:
    """The posting list of a term, with the BM25 of each entry."""

    def __init__(self, row: PostingList, against: Any) -> None:
        self.worth = row.worth
        self.numbers = np.array(row.numbers, dtype=np.intp)
        counted = row.counts  # bytes if read from an image
        occurrences = (
            np.frombuffer(counted, dtype=np.uint8) if isinstance(counted, bytes) else np.array(counted)
        )
        self.counts = occurrences.astype(np.float64)
        self.shares = self.worth * self.counts * FURTHER / (self.counts + against[self.numbers])
        self.most = float(self.shares.max()) if len(self.shares) else 0.0


class _GroupArrays:
    """The groups that contain a term: its weight among groups, and its BM25 for each group."""

    def __init__(self, row: _PostingArrays, arrays: _Arrays) -> None:
        groups, average = arrays.index.group_average()
        of = arrays.of[row.numbers]
        times = np.bincount(of, weights=row.counts, minlength=len(arrays.group_lengths))
        alone = of == 0
        times[0] = 0
        self.numbers = np.flatnonzero(times)
        self.worth = idf(groups, int(alone.sum()) + len(self.numbers))
        against = _lowered(arrays.group_lengths[self.numbers], average)
        self.shares = _bm25(self.worth, times[self.numbers], against)


def _lowered(lengths: Any, average: float) -> Any:
    return lowered(lengths, average)


def _bm25(worth: float, times: Any, against: Any) -> Any:
    return worth * times * FURTHER / (times + against)


class _Arrays:
    """An index as NumPy arrays, valid until it changes."""

    def __init__(self, index: Index) -> None:
        self.index = index
        days, sizes, marks, salience, groups = index.columns
        self.of = np.array(groups, dtype=np.intp)
        self.before, self.after = np.array(index.before, dtype=np.intp), np.array(index.after, dtype=np.intp)
        self.group_lengths = np.array(index.group_lengths)
        self.sizes, self.marks = np.array(sizes, dtype=np.intp), np.array(marks)
        self.salience = np.clip(np.nan_to_num(np.array(salience)), 0.0, 1.0)  # NaN is 0, as in `hits_of`
        self.against = np.array(index.words.against)
        #: The day of each entry, 0 for none.
        self.changed = np.array(days, dtype=np.int64)
        self._rows: dict[str, _PostingArrays] = {}
        self._groups: dict[str, _GroupArrays] = {}
        self._passages: dict[str, _PostingArrays] = {}
        self._passage_against: Any = None
        self._kept = 0
        self._take_passages()

    def _take_passages(self) -> None:
        """Load the passages, numbered as in `Index.passage_row`, their neighbours, and which are short."""
        index, beyond = self.index, len(self.of)
        owners = np.array(index.owners, dtype=np.intp)
        there = np.flatnonzero(owners)
        #: The first and the last passage of each entry.
        self.first, self.last = np.arange(beyond), np.arange(beyond)
        self.passage_before, self.passage_after = self.before, self.after
        self.short = self.sizes < SHORT
        if not len(there):
            return
        long, starts = np.unique(owners[there], return_index=True)
        ends = np.append(starts[1:], len(there)) - 1
        self.first[long], self.last[long] = there[starts] + beyond, there[ends] + beyond
        passages = np.arange(beyond + len(owners))
        self.passage_before, self.passage_after = passages - 1, passages + 1
        self.passage_before[:beyond] = self.last[self.before]
        self.passage_after[:beyond] = self.first[self.after]
        self.passage_before[self.first[long]] = self.last[self.before[long]]
        self.passage_after[self.last[long]] = self.first[self.after[long]]
        self.short = np.concatenate([self.short, np.array(index.passage_sizes) < SHORT])

    def row(self, term: str) -> _PostingArrays:
        """Return the entries that have a term."""
        arrays = self._rows.get(term)
        if arrays is None:
            having = self.index.words.row(term)
            self._kept += len(having.numbers)
            if self._kept > self.index.words.room():
                self._rows.clear()
                self._groups.clear()
                self._passages.clear()
                self._kept = len(having.numbers)
            arrays = self._rows[term] = _PostingArrays(having, self.against)
        return arrays

    def headed(self, term: str) -> Any:
        """Return the entries whose header contains a term."""
        return np.array(self.index.headers.row(term).numbers, dtype=np.intp)

    def group_row(self, term: str) -> _GroupArrays:
        """Return the groups that have a term."""
        row = self._groups.get(term)
        if row is None:
            row = self._groups[term] = _GroupArrays(self.row(term), self)
        return row

    def passage_row(self, term: str) -> _PostingArrays:
        """Return the passages that have a term."""
        arrays = self._passages.get(term)
        if arrays is None:
            row = self.index.passage_row(term)
            if self._passage_against is None:
                self._passage_against = np.array(self.index.passage_against())
            arrays = self._passages[term] = _PostingArrays(row, self._passage_against)
        return arrays


def hits_by_arrays(
    index: Index,
    terms: Sequence[str],
    similar: Mapping[int, float],
    features: QueryFeatures,
    weighed: RankingWeights,
    limits: CandidateLimits,
    limit: int,
    only: frozenset[int] | None = None,
) -> list[Hit]:
    """Return the best entries with one of the terms or another part of a score, best first; ties by id. `similar`: similarities by
    number; `only`: the numbers of possible hits, which `similar` and `features` are restricted to already."""
    if index.arrays is None:
        index.arrays = _Arrays(index)
    return (
        _ArrayRanking(index.arrays, terms, similar, features, weighed, limits, only).hits(limit)
        if limit
        else []
    )


class _ArrayRanking:
    """The ranking of one query on one index."""

    def __init__(
        self,
        arrays: _Arrays,
        terms: Sequence[str],
        similar: Mapping[int, float],
        features: QueryFeatures,
        weighed: RankingWeights,
        limits: CandidateLimits,
        only: frozenset[int] | None,
    ) -> None:
        self.arrays, self.features, self.weighed, self.limits = arrays, features, weighed, limits
        index, entries = arrays.index, len(arrays.of)
        rows = [arrays.row(term) for term in terms]
        self.worths = [row.worth for row in rows]
        self.total = sum(self.worths)
        #: By entry number: the BM25; the terms in the entry, and those in its header, a bit each.
        self.scores, self.has = _summed(rows, entries), _marked([row.numbers for row in rows], entries)
        self.headers = _marked(map(arrays.headed, terms), entries)
        self.passage_rows = [arrays.passage_row(term) for term in terms] if index.has_passages else []
        self.passage_scores = _summed(self.passage_rows, len(arrays.short))
        self.groups = self._group_scores(terms)
        self.cut = len(index) > limits.all
        self.only = None
        if only is not None:
            self.only = np.zeros(entries, dtype=bool)
            self.only[list(only)] = True
        having = self.has > 0 if self.only is None else (self.has > 0) & self.only
        best = self._first(np.flatnonzero(having), self.scores)
        self.similar = None
        close = np.fromiter(similar.keys(), np.intp, len(similar))
        if similar:
            self.similar = np.zeros(entries)
            self.similar[close] = _between(np.fromiter(similar.values(), np.float64, len(similar)))
            close = self._first(close, self.similar)
        self.dated = np.zeros(entries, dtype=bool)
        self.dated[list(features.dated)] = True
        self.looked = self._look_at(best, close)
        #: For each examined entry and all entries of its group: the score of words, and the own score.
        there, self.words, self.own = self._with_groups(), np.zeros(entries), np.zeros(entries)
        self.words[there] = self._words_of(there, best)
        self.own[there] = self._own_of(there)
        self.best = np.zeros(len(arrays.group_lengths))
        np.maximum.at(self.best, arrays.of[there], self.own[there])
        self.best[0] = 0.0
        self.top_group = self.groups.max(initial=0.0) or 1.0

    def _words_of(self, numbers: Any, best: Any) -> Any:
        """Return the score of the words of some entries, relative to the `best`."""
        top = float(self.scores[best].max(initial=0.0)) or 1.0
        whole = np.minimum(1.0, self.scores[numbers] / top)
        if not self.arrays.index.has_passages:
            return whole
        top = float(self._best_passages(best)[0].max(initial=0.0)) or 1.0
        return (whole + np.minimum(1.0, self._best_passages(numbers)[0] / top)) / 2

    def _own_of(self, numbers: Any) -> Any:
        """Return the own score of each of some entries."""
        own, weight = self.weighed.weights["words"] * self.words[numbers], self.weighed.weights["words"]
        if self.similar is not None:
            own += self.weighed.weights["meaning"] * self.similar[numbers]
            weight += self.weighed.weights["meaning"]
        return own / (weight or 1.0)

    def _best_passages(self, numbers: Any) -> tuple[Any, Any]:
        """Return the BM25 and the number of the best passage of each entry; the first of those whose scores differ only by
        rounding."""
        first = self.arrays.first[numbers]
        many = self.arrays.last[numbers] - first + 1
        ends = np.cumsum(many)
        at = np.arange(many.sum())
        passages = np.repeat(first - ends + many, many) + at
        scores = self.passage_scores[passages]
        best = np.maximum.reduceat(scores, ends - many)
        near = np.where(scores >= np.repeat(best, many) - ROUNDING, at, len(at))
        return best, passages[np.minimum.reduceat(near, ends - many)]

    def _group_scores(self, terms: Sequence[str]) -> Any:
        """Return the BM25 of each group, by number."""
        arrays = self.arrays
        groups = np.zeros(len(arrays.group_lengths))
        for term in terms if arrays.index.has_groups else ():
            row = arrays.group_row(term)
            groups[row.numbers] += row.shares
        return groups

    def _first(self, numbers: Any, values: Any) -> Any:
        """Return the entries with the greatest values, ties by id."""
        if not self.cut or len(numbers) <= self.limits.best:
            return numbers
        ids = self.arrays.index.ids
        return _greatest(
            numbers, values[numbers], self.limits.best, lambda some: sorted(some, key=ids.__getitem__)
        )

    def _look_at(self, best: Any, close: Any) -> Any:
        """Return the entries to examine, as in `ranking`."""
        arrays, dated = self.arrays, self.dated
        of, before, after = arrays.of, arrays.before, arrays.after
        looked_at = np.zeros(len(of), dtype=bool)
        if self.cut and len(self.features.dated) > self.limits.best:
            days, ids = arrays.changed, arrays.index.ids
            numbers = np.flatnonzero(dated)
            dated = _greatest(
                numbers,
                days[numbers],
                self.limits.best,
                lambda some: sorted(some, key=ids.__getitem__, reverse=True),
            )
        looked_at[best] = looked_at[close] = looked_at[dated] = True
        whole = np.flatnonzero(self.groups)
        if self.cut:
            some = np.flatnonzero(looked_at)
            one, two = before[some], after[some]
            looked_at[one] = looked_at[before[one]] = looked_at[two] = looked_at[after[two]] = True
            names = arrays.index.group_names
            if len(whole) > self.limits.groups:
                whole = _greatest(
                    whole,
                    self.groups[whole],
                    self.limits.groups,
                    lambda some: sorted(some, key=names.__getitem__, reverse=True),
                )
        chosen = np.zeros(len(arrays.group_lengths), dtype=bool)
        chosen[whole] = True
        if len(whole):
            looked_at |= chosen[of]
        looked_at[0] = False
        if self.only is not None:
            looked_at &= self.only
        return np.flatnonzero(looked_at)

    def _with_groups(self) -> Any:
        """Return the examined entries and all others of their groups."""
        arrays = self.arrays
        groups = np.zeros(len(arrays.group_lengths), dtype=bool)
        groups[arrays.of[self.looked]] = True
        groups[0] = False
        if not groups.any():
            return self.looked
        there = groups[arrays.of]
        there[self.looked] = True
        return np.flatnonzero(there)

    def _cover(self, has: Any) -> Any:
        """Return the share of the terms in `has`, by weight."""
        share = np.zeros(len(has))
        if self.total:
            for bit, worth in enumerate(self.worths):
                share += worth * ((has >> np.uint64(bit)) & np.uint64(1))
            share /= self.total
        return share

    def _around(self, numbers: Any) -> Any:
        """Return the terms in the best passage of each entry and its neighbours, a bit each. The unused number 0 has none."""
        arrays, has, middle = self.arrays, self.has, numbers
        if arrays.index.has_passages:
            has = _marked([row.numbers for row in self.passage_rows], len(arrays.short))
            middle = self._best_passages(numbers)[1]
        around = has[middle]
        for beside in (arrays.passage_before, arrays.passage_after):
            near = beside[middle]
            around = (
                around
                | has[near]
                | np.where(arrays.short[near] & (near > 0), has[beside[near]], np.uint64(0))
            )
        return around

    def _features_of(self, numbers: Any) -> dict[str, Any]:
        """Return the parts of the score of some entries, as in `MatchFeatures`."""
        arrays, own = self.arrays, self.own
        of, before, after = arrays.of[numbers], arrays.before[numbers], arrays.after[numbers]
        near = (arrays.before[before], before, after, arrays.after[after])
        many = sum((one > 0).astype(float) for one in near)
        beside = sum(np.where(one > 0, own[one], 0.0) for one in near) / np.maximum(many, 1.0)
        has = self.has[numbers]
        if arrays.index.has_groups:
            has = np.where(of > 0, self._around(numbers), has)
        return {
            "words": self.words[numbers],
            "meaning": None if self.similar is None else self.similar[numbers],
            "beside": np.where(many > 0, beside, own[numbers]),
            "answer": np.where(arrays.marks[before] & QUESTION, own[before], 0.0),
            "best": self.best[of],
            "cover": self._cover(has),
            "group": self.groups[of] / self.top_group,
            "header": self._cover(self.headers[numbers]),
        }

    def hits(self, limit: int) -> list[Hit]:
        """Return the best entries."""
        arrays, weights, numbers = self.arrays, self.weighed.weights, self.looked
        if not len(numbers):
            return []
        parts, marks = self._features_of(numbers), arrays.marks[numbers]
        grouped = (marks & GROUPED) > 0
        score = weights["cover"] * parts["cover"]
        score += np.where(grouped, weights["date"], weights["day"]) * self.dated[numbers]
        own = np.where(
            grouped,
            own_weight(weights, "own", self.similar is not None),
            own_weight(weights, "alone", self.similar is not None),
        )
        for part in ("words", "meaning"):
            if parts[part] is not None:
                score += weights[part] * own * parts[part]
        day = arrays.changed[numbers]
        idle = np.maximum(0.0, self.features.today - day)
        of_memory = weights["file"] + weights["header"] * parts["header"]
        of_memory += weights["salience"] * arrays.salience[numbers]
        of_memory += weights["recency"] * np.where(day > 0, 0.5 ** (idle / self.weighed.half_life), 0.0)
        of_turn = weights["long"] * _LONG[arrays.sizes[numbers]] + weights["question"] * (
            (marks & QUESTION) > 0
        )
        of_turn += weights["by"] * (parts["header"] > 0)
        for part in ("beside", "answer", "best", "group"):
            of_turn += weights[part] * parts[part]
        if self.features.when:
            of_turn += weights["when"] * ((marks & TIME) > 0)
        if self.features.number:
            of_turn += weights["number"] * ((marks & NUMBER) > 0)
        score += np.where(marks & MEMORY, of_memory, np.where(grouped, of_turn, 0.0))
        if limit < len(score):
            least = np.partition(score, len(score) - limit)[len(score) - limit]
            near = np.flatnonzero(score >= least - ROUNDING)
            numbers = numbers[near]
            parts = {part: None if value is None else value[near] for part, value in parts.items()}
        rows: list[Any] = [
            [None] * len(numbers) if parts[part] is None else parts[part].tolist()
            for part in MatchFeatures.__struct_fields__
        ]
        matches = zip(numbers.tolist(), map(MatchFeatures, *rows), strict=True)
        return best_first(hits_of(arrays.index, matches, self.features, self.weighed), limit)


def _summed(rows: Sequence[_PostingArrays], size: int) -> Any:
    """Return the BM25 of each of `size` entries or passages, the terms added as in `ranking`."""
    scores = np.zeros(size)
    for row in sorted(rows, key=lambda row: -row.most):
        scores[row.numbers] += row.shares
    return scores


def _marked(rows: Iterable[Any], size: int) -> Any:
    """Return the terms in each of `size` entries or passages, a bit each."""
    has = np.zeros(size, dtype=np.uint64)
    for bit, numbers in enumerate(rows):
        has[numbers] |= np.uint64(1 << bit)
    return has


def _between(values: Any) -> Any:
    """Scale values so that the least is 0 and the greatest is 1, as in `ranking`."""
    low, top = values.min(), values.max()
    return (values - low) / (top - low) if top > low else np.ones(len(values))


def _greatest(numbers: Any, values: Any, most: int, in_order: Any) -> Any:
    """Return the `most` numbers with the greatest values; ties by `in_order`."""
    least = np.partition(values, len(values) - most)[len(values) - most]
    above, equal = numbers[values > least], numbers[values == least]
    missing = most - len(above)
    if len(equal) > missing:
        equal = np.array(in_order(equal.tolist())[:missing], dtype=np.intp)
    return np.concatenate([above, equal])
