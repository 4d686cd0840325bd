"""Sending again what is missing at a provider, by any device that has it, within bounds (format section 7).

At most the size of the live tree a provider a day, and of the older versions kept there when these were looked at. What was
sent again twice and is missing once more is not sent a third time: a provider that loses what it takes, or lets go of it on
purpose, is a matter for a person. What is structure and can be had nowhere raises MissingError, so that nothing is named
that nobody could read.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Sequence
from copy import copy

from ipfsmem.content.cid import CID, parse_cid
from ipfsmem.device.bulk import blocks_here, read_blocks
from ipfsmem.device.root_folders import objects_not_here
from ipfsmem.device.tables import placed, presence
from ipfsmem.errors import FormatError, MissingError, ProviderError
from ipfsmem.provider.contract import Block, Mending, Provider
from ipfsmem.published.live_set import tree_bytes
from ipfsmem.sync.anchor_pins import known_roots
from ipfsmem.sync.lost_objects import leave_out
from ipfsmem.sync.names import anchor_names, pin_name, target
from ipfsmem.sync.presence import (
    PATIENCE_MS,
    Checker,
    Known,
    Presence,
    can_be_checked,
    described,
    load,
    note_missing,
    store,
)
from ipfsmem.sync.run import Run
from ipfsmem.sync.sending import new_blocks, send
from ipfsmem.sync.times import DAY_MS, passed

#: Blocks sent together.
_AT_ONCE = 1_000
#: What was sent again so often and is gone once more is left to a person.
_OFTEN = 2
#: A block that was sent again and stayed so long counts as sent for the first time (milliseconds).
_FORGET_MS = 30 * DAY_MS


async def keep_present(
    run: Run,
    provider: Provider,
    root: CID,
    answered: CID,
    *,
    every: bool = False,
    read_all: bool = False,
    mend: bool = True,
    by_hand: bool = False,
    older: Collection[CID] = (),
) -> Presence:
    """Look at what is due of one provider, send again what is missing, remember and report it.

    `every`, `read_all`, `older`: see Checker. `by_hand`: a person asked, so what went missing twice is sent all the same. Raises
    ProviderError when it cannot say, MissingError when structure is neither there nor here.
    """
    replica = run.replica
    if not can_be_checked(provider):
        return described(replica, provider)
    known = load(replica, provider.name)
    before = copy(known)
    served = run.fetcher.served.get(provider.name, ())
    checker = Checker(replica, provider, root, answered, _rings(run), known, run.progress, served)
    looked = await checker.look(every=every, read_all=read_all, older=older)
    can = provider.capabilities
    if looked and mend and (by_hand or checker.shrunk) and can.has and can.partial_car and can.list:
        # A pack that is lost may have held parts of older versions alone.
        # What the provider itself says it lacks goes with `mend`, after this.
        told = await provider.lacking() if isinstance(provider, Mending) and not by_hand else ()
        await checker.look_at_older(await _kept_there(run, provider, answered), but=told)
    sent = 0
    missing = checker.missing
    if looked and mend and provider.capabilities.put:
        if by_hand:
            _begin_anew(run, provider)
            known.stopped = False
        if missing:
            await _fetch_elsewhere(run, missing, by_hand)
            sent = await _send_again(run, provider, root, checker, known, missing, by_hand)
            missing = checker.missing
            if by_hand:  # what a person asked for takes nothing from what goes by itself
                known.sent = 0
        if checker.thorough:
            await _list_again(run, provider, answered)
        if sent or checker.thorough:
            await checker.list_again()
    if looked:
        note_missing(known, missing, replica.world.now())
        known.stopped = known.stopped and bool(missing)
    if known != before:
        with replica.transaction():
            store(replica, provider.name, known)
    found = described(replica, provider, read=checker.seen if looked else 0, sent=sent)
    _tell(run, found)
    if looked:
        _refuse_holes(run, provider, root, checker, missing)
    return found


async def check_one(run: Run, provider: Provider, root: CID | None, *, repair: bool, full: bool) -> Presence:
    """One provider, because a person asked. What cannot be checked now is `unchecked`, with the reason."""
    if root is None:
        return Presence(provider.name, "unchecked", text="nothing was published yet: ipfsmem sync")
    row = placed.under_either_name(run.replica.db.connection, provider.name, str(root))
    answered = parse_cid(row.answered) if row is not None else root
    try:
        older = await _kept_there(run, provider, answered) if full else []
        return await keep_present(
            run, provider, root, answered, every=True, read_all=full, mend=repair, by_hand=repair, older=older
        )
    except MissingError:
        return described(run.replica, provider)
    except ProviderError as error:
        return Presence(provider.name, "unchecked", text=str(error))


async def _kept_there(run: Run, provider: Provider, newest: CID) -> list[CID]:
    """The other roots in a provider's list: what it keeps of the past."""
    if not provider.capabilities.list:
        return []
    return [pin.cid for pin in await provider.pins(pin_name(run.anchor)) if pin.cid != newest]


def _rings(run: Run) -> list[CID]:
    """The roots that anchors lead to, where names are kept at all, and those that were pinned for anchors where none are."""
    found = set(known_roots(run))
    names = any(provider.capabilities.names for provider in run.providers)
    for name in anchor_names(run.replica) if names else ():
        record = run.names.known(name)
        if record is not None:
            with contextlib.suppress(FormatError):
                leads = target(record)
                if isinstance(leads, CID):
                    found.add(leads)
    return sorted(found, key=str)


def _refuse_holes(run: Run, provider: Provider, root: CID, checker: Checker, missing: Sequence[CID]) -> None:
    """Structure that is neither there nor here: raises MissingError."""
    if not missing:
        return
    structure = set(checker.live.structure)
    here = blocks_here(run.replica.db, [cid.digest for cid in missing if cid in structure])
    holes = [cid for cid in missing if cid in structure and cid.digest not in here]
    if holes:
        raise MissingError(
            f"{len(holes)} of the parts by which version {root} is read are neither here nor at {provider.name}, "
            f"for instance {holes[0]}",
            missing=[cid.digest for cid in holes],
        )


def _tell(run: Run, found: Presence) -> None:
    if found.sent:
        count = "1 part was" if found.sent == 1 else f"{found.sent:,} parts were"
        run.notices.say("repaired", f"{count} missing at {found.provider} and sent again")
    if found.state == "waiting":
        run.notices.say("not-served-yet", f"{found.provider}: {found.text}; the next sync looks again")
    elif found.missing:
        run.sending.missing += found.missing
        run.notices.say("missing", f"{found.provider}: {found.text}, for instance {', '.join(found.shown)}")


async def _fetch_elsewhere(run: Run, missing: Sequence[CID], by_hand: bool) -> None:
    """What this device lacks too may be at another provider. Objects that nobody has stand in no root from now on."""
    db = run.replica.db
    away = [cid for cid in missing if not db.has_block(cid.digest)]
    if not away:
        return
    # What is known to be nowhere each sync asks for by itself, within bounds; a person asks for all.
    known = set() if by_hand else objects_not_here(db)
    await run.fetcher.some(cid for cid in away if cid.digest not in known)
    with run.replica.transaction():
        run.fetcher.keep()
        gone = [cid.digest for cid in away if not db.has_block(cid.digest)]
        if gone:
            leave_out(db, gone)


async def _send_again(
    run: Run,
    provider: Provider,
    root: CID,
    checker: Checker,
    known: Known,
    missing: Sequence[CID],
    by_hand: bool,
) -> int:
    """Send what is here of `missing`; how many blocks are there by that."""
    replica = run.replica
    if not provider.capabilities.partial_car:
        # Only whole trees are taken, and of these the newest: what older roots lack stays named.
        live = {*checker.live.structure, *checker.live.objects}
        missing = [cid for cid in missing if cid in live]
    here = blocks_here(replica.db, [cid.digest for cid in missing])
    wanted = [cid for cid in missing if cid.digest in here]
    if _sent_too_often(run, provider, wanted):
        known.stopped = True
        return 0
    today = replica.world.now() // DAY_MS
    if by_hand or known.day != today:
        known.day, known.sent = today, 0
    older = set(checker.older)
    kept = _bytes_of(run, [cid for cid in wanted if cid in older])
    most = (_live_bytes(run, root) + kept) * (2 if by_hand else 1) - known.sent
    if known.sent and _bytes_of(run, wanted) > most:
        return 0  # not a part of it: what is sent twice in vain is left to a person
    if provider.capabilities.partial_car:
        return await _send_blocks(run, provider, root, checker, known, wanted, most)
    now = replica.world.now()
    if not by_hand and (not passed(known.since or now, now, PATIENCE_MS) or most <= 0):
        return 0
    return await _send_tree(run, provider, root, checker, known, wanted)


def _live_bytes(run: Run, root: CID) -> int:
    """The bytes of what lives: the newest tree, and what rings have beside it."""
    db = run.replica.db
    beside = {cid.digest for ring in _rings(run) for cid in new_blocks(db, ring, [root])}
    return tree_bytes(db, root) + sum(len(db.block(digest) or b"") for digest in beside)


def _bytes_of(run: Run, cids: Sequence[CID]) -> int:
    return sum(len(run.replica.db.block(cid.digest) or b"") for cid in cids)


async def _send_blocks(
    run: Run, provider: Provider, root: CID, checker: Checker, known: Known, wanted: list[CID], most: int
) -> int:
    done = 0
    for start in range(0, len(wanted), _AT_ONCE):
        part = wanted[start : start + _AT_ONCE]
        data = read_blocks(run.replica.db, [cid.digest for cid in part])
        blocks: list[Block] = []
        for cid in part:
            block = data.get(cid.digest)
            if block is not None and len(block) <= most:
                blocks.append((cid, block))
                most -= len(block)
        if not blocks:
            continue
        await provider.put_car(root, blocks, name=pin_name(run.anchor))
        size = sum(len(block) for _, block in blocks)
        known.sent += size
        run.sending.count(len(blocks), size)
        _count(run, provider, [cid for cid, _ in blocks])
        done += len(await checker.look_again([cid for cid, _ in blocks]))
    return done


async def _send_tree(
    run: Run, provider: Provider, root: CID, checker: Checker, known: Known, wanted: list[CID]
) -> int:
    """Where only whole trees are taken: the entry that does not serve what it promised goes, the tree is sent anew."""
    if not wanted:
        return 0
    if provider.capabilities.list and provider.capabilities.unpin:
        for pin in await provider.pins(pin_name(run.anchor)):
            if pin.cid == root:
                await provider.unpin(pin)
    sent = await send(
        run.replica, provider, root, list(new_blocks(run.replica.db, root, ())), pin_name(run.anchor)
    )
    known.sent += sent.bytes
    run.sending.count(sent.blocks, sent.bytes)
    _count(run, provider, wanted)
    return len(await checker.look_again(wanted))


async def _list_again(run: Run, provider: Provider, answered: CID) -> None:
    """The root stands in the provider's list, by which a collection there knows what to keep."""
    can = provider.capabilities
    if not can.list or answered in {pin.cid for pin in await provider.pins(pin_name(run.anchor))}:
        return
    if can.pin and can.partial_car:
        await provider.pin(answered, pin_name(run.anchor))
        return
    with run.replica.transaction():  # placed anew by the next sync
        placed.forget(run.replica.db.connection, provider.name, str(answered))


def _sent_too_often(run: Run, provider: Provider, wanted: Sequence[CID]) -> bool:
    """Whether one of these blocks was sent there twice by a repair already, and went missing each time."""
    db, now = run.replica.db.connection, run.replica.world.now()
    often = presence.often_sent(db, provider.name, _OFTEN, now - _FORGET_MS, now)
    return any(cid.digest in often for cid in wanted)


def _begin_anew(run: Run, provider: Provider) -> None:
    with run.replica.transaction():
        presence.forget_sent(run.replica.db.connection, provider.name)


def _count(run: Run, provider: Provider, cids: Sequence[CID]) -> None:
    now = run.replica.world.now()
    with run.replica.transaction():
        db = run.replica.db.connection
        presence.forget_sent_outside(db, now - _FORGET_MS, now)
        presence.count_sent(db, provider.name, [cid.digest for cid in cids], now)
