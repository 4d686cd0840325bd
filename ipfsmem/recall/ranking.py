"""Entries ranked for a question: a sum of parts, each between 0 and its weight, of which one table says all.

An entry is a memory file, alone in its group, or one of a conversation or a day, whose neighbours say what it is about.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from datetime import date
from math import log1p
from typing import NamedTuple, TypeVar

from ipfsmem.recall.dates import days_named
from ipfsmem.recall.postings import Postings, bm25, idf
from ipfsmem.recall.terms import terms

_Key = TypeVar("_Key", int, str)

#: Each part and its weight. Those of entries of a group were fitted on conversations; the last four are chosen, not fitted.
WEIGHTS = {
    "words": 2.0,  # BM25 of the entry
    "meaning": 3.0,  # its similarity, where one is given
    "before": 3.0,  # mean own score of the two entries before it in its group; its own where there is none
    "best": 2.0,  # the best own score in its group
    "cover": 3.0,  # share, by idf, of the question's terms that it has, or two entries on either side
    "group": 1.5,  # BM25 of the whole group
    "date": 2.0,  # the question names its day, month or year
    "when": 2.0,  # the question asks when, and the entry has a time
    "number": 1.0,  # it asks how many, and the entry has a number
    "question": -1.5,  # the entry is itself a question
    "length": 5.0,  # the logarithm of its characters
    "header": 2.0,  # of a memory file: share, by idf, of the terms that its header has
    "salience": 0.5,  # of a memory file: what it is worth beside any question
    "recency": 0.5,  # of a memory file: halved each 7 days since its last update or use
}
#: These speak of an entry among others, or are habits of chat.
_OF_GROUPS = ("when", "number", "question", "length")
HALF_LIFE_DAYS = 7
#: Characters from which on a longer entry is worth no more.
_LONGEST = 1_000
#: Of more entries than these only the best by words, or by meaning, and the best groups are looked at.
_ALL, _BEST, _BEST_GROUPS = 5_000, 1_000, 40
#: Entries on either side that are looked at.
_NEAR = 2
#: Different terms of a question that count.
MAX_TERMS = 64
_asks_when = re.compile(r"\b(?:when|what (?:day|date|month|year|time)|how long ago)\b", re.I)
_asks_number = re.compile(r"\bhow (?:many|much|old|often|long)\b", re.I)
_time = re.compile(
    r"\b(?:\d{1,2}:\d\d|\d{4}-\d\d|(?:19|20)\d\d|today|yesterday|tomorrow|tonight|ago|(?:last|next|this) \w+|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|june|july|august|september|october|"
    r"november|december|in may)\b",
    re.I,
)
_number = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|once|twice|dozen|hundred)\b", re.I
)


class Document(NamedTuple):
    """One entry, and what is known of it."""

    id: str
    text: str
    #: Of a memory file: its name, description and tags. They count as its words too.
    header: str = ""
    #: The conversation or day that it belongs to; "" is none.
    group: str = ""
    #: When it happened, or was last changed or used.
    at: date | None = None
    memory: bool = False
    #: What a memory file is worth, 0 to 1; see `salience`.
    salience: float = 0.5

    @property
    def words(self) -> str:
        """All that it can be found by."""
        return f"{self.header}\n{self.text}" if self.header else self.text


class Hit(NamedTuple):
    """An entry that was found. The score is the sum of its parts."""

    id: str
    score: float
    parts: dict[str, float]


def salience(type: str, tags: int, *, important: bool = False) -> float:
    """What a memory file of this type and with so many tags is worth beside any question, 0 to 1."""
    if important:
        return 1.0
    bonus = {"feedback": 0.3, "user": 0.2, "project": 0.1}.get(type, 0.0)
    return min(1.0, 0.5 + bonus + min(0.05 * tags, 0.2))


def recency(days: float) -> float:
    """1 for what was changed or used now, a half after seven days; what lies ahead is now."""
    return float(0.5 ** (max(0.0, days) / HALF_LIFE_DAYS))


class Index:
    """Entries that can be ranked. One that was changed piece by piece answers like one made anew of the same entries."""

    def __init__(self, documents: Iterable[Document] = ()) -> None:
        self.postings = Postings()
        self.documents: dict[int, Document] = {}
        self.groups: dict[str, list[int]] = {}
        self.group_lengths: dict[str, int] = {}
        self._numbers: dict[str, int] = {}
        self._group: dict[int, str] = {}
        #: The different terms of each header.
        self.header_terms: dict[int, frozenset[str]] = {}
        self._next = 0
        for document in documents:
            self.add(document)

    def __len__(self) -> int:
        return len(self.documents)

    def add(self, document: Document) -> None:
        """Puts an entry in, as the last of its group; one of the same id is replaced."""
        self.remove(document.id)
        number, self._next = self._next, self._next + 1
        found = terms(document.words)
        self.postings.add(number, found)
        self.documents[number] = document
        self._numbers[document.id] = number
        grouped = document.group and not document.memory
        group = f"of {document.group}" if grouped else f"alone {document.id}"
        self._group[number] = group
        if document.header:
            self.header_terms[number] = frozenset(terms(document.header))
        self.groups.setdefault(group, []).append(number)
        self.group_lengths[group] = self.group_lengths.get(group, 0) + len(found)

    def remove(self, id: str) -> None:
        """Takes an entry out, if it is there."""
        number = self._numbers.pop(id, None)
        if number is None:
            return
        group = self._group.pop(number)
        self.header_terms.pop(number, None)
        self.groups[group].remove(number)
        self.group_lengths[group] -= self.postings.lengths[number]
        if not self.groups[group]:
            del self.groups[group], self.group_lengths[group]
        self.postings.remove(number, terms(self.documents.pop(number).words))

    def number(self, id: str) -> int | None:
        """The number of an entry, None when it is not there."""
        return self._numbers.get(id)

    def group_of(self, number: int) -> str:
        """The name of an entry's group; a memory file and one without a group have their own."""
        return self._group[number]


def rank(
    index: Index,
    question: str,
    *,
    today: date,
    limit: int = 10,
    meaning: Mapping[str, float] | None = None,
) -> list[Hit]:
    """The best entries for a question, the best first; of equal ones the first by id.

    Only entries come that share a term with it, themselves or by their group, whose day it names, or for which a similarity is
    given in `meaning`, by id.
    """
    wanted = list(dict.fromkeys(terms(question)))[:MAX_TERMS]
    words = _scaled(index.postings.scores(wanted))
    similar = {n: value for id, value in (meaning or {}).items() if (n := index.number(id)) is not None}
    similar = _between(similar)
    groups = _scaled(_group_scores(index, wanted))
    named = days_named(question, today)
    dated = (
        {n for n, one in index.documents.items() if one.at and any(one.at in days for days in named)}
        if named
        else set()
    )
    weight = WEIGHTS["words"] + (WEIGHTS["meaning"] if similar else 0.0)

    def own(number: int) -> float:
        value = WEIGHTS["words"] * words.get(number, 0.0)
        if similar:
            value += WEIGHTS["meaning"] * similar.get(number, 0.0)
        return value / weight

    looked = _looked_at(index, words, similar, groups, dated)
    lengths = _between(
        {n: log1p(min(len(index.documents[n].text), _LONGEST)) for n in looked if _grouped(index, n)}
    )
    best = {group: max(map(own, index.groups[group])) for group in {index.group_of(n) for n in looked}}
    has = {term: index.postings.having(term) for term in wanted}
    worths = {term: index.postings.worth(term) for term in wanted}
    asks_when, asks_number = _asks_when.search(question), _asks_number.search(question)
    places = {n: at for group in best for at, n in enumerate(index.groups[group])}
    hits = []
    for n in looked:
        document, group = index.documents[n], index.group_of(n)
        row, at = index.groups[group], places[n]
        before, near = row[max(0, at - _NEAR) : at], row[max(0, at - _NEAR) : at + _NEAR + 1]
        parts = {
            "words": words.get(n, 0.0),
            "before": sum(map(own, before)) / len(before) if before else own(n),
            "best": best[group],
            "cover": _share(worths, {term for term in wanted if any(one in has[term] for one in near)}),
            "group": groups.get(group, 0.0),
            "date": float(n in dated),
        }
        if similar:
            parts["meaning"] = similar.get(n, 0.0)
        if document.memory:
            parts["header"] = _share(worths, index.header_terms.get(n, frozenset()))
            parts["salience"] = min(1.0, max(0.0, document.salience))
            parts["recency"] = recency((today - document.at).days) if document.at else 0.0
        elif _grouped(index, n):
            parts["when"] = float(bool(asks_when and _time.search(document.text)))
            parts["number"] = float(bool(asks_number and _number.search(document.text)))
            parts["question"] = float(document.text.rstrip().endswith(("?", "？", "؟")))
            parts["length"] = lengths[n]
        weighed = {part: WEIGHTS[part] * value for part, value in parts.items() if value}
        hits.append(Hit(document.id, sum(weighed.values()), weighed))
    return sorted(hits, key=lambda hit: (-hit.score, hit.id))[: max(0, limit)]


def _grouped(index: Index, number: int) -> bool:
    """Whether an entry is one of a conversation or a day."""
    document = index.documents[number]
    return bool(document.group) and not document.memory


def _group_scores(index: Index, wanted: Iterable[str]) -> dict[str, float]:
    """BM25 of each group, taken as one text."""
    number = len(index.groups)
    average = sum(index.group_lengths.values()) / number if number else 1.0
    found: dict[str, float] = {}
    for term in wanted:
        times: dict[str, int] = {}
        for n, count in index.postings.having(term).items():
            group = index.group_of(n)
            times[group] = times.get(group, 0) + count
        for group, count in times.items():
            share = bm25(idf(number, len(times)), count, index.group_lengths[group], average)
            found[group] = found.get(group, 0.0) + share
    return found


def _looked_at(
    index: Index,
    words: Mapping[int, float],
    similar: Mapping[int, float],
    groups: Mapping[str, float],
    dated: set[int],
) -> list[int]:
    """The entries that can be hits: all that anything speaks for, of very many only the best."""
    if len(index) <= _ALL:
        found = {*words, *similar, *dated}
        return sorted(found.union(*(index.groups[group] for group in groups)))
    found = set(dated)
    for signal in (words, similar):
        found.update(sorted(signal, key=lambda n: (-signal[n], index.documents[n].id))[:_BEST])
    for n in list(found):
        row = index.groups[index.group_of(n)]
        at = row.index(n)
        found.update(row[max(0, at - _NEAR) : at + _NEAR + 1])
    for group in sorted(groups, key=lambda name: (-groups[name], name))[:_BEST_GROUPS]:
        found.update(index.groups[group])
    return sorted(found)


def _share(worths: Mapping[str, float], there: Collection[str]) -> float:
    """Which share of the question's terms is there, by what each is worth."""
    total = sum(worths.values())
    return sum(worth for term, worth in worths.items() if term in there) / total if total else 0.0


def _scaled(scores: dict[_Key, float]) -> dict[_Key, float]:
    """Scores against the best of them; an entry without one has 0, so that is the least."""
    top = max(scores.values(), default=0.0)
    return {key: score / top for key, score in scores.items()} if top else {}


def _between(scores: dict[_Key, float]) -> dict[_Key, float]:
    """Scores between the least, 0, and the greatest, 1; all 1 where they are equal."""
    low, top = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
    return {key: (score - low) / (top - low) if top > low else 1.0 for key, score in scores.items()}
