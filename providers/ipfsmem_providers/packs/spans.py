"""Parts of a file that are read together: requests cost more than the bytes between close parts. Pure."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Sequence


def joined(spans: Sequence[tuple[int, int]], gap: int, most: float = float("inf")) -> list[tuple[int, int]]:
    """Return the spans in order, joining those with at most `gap` bytes between them to at most `most` bytes, and those that
    overlap."""
    runs: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        first, last = runs[-1] if runs else (0, -1 - gap)
        if start < last or (start <= last + gap and end - first <= most):
            runs[-1] = (first, max(end, last))
        else:
            runs.append((start, end))
    return runs


def grouped(spans: Sequence[tuple[int, int]], count: int, most: int) -> list[tuple[tuple[int, int], ...]]:
    """Return the spans in groups of at most `count` spans and `most` bytes, or one span, in their order."""
    groups: list[tuple[tuple[int, int], ...]] = []
    size = 0
    for span in spans:
        size += span[1] - span[0]
        if groups and len(groups[-1]) < count and size <= most:
            groups[-1] = (*groups[-1], span)
        else:
            groups.append((span,))
            size = span[1] - span[0]
    return groups


def cut(near: Sequence[tuple[int, int]], parts: Sequence[bytes], span: tuple[int, int]) -> bytes:
    """Return the bytes of a span from the parts that were read for the joined spans `near`."""
    at = bisect_right(near, (span[0], sys.maxsize)) - 1
    return parts[at][span[0] - near[at][0] : span[1] - near[at][0]]
