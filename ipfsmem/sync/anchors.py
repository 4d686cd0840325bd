"""When an unlocked root moves its name to the ring that is known here, and what it means that somebody moved it back.

Format section 7. Whoever moves an anchor first joins what it shows. What it shows may be lost at the provider: then one device
reads it and the other does not, and each would move the name to its own ring for ever. It decides and remembers, in a row
each; it asks no provider.
"""

from __future__ import annotations

import contextlib
from typing import Final

import msgspec

from ipfsmem.canonical import read_json
from ipfsmem.content.cid import CID, ipns_name
from ipfsmem.device.replica import Replica
from ipfsmem.device.tables import meta, placed
from ipfsmem.errors import FormatError, LimitError, MembershipError
from ipfsmem.published.ipns_record import Record
from ipfsmem.ring.keyring import Ring
from ipfsmem.sync.anchor_pins import ring_tree
from ipfsmem.sync.names import ANCHOR_LIFE_MS, half_spent, target
from ipfsmem.sync.run import Run
from ipfsmem.sync.steps import Joined
from ipfsmem.wallet.root_keys import RootKeys

_MOST_REPLACED: Final = 16


def move_anchor(run: Run, joined: Joined, root: RootKeys) -> None:
    """Sign a record of the root's name that leads to our ring, where it leads elsewhere or half of its life is spent (inside a
    transaction)."""
    value = f"/ipfs/{build_ring_root(run.replica)}"
    known = run.names.known(ipns_name(root.head_public))
    if known is not None and not half_spent(known, run.replica.world.now(), ANCHOR_LIFE_MS):
        leave = known.value == value or not _may_replace(run, joined, known, value)
        if leave:
            return
    run.names.sign(root.head_seed, root.head_public, value, ANCHOR_LIFE_MS)


def _may_replace(run: Run, joined: Joined, shown: Record, ours: str) -> bool:
    """Whether the name may leave what it shows. What was read is in our ring. What could not be read is replaced, for nobody
    may have it any more, but by one ring of ours only once: where it stands again, a device has it and stands by it."""
    with contextlib.suppress(FormatError):
        leads = target(shown)
        if not isinstance(leads, CID) or leads in joined.found.ring_roots or leads in joined.heads:
            return True
    db = run.replica.db
    stored = db.get_meta(meta.ANCHORS_REPLACED)
    replaced = read_json(stored, type=dict[str, str]) if stored else {}
    if replaced.get(shown.value) == ours:
        run.notices.say(
            "anchor-unread",
            "the list of members to which this wallet leads new devices cannot be read, and a device that has it stands by it: "
            "sync the other devices, and where that does not help: ipfsmem providers check --repair",
            f"the anchor leads to {shown.value}, which cannot be read, and was moved away from it once",
        )
        return False
    replaced.pop(shown.value, None)
    kept = [*replaced.items(), (shown.value, ours)][-_MOST_REPLACED:]
    db.set_meta(meta.ANCHORS_REPLACED, msgspec.json.encode(dict(kept)))
    return True


def is_anchor_behind(run: Run, anchored: Ring | None) -> bool:
    """Whether everything is to be looked at in this sync, for anchors lead to less (`anchored`) than what this device put
    there: whoever moved them could not read that. Once for each such move. Before a root that is at hand says more."""
    replica = run.replica
    if replica.ring is None or anchored is None or anchored.join(replica.ring) == anchored:
        return False
    shown = _anchor_now(run)
    if replica.db.get_meta(meta.ANCHOR_BEHIND) == shown:
        return False
    try:
        with replica.transaction():
            ring_root = str(build_ring_root(replica))
    except (MembershipError, LimitError):  # no ring that this device can make, so none that it put there
        return False
    return bool(placed.providers_of(replica.db.connection, ring_root))


def note_all_looked_at(run: Run) -> None:
    """All was looked at because of a doubt."""
    with run.replica.transaction():
        run.replica.db.set_meta(meta.ANCHOR_BEHIND, _anchor_now(run))


def _anchor_now(run: Run) -> bytes:
    """What the vault's anchor shows now, and which move of it that is."""
    record = run.names.known(ipns_name(run.anchor))
    return f"{record.sequence} {record.value}".encode() if record is not None else b""


def build_ring_root(replica: Replica) -> CID:
    """Make the root that holds nothing but keyring.json, to which anchors point, and keep its blocks (inside a transaction)."""
    assert replica.ring is not None
    tree = ring_tree(replica.ring.serialise())
    replica.db.add_blocks((cid.digest, data) for cid, data in tree.blocks)
    return tree.cid
