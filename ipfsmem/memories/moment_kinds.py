"""What recall looks through beside memories, as values: events and messages without their words, and where these are read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal, NamedTuple

import msgspec

#: What is looked through. `all`: memories, events and messages.
Kind = Literal["memory", "event", "message", "all"]
KINDS: tuple[Kind, ...] = ("memory", "event", "message", "all")


class Group(NamedTuple):
    """A day of the timeline, or a session by its scope and the token in the keys of its parts."""

    kind: Literal["event", "message"]
    scope: str
    name: str


class Moment(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An event or a message, without its words."""

    kind: Literal["event", "message"]
    scope: str
    own: bool
    #: The device that noted or added it; "" for what was imported.
    device: str
    #: When, in milliseconds since 1970 UTC; 0 for a time beyond the calendar.
    at: int
    #: The type of an event; who says a message.
    type: str
    #: The day in whose pieces it stands, or the token of its session.
    place: str
    #: Of a message: its session.
    session: str = ""

    @property
    def group(self) -> Group:
        """Where it is read."""
        return Group(self.kind, self.scope if self.kind == "message" else "", self.place)

    @property
    def when(self) -> str:
        """The UTC time to the second; empty beyond the calendar."""
        try:
            return datetime.fromtimestamp(self.at / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        except (OverflowError, ValueError, OSError):
            return ""
