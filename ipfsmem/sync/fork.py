"""Forks: two copies of one device wrote under the same counters, or its key is no longer known to the ring.

Format section 5. The first head is joined and the second held, until somebody has said whose the old id is: it has a
successor, it was revoked, or its key was pushed out of the ring. Then whoever holds a head writes both copies' differing
texts under its own dots and joins, so that nothing stays apart for ever. Must run inside a transaction; fetches nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from ipfsmem.bundle.timeline import day_of, parse_lines
from ipfsmem.causal.entries import memory_name, segment_name
from ipfsmem.causal.restore import adopt_fork, equivocation
from ipfsmem.causal.state import Change, State, clashes_of, seen_counts
from ipfsmem.causal.value import MAX_DOTS, Entry, Value
from ipfsmem.errors import NotFoundError
from ipfsmem.replica.events import append_moved
from ipfsmem.replica.others import note_others
from ipfsmem.replica.replica import Replica
from ipfsmem.replica.store import Frame
from ipfsmem.replica.writing import sign_entry
from ipfsmem.seal.ring import Ring
from ipfsmem.sync.heads import Head


def forked_devices(changes: Iterable[Change], head: Head, replica: Replica) -> set[str]:
    """Devices of which this head shows another copy than we joined: two r at one n, or one dot with two identities.

    A dot names one write of one entry, so the same dot in two entries is two identities as well.
    """
    store = replica.store
    here = [Change(change.name, store.entry(change.name), change.theirs) for change in changes]
    return {*equivocation(store.frame.seen, head.ctx), *(clash.dot[:16] for clash in clashes_of(here))}


def settled(ring: Ring, device: str) -> bool:
    """Whether nobody will write under this id any more: it has a successor, is out, or has no key in the ring."""
    return ring.view.given_up(device)


def orphans(replica: Replica) -> set[str]:
    """Devices of whom we hold counters, and whose key no statement of the ring gives any more.

    A root that revokes an admin ends what that one enrolled, and of very many successors a ring keeps eight. Nobody could
    verify their values in our commits.
    """
    ring = replica.ring
    if ring is None:
        return set()
    frame = replica.store.frame
    known = ring.view.keys_of
    return {device for device in (*frame.ctx, *frame.seen) if device not in known} - {replica.device.id}


def adopt_orphans(replica: Replica, devices: set[str]) -> None:
    """Take over the texts of devices without a key: they go on under our own dots, their counters go."""
    entries = {
        name: entry for name, entry in replica.store.entries() if any(dot[:16] in devices for dot in entry)
    }
    changes = [Change(name, entry, {}) for name, entry in entries.items()]
    _, lines = adopt(replica, changes, {}, devices)
    frame = replica.store.frame
    ctx = {device: n for device, n in frame.ctx.items() if device not in devices}
    seen = {device: pair for device, pair in frame.seen.items() if device not in devices}
    replica.store.apply({}, Frame(ctx, seen, frame.hlc))
    append_new_lines(replica, lines)


def crowded_keys(replica: Replica, devices: set[str]) -> list[str]:
    """The keys of memories that hold a text of `devices` beside as many of our own as there may be."""
    own = replica.device.id
    found = []
    for name, entry in replica.store.entries():
        memory = memory_name(name)
        ids = [dot[:16] for dot in entry]
        if memory is not None and not devices.isdisjoint(ids) and ids.count(own) >= MAX_DOTS:
            found.append(memory.key)
    return sorted(found)


def adopt_head(
    replica: Replica, changes: list[Change], head: Head, devices: set[str]
) -> tuple[list[Change], list[tuple[str, bytes]]]:
    """Make a held head joinable: what is left of it to join, and timeline lines to append when that is done.

    Raises LimitError when this device would hold more than four texts of one memory that do not know of each other,
    NotFoundError when lines that would have to move are not at hand. Nothing has changed then.
    """
    return adopt(replica, changes, seen_counts(head.ctx), devices)


def adopt(
    replica: Replica, changes: list[Change], ctx: dict[str, int], devices: set[str]
) -> tuple[list[Change], list[tuple[str, bytes]]]:
    """Write the differing texts of `devices` under our own dots; see `adopt_head`."""
    store = replica.store
    mine: dict[str, Entry] = {}
    theirs: dict[str, Entry] = {}
    lines: list[tuple[str, bytes]] = []
    left: list[Change] = []
    segments: dict[str, Entry] = {}
    for change in changes:
        ours = store.entry(change.name)
        segment = segment_name(change.name)
        if segment is None:
            mine[change.name], theirs[change.name] = ours, change.theirs
        elif segment.dev in devices:
            kept, more = _one_segment(replica, change.name, ours, change.theirs)
            lines += [(segment.scope, line) for line in more]
            segments[change.name] = kept
            left.append(Change(change.name, kept, kept))
        else:
            left.append(change)
    frame = store.frame
    before, others = State(frame.ctx, mine), State(ctx, theirs)
    after, others = adopt_fork(before, others, devices, replica.device.id, replica.is_mine)
    taken = {
        name: sign_entry(replica, name, after.entries.get(name, {}))
        for name in mine
        if after.entries.get(name, {}) != mine[name]
    }
    if taken or segments:
        note_others(replica, taken)
        store.apply(taken | segments, Frame(after.ctx, frame.seen, frame.hlc))
    left += [Change(name, store.entry(name), others.entries.get(name, {})) for name in theirs]
    return left, lines


def _one_segment(replica: Replica, name: str, mine: Entry, theirs: Entry) -> tuple[Entry, list[bytes]]:
    """A segment of a forked device: the greatest value stays where both have one, lines of the others move."""
    values = [(dot, value) for entry in (mine, theirs) for dot, value in entry.items()]
    kept: Entry = {}
    if mine and theirs:
        dot, value = max(values, key=lambda item: (int(item[0][17:]), item[1].body or ""))
        kept = {dot: value}
    lines = [line for _, value in values for line in _lines(replica, name, value)]
    return kept, list(dict.fromkeys(lines))


def _lines(replica: Replica, name: str, value: Value) -> list[bytes]:
    text = replica.store.body(name, value)
    if text is None:
        raise NotFoundError(f"a part of the timeline ({name}) is not fetched yet")
    return text.splitlines()


def append_new_lines(replica: Replica, lines: list[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    """Append those of the lines, each with its scope, that stand in no segment there, to segments of our own; which."""
    if not lines:
        return []
    there: set[tuple[str, bytes]] = set()
    for scope in {scope for scope, _ in lines}:
        text = b"\n".join(line for where, line in lines if where == scope) + b"\n"
        days = {day_of(event["ts"]) for event in parse_lines(text)}
        for segment, entry in replica.store.segments(scope):
            if segment.day in days:
                for value in entry.values():
                    body = replica.store.body(segment.entry, value) or b""
                    there.update((scope, line) for line in body.splitlines())
    fresh = [line for line in lines if line not in there]
    append_moved(replica, fresh)
    return fresh
