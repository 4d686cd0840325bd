"""One sync: find and verify heads, admit, join, publish, each step on the result of the one before (`steps`).
The only code that calls a vault's providers.

Order (format section 7): read names and roots until nothing new is learned; keep rings; detect reuse of this
device's counters; join every verified head; with an unlocked root enrol this device and move the anchor;
publish. Each step is on disk before the next begins, so a crash loses nothing and the whole is repeated. One
sync at a time per vault; writes continue meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Final

import msgspec

from ipfsmem.content.cid import CID, ipns_name, parse_cid
from ipfsmem.device.lock import file_lock_async
from ipfsmem.device.replica import Replica
from ipfsmem.device.tables import meta, placed
from ipfsmem.errors import (
    ConfigError,
    DamagedError,
    FormatError,
    LimitError,
    NotFoundError,
    ProviderError,
    SignatureError,
)
from ipfsmem.provider.contract import Provider, Settling, Unreading
from ipfsmem.provider.opening import NotOpened
from ipfsmem.published.ipns_record import IpnsRecord, verify_record
from ipfsmem.published.layout import Layout
from ipfsmem.ring.keyring import Ring
from ipfsmem.ring.statements import member_id
from ipfsmem.sync.admission import admit
from ipfsmem.sync.anchors import is_anchor_behind, note_full_check
from ipfsmem.sync.changes import changes_of
from ipfsmem.sync.collection import Collection, Rules, collect_roots, collect_when_due, collection_is_due
from ipfsmem.sync.company import Company, CompanyMember, clock_time
from ipfsmem.sync.context import RightsOfAgents, SyncContext, no_agents
from ipfsmem.sync.deletion_holds import publish_holds
from ipfsmem.sync.discovery import discover
from ipfsmem.sync.forwarding import describe_move, unanswered_move
from ipfsmem.sync.join_step import join_found
from ipfsmem.sync.join_work import joined_before
from ipfsmem.sync.local_repair import forget_damaged_notes
from ipfsmem.sync.mailbox import admit_mailbox, collect_mailbox
from ipfsmem.sync.moving import Moved, move_roots
from ipfsmem.sync.names import anchor_names, member_names, pin_name, target
from ipfsmem.sync.pin_lists import lists_root
from ipfsmem.sync.presence import Presence, unchecked
from ipfsmem.sync.progress import Progress, no_progress
from ipfsmem.sync.publish import publish
from ipfsmem.sync.removals import tell_of_removals
from ipfsmem.sync.repair import check_one
from ipfsmem.sync.report import Notices, SyncReport
from ipfsmem.sync.salvage import Salvageable, Salvaged, bring_back, find_salvageable
from ipfsmem.sync.snapshots import begin_snapshots, end_snapshots
from ipfsmem.sync.steps import Joined, Published
from ipfsmem.sync.unlocked_root import administer
from ipfsmem.wallet.root_keys import RootKeys
from ipfsmem.wording import count

#: Seconds that a sync waits for another program's sync of the same vault; for one in its own process it waits
#: to the end.
WAIT_FOR_OTHERS: Final = 60.0


async def sync(
    replica: Replica,
    providers: Sequence[Provider],
    layout: Layout,
    *,
    not_opened: Sequence[NotOpened] = (),
    root: RootKeys | None = None,
    named_root: CID | None = None,
    rights_of_agents: RightsOfAgents = no_agents,
    progress: Progress = no_progress,
) -> SyncReport:
    """Pull, join, publish. Raises ProviderError if no provider does; nothing local is lost then.

    `named_root`, `rights_of_agents`: see `SyncContext`. `not_opened`: providers that cannot be opened now (`Providers`); the report names
    them.
    """
    async with _alone(replica) as notices:
        company = Company(replica, providers, progress)
        run = partial(
            SyncContext, replica, company.members, root, progress, named_root=named_root, not_opened=not_opened,
            rights_of_agents=rights_of_agents, company=company,
        )  # fmt: skip
        ring_before = replica.ring
        begin_snapshots(replica, providers, cached=not collection_is_due(replica))
        try:
            early = await _hurried(run(Notices()), company, layout)
            if early is not None and not company.late:
                done = early
            else:
                done = await _in_full(run(Notices()), company, layout, early)
        finally:
            end_snapshots(replica, providers)
            company.keep_pauses()
        _tell_of_removals(done.run, ring_before)
    await _settle(done.run)
    report = done.report
    messages = [*notices.said, *report.notices, *done.run.notices.said]
    report.notices = list(dict.fromkeys(messages))
    _tell_of_missed(report, company)
    return report


class _Done(msgspec.Struct):
    """A finished run of a sync; `failure`: why nobody accepted what it published."""

    run: SyncContext
    report: SyncReport
    failure: ProviderError | None = None


async def _hurried(run: SyncContext, company: Company, layout: Layout) -> _Done | None:
    """Sync with the providers that do not keep others waiting; None if pointless or without result.

    A vault without a ring is not joined in part: what a missing provider has may be its newest state.
    """
    if not company.is_company or run.replica.ring is None:
        return None
    company.begin(hurried=True)
    try:
        return await _once(run, layout)
    except ProviderError:
        if not company.late:
            raise
        return None


async def _in_full(run: SyncContext, company: Company, layout: Layout, early: _Done | None) -> _Done:
    """Sync with all providers, each until its deadline, after the hurried run."""
    company.begin(hurried=False)
    try:
        done = await _once(run, layout)
    except ProviderError as error:
        if early is None or early.failure is not None:
            raise
        # Uploads that other providers accepted stay valid, and the report names the rest.
        early.run.notices.failed("not every provider was reached", error)
        return early
    done.report.after(early.report if early is not None else None)
    return done


async def _once(run: SyncContext, layout: Layout) -> _Done:
    started = time.monotonic()
    joined = await _pull(run)
    doubtful = is_anchor_behind(run, joined.found.anchored)
    # Before an unlocked root revokes expired keys: what they wrote until then is admitted.
    mailbox = await admit_mailbox(run, joined, run.rights_of_agents(run.replica))
    anchored = administer(run, joined)
    published, failure = Published(), None
    try:
        published = await publish(run, joined, layout, anchored, suspicious=doubtful)
    except ProviderError as error:
        if run.company is None or not run.company.late:
            raise
        failure = error
    if run.company is None or not run.company.late:
        await _look_after(run, joined)
        await collect_mailbox(run, mailbox, published)
        if doubtful:
            note_full_check(run)
    return _Done(run, _report(run, joined, published, started), failure)


def _unread_records(run: SyncContext) -> int:
    """Report and return the number of records and lists that exist but are unreadable."""
    unread = 0
    for provider in run.providers:
        for file in provider.unread() if isinstance(provider, Unreading) else ():
            unread += 1
            run.notices.say(
                "record-unread",
                f"{provider.name} holds {file}, which cannot be read: newer texts may be missing here. If a sync program still copies it or keeps it online only, let it download the file; otherwise sync the device that wrote it, which uploads it again",
                provider=provider.name,
            )
    return unread + len(run.names.unread)


def _tell_of_missed(report: SyncReport, company: Company) -> None:
    """Name the providers that did not take part to the end, each once, even where nothing had to be sent."""
    for one in company.members:
        _join_refusals(report, one)
    for one in company.absent:
        if one.name not in report.not_placed:
            report.not_placed.append(one.name)
        if one.gone is None:
            continue
        report.notices = [
            notice
            for notice in report.notices
            if notice.kind not in ("channel-down", "provider-down")
            or not any(text in notice.text for text in (str(one.gone), one.cause))
        ]
        consequence = "its new texts were not read, and new texts of this device were not published there"
        if one.paused_until:
            until = clock_time(one.paused_until)
            cause = f" ({one.cause})" if one.cause != str(one.gone) else ""
            report.say(
                "provider-paused",
                f"{one.name} accepts no requests until {until}{cause}: {consequence}. Syncs that begin earlier skip it",
                provider=one.name,
            )
        else:
            report.say(
                "provider-down", f"{one.gone}: {consequence}; the next sync tries again", provider=one.name
            )


def _join_refusals(report: SyncReport, member: CompanyMember) -> None:
    """Report a provider that refused to read and to publish only once, as refused."""
    unpublished = f"not published at {member.name}: "
    reads = [
        notice
        for notice in report.notices
        if notice.kind == "channel-down" and any(text in notice.text for text in member.refusals)
    ]
    if not reads or not any(notice.text.startswith(unpublished) for notice in report.notices):
        return
    report.notices = [
        msgspec.structs.replace(notice, text=f"{notice.text.rstrip('.')}. New texts there were not read.")
        if notice.kind == "provider-refused" and notice.text.startswith(unpublished)
        else notice
        for notice in report.notices
        if notice not in reads
    ]


async def _pull(run: SyncContext) -> Joined:
    """Find, verify and join all heads. Raises ProviderRefused if no provider could be opened."""
    for one in run.not_opened:
        if not run.providers:
            raise one.error()
        run.notices.say("not-opened", one.error().in_a_line(), provider=one.shown)
    discovered = await discover(run)
    admitted = admit(run, discovered)
    joined = await join_found(run, admitted)
    _tell_of_move(run)
    return joined


async def restore(
    replica: Replica,
    providers: Sequence[Provider],
    layout: Layout | None,
    *,
    root: RootKeys,
    named_root: CID | None = None,
    damaged_ok: bool = False,
    progress: Progress = no_progress,
    finders: Company | None = None,
) -> SyncReport:
    """Run the first sync of a vault being restored: pull, join, enrol this device, publish.

    `layout=None`: publishing is not yet agreed. `named_root`: see `SyncContext`. `finders`: the company that found
    the vault; providers given up there take no part. Reading suffices: what no provider accepts now stays on this
    device, signed, for a later sync without a root; a notice says so.

    Raises UnreadError if newer heads exist than could be read now, and DamagedError when heads exist and none could
    be joined whole, unless `damaged_ok` announces a salvage afterwards.
    """
    started = time.monotonic()
    company = Company(replica, providers, progress, before=finders)
    members = company.members
    async with _begun(replica, members, root, progress, named_root=named_root, company=company) as run:
        async with company.detecting_unresponsive():
            joined = await _pull(run)
        if not damaged_ok:
            _require_whole(run, joined)
        anchored = administer(run, joined)
        published = Published()
        if layout is not None:
            try:
                published = await publish(run, joined, layout, anchored)
                await _look_after(run, joined)
            except (ProviderError, ConfigError) as error:
                wait = isinstance(error, ProviderError) and not error.permanent
                why = str(error) if wait or not error.hint else f"{error}. {error.hint}"
                run.notices.say(
                    "not-published",
                    f"the vault is restored and usable, but other devices do not know this one yet: nothing was published at {run.where} ({why}). The next sync tries again: ipfsmem sync",
                )
        company.keep_pauses()
        _tell_of_removals(run, None)
    await _settle(run)
    report = _report(run, joined, published, started)
    _tell_of_missed(report, company)
    return report


def _require_whole(run: SyncContext, joined: Joined) -> None:
    joined.outages.refuse(joined.with_content, run.where)
    if (parts := joined.unreadable) and _may_administer(run):
        raise DamagedError(
            f"this vault could not be read completely at {run.where}: at least {count(parts, 'part')} cannot be read. "
            f"{run.notices.first('damaged', 'head-refused')}",
            hint="If another device still has the vault, sync it and try again. Otherwise restore the readable part: ipfsmem recover --damaged, then: ipfsmem vault repair",
        )


def _may_administer(run: SyncContext) -> bool:
    """Tell whether the unlocked root still administers this vault, or none is unlocked. Otherwise no salvage
    is suggested."""
    if run.replica.ring is None or run.root is None:
        return True
    view, me = run.replica.ring.view, member_id(run.root.admin_public)
    return view.may_administer(me) and me not in view.must_exclude


async def salvage(
    replica: Replica,
    providers: Sequence[Provider],
    layout: Layout | None,
    *,
    picked: frozenset[str] = frozenset(),
    not_opened: Sequence[NotOpened] = (),
    root: RootKeys | None = None,
    progress: Progress = no_progress,
) -> tuple[Salvageable, Salvaged | None, SyncReport]:
    """Pull, restore what damaged heads prove and the loose values under the entry names `picked`, and publish.

    `layout=None` only reports. Nothing beyond format section 7.1 is trusted.
    """
    started = time.monotonic()
    done: Salvaged | None = None
    published = Published()
    async with _begun(replica, providers, root, progress, not_opened=not_opened) as run:
        joined = await _pull(run)
        salvageable = await find_salvageable(run, list(joined.damaged.values()))
        if layout is not None:
            with replica.transaction():
                done = bring_back(replica, salvageable, picked)
            published = await publish(run, joined, layout, joined.found.anchored)
            await _look_after(run, joined)
    await _settle(run)
    return salvageable, done, _report(run, joined, published, started)


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
    """Copy every live root, the ring and the names to `target`, and check there that nothing is missing.

    Syncs with all of them first. May be interrupted and repeated: nothing is sent twice, and nothing is
    removed from the old providers. Raises ProviderRefused naming the first thing missing at `target` in the
    end.
    """
    async with _begun(replica, [*providers, target], root, progress, not_opened=not_opened) as run:
        joined = await _pull(run)
        anchored = administer(run, joined)
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
    async with _begun(replica, providers, None, progress, not_opened=not_opened) as run:
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
    """Check each provider for all live data, block by block; `full` reads every block.

    `repair` resends what is missing there and here, even what was lost before. Pulls; publishes nothing.
    """
    async with _begun(replica, providers, None, progress) as run:
        root = replica.db.get_meta(meta.ROOT)
        return [
            await check_one(
                run, provider, parse_cid(root.decode()) if root else None, repair=repair, full=full
            )
            for provider in providers
            if provider.capabilities.put or provider.capabilities.pin
        ] + [unchecked(one.shown, one.error()) for one in not_opened]


async def leading(
    replica: Replica, providers: Sequence[Provider], *, progress: Progress = no_progress
) -> list[str]:
    """The names of the providers that lead a new device to what was published last. One that does not answer is not among them."""
    async with _begun(replica, providers, None, progress) as run:
        root = replica.db.get_meta(meta.ROOT)
        return [one.name for one in providers if root is not None and await _leads(run, one, root.decode())]


async def _leads(run: SyncContext, provider: Provider, root: str) -> bool:
    """Whether a provider lists a root, or shows an anchor and that the name of this device points at the root."""
    row = placed.under_either_name(run.replica.db.connection, provider.name, root)
    roots = {parse_cid(root), *([parse_cid(row.answered)] if row is not None else [])}
    own = ipns_name(run.replica.device.sign_public)
    try:
        if provider.capabilities.list and await lists_root(provider, pin_name(run.anchor), roots):
            return True
        if not provider.capabilities.names:
            return False
        record = await _record(provider, own)
        if record is None or target(record) not in roots:
            return False
        return any([await _record(provider, name) for name in sorted(anchor_names(run.replica))])
    except (ProviderError, FormatError):
        return False


async def _record(provider: Provider, name: str) -> IpnsRecord | None:
    """The valid record of a name that a provider shows."""
    encoded = await provider.get_name(name)
    try:
        return None if encoded is None else verify_record(name, encoded)
    except (FormatError, SignatureError, LimitError):
        return None


async def look_there(
    replica: Replica, target: Provider, *, root: RootKeys | None = None, progress: Progress = no_progress
) -> SyncReport:
    """Pull only from the provider to which this vault is said to have moved.

    Raises NotFoundError if it has no head of this vault: never follow a move to an empty provider.
    """
    started = time.monotonic()
    async with _begun(replica, [target], root, progress) as run:
        joined = await _pull(run)
        if not await _shows(run, joined, target):
            raise NotFoundError(
                f"{target.name} lists no version of this vault",
                hint="Compare its address with that on another device: ipfsmem provider list.",
            )
    return _report(run, joined, Published(), started)


async def _shows(run: SyncContext, joined: Joined, provider: Provider) -> bool:
    """Tell whether the provider itself leads to a verified head of this vault, from this sync or earlier."""
    roots = {*joined.heads, *joined_before(run.replica)}
    leads: set[CID | str] = set()
    for record in run.names.shown_by(provider):
        with contextlib.suppress(FormatError):
            leads.add(target(record))
    if not roots.isdisjoint(leads):
        return True
    return provider.capabilities.list and await lists_root(provider, pin_name(run.anchor), roots)


async def pull(
    replica: Replica,
    providers: Sequence[Provider],
    *,
    not_opened: Sequence[NotOpened] = (),
    progress: Progress = no_progress,
) -> SyncReport:
    """Find, verify and join all heads, and publish nothing: for a member that only reads, in memory.

    Raises ProviderError when no provider shows the vault, UnreadError when newer heads exist than could be read.
    """
    started = time.monotonic()
    company = Company(replica, providers, progress)
    notices = Notices()
    run = SyncContext(
        replica, company.members, None, progress, notices, not_opened=not_opened, company=company
    )
    begin_snapshots(replica, providers, cached=False)
    try:
        async with company.detecting_unresponsive():
            joined = await _pull(run)
    finally:
        end_snapshots(replica, providers)
    joined.outages.refuse(joined.with_content, run.where)
    await _settle(run)
    report = _report(run, joined, Published(), started)
    _tell_of_missed(report, company)
    return report


# -- what every sync begins and ends with --------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def _begun(
    replica: Replica,
    providers: Sequence[Provider],
    root: RootKeys | None,
    progress: Progress,
    *,
    named_root: CID | None = None,
    not_opened: Sequence[NotOpened] = (),
    company: Company | None = None,
) -> AsyncIterator[SyncContext]:
    """Start a run with exclusive access to its vault, unaffected by damaged notes. Raises UsageError for a
    read-only vault."""
    async with _alone(replica) as notices:
        begin_snapshots(replica, providers, cached=False)
        try:
            yield SyncContext(
                replica,
                providers,
                root,
                progress,
                notices,
                named_root=named_root,
                not_opened=not_opened,
                company=company,
            )
        finally:
            end_snapshots(replica, providers)


@contextlib.asynccontextmanager
async def _alone(replica: Replica) -> AsyncIterator[Notices]:
    replica.refuse_read_only()
    async with contextlib.AsyncExitStack() as stack:
        if replica.folder is not None:
            lock = file_lock_async(replica.folder / "sync.lock", wait=WAIT_FOR_OTHERS)
            await stack.enter_async_context(lock)
        notices = Notices()
        forget_damaged_notes(replica, notices)
        yield notices


async def _look_after(run: SyncContext, joined: Joined) -> None:
    """Maintain guards, then names on behalf of others, then collect."""
    replica = run.replica
    await publish_holds(run)
    others = sorted(member_names(replica) - {ipns_name(replica.device.sign_public)})
    await run.names.put_for_others(others, without=run.sending.without)
    await collect_when_due(run, joined.found.ring_roots)


def _tell_of_removals(run: SyncContext, ring_before: Ring | None) -> None:
    """Report removals last: a one-time notice must be in a report that arrives, and a failed sync has none."""
    with run.replica.transaction():
        tell_of_removals(run.replica, ring_before, run.notices)


def _tell_of_move(run: SyncContext) -> None:
    move = unanswered_move(run.replica)
    if move is not None:
        run.notices.say("moved", describe_move(run.replica, move))


async def _settle(run: SyncContext) -> None:
    """Wait for background work of providers in this sync; other syncs need not wait for it."""
    settling = [provider for provider in run.providers if isinstance(provider, Settling)]
    failures_of = await asyncio.gather(*(provider.settle() for provider in settling))
    for provider, failures in zip(settling, failures_of, strict=True):
        for failure in failures:
            run.notices.say(
                "channel-down",
                f"{provider.name} stored the upload, but {failure}",
                provider=provider.name,
            )


def _report(run: SyncContext, joined: Joined, published: Published, started: float) -> SyncReport:
    """Assemble the report from the results of the steps. `started`: by the monotonic clock, in seconds."""
    sending, fetcher, silent = run.sending, run.fetcher, sorted(joined.silent)
    fresh = joined.found.fresh
    not_opened = [one.shown for one in run.not_opened]
    return SyncReport(
        root=str(published.root) if published.root is not None else None,
        published=published.new,
        adopted=published.adopted,
        heads_joined=joined.heads_joined,
        entries_changed=sum(joined.changed_in.values()),
        changed_in={**joined.changed_in},
        sources=[*joined.sources],
        changes=changes_of(joined.kinds),
        not_fetched=joined.not_fetched,
        left_out=joined.left_out,
        damaged=len(joined.damaged) + len(joined.lost) + len(joined.found.unusable),
        blocks_received=fetcher.blocks,
        bytes_received=fetcher.bytes,
        blocks_sent=sending.blocks,
        bytes_sent=sending.bytes,
        missing=sending.missing,
        unread=len(joined.outages.roots) + (len(silent) if fresh else 0) + _unread_records(run),
        not_placed=list(dict.fromkeys([*([] if fresh else silent), *sending.not_placed, *not_opened])),
        blocked=published.blocked,
        new_identity=joined.new_identity,
        seconds=round(time.monotonic() - started, 3),
        notices=run.notices.said,
    )
