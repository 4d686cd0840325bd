"""Compares a new fact with existing ones: it is new, it extends an existing one, or it adds nothing.

The steps are those of LibreFang's memory, with corrections: a text is contained in another only at word boundaries, and a fact that
denies another, or has another number, is never the same. A similar fact replaces an existing one only if it contains all of it, or
itself states a change; otherwise both are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

from ipfsmem.recall.terms import split, terms_of

#: `added`: a new entry; `updated`: it replaces an entry, whose text is stored in the history; `kept`: an existing entry contains
#: it.
Action = Literal["added", "updated", "kept"]
#: The criterion: no similar entry, the same words, one text inside the other, the cosine of embeddings, or the share of common
#: words (Jaccard).
By = Literal["nothing near", "same", "contained", "meaning", "words"]
#: Minimum similarity of the same fact, and of a fact on the same subject, in the same category and in another one.
SAME: Final = 0.95
NEAR: Final = 0.70
NEAR_ELSEWHERE: Final = 0.80
#: Minimum share of common stems at which a text that denies another is in conflict with it.
OPPOSED: Final = 0.60
#: Share of common words below which a text that states a change is in conflict with the text that it replaces.
UNLIKE: Final = 0.30
#: Minimum words of a text that is searched inside another one.
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
    """An existing fact. `meaning`: the cosine of its embedding and that of the new fact, if both have one."""

    key: str
    text: str
    category: str
    meaning: float | None = None


class Decision(NamedTuple):
    """The decision about a new fact."""

    action: Action
    #: The entry that contains the new fact, is replaced by it, or is in conflict with it; "" for none.
    key: str
    by: By
    #: -1 to 1 by meaning, else 0 to 1.
    similarity: float
    #: Whether the new fact contradicts that entry, so that a person should review it.
    conflict: bool = False


def decide(text: str, category: str, there: Iterable[Candidate], *, with_model: bool = False) -> Decision:
    """Decide about a fact in this category. `with_model`: a model is available, and was not asked where it could not change the
    decision."""
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
        # Two facts such as "Anna may" and "Berta may" have most words in common: both are kept, and a person reviews them.
        return Decision("added", one.key, by, near, conflict=by == "words" and not with_model)
    if _denials(words) != _denials(known) and share(stems(words), stems(known)) >= OPPOSED:
        return Decision("added", one.key, by, near, conflict=True)
    return Decision("added", "", "nothing near", near)


def says_a_change(text: str) -> bool:
    """Return whether a text itself states a change."""
    return not _CHANGES.isdisjoint(words_of(text))


def meaning_matters(text: str, there: Iterable[Candidate]) -> bool:
    """Return whether embeddings could change the decision by words."""
    words = words_of(text)
    if not _CHANGES.isdisjoint(words):
        return True
    return any(
        _says_the_same(words, known := words_of(one.text)) or _says_all_of(words, known) for one in there
    )


def share(one: tuple[str, ...], other: tuple[str, ...]) -> float:
    """Return the share of distinct words that two texts have in common, 0 to 1 (Jaccard)."""
    a, b = frozenset(one), frozenset(other)
    both = len(a & b)
    return both / (len(a) + len(b) - both) if both else 0.0


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a fact, in order."""
    return tuple(split(_apostrophe.sub("", text)))


def stems(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the stems of some words, without stop words."""
    return tuple(term for word in words for term in terms_of(word))


def _denials(words: tuple[str, ...]) -> int:
    return sum(word in _DENIALS for word in words)


def _numbers(words: tuple[str, ...]) -> frozenset[str]:
    return frozenset(word for word in words if not word.isalpha() and any(map(str.isdigit, word)))


def _says_the_same(words: tuple[str, ...], known: tuple[str, ...]) -> bool:
    """Return whether a new text neither denies the existing one nor has other numbers."""
    return _denials(words) == _denials(known) and _numbers(words) <= _numbers(known)


def _says_all_of(words: tuple[str, ...], known: tuple[str, ...]) -> bool:
    """Return whether the new text has every significant word of an existing one."""
    return {*stems(known)} <= {*stems(words)} and _numbers(known) <= _numbers(words)


def _stands_in(short: tuple[str, ...], long: tuple[str, ...]) -> bool:
    """Return whether one text is contained in the other, word for word."""
    return LEAST_WORDS <= len(short) <= len(long) and f" {' '.join(short)} " in f" {' '.join(long)} "


def _conflict(words: tuple[str, ...], known: tuple[str, ...]) -> bool:
    if _denials(words) != _denials(known):
        return True
    return share(words, known) < UNLIKE and not _CHANGES.isdisjoint(words)
