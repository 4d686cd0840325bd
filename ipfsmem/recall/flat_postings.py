"""Postings and their terms in flat arrays, as they are stored in an image."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TypeAlias

import msgspec

from ipfsmem.recall.spelling import vocabulary_of

#: Maximum lookups of single terms before a dictionary of all terms is built.
_MAX_SINGLE_LOOKUPS = 100
#: An array of numbers, or a view of the numbers in an image.
Numbers: TypeAlias = "array[int] | memoryview"


class Terms(Mapping[str, int]):
    """A sorted list of terms with their positions, stored as one text of lines, because most processes look up few terms."""

    def __init__(self, text: str, begins: Numbers) -> None:
        """`text`: the terms with a line break before, between and after them. `begins`: the offsets of all line breaks."""
        self.text, self.begins = text, begins
        self._looked = 0
        self._places: dict[str, int] | None = None

    @classmethod
    def of(cls, terms: Iterable[str]) -> Terms:
        """Build the terms from a sorted list."""
        names = list(terms)
        return cls(vocabulary_of(names), array("I", accumulate((len(term) + 1 for term in names), initial=0)))

    def __len__(self) -> int:
        return len(self.begins) - 1

    def __iter__(self) -> Iterator[str]:
        return iter(self.all())

    def __contains__(self, term: object) -> bool:
        return isinstance(term, str) and self._place(term) is not None

    def __getitem__(self, term: str) -> int:
        place = self._place(term)
        if place is None:
            raise KeyError(term)
        return place

    def _place(self, term: str) -> int | None:
        if self._places is None and self._looked < _MAX_SINGLE_LOOKUPS:
            self._looked += 1
            text, begins, size = self.text, self.begins, len(self)
            place, end = 0, size  # `bisect_left` with a key function would be called at each step
            while place < end:
                middle = (place + end) // 2
                if text[begins[middle] + 1 : begins[middle + 1]] < term:
                    place = middle + 1
                else:
                    end = middle
            is_here = place < size and text[begins[place] + 1 : begins[place + 1]] == term
            return place if is_here else None
        return self.all().get(term)

    def all(self) -> dict[str, int]:
        """Return a dictionary of all terms with their positions."""
        if self._places is None:
            self._places = dict(zip(self.text.split("\n")[1:-1], range(len(self)), strict=False))
        return self._places


class Flat(msgspec.Struct, frozen=True):
    """All postings in sequence: those of the term at position n are from `starts[n]` to `starts[n + 1]`."""

    #: The sorted terms, each with its position.
    places: Mapping[str, int]
    starts: Numbers
    numbers: Numbers
    counts: Sequence[int]

    def row(self, place: int) -> tuple[Sequence[int], Sequence[int]]:
        """Return the entry numbers and counts of the term at a position."""
        first, end = self.starts[place], self.starts[place + 1]
        numbers, counts = self.numbers[first:end], self.counts[first:end]
        if isinstance(numbers, memoryview):
            numbers = array(numbers.format, numbers.tobytes())
        return numbers, counts.tobytes() if isinstance(counts, memoryview) else counts
