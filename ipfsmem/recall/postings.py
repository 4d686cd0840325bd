"""Stores postings (which entries contain a term, and how often) in flat arrays, and computes BM25 as SQLite FTS5 does.

The postings of an image stay in three flat arrays. The terms of later entries are appended to an array, and sorted before the next
query: many by NumPy into the flat arrays, few into a list for each term with one number per occurrence. The posting list of a term
is built on first use, and cached until the next change.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import cache, cached_property
from importlib.util import find_spec
from itertools import chain, compress, repeat
from math import log
from operator import lt

from ipfsmem.recall.flat_postings import Flat, Terms
from ipfsmem.recall.spelling import alike, vocabulary_of
from ipfsmem.recall.sums import Shares, is_common
from ipfsmem.recall.terms import terms_of

#: Minimum occurrences that NumPy sorts; the same if NumPy is not imported yet.
_SORTED, _LOADED = 20_000, 500_000
#: BM25's parameters: the saturation of further occurrences (k1), and the penalty for long entries (b).
_K1, _B = 1.2, 0.75
FURTHER = _K1 + 1
#: The weight of a term that occurs in more than half of the entries.
_LEAST = 1e-6
#: Maximum occurrences in cached posting lists: per entry, and in addition.
_KEPT, _KEPT_LEAST = 20, 500_000
#: Maximum terms for which similar terms are cached.
_ALIKE = 1_000
#: Factor of entries to occurrences at which a dense array of a common term uses as much memory.
_DENSE = 4


@cache
def numpy_is_there() -> bool:
    """Return whether NumPy is installed."""
    return find_spec("numpy") is not None


def idf(entries: int, having: int) -> float:
    """Return the weight of a term that occurs in `having` of the entries."""
    return max(_LEAST, log((entries - having + 0.5) / (having + 0.5)))


def lowered(length: int, average: float) -> float:
    """Return the length norm of an entry with `length` terms."""
    return _K1 * (1 - _B + _B * length / average)


def all_lowered(lengths: Iterable[int], average: float) -> list[float]:
    """Return the length norms of many entries without a function call for each."""
    return [_K1 * (1 - _B + _B * length / average) for length in lengths]


def bm25(worth: float, times: int, against: float) -> float:
    """Return the BM25 of one term for an entry. `worth`: the weight of the term; `times`: its occurrences; `against`: the length
    norm of the entry by `lowered`."""
    return worth * times * FURTHER / (times + against)


class PostingList(Shares):
    """The entries that contain one term: their numbers, counts and BM25."""

    def __init__(
        self,
        numbers: Sequence[int],
        counts: Sequence[int],
        worth: float,
        against: array[float],
        most: float | None,
    ) -> None:
        """`most`: the greatest BM25, if it was computed before."""
        self.numbers, self.counts, self.worth = numbers, counts, worth
        self._against = against
        if most is not None:
            self.most = most

    @property
    def shares(self) -> list[float]:
        """The BM25 of each entry, in the order of the numbers. Not cached, because the rounded values are."""
        worth, against = self.worth, self._against
        further = FURTHER  # inlined `bm25`, to avoid a call for each entry
        pairs = zip(self.numbers, self.counts, strict=True)
        return [worth * times * further / (times + against[number]) for number, times in pairs]

    def share(self, number: int) -> float:
        """Return the BM25 of an entry, 0 if it lacks the term."""
        few = self.few  # inlined `times`, to avoid a call for each term and hit
        if few is None:
            times = self.counts[bisect_left(self.numbers, number)] if self._there[number] else 0
        else:
            times = few.get(number, 0)
        return bm25(self.worth, times, self._against[number]) if times else 0.0

    def times(self, number: int) -> int:
        """Return the occurrences of the term in an entry."""
        if self.few is not None:
            return self.few.get(number, 0)
        if not self._there[number]:
            return 0
        return self.counts[bisect_left(self.numbers, number)]

    @cached_property
    def few(self) -> dict[int, int] | None:
        size = len(self._against)
        few = not is_common(len(self.numbers), size)
        return dict(zip(self.numbers, self.counts, strict=True)) if few else None

    @cached_property
    def _there(self) -> array[int]:
        return self.dense(len(self._against))


class TermNumbers(dict[str, int]):
    """Maps words to term numbers and caches them; 0 for a stop word."""

    def __init__(self) -> None:
        #: The terms by number, and the number of each term.
        self.terms = [""]
        self._numbers: dict[str, int] = {}
        #: The term numbers of words with several terms, as in scripts without spaces.
        self._further: list[int] = []

    def of(self, words: Iterable[str]) -> array[int]:
        """Return the term numbers of some words (as returned by `terms.split`), with repetitions."""
        numbers = array("I", list(filter(None, map(self.__getitem__, words))))
        if self._further:
            numbers.extend(self._further)
            self._further.clear()
        return numbers

    def different(self, words: Iterable[str]) -> set[int]:
        """Return the same numbers without repetitions."""
        numbers = set(map(self.__getitem__, words))
        numbers.update(self._further)
        self._further.clear()
        numbers.discard(0)
        return numbers

    def __missing__(self, word: str) -> int:
        numbers = list(map(self._number, terms_of(word)))
        if len(numbers) > 1:
            self._further += numbers
            return 0
        self[word] = number = numbers[0] if numbers else 0
        return number

    def _number(self, term: str) -> int:
        number = self._numbers.setdefault(term, len(self.terms))
        if number == len(self.terms):
            self.terms.append(term)
        return number


#: Maximum letters that a stem may lack of the beginning of a word, and minimum letters of such a stem.
_ENDING, _STEM = 3, 4


class Postings:
    """The postings of numbered entries. Numbers begin with 1 and are not reused."""

    def __init__(
        self, terms: TermNumbers, flat: Flat | None = None, lengths: array[int] | None = None
    ) -> None:
        """`terms`: the term numbers that `add` accepts."""
        self._terms = terms
        self._flat = flat or Flat({}, array("I", [0]), array("I"), array("I"))
        self._at = self._flat.places
        self._added: dict[str, list[int]] = {}
        self._removed: set[int] = set()
        #: Number of terms of each entry; 0 at number 0 and for a removed entry.
        self.lengths = lengths or array("I", [0])
        self._of_flat = len(self.lengths)
        #: The terms of the entries from number `_unsorted` on, which are not sorted into postings yet.
        self._given, self._unsorted = array("I"), len(self.lengths)
        self.total = sum(self.lengths)
        self.entries = len(self.lengths) - 1
        self._rows: dict[str, PostingList] = {}
        self._room = 0
        self._most: dict[str, float] = {}
        self._against: array[float] | None = None
        self._vocabulary, self._in_vocabulary = "", -1
        self._alike: dict[str, list[tuple[str, float]]] = {}

    @property
    def average(self) -> float:
        """The average number of terms of an entry."""
        return self.total / self.entries if self.total else 1.0

    def add(self, terms: array[int]) -> None:
        """Add an entry by its term numbers. Its entry number is one more than the last."""
        length = len(terms)
        self._given += terms
        self.lengths.append(length)
        self.total += length
        self.entries += 1
        if self._rows or self._most or self._against is not None:
            self._change()

    def remove(self, number: int) -> None:
        """Remove an entry."""
        self._sort()
        self.total -= self.lengths[number]
        self.lengths[number] = 0
        self.entries -= 1
        self._removed.add(number)
        self._change()

    def _sort(self) -> None:
        """Sort the terms of the entries added last into postings."""
        terms_new, first = self._given, self._unsorted
        if not terms_new:
            return
        many = len(terms_new)
        merged = self._merged(many, None) if many > len(self._flat.numbers) else None
        self._given, self._unsorted = array("I"), len(self.lengths)
        if merged is not None:
            self._flat, self._at, self._of_flat = merged, merged.places, len(self.lengths)
            self._added.clear()
            self._in_vocabulary = -1
            return
        rows = defaultdict[int, list[int]](list)
        numbers = chain.from_iterable(map(repeat, range(first, len(self.lengths)), self.lengths[first:]))
        for term, number in zip(terms_new, numbers, strict=True):
            rows[term].append(number)
        for term, row in rows.items():
            self._added.setdefault(self._terms.terms[term], []).extend(row)

    def _merged(self, many: int, numbers: Sequence[int] | None) -> Flat | None:
        """Sort all postings into flat arrays with NumPy; None if NumPy is missing or not worthwhile for `many` occurrences.
        `numbers`: as in `flat`."""
        if many < _SORTED or not ("numpy" in sys.modules or (many >= _LOADED and numpy_is_there())):
            return None
        try:
            from ipfsmem.recall.postings_arrays import merged
        except ImportError:  # NumPy is installed but cannot be imported
            return None
        terms, first, of = self._terms.terms, self._unsorted, self.lengths[self._unsorted :]
        return merged(self._flat, self._of_flat, self._added, terms, self._given, first, of, numbers)

    def _change(self) -> None:
        self._against = None
        self._rows.clear()
        self._most.clear()

    @property
    def against(self) -> array[float]:
        """The length norm of each entry."""
        if self._against is None:
            self._against = array("d", all_lowered(self.lengths, self.average))
        return self._against

    def row(self, term: str) -> PostingList:
        """Return the posting list of a term."""
        cached = self._rows.get(term)
        if cached is None:
            numbers, counts = self.occurrences(term)
            size = len(numbers)
            cost = size + (len(self.lengths) // _DENSE if is_common(size, len(self.lengths)) else 0)
            if not self._rows:
                self._room = self.room()
            self._room -= cost
            if self._room < 0:
                self._most.update((of, row.most) for of, row in self._rows.items() if "most" in vars(row))
                self._rows.clear()
                self._room = self.room() - cost
            worth = idf(self.entries, size)
            cached = self._rows[term] = PostingList(
                numbers, counts, worth, self.against, self._most.get(term)
            )
        return cached

    def room(self) -> int:
        """Return the maximum number of occurrences in cached posting lists."""
        return _KEPT * self.entries + _KEPT_LEAST

    def having(self, term: str) -> int:
        """Return the number of entries that contain a term; fast if none does."""
        self._sort()
        return len(self.row(term).numbers) if term in self._at or term in self._added else 0

    def among(self, terms: Iterable[str]) -> list[str]:
        """Return the terms that occur in current or removed entries."""
        self._sort()
        at, added = self._at.all() if isinstance(self._at, Terms) else self._at, self._added
        return [term for term in terms if term in at or term in added]

    def alike(self, term: str) -> list[tuple[str, float]]:
        """Return the terms of current or removed entries that are similar to a term, each with the similarity."""
        self._sort()
        if self._in_vocabulary != len(self._added):
            self._vocabulary = (
                self._at.text
                if isinstance(self._at, Terms) and not self._added
                else vocabulary_of(dict.fromkeys((*self._at, *self._added)))
            )
            self._in_vocabulary = len(self._added)
            self._alike.clear()
        if term not in self._alike:
            if len(self._alike) >= _ALIKE:
                self._alike.clear()
            self._alike[term] = alike(term, self._vocabulary)
        return self._alike[term]

    def occurrences(self, term: str) -> tuple[Sequence[int], Sequence[int]]:
        """Return the entries that contain a term, and the occurrences in each."""
        self._sort()
        at, added = self._at.get(term), self._added.get(term)
        numbers: Sequence[int] = ()
        counts: Sequence[int] = ()
        if at is not None:
            numbers, counts = self._flat.row(at)
            if (
                not (numbers and numbers[0] > 0 and numbers[-1] < self._of_flat)
                or 0 in counts
                or not all(map(lt, numbers, numbers[1:]))
            ):  # a damaged image, whose postings are checked on access
                old_numbers, pairs = range(1, self._of_flat), zip(numbers, counts, strict=True)
                times = dict(
                    sorted((number, count) for number, count in pairs if number in old_numbers and count)
                )
                numbers, counts = array("I", times), array("I", times.values())
        if added:
            often = Counter(added)
            if at is None:
                numbers, counts = array("I", often), array("I", often.values())
            else:
                numbers, counts = array("I", (*numbers, *often)), array("I", (*counts, *often.values()))
        if self._removed and not self._removed.isdisjoint(numbers):
            there = [number not in self._removed for number in numbers]
            numbers = array("I", compress(numbers, there))
            counts = array("I", compress(counts, there))
        return numbers, counts

    def beginning_with(self, beginnings: tuple[str, ...]) -> list[str]:
        """Return the terms that begin with one of these beginnings, also if the stem of a term is a few letters shorter than the
        beginning; for a single letter, all its pairs."""
        self._sort()
        names = {
            term
            for term in (*self._at, *self._added)
            if term.startswith(beginnings) or (len(term) == 2 and term[1] in beginnings)
        }
        if not names:
            shorter = {
                word[:-cut]
                for word in beginnings
                for cut in range(1, _ENDING + 1)
                if len(word) - cut >= _STEM
            }
            names = {term for term in shorter if term in self._at or term in self._added}
        return sorted(term for term in names if len(self.row(term).numbers))

    def scores(self, terms: Iterable[str]) -> dict[int, float]:
        """Return the BM25 sum of each entry that contains one of these distinct terms."""
        scores_of: dict[int, float] = {}
        for term in dict.fromkeys(terms):
            row = self.row(term)
            for number, share in zip(row.numbers, row.shares, strict=True):
                scores_of[number] = scores_of.get(number, 0.0) + share
        return scores_of

    def flat(self, numbers: Sequence[int]) -> Flat:
        """Return all postings as flat arrays, with the entries renumbered: `numbers[n]` is the new number of entry n, in ascending
        order, 0 for a removed entry."""
        self._sort()
        many = len(self._flat.numbers) + sum(map(len, self._added.values()))
        merged = self._merged(many, numbers)
        if merged is not None:
            return merged
        places: dict[str, int] = {}
        starts, flat_numbers, counted = array("I", [0]), array("I"), array("I")
        same = array("I", numbers) == array("I", range(len(numbers)))
        for term in sorted(self._at.keys() | self._added.keys()):
            having, counts = self.occurrences(term)
            if having:
                places[term] = len(places)
                flat_numbers.extend(array("I", having) if same else map(numbers.__getitem__, having))
                counted.extend(counts)
                starts.append(len(counted))
        return Flat(places, starts, flat_numbers, counted)
