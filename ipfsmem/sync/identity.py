"""When this device's state turns out to be restored or copied: a new id, and every text of the old one kept.

Format section 5, "A counter is never used twice": the device signs its own successor, moves to the new id what it wrote
and the other copy's head does not hold identically, and only then joins that head.
"""

from __future__ import annotations

from ipfsmem.bundle.timeline import parse_lines
from ipfsmem.causal.restore import Held, check_own_pairs, lines_to_move, step_back, values_to_move
from ipfsmem.causal.state import State
from ipfsmem.causal.value import Entry
from ipfsmem.errors import MembershipError
from ipfsmem.replica.events import Timeline
from ipfsmem.replica.identity import Device
from ipfsmem.replica.replica import Replica
from ipfsmem.replica.store import Frame
from ipfsmem.replica.writing import Writing, sign_entry
from ipfsmem.seal import ring_ops
from ipfsmem.seal.derive import RootKeys
from ipfsmem.seal.ring import Ring
from ipfsmem.sync.heads import Head
from ipfsmem.sync.join import Change


def drawn_pairs(replica: Replica) -> dict[int, str]:
    """Every pair (n, r) that this device drew under its present id."""
    rows = replica.db.connection.execute("SELECT n, r FROM pairs WHERE device=?", (replica.device.id,))
    return {n: bytes(r).hex() for n, r in rows}


def stranger_to_itself(replica: Replica, heads: list[Head]) -> Head | None:
    """A head that shows a pair of this device which it never drew: the one that counted furthest, or None."""
    drawn = drawn_pairs(replica)
    found: list[tuple[int, str, Head]] = []
    for head in heads:
        seen = head.commit.commit.ctx.get(replica.device.id)
        if seen is not None and not check_own_pairs(drawn, seen.n, seen.r):
            found.append((seen.n, seen.r, head))
    return max(found, key=lambda item: item[:2])[2] if found else None


def new_identity(replica: Replica, root: RootKeys | None) -> Device:
    """Take another signing key and say so in the ring (inside a transaction). Raises MembershipError."""
    old = replica.device
    device = old.successor(replica.world.random)
    ring = replica.ring
    if ring is not None and old.id in ring.view.members:
        replica.set_ring(_succeed(replica, ring, old, device, root))
    replica.set_device(device)
    replica.note_place()
    return device


def _succeed(replica: Replica, ring: Ring, old: Device, device: Device, root: RootKeys | None) -> Ring:
    since = replica.store.frame.hlc
    try:
        return ring_ops.successor(ring, old.signer, device.sign_public, since=since)
    except MembershipError:
        if root is None:
            raise
        # The chain is at its end: the wallet enrols the device like a new one, with its own box key.
        public = ring_ops.Device(device.sign_public, device.box_public, replica.config.label)
        return ring_ops.enrol(ring, root.admin, public, "writer", since=since)


def move_values(replica: Replica, old: str, changes: list[Change] | None) -> tuple[list[bytes], list[Change]]:
    """Move what the other copy's head (described by `changes`) does not hold (inside a transaction). None: there is no
    head of this id, and everything moves: a value that stayed behind would have no signed counter to stand under.

    Returns the lines of the timeline that have to be appended once the head is joined, and everything that this join
    has to bring: the old id's values go from here whole, so also those that the head holds as we did.
    """
    store = replica.store
    differing = {change.name: change.theirs for change in changes or ()}
    entries: dict[str, Entry] = {
        name: entry for name, entry in store.entries() if any(dot[:16] == old for dot in entry)
    }

    def there(name: str) -> Entry:
        if changes is None:
            return {}
        # What does not differ stands in the head as it does here.
        return differing[name] if name in differing else entries.get(name, {})

    frame = store.frame
    moves = values_to_move(entries, old, 0, there)
    lines = [line for held in moves.segments for line in _lines_left(replica, held, there(held.entry))]
    stepped = step_back(State(frame.ctx, entries), old, 0, moves, replica.device.id)
    seen = {device: pair for device, pair in frame.seen.items() if device != old}
    store.apply(
        {name: sign_entry(replica, name, stepped.entries.get(name, {})) for name in entries},
        Frame(stepped.ctx, seen, frame.hlc),
    )
    same = [Change(name, {}, entry) for name, entry in entries.items() if name not in differing]
    return lines, [*(changes or ()), *same]


def _lines_left(replica: Replica, held: Held, there: Entry) -> list[bytes]:
    mine = replica.store.body(held.entry, held.value) or b""
    theirs: list[bytes] = []
    for value in there.values():
        theirs += (replica.store.body(held.entry, value) or b"").splitlines()
    return lines_to_move(mine.splitlines(), theirs)


def append_lines(replica: Replica, lines: list[bytes]) -> None:
    """Append moved timeline lines to segments of the new id (inside a transaction)."""
    if lines:
        change = Writing(replica)
        Timeline(replica).add_lines(change, parse_lines(b"\n".join(lines) + b"\n"))
        change.commit()
