"""One sync: find heads and verify them, admit, join, publish, each step on the value that the one before returned (`steps`).
The only code that talks to a provider on behalf of a memory.

Order of things (format section 7): read names and roots until nothing new is learned; keep what rings say; find out
whether this device's own counters were used elsewhere; join every verified head; with an unlocked root enrol this
device and move the anchor; publish. A crash anywhere loses nothing: each step is on disk before the next begins,
and the whole is simply run again. One sync at a time for a memory; writes go on meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterable, Sequence

import msgspec

from ipfsmem.content.cid import CID, ipns_name, parse_cid
from ipfsmem.content.fetch import drive_async
from ipfsmem.content.reader import Reader
from ipfsmem.device.bulk import no_collection
from ipfsmem.device.others_texts import settle_persons
from ipfsmem.device.replica import Replica
from ipfsmem.device.root_folders import objects_not_here
from ipfsmem.device.tables import heads, meta
from ipfsmem.device.tables.heads import HeadRow
from ipfsmem.errors import (
    ConfigError,
    DamagedError,
    FormatError,
    IpfsmemError,
    LimitError,
    MembershipError,
    MissingError,
    NotFoundError,
    NoVaultError,
    ProviderError,
)
from ipfsmem.provider.contract import Provider, Settling
from ipfsmem.provider.opening import NotOpened
from ipfsmem.published.opening import Head
from ipfsmem.ring import operations
from ipfsmem.ring.keyring import Ring
from ipfsmem.sync.admission import admit
from ipfsmem.sync.anchors import doubt, looked, move_anchor
from ipfsmem.sync.changes import as_report
from ipfsmem.sync.collection import Collection, Rules, collect_roots, collect_when_due
from ipfsmem.sync.discovery import discover
from ipfsmem.sync.forwarding import waiting, words_of_move
from ipfsmem.sync.guards import bring_out_guards
from ipfsmem.sync.joining import join_found, joined_before
from ipfsmem.sync.moving import Moved, move_roots
from ipfsmem.sync.names import DEVICE_LIFE_MS, half_spent, member_names, pin_name, target
from ipfsmem.sync.placing import bring_out_anchors, move_former, place
from ipfsmem.sync.presence import Presence
from ipfsmem.sync.publish import (
    Layout,
    Prepared,
    holds_all_of,
    leave_out,
    note_whole,
    prepare,
)
from ipfsmem.sync.removals import tell_of_removals
from ipfsmem.sync.repair import check_one
from ipfsmem.sync.report import UNLOCK, Progress, SyncReport, no_progress
from ipfsmem.sync.revoke_notices import way_back, words_of_revoked
from ipfsmem.sync.run import Run
from ipfsmem.sync.salvage import Found, Salvaged, look, take
from ipfsmem.sync.steps import Joined, Published
from ipfsmem.wallet.root_keys import RootKeys

#: Heads that one commit names.
MAX_PREV = 256


async def sync(
    replica: Replica,
    providers: Sequence[Provider],
    layout: Layout,
    *,
    not_opened: Sequence[NotOpened] = (),
    root: RootKeys | None = None,
    progress: Progress = no_progress,
) -> SyncReport:
    """Pull, join, publish. Raises ProviderError when no provider does; nothing local is lost then.

    `not_opened`: providers of this memory that cannot be opened now (`Providers`); the report names them.
    """
    started = time.monotonic()
    run = Run(replica, providers, root, progress, not_opened=not_opened)
    async with run.alone():
        before = replica.ring
        joined = await _pull(run)
        doubtful = doubt(run, joined.found.anchored)
        anchored = _administer(run, joined, root) if root is not None else joined.found.anchored
        published = await _bring_out(run, joined, layout, anchored, suspicious=doubtful)
        await _look_after(run, joined)
        if doubtful:
            looked(run)
        _tell_of_removals(run, before)
    await _settle(run)
    return _report(run, joined, published, started)


async def bring_back(
    replica: Replica,
    providers: Sequence[Provider],
    layout: Layout | None,
    *,
    root: RootKeys,
    given: CID | None = None,
    damaged_ok: bool = False,
    progress: Progress = no_progress,
) -> SyncReport:
    """The first sync of a memory that is being restored: pull, join, enrol this device, publish.

    Raises UnreadError when newer heads stand there than could be read now, DamagedError when heads stand there and none could be joined whole: that is no memory that is back, unless
    `damaged_ok` says that what can be read is to be salvaged afterwards. Being able to read is enough. What no provider takes now stands on this device, signed, and goes out with a later
    sync, which needs no root for it; a notice says so. `layout` None: nobody has agreed yet that anything is published. `given`: see `Run`.
    """
    started = time.monotonic()
    run = Run(replica, providers, root, progress, given=given)
    async with run.alone():
        joined = await _pull(run)
        if not damaged_ok:
            joined.outages.refuse(joined.heads, run.where)
        if not damaged_ok and (parts := joined.unreadable):
            raise DamagedError(
                f"this memory could not be read whole at {run.where}: at least {parts} parts cannot be read. "
                f"{run.notices.first('damaged', 'head-refused')}",
                hint="If another device still has the memory, sync it, and try again. Else bring back what can be read: "
                "ipfsmem recover --damaged, then: ipfsmem salvage",
            )
        anchored = _administer(run, joined, root)
        published = Published()
        if layout is not None:
            try:
                published = await _bring_out(run, joined, layout, anchored)
                await _look_after(run, joined)
            except (ProviderError, ConfigError) as error:
                wait = isinstance(error, ProviderError) and not error.permanent
                why = str(error) if wait or not error.hint else f"{error}. {error.hint}"
                run.notices.say(
                    "not-published",
                    "the memory is back and can be used, but other devices do not know this one yet: nothing was taken "
                    f"at {run.where} ({why}). The next sync tries again: ipfsmem sync",
                )
        _tell_of_removals(run, None)
    await _settle(run)
    return _report(run, joined, published, started)


async def salvage(
    replica: Replica,
    providers: Sequence[Provider],
    layout: Layout | None,
    *,
    picked: frozenset[str] = frozenset(),
    not_opened: Sequence[NotOpened] = (),
    root: RootKeys | None = None,
    progress: Progress = no_progress,
) -> tuple[Found, Salvaged | None, SyncReport]:
    """Pull, then bring back what damaged heads prove, and the loose values under the entry names `picked`; publish.

    `layout` None only looks. Nothing of a damaged head is believed beyond what format section 7.1 says.
    """
    started = time.monotonic()
    run = Run(replica, providers, root, progress, not_opened=not_opened)
    done: Salvaged | None = None
    published = Published()
    async with run.alone():
        joined = await _pull(run)
        found = await look(run, list(joined.damaged.values()))
        if layout is not None:
            with replica.transaction():
                done = take(replica, found, picked)
            published = await _bring_out(run, joined, layout, joined.found.anchored)
            await _look_after(run, joined)
    await _settle(run)
    return found, done, _report(run, joined, published, started)


async def _bring_out(
    run: Run, joined: Joined, layout: Layout, anchored: Ring | None, *, suspicious: bool = False
) -> Published:
    """Anchors, then what is new."""
    await bring_out_anchors(run, joined)
    try:
        return await publish(run, joined, layout, anchored, suspicious=suspicious)
    except IpfsmemError:
        # What stops publishing may last for days; networks forget in two.
        await run.names.help_out(sorted(member_names(run.replica)), without=run.sending.without)
        raise


async def _look_after(run: Run, joined: Joined) -> None:
    """Guards, then the names that others look after, then what may go."""
    replica = run.replica
    await bring_out_guards(run)
    others = sorted(member_names(replica) - {ipns_name(replica.device.sign_public)})
    await run.names.help_out(others, without=run.sending.without)
    await collect_when_due(run, joined.found.ring_roots)


async def _settle(run: Run) -> None:
    """What providers began for this sync and its calls did not wait for; other syncs need not wait for that."""
    settling = [provider for provider in run.providers if isinstance(provider, Settling)]
    told = await asyncio.gather(*(provider.settle() for provider in settling))
    for provider, failures in zip(settling, told, strict=True):
        for failure in failures:
            run.notices.say("channel-down", f"{provider.name} has what it was given, but {failure}")


async def move(
    replica: Replica,
    providers: Sequence[Provider],
    layout: Layout,
    target: Provider,
    *,
    keep_roots: int,
    keep_days: int,
    not_opened: Sequence[NotOpened] = (),
    root: RootKeys | None = None,
    progress: Progress = no_progress,
) -> Moved:
    """Bring every live root, the ring and the names to `target` too, and check there that nothing is missing.

    Syncs with all of them first. May be cut off and run again: what has arrived is not sent twice. Nothing is taken
    away from where it was. Raises ProviderRefused naming the first thing that `target` does not have in the end.
    """
    run = Run(replica, [*providers, target], root, progress, not_opened=not_opened)
    async with run.alone():
        joined = await _pull(run)
        anchored = _administer(run, joined, root) if root is not None else joined.found.anchored
        await bring_out_anchors(run, joined)
        published = await publish(run, joined, layout, anchored)
        moved = await move_roots(
            run, joined, target, newest=published.root, keep_roots=keep_roots, keep_days=keep_days
        )
    await _settle(run)
    return moved


async def collect(
    replica: Replica,
    providers: Sequence[Provider],
    rules: Rules,
    progress: Progress = no_progress,
    *,
    not_opened: Sequence[NotOpened] = (),
) -> Collection:
    """Pull, then unpin superseded roots and drop the blocks that only they needed."""
    run = Run(replica, providers, None, progress, not_opened=not_opened)
    async with run.alone():
        joined = await _pull(run)
        return await collect_roots(run, joined.found.ring_roots, rules)


async def check(
    replica: Replica,
    providers: Sequence[Provider],
    *,
    repair: bool,
    full: bool,
    not_opened: Sequence[NotOpened] = (),
    progress: Progress = no_progress,
) -> list[Presence]:
    """Whether everything that lives is at each provider, asked block by block; `full` reads every block.

    `repair` sends again what is missing there and here, also what went missing before. Pulls and publishes nothing.
    """
    run = Run(replica, providers, None, progress)
    async with run.alone():
        root = replica.db.get_meta(meta.ROOT)
        return [
            await check_one(
                run, provider, parse_cid(root.decode()) if root else None, repair=repair, full=full
            )
            for provider in providers
            if provider.capabilities.put or provider.capabilities.pin
        ] + [Presence(one.spec, "unchecked", text=one.error().in_a_line()) for one in not_opened]


async def _pull(run: Run) -> Joined:
    """Find and join every head that can be found and verified. Raises ProviderRefused where no provider could be opened."""
    for one in run.not_opened:
        if not run.providers:
            raise one.error()
        run.notices.say("not-opened", one.error().in_a_line())
    found = await discover(run)
    admitted = admit(run, found)
    joined = await join_found(run, admitted)
    _tell_of_move(run)
    return joined


def _report(run: Run, joined: Joined, published: Published, started: float) -> SyncReport:
    """What a sync did, of what its steps returned."""
    sending, fetcher, silent = run.sending, run.fetcher, sorted(joined.silent)
    fresh = joined.found.fresh
    not_opened = [one.spec for one in run.not_opened]
    return SyncReport(
        root=str(published.root) if published.root is not None else None,
        published=published.new,
        adopted=published.adopted,
        heads_joined=joined.heads_joined,
        entries_changed=sum(joined.changed_in.values()),
        changed_in={**joined.changed_in},
        sources=[*joined.sources],
        changes=as_report(joined.kinds),
        not_fetched=joined.not_fetched,
        left_out=joined.left_out,
        damaged=len(joined.damaged) + len(joined.lost),
        blocks_received=fetcher.blocks,
        bytes_received=fetcher.bytes,
        blocks_sent=sending.blocks,
        bytes_sent=sending.bytes,
        missing=sending.missing,
        unread=len(joined.outages.roots) + (len(silent) if fresh else 0),
        not_placed=list(dict.fromkeys([*([] if fresh else silent), *sending.not_placed, *not_opened])),
        blocked=published.blocked,
        new_identity=joined.new_identity,
        seconds=round(time.monotonic() - started, 3),
        notices=run.notices.said,
    )


def _tell_of_removals(run: Run, before: Ring | None) -> None:
    """Last of all: what is told once must be in a report that arrives, and a sync that fails has none."""
    with run.replica.transaction():
        tell_of_removals(run.replica, before, run.notices)


def _tell_of_move(run: Run) -> None:
    move = waiting(run.replica)
    if move is not None:
        run.notices.say("moved", words_of_move(run.replica, move))


async def look_there(
    replica: Replica, target: Provider, *, root: RootKeys | None = None, progress: Progress = no_progress
) -> SyncReport:
    """Pull from one provider alone, to which this memory is said to have gone.

    Raises NotFoundError when it shows no head of this memory: nobody is to be followed to a place that holds none.
    """
    started = time.monotonic()
    run = Run(replica, [target], root, progress)
    async with run.alone():
        joined = await _pull(run)
        if not await _shows(run, joined, target):
            raise NotFoundError(
                f"{target.name} shows nothing of this memory",
                hint="Is it the right place? Another device, or who moved it, has the address: ipfsmem providers list.",
            )
    return _report(run, joined, Published(), started)


async def _shows(run: Run, joined: Joined, provider: Provider) -> bool:
    """Whether a provider itself leads to a head of this memory that was verified, now or before."""
    known = {*joined.heads, *joined_before(run.replica)}
    leads: set[CID | str] = set()
    for record in run.names.shown_by(provider):
        with contextlib.suppress(FormatError):
            leads.add(target(record))
    if provider.capabilities.list:
        leads |= {pin.cid for pin in await provider.pins(pin_name(run.anchor))}
    return not known.isdisjoint(leads)


def _administer(run: Run, joined: Joined, root: RootKeys) -> Ring:
    """What an unlocked root does: enrol this device, give keys to who lacks them, move the anchor; the ring that anchors lead
    to from now on. What admins said of others stays their word: that becomes a root's by a person who names it, and by
    nothing else."""
    replica = run.replica
    if replica.ring is None:
        raise NoVaultError(f"no memory of this wallet, or of these words, was found at {run.where}")
    with replica.transaction():
        ring = replica.ring
        if not ring.plain:
            ring = operations.give_key(ring, root.admin, replica.world.random(32))
        view, me = ring.view, replica.device.id
        # Whom an admin put out comes back when what the admin said is ended; publishing says so until then.
        waits = view.family_of(me) in view.put_out_by
        if me not in view.members and not waits:
            if view.is_out(me):
                raise MembershipError(f"this device ({me}) was revoked, for good", hint=way_back(replica))
            if any(person.box == replica.device.box_public for person in ring.view.members.values()):
                # Another copy of this device goes on with the old one; what it opened stays in the ring.
                replica.set_device(replica.device.with_box(replica.world.random))
            ring = _enrol_itself(run, root, ring)
        replica.set_ring(ring)
        move_anchor(run, joined, root)
        run.names.keep()
        settle_persons(replica)
    return replica.ring


def _enrol_itself(run: Run, root: RootKeys, ring: Ring) -> Ring:
    """The ring with this device in it. Where there is no room it is the same ring: being able to read is enough, and a root
    makes room by a revoke."""
    replica = run.replica
    device = replica.device
    public = operations.enrollee_of(device.signer, device.box_public, replica.config.label, ring.vault)
    try:
        ring = operations.enrol(ring, root.admin, public, "writer", since=replica.store.frame.hlc)
    except LimitError as error:
        run.notices.say(
            "not-enrolled",
            f"this device can read the memory and cannot publish, for there is no room for it: {error}. Make room with the "
            "wallet, or the words of init: ipfsmem keys list, ipfsmem keys revoke ID",
        )
        return ring
    replica.set_enrolled(device)
    run.notices.say(
        "enrolled", f"this device belongs to the memory now, as {replica.config.label or replica.device.id}"
    )
    return ring


def _newest(heads: Iterable[Head]) -> list[str]:
    """What a commit names as its past: the heads held, of a long pin list the newest (its length is that of a file)."""
    return [head.commit.digest for head in sorted(heads, key=lambda h: h.commit.commit.h)[-MAX_PREV:]]


def _blocked(run: Run, kind: str, text: str) -> Published:
    """Say that this sync pulled and could not publish; that is no success."""
    run.notices.say(kind, text)
    return Published(blocked=kind)


async def _prepare(run: Run, joined: Joined, layout: Layout) -> tuple[Prepared, bool]:
    """What to publish. A head with the same commit goes before our own tree when its tree holds all that is here; when none
    does, True: another device could not have what is here, so it may be missing where both publish."""
    replica = run.replica
    layout.ahead(replica)
    with replica.transaction(), no_collection():
        ready = prepare(replica, layout, joined.heads.values(), _newest(joined.heads.values()))
        if ready.own and str(ready.root).encode() != replica.db.get_meta(meta.ROOT):
            # Until names point there it waits, also when this sync is cut off: the commit counts our writes.
            replica.db.set_meta(meta.SENDING, b"1")
    for rival in ready.rivals:
        try:
            better = await drive_async(holds_all_of(Reader(), ready.root, rival), run.fetcher.get)
        except IpfsmemError:  # what cannot be read now holds nothing for anybody
            continue
        if better:
            ready = msgspec.structs.replace(ready, root=rival)
            with replica.transaction():
                run.fetcher.keep()
                note_whole(replica.db, rival)
            return ready, False
    return ready, bool(ready.rivals)


def _say_what_is_left_out(run: Run) -> None:
    out = len(objects_not_here(run.replica.db))
    if out:
        what = (
            "1 text or piece of the timeline is"
            if out == 1
            else f"{out} texts and pieces of the timeline are"
        )
        run.notices.say(
            "left-out",
            f"{what} on no device and at no provider that answered, so what is published leaves "
            f"{'it' if out == 1 else 'them'} out: a device that has what is lacking publishes it with its next sync",
        )


async def publish(
    run: Run, joined: Joined, layout: Layout, anchored: Ring | None, *, suspicious: bool = False
) -> Published:
    """Publish the joined state, or take over a head that says the same, and move this device's name there.

    `anchored`: the ring that anchors lead to. `suspicious`: there is reason to ask each provider for every block.
    """
    replica = run.replica
    ring = replica.ring
    if ring is None:
        raise NoVaultError(f"no memory of this wallet, or of these words, was found at {run.where}")
    if ring.view.is_out(replica.device.id):
        return _blocked(run, "revoked", words_of_revoked(replica))
    if not ring.view.may_write(replica.device.id):
        return _blocked(
            run,
            "not-a-writer",
            f"this device ({replica.device.id}) may not write: nothing was published. If it should, unlock once: "
            + UNLOCK,
        )
    unsure = joined.unsure
    if not joined.heads and joined.unreadable and not any(True for _ in replica.store.names()):
        unsure = "this memory is empty here, and what was published cannot be read whole (ipfsmem salvage)"
    if unsure:
        return _blocked(run, "cannot-publish", f"nothing was published: {unsure}")
    try:
        ready, alone = await _prepare(run, joined, layout)
    except MembershipError as error:
        return _blocked(run, "cannot-publish", f"nothing was published: {error}. That is done by: {UNLOCK}")
    suspicious = suspicious or alone
    try:
        answered = await place(run, joined, ready.root, every=suspicious)
    except MissingError as error:
        # What the disk of this device lost is made anew where it can be; texts that are nowhere else are left out.
        with replica.transaction():
            leave_out(replica.db, error.missing)
        ready, alone = await _prepare(run, joined, layout)
        answered = await place(run, joined, ready.root, every=suspicious or alone)
    _say_what_is_left_out(run)
    device = replica.device
    name = ipns_name(device.sign_public)
    record = run.names.known(name)
    now = replica.world.now()
    if record is None or record.value != f"/ipfs/{answered}" or half_spent(record, now, DEVICE_LIFE_MS):
        run.names.sign(device.sign_seed, device.sign_public, f"/ipfs/{answered}", DEVICE_LIFE_MS)
    moved = [name, *move_former(run, joined, answered)]
    with replica.transaction():
        run.names.keep()
    await run.names.put(moved, without=run.sending.without)
    with replica.transaction():
        replica.db.set_meta(meta.ROOT, str(ready.root).encode())
        replica.db.set_meta(meta.SENDING, b"0")
        said = ready.commit.commit
        row = HeadRow(str(ready.root), said.dev, said.c, ready.commit.digest, replica.world.now())
        heads.put(replica.db.connection, row, said.prev)
    if anchored is not None and replica.ring is not None and anchored.join(replica.ring) != anchored:
        run.notices.say(
            "unlock", f"a device joined: new devices find everything at once after one unlock: {UNLOCK}"
        )
    return Published(ready.root, ready.new, not ready.own)
