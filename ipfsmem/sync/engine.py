"""One sync: find heads, verify, join, publish. The only code that talks to a provider on behalf of a memory.

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

from ipfsmem.canonical import MAX_INT
from ipfsmem.content.cid import CID, ipns_name, parse_cid
from ipfsmem.content.fetch import drive_async
from ipfsmem.content.reader import Reader
from ipfsmem.device.bulk import no_collection
from ipfsmem.device.others_texts import settle_persons
from ipfsmem.device.replica import Replica
from ipfsmem.device.root_folders import objects_not_here
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
from ipfsmem.published.opening import Head
from ipfsmem.ring import operations
from ipfsmem.ring.keyring import Ring
from ipfsmem.sync.anchors import doubt, looked, move_anchor
from ipfsmem.sync.changes import as_report
from ipfsmem.sync.collection import Collection, Rules, collect_roots, collect_when_due
from ipfsmem.sync.discovery import discover, discover_older, find_copies, weigh
from ipfsmem.sync.forwarding import waiting, words_of_move
from ipfsmem.sync.guards import bring_out_guards
from ipfsmem.sync.identity import stranger_to_itself
from ipfsmem.sync.joining import (
    ask_again,
    become_another,
    check_own_name,
    join_heads,
    join_listed,
    joined_before,
    say_what_was_refused,
    take_over_orphans,
    tell_of_copies,
    tell_of_damaged,
)
from ipfsmem.sync.moving import Moved, move_roots
from ipfsmem.sync.names import DEVICE_LIFE_MS, half_spent, member_names, pin_name, target
from ipfsmem.sync.pin_lists import keep_not_whole, not_whole
from ipfsmem.sync.placing import bring_out_anchors, move_former, place
from ipfsmem.sync.presence import Presence
from ipfsmem.sync.publish import (
    Layout,
    Prepared,
    holds_all_of,
    leave_out,
    next_number,
    note_whole,
    prepare,
)
from ipfsmem.sync.removals import tell_of_removals
from ipfsmem.sync.repair import check_one
from ipfsmem.sync.report import UNLOCK, Progress, SyncReport, no_progress
from ipfsmem.sync.revoke_notices import way_back, words_of_revoked
from ipfsmem.sync.run import Run
from ipfsmem.sync.salvage import Found, Salvaged, look, take
from ipfsmem.wallet.root_keys import RootKeys

#: Heads that one commit names.
MAX_PREV = 256


async def sync(
    replica: Replica,
    providers: Sequence[Provider],
    layout: Layout,
    *,
    root: RootKeys | None = None,
    progress: Progress = no_progress,
) -> SyncReport:
    """Pull, join, publish. Raises ProviderError when no provider does; nothing local is lost then."""
    started = time.monotonic()
    run = Run(replica, providers, root, progress)
    async with run.alone():
        before = replica.ring
        await _pull(run)
        doubt(run)
        if root is not None:
            _administer(run, root)
        await _bring_out(run, layout)
        looked(run)
        _tell_of_removals(run, before)
    await _settle(run)
    run.report.seconds = round(time.monotonic() - started, 3)
    return run.report


async def bring_back(
    replica: Replica,
    providers: Sequence[Provider],
    layout: Layout | None,
    *,
    root: RootKeys,
    damaged_ok: bool = False,
    progress: Progress = no_progress,
) -> SyncReport:
    """The first sync of a memory that is being restored: pull, join, enrol this device, publish.

    Raises UnreadError when newer heads stand there than could be read now, DamagedError when heads stand there and none could be joined whole: that is no memory that is back, unless
    `damaged_ok` says that what can be read is to be salvaged afterwards. Being able to read is enough. What no provider takes now stands on this device, signed, and goes out with a later
    sync, which needs no root for it; a notice says so. `layout` None: nobody has agreed yet that anything is published.
    """
    started = time.monotonic()
    run = Run(replica, providers, root, progress)
    async with run.alone():
        await _pull(run)
        if not damaged_ok:
            run.unread_now.refuse(run.heads, run.where)
        if not damaged_ok and (parts := _nothing_whole(run)):
            raise DamagedError(
                f"this memory could not be read whole at {run.where}: at least {parts} parts cannot be read. "
                f"{_first_of(run.report, 'damaged', 'head-refused')}",
                hint="If another device still has the memory, sync it, and try again. Else bring back what can be read: "
                "ipfsmem recover --damaged, then: ipfsmem salvage",
            )
        _administer(run, root)
        if layout is not None:
            try:
                await _bring_out(run, layout)
            except (ProviderError, ConfigError) as error:
                wait = isinstance(error, ProviderError) and not error.permanent
                why = str(error) if wait or not error.hint else f"{error}. {error.hint}"
                run.report.say(
                    "not-published",
                    "the memory is back and can be used, but other devices do not know this one yet: nothing was taken "
                    f"at {run.where} ({why}). The next sync tries again: ipfsmem sync",
                )
        _tell_of_removals(run, None)
    await _settle(run)
    run.report.seconds = round(time.monotonic() - started, 3)
    return run.report


async def salvage(
    replica: Replica,
    providers: Sequence[Provider],
    layout: Layout | None,
    *,
    picked: frozenset[str] = frozenset(),
    root: RootKeys | None = None,
    progress: Progress = no_progress,
) -> tuple[Found, Salvaged | None, SyncReport]:
    """Pull, then bring back what damaged heads prove, and the loose values under the entry names `picked`; publish.

    `layout` None only looks. Nothing of a damaged head is believed beyond what format section 7.1 says.
    """
    started = time.monotonic()
    run = Run(replica, providers, root, progress)
    done: Salvaged | None = None
    async with run.alone():
        await _pull(run)
        found = await look(run, list(run.damaged.values()))
        if layout is not None:
            with replica.transaction():
                done = take(replica, found, picked)
            await _bring_out(run, layout)
    await _settle(run)
    run.report.seconds = round(time.monotonic() - started, 3)
    return found, done, run.report


def _nothing_whole(run: Run) -> int:
    """How many roots stand there that were refused or of which a part cannot be read, when no head could be joined whole;
    else 0. What was refused may be a true head under a folder that somebody else made. Beside a version in which nothing was
    ever written it is only somebody's who was revoked, but what cannot be read may be all that was written since."""
    if any(head.commit.commit.ctx for head in run.heads.values()):
        return 0
    refused = () if run.heads else run.refused
    return len({*run.damaged, *run.unread, *refused, *run.unread_now.roots})


def _first_of(report: SyncReport, *kinds: str) -> str:
    return next((notice.text for notice in report.notices if notice.kind in kinds), "")


async def _bring_out(run: Run, layout: Layout) -> None:
    """Anchors, then what is new, then the names that others look after."""
    replica = run.replica
    await bring_out_anchors(run)
    try:
        await publish(run, layout)
    except IpfsmemError:
        # What stops publishing may last for days; networks forget in two.
        await run.names.help_out(sorted(member_names(replica)), without=run.without)
        raise
    await bring_out_guards(run)
    others = sorted(member_names(replica) - {ipns_name(replica.device.sign_public)})
    await run.names.help_out(others, without=run.without)
    await collect_when_due(run)


async def _settle(run: Run) -> None:
    """What providers began for this sync and its calls did not wait for; other syncs need not wait for that."""
    settling = [provider for provider in run.providers if isinstance(provider, Settling)]
    told = await asyncio.gather(*(provider.settle() for provider in settling))
    for provider, failures in zip(settling, told, strict=True):
        for failure in failures:
            run.report.say("channel-down", f"{provider.name} has what it was given, but {failure}")


async def move(
    replica: Replica,
    providers: Sequence[Provider],
    layout: Layout,
    target: Provider,
    *,
    keep_roots: int,
    keep_days: int,
    root: RootKeys | None = None,
    progress: Progress = no_progress,
) -> Moved:
    """Bring every live root, the ring and the names to `target` too, and check there that nothing is missing.

    Syncs with all of them first. May be cut off and run again: what has arrived is not sent twice. Nothing is taken
    away from where it was. Raises ProviderRefused naming the first thing that `target` does not have in the end.
    """
    run = Run(replica, [*providers, target], root, progress)
    async with run.alone():
        await _pull(run)
        if root is not None:
            _administer(run, root)
        await bring_out_anchors(run)
        await publish(run, layout)
        moved = await move_roots(run, target, keep_roots=keep_roots, keep_days=keep_days)
    await _settle(run)
    return moved


async def collect(
    replica: Replica,
    providers: Sequence[Provider],
    rules: Rules,
    progress: Progress = no_progress,
) -> Collection:
    """Pull, then unpin superseded roots and drop the blocks that only they needed."""
    run = Run(replica, providers, None, progress)
    async with run.alone():
        await _pull(run)
        return await collect_roots(run, rules)


async def check(
    replica: Replica,
    providers: Sequence[Provider],
    *,
    repair: bool,
    full: bool,
    progress: Progress = no_progress,
) -> list[Presence]:
    """Whether everything that lives is at each provider, asked block by block; `full` reads every block.

    `repair` sends again what is missing there and here, also what went missing before. Pulls and publishes nothing.
    """
    run = Run(replica, providers, None, progress)
    async with run.alone():
        root = replica.db.get_meta("root")
        return [
            await check_one(
                run, provider, parse_cid(root.decode()) if root else None, repair=repair, full=full
            )
            for provider in providers
            if provider.capabilities.put or provider.capabilities.pin
        ]


async def _pull(run: Run) -> None:
    """Find and join every head that can be found and verified."""
    await discover(run)
    named = {before for head in run.heads.values() for before in head.commit.commit.prev}
    find_copies(run, named)
    with run.replica.transaction():
        for head in sorted(run.heads.values(), key=lambda h: h.commit.commit.c):
            weigh(run, head, named)
    mine = ipns_name(run.replica.device.sign_public)
    stranger = stranger_to_itself(run.replica, list(run.heads.values()))
    if stranger is not None or run.replica.moved() or next_number(run.replica) > MAX_INT:
        await become_another(run, stranger)
    else:
        await check_own_name(run)
        if run.names.used_up(mine) and not (run.unsure or run.report.new_identity):
            # Whoever has a copy of its keys left no number for what comes next under that name.
            await become_another(run, None)
    await ask_again(run)
    take_over_orphans(run)
    shown = [head for root, head in run.heads.items() if head is not stranger and root not in run.listed]
    await join_heads(run, shown)
    await join_listed(run, stranger)
    if run.damaged or run.unread or (run.refused and not run.heads):
        # Older roots are heads like any other, and what is whole in them is better than nothing.
        await join_heads(run, await discover_older(run))
    with run.replica.transaction():
        run.fetcher.keep()
        run.names.keep()
        settle_persons(run.replica)
        say_what_was_refused(run)
        tell_of_damaged(run)
        later = run.later.intersection(not_whole(run.replica))
        refused = () if run.heads else sorted(run.refused)
        keep_not_whole(run.replica, (*sorted(run.damaged), *sorted(later), *refused))
    tell_of_copies(run)
    if run.unread_now.roots:
        run.unread_now.settle({*run.opened, *run.headless, *joined_before(run.replica)})
    # Who published what cannot be opened, and whether it is news, only that root could say: it is not known to be here.
    run.report.damaged += len(run.unread - joined_before(run.replica))
    run.report.unread = len(run.unread_now.roots)
    if run.fresh:
        run.report.unread += len(_silent(run))
    else:
        run.report.not_placed += sorted(_silent(run))
    _tell_of_move(run)
    run.report.changes = as_report(run.kinds)
    run.report.blocks_received = run.fetcher.blocks
    run.report.bytes_received = run.fetcher.bytes


def _silent(run: Run) -> set[str]:
    """Providers of this memory that did not say what is newest there. On a new device a place that only knows names is none."""
    keeping = {p.name for p in run.providers if not run.fresh or p.capabilities.put or p.capabilities.pin}
    return keeping & {*run.unread_now.silent, *run.names.silent}


def _tell_of_removals(run: Run, before: Ring | None) -> None:
    """Last of all: what is told once must be in a report that arrives, and a sync that fails has none."""
    with run.replica.transaction():
        tell_of_removals(run.replica, before, run.report)


def _tell_of_move(run: Run) -> None:
    move = waiting(run.replica)
    if move is not None:
        run.report.say("moved", words_of_move(run.replica, move))


async def look_there(
    replica: Replica, target: Provider, *, root: RootKeys | None = None, progress: Progress = no_progress
) -> SyncReport:
    """Pull from one provider alone, to which this memory is said to have gone.

    Raises NotFoundError when it shows no head of this memory: nobody is to be followed to a place that holds none.
    """
    run = Run(replica, [target], root, progress)
    async with run.alone():
        await _pull(run)
        if not await _shows(run, target):
            raise NotFoundError(
                f"{target.name} shows nothing of this memory",
                hint="Is it the right place? Another device, or who moved it, has the address: ipfsmem providers list.",
            )
    return run.report


async def _shows(run: Run, provider: Provider) -> bool:
    """Whether a provider itself leads to a head of this memory that was verified, now or before."""
    known = {*run.heads, *joined_before(run.replica)}
    leads: set[CID | str] = set()
    for record in run.names.shown_by(provider):
        with contextlib.suppress(FormatError):
            leads.add(target(record))
    if provider.capabilities.list:
        leads |= {pin.cid for pin in await provider.pins(pin_name(run.anchor))}
    return not known.isdisjoint(leads)


def _administer(run: Run, root: RootKeys) -> None:
    """What an unlocked root does: enrol this device, give keys to who lacks them, move the anchor. What admins said of others
    stays their word: that becomes a root's by a person who names it, and by nothing else."""
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
        move_anchor(run, root)
        run.names.keep()
        settle_persons(replica)
    run.anchored = replica.ring


def _enrol_itself(run: Run, root: RootKeys, ring: Ring) -> Ring:
    """The ring with this device in it. Where there is no room it is the same ring: being able to read is enough, and a root
    makes room by a revoke."""
    replica = run.replica
    device = replica.device
    public = operations.device_of(device.signer, device.box_public, replica.config.label, ring.vault)
    try:
        ring = operations.enrol(ring, root.admin, public, "writer", since=replica.store.frame.hlc)
    except LimitError as error:
        run.report.say(
            "not-enrolled",
            f"this device can read the memory and cannot publish, for there is no room for it: {error}. Make room with the "
            "wallet, or the words of init: ipfsmem keys list, ipfsmem keys revoke ID",
        )
        return ring
    replica.set_enrolled(device)
    run.report.say(
        "enrolled", f"this device belongs to the memory now, as {replica.config.label or replica.device.id}"
    )
    return ring


def _newest(heads: Iterable[Head]) -> list[str]:
    """What a commit names as its past: the heads held, of a long pin list the newest (its length is that of a file)."""
    return [head.commit.digest for head in sorted(heads, key=lambda h: h.commit.commit.h)[-MAX_PREV:]]


def _blocked(run: Run, kind: str, text: str) -> None:
    """Say that this sync pulled and could not publish; that is no success."""
    run.report.blocked = kind
    run.report.say(kind, text)


async def _prepare(run: Run, layout: Layout) -> Prepared:
    """What to publish. A head with the same commit goes before our own tree when its tree holds all that is here."""
    replica = run.replica
    layout.ahead(replica)
    with replica.transaction(), no_collection():
        ready = prepare(replica, layout, run.heads.values(), _newest(run.heads.values()))
        if ready.own and str(ready.root).encode() != replica.db.get_meta("root"):
            # Until names point there it waits, also when this sync is cut off: the commit counts our writes.
            replica.db.set_meta("sending", b"1")
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
            break
    else:
        # Another device could not have what is here: it may be missing where both publish.
        run.suspicious = run.suspicious or bool(ready.rivals)
    return ready


def _say_what_is_left_out(run: Run) -> None:
    out = len(objects_not_here(run.replica.db))
    if out:
        what = (
            "1 text or piece of the timeline is"
            if out == 1
            else f"{out} texts and pieces of the timeline are"
        )
        run.report.say(
            "left-out",
            f"{what} on no device and at no provider that answered, so what is published leaves "
            f"{'it' if out == 1 else 'them'} out: a device that has what is lacking publishes it with its next sync",
        )


async def publish(run: Run, layout: Layout) -> None:
    """Publish the joined state, or take over a head that says the same, and move this device's name there."""
    replica = run.replica
    ring = replica.ring
    if ring is None:
        raise NoVaultError(f"no memory of this wallet, or of these words, was found at {run.where}")
    if ring.view.is_out(replica.device.id):
        _blocked(run, "revoked", words_of_revoked(replica))
        return
    if not ring.view.may_write(replica.device.id):
        _blocked(
            run,
            "not-a-writer",
            f"this device ({replica.device.id}) may not write: nothing was published. If it should, unlock once: "
            + UNLOCK,
        )
        return
    if not run.heads and _nothing_whole(run) and not any(True for _ in replica.store.names()):
        run.unsure = (
            "this memory is empty here, and what was published cannot be read whole (ipfsmem salvage)"
        )
    if run.unsure:
        _blocked(run, "cannot-publish", f"nothing was published: {run.unsure}")
        return
    try:
        ready = await _prepare(run, layout)
    except MembershipError as error:
        _blocked(run, "cannot-publish", f"nothing was published: {error}. That is done by: {UNLOCK}")
        return
    try:
        answered = await place(run, ready.root)
    except MissingError as error:
        # What the disk of this device lost is made anew where it can be; texts that are nowhere else are left out.
        with replica.transaction():
            leave_out(replica.db, error.missing)
        ready = await _prepare(run, layout)
        answered = await place(run, ready.root)
    _say_what_is_left_out(run)
    run.report.adopted = not ready.own
    device = replica.device
    name = ipns_name(device.sign_public)
    record = run.names.known(name)
    now = replica.world.now()
    if record is None or record.value != f"/ipfs/{answered}" or half_spent(record, now, DEVICE_LIFE_MS):
        run.names.sign(device.sign_seed, device.sign_public, f"/ipfs/{answered}", DEVICE_LIFE_MS)
    moved = [name, *move_former(run, answered)]
    with replica.transaction():
        run.names.keep()
    await run.names.put(moved, without=run.without)
    with replica.transaction():
        replica.db.set_meta("root", str(ready.root).encode())
        replica.db.set_meta("sending", b"0")
        replica.db.connection.execute(
            "INSERT OR REPLACE INTO heads VALUES (?,?,?,?,?,?)",
            (
                str(ready.root),
                ready.commit.commit.dev,
                ready.commit.commit.c,
                ready.commit.digest,
                replica.world.now(),
                bytes.fromhex("".join(ready.commit.commit.prev)),
            ),
        )
    run.report.root = str(ready.root)
    run.report.published = ready.new
    if (
        run.anchored is not None
        and replica.ring is not None
        and run.anchored.join(replica.ring) != run.anchored
    ):
        run.report.say(
            "unlock", f"a device joined: new devices find everything at once after one unlock: {UNLOCK}"
        )
