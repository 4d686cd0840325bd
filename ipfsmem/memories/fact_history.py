"""The earlier texts of a memory that its writer replaced or took away by a step that can be taken back.

They are kept as a session of their own (`sessions`), so they are sealed, go to every device and come together there without a conflict;
lists, context and plain folders leave them out. Who forgets the memory forgets them with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from ipfsmem.bundle.session_parts import HISTORY, session_token
from ipfsmem.device.writing import Writing
from ipfsmem.memories.memories import Memories
from ipfsmem.memories.sessions import Sessions

#: What became of an earlier text.
Why = Literal["updated", "edited", "deleted", "restored"]
_WHYS: Final = ("updated", "edited", "deleted", "restored")


class Earlier(msgspec.Struct, frozen=True):
    """A text that a memory had: the whole file, until when (milliseconds since 1970 UTC, by the clock of whose device wrote), and what
    became of it."""

    data: bytes
    until: int
    why: Why


def session_of(key: str) -> str:
    """The session that holds the earlier texts of a memory."""
    return f"{HISTORY}{key}"


def keep_in(change: Writing, memories: Memories, key: str, data: bytes, why: Why) -> list[str]:
    """Keep a text that goes, inside the transaction in which it goes; the keys of the parts that changed."""
    item = {"was": data.decode(), "why": why}
    return Sessions(memories).add_in(change, session_of(key), [item])


def earlier(memories: Memories, key: str) -> list[Earlier]:
    """The earlier texts of a memory, the newest first. Raises NotFoundError when a part of them is not fetched."""
    found = []
    for entry in Sessions(memories).entries(session_of(key)):
        was, why = entry.item.get("was"), entry.item.get("why")
        if isinstance(was, str) and why in _WHYS:
            found.append(Earlier(was.encode(errors="replace"), entry.place[0], why))
    return found[::-1]


def keys_with_history(memories: Memories) -> list[str]:
    """The keys of the memories that have earlier texts, the last changed first."""
    return [one.session.removeprefix(HISTORY) for one in Sessions(memories).listing(histories=True)]


def has_history(memories: Memories, keys: Iterable[str]) -> list[str]:
    """Those of some keys that have earlier texts. It asks for the first part of each device, and goes through no list."""
    store = memories.replica.store
    with memories.replica.reading():
        devices = sorted(store.frame.ctx)
        return [
            key
            for key in keys
            if any(
                store.entry(memories.name(f"session-{session_token(session_of(key))}-{device}-0"))
                for device in devices
            )
        ]
