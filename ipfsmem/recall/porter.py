"""Stems English words with the algorithm of M. F. Porter (1980) and its later changes, as in SQLite FTS5."""

from __future__ import annotations

import functools

_SECOND = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "logi": "log", "bli": "ble", "alli": "al",
    "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate", "ator": "ate", "alism": "al", "iveness": "ive",
    "fulness": "ful", "ousness": "ous", "aliti": "al", "iviti": "ive", "biliti": "ble",
}  # fmt: skip
_THIRD = {"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": ""}
_FOURTH = dict.fromkeys(
    [
        "al",
        "ance",
        "ence",
        "er",
        "ic",
        "able",
        "ible",
        "ant",
        "ement",
        "ment",
        "ent",
        "ion",
        "ou",
        "ism",
        "ate",
        "iti",
        "ous",
        "ive",
        "ize",
    ],
    "",
)
#: Maps each ASCII letter to v (vowel) or c (consonant); y depends on the letter before it.
_KINDS = "".join("v" if char in "aeiou" else "y" if char == "y" else "c" for char in map(chr, range(128)))


def _by_last(endings: dict[str, str]) -> dict[str, list[tuple[str, str]]]:
    """Group endings and their replacements by the last two letters, longest first."""
    endings_of: dict[str, list[tuple[str, str]]] = {}
    for ending in sorted(endings, key=len, reverse=True):
        endings_of.setdefault(ending[-2:], []).append((ending, endings[ending]))
    return endings_of


_second, _third, _fourth = map(_by_last, (_SECOND, _THIRD, _FOURTH))
#: A word with another last letter is its own stem.
_LAST = frozenset("sdgyel").union(ending[-1] for ending in (*_SECOND, *_THIRD, *_FOURTH))


def _shape(word: str) -> str:
    """Return the word, of ASCII letters, with v for each vowel and c for each consonant; y is a vowel after a consonant."""
    shape = word.translate(_KINDS)
    while "y" in shape:
        at = shape.index("y")
        shape = shape[:at] + ("v" if shape[at - 1 : at] == "c" else "c") + shape[at + 1 :]
    return shape


def _measure(word: str) -> int:
    """Return Porter's measure: how often a consonant follows a vowel."""
    return _shape(word).count("vc")


def _short(word: str) -> bool:
    """Return whether a word ends with consonant, vowel, consonant, where the last is not w, x or y."""
    return _shape(word).endswith("cvc") and word[-1] not in "wxy"


def _replaced(word: str, endings: dict[str, list[tuple[str, str]]], least: int) -> str:
    """Replace the longest ending of the word, if the rest has at least this measure."""
    for ending, instead in endings.get(word[-2:], ()):
        if word.endswith(ending) and len(word) > len(ending):
            head = word[: -len(ending)]
            if _measure(head) < least or (ending == "ion" and head[-1] not in "st"):
                return word
            return head + instead
    return word


@functools.lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return the stem of a lower-case word; a word of one or two letters is unchanged."""
    if len(word) < 3 or word[-1] not in _LAST:
        return word
    if word.endswith(("sses", "ies")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    cut = ""
    if word.endswith("eed"):
        word = word[:-1] if _measure(word[:-3]) else word
    elif word.endswith("ed") and "v" in _shape(word[:-2]):
        cut = word[:-2]
    elif word.endswith("ing") and "v" in _shape(word[:-3]):
        cut = word[:-3]
    if cut:
        word = cut
        if word.endswith(("at", "bl", "iz")):
            word += "e"
        elif word[-1:] == word[-2:-1] and word[-1] not in "lsz" and _shape(word)[-1] == "c":
            word = word[:-1]
        elif _measure(word) == 1 and _short(word):
            word += "e"
    if word.endswith("y") and "v" in _shape(word[:-1]):
        word = word[:-1] + "i"
    word = _replaced(word, _second, 1)
    word = _replaced(word, _third, 1)
    word = _replaced(word, _fourth, 2)
    if word.endswith("e"):
        head = word[:-1]
        if _measure(head) > 1 or (_measure(head) == 1 and not _short(head)):
            word = head
    if word.endswith("ll") and _measure(word[:-1]) > 1:
        word = word[:-1]
    return word
