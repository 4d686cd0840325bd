"""Convert 32 bytes to a recovery phrase, 24 words of the English BIP-39 list, and back.

No other language or length is accepted. No wallet seed is derived from the words.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Sequence
from typing import Final, NamedTuple

from ipfsmem.errors import FormatError, UsageError
from ipfsmem.wordlist import word_indexes, word_list

WORD_COUNT: Final = 24
SECRET_BYTES: Final = 32

_BITS: Final = 11


def to_words(secret: bytes) -> list[str]:
    """Return the 24 words of a 32-byte secret. The last word includes 8 bits of the secret's SHA-256 (BIP-39)."""
    if len(secret) != SECRET_BYTES:
        raise UsageError(f"a recovery secret has {SECRET_BYTES} bytes, this has {len(secret)}")
    number = int.from_bytes(secret + _checksum(secret), "big")
    words = word_list()
    return [words[number >> shift & 0x7FF] for shift in range(_BITS * (WORD_COUNT - 1), -1, -_BITS)]


class UnknownWord(NamedTuple):
    """A word that is not in the list: its position from 1, the word, and the likely intended word or ""."""

    position: int
    word: str
    near: str

    def __str__(self) -> str:
        advice = f"; perhaps {self.near!r}" if self.near else ""
        return f"recovery word {self.position}, {self.word[:32]!r}, is not in the BIP-39 list{advice}"


def first_unknown_word(words: Sequence[str], start: int = 1) -> UnknownWord | None:
    """Return the first of `words` that is not in the list, or None. `start`: the position of the first word."""
    known = word_indexes()
    for position, word in enumerate(words, start):
        if word not in known:
            near = difflib.get_close_matches(word[:32], known, n=1)
            return UnknownWord(position, word, near[0] if near else "")
    return None


def from_words(text: str) -> bytes:
    """Return the 32 bytes of 24 words, in any case and with any white space between them.

    Raises FormatError with the unknown word and its position, the number of words, or the failed checksum.
    """
    words = text.lower().replace("\ufeff", " ").split()
    slip = first_unknown_word(words)
    if slip is not None:
        raise FormatError(str(slip))
    if len(words) != WORD_COUNT:
        raise FormatError(f"{len(words)} words in the recovery phrase, {WORD_COUNT} expected")
    known = word_indexes()
    number = 0
    for word in words:
        number = number << _BITS | known[word]
    data = number.to_bytes(SECRET_BYTES + 1, "big")
    if _checksum(data[:SECRET_BYTES]) != data[SECRET_BYTES:]:
        raise FormatError("the checksum of the recovery phrase is wrong: a word is wrong, or two are swapped")
    return data[:SECRET_BYTES]


def _checksum(secret: bytes) -> bytes:
    return hashlib.sha256(secret).digest()[:1]
