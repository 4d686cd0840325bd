"""What dreams proposed and did on this device, with what is needed to undo it: sealed rows beside the state.

A proposal is kept for each scope until it is done or another takes its place. The last few dreams of each scope are kept, and their texts with them, until these are undone or forgotten. What was done is also an event
in the timeline, for every device; undoing is for this one. Nothing here changes a memory: that is `memories/dreams.py`.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from typing import Literal

import msgspec

from ipfsmem.causal.value import Entry, decode_entry, encode_entry
from ipfsmem.device.replica import Replica
from ipfsmem.device.state import Store, locations
from ipfsmem.device.tables import meta
from ipfsmem.device.texts_of_others import mark
from ipfsmem.dream.proposal import Found, Step
from ipfsmem.errors import OpenError

#: Dreams of a scope that can be undone.
KEPT = 8


class Proposed(msgspec.Struct, frozen=True):
    """A proposal that nobody has done yet. `seen`: the token behind each memory that it goes by; `by`: what made it."""

    id: str
    scope: str
    at: int
    by: str
    steps: tuple[Step, ...]
    found: tuple[Found, ...]
    looked_at: int
    left: int
    seen: dict[str, tuple[str, ...]]
    #: What a model was given and said, in tokens as its endpoint counts them, and how many of its calls were refused.
    tokens: int = 0
    refused: int = 0


class Done(msgspec.Struct, frozen=True):
    """One memory that a dream changed: the values that it replaced, and the hash of the text in their place (None: it was taken away)."""

    name: str
    gone: Entry
    body: str | None
    #: The keys of all memories that were changed or gone by together with it.
    together: tuple[str, ...] = ()

    @property
    def what(self) -> Literal["written", "removed"]:
        """What was done with it."""
        return "removed" if self.body is None else "written"


class Dreamt(msgspec.Struct, frozen=True):
    """A dream that was done. `at`: milliseconds since 1970 UTC."""

    id: str
    scope: str
    at: int
    by: str
    done: tuple[Done, ...]


class _DoneRow(msgspec.Struct, array_like=True):
    name: str
    gone: bytes
    body: str | None
    together: tuple[str, ...]


class _DreamtRow(msgspec.Struct, array_like=True):
    id: str
    scope: str
    at: int
    by: str
    done: list[_DoneRow]


_proposed = msgspec.json.Decoder(Proposed)
_dreams = msgspec.json.Decoder(list[_DreamtRow])


def keep_proposal(replica: Replica, proposed: Proposed) -> None:
    """Keep what was proposed of a scope in place of what was before (inside a transaction)."""
    let_go_of_proposal(replica, proposed.scope)
    replica.db.set_meta(
        _place(replica, proposed.scope), replica.codec.seal_row(msgspec.json.encode(proposed))
    )


def let_go_of_proposal(replica: Replica, scope: str) -> None:
    """Nothing is proposed of a scope any more (inside a transaction)."""
    names = [name for name, kept in _proposals(replica) if kept.scope == scope]
    meta.forget(replica.db.connection, [*names, _place(replica, scope)])


def kept_proposal(replica: Replica, scope: str) -> Proposed | None:
    """What was proposed of a scope last and not done yet."""
    return next((kept for _, kept in _proposals(replica) if kept.scope == scope), None)


def kept_proposals(replica: Replica) -> list[Proposed]:
    """What was proposed last and not done yet, of each scope."""
    return [kept for _, kept in _proposals(replica)]


def _proposals(replica: Replica) -> Iterator[tuple[str, Proposed]]:
    """Name and value of each that the disk did not change: who lost one dreams again."""
    for name, row in list(meta.sound(replica.db.connection, meta.DREAM_PROPOSED)):
        with contextlib.suppress(OpenError, msgspec.MsgspecError, UnicodeDecodeError):
            yield name, _proposed.decode(replica.codec.open_row(row))


def _place(replica: Replica, scope: str) -> str:
    hashed = sha256(f"{meta.DREAM_PROPOSED}\0{scope}".encode()).hexdigest()
    return f"{meta.DREAM_PROPOSED}/{mark(replica, hashed).hex()}"


def dreams(replica: Replica) -> list[Dreamt]:
    """The dreams that can be undone, the last first."""
    return [
        Dreamt(
            row.id,
            row.scope,
            row.at,
            row.by,
            tuple(
                Done(one.name, decode_entry(one.name, one.gone), one.body, one.together) for one in row.done
            ),
        )
        for row in _rows(replica.store)
    ]


def note_dream(replica: Replica, dreamt: Dreamt) -> None:
    """Remember what a dream did (inside its transaction)."""
    row = _DreamtRow(
        dreamt.id,
        dreamt.scope,
        dreamt.at,
        dreamt.by,
        [_DoneRow(one.name, encode_entry(one.gone), one.body, one.together) for one in dreamt.done],
    )
    kept, of = list[_DreamtRow](), Counter[str]()
    for one in [row, *_rows(replica.store)]:
        of[one.scope] += 1
        if of[one.scope] <= KEPT:
            kept.append(one)
    _keep(replica, kept)


def forget_dream(replica: Replica, id: str) -> None:
    """A dream that was undone can be undone no more (inside a transaction)."""
    _keep(replica, [row for row in _rows(replica.store) if row.id != id])


def forget_in_dreams(replica: Replica, scope: str, key: str | None = None) -> None:
    """Let go of what is kept for undoing of a forgotten memory, or of a whole scope (inside a transaction), with what went together
    with it, as its sentences may stand there; and of a proposal, which may say what stood there."""
    proposed = kept_proposal(replica, scope)
    if proposed is not None and (key is None or key in proposed.seen):
        let_go_of_proposal(replica, scope)
    rows = _rows(replica.store)
    if any(row.scope == scope for row in rows):
        for row in rows:
            if row.scope == scope:
                row.done = [] if key is None else [one for one in row.done if key not in one.together]
        _keep(replica, [row for row in rows if row.done])


def spoken_of(replica: Replica) -> dict[str, set[str]]:
    """The keys, by scope, of the memories that a proposal or what is kept for undoing goes by."""
    found: dict[str, set[str]] = {}
    for one in kept_proposals(replica):
        found.setdefault(one.scope, set()).update(one.seen)
    for row in _rows(replica.store):
        found.setdefault(row.scope, set()).update(key for one in row.done for key in one.together)
    return found


def blocks_for_dreams(store: Store) -> set[bytes]:
    """The digests of the blocks that undoing needs."""
    return {
        bytes.fromhex(loc.sha)
        for row in _rows(store)
        for one in row.done
        for loc in locations(decode_entry(one.name, one.gone))
    }


def _rows(store: Store) -> list[_DreamtRow]:
    if meta.is_changed(store.db.connection, meta.DREAMS):
        return []  # none can be taken back: a sync and `check` say so, and nothing else ends for it
    stored = store.db.get_meta(meta.DREAMS)
    return _dreams.decode(store.codec.open_row(stored)) if stored else []


def _keep(replica: Replica, rows: list[_DreamtRow]) -> None:
    replica.db.set_meta(meta.DREAMS, replica.codec.seal_row(msgspec.json.encode(rows)) if rows else b"")
