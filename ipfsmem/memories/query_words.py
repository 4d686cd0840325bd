"""Extracts the words of a query and of a prompt (pure functions)."""

from __future__ import annotations

from ipfsmem.errors import UsageError
from ipfsmem.recall.terms import split, unspaced

#: Maximum characters of a query, and words that are used.
MAX_QUERY = 4_000
MAX_WORDS = 64
#: Maximum hits of one query.
MAX_HITS = 200
#: Characters of the end of a long prompt that are read before its beginning.
_END = 400
#: Maximum phrasings of one query, and maximum characters of a time range.
MAX_PHRASINGS, MAX_RANGE = 8, 100
#: Minimum letters of a query word that also matches as a prefix.
PREFIX = 4


def prompt_query(prompt: str) -> str:
    """Return the query in a prompt. Of a long prompt, the end precedes the beginning: the question is at either end of pasted text.
    Returns "" if the prompt has no word."""
    query = prompt
    if len(prompt) > MAX_QUERY:
        query = f"{prompt[-_END:]} {prompt[: MAX_QUERY - _END - 1]}"
    return query if split(query) else ""


def query_words(query: str) -> tuple[str, ...]:
    """Return the distinct words of a query in order; of scripts without spaces, every pair of letters. Raises UsageError if there
    is no word."""
    if len(query) > MAX_QUERY:
        raise UsageError(f"a query has at most {MAX_QUERY:,} characters")
    words: dict[str, None] = {}
    for word in split(query):
        run = not word.isascii() and unspaced().fullmatch(word)
        pairs = range(max(1, len(word) - 1)) if run else ()
        words.update(dict.fromkeys((word[n : n + 2] for n in pairs) if pairs else (word,)))
    if not words:
        raise UsageError("the query has no words")
    return tuple(words)[:MAX_WORDS]
