"""Move the anchor, the name that leads to the ring, and detect that another device moved it back (format section 7).

A device joins the ring at an anchor before it moves the anchor. If a provider lost that ring, some devices can read
it and others cannot; without a limit, each would move the anchor to its own ring forever. No provider is called here.
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
from ipfsmem.published.ipns_record import IpnsRecord
from ipfsmem.ring.keyring import Ring
from ipfsmem.sync.anchor_pins import ring_tree
from ipfsmem.sync.context import SyncContext
from ipfsmem.sync.names import ANCHOR_LIFE_MS, half_spent, target
from ipfsmem.sync.steps import Joined
from ipfsmem.wallet.root_keys import RootKeys

_MAX_REPLACED: Final = 16


def move_anchor(run: SyncContext, joined: Joined, root: RootKeys) -> None:
    """Sign a record of the root's name for our ring, if the name leads elsewhere or half of the record's life is over
    (inside a transaction)."""
    value = f"/ipfs/{build_ring_root(run.replica)}"
    record = run.names.known(ipns_name(root.head_public))
    if record is not None and not half_spent(record, run.replica.environment.now(), ANCHOR_LIFE_MS):
        leave = record.value == value or not _may_replace(run, joined, record, value)
        if leave:
            return
    run.names.sign(root.head_seed, root.head_public, value, ANCHOR_LIFE_MS)


def _may_replace(run: SyncContext, joined: Joined, shown: IpnsRecord, ours: str) -> bool:
    """Tell whether the anchor may be moved from its current target.

    A readable ring is part of ours. An unreadable ring may be lost, so it is replaced, but only once by the same ring
    of ours: if the anchor leads to it again, a device that can read it moved the anchor back.
    """
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
            "the list of members of this wallet cannot be read, but a device that has it confirms it: sync the other devices; if that does not help: ipfsmem provider check --repair",
            f"the anchor points to {shown.value}, which cannot be read, and the anchor was moved away from it before",
        )
        return False
    replaced.pop(shown.value, None)
    newest = [*replaced.items(), (shown.value, ours)][-_MAX_REPLACED:]
    db.set_meta(meta.ANCHORS_REPLACED, msgspec.json.encode(dict(newest)))
    return True


def is_anchor_behind(run: SyncContext, anchored: Ring | None) -> bool:
    """Tell whether anchors lead to a ring (`anchored`) that lacks a part of the ring that this device put there.

    The device that moved them could not read ours. This sync then checks every block, once per such move. Call it
    before an unlocked root moves its anchor.
    """
    replica = run.replica
    if replica.ring is None or anchored is None or anchored.join(replica.ring) == anchored:
        return False
    anchor_now = _anchor_now(run)
    if replica.db.get_meta(meta.ANCHOR_BEHIND) == anchor_now:
        return False
    try:
        with replica.transaction():
            ring_root = str(build_ring_root(replica))
    except (MembershipError, LimitError):  # this device cannot serialise the ring, so it did not put it there
        return False
    return bool(placed.providers_of(replica.db.connection, ring_root))


def note_full_check(run: SyncContext) -> None:
    """Record that every block was checked for the current value of the anchor."""
    with run.replica.transaction():
        run.replica.db.set_meta(meta.ANCHOR_BEHIND, _anchor_now(run))


def _anchor_now(run: SyncContext) -> bytes:
    """Return the current value of the vault's anchor with its record's sequence number."""
    record = run.names.known(ipns_name(run.anchor))
    return f"{record.sequence} {record.value}".encode() if record is not None else b""


def build_ring_root(replica: Replica) -> CID:
    """Build the root with only keyring.json, to which anchors point, and store its blocks (inside a transaction)."""
    assert replica.ring is not None
    tree = ring_tree(replica.ring.serialise())
    replica.db.add_blocks((cid.digest, data) for cid, data in tree.blocks)
    return tree.cid
