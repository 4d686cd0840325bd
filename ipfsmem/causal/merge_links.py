"""Merge two edits of a Markdown list of links where `merge3` finds a conflict.

Not part of the format: a device that keeps an agent's own folder in step writes the merged text as a new value; views
use `merge3` only.
"""

from __future__ import annotations

from ipfsmem.bundle.memory_file import MemoryFile, parse_memory, render_memory
from ipfsmem.causal.merge3 import Lines, lines_of, merge_fields, merge_region, merge_regions
from ipfsmem.errors import FormatError
from ipfsmem.lazy_pattern import lazy_pattern

_ITEM = lazy_pattern(r"\s*(?:[-*+]|\d+[.)])\s+\S")
_HEADING = lazy_pattern(r"#{1,6}\s")
_LINK = lazy_pattern(r"\s*(?:[-*+]|\d+[.)])\s++.*?\]\(\s*+<?([^()<>\s]+)")


def merge_index(base: bytes, a: bytes, b: bytes) -> bytes | None:
    """Merge two edits `a` and `b` of the index `base`; None if both changed the same line, or if the text is not a
    list."""
    try:
        files = [parse_memory(data) for data in (base, a, b)]
        fields = merge_fields(*(file.fields for file in files))
        old, mine, theirs = (lines_of(file.body) for file in files)
        body = merge_regions(old, mine, theirs, _region)
        if fields is None or body is None:
            return None
        return render_memory(MemoryFile(fields, "\n".join(body)))
    except FormatError:
        return None


def _region(base: Lines, a: Lines, b: Lines) -> Lines | None:
    once = merge_region(base, a, b)
    if once is not None:
        return once
    if not base:
        return _both_added(a, b)
    return _by_link(base, a, b)


def _both_added(a: Lines, b: Lines) -> Lines | None:
    """Return the lines that both sides added, each once."""
    if not all(not line.strip() or _ITEM.match(line) or _HEADING.match(line) for line in (*a, *b)):
        return None
    there = {line for line in a if line.strip()}
    more = [line for line in b if line not in there]
    first = next((at for at, line in enumerate(more) if line.strip()), None)
    if first is None:
        return a
    return [*a, *more[0 if _HEADING.match(more[first]) else first :]]


def _by_link(base: Lines, a: Lines, b: Lines) -> Lines | None:
    """Merge items by link target: a change or removal on one side is applied, differing changes are a conflict."""
    old, mine, theirs = _items(base), _items(a), _items(b)
    if old is None or mine is None or theirs is None:
        return None
    merged: dict[str, str] = {}
    for link in dict.fromkeys((*mine, *theirs)):
        was, ours, other = old.get(link), mine.get(link), theirs.get(link)
        if ours == other or other == was:
            winner = ours
        elif ours == was:
            winner = other
        else:
            return None
        if winner is not None:
            merged[link] = winner
    return list(merged.values())


def _items(lines: Lines) -> dict[str, str] | None:
    """Map link targets to items; None if a line is not an item, or two items link to one file."""
    by_target: dict[str, str] = {}
    for line in lines:
        link = _LINK.match(line)
        if link is None or link[1] in by_target:
            return None
        by_target[link[1]] = line
    return by_target
