"""A new id for this device after its state was restored or copied, keeping every text of the old one.

Format section 5, "A counter is never used twice": the device signs its own successor, moves what it wrote and
the other copy's head does not hold identically to the new id, and only then joins that head.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ipfsmem.bundle.timeline import segment_lines
from ipfsmem.causal.entries import parse_entry
from ipfsmem.causal.own_copies import ValueToMove, drew_pair, lines_to_move, step_back, values_to_move
from ipfsmem.causal.state import EntryDifference, State
from ipfsmem.causal.value import Entry, verify_seen
from ipfsmem.device.identity import Device
from ipfsmem.device.replica import Replica
from ipfsmem.device.state import StateHeader
from ipfsmem.device.tables import pairs
from ipfsmem.device.writing import sign_entry
from ipfsmem.errors import IpfsmemError
from ipfsmem.published.root_verification import Head
from ipfsmem.ring import operations
from ipfsmem.sync.report import UNLOCK, Notices

#: A timeline line that moves to a new segment, with its scope.
Line = tuple[str, bytes]


def pairs_drawn(replica: Replica, shown: Iterable[tuple[int, str]]) -> dict[int, str]:
    """Return those of these pairs (counter, random number) that this device drew under its present id."""
    db, device = replica.db.connection, replica.device.id
    return {n: r for n, r in shown if pairs.was_drawn(db, device, n, bytes.fromhex(r))}


def head_of_other_copy(replica: Replica, heads: list[Head]) -> Head | None:
    """Return a head with a pair of this device that it never drew, so made after another copy of it; None without one.

    Of several the one with the greatest counter.
    """
    device = replica.device
    pairs_of_heads = [head.commit.commit.ctx.get(device.id) for head in heads]
    drawn = pairs_drawn(replica, [(pair.n, pair.r) for pair in pairs_of_heads if pair is not None])
    vault = replica.vault_tag
    assert vault is not None
    found: list[tuple[int, str, Head]] = []
    for head in heads:
        seen = head.commit.commit.ctx.get(device.id)
        # Without a key of this id in the ring, its signature has not been checked yet.
        if seen is not None and device.id in head.lacking:
            seen = seen if verify_seen(device.sign_public, vault, device.id, seen) else None
        if seen is not None and not drew_pair(drawn, seen.n, seen.r):
            found.append((seen.n, seen.r, head))
    return max(found, key=lambda item: item[:2])[2] if found else None


def take_new_id(replica: Replica, notices: Notices) -> Device:
    """Switch to a new signing key and state so in the ring if possible (inside a transaction)."""
    old, enrolled = replica.device, replica.enrolled()
    device = old.successor(replica.world.random)
    ring = replica.ring
    if ring is not None and enrolled.id in ring.view.members:
        try:
            since = replica.store.frame.hlc
            replica.set_ring(
                operations.add_successor(ring, enrolled.signer, device.signer, old.id, since=since)
            )
        except IpfsmemError as error:
            # Too many successors, or a full ring. Nothing needs to wait: an unlock enrols this id.
            notices.say("unlock", f"{device.id} cannot publish before one unlock ({UNLOCK}): {error}")
    replica.set_device(device, former=old)
    replica.set_enrolled(enrolled)
    replica.note_place()
    return device


def last_pair(replica: Replica) -> int:
    """Return the n of the last pair that this device published under its present id, or 0."""
    known = replica.store.frame.seen.get(replica.device.id)
    return known.n if known is not None else 0


def move_since(replica: Replica, old: str, common: int, published: list[EntryDifference]) -> list[Line]:
    """Move what was written under `old` after the counter `common`, shared with the other copy, to the new id.

    Inside a transaction. `published`: differences of this device's last head from the state here. Segments
    stay as in that head, further lines move. Returns the lines to append.
    """
    store, frame = replica.store, replica.store.frame
    before = {change.name: change.theirs for change in published}
    entries: dict[str, Entry] = {
        name: entry for name, entry in store.entries() if any(dot[:16] == old for dot in entry)
    }
    moves = values_to_move(entries, old, common, lambda name: {})
    stepped = step_back(State(frame.ctx, entries), old, common, moves, replica.device.id)
    lines: list[Line] = []
    for held in moves.segments:
        published_values = {
            dot: value
            for dot, value in before.get(held.entry, {}).items()
            if dot[:16] == old and int(dot[17:]) <= common
        }
        lines += _lines_left(replica, held, published_values)
        stepped.entries[held.entry] = {**stepped.entries.get(held.entry, {}), **published_values}
    seen = {device: pair for device, pair in frame.seen.items() if device != old or common}
    store.apply(
        {name: sign_entry(replica, name, stepped.entries.get(name, {})) for name in entries},
        StateHeader(stepped.ctx, seen, frame.hlc),
    )
    return lines


class MovedValues(msgspec.Struct, frozen=True):
    """What remains after values of an old id were moved: the `whole` changes that joining the other copy's
    head must bring, then timeline `lines` to append. `before`: the entries as they were."""

    lines: list[Line]
    whole: list[EntryDifference]
    before: dict[str, Entry]


def move_values(replica: Replica, old: str, changes: list[EntryDifference]) -> MovedValues:
    """Move what the other copy's head lacks to the new id; the head differs from here by `changes` (inside a
    transaction).

    All values of the old id are removed here, so the join must bring the common ones too.
    """
    store = replica.store
    differing = {change.name: change.theirs for change in changes}
    entries: dict[str, Entry] = {
        name: entry for name, entry in store.entries() if any(dot[:16] == old for dot in entry)
    }

    def there(name: str) -> Entry:
        # An entry without difference is the same in the head as here.
        return differing[name] if name in differing else entries.get(name, {})

    frame = store.frame
    moves = values_to_move(entries, old, 0, there)
    lines = [line for held in moves.segments for line in _lines_left(replica, held, there(held.entry))]
    stepped = step_back(State(frame.ctx, entries), old, 0, moves, replica.device.id)
    seen = {device: pair for device, pair in frame.seen.items() if device != old}
    store.apply(
        {name: sign_entry(replica, name, stepped.entries.get(name, {})) for name in entries},
        StateHeader(stepped.ctx, seen, frame.hlc),
    )
    same = [EntryDifference(name, {}, entry) for name, entry in entries.items() if name not in differing]
    return MovedValues(lines, [*changes, *same], entries)


def _lines_left(replica: Replica, held: ValueToMove, there: Entry) -> list[Line]:
    mine = replica.store.body(held.entry, held.value) or b""
    theirs: list[bytes] = []
    for value in there.values():
        theirs += segment_lines(replica.store.body(held.entry, value) or b"")
    scope = parse_entry(held.entry).scope
    return [(scope, line) for line in lines_to_move(segment_lines(mine), theirs)]
