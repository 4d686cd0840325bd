"""Builds the context block for a model at the start of a session or before a prompt: the index of own memories, and with a query
the matching texts, messages and events, fenced and within a limit.

It contains own texts only, and no names of others' texts (format section 5.2). The same vault always produces the same text, and
the first line never changes. Unless the caller passes a counter, a token is three bytes of UTF-8, which overestimates the tokens of
prose with common models.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import chain, groupby, islice, pairwise
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ipfsmem.bundle.fence import NOTICE, QUOTE, fence_memory, tagged
from ipfsmem.bundle.index import MAX_BYTES, MAX_LINES, SECTIONS
from ipfsmem.bundle.memory_file import MemoryFile
from ipfsmem.causal.value import Entry
from ipfsmem.device.hidden import hidden_texts, is_hidden
from ipfsmem.device.shown_texts import mark_of
from ipfsmem.errors import UsageError
from ipfsmem.memories.context_facts import ContextFacts, facts_of_scopes
from ipfsmem.memories.context_layouts import (
    LAYOUTS,
    LEAST_TOKENS,
    MOST_TOKENS,
    TOKEN_BYTES,
    Layout,
    usual_tokens,
)
from ipfsmem.memories.memories import MemoryStore
from ipfsmem.memories.overview import IndexLine, head_of, line_of
from ipfsmem.memories.writers import Writers
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.device.access_counts import Use
    from ipfsmem.memories.context_talk import Said, Talk
    from ipfsmem.memories.event_entries import Kind
    from ipfsmem.memories.recall import Hit, Match, Matches, MomentHit
    from ipfsmem.recall.priority import PriorityFactors

#: Maximum number of matches that are examined, and bytes of one that are shown.
_MAX_MATCHES = 20
_MAX_TEXT_BYTES = 6_000
#: Maximum factor by which a block grows if the caller's counter returns fewer tokens than `tokens_of`.
_MAX_GROWTH = 8
#: A text is not shown if fewer bytes than this would be left.
_MIN_TEXT_BYTES = 1_200
#: Maximum memories in the layout `turn`.
_MAX_TURN_MATCHES = 3
#: Maximum matching messages and events; the same in the layout `turn`; how many of the best are placed before the memories, in a
#: quarter of the room.
_MAX_MESSAGES, _MAX_TURN_MESSAGES, _LEADING_MESSAGES = 60, 5, 3
#: Hits in which the layout `turn` looks for messages and events.
_TURN_CANDIDATES = 40
#: Maximum bytes of texts that are indexed before a prompt (half a second of work); with more, only an existing index is used.
_MAX_INDEXED_BYTES = 1_000_000
#: If the texts exceed `_MAX_INDEXED_BYTES` divided by this, the index is made ahead of prompts: other machines are slower.
_SAFETY_FACTOR = 4
#: Maximum messages and events between two memories.
_MESSAGES_BETWEEN = 4
#: Maximum events in a block, and bytes of one.
_EVENTS, _EVENT_BYTES = 20, 600
#: Maximum memories that are ranked by worth without an index of recall, because of the time limit of a hook.
_MAX_UNINDEXED = 5_000
#: After this many memories that do not fit into the index, no further one is tried; bytes of the shortest line.
_PASSED, _LEAST_LINE = 200, 16
#: Bytes reserved for texts other than facts, at most a quarter of the block.
_RESERVED_BYTES = 1_500
#: Maximum keys listed of matches that do not fit.
_MAX_KEYS = 10


class ContextBlock(msgspec.Struct, frozen=True, kw_only=True):
    """A context block and a summary of its content. The text is empty if there is no context."""

    text: str
    #: The number of tokens of the text.
    tokens: int
    #: Keys of the memories whose texts are in the block, as `scope/key` outside the default scope.
    shown: tuple[str, ...]
    #: Keys of matching memories that do not fit.
    skipped: tuple[str, ...]
    #: Number of memories in the index plus facts in the block, and number of both that do not fit.
    listed: int
    left_out: int
    #: Number of latest events in the block.
    events: int
    #: In a preview: the lines that look like secrets.
    secrets: tuple[str, ...] | None = None
    #: Number of texts, events and indexes left out because this session was shown them before; the marks of those in the block.
    repeated: int = 0
    marks: tuple[str, ...] = ()
    #: Number of matching messages and events in the block.
    said: int = 0

    def __str__(self) -> str:
        return self.text


def tokens_of(text: str) -> int:
    """Estimate the number of tokens of a text."""
    return -(-len(text.encode()) // TOKEN_BYTES)


def context(
    parts: Sequence[MemoryStore],
    *,
    query: str | None = None,
    max_tokens: int | None = None,
    layout: Layout = "index",
    count: Callable[[str], int] = tokens_of,
    exclude: frozenset[str] = frozenset(),
    by_meaning: bool = True,
    counts: bool = True,
    running: str = "",
    facts: ContextFacts | None = None,
) -> ContextBlock:
    """Return the context block for some scopes, in order of precedence, of at most `max_tokens` tokens (default 2,000, in the
    layout `turn` 500) as counted by `count`. The layouts `index` and `full` contain every fact that fits, whole, restrictions
    first. `exclude`: marks of texts not to show again. `by_meaning`: whether to ask the model. `counts`: whether to count a use of
    each memory whose text is in the block. `running`: the current session, whose messages the model has already. `facts`: the
    result of `facts_for`, if the caller has it. Raises UsageError."""
    if layout not in LAYOUTS:
        raise UsageError(f"unknown layout {layout!r}", hint=f"It is one of {', '.join(LAYOUTS)}.")
    if layout in ("turn", "ranked") and query is None:
        raise UsageError(f"the layout {layout} requires a query")
    if max_tokens is None:
        max_tokens = usual_tokens(layout)
    if not LEAST_TOKENS <= max_tokens <= MOST_TOKENS:
        raise UsageError(f"max_tokens must be {LEAST_TOKENS}-{MOST_TOKENS:,} (got {max_tokens})")
    matches, repeated = _matches(parts, query, layout, exclude, by_meaning, running)
    fact_lines = facts_for(parts, layout) if facts is None else facts
    room = max_tokens * TOKEN_BYTES

    def block_within(room: int) -> ContextBlock:
        with parts[0].replica.reading():
            return _block_of(parts, matches, fact_lines, room, layout, exclude)

    block = block_within(room)
    # The caller's counter may return fewer or more tokens than estimated: grow the block once, then shrink it until it fits.
    counted = counted_tokens(count, block.text)
    if count is not tokens_of and 0 < counted < max_tokens:
        room = min(room * max_tokens // counted, room * _MAX_GROWTH)
        block = block_within(room)
        counted = counted_tokens(count, block.text)
    while counted > max_tokens:
        room = min(room * 9 // 10, room * max_tokens // counted)
        block = block_within(room)
        counted = counted_tokens(count, block.text)
    if counts:
        count_shown(parts[0], block)
    return msgspec.structs.replace(block, tokens=counted, repeated=block.repeated + repeated)


def tokens_of_facts(facts: ContextFacts) -> int:
    """Estimate the tokens that all these facts need in a block."""
    return -(-facts.bytes // TOKEN_BYTES)


def facts_for(parts: Sequence[MemoryStore], layout: Layout) -> ContextFacts:
    """Return the facts for a block of this layout, whatever its size."""
    if layout not in ("index", "full"):
        return ContextFacts()
    with parts[0].replica.reading():
        return facts_of_scopes(parts)


def count_shown(part: MemoryStore, block: ContextBlock) -> None:
    """Count a use of the memories with their texts in a block."""
    if block.shown and part.uses is not None:
        part.uses().count((scope, key) for scope, _, key in (one.rpartition("/") for one in block.shown))


def counted_tokens(count: Callable[[str], int], text: str) -> int:
    """Return the caller's token count of a text; 0 for an empty one."""
    if not text:
        return 0
    counted: object = count(text)
    if isinstance(counted, bool) or not isinstance(counted, int | float) or not 0 <= counted < math.inf:
        raise UsageError(
            f"the token counter returned {counted!r:.60} for a text",
            hint="count is given a text and returns how many tokens it has: a number that is 0 or more.",
        )
    return math.ceil(counted)


def _matches(
    parts: Sequence[MemoryStore],
    query: str | None,
    layout: Layout,
    exclude: frozenset[str],
    by_meaning: bool,
    running: str,
) -> tuple[Sequence[Match | Said], int]:
    """Return the matching own memories, messages and events, best first, and how many were left out because this session was shown
    them before."""
    if query is None or not query.strip():
        return (), 0
    from ipfsmem.memories.query_words import MAX_HITS, prompt_query  # needed for a query only

    query = prompt_query(query)
    if not query:
        return (), 0
    from ipfsmem.memories.recall import Question, search
    from ipfsmem.memories.search_index import has_moments, is_ready

    turn = layout == "turn"
    most = _MAX_TURN_MATCHES if turn else _MAX_MATCHES
    strict = turn and not by_meaning
    more = _MAX_MATCHES if exclude else 0
    talks = has_moments(parts) and (not strict or is_ready(parts, "all", _MAX_INDEXED_BYTES))
    answer = None
    if talks:
        most_hits = min(
            MAX_HITS,
            (_TURN_CANDIDATES if turn else _MAX_MATCHES + _MAX_MESSAGES + more)
            + (_MAX_MESSAGES if running else 0),
        )
        question = Question(query, kind="all", limit=most_hits, explain=turn, by_meaning=by_meaning)
        answer = search(parts, question)
    if answer is not None and (strict or answer.by_meaning or not answer.source.held):
        hits = answer.memories  # a second index would exceed the time limit of a hook
    else:  # memories have vectors earlier than messages and events
        question = Question(query, limit=most + more, explain=turn, by_meaning=by_meaning)
        hits = search(parts, question).memories
    with parts[0].replica.reading():
        return _not_shown(parts, query, answer, hits, layout, exclude, strict=strict, running=running)


def _not_shown(
    parts: Sequence[MemoryStore],
    query: str,
    answer: Matches | None,
    hits: Sequence[Match],
    layout: Layout,
    exclude: frozenset[str],
    *,
    strict: bool,
    running: str,
) -> tuple[Sequence[Match | Said], int]:
    """Select the person's own memories in `hits` and own messages and events in `answer`; returns them, and how many were left out
    because this session was shown them before. Without `exclude`, no text is read."""
    most, most_said = (
        (_MAX_TURN_MATCHES, _MAX_TURN_MESSAGES) if layout == "turn" else (_MAX_MATCHES, _MAX_MESSAGES)
    )
    is_relevant = _relevance(query) if strict else None
    own = (hit for hit in hits if hit.own and (is_relevant is None or is_relevant(hit.hit)))
    some = list(own if exclude else islice(own, most))
    new = [hit for hit in some if not exclude or _mark(parts, hit) not in exclude]
    repeated = len(some) - len(new)
    if answer is None:
        return new[:most], repeated
    from ipfsmem.memories.context_talk import Said, Sought

    sought, questions = Sought.of(query), _questions(answer.moments) if strict else {}
    sayings = (
        (match, Said(match, parts, answer.source.least_lines, sought))
        for match in answer.moments
        if match.own
        and match.moment is not None
        and not (running and match.moment.session == running)
        and (
            is_relevant is None
            or any(one and is_relevant(one.moment_hit) for one in (match, questions.get(match.id)))
        )
    )
    those = list(sayings if exclude else islice(sayings, most_said))
    unseen = [one for one in those if not exclude or one[1].mark not in exclude]
    # In the layout `full`, events shown before are counted with the latest events.
    counted = [
        match
        for match, one in (those if exclude else ())
        if one.mark in exclude
        and not (layout == "full" and match.moment is not None and match.moment.kind == "event")
    ]
    return _merged(new[:most], answer.memories, unseen[:most_said]), repeated + len(counted)


class Readiness(NamedTuple):
    """Whether recall is fast enough before a prompt: for memories (`something`), and for messages and events too (`everything`)."""

    something: bool
    everything: bool


def readiness(parts: Sequence[MemoryStore]) -> Readiness:
    """Return what can be searched before a prompt now; `make_ready` makes the missing index."""
    from ipfsmem.memories.search_index import has_moments, is_at_hand, is_ready

    if parts[0].replica.read_only:
        return Readiness(something=True, everything=True)  # a read-only vault cannot store an index
    if is_at_hand(parts, "all") and is_ready(parts, "all", _MAX_INDEXED_BYTES):
        return Readiness(something=True, everything=True)
    if is_at_hand(parts, "memory") and is_ready(parts, "memory", _MAX_INDEXED_BYTES):
        return Readiness(something=True, everything=not has_moments(parts))
    small = is_ready(parts, "all", _MAX_INDEXED_BYTES)
    return Readiness(something=small, everything=small)


def make_ready(parts: Sequence[MemoryStore]) -> None:
    """Make and store the index for prompts if the vault is too large to index within a hook. Raises StorageError."""
    from ipfsmem.memories.search_index import has_moments, is_ready, make_index

    kind: Kind = "all" if has_moments(parts) else "memory"
    if not is_ready(parts, kind, _MAX_INDEXED_BYTES // _SAFETY_FACTOR):
        make_index(parts, kind)


def _merged(
    hits: Sequence[Match], all_hits: Sequence[Match], sayings: Sequence[tuple[Match, Said]]
) -> list[Match | Said]:
    """Merge memories with messages and events, best first. `all_hits`: the memories found by the search over all kinds. Scores of
    two searches are not comparable, so a memory is placed by its rank in that search, with at most `_MESSAGES_BETWEEN` messages and
    events since the memory before it."""
    _link_answers(one for _, one in sayings)
    places = {hit.id: hit.place for hit in all_hits}
    order: list[tuple[int, int, Match | Said]] = [(at, 1, one) for at, (_, one) in enumerate(sayings)]
    for at, hit in enumerate(hits):
        place = places.get(hit.id)
        better = len(sayings) if place is None else sum(match.place < place for match, _ in sayings)
        order.append((min(_MESSAGES_BETWEEN * at, better), 0, hit))
    order.sort(key=itemgetter(0, 1))
    return [one for _, _, one in order]


def _link_answers(sayings: Iterable[Said]) -> None:
    """Link each found message of an agent to the last found message of the user before it in the session, which it answers."""
    question: Said | None = None
    for one in sorted((one for one in sayings if one.moment.kind == "message"), key=attrgetter("place")):
        if one.moment.type == "user":
            question = one
        elif question is not None and question.moment.group == one.moment.group:
            one.asked = question.match


def _questions(matches: Iterable[Match]) -> dict[str, Match]:
    """Return, by the id of each own reply in `matches`, the message of the user before it."""
    from ipfsmem.memories.event_entries import place_of

    own = [(one.moment, one) for one in matches if one.own]
    talk = [(moment, one) for moment, one in own if moment is not None and moment.kind == "message"]
    talk.sort(key=lambda one: (one[0].group, place_of(one[1].id)))
    return {
        reply.id: question
        for (first, question), (replied, reply) in pairwise(talk)
        if first.group == replied.group
        and ("answer" in reply.ranked.parts or first.type == "user" != replied.type)
    }


def _relevance(query: str) -> Callable[[Hit | MomentHit | None], bool]:
    """Return a filter for the hits of a hook's prompt, which is not written as a query. A hit is relevant if its header contains
    one word of the prompt, or its text and day contain two; one suffices if the prompt has at most two words, and for an
    identifier."""
    from ipfsmem.recall.function_words import prompt_weight, word_weights

    weight, least = word_weights(query), max(1, min(2, prompt_weight(query) - 1))

    def is_relevant(hit: Hit | MomentHit | None) -> bool:
        if hit is None:
            return False
        has = sum(map(weight, hit.words)) + ("date" in hit.parts)
        return has >= least or hit.parts.get("header", 0.0) > 0

    return is_relevant


def _mark(parts: Sequence[MemoryStore], match: Match) -> str:
    hit = match.hit
    if hit is None:
        return ""
    return mark_of(parts[0].replica, "text", hit.reading.scope, hit.reading.key, hit.reading.seen)


def _block_of(
    parts: Sequence[MemoryStore],
    hits: Sequence[Match | Said],
    facts: ContextFacts,
    most: int,
    layout: Layout,
    exclude: frozenset[str],
) -> ContextBlock:
    """Return the block in at most `most` bytes."""
    replica = parts[0].replica
    marks: list[str] = []
    repeated = 0
    room = most - len(NOTICE.encode()) - 2
    texts: list[str] = []
    shown: list[str] = []
    skipped: list[str] = []
    fact_block = facts.shown(room - min(_RESERVED_BYTES, room // 4))
    if fact_block.text:
        mark = mark_of(replica, "index", fact_block.text)
        if mark in exclude:
            repeated += 1
        else:
            texts.append(fact_block.text)
            marks.append(mark)
            room -= len(fact_block.text.encode()) + 1
    talk: Talk | None = None
    if hits:
        from ipfsmem.memories.recall import Match

        writers = Writers(parts[0].replica)
        spare = len(_omitted_line((), _MAX_MATCHES, 0).encode()) + 1
        only_matches = layout in ("turn", "ranked")
        share = (room if only_matches else room * 3 // 4) - spare
        says = [one for one in hits if not isinstance(one, Match)]
        if says:
            from ipfsmem.memories.context_talk import Talk

            talk = Talk(fact_block.text)
        first: set[int] = set()
        ahead = share // 4
        for saying in [] if layout == "turn" else says[:_LEADING_MESSAGES]:
            cost = talk.add(line, ahead) if talk and (line := saying.line(ahead)) is not None else 0
            if cost:
                first.add(id(saying))
                ahead, share, room = ahead - cost, share - cost, room - cost
        for one in hits:
            if not isinstance(one, Match):
                if talk and id(one) not in first and (line := one.line(share)) is not None:
                    cost = talk.add(line, share)
                    share, room = share - cost, room - cost
                continue
            hit = one.hit
            if hit is None:
                continue
            place = f"{hit.reading.scope}/{hit.reading.key}".removeprefix("/")
            fenced = _fenced(hit, writers, share)
            if fenced is None:
                skipped.append(place)
                continue
            freed = (talk.without(fenced) if talk else 0) - len(fenced.encode()) - 1
            share, room = share + freed, room + freed
            texts.append(fenced)
            shown.append(place)
            marks.append(_mark(parts, one))
        if talk and talk.lines:
            texts.append(talk.text())
            marks += [line.mark for line in talk.lines]
        if skipped and room >= spare:
            note = _omitted_line(skipped, len(skipped), room if only_matches else room // 4)
            texts.append(note)
            room -= len(note.encode()) + 1
    listed = left_out = noted = 0
    if layout in ("index", "full"):
        index, listed, left_out = _index(parts, room if layout == "index" else room * 3 // 4, facts.places)
        mark = mark_of(replica, "index", index)
        if mark in exclude:
            index, listed, left_out, repeated = "", 0, 0, repeated + 1
        if index:
            texts.append(index)
            marks.append(mark)
            room -= len(index.encode()) + 1
    if layout == "full":
        there = frozenset(line.mark for line in talk.lines) if talk is not None else frozenset()
        events, noted_marks, before = _events(parts, room, exclude, there)
        texts += [events] if events else []
        noted, repeated = len(noted_marks), repeated + before
        marks += noted_marks
    text = f"{NOTICE}\n\n" + "\n".join(texts) if texts else ""
    return ContextBlock(
        text=text,
        tokens=0,
        shown=tuple(shown),
        skipped=tuple(skipped),
        listed=listed + fact_block.shown,
        left_out=left_out + fact_block.left_out,
        events=noted,
        repeated=repeated,
        marks=tuple(marks),
        said=len(talk.lines) if talk is not None else 0,
    )


def _omitted_line(places: Sequence[str], number: int, room: int) -> str:
    """Return the line about matches that do not fit, with as many of their keys as fit into `room` bytes."""
    begin = f"({count(number, 'more match', 'more matches')} had no room here"
    names = ""
    for place in places[:_MAX_KEYS]:
        longer = f"{names}, {place}" if names else f": {place}"
        if len(f"{begin}{longer} and others.)\n".encode()) + 1 > room:
            break
        names = longer
    others = " and others" if names and names.count(",") + 1 < number else ""
    return f"{begin}{names}{others}.)\n"


def _events(
    parts: Sequence[MemoryStore], room: int, exclude: frozenset[str], there: frozenset[str]
) -> tuple[str, list[str], int]:
    """Return the latest events of this person's devices, oldest first, in at most `room` bytes; their marks; and how many were left
    out because this session was shown them before. `listed`: matching events already in the block. Imported events are left out."""
    from ipfsmem.bundle.program_events import is_for_programs  # not before a prompt, which lists no events
    from ipfsmem.bundle.timeline import event_line, split_own_id, union_of_scopes
    from ipfsmem.device.events import events_of

    first = parts[0]
    with first.replica.reading():
        segments = first.replica.store.segments_of([part.scope for part in parts if not part.forgotten()])
        own = [
            events_of(
                first.replica.store,
                sorted(
                    (one for one in entries if first.replica.is_mine(one[0].dev)), key=lambda one: one[0].day
                )[-_EVENTS:],
            )
            for entries in segments.values()
        ]
    lines: list[str] = []
    room -= len(tagged("memory-timeline", {}, "x").encode())
    noted = [
        event
        for event in union_of_scopes(*own)
        if split_own_id(event["id"]) is not None and not is_for_programs(event)
    ]
    marks: list[str] = []
    before = 0
    for event in reversed(noted[-_EVENTS:]):
        data = event_line(event)
        mark = mark_of(first.replica, "event", data.decode())
        if mark in exclude:
            before += 1
            continue
        if mark in there:
            continue
        line = data[:_EVENT_BYTES].decode("utf-8", "ignore") + (
            " (cut here)" if len(data) > _EVENT_BYTES else ""
        )
        cost = len((QUOTE + line).encode()) + 1
        if cost <= room:
            room -= cost
            lines.insert(0, line)
            marks.append(mark)
    return (tagged("memory-timeline", {}, "\n".join(lines)) if lines else "", marks, before)


def _fenced(hit: Hit, writers: Writers, room: int) -> str | None:
    """Return one match in its fence, cut with a note if it is long; None if it does not fit."""
    file = hit.reading.readable
    data = file.body.encode()
    most = min(_MAX_TEXT_BYTES, room)
    if len(data) > most:
        if most < _MIN_TEXT_BYTES:
            return None
        cut = data[: most - 600].decode("utf-8", "ignore")
        file = MemoryFile(file.fields, f"{cut}\n(cut here: {len(data):,} bytes in all)")
    fenced = fence_memory(writers.quoted(hit.reading, file=file))
    return fenced if len(fenced.encode()) + 1 <= room else None


def _index(
    parts: Sequence[MemoryStore], room: int, exclude: frozenset[tuple[str, str]]
) -> tuple[str, int, int]:
    """Return the index of some scopes in at most `room` bytes, and the numbers of memories listed and left out. `exclude`: (scope,
    key) of memories already in the block.

    The index has at most 200 lines and 25 KB. Memories of the lowest priority are left out first; a line that does not fit is
    skipped for a shorter one.
    """
    room, rows, passed = min(room, MAX_BYTES) - len(_left_out(10**9).encode()), MAX_LINES, 0
    chosen: dict[str, list[tuple[str, str, str]]] = {}
    listed = total = 0
    with parts[0].replica.reading():
        total, ranked = _by_worth(parts, exclude)
        for part, key, section, line in ranked:
            there = chosen.get(part.scope)
            cost, added = len((QUOTE + line).encode()), 1
            if there is None:
                added += 2
                cost += len(tagged("memory-index", {"scope": part.scope}, "").encode()) + 1
            if there is None or all(section != one[0] for one in there):
                added += 1
                cost += len(f"{QUOTE}## {section}\n")
            if cost > room or added >= rows:
                passed += 1
                if passed >= _PASSED or room < _LEAST_LINE or rows < 2:
                    break
                continue
            room, rows = room - cost, rows - added
            listed += 1
            chosen.setdefault(part.scope, []).append((section, key, line))
    order = {title: number for number, (_, title) in enumerate(SECTIONS)}
    blocks = []
    for part in parts:
        lines = sorted(chosen.get(part.scope, ()), key=lambda one: (order[one[0]], one[1]))
        text, before = "", ""
        for section, _, line in lines:
            text += line if section == before else f"## {section}\n{line}"
            before = section
        if text:
            blocks.append(tagged("memory-index", {"scope": part.scope}, text))
    if listed < total and room >= 0:
        blocks.append(_left_out(total - listed))
    return "\n".join(blocks), listed, total - listed


#: A memory in the index: the memories of its scope, its key, section and line.
_Listed = tuple["MemoryStore", str, str, str]


def _by_worth(
    parts: Sequence[MemoryStore], exclude: frozenset[tuple[str, str]]
) -> tuple[int, Iterable[_Listed]]:
    """Return the number of own memories of some scopes, and an iterator over them with section and line: scopes in order, highest
    priority first, ties by last write. `exclude`: (scope, key) of memories to leave out.

    Parts of sessions are left out. With an index of recall no text is opened. Without one, texts are opened with the same result,
    except that of more than `_MAX_UNINDEXED` memories only those written last are ranked, and the others follow.
    """
    from ipfsmem.bundle.index_block import INDEX_KEY
    from ipfsmem.memories.search_index import index_at_hand  # needed only if a line is shown

    replica = parts[0].replica
    hidden = hidden_texts(replica)
    today = replica.environment.today()
    used: Mapping[tuple[str, str], Use] = {} if parts[0].uses is None else parts[0].uses().before_today()
    fading = parts[0].fading  # read once: it reads the settings file

    places: dict[PriorityFactors, float] = {}  # most memories were never used, and many have the same factors

    def place(factors: PriorityFactors, scope: str, key: str) -> float:
        use = used.get((scope, key))
        if use is not None:
            return factors.place(today, used=use.day, uses=use.times, fading=fading)
        priority = places.get(factors)
        if priority is None:
            priority = places[factors] = factors.place(today, fading=fading)
        return priority

    index = index_at_hand(parts)
    if index is not None:
        by_scope = {part.scope: part for part in parts}
        entries = index.held

        def in_groups() -> list[tuple[float, list[str]]]:
            """Yield keys grouped by rank, best first. Only entries with a rank of their own are decoded."""
            groups, moved = index.standing()
            apart = moved | {key for of in (used, exclude, hidden) for _, key in of}
            ranked = [
                (-factors.place(today, fading=fading), [key for key in keys if key not in apart])
                for factors, keys in groups
                if not factors.expired(today)
            ]
            ranked += [
                (-place(one.factors, one.scope, key), [key])
                for key in apart
                if (one := entries.get(key)) is not None
                and one.own
                and one.section
                and (one.scope, key) not in exclude
                and not one.factors.expired(today)
                and not is_hidden(hidden, one.scope, key, one.hlc)
            ]
            return sorted(ranked, key=itemgetter(0))

        def in_order() -> Iterator[_Listed]:
            for _, some in groupby(order, key=itemgetter(0)):
                groups = [keys for _, keys in some]
                for key in groups[0] if len(groups) == 1 else in_one(groups):
                    one = entries[key]
                    yield by_scope[one.scope], key, one.section, one.line

        def in_one(groups: Iterable[list[str]]) -> list[str]:
            """Merge groups of the same rank: last written first."""
            keys = sorted(chain.from_iterable(groups))
            return sorted(
                keys, key=lambda key: entries[key].hlc, reverse=True
            )  # all clocks have the same length

        order = index.made_of("by worth", (today, hidden, used, fading, exclude), in_groups)
        return sum(len(keys) for _, keys in order), in_order()
    keys_met: set[str] = set()
    sections: list[tuple[int, str, MemoryStore, Entry]] = []
    there = replica.store.memories_of([part.scope for part in parts])
    here = {
        key
        for part in parts
        if not part.forgotten()
        for key, entry in there.get(part.scope, ())
        if any(value.body is not None for value in entry.values())
    }
    for part in parts:
        mine: set[str] = set()
        for key, entry in there.get(part.scope, ()) if not part.forgotten() else ():
            written = _own_since(part, key, entry)
            if not written or key in keys_met:
                continue
            mine.add(key)
            if (part.scope, key) in exclude or is_hidden(hidden, part.scope, key, written):
                continue
            if key == INDEX_KEY and _lists_alone(part, here):
                continue
            sections.append((-int(written, 16), key, part, entry))
        keys_met |= mine
    sections.sort(key=itemgetter(0, 1))
    first, rest = sections[:_MAX_UNINDEXED], sections[_MAX_UNINDEXED:]
    lines = [
        (-place(line.factors, part.scope, key), key, part, line)
        for _, key, part, entry in first
        if (line := _line(part, key, entry, today)) is not None
    ]
    lines.sort(key=itemgetter(0))

    def listed() -> Iterator[_Listed]:
        for _, key, part, line in lines:
            yield part, key, line.section, line.text
        for _, key, part, entry in rest:
            if (later := _line(part, key, entry, today)) is not None:
                yield part, key, later.section, later.text

    return len(lines) + len(rest), listed()


def _lists_alone(part: MemoryStore, here: Container[str]) -> bool:
    """Return whether a MEMORY.md contains nothing except its list of memories."""
    from ipfsmem.bundle.index_block import INDEX_KEY, typed_text
    from ipfsmem.memories.memory_records import readable_file

    data = part.view(INDEX_KEY).data
    return data is not None and not typed_text(readable_file(data).body, here.__contains__)


def _own_since(part: MemoryStore, key: str, entry: Entry) -> str:
    """Return the clock of the shown own text; "" if none is shown."""
    if len(entry) == 1:
        ((dot, value),) = entry.items()
        return value.h if value.body is not None and part.is_own(dot, value.author) else ""
    view = part.view(key, part.entry(key, entry))
    return part.entry(key, entry)[view.dot].h if view.own and view.dot is not None else ""


def _line(part: MemoryStore, key: str, entry: Entry, today: date) -> IndexLine | None:
    """Return the section and line of a memory; None if it is not listed, not on this device, or expired."""
    line: IndexLine | None = None
    if len(entry) == 1:
        (value,) = entry.values()
        line = part.overview.line(part.name(key), value)
    else:
        entry = part.entry(key, entry)
        view = part.view(key, entry)
        if view.data is not None and view.dot is not None:
            line = line_of(key, head_of(view.data), entry[view.dot])
    return line if line is not None and line.section and not line.factors.expired(today) else None


def _left_out(number: int) -> str:
    return (
        f"({count(number, 'more memory', 'more memories')} not listed here: look for them by their words.)\n"
    )
