"""The terms of a text: words without case and accents, English ones as their stems, every two letters of scripts without
spaces. Words that say nothing, like "the", are no terms.
"""

from __future__ import annotations

import functools
import re
import unicodedata

from ipfsmem.recall.porter import stem

#: Scripts that put no space between words: Thai to Khmer, kana, ideographs.
_RUNS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_ascii_word = re.compile(r"[^\W_]+")
STOP_WORDS = frozenset((
    "a", "about", "after", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "because", "been", "before",
    "being", "but", "by", "can", "could", "did", "do", "does", "doing", "for", "from", "had", "has", "have", "he", "her",
    "hers", "him", "his", "how", "i", "if", "in", "into", "is", "it", "its", "just", "me", "my", "no", "not", "of", "on",
    "or", "our", "ours", "she", "should", "so", "some", "such", "than", "that", "the", "their", "them", "then", "there",
    "these", "they", "this", "those", "to", "too", "us", "was", "we", "were", "what", "when", "where", "which", "while",
    "who", "whom", "why", "will", "with", "would", "you", "your", "yours",
))  # fmt: skip


@functools.cache
def _word() -> re.Pattern[str]:
    """A run of such a script, or a word of another. Made when it is first needed, which takes longer than most commands do."""
    return re.compile(rf"[{_RUNS}]+|[^\W_{_RUNS}]+")


@functools.cache
def unspaced() -> re.Pattern[str]:
    """A run of a script without spaces."""
    return re.compile(f"[{_RUNS}]+")


def fold(text: str) -> str:
    """A text without case and accents."""
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFKD", text.casefold())
    return "".join(c for c in apart if not unicodedata.combining(c)).casefold()


def split(text: str) -> list[str]:
    """The words of a text without case and accents; a run of a script without spaces is one."""
    folded = fold(text)
    return (_ascii_word if folded.isascii() else _word()).findall(folded)


def terms(text: str) -> list[str]:
    """The terms of a text in their order, as often as they occur."""
    found: list[str] = []
    for word in split(text):
        if word.isascii():
            if word not in STOP_WORDS:
                found.append(stem(word))
        elif unspaced().match(word):
            found += [word[n : n + 2] for n in range(max(1, len(word) - 1))]
        else:
            found.append(word)
    return found
