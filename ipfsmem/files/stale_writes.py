"""Find the older text that the writer of a file had read, from the lines of its write.

A program may write a whole file from a text that it read just before the file was replaced. As an edit of the newest
text that would delete later additions. Pure functions of texts, and of the rows of a file.
"""

from __future__ import annotations

from collections import Counter

from ipfsmem.device.tables.tracked_files import FileRow, PreviousTexts, Shows

#: How long after a file was replaced a writer may still have the old text; ms.
OLD_TEXT_FOR = 60_000
#: Maximum bytes of lines that are compared.
_MOST_COMPARED = 4 * 1024 * 1024


def read_before(text: bytes, newest: bytes, older: list[bytes]) -> bytes | None:
    """Return which of the `older` texts (newest first) the writer of `text` must have read, rather than `newest`.

    One such that `text` has no line that came with the newest, nor a similar one, and all lines that it removed. Of several the
    one of which `text` lacks the fewest lines.
    """
    now = set(text.split(b"\n"))
    best: tuple[int, bytes] | None = None
    for candidate in older:
        before, after = set(candidate.split(b"\n")), set(newest.split(b"\n"))
        came, went = after - before, before - after
        if not (came or went) or came & now or not went <= now or _alike(came, now - before):
            continue
        missing = len(before - now)
        if best is None or missing < best[0]:
            best = missing, candidate
    return None if best is None else best[1]


def _alike(came: set[bytes], new: set[bytes]) -> bool:
    """Return whether a new line is similar to an added one: then its writer has seen that one."""
    if len(new) * sum(map(len, came)) + len(came) * sum(map(len, new)) > _MOST_COMPARED:
        return False
    words = {line: Counter(line.split()) for line in came | new}
    return any(_likeness(a, b, words[a], words[b]) > 0.6 for a in came for b in new)


def _likeness(a: bytes, b: bytes, words_a: Counter[bytes], words_b: Counter[bytes]) -> float:
    """Return how similar two lines are, 0 to 1: by beginning and end, or by words. Costs as much as reading them once."""
    whole = len(a) + len(b)
    if not whole:
        return 0.0
    least = min(len(a), len(b))
    start = _shared(a, b, least)
    end = _shared(a[::-1], b[::-1], least - start)
    same = sum(min(count, words_b[word]) for word, count in words_a.items())
    total = words_a.total() + words_b.total()
    return max(2 * (start + end) / whole, 2 * same / total if total else 0.0)


def _shared(a: bytes, b: bytes, most: int) -> int:
    """Return how many of the first `most` bytes of two lines are the same."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def before_replaced(row: FileRow | None, now: int) -> PreviousTexts | None:
    """Return the texts of a file that is replaced now (ms), and shortly before: a writer may still have one. `row` is the one
    before."""
    if row is None or row.text is None or row.shows is Shows.OLD_TEXT or row.missing_since is not None:
        return None
    recent = row.before is not None and row.before.is_within(OLD_TEXT_FOR, now)
    return PreviousTexts.of(row.text, row.before if recent else None, now)
