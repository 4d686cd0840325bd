"""Store the proposals and results of dreams on this device, with the data to undo them, as sealed rows.

A scope has one proposal until it is applied or replaced. The last few dreams of each scope are kept with their texts
until they are undone or forgotten. A dream is also an event in the timeline, for every device, but can be undone on
this device only. `memories/dreams.py` changes memories.
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
from ipfsmem.device.state import StateStore, locations
from ipfsmem.device.tables import meta
from ipfsmem.device.texts_of_others import mark
from ipfsmem.dream.proposal import DreamFinding, Step
from ipfsmem.errors import OpenError

#: Maximum number of dreams of a scope that can be undone.
KEPT = 8


class Proposed(msgspec.Struct, frozen=True, kw_only=True):
    """A proposal that is not applied yet. `seen`: the token of each memory that it is based on. `by`: the model or
    the rules that made it."""

    id: str
    scope: str
    at: int
    by: str
    steps: tuple[Step, ...]
    found: tuple[DreamFinding, ...]
    looked_at: int
    left: int
    seen: dict[str, tuple[str, ...]]
    #: Input and output of a model in tokens, as reported by its endpoint, and the number of its refused calls.
    tokens: int = 0
    refused: int = 0


class ChangedMemory(msgspec.Struct, frozen=True):
    """One memory that a dream changed: the values that it replaced, and the hash of the new text (None: it was removed)."""

    name: str
    gone: Entry
    body: str | None
    #: Keys of all memories that the same step of the dream changed or used.
    together: tuple[str, ...] = ()

    @property
    def what(self) -> Literal["written", "removed"]:
        """How the dream changed it."""
        return "removed" if self.body is None else "written"


class Dreamt(msgspec.Struct, frozen=True):
    """An applied dream. `at`: milliseconds since 1970 UTC."""

    id: str
    scope: str
    at: int
    by: str
    done: tuple[ChangedMemory, ...]


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
    """Store the proposal of a scope, replacing the last one (inside a transaction)."""
    drop_proposal(replica, proposed.scope)
    replica.db.set_meta(
        _place(replica, proposed.scope), replica.codec.seal_row(msgspec.json.encode(proposed))
    )


def drop_proposal(replica: Replica, scope: str) -> None:
    """Delete the proposal of a scope (inside a transaction)."""
    names = [name for name, proposal in _proposals(replica) if proposal.scope == scope]
    meta.forget(replica.db.connection, [*names, _place(replica, scope)])


def kept_proposal(replica: Replica, scope: str) -> Proposed | None:
    """Return the open proposal of a scope, if any."""
    return next((proposal for _, proposal in _proposals(replica) if proposal.scope == scope), None)


def kept_proposals(replica: Replica) -> list[Proposed]:
    """Return the open proposal of each scope."""
    return [proposal for _, proposal in _proposals(replica)]


def _proposals(replica: Replica) -> Iterator[tuple[str, Proposed]]:
    """Yield name and value of each undamaged proposal: for a lost one, a dream is run again."""
    for name, row in list(meta.sound(replica.db.connection, meta.DREAM_PROPOSED)):
        with contextlib.suppress(OpenError, msgspec.MsgspecError, UnicodeDecodeError):
            yield name, _proposed.decode(replica.codec.open_row(row))


def _place(replica: Replica, scope: str) -> str:
    hashed = sha256(f"{meta.DREAM_PROPOSED}\0{scope}".encode()).hexdigest()
    return f"{meta.DREAM_PROPOSED}/{mark(replica, hashed).hex()}"


def dreams(replica: Replica) -> list[Dreamt]:
    """Return the dreams that can be undone, newest first."""
    return [
        Dreamt(
            row.id,
            row.scope,
            row.at,
            row.by,
            tuple(
                ChangedMemory(one.name, decode_entry(one.name, one.gone), one.body, one.together)
                for one in row.done
            ),
        )
        for row in _rows(replica.store)
    ]


def note_dream(replica: Replica, dreamt: Dreamt) -> None:
    """Record an applied dream (inside its transaction)."""
    row = _DreamtRow(
        dreamt.id,
        dreamt.scope,
        dreamt.at,
        dreamt.by,
        [_DoneRow(one.name, encode_entry(one.gone), one.body, one.together) for one in dreamt.done],
    )
    rows, of = list[_DreamtRow](), Counter[str]()
    for one in [row, *_rows(replica.store)]:
        of[one.scope] += 1
        if of[one.scope] <= KEPT:
            rows.append(one)
    _keep(replica, rows)


def forget_dream(replica: Replica, id: str) -> None:
    """Delete the record of a dream that was undone (inside a transaction)."""
    _keep(replica, [row for row in _rows(replica.store) if row.id != id])


def forget_in_dreams(replica: Replica, scope: str, key: str | None = None) -> None:
    """Delete the undo data of a forgotten memory, or of a whole scope (inside a transaction), and of all that was changed with
    it, which may contain its sentences; also a proposal, which may quote it."""
    proposed = kept_proposal(replica, scope)
    if proposed is not None and (key is None or key in proposed.seen):
        drop_proposal(replica, scope)
    rows = _rows(replica.store)
    if any(row.scope == scope for row in rows):
        for row in rows:
            if row.scope == scope:
                row.done = [] if key is None else [one for one in row.done if key not in one.together]
        _keep(replica, [row for row in rows if row.done])


def spoken_of(replica: Replica) -> dict[str, set[str]]:
    """Return by scope the keys of the memories that proposals and undo data are based on."""
    keys_by_scope: dict[str, set[str]] = {}
    for one in kept_proposals(replica):
        keys_by_scope.setdefault(one.scope, set()).update(one.seen)
    for row in _rows(replica.store):
        keys_by_scope.setdefault(row.scope, set()).update(key for one in row.done for key in one.together)
    return keys_by_scope


def blocks_for_dreams(store: StateStore) -> set[bytes]:
    """Return the digests of the blocks that undo needs."""
    return {
        bytes.fromhex(loc.sha)
        for row in _rows(store)
        for one in row.done
        for loc in locations(decode_entry(one.name, one.gone))
    }


def _rows(store: StateStore) -> list[_DreamtRow]:
    if meta.is_changed(store.db.connection, meta.DREAMS):
        return []  # none can be undone: sync and `check` report it, and nothing else fails
    stored = store.db.get_meta(meta.DREAMS)
    return _dreams.decode(store.codec.open_row(stored)) if stored else []


def _keep(replica: Replica, rows: list[_DreamtRow]) -> None:
    replica.db.set_meta(meta.DREAMS, replica.codec.seal_row(msgspec.json.encode(rows)) if rows else b"")
