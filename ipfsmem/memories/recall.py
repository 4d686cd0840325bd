"""Finds the memories, messages and events that match a query, best first, by the ranking of `recall/`, and explains each hit.

Own texts come before texts of others. The same vault returns the same hits on the same day, whatever was searched or opened before.
The word index (`search_index`) is updated before each search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from ipfsmem.bundle.timeline import event_line
from ipfsmem.causal.value import Entry, Value
from ipfsmem.device.hidden import hidden_texts, is_hidden
from ipfsmem.errors import NotFoundError, UsageError
from ipfsmem.memories.event_entries import KINDS, Kind, Moment
from ipfsmem.memories.memories import MemoryStore
from ipfsmem.memories.memory_reader import NotHereError
from ipfsmem.memories.memory_records import MemoryRecord
from ipfsmem.memories.query_embedding import NOT_NAMED_HINT, QueryEmbedding
from ipfsmem.memories.query_words import MAX_HITS, MAX_PHRASINGS, MAX_WORDS, PREFIX, query_words
from ipfsmem.memories.search_index import Filter, IndexedEntry, SearchIndex, index_of, searched_header
from ipfsmem.memories.writers import Writers
from ipfsmem.recall.ranking import MAX_TERMS, USUAL, Index, RankingWeights, rank
from ipfsmem.recall.ranking import Hit as Ranked
from ipfsmem.recall.spelling import likened, spelled
from ipfsmem.recall.terms import split, terms, terms_of, unspaced
from ipfsmem.wording import ALWAYS, FOREVER

if TYPE_CHECKING:
    from ipfsmem.memories.event_search import EventSource, Reader
    from ipfsmem.recall.postings import Postings
    from ipfsmem.recall.vectors import Vectors

#: Fields of an event that name its speaker or author.
_WHO = ("speaker", "by", "author", "from", "name", "user", "who", "sender", "agent")
#: If more memories than the first number are similar to the query, only the second number of the most similar ones is ranked.
_ALL, _CLOSE = 5_000, 2_000
#: If more than one in this many entries has no vector, vectors are ignored, because entries without one would rank last.
_ONE_MISSING_IN = 10
_NOT_ASKED = QueryEmbedding(None, "", named=False)
#: A query of at most this many words is a lookup, which finds only entries that match it themselves.
_LOOKUP_WORDS = 2
#: Maximum relations returned with a hit.
MAX_RELATIONS = 20
#: Parts of the score of an entry that matches itself, not as the neighbour of a match.
_OWN_SCORE_PARTS = frozenset({"words", "meaning", "date", "day"})


class Hit(msgspec.Struct, frozen=True):
    """A memory that was found, and on request the reasons."""

    reading: MemoryRecord
    #: How well it matches, relative to the other hits; not comparable across queries.
    score: float
    #: The other searched scopes that have a text under its key, which is not shown.
    hides: tuple[str, ...] = ()
    #: The summands of the score.
    parts: dict[str, float] = {}
    #: The words of the query that occur in it.
    words: tuple[str, ...] = ()
    #: On request: the first relations in the graph that begin or end at it, as (begin, type, end).
    joined: tuple[tuple[str, str, str], ...] = ()
    #: Its rank among all hits, of any kind, from 1.
    place: int = 0


class MomentHit(msgspec.Struct, frozen=True):
    """An event or a message that was found. Imported events, and pending messages, are not own."""

    moment: Moment
    #: The text of a message, preceded by the name of its speaker if there is one; the line of an event as JSON.
    text: str
    #: The event; None for a message.
    event: Mapping[str, Any] | None
    #: How well it matches, relative to the other hits, including memories.
    score: float
    parts: dict[str, float] = {}
    words: tuple[str, ...] = ()
    #: Its rank among all hits, of any kind, from 1.
    place: int = 0


class Question(msgspec.Struct, frozen=True):
    """A query, with the arguments of `Memory.recall`. `by_meaning`: whether to use the model. `said`: the embedding of the query,
    if the caller has it."""

    query: str | None
    queries: Iterable[str] = ()
    kind: Kind = "memory"
    limit: int = 10
    type: str | None = None
    tag: str | None = None
    category: str | None = None
    when: str | None = None
    since: str | None = None
    until: str | None = None
    by: str | None = None
    about: str | None = None
    threshold: float | None = None
    explain: bool = False
    by_meaning: bool = True
    said: QueryEmbedding | None = None
    include_relations: bool = False


class Match:
    """A hit whose text is read on access."""

    def __init__(self, hit: Ranked, place: int, one: IndexedEntry | Moment, texts: _HitReader) -> None:
        self.id = hit.id
        #: Its rank among all hits, of any kind, from 1.
        self.place = place
        self.ranked = hit
        #: The index entry of a memory, or that of an event or a message.
        self.held = one if isinstance(one, IndexedEntry) else None
        self.moment = one if isinstance(one, Moment) else None
        self.own = one.own
        self._texts = texts

    @cached_property
    def hit(self) -> Hit | None:
        """The memory with its text; None if the text is no longer on this device (inside `reading`)."""
        return self._texts.hit(self)

    @cached_property
    def moment_hit(self) -> MomentHit | None:
        """The event or message with its text; None if the text is no longer on this device (inside `reading`)."""
        return self._texts.moment_hit(self)

    def look(self) -> None:
        """Read the text now."""
        _ = self.hit if self.held is not None else self.moment_hit


class Matches(msgspec.Struct, frozen=True):
    """The hits, without their texts: the best of `searched` entries, own ones first. `not_fetched`: number of entries that could
    not be searched or read, because their texts are missing or damaged on this device."""

    #: All hits, best first.
    ranked: list[Match]
    #: The index that was searched.
    source: SearchIndex
    searched: int
    not_fetched: int
    #: Whether the ranking used vectors of a model.
    by_meaning: bool
    #: A problem of the model, for a person, reported once; "" for none.
    notice: str

    @property
    def memories(self) -> list[Match]:
        """The hits that are memories."""
        return [one for one in self.ranked if one.held is not None]

    @property
    def moments(self) -> list[Match]:
        """The hits that are events or messages."""
        return [one for one in self.ranked if one.moment is not None]


def search(parts: Sequence[MemoryStore], question: Question, *, read: bool = False) -> Matches:
    """Search the memories of some scopes, in order of precedence, or their events, messages, or all of these. A text is read on
    access; with `read` all texts are read now, from the same state.

    Expired memories are left out; parts of sessions are found only with the type `session`. Raises UsageError, also for a threshold
    without a model; with a threshold, also the errors of the model.
    """
    kind, limit, threshold, why, by = (
        question.kind,
        question.limit,
        question.threshold,
        question.explain,
        question.by,
    )
    if kind not in KINDS:
        raise UsageError(f"unknown kind {kind!r}", hint=f"It is one of {', '.join(KINDS)}.")
    if not 1 <= limit <= MAX_HITS:
        raise UsageError(f"limit is 1 to {MAX_HITS}, not {limit}")
    if threshold is not None and not -1 <= threshold <= 1:
        raise UsageError(f"threshold is -1 to 1, not {threshold}")
    phrasings = _phrasings(question.query, question.queries)
    words = tuple(dict.fromkeys(word for one in phrasings for word in query_words(one)))
    replica = parts[0].replica
    times = (question.since, question.until, question.when)
    then = (ALWAYS, FOREVER) if times == (None, None, None) else _then(*times, replica.environment.now())
    filter = Filter(question.type, question.tag, question.category, *then)
    searched = filter.of_index
    answers = [
        question.said
        or (_query_embedding(parts, one, threshold, kind, searched) if question.by_meaning else _NOT_ASKED)
        for one in phrasings
    ]
    today = replica.environment.today()
    with replica.reading():
        search_index = index_of(parts, kind, searched)
        index = search_index.index(parts, searched)
        only = search_index.passing(index, filter)
        if by is not None:
            written = _written_by(by, parts, search_index, index)
            only = written if only is None else only & written
        if question.about is not None:
            named_ids = _naming(question.about, index)
            only = named_ids if only is None else only & named_ids
        hidden = hidden_texts(replica)
        expired = search_index.expired(today)
        # With several phrasings, the number of hits to merge does not depend on `limit`, so that a small `limit` returns the first
        # hits of a larger one.
        most = limit if len(phrasings) == 1 else MAX_HITS
        lists, by_model = list[list[Ranked]](), False
        for phrasing, answer in zip(phrasings, answers, strict=True):
            weighed = _weights(parts[0], answer)
            if threshold is None:
                answer = _where_most_have_one(search_index, index, answer)
            search = _Search(
                search_index,
                index,
                phrasing,
                today,
                _similar(search_index, index, answer, threshold, only),
                threshold is not None,
                weighed,
                kind != "memory" and _is_lookup(phrasing),
                only,
            )
            best = search.best(query_words(phrasing), most + len(hidden) + len(expired))
            if hidden or expired:
                best = [
                    hit
                    for hit in best
                    if hit.id not in expired
                    if hit.id not in search_index.held
                    or not is_hidden(
                        hidden, search_index.held[hit.id].scope, hit.id, search_index.held[hit.id].hlc
                    )
                ][:most]
            lists.append(best)
            by_model |= answer.vectors is not None
        ranked = lists[0] if len(lists) == 1 else _fused(search_index, lists)[:limit]
        texts = _HitReader(
            parts,
            search_index,
            _spelled_terms(words, index) if why else {},
            explain=why,
            include_relations=question.include_relations,
        )
        matches = [
            Match(
                hit,
                place,
                search_index.moments[hit.id] if hit.id in search_index.moments else search_index.held[hit.id],
                texts,
            )
            for place, hit in enumerate(ranked, 1)
        ]
        if read:
            texts.read(matches)
        return Matches(
            matches,
            search_index,
            len(index) if only is None else len(only),
            search_index.pieces_missing() + texts.missing,
            by_model,
            next((one.notice for one in answers if one.notice), ""),
        )


class _HitReader:
    """Reads the texts of the hits of one search (inside `reading`)."""

    def __init__(
        self,
        parts: Sequence[MemoryStore],
        search_index: SearchIndex,
        terms_meant: dict[str, tuple[str, ...]],
        *,
        explain: bool,
        include_relations: bool,
    ) -> None:
        self.parts = parts
        self._search_index = search_index
        self._terms_meant = terms_meant
        self._why = explain
        self._joined = include_relations
        self._sources: dict[str, EventSource | None] = {}
        self._part_of = {part.scope: part for part in reversed(parts)}
        #: The state entries of the memories that `read` reads, and the lookup of their texts.
        self._entries: dict[str, Entry] = {}
        self._body: Callable[[str, Value], bytes | None] | None = None
        #: Number of texts that are in the index but cannot be read.
        self.missing = 0

    def hit(self, match: Match) -> Hit | None:
        """Return a memory with its text."""
        indexed = match.held
        assert indexed is not None
        part = self._part_of[indexed.scope]
        try:
            entry = self._entries.get(match.id)
            if entry is None:
                entry = part.replica.store.entry(part.name(match.id))
            reading = part.reading_of(match.id, entry, self._body)
        except NotHereError:
            self.missing += 1  # removed since the search, or damaged
            return None
        if reading is None or (indexed.own and not reading.own):
            return None  # forgotten since the search; the remaining texts of others did not match
        reasons = match.ranked.parts if self._why else {}
        has = _words_in(self._terms_meant, _searched(reading)) if self._why else ()
        relations = _relations(part, match.id) if self._joined and reading.own else ()
        return Hit(reading, match.ranked.score, indexed.hides, reasons, has, relations, match.place)

    def moment_hit(self, match: Match) -> MomentHit | None:
        """Return an event or a message with its text."""
        assert match.moment is not None
        if match.id not in self._sources:
            self._read_moments({match.id: match.moment})
        one = self._sources[match.id]
        if one is None:
            return None  # removed since the search
        has = _words_in(self._terms_meant, one.words) if self._why else ()
        text = one.text if one.event is None else event_line(dict(one.event)).decode()
        reasons = match.ranked.parts if self._why else {}
        return MomentHit(one.moment, text, one.event, match.ranked.score, reasons, has, match.place)

    def read(self, matches: Sequence[Match]) -> None:
        """Read the texts of all these hits."""
        of = {one.id: one.moment for one in matches if one.moment is not None}
        self._read_moments(of)
        store = self.parts[0].replica.store
        entries = {
            one.id: store.entry(self._part_of[one.held.scope].name(one.id))
            for one in matches
            if one.held is not None
        }
        self._entries = entries
        # Of an entry with several values only the own ones are read, one at a time: others may have added many long values.
        self._body = store.bodies(next(iter(entry.values())) for entry in entries.values() if len(entry) == 1)
        for one in matches:
            one.look()
        self._entries, self._body = {}, None  # read now: the state may change later

    def _read_moments(self, moments: Mapping[str, Moment]) -> None:
        store = self.parts[0].replica.store
        cached = {id: one for id in moments if (one := self._search_index.cached(id, store)) is not None}
        new = {id: one for id, one in moments.items() if id not in cached}
        sources = self._reader.read(new) if new else {}
        self._search_index.cache(sources.values())
        self._sources |= {id: cached.get(id) or sources.get(id) for id in moments}

    @cached_property
    def _reader(self) -> Reader:
        from ipfsmem.memories.event_search import Reader

        return Reader(self.parts, self._search_index.pieces, self._search_index.parts_read)


def _then(since: str | None, until: str | None, when: str | None, now: int) -> tuple[int, int]:
    """Return the first millisecond of the requested time range, and the first millisecond after it."""
    from ipfsmem.memories.time_ranges import since_until  # needed by few queries

    return since_until(since, until, when, now)


def _phrasings(query: str | None, queries: Iterable[str]) -> list[str]:
    """Return the distinct phrasings of a query. Raises UsageError."""
    if isinstance(queries, str):
        raise UsageError("queries is a list of texts; one text is query")
    phrasings = list(dict.fromkeys([*([] if query is None else [query]), *queries]))
    if not phrasings:
        raise UsageError("recall needs a query, or queries with several phrasings")
    if len(phrasings) > MAX_PHRASINGS:
        raise UsageError(f"queries has at most {MAX_PHRASINGS} phrasings, not {len(phrasings)}")
    return phrasings


def _fused(search_index: SearchIndex, lists: Sequence[Sequence[Ranked]]) -> list[Ranked]:
    """Merge the hits of several phrasings, own ones before those of others."""
    from ipfsmem.recall.fusion import fused

    def is_own(id: str) -> bool:
        return search_index.moments[id].own if id in search_index.moments else search_index.held[id].own

    return [
        hit
        for own in (True, False)
        for hit in fused([[one for one in hits if is_own(one.id) is own] for hits in lists])
    ]


def _relations(part: MemoryStore, key: str) -> tuple[tuple[str, str, str], ...]:
    """Return the relations of a memory in the graph of its scope (inside `reading`)."""
    from ipfsmem.memories.graph import graph_of  # needed by few queries

    graph = graph_of(part).graph()
    edges = (*graph.out(key), *graph.into(key)) if key in graph.entities else ()
    return tuple(dict.fromkeys((one.begin, one.type, one.end) for one in edges))[:MAX_RELATIONS]


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """Why one memory is or is not found by a query. `place`: its rank among all `hits`, from 1; 0 if it is not a hit, for the given
    `reason`. `searched`: number of searched memories. `parts`: summands of the score. `words`: the words of the query that it
    contains; `missing`: the others. `hides`: the other scopes with a text under its key, which is not shown. `before`: the key of
    the preceding hit, "" for none."""

    key: str
    scope: str
    own: bool
    place: int
    hits: int
    searched: int
    score: float
    parts: dict[str, float]
    words: tuple[str, ...]
    missing: tuple[str, ...]
    reason: str
    hides: tuple[str, ...]
    before: str
    before_parts: dict[str, float]


def why(parts: Sequence[MemoryStore], key: str, query: str) -> Explained:
    """Return the rank of one memory among all hits of a query and the summands of its score, or why it is not found.

    Raises UsageError for a query without words, and NotFoundError if the memory does not exist or its text is not on this device.
    """
    words = query_words(query)
    replica = parts[0].replica
    embedding = _query_embedding(parts, query, None, "memory", Filter())
    weighed = _weights(parts[0], embedding)
    with replica.reading():
        search_index = index_of(parts, filter=Filter())
        if key in search_index.not_fetched:
            raise NotHereError(
                f"{key} is known, and its text is not on this device",
                hint="Run: ipfsmem sync. Then try again.",
            )
        entry = search_index.held.get(key)
        scope = next((part for part in parts if entry is not None and part.scope == entry.scope), parts[0])
        reading = scope.reading_of(key, replica.store.entry(scope.name(key)))
        if entry is None or reading is None:
            raise NotFoundError(f"there is no memory {key}")
        index = search_index.index(parts, Filter())
        embedding = _where_most_have_one(search_index, index, embedding)
        search = _Search(
            search_index,
            index,
            query,
            replica.environment.today(),
            _similar(search_index, index, embedding, None),
            False,
            weighed,
        )
        hidden, expired = hidden_texts(replica), search_index.expired(replica.environment.today())
        ranked = [
            hit
            for hit in (search.best(words, len(index)) if index.number(key) is not None else ())
            if hit.id not in expired
            if not is_hidden(hidden, search_index.held[hit.id].scope, hit.id, search_index.held[hit.id].hlc)
        ]
        place = next((place for place, hit in enumerate(ranked, 1) if hit.id == key), 0)
        hit = ranked[place - 1] if place else None
        has = _words_in(_spelled_terms(words, index), _searched(reading))
        before = ranked[place - 2] if place > 1 else None
        if hit is not None:
            reason = ""
        elif is_hidden(hidden, entry.scope, key, entry.hlc):
            reason = "it is hidden on this device"
        elif key in expired:
            reason = f"it was valid until {reading.readable.expires[:10]}"
        else:
            reason = _not_found(entry, has)
        return Explained(
            key=reading.key,
            scope=reading.scope,
            own=reading.own,
            place=place,
            hits=len(ranked),
            searched=len(index),
            score=hit.score if hit is not None else 0.0,
            parts=hit.parts if hit is not None else {},
            words=has,
            missing=tuple(word for word in words if word not in has),
            reason=reason,
            hides=entry.hides,
            before=before.id if before is not None else "",
            before_parts=before.parts if before is not None else {},
        )


def _not_found(entry: IndexedEntry, has: tuple[str, ...]) -> str:
    if entry.part:
        return "it is part of a session, and only a search of messages finds it"
    if not has:
        return "it contains none of the words"
    return "too many others match better"


def _weights(part: MemoryStore, embedding: QueryEmbedding) -> RankingWeights:
    """Return the ranking weights, with less weight for meaning if the model knows few of the query's words."""
    usual = USUAL if part.weighed is None else part.weighed()
    return usual if embedding.vectors is None else usual.with_meaning(embedding.share)


def _query_embedding(
    parts: Sequence[MemoryStore], query: str, threshold: float | None, kind: Kind, filter: Filter
) -> QueryEmbedding:
    """Embed the query, if a model is named and most of the searched entries have a vector. Raises as `search`."""
    meaning = parts[0].meaning()
    if meaning is None:
        embedding = _NOT_ASKED
    elif threshold is not None:
        embedding = meaning.ask(query, newest=True, kind=kind)
    else:
        embedding = meaning.ask(query, kind=kind, worth_it=_most_have_one(parts, kind, filter))
    if threshold is not None and embedding.vectors is None:
        if embedding.problem is not None:
            raise embedding.problem
        if not embedding.named:
            raise UsageError("a threshold requires a model, and none is set", hint=NOT_NAMED_HINT)
    return embedding


def _where_most_have_one(
    search_index: SearchIndex, index: Index, embedding: QueryEmbedding
) -> QueryEmbedding:
    """Return the embedding if nearly all searched entries have a vector; otherwise one without vectors."""
    if embedding.vectors is None:
        return embedding
    _, missing = search_index.rows(index, embedding.vectors.at)
    return embedding if _are_most(len(index), missing) else msgspec.structs.replace(embedding, vectors=None)


def _most_have_one(parts: Sequence[MemoryStore], kind: Kind, filter: Filter) -> Callable[[Vectors], bool]:
    """Return a function that tells whether nearly all searched entries have one of the given vectors."""

    def do(vectors: Vectors) -> bool:
        with parts[0].replica.reading():
            search_index = index_of(parts, kind, filter)
            index = search_index.index(parts, filter)
            return _are_most(len(index), search_index.without_vector(index, vectors.ids))

    return do


def _are_most(count: int, missing: int) -> bool:
    """Return whether vectors are used if `missing` of `count` entries have no vector."""
    return missing * _ONE_MISSING_IN <= count


def _similar(
    search_index: SearchIndex,
    index: Index,
    embedding: QueryEmbedding,
    threshold: float | None,
    only: frozenset[int] | None = None,
) -> dict[int, float]:
    """Return the similarity of the related entries of an index to the query, by number; if there are too many, of the most
    similar."""
    if embedding.vectors is None:
        return {}
    rows: Sequence[int] = search_index.rows(index, embedding.vectors.at)[0]
    if only is not None:
        rows = [row if number in only else -1 for number, row in enumerate(rows)]
    least = embedding.unrelated if threshold is None else threshold
    mine, others = search_index.parted(index)
    if len(index) <= _ALL or not others:
        return embedding.vectors.nearest(
            embedding.question, rows, least, len(index) if len(index) <= _ALL else _CLOSE
        )
    near = dict[int, float]()
    for part in (mine, others):
        of_part = [row if number in part else -1 for number, row in enumerate(rows)]
        near |= embedding.vectors.nearest(embedding.question, of_part, least, _CLOSE)
    return near


class _Search(msgspec.Struct, frozen=True):
    """One query, and the entries searched for it."""

    found: SearchIndex
    words: Index
    query: str
    today: date
    #: Similarities by entry number.
    similar: dict[int, float]
    only_similar: bool
    weighed: RankingWeights
    #: Whether to return only entries that match by a word, day or meaning themselves, not neighbours of a match.
    only_having: bool = False
    #: The numbers of the entries that may be hits; None: all.
    only: frozenset[int] | None = None

    def without_meaning(self) -> _Search:
        """Return the same search without vectors."""
        return msgspec.structs.replace(self, similar={}, only_similar=False)

    def best(self, words: Sequence[str], limit: int) -> list[Ranked]:
        """Return the best hits, own ones before those of others. The two are ranked separately: ranking considers a limited number
        of candidates, which texts of others could otherwise fill."""
        mine, others = self.found.parted(self.words)
        if not others:
            return self._best(words, limit, self.only)
        if self.only is not None:
            mine, others = mine & self.only, others & self.only
        own = self._best(words, limit, mine)
        return own + (self._best(words, limit - len(own), others) if len(own) < limit else [])

    def _best(self, words: Sequence[str], limit: int, only: frozenset[int] | None) -> list[Ranked]:
        """Return the best hits by words and meaning; if there are none, by prefixes of the query's words. `only`: the numbers of
        the entries that may be hits."""
        by_meaning = bool(self.similar) or self.only_similar
        if by_meaning and self._has_a_word(only):
            return self._ranked(limit, only)
        by_words = ranked = self.without_meaning()._ranked(1 if by_meaning else limit, only)
        if not by_words and (beginning := _beginnings(words)):
            terms = self.words.words.beginning_with(beginning)[:MAX_WORDS]
            ranked = self._ranked(limit, only, terms) if terms else []
        if by_meaning and (by_words or not ranked):
            ranked = self._ranked(limit, only)
        return ranked

    def _has_a_word(self, only: frozenset[int] | None) -> bool:
        """Return whether a word of the query occurs in one of these entries, without ranking them."""
        if not self.weighed.weights["words"]:
            return False
        rows = self.words.words
        there = (rows.row(term).numbers for term in terms(self.query)[:MAX_TERMS] if rows.having(term))
        return any(only is None or not only.isdisjoint(numbers) for numbers in there)

    def _ranked(
        self, limit: int, only: frozenset[int] | None, terms: list[str] | None = None
    ) -> list[Ranked]:
        """Return the best `limit` hits. `terms`: searched in place of the query's terms."""
        number = limit
        while True:
            ranked = rank(
                self.words,
                self.query,
                today=self.today,
                limit=number,
                wanted=terms,
                similar=self.similar,
                weighed=self.weighed,
                only=only,
            )
            hits = [
                hit for hit in ranked if not self.only_similar or self.words.number(hit.id) in self.similar
            ]
            if self.only_having:
                hits = [hit for hit in hits if not _OWN_SCORE_PARTS.isdisjoint(hit.parts)]
            if len(hits) >= limit or len(ranked) < number:
                return hits[:limit]
            number *= 8


def _is_lookup(query: str) -> bool:
    """Return whether a query consists of a word or two. A longer sentence with as few terms is not a lookup: a neighbouring entry
    may answer it."""
    return len(split(query)) <= _LOOKUP_WORDS and len(set(terms(query))) <= _LOOKUP_WORDS


def _beginnings(words: Iterable[str]) -> tuple[str, ...]:
    """Return the words to search as prefixes if no word of the query occurs: longer words, and single letters of scripts without
    spaces."""
    return tuple(
        word
        for word in words
        if (len(word) == 1 if not word.isascii() and unspaced().match(word) else len(word) >= PREFIX)
    )


def _spelled_terms(words: Sequence[str], index: Index) -> dict[str, tuple[str, ...]]:
    """Return the words of a query, each with its terms and their corrected spellings in the index."""
    sought = list(dict.fromkeys(term for word in words for term in terms(word)))
    having = index.words.having
    likened_terms = likened(spelled(sought, having, index.words.among), having, index.words.alike)
    terms_by_word = dict(zip(sought, likened_terms, strict=True))
    return {word: tuple(terms_by_word[term] for term in terms(word)) for word in words}


def _searched(reading: MemoryRecord) -> str:
    """Return the searched text of a memory."""
    file = reading.readable
    return f"{searched_header(reading.key, file)}\n{file.body}"


def _words_in(terms_meant: dict[str, tuple[str, ...]], text: str) -> tuple[str, ...]:
    """Return the words of a query that occur in a text."""
    first = {
        term[0] for word, likened_terms in terms_meant.items() for term in (word, *likened_terms) if term
    }
    there = frozenset(
        term
        for word in set(split(text))
        if word[0] in first or not word.isascii()  # a word begins with the first letters of its stem
        for term in terms_of(word)
    )
    return tuple(
        word
        for word, likened_terms in terms_meant.items()
        if not there.isdisjoint(likened_terms) or (likened_terms and _begins(word, there))
    )


def _begins(word: str, terms: frozenset[str]) -> bool:
    return len(word) >= PREFIX and any(term.startswith(word) for term in terms)


def _written_by(
    by: str, parts: Sequence[MemoryStore], search_index: SearchIndex, index: Index
) -> frozenset[int]:
    """Return the numbers of the entries that somebody wrote, or said as a named speaker. Raises UsageError for an unknown name."""
    writers, name = Writers(parts[0].replica), by.strip().casefold()
    if not name:
        raise UsageError("by is empty: pass a name, such as Ana")
    authors = search_index.writers()
    devices = {
        device
        for device in authors
        if name in (device, writers.device(device).casefold(), writers.member(device).casefold())
    }
    numbers = set[int]()
    for number, id in enumerate(index.ids):
        if not id:
            continue
        one: Moment | IndexedEntry = (
            search_index.moments[id] if id in search_index.moments else search_index.held[id]
        )
        is_role = isinstance(one, Moment) and one.kind == "message" and one.type == name
        if one.device in devices or is_role:
            numbers.add(number)
    sought, events = terms(by), dict[str, Moment]()
    for number in _having(index.headers, sought):
        moment = search_index.moments.get(index.ids[number])
        if moment is not None and moment.kind == "message":
            numbers.add(number)
        elif moment is not None:
            events[index.ids[number]] = moment
    if events:
        from ipfsmem.memories.event_search import read_again

        for id, source in read_again(parts, events).items():
            names = [source.event.get(field) for field in _WHO] if source.event is not None else []
            if any(isinstance(one, str) and set(sought) <= set(terms(one)) for one in names):
                numbers.update(one for one in [index.number(id)] if one is not None)
    if not numbers and not devices:
        called = ", ".join(sorted({writers.device(device) for device in authors})[:10]) or "nobody yet"
        raise UsageError(
            f"nobody who wrote here is called {by[:60]!a}, and no speaker in the searched texts",
            hint=f"Writers: {called}.",
        )
    return frozenset(numbers)


def _naming(about: str, index: Index) -> frozenset[int]:
    """Return the numbers of the entries that mention a name in their words or have it as speaker. Raises UsageError."""
    sought = terms(about)
    if not sought:
        raise UsageError("about has no words: pass a name, such as Ana")
    return _having(index.words, sought)


def _having(rows: Postings, sought: Sequence[str]) -> frozenset[int]:
    """Return the numbers of the entries that contain all of these terms."""
    if not sought:
        return frozenset()
    return frozenset.intersection(*(frozenset(rows.row(term).numbers) for term in sought))
