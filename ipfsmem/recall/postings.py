"""Which entries have a term, and how often: numbers in arrays, and BM25 over them as SQLite FTS5 counts it."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from math import log

#: How soon further occurrences stop to count, and how much a long entry is lowered.
_K1, _B = 1.2, 0.75
#: What a term is worth that more than half of the entries have.
_LEAST = 1e-6


def idf(entries: int, having: int) -> float:
    """What a term is worth that so many of the entries have."""
    return max(_LEAST, log((entries - having + 0.5) / (having + 0.5)))


def bm25(worth: float, times: int, length: int, average: float) -> float:
    """The share of one term in the score of an entry of so many terms."""
    return worth * times * (_K1 + 1) / (times + _K1 * (1 - _B + _B * length / average))


class Postings:
    """The terms of numbered entries. A number is used once."""

    def __init__(self) -> None:
        self._of: dict[str, tuple[array[int], array[int]]] = {}
        #: How many terms each entry has.
        self.lengths: dict[int, int] = {}
        self.total = 0

    def add(self, number: int, terms: Sequence[str]) -> None:
        """Puts an entry in; its number is greater than those before."""
        for term, times in Counter(terms).items():
            numbers, counts = self._of.setdefault(term, (array("I"), array("I")))
            numbers.append(number)
            counts.append(times)
        self.lengths[number] = len(terms)
        self.total += len(terms)

    def remove(self, number: int, terms: Iterable[str]) -> None:
        """Takes out an entry, given the terms that it was put in with."""
        for term in set(terms):
            numbers, counts = self._of[term]
            at = numbers.index(number)
            del numbers[at], counts[at]
            if not numbers:
                del self._of[term]
        self.total -= self.lengths.pop(number)

    def having(self, term: str) -> dict[int, int]:
        """How often a term occurs in each entry that has it."""
        numbers, counts = self._of.get(term, ((), ()))
        return dict(zip(numbers, counts, strict=True))

    def worth(self, term: str) -> float:
        """The idf of a term."""
        return idf(len(self.lengths), len(self._of.get(term, ((), ()))[0]))

    def scores(self, terms: Iterable[str]) -> dict[int, float]:
        """BM25 of each entry that has one of the different terms."""
        found: dict[int, float] = {}
        average = self.total / len(self.lengths) if self.lengths else 1.0
        for term in dict.fromkeys(terms):
            worth = self.worth(term)
            for number, times in self.having(term).items():
                share = bm25(worth, times, self.lengths[number], average)
                found[number] = found.get(number, 0.0) + share
        return found
