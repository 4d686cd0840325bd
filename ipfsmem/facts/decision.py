"""What becomes of a new fact beside those that are there: it is new, it says more of one that is there, or nothing new.

The steps are those of LibreFang's memory, with what was wrong there put right: one text stands in another only at the borders of
words, and a fact that denies another, or has another number in it, is never taken for the same. What is merely near takes the place of
one that is there only where it says all of it, or says itself that something changed: else both stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

from ipfsmem.recall.terms import split, terms_of

#: `added`: a new entry; `updated`: it takes the place of one, which goes into its history; `kept`: one says it already.
Action = Literal["added", "updated", "kept"]
#: What decided: nothing near, the same words, one inside the other, a model's cosine, or the share of words in common (Jaccard).
By = Literal["nothing near", "same", "contained", "meaning", "words"]
#: From this similarity on it is the same; and from these on it is about the same thing, in the same category and in another.
SAME: Final = 0.95
NEAR: Final = 0.70
NEAR_ELSEWHERE: Final = 0.80
#: With this share of their stems in common, a text that denies what another says is new, and stands in conflict with it.
OPPOSED: Final = 0.60
#: Below this share of words in common a text that says a change is a conflict with what it takes the place of.
UNLIKE: Final = 0.30
#: Words that a text has at least to be looked for inside of another one.
LEAST_WORDS: Final = 2

_DENIALS: Final = frozenset(
    [
        "no",
        "not",
        "never",
        "none",
        "cannot",
        "without",
        "neither",
        "nor",
        "nothing",
        "dont",
        "doesnt",
        "didnt",
        "isnt",
        "arent",
        "wasnt",
        "wont",
        "cant",
        "shouldnt",
        "mustnt",
        "nicht",
        "kein",
        "keine",
        "keinen",
        "nie",
        "niemals",
        "non",
        "jamais",
        "aucun",
        "nunca",
    ]
)
_CHANGES: Final = frozenset(
    [
        "now",
        "instead",
        "anymore",
        "longer",
        "changed",
        "moved",
        "switched",
        "stopped",
        "replaced",
        "former",
        "formerly",
        "previously",
        "jetzt",
        "statt",
    ]
)
_apostrophe = re.compile("['\u2019`\u00b4]")


class Candidate(NamedTuple):
    """A fact that is there. `meaning`: the cosine of its vector with that of the new one, where a model made both."""

    key: str
    text: str
    category: str
    meaning: float | None = None


class Decision(NamedTuple):
    """What becomes of a new fact."""

    action: Action
    #: The entry that says it, that it takes the place of, or that it is in conflict with; "" for none.
    key: str
    by: By
    #: -1 to 1 by meaning, else 0 to 1.
    similarity: float
    #: Whether it says something else than that one, so that a person should look.
    conflict: bool = False


def decide(text: str, category: str, there: Iterable[Candidate], *, with_model: bool = False) -> Decision:
    """What becomes of a fact in this category. `with_model`: a model is at hand, and was not asked of those that it could not decide."""
    words = words_of(text)
    best: tuple[float, Candidate, By] | None = None
    longer: Candidate | None = None
    for one in there:
        known = words_of(one.text)
        if one.text == text or (words and known == words):
            return Decision("kept", one.key, "same", 1.0)
        if _says_the_same(words, known) and _stands_in(words, known):
            return Decision("kept", one.key, "contained", share(words, known))
        if longer is None and _denials(words) == _denials(known) and _stands_in(known, words):
            longer = one
        by: By = "words" if one.meaning is None else "meaning"
        near = share(words, known) if one.meaning is None else one.meaning
        if best is None or near > best[0]:
            best = near, one, by
    if longer is not None:
        return Decision("updated", longer.key, "contained", share(words, words_of(longer.text)))
    if best is None:
        return Decision("added", "", "nothing near", 0.0)
    near, one, by = best
    known = words_of(one.text)
    if near >= SAME and _says_the_same(words, known):
        return Decision("kept", one.key, by, near)
    if near > (NEAR if one.category == category else NEAR_ELSEWHERE):
        if _says_all_of(words, known) or not _CHANGES.isdisjoint(words):
            return Decision("updated", one.key, by, near, _conflict(words, known))
        # "Anna may" and "Berta may" have most words in common and are two facts: both stay, and a person looks.
        return Decision("added", one.key, by, near, conflict=by == "words" and not with_model)
    if _denials(words) != _denials(known) and share(stems(words), stems(known)) >= OPPOSED:
        return Decision("added", one.key, by, near, conflict=True)
    return Decision("added", "", "nothing near", near)


def says_a_change(text: str) -> bool:
    """Whether a text itself states a change."""
    return not _CHANGES.isdisjoint(words_of(text))


def meaning_matters(text: str, there: Iterable[Candidate]) -> bool:
    """Whether a model's similarity could change the decision that the words lead to."""
    words = words_of(text)
    if not _CHANGES.isdisjoint(words):
        return True
    return any(
        _says_the_same(words, known := words_of(one.text)) or _says_all_of(words, known) for one in there
    )


def share(one: tuple[str, ...], other: tuple[str, ...]) -> float:
    """The share of their different words that two texts have in common, 0 to 1 (Jaccard)."""
    a, b = frozenset(one), frozenset(other)
    both = len(a & b)
    return both / (len(a) + len(b) - both) if both else 0.0


def words_of(text: str) -> tuple[str, ...]:
    """The words of a fact, in order."""
    return tuple(split(_apostrophe.sub("", text)))


def stems(words: tuple[str, ...]) -> tuple[str, ...]:
    """Their stems, without words that mean nothing."""
    return tuple(term for word in words for term in terms_of(word))


def _denials(words: tuple[str, ...]) -> int:
    return sum(word in _DENIALS for word in words)


def _numbers(words: tuple[str, ...]) -> frozenset[str]:
    return frozenset(word for word in words if not word.isalpha() and any(map(str.isdigit, word)))


def _says_the_same(words: tuple[str, ...], known: tuple[str, ...]) -> bool:
    """Whether nothing in a new text speaks against its being the one that is there."""
    return _denials(words) == _denials(known) and _numbers(words) <= _numbers(known)


def _says_all_of(words: tuple[str, ...], known: tuple[str, ...]) -> bool:
    """Whether every word of a text that is there which means something stands in the new one too."""
    return {*stems(known)} <= {*stems(words)} and _numbers(known) <= _numbers(words)


def _stands_in(short: tuple[str, ...], long: tuple[str, ...]) -> bool:
    """Whether one text stands in the other, word for word."""
    return LEAST_WORDS <= len(short) <= len(long) and f" {' '.join(short)} " in f" {' '.join(long)} "


def _conflict(words: tuple[str, ...], known: tuple[str, ...]) -> bool:
    if _denials(words) != _denials(known):
        return True
    return share(words, known) < UNLIKE and not _CHANGES.isdisjoint(words)
