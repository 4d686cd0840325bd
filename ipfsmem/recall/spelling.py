"""Replaces the terms of a query that occur in no entry: by the most frequent term within one typing error (a letter missing, added,
changed, or two swapped: Damerau 1964), else by the most similar term, such as the same word in another language."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

#: Minimum and maximum letters of a term to correct: shorter terms are near to too many others, longer ones are not typed.
LEAST_LETTERS, MOST_LETTERS = 5, 30
#: A query with more distinct terms is not corrected.
MOST_TERMS = 12
#: Two terms are similar if they have more than this share of the shorter one's trigrams in common, and at least this number.
LIKE, LEAST_THREES = 0.5, 3
_ALPHABETS = ("abcdefghijklmnopqrstuvwxyz", "абвгдежзиклмнопрстуфхцчшщъыьэюя", "αβγδεζηθικλμνξοπρστυφχψω")


def spelled(
    terms: Sequence[str],
    having: Callable[[str], int],
    among: Callable[[Iterable[str]], Iterable[str]] = iter,
) -> list[str]:
    """Return the terms, with each term that occurs in no entry replaced by the most frequent one within one typing error, ties by
    order. `having`: returns the number of entries with a term. `among`: drops terms that occur in no entry, to avoid hundreds of
    lookups; may keep some."""
    if len(set(terms)) > MOST_TERMS:
        return list(terms)
    return [_near(term, having, among) if _is_to_change(term, having) else term for term in terms]


def likened(
    terms: Sequence[str],
    having: Callable[[str], int],
    alike: Callable[[str], Sequence[tuple[str, float]]],
) -> list[str]:
    """Return the terms, with each term that occurs in no entry replaced by the most similar one, ties by frequency, then by order.
    `alike`: returns the similar terms of the index; called only for such a term."""
    if len(set(terms)) > MOST_TERMS:
        return list(terms)
    return [
        _most_like(term, having, alike(term)) if term.isalpha() and _is_to_change(term, having) else term
        for term in terms
    ]


def vocabulary_of(terms: Iterable[str]) -> str:
    """Join terms with a line break before and after each."""
    return "\n".join(("", *terms, ""))


def alike(term: str, vocabulary: str) -> list[tuple[str, float]]:
    """Return the terms of a vocabulary that are similar to a term, each with the share of common trigrams."""
    trigrams = threes(term)
    times: dict[int, int] = {}
    for three in trigrams:
        last, at = -1, vocabulary.find(three)
        while at >= 0:
            begin = vocabulary.rfind("\n", 0, at + 1)
            if begin != last:
                times[begin] = times.get(begin, 0) + 1
                last = begin
            at = vocabulary.find(three, at + 1)
    shares = []
    for begin, common in times.items():
        if common >= LEAST_THREES:
            other = vocabulary[begin + 1 : vocabulary.index("\n", begin + 1)]
            share = common / min(len(trigrams), len(threes(other)))
            if share > LIKE and LEAST_THREES <= len(other) <= MOST_LETTERS and other.isalpha():
                shares.append((other, share))
    return shares


def threes(term: str) -> set[str]:
    """Return the trigrams of a term, with a mark at each end."""
    padded = f"\n{term}\n"
    return {padded[at : at + 3] for at in range(len(term))}


def _is_to_change(term: str, having: Callable[[str], int]) -> bool:
    return LEAST_LETTERS <= len(term) <= MOST_LETTERS and not having(term)


def _most_like(term: str, having: Callable[[str], int], candidates: Iterable[tuple[str, float]]) -> str:
    there = ((-share, -times, other) for other, share in candidates if (times := having(other)))
    return min(there, default=(0.0, 0, term))[2]


def _near(term: str, having: Callable[[str], int], among: Callable[[Iterable[str]], Iterable[str]]) -> str:
    best, most = term, 0
    for other in among(_slips(term)):
        times = having(other)
        if times > most or (times == most and times and other < best):
            best, most = other, times
    return best


def _slips(term: str) -> Iterator[str]:
    """Yield all terms within one typing error of a word in a known alphabet."""
    letters = next((letters for letters in _ALPHABETS if term[0] in letters), "")
    if not all(char in letters for char in term):
        return
    for at in range(len(term) + 1):
        before, after = term[:at], term[at:]
        for letter in letters:
            yield before + letter + after
        if after:
            yield before + after[1:]
            for letter in letters:
                yield before + letter + after[1:]
        if len(after) > 1:
            yield before + after[1] + after[0] + after[2:]
