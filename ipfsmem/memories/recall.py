"""Memories found by their words: each query word that occurs counts once, and nothing weighs or ranks beyond that.

Words are compared without case and accents, over key, name, description, tags and body. Own texts come before those of
others, more words before fewer, words in the header before words in the body, newer before older, then by key: the same
memory gives the same answer. What was read is remembered in this process by its hash, never on a disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256

import msgspec

from ipfsmem.bundle.session_parts import is_part
from ipfsmem.causal.clock import hlc_ms
from ipfsmem.causal.value import Entry
from ipfsmem.errors import UsageError
from ipfsmem.memories.memories import Memories
from ipfsmem.memories.readings import Reading
from ipfsmem.memories.words import Words, needle, query_words, spaced

#: What the order of hits goes by; said in each answer.
PLAIN = "plain"
MAX_HITS = 200


class Hit(msgspec.Struct, frozen=True):
    """A memory that was found, and where it was asked why, the query's words that occur in it."""

    reading: Reading
    words: tuple[str, ...] = ()
    #: Those of them that occur in the header or the key.
    in_header: tuple[str, ...] = ()


class Recall(msgspec.Struct, frozen=True):
    """What was found: the first hits, how many there are, and in how many memories nothing could be looked for as their texts
    are not on this device."""

    hits: tuple[Hit, ...]
    found: int
    not_fetched: int
    words: tuple[str, ...]


def since_ms(since: str) -> int:
    """The moment that an ISO 8601 date or time names, UTC unless it says otherwise, in ms. Raises UsageError."""
    try:
        moment = datetime.fromisoformat(since)
    except ValueError:
        raise UsageError(
            f"since is a date or a time, and {since!r} is none",
            hint="For instance 2026-11-22 or 2026-11-22T17:30:00Z.",
        ) from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def recall(
    parts: Sequence[Memories],
    query: str,
    *,
    limit: int = 10,
    type: str | None = None,
    tag: str | None = None,
    since: str | None = None,
    why: bool = False,
) -> Recall:
    """The memories of some scopes, the first before the next, in which a word of the query occurs.

    `type`, `tag`, `since` (when it was written) leave out the others; parts of sessions are found only with type `session`.
    `why`: each hit says which words it has.
    Raises UsageError.
    """
    if not 1 <= limit <= MAX_HITS:
        raise UsageError(f"limit is 1 to {MAX_HITS}, not {limit}")
    wanted = [(word, needle(word)) for word in query_words(query)]
    least = since_ms(since) if since is not None else 0
    known: dict[str, tuple[tuple[bool, int, int, int], Memories, Entry, tuple[str, ...], tuple[str, ...]]]
    known, met, not_fetched = {}, dict[str, bool](), set[str]()
    first = parts[0]
    with first.replica.reading():
        held = first.replica.store.memories_of([part.scope for part in parts])
        for part in parts:
            if part.forgotten():
                continue
            for key, entry in held.get(part.scope, ()):
                if met.get(key):
                    continue
                looked = _look(part, key, entry)
                if looked is None:
                    continue
                words, own, written = looked
                if (
                    key in met
                ):  # there is a text of others in a scope before this one: only an own one takes its place
                    if not own:
                        continue
                    known.pop(key, None)
                    not_fetched.discard(key)
                met[key] = own
                if words is None:
                    not_fetched.add(key)
                    continue
                file = words.file
                if (type is None and is_part(key, file)) or type not in (None, file.type):
                    continue
                if (tag is not None and tag not in file.tags) or hlc_ms(written) < least:
                    continue
                header = words.header + spaced(key)
                above = tuple(word for word, part_of in wanted if part_of in header)
                found = tuple(word for word, part_of in wanted if word in above or part_of in words.body)
                if found:
                    rank = (not own, -len(found), -len(above), -int(written, 16))
                    known[key] = rank, part, entry, found, above
        matches = sorted(known.items(), key=lambda one: (one[1][0], one[0]))
        hits = []
        for key, (_, part, entry, found, above) in matches[:limit]:
            reading = part.reading_of(key, entry)
            if reading is not None:
                hits.append(Hit(reading, found, above) if why else Hit(reading))
    return Recall(tuple(hits), len(matches), len(not_fetched), tuple(word for word, _ in wanted))


def _look(part: Memories, key: str, entry: Entry) -> tuple[Words | None, bool, str] | None:
    """The words that are shown under a key (None: not at hand), whether they are own, and when they were written; None when
    nothing is shown there."""
    if len(entry) == 1:
        ((dot, value),) = entry.items()
        if value.body is None:
            return None
        if part.is_own(dot, value.of):
            words = part.words.of(value.body, None)
            if words is None:
                words = part.words.of(value.body, part.replica.store.body(part.name(key), value))
            return words, True, value.h
    entry = part.entry(key, entry)
    view = part.view(key, entry)
    if view.data is None or view.dot is None:
        return (None, view.own, "") if view.not_fetched else None
    digest = view.body or sha256(view.data).hexdigest()
    return part.words.of(digest, view.data), view.own, entry[view.dot].h
