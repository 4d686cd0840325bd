"""Collect superseded roots at providers and on this device, by the rules of `retention` (format section 7)."""

from __future__ import annotations

from collections.abc import Set
from typing import Final

import msgspec

from ipfsmem.content.cid import CID, is_cid, parse_cid, raw_cid
from ipfsmem.device.collection import Collected, collect
from ipfsmem.device.recall_image import remove_images
from ipfsmem.device.replica import Replica
from ipfsmem.device.tables import heads, meta, objects, placed
from ipfsmem.errors import ProviderError
from ipfsmem.provider.contract import MAX_BATCH, Collecting, Provider, Unpinning
from ipfsmem.sync.anchor_pins import known_roots, pinned_anchors
from ipfsmem.sync.commits import waiting_root
from ipfsmem.sync.context import SyncContext
from ipfsmem.sync.deletion_holds import (
    Guarded,
    describe_holds,
    drop_guard_pins,
    forget_holds,
    guarded,
    guarded_roots_here,
    holds_at,
    meant,
)
from ipfsmem.sync.local_repair import recount_is_due
from ipfsmem.sync.mass_delete import roots_before_deletes
from ipfsmem.sync.names import Names, pin_name
from ipfsmem.sync.report import Notices
from ipfsmem.sync.retention import KEEP_DAYS, KEEP_ROOTS, PinnedRoot, Verdict, judge
from ipfsmem.sync.times import DAY_MS, passed


class Rules(msgspec.Struct, frozen=True):
    """The user's options: how much to keep (see `retention.judge`), and the guarded roots to release (see
    `deletion_holds.meant`)."""

    dry_run: bool = False
    keep_roots: int = KEEP_ROOTS
    keep_days: int = KEEP_DAYS
    drop_guarded: tuple[str, ...] = ()


#: Hint after a temporary failure of a provider.
_RETRY_HINT: Final = "Try again later: ipfsmem vault compact"


class Collection(msgspec.Struct, frozen=True):
    """The result of a collection: a verdict for each root, at each provider and on this device, and the blocks
    removed here.

    `freed`: bytes freed at a provider that collects on request, now or a day later. `problems`: why such a provider
    did not collect or could not be called. `hint`: next step for these. `guards`: the guarded roots, and which were
    released.
    """

    providers: dict[str, list[Verdict]]
    here: list[Verdict]
    blocks: Collected
    freed: dict[str, int] = {}
    problems: dict[str, str] = {}
    guards: list[Guarded] = []
    hint: str = ""


async def _unpin(
    run: SyncContext,
    provider: Provider,
    rules: Rules,
    *,
    rings: Set[CID],
    held_roots: Set[str],
    dropped: frozenset[str],
) -> list[Verdict]:
    pins = await provider.pins(pin_name(run.anchor))
    db = run.replica.db.connection
    ours = {row.answered: (row.root, row.at) for row in placed.at_provider(db, provider.name)}
    facts = {}
    for pin in pins:
        answered = str(pin.cid)
        root, at = ours.get(answered, (answered, pin.created))
        facts_known = _facts(run.replica, root, at, run.names.roots(), rings, held_roots)
        facts[answered] = msgspec.structs.replace(facts_known, root=answered)
    for pin in await pinned_anchors(run, provider):
        facts[str(pin.cid)] = PinnedRoot(str(pin.cid), pin.created, ring=True)
    whole = await whole_at(run, provider, {pin.cid for pin in pins})
    verdicts = judge(
        facts.values(),
        run.replica.environment.now(),
        whole=whole,
        keep_roots=rules.keep_roots,
        keep_days=rules.keep_days,
    )
    gone = {verdict.root for verdict in verdicts if not verdict.keep}
    if not rules.dry_run:
        await drop_guard_pins(run, provider, dropped)
        leave = [pin for pin in pins if str(pin.cid) in gone]
        if leave and isinstance(provider, Unpinning):
            await provider.unpin_all(leave)
        for pin in leave:
            if not isinstance(provider, Unpinning):
                await provider.unpin(pin)
            with run.replica.transaction():
                placed.forget(db, provider.name, str(pin.cid))
    return verdicts


def judge_known_roots(run: SyncContext, rings: Set[CID], rules: Rules, held_roots: Set[str]) -> list[Verdict]:
    """Return a verdict for each root known to this device, newest first. `held_roots`: roots that remain guarded."""
    return _judge_known(run.replica, run.names.roots(), rings, rules, held_roots)


def superseded(replica: Replica) -> int:
    """Return the number of roots that `gc` would remove, as far as known without a pull."""
    if heads.count(replica.db.connection) <= KEEP_ROOTS:
        return 0
    names = Names(replica, (), Notices()).roots()
    return sum(
        not verdict.keep for verdict in _judge_known(replica, names, set(), Rules(), set(guarded(replica.db)))
    )


def collection_is_due(replica: Replica) -> bool:
    """Tell whether the user enabled collecting, and a day has passed since the last one."""
    last = int(replica.db.get_meta(meta.COLLECTED) or b"0")
    return replica.config.collect is not None and passed(last, replica.environment.now(), DAY_MS)


async def collect_when_due(run: SyncContext, rings: Set[CID]) -> None:
    """Collect once a day if the user enabled it. A failure is retried a day later."""
    keep, now = run.replica.config.collect, run.replica.environment.now()
    if keep is None or not collection_is_due(run.replica):
        return
    with run.replica.transaction():
        run.replica.db.set_meta(meta.COLLECTED, str(now).encode())
    try:
        done = await collect_roots(run, rings, Rules(keep_roots=keep.roots, keep_days=keep.days))
    except ProviderError as error:
        run.notices.failed("old versions could not be deleted", error)
        return
    gone = {
        verdict.root
        for verdicts in (*done.providers.values(), done.here)
        for verdict in verdicts
        if not verdict.keep
    }
    if gone:
        subject = "1 old version" if len(gone) == 1 else f"{len(gone):,} old versions"
        run.notices.say(
            "collected",
            f"{subject} deleted by the retention rules. To delete only by hand again: ipfsmem vault compact --by-hand",
        )


def _judge_known(
    replica: Replica, named_roots: Set[CID], rings: Set[CID], rules: Rules, held_roots: Set[str]
) -> list[Verdict]:
    rows = heads.newest_first(replica.db.connection)
    facts = [
        _facts(replica, row.root, row.seen, named_roots, rings, held_roots)
        for row in rows
        if is_cid(row.root)
    ]
    return judge(
        facts, replica.environment.now(), whole=True, keep_roots=rules.keep_roots, keep_days=rules.keep_days
    )


def _facts(
    replica: Replica, root: str, at: int, named_roots: Set[CID], rings: Set[CID], held_roots: Set[str]
) -> PinnedRoot:
    """Return what this device knows of a root.

    `at`: when it was pinned or seen (milliseconds); `held_roots`: the roots guarded by this or another device.
    """
    head = heads.get(replica.db.connection, root)
    cid = parse_cid(root)
    return PinnedRoot(
        root,
        head.seen if head else at,
        maker=head.device if head else "",
        verified=head is not None,
        named=cid in named_roots,
        ring=head is None and cid in rings,
        guarded=root in held_roots,
        deletes_since=root in roots_before_deletes(replica),
    )


async def whole_at(run: SyncContext, provider: Provider, pinned: Set[CID]) -> bool:
    """Tell whether all objects of the joined state are in what is pinned at this provider now, block by block where
    possible.

    A recorded upload is not sufficient, since it may have been unpinned.
    """
    root = run.replica.db.get_meta(meta.ROOT)
    db = run.replica.db.connection
    row = placed.get(db, provider.name, root.decode()) if root is not None else None
    there = row is not None and parse_cid(row.answered) in pinned
    if recount_is_due(run.replica.db):
        return False  # rows of objects were lost, so unnamed objects may still be needed
    digests = objects.digests(db)
    if not there or not all(run.replica.db.has_block(digest) for digest in digests):
        return False
    if provider.capabilities.has:
        cids = [raw_cid(digest) for digest in digests]
        for start in range(0, len(cids), MAX_BATCH):
            batch = cids[start : start + MAX_BATCH]
            if len(await provider.has(batch)) < len(batch):
                return False
    return True


async def collect_roots(run: SyncContext, rings: Set[CID], rules: Rules) -> Collection:
    """Unpin superseded roots and drop blocks that only they needed, after a pull (format section 7).

    `rings`: the ring-only roots found by the pull that an anchor names.
    """
    problems: dict[str, ProviderError] = {}
    elsewhere: set[str] = set()
    for provider in run.providers:
        try:
            elsewhere |= (await holds_at(run, provider)).keys()
        except ProviderError as error:
            problems[provider.name] = error
    dropped = meant(run, rules.drop_guarded, elsewhere)
    guard_list = describe_holds(run, elsewhere, dropped)
    held_roots = {*guarded(run.replica.db), *elsewhere} - dropped
    verdicts: dict[str, list[Verdict]] = {}
    for provider in run.providers:
        can = provider.capabilities
        if provider.name in problems or not (can.list and can.unpin):
            continue
        try:
            verdicts[provider.name] = await _unpin(
                run, provider, rules, rings=rings, held_roots=held_roots, dropped=dropped
            )
        except ProviderError as error:
            problems[provider.name] = error
    if problems and not verdicts:
        raise next(iter(problems.values()))
    here = judge_known_roots(run, rings, rules, held_roots)
    collected = _collect_here(run, here, rules, dropped)
    freed = await _collect_at_providers(run, problems) if not rules.dry_run else {}
    errors = {one.shown: one.error() for one in run.not_opened} | problems
    reasons = {name: error.in_a_line() for name, error in errors.items()}
    lasting = bool(errors) and all(error.permanent for error in errors.values())
    hint = (next(iter(errors.values())).hint if lasting else "") or (_RETRY_HINT if errors else "")
    return Collection(verdicts, here, collected, freed, reasons, guard_list, hint)


def _collect_here(run: SyncContext, here: list[Verdict], rules: Rules, dropped: frozenset[str]) -> Collected:
    """Drop this device's superseded roots, and the blocks that only they needed."""
    stay = [parse_cid(verdict.root) for verdict in here if verdict.keep]
    # The root of a failed sync is not among the heads yet, and the next sync sends it.
    waiting = waiting_root(run.replica)
    stay += [waiting] if waiting is not None else []
    stay += [root for root in guarded_roots_here(run.replica.db) if str(root) not in dropped]
    with run.replica.transaction():
        collected = collect(
            run.replica.store, [*stay, *run.names.roots(), *known_roots(run)], dry_run=rules.dry_run
        )
        if not rules.dry_run:
            heads.forget(run.replica.db.connection, [verdict.root for verdict in here if not verdict.keep])
            forget_holds(run.replica, dropped)
    if not rules.dry_run:
        run.replica.db.shrink()
        remove_images(run.replica)  # these may contain removed texts
    return collected


async def _collect_at_providers(run: SyncContext, problems: dict[str, ProviderError]) -> dict[str, int]:
    """Ask providers to free blocks where required; return the bytes freed. Adds to `problems`."""
    freed: dict[str, int] = {}
    for provider in run.providers:
        if isinstance(provider, Collecting) and provider.name not in problems:
            try:
                freed[provider.name] = await provider.collect()
            except ProviderError as error:
                problems[provider.name] = error
    return freed
