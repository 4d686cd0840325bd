"""The three-way merge as worded in the format, table included: slow, and the reference for the fast one."""

from __future__ import annotations

from collections.abc import Sequence


def plain_matches(base: Sequence[str], side: Sequence[str]) -> list[tuple[int, int]]:
    n, m = len(base), len(side)
    table = [[0] * (m + 1) for _ in range(n + 1)]
    for i in range(n - 1, -1, -1):
        for j in range(m - 1, -1, -1):
            table[i][j] = (
                table[i + 1][j + 1] + 1 if base[i] == side[j] else max(table[i + 1][j], table[i][j + 1])
            )
    i = j = 0
    pairs = []
    while i < n and j < m:
        if base[i] == side[j]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif table[i + 1][j] >= table[i][j + 1]:
            i += 1
        else:
            j += 1
    return pairs


def plain_merge(base: Sequence[str], a: Sequence[str], b: Sequence[str]) -> list[str] | None:
    in_a, in_b = dict(plain_matches(base, a)), dict(plain_matches(base, b))
    stops = [(i, in_a[i], in_b[i]) for i in range(len(base)) if i in in_a and i in in_b]
    merged: list[str] = []
    i = j = k = 0
    for stop in [*stops, (len(base), len(a), len(b))]:
        old, mine, theirs = list(base[i : stop[0]]), list(a[j : stop[1]]), list(b[k : stop[2]])
        if mine == old:
            merged += theirs
        elif theirs in (old, mine):
            merged += mine
        else:
            return None
        if stop[0] < len(base):
            merged.append(base[stop[0]])
        i, j, k = stop[0] + 1, stop[1] + 1, stop[2] + 1
    return merged
