"""A question's terms that no entry has, as the ones that they are one slip of the hand away from: a letter too few, too many, another,
or two that changed places (Damerau 1964). A term that some entry has is never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

#: Letters of a term: shorter ones are near to too many others, and longer ones nobody types.
LEAST_LETTERS, MOST_LETTERS = 5, 30
#: Of a question of more different terms none is changed: it says enough without.
MOST_TERMS = 12
_ALPHABETS = ("abcdefghijklmnopqrstuvwxyz", "абвгдежзиклмнопрстуфхцчшщъыьэюя", "αβγδεζηθικλμνξοπρστυφχψω")


def spelled(terms: Sequence[str], having: Callable[[str], int]) -> list[str]:
    """The same terms, each that no entry has as the near one that most have, of equal ones the first. `having`: how many entries have
    a term; it is asked often."""
    if len(set(terms)) > MOST_TERMS:
        return list(terms)
    return [
        _near(term, having) if LEAST_LETTERS <= len(term) <= MOST_LETTERS and not having(term) else term
        for term in terms
    ]


def _near(term: str, having: Callable[[str], int]) -> str:
    best, most = term, 0
    for other in _slips(term):
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
