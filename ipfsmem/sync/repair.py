"""Looking for what is missing at a provider, and sending it again, by any device that has it, within bounds (format section 7).

A provider is sent at most the size of the live tree a day, and that of the older versions kept there when these were looked at.
A block that was sent again twice and is missing once more is not sent a third time: a provider that loses what it takes, or
drops it on purpose, is a matter for a person. Structure that can be had nowhere raises MissingError, so that no name leads to
what nobody could read.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from copy import copy
from typing import Literal

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
    DUE,
    PATIENCE_MS,
    Checker,
    CopyNotes,
    Extent,
    Presence,
    can_be_checked,
    describe_copy,
    load_notes,
    note_missing,
    store_notes,
)
from ipfsmem.sync.run import Run
from ipfsmem.sync.sending import new_blocks, send
from ipfsmem.sync.times import DAY_MS, passed

#: Blocks sent together.
_AT_ONCE = 1_000
#: A block that was sent again this often and is missing once more is left to a person.
_OFTEN = 2
#: A block that was sent again and stayed so long counts as sent for the first time (milliseconds).
_FORGET_MS = 30 * DAY_MS


#: What may be sent again: nothing, what is missing within bounds, or what a person asked for, which is also what went missing twice.
Resend = Literal["nothing", "within bounds", "by hand"]


async def keep_present(
    run: Run,
    provider: Provider,
    root: CID,
    answered: CID,
    *,
    extent: Extent = DUE,
    resend: Resend = "within bounds",
) -> Presence:
    """Look at one provider, send again what is missing there, remember and report it.

    Raises ProviderError when the provider cannot say, MissingError when structure is neither there nor here.
    """
    replica = run.replica
    if not can_be_checked(provider):
        return describe_copy(replica, provider)
    notes = load_notes(replica, provider.name)
    before = copy(notes)
    served = run.fetcher.served.get(provider.name, ())
    checker = Checker(replica, provider, root, answered, _rings(run), notes, run.progress, served)
    looked, sent = await checker.look(extent), 0
    if looked and resend != "nothing":
        sent = await _Repair(run, provider, root, checker, notes, by_hand=resend == "by hand").repair(
            answered
        )
    if looked:
        note_missing(notes, checker.missing, replica.world.now())
        notes.stopped = notes.stopped and bool(checker.missing)
    if notes != before:
        with replica.transaction():
            store_notes(replica, provider.name, notes)
    found = describe_copy(replica, provider, read=checker.seen if looked else 0, sent=sent)
    _tell(run, found)
    if looked:
        _refuse_holes(run, provider, root, checker)
    return found


async def check_one(run: Run, provider: Provider, root: CID | None, *, repair: bool, full: bool) -> Presence:
    """Check one provider because a person asked. Where that is not possible now the answer is `unchecked`, with the reason."""
    if root is None:
        return Presence(provider.name, "unchecked", text="nothing was published yet: ipfsmem sync")
    row = placed.under_either_name(run.replica.db.connection, provider.name, str(root))
    answered = parse_cid(row.answered) if row is not None else root
    try:
        older = await _kept_there(run, provider, answered) if full else []
        extent = Extent(every=True, read_all=full, older=tuple(older))
        resend: Resend = "by hand" if repair else "nothing"
        return await keep_present(run, provider, root, answered, extent=extent, resend=resend)
    except MissingError:
        return describe_copy(run.replica, provider)
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


def _refuse_holes(run: Run, provider: Provider, root: CID, checker: Checker) -> None:
    """Raise MissingError when structure is missing there and not on this device."""
    missing = checker.missing
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
        run.notices.say(
            "repaired", f"{count} missing at {found.provider} and sent again", provider=found.provider
        )
    if found.state == "waiting":
        run.notices.say(
            "not-served-yet",
            f"{found.provider}: {found.text}; the next sync looks again",
            provider=found.provider,
        )
    elif found.missing:
        run.sending.missing += found.missing
        run.notices.say(
            "missing",
            f"{found.provider}: {found.text}, for instance {', '.join(found.examples)}",
            provider=found.provider,
        )


class _Repair:
    """Sending again what a look at one provider found missing. `by_hand`: a person asked for it."""

    def __init__(
        self, run: Run, provider: Provider, root: CID, checker: Checker, notes: CopyNotes, *, by_hand: bool
    ) -> None:
        self._run, self._provider, self._root = run, provider, root
        self._checker, self._notes, self._by_hand = checker, notes, by_hand
        self._db = run.replica.db
        self._now = run.replica.world.now()

    async def repair(self, answered: CID) -> int:
        """Send what is missing and here; how many blocks are there by that. `answered`: the root as the provider calls it."""
        can, checker = self._provider.capabilities, self._checker
        if (self._by_hand or checker.shrunk) and can.has and can.partial_car and can.list:
            # A pack that is lost may have held parts of older versions alone.
            # What the provider itself says it lacks is sent after this (`resend_damaged`).
            mending = self._provider if isinstance(self._provider, Mending) and not self._by_hand else None
            lacking = await mending.lacking() if mending is not None else ()
            await checker.look_at_older(await _kept_there(self._run, self._provider, answered), but=lacking)
        if not can.put:
            return 0
        sent = 0
        if self._by_hand:
            self._forget_sent()
            self._notes.stopped = False
        if missing := checker.missing:
            await self._fetch_elsewhere(missing)
            sent = await self._send_again(missing)
            if self._by_hand:  # what a person asked for takes nothing from what goes by itself
                self._notes.sent = 0
        if checker.thorough:
            await self._list_root(answered)
        if sent or checker.thorough:
            await checker.list_again()
        return sent

    async def _fetch_elsewhere(self, missing: Sequence[CID]) -> None:
        """Ask other providers for what this device lacks too. Objects that nobody has stand in no root from now on."""
        away = [cid for cid in missing if not self._db.has_block(cid.digest)]
        if not away:
            return
        # Each sync asks within bounds for what is known to be nowhere; a person asks for all.
        known = set() if self._by_hand else objects_not_here(self._db)
        fetcher = self._run.fetcher
        await fetcher.try_get(cid for cid in away if cid.digest not in known)
        with self._run.replica.transaction():
            fetcher.keep()
            gone = [cid.digest for cid in away if not self._db.has_block(cid.digest)]
            if gone:
                leave_out(self._db, gone)

    async def _send_again(self, missing: Sequence[CID]) -> int:
        notes, checker = self._notes, self._checker
        partial = self._provider.capabilities.partial_car
        if not partial:
            # Only whole trees are taken, and of these the newest: what older roots lack stays named.
            live = {*checker.live.structure, *checker.live.objects}
            missing = [cid for cid in missing if cid in live]
        here = blocks_here(self._db, [cid.digest for cid in missing])
        wanted = [cid for cid in missing if cid.digest in here]
        if self._sent_too_often(wanted):
            notes.stopped = True
            return 0
        today = self._now // DAY_MS
        if self._by_hand or notes.day != today:
            notes.day, notes.sent = today, 0
        older = set(checker.older)
        older_bytes = self._bytes_of(cid for cid in wanted if cid in older)
        most = (self._live_bytes() + older_bytes) * (2 if self._by_hand else 1) - notes.sent
        if notes.sent and self._bytes_of(wanted) > most:
            return 0  # not a part of it: what is sent twice in vain is left to a person
        if partial:
            return await self._send_blocks(wanted, most)
        if not self._by_hand and (not passed(notes.since or self._now, self._now, PATIENCE_MS) or most <= 0):
            return 0
        return await self._send_tree(wanted)

    def _live_bytes(self) -> int:
        """The bytes of what lives: the newest tree, and what rings have beside it."""
        beside = {
            cid.digest for ring in _rings(self._run) for cid in new_blocks(self._db, ring, [self._root])
        }
        return tree_bytes(self._db, self._root) + sum(len(self._db.block(digest) or b"") for digest in beside)

    def _bytes_of(self, cids: Iterable[CID]) -> int:
        return sum(len(self._db.block(cid.digest) or b"") for cid in cids)

    async def _send_blocks(self, wanted: list[CID], most: int) -> int:
        """Send these blocks, `most` bytes of them."""
        done = 0
        for start in range(0, len(wanted), _AT_ONCE):
            part = wanted[start : start + _AT_ONCE]
            data = read_blocks(self._db, [cid.digest for cid in part])
            blocks: list[Block] = []
            for cid in part:
                block = data.get(cid.digest)
                if block is not None and len(block) <= most:
                    blocks.append((cid, block))
                    most -= len(block)
            if not blocks:
                continue
            await self._provider.put_car(self._root, blocks, name=pin_name(self._run.anchor))
            size = sum(len(block) for _, block in blocks)
            self._notes.sent += size
            self._run.sending.count(len(blocks), size)
            sent = [cid for cid, _ in blocks]
            self._count_sent(sent)
            done += len(await self._checker.look_again(sent))
        return done

    async def _send_tree(self, wanted: list[CID]) -> int:
        """Where only whole trees are taken: unpin the root that is not all served, and send its tree anew."""
        if not wanted:
            return 0
        provider, name = self._provider, pin_name(self._run.anchor)
        if provider.capabilities.list and provider.capabilities.unpin:
            for pin in await provider.pins(name):
                if pin.cid == self._root:
                    await provider.unpin(pin)
        whole = list(new_blocks(self._db, self._root, ()))
        sent = await send(self._run.replica, provider, self._root, whole, name)
        self._notes.sent += sent.bytes
        self._run.sending.count(sent.blocks, sent.bytes)
        self._count_sent(wanted)
        return len(await self._checker.look_again(wanted))

    async def _list_root(self, answered: CID) -> None:
        """See to it that the root stands in the provider's list, by which a collection there knows what to keep."""
        can, name = self._provider.capabilities, pin_name(self._run.anchor)
        if not can.list or answered in {pin.cid for pin in await self._provider.pins(name)}:
            return
        if can.pin and can.partial_car:
            await self._provider.pin(answered, name)
            return
        with self._run.replica.transaction():  # placed anew by the next sync
            placed.forget(self._db.connection, self._provider.name, str(answered))

    def _sent_too_often(self, wanted: Sequence[CID]) -> bool:
        """Whether one of these blocks was sent there twice by a repair already, and went missing each time."""
        often = presence.often_sent(
            self._db.connection, self._provider.name, _OFTEN, self._now - _FORGET_MS, self._now
        )
        return any(cid.digest in often for cid in wanted)

    def _forget_sent(self) -> None:
        with self._run.replica.transaction():
            presence.forget_sent(self._db.connection, self._provider.name)

    def _count_sent(self, cids: Sequence[CID]) -> None:
        with self._run.replica.transaction():
            db, now = self._db.connection, self._now
            presence.forget_sent_outside(db, now - _FORGET_MS, now)
            presence.count_sent(db, self._provider.name, [cid.digest for cid in cids], now)
