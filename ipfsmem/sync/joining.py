"""Joining the heads that were found: each whole or not at all, forks held, this device's own copies noticed first.

Format sections 5 and 7. Reading and checking a head happens outside of transactions, taking it in inside of one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from ipfsmem.canonical import MAX_INT, read_json
from ipfsmem.causal.clock import hlc_ms
from ipfsmem.causal.entries import entry_place, scope_of
from ipfsmem.causal.state import Change
from ipfsmem.causal.tree import empty_tree
from ipfsmem.causal.value import Entry
from ipfsmem.content.cid import CID, ipns_name, parse_cid, raw_cid
from ipfsmem.content.fetch import drive_async
from ipfsmem.device.events import append_moved
from ipfsmem.device.others_texts import settle_persons
from ipfsmem.device.replica import Replica
from ipfsmem.device.scopes import drop_own_segments
from ipfsmem.device.tables import heads, meta, objects, placed, reports
from ipfsmem.device.tables.heads import HeadRow
from ipfsmem.device.tables.reports import ReportRow
from ipfsmem.errors import (
    BlockError,
    DamagedError,
    IpfsmemError,
    NotFoundError,
    OpenError,
    ProviderError,
)
from ipfsmem.published.opening import Head, tops
from ipfsmem.published.reader import differences
from ipfsmem.ring.labels import distinct_label, label_and_id, label_of
from ipfsmem.sync.changes import Kinds, between, followed_by
from ipfsmem.sync.commits import next_number
from ipfsmem.sync.discovery import discover_older
from ipfsmem.sync.explain import reason
from ipfsmem.sync.fork import (
    Adopted,
    adopt_head,
    adopt_orphans,
    append_new_lines,
    forked_devices,
    is_out,
    lacks_what_moves,
    orphans,
    settled,
)
from ipfsmem.sync.forwarding import learn
from ipfsmem.sync.guards import guard
from ipfsmem.sync.identity import (
    last_pair,
    move_since,
    move_values,
    new_identity,
)
from ipfsmem.sync.join import JoinedHead, checked, fetch_objects, join
from ipfsmem.sync.names import target
from ipfsmem.sync.pin_lists import hold, keep_not_whole, let_in, named_before, not_whole
from ipfsmem.sync.report import CROWDED, MOST_NAMED, UNLOCK
from ipfsmem.sync.retention import DAY_MS
from ipfsmem.sync.run import Run
from ipfsmem.sync.steps import Admitted, Joined
from ipfsmem.sync.taken import count_taken, note_taken

#: A part of a tree that nobody gives, or that is not what the commit says: its maker need not have done that.
_UNREADABLE = (NotFoundError, BlockError, DamagedError, OpenError)
#: So many bodies that nobody had are asked for again in each sync.
ASK_AT_ONCE = 1_000
#: Older roots of a list beside names are not read for what they may have deleted.
LISTED_FOR_MS = 7 * 24 * 3_600_000


async def join_found(run: Run, admitted: Admitted) -> Joined:
    """Join every head that was found, each in a transaction of its own, the copies of this device and of others looked at
    first; and older roots, where newer ones cannot be read whole."""
    work = _Joining(run, admitted)
    await _settle_own_id(work)
    await _ask_again(work)
    _take_over_orphans(work)
    stranger, listed = admitted.stranger, admitted.found.listed
    shown = [head for root, head in work.heads.items() if head is not stranger and root not in listed]
    await _join_heads(work, shown)
    await _join_listed(work, stranger)
    if work.damaged or work.found.unread or (work.refused and not work.heads):
        # Older roots are heads like any other, and what is whole in them is better than nothing.
        await _join_heads(work, await _older(work))
    with run.replica.transaction():
        run.fetcher.keep()
        run.names.keep()
        settle_persons(run.replica)
        _say_what_was_refused(work)
        _tell_of_damaged(work)
        later = work.found.later.intersection(not_whole(run.replica))
        refused = () if work.heads else sorted(work.refused)
        keep_not_whole(run.replica, (*sorted(work.damaged), *sorted(later), *refused))
    _tell_of_copies(work)
    return work.joined()


async def _settle_own_id(work: _Joining) -> None:
    """See to it that nobody else uses the id of this device, or take a new one."""
    run, stranger = work.run, work.admitted.stranger
    mine = ipns_name(run.replica.device.sign_public)
    if stranger is not None or run.replica.moved() or next_number(run.replica) > MAX_INT:
        await _become_another(work, stranger)
        return
    await _check_own_name(work)
    if run.names.used_up(mine) and not (work.unsure or work.new_identity):
        # Whoever has a copy of its keys left no number for what comes next under that name.
        await _become_another(work, None)


async def _older(work: _Joining) -> list[Head]:
    """Heads that lists show beside those that were joined, or are known to be damaged."""
    before = {*work.heads, *work.damaged}
    so_far = msgspec.structs.replace(
        work.found,
        heads=work.heads,
        refused=frozenset(work.refused),
        known_elsewhere=work.known_elsewhere,
    )
    work.found = found = await discover_older(work.run, so_far)
    work.heads, work.refused = dict(found.heads), set(found.refused)
    work.known_elsewhere = found.known_elsewhere
    return [head for root, head in work.heads.items() if root not in before]


class _Joining:
    """What was joined so far; nobody but this module changes it."""

    def __init__(self, run: Run, admitted: Admitted) -> None:
        self.run = run
        self.admitted = admitted
        self.found = admitted.found
        self.heads = dict(admitted.found.heads)
        self.refused = set(admitted.found.refused)
        self.known_elsewhere = admitted.found.known_elsewhere
        self.damaged: dict[CID, Head] = {}
        #: What is said of each of them, and its details.
        self.why_damaged: dict[CID, tuple[str, str]] = {}
        #: Heads that are held, by the devices that are waited for.
        self.waiting: dict[tuple[str, ...], list[CID]] = {}
        #: What this sync took over, by the kind of notice that says so.
        self.taken_over: dict[str, list[Adopted]] = {}
        #: Whether a provider that did not answer may have bodies that are not here; so until they were asked for.
        self.unsure_of_bodies = True
        self.unsure = ""
        self.new_identity = False
        self.kinds: Kinds = {}
        self.changed_in: Counter[str] = Counter()
        self.sources: list[str] = []
        self.heads_joined = self.not_fetched = self.left_out = 0

    def put_off(self, root: CID, error: ProviderError) -> None:
        """A head that is known of cannot be read now. It holds nothing up, whoever's doing that is: a later sync reads it."""
        outages = self.found.outages.after({root: error}, ())
        self.found = msgspec.structs.replace(
            self.found, outages=outages, opened=self.found.opened - {root}
        )  # what could be opened of it is not all of it
        self.run.notices.put_off(root, error)

    def joined(self) -> Joined:
        """The same for whoever goes on with it."""
        found, run = self.found, self.run
        outages, before = found.outages, set[CID]()
        if outages.roots or found.unread:
            before = joined_before(run.replica)
            outages = outages.after({}, {*found.opened, *found.headless, *before})
        # On a new device a place that only knows names keeps nothing of this memory.
        keeping = {
            p.name for p in run.providers if not found.fresh or p.capabilities.put or p.capabilities.pin
        }
        return Joined(
            found=self.found,
            heads=self.heads,
            damaged=self.damaged,
            refused=frozenset(self.refused),
            lost=found.unread - before,
            outages=outages,
            silent=frozenset(keeping & {*outages.silent, *run.names.silent}),
            kinds=self.kinds,
            changed_in=dict(self.changed_in),
            sources=tuple(self.sources),
            heads_joined=self.heads_joined,
            not_fetched=self.not_fetched,
            left_out=self.left_out,
            new_identity=self.new_identity,
            known_elsewhere=self.known_elsewhere,
            unsure=self.unsure,
        )


async def _join_heads(work: _Joining, heads: Iterable[Head]) -> None:
    """Join every head. One that another holds is not read again: what it says came with that one, if that was joined."""
    left = {head.root: head for head in heads}
    while left:
        for head, below in tops(left.values()):
            del left[head.root]
            if not await _join_head(work, head):
                continue
            with work.run.replica.transaction():
                for lower in below:
                    if left.pop(lower.root, None) is not None:
                        _note_head(work, lower, hlc_ms(lower.commit.commit.h))


async def _join_listed(work: _Joining, stranger: Head | None) -> None:
    """Join the roots that only a list beside names showed, after the others: what those hold already is not read.

    One that a joined commit names, and whose counters we cover, is the past; so is one whose counters we cover and that is
    a week old, whoever names it: what was unpinned since may have been in between. Where nothing was joined nothing is the
    past: what has no counters at all is covered by everything, and is all that there is of an empty memory.
    """
    if work.found.listed.isdisjoint(work.heads):
        return
    named = named_before(work.run.replica)
    week_ago = work.run.replica.world.now() - LISTED_FOR_MS
    anything = heads.any_known(work.run.replica.db.connection)
    left = []
    for head in [
        head for root, head in work.heads.items() if root in work.found.listed and head is not stranger
    ]:
        past = head.commit.digest in named and head.root not in work.admitted.copies
        if anything and _is_covered(work, head) and (past or hlc_ms(head.commit.commit.h) < week_ago):
            del work.heads[head.root]
            if past:
                with work.run.replica.transaction():
                    _note_head(work, head, hlc_ms(head.commit.commit.h))
        else:
            left.append(head)
    await _join_heads(work, left)


def _is_covered(work: _Joining, head: Head) -> bool:
    seen = work.run.replica.store.frame.seen
    return all(
        device in seen and (seen[device].n > pair.n or (seen[device].n, seen[device].r) == (pair.n, pair.r))
        for device, pair in head.commit.commit.ctx.items()
    )


async def _join_head(work: _Joining, head: Head) -> bool:
    before = len(work.run.fetcher.fetched)
    try:
        changes = await _changes(work, head)
    except ProviderError as error:
        work.put_off(head.root, error)
        work.heads.pop(head.root, None)
        return False
    except IpfsmemError as error:
        work.run.fetcher.forget_since(before)
        _drop(work, head, error)
        return False
    with work.run.replica.transaction():
        if not _join_or_hold(work, changes, head):
            return False
        _guard(work, changes, head.commit.commit.dev)
    return True


async def _ask_again(work: _Joining) -> None:
    """Ask for bodies that could not be had when their values were joined in an earlier sync: "not fetched" is a
    state that ends. What a join of this sync misses is asked for in the next one.

    Very many are asked for all together once a day, and else a part at a time, further as long as something comes: a writer
    can name any number of objects that never were, and they stay named when it is out.
    """
    work.unsure_of_bodies = False
    if work.run.replica.db.get_meta(meta.LACKING) != b"1":
        return
    with work.run.replica.transaction():
        # What this very sync joined, as a device that turned out to be a copy, is counted only then.
        work.run.replica.store.checkpoint(folders=True)
    missing = objects.without_block(work.run.replica.db.connection)
    if missing:
        # A provider that is down does not keep the rest from being published.
        came, down = await _ask_for(work, missing)
        work.unsure_of_bodies = down is not None
        work.not_fetched += len(missing) - came
        if came:
            with work.run.replica.transaction():
                work.run.fetcher.keep()
                learn(work.run.replica, work.run.replica.store.names())
    else:
        with work.run.replica.transaction():
            work.run.replica.db.set_meta(meta.LACKING, b"0")


class _Asked(msgspec.Struct):
    """When all that is not fetched was asked for last, every provider answering, and which was asked for last since."""

    at: int = 0
    last: str = ""


async def _ask_for(work: _Joining, missing: list[bytes]) -> tuple[int, ProviderError | None]:
    """Ask for these; how many came, and why the rest could not be asked for everywhere."""
    db, now = work.run.replica.db, work.run.replica.world.now()
    stored = db.get_meta(meta.ASKED_FOR)
    asked = read_json(stored, type=_Asked) if stored else _Asked()
    everything = len(missing) <= ASK_AT_ONCE or not now - DAY_MS < asked.at <= now
    start = next((i for i, one in enumerate(missing) if one.hex() > asked.last), 0)
    ordered = [raw_cid(digest) for digest in (*missing[start:], *missing[:start])]
    came, down = 0, None  # an outage ends a look, and the next one goes on behind it
    for at in range(0, len(ordered), ASK_AT_ONCE):
        part = ordered[at : at + ASK_AT_ONCE]
        found, failure = await work.run.fetcher.some(part)
        down = down or failure
        came += len(found)
        asked.last = part[-1].digest.hex()
        if not found and (failure is not None or not everything):
            break
    if everything and down is None:
        asked.at = now
    if len(missing) > ASK_AT_ONCE:
        with work.run.replica.transaction():
            db.set_meta(meta.ASKED_FOR, msgspec.json.encode(asked))
    return came, down


def _guard(work: _Joining, changes: list[Change], by: str) -> None:
    """Joins of one day that take away more than a tenth of what somebody wrote keep the root before them until the user says
    so (trace 19)."""
    lost = note_taken(work.run.replica, changes)
    found = count_taken(work.run.replica, lost, by) if lost else None
    if found is None:
        return
    guard(work.run.replica, found)
    ring, first, *last = work.run.replica.ring, *found.roots
    stay = f"The version before that, {first}, " + (
        f"and the one before the last of it, {last[0]}, are kept" if last else "is kept"
    )
    work.run.notices.say(
        "mass-delete",
        f"{found.gone} texts and pieces of the timeline were deleted elsewhere within a day, more than a tenth of what "
        f"{_few([label_of(ring, family) for family in found.of])} wrote. It came with what "
        f"{_few([label_of(ring, device) for device in found.by])} published. {stay} until you say that it was right: "
        f"{'; '.join(f'ipfsmem gc --drop-guarded {root}' for root in found.roots)}",
    )


async def _changes(work: _Joining, head: Head) -> list[Change]:
    """What differs between a head and us, checked, its objects fetched."""
    with work.run.replica.transaction():
        work.run.replica.store.checkpoint(folders=True)
        tree = work.run.replica.store.tree
    if tree.digest == empty_tree().digest:
        await work.run.fetcher.whole(head.root, work.run.replica)
    codec, commit = work.run.replica.codec, head.commit.commit
    found = await drive_async(
        differences(
            head.state,
            codec.extension,
            tree,
            bytes.fromhex(commit.state),
            lambda prefix, stored: codec.open_node(prefix, commit.ek, stored),
        ),
        work.run.fetcher.get,
    )
    changes = checked(found, head, work.run.replica, work.run.progress)
    await fetch_objects(changes, work.run.replica, work.run.fetcher, work.run.progress)
    return changes


def _join_or_hold(
    work: _Joining, changes: list[Change], head: Head, moved: Mapping[str, Entry] | None = None
) -> bool:
    """Join a head, or hold it: whoever copied a device's state wrote something else (format section 5).

    The first head was joined. A held one is taken in as soon as the old id is given up. `moved`: entries as they were before
    what this device had written in them went, to come back with the head.
    """
    before = {**(moved or {})}
    forked = forked_devices(changes, head, work.run.replica) | _other_copy(work, head)
    if not _joinable(work, forked, head):
        work.heads.pop(head.root, None)
        return False
    lines: list[tuple[str, bytes]] = []
    if forked:
        # Of one that is out nothing is waited for: it may have signed what never was.
        waited = {
            device for device in forked if work.unsure_of_bodies and not is_out(work.run.replica, device)
        }
        if waited and lacks_what_moves(work.run.replica, changes, waited):
            work.run.notices.say(
                "equivocation",
                f"what two copies of {_called(work, forked)} wrote cannot all be kept now: a part of the timeline is not "
                "fetched yet",
                f"head {head.root} is held back",
            )
            work.heads.pop(head.root, None)
            return False
        adopted = adopt_head(work.run.replica, changes, head, forked)
        changes, lines = adopted.left, adopted.lines
        before = {**adopted.before, **before}
        work.run.notices.say(
            "fork-joined",
            f"two copies of {_called(work, forked)} wrote different things; the texts of both were kept, "
            "some may come twice",
        )
        work.taken_over.setdefault("fork-joined", []).append(adopted)
    joined = join(changes, head, work.run.replica)
    _count_joined(work, joined, before)
    drop_own_segments(work.run.replica, [change.name for change in changes])
    append_new_lines(work.run.replica, lines)
    learn(work.run.replica, (change.name for change in changes))
    let_in(work.run.replica, head.root)
    work.heads_joined += _note_head(work, head)
    by = head.commit.commit.dev
    if joined.after and by != work.run.replica.device.id:
        source = distinct_label(work.run.replica.ring, by)
        if source not in work.sources:
            work.sources.append(source)
    return True


def _count_joined(work: _Joining, joined: JoinedHead, before: Mapping[str, Entry]) -> None:
    """Count what a head brought. `before`: entries that were made ready for it, as they were."""
    work.changed_in.update(map(scope_of, joined.after))
    work.not_fetched += joined.not_fetched
    work.left_out += joined.left_out
    if joined.crowded:
        work.run.notices.say("crowded", f"{joined.crowded}. {CROWDED}")
    was = {**joined.before, **before}
    now = {**{name: work.run.replica.store.entry(name) for name in before}, **joined.after}
    work.kinds = followed_by(work.kinds, between(was, now))


def _called(work: _Joining, devices: Iterable[str]) -> str:
    return _few([label_and_id(work.run.replica.ring, device) for device in sorted(devices)])


def _other_copy(work: _Joining, head: Head) -> set[str]:
    """The device of which a head is another copy's, where its values alone would not show it."""
    if head.root in work.admitted.copies:
        return {head.commit.commit.dev}
    return {work.found.held[head.root]} if head.root in work.found.held else set()


def _joinable(work: _Joining, forked: set[str], head: Head) -> bool:
    ring = work.run.replica.ring
    assert ring is not None
    waiting = sorted(device for device in forked if not settled(ring, device))
    if waiting:
        hold(work.run.replica, head.root, waiting[0])
        work.waiting.setdefault(tuple(waiting), []).append(head.root)
    return not waiting


def _drop(work: _Joining, head: Head, error: IpfsmemError) -> None:
    """Leave out a head of which nothing may be believed, or a part cannot be read (format section 7.1)."""
    work.heads.pop(head.root, None)
    what = f"what {_called(work, [head.commit.commit.dev])} published was not taken in: {reason(error)}"
    detail = (
        f"head {head.root} of device {head.commit.commit.dev} was not joined: {error}{work.run.why(error)}"
    )
    if isinstance(error, _UNREADABLE):
        work.damaged[head.root] = head
        work.why_damaged[head.root] = (what, detail)
    else:
        work.refused.add(head.root)
        if head.root in work.found.held:
            # It will not hold better later, and takes the room of others.
            with work.run.replica.transaction():
                let_in(work.run.replica, head.root)
        work.run.notices.say("head-refused", what, detail)


def _tell_of_damaged(work: _Joining) -> None:
    """Say which heads are damaged, after all others were joined. One whose counters those cover, and which is older than one
    of them, has no text that is not here: what is lost of a root of the past is no loss. Nor is one whose very commit was
    joined from a root that is whole."""
    newest = max((head.commit.commit.h for head in work.heads.values()), default="")
    joined = {head.commit.digest for head in work.heads.values()}
    for root, head in list(work.damaged.items()):
        past = root not in work.admitted.copies and head.commit.commit.h < newest and _is_covered(work, head)
        if past or head.commit.digest in joined:
            del work.damaged[root]
        else:
            what, detail = work.why_damaged[root]
            work.run.notices.say(
                "damaged", f"{what}. What can be read of it comes back with: ipfsmem salvage", detail
            )


def _note_head(work: _Joining, head: Head, made: int | None = None) -> bool:
    """Remember a joined head; True when it is news. `made`: when, of one that stood behind a newer one all the time."""
    commit = head.commit.commit
    if head.lacking:
        # Joined in part: it is looked at again when the ring has grown, and what it was made upon with it.
        if str(head.root) not in work.run.replica.told():
            work.run.notices.say(
                "in-part",
                f"what {_called(work, head.lacking)} wrote was left out: the list of members does not know that device, so "
                "nobody can tell whether it did. Its texts come when it is added again, or from a device that has them",
                f"head {head.root} was joined but for what {', '.join(sorted(head.lacking))} wrote: the key ring has no key of it",
            )
            work.run.replica.tell(str(head.root))
        return False
    db, now = work.run.replica.db.connection, work.run.replica.world.now()
    if heads.get(db, str(head.root)) is not None:
        return False
    seen = now if made is None else min(made, now)
    heads.put(db, HeadRow(str(head.root), commit.dev, commit.c, head.commit.digest, seen), commit.prev)
    return True


def _own_head(work: _Joining) -> Head | None:
    mine = [h for h in work.heads.values() if h.commit.commit.dev == work.run.replica.device.id]
    return max(mine, key=lambda head: head.commit.commit.c, default=None)


async def _check_own_name(work: _Joining) -> None:
    """A name of ours that points at a root which we never published and cannot read: another copy may have counted
    on. Then nothing is published (format section 5), or with the wallet at hand the id is changed."""
    record = work.run.names.known(ipns_name(work.run.replica.device.sign_public))
    if record is None:
        return
    leads = target(record)
    if not isinstance(leads, CID) or leads in work.heads or leads in joined_before(work.run.replica):
        return
    if placed.was_answered(work.run.replica.db.connection, str(leads)):
        return
    if work.run.root is not None:
        await _become_another(work, None, unknown=True)
        return
    work.unsure = f"{leads} stands as the newest version of this device, which did not publish it and cannot read it. Unlock once: {UNLOCK}"


def joined_before(replica: Replica) -> set[CID]:
    """Roots of heads that were joined at some time, as far as they are remembered."""
    return {parse_cid(root) for root in heads.roots(replica.db.connection)}


def _take_over_orphans(work: _Joining) -> None:
    with work.run.replica.transaction():
        found = orphans(work.run.replica)
        if found:
            adopted = adopt_orphans(work.run.replica, found, unsure=work.unsure_of_bodies)
            work.run.notices.say(
                "orphan",
                f"{_called(work, found)} is no member any more: the texts of that device go on as those of this one",
            )
            now = {name: work.run.replica.store.entry(name) for name in adopted.before}
            work.kinds = followed_by(work.kinds, between(adopted.before, now))
            work.taken_over.setdefault("orphan", []).append(adopted)


def _tell_of_copies(work: _Joining) -> None:
    """Say which devices' second copies wait, and what found no room: each once, however many versions a device signed."""
    for waiting, roots in work.waiting.items():
        more = f" and {len(roots) - 1} more, which" if len(roots) > 1 else ", which"
        work.run.notices.say(
            "equivocation",
            f"two copies of {_called(work, waiting)} wrote different things. What came second waits until that device has "
            "taken a new id (it does so at its next sync) or is removed (ipfsmem keys revoke DEVICE)",
            f"device {', '.join(waiting)} wrote different things under the same numbers: head {roots[0]}{more} "
            "came second, is held back",
        )
    for kind, found in work.taken_over.items():
        if beside := [key for adopted in found for key in adopted.beside]:
            work.run.notices.say(
                kind, f"under one key there was no room for all texts: what was too many is {_few(beside)}"
            )
        if lost := [name for adopted in found for name in adopted.lost]:
            work.run.notices.say(
                kind,
                "left out was what no device and no provider that answered has, or what had no place: "
                + _few([entry_place(name) for name in lost]),
            )


def _few(names: list[str]) -> str:
    unique = list(dict.fromkeys(names))
    more = len(unique) - MOST_NAMED
    return ", ".join(unique[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


async def _become_another(work: _Joining, stranger: Head | None, *, unknown: bool = False) -> None:
    """Take a new id, with every text of the old one that the other copy's head does not hold.

    Without such a head: with what was written since the last pair, which both copies know; `unknown`: with all.
    """
    old = work.run.replica.device.id
    shown = stranger or _own_head(work)
    changes: list[Change] | None = None
    if shown is not None:
        try:
            changes = await _changes(work, shown)
        except ProviderError:
            raise
        except IpfsmemError as error:
            if stranger is not None:
                _drop(work, stranger, error)
    with work.run.replica.transaction():
        if stranger is not None and changes is not None:
            forked = (forked_devices(changes, stranger, work.run.replica) | _other_copy(work, stranger)) - {
                old
            }
            if not _joinable(work, forked, stranger):
                work.heads.pop(stranger.root, None)
                changes = None
        common = last_pair(work.run.replica) if stranger is None and not unknown else 0
        new_identity(work.run.replica, work.run.notices)
        if stranger is not None and changes is not None:
            moved = move_values(work.run.replica, old, changes)
            lines = moved.lines
            _join_or_hold(work, moved.whole, stranger, moved.before)
        else:
            lines = move_since(work.run.replica, old, common, changes or [])
        append_moved(work.run.replica, lines)
    work.known_elsewhere = False
    work.new_identity = True
    work.run.notices.say(
        "identity",
        f"this device's state was restored or copied: it goes on as {work.run.replica.device.id} (was {old}); "
        "nothing was lost, and a text may come twice",
    )


def _say_what_was_refused(work: _Joining) -> None:
    for cid, why in work.run.fetcher.refused.items():
        work.run.notices.say(
            "bad-block",
            "a provider gave something else than it was asked for; that was not used",
            f"a wrong block was served: {why}",
        )
        row = ReportRow(work.run.replica.world.now(), "bad-block", f"{cid}: {why}")
        reports.add(work.run.replica.db.connection, row)
