"""The ranking of `ranking` with NumPy, for who asks a great index often: the same hits, each step over all entries at once.

Sums are counted here in another order, which tells which entries can be hits; the score of a hit and its parts come from `recipe`, as
there. Nothing here is loaded where NumPy is missing, or for a process that asks once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ipfsmem.recall.index import GROUPED, MEMORY, NUMBER, QUESTION, SIZE, TIME, Index
from ipfsmem.recall.postings import FURTHER, Row, idf, lowered
from ipfsmem.recall.recipe import Asked, Found, Hit, Limits, Weighed, hit_of

#: More than sums of the same numbers in another order differ by.
_ROUNDING = 1e-9
_SIZES = np.array(SIZE)


class _Row:
    """The entries that have one term, as `Row`, and what BM25 gives each of them for it."""

    def __init__(self, row: Row, against: Any) -> None:
        self.worth = row.worth
        self.numbers = np.array(row.numbers, dtype=np.intp)
        counted = row.counts  # of an image these are bytes
        given = np.frombuffer(counted, dtype=np.uint8) if isinstance(counted, bytes) else np.array(counted)
        self.counts = given.astype(np.float64)
        self.shares = self.worth * self.counts * FURTHER / (self.counts + against[self.numbers])
        self.most = float(self.shares.max()) if len(self.shares) else 0.0


class _GroupRow:
    """The groups that have one term: what it is worth among them, and what BM25 gives each conversation or day for it."""

    def __init__(self, row: _Row, known: _Arrays) -> None:
        groups, average = known.index.group_average()
        of = known.of[row.numbers]
        times = np.bincount(of, weights=row.counts, minlength=len(known.group_lengths))
        alone = of == 0
        times[0] = 0
        self.numbers = np.flatnonzero(times)
        self.worth = idf(groups, int(alone.sum()) + len(self.numbers))
        against = _lowered(known.group_lengths[self.numbers], average)
        self.shares = _bm25(self.worth, times[self.numbers], against)
        #: The entries that are alone in their group and have the term, and what it gives each of them as a group.
        self.alone = row.numbers[alone]
        against = _lowered(known.lengths[self.alone], average)
        self.alone_shares = _bm25(self.worth, row.counts[alone], against)


def _lowered(lengths: Any, average: float) -> Any:
    return lowered(lengths, average)


def _bm25(worth: float, times: Any, against: Any) -> Any:
    return worth * times * FURTHER / (times + against)


class _Arrays:
    """An index as NumPy has it, until it changes."""

    def __init__(self, index: Index) -> None:
        self.index = index
        days, sizes, marks, salience, groups = index.columns
        self.of = np.array(groups, dtype=np.intp)
        self.before, self.after = np.array(index.before, dtype=np.intp), np.array(index.after, dtype=np.intp)
        self.lengths, self.group_lengths = np.array(index.words.lengths), np.array(index.group_lengths)
        self.sizes, self.marks = np.array(sizes, dtype=np.intp), np.array(marks)
        self.salience = np.clip(
            np.nan_to_num(np.array(salience)), 0.0, 1.0
        )  # what is no number counts 0, as in `hit_of`
        self.against = np.array(index.words.against)
        self.changed = np.array(days, dtype=np.int64)
        #: The day on which each was changed or used last, and the uses that these were.
        self.days, self.used = self.changed, dict[str, int]()
        self._rows: dict[str, _Row] = {}
        self._groups: dict[str, _GroupRow] = {}
        self._kept = 0

    def row(self, term: str) -> _Row:
        """Who has a term."""
        found = self._rows.get(term)
        if found is None:
            having = self.index.words.row(term)
            self._kept += len(having.numbers)
            if self._kept > self.index.words.room():
                self._rows.clear()
                self._groups.clear()
                self._kept = len(having.numbers)
            found = self._rows[term] = _Row(having, self.against)
        return found

    def group_row(self, term: str) -> _GroupRow:
        """Which groups have it."""
        found = self._groups.get(term)
        if found is None:
            found = self._groups[term] = _GroupRow(self.row(term), self)
        return found

    def last_days(self) -> Any:
        """The day on which each was changed or used last, 0 for none."""
        used = self.index.used
        if used != self.used:
            self.days, self.used = self.changed.copy(), dict(used)
            for id, day in used.items():
                number = self.index.number(id)
                if number is not None:
                    self.days[number] = max(self.days[number], day)
        return self.days


def hits_by_arrays(
    index: Index,
    wanted: Sequence[str],
    similar: Mapping[int, float],
    asked: Asked,
    weighed: Weighed,
    limits: Limits,
    limit: int,
    only: frozenset[int] | None = None,
) -> list[Hit]:
    """The best entries that have one of the terms, or that something else speaks for, the best first; of equal ones the first by
    id. `similar`: between 0 and 1, by number; `only`: the numbers of those that may be hits, also in `similar` and `asked`."""
    if index.arrays is None:
        index.arrays = _Arrays(index)
    return _Ranking(index.arrays, wanted, similar, asked, weighed, limits, only).hits(limit) if limit else []


class _Ranking:
    """One question to one index."""

    def __init__(
        self,
        known: _Arrays,
        wanted: Sequence[str],
        similar: Mapping[int, float],
        asked: Asked,
        weighed: Weighed,
        limits: Limits,
        only: frozenset[int] | None,
    ) -> None:
        self.known, self.asked, self.weighed, self.limits = known, asked, weighed, limits
        index, entries = known.index, len(known.of)
        rows = [known.row(term) for term in wanted]
        self.worths = [row.worth for row in rows]
        self.total = sum(self.worths)
        #: By number of the entry: BM25, and which of the terms it has, and which its header, a bit each.
        self.scores, self.has = np.zeros(entries), np.zeros(entries, dtype=np.uint64)
        self.headers = dict[int, int]()
        for bit, row in sorted(enumerate(rows), key=lambda one: -one[1].most):
            self.scores[row.numbers] += row.shares
            self.has[row.numbers] |= np.uint64(1 << bit)
            for number in index.headers.row(wanted[bit]).numbers:
                self.headers[number] = self.headers.get(number, 0) | 1 << bit
        self.groups, self.alone = self._group_scores(wanted)
        self.cut = len(index) > limits.all
        self.only = None
        if only is not None:
            self.only = np.zeros(entries, dtype=bool)
            self.only[list(only)] = True
        having = self.has > 0 if self.only is None else (self.has > 0) & self.only
        best = self._first(np.flatnonzero(having), self.scores)
        self.top = float(self.scores[best].max(initial=0.0)) or 1.0
        self.similar = None
        close = np.array(list(similar), dtype=np.intp)
        if similar:
            self.similar = np.zeros(entries)
            self.similar[close] = list(similar.values())
            close = self._first(close, self.similar)
        self.own = weighed.weights["words"] * (self.scores / self.top)
        weight = weighed.weights["words"]
        if self.similar is not None:
            self.own += weighed.weights["meaning"] * self.similar
            weight += weighed.weights["meaning"]
        self.own /= weight or 1.0
        self.dated = np.zeros(entries, dtype=bool)
        self.dated[list(asked.dated)] = True
        self.looked = self._look_at(best, close)
        self.best = self._best_of_groups()
        lone = self.alone[self.looked[known.of[self.looked] == 0]]
        self.top_group = max(self.groups.max(initial=0.0), lone.max(initial=0.0)) or 1.0
        sizes = known.sizes[self.looked[known.of[self.looked] > 0]]
        low = SIZE[sizes.min()] if len(sizes) else 0.0
        apart = SIZE[sizes.max()] - low if len(sizes) else 0.0
        #: What so many characters give.
        self.lengths = (_SIZES - low) / apart if apart else np.ones(len(_SIZES))

    def _group_scores(self, wanted: Sequence[str]) -> tuple[Any, Any]:
        """BM25 of each conversation and day, by its number, and of each entry that is alone in its group, by its own."""
        known = self.known
        groups = np.zeros(len(known.group_lengths))
        if not known.index.has_groups:
            return groups, self.scores
        alone = np.zeros(len(known.of))
        for term in wanted:
            row = known.group_row(term)
            groups[row.numbers] += row.shares
            alone[row.alone] += row.alone_shares
        return groups, alone

    def _first(self, numbers: Any, values: Any) -> Any:
        """Of very many entries those with the greatest values, of equal ones the first by id."""
        if not self.cut or len(numbers) <= self.limits.best:
            return numbers
        ids = self.known.index.ids
        return _greatest(
            numbers, values[numbers], self.limits.best, lambda some: sorted(some, key=ids.__getitem__)
        )

    def _look_at(self, best: Any, close: Any) -> Any:
        """The entries that can be hits, as in `ranking`."""
        known, dated = self.known, self.dated
        of, before, after = known.of, known.before, known.after
        looked = np.zeros(len(of), dtype=bool)
        if self.cut and len(self.asked.dated) > self.limits.best:
            days, ids = known.changed, known.index.ids
            numbers = np.flatnonzero(dated)
            dated = _greatest(
                numbers,
                days[numbers],
                self.limits.best,
                lambda some: sorted(some, key=ids.__getitem__, reverse=True),
            )
        looked[best] = looked[close] = looked[dated] = True
        whole = np.flatnonzero(self.groups)
        if self.cut:
            some = np.flatnonzero(looked)
            one, two = before[some], after[some]
            looked[one] = looked[before[one]] = looked[two] = looked[after[two]] = True
            names = known.index.group_names
            if len(whole) > self.limits.groups:
                whole = _greatest(
                    whole,
                    self.groups[whole],
                    self.limits.groups,
                    lambda some: sorted(some, key=names.__getitem__, reverse=True),
                )
        chosen = np.zeros(len(known.group_lengths), dtype=bool)
        chosen[whole] = True
        if len(whole):
            looked |= chosen[of]
        looked[0] = False
        if self.only is not None:
            looked &= self.only
        return np.flatnonzero(looked)

    def _best_of_groups(self) -> Any:
        """The best own score in each group of an entry that is looked at, by number of the group."""
        known = self.known
        found = np.zeros(len(known.group_lengths))
        there = np.zeros(len(found), dtype=bool)
        there[known.of[self.looked]] = True
        there[0] = False
        if there.any():
            members = np.flatnonzero(there[known.of])
            np.maximum.at(found, known.of[members], self.own[members])
        return found

    def _cover(self, has: Any) -> Any:
        """Which share of the terms these are, by what each is worth."""
        share = np.zeros(len(has))
        if self.total:
            for bit, worth in enumerate(self.worths):
                share += worth * ((has >> np.uint64(bit)) & np.uint64(1))
            share /= self.total
        return share

    def _around(self, numbers: Any) -> tuple[Any, Any]:
        """What speaks for the two before each entry, and which terms it has and the two on either side."""
        before, after, own, has = self.known.before[numbers], self.known.after[numbers], self.own, self.has
        further, last = self.known.before[before], self.known.after[after]
        earlier = np.where(further > 0, (own[further] + own[before]) / 2, own[before])
        around = has[numbers] | has[before] | has[further] | has[after] | has[last]
        return np.where(before > 0, earlier, own[numbers]), around

    def _found(self, numbers: Any) -> dict[str, Any]:
        """What speaks for some entries, as `Found` has it."""
        known = self.known
        of = known.of[numbers]
        before, around = self._around(numbers)
        headers = np.array([self.headers.get(number, 0) for number in numbers.tolist()], dtype=np.uint64)
        return {
            "words": self.scores[numbers] / self.top,
            "meaning": None if self.similar is None else self.similar[numbers],
            "before": before,
            "best": np.where(of > 0, self.best[of], self.own[numbers]),
            "cover": self._cover(around),
            "group": np.where(of > 0, self.groups[of], self.alone[numbers]) / self.top_group,
            "header": self._cover(headers),
            "length": self.lengths[known.sizes[numbers]],
        }

    def hits(self, limit: int) -> list[Hit]:
        """The best entries."""
        known, weights, numbers = self.known, self.weighed.weights, self.looked
        if not len(numbers):
            return []
        found = self._found(numbers)
        score = weights["date"] * self.dated[numbers]
        for part in ("words", "meaning", "before", "best", "cover", "group"):
            if found[part] is not None:
                score += weights[part] * found[part]
        marks = known.marks[numbers]
        day = known.last_days()[numbers]
        idle = np.maximum(0.0, self.asked.today - day)
        of_memory = weights["file"] + weights["header"] * found["header"]
        of_memory += weights["salience"] * known.salience[numbers]
        of_memory += weights["recency"] * np.where(day > 0, 0.5 ** (idle / self.weighed.half_life), 0.0)
        of_turn = weights["length"] * found["length"] + weights["question"] * ((marks & QUESTION) > 0)
        if self.asked.when:
            of_turn += weights["when"] * ((marks & TIME) > 0)
        if self.asked.number:
            of_turn += weights["number"] * ((marks & NUMBER) > 0)
        score += np.where(marks & MEMORY, of_memory, np.where(marks & GROUPED, of_turn, 0.0))
        if limit < len(score):
            least = np.partition(score, len(score) - limit)[len(score) - limit]
            near = np.flatnonzero(score >= least - _ROUNDING)
            numbers = numbers[near]
            found = {part: None if value is None else value[near] for part, value in found.items()}
        rows: list[Any] = [
            [None] * len(numbers) if found[part] is None else found[part].tolist() for part in Found._fields
        ]
        made = [
            hit_of(known.index, number, Found(*values), self.asked, self.weighed)
            for number, *values in zip(numbers.tolist(), *rows, strict=True)
        ]
        return sorted(made, key=lambda hit: (-hit.score, hit.id))[:limit]


def _greatest(numbers: Any, values: Any, most: int, in_order: Any) -> Any:
    """So many of the numbers, those with the greatest values; of equal ones the first as they are put `in_order`."""
    least = np.partition(values, len(values) - most)[len(values) - most]
    above, equal = numbers[values > least], numbers[values == least]
    missing = most - len(above)
    if len(equal) > missing:
        equal = np.array(in_order(equal.tolist())[:missing], dtype=np.intp)
    return np.concatenate([above, equal])
