"""Lines that people and programs wrote into the timeline files of a linked folder: each new one becomes an event."""

from __future__ import annotations

from typing import Any

from ipfsmem.bundle.timeline import Event, event_line, foreign_id, parse_line, parse_lines
from ipfsmem.device.events import Timeline
from ipfsmem.device.writing import Writing
from ipfsmem.files.folder import TIMELINE


class TimelineEdits:
    """Reads in lines, in one transaction."""

    def __init__(self, timeline: Timeline, change: Writing) -> None:
        self._timeline = timeline
        self._change = change
        self._events: dict[str, Event] | None = None

    def ingest_lines(self, data: bytes, file: str, young: bool) -> bool:
        """Read in new lines. False if the last one is incomplete and must be read again."""
        day = file[len(TIMELINE) + 1 : -len(".jsonl")]
        whole, cut, tail = data.rpartition(b"\n")
        known = self._known_events()
        events = parse_lines(whole + cut, day)
        complete = True
        if tail.strip():
            last = parse_line(tail.strip(b" \t\r"), day)
            if last["type"] != "raw" or not (young or is_torn(tail, known)):
                events.append(last)
            else:
                complete = False
        fresh: list[Event] = []
        for event in events:
            held = known.get(event["id"])
            if held is None:
                fresh.append(event)
            elif event_line(held) != event_line(event):
                # An event never changes: the edited line is an event of its own.
                fresh.append({field: value for field, value in event.items() if field != "id"})
        self._timeline.add_foreign(self._change, fresh)
        for event in fresh:
            made = {**event, "id": foreign_id(event)}
            known[made["id"]] = made
        return complete

    def _known_events(self) -> dict[str, Event]:
        if self._events is None:
            self._events = {event["id"]: event for event in self._timeline.events()}
        return self._events


def is_torn(tail: bytes, known: dict[str, Any]) -> bool:
    """Return whether a last line without LF is the beginning of a line of ours that a crash truncated."""
    return any(event_line(event).startswith(tail) for event in known.values())
