"""Discover heads: follow anchors to the ring, its members' names and their roots, until no new ones appear (format
7).

Every root is verified before use, so that names, pin lists and providers can only withhold data. Verified rings are
stored; `join_step` joins the states.
"""

from __future__ import annotations

import contextlib
from collections.abc import Set
from typing import Final

from ipfsmem.content.cid import CID, ipns_name
from ipfsmem.content.reader import Reader
from ipfsmem.errors import (
    BlockError,
    FormatError,
    IpfsmemError,
    LimitError,
    MembershipError,
    NotFoundError,
    OpenError,
    ProviderError,
    SealError,
    SignatureError,
)
from ipfsmem.provider.contract import Provider, Unreading
from ipfsmem.published.root_reader import RootFiles, read_root
from ipfsmem.published.root_verification import Head, VerifiedRoot, open_root, verify_again
from ipfsmem.ring.authority import RANK_ROOT
from ipfsmem.ring.keyring import WARN_FROM, Ring, parse_keyring
from ipfsmem.ring.labels import label_and_id
from ipfsmem.ring.operations import MAX_FAMILIES
from ipfsmem.ring.retention_rules import MAX_SUCCESSORS
from ipfsmem.ring.statements import Revoke
from ipfsmem.seal.objects import EpochKey
from ipfsmem.sync.anchor_pins import MAX_HOPS, MAX_PINS, PINS_AT_ONCE, learn_anchor, learn_unknown_anchors
from ipfsmem.sync.context import SyncContext
from ipfsmem.sync.names import pin_name, target
from ipfsmem.sync.pin_lists import ListReads, readable_pins
from ipfsmem.sync.refusal_reasons import reason
from ipfsmem.sync.steps import DiscoveredHeads
from ipfsmem.sync.unjoined_heads import held_heads, not_whole

#: Maximum number of names looked up per sync for devices admitted by admins: 64 families with 8 successors each.
#: Names of devices admitted by roots are always looked up first, so that nobody can hide their texts by filling the
#: ring.
MAX_NAMES = MAX_FAMILIES * (1 + MAX_SUCCESSORS)
#: Errors of roots that a ring with more keys and members may accept.
_BY_RING: Final = (MembershipError, OpenError, SignatureError)
#: Approximate maximum number of unnamed keys kept in one sync: more than any real vault has.
_MOST_UNNAMED: Final = 65_536
#: The source in reports of a root that the user specified.
_GIVEN: Final = "the given version"


async def discover(run: SyncContext) -> DiscoveredHeads:
    """Read anchors and device names, then their roots, until nothing new is learned.

    Verified rings are kept at once, since they lead to further names.
    """
    search = Search(run)
    todo = [ipns_name(run.anchor)]
    if run.root is not None:
        todo.append(ipns_name(run.root.head_public))
    requested: set[str] = set()
    await _follow_all(search, todo, requested)
    if run.named_root is not None:
        # The user specified this root, so it is an error if only older ones are found.
        await _open_named(search, {_GIVEN: run.named_root}, anchor=False)
        await _follow_all(search, _to_ask(search, requested), requested)
    search.held = held_heads(run.replica)
    again = [root for root in (*search.held, *not_whole(run.replica)) if _is_news(search, root, False)]
    failed = await _open_roots(search, again, anchor=False)  # unreadable now: the head remains held
    search.later.update(root for root, error in failed.items() if isinstance(error, ProviderError))
    await _verify_by_whole_ring(search, requested)
    if run.root is not None:
        await learn_unknown_anchors(run)
    return search.found()


async def discover_older(run: SyncContext, earlier: DiscoveredHeads) -> DiscoveredHeads:
    """Add heads of pin lists, among which is a complete older head if names led to damaged ones."""
    search = Search(run, earlier)
    if not search.lists_read and (failure := await _open_pins(search)) is not None and not search.heads:
        raise failure
    await _verify_by_whole_ring(search, None)
    return search.found()


class Search:
    """The results so far. Only this module changes them."""

    def __init__(self, run: SyncContext, earlier: DiscoveredHeads | None = None) -> None:
        self.run = run
        so_far = earlier or DiscoveredHeads(fresh=run.replica.ring is None)
        self.fresh = so_far.fresh
        self.heads = dict(so_far.heads)
        self.opened = set(so_far.opened)
        self.in_part = set(so_far.in_part)
        self.unread = set(so_far.unread)
        self.unusable = set(so_far.unusable)
        self.refused = set(so_far.refused)
        self.later = set(so_far.later)
        self.outages = so_far.outages.after({}, ())
        self.lists_read = so_far.lists_read
        #: Providers whose pin lists were due and read.
        self.looked: set[str] = set()
        #: Names and the roots that they lead to.
        self.leads: dict[str, CID] = {}
        #: Roots of names that no provider could serve now.
        self.unread_named: dict[CID, ProviderError] = {}
        self.listed = set(so_far.listed)
        self.ring_roots = set(so_far.ring_roots)
        self.headless = set(so_far.headless)
        self.anchored = so_far.anchored
        self.held = so_far.held
        self.known_elsewhere = so_far.known_elsewhere
        #: Keys from rings that no statement named at the time; another ring may name them.
        self.unnamed: set[EpochKey] = set()
        #: The ring by which each head was verified, or each root refused.
        self.verified_with: dict[CID, Ring | None] = {}
        self.refused_with: dict[CID, Ring | None] = {}
        #: Refused roots by source (name or list), reported at the end, since a later ring may accept them.
        self.refusals: list[tuple[str, dict[CID, IpfsmemError]]] = []

    def found(self) -> DiscoveredHeads:
        """Return the results for the next step."""
        return DiscoveredHeads(
            heads=dict(self.heads),
            fresh=self.fresh,
            opened=frozenset(self.opened),
            in_part=frozenset(self.in_part),
            unread=frozenset(self.unread),
            unusable=frozenset(self.unusable & self.refused),
            refused=frozenset(self.refused),
            later=frozenset(self.later),
            outages=self.outages,
            lists_read=self.lists_read,
            listed=frozenset(self.listed),
            ring_roots=frozenset(self.ring_roots),
            headless=frozenset(self.headless),
            anchored=self.anchored,
            held=self.held,
            known_elsewhere=self.known_elsewhere,
        )

    def put_off(self, root: CID, error: ProviderError) -> None:
        """Defer a head that cannot be read now to a later sync. It blocks nothing else."""
        self.opened.discard(root)  # only partly opened
        self.outages.note(root, error)
        self.run.notices.put_off(root, error)


async def _follow_all(search: Search, todo: list[str], requested: set[str]) -> None:
    """Look up the names `todo` and all that their rings lead to, collecting them in `requested`; then read pin lists,
    and again, until nothing new is learned."""
    while todo:
        while todo:
            requested.update(todo)
            leads = await _resolve(search, todo)
            search.leads |= leads
            anchors = _anchor_names(search.run)
            await _open_named(
                search, {name: root for name, root in leads.items() if name in anchors}, anchor=True
            )
            await _open_named(
                search, {n: root for n, root in leads.items() if n not in anchors}, anchor=False
            )
            await _retry_refused(search)
            todo = _to_ask(search, requested)
        await _read_lists(search)
        await _retry_refused(search)
        todo = _to_ask(search, requested)


async def _read_lists(search: Search) -> None:
    """Read the pin lists that are due, each once per sync; all of them whole where no name led to a root."""
    if search.lists_read:
        return
    if search.opened and any(p.capabilities.names for p in search.run.providers):
        await read_lists_with_names(search)
        return
    # When names are lost or hidden, pin lists still show roots; each is verified like any other.
    if search.run.root is not None and search.run.root.head_public != search.run.anchor:
        await learn_anchor(search.run, search.run.root.head_public)
        own = await _resolve(search, [ipns_name(search.run.root.head_public)])
        await _open_named(search, own, anchor=True)
    if (failure := await _open_pins(search)) is not None:
        raise failure


async def _retry_refused(search: Search) -> None:
    """Verify refused roots again until the ring stops growing, since another root may have enrolled their devices."""
    while again := [
        r for r, judged_by in search.refused_with.items() if judged_by is not search.run.replica.ring
    ]:
        for root, error in (await _open_roots(search, again, anchor=False)).items():
            if isinstance(error, ProviderError):
                search.put_off(root, error)


async def _verify_by_whole_ring(search: Search, requested: set[str] | None) -> None:
    """Verify every root by the join of all rings, so that the order of reading does not matter, then report refusals.

    A head is refused if another ring revokes its device, and accepted if another ring enrols its device. Also looks
    up the names that the rings lead to, unless `requested` is None.
    """
    replica = search.run.replica
    while True:
        ring = replica.ring
        keys = [key for key in search.unnamed if ring is not None and key.id in ring.view.names]
        if ring is not None and not set(keys) <= {*ring.keys}:
            with replica.transaction():
                replica.set_ring(ring.add((), keys))
        await _retry_refused(search)
        if requested is not None and replica.ring is not ring:
            await _follow_all(search, _to_ask(search, requested), requested)
        if replica.ring is ring:
            break
    _put_off_unread(search)
    for root, judged_by in search.verified_with.items():
        if judged_by is ring or ring is None or root not in search.heads:
            continue
        try:
            search.heads[root] = verify_again(search.heads[root], ring, held=root in search.held)
        except (MembershipError, SignatureError) as error:
            del search.heads[root]
            search.refused.add(root)
            _refuse(search, root, str(root), error)
    _report_refused(search)


def _put_off_unread(search: Search) -> None:
    """Defer the unreadable roots of names, except for names of devices that may not write by the joined ring, whose
    roots are not heads."""
    ring = search.run.replica.ring
    members = ring.view.members.values() if ring is not None else ()
    writers = {ipns_name(one.sign) for one in members if ring is not None and ring.view.may_write(one.id)}
    writers |= _anchor_names(search.run) | _own_past(search)
    roots_named = {*search.leads.values()}
    may_be_heads = {root for name, root in search.leads.items() if name in writers}
    for root, error in search.unread_named.items():
        if (root in may_be_heads or root not in roots_named) and root not in search.heads:
            search.put_off(root, error)
    search.unread_named.clear()
    search.unread -= roots_named - may_be_heads
    search.unusable -= roots_named - may_be_heads


async def _open_pins(search: Search) -> ProviderError | None:
    """Open every root in pin lists, newest first, many at a time: a long-offline device has its newest head among old
    ones.

    An unreadable root does not block others. Returns the failure if no listed root is a head, or if no provider lists
    its roots. Names do not replace a list: at providers without names, they are this device's own records.
    """
    shown: set[CID] = set()
    failure: ProviderError | None = None
    search.lists_read = True
    any_answer = any(provider.capabilities.names for provider in search.run.providers)
    for provider in search.run.providers:
        if not provider.capabilities.list:
            continue
        roots, unread = await _listed(search, provider)
        if unread and not roots:
            continue
        any_answer = True
        shown.update(roots)
        if len(roots) > MAX_PINS:
            search.run.notices.say(
                "pins",
                f"{provider.name} keeps {len(roots)} versions of this vault: only the newest {MAX_PINS} were read. Delete old ones: ipfsmem vault compact",
                provider=provider.name,
            )
        fresh = [root for root in roots[:MAX_PINS] if _is_news(search, root, False)]
        if search.fresh:
            search.listed.update(fresh)  # minus those that names lead to, once the ring is known
        failed = await _open_listed(search, fresh)
        search.outages.note_listed(roots, failed)
        _report_pins(search, provider, failed)
        down = (error for error in failed.values() if isinstance(error, ProviderError))
        failure = failure or next(down, None)
    if failure is None and (search.fresh or not any_answer):
        failure = next(iter(search.outages.silent.values()), None)
    return failure if shown.isdisjoint(search.heads) else None


async def _listed(search: Search, provider: Provider) -> tuple[list[CID], bool]:
    """Return the roots of a provider's pin list as far as it can be read, newest first; True when a part cannot (reported)."""
    pins, error = await readable_pins(provider, pin_name(search.run.anchor))
    roots = list(dict.fromkeys(pin.cid for pin in sorted(pins, key=lambda pin: -pin.created)))
    if error is not None:
        search.outages.unread_lists[provider.name] = error
        if not provider.capabilities.names:
            search.outages.silent[provider.name] = error
        # the provider's names lead to the same roots
        is_told = not provider.capabilities.names or search.run.names.tells_of_all(provider.name)
        consequence = (
            ". Versions listed only there come with a later sync"
            if is_told
            else ", so newer texts may be missing; the next sync tries again"
        )
        part = f" after {len(pins):,} entries" if pins else ""
        search.run.notices.say(
            "channel-down",
            f"the pin list of {provider.name} could not be read{part}: {error}{consequence}",
            provider=provider.name,
        )
    return roots, error is not None


async def read_lists_with_names(search: Search) -> None:
    """Read pin lists although names exist: always at providers without names, since no name leads to what was
    published only there.

    At others as well, when `pin_lists` says so: a name can lose a publish when two devices move an anchor at
    once, or a provider and a device are rolled back together.
    """
    looks = ListReads.of(search.run.replica, unlocked=search.run.root is not None)
    leads_back = _is_any_rolled_back(search)
    for provider in search.run.providers:
        can = provider.capabilities
        # A name that leads to no root or to an older root may have lost a publish.
        due = not can.names or provider.name in search.run.names.behind or leads_back or _unread_at(provider)
        if provider.name in search.looked or not (can.list and (due or looks.is_due(provider.name))):
            continue
        search.looked.add(provider.name)
        roots, unread = await _listed(search, provider)
        if unread and not roots:
            continue
        news = [root for root in looks.unseen(provider.name, roots) if _is_news(search, root, False)]
        search.listed.update(news)
        failed = await _open_listed(search, news)
        search.outages.note_listed(roots, failed)
        _report_pins(search, provider, failed)
        in_part = [root for root in news if root in search.heads and search.heads[root].unknown_devices]
        part = MembershipError("joined in part")
        if not unread:
            looks.note(provider.name, news, failed | dict.fromkeys(in_part, part))
    with search.run.replica.transaction():
        looks.keep()


def _is_any_rolled_back(search: Search) -> bool:
    """Tell whether a device's name leads to an older version than that device published before."""
    ring = search.run.replica.ring
    devices = {ipns_name(one.sign): one.id for one in ring.view.members.values()} if ring is not None else {}
    heads_of: dict[str, list[Head]] = {}
    for head in search.heads.values():
        if head.root not in search.held:
            heads_of.setdefault(head.commit.commit.dev, []).append(head)
    for name, root in search.leads.items():
        led_to = search.heads.get(root)
        if led_to is not None and any(
            not _covers(led_to, own) for own in heads_of.get(devices.get(name, ""), ())
        ):
            return True
    return False


def _covers(head: Head, other: Head) -> bool:
    ctx = head.commit.commit.ctx
    return all(dev in ctx and ctx[dev].n >= seen.n for dev, seen in other.commit.commit.ctx.items())


def _unread_at(provider: Provider) -> list[str]:
    return provider.unread() if isinstance(provider, Unreading) else []


async def _open_listed(search: Search, roots: list[CID]) -> dict[CID, IpfsmemError]:
    """Open the roots of one list and return the failures. Stops after `PINS_AT_ONCE` roots of which none is readable."""
    failed: dict[CID, IpfsmemError] = {}
    for start in range(0, len(roots), PINS_AT_ONCE):
        part = roots[start : start + PINS_AT_ONCE]
        problems = await _open_roots(search, part, anchor=False)
        failed |= problems
        if len(problems) == len(part) and all(isinstance(e, ProviderError) for e in problems.values()):
            failed |= dict.fromkeys(roots[start + PINS_AT_ONCE :], problems[part[0]])
            break
    return failed


def _report_pins(search: Search, provider: Provider, failed: dict[CID, IpfsmemError]) -> None:
    """Report unreadable roots, once per kind of failure, since anyone who may pin there can list any number of roots.

    Refused roots are reported at the end.
    """
    source = f"pin list of {provider.name}"
    sorts: dict[type[IpfsmemError], dict[CID, IpfsmemError]] = {}
    for root, error in failed.items():
        sorts.setdefault(type(error), {})[root] = error
    for sort, roots in sorts.items():
        if not issubclass(sort, ProviderError):
            search.refusals.append((source, roots))
            continue
        subject = "a version" if len(roots) == 1 else f"{len(roots)} versions"
        error = next(iter(roots.values()))
        search.run.notices.say(
            "channel-down",
            f"{subject} in the {source} could not be read, so newer texts may be missing: {error}; the next sync tries again",
            provider=provider.name,
        )


def _to_ask(search: Search, requested: Set[str]) -> list[str]:
    """Return the names of members that were not looked up yet: anchors, then devices admitted by roots, then up to
    `MAX_NAMES` admitted by admins.

    Readers are omitted: their commits are not joined.
    """
    ring = search.run.replica.ring
    if ring is None:
        return []
    view = ring.view
    may = [p for p in view.members.values() if p.id == search.run.replica.device.id or view.may_write(p.id)]
    by_admins = [p for p in may if view.members[p.family].rank != RANK_ROOT]
    others = {ipns_name(person.sign): person for person in by_admins}
    first_names = [ipns_name(key) for key in (*view.anchors(), *(p.sign for p in may if p not in by_admins))]
    room = max(0, MAX_NAMES - len(requested & others.keys()))
    waiting = [name for name in others if name not in requested]
    if rest := waiting[room:]:
        by = sorted({label_and_id(ring, view.members[others[name].family].by) for name in rest})
        search.run.notices.say(
            "names-left",
            f"{len(rest)} devices that {' and '.join(by)} added were not searched for published versions: there are too many. If you do not know them, revoke the member that added them, and them with it: ipfsmem member revoke ID --cascade",
        )
    return [*(name for name in dict.fromkeys(first_names) if name not in requested), *waiting[:room]]


async def _resolve(search: Search, names: list[str]) -> dict[str, CID]:
    """Return the root of each name; names without one are omitted.

    An anchor may lead to a root by other names. A device's name may not, since its owner could point it at the name
    of another device.
    """
    roots: dict[str, CID] = {}
    wrong: dict[str, FormatError] = {}
    at, anchors = {name: name for name in names}, _anchor_names(search.run)
    for _ in range(MAX_HOPS):
        following: dict[str, str] = {}
        for name, record in zip(at, await search.run.names.read_all(list(at.values())), strict=True):
            if record is None:
                continue
            try:
                leads = target(record)
                if isinstance(leads, CID):
                    roots[name] = leads
                elif name in anchors:
                    following[name] = leads
                else:
                    raise FormatError("the name of a device points to another name")
            except FormatError as error:
                wrong[at[name]] = error
        at = following
    if wrong:
        who = "a device names" if len(wrong) == 1 else f"{len(wrong)} devices name"
        name, first = next(iter(wrong.items()))
        search.run.notices.say(
            "bad-record",
            f"{who} an invalid version as the newest; it was ignored",
            f"{name}: {first}",
        )
    return roots


async def _open_named(search: Search, leads: dict[str, CID], *, anchor: bool) -> None:
    """Verify the roots of names. `anchor`: the names are those of anchors, which only a root key can sign.

    An unreadable root stops the sync if it may be a root key's ring or an earlier version of this device. That of
    another member is deferred: the member may have made it unreadable on purpose, and a device that shall revoke the
    member has to sync first.
    """
    if search.fresh:
        search.listed.difference_update(leads.values())  # the first name that leads to each root
    own = _own_past(search)
    must = {root for name, root in leads.items() if name in own}
    sources = {root: name for name, root in reversed(leads.items())}
    fresh = [root for root in dict.fromkeys(leads.values()) if _is_news(search, root, anchor)]
    for root, error in (await _open_roots(search, fresh, anchor=anchor)).items():
        if isinstance(error, ProviderError):
            if root in must:
                raise error
            search.unread_named[root] = error
            continue
        is_named = sources[root] != _GIVEN  # a root that the user specified is reported as unused
        if is_named and isinstance(error, FormatError | OpenError) and root not in search.in_part:
            search.unusable.add(root)
        _refuse(search, root, sources[root], error)
    if not anchor:  # an anchor leads to a ring, not to a head
        search.unread |= search.in_part.intersection(leads.values())


def _own_past(search: Search) -> set[str]:
    """Return the names that only this device and the roots can move."""
    ring = search.run.replica.ring
    keys = {search.run.anchor, search.run.replica.device.sign_public}
    if search.run.root is not None:
        keys.add(search.run.root.head_public)
    if ring is not None:
        people = (ring.view.members.get(one) for one in ring.view.rights.root_ids)
        keys |= {person.anchor for person in people if person is not None and person.anchor}
    return {ipns_name(key) for key in keys}


def _is_news(search: Search, root: CID, anchor: bool) -> bool:
    return root not in search.opened and (anchor or root not in search.headless)


def _anchor_names(run: SyncContext) -> set[str]:
    roots = [run.root.head_public] if run.root is not None else []
    return {ipns_name(public) for public in (*run.anchors(), *roots)}


def _refuse(search: Search, root: CID, source: str, error: IpfsmemError) -> None:
    search.refusals.append((source, {root: error}))


def _report_refused(search: Search) -> None:
    """Report unused roots, grouping those of one list with the same failure."""
    refusals, search.refusals = search.refusals, []
    for source, roots in refusals:
        refused = {root: error for root, error in roots.items() if root not in search.heads}
        if not refused:
            continue
        root, error = next(iter(refused.items()))
        if len(refused) == 1:
            search.run.notices.say(
                "head-refused",
                f"{_published_by(search, root, source)} was not used: {reason(error)}",
                f"root {root} ({source}) was not used: {error}{search.run.why(error)}",
            )
        else:
            search.run.notices.say(
                "head-refused",
                f"{len(refused)} versions in the {source} were not used, one of them {root}: {reason(error)}",
                f"{len(refused)} roots ({source}) were not used, one of them {root}: {error}{search.run.why(error)}",
            )


def _published_by(search: Search, root: CID, source: str) -> str:
    """Return the user's name for a source: the device whose name it is."""
    ring = search.run.replica.ring
    for person in ring.view.members.values() if ring is not None else ():
        if ipns_name(person.sign) == source:
            return f"the last version of {label_and_id(ring, person.id)}"
    return f"version {root}"


async def _open_roots(search: Search, roots: list[CID], *, anchor: bool) -> dict[CID, IpfsmemError]:
    """Read roots concurrently, verify them one by one, and return the failures.

    Roots that no key opens, or whose device is unknown, are retried after another root added keys and members: a new
    recovery phrase has no key for earlier versions.
    """
    search.opened.update(roots)
    ring = search.run.replica.ring
    failed = await _read_and_use(search, roots, anchor)
    while search.run.replica.ring is not ring:
        ring = search.run.replica.ring
        again = [root for root, error in failed.items() if isinstance(error, _BY_RING)]
        failed = {root: error for root, error in failed.items() if root not in again}
        failed |= await _read_and_use(search, again, anchor)
    for root in roots:
        search.refused_with.pop(root, None)
    if not anchor:
        search.refused_with.update(
            (root, ring) for root, error in failed.items() if isinstance(error, _BY_RING)
        )
    search.opened.difference_update(
        root for root, error in failed.items() if isinstance(error, ProviderError)
    )
    search.in_part.update(
        root for root, error in failed.items() if isinstance(error, NotFoundError | BlockError)
    )
    search.refused.difference_update(roots)
    search.refused.update(root for root, error in failed.items() if not isinstance(error, ProviderError))
    return failed


async def _read_and_use(search: Search, roots: list[CID], anchor: bool) -> dict[CID, IpfsmemError]:
    """Read and use roots, all verified by the ring at the start.

    So a root that is verified first cannot suppress a revoke in another root.
    """
    reads = {root: read_root(Reader(), root) for root in roots}
    ring = search.run.replica.ring
    return await search.run.fetcher.side_by_side(
        reads, lambda root, files: _use(search, root, files, anchor, ring)
    )


def _use(search: Search, root: CID, files: RootFiles, anchor: bool, ring: Ring | None) -> IpfsmemError | None:
    """Keep the ring of a root and record its head, verified by `ring`; return the error if refused."""
    before = search.run.replica.ring
    secrets = [search.run.replica.device.box_secret]
    if search.run.root is not None:
        secrets.append(search.run.root.box_secret)
    try:
        opened = open_root(files, search.run.vault, ring, secrets, held=root in search.held)
    except OpenError as error:
        _learn_publicly(search, files.keyring)
        return error
    except IpfsmemError as error:
        return error
    if opened.head is None and not anchor:
        # A ring is valid only if a commit or anchor names its bytes; otherwise old and new parts could be combined.
        # Not reported, since pin lists contain the anchor's root too.
        search.opened.discard(root)
        search.headless.add(root)
        return None
    if ring is None and not _is_anchored(search, opened.ring):
        return FormatError("its key ring is not of this wallet")
    with search.run.replica.transaction():
        try:
            _keep_ring(search, opened)
        except LimitError as error:
            return error
    by = opened.head.commit.commit.dev if opened.head is not None else ""
    if by != search.run.replica.device.id and not search.known_elsewhere:
        search.known_elsewhere = search.run.replica.device.id in opened.shown.unbounded_ring.view.members
    if opened.head is None:
        search.anchored = (
            opened.shown.unbounded_ring if search.anchored is None else search.anchored.join(opened.shown)
        )
        search.ring_roots.add(root)
    else:
        search.heads[root] = opened.head
        # Not by another ring: roots read in between may refuse it.
        search.verified_with[root] = search.run.replica.ring if before is ring else ring
    return None


def _keep_ring(search: Search, opened: VerifiedRoot) -> None:
    """Join a root's ring into ours, and report if that ended a revoke, so that a device is a member again."""
    replica, before = search.run.replica, search.run.replica.ring
    after = opened.ring if before is None else before.join(opened.shown)
    # It was verified by the ring before this round, in which another root may have ended keys that it needs.
    ended = {*opened.shown.unbounded_ring.keys} - {*after.keys} if opened.head is not None else ()
    after = after.with_spare((*opened.spare, *ended))
    replica.set_ring(after)
    if after.used > WARN_FROM:
        search.run.notices.say(
            "ring-filling",
            f"{after.used:.0%} of the space for this vault's list of members is used. Before it is full, move to a new vault: "
            "ipfsmem init --vault NEW (with a wallet also --key-number 2), then export and import",
        )
    if len(search.unnamed) < _MOST_UNNAMED:
        search.unnamed.update({*opened.shown.keys} - {*after.keys})
    remaining = {st.hash for st in after.statements}
    statements = (*opened.shown.statements, *(before.statements if before is not None else ()))
    lost = {st.hash: st.body for st in statements if isinstance(st.body, Revoke) and st.hash not in remaining}
    back = {one: body for one, body in lost.items() if body.id in after.view.members}
    notices_shown = replica.notices_shown() if back else set()
    for one, body in back.items():
        if one not in notices_shown:
            person = after.view.members[body.id]
            search.run.notices.say(
                "revoke-dropped",
                f"{person.label} ({person.id}) is still a member: the member that revoked it was revoked concurrently. To remove it: ipfsmem member revoke {person.id}",
            )
    if not back.keys() <= notices_shown:
        replica.note_shown(*back)


def _is_anchored(search: Search, ring: Ring) -> bool:
    assert search.run.replica.config.vault is not None
    return bytes.fromhex(search.run.replica.config.vault.admin) in ring.view.roots


def _learn_publicly(search: Search, keyring: bytes) -> None:
    """Learn from the signed open part of an unreadable ring that another key seals, so that nothing is published
    under the old one."""
    ring = search.run.replica.ring
    if ring is None:
        return
    with contextlib.suppress(SealError, FormatError), search.run.replica.transaction():
        search.run.replica.set_ring(ring.join_open_part(parse_keyring(keyring, search.run.vault)))
