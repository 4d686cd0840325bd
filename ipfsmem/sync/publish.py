"""The last step of a sync: publish the joined state, or adopt an equal head, and move this device's name
there (format section 7).

What is published is first made durable (`commits`), then placed at the providers (`upload`); the name moves
when one has it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import msgspec

from ipfsmem.content.cid import CID, ipns_name
from ipfsmem.content.fetch import drive_async
from ipfsmem.content.reader import Reader
from ipfsmem.device.bulk import no_collection
from ipfsmem.device.root_folders import objects_not_here
from ipfsmem.device.tables import heads, meta
from ipfsmem.device.tables.heads import HeadRow
from ipfsmem.errors import IpfsmemError, MembershipError, MissingError
from ipfsmem.provider.contract import Provider
from ipfsmem.published.layout import Layout
from ipfsmem.published.root_verification import Head
from ipfsmem.ring.keyring import Ring
from ipfsmem.sync.commits import Prepared, prepare
from ipfsmem.sync.context import SyncContext
from ipfsmem.sync.local_repair import leave_out, note_whole
from ipfsmem.sync.names import DEVICE_LIFE_MS, half_spent, member_names
from ipfsmem.sync.report import UNLOCK
from ipfsmem.sync.revoke_notices import words_of_revoked
from ipfsmem.sync.steps import Joined, Published
from ipfsmem.sync.upload import move_former, publish_anchors, upload

if TYPE_CHECKING:
    from ipfsmem.content.fetch import Fetch

#: Maximum number of parents of a commit.
MAX_PREV: Final = 256


async def publish(
    run: SyncContext, joined: Joined, layout: Layout, anchored: Ring | None, *, suspicious: bool = False
) -> Published:
    """Publish the anchors and the joined state, or adopt an equal head, and move this device's name there.

    `anchored`: the ring that anchors lead to, or None. `suspicious`: check each provider for every block.
    """
    await publish_anchors(run, joined)
    names = _PublishedNames(run, joined)
    try:
        if blocked := _blocked(run, joined):
            return blocked
        try:
            ready, answered = await _prepare_and_place(run, joined, layout, names, suspicious=suspicious)
        except MembershipError as error:
            return _refuse(run, "cannot-publish", f"nothing was published: {error}. To fix it: {UNLOCK}")
        _tell_of_left_out(run)
        await run.names.put(names.signed(answered), without=run.sending.without)
        _note_published(run, ready)
    except IpfsmemError:
        # Publishing may stay blocked for days; networks forget in two.
        await run.names.put_for_others(sorted(member_names(run.replica)), without=run.sending.without)
        raise
    ring = run.replica.ring
    if anchored is not None and ring is not None and anchored.join(ring) != anchored:
        run.notices.say(
            "unlock", f"a device joined. To let new devices find everything at once, unlock once: {UNLOCK}"
        )
    return Published(ready.root, ready.new, not ready.own)


def _blocked(run: SyncContext, joined: Joined) -> Published | None:
    """Report why this device may not publish the joined state; None if it may. Raises NoVaultError without a ring."""
    replica = run.replica
    ring, device = replica.ring, replica.device.id
    if ring is None:
        raise run.no_ring_error()
    if ring.view.is_revoked(device):
        return _refuse(run, "revoked", words_of_revoked(replica))
    if not ring.view.may_write(device):
        return _refuse(
            run,
            "not-a-writer",
            f"this device ({device}) is not allowed to write, so nothing was published. To allow it, unlock once: {UNLOCK}",
        )
    unsure = joined.unsure
    if not joined.heads and joined.unreadable and not any(True for _ in replica.store.names()):
        unsure = "this vault is empty here, and its published version cannot be read completely (ipfsmem vault repair)"
    return _refuse(run, "cannot-publish", f"nothing was published: {unsure}") if unsure else None


def _refuse(run: SyncContext, kind: str, text: str) -> Published:
    """Report a sync that pulled but could not publish: not a success."""
    run.notices.say(kind, text)
    return Published(blocked=kind)


async def _prepare_and_place(
    run: SyncContext, joined: Joined, layout: Layout, names: _PublishedNames, *, suspicious: bool
) -> tuple[Prepared, CID]:
    """Prepare and place what is to be published; return it, and the root for names to point at."""
    ready, unmatched = await _prepare(run, joined, layout)
    try:
        return ready, await _place(run, joined, ready, names, every=suspicious or unmatched)
    except MissingError as error:
        # Local losses are rebuilt if possible; texts available nowhere are omitted.
        with run.replica.transaction():
            leave_out(run.replica.db, error.missing)
    ready, unmatched = await _prepare(run, joined, layout)
    return ready, await _place(run, joined, ready, names, every=suspicious or unmatched)


async def _place(
    run: SyncContext, joined: Joined, ready: Prepared, names: _PublishedNames, *, every: bool
) -> CID:
    """Place the root at each provider, and move its names there as soon as that one has it: none waits for another."""
    if run.company is not None:
        run.company.be_patient()

    async def lead(provider: Provider) -> None:
        await run.names.put_at(provider, names.signed(ready.root))

    return await upload(run, joined, ready.root, every=every, lead=lead)


class _PublishedNames:
    """The names for what this device publishes: its own, and its former one while others follow that."""

    def __init__(self, run: SyncContext, joined: Joined) -> None:
        self._run, self._joined = run, joined
        self._signed: dict[CID, list[str]] = {}

    def signed(self, root: CID) -> list[str]:
        """Return these names, with records for `root` that are signed and stored once."""
        if root not in self._signed:
            run, device, value = self._run, self._run.replica.device, f"/ipfs/{root}"
            name = ipns_name(device.sign_public)
            record, now = run.names.known(name), run.replica.environment.now()
            if record is None or record.value != value or half_spent(record, now, DEVICE_LIFE_MS):
                run.names.sign(device.sign_seed, device.sign_public, value, DEVICE_LIFE_MS)
            self._signed[root] = [name, *move_former(run, self._joined, root)]
            with run.replica.transaction():
                run.names.keep()
        return self._signed[root]


def _note_published(run: SyncContext, ready: Prepared) -> None:
    replica, commit = run.replica, ready.commit.commit
    with replica.transaction():
        replica.db.set_meta(meta.ROOT, str(ready.root).encode())
        replica.db.set_meta(meta.SENDING, b"0")
        row = HeadRow(str(ready.root), commit.dev, commit.c, ready.commit.digest, replica.environment.now())
        heads.put(replica.db.connection, row, commit.prev)


async def _prepare(run: SyncContext, joined: Joined, layout: Layout) -> tuple[Prepared, bool]:
    """Return what to publish, and whether heads with the same commit exist of which no tree is complete.

    In that case another device lacked something that may be missing where both publish. A complete head's
    tree is preferred to ours.
    """
    replica = run.replica
    layout.prepare(replica)
    with replica.transaction(), no_collection():
        ready = prepare(replica, layout, joined.heads.values(), _newest(joined.heads.values()))
        if ready.own and str(ready.root).encode() != replica.db.get_meta(meta.ROOT):
            # It waits until names point there, even if this sync is interrupted: the commit covers our writes.
            replica.db.set_meta(meta.SENDING, b"1")
    for rival in ready.equivalent_roots:
        try:
            better = await drive_async(holds_all_of(Reader(), ready.root, rival), run.fetcher.get)
        except IpfsmemError:  # an unreadable one has nothing for anybody
            continue
        if better:
            ready = msgspec.structs.replace(ready, root=rival)
            with replica.transaction():
                run.fetcher.keep()
                note_whole(replica.db, rival)
            return ready, False
    return ready, bool(ready.equivalent_roots)


def _newest(heads: Iterable[Head]) -> list[str]:
    """Return a commit's parents: the current heads, the newest if a pin list is long (the commit file is bounded)."""
    return [head.commit.digest for head in sorted(heads, key=lambda h: h.commit.commit.h)[-MAX_PREV:]]


def holds_all_of(reader: Reader, ours: CID, theirs: CID) -> Fetch[bool]:
    """Tell whether the tree of `theirs` has every file of the tree of `ours`, made for the same commit.

    Compared by path, since a provider may have its own layout. Common subtrees are not read.
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


def _tell_of_left_out(run: SyncContext) -> None:
    out = len(objects_not_here(run.replica.db))
    if out:
        subject = (
            "1 text or piece of the timeline is"
            if out == 1
            else f"{out} texts and pieces of the timeline are"
        )
        run.notices.say(
            "left-out",
            f"{subject} on no device and at no provider that answered, so the published version leaves "
            f"{'it' if out == 1 else 'them'} out: a device that has the missing texts publishes them with its next sync",
        )
