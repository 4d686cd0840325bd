"""A long text in passages, so that one answer among many lines can be found by itself: lines and sentences, packed."""

from __future__ import annotations

from ipfsmem.lazy_pattern import lazy_pattern

#: Characters up to which a text is one passage, and up to which lines and sentences are put together to one.
WHOLE, PACKED = 900, 600
_end = lazy_pattern(r"\n+|[.!?][ \t\r\n]+|[。！？]")


def passages(text: str) -> list[str]:
    """The passages of a text, which are all of it. A sentence that is longer is not cut."""
    if len(text) <= WHOLE:
        return [text]
    found, start, end = list[str](), 0, 0
    for cut in (*(one.end() for one in _end.finditer(text)), len(text)):
        if end > start and cut - start > PACKED:
            found.append(text[start:end])
            start = end
        end = cut
    return [*found, text[start:]]
