"""Texts that say nearly the same: equal words, one inside the other, or most words in common. Never every text with every other.

Two texts that have so great a share of their words in common have several of each one's rarest words in common (prefix filtering:
Bayardo, Ma, Srikant 2007; with several words: Wang, Li, Feng 2012), so only those that do are compared. Where very many texts have
one of these words, it leads to a part of them alone.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from typing import Final, Literal, NamedTuple

from ipfsmem.recall.terms import split, terms_of

How = Literal["same", "contained", "alike"]
#: Words that a text has at least to be looked for inside of others.
LEAST_WORDS: Final = 4
#: Texts at most that are looked at for one word: where one of the rarest is meant, and where only the rarest is. Two texts that
#: are alike share most of their words, and so rarer ones too.
MOST_ALIKE: Final = 50
MOST_CONTAINING: Final = 200
#: So many of the rarest words two texts must share to be compared, or all that they have to share.
_SHARED: Final = 4
#: More than products of such numbers are off by.
_ROUNDING: Final = 1e-9


class Pair(NamedTuple):
    """Two texts. `contained`: the first stands inside the second, word for word."""

    one: str
    other: str
    how: How
    #: The share of their different terms that both have (Jaccard), 0 to 1.
    similarity: float


class _Text(NamedTuple):
    id: str
    words: tuple[str, ...]
    terms: frozenset[str]
    #: The terms, the rarest first.
    rare: tuple[str, ...]


def duplicates(texts: Mapping[str, str], least: float = 0.8) -> list[Pair]:
    """The pairs of texts, by id, that are the same in all words, of which one stands in the other, or that have at least this share
    of their terms in common; those that are the same first, then the most alike. Of many that are the same each comes with the first.
    """
    first: dict[tuple[str, ...], str] = {}
    pairs = []
    for id, text in sorted(texts.items()):
        words = tuple(split(text))
        if words in first:
            pairs.append(Pair(first[words], id, "same", 1.0))
        elif words:
            first[words] = id
    different = _ready(first)
    found = {frozenset((pair.one, pair.other)): pair for pair in _alike(different, least)}
    found |= {frozenset((pair.one, pair.other)): pair for pair in _contained(different)}
    return sorted([*pairs, *found.values()], key=lambda p: (p.how != "same", -p.similarity, p.one, p.other))


def _ready(first: Mapping[tuple[str, ...], str]) -> list[_Text]:
    """The texts, the fewest terms first."""
    of_word = functools.cache(terms_of)
    known = [
        (id, words, frozenset(term for word in set(words) for term in of_word(word)))
        for words, id in first.items()
    ]
    often = Counter(term for _, _, terms in known for term in terms)
    made = [
        _Text(id, words, terms, tuple(sorted(terms, key=lambda term: (often[term], term))))
        for id, words, terms in known
    ]
    return sorted(made, key=lambda text: (len(text.terms), text.id))


def _alike(texts: Sequence[_Text], least: float) -> Iterator[Pair]:
    having: dict[str, list[int]] = {}
    for number, text in enumerate(texts):
        size = len(text.terms)
        common = ceil(least * size - _ROUNDING)
        shared: Counter[int] = Counter()
        for term in text.rare[: size - common + _SHARED]:
            there = having.setdefault(term, [])
            shared.update(there[-MOST_ALIKE:])
            there.append(number)
        least_shared = min(_SHARED, common)
        for other in [texts[other] for other, times in shared.items() if times >= least_shared]:
            if len(other.terms) >= least * size - _ROUNDING:
                share = _share(text, other)
                if share >= least - _ROUNDING:
                    one, two = sorted((text.id, other.id))
                    yield Pair(one, two, "alike", share)


def _contained(texts: Sequence[_Text]) -> Iterator[Pair]:
    having: dict[str, list[_Text]] = {}
    for text in texts:
        for term in text.terms:
            having.setdefault(term, []).append(text)
    for text in texts:
        if len(text.words) < LEAST_WORDS or not text.rare:
            continue
        inside = f" {' '.join(text.words)} "
        for other in having[text.rare[0]][-MOST_CONTAINING:]:
            if other is not text and inside in f" {' '.join(other.words)} ":
                yield Pair(text.id, other.id, "contained", _share(text, other))


def _share(one: _Text, other: _Text) -> float:
    both = len(one.terms & other.terms)
    return both / (len(one.terms) + len(other.terms) - both) if both else 0.0
