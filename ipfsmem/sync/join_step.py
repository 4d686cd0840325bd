"""The join step of a sync: heads of other devices first, then listed ones, and older heads if newer ones
cannot be read whole (format sections 5, 7).

Before any join, this device makes sure that its id is still its own, and adopts the texts of devices that are
no longer members.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from ipfsmem.causal.clock import hlc_ms
from ipfsmem.causal.entries import entry_place
from ipfsmem.device.tables import heads, reports
from ipfsmem.device.tables.reports import ReportRow
from ipfsmem.device.texts_of_others import reassign_authors
from ipfsmem.published.root_verification import Head, maximal_heads
from ipfsmem.sync.changes import combine_kinds, kinds_between
from ipfsmem.sync.context import SyncContext
from ipfsmem.sync.discovery import discover_older
from ipfsmem.sync.forgotten_elsewhere import let_go_of_forgotten
from ipfsmem.sync.fork import adopt_orphans, orphans
from ipfsmem.sync.join_or_hold import note_head, read_and_join
from ipfsmem.sync.join_work import JoinWork
from ipfsmem.sync.missing_texts import ask_for_missing_texts
from ipfsmem.sync.own_id import keep_own_id
from ipfsmem.sync.report import named
from ipfsmem.sync.steps import Admitted, Joined
from ipfsmem.sync.times import WEEK_MS
from ipfsmem.sync.unjoined_heads import keep_not_whole, not_whole

#: Maximum age of roots read from a pin list next to names; older ones are never a reason to delete.
LISTED_FOR_MS: Final = WEEK_MS


async def join_found(run: SyncContext, admitted: Admitted) -> Joined:
    """Join every head found, each in its own transaction, after handling copies of this device and others;
    and older roots when newer ones cannot be read whole."""
    work = JoinWork(run, admitted)
    await keep_own_id(work)
    await ask_for_missing_texts(work)
    _take_over_orphans(work)
    stranger, listed = admitted.stranger, admitted.found.listed
    named_heads = [head for root, head in work.heads.items() if head is not stranger and root not in listed]
    await _join_heads(work, named_heads)
    await _join_listed(work, stranger)
    if work.damaged or work.found.unread or (work.refused and not work.heads):
        # Older roots are ordinary heads, and their intact parts are better than nothing.
        await _join_heads(work, await _discover_older(work))
    with run.replica.transaction():
        run.fetcher.keep()
        run.names.keep()
        reassign_authors(run.replica)
        _tell_of_refused_blocks(work)
        _tell_of_damaged(work)
        later = work.found.later.intersection(not_whole(run.replica))
        refused = () if work.heads else sorted(work.refused)
        keep_not_whole(run.replica, (*sorted(work.damaged), *sorted(later), *refused))
        gone = work.heads_joined > 0 and let_go_of_forgotten(run.replica)
    if gone and not run.replica.config.mode.sealed:
        run.replica.db.empty_log()  # it held plaintext
    _tell_of_copies(work)
    return work.joined()


async def _join_heads(work: JoinWork, heads: Iterable[Head]) -> None:
    """Join every head. One contained in another is not read once that one is joined."""
    left = {head.root: head for head in heads}
    while left:
        for head, below in maximal_heads(left.values()):
            del left[head.root]
            if not await read_and_join(work, head):
                continue
            with work.run.replica.transaction():
                for lower in below:
                    if left.pop(lower.root, None) is not None:
                        note_head(work, lower, hlc_ms(lower.commit.commit.h))


async def _join_listed(work: JoinWork, stranger: Head | None) -> None:
    """Join the heads shown only by a pin list next to names, unless they are past; after the others, which
    determine that.

    A head is past when this device covers its counters and a joined commit names it, or it is a week old: the
    commits in between may have been unpinned. Without any joined head none is past: one without counters is
    covered by everything, and is all there is of an empty vault.
    """
    if work.found.listed.isdisjoint(work.heads):
        return
    past_digests = heads.past(work.run.replica.db.connection)
    week_ago = work.run.replica.world.now() - LISTED_FOR_MS
    anything = heads.any_known(work.run.replica.db.connection)
    left = []
    for head in [
        head for root, head in work.heads.items() if root in work.found.listed and head is not stranger
    ]:
        past = head.commit.digest in past_digests and head.root not in work.admitted.copies
        if anything and _is_covered(work, head) and (past or hlc_ms(head.commit.commit.h) < week_ago):
            del work.heads[head.root]
            if past:
                with work.run.replica.transaction():
                    note_head(work, head, hlc_ms(head.commit.commit.h))
        else:
            left.append(head)
    await _join_heads(work, left)


def _is_covered(work: JoinWork, head: Head) -> bool:
    """Tell whether this device has seen all writes that a head's counters cover."""
    seen = work.run.replica.store.frame.seen
    return all(
        device in seen and (seen[device].n > pair.n or (seen[device].n, seen[device].r) == (pair.n, pair.r))
        for device, pair in head.commit.commit.ctx.items()
    )


async def _discover_older(work: JoinWork) -> list[Head]:
    """Find further heads in pin lists, besides those joined or damaged."""
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


def _take_over_orphans(work: JoinWork) -> None:
    """Adopt the texts of devices that no longer have a key in the ring."""
    with work.run.replica.transaction():
        found = orphans(work.run.replica)
        if found:
            adopted = adopt_orphans(work.run.replica, found, unsure=work.unsure_of_bodies)
            work.run.notices.say(
                "orphan",
                f"{work.called(found)} is no longer a member: its texts are now those of this device",
            )
            now = {name: work.run.replica.store.entry(name) for name in adopted.before}
            work.kinds = combine_kinds(work.kinds, kinds_between(adopted.before, now))
            work.adopted.setdefault("orphan", []).append(adopted)


def _tell_of_damaged(work: JoinWork) -> None:
    """Report damaged heads after all others were joined.

    Nothing is lost with one that is older than a joined head and has covered counters, nor with one whose
    very commit was joined from another root.
    """
    newest = max((head.commit.commit.h for head in work.heads.values()), default="")
    joined = {head.commit.digest for head in work.heads.values()}
    for root, head in list(work.damaged.items()):
        past = root not in work.admitted.copies and head.commit.commit.h < newest and _is_covered(work, head)
        if past or head.commit.digest in joined:
            del work.damaged[root]
        else:
            what, detail = work.why_damaged[root]
            work.run.notices.say(
                "damaged", f"{what}. To restore the readable part: ipfsmem vault repair", detail
            )


def _tell_of_copies(work: JoinWork) -> None:
    """Report held heads of second copies, and texts that do not fit, once each, however many versions a device signed."""
    for devices, roots in work.held.items():
        more = f" and {len(roots) - 1} more, which" if len(roots) > 1 else ", which"
        work.run.notices.say(
            "equivocation",
            f"two copies of {work.called(devices)} wrote different texts. The second version waits until that device has a new id (after its next sync) or is removed (ipfsmem member revoke DEVICE)",
            f"device {', '.join(devices)} wrote different texts under the same numbers: head {roots[0]}{more} "
            "came second, is held back",
        )
    for kind, found in work.adopted.items():
        if beside := [key for adopted in found for key in adopted.beside]:
            work.run.notices.say(
                kind, f"too many texts under one key: those over the limit are now {named(beside)}"
            )
        if lost := [name for adopted in found for name in adopted.lost]:
            work.run.notices.say(
                kind,
                "left out, as no device or provider that answered has them or they had no place: "
                + named([entry_place(name) for name in lost]),
            )


def _tell_of_refused_blocks(work: JoinWork) -> None:
    for cid, why in work.run.fetcher.refused.items():
        work.run.notices.say(
            "bad-block",
            "a provider returned other data than requested; it was ignored",
            f"a wrong block was served: {why}",
        )
        row = ReportRow(work.run.replica.world.now(), "bad-block", f"{cid}: {why}")
        reports.add(work.run.replica.db.connection, row)
