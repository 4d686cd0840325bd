"""Handle ids of devices whose state was restored or copied (format section 5, "A counter is never used twice").

When this device finds another copy of itself, it signs its own successor, moves the writes that the other copy's head
lacks to the new id, and then joins that head.

Forks are copies of another device that wrote under the same counters. The first copy's head is joined, the second's
held while the id may be in use. The id is retired when it has a successor, was revoked, or its key left the ring.
Then a device with the head rewrites the differing texts of both copies under its own dots, entry by entry, and joins,
so that all devices converge. Texts of devices whose keys left the ring are rewritten in the same way.

`causal.own_copies` has the rules. Functions that write run in a transaction, and nothing is fetched.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import Final

import msgspec

from ipfsmem.bundle.timeline import day_of, lines_of, parse_lines, segment_lines
from ipfsmem.causal.entries import memory_entry, memory_name, parse_entry, segment_name
from ipfsmem.causal.own_copies import (
    ValueToMove,
    adopt_fork,
    drew_pair,
    equivocating_devices,
    lines_to_move,
    step_back,
    values_to_move,
)
from ipfsmem.causal.state import EntryDifference, State, clashes_of, counts_of
from ipfsmem.causal.value import MAX_DOTS, Entry, Value, same_identity, verify_seen
from ipfsmem.device.events import append_moved
from ipfsmem.device.identity import Device
from ipfsmem.device.replica import Replica
from ipfsmem.device.state import StateHeader
from ipfsmem.device.tables import pairs
from ipfsmem.device.texts_of_others import note_others
from ipfsmem.device.writing import Writing, sign_entry
from ipfsmem.errors import IpfsmemError, LimitError, NotFoundError
from ipfsmem.published.root_verification import Head
from ipfsmem.ring import operations
from ipfsmem.ring.keyring import Ring
from ipfsmem.sync.report import UNLOCK, Notices

#: A timeline line that moves to a new segment, with its scope.
Line = tuple[str, bytes]
#: Characters of the key kept before the hash, for a text that gets its own key.
_STEM: Final = 40


def pairs_drawn(replica: Replica, shown: Iterable[tuple[int, str]]) -> dict[int, str]:
    """Return the pairs (counter, random number) among `shown` that this device drew under its present id."""
    db, device = replica.db.connection, replica.device.id
    return {n: r for n, r in shown if pairs.was_drawn(db, device, n, bytes.fromhex(r))}


def head_of_other_copy(replica: Replica, heads: list[Head]) -> Head | None:
    """Return a head that contains a counter pair of this id that this device did not generate (another copy did), or
    None.

    Of several heads, returns the one with the greatest counter.
    """
    device = replica.device
    pairs_of_heads = [head.commit.commit.ctx.get(device.id) for head in heads]
    drawn = pairs_drawn(replica, [(pair.n, pair.r) for pair in pairs_of_heads if pair is not None])
    vault = replica.vault_tag
    assert vault is not None
    candidates: list[tuple[int, str, Head]] = []
    for head in heads:
        counter = head.commit.commit.ctx.get(device.id)
        # Without a key of this id in the ring, its signature has not been checked yet.
        if counter is not None and device.id in head.unknown_devices:
            counter = counter if verify_seen(device.sign_public, vault, device.id, counter) else None
        if counter is not None and not drew_pair(drawn, counter.n, counter.r):
            candidates.append((counter.n, counter.r, head))
    return max(candidates, key=lambda item: item[:2])[2] if candidates else None


def take_new_id(replica: Replica, notices: Notices) -> Device:
    """Switch to a new signing key and record the successor in the ring if possible (inside a transaction)."""
    old, enrolled = replica.device, replica.enrolled()
    device = old.successor(replica.environment.random)
    ring = replica.ring
    if ring is not None and enrolled.id in ring.view.members:
        try:
            since = replica.store.frame.hlc
            replica.set_ring(
                operations.add_successor(ring, enrolled.signer, device.signer, old.id, since=since)
            )
        except IpfsmemError as error:
            # Too many successors, or a full ring. An unlock enrols this id later.
            notices.say("unlock", f"{device.id} cannot publish before one unlock ({UNLOCK}): {error}")
    replica.set_device(device, former=old)
    replica.set_enrolled(enrolled)
    replica.note_place()
    return device


def last_pair(replica: Replica) -> int:
    """Return the n of the last pair that this device published under its present id, or 0."""
    counter = replica.store.frame.seen.get(replica.device.id)
    return counter.n if counter is not None else 0


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
    for moved_value in moves.segments:
        published_values = {
            dot: value
            for dot, value in before.get(moved_value.entry, {}).items()
            if dot[:16] == old and int(dot[17:]) <= common
        }
        lines += _lines_left(replica, moved_value, published_values)
        stepped.entries[moved_value.entry] = {
            **stepped.entries.get(moved_value.entry, {}),
            **published_values,
        }
    seen = {device: pair for device, pair in frame.seen.items() if device != old or common}
    store.apply(
        {name: sign_entry(replica, name, stepped.entries.get(name, {})) for name in entries},
        StateHeader(stepped.ctx, seen, frame.hlc),
    )
    return lines


class MovedValues(msgspec.Struct, frozen=True):
    """The state after values of an old id were moved: the changes `to_join` with the other copy's
    head, then timeline `lines` to append. `before`: the entries as they were."""

    lines: list[Line]
    to_join: list[EntryDifference]
    before: dict[str, Entry]


def move_values(replica: Replica, old: str, changes: list[EntryDifference]) -> MovedValues:
    """Move the values missing from the other copy's head to the new id; `changes`: the differences between the local
    state and that head (inside a transaction).

    All local values of the old id are removed, so the join must restore the common ones too.
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
    lines = [
        line for segment in moves.segments for line in _lines_left(replica, segment, there(segment.entry))
    ]
    stepped = step_back(State(frame.ctx, entries), old, 0, moves, replica.device.id)
    seen = {device: pair for device, pair in frame.seen.items() if device != old}
    store.apply(
        {name: sign_entry(replica, name, stepped.entries.get(name, {})) for name in entries},
        StateHeader(stepped.ctx, seen, frame.hlc),
    )
    same = [EntryDifference(name, {}, entry) for name, entry in entries.items() if name not in differing]
    return MovedValues(lines, [*changes, *same], entries)


def _lines_left(replica: Replica, segment: ValueToMove, there: Entry) -> list[Line]:
    mine = replica.store.body(segment.entry, segment.value) or b""
    theirs: list[bytes] = []
    for value in there.values():
        theirs += segment_lines(replica.store.body(segment.entry, value) or b"")
    scope = parse_entry(segment.entry).scope
    return [(scope, line) for line in lines_to_move(segment_lines(mine), theirs)]


def forked_devices(changes: Iterable[EntryDifference], head: Head, replica: Replica) -> set[str]:
    """Return the devices that were forked in this head: one counter with two random numbers, or one
    dot with two writes.

    A dot names one write of one entry, so the same dot in two entries means two writes too.
    """
    store = replica.store
    here = [EntryDifference(change.name, store.entry(change.name), change.theirs) for change in changes]
    return {
        *equivocating_devices(store.frame.seen, head.ctx),
        *(clash.dot[:16] for clash in clashes_of(here)),
    }


def is_retired(ring: Ring, device: str) -> bool:
    """Return whether an id is retired: it has a successor, is removed, or has no key in the ring."""
    return ring.view.given_up(device)


def is_revoked(replica: Replica, device: str) -> bool:
    """Return whether this id is revoked in the local ring."""
    return replica.ring is not None and replica.ring.view.is_revoked(device)


def orphans(replica: Replica) -> set[str]:
    """Return devices with local counters whose key no statement of the ring names any more.

    When a root revokes an admin, the devices which that admin enrolled lose their keys, and a ring keeps only eight
    successors. Nobody could verify the values of such devices in commits of this device.
    """
    ring = replica.ring
    if ring is None:
        return set()
    frame = replica.store.frame
    keys_of = ring.view.keys_of
    return {device for device in (*frame.ctx, *frame.seen) if device not in keys_of} - {replica.device.id}


class AdoptionResult(msgspec.Struct, frozen=True):
    """The result of `adopt_head` or `adopt_orphans`.

    `left`: changes of the head still to be joined. `lines`: timeline lines to append after that, each with
    its scope. For the report: `before`, the old entries that were written; `new_keys`, keys of texts moved
    because their entry was at its limit; `lost`, entries whose text no reachable device has.
    """

    left: list[EntryDifference]
    lines: list[Line]
    before: dict[str, Entry]
    new_keys: list[str]
    lost: list[str]


def adopt_orphans(replica: Replica, devices: set[str], *, unsure: bool) -> AdoptionResult:
    """Rewrite the texts of devices without a key under our own dots, entry by entry, and drop their counters.

    `unsure`: a provider's holdings are unknown; an entry with missing data then waits.
    """
    entries = {
        name: entry for name, entry in replica.store.entries() if any(dot[:16] in devices for dot in entry)
    }
    wait = {name for name in entries if unsure and _lacks(replica, name, entries[name], devices)}
    changes = [EntryDifference(name, entry, {}) for name, entry in entries.items() if name not in wait]
    adopted = adopt(replica, changes, {}, devices)
    gone = devices - {dot[:16] for name in wait for dot in entries[name]}
    frame = replica.store.frame
    ctx = {device: n for device, n in frame.ctx.items() if device not in gone}
    seen = {device: pair for device, pair in frame.seen.items() if device not in gone}
    replica.store.apply({}, StateHeader(ctx, seen, frame.hlc))
    append_new_lines(replica, adopted.lines)
    return adopted


def is_missing_moved_data(replica: Replica, changes: Iterable[EntryDifference], devices: Set[str]) -> bool:
    """Return whether joining a fork of `devices` would move lines, or texts over the limit of an entry, that are not
    local."""
    own = replica.device.id
    for change in changes:
        ours = replica.store.entry(change.name)
        dots = [dot[:16] for dot in (*ours, *change.theirs) if dot[:16] in devices or dot[:16] == own]
        if segment_name(change.name) is None and len(dots) < MAX_DOTS:
            continue
        if _lacks(replica, change.name, ours, devices) or _lacks(
            replica, change.name, change.theirs, devices
        ):
            return True
    return False


def _lacks(replica: Replica, name: str, entry: Entry, devices: Set[str]) -> bool:
    return any(
        dot[:16] in devices and value.body is not None and replica.store.body(name, value) is None
        for dot, value in entry.items()
    )


def adopt_head(
    replica: Replica, changes: list[EntryDifference], head: Head, devices: set[str]
) -> AdoptionResult:
    """Make a head joinable that contains writes of other copies of `devices`; see `adopt`."""
    return adopt(replica, changes, counts_of(head.ctx), devices)


def adopt(
    replica: Replica, changes: list[EntryDifference], ctx: dict[str, int], devices: set[str]
) -> AdoptionResult:
    """Rewrite the differing texts of `devices` under this device's dots, and those over the limit of an entry under keys
    made from them.

    Never fails on signed data: an unusable text or line is skipped and reported.
    """
    store = replica.store
    mine: dict[str, Entry] = {}
    theirs: dict[str, Entry] = {}
    lines: list[Line] = []
    differences: list[EntryDifference] = []
    lost: list[str] = []
    segments: dict[str, Entry] = {}
    for change in changes:
        ours = store.entry(change.name)
        segment = segment_name(change.name)
        if segment is None:
            mine[change.name], theirs[change.name] = ours, change.theirs
        elif segment.dev in devices:
            staying, more, whole = _one_segment(replica, change.name, ours, change.theirs)
            lines += [(segment.scope, line) for line in more]
            segments[change.name] = staying
            differences.append(EntryDifference(change.name, staying, staying))
            if not whole:
                lost.append(change.name)
        else:
            differences.append(change)
    frame = store.frame
    before, others = State(frame.ctx, mine), State(ctx, theirs)
    after, others, crowded = adopt_fork(before, others, devices, replica.device.id, replica.is_mine)
    adopted = {
        name: sign_entry(replica, name, after.entries.get(name, {}))
        for name in mine
        if after.entries.get(name, {}) != mine[name]
    }
    if adopted or segments:
        note_others(replica, adopted)
        store.apply(adopted | segments, StateHeader(after.ctx, frame.seen, frame.hlc))
    new_keys, incomplete, untouched = _write_under_own_keys(replica, crowded)
    differences += [EntryDifference(name, store.entry(name), others.entries.get(name, {})) for name in theirs]
    was = {**untouched, **{name: mine[name] for name in adopted}}
    return AdoptionResult(differences, lines, was, new_keys, sorted({*lost, *incomplete}))


def _write_under_own_keys(
    replica: Replica, crowded: dict[str, list[Value]]
) -> tuple[list[str], list[str], dict[str, Entry]]:
    """Write texts over the limit of an entry under their own, deterministic keys.

    Return these keys, the entries with a text that could not be kept (not a memory, or available nowhere),
    and the written entries as they were.
    """
    writing = Writing(replica)
    new_keys: list[str] = []
    without: list[str] = []
    before: dict[str, Entry] = {}
    for name, values in crowded.items():
        memory = memory_name(name)
        for value in values:
            body = replica.store.body(name, value)
            if memory is None or value.body is None or body is None:
                without.append(name)
                continue
            key = f"{memory.key[:_STEM]}-{value.body[:16]}"
            there = memory_entry(key, memory.scope)
            if all(other.body != value.body for other in writing.entry(there).values()):
                before.setdefault(there, {**writing.entry(there)})
                try:
                    writing.write_alternative(there, body, of=value.author)
                except (NotFoundError, LimitError):  # the scope was forgotten, or is full too
                    without.append(name)
                    continue
            new_keys.append(key)
    writing.commit()
    return sorted(set(new_keys)), without, before


def _one_segment(replica: Replica, name: str, mine: Entry, theirs: Entry) -> tuple[Entry, list[bytes], bool]:
    """Resolve a segment of a forked device: the remaining value, the lines that move, and whether all texts were local.

    The greatest value remains if both copies have one. A value whose text no device has is dropped, or two devices
    would differ in it forever.
    """
    if mine.keys() == theirs.keys() and all(same_identity(mine[dot], theirs[dot]) for dot in mine):
        return mine, [], True
    values = [(dot, value) for entry in (mine, theirs) for dot, value in entry.items()]
    texts = [replica.store.body(name, value) for _, value in values]
    whole = None not in texts
    staying: Entry = {}
    if mine and theirs and whole:
        dot, value = max(values, key=lambda item: (int(item[0][17:]), item[1].body or ""))
        staying = {dot: value}
    lines = [line for text in texts if text is not None for line in segment_lines(text)]
    return staying, list(dict.fromkeys(lines)), whole


def append_new_lines(replica: Replica, lines: list[Line]) -> list[Line]:
    """Append the lines missing from all segments, each with its scope, to our own segments; return them."""
    if not lines:
        return []
    there: set[Line] = set()
    by_scope: dict[str, list[bytes]] = {}
    for scope, line in lines:
        by_scope.setdefault(scope, []).append(line)
    segments = replica.store.segments_of(by_scope)
    for scope, new in by_scope.items():
        days = {day_of(event["ts"]) for event in parse_lines(b"\n".join(new) + b"\n")}
        for segment, entry in segments.get(scope, ()):
            if segment.day in days:
                for value in entry.values():
                    body = replica.store.body(segment.entry, value) or b""
                    there.update((scope, line) for line in lines_of(body))
    fresh = [line for line in lines if line not in there]
    append_moved(replica, fresh)
    return fresh
