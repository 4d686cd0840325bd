"""Process one verified head: join it whole, hold, drop or defer it (format sections 5, 7).

Reading and checking happen outside of transactions, joining inside one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ipfsmem.causal.entries import marker_parts, scope_of
from ipfsmem.causal.state import EntryDifference
from ipfsmem.causal.tree import empty_tree
from ipfsmem.causal.value import Entry
from ipfsmem.content.fetch import drive_async
from ipfsmem.device.scopes import drop_own_segments
from ipfsmem.device.tables import heads
from ipfsmem.device.tables.heads import HeadRow
from ipfsmem.errors import BlockError, DamagedError, IpfsmemError, NotFoundError, OpenError, ProviderError
from ipfsmem.published.root_reader import differences
from ipfsmem.published.root_verification import Head
from ipfsmem.ring.labels import distinct_label, label_of
from ipfsmem.sync.changes import combine_kinds, kinds_between
from ipfsmem.sync.deletion_holds import add_hold
from ipfsmem.sync.forwarding import learn_moves
from ipfsmem.sync.identity import (
    AdoptionResult,
    adopt_head,
    append_new_lines,
    forked_devices,
    is_missing_moved_data,
    is_retired,
    is_revoked,
)
from ipfsmem.sync.join_head import JoinedHead, checked, fetch_objects, join
from ipfsmem.sync.join_work import JoinWork
from ipfsmem.sync.mass_delete import count_deleted, find_mass_delete
from ipfsmem.sync.refusal_reasons import reason
from ipfsmem.sync.report import CROWDED, named
from ipfsmem.sync.unjoined_heads import hold_head, release_head

#: Errors of a tree with a part that is unavailable or contradicts the commit, which need not be its device's fault.
_UNREADABLE = (NotFoundError, BlockError, DamagedError, OpenError)


async def read_and_join(work: JoinWork, head: Head) -> bool:
    """Read a head and join it; return False if it was deferred, dropped or held."""
    before = len(work.run.fetcher.fetched)
    try:
        changes = await read_changes(work, head)
    except ProviderError as error:
        work.put_off(head.root, error)
        work.heads.pop(head.root, None)
        return False
    except IpfsmemError as error:
        work.run.fetcher.forget_since(before)
        drop_head(work, head, error)
        return False
    with work.run.replica.transaction():
        if not join_or_hold(work, changes, head):
            return False
        _guard_mass_delete(work, changes, head.commit.commit.dev)
    return True


async def read_changes(work: JoinWork, head: Head) -> list[EntryDifference]:
    """Return the differences of a head from our state, checked, with objects fetched."""
    with work.run.replica.transaction():
        work.run.replica.store.checkpoint(folders=True)
        tree = work.run.replica.store.tree
    if tree.digest == empty_tree().digest:
        await work.run.fetcher.get_tree(head.root, work.run.replica)
    codec, commit = work.run.replica.codec, head.commit.commit
    all_changes = await drive_async(
        differences(
            head.state,
            codec.extension,
            tree,
            bytes.fromhex(commit.state),
            lambda prefix, stored: codec.open_node(prefix, commit.ek, stored),
        ),
        work.run.fetcher.get,
    )
    changes = checked(all_changes, head, work.run.replica, work.run.progress)
    await fetch_objects(changes, work.run.replica, work.run.fetcher, work.run.progress)
    return changes


def join_or_hold(
    work: JoinWork, changes: list[EntryDifference], head: Head, moved: Mapping[str, Entry] | None = None
) -> bool:
    """Join a head, or hold it because a previously joined copy of a device wrote something else; tell whether
    it was joined.

    Inside a transaction (format section 5). `moved`: the old entries from which this device removed its own
    values, which come back with the head.
    """
    replica, before = work.run.replica, {**(moved or {})}
    forked = forked_devices(changes, head, replica) | other_copy_of(work, head)
    if hold_until_settled(work, forked, head):
        return False
    lines: list[tuple[str, bytes]] = []
    if forked:
        adopted = _adopt_fork(work, changes, head, forked)
        if adopted is None:
            work.heads.pop(head.root, None)
            return False
        changes, lines = adopted.left, adopted.lines
        before = {**adopted.before, **before}
    joined = join(changes, head, replica)
    _count_joined(work, joined, before)
    drop_own_segments(replica, [change.name for change in changes])
    append_new_lines(replica, lines)
    learn_moves(replica, (change.name for change in changes))
    release_head(replica, head.root)
    work.heads_joined += note_head(work, head)
    if joined.after and head.commit.commit.dev != replica.device.id:
        source = distinct_label(replica.ring, head.commit.commit.dev)
        if source not in work.sources:
            work.sources.append(source)
    return True


def other_copy_of(work: JoinWork, head: Head) -> set[str]:
    """Return the device whose other copy made a head when the head's values alone would not show that; else empty."""
    if head.root in work.admitted.copies:
        return {head.commit.commit.dev}
    return {work.found.held[head.root]} if head.root in work.found.held else set()


def hold_until_settled(work: JoinWork, devices: Iterable[str], head: Head) -> bool:
    """Hold a head with other copies of `devices` while one of their ids may be in use; tell whether so
    (inside a transaction)."""
    ring = work.run.replica.ring
    assert ring is not None
    in_use = sorted(device for device in devices if not is_retired(ring, device))
    if in_use:
        hold_head(work.run.replica, head.root, in_use[0])
        work.held.setdefault(tuple(in_use), []).append(head.root)
        work.heads.pop(head.root, None)
    return bool(in_use)


def _adopt_fork(
    work: JoinWork, changes: list[EntryDifference], head: Head, devices: set[str]
) -> AdoptionResult | None:
    """Make a head joinable that another copy of `devices` made; None while texts are missing."""
    # A revoked device is not waited for: it may have signed hashes of texts that nobody has.
    replica = work.run.replica
    waited_for = {device for device in devices if work.unsure_of_bodies and not is_revoked(replica, device)}
    if waited_for and is_missing_moved_data(replica, changes, waited_for):
        work.run.notices.say(
            "equivocation",
            f"the texts of two copies of {work.called(devices)} cannot be merged yet: a part of the timeline is not fetched",
            f"head {head.root} is held back",
        )
        return None
    adopted = adopt_head(replica, changes, head, devices)
    work.run.notices.say(
        "fork-joined",
        f"two copies of {work.called(devices)} wrote different texts; both were kept, and some may appear twice",
    )
    work.adopted.setdefault("fork-joined", []).append(adopted)
    return adopted


def drop_head(work: JoinWork, head: Head, error: IpfsmemError) -> None:
    """Drop an invalid head, or one with an unreadable part (format section 7.1)."""
    work.heads.pop(head.root, None)
    subject = f"the version of {work.called([head.commit.commit.dev])} was not merged: {reason(error)}"
    detail = (
        f"head {head.root} of device {head.commit.commit.dev} was not joined: {error}{work.run.why(error)}"
    )
    if isinstance(error, _UNREADABLE):
        work.damaged[head.root] = head
        work.why_damaged[head.root] = (subject, detail)
    else:
        work.refused.add(head.root)
        if head.root in work.found.held:
            # A later sync would refuse it too, and the number of held heads is limited.
            with work.run.replica.transaction():
                release_head(work.run.replica, head.root)
        work.run.notices.say("head-refused", subject, detail)


def note_head(work: JoinWork, head: Head, created: int | None = None) -> bool:
    """Record a joined head; tell whether it is new.

    `created`: its time (milliseconds), for a head that was contained in a newer one all the time.
    """
    commit = head.commit.commit
    if head.unknown_devices:
        # Joined in part: it is read again, with its parents, when the ring has grown.
        if str(head.root) not in work.run.replica.notices_shown():
            work.run.notices.say(
                "in-part",
                f"texts of {work.called(head.unknown_devices)} were left out: the list of members does not contain that device, so they cannot be verified. They come when it is added again, or from a device that has them",
                f"head {head.root} was merged without the texts of {', '.join(sorted(head.unknown_devices))}: the key ring has no key for them",
            )
            work.run.replica.note_shown(str(head.root))
        return False
    db, now = work.run.replica.db.connection, work.run.replica.environment.now()
    if heads.get(db, str(head.root)) is not None:
        return False
    first_seen = now if created is None else min(created, now)
    heads.put(db, HeadRow(str(head.root), commit.dev, commit.c, head.commit.digest, first_seen), commit.prev)
    return True


def _count_joined(work: JoinWork, joined: JoinedHead, before: Mapping[str, Entry]) -> None:
    """Count what a head brought. `before`: entries changed to make room for it, as they were."""
    work.changed_in.update(scope_of(name) for name in joined.after if marker_parts(name) is None)
    work.not_fetched += joined.not_fetched
    work.left_out += joined.left_out
    if joined.crowded:
        work.run.notices.say("crowded", f"{joined.crowded}. {CROWDED}")
    was = {**joined.before, **before}
    now = {**{name: work.run.replica.store.entry(name) for name in before}, **joined.after}
    work.kinds = combine_kinds(work.kinds, kinds_between(was, now))


def _guard_mass_delete(work: JoinWork, changes: list[EntryDifference], by: str) -> None:
    """Guard the previous root when the joins of a day removed more than a tenth of an author's texts.

    Inside the transaction of the join. `by`: the device that published the head.
    """
    lost = count_deleted(work.run.replica, changes)
    deletes = find_mass_delete(work.run.replica, lost, by) if lost else None
    if deletes is None:
        return
    add_hold(work.run.replica, deletes)
    ring, first, *last = work.run.replica.ring, *deletes.roots
    stay = f"The version before that, {first}, " + (
        f"and the one before the last part of the delete, {last[0]}, are kept" if last else "is kept"
    )
    work.run.notices.say(
        "mass-delete",
        f"{deletes.gone} texts and parts of the timeline were deleted elsewhere within a day, more than a tenth of the texts of "
        f"{named([label_of(ring, family) for family in deletes.of])}. The delete came with versions of "
        f"{named([label_of(ring, device) for device in deletes.by])}. {stay} until you confirm the delete: "
        f"{'; '.join(f'ipfsmem vault compact --drop-guarded {root}' for root in deletes.roots)}",
    )
