"""Find missing blocks at a provider and resend them from any device that has them, within bounds (format section 7).

Per day a provider is sent at most the size of the live tree, plus that of older versions if these were
checked. A block resent twice and missing again is left to the user: the provider loses or drops what it gets.
Structure available nowhere raises MissingError, so that no name leads to an unreadable root. Blocks that a provider
reports as damaged are sent without a walk of the tree.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from typing import Literal

from ipfsmem.content.cid import CID, parse_cid
from ipfsmem.device.bulk import blocks_here, read_blocks
from ipfsmem.device.root_folders import objects_not_here
from ipfsmem.device.tables import placed, presence
from ipfsmem.errors import FormatError, MissingError, ProviderError
from ipfsmem.provider.contract import MAX_BATCH, Block, Provider, Repair
from ipfsmem.published.live_set import tree_bytes
from ipfsmem.sync.anchor_pins import known_roots
from ipfsmem.sync.context import SyncContext
from ipfsmem.sync.local_repair import leave_out
from ipfsmem.sync.names import anchor_names, pin_name, target
from ipfsmem.sync.pin_lists import lists_root
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
    unchecked,
)
from ipfsmem.sync.sending import new_blocks, send
from ipfsmem.sync.times import DAY_MS, passed

#: Number of blocks sent together.
_AT_ONCE = 1_000
#: Maximum number of automatic uploads of a missing block.
_MAX_RESENDS = 2
#: Milliseconds after which the count of a resent block that stayed is reset.
_FORGET_MS = 30 * DAY_MS


#: Allowed uploads: nothing, missing blocks within bounds, or at the user's request, which includes blocks
#: lost twice.
Resend = Literal["nothing", "within bounds", "by hand"]


async def keep_present(
    run: SyncContext,
    provider: Provider,
    root: CID,
    answered: CID,
    *,
    extent: Extent = DUE,
    resend: Resend = "within bounds",
) -> Presence:
    """Check one provider, resend missing blocks, record and report the result.

    Raises ProviderError if the provider cannot answer, MissingError when structure is neither there nor here.
    """
    replica = run.replica
    if not can_be_checked(provider):
        return describe_copy(replica, provider)
    notes = load_notes(replica, provider.name)
    before = copy(notes)
    served = run.fetcher.served.get(provider.name, ())
    checker = Checker(replica, provider, root, answered, _rings(run), notes, run.progress, served)
    was_checked, sent = await checker.check_due(extent), 0
    if was_checked and resend != "nothing":
        sent = await _ProviderRepair(run, provider, root, checker, notes, by_hand=resend == "by hand").repair(
            answered
        )
    if was_checked:
        note_missing(notes, checker.missing, replica.environment.now())
        notes.stopped = notes.stopped and bool(checker.missing)
    if notes != before:
        with replica.transaction():
            store_notes(replica, provider.name, notes)
    description = describe_copy(replica, provider, read=checker.seen if was_checked else 0, sent=sent)
    _tell(run, description)
    if was_checked:
        _refuse_holes(run, provider, root, checker)
    return description


async def look_in_group(
    run: SyncContext, provider: Provider, root: CID, answered: CID, extent: Extent
) -> Callable[[], None] | None:
    """Check a root whose upload is not durable yet, and resend nothing.

    Return what records the check once the group is durable, or None where the usual check must follow: blocks are
    missing, or more is due than what is new. Raises ProviderError if the provider cannot answer.
    """
    if not can_be_checked(provider):
        return lambda: None
    notes = load_notes(run.replica, provider.name)
    served = run.fetcher.served.get(provider.name, ())
    checker = Checker(run.replica, provider, root, answered, _rings(run), notes, run.progress, served)
    was_checked = await checker.check_due(extent)
    if was_checked and (checker.missing or checker.thorough or checker.shrunk):
        return None

    def record() -> None:
        if was_checked:
            note_missing(notes, [], run.replica.environment.now())
        with run.replica.transaction():
            store_notes(run.replica, provider.name, notes)
        _tell(run, describe_copy(run.replica, provider, read=checker.seen if was_checked else 0))

    return record


async def check_one(
    run: SyncContext, provider: Provider, root: CID | None, *, repair: bool, full: bool
) -> Presence:
    """Check one provider at the user's request. If impossible now, return `unchecked` with the reason."""
    if root is None:
        text = "nothing was published yet"
        return Presence(provider.name, "unchecked", text=text, hint="Publish the vault: ipfsmem sync")
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
        return unchecked(provider.name, error)


async def _kept_there(run: SyncContext, provider: Provider, newest: CID) -> list[CID]:
    """Return the other roots in a provider's list: its history."""
    if not provider.capabilities.list:
        return []
    return [pin.cid for pin in await provider.pins(pin_name(run.anchor)) if pin.cid != newest]


def _rings(run: SyncContext) -> list[CID]:
    """Return the roots of anchors: those that names lead to, or without names those pinned for anchors."""
    roots = set(known_roots(run))
    names = any(provider.capabilities.names for provider in run.providers)
    for name in anchor_names(run.replica) if names else ():
        record = run.names.known(name)
        if record is not None:
            with contextlib.suppress(FormatError):
                leads = target(record)
                if isinstance(leads, CID):
                    roots.add(leads)
    return sorted(roots, key=str)


def _refuse_holes(run: SyncContext, provider: Provider, root: CID, checker: Checker) -> None:
    """Raise MissingError when structure is missing both there and here."""
    missing = checker.missing
    if not missing:
        return
    structure = set(checker.live.structure)
    here = blocks_here(run.replica.db, [cid.digest for cid in missing if cid in structure])
    holes = [cid for cid in missing if cid in structure and cid.digest not in here]
    if holes:
        raise MissingError(
            f"{len(holes)} parts that version {root} needs are neither here nor at {provider.name}, "
            f"for instance {holes[0]}",
            missing=[cid.digest for cid in holes],
        )


def _tell(run: SyncContext, description: Presence) -> None:
    if description.sent:
        count = "1 part was" if description.sent == 1 else f"{description.sent:,} parts were"
        run.notices.say(
            "repaired",
            f"{count} missing at {description.provider} and sent again",
            provider=description.provider,
        )
    if description.state == "waiting":
        run.notices.say(
            "not-served-yet",
            f"{description.provider}: {description.text}; the next sync checks again",
            provider=description.provider,
        )
    elif description.missing:
        run.sending.missing += description.missing
        run.notices.say(
            "missing",
            f"{description.provider}: {description.text}, for instance {', '.join(description.examples)}",
            provider=description.provider,
        )


class _ProviderRepair:
    """Resends what a check of one provider found missing. `by_hand`: at the user's request."""

    def __init__(
        self,
        run: SyncContext,
        provider: Provider,
        root: CID,
        checker: Checker,
        notes: CopyNotes,
        *,
        by_hand: bool,
    ) -> None:
        self._run, self._provider, self._root = run, provider, root
        self._checker, self._notes, self._by_hand = checker, notes, by_hand
        self._db = run.replica.db
        self._now = run.replica.environment.now()

    async def repair(self, answered: CID) -> int:
        """Send what is missing and local; return the number of blocks restored. `answered`: the root as known
        to the provider."""
        can, checker = self._provider.capabilities, self._checker
        if (self._by_hand or checker.shrunk) and can.has and can.partial_car and can.list:
            # A lost pack may have held only parts of older versions. What the provider itself reports as
            # damaged is sent later (`resend_damaged`).
            mending = self._provider if isinstance(self._provider, Repair) and not self._by_hand else None
            reported_missing = await mending.missing_blocks() if mending is not None else ()
            await checker.look_at_older(
                await _kept_there(self._run, self._provider, answered), but=reported_missing
            )
        if not can.put:
            return 0
        sent = 0
        if self._by_hand:
            self._forget_sent()
            self._notes.stopped = False
        if missing := checker.missing:
            await self._fetch_elsewhere(missing)
            sent = await self._send_again(missing)
            if self._by_hand:  # a user's request does not use up the automatic budget
                self._notes.sent = 0
        if checker.thorough:
            await self._list_root(answered)
        if sent or checker.thorough:
            await checker.list_again()
        return sent

    async def _fetch_elsewhere(self, missing: Sequence[CID]) -> None:
        """Request what this device lacks too from other providers. Objects that nobody has are excluded from roots."""
        away = [cid for cid in missing if not self._db.has_block(cid.digest)]
        if not away:
            return
        # A sync requests known losses only within bounds; a user's request all.
        absent = set() if self._by_hand else objects_not_here(self._db)
        fetcher = self._run.fetcher
        await fetcher.try_get(cid for cid in away if cid.digest not in absent)
        with self._run.replica.transaction():
            fetcher.keep()
            gone = [cid.digest for cid in away if not self._db.has_block(cid.digest)]
            if gone:
                leave_out(self._db, gone)

    async def _send_again(self, missing: Sequence[CID]) -> int:
        notes, checker = self._notes, self._checker
        partial = self._provider.capabilities.partial_car
        if not partial:
            # Only whole trees are accepted, and only the newest is sent: what older roots lack stays recorded.
            live = {*checker.live.structure, *checker.live.objects}
            missing = [cid for cid in missing if cid in live]
        here = blocks_here(self._db, [cid.digest for cid in missing])
        cids = [cid for cid in missing if cid.digest in here]
        if self._sent_too_often(cids):
            notes.stopped = True
            return 0
        today = self._now // DAY_MS
        if self._by_hand or notes.day != today:
            notes.day, notes.sent = today, 0
        older = set(checker.older)
        older_bytes = self._bytes_of(cid for cid in cids if cid in older)
        most = (self._live_bytes() + older_bytes) * (2 if self._by_hand else 1) - notes.sent
        if notes.sent and self._bytes_of(cids) > most:
            return 0  # not a part of it: what is sent twice in vain is left to the user
        if partial:
            return await self._send_blocks(cids, most)
        if not self._by_hand and (not passed(notes.since or self._now, self._now, PATIENCE_MS) or most <= 0):
            return 0
        return await self._send_tree(cids)

    def _live_bytes(self) -> int:
        """Return the bytes of the live set: the newest tree, and the blocks of rings beyond it."""
        ring_only = {
            cid.digest for ring in _rings(self._run) for cid in new_blocks(self._db, ring, [self._root])
        }
        return tree_bytes(self._db, self._root) + sum(
            len(self._db.block(digest) or b"") for digest in ring_only
        )

    def _bytes_of(self, cids: Iterable[CID]) -> int:
        return sum(len(self._db.block(cid.digest) or b"") for cid in cids)

    async def _send_blocks(self, cids: list[CID], most: int) -> int:
        """Send these blocks, up to `most` bytes."""
        done = 0
        for start in range(0, len(cids), _AT_ONCE):
            part = cids[start : start + _AT_ONCE]
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

    async def _send_tree(self, cids: list[CID]) -> int:
        """Where only whole trees are accepted: unpin the incompletely served root, and send its tree again."""
        if not cids:
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
        self._count_sent(cids)
        return len(await self._checker.look_again(cids))

    async def _list_root(self, answered: CID) -> None:
        """Ensure that the root is in the provider's list, by which a collection there knows what to keep."""
        can, name = self._provider.capabilities, pin_name(self._run.anchor)
        if can.list and can.pin and can.partial_car:
            await self._provider.pin(answered, name)  # a list may be cached, and its file lost
            return
        if not can.list or await lists_root(self._provider, name, {answered}):
            return
        with self._run.replica.transaction():  # the next sync places it again
            placed.forget(self._db.connection, self._provider.name, str(answered))

    def _sent_too_often(self, cids: Sequence[CID]) -> bool:
        """Tell whether a repair already sent one of these blocks there twice, without success."""
        often = presence.often_sent(
            self._db.connection, self._provider.name, _MAX_RESENDS, self._now - _FORGET_MS, self._now
        )
        return any(cid.digest in often for cid in cids)

    def _forget_sent(self) -> None:
        with self._run.replica.transaction():
            presence.forget_sent(self._db.connection, self._provider.name)

    def _count_sent(self, cids: Sequence[CID]) -> None:
        with self._run.replica.transaction():
            db, now = self._db.connection, self._now
            presence.forget_sent_outside(db, now - _FORGET_MS, now)
            presence.count_sent(db, self._provider.name, [cid.digest for cid in cids], now)


async def resend_damaged(run: SyncContext, provider: Provider, root: CID) -> None:
    """Send what a provider reports as lost, as far as local. `root` heads the CAR.

    Providers that cannot notice are not called. Raises ProviderError if sending fails.
    """
    if not isinstance(provider, Repair) or not provider.capabilities.partial_car:
        return
    try:
        missing = (await provider.missing_blocks())[:MAX_BATCH]
    except ProviderError as error:
        message = f"the list of damaged parts at {provider.name} could not be read"
        run.notices.failed(message, error, provider=provider.name)
        return
    sent = 0
    for start in range(0, len(missing), _AT_ONCE):
        part = missing[start : start + _AT_ONCE]
        here = read_blocks(run.replica.db, [cid.digest for cid in part])
        blocks: list[Block] = [(cid, here[cid.digest]) for cid in part if cid.digest in here]
        if blocks:
            await provider.put_car(root, blocks, name=pin_name(run.anchor))
            sent += len(blocks)
            run.sending.count(len(blocks), sum(len(data) for _, data in blocks))
    if sent:
        run.notices.say(
            "mended",
            f"{sent} parts that were damaged at {provider.name} were sent again",
            provider=provider.name,
        )
