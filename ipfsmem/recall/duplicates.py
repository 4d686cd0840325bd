"""Finds near-duplicate texts without comparing every pair: equal words, one text inside the other, or most words in common.

Similar texts have several of their rarest words in common, so only such texts are compared (prefix filtering: Bayardo, Ma, Srikant
2007; with several words: Wang, Li, Feng 2012). Of the texts with a very frequent word, only some are compared.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import partial, reduce
from importlib.util import find_spec
from itertools import accumulate, chain, islice
from math import ceil
from operator import or_
from typing import Any, Final, Literal, NamedTuple

from ipfsmem.recall.postings import TermNumbers
from ipfsmem.recall.terms import split

How = Literal["same", "contained", "alike"]
#: Minimum words of a text that is searched inside others.
LEAST_WORDS: Final = 4
#: Maximum texts examined for one of the rarest words when comparing, and for the rarest word when searching inside others. Similar
#: texts are found by another word.
MAX_COMPARED: Final = 50
MAX_CONTAINING: Final = 200
#: Number of rarest words that two texts must have in common to be compared, or fewer if they need fewer in common.
_SHARED: Final = 4
#: Minimum texts for which NumPy is used.
_MANY: Final = 2_000
#: Bits of a text's term signature.
_BITS: Final = 2_048
#: Upper bound of the rounding error of products of shares and counts.
_ROUNDING: Final = 1e-9


class Pair(NamedTuple):
    """Two similar texts. `contained`: the first occurs in the second, word for word."""

    one: str
    other: str
    how: How
    #: The share of their distinct terms that occur in both (Jaccard), 0 to 1.
    similarity: float


class _Text(NamedTuple):
    id: str
    #: Its words, separated by spaces.
    words: str
    #: The distinct terms as numbers by frequency, rarest first.
    rare: array[int]
    #: The term signature: a bit for each term. Sets would use ten times the memory, and more time outside the CPU cache.
    bits: int


def duplicates(
    texts: Mapping[str, str], least: float = 0.8, groups: Mapping[str, Hashable] | None = None
) -> list[Pair]:
    """Return the pairs of texts, by id, with equal words, with one inside the other, or with at least the share `least` of their
    terms in common; equal ones first, then the most similar. Of several equal ones in a group (`groups`: by id; default: all in
    one) each is paired with the first of that group only."""
    by_words: dict[tuple[str, Hashable], str] = {}
    pairs = []
    terms: list[array[int]] = []
    numbers = TermNumbers()
    for id, text in sorted(texts.items()):
        words = split(text)
        same = " ".join(words), groups[id] if groups else None
        if same in by_words:
            pairs.append(Pair(by_words[same], id, "same", 1.0))
        elif words:
            by_words[same] = id
            terms.append(array("I", numbers.different(words)))
    first = [(words, id) for (words, _), id in by_words.items()]
    by_arrays = len(first) >= _MANY and find_spec("numpy")
    different = (_ready_by_arrays if by_arrays else _ready)(first, terms, numbers.terms)
    alike = {frozenset((pair.one, pair.other)): pair for pair in _alike(different, least)}
    alike |= {frozenset((pair.one, pair.other)): pair for pair in _contained(different)}
    if groups:
        words_of = {id: words for words, id in first}
        alike = {
            ids: _same(pair) if words_of[pair.one] == words_of[pair.other] else pair
            for ids, pair in alike.items()
        }
    return sorted([*pairs, *alike.values()], key=lambda p: (p.how != "same", -p.similarity, p.one, p.other))


def _same(pair: Pair) -> Pair:
    one, other = sorted((pair.one, pair.other))
    return Pair(one, other, "same", 1.0)


def _ready(
    first: Sequence[tuple[str, str]], terms: Sequence[array[int]], names: Sequence[str]
) -> list[_Text]:
    """Return the prepared texts, those with the fewest terms first."""
    often = Counter(chain.from_iterable(terms))
    place = [0] * len(names)
    for at, term in enumerate(sorted(range(len(names)), key=lambda term: (often[term], names[term]))):
        place[term] = at
    bits = [1 << at % _BITS for at in range(len(names))]
    texts_ready = []
    for (words, id), its in zip(first, terms, strict=True):
        rare = array("I", sorted(map(place.__getitem__, its)))
        texts_ready.append(_Text(id, words, rare, reduce(or_, map(bits.__getitem__, rare), 0)))
    return sorted(texts_ready, key=lambda text: (len(text.rare), text.id))


def _ready_by_arrays(
    first: Sequence[tuple[str, str]], terms: Sequence[array[int]], names: Sequence[str]
) -> list[_Text]:
    """Return the same as `_ready`, in a fifth of the time."""
    import numpy as np

    ends = list(accumulate(map(len, terms), initial=0))
    codes: Any = np.frombuffer(b"".join(terms), np.uint32)
    by_name = np.array(sorted(range(len(names)), key=names.__getitem__))
    often = np.bincount(codes, minlength=len(names))[by_name]
    place = np.empty(len(names), np.uint64)
    place[by_name[np.argsort(often, kind="stable")]] = np.arange(len(names))
    rows = np.repeat(np.arange(len(terms)), np.diff(ends))
    keys = rows.astype(np.uint64) << np.uint64(32) | place[codes]
    keys.sort()
    places = keys.astype(np.uint32)  # the lower half
    texts_ready = []
    for begin in range(0, len(terms), _MANY):
        there = slice(ends[begin], ends[min(begin + _MANY, len(terms))])
        bits = np.zeros((_MANY, _BITS), bool)
        bits[rows[there] - begin, places[there] % _BITS] = True
        packed = np.packbits(bits, axis=1, bitorder="little")
        for row, (words, id) in enumerate(islice(first, begin, begin + _MANY)):
            rare = array("I", places[ends[begin + row] : ends[begin + row + 1]].tobytes())
            texts_ready.append(_Text(id, words, rare, int.from_bytes(packed[row].tobytes(), "little")))
    return sorted(texts_ready, key=lambda text: (len(text.rare), text.id))


class _Candidates(NamedTuple):
    """The earlier texts to compare with a text."""

    #: The terms of which they must share `shared`, and the first text that has enough terms.
    rare: array[int]
    shared: int
    first: int


def _alike(texts: Sequence[_Text], least: float) -> Iterator[Pair]:
    sizes, sought = [len(text.rare) for text in texts], list[_Candidates]()
    for number, (text, size) in enumerate(zip(texts, sizes, strict=True)):
        common = ceil(least * size - _ROUNDING)
        rare, first = text.rare[: size - common + _SHARED], bisect_left(sizes, common, 0, number)
        sought.append(_Candidates(rare, min(_SHARED, common), first))
    near = _near_by_arrays if len(texts) >= _MANY and find_spec("numpy") else _near
    for number, at in near(sought):
        text, other = texts[number], texts[at]
        # Each bit that is set in only one signature is a term that occurs in only one text.
        may_differ = (sizes[number] + sizes[at]) * (1 - least) / (1 + least) + 1
        if (text.bits ^ other.bits).bit_count() <= may_differ:
            share = _share(text, other)
            if share >= least - _ROUNDING:
                one, two = sorted((text.id, other.id))
                yield Pair(one, two, "alike", share)


def _near(sought: Sequence[_Candidates]) -> Iterator[tuple[int, int]]:
    """Yield (number of a text, number of an earlier text) for each pair that shares enough terms."""
    having = defaultdict[int, deque[int]](partial(deque, maxlen=MAX_COMPARED))
    for number, (rare, shared, first) in enumerate(sought):
        rows = list(map(having.__getitem__, rare))
        often = Counter(chain.from_iterable(rows))
        yield from ((number, at) for at, times in often.items() if times >= shared and at >= first)
        for row in rows:
            row.append(number)


def _near_by_arrays(sought: Sequence[_Candidates]) -> Iterator[tuple[int, int]]:
    """Yield the same as `_near`, in any order, in a fifth of the time."""
    import numpy as np

    terms = 1 + max((one.rare[-1] for one in sought if one.rare), default=0)
    having = np.full((terms, MAX_COMPARED), -1, np.int32)
    cells, places = having.reshape(-1), np.zeros(terms, np.intp)
    for number, (rare, shared, first) in enumerate(sought):
        rows = np.array(rare, np.intp)
        numbers = having[rows].ravel()
        numbers = numbers[numbers >= first]
        numbers.sort()
        # In the sorted numbers, one that occurs `shared` times equals the number `shared` - 1 places later.
        often = numbers[: max(0, len(numbers) - shared + 1)]
        yield from ((number, at) for at in set(often[often == numbers[shared - 1 :]].tolist()))
        cells[rows * MAX_COMPARED + places[rows]] = number
        places[rows] = (places[rows] + 1) % MAX_COMPARED


def _contained(texts: Sequence[_Text]) -> Iterator[Pair]:
    sought = [text for text in texts if text.words.count(" ") >= LEAST_WORDS - 1 and text.rare]
    having = {text.rare[0]: deque[_Text](maxlen=MAX_CONTAINING) for text in sought}
    for text in texts:
        for term in having.keys() & text.rare:
            having[term].append(text)
    for text in sought:
        bits = text.bits
        for other in having[text.rare[0]]:
            # The terms of a contained text are a subset, which is checked a hundred times faster than its words.
            if bits & other.bits == bits and other is not text and f" {text.words} " in f" {other.words} ":
                yield Pair(text.id, other.id, "contained", _share(text, other))


def _share(one: _Text, other: _Text) -> float:
    both = len(frozenset(one.rare).intersection(other.rare))
    return both / (len(one.rare) + len(other.rare) - both) if both else 0.0
