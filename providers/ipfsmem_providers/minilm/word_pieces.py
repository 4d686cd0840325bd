"""Tokenizer of BERT's uncased word list (Devlin et al. 2018; github.com/google-research/bert,
tokenization.py): lower case, no accents, punctuation separate, and the longest known pieces of each word."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import islice

#: Maximum characters of a word; a longer one is unknown.
_LONGEST = 100
#: Words whose pieces are remembered.
_REMEMBERED = 50_000
_ascii_left_out = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_ascii_word = re.compile(r"[a-z0-9]+|[!-/:-@\[-`{-~]")
_UNSEEN = ("Cc", "Cf", "Co", "Cs")
#: Each ideograph is a word.
_IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


class WordPieces:
    """A word list, and texts as numbers of its rows."""

    def __init__(self, words: Sequence[str]) -> None:
        self._number = dict(zip(words, range(len(words)), strict=True))
        self._begin, self._end = self._number["[CLS]"], self._number["[SEP]"]
        self._unknown = self._number["[UNK]"]
        self._known: dict[str, tuple[int, ...]] = {}

    def numbers(self, text: str, most: int) -> list[int]:
        """Return a text as at most `most` numbers, including those that mark its start and end."""
        tokens = [self._begin]
        for word in words_of(text):
            if len(tokens) >= most - 1:
                break
            tokens += self.pieces(word)
        return [*islice(tokens, most - 1), self._end]

    def pieces(self, word: str) -> tuple[int, ...]:
        """Return the pieces of one word."""
        cached = self._known.get(word)
        if cached is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            cached = self._known[word] = self._split(word)
        return cached

    def known(self, word: str) -> bool:
        """Return whether a word consists of known pieces only."""
        return self.pieces(word) != (self._unknown,)

    def _split(self, word: str) -> tuple[int, ...]:
        if len(word) > _LONGEST:
            return (self._unknown,)
        numbers: list[int] = []
        start = 0
        while start < len(word):
            mark = "##" if start else ""
            for end in range(len(word), start, -1):
                number = self._number.get(mark + word[start:end])
                if number is not None:
                    numbers.append(number)
                    start = end
                    break
            else:
                return (self._unknown,)
        return tuple(numbers)


def words_of(text: str) -> Iterator[str]:
    """Yield the words and signs of a text, in order."""
    if text.isascii():
        yield from (one[0] for one in _ascii_word.finditer(_ascii_left_out.sub("", text.lower())))
        return
    word: list[str] = []
    for char in _plain(text):
        alone = char.isspace() or _is_sign(char) or _is_ideograph(char)
        if not alone:
            word.append(char)
            continue
        if word:
            yield "".join(word)
            word.clear()
        if not char.isspace():
            yield char
    if word:
        yield "".join(word)


def _plain(text: str) -> str:
    """Return lower case without accents and invisible characters."""
    seen = "".join(
        char if char in "\t\n\r" or unicodedata.category(char) not in _UNSEEN else ""
        for char in text
        if char != "\ufffd"
    )
    marked = unicodedata.normalize("NFD", seen)
    bare = "".join(char for char in marked if unicodedata.category(char) != "Mn")
    return "".join(char.lower() for char in bare)  # one by one: no letter depends on those around it


def _is_sign(char: str) -> bool:
    if char.isascii():
        return char.isprintable() and not char.isalnum() and char != " "
    return unicodedata.category(char)[0] == "P"


def _is_ideograph(char: str) -> bool:
    code = ord(char)
    return any(first <= code <= last for first, last in _IDEOGRAPHS)
