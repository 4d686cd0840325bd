"""The index that is ranked: the terms of all entries, and columns of their other data, without texts.

An entry is a memory file, which has no group, or a message or event in the group of its conversation or day, whose neighbours are
its context.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Collection, Iterable, Iterator
from datetime import date
from functools import cache, lru_cache
from itertools import chain, compress
from math import log10
from typing import Any

import msgspec

from ipfsmem.lazy_pattern import lazy_pattern
from ipfsmem.recall.dates import MONTHS
from ipfsmem.recall.image import LONGEST, Columns, State, read, write
from ipfsmem.recall.passages import passages
from ipfsmem.recall.postings import PostingList, Postings, TermNumbers, all_lowered, bm25, idf, lowered
from ipfsmem.recall.sums import Shares
from ipfsmem.recall.terms import split

#: Flags of an entry; the last four are used only for entries of a group.
MEMORY, GROUPED, QUESTION, TIME, NUMBER = 1, 2, 4, 8, 16
#: Maximum characters without a penalty for length.
USUAL_SIZE = 400
#: A passage of fewer characters is so short that the passage beyond it is examined too.
SHORT = 300

_time = lazy_pattern(
    r"\b(?:\d{1,2}:\d\d|\d{4}-\d\d|(?:19|20)\d\d|today|yesterday|tomorrow|tonight|ago|(?:last|next|this) \w+|"
    rf"(?:mon|tues|wednes|thurs|fri|satur|sun)day|{'|'.join(month for month in MONTHS if month != 'may')}|in may)\b",
    re.I,
)
_number = lazy_pattern(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|once|twice|dozen|hundred)\b", re.I
)
_digit = lazy_pattern(r"\d")
#: A text without digits and without these words has neither time nor number; looking up words is ten times faster than the
#: patterns.
_TIMES = frozenset(
    [
        "today",
        "yesterday",
        "tomorrow",
        "tonight",
        "ago",
        "last",
        "next",
        "this",
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
        *MONTHS,
    ]
)
_NUMBERS = frozenset(
    [
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "once",
        "twice",
        "dozen",
        "hundred",
    ]
)
_TELLING = _TIMES | _NUMBERS
_ASKING = ("?", "？", "؟")
#: Maximum terms whose passages are cached.
_PASSAGE_ROWS = 256
#: Entries are renumbered after this many removals more than there are entries.
_MAX_REMOVED = 1_000


@cache
def too_long(size: int) -> float:
    """Return the penalty for this many characters."""
    return log10(max(size, USUAL_SIZE) / USUAL_SIZE)


class Document(msgspec.Struct, frozen=True):
    """An entry to index."""

    id: str
    text: str
    #: Name, description and tags of a memory file, or the speaker of a group's entry. Searched like the text.
    header: str = ""
    #: Its conversation or day; "" for none.
    group: str = ""
    #: The day on which it happened or was last changed. For an entry of a group, the day is also indexed as words: "12 may 2026".
    at: date | None = None
    memory: bool = False
    #: The salience of a memory file, 0 to 1; see `priority.salience`.
    salience: float = 0.5

    @property
    def words(self) -> str:
        """All searched words."""
        return f"{self.header}\n{self.text}" if self.header else self.text


class GroupRow(Shares):
    """The groups that contain a term: its weight among groups, and its BM25 for each group."""

    def __init__(self, worth: float, shares: dict[int, float]) -> None:
        self.worth, self._shares = worth, shares
        self.numbers = list(shares)

    @property
    def shares(self) -> Collection[float]:
        """The BM25 of each group, by number."""
        return self._shares.values()

    def share(self, number: int) -> float:
        """Return the BM25 of one group, 0 if it lacks the term."""
        return self._shares.get(number, 0.0)


class Index:
    """The entries to rank. An updated index returns the same hits as a new index of the same entries."""

    def __init__(self, documents: Iterable[Document] = ()) -> None:
        #: Number of queries so far.
        self.asked = 0
        empty = Columns(array("I", [0]), array("H", [0]), array("B", [0]), array("d", [0.0]), array("I", [0]))
        none = array("I", [0])
        terms = TermNumbers()
        rows = Postings(terms), Postings(terms), Postings(terms)
        self._take(terms, [""], [""], empty, *rows, none, array("H", [0]))
        for document in documents:
            self.add(document)

    def image(self) -> bytes:
        """Encode the index as bytes for `from_image`. The bytes are not encrypted."""
        return write(self._state())

    @staticmethod
    def from_image(image: bytes | memoryview) -> Index:
        """Restore an index from its image, for queries and updates. Raises ImageError, a ValueError."""
        index = Index()
        index._take_state(read(image))
        return index

    def _state(self) -> State:
        """Return the state, with renumbered entries and without empty groups. Groups are in the order of their first entries."""
        entries = [0, *self.numbers()]
        new = array("I", bytes(4 * len(self.ids)))
        for number, old in enumerate(entries):
            new[old] = number
        groups = list(dict.fromkeys((0, *map(self.columns.groups.__getitem__, entries))))
        new_group = {old: number for number, old in enumerate(groups)}
        days, sizes, marks, salience, of = self.columns
        columns = Columns(
            array("I", map(days.__getitem__, entries)),
            array("H", map(sizes.__getitem__, entries)),
            array("B", map(marks.__getitem__, entries)),
            array("d", map(salience.__getitem__, entries)),
            array("I", [new_group[of[number]] for number in entries]),
        )
        lengths, header_lengths = (
            array("I", map(postings.lengths.__getitem__, entries)) for postings in (self.words, self.headers)
        )
        passages_kept = [0, *(passage for passage, owner in enumerate(self.owners) if owner)]
        new_passage = array("I", bytes(4 * len(self.owners)))
        for passage, old in enumerate(passages_kept):
            new_passage[old] = passage
        return State(
            [self.ids[number] for number in entries],
            [self.group_names[group] for group in groups],
            columns,
            self.words.flat(new),
            lengths,
            self.headers.flat(new),
            header_lengths,
            self.passages.flat(new_passage),
            array("I", map(self.passages.lengths.__getitem__, passages_kept)),
            array("I", [new[self.owners[passage]] for passage in passages_kept]),
            array("H", map(self.passage_sizes.__getitem__, passages_kept)),
        )

    def signatures(self) -> dict[str, int]:
        """Return a hash of the terms and counts of each entry, comparable within a process only."""
        state = self._state()
        signs = [0] * len(state.ids)
        for header, flat in enumerate((state.words, state.headers)):
            for term, place in flat.places.items():
                for at in range(flat.starts[place], flat.starts[place + 1]):
                    signs[flat.numbers[at]] ^= hash((header, term, flat.counts[at]))
        return {
            id: hash((sign, state.lengths[n]))
            for n, (id, sign) in enumerate(zip(state.ids, signs, strict=True))
            if id
        }

    def _take_state(self, state: State) -> None:
        terms = TermNumbers()
        words = Postings(terms, state.words, state.lengths)
        headers = Postings(terms, state.headers, state.header_lengths)
        passages = Postings(terms, state.passages, state.passage_lengths)
        self._take(
            terms,
            state.ids,
            state.group_names,
            state.columns,
            words,
            headers,
            passages,
            state.owners,
            state.passage_sizes,
        )

    def _take(
        self,
        terms: TermNumbers,
        ids: list[str],
        group_names: list[str],
        columns: Columns,
        words: Postings,
        headers: Postings,
        passages: Postings,
        owners: array[int],
        passage_sizes: array[int],
    ) -> None:
        self._terms = terms
        #: Ids by entry number; "" at number 0 and for a removed entry.
        self.ids, self.columns = ids, columns
        self.words, self.headers = words, headers
        #: The postings of the passages of entries with several; by passage number, the entry (0 for a removed one) and the number
        #: of characters. The passages of an entry are consecutive.
        self.passages, self.owners, self.passage_sizes = passages, owners, passage_sizes
        #: By entry number: its first passage, and the one after its last; both 0 if the entry is a single passage.
        self.first_passage, self.passage_end = (array("I", bytes(4 * len(ids))) for _ in range(2))
        for passage in range(len(owners) - 1, 0, -1):
            owner = owners[passage]
            self.first_passage[owner] = passage
            if not self.passage_end[owner]:
                self.passage_end[owner] = passage + 1
        #: Number of entries with several passages, and number of their terms.
        several = [number for number, first in enumerate(self.first_passage) if first]
        self._several, self._of_several = len(several), sum(map(words.lengths.__getitem__, several))
        self.group_names = group_names
        self._numbers = {id: number for number, id in enumerate(ids) if number}
        self._group_numbers = {name: number for number, name in enumerate(group_names) if number}
        #: By group number: its last entry, and its number of terms.
        self.last = array("I", bytes(4 * len(group_names)))
        self.group_lengths = [0] * len(group_names)
        #: By entry number: the entry before and after it in its group, 0 for none.
        self.before, self.after = array("I", bytes(4 * len(ids))), array("I", bytes(4 * len(ids)))
        self._grouped = 0
        for number, group in enumerate(columns.groups):
            if group:
                self._join(number, group)
        self._changed()

    def _changed(self) -> None:
        self._by_day: dict[int, list[int]] | None = None
        self._group_rows: dict[str, GroupRow] = {}
        self._group_average: tuple[int, float] | None = None
        self._passage_rows: dict[str, PostingList] = {}
        self._passage_against: array[float] | None = None
        #: Caches until the next change: the arrays of `ranking_arrays`, own and other entries, and the entries that match a filter.
        self.arrays: Any = None
        self.parted: tuple[frozenset[int], frozenset[int]] | None = None
        self.passing: dict[Any, frozenset[int]] = {}

    def _join(self, number: int, group: int) -> None:
        before = self.last[group]
        self.before[number], self.last[group] = before, number
        self.after[before] = number if before else 0
        self.group_lengths[group] += self.words.lengths[number]
        self._grouped += 1

    def __len__(self) -> int:
        return self.words.entries

    def add(self, document: Document) -> None:
        """Add an entry as the last of its group, in place of an entry with the same id."""
        id, text, name, at, memory = document.id, document.text, document.group, document.at, document.memory
        if id in self._numbers:
            self.remove(id)
        number = len(self.ids)
        if number > 2 * self.words.entries + _MAX_REMOVED:
            self._take_state(self._state())
            number = len(self.ids)
        of = self._terms.of
        beside = header = of(split(document.header)) if document.header else array("I")
        grouped = bool(name) and not memory
        if grouped and at is not None:
            beside = header + of(_day_words(at))
        pieces = passages(text)
        texts = [split(piece) for piece in pieces]
        there = list(map(of, texts))
        words = beside[:]
        for terms in there:
            words += terms
        self.words.add(words)
        self.headers.add(header)
        self.first_passage.append(0)
        self.passage_end.append(0)
        if len(texts) > 1:
            self.first_passage[number] = len(self.owners)
            self._several += 1
            self._of_several += self.words.lengths[number]
            for piece, terms in zip(pieces, there, strict=True):
                self.passages.add(beside + terms)
                self.owners.append(number)
                self.passage_sizes.append(min(len(piece), LONGEST))
            self.passage_end[number] = len(self.owners)
        self._numbers[id] = number
        self.ids.append(id)
        group = 0
        if grouped:
            group_number = self._group_numbers.get(name)
            if group_number is None:
                group_number = self._group_numbers[name] = len(self.group_names)
                self.group_names.append(name)
                self.last.append(0)
                self.group_lengths.append(0)
            group = group_number
        days, sizes, marks, salience, groups = self.columns
        days.append(at.toordinal() if at else 0)
        size = len(text)
        sizes.append(size if size < LONGEST else LONGEST)
        marks.append(MEMORY if memory else _marks(text, texts) if group else 0)
        salience.append(document.salience)
        groups.append(group)
        self.before.append(0)
        self.after.append(0)
        if group:
            self._join(number, group)
        self._changed()

    def remove(self, id: str) -> None:
        """Remove an entry, if it exists."""
        number = self._numbers.pop(id, None)
        if number is None:
            return
        group = self.columns.groups[number]
        if group:
            before, after = self.before[number], self.after[number]
            if before:
                self.after[before] = after
            if after:
                self.before[after] = before
            else:
                self.last[group] = before
            self.group_lengths[group] -= self.words.lengths[number]
            self._grouped -= 1
        if self.first_passage[number]:
            self._several -= 1
            self._of_several -= self.words.lengths[number]
            for passage in self.passages_of(number):
                self.passages.remove(passage)
                self.owners[passage] = 0
            self.first_passage[number] = self.passage_end[number] = 0
        self.ids[number] = ""
        self.columns.days[number] = self.columns.groups[number] = self.columns.marks[number] = 0
        self.words.remove(number)
        self.headers.remove(number)
        self._changed()

    def number(self, id: str) -> int | None:
        """Return the number of an entry, None for an unknown id."""
        return self._numbers.get(id)

    def numbers(self) -> Iterable[int]:
        """Return the numbers of all entries, in the order of their addition."""
        return self._numbers.values()

    def members(self, group: int) -> Iterator[int]:
        """Yield the entries of a conversation or day, last first."""
        number = self.last[group]
        while number:
            yield number
            number = self.before[number]

    def passages_of(self, number: int) -> range:
        """Return the numbers of the passages of an entry; empty if it is a single passage."""
        return range(self.first_passage[number], self.passage_end[number])

    def by_day(self) -> dict[int, list[int]]:
        """Return the entries of each day, by `date.toordinal`."""
        if self._by_day is None:
            self._by_day = {}
            for number, day in enumerate(self.columns.days):
                if day:
                    self._by_day.setdefault(day, []).append(number)
        return self._by_day

    @property
    def has_groups(self) -> bool:
        """Whether any entry belongs to a group."""
        return self._grouped > 0

    @property
    def has_passages(self) -> bool:
        """Whether any entry has several passages."""
        return self._several > 0

    def _passage_statistics(self) -> tuple[int, float]:
        """Return the number of passages, and their average number of terms. An entry that is a single passage counts as one."""
        number = len(self) - self._several + self.passages.entries
        total = self.words.total - self._of_several + self.passages.total
        return number, total / number if total else 1.0

    def passage_against(self) -> array[float]:
        """Return the length norm of each passage, by the numbers of `passage_row`."""
        if self._passage_against is None:
            average = self._passage_statistics()[1]
            lengths = self.words.lengths + self.passages.lengths
            self._passage_against = array("d", all_lowered(lengths, average))
        return self._passage_against

    def passage_row(self, term: str) -> PostingList:
        """Return the passages that contain a term. An entry that is a single passage has its entry number; other passages are
        numbered after all entries."""
        passage = self._passage_rows.get(term)
        if passage is None:
            row, several, beyond = self.words.row(term), self.first_passage, len(self.ids)
            alone = [not several[one] for one in row.numbers]
            further, often = self.passages.occurrences(term)
            numbers = array("I", compress(row.numbers, alone))
            numbers.extend([beyond + one for one in further])
            counts = array("I", (*compress(row.counts, alone), *often))
            if len(self._passage_rows) >= _PASSAGE_ROWS:
                self._passage_rows.clear()
            worth = idf(self._passage_statistics()[0], len(numbers))
            passage = self._passage_rows[term] = PostingList(
                numbers, counts, worth, self.passage_against(), None
            )
        return passage

    def group_average(self) -> tuple[int, float]:
        """Return the number of groups, and their average number of terms. An entry without a group counts as one."""
        if self._group_average is None:
            groups = len(self) - self._grouped + sum(map(bool, self.last))
            self._group_average = groups, self.words.total / groups if self.words.total else 1.0
        return self._group_average

    def group_row(self, term: str) -> GroupRow:
        """Return the groups that contain a term."""
        cached = self._group_rows.get(term)
        if cached is None:
            row, of = self.words.row(term), self.columns.groups
            times: dict[int, int] = {}
            for group, count in zip(map(of.__getitem__, row.numbers), row.counts, strict=True):
                times[group] = times.get(group, 0) + count
            times.pop(0, None)
            alone = sum(not of[number] for number in row.numbers)
            number, average = self.group_average()
            worth = idf(number, alone + len(times))
            shares = {
                group: bm25(worth, count, lowered(self.group_lengths[group], average))
                for group, count in times.items()
            }
            cached = self._group_rows[term] = GroupRow(worth, shares)
        return cached


@lru_cache(maxsize=4_096)
def _day_words(day: date) -> list[str]:
    return [str(day.day), MONTHS[day.month - 1], str(day.year)]


def has_time(text: str) -> bool:
    """Return whether a text contains a time or a day."""
    return bool(_time.search(text))


def has_number(text: str) -> bool:
    """Return whether a text contains a number."""
    return bool(_number.search(text))


def _marks(text: str, texts: Iterable[list[str]]) -> int:
    """Return the flags of an entry of a group. `texts`: the words of its passages."""
    marks = GROUPED | QUESTION if text.rstrip().endswith(_ASKING) else GROUPED
    digit = _digit.search(text)
    telling = frozenset() if digit else _TELLING.intersection(chain.from_iterable(texts))
    if not digit and not telling:
        return marks
    if (digit or not _TIMES.isdisjoint(telling)) and _time.search(text):
        marks |= TIME
    if digit or (not _NUMBERS.isdisjoint(telling) and _number.search(text)):
        marks |= NUMBER
    return marks
