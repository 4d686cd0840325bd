"""Forwarding records: left by a device that moved to another provider, for those who still use the old one
(format sections 1.4, 7).

They are timeline events in the last root there, sealed and signed. The newest is stored here; the user
decides whether to follow it.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ipfsmem.bundle.program_events import MOVED, Move, newer_move, read_move
from ipfsmem.bundle.timeline import segment_events
from ipfsmem.causal.entries import segment_name
from ipfsmem.device.replica import Replica
from ipfsmem.device.tables import meta


def learn_moves(replica: Replica, entries: Iterable[str]) -> None:
    """Find forwarding records in these entries, changed by a join (inside a transaction)."""
    newest: Move | None = None
    for name in entries:
        segment = segment_name(name)
        if segment is None or segment.scope:
            continue
        for value in replica.store.entry(name).values():
            text = replica.store.body(name, value)
            if text is None or MOVED.encode() not in text:
                continue
            for event in segment_events(text):
                move = read_move(event)
                if move is not None and move.by == segment.dev:
                    newest = newer_move(newest, move)
    if newest is not None:
        note(replica, newest)


def note(replica: Replica, move: Move) -> None:
    """Store a record if no later one is known (inside a transaction)."""
    newest = newer_move(_newest(replica), move)
    replica.db.set_meta(meta.MOVED, replica.codec.seal_row(msgspec.json.encode(newest)))


def note_answer(replica: Replica, move: Move) -> None:
    """Store that the user answered a record (inside a transaction)."""
    replica.db.set_meta(meta.MOVED_ANSWERED, move.id.encode())


def unanswered_move(replica: Replica) -> Move | None:
    """Return the newest record if the user has not answered it; None if it is by this device or a non-member,
    or names a provider at which this device publishes."""
    move, ring = _newest(replica), replica.ring
    if move is None or ring is None or replica.db.get_meta(meta.MOVED_ANSWERED) == move.id.encode():
        return None
    if move.by == replica.device.id or move.by not in ring.view.members:
        return None
    return None if move.to in replica.config.providers else move


def _newest(replica: Replica) -> Move | None:
    stored = replica.db.get_meta(meta.MOVED)
    return msgspec.json.decode(replica.codec.open_row(stored), type=Move) if stored else None


def describe_move(replica: Replica, move: Move) -> str:
    """Describe a record for the user, with the ways to answer it."""
    ring = replica.ring
    person = ring.view.members.get(move.by) if ring is not None else None
    who = f"{person.label} ({move.by})" if person is not None else move.by
    return (
        f"{who} moved this vault from {', '.join(move.left)} to {move.to} on {move.at[:10]}, and this device does not "
        "publish there: its writes are not seen there, and writes there are not seen here. To follow: ipfsmem provider follow (with its address if that differs here; --decline to stay)"
    )
