"""Publishing: checkpoint, draw a pair, sign a commit, lay out a root, send what the provider lacks, move the name.

Format section 7. Everything that a crash must not lose is on disk before anything leaves: the pair, the commit, the
root. When a verified head already says the same, no commit is made: the name points at that head's root where its tree
holds all that this device holds, else the same commit goes into a tree that does. A root names only what its maker has,
and nothing is pinned or named of which a block is neither here nor there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Protocol

import msgspec

from ipfsmem.causal.value import Seen, sign_seen
from ipfsmem.content.cid import CID, PB_PREFIX, parse_cid
from ipfsmem.content.dagpb import decode_link, link_fields
from ipfsmem.content.reader import Reader
from ipfsmem.device.bulk import not_here, read_blocks
from ipfsmem.device.database import Database
from ipfsmem.device.replica import Replica
from ipfsmem.device.root_folders import add_file, add_folder, hold_what_came, let_go
from ipfsmem.device.state import Frame, located
from ipfsmem.device.tables import heads, marks, meta, pairs
from ipfsmem.device.writing import seal_entry, sign_entry
from ipfsmem.errors import MissingError
from ipfsmem.provider.contract import MAX_BATCH, Provider, same_root
from ipfsmem.published.commit import SignedCommit, make_commit, plain_commit, seal_commit
from ipfsmem.published.live import live_set
from ipfsmem.published.opening import Head
from ipfsmem.seal.objects import Sealer

if TYPE_CHECKING:
    from ipfsmem.content.fetch import Fetch

_DAY_MS = 24 * 3_600_000
#: Blocks read from the database together: a megabyte or so.
_AT_ONCE = 250
#: New blocks beside a root that is there: fewer are sent without asking, which may cost an index of all that is there.
_FEW = 64


class Layout(Protocol):
    """What a root of this mode holds beside its commit and ring."""

    def ahead(self, replica: Replica) -> None:
        """What can be done before `build`, while others may write."""
        ...

    def build(self, replica: Replica, head: bytes, keyring: bytes) -> CID:
        """Put the blocks of the root among the replica's blocks; answer its CID (inside a transaction)."""
        ...


class Prepared(msgspec.Struct, frozen=True):
    """What this device's name is to point at, and whether that is a commit of its own made just now.

    `rivals`: roots of heads with the same commit and another tree. One that holds all that this device holds goes before
    `root`, so that all devices end on one.
    """

    root: CID
    commit: SignedCommit
    new: bool
    own: bool
    rivals: tuple[CID, ...] = ()


class _Own(msgspec.Struct):
    """This device's last commit, kept to be sent again after a crash and compared before a new one is made."""

    device: str
    c: int
    json: bytes
    signature: bytes
    root: str


def prepare(replica: Replica, layout: Layout, heads: Iterable[Head], prev: Iterable[str]) -> Prepared:
    """Decide what to publish, and make it durable (inside a transaction).

    Raises MembershipError when no key may seal.
    """
    ring = replica.ring
    assert ring is not None and replica.vault_tag is not None
    _sign_pending(replica)
    keyring = ring.serialise()
    _seal_pending(replica)
    tree = replica.store.checkpoint(folders=True)
    _recount_when_due(replica)
    seen = _draw_pair(replica)
    last = _last_commit(replica)
    sealing = ring.view.sealing
    commit = make_commit(
        replica.device.signer,
        c=next_number(replica),
        ctx=seen,
        dev=replica.device.id,
        ek="" if ring.plain or sealing is None else sealing.id,
        h=replica.store.frame.hlc,
        prev={*prev, *([sha256(last.json).hexdigest()] if last else [])},
        ring=sha256(keyring).hexdigest(),
        state=tree.digest.hex(),
        vault=replica.vault_tag.hex(),
    )
    came = hold_what_came(replica.db)
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
    known = next((root for root in roots if str(root).encode() == whole), None)
    if known is not None and not came and replica.db.has_block(known.digest):
        return Prepared(known, commit, False, own)
    head = (
        plain_commit(commit)
        if ring.plain or sealing is None
        else seal_commit(commit, Sealer(sealing, ring.vault))
    )
    root = layout.build(replica, head, keyring)
    note_whole(replica.db, root)
    if not roots or (own and last is not None and last.c == commit.commit.c):
        _keep_commit(replica, commit, root)
    rivals = () if root in roots else tuple(sorted(roots, key=str))
    return Prepared(root, commit, not roots, own, rivals if equal else ())


def _recount_when_due(replica: Replica) -> None:
    """Once a day: a disk that changed a count would take an object out of the root that is still named."""
    db, now = replica.db, replica.world.now()
    stored = db.get_meta(meta.COUNTED)
    if stored is not None:
        if now - _DAY_MS < int(stored) <= now:
            return
        if replica.store.recount():
            db.set_meta(meta.WHOLE, b"")
    db.set_meta(meta.COUNTED, str(now).encode())


def recount_now(db: Database) -> None:
    """Rows of objects were lost: the next publish counts them anew (inside a transaction)."""
    db.set_meta(meta.COUNTED, b"0")


def counting_anew(db: Database) -> bool:
    """Whether rows of objects were lost and are not counted anew yet: what they do not name may be needed all the same."""
    return db.get_meta(meta.COUNTED) == b"0"


def next_number(replica: Replica) -> int:
    """The number of this device's next commit: one more than that of its last, and of any that it was shown as its own.

    A device that went back to a snapshot, and had published nothing but what it joined since, keeps its id and counts on;
    with a number that others have seen before it would be taken for another copy of itself.
    """
    last = _last_commit(replica)
    db, device = replica.db.connection, replica.device.id
    mark = marks.get(db, device)
    return max(last.c if last else 0, mark.number if mark else 0, heads.last_number(db, device)) + 1


def note_whole(db: Database, root: CID) -> None:
    """Remember that the tree of a root holds all that this device holds of the state (inside a transaction)."""
    db.set_meta(meta.WHOLE, str(root).encode())


def leave_out(db: Database, digests: Iterable[bytes]) -> None:
    """Objects that turned out to be lost stand in no root from now on, are asked for again, and the tree is made anew
    (inside a transaction)."""
    if let_go(db, digests):
        db.set_meta(meta.LACKING, b"1")
    db.set_meta(meta.WHOLE, b"")


def miss(db: Database) -> None:
    """A text turned out not to be here: the next sync asks for it, and for objects whose bytes the disk changed, whichever
    process syncs (inside a transaction)."""
    if gone := db.drop_damaged():
        leave_out(db, gone)
    db.set_meta(meta.LACKING, b"1")


def waiting_root(replica: Replica) -> CID | None:
    """The root of this device's last commit, which may still wait to be published; None before the first."""
    last = _last_commit(replica)
    return parse_cid(last.root) if last is not None else None


def holds_all_of(reader: Reader, ours: CID, theirs: CID) -> Fetch[bool]:
    """Whether the tree of `theirs` has every file of the tree of `ours`, which was made for the same commit.

    Compared by their places: a provider may lay files out in its own way. Subtrees that both have are not read.
    """
    folders: set[CID] = set()

    def note(_: str, cid: CID) -> bool:
        folders.add(cid)
        return True

    yield from reader.walk(ours, enter=note)
    shared: set[CID] = set()

    def is_new(_: str, cid: CID) -> bool:
        if cid in folders:
            shared.add(cid)
        return cid not in folders

    there = yield from reader.walk(theirs, enter=is_new)
    here = yield from reader.walk(ours, enter=lambda _, cid: cid not in shared)
    return here.keys() <= there.keys()


def build_ring_root(replica: Replica) -> CID:
    """A root that holds nothing but keyring.json: what anchors point at (inside a transaction)."""
    assert replica.ring is not None
    db = replica.db
    cid, _ = add_folder(db, [(b"keyring.json", *add_file(db, replica.ring.serialise()))])
    return CID(1, 0x70, cid[2:])


def _sign_pending(replica: Replica) -> None:
    """Sign what was written while there was no vault."""
    store = replica.store
    if replica.db.get_meta(meta.SIGNED) == b"1":
        return
    pending = {name: sign_entry(replica, name, entry) for name, entry in store.unsigned()}
    if pending:
        store.apply(pending, store.frame)
    replica.db.set_meta(meta.SIGNED, b"1")


def _seal_pending(replica: Replica) -> None:
    """Seal what was written while no epoch key could, for bodies under the device's own key never leave it, and anew what
    lies under a key that the ring does not name (any more): whoever comes later could not open it."""
    store, ring, db = replica.store, replica.ring, replica.db
    if ring is None or ring.plain:
        return
    stray = db.get_meta(meta.STRAY) == b"1"
    if not stray and db.get_meta(meta.LOCAL_BODIES) != b"1":
        return
    names = ring.view.names
    changes, blocks = {}, []
    left: set[str] = set()
    for name, entry in store.entries():
        if any(loc.ek not in names for loc in located(entry)):
            sealed, new = seal_entry(replica, name, entry)
            blocks += new
            if sealed != entry:
                changes[name] = sealed
            left.update(loc.ek for loc in located(sealed))
    store.apply(changes, store.frame, blocks)
    db.set_meta(meta.LOCAL_BODIES, b"0")
    if stray:
        store.checkpoint(folders=True)  # nodes lie under the key that seals now
        db.set_meta(meta.STRAY, b"0")
        replica.set_ring(ring.without_spare(left))


def _draw_pair(replica: Replica) -> dict[str, Seen]:
    """The signed pairs for a commit; a new one for this device when it wrote since the last (stored with them)."""
    store, device = replica.store, replica.device
    frame = store.frame
    n = frame.ctx.get(device.id, 0)
    mine = frame.seen.get(device.id)
    if n == 0 or (mine is not None and mine.n == n):
        return frame.seen
    assert replica.vault_tag is not None
    r = replica.world.random(8)
    pair = sign_seen(device.signer, replica.vault_tag, device.id, n, r.hex())
    pairs.add(replica.db.connection, device.id, n, r)
    seen = {**frame.seen, device.id: pair}
    store.apply({}, Frame(frame.ctx, seen, frame.hlc))
    store.checkpoint(folders=True)
    return seen


def _last_commit(replica: Replica) -> _Own | None:
    stored = replica.db.get_meta(meta.COMMIT)
    if stored is None:
        return None
    own = msgspec.json.decode(replica.codec.open_row(stored), type=_Own)
    return own if own.device == replica.device.id else None


def _signed(own: _Own) -> SignedCommit:
    from ipfsmem.published.commit import Commit

    return SignedCommit(msgspec.json.decode(own.json, type=Commit), own.json, own.signature)


def _keep_commit(replica: Replica, commit: SignedCommit, root: CID) -> None:
    own = _Own(replica.device.id, commit.commit.c, commit.json, commit.signature, str(root))
    replica.db.set_meta(meta.COMMIT, replica.codec.seal_row(msgspec.json.encode(own)))


# -- sending -------------------------------------------------------------------------------------------------------


def new_blocks(db: Database, root: CID, known: Iterable[CID]) -> Iterator[CID]:
    """CIDs below `root` that stand at no like place below one of `known`, parents first.

    Folders are compared name by name, so a changed memory costs a look at the folders on its path.
    """
    start = [cid for cid in known if db.has_block(cid.digest)]
    if root in start:
        return
    done: set[CID] = set()
    stack: list[tuple[CID, list[CID]]] = [(root, start)]
    while stack:
        cid, olds = stack.pop()
        if cid in done:
            continue
        done.add(cid)
        yield cid
        if cid.encode()[:4] != PB_PREFIX:
            continue
        block = db.block(cid.digest)
        if block is None:
            continue
        mine = link_fields(block)
        theirs: set[bytes] = set()
        for old in olds:
            data = db.block(old.digest) if old.encode()[:4] == PB_PREFIX else None
            if data is not None:
                theirs.update(link_fields(data))
        # Most links are the same bytes on both sides; only the others are worth decoding.
        before: dict[str, list[CID]] = {}
        for field in theirs.difference(mine):
            link = decode_link(field)
            before.setdefault(link.name, []).append(link.cid)
        for field in mine:
            if field not in theirs:
                link = decode_link(field)
                same = before.get(link.name, [])
                if link.cid not in same:
                    stack.append((link.cid, same))


class Sent(msgspec.Struct, frozen=True):
    """What reached a provider: blocks, their bytes, the root that it answered, and its handle of the pin.

    `new` were sent; `reused` were not, because it said before that it has them.
    """

    blocks: int
    bytes: int
    root: CID
    handle: str
    new: frozenset[CID] = frozenset()
    reused: frozenset[CID] = frozenset()


async def send(
    replica: Replica,
    provider: Provider,
    root: CID,
    wanted: Sequence[CID],
    name: str,
    *,
    ask: bool = True,
    others: bool = False,
    there: Collection[CID] = (),
) -> Sent:
    """Send what the provider lacks of `root` and pin it under `name`. `wanted` are the blocks that may be lacking there.

    `ask`: some of it may be there, so the provider is asked first, as for many blocks in any case. `others`: another
    device made the root, or had a part in it: an object that can be had nowhere now keeps nothing back. `there`: blocks
    that the provider served or took a moment ago. Raises MissingError, with nothing pinned, when another block is neither here
    nor there.
    """
    db = replica.db
    can = provider.capabilities
    reused: set[CID] = set()
    if can.has and can.partial_car and (ask or len(wanted) > _FEW):
        reused.update(cid for cid in wanted if cid in there)
        asked = [cid for cid in wanted if cid not in reused]
        for start in range(0, len(asked), MAX_BATCH):
            reused |= await provider.has(asked[start : start + MAX_BATCH])
        wanted = [cid for cid in wanted if cid not in reused]
    absent = not_here(db, wanted)
    if absent:
        if not others or not set(absent).isdisjoint(live_set(db, root).structure):
            raise _incomplete(provider, root, absent)
        gone = set(absent)
        wanted = [cid for cid in wanted if cid not in gone]
    sent = [0, 0]

    def blocks() -> Iterator[tuple[CID, bytes]]:
        for start in range(0, len(wanted), _AT_ONCE):
            part = wanted[start : start + _AT_ONCE]
            here = read_blocks(db, [cid.digest for cid in part])
            lost = [cid for cid in part if cid.digest not in here]
            if lost:  # the disk lost them; a tree with a hole is never pinned
                raise _incomplete(provider, root, lost)
            for cid in part:
                data = here[cid.digest]
                sent[0] += 1
                sent[1] += len(data)
                yield cid, data

    answered = root
    if wanted or not can.pin:
        answered = same_root(root, await provider.put_car(root, blocks(), name=name), provider)
    handle = (await provider.pin(answered, name)).handle if can.pin else ""
    return Sent(sent[0], sent[1], answered, handle, frozenset(wanted), frozenset(reused))


def _incomplete(provider: Provider, root: CID, absent: list[CID]) -> MissingError:
    parts = "a part" if len(absent) == 1 else f"{len(absent)} parts"
    return MissingError(
        f"{parts} of version {root} can be had neither on this device nor at {provider.name}, for instance {absent[0]}: "
        "nothing was published there",
        missing=[cid.digest for cid in absent],
    )
