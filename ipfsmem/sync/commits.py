"""Prepare the next published version of this device: signed pair, commit and root, durable before sending (format 7).

If a verified head has the same state, no commit is made: the name points at that head's root if its tree is complete,
else the same commit is put into a complete tree. A root names only blocks that its device has. No provider is called
here.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

import msgspec

from ipfsmem.causal.value import DeviceCounter, sign_seen
from ipfsmem.content.cid import CID, parse_cid
from ipfsmem.device.replica import Replica
from ipfsmem.device.root_folders import add_arrived_objects
from ipfsmem.device.state import StateHeader, locations
from ipfsmem.device.tables import heads, marks, meta, pairs
from ipfsmem.device.writing import seal_entry, sign_entry
from ipfsmem.published.commit import Commit, SignedCommit, plain_commit, seal_commit, sign_commit
from ipfsmem.published.layout import Layout
from ipfsmem.published.root_verification import Head
from ipfsmem.seal.objects import Sealer
from ipfsmem.sync.local_repair import note_whole, recount_when_due


class Prepared(msgspec.Struct, frozen=True):
    """The next target of this device's name. `new`: its commit is new. `own`: this device made the commit.

    `equivalent_roots`: roots of heads with the same commit and another tree. A complete one replaces `root`, so that
    all devices converge on one root.
    """

    root: CID
    commit: SignedCommit
    new: bool
    own: bool
    equivalent_roots: tuple[CID, ...] = ()


class _LastCommit(msgspec.Struct):
    """This device's last commit, stored to resend it after a crash and to compare it with the next one."""

    device: str
    c: int
    json: bytes
    signature: bytes
    root: str


def prepare(replica: Replica, layout: Layout, heads: Iterable[Head], prev: Iterable[str]) -> Prepared:
    """Decide what to publish and make it durable (inside a transaction).

    Raises MembershipError if no key may seal.
    """
    ring = replica.ring
    assert ring is not None and replica.vault_tag is not None
    _sign_pending(replica)
    keyring = ring.serialise()
    _seal_pending(replica)
    tree = replica.store.checkpoint(folders=True)
    recount_when_due(replica)
    seen = _draw_pair(replica)
    last = _last_commit(replica)
    sealing = ring.view.sealing
    commit = sign_commit(
        replica.device.signer,
        Commit(
            c=next_number(replica),
            ctx=seen,
            dev=replica.device.id,
            ek="" if ring.plain or sealing is None else sealing.id,
            h=replica.store.frame.hlc,
            prev=sorted({*prev, *([sha256(last.json).hexdigest()] if last else [])}),
            ring=sha256(keyring).hexdigest(),
            state=tree.digest.hex(),
            vault=replica.vault_tag.hex(),
        ),
    )
    came = add_arrived_objects(replica.db)
    whole = replica.db.get_meta(meta.WHOLE)
    equal = [head for head in heads if head.commit.says_the_same(commit.commit)]
    if equal:
        commit = max((head.commit for head in equal), key=lambda one: one.digest)
        roots = {head.root for head in equal if head.commit.digest == commit.digest}
    elif last is not None and _signed(last).says_the_same(commit.commit):
        commit = _signed(last)
        roots = {parse_cid(last.root)}
    else:
        roots = set()
    own = commit.commit.dev == replica.device.id
    same = next((root for root in roots if str(root).encode() == whole), None)
    if same is not None and not came and replica.db.has_block(same.digest):
        return Prepared(same, commit, False, own)
    head = (
        plain_commit(commit)
        if ring.plain or sealing is None
        else seal_commit(commit, Sealer(sealing, ring.vault))
    )
    root = layout.build(replica, head, keyring)
    note_whole(replica.db, root)
    if not roots or (own and last is not None and last.c == commit.commit.c):
        _keep_commit(replica, commit, root)
    equivalent_roots = () if root in roots else tuple(sorted(roots, key=str))
    return Prepared(root, commit, not roots, own, equivalent_roots if equal else ())


def next_number(replica: Replica) -> int:
    """Return the number of this device's next commit: the greatest number of its commits that it made or saw, plus
    one.

    A device that was restored from a snapshot, after which it only published joined states, keeps its id. If it
    reused a number that other devices know, it would look like another copy of itself.
    """
    last = _last_commit(replica)
    db, device = replica.db.connection, replica.device.id
    mark = marks.get(db, device)
    return max(last.c if last else 0, mark.number if mark else 0, heads.last_number(db, device)) + 1


def waiting_root(replica: Replica) -> CID | None:
    """Return the root of this device's last commit, possibly unpublished; None before the first."""
    last = _last_commit(replica)
    return parse_cid(last.root) if last is not None else None


def _sign_pending(replica: Replica) -> None:
    """Sign the values that were written before there was a vault."""
    store = replica.store
    if replica.db.get_meta(meta.SIGNED) == b"1":
        return
    pending = {name: sign_entry(replica, name, entry) for name, entry in store.unsigned()}
    if pending:
        store.apply(pending, store.frame)
    replica.db.set_meta(meta.SIGNED, b"1")


def _seal_pending(replica: Replica) -> None:
    """Seal bodies that were written without an epoch key, since those under the device's own key cannot be published.

    Also re-seal bodies under a key that the ring no longer names, which later members could not open.
    """
    store, ring, db = replica.store, replica.ring, replica.db
    if ring is None or ring.plain:
        return
    stray = db.get_meta(meta.STRAY) == b"1"
    if not stray and db.get_meta(meta.LOCAL_BODIES) != b"1":
        return
    names = ring.view.names
    changes, blocks = {}, []
    epoch_ids: set[str] = set()
    for name, entry in store.entries():
        if any(loc.ek not in names for loc in locations(entry)):
            sealed, new = seal_entry(replica, name, entry)
            blocks += new
            if sealed != entry:
                changes[name] = sealed
            epoch_ids.update(loc.ek for loc in locations(sealed))
    store.apply(changes, store.frame, blocks)
    db.set_meta(meta.LOCAL_BODIES, b"0")
    if stray:
        store.checkpoint(folders=True)  # nodes use the current sealing key
        db.set_meta(meta.STRAY, b"0")
        replica.set_ring(ring.without_spare(epoch_ids))


def _draw_pair(replica: Replica) -> dict[str, DeviceCounter]:
    """Return the signed pairs for a commit; a new one for this device if it wrote since the last (stored with them)."""
    store, device = replica.store, replica.device
    frame = store.frame
    n = frame.ctx.get(device.id, 0)
    mine = frame.seen.get(device.id)
    if n == 0 or (mine is not None and mine.n == n):
        return frame.seen
    assert replica.vault_tag is not None
    r = replica.environment.random(8)
    pair = sign_seen(device.signer, replica.vault_tag, device.id, n, r.hex())
    pairs.add(replica.db.connection, device.id, n, r)
    seen = {**frame.seen, device.id: pair}
    store.apply({}, StateHeader(frame.ctx, seen, frame.hlc))
    store.checkpoint(folders=True)
    return seen


def _last_commit(replica: Replica) -> _LastCommit | None:
    stored = replica.db.get_meta(meta.COMMIT)
    if stored is None:
        return None
    own = msgspec.json.decode(replica.codec.open_row(stored), type=_LastCommit)
    return own if own.device == replica.device.id else None


def _signed(own: _LastCommit) -> SignedCommit:
    return SignedCommit(msgspec.json.decode(own.json, type=Commit), own.json, own.signature)


def _keep_commit(replica: Replica, commit: SignedCommit, root: CID) -> None:
    own = _LastCommit(replica.device.id, commit.commit.c, commit.json, commit.signature, str(root))
    replica.db.set_meta(meta.COMMIT, replica.codec.seal_row(msgspec.json.encode(own)))
