"""Append events to this device's segments of the timeline, and read the segments of all devices as one set of events.

See format section 1.4. Only the last segment of a day grows; a new segment starts when a line would exceed 8,188
bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ipfsmem.bundle.timeline import (
    day_of,
    event_line,
    foreign_id,
    lines_of,
    own_id,
    parse_line,
    parse_lines,
    segment_events,
    segment_lines,
    split_own_id,
    union,
)
from ipfsmem.causal.entries import SegmentName, segment_entry, segment_name
from ipfsmem.causal.value import Entry
from ipfsmem.device.replica import Replica
from ipfsmem.device.scopes import scope_forgotten
from ipfsmem.device.state import StateStore
from ipfsmem.device.tables import meta
from ipfsmem.device.writing import Writing, writing
from ipfsmem.errors import UsageError

#: Maximum bytes of a segment.
SEGMENT = 8188


def timestamp(ms: int) -> str:
    """Return milliseconds since 1970 UTC as the text of `ts`."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Timeline:
    """Reads and appends the events of one scope of a replica, by default the default scope.

    A device numbers its events across all scopes; the same id in two scopes is two events (format section 1.4).
    """

    def __init__(self, replica: Replica, scope: str = "") -> None:
        self.replica = replica
        self.scope = scope
        #: The number of the last known segment of a (device, day), where the search for the last one begins.
        self._open: dict[tuple[str, str], int] = {}

    def note(self, kind: str, data: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Append one event of this device, durable on return. Returns it with `ts`, `type` and `id`.

        Raises UsageError if `data` holds one of these names, LimitError beyond 64 KiB.
        """
        with writing(self.replica) as change:
            return self.note_in(change, kind, data)

    def note_in(self, change: Writing, kind: str, data: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Append an event as `note`, inside a transaction of the caller."""
        reserved = {"ts", "type", "id"} & (data or {}).keys()
        if reserved:
            raise UsageError(f"an event's {', '.join(sorted(reserved))} cannot be given as data")
        n = self._counted() + 1
        self.replica.db.set_meta(meta.EVENTS, str(n).encode())
        event = {
            "ts": timestamp(self.replica.environment.now()),
            "type": kind,
            "id": own_id(self.replica.device.id, n),
            **(data or {}),
        }
        self._append(change, [event])
        return event

    def _counted(self) -> int:
        stored = self.replica.db.get_meta(meta.EVENTS)
        if stored is not None:
            return int(stored)
        # The first event, or a lost row. A reused number would hide an event.
        mine = self.replica.device.id
        with self.replica.reading():
            names = [
                parsed for name in self.replica.store.names() if (parsed := segment_name(name)) is not None
            ]
        scopes = {parsed.scope for parsed in names if parsed.dev == mine}
        own = (
            split_own_id(str(event.get("id", "")))
            for scope in scopes
            for event in Timeline(self.replica, scope).events()
        )
        return max((claimed[1] for claimed in own if claimed is not None and claimed[0] == mine), default=0)

    def add_foreign(
        self,
        change: Writing,
        events: Sequence[Mapping[str, Any]],
        *,
        by_content: bool = False,
        fresh: bool = False,
    ) -> int:
        """Add missing events of other writers, with foreign ids. Returns the number of added events.

        An event with a known id but other content is added too, since a device that was restored from a snapshot
        reuses its numbers. `by_content`: skip an event whose content exists under any id. `fresh`: the scope has no
        event yet.
        """
        new: dict[str, dict[str, Any]] = {}
        here = [] if fresh or not events else self.events()
        events_by_id = {event["id"]: event for event in here}
        same = {foreign_id(event) for event in here} if by_content else set()
        for event in events:
            claimed = event.get("id")
            existing = events_by_id.get(claimed) if isinstance(claimed, str) else None
            if existing is not None and event_line(existing) == event_line(dict(event)):
                continue
            copied = {**event, "id": foreign_id(dict(event))}
            if copied["id"] not in events_by_id and copied["id"] not in same:
                new[copied["id"]] = copied
        self._append(change, union(list(new.values())))
        return len(new)

    def add_lines(self, change: Writing, events: Iterable[Mapping[str, Any]]) -> None:
        """Append events with their ids, for lines that are moved here from another id of this device."""
        self._append(change, events)

    def add_back(self, change: Writing, lines: Sequence[bytes]) -> int:
        """Append lines of an older state, unchanged, unless a segment of this scope has them. Returns how many."""
        here = {
            line
            for segment, entry in self.replica.store.segments(self.scope)
            for value in entry.values()
            for line in lines_of(self.replica.store.body(segment.entry, value) or b"")
        }
        new = [line for line in dict.fromkeys(lines) if line not in here]
        if new:
            self._append(change, parse_lines(b"\n".join(new) + b"\n"))
        return len(new)

    def _append(self, change: Writing, events: Iterable[Mapping[str, Any]]) -> None:
        by_day: dict[str, list[bytes]] = {}
        for event in events:
            by_day.setdefault(day_of(event["ts"]), []).append(event_line(dict(event)) + b"\n")
        for day, lines in by_day.items():
            i, text = self._last(change, day)
            for line in lines:
                if text and len(text) + len(line) > SEGMENT:
                    self._put(change, day, i, text)
                    i, text = self._free(change, day, i + 1), b""
                text += line
            self._put(change, day, i, text)
            self._open[self.replica.device.id, day] = i

    def _last(self, change: Writing, day: str) -> tuple[int, bytes]:
        """Return the number and content of the segment to append to."""
        device = self.replica.device.id
        i = self._open.get((device, day), 0)
        while i and not change.entry(segment_entry(day, device, i, self.scope)):
            # The transaction that wrote it failed, or it was trimmed since.
            i -= 1
        while change.entry(segment_entry(day, device, i + 1, self.scope)):
            i += 1
        name = segment_entry(day, device, i, self.scope)
        entry = change.entry(name)
        if not entry:
            return i, b""
        if len(entry) == 1:
            (value,) = entry.values()
            text = change.body(name, value)
            if text is not None:
                return i, text
        # Our segment is missing here, or has several values: leave it unchanged and use another one.
        return self._free(change, day, i + 1), b""

    def _free(self, change: Writing, day: str, i: int) -> int:
        """Return the first number from `i` on without a segment. Where segments were trimmed, later ones may exist."""
        while change.entry(segment_entry(day, self.replica.device.id, i, self.scope)):
            i += 1
        return i

    def _put(self, change: Writing, day: str, i: int, text: bytes) -> None:
        name = segment_entry(day, self.replica.device.id, i, self.scope)
        change.put(name, text, tuple(change.entry(name)))

    def missing(self, days: tuple[str, str]) -> int:
        """Return how many segments of these days are missing on this device, or damaged."""
        with self.replica.reading():
            segments = self.replica.store.segments(self.scope)
            return missing_of(
                self.replica.store, [one for one in segments if days[0] <= one[0].day <= days[1]]
            )

    def events(
        self,
        days: tuple[str, str] | None = None,
        *,
        held: Iterable[tuple[SegmentName, Entry]] | None = None,
    ) -> list[dict[str, Any]]:
        """Return all events in the order (ts, id); with `days` only those of the UTC days from the first to the last. `held`: the
        segments of this scope, if the caller has read them already."""
        with self.replica.reading():
            store = self.replica.store
            if scope_forgotten(store, self.scope):
                return []
            return events_of(
                store,
                (
                    (segment, entry)
                    for segment, entry in (store.segments(self.scope) if held is None else held)
                    if not days or days[0] <= segment.day <= days[1]
                ),
            )


def events_of(store: StateStore, segments: Iterable[tuple[SegmentName, Entry]]) -> list[dict[str, Any]]:
    """Return the events in these segments of one scope that are on this device, in the order (ts, id) (inside `reading`)."""
    event_lists: list[list[dict[str, Any]]] = []
    for segment, entry in segments:
        for value in entry.values():
            text = store.body(segment.entry, value)
            if text is not None:
                event_lists.append(_owned(segment.dev, segment_events(text)))
    return union(*event_lists)


def lines_with(
    store: StateStore,
    segment: SegmentName,
    entry: Entry,
    hashes: Container[str],
    hash_of: Callable[[bytes], str],
) -> Iterator[bytes]:
    """Yield the lines of a segment that have one of these hashes and are an event of the segment's device in canonical form
    (inside `reading`)."""
    for value in entry.values():
        for line in segment_lines(store.body(segment.entry, value) or b""):
            if hash_of(line) in hashes:
                (event,) = _owned(segment.dev, [parse_line(line)])
                if event_line(event) == line:
                    yield line


def missing_of(store: StateStore, segments: Iterable[tuple[SegmentName, Entry]]) -> int:
    """Return how many of these segments are missing on this device, or damaged (inside `reading`)."""
    return sum(
        store.body(segment.entry, value) is None for segment, entry in segments for value in entry.values()
    )


def _owned(device: str, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the events of a device's segment; an id of another device's form is replaced, as it is valid only in the segments of
    that one."""
    checked = []
    for event in events:
        claimed = split_own_id(str(event.get("id", "")))
        if claimed is not None and claimed[0] != device:
            event = {**event, "id": foreign_id(event)}
        checked.append(event)
    return checked


def append_moved(replica: Replica, lines: Iterable[tuple[str, bytes]]) -> None:
    """Append timeline lines, each with its scope, unchanged to segments of this device (inside a transaction).

    Lines of a forgotten scope are dropped.
    """
    by_scope: dict[str, list[bytes]] = {}
    for scope, line in lines:
        by_scope.setdefault(scope, []).append(line)
    by_scope = {
        scope: moved for scope, moved in by_scope.items() if not scope_forgotten(replica.store, scope)
    }
    if by_scope:
        change = Writing(replica)
        for scope, moved in by_scope.items():
            Timeline(replica, scope).add_lines(change, parse_lines(b"\n".join(moved) + b"\n"))
        change.commit()
