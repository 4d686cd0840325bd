"""Detect mass deletes: count the texts that joins removed within a day, by author (format section 7).

Deletions are unsigned: a head only shows what its maker had joined, and one person may write and delete with
different devices. But authorship is signed, so each author's texts are counted separately: one author's volume cannot
hide another's losses. An overwritten text counts for all its recorded authors, so overwriting first hides nothing
either.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import Final

import msgspec

from ipfsmem.canonical import read_json
from ipfsmem.causal.entries import segment_name
from ipfsmem.causal.state import EntryDifference
from ipfsmem.causal.value import FORGOTTEN, Entry
from ipfsmem.device.replica import Replica
from ipfsmem.device.tables import authors, meta
from ipfsmem.device.texts_of_others import mark
from ipfsmem.sync.times import DAY_MS, HOUR_MS

#: Fewer texts are never a mass delete.
GUARD_FROM: Final = 10
#: Joins within this many milliseconds are counted as one, so that a day has few parts.
_PART_MS: Final = HOUR_MS
#: Suffix of an author for timeline segments.
_PIECES: Final = ":t"
#: Occurs in the canonical JSON of exactly those entries with a FORGOTTEN value.
_FORGOTTEN_MARK: Final = b'"kind":"forgotten"'
#: Matches exactly the dots in the canonical JSON of an entry.
_dots = re.compile(rb'"([0-9a-f]{16})-[0-9]{1,16}":\{').findall


class DeletedTexts(msgspec.Struct, frozen=True):
    """Texts removed by joins from `at` to `last` (milliseconds, at most an hour apart); `root` is this
    device's last publish before that.

    `lost`: number of texts by authors: the sorted families that wrote them, in one string, with the sort of the text as a suffix.
    `by`: the devices whose heads removed them.
    """

    at: int
    last: int
    root: str
    lost: dict[str, int]
    by: tuple[str, ...]


class MassDelete(msgspec.Struct, frozen=True):
    """A mass delete: `gone` texts of the families `of` (with the number per family, greatest first), removed
    by what the devices `by` published. `roots` are to be kept: the last before the first deletes, and before
    the last."""

    roots: tuple[str, ...]
    gone: int
    of: dict[str, int]
    by: tuple[str, ...]


def count_deleted(replica: Replica, changes: Iterable[EntryDifference]) -> dict[str, int]:
    """Count the texts removed by a join, by authors and sort (after the join, inside its transaction).

    An overwritten text is not removed; its earlier authors are kept until it is.
    """
    family, db = _families(replica), replica.db.connection
    has_authors = authors.any_known(db)
    lost: Counter[str] = Counter()
    over: list[tuple[bytes, str]] = []
    ended: list[bytes] = []
    for change in changes:
        if not _is_shown(change.mine):
            continue
        after = replica.store.raw(change.name)
        before = {family(dot[:16]) for dot in change.mine}
        stands = after is not None and _FORGOTTEN_MARK not in after
        if stands and before <= _authors(after or b"", family):
            continue
        name = _entry_mark(replica, change.name)
        earlier = authors.get(db, name) if has_authors else None
        by = " ".join(sorted(before.union(earlier or ())))
        if stands:
            over.append((name, by))
            continue
        if earlier is not None:
            ended.append(name)
        lost[" ".join(one + _sort(change.name) for one in by.split())] += 1
    authors.put(db, over)
    authors.forget(db, ended)
    return dict(lost)


def find_mass_delete(replica: Replica, lost: Mapping[str, int], by: str) -> MassDelete | None:
    """Count the deletes of a head of device `by`, `lost` by authors; return a mass delete thereby completed, or None.

    Inside a transaction. The last 24 hours are summed: small deletes at each sync amount to everything, and
    fixed windows would let almost twice as much pass. A mass delete resets only the authors it hit: else
    somebody could repeatedly delete own texts to reset others' counts.
    """
    db, now = replica.db, replica.environment.now()
    published = db.get_meta(meta.ROOT)
    parts = _parts_of_day(replica)
    if parts and now - parts[-1].at < _PART_MS:
        old = parts.pop()
        sums = dict(Counter(old.lost) + Counter(lost))
        parts.append(DeletedTexts(old.at, now, old.root, sums, tuple(sorted({*old.by, by}))))
    elif published is not None:
        parts.append(DeletedTexts(now, now, published.decode(), dict(lost), (by,)))
    together: Counter[str] = Counter()
    for part in parts:
        together.update(part.lost)
    tally = tally_mass_delete(together, lambda: count_standing(replica))
    losers = tally[1].keys() if tally is not None else frozenset[str]()
    went = [part for part in parts if any(not losers.isdisjoint(authors.split()) for authors in part.lost)]
    remaining = []
    for part in parts:
        rest = {
            authors: number for authors, number in part.lost.items() if losers.isdisjoint(authors.split())
        }
        if rest:
            remaining.append(msgspec.structs.replace(part, lost=rest))
    db.set_meta(meta.GONE_LATELY, msgspec.json.encode(remaining))
    if tally is None:
        return None
    gone, told_of = tally
    merged: Counter[str] = Counter()
    for one, number in told_of.items():
        merged[one.removesuffix(_PIECES)] += number
    of = {one: merged[one] for one in sorted(merged, key=lambda one: (-merged[one], one))}
    last = published.decode() if published else went[0].root
    who = tuple(sorted(set[str]().union(*(part.by for part in went))))
    return MassDelete(tuple(dict.fromkeys([went[0].root, last])), gone, of, who)


def tally_mass_delete(
    lost: Mapping[str, int], standing: Callable[[], Mapping[str, int]]
) -> tuple[int, dict[str, int]] | None:
    """Return the number of lost texts and per author, greatest first, if a mass delete: above ten, of authors
    losing over a tenth each.

    `lost`: by a text's authors, sorted, in one string; `standing`: each author's current number.
    """
    if sum(lost.values()) <= GUARD_FROM:
        return None
    gone: Counter[str] = Counter()
    for who, number in lost.items():
        for author in who.split():
            gone[author] += number
    now = standing()
    of = {author for author, number in gone.items() if number * 10 > number + now.get(author, 0)}
    many = sum(number for authors, number in lost.items() if not of.isdisjoint(authors.split()))
    return (
        (many, {one: gone[one] for one in sorted(of, key=lambda one: (-gone[one], one))})
        if many > GUARD_FROM
        else None
    )


def _sort(name: str) -> str:
    """Return an author's suffix: segments are counted apart from texts, else an author with many timeline
    days could lose all texts unnoticed."""
    return _PIECES if segment_name(name) is not None else ""


def count_standing(replica: Replica) -> dict[str, int]:
    """Return the number of local texts and segments by known author, with their sort as a suffix."""
    family = _families(replica)
    over = authors.everyone(replica.db.connection)
    counts: Counter[str] = Counter()
    for name, text in replica.store.texts():
        if _FORGOTTEN_MARK not in text:
            earlier = over.get(_entry_mark(replica, name)) if over else None
            who = _authors(text, family).union(earlier or ())
            counts.update(one + _sort(name) for one in who)
    return counts


def roots_before_deletes(replica: Replica) -> set[str]:
    """Return the roots of which one would be guarded if more texts were deleted now; keep them until then."""
    return {part.root for part in _parts_of_day(replica)}


def _parts_of_day(replica: Replica) -> list[DeletedTexts]:
    """Return the parts still counted: last join less than a day ago. A time in the future comes from a wrong clock."""
    stored, now = replica.db.get_meta(meta.GONE_LATELY), replica.environment.now()
    parts = read_json(stored, type=list[DeletedTexts]) if stored else []
    return [part for part in parts if now - DAY_MS < part.last <= now]


def _families(replica: Replica) -> Callable[[str], str]:
    ring = replica.ring
    return ring.view.family_of if ring is not None else str


def _authors(text: bytes, family: Callable[[str], str]) -> set[str]:
    return {family(device.decode()) for device in _dots(text)}


def _is_shown(entry: Entry) -> bool:
    """Tell whether an entry shows a text: none is shown behind a wish to forget."""
    return bool(entry) and all(value.kind != FORGOTTEN for value in entry.values())


def _entry_mark(replica: Replica, name: str) -> bytes:
    return mark(replica, sha256(name.encode()).hexdigest())
