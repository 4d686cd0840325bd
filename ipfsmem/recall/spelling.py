"""A question's terms that no entry has, as the ones that they are one slip of the hand away from: a letter too few, too many, another,
or two that changed places (Damerau 1964); else as the ones that are most like them, such as the same word in another language. A term
that some entry has is never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

#: Letters of a term: shorter ones are near to too many others, and longer ones nobody types.
LEAST_LETTERS, MOST_LETTERS = 5, 30
#: Of a question of more different terms none is changed: it says enough without.
MOST_TERMS = 12
#: Two terms are alike that have more than this share of the threes of the shorter one in common, and so many at least.
LIKE, LEAST_THREES = 0.5, 3
_ALPHABETS = ("abcdefghijklmnopqrstuvwxyz", "абвгдежзиклмнопрстуфхцчшщъыьэюя", "αβγδεζηθικλμνξοπρστυφχψω")


def spelled(
    terms: Sequence[str],
    having: Callable[[str], int],
    among: Callable[[Iterable[str]], Iterable[str]] = iter,
) -> list[str]:
    """The same terms, each that no entry has as the near one that most have, of equal ones the first. `having`: how many entries have
    a term; `among`: leaves out of hundreds those that none has, or not all of them."""
    if len(set(terms)) > MOST_TERMS:
        return list(terms)
    return [_near(term, having, among) if _is_to_change(term, having) else term for term in terms]


def likened(
    terms: Sequence[str],
    having: Callable[[str], int],
    alike: Callable[[str], Sequence[tuple[str, float]]],
) -> list[str]:
    """The same terms, each that no entry has as the one that is most like it, of equal ones that most have, of equal ones the first.
    `alike`: as the function of that name, of the terms that entries have or had; it is asked only where a term needs it."""
    if len(set(terms)) > MOST_TERMS:
        return list(terms)
    return [
        _most_like(term, having, alike(term)) if term.isalpha() and _is_to_change(term, having) else term
        for term in terms
    ]


def vocabulary_of(terms: Iterable[str]) -> str:
    """Some terms with a line break before and after each."""
    return "\n".join(("", *terms, ""))


def alike(term: str, vocabulary: str) -> list[tuple[str, float]]:
    """The terms of a vocabulary that are like one, and what share of the shorter one's threes both have in common."""
    wanted = threes(term)
    times: dict[int, int] = {}
    for three in wanted:
        last, at = -1, vocabulary.find(three)
        while at >= 0:
            begin = vocabulary.rfind("\n", 0, at + 1)
            if begin != last:
                times[begin] = times.get(begin, 0) + 1
                last = begin
            at = vocabulary.find(three, at + 1)
    found = []
    for begin, common in times.items():
        if common >= LEAST_THREES:
            other = vocabulary[begin + 1 : vocabulary.index("\n", begin + 1)]
            share = common / min(len(wanted), len(threes(other)))
            if share > LIKE and LEAST_THREES <= len(other) <= MOST_LETTERS and other.isalpha():
                found.append((other, share))
    return found


def threes(term: str) -> set[str]:
    """The threes of letters of a term; its ends count as a letter."""
    padded = f"\n{term}\n"
    return {padded[at : at + 3] for at in range(len(term))}


def _is_to_change(term: str, having: Callable[[str], int]) -> bool:
    return LEAST_LETTERS <= len(term) <= MOST_LETTERS and not having(term)


def _most_like(term: str, having: Callable[[str], int], found: Iterable[tuple[str, float]]) -> str:
    there = ((-share, -times, other) for other, share in found if (times := having(other)))
    return min(there, default=(0.0, 0, term))[2]


def _near(term: str, having: Callable[[str], int], among: Callable[[Iterable[str]], Iterable[str]]) -> str:
    best, most = term, 0
    for other in among(_slips(term)):
        times = having(other)
        if times > most or (times == most and times and other < best):
            best, most = other, times
    return best


def _slips(term: str) -> Iterator[str]:
    """What is one slip away, of words in letters that are known here."""
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
