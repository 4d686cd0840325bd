"""Reads the events and messages that recall searches in addition to memories, grouped by day and by session.

The entries of a group are ranked with their neighbours; after a change the whole group is read again. Imported events are treated
like texts of others, and so are imported messages until a person approves them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Container, Generator, Iterable, Iterator, Mapping, Sequence
from datetime import date
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

from ipfsmem.bundle import timeline
from ipfsmem.bundle.program_events import is_for_programs
from ipfsmem.bundle.session_parts import HISTORY, NUMBERED
from ipfsmem.bundle.timeline import event_line, parse_line, split_own_id, union, union_of_scopes
from ipfsmem.causal.entries import SegmentName, memory_name, segment_name
from ipfsmem.causal.value import Entry, decode_entry
from ipfsmem.device.events import events_of, lines_with, missing_of
from ipfsmem.errors import FormatError
from ipfsmem.memories.event_entries import Group, Moment, place_of
from ipfsmem.memories.memory_reader import NotHereError
from ipfsmem.memories.part_lines import entries_of_parts
from ipfsmem.memories.parts_read import PartsRead, SessionPart
from ipfsmem.memories.session_reader import ItemsAt, SessionReader
from ipfsmem.recall.passages import PACKED, passages
from ipfsmem.sessions.compaction import Place, told
from ipfsmem.sessions.compaction import PlacedItem as Item
from ipfsmem.sessions.messages import Message, read_message
from ipfsmem.wording import local_day

if TYPE_CHECKING:  # not needed for lists
    from ipfsmem.memories.memories import MemoryStore
    from ipfsmem.recall.ranking import Document

#: Maximum characters of an event or a message that are indexed.
_LONGEST = 20_000
#: A numeric time is in milliseconds from the first value on, in seconds below it; the end of the calendar in milliseconds.
_MILLISECONDS, _YEAR_9999_MS = 100_000_000_000, 253_370_764_800_000
#: Fields of a message with its time.
_TIMES = ("ts", "timestamp", "created_at")
#: The speaker at the beginning of a text: one or two names.
_speaker = re.compile(r"([^\W\d_][\w.'-]{0,40}(?: [^\W\d_][\w.'-]{0,40})?): +(?=\S)").match
#: Prefix of the key of every part.
_PART_KEY = "session-"
_part = re.compile(f"{_PART_KEY}(.+)-{NUMBERED}").fullmatch


class EventSource(NamedTuple):
    """An event or message with its words, whose hash is part of the id."""

    id: str
    moment: Moment
    text: str
    #: The event, if it is one.
    event: Mapping[str, Any] | None = None
    #: The speaker of a message; of an event with a text, its type and all its other fields.
    header: str = ""

    @property
    def words(self) -> str:
        """All words by which it is found."""
        return f"{self.header} {self.text}" if self.header else self.text


def group_of(name: str, segment: SegmentName | None) -> Group | None:
    """Return the group of an entry of the state; None if the entry is neither a segment of a timeline nor a part of a session."""
    if segment is not None:
        return Group("event", "", segment.day)
    place = memory_name(name)
    match = _part(place.key) if place is not None else None
    return Group("message", place.scope, match[1]) if place is not None and match is not None else None


def read_groups(
    parts: Sequence[MemoryStore], groups: Iterable[Group]
) -> Iterator[tuple[Group, list[EventSource], int]]:
    """Yield the content of each of these groups, in order, and how many of its segments or parts are missing on this device
    (inside `reading`)."""
    days = {group.name for group in groups if group.kind == "event"}
    if days:
        yield from _days(parts, days)
    by_scope = {part.scope: SessionReader(part) for part in parts if not part.forgotten()}
    keys: dict[tuple[str, str], list[str]] | None = None
    for group in groups:
        if group.kind == "message":
            if keys is None:
                keys = _keys(parts, by_scope)
            part_keys = keys.get((group.scope, group.name), [])
            yield group, *_session(by_scope.get(group.scope), group, part_keys)


def _days(parts: Sequence[MemoryStore], days: set[str]) -> Iterator[tuple[Group, list[EventSource], int]]:
    replica = parts[0].replica
    live = [part.scope for part in parts if not part.forgotten()]
    segments_of: dict[str, dict[str, list[tuple[SegmentName, Entry]]]] = {}
    for scope, segments in replica.store.segments_of(live).items():
        for segment, entry in segments:
            if segment.day in days:
                segments_of.setdefault(segment.day, {}).setdefault(scope, []).append((segment, entry))
    for day in sorted(days):
        there, sources, missing = segments_of.get(day, {}), dict[bytes, str](), 0
        event_lists = []
        for scope in live:
            segments_there = there.get(scope, [])
            missing += missing_of(replica.store, segments_there) if segments_there else 0
            event_lists.append(events_of(replica.store, segments_there))
            for event in event_lists[-1]:
                sources.setdefault(event_line(event), scope)
        told_ = []
        for event in union_of_scopes(*event_lists):
            if is_for_programs(event):
                continue
            line = event_line(event)
            told_.append(_event(replica.is_mine, day, sources[line], event, line))
        yield Group("event", "", day), told_, missing


class Reader:
    """Reads events and messages by id (inside `reading`).

    An event is found by the hash of its line, so that only the requested lines of a day are parsed; a message, in the parts of its
    session that its time and device indicate. If an entry is not found in this way, its whole day or session is read.
    """

    def __init__(
        self,
        parts: Sequence[MemoryStore],
        names: Callable[[Group], Iterable[str]] | None = None,
        kept: PartsRead | None = None,
    ) -> None:
        """`names`: returns the names of the segments or parts of a group, if the caller has them. `kept`: the cache of parts to use
        and extend."""
        self._parts = parts
        self._names = names
        self._kept = PartsRead() if kept is None else kept
        self._memories = {part.scope: part for part in parts if not part.forgotten()}
        self._sessions = {scope: SessionReader(part) for scope, part in self._memories.items()}
        self._opened: dict[tuple[Group, str], ItemsAt] = {}

    def read(self, moments: Mapping[str, Moment]) -> dict[str, EventSource]:
        """Return the words of these moments, by id; those no longer on this device are left out."""
        sources = dict(self._lines({id: one for id, one in moments.items() if one.kind == "event"}))
        sources.update(self._said({id: one for id, one in moments.items() if one.kind == "message"}))
        groups = sorted({one.group for id, one in moments.items() if id not in sources})
        for _, there, _ in read_groups(self._parts, groups):
            sources.update((one.id, one) for one in there if one.id in moments)
        return sources

    def _lines(self, moments: Mapping[str, Moment]) -> Iterator[tuple[str, EventSource]]:
        """Yield the events among these whose lines are unchanged, by id."""
        if not moments:
            return
        first, hashes = self._parts[0].replica, {_hash_in(id) for id in moments}
        for segment, entry in self._segments({one.group for one in moments.values()}):
            for line in lines_with(first.store, segment, entry, hashes, _hash_of):
                one = _event(first.is_mine, segment.day, segment.scope, parse_line(line), line)
                if one.id in moments:
                    yield one.id, one

    def _segments(self, days: set[Group]) -> Iterator[tuple[SegmentName, Entry]]:
        store = self._parts[0].replica.store
        if self._names is None:
            there = {day.name for day in days}
            for segments in store.segments_of(list(self._memories)).values():
                yield from (one for one in segments if one[0].day in there)
            return
        for day in sorted(days):
            for name in sorted(self._names(day)):
                segment = segment_name(name)
                if segment is not None and segment.scope in self._memories:
                    yield segment, store.entry(name)

    def _said(self, moments: Mapping[str, Moment]) -> Iterator[tuple[str, EventSource]]:
        """Yield the messages among these at their expected places, by id."""
        if not moments:
            return
        ids_of: dict[tuple[Group, str], list[str]] = {}
        for id, one in moments.items():
            ids_of.setdefault((one.group, one.session), []).append(id)
        self._open(ids_of)
        for (group, session), ids in sorted(ids_of.items()):
            if group.scope not in self._sessions:
                continue
            entries = self._opened[group, session].entries(set(map(place_of, ids)))
            messages = {one.id: one for one in _messages(group, session, entries)}
            if messages.keys() >= set(ids):  # otherwise the whole session is read, in order
                # The marks that make a message pending may be in parts that were not read, so the index records which messages are
                # own.
                yield from (
                    (id, one._replace(moment=moments[id])) for id, one in messages.items() if id in moments
                )

    def _open(self, sessions: Collection[tuple[Group, str]]) -> None:
        new = [one for one in sessions if one not in self._opened and one[0].scope in self._sessions]
        if not new:
            return
        names = {(group.scope, group.name) for group, _ in new}
        keys = _keys(self._parts, self._sessions, names) if self._names is None else {}
        for group, session in new:
            if self._names is None:
                part_keys = keys.get((group.scope, group.name), [])
            else:
                part_keys = [
                    place.key for name in self._names(group) if (place := memory_name(name)) is not None
                ]
            self._opened[group, session] = ItemsAt(
                self._sessions[group.scope], session, part_keys, self._kept
            )


def read_again(parts: Sequence[MemoryStore], moments: Mapping[str, Moment]) -> dict[str, EventSource]:
    """Return the words of these moments, by id, as `Reader.read` does (inside `reading`)."""
    return Reader(parts).read(moments)


def read_by_pieces(
    part: MemoryStore, group: Group, names: Iterable[str]
) -> Generator[None, None, Callable[[], list[EventSource]] | None]:
    """Read a day or a session in one scope, one segment or part (by name) in each step (inside `reading`, which may end between
    steps). Returns a function that combines them in order without reading; None if one is not on this device."""
    here, store = True, part.replica.store
    if group.kind == "event":
        event_lists, mine = list[list[dict[str, Any]]](), dict[str, bool]()
        for segment in filter(None, map(segment_name, sorted(names))):
            text = store.raw(segment.entry)
            segments = [] if text is None else [(segment, decode_entry(segment.entry, text))]
            event_lists.append(events_of(store, segments))
            here = here and not missing_of(store, segments)
            mine[segment.dev] = part.replica.is_mine(segment.dev)
            yield

        def day() -> list[EventSource]:
            told_, is_mine = [], lambda device: mine.get(device, False)
            for event in union_of_scopes(union(*event_lists)):
                if not is_for_programs(event):
                    told_.append(_event(is_mine, group.name, group.scope, event, event_line(event)))
            return told_

        return day if here else None
    sessions, parts = SessionReader(part), dict[str, list[SessionPart]]()
    for place in filter(None, map(memory_name, sorted(names))):
        try:
            read = sessions.part(place.key)
            if read is not None and not read[0].startswith(HISTORY):
                parts.setdefault(read[0], []).append(read[1])
        except NotHereError:
            here = False
        yield

    def session() -> list[EventSource]:
        return [
            one for name, those in parts.items() for one in _messages(group, name, entries_of_parts(those))
        ]

    return session if here else None


def read_together(source: EventSource, before: EventSource | None) -> str:
    """Return the text to embed for an event or a message: its first passage, with the message before it if both are short."""
    text = _said(source)
    earlier = "" if before is None else _said(before)
    if earlier and len(earlier) + len(text) <= PACKED:
        return f"{earlier}\n{text}"
    return passages(text)[0]


def _said(source: EventSource) -> str:
    name = source.event.get("speaker") if source.event is not None else None
    return f"{name}: {source.text}" if isinstance(name, str) and name else source.text


def _hash_of(line: bytes) -> str:
    return blake2b(line, digest_size=8).hexdigest()


def _hash_in(id: str) -> str:
    return id.rpartition(" ")[2]


def _event(is_mine: Any, day: str, scope: str, event: Mapping[str, Any], line: bytes) -> EventSource:
    writer = split_own_id(event["id"])
    own = writer is not None and is_mine(writer[0])
    device, at = writer[0] if writer is not None else "", ms_of(event["ts"], day)
    moment = Moment("event", scope, own, device, at, event["type"], day)
    text = event.get("text")
    event_text = text if isinstance(text, str) else ""
    rest = {
        k: v for k, v in event.items() if k not in ("ts", "type", "id") and not (event_text and k == "text")
    }
    words = " ".join([event["type"], *_texts(rest)])[:_LONGEST]
    id = f"event {day} {at:015} {scope} {_hash_of(line)}"
    return (
        EventSource(id, moment, event_text[:_LONGEST], event, words)
        if event_text
        else EventSource(id, moment, words, event)
    )


def _texts(value: Any) -> Iterator[str]:
    """Yield the strings in a JSON value, in order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)


def _keys(
    parts: Sequence[MemoryStore], live: Mapping[str, object], names: Container[tuple[str, str]] | None = None
) -> dict[tuple[str, str], list[str]]:
    """Return the keys of parts by scope and session token, in one pass. `names`: only these entries."""
    keys_of: dict[tuple[str, str], list[str]] = {}
    for name in parts[0].replica.store.names():
        if _PART_KEY not in name:
            continue
        place = memory_name(name)
        if place is not None and place.scope in live and (match := _part(place.key)) is not None:
            if names is not None and (place.scope, match[1]) not in names:
                continue
            keys_of.setdefault((place.scope, match[1]), []).append(place.key)
    return keys_of


def _session(sessions: SessionReader | None, group: Group, keys: list[str]) -> tuple[list[EventSource], int]:
    if sessions is None:
        return [], 0
    names, unread = dict[str, None](), 0
    for key in keys:
        try:
            name = sessions.name_of(key)
        except NotHereError:
            unread += 1
            continue
        if name is not None and not name.startswith(HISTORY):
            names[name] = None
    sources, missing = list[EventSource](), 0
    for session in names:
        try:
            entries = sessions.entries(session, keys)
        except NotHereError:
            missing += 1
            continue
        sources += _messages(group, session, entries)
    return sources, missing or min(unread, 1)


def _messages(group: Group, session: str, entries: Sequence[Item]) -> Iterator[EventSource]:
    session_told = told(entries)
    for entry in session_told.messages:
        message = read_message(entry.item)
        if message.text and message.role != "system":
            time = next(filter(None, (_own_time(entry.item.get(name)) for name in _TIMES)), 0)
            own = entry.place not in session_told.pending
            yield _message(group, session, entry.place, message, time, own=own)


def _own_time(value: object) -> int:
    """Return the time stated in a message, in milliseconds since 1970 UTC; 0 if there is none or it cannot be read."""
    try:
        if isinstance(value, str):
            return timeline.ms_of(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < _YEAR_9999_MS:
            return int(value if value >= _MILLISECONDS else value * 1000)
    except (FormatError, ValueError, OverflowError):
        pass
    return 0


def _message(
    group: Group, session: str, place: Place, message: Message, own_time: int, *, own: bool
) -> EventSource:
    """Return a message. `own_time`: the time stated in it, 0 to use the time of its addition. A named speaker precedes the text."""
    at, device, number = place
    moment = Moment("message", group.scope, own, device, own_time or at, message.role, group.name, session)
    text, speaker = message.text, message.speaker
    if speaker and not text.startswith(f"{speaker}:"):
        text = f"{speaker}: {text}"
    hash = _hash_of(text.encode(errors="surrogatepass"))
    id = f"message {group.scope} {group.name} {at} {device} {number} {hash}"
    return EventSource(id, moment, text[:_LONGEST], header="" if _speaker(text) else speaker)


def document_of(source: EventSource) -> Document:
    """Return the document that is ranked."""
    from ipfsmem.recall.ranking import Document

    moment = source.moment
    name = f"{moment.kind} {moment.group.scope} {moment.group.name}"
    header, text = source.header, source.text
    if speaks := _speaker(text):
        header, text = f"{header} {speaks[1]}".lstrip(), text[speaks.end() :]
    return Document(source.id, text, header, group=name, at=day_of(moment.at))


def ms_of(ts: str, day: str) -> int:
    """Return the time of an event in milliseconds since 1970 UTC; the beginning of its day if `ts` cannot be read."""
    for text in (ts, f"{day}T00:00:00Z"):
        try:
            return timeline.ms_of(text)
        except FormatError:
            continue
    return 0


def day_of(ms: int) -> date | None:
    """Return the day of a time in this machine's time zone; None for a time beyond the calendar."""
    return local_day(ms)
