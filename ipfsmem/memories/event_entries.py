"""Data types of the events and messages that recall searches in addition to memories, without their words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Literal, NamedTuple

import msgspec

#: What is searched. `all`: memories, events and messages.
Kind = Literal["memory", "event", "message", "all"]
KINDS: tuple[Kind, ...] = ("memory", "event", "message", "all")


class Group(NamedTuple):
    """A day of the timeline, or a session, named by its scope and the token in the keys of its parts."""

    kind: Literal["event", "message"]
    scope: str
    name: str


class Moment(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An event or a message, without its words."""

    kind: Literal["event", "message"]
    scope: str
    own: bool
    #: The device that recorded the event or added the message; "" for an imported one.
    device: str
    #: Milliseconds since 1970 UTC; 0 for a time that is not a valid date.
    at: int
    #: The type of an event; the speaker of a message.
    type: str
    #: The day of its segments, or the token of its session.
    place: str
    #: The session of a message.
    session: str = ""

    @property
    def group(self) -> Group:
        """The day or session that contains it."""
        return Group(self.kind, self.scope if self.kind == "message" else "", self.place)

    @property
    def when(self) -> str:
        """The UTC time to the second; "" if `at` is 0."""
        try:
            at = datetime.fromtimestamp(self.at // 1000, UTC).replace(tzinfo=None)
            return f"{at.isoformat()}Z"
        except (OverflowError, ValueError, OSError):
            return ""


def place_of(id: str) -> tuple[int, str, int]:
    """Return the place of a message in its session, from its id: its `at`, device and `n`."""
    at, device, number = id.split(" ")[-4:-1]
    return int(at), device, int(number)


#: Bytes of one entry's hash in the key of a vector.
HALF = 8
_ALONE = bytes(HALF)


def vector_keys(
    entries: Iterable[tuple[str, Moment]], keys_known: Mapping[str, bytes] | None = None
) -> dict[str, bytes]:
    """Return the keys of the vectors of a day or a session, by id, in order. A key is the hash of the entry and the hash of the
    entry before it, with which it may be embedded. The entry before is of the same scope, and own if this entry is, so that the
    vector of an own entry contains no words of others. `keys_known`: keys computed earlier."""
    before, keys = dict[tuple[str, bool], bytes](), dict[str, bytes]()
    for id, moment in entries:
        there = keys_known.get(id) if keys_known is not None else None
        half = there[:HALF] if there is not None else blake2b(id.encode(), digest_size=HALF).digest()
        whose = (moment.scope, moment.own)
        keys[id] = half + before.get(whose, _ALONE)
        before[whose] = half
    return keys
