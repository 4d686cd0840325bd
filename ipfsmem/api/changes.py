"""Changes of one vault, by any process, as numbered events for listeners: found by comparing states, and kept for a while so
that a listener continues after a lost connection.

An event names the data to read again, and has no text of it. Independent of HTTP.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Iterator
from hashlib import blake2b
from typing import Final, Literal

import msgspec

from ipfsmem.bundle.session_parts import is_part
from ipfsmem.causal.entries import card_name, memory_name, segment_name
from ipfsmem.device.dreams import dreams, kept_proposals
from ipfsmem.device.hidden import hidden_texts
from ipfsmem.device.replica import Replica
from ipfsmem.device.state import StateMark
from ipfsmem.memories.memory_records import readable_file
from ipfsmem.memory import Memory

#: Maximum events kept for reconnecting listeners, and queued for one that does not read.
KEPT: Final = 2_000


class Change(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A change. `memory`: the text of a key, `gone` if none is shown any more; `timeline`: events of a UTC day; `session`: a
    session; `scope`: the card of a scope; `sight`: the memories hidden on this device; `dream`: a proposal, or a dream that
    can be undone here; `sync`: its progress, and once it has `ended` its `exit_code` (0: complete) and the reasons in
    `said`, one line each, for a person; `locked`: whether the keys are locked; `reset`: read everything again, since some
    changes are unknown."""

    what: Literal["memory", "timeline", "session", "scope", "sight", "dream", "sync", "locked", "reset"]
    scope: str = ""
    key: str = ""
    day: str = ""
    gone: bool = False
    doing: str = ""
    done: int = 0
    total: int = 0
    ended: bool = False
    exit_code: int = 0
    said: str = ""
    locked: bool = False


class NumberedChange(msgspec.Struct, frozen=True):
    """A change and the cursor after it."""

    cursor: str
    change: Change


class Feed:
    """The changes of one memory."""

    def __init__(self) -> None:
        self._number = 0
        self._recent: deque[tuple[int, Change]] = deque(maxlen=KEPT)
        #: The cursors after each kept change, and before the first. They are random, as a count would reveal changes of other
        #: scopes.
        self._cursors: deque[str] = deque([secrets.token_hex(8)], maxlen=KEPT + 1)

    @property
    def number(self) -> int:
        """Return the number of the last change."""
        return self._number

    def cursor(self, number: int | None = None) -> str:
        """Return the cursor after a kept change, or after the last one."""
        back = 0 if number is None else self._number - number
        return self._cursors[-1 - min(back, len(self._cursors) - 1)]

    def add(self, change: Change) -> None:
        """Add a change."""
        self._number += 1
        self._recent.append((self._number, change))
        self._cursors.append(secrets.token_hex(8))

    def behind(self, cursor: str) -> int | None:
        """Return the number of the change before a cursor; None for an unknown one, and if later changes are not kept any more."""
        try:
            return self._number - (len(self._cursors) - 1 - self._cursors.index(cursor))
        except ValueError:
            return None

    def since(self, after: int) -> Iterator[NumberedChange]:
        """Yield the changes after a number; only a reset if some are not kept any more."""
        oldest = self._recent[0][0] if self._recent else self._number + 1
        if after < oldest - 1:
            yield NumberedChange(self.cursor(), Change(what="reset"))
            return
        newer = [(number, change) for number, change in self._recent if number > after]
        yield from (NumberedChange(self.cursor(number), change) for number, change in newer)


class Comparison:
    """The state of each entry of an open memory at the last check."""

    def __init__(self, memory: Memory) -> None:
        replica = memory.replica
        self._memory = memory
        with replica.reading():
            self._mark: StateMark = replica.store.mark()
            self._hashes = {name: _sum(text) for name, text in replica.store.texts()}
            self._beside = _beside(replica)

    def of(self, memory: Memory) -> bool:
        """Tell whether it is about this open memory."""
        return self._memory is memory

    def changes(self) -> list[Change]:
        """Return the changes since the last check."""
        replica = self._memory.replica
        result: dict[Change, None] = {}
        with replica.reading():
            before, self._beside = self._beside, _beside(replica)
            beside = [Change(what=what, scope=scope) for what, scope, _ in sorted(before ^ self._beside)]
            since = replica.store.changes_since(self._mark)
            self._mark = replica.store.mark()
            gone = since.may_be_gone(self._hashes)
            changed = [name for name, text in since.texts.items() if self._hashes.get(name) != _sum(text)]
            self._hashes.update({name: _sum(since.texts[name]) for name in changed})
            for name in gone:
                del self._hashes[name]
            if len(changed) + len(gone) > KEPT:
                return [Change(what="reset")]
            result.update(dict.fromkeys(beside))
            for name in (*changed, *gone):
                if (change := self._change(name)) is not None:
                    result[change] = None
        return list(result)

    def _change(self, name: str) -> Change | None:
        if (segment := segment_name(name)) is not None:
            return Change(what="timeline", scope=segment.scope, day=segment.day)
        if (card := card_name(name)) is not None:
            return Change(what="scope", scope=card.scope)
        place = memory_name(name)
        if place is None:
            return None
        data = self._memory._open.memories.in_scope(place.scope).view(place.key).data
        if data is not None and is_part(place.key, readable_file(data)):
            return Change(what="session", scope=place.scope)
        return Change(what="memory", scope=place.scope, key=place.key, gone=data is None)


def _beside(replica: Replica) -> set[tuple[Literal["sight", "dream"], str, str]]:
    """Return data of this device outside the state (inside `reading`): its kind, its scope, and an id."""
    states: set[tuple[Literal["sight", "dream"], str, str]] = {
        ("sight", one.scope, f"{one.key} {one.hlc}") for one in hidden_texts(replica).values()
    }
    states.update(("dream", one.scope, one.id) for one in dreams(replica))
    states.update(("dream", one.scope, f"proposed {one.id}") for one in kept_proposals(replica))
    return states


def _sum(text: bytes) -> bytes:
    return blake2b(text, digest_size=8).digest()


def for_caller(change: Change, scopes: frozenset[str] | None) -> bool:
    """Tell whether a caller with a token for these scopes may see a change."""
    return (
        scopes is None
        or change.what in ("locked", "reset")
        or (change.what != "sync" and change.scope in scopes)
    )


def as_event(numbered: NumberedChange) -> bytes:
    """Return a change as a server-sent event."""
    data: bytes = msgspec.json.encode(numbered.change)
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (
        numbered.cursor.encode(),
        numbered.change.what.encode(),
        data,
    )
