"""Upload roots and records to providers: each receives what it lacks, and one accepting provider is sufficient.

Placements are recorded, so that the next sync makes up for an outage.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final

import msgspec

from ipfsmem.content.cid import CID, ipns_name, parse_cid
from ipfsmem.device.bulk import no_collection, not_here
from ipfsmem.device.tables import placed
from ipfsmem.device.tables.placed import PlacedRow
from ipfsmem.errors import (
    ConfigError,
    MissingError,
    ProviderError,
    ProviderUnavailable,
)
from ipfsmem.provider.contract import Connecting, Fetching, GroupCommit, Provider
from ipfsmem.sync.anchor_pins import publish_anchor_pins
from ipfsmem.sync.company import side_by_side
from ipfsmem.sync.context import SyncContext
from ipfsmem.sync.names import DEVICE_LIFE_MS, pin_name, target
from ipfsmem.sync.pin_lists import lists_root, readable_pins
from ipfsmem.sync.presence import Extent, can_be_checked, load_notes
from ipfsmem.sync.repair import keep_present, look_in_group, resend_damaged
from ipfsmem.sync.sending import Sent, new_blocks, send
from ipfsmem.sync.steps import Joined
from ipfsmem.sync.times import passed

#: How long, in milliseconds, a service's list may lack a new placement: many answer lists from an index that lags.
LIST_LAG_MS: Final = 600_000


async def publish_anchors(run: SyncContext, joined: Joined) -> None:
    """Put anchors where they are missing or old, preceded by their ring if made here.

    Devices cannot sign them, and somebody must keep them alive (format section 7).
    """
    names = [ipns_name(anchor) for anchor in sorted(run.anchors())]
    for name in names:
        record = run.names.known(name)
        if record is None or not run.names.differs(name):
            continue
        leads = target(record)
        if isinstance(leads, CID) and run.replica.db.has_block(leads.digest):
            await upload(run, joined, leads, check=False)
    await run.names.put(names, without=run.sending.without)
    await publish_anchor_pins(run)


async def upload(
    run: SyncContext,
    joined: Joined,
    root: CID,
    *,
    check: bool = True,
    every: bool = False,
    lead: Callable[[Provider], Awaitable[None]] | None = None,
) -> CID:
    """Place a root concurrently at every provider without it; return the root for names to point at.

    `check`: verify afterwards what is due, with `every` every block. One provider that accepts the root suffices: the
    others get it at the next sync. `lead` makes names at a provider lead to the root: it is called, without waiting
    for others, for each that accepted it (with its own root) and for those with names only. Raises the first failure
    if none accepted it, or the error of one that could not be opened when no open one accepts uploads.
    """
    upload = _RootUpload(run, joined, root, check=check, every=every, lead=lead)
    return await upload.at_all()


class _RootUpload:
    """One root on its way to all providers."""

    def __init__(
        self,
        run: SyncContext,
        joined: Joined,
        root: CID,
        *,
        check: bool,
        every: bool,
        lead: Callable[[Provider], Awaitable[None]] | None,
    ) -> None:
        self._run, self._joined, self._root = run, joined, root
        self._check, self._every, self._lead = check, every, lead
        self._answers: dict[str, CID] = {}
        self._failures: dict[str, ProviderError] = {}
        #: Set when some provider has the root, or none will.
        self._decided = asyncio.Event()

    async def at_all(self) -> CID:
        run = self._run
        takers = [provider for provider in run.providers if provider.capabilities.put]
        followers = [provider for provider in run.providers if not provider.capabilities.put]
        await side_by_side(
            [self._at_takers(takers), *(self._at_follower(provider) for provider in followers)]
        )
        if not self._answers:
            raise self._nobody(takers)
        for provider in run.providers:
            if (failure := self._failures.get(provider.name)) is not None:
                run.notices.failed(f"not published at {provider.name}", failure, provider=provider.name)
                if provider.name not in run.sending.not_placed:
                    run.sending.not_placed.append(provider.name)
        return self._answered(takers)

    def _nobody(self, takers: Sequence[Provider]) -> ProviderError | ConfigError:
        for provider in takers:
            if provider.name in self._failures:
                return self._failures[provider.name]
        if self._run.not_opened:
            return self._run.not_opened[0].error()
        return ConfigError(f"nothing can be published at {self._run.where}")

    def _answered(self, takers: Sequence[Provider]) -> CID:
        """Return the root for names to point at: ours if somebody keeps it, else the first one's own."""
        answers = [self._answers[one.name] for one in takers if one.name in self._answers]
        return self._root if self._root in answers else answers[0]

    async def _at_takers(self, takers: Sequence[Provider]) -> None:
        try:
            await side_by_side(self._at_taker(provider) for provider in takers)
        finally:
            self._decided.set()

    async def _at_taker(self, provider: Provider) -> None:
        run, root = self._run, self._root
        led = isinstance(provider, GroupCommit)
        try:
            if isinstance(provider, GroupCommit):
                answered = await self._place_in_group(provider, provider)
            elif self._check:
                answered = await _place_and_check(run, self._joined, provider, root, self._every)
            else:
                answered = await upload_to(run, self._joined, provider, root)
        except ProviderError as error:
            self._failures[provider.name] = error
            run.sending.without.add(provider.name)
            return
        self._answers[provider.name] = answered
        if answered == root:
            self._decided.set()
            if not led:
                await self._lead_there(provider)
        try:
            await resend_damaged(run, provider, root)
        except ProviderError as error:
            run.notices.failed(
                f"damaged parts at {provider.name} could not be sent again", error, provider=provider.name
            )

    async def _place_in_group(self, provider: Provider, group: GroupCommit) -> CID:
        """Upload and pin the root, check it and move names there, in one commit; it is noted as placed when all is durable.

        Where the check has more to do than to find everything, it follows that commit, and names move in another.
        """
        run, root = self._run, self._root
        async with self._grouped(provider, group):
            uploaded = await _upload_root(run, self._joined, provider, root)
            record = await self._look(provider, uploaded.answered) if self._check else _nothing
            if record is not None and uploaded.answered == root:
                await self._lead_there(provider)
        answered = _note_brought(run, provider, root, uploaded)
        if record is not None:
            record()
            return answered
        await _check_placed(run, provider, root, answered, self._every)
        if answered == root:
            async with self._grouped(provider, group):
                await self._lead_there(provider)
        return answered

    @contextlib.asynccontextmanager
    async def _grouped(self, provider: Provider, group: GroupCommit) -> AsyncIterator[None]:
        """Commit what is written inside, or nothing of it; then names are as before."""
        shown = self._run.names.shown(provider.name)
        group.begin_group()
        try:
            yield
            await group.commit_group()
        except BaseException:
            group.discard_group()
            self._run.names.take_back(provider.name, shown)
            raise

    async def _look(self, provider: Provider, answered: CID) -> Callable[[], None] | None:
        """Check the root within its group; see `look_in_group`. A check that is impossible keeps nobody waiting."""
        try:
            return await look_in_group(self._run, provider, self._root, answered, Extent(every=self._every))
        except MissingError:
            raise
        except ProviderError as error:
            _tell_unchecked(self._run, provider, error)
            return _nothing

    async def _at_follower(self, provider: Provider) -> None:
        """Pin what others accepted, and move names there, at a provider without uploads."""
        await self._decided.wait()
        if not self._answers:
            return
        answered = self._root if self._root in self._answers.values() else next(iter(self._answers.values()))
        if answered == self._root:
            await self._lead_there(provider)
        if provider.capabilities.pin:
            try:
                await _pin_at(self._run, provider, self._root, answered)
            except ProviderError as error:
                self._failures[provider.name] = error

    async def _lead_there(self, provider: Provider) -> None:
        if self._lead is not None and provider.capabilities.names:
            await self._lead(provider)


async def _place_and_check(
    run: SyncContext, joined: Joined, provider: Provider, root: CID, every: bool
) -> CID:
    """Upload and pin a root, then check its tree. Names are moved after that (format section 7)."""
    answered = await upload_to(run, joined, provider, root)
    await _check_placed(run, provider, root, answered, every)
    return answered


async def _check_placed(run: SyncContext, provider: Provider, root: CID, answered: CID, every: bool) -> None:
    try:
        await keep_present(run, provider, root, answered, extent=Extent(every=every))
    except MissingError:
        raise
    except ProviderError as error:
        _tell_unchecked(run, provider, error)


def _tell_unchecked(run: SyncContext, provider: Provider, error: ProviderError) -> None:
    run.notices.failed(f"the content of {provider.name} could not be checked", error, provider=provider.name)


def _nothing() -> None:
    """Record nothing."""


class _Brought(msgspec.Struct, frozen=True):
    """How a root came to be at a provider: `sent` now, or there since an earlier sync."""

    answered: CID
    sent: Sent | None = None
    #: It was noted as placed, and the provider did not list it any more.
    unlisted: bool = False


async def upload_to(run: SyncContext, joined: Joined, provider: Provider, root: CID) -> CID:
    """Upload and pin a root unless known to be there; return the provider's root."""
    return _note_brought(run, provider, root, await _upload_root(run, joined, provider, root))


async def _upload_root(run: SyncContext, joined: Joined, provider: Provider, root: CID) -> _Brought:
    row = placed.under_either_name(run.replica.db.connection, provider.name, str(root))
    if row is not None and await _serves_root(run, provider, row):
        return _Brought(parse_cid(row.answered))
    run.progress(f"publishing to {provider.name}", 0, 0)
    name = pin_name(run.anchor)
    if row is None and _has_what_it_lists(provider) and root in joined.heads:
        pins, _ = await readable_pins(provider, name)  # sent again if only an unread part lists it
        pinned = [pin for pin in pins if pin.cid == root]
        if pinned:
            return _Brought(root, Sent(0, 0, root, pinned[0].handle))
    roots = _whole_roots_at(run, provider) if provider.capabilities.partial_car else []
    cids = await _fetch_tree(run, root, roots)
    others = root in joined.heads or joined.heads_joined > 0
    ask = others or not roots
    there = run.sending.taken.get(provider.name, set()) | run.fetcher.served.get(provider.name, set())
    sent = await send(run.replica, provider, root, cids, name, ask=ask, others=others, there=there)
    return _Brought(sent.root, sent, row is not None)


def _note_brought(run: SyncContext, provider: Provider, root: CID, uploaded: _Brought) -> CID:
    """Note what is durable at a provider now; return its root."""
    if (report := uploaded.sent) is not None:
        run.sending.taken.setdefault(provider.name, set()).update(report.new)
        run.sending.count(report.blocks, report.bytes)
        with run.replica.transaction():
            now = run.replica.environment.now()
            row = PlacedRow(provider.name, str(root), str(report.root), report.handle, now)
            placed.put(run.replica.db.connection, row)
        if uploaded.unlisted:
            _tell_of_unlisted(run, provider, root)
    return uploaded.answered


def _whole_roots_at(run: SyncContext, provider: Provider) -> list[CID]:
    """Return roots with complete trees at a provider: the last one found complete, or if that is unknowable
    the last one placed."""
    if can_be_checked(provider):
        confirmed = load_notes(run.replica, provider.name).root
        return [parse_cid(confirmed)] if confirmed else []
    return [parse_cid(row.root) for row in placed.newest_at(run.replica.db.connection, provider.name, 2)]


async def _fetch_tree(run: SyncContext, root: CID, roots: Sequence[CID]) -> list[CID]:
    """Return a root's blocks beyond the trees of `roots`, fetching those missing here from anywhere."""
    db = run.replica.db
    while True:
        with no_collection():
            cids = list(new_blocks(db, root, roots))
        missing = not_here(db, cids)
        if not missing:
            return cids
        blocks, _ = await run.fetcher.try_get(missing)
        with run.replica.transaction():
            run.fetcher.keep()
        if not blocks:
            return cids


async def _pin_at(run: SyncContext, provider: Provider, root: CID, answered: CID) -> None:
    """Pin a root where uploads are impossible: such a service fetches it from where it was placed."""
    db = run.replica.db.connection
    row = placed.get(db, provider.name, str(root))
    if row is not None and await _serves_root(run, provider, row):
        return
    try:
        pin = await provider.pin(answered, pin_name(run.anchor))
    except ProviderUnavailable:
        if not await _connect_nodes(run, provider):
            raise
        pin = await provider.pin(answered, pin_name(run.anchor))
    with run.replica.transaction():
        now = run.replica.environment.now()
        placed.put(db, PlacedRow(provider.name, str(root), str(answered), pin.handle, now))
    if row is not None:
        _tell_of_unlisted(run, provider, root)


async def _connect_nodes(run: SyncContext, provider: Provider) -> bool:
    """Connect this device's nodes with a service's fetching nodes, as its API requests; tell whether one is connected.

    Behind a router only this side can connect.
    """
    addresses = provider.fetchers() if isinstance(provider, Fetching) else []
    connected = 0
    for node in run.providers if addresses else ():
        if isinstance(node, Connecting):
            with contextlib.suppress(ProviderError):
                connected += await node.connect(addresses)
    return connected > 0


async def _serves_root(run: SyncContext, provider: Provider, row: PlacedRow) -> bool:
    """Tell whether a placed root is still there, checked only where cheap: an account may be closed, a pin removed
    manually.

    Where a listing is read, the presence check notices. A list says nothing about a recent placement.
    """
    can = provider.capabilities
    root = parse_cid(row.answered)
    if can.listing:
        return True
    if can.has:
        return bool(await provider.has([root]))
    if not _has_what_it_lists(provider) or not passed(row.at, run.replica.environment.now(), LIST_LAG_MS):
        return True
    try:
        return await lists_root(provider, pin_name(run.anchor), {root})
    except ProviderError:
        return True  # inconclusive, and the search for heads there has reported it


def _tell_of_unlisted(run: SyncContext, provider: Provider, root: CID) -> None:
    run.notices.say(
        "repaired",
        f"{provider.name} no longer listed version {root}, published there before, and was asked to pin it again",
        provider=provider.name,
    )


def _has_what_it_lists(provider: Provider) -> bool:
    """Tell whether a service has complete trees for all it lists, or nothing; in its own layout, which may be
    only partly here."""
    return provider.capabilities.list and not provider.capabilities.partial_car


def move_former(run: SyncContext, joined: Joined, root: CID) -> list[str]:
    """After this device took a new id, point its former name at `root` too while no other device knows the
    new one; return the names to put."""
    former = run.replica.former_device()
    if former is None:
        return []
    if joined.known_elsewhere:
        with run.replica.transaction():
            run.replica.forget_former_device()
        return []
    value = f"/ipfs/{root}"
    known = run.names.known(ipns_name(former.sign_public))
    if known is not None and known.value == value:
        return []
    # The old id may be in use elsewhere, and the record shown to us may be old.
    return [run.names.sign(former.sign_seed, former.sign_public, value, DEVICE_LIFE_MS, instead=True)]
