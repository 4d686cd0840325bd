"""The words of a text, to be compared without case and accents, remembered in this process by the text's hash.

Nothing here knows memories or writes a disk.
"""

from __future__ import annotations

import msgspec

from ipfsmem.bundle.memory_file import MemoryFile
from ipfsmem.errors import UsageError
from ipfsmem.memories.readings import readable_file
from ipfsmem.recall.terms import split, unspaced

#: Characters of a query, and how many of its words count.
MAX_QUERY = 4_000
MAX_WORDS = 64
#: Characters of texts that are remembered.
_REMEMBERED = 64 * 1024 * 1024
#: From so many letters on a query word is also found as the beginning of a longer one.
_PREFIX = 4


class Words(msgspec.Struct, frozen=True, gc=False):
    file: MemoryFile
    header: str
    body: str


class WordCache:
    """The words of the texts that were read, by hash."""

    def __init__(self) -> None:
        self._known: dict[str, Words] = {}
        self._characters = 0

    def of(self, digest: str, data: bytes | None) -> Words | None:
        """The words of a text; None when neither it nor they are at hand."""
        known = self._known.get(digest)
        if known is not None or data is None:
            return known
        file = readable_file(data)
        made = Words(
            MemoryFile(file.fields),
            spaced(" ".join((file.name, file.description, *file.tags))),
            spaced(file.body),
        )
        self._characters += len(made.header) + len(made.body)
        if self._characters > _REMEMBERED:
            self._known.clear()
            self._characters = len(made.header) + len(made.body)
        self._known[digest] = made
        return made


def query_words(query: str) -> tuple[str, ...]:
    """The different words of a query in order; of scripts without spaces every two letters. Raises UsageError without one."""
    if len(query) > MAX_QUERY:
        raise UsageError(f"a query has at most {MAX_QUERY:,} characters")
    words: dict[str, None] = {}
    for word in split(query):
        pairs = range(max(1, len(word) - 1)) if unspaced().fullmatch(word) else ()
        words.update(dict.fromkeys((word[n : n + 2] for n in pairs) if pairs else (word,)))
    if not words:
        raise UsageError("there is no word in the query, so nothing can be looked for")
    return tuple(words)[:MAX_WORDS]


def needle(word: str) -> str:
    """What occurs in `spaced` text where a query word does."""
    if unspaced().fullmatch(word):
        return word
    return f" {word}" if len(word) >= _PREFIX else f" {word} "


def spaced(text: str) -> str:
    """The words of a text with one space around each."""
    return f" {' '.join(split(text))} "
