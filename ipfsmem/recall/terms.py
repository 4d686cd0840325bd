"""Splits a text into terms: words without case and accents, English words as stems, Arabic words without the article, and bigrams
of scripts without spaces. Stop words like "the" are omitted. C, C++ and C# are three terms."""

from __future__ import annotations

import functools
import re
import unicodedata

from ipfsmem.lazy_pattern import lazy_pattern
from ipfsmem.recall.porter import stem

#: A run of a script without spaces between words: Thai to Khmer, kana, ideographs.
_RUNS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
#: Prefixes of an Arabic noun: the article, also after "and", "with", "so", "as" and "for".
_arabic_article = lazy_pattern(r"^(?:[وبفك]?ال|لل)(?=[\u0620-\u064a]{3})")
#: Translation of ASCII characters of a folded text: those of words are kept, others become a space.
_SPACED = "".join(char if char.isalnum() else " " for char in map(chr, range(128)))
STOP_WORDS = frozenset((
    "a", "about", "after", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "because", "been", "before",
    "being", "but", "by", "can", "could", "did", "do", "does", "doing", "for", "from", "had", "has", "have", "he", "her",
    "hers", "him", "his", "how", "i", "if", "in", "into", "is", "it", "its", "just", "me", "my", "no", "not", "of", "on",
    "or", "our", "ours", "she", "should", "so", "some", "such", "than", "that", "the", "their", "them", "then", "there",
    "these", "they", "this", "those", "to", "too", "us", "was", "we", "were", "what", "when", "where", "which", "while",
    "who", "whom", "why", "will", "with", "would", "you", "your", "yours",
))  # fmt: skip


#: A letter followed by a sign that is not an operator between operands.
_SIGNED = r"[a-z](?:\+\+(?![a-z_])|\+(?![a-z0-9_+=])|#(?![a-z_]))"
_signed = lazy_pattern(_SIGNED)
_ascii_word = lazy_pattern(rf"{_SIGNED}|[^\W_]+")


@functools.cache
def _word() -> re.Pattern[str]:
    """Return the pattern of a run of a script without spaces, or of a word of another script. Compiled on first use because that
    takes longer than most commands."""
    return re.compile(rf"[{_RUNS}]+|{_SIGNED}|[^\W_{_RUNS}]+")


@functools.cache
def unspaced() -> re.Pattern[str]:
    """Return the pattern of a run of a script without spaces."""
    return re.compile(f"[{_RUNS}]+")


#: A character that is neither part of a word nor a space, such as a combining accent.
_mark = lazy_pattern(r"[^\w\s\x00-\x7f]")


def _without_accent(match: re.Match[str]) -> str:
    return "" if unicodedata.combining(match[0]) else match[0]


def fold(text: str) -> str:
    """Return a text without case and accents."""
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFKD", text.casefold())
    return _mark.sub(_without_accent, apart).casefold()


def words_of(folded: str) -> list[str]:
    """Return the words of a folded text; a run of a script without spaces is one."""
    if folded.isascii():
        if ("+" in folded or "#" in folded) and _signed.search(folded):
            return _ascii_word.findall(folded)
        return folded.translate(_SPACED).split()  # twice as fast as a pattern
    return _word().findall(folded)


def split(text: str) -> list[str]:
    """Return the words of a text without case and accents; a run of a script without spaces is one."""
    return words_of(fold(text))


def terms_of(word: str) -> list[str]:
    """Return the terms of a word from `split`: none for a stop word, several for a run of a script without spaces."""
    if word.isascii():
        return [] if word in STOP_WORDS else [stem(word)] if word.isalnum() else [word]
    if unspaced().match(word):
        return [word[n : n + 2] for n in range(max(1, len(word) - 1))]
    return [_arabic_article.sub("", word)]


def terms(text: str) -> list[str]:
    """Return the terms of a text in order, with repetitions."""
    return [term for word in split(text) for term in terms_of(word)]
