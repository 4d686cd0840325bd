"""Splits a long text into passages of lines and sentences, so that one answer among many lines can be found alone."""

from __future__ import annotations

from ipfsmem.lazy_pattern import lazy_pattern

#: Maximum characters of a text that is one passage, and of lines and sentences packed into one.
WHOLE, PACKED = 900, 600
#: The end of a line or sentence. Each begins with one of a set of characters, which a search skips to.
_end = lazy_pattern(r"[\n.!?。！？](?:(?<=\n)\n*|(?<=[.!?])[ \t\r\n]+|(?<=[。！？]))")


def passages(text: str) -> list[str]:
    """Return the passages of a text, which together are the text. A longer sentence is not cut."""
    if len(text) <= WHOLE:
        return [text]
    parts, start, end = list[str](), 0, 0
    for cut in (*[one.end() for one in _end.finditer(text)], len(text)):
        if end > start and cut - start > PACKED:
            parts.append(text[start:end])
            start = end
        end = cut
    return [*parts, text[start:]]
