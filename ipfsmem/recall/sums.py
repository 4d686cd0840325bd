"""Sums the scores of a query's terms: bounds for all entries at once, exact sums on request.

The scores of each term are rounded to a few bits and packed into one big integer, sixteen bits per entry, so that one addition
handles all entries, a hundred times faster than a loop. The bounds rule out entries that cannot be among the best; exact sums
decide among the others, so the result is exact.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import compress
from math import frexp
from typing import Any

#: Bits to which the greatest score of a term is rounded, and bits of the sum of the greatest scores of all terms.
_BITS, _LANE = 12, 16
#: A term that occurs in fewer than one in this many entries is added entry by entry, which is then faster.
_RARE = 128
#: About this many entries are sampled to estimate the score of the last of the best.
_SAMPLE = 1_000
#: If fewer than one in this many entries may be hits, they are summed one by one.
_FEW = 16
#: Above this number of undecided entries, the exact sums of all are computed, term by term.
_UNDECIDED = 3_000


class Shares:
    """The scores of one term for the numbered entries that contain it."""

    #: The numbers of these entries.
    numbers: Sequence[int]
    _dense: array[int] | None = None
    _lanes: int | None = None
    #: The scores, cached between the computation of the greatest and of the rounded ones.
    _counted: Collection[float] | None = None

    @property
    def shares(self) -> Collection[float]:
        """The scores, in the order of the numbers."""
        raise NotImplementedError

    def share(self, number: int) -> float:
        """Return the score of an entry, 0 if it lacks the term."""
        raise NotImplementedError

    @cached_property
    def few(self) -> Mapping[int, int] | None:
        """The set of these entries if they are few; None if membership must be found with `share`."""
        return None

    @cached_property
    def most(self) -> float:
        """The greatest score."""
        self._counted = self.shares
        return max(self._counted, default=0.0)

    @cached_property
    def exponent(self) -> int:
        """The exponent of the power of two that is the unit of rounded scores, so that the greatest has `_BITS` bits."""
        return frexp(self.most)[1] - _BITS

    @cached_property
    def rounded(self) -> array[int]:
        """The scores in this unit, rounded up to integers. Division by a power of two is exact."""
        scale = 2.0**-self.exponent
        counted, self._counted = self._counted, None
        shares = self.shares if counted is None else counted
        return array("H", [int(share * scale) + 1 for share in shares])

    @cached_property
    def greatest(self) -> int:
        """The greatest rounded score."""
        return max(self.rounded, default=0)

    def dense(self, size: int) -> array[int]:
        """Return the rounded score of each of `size` entries, 0 for an entry without the term. Cached for one size."""
        if self._dense is None:
            self._dense = array("H", bytes(2 * size))
            for number, value in zip(self.numbers, self.rounded, strict=True):
                self._dense[number] = value
        return self._dense

    def packed_scores(self, size: int) -> int:
        """Return `dense` packed into one integer."""
        if self._lanes is None:
            self._lanes = int.from_bytes(self.dense(size).tobytes(), sys.byteorder)
        return self._lanes


def is_common(having: int, size: int) -> bool:
    """Return whether a term that occurs in `having` entries is added to all entries at once."""
    return having * _RARE >= size


class ScoreBounds:
    """The sums of the scores of a query's terms."""

    def __init__(self, rows: Sequence[tuple[int, Shares]], size: int) -> None:
        """`rows`: (bit, scores) of each term, in the order of addition. `size`: one more than the greatest entry number."""
        self._rows, self._size = rows, size
        self._bounds: dict[int, tuple[float, int]] = {}
        self._all: list[float] | None = None
        having = [row for _, row in rows if row.numbers]
        exponents = [row.exponent for row in having]
        greatest = [(row.greatest, row.exponent) for row in having]
        unit = max(exponents, default=0) + _BITS - _LANE
        # Lists, because generators cost a call for each row.
        while sum([most << at - unit if at >= unit else most >> unit - at for most, at in greatest]) >> _LANE:
            unit += 1
        #: The exponent of the power of two that is the unit of sums.
        self._unit = unit
        self._sums = self._added(having)
        #: How far the exact sum of an entry can be above the rounded one, and how far below.
        self._above = 1 + sum([at < unit for at in exponents])
        self._below = 1 + sum([1 << max(0, at - unit) for at in exponents])
        self._worth = 2.0**unit

    def _added(self, rows: Sequence[Shares]) -> array[int]:
        """Return the rounded sum of each entry."""
        packed, size, rare = 0, self._size, list[tuple[int, Shares]]()
        for row in rows:
            shift = row.exponent - self._unit
            if not is_common(len(row.numbers), size):
                rare.append((shift, row))
            elif shift >= 0:
                packed += row.packed_scores(size) << shift
            elif shift > -_BITS - 1:
                packed += row.packed_scores(size) >> -shift & _mask(-shift, size)
        sums = array("H", packed.to_bytes(2 * size, sys.byteorder) if packed else bytes(2 * size))
        for shift, row in rare:
            if shift >= 0:
                for number, value in zip(row.numbers, row.rounded, strict=True):
                    sums[number] += value << shift
            else:
                for number, value in zip(row.numbers, row.rounded, strict=True):
                    sums[number] += value >> -shift
        return sums

    def at_most(self, number: int) -> float:
        """Return an upper bound of the sum of an entry."""
        return (self._sums[number] + self._above) * self._worth

    def at_most_between(self, first: int, end: int) -> float:
        """Return an upper bound of the sums of the entries from `first` up to `end`."""
        return (max(self._sums[first:end]) + self._above) * self._worth

    def at_most_of(self, numbers: Iterable[int]) -> list[tuple[int, float]]:
        """Return (entry, upper bound of its sum) for each of these entries."""
        sums, above, worth = self._sums, self._above, self._worth
        return [(number, (sums[number] + above) * worth) for number in numbers]

    def least(self, numbers: Iterable[int]) -> float:
        """Return an upper bound of the least sum of these entries."""
        return (min(map(self._sums.__getitem__, numbers)) + self._above) * self._worth

    def in_order(self, numbers: Iterable[int]) -> list[int]:
        """Return the entries in descending order of `at_most`."""
        return sorted(numbers, key=self._sums.__getitem__, reverse=True)

    def exact(self, number: int) -> float:
        """Return the sum of an entry."""
        return self._of(number)[0] if self._all is None else self._all[number]

    def has(self, number: int) -> int:
        """Return the terms in an entry, a bit each."""
        return self._of(number)[1]

    def _of(self, number: int) -> tuple[float, int]:
        bounds = self._bounds.get(number)
        if bounds is None:
            total, has = 0.0, 0
            for bit, row in self._rows:
                few = row.few
                if few is not None and number not in few:
                    continue
                if share := row.share(number):
                    total += share
                    has |= bit
            bounds = self._bounds[number] = total, has
        return bounds

    def seen(self, only: frozenset[int] | None = None) -> list[int]:
        """Return the entries with one of the terms. `only`: restrict to these."""
        numbers = set[int]().union(*(row.numbers for _, row in self._rows))
        return list(numbers if only is None else numbers & only)

    def top(self, numbers: Collection[int]) -> float:
        """Return the greatest sum of these entries, 0 without entries."""
        sums = self._sums
        least = max(map(sums.__getitem__, numbers), default=0) - self._above - self._below
        return max((self.exact(number) for number in numbers if sums[number] >= least), default=0.0)

    def top_of_all(self) -> float:
        """Return the greatest sum of all entries."""
        if not any(row.numbers for _, row in self._rows):
            return 0.0
        high = self._sums.tobytes()[sys.byteorder == "little" :: 2]
        apart = 1 + (self._above + self._below >> 8)
        return self.top(_at_least(high, max(0, max(high) - apart)))

    def best(
        self, most: int, key: Callable[[int], Any], *, last: bool, only: frozenset[int] | None = None
    ) -> list[int]:
        """Return the up to `most` entries with the greatest sums, in any order; ties by the least keys, or with `last` by the
        greatest. `only`: restrict to these entries."""
        numbers = self._near(most, only)
        if len(numbers) <= most:
            return numbers
        values = list(map(self._sums.__getitem__, numbers))
        edge, apart = sorted(values, reverse=True)[most - 1], self._above + self._below
        low, high = edge - apart, edge + apart
        sure = [number for number, value in zip(numbers, values, strict=True) if value > high]
        open_ = [number for number, value in zip(numbers, values, strict=True) if low <= value <= high]
        if len(open_) > _UNDECIDED:
            self._add_all()
        open_.sort(key=key, reverse=last)
        open_.sort(key=self.exact, reverse=True)
        return sure + open_[: most - len(sure)]

    def _near(self, most: int, only: frozenset[int] | None) -> list[int]:
        """Return all entries that can be among the best, and possibly others."""
        high = self._sums.tobytes()[sys.byteorder == "little" :: 2]
        if only is not None and len(only) * _FEW < self._size:
            return self.seen(only)
        some = sorted(high[:: max(1, len(high) // _SAMPLE)], reverse=True)
        least = some[min(len(some) - 1, most * len(some) // len(high) + 2)]
        # The sum of the last of the best may be one lower, and those of undecided entries lower by the distance of the bounds.
        apart = 1 + (self._above + self._below >> 8)
        least -= 1 + apart
        while least > 0:
            numbers = _at_least(high, least)
            if only is not None:
                numbers = [number for number in numbers if number in only]
            if sum(high[number] >= least + apart for number in numbers) >= most:
                return numbers
            least -= 1 + least // 8
        return self.seen(only)

    def _add_all(self) -> None:
        """Compute the exact sums of all entries, term by term, in the same order as for a single entry."""
        if self._all is None:
            self._all = [0.0] * self._size
            for _, row in self._rows:
                for number, share in zip(row.numbers, row.shares, strict=True):
                    self._all[number] += share


@lru_cache(maxsize=2 * _BITS)
def _mask(shift: int, size: int) -> int:
    """Return the mask that clears bits shifted in from the neighbouring scores, for `size` packed scores."""
    return int.from_bytes(array("H", [0xFFFF >> shift]) * size, sys.byteorder)


def _at_least(values: bytes, least: int) -> list[int]:
    """Return the indexes of the values that are at least `least`."""
    great = values.translate(bytes(least) + b"\1" * (256 - least))
    many = great.count(1)
    if many * 8 > len(great):
        return list(compress(range(len(great)), great))
    places, at = [], great.find(1)
    while at >= 0:
        places.append(at)
        at = great.find(1, at + 1)
    return places
