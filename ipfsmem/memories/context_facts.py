"""Selects the facts of a context block: restrictions first, each fact whole and with its category, until the block is full."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Final

import msgspec

from ipfsmem.bundle.fence import QUOTE, clean_text, tagged
from ipfsmem.bundle.memory_file import parse_memory
from ipfsmem.causal.clock import hlc_ms
from ipfsmem.causal.value import Entry
from ipfsmem.device.hidden import hidden_texts, is_hidden
from ipfsmem.errors import FormatError
from ipfsmem.facts.categories import MAX_FACT, category_of, kind_of
from ipfsmem.graph.entity import TAG as ENTITY
from ipfsmem.memories.priority import priority_factors
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.device.access_counts import Use
    from ipfsmem.device.hidden import Hidden
    from ipfsmem.memories.memories import MemoryStore
    from ipfsmem.memories.search_index import FactText, SearchIndex

#: The category of the facts that come first, in the text and if not all facts fit.
RESTRICTION: Final = "restriction"
_TAG: Final = "memory-facts"
_KEY_OF_A_FACT: Final = "fact_"
#: Maximum memories that are read without an index of recall, because of the time limit of a hook.
_MAX_UNINDEXED: Final = 5_000


class FactLine(msgspec.Struct, frozen=True):
    """One fact as it appears in a block."""

    scope: str
    key: str
    line: str
    restriction: bool
    worth: float
    hlc: str


class FactsShown(msgspec.Struct, frozen=True):
    """The text of a block's facts, and the numbers of facts shown and left out."""

    text: str
    shown: int
    left_out: int


class ContextFacts:
    """The facts of some scopes, and their size in a block."""

    def __init__(self, lines: Sequence[FactLine] = (), scopes: Sequence[str] = ()) -> None:
        self.lines = lines
        self._scopes = scopes

    @cached_property
    def places(self) -> frozenset[tuple[str, str]]:
        """The (scope, key) of each fact."""
        return frozenset((one.scope, one.key) for one in self.lines)

    @cached_property
    def bytes(self) -> int:
        """The bytes of all these facts in a block."""
        return sum(len(text.encode()) + 1 for text in self._all)

    def shown(self, room: int) -> FactsShown:
        """Return as many whole facts as fit into `room` bytes: restrictions first, then by priority, ties newest first."""
        if not self.lines:
            return FactsShown("", 0, 0)
        if self.bytes <= room:
            return FactsShown("\n".join(self._all), len(self.lines), 0)
        room -= len(_left_out(len(self.lines)).encode()) + 1
        chosen: list[FactLine] = []
        opened: set[str] = set()
        for cost, one in self._in_order:
            if room < self._least:
                break
            if one.scope not in opened:
                cost += len(tagged(_TAG, {"scope": one.scope}, "").encode()) + 1
            if cost <= room:
                room -= cost
                opened.add(one.scope)
                chosen.append(one)
        left_out = len(self.lines) - len(chosen)
        texts = [*_texts(self._scopes, chosen), *([_left_out(left_out)] if room >= 0 else [])]
        return FactsShown("\n".join(texts), len(chosen), left_out)

    @cached_property
    def _least(self) -> int:
        """The bytes of the shortest fact."""
        return min(cost for cost, _ in self._in_order)

    @cached_property
    def _all(self) -> list[str]:
        return _texts(self._scopes, self.lines)

    @cached_property
    def _in_order(self) -> list[tuple[int, FactLine]]:
        """The facts in the order in which they are chosen if not all fit, each with its bytes."""
        order = sorted(self.lines, key=attrgetter("hlc"), reverse=True)
        order.sort(key=lambda one: (not one.restriction, -one.worth))
        return [(len((QUOTE + one.line).encode()), one) for one in order]


def facts_of_scopes(parts: Sequence[MemoryStore]) -> ContextFacts:
    """Return the person's own facts of some scopes that are neither expired nor hidden on this device, scopes in order (inside
    `reading`)."""
    from ipfsmem.memories.search_index import index_at_hand

    replica = parts[0].replica
    today, hidden = replica.environment.today(), hidden_texts(replica)
    uses: Mapping[tuple[str, str], Use] = {} if parts[0].uses is None else parts[0].uses().before_today()
    fading = {part.scope: part.fading for part in parts}  # reading this property reads the settings file

    def lines(candidates: Iterable[tuple[MemoryStore, str, str, FactText | None]]) -> ContextFacts:
        fact_lines = []
        for part, key, hlc, fact in candidates:
            if fact is None or fact.factors.expired(today):
                continue
            text, category, factors = fact
            use = uses.get((part.scope, key))
            used, times = (0, 0) if use is None else (use.day, use.times)
            worth = factors.priority(today, used=used, uses=times, fading=fading[part.scope])
            line = f"- [{category}] {text}\n"
            fact_lines.append(FactLine(part.scope, key, line, category == RESTRICTION, worth, hlc))
        return ContextFacts(fact_lines, [part.scope for part in parts])

    index = index_at_hand(parts)
    if index is None:
        return lines(_read(parts, hidden))
    not_at_hand: list[str] = []
    of = (today, hidden, uses, fading)
    facts = index.made_of("facts", of, lambda: lines(_indexed(parts, index, hidden, not_at_hand)))
    if not_at_hand:
        index.forget_made("facts")
    return facts


def _texts(scopes: Sequence[str], facts: Sequence[FactLine]) -> list[str]:
    """Return the fenced facts of each scope, restrictions first, then sorted by line, so that adding a fact does not reorder the
    others."""
    texts = []
    for scope in scopes:
        of_scope = sorted(
            (one for one in facts if one.scope == scope), key=lambda one: (not one.restriction, one.line)
        )
        if of_scope:
            texts.append(tagged(_TAG, {"scope": scope}, "".join(one.line for one in of_scope)))
    return texts


def _left_out(number: int) -> str:
    return f"({count(number, 'more fact', 'more facts')} had no room here: look for them by their words.)\n"


def _indexed(
    parts: Sequence[MemoryStore],
    index: SearchIndex,
    hidden: Mapping[tuple[str, str], Hidden],
    not_at_hand: list[str],
) -> Iterator[tuple[MemoryStore, str, str, FactText | None]]:
    """Yield the person's own texts that may be facts, from an index, as (scope, key, clock, content). Keys of texts that cannot be read now
    are added to `not_at_hand`."""
    from ipfsmem.memories.search_index import shown_of

    by_scope = {part.scope: part for part in parts}
    for key in index.categorized():
        one = index.held[key]
        if not is_hidden(hidden, one.scope, key, one.hlc):
            part = by_scope[one.scope]
            texts = index.facts.get(key)
            if texts is None:
                shown = shown_of(part, key, part.replica.store.entry(part.name(key)))
                if shown is None or shown.data is None:
                    not_at_hand.append(key)
                    continue
                texts = index.facts[key] = (_fact(shown.data, one.hlc),)
            yield part, key, one.hlc, texts[0]


def _read(
    parts: Sequence[MemoryStore], hidden: Mapping[tuple[str, str], Hidden]
) -> Iterator[tuple[MemoryStore, str, str, FactText | None]]:
    """Yield the same as `_indexed` without an index: the texts written last, and all whose key is that of a fact. Each text is read
    once, also for the index lines of the block."""
    from ipfsmem.memories.overview import head_of
    from ipfsmem.memories.search_index import shown_of

    keys_met: set[str] = set()
    entries_of = parts[0].replica.store.memories_of([part.scope for part in parts])
    for part in parts:
        there = entries_of.get(part.scope, []) if not part.forgotten() else []
        first = (
            {key for key, _ in sorted(there, key=_written, reverse=True)[:_MAX_UNINDEXED]}
            if len(there) > _MAX_UNINDEXED
            else None
        )
        mine: set[str] = set()
        for key, entry in there:
            if key in keys_met or not (first is None or key in first or key.startswith(_KEY_OF_A_FACT)):
                continue
            shown = shown_of(part, key, entry)
            if shown is None or not shown.own:
                continue
            mine.add(key)
            if shown.data is not None and not is_hidden(hidden, part.scope, key, shown.hlc):
                head = head_of(shown.data)
                if len(entry) == 1:  # the index of the block uses this line too
                    (value,) = entry.values()
                    part.overview.keep_line(part.name(key), value, head)
                yield (
                    part,
                    key,
                    shown.hlc,
                    _fact(shown.data, shown.hlc) if "category" in head.fields else None,
                )
        keys_met |= mine


def _written(item: tuple[str, Entry]) -> str:
    return max((value.h for value in item[1].values()), default="")


def _fact(data: bytes, hlc: str) -> FactText | None:
    """Return a text as a fact; None if it is not one."""
    try:
        file = parse_memory(data)
    except FormatError:
        return None
    category = file.fields.get("category", "")
    if not category or ENTITY in file.tags or kind_of(file.type, category) != "fact":
        return None
    text = " ".join(clean_text(file.body).split())
    if not text or len(text) > MAX_FACT:
        return None
    from ipfsmem.memories.search_index import FactText  # as in `shown_of`

    return FactText(text, category_of(category), priority_factors(file, hlc_ms(hlc)))
