"""Joining the heads that were found: each whole or not at all, forks held, this device's own copies noticed first.

Format sections 5 and 7. Reading and checking a head happens outside of transactions, taking it in inside of one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from ipfsmem.canonical import read_json
from ipfsmem.causal.clock import hlc_ms
from ipfsmem.causal.entries import entry_place, scope_of
from ipfsmem.causal.state import Change
from ipfsmem.causal.tree import empty_tree
from ipfsmem.causal.value import Entry
from ipfsmem.content.cid import CID, ipns_name, parse_cid, raw_cid
from ipfsmem.content.fetch import drive_async
from ipfsmem.device.events import append_moved
from ipfsmem.device.replica import Replica
from ipfsmem.device.scopes import drop_own_segments
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
from ipfsmem.sync.changes import between, followed_by
from ipfsmem.sync.explain import device_called, label_of, reason, told_apart
from ipfsmem.sync.fork import (
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
from ipfsmem.sync.join import LACKING, JoinedHead, checked, fetch_objects, join
from ipfsmem.sync.names import target
from ipfsmem.sync.pin_lists import hold, let_in, named_before
from ipfsmem.sync.report import CROWDED, MOST_NAMED, UNLOCK
from ipfsmem.sync.retention import DAY_MS
from ipfsmem.sync.run import Run
from ipfsmem.sync.taken import count_taken, note_taken

#: A part of a tree that nobody gives, or that is not what the commit says: its maker need not have done that.
_UNREADABLE = (NotFoundError, BlockError, DamagedError, OpenError)
#: So many bodies that nobody had are asked for again in each sync.
ASK_AT_ONCE = 1_000
#: Row in `meta`: see `_Asked`.
_ASKED = "asked for"
#: Older roots of a list beside names are not read for what they may have deleted.
LISTED_FOR_MS = 7 * 24 * 3_600_000


async def join_heads(run: Run, heads: Iterable[Head]) -> None:
    """Join every head. One that another holds is not read again: what it says came with that one, if that was joined."""
    left = {head.root: head for head in heads}
    while left:
        for head, below in tops(left.values()):
            del left[head.root]
            if not await _join_head(run, head):
                continue
            with run.replica.transaction():
                for lower in below:
                    if left.pop(lower.root, None) is not None:
                        _note_head(run, lower, hlc_ms(lower.commit.commit.h))


async def join_listed(run: Run, stranger: Head | None) -> None:
    """Join the roots that only a list beside names showed, after the others: what those hold already is not read.

    One that a joined commit names, and whose counters we cover, is the past; so is one whose counters we cover and that is
    a week old, whoever names it: what was unpinned since may have been in between. Where nothing was joined nothing is the
    past: what has no counters at all is covered by everything, and is all that there is of an empty memory.
    """
    if run.listed.isdisjoint(run.heads):
        return
    named = named_before(run.replica)
    week_ago = run.replica.world.now() - LISTED_FOR_MS
    anything = run.replica.db.connection.execute("SELECT 1 FROM heads LIMIT 1").fetchone() is not None
    left = []
    for head in [head for root, head in run.heads.items() if root in run.listed and head is not stranger]:
        past = head.commit.digest in named and head.root not in run.copies
        if anything and _is_covered(run, head) and (past or hlc_ms(head.commit.commit.h) < week_ago):
            del run.heads[head.root]
            if past:
                with run.replica.transaction():
                    _note_head(run, head, hlc_ms(head.commit.commit.h))
        else:
            left.append(head)
    await join_heads(run, left)


def _is_covered(run: Run, head: Head) -> bool:
    seen = run.replica.store.frame.seen
    return all(
        device in seen and (seen[device].n > pair.n or (seen[device].n, seen[device].r) == (pair.n, pair.r))
        for device, pair in head.commit.commit.ctx.items()
    )


async def _join_head(run: Run, head: Head) -> bool:
    before = len(run.fetcher.fetched)
    try:
        changes = await _changes(run, head)
    except ProviderError as error:
        run.put_off(head.root, error)
        run.heads.pop(head.root, None)
        return False
    except IpfsmemError as error:
        run.fetcher.forget_since(before)
        _drop(run, head, error)
        return False
    with run.replica.transaction():
        if not _join_or_hold(run, changes, head):
            return False
        _guard(run, changes, head.commit.commit.dev)
    return True


async def ask_again(run: Run) -> None:
    """Ask for bodies that could not be had when their values were joined in an earlier sync: "not fetched" is a
    state that ends. What a join of this sync misses is asked for in the next one.

    Very many are asked for all together once a day, and else a part at a time, further as long as something comes: a writer
    can name any number of objects that never were, and they stay named when it is out.
    """
    run.unsure_of_bodies = False
    if run.replica.db.get_meta(LACKING) != b"1":
        return
    with run.replica.transaction():
        # What this very sync joined, as a device that turned out to be a copy, is counted only then.
        run.replica.store.checkpoint(folders=True)
    absent = "SELECT digest FROM objects WHERE digest NOT IN (SELECT digest FROM blocks)"
    missing = sorted(bytes(row[0]) for row in run.replica.db.connection.execute(absent))
    if missing:
        # A provider that is down does not keep the rest from being published.
        came, down = await _ask_for(run, missing)
        run.unsure_of_bodies = down is not None
        run.report.not_fetched += len(missing) - came
        if came:
            with run.replica.transaction():
                run.fetcher.keep()
                learn(run.replica, run.replica.store.names())
    else:
        with run.replica.transaction():
            run.replica.db.set_meta(LACKING, b"0")


class _Asked(msgspec.Struct):
    """When all that is not fetched was asked for last, every provider answering, and which was asked for last since."""

    at: int = 0
    last: str = ""


async def _ask_for(run: Run, missing: list[bytes]) -> tuple[int, ProviderError | None]:
    """Ask for these; how many came, and why the rest could not be asked for everywhere."""
    db, now = run.replica.db, run.replica.world.now()
    stored = db.get_meta(_ASKED)
    asked = read_json(stored, type=_Asked) if stored else _Asked()
    everything = len(missing) <= ASK_AT_ONCE or not now - DAY_MS < asked.at <= now
    start = next((i for i, one in enumerate(missing) if one.hex() > asked.last), 0)
    ordered = [raw_cid(digest) for digest in (*missing[start:], *missing[:start])]
    came, down = 0, None  # an outage ends a look, and the next one goes on behind it
    for at in range(0, len(ordered), ASK_AT_ONCE):
        part = ordered[at : at + ASK_AT_ONCE]
        found, failure = await run.fetcher.some(part)
        down = down or failure
        came += len(found)
        asked.last = part[-1].digest.hex()
        if not found and (failure is not None or not everything):
            break
    if everything and down is None:
        asked.at = now
    if len(missing) > ASK_AT_ONCE:
        with run.replica.transaction():
            db.set_meta(_ASKED, msgspec.json.encode(asked))
    return came, down


def _guard(run: Run, changes: list[Change], by: str) -> None:
    """Joins of one day that take away more than a tenth of what somebody wrote keep the root before them until the user says
    so (trace 19)."""
    lost = note_taken(run.replica, changes)
    found = count_taken(run.replica, lost, by) if lost else None
    if found is None:
        return
    guard(run.replica, found)
    ring, first, *last = run.replica.ring, *found.roots
    stay = f"The version before that, {first}, " + (
        f"and the one before the last of it, {last[0]}, are kept" if last else "is kept"
    )
    run.report.say(
        "mass-delete",
        f"{found.gone} texts and pieces of the timeline were deleted elsewhere within a day, more than a tenth of what "
        f"{_few([label_of(ring, family) for family in found.of])} wrote. It came with what "
        f"{_few([label_of(ring, device) for device in found.by])} published. {stay} until you say that it was right: "
        f"{'; '.join(f'ipfsmem gc --drop-guarded {root}' for root in found.roots)}",
    )


async def _changes(run: Run, head: Head) -> list[Change]:
    """What differs between a head and us, checked, its objects fetched."""
    with run.replica.transaction():
        run.replica.store.checkpoint(folders=True)
        tree = run.replica.store.tree
    if tree.digest == empty_tree().digest:
        await run.fetcher.whole(head.root, run.replica)
    codec, commit = run.replica.codec, head.commit.commit
    found = await drive_async(
        differences(
            head.state,
            codec.extension,
            tree,
            bytes.fromhex(commit.state),
            lambda prefix, stored: codec.open_node(prefix, commit.ek, stored),
        ),
        run.fetcher.get,
    )
    changes = checked(found, head, run.replica, run.progress)
    await fetch_objects(changes, run.replica, run.fetcher, run.progress)
    return changes


def _join_or_hold(
    run: Run, changes: list[Change], head: Head, moved: Mapping[str, Entry] | None = None
) -> bool:
    """Join a head, or hold it: whoever copied a device's state wrote something else (format section 5).

    The first head was joined. A held one is taken in as soon as the old id is given up. `moved`: entries as they were before
    what this device had written in them went, to come back with the head.
    """
    before = {**(moved or {})}
    forked = forked_devices(changes, head, run.replica) | _other_copy(run, head)
    if not _joinable(run, forked, head):
        run.heads.pop(head.root, None)
        return False
    lines: list[tuple[str, bytes]] = []
    if forked:
        # Of one that is out nothing is waited for: it may have signed what never was.
        waited = {device for device in forked if run.unsure_of_bodies and not is_out(run.replica, device)}
        if waited and lacks_what_moves(run.replica, changes, waited):
            run.report.say(
                "equivocation",
                f"what two copies of {_called(run, forked)} wrote cannot all be kept now: a part of the timeline is not "
                "fetched yet",
                f"head {head.root} is held back",
            )
            run.heads.pop(head.root, None)
            return False
        adopted = adopt_head(run.replica, changes, head, forked)
        changes, lines = adopted.left, adopted.lines
        before = {**adopted.before, **before}
        run.report.say(
            "fork-joined",
            f"two copies of {_called(run, forked)} wrote different things; the texts of both were kept, "
            "some may come twice",
        )
        run.taken_over.setdefault("fork-joined", []).append(adopted)
    joined = join(changes, head, run.replica)
    _count_joined(run, joined, before)
    drop_own_segments(run.replica, [change.name for change in changes])
    append_new_lines(run.replica, lines)
    learn(run.replica, (change.name for change in changes))
    let_in(run.replica, head.root)
    run.report.heads_joined += _note_head(run, head)
    by = head.commit.commit.dev
    if joined.after and by != run.replica.device.id:
        source = told_apart(run.replica.ring, by)
        if source not in run.report.sources:
            run.report.sources.append(source)
    return True


def _count_joined(run: Run, joined: JoinedHead, before: Mapping[str, Entry]) -> None:
    """Count what a head brought. `before`: entries that were made ready for it, as they were."""
    report = run.report
    report.entries_changed += len(joined.after)
    report.changed_in = dict(Counter(report.changed_in) + Counter(map(scope_of, joined.after)))
    report.not_fetched += joined.not_fetched
    report.left_out += joined.left_out
    if joined.crowded:
        report.say("crowded", f"{joined.crowded}. {CROWDED}")
    was = {**joined.before, **before}
    now = {**{name: run.replica.store.entry(name) for name in before}, **joined.after}
    run.kinds = followed_by(run.kinds, between(was, now))


def _called(run: Run, devices: Iterable[str]) -> str:
    return _few([device_called(run.replica.ring, device) for device in sorted(devices)])


def _other_copy(run: Run, head: Head) -> set[str]:
    """The device of which a head is another copy's, where its values alone would not show it."""
    if head.root in run.copies:
        return {head.commit.commit.dev}
    return {run.held[head.root]} if head.root in run.held else set()


def _joinable(run: Run, forked: set[str], head: Head) -> bool:
    ring = run.replica.ring
    assert ring is not None
    waiting = sorted(device for device in forked if not settled(ring, device))
    if waiting:
        hold(run.replica, head.root, waiting[0])
        run.waiting.setdefault(tuple(waiting), []).append(head.root)
    return not waiting


def _drop(run: Run, head: Head, error: IpfsmemError) -> None:
    """Leave out a head of which nothing may be believed, or a part cannot be read (format section 7.1)."""
    run.heads.pop(head.root, None)
    what = f"what {_called(run, [head.commit.commit.dev])} published was not taken in: {reason(error)}"
    detail = f"head {head.root} of device {head.commit.commit.dev} was not joined: {error}{run.why(error)}"
    if isinstance(error, _UNREADABLE):
        run.damaged[head.root] = head
        run.why_damaged[head.root] = (what, detail)
    else:
        run.refused.add(head.root)
        if head.root in run.held:
            # It will not hold better later, and takes the room of others.
            with run.replica.transaction():
                let_in(run.replica, head.root)
        run.report.say("head-refused", what, detail)


def tell_of_damaged(run: Run) -> None:
    """Say which heads are damaged, after all others were joined. One whose counters those cover, and which is older than one
    of them, has no text that is not here: what is lost of a root of the past is no loss. Nor is one whose very commit was
    joined from a root that is whole."""
    newest = max((head.commit.commit.h for head in run.heads.values()), default="")
    joined = {head.commit.digest for head in run.heads.values()}
    for root, head in list(run.damaged.items()):
        past = root not in run.copies and head.commit.commit.h < newest and _is_covered(run, head)
        if past or head.commit.digest in joined:
            del run.damaged[root]
        else:
            what, detail = run.why_damaged[root]
            run.report.say(
                "damaged", f"{what}. What can be read of it comes back with: ipfsmem salvage", detail
            )
    run.report.damaged = len(run.damaged)


def _note_head(run: Run, head: Head, made: int | None = None) -> bool:
    """Remember a joined head; True when it is news. `made`: when, of one that stood behind a newer one all the time."""
    commit = head.commit.commit
    if head.lacking:
        # Joined in part: it is looked at again when the ring has grown, and what it was made upon with it.
        if str(head.root) not in run.replica.told():
            run.report.say(
                "in-part",
                f"what {_called(run, head.lacking)} wrote was left out: the list of members does not know that device, so "
                "nobody can tell whether it did. Its texts come when it is added again, or from a device that has them",
                f"head {head.root} was joined but for what {', '.join(sorted(head.lacking))} wrote: the key ring has no key of it",
            )
            run.replica.tell(str(head.root))
        return False
    known = run.replica.db.connection.execute(
        "SELECT 1 FROM heads WHERE root=?", (str(head.root),)
    ).fetchone()
    if known is not None:
        return False
    now = run.replica.world.now()
    run.replica.db.connection.execute(
        "INSERT OR REPLACE INTO heads VALUES (?,?,?,?,?,?)",
        (
            str(head.root),
            commit.dev,
            commit.c,
            head.commit.digest,
            now if made is None else min(made, now),
            bytes.fromhex("".join(commit.prev)),
        ),
    )
    return True


def _own_head(run: Run) -> Head | None:
    mine = [h for h in run.heads.values() if h.commit.commit.dev == run.replica.device.id]
    return max(mine, key=lambda head: head.commit.commit.c, default=None)


async def check_own_name(run: Run) -> None:
    """A name of ours that points at a root which we never published and cannot read: another copy may have counted
    on. Then nothing is published (format section 5), or with the wallet at hand the id is changed."""
    record = run.names.known(ipns_name(run.replica.device.sign_public))
    if record is None:
        return
    leads = target(record)
    db = run.replica.db.connection
    if not isinstance(leads, CID) or leads in run.heads or leads in joined_before(run.replica):
        return
    if db.execute("SELECT 1 FROM placed WHERE answered=?", (str(leads),)).fetchone():
        return
    if run.root is not None:
        await become_another(run, None, unknown=True)
        return
    run.unsure = f"{leads} stands as the newest version of this device, which did not publish it and cannot read it. Unlock once: {UNLOCK}"


def joined_before(replica: Replica) -> set[CID]:
    """Roots of heads that were joined at some time, as far as they are remembered."""
    rows = replica.db.connection.execute("SELECT root FROM heads")
    return {parse_cid(root) for (root,) in rows}


def take_over_orphans(run: Run) -> None:
    with run.replica.transaction():
        found = orphans(run.replica)
        if found:
            adopted = adopt_orphans(run.replica, found, unsure=run.unsure_of_bodies)
            run.report.say(
                "orphan",
                f"{_called(run, found)} is no member any more: the texts of that device go on as those of this one",
            )
            now = {name: run.replica.store.entry(name) for name in adopted.before}
            run.kinds = followed_by(run.kinds, between(adopted.before, now))
            run.taken_over.setdefault("orphan", []).append(adopted)


def tell_of_copies(run: Run) -> None:
    """Say which devices' second copies wait, and what found no room: each once, however many versions a device signed."""
    for waiting, roots in run.waiting.items():
        more = f" and {len(roots) - 1} more, which" if len(roots) > 1 else ", which"
        run.report.say(
            "equivocation",
            f"two copies of {_called(run, waiting)} wrote different things. What came second waits until that device has "
            "taken a new id (it does so at its next sync) or is removed (ipfsmem keys revoke DEVICE)",
            f"device {', '.join(waiting)} wrote different things under the same numbers: head {roots[0]}{more} "
            "came second, is held back",
        )
    for kind, found in run.taken_over.items():
        if beside := [key for adopted in found for key in adopted.beside]:
            run.report.say(
                kind, f"under one key there was no room for all texts: what was too many is {_few(beside)}"
            )
        if lost := [name for adopted in found for name in adopted.lost]:
            run.report.say(
                kind,
                "left out was what no device and no provider that answered has, or what had no place: "
                + _few([entry_place(name) for name in lost]),
            )


def _few(names: list[str]) -> str:
    unique = list(dict.fromkeys(names))
    more = len(unique) - MOST_NAMED
    return ", ".join(unique[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


async def become_another(run: Run, stranger: Head | None, *, unknown: bool = False) -> None:
    """Take a new id, with every text of the old one that the other copy's head does not hold.

    Without such a head: with what was written since the last pair, which both copies know; `unknown`: with all.
    """
    old = run.replica.device.id
    shown = stranger or _own_head(run)
    changes: list[Change] | None = None
    if shown is not None:
        try:
            changes = await _changes(run, shown)
        except ProviderError:
            raise
        except IpfsmemError as error:
            if stranger is not None:
                _drop(run, stranger, error)
    with run.replica.transaction():
        if stranger is not None and changes is not None:
            forked = (forked_devices(changes, stranger, run.replica) | _other_copy(run, stranger)) - {old}
            if not _joinable(run, forked, stranger):
                run.heads.pop(stranger.root, None)
                changes = None
        common = last_pair(run.replica) if stranger is None and not unknown else 0
        new_identity(run.replica, run.report)
        if stranger is not None and changes is not None:
            moved = move_values(run.replica, old, changes)
            lines = moved.lines
            _join_or_hold(run, moved.whole, stranger, moved.before)
        else:
            lines = move_since(run.replica, old, common, changes or [])
        append_moved(run.replica, lines)
    run.known_elsewhere = False
    run.report.new_identity = True
    run.report.say(
        "identity",
        f"this device's state was restored or copied: it goes on as {run.replica.device.id} (was {old}); "
        "nothing was lost, and a text may come twice",
    )


def say_what_was_refused(run: Run) -> None:
    for cid, why in run.fetcher.refused.items():
        run.report.say(
            "bad-block",
            "a provider gave something else than it was asked for; that was not used",
            f"a wrong block was served: {why}",
        )
        run.replica.db.report(run.replica.world.now(), "bad-block", f"{cid}: {why}")
