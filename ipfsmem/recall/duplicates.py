"""Near-duplicate texts: equal words, one inside the other, or most words in common, without comparing every pair.

Two texts with such a share of words in common share several of each one's rarest words (prefix filtering: Bayardo, Ma, Srikant
2007; with several words: Wang, Li, Feng 2012), so only those are compared. A word of very many texts leads to only some of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from math import ceil
from typing import Final, Literal, NamedTuple

from ipfsmem.recall.terms import split, terms_of

How = Literal["same", "contained", "alike"]
#: Minimum words of a text that is looked up inside others.
LEAST_WORDS: Final = 4
#: Maximum texts examined for one word: for one of the rarest, and for the rarest only. Similar texts share most words, and so
#: rarer ones too.
MOST_ALIKE: Final = 50
MOST_CONTAINING: Final = 200
#: Number of rarest words that two texts must share to be compared, or all that they must share.
_SHARED: Final = 4
#: Upper bound of the rounding error of such products.
_ROUNDING: Final = 1e-9


class Pair(NamedTuple):
    """Two texts. `contained`: the first occurs in the second, word for word."""

    one: str
    other: str
    how: How
    #: The share of their different terms that both have (Jaccard), 0 to 1.
    similarity: float


class _Text(NamedTuple):
    id: str
    #: Its words, separated by spaces.
    words: str
    #: The different terms as numbers by frequency: the rarest have the lowest.
    terms: frozenset[int]
    #: The same, rarest first.
    rare: list[int]


class _TermsOf(dict[str, list[str]]):
    """A cache of the terms of a word."""

    def __missing__(self, word: str) -> list[str]:
        found = self[word] = terms_of(word)
        return found


def duplicates(texts: Mapping[str, str], least: float = 0.8) -> list[Pair]:
    """Return the pairs of texts, by id, with equal words, with one inside the other, or with at least the share `least` of their
    terms in common; equal ones first, then the most similar. Of several equal ones each is paired with the first."""
    first: dict[str, str] = {}
    pairs = []
    terms: dict[str, frozenset[str]] = {}
    of_word = _TermsOf().__getitem__
    for id, text in sorted(texts.items()):
        words = split(text)
        joined = " ".join(words)
        if joined in first:
            pairs.append(Pair(first[joined], id, "same", 1.0))
        elif words:
            first[joined] = id
            terms[joined] = frozenset(chain.from_iterable(map(of_word, set(words))))
    different = _ready(first, terms)
    found = {frozenset((pair.one, pair.other)): pair for pair in _alike(different, least)}
    found |= {frozenset((pair.one, pair.other)): pair for pair in _contained(different)}
    return sorted([*pairs, *found.values()], key=lambda p: (p.how != "same", -p.similarity, p.one, p.other))


def _ready(first: Mapping[str, str], terms: Mapping[str, frozenset[str]]) -> list[_Text]:
    """Return the texts, those with the fewest terms first."""
    often = Counter(chain.from_iterable(terms.values()))
    place = {term: at for at, term in enumerate(sorted(often, key=lambda term: (often[term], term)))}
    made = []
    for words, id in first.items():
        rare = sorted(map(place.__getitem__, terms[words]))
        made.append(_Text(id, words, frozenset(rare), rare))
    return sorted(made, key=lambda text: (len(text.terms), text.id))


def _alike(texts: Sequence[_Text], least: float) -> Iterator[Pair]:
    sizes = [len(text.terms) for text in texts]
    having: dict[int, list[int]] = {}
    for number, (text, size) in enumerate(zip(texts, sizes, strict=True)):
        common = ceil(least * size - _ROUNDING)
        first = text.rare[: size - common + _SHARED]
        rows = [having.setdefault(term, []) for term in first]
        # Texts before this one have too few terms.
        enough = bisect_left(sizes, common, 0, number)
        shared = Counter(
            chain.from_iterable(row[max(bisect_left(row, enough), len(row) - MOST_ALIKE) :] for row in rows)
        )
        least_shared = min(_SHARED, common)
        near = [at for at, times in shared.items() if times >= least_shared]
        rarest = frozenset(first) if near else frozenset[int]()
        for at in near:
            other = texts[at]
            # Of the rarest terms alone more may be missing than of all: this bound decides most pairs, and is quick for a few
            # terms.
            may_miss = size - (size + sizes[at]) * least / (1 + least) + 1
            if len(rarest - other.terms) <= may_miss:
                share = _share(text, other)
                if share >= least - _ROUNDING:
                    one, two = sorted((text.id, other.id))
                    yield Pair(one, two, "alike", share)
        for row in rows:
            row.append(number)


def _contained(texts: Sequence[_Text]) -> Iterator[Pair]:
    sought = [text for text in texts if text.words.count(" ") >= LEAST_WORDS - 1 and text.rare]
    having: dict[int, list[_Text]] = {text.rare[0]: [] for text in sought}
    for text in texts:
        for term in having.keys() & text.terms:
            having[term].append(text)
    # In order of the rarest word: their candidates are still in the processor's cache.
    for text in sorted(sought, key=lambda text: text.rare[0]):
        terms = text.terms
        for other in having[text.rare[0]][-MOST_CONTAINING:]:
            # A contained text has no other terms, which is a hundred times quicker to check than its words.
            if terms <= other.terms and other is not text and f" {text.words} " in f" {other.words} ":
                yield Pair(text.id, other.id, "contained", _share(text, other))


def _share(one: _Text, other: _Text) -> float:
    both = len(one.terms & other.terms)
    return both / (len(one.terms) + len(other.terms) - both) if both else 0.0
