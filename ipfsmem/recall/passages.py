"""Splits a long text into passages of lines and sentences, which are ranked separately."""

from __future__ import annotations

from ipfsmem.lazy_pattern import lazy_pattern

#: Maximum characters of a text that is not split, and of the lines and sentences in one passage.
WHOLE, PACKED = 900, 600
#: The end of a line or sentence. Each begins with a character of a set, so that a search skips to it.
_end = lazy_pattern(r"[\n.!?。！？](?:(?<=\n)\n*|(?<=[.!?])[ \t\r\n]+|(?<=[。！？]))")


def passages(text: str) -> list[str]:
    """Split a text into passages, whose concatenation is the text. A longer sentence is not cut."""
    if len(text) <= WHOLE:
        return [text]
    parts, start, end = list[str](), 0, 0
    for cut in (*[one.end() for one in _end.finditer(text)], len(text)):
        if end > start and cut - start > PACKED:
            parts.append(text[start:end])
            start = end
        end = cut
    return [*parts, text[start:]]
