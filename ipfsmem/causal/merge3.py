"""Merge two edits of a text with their base (format section 5): header by field, body by lines.

Every implementation must produce the same bytes, so the format also fixes which longest common subsequence is used. A
conflict returns None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ipfsmem.bundle.header import KNOWN, parse_tags, render_tags
from ipfsmem.bundle.header_edit import has_normal_header, render_over
from ipfsmem.bundle.memory_file import MemoryFile, parse_memory, render_memory
from ipfsmem.errors import FormatError

#: Maximum of base lines times side lines; a larger pair is a conflict.
MAX_PAIRS = 4_000_000

Lines = Sequence[str]


def merge_memory(base: bytes, a: bytes, b: bytes) -> bytes | None:
    """Merge two edits `a` and `b` of the memory file `base`; None on conflict.

    An input or a result that is not a valid memory file (not UTF-8, too large) is a conflict.
    """
    try:
        files = [parse_memory(data) for data in (base, a, b)]
        fields = merge_fields(*(file.fields for file in files))
        if fields is None:
            return None
        body = merge_lines(*(lines_of(file.body) for file in files))
        if body is None:
            return None
        merged = MemoryFile(fields, "\n".join(body))
        if all(has_normal_header(data) for data in (base, a, b)):
            return render_memory(merged)
        return _with_kept_headers(merged, base, a, b)
    except FormatError:
        return None


def _with_kept_headers(merged: MemoryFile, base: bytes, a: bytes, b: bytes) -> bytes | None:
    """Apply the merge to the side that changed the header text outside of fields; None if both sides changed that
    text."""
    of_base, of_a, of_b = (render_over(data, merged) for data in (base, a, b))
    made = of_a if of_a == of_b or of_b == of_base else of_b if of_a == of_base else None
    return made if made is not None and parse_memory(made) == merged else None


def lines_of(body: str) -> list[str]:
    """Split a body without a final LF into lines; an empty body has none."""
    return body.split("\n") if body else []


def merge_fields(base: dict[str, str], a: dict[str, str], b: dict[str, str]) -> dict[str, str] | None:
    """Merge headers by field; None on conflict.

    A change on one side, or the same change on both, is applied. If both sides changed a field and neither removed
    it, `updated` becomes the greater value, `created` the smaller, `tags` the sorted union; any other field is a
    conflict. Texts compare by code points. Order: known fields, then those of `a`, then those of `b`.
    """
    merged: dict[str, str] = {}
    for name in dict.fromkeys((*KNOWN, *a, *b)):
        old, mine, theirs = base.get(name), a.get(name), b.get(name)
        if mine == theirs or theirs == old:
            value = mine
        elif mine == old:
            value = theirs
        elif mine is None or theirs is None:
            return None
        elif name == "updated":
            value = max(mine, theirs)
        elif name == "created":
            value = min(mine, theirs)
        elif name == "tags":
            value = render_tags(sorted({*parse_tags(mine), *parse_tags(theirs)}))
        else:
            return None
        if value:
            merged[name] = value
    return merged


def merge_lines(base: Lines, a: Lines, b: Lines) -> list[str] | None:
    """Merge two edits of a list of lines (diff3); None on conflict.

    Base lines that both sides match (`matches(base, side)`) delimit regions: a region changed on one side, or equally
    on both, is applied; any other changed region is a conflict. More than 4,000,000 line pairs are a conflict too,
    unless one side equals the base or the other side, which needs no comparison.
    """
    if a == b or b == base:
        return list(a)
    if a == base:
        return list(b)
    return merge_regions(base, a, b, merge_region)


def merge_regions(
    base: Lines, a: Lines, b: Lines, merge: Callable[[Lines, Lines, Lines], Lines | None]
) -> list[str] | None:
    """Merge each region between the base lines that both sides match by `merge(base, a, b)`; None if a call returns
    None, or beyond `MAX_PAIRS` line pairs."""
    if len(base) * max(len(a), len(b)) > MAX_PAIRS:
        return None
    in_a, in_b = dict(matches(base, a)), dict(matches(base, b))
    merged: list[str] = []
    from_base = from_a = from_b = 0
    anchors = [(i, j, in_b[i]) for i, j in in_a.items() if i in in_b]
    for i, j, k in [*anchors, (len(base), len(a), len(b))]:
        region = merge(base[from_base:i], a[from_a:j], b[from_b:k])
        if region is None:
            return None
        merged += region
        merged += base[i : i + 1]
        from_base, from_a, from_b = i + 1, j + 1, k + 1
    return merged


def merge_region(base: Lines, a: Lines, b: Lines) -> Lines | None:
    """Return the changed side of a region that one side changed, or both equally; None on conflict."""
    if a == b or b == base:
        return a
    if a == base:
        return b
    return None


def matches(base: Lines, side: Lines) -> list[tuple[int, int]]:
    """Return pairs of equal lines (index in base, index in side): the longest common subsequence of the format.

    L[i][j] is the length for base[i:] and side[j:]. Walk from (0, 0): equal lines match; otherwise skip a base line
    if L[i+1][j] >= L[i][j+1], else a side line.
    """
    start = 0  # the walk matches a common prefix line by line, so the table omits it
    shorter = min(len(base), len(side))
    while start < shorter and base[start] == side[start]:
        start += 1
    pairs = [(i, i) for i in range(start)]
    return pairs + [(start + i, start + j) for i, j in _walk_table(base[start:], side[start:])]


def _walk_table(base: Lines, side: Lines) -> list[tuple[int, int]]:
    rows = _suffix_rows(base, side)
    n, m = len(base), len(side)
    size = (m + 7) // 8
    pairs: list[tuple[int, int]] = []
    j = 0
    for i in range(n):
        if j >= m:
            break
        # here = L[i][j], below = L[i+1][j]; a bit is set where the length drops as j grows by one. That of row i+1 is not
        # read: a side line is skipped only where L[i][j+1] = L[i+1][j] + 1, and then L[i+1][j+1] = L[i+1][j].
        here_bits = rows[i].to_bytes(size, "little")
        here, below = _count_ones(rows[i], m - j), _count_ones(rows[i + 1], m - j)
        while j < m:
            p = m - 1 - j
            if base[i] == side[j]:
                pairs.append((i, j))
                j += 1
                break
            right = here - (here_bits[p >> 3] >> (p & 7) & 1)
            if below >= right:
                break
            here = right
            j += 1
    return pairs


def _count_ones(row: int, width: int) -> int:
    return (row & ((1 << width) - 1)).bit_count()


def _suffix_rows(base: Lines, side: Lines) -> list[int]:
    """Return the table L, one integer per row: L[i][j] is the number of ones in the lowest len(side)-j bits of row i.

    Uses the bit-parallel recurrence of Crochemore et al. (2001) and Hyyrö (2004) from the end: a row costs a
    few integer operations instead of one step per pair, with identical lengths.
    """
    m = len(side)
    full = (1 << m) - 1
    where = _positions(set(base), side)
    state = full  # a zero marks where the length grows by one
    rows = [0] * (len(base) + 1)
    for i in range(len(base) - 1, -1, -1):
        hit = state & where.get(base[i], 0)
        if hit:
            state = ((state + hit) | (state - hit)) & full
        rows[i] = state ^ full
    return rows


def _positions(wanted: set[str], side: Lines) -> dict[str, int]:
    """Map each wanted line to its positions in `side`, counted from the end, as a bit set."""
    size = (len(side) + 7) // 8
    bits: dict[str, bytearray] = {}
    for p, line in enumerate(reversed(side)):
        if line in wanted:
            places = bits.get(line)
            if places is None:
                places = bits[line] = bytearray(size)
            places[p >> 3] |= 1 << (p & 7)
    return {line: int.from_bytes(places, "little") for line, places in bits.items()}
