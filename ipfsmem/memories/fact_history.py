"""Stores the texts of a memory that were replaced or removed by a reversible operation.

An earlier text is stored in the scope of the write; a scope also reads those of the scopes redirected to it. They are stored as a
session (`sessions`), so they are sealed, reach every device and merge without conflicts; lists, context blocks and linked folders
omit them. Forgetting the memory forgets its history.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from ipfsmem.bundle.session_parts import HISTORY, session_token
from ipfsmem.device.writing import Writing
from ipfsmem.memories.memories import MemoryStore
from ipfsmem.memories.sessions import Sessions

#: Why a text was replaced or removed.
Why = Literal["updated", "edited", "deleted", "restored"]
_WHYS: Final = ("updated", "edited", "deleted", "restored")


class Earlier(msgspec.Struct, frozen=True):
    """An earlier text of a memory: the whole file, when it was replaced (milliseconds since 1970 UTC, by the clock of the writing
    device), and why."""

    data: bytes
    until: int
    why: Why


def session_of(key: str) -> str:
    """Return the session that holds the earlier texts of a memory."""
    return f"{HISTORY}{key}"


def keep_in(change: Writing, memories: MemoryStore, key: str, data: bytes, why: Why) -> list[str]:
    """Store a text in the transaction that replaces it; returns the keys of the changed session parts."""
    item = {"was": data.decode(), "why": why}
    below = (Sessions(one).entries(session_of(key)) for one in memories.stack()[1:])
    after = max((entry.place[0] for entries in below for entry in entries), default=0)
    return Sessions(memories).add_in(change, session_of(key), [item], after)


def earlier(memories: MemoryStore, key: str) -> list[Earlier]:
    """Return the earlier texts of a memory, newest first. Raises NotFoundError if some are not on this device."""
    revisions, session = [], session_of(key)
    with memories.replica.reading():
        entries = [entry for one in memories.stack()[::-1] for entry in Sessions(one).entries(session)]
    for entry in sorted(entries, key=lambda one: one.place):
        was, why = entry.item.get("was"), entry.item.get("why")
        if isinstance(was, str) and why in _WHYS:
            revisions.append(Earlier(was.encode(errors="replace"), entry.place[0], why))
    return revisions[::-1]


def keys_with_history(memories: MemoryStore) -> list[str]:
    """Return the keys of the memories that have earlier texts, last changed first."""
    with memories.replica.reading():
        sessions = [one for part in memories.stack() for one in Sessions(part).listing(histories=True)]
    newest = sorted(sessions, key=lambda one: one.changed, reverse=True)
    return list(dict.fromkeys(one.session.removeprefix(HISTORY) for one in newest))


def has_history(memories: MemoryStore, keys: Iterable[str]) -> list[str]:
    """Return the keys that have earlier texts. Looks up the first part of each device instead of scanning all entries."""
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
