"""Adds, reads, edits and restores the facts, procedures and episodes of one scope: memory files with a category. A new entry is
first compared with the existing ones.

A replaced or removed text is stored in the history of its memory (`fact_history`) in the same transaction, and can be restored.
Entries beyond the limits in the settings are hidden on this device, not deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

import msgspec

from ipfsmem.bundle.header import render_tags
from ipfsmem.bundle.header_edit import edit_memory
from ipfsmem.bundle.memory_file import MemoryFile, parse_memory, render_memory
from ipfsmem.causal.clock import hlc_ms
from ipfsmem.config import FactSettings
from ipfsmem.device.hidden import Hidden, hidden_texts, hide, show
from ipfsmem.errors import ChangedError, NotFoundError, UsageError
from ipfsmem.facts.categories import (
    CLOSED,
    CONFLICT,
    MAX_FACT,
    Kind,
    category_of,
    fact_key,
    kind_of,
    sanitised,
    type_of,
)
from ipfsmem.facts.decision import (
    Action,
    By,
    Candidate,
    Decision,
    decide,
    meaning_matters,
    says_a_change,
)
from ipfsmem.facts.limits import FactRank, Order, Ranked, beyond, place_of
from ipfsmem.graph.entity import TAG as ENTITY
from ipfsmem.memories.fact_history import earlier, keep_in
from ipfsmem.memories.memories import MemoryStore
from ipfsmem.memories.memory_reader import NotHereError
from ipfsmem.memories.memory_records import MemoryRecord, first_own
from ipfsmem.memories.overview import head_of
from ipfsmem.memories.priority import expired_on, priority_factors
from ipfsmem.memories.query_embedding import QueryEmbedding
from ipfsmem.memories.query_words import MAX_QUERY
from ipfsmem.memories.recall import Question, search
from ipfsmem.memories.search_index import IndexedEntry, index_of
from ipfsmem.recall.priority import reinforced

if TYPE_CHECKING:
    from ipfsmem.memories.fact_words import FactWords

#: Maximum hits of recall that are examined for entries, and maximum entries that are compared with a new one.
_HITS, _NEAREST = 20, 5
#: Number of entries added by the index of recall before the word index of all entries is built.
_INDEX_AFTER = 3
#: Minimum share of a text's words that the model must know for its vectors to be used.
_MIN_KNOWN_SHARE = 0.9
_NAME = 100


class AddedFacts:
    """Number of facts added to an open vault, and after many the word index of each scope."""

    def __init__(self) -> None:
        self.number = 0
        self.words: dict[str, FactWords] = {}


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """One fact, procedure or episode."""

    key: str
    scope: str
    kind: Kind
    category: str
    text: str
    #: ISO 8601, from the header; then the last write in milliseconds since 1970 UTC.
    created: str
    changed: int
    confidence: float | None
    important: bool
    #: Whether it contradicts an earlier entry and was not reviewed yet.
    conflict: bool
    own: bool
    seen: str
    #: The confidence of today, after fading; None without a confidence.
    confidence_now: float | None = None


class Remembered(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `facts.add`: the entry, and whether it was `added`, `kept` or `updated`."""

    action: Action
    fact: Fact
    by: By
    similarity: float
    #: The text that the entry replaced or contradicts; "" for none.
    was: str
    conflict: bool
    #: The keys that the limits in the settings hide on this device.
    hidden: tuple[str, ...]


class Facts:
    """The entries of one scope, and of the scopes redirected to it."""

    def __init__(self, memories: MemoryStore, limits: FactSettings) -> None:
        self._memories = memories
        self._parts = memories.stack()
        self._replica = memories.replica
        self._limits = limits

    # -- reading -------------------------------------------------------------------------------------------------

    def page(
        self,
        kind: Kind | None = None,
        category: str | None = None,
        limit: int | None = None,
        cursor: str = "",
        *,
        hidden: bool = False,
    ) -> tuple[list[Fact], str]:
        """Return up to `limit` entries after a cursor, last written first, and the next cursor, "" at the end. Entries that are not
        fetched are left out. `hidden`: list the entries hidden on this device instead."""
        category_wanted = None if category is None else category_of(category)
        with self._replica.reading():
            rest = self._rows(kind, self._parts, hidden=hidden)
            if cursor:
                behind = tuple(cursor.split("/", 1))
                rest = [item for item in rest if (item[1].hlc, item[0]) < behind]
            if category_wanted is not None:
                rest = [item for item in rest if category_of(item[1].category or "") == category_wanted]
            facts = (self._fact(key) for key, _ in rest[:limit])
            more = (
                ""
                if limit is None or len(rest) <= limit
                else f"{rest[limit - 1][1].hlc}/{rest[limit - 1][0]}"
            )
            return [one for one in facts if one is not None], more

    def get(self, key: str) -> Fact | None:
        """Return one entry; None if the key has none."""
        with self._replica.reading():
            return self._fact(key)

    def _rows(
        self,
        kind: Kind | None,
        parts: Sequence[MemoryStore],
        *,
        own: bool = False,
        hidden: bool = False,
    ) -> list[tuple[str, IndexedEntry]]:
        """Return (key, header) of the entries of these scopes that are not hidden, or with `hidden` of the hidden ones, last
        written first (inside `reading`). `own`: all own entries, including expired ones, which count towards the limits."""
        known_hidden, scopes = hidden_texts(self._replica), {part.scope for part in parts}
        today = self._replica.environment.today()
        out_of_sight = {(key, one.hlc): of for (of, key), one in known_hidden.items() if of in scopes}
        rows = [
            (key, one)
            for key, one in index_of(parts).held.items()
            # Checked first because limits hide most entries.
            if (out_of_sight.get((key, one.hlc)) == one.scope) == hidden
            and not one.part
            and ENTITY not in one.tags
            and (kind_here := kind_of(one.type, one.category)) is not None
            and kind in (None, kind_here)
            and (one.own or not own)
            and (own or not one.factors.expired(today))
        ]
        return sorted(rows, key=lambda item: (item[1].hlc, item[0]), reverse=True)

    def _fact(self, key: str) -> Fact | None:
        reading = self._reading(key)
        fact = None if reading is None else fact_of(reading)
        if fact is None or reading is None or fact.confidence is None:
            return fact
        factors = priority_factors(reading.readable, fact.changed)
        use = None if self._memories.uses is None else self._memories.uses().of((fact.scope, key))
        used, times = (0, 0) if use is None else (use.day, use.times)
        today, fading = self._replica.environment.today(), self._memories.fading
        confidence = factors.confidence_on(today, used=used, uses=times, fading=fading)
        return msgspec.structs.replace(
            fact, confidence_now=None if confidence is None else round(confidence, 6)
        )

    def _candidates(self, text: str, kind: Kind) -> tuple[list[Candidate], bool]:
        """Return the person's own entries of a kind most similar to a text: by words, and if a model is named and could change the decision,
        by meaning; and whether a named model was not asked."""
        if not says_a_change(text) and (words := self._words()):
            with self._replica.reading():
                for one in words:
                    one.refresh()
                keys = dict.fromkeys(key for one in words for key in one.near(text, kind, _NEAREST))
                near = [self._reading(key) for key in keys]
            today = self._replica.environment.today()
            candidates = [
                Candidate(fact.key, fact.text, fact.category)
                for one in near
                if one is not None and (fact := fact_of(one)) and not expired_on(one.readable, today)
            ]
            meaning = self._memories.meaning()
            if meaning is None or not meaning_matters(text, candidates):
                return candidates, meaning is not None and meaning.named
            text_embedding = meaning.ask(text[:MAX_QUERY])
            close = self._meanings(text_embedding, [one.key for one in candidates])
            return [one._replace(meaning=close.get(one.key)) for one in candidates], False
        query = text[:MAX_QUERY]
        meaning = self._memories.meaning()
        query_embedding = None if meaning is None else meaning.ask(query)
        try:
            matches = search(self._parts, Question(query, limit=_HITS, said=query_embedding), read=True)
        except UsageError:
            return [], False  # the text has no word
        readings = [hit.reading for one in matches.memories if (hit := one.hit) is not None]
        facts = [fact for one in readings if one.own and (fact := fact_of(one)) is not None]
        nearest = facts[:_NEAREST]
        similar = (
            {} if query_embedding is None else self._meanings(query_embedding, [one.key for one in nearest])
        )
        return [
            Candidate(one.key, one.text, one.category, similar.get(one.key))
            for one in nearest
            if one.kind == kind
        ], False

    def _words(self) -> list[FactWords]:
        """Return the word index of each scope, if enough entries were added to make building it worthwhile."""
        added = self._memories.caches.of(AddedFacts)
        words_of = added.words
        if added.number >= _INDEX_AFTER:
            from ipfsmem.memories.fact_words import FactWords  # not needed for adding a few

            for part in self._parts:
                if part.scope not in words_of:
                    words_of[part.scope] = FactWords(part)
        indexes = [words_of[part.scope] for part in self._parts if part.scope in words_of]
        return indexes if len(indexes) == len(self._parts) else []

    def _reading(self, key: str) -> MemoryRecord | None:
        return first_own(self._readings(key))

    def _readings(self, key: str) -> Iterator[MemoryRecord | None]:
        for part in self._parts:
            try:
                yield (
                    None
                    if part.forgotten()
                    else part.reading_of(key, self._replica.store.entry(part.name(key)))
                )
            except NotHereError:
                yield None

    def _meanings(self, embedding: QueryEmbedding, keys: list[str]) -> dict[str, float]:
        """Return the similarity of entries to the embedded text, by key, for texts whose words the model knows."""
        if not keys or embedding.vectors is None or embedding.share < _MIN_KNOWN_SHARE:
            return {}
        with self._replica.reading():
            vectors = index_of(self._parts).vectors
        rows = [embedding.vectors.at.get(vectors.get(key, b""), -1) for key in keys]
        return {
            keys[place]: cosine
            for place, cosine in embedding.vectors.nearest(embedding.question, rows, -1.0, len(rows)).items()
        }

    # -- writing -------------------------------------------------------------------------------------------------

    def add(
        self,
        text_given: str,
        category: str,
        kind: Kind = "fact",
        *,
        confidence: float | None = None,
        important: bool = False,
        source: str = "",
    ) -> Remembered | None:
        """Add a text, or reinforce the entry that has it; returns None if the normalised text is empty. Raises UsageError,
        ChangedError."""
        text, category = checked(text_given, category, closed=self._limits.closed)
        if confidence is not None and not 0 <= confidence <= 1:
            raise UsageError(f"a confidence is 0 to 1, not {confidence:g}")
        if not text:
            return None
        key, there = self._place_of(text, kind)
        if there is not None:
            decision = Decision("kept", key, "same", 1.0)
            old: Fact | None = there
        else:
            candidates, with_model = self._candidates(text, kind)
            decision = decide(text, category, candidates, with_model=with_model)
            with self._replica.reading():
                existing = self._fact(decision.key) if decision.key else None
            old = existing if existing is not None else there
            if existing is None and decision.action != "added":
                decision = Decision("added", "", "nothing near", decision.similarity)
        if decision.action == "kept" and old is not None:
            self._unhidden(old)
            if decision.by == "same" and old.confidence is not None:
                old = self._reinforce(old, reinforced(old.confidence, confidence))
            return _remembered(decision, old, conflict=False)
        changes = {
            "name": text if len(text) <= _NAME else f"{text[: _NAME - 1]}…",
            "type": type_of(kind, category),
            "category": category,
            "confidence": "" if confidence is None else f"{confidence:.6g}",
            **({"important": "true"} if important else {}),
            **({"source": source} if source else {}),
        }
        if decision.action == "updated" and old is not None:
            written = self._replace(
                old.key, text, changes, "updated", conflict=decision.conflict, seen=old.seen
            )
            return _remembered(decision, written, was=old.text, conflict=decision.conflict)
        today = self._replica.environment.today().isoformat()
        tags = [category, *([CONFLICT] * decision.conflict)]
        changes |= {"tags": render_tags(tags), "created": self._now(), "updated": today}
        data = render_memory(MemoryFile().with_fields(changes, text))
        with self._memories.changing("write", key) as change:
            reading = self._memories.write_in(change, key, data)
        self._memories.caches.of(AddedFacts).number += 1
        fact = fact_of(reading)
        if fact is None or reading.data != data:
            raise NotFoundError(
                f"{key} shows the text of another device", hint=f"Look: ipfsmem conflicts {key}"
            )
        hidden = self.keep_limits(kind)
        was = old.text if decision.conflict and old is not None else ""
        return _remembered(decision, fact, was=was, conflict=decision.conflict, hidden=hidden)

    def _reinforce(self, fact: Fact, confidence: float) -> Fact:
        """Return the same entry with this confidence."""
        with self._memories.changing("write", fact.key) as change:
            reading = self._memories.shown_in_stack(change, fact.key)
            if reading is None or not reading.own or fact.confidence == confidence:
                return fact
            data = edit_memory(reading.data, {"confidence": f"{confidence:.6g}"})
            return fact_of(self._memories.write_over(change, fact.key, data, reading)) or fact

    def _place_of(self, text: str, kind: Kind) -> tuple[str, Fact | None]:
        """Return the key for an entry with this text, and the entry if it exists; another key if that of the text has other
        content."""
        for number in range(100):
            key = fact_key(f"{text}\0{number}" if number else text, kind)
            reading = first_own(part.read(key) for part in self._parts)
            if reading is None or not reading.own:
                return key, None
            fact = fact_of(reading)
            if fact is not None and (fact.text, fact.kind) == (text, kind):
                return key, fact
        raise ChangedError(f"no free key for the fact {text[:40]!r}: a hundred other texts have its keys")

    def edit(self, key: str, text_given: str, seen: str | None = None) -> Fact:
        """Replace the text of an entry, and store the earlier text in its history. `seen`: the hash that the current text must
        have. Raises NotFoundError, UsageError, ChangedError."""
        old = self._existing(key)
        text, _ = checked(text_given, old.category, closed=False)
        if not text:
            raise UsageError(
                "the text is empty, so nothing was changed",
                hint=f"To delete it: ipfsmem fact delete {key}",
            )
        if text == old.text and not old.conflict:
            _check_seen(key, old.seen, seen)
            return old
        name = text if len(text) <= _NAME else f"{text[: _NAME - 1]}…"
        return self._replace(key, text, {"name": name}, "edited", seen=seen)

    def keep_deleted(self, key: str, seen: str | None = None) -> list[MemoryRecord]:
        """Store the texts of an entry as `keep_removed` does. Raises NotFoundError, ChangedError."""
        self._existing(key)
        return keep_removed(self._memories, key, seen)

    def restore(self, key: str, number: int = 1, seen: str | None = None) -> MemoryRecord:
        """Restore an earlier text, numbered from the newest, and store the current text in the history. `seen`: the hash that the
        current text must have, "" for no text. Raises NotFoundError, ChangedError."""
        revisions = earlier(self._memories, key)
        if not revisions:
            raise NotFoundError(
                f"there is no earlier text of {key}",
                hint="List deleted facts: ipfsmem fact history",
            )
        if not 1 <= number <= len(revisions):
            raise NotFoundError(
                f"{key} has {len(revisions)} earlier texts, so none is number {number}",
                hint=f"See them: ipfsmem fact history {key}",
            )
        data = revisions[number - 1].data
        with self._memories.changing("write", key) as change:
            shown = self._memories.shown_in_stack(change, key)
            _check_seen(key, shown.seen if shown is not None else "", seen)
            if shown is not None and shown.own:
                if shown.data == data:
                    return shown
                keep_in(change, self._memories, key, shown.data, "restored")
            return self._memories.write_in(change, key, data)

    def _replace(
        self,
        key: str,
        text: str,
        changes: dict[str, str],
        why: str,
        *,
        conflict: bool = False,
        seen: str | None = None,
    ) -> Fact:
        """Replace a text and store it in the history, in one transaction."""
        today = self._replica.environment.today().isoformat()
        with self._memories.changing("write", key) as change:
            shown = self._memories.shown_in_stack(change, key)
            if shown is None or not shown.own:
                raise NotFoundError(f"there is no fact {key}")
            _check_seen(key, shown.seen, seen)
            keep_in(change, self._memories, key, shown.data, "edited" if why == "edited" else "updated")
            file = parse_memory(shown.data)
            tags = [tag for tag in file.tags if tag not in (CONFLICT, file.fields.get("category"))]
            tags = [
                changes.get("category") or file.fields.get("category", ""),
                *tags,
                *([CONFLICT] * conflict),
            ]
            fields = {**changes, "updated": today, "tags": render_tags([tag for tag in tags if tag])}
            reading = self._memories.write_over(change, key, edit_memory(shown.data, fields, text), shown)
        fact = fact_of(reading)
        assert fact is not None
        return fact

    def _now(self) -> str:
        """Return the current time, with enough digits to order the writes of one day."""
        now = datetime.fromtimestamp(self._replica.environment.now() / 1000, UTC)
        return now.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def _existing(self, key: str) -> Fact:
        fact = self.get(key)
        if fact is None or not fact.own:
            raise NotFoundError(f"there is no fact {key}", hint="List them with: ipfsmem fact list")
        return fact

    def _unhidden(self, fact: Fact) -> None:
        with self._replica.reading():
            hidden = (fact.scope, fact.key) in hidden_texts(self._replica)
        if hidden:
            with self._replica.transaction():
                show(self._replica, [(fact.scope, fact.key)])

    # -- limits --------------------------------------------------------------------------------------------------

    def keep_limits(self, kind: Kind) -> tuple[str, ...]:
        """Hide on this device the entries of a kind that exceed the limit in the settings; returns their keys."""
        most = {
            "fact": self._limits.facts,
            "procedure": self._limits.procedures,
            "episode": self._limits.episodes,
        }[kind]
        if not most:
            return ()
        words = self._memories.caches.of(AddedFacts).words.get(self._memories.scope)
        with self._replica.reading():
            if words is not None:
                words.refresh()
                if words.many(kind) <= most:
                    return ()
                ranked = self._ranked(kind, words)
                over = ranked[: max(0, len(ranked) - most)]
            else:
                today, fading, order = (
                    self._replica.environment.today(),
                    self._memories.fading,
                    self._limits.order,
                )
                rows = self._rows(kind, (self._memories,), own=True)
                places = [self._place(key, one, today, fading, order) for key, one in rows if not one.part]
                over = beyond(places, most) if len(rows) > most else []
        if over:
            why = f"more than {most} of this kind ({self._limits.order})"
            now, scope = self._replica.environment.now(), self._memories.scope
            with self._replica.transaction():
                hide(self._replica, [Hidden(scope, one.key, one.changed, now, why) for one in over])
        return tuple(one.key for one in over)

    def _ranked(self, kind: Kind, words: FactWords) -> Sequence[FactRank]:
        """Return the ranks of the visible entries of a kind, in order. A header is read only if the creation date is needed. Parts
        of sessions have no rank."""
        rows = index_of((self._memories,)).held.whole()
        today, fading, order = self._replica.environment.today(), self._memories.fading, self._limits.order

        def place(key: str) -> FactRank | None:
            one = rows.get(key)
            return None if one is None or one.part else self._place(key, one, today, fading, order)

        return words.ranked(kind, (today, fading, order), place)

    def _place(self, key: str, one: IndexedEntry, today: date, fading: float, order: Order) -> FactRank:
        created = self._head(key).created if order == "first" else ""
        sure = one.factors.confidence_on(today, fading=fading) if order == "confidence" else None
        value = one.factors.priority(today, fading=fading) if order == "salience" else 0.0
        sure = 1.0 if sure is None else sure
        ranked = Ranked(key, created or today.isoformat(), one.hlc, sure, value, one.factors.important)
        return place_of(ranked, order)

    def _head(self, key: str) -> MemoryFile:
        entry = self._memories.entry(key)
        data = self._memories.view(key, entry).data
        return head_of(data) if data is not None else MemoryFile()


def keep_shown(memories: MemoryStore, key: str, seen: str | None = None) -> MemoryRecord:
    """Store the current text of a memory in its history before its writer replaces it, unless it is pending. `seen`: the hash that
    the current text must have. Raises NotFoundError, ChangedError."""
    with memories.changing("write", key) as change:
        shown = memories.shown_in_stack(change, key)
        if shown is None:
            raise NotFoundError(f"there is no memory {key}")
        _check_seen(key, shown.seen, seen)
        if shown.own:
            keep_in(change, memories, key, shown.data, "deleted")
    return shown


def _remembered(
    decision: Decision, fact: Fact, *, was: str = "", conflict: bool, hidden: tuple[str, ...] = ()
) -> Remembered:
    return Remembered(
        action=decision.action,
        fact=fact,
        by=decision.by,
        similarity=decision.similarity,
        was=was,
        conflict=conflict,
        hidden=hidden,
    )


def keep_removed(memories: MemoryStore, key: str, seen: str | None = None) -> list[MemoryRecord]:
    """Store the person's own texts of a memory, in this scope and the scopes redirected to it, in its history before they are removed;
    returns them, the shown text first. If only a pending text exists, it is returned and not stored. `seen`: the hash that the
    shown text must have. Raises NotFoundError, ChangedError."""
    with memories.changing("write", key) as change:
        readings = [one for part in memories.stack() if (one := part.shown_in(change, key)) is not None]
        shown = first_own(readings)
        if shown is None:
            raise NotFoundError(f"there is no memory {key}")
        _check_seen(key, shown.seen, seen)
        if not shown.own:
            return [shown]
        removed = [shown, *(one for one in readings if one.own and one is not shown)]
        for one in reversed(removed):
            keep_in(change, memories.in_scope(one.scope), key, one.data, "deleted")
    return removed


def _check_seen(key: str, shown: str, seen: str | None) -> None:
    """Raise ChangedError if the current text is not the text that the caller was shown."""
    if seen is not None and seen != shown:
        raise ChangedError(f"{key} changed since it was read, so nothing was changed")


def checked(text_given: str, category: str, *, closed: bool) -> tuple[str, str]:
    """Return a text and a category in canonical form. Raises UsageError for a text that is too long, and if `closed` for a category
    outside the fixed list."""
    text, category_form = sanitised(text_given), category_of(category)
    try:
        f"{text}{category_form}".encode()
    except UnicodeEncodeError:
        raise UsageError("a fact is Unicode text, and this has half of a character in it") from None
    if len(text) > MAX_FACT:
        raise UsageError(
            f"a fact has at most {MAX_FACT:,} characters, and this has {len(text):,}",
            hint="Longer texts are memories: ipfsmem write",
        )
    if closed and category_form not in CLOSED:
        raise UsageError(f"unknown category {category[:60]!r}", hint=f"Categories: {', '.join(CLOSED)}.")
    return text, category_form


def fact_of(reading: MemoryRecord) -> Fact | None:
    """Return a memory as a fact, procedure or episode; None if it is none of these."""
    file = reading.readable
    none = kind_of(file.type, file.fields.get("category", "")) is None or ENTITY in file.tags
    return None if none else as_fact(reading)


def as_fact(reading: MemoryRecord) -> Fact:
    """Return any memory in the form of a `Fact`."""
    file = reading.readable
    category = file.fields.get("category", "")
    kind = kind_of(file.type, category) or "fact"
    return Fact(
        key=reading.key,
        scope=reading.scope,
        kind=kind,
        category=category_of(category),
        text=file.body,
        created=file.created,
        changed=hlc_ms(reading.hlc) if reading.hlc else 0,
        confidence=file.confidence,
        important=file.important,
        conflict=CONFLICT in file.tags,
        own=reading.own,
        seen=reading.seen,
    )
