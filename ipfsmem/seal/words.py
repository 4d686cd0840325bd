"""Recovery words: 32 bytes as 24 words of the English BIP-39 list, and back.

The list is the one that eth-account ships; its file is read without importing that package and checked against the
hash that every BIP-39 implementation agrees on. Nothing here stretches words into wallet seeds, and no other language
or length is read.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib.util
from functools import cache
from pathlib import Path
from typing import Final

from ipfsmem.errors import ConfigError, FormatError, UsageError

WORD_COUNT: Final = 24
SECRET_BYTES: Final = 32

_LIST_SHA256: Final = "2f5eed53a4727b4bf8880d8f3f199efc90e58503646d9ff8eff3a2ed3b24dbda"
_LIST_FILE: Final = Path("hdaccount", "wordlist", "english.txt")
_BITS: Final = 11


def to_words(secret: bytes) -> list[str]:
    """The 24 words of a 32-byte secret; the last one carries 8 bits of SHA-256 (BIP-39)."""
    if len(secret) != SECRET_BYTES:
        raise UsageError(f"a recovery secret has {SECRET_BYTES} bytes, this has {len(secret)}")
    number = int.from_bytes(secret + _checksum(secret), "big")
    words = word_list()
    return [words[number >> shift & 0x7FF] for shift in range(_BITS * (WORD_COUNT - 1), -1, -_BITS)]


def from_words(text: str) -> bytes:
    """The 32 bytes of 24 words, in any case and with any white space between them.

    Raises FormatError that names the wrong word and its position, the wrong number of words, or a sequence that
    cannot be right because its checksum is not.
    """
    words = text.lower().split()
    places = _places()
    number = 0
    for position, word in enumerate(words, start=1):
        index = places.get(word)
        if index is None:
            near = difflib.get_close_matches(word[:32], places, n=1)
            advice = f"; perhaps {near[0]!r}" if near else ""
            raise FormatError(f"recovery word {position}, {word[:32]!r}, is not in the BIP-39 list{advice}")
        if position <= WORD_COUNT:
            number = number << _BITS | index
    if len(words) != WORD_COUNT:
        raise FormatError(f"{len(words)} recovery words, {WORD_COUNT} expected")
    data = number.to_bytes(SECRET_BYTES + 1, "big")
    if _checksum(data[:SECRET_BYTES]) != data[SECRET_BYTES:]:
        raise FormatError(
            "the recovery words are all known, but not these in this order: the checksum is wrong"
        )
    return data[:SECRET_BYTES]


@cache
def word_list() -> tuple[str, ...]:
    """The 2048 English words of BIP-39. Raises ConfigError when the installed list is missing or another one."""
    spec = importlib.util.find_spec("eth_account")
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError("the BIP-39 word list is missing: package eth-account is not installed")
    path = Path(spec.submodule_search_locations[0]) / _LIST_FILE
    try:
        raw = path.read_bytes().replace(b"\r\n", b"\n")
    except OSError as error:
        raise ConfigError(f"the BIP-39 word list {path} cannot be read: {error.strerror}") from None
    if hashlib.sha256(raw).hexdigest() != _LIST_SHA256:
        raise ConfigError(f"the BIP-39 word list {path} is not the English list")
    return tuple(raw.decode("ascii").split())


@cache
def _places() -> dict[str, int]:
    return {word: index for index, word in enumerate(word_list())}


def _checksum(secret: bytes) -> bytes:
    return hashlib.sha256(secret).digest()[:1]
