"""Word index of the facts of one scope: finds the entries similar to a new text without comparing all of them.

It is built from the texts once, then updated by changes, in memory only.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from hashlib import blake2b
from heapq import nsmallest
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from ipfsmem.causal.entries import memory_name
from ipfsmem.causal.value import decode_entry
from ipfsmem.device.hidden import KnownHidden, is_hidden, known_hidden
from ipfsmem.device.state import StateMark
from ipfsmem.facts.categories import Kind, kind_of
from ipfsmem.facts.decision import LEAST_WORDS, stems, words_of
from ipfsmem.facts.limits import FactRank
from ipfsmem.graph.entity import TAG as ENTITY
from ipfsmem.memories.memory_records import readable_file

if TYPE_CHECKING:
    from ipfsmem.memories.memories import MemoryStore

#: Maximum entries that are compared with a new text, and that are returned.
_MAX_COMPARED: Final = 400
#: Minimum similarity of an entry with all stems of a new text, so that it precedes entries that are only similar.
_CONTAINS_SHARE: Final = 0.9
#: Maximum word sequences of a new text that are looked up among the entries.
_MAX_SPANS: Final = 4_000


class FactEntry(NamedTuple):
    """One entry: its words, the number of distinct words, their stems, its kind, and the clock of its write."""

    words: tuple[str, ...]
    different: int
    stems: frozenset[str]
    kind: Kind
    hlc: str


class FactWords:
    """The person's own facts, procedures and episodes of one scope, indexed by word."""

    def __init__(self, memories: MemoryStore) -> None:
        self._memories = memories
        self._clear()

    def _clear(self) -> None:
        self._mark = StateMark()
        self._seen: dict[str, bytes] = {}
        #: Names of entries without a text on this device.
        self._not_here: set[str] = set()
        self.entries: dict[str, FactEntry] = {}
        self._having: dict[str, dict[str, None]] = {}
        self._whole: dict[tuple[str, ...], dict[str, None]] = {}
        self._lengths: dict[int, int] = {}
        self._kinds: dict[Kind, int] = {}
        #: The keys of the visible entries by kind; the hidden texts and the number of their changes on which these are based; and
        #: the keys to check again.
        self._in_sight: dict[Kind, dict[str, None]] = {}
        self._hidden: KnownHidden | None = None
        self._hidden_until = 0
        self._unsure: dict[str, Kind] = {}
        #: The ranks of the visible entries by kind, in order and by key; the keys to rank again; and the day and settings on which
        #: the ranks are based.
        self._ranked: dict[Kind, list[FactRank]] = {}
        self._places: dict[Kind, dict[str, FactRank]] = {}
        self._moved: dict[Kind, set[str]] = {}
        self._ranked_as_of: object = None

    def refresh(self) -> None:
        """Apply changes (inside `reading`)."""
        if self._memories.replica.store.is_at(self._mark) and not self._not_here:
            return
        try:
            self._follow()
        except BaseException:  # a partial update would be taken for a complete one
            self._clear()
            raise

    def _follow(self) -> None:
        store, scope = self._memories.replica.store, self._memories.scope
        since, again, self._not_here = store.changes_since(self._mark), self._not_here, set()
        missing = {name: text for name in again if (text := store.raw(name)) is not None}
        for name, text in {**missing, **since.texts}.items():
            place = memory_name(name)
            if place is None or place.scope != scope:
                continue
            digest = blake2b(text, digest_size=8).digest()
            if self._seen.get(name) != digest:
                self._seen[name] = digest
                self._update(name, place.key, text)
        for name in since.may_be_gone(self._seen):
            del self._seen[name]
            if (place := memory_name(name)) is not None:
                self._drop(place.key)
        self._mark = since.mark

    def _update(self, name: str, key: str, text: bytes) -> None:
        from ipfsmem.memories.search_index import shown_of

        self._drop(key)
        shown = shown_of(self._memories, key, decode_entry(name, text))
        if shown is None or not shown.own:
            return
        if shown.data is None:
            self._seen.pop(name, None)  # retry at the next refresh
            self._not_here.add(name)
            return
        file = readable_file(shown.data)
        kind = kind_of(file.type, file.fields.get("category", ""))
        if kind is None or ENTITY in file.tags:
            return
        words = words_of(file.body)
        one = self.entries[key] = FactEntry(words, len({*words}), frozenset(stems(words)), kind, shown.hlc)
        self._kinds[kind] = self.many(kind) + 1
        self._unsure[key] = kind
        for stem in one.stems:
            self._having.setdefault(stem, {})[key] = None
        self._whole.setdefault(words, {})[key] = None
        self._lengths[len(words)] = self._lengths.get(len(words), 0) + 1

    def _drop(self, key: str) -> None:
        one = self.entries.pop(key, None)
        if one is None:
            return
        self._kinds[one.kind] -= 1
        self._in_sight.get(one.kind, {}).pop(key, None)
        self._moved.setdefault(one.kind, set()).add(key)
        for stem in one.stems:
            del self._having[stem][key]
            if not self._having[stem]:
                del self._having[stem]
        del self._whole[one.words][key]
        if not self._whole[one.words]:
            del self._whole[one.words]
        self._lengths[len(one.words)] -= 1
        if not self._lengths[len(one.words)]:
            del self._lengths[len(one.words)]

    def ranked(
        self, kind: Kind, as_of: object, place: Callable[[str], FactRank | None]
    ) -> Sequence[FactRank]:
        """Return the ranks of the entries of a kind that are not hidden, in order (inside `reading`, after `refresh`). `as_of`: the
        day and settings on which ranks depend. `place` ranks a new or changed entry, and returns None if the rank is not known
        yet."""
        there = self.in_sight(kind)
        if self._ranked_as_of != as_of:
            self._ranked_as_of = as_of
            self._ranked.clear()
            self._places.clear()
            self._moved = {of: set(row) for of, row in self._in_sight.items()}
        row, places = self._ranked.setdefault(kind, []), self._places.setdefault(kind, {})
        for key in self._moved.pop(kind, set()):
            before = places.pop(key, None)
            if before is not None:
                del row[bisect_left(row, before)]
            if key not in there:
                continue
            now = place(key)
            if now is None:
                self._moved.setdefault(kind, set()).add(key)
            else:
                places[key] = now
                insort(row, now)
        return row

    def many(self, kind: Kind) -> int:
        """Return the number of entries of a kind."""
        return self._kinds.get(kind, 0)

    def in_sight(self, kind: Kind) -> Collection[str]:
        """Return the keys of the entries of a kind that are not hidden (inside `reading`, after `refresh`)."""
        hidden, scope = known_hidden(self._memories.replica), self._memories.scope
        if hidden is not self._hidden:
            self._hidden, self._hidden_until = hidden, len(hidden.changed)
            self._in_sight.clear()
            self._ranked_as_of = None
            self._unsure = {key: one.kind for key, one in self.entries.items()}
        for of, key in hidden.changed[self._hidden_until :]:
            if of == scope and key in self.entries:
                self._unsure[key] = self.entries[key].kind
        self._hidden_until = len(hidden.changed)
        for key, of_kind in self._unsure.items():
            one, row = self.entries.get(key), self._in_sight.setdefault(of_kind, {})
            self._moved.setdefault(of_kind, set()).add(key)
            if one is None or one.kind != of_kind or is_hidden(hidden, scope, key, one.hlc):
                row.pop(key, None)
            else:
                row[key] = None
        self._unsure.clear()
        return self._in_sight.get(kind, {}).keys()

    def near(self, text: str, kind: Kind, most: int) -> list[str]:
        """Return the keys of the entries of a kind most similar to a text: those with the same words first, then those that contain
        it or are contained in it, then by the share of common words."""
        words = words_of(text)
        query_stems, different = frozenset(stems(words)), frozenset(words)
        entries = self.entries
        inside = [key for key in dict.fromkeys(self._inside(words)) if entries[key].kind == kind]
        rows = [key for key in self._compared(query_stems) if entries[key].kind == kind]
        shares = _shares(query_stems, different, map(entries.__getitem__, rows))
        scored = [(-share, key) for share, key in zip(shares, rows, strict=True) if share]
        further = nsmallest(most + len(inside), scored)
        return list(dict.fromkeys((*inside, *(key for _, key in further))))[:most]

    def _inside(self, words: tuple[str, ...]) -> Iterable[str]:
        """Return the entries that occur in a text as consecutive words."""
        spans = 0
        for length in sorted(self._lengths, reverse=True):
            if length > len(words) or length < min(LEAST_WORDS, len(words)):
                continue
            for start in range(len(words) - length + 1):
                spans += 1
                if spans > _MAX_SPANS:
                    return
                yield from islice(self._whole.get(words[start : start + length], ()), 2)

    def _compared(self, query_stems: frozenset[str]) -> Iterable[str]:
        """Return the entries with the rarest of these stems; if they are too many, the newest."""
        rows = sorted((self._having[stem] for stem in query_stems if stem in self._having), key=len)
        keys: dict[str, None] = {}
        for row in rows:
            keys.update(dict.fromkeys(islice(reversed(row), _MAX_COMPARED - len(keys))))
            if len(keys) >= _MAX_COMPARED:
                break
        return keys


def _shares(
    query_stems: frozenset[str], different: frozenset[str], entries: Iterable[FactEntry]
) -> Iterator[float]:
    """Yield the similarity of each entry to a text with these stems and this number of distinct words, 0 to 1. Inlined in one loop
    because adding a fact spends a quarter of its time here."""
    all_of_it, all_words, in_common = len(query_stems), len(different), different.intersection
    for of_words, different_there, of_stems, _, _ in entries:
        share = 0.0
        if both := len(query_stems & of_stems):
            share = both / (all_of_it + len(of_stems) - both)
            if both == all_of_it and share < _CONTAINS_SHARE:
                share = _CONTAINS_SHARE
        if same := len(in_common(of_words)):
            by_words = same / (all_words + different_there - same)
            if by_words > share:
                share = by_words
        yield share
