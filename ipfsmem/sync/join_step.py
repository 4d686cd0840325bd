"""Join the discovered heads: those of names first, then listed ones, and older ones if newer are incomplete (format
5, 7).

Before any join, this device makes sure that its id is still its own, requests texts that were unavailable when their
values were joined, and adopts the texts of devices that are no longer members. After it, local data about what
another device forgot is removed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from ipfsmem.canonical import MAX_INT, read_json
from ipfsmem.causal.clock import hlc_ms
from ipfsmem.causal.entries import entry_display_name, memory_entry
from ipfsmem.causal.state import EntryDifference
from ipfsmem.causal.value import FORGOTTEN
from ipfsmem.content.cid import CID, ipns_name, raw_cid
from ipfsmem.device.dreams import forget_in_dreams, spoken_of
from ipfsmem.device.events import append_moved
from ipfsmem.device.replica import Replica
from ipfsmem.device.scopes import scope_forgotten
from ipfsmem.device.tables import heads, meta, objects, placed, reports
from ipfsmem.device.tables.reports import ReportRow
from ipfsmem.device.texts_of_others import reassign_authors
from ipfsmem.errors import IpfsmemError, ProviderError
from ipfsmem.memories.sessions_here import forget_sessions_here, scopes_with_sessions_here
from ipfsmem.published.root_verification import Head, maximal_heads
from ipfsmem.sync.changes import combine_kinds, kinds_between
from ipfsmem.sync.commits import next_number
from ipfsmem.sync.context import SyncContext
from ipfsmem.sync.discovery import discover_older
from ipfsmem.sync.forwarding import learn_moves
from ipfsmem.sync.identity import (
    adopt_orphans,
    forked_devices,
    last_pair,
    move_since,
    move_values,
    orphans,
    take_new_id,
)
from ipfsmem.sync.join_or_hold import (
    drop_head,
    hold_until_settled,
    join_or_hold,
    note_head,
    other_copy_of,
    read_and_join,
    read_changes,
)
from ipfsmem.sync.join_work import JoinWork, joined_before
from ipfsmem.sync.names import target
from ipfsmem.sync.report import UNLOCK, named
from ipfsmem.sync.steps import Admitted, Joined
from ipfsmem.sync.times import DAY_MS, WEEK_MS, passed
from ipfsmem.sync.unjoined_heads import keep_not_whole, not_whole

#: Maximum age of roots read from a pin list next to names; older ones are never a reason to delete.
LISTED_FOR_MS: Final = WEEK_MS
#: Maximum number of unavailable bodies requested again per sync.
ASK_AT_ONCE: Final = 1_000


async def join_found(run: SyncContext, admitted: Admitted) -> Joined:
    """Join every head found, each in its own transaction, after handling copies of this device and others;
    and older roots when newer ones cannot be read whole."""
    work = JoinWork(run, admitted)
    await _keep_own_id(work)
    await _ask_for_missing_texts(work)
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
        gone = work.heads_joined > 0 and _delete_data_of_forgotten(run.replica)
    if gone and not run.replica.config.mode.sealed:
        run.replica.db.empty_log()  # it held plaintext
    _tell_of_copies(work)
    return work.joined()


async def _join_heads(work: JoinWork, heads: Iterable[Head]) -> None:
    """Join every head. A head that a joined head contains is not read."""
    remaining = {head.root: head for head in heads}
    while remaining:
        for head, below in maximal_heads(remaining.values()):
            del remaining[head.root]
            if not await read_and_join(work, head):
                continue
            with work.run.replica.transaction():
                for lower in below:
                    if remaining.pop(lower.root, None) is not None:
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
    week_ago = work.run.replica.environment.now() - LISTED_FOR_MS
    anything = heads.any_known(work.run.replica.db.connection)
    listed = []
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
            listed.append(head)
    await _join_heads(work, listed)


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
    work.found = older = await discover_older(work.run, so_far)
    work.heads, work.refused = dict(older.heads), set(older.refused)
    work.known_elsewhere = older.known_elsewhere
    return [head for root, head in work.heads.items() if root not in before]


def _take_over_orphans(work: JoinWork) -> None:
    """Adopt the texts of devices that no longer have a key in the ring."""
    with work.run.replica.transaction():
        orphan_ids = orphans(work.run.replica)
        if orphan_ids:
            adopted = adopt_orphans(work.run.replica, orphan_ids, unsure=work.unsure_of_bodies)
            work.run.notices.say(
                "orphan",
                f"{work.called(orphan_ids)} is no longer a member: its texts are now those of this device",
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
            subject, detail = work.why_damaged[root]
            work.run.notices.say(
                "damaged", f"{subject}. To restore the readable part: ipfsmem vault repair", detail
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
    for kind, results in work.adopted.items():
        if new_keys := [key for adopted in results for key in adopted.new_keys]:
            work.run.notices.say(
                kind, f"too many texts under one key: those over the limit are now {named(new_keys)}"
            )
        if lost := [name for adopted in results for name in adopted.lost]:
            work.run.notices.say(
                kind,
                "left out, as no device or provider that answered has them or they had no place: "
                + named([entry_display_name(name) for name in lost]),
            )


def _tell_of_refused_blocks(work: JoinWork) -> None:
    for cid, why in work.run.fetcher.refused.items():
        work.run.notices.say(
            "bad-block",
            "a provider returned other data than requested; it was ignored",
            f"a wrong block was served: {why}",
        )
        row = ReportRow(work.run.replica.environment.now(), "bad-block", f"{cid}: {why}")
        reports.add(work.run.replica.db.connection, row)


async def _keep_own_id(work: JoinWork) -> None:
    """Ensure that no one else uses this device's id, or take a new one."""
    run, stranger = work.run, work.admitted.stranger
    mine = ipns_name(run.replica.device.sign_public)
    if stranger is not None or run.replica.was_moved() or next_number(run.replica) > MAX_INT:
        await _become_another(work, stranger)
        return
    await _check_own_name(work)
    if run.names.used_up(mine) and not (work.unsure or work.new_identity):
        # A copy of its keys used up the sequence numbers of its name.
        await _become_another(work, None)


async def _check_own_name(work: JoinWork) -> None:
    """Handle a name of this device that leads to a root which it never published and cannot read.

    Another copy may have used the next counters: nothing is published (format section 5), or, with an
    unlocked root, this device takes a new id.
    """
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
    work.unsure = f"{leads} is named as the newest version of this device, which did not publish it and cannot read it. Unlock once: {UNLOCK}"


async def _become_another(work: JoinWork, stranger: Head | None, *, unknown: bool = False) -> None:
    """Take a new id and move every text of the old one to it that `stranger`, the other copy's head, does not hold.

    Without a stranger, move what was written since the last pair, which both copies know; with `unknown` move
    all.
    """
    old = work.run.replica.device.id
    known_head = stranger or _own_head(work)
    changes: list[EntryDifference] | None = None
    if known_head is not None:
        try:
            changes = await read_changes(work, known_head)
        except ProviderError:
            raise
        except IpfsmemError as error:
            if stranger is not None:
                drop_head(work, stranger, error)
    with work.run.replica.transaction():
        if stranger is not None and changes is not None:
            forked = (forked_devices(changes, stranger, work.run.replica) | other_copy_of(work, stranger)) - {
                old
            }
            if hold_until_settled(work, forked, stranger):
                changes = None
        common = last_pair(work.run.replica) if stranger is None and not unknown else 0
        take_new_id(work.run.replica, work.run.notices)
        if stranger is not None and changes is not None:
            moved = move_values(work.run.replica, old, changes)
            lines = moved.lines
            join_or_hold(work, moved.to_join, stranger, moved.before)
        else:
            lines = move_since(work.run.replica, old, common, changes or [])
        append_moved(work.run.replica, lines)
    work.known_elsewhere = False
    work.new_identity = True
    work.run.notices.say(
        "identity",
        f"this device's state was restored or copied: its id is now {work.run.replica.device.id} (was {old}); nothing was lost, and a text may appear twice",
    )


def _own_head(work: JoinWork) -> Head | None:
    mine = [h for h in work.heads.values() if h.commit.commit.dev == work.run.replica.device.id]
    return max(mine, key=lambda head: head.commit.commit.c, default=None)


async def _ask_for_missing_texts(work: JoinWork) -> None:
    """Request texts that were unavailable when they were joined, at every provider; those missed by this very
    sync's join in the next: "not fetched" is a temporary state.

    Of more than `ASK_AT_ONCE` texts all are requested once a day, else one part after another while something
    arrives. A writer can name any number of nonexistent objects, which stay named after its revocation.
    """
    work.unsure_of_bodies = False
    if work.run.replica.db.get_meta(meta.LACKING) != b"1":
        return
    with work.run.replica.transaction():
        # Only then are texts counted that this sync joined as a device found to be a copy.
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
                learn_moves(work.run.replica, work.run.replica.store.names())
    else:
        with work.run.replica.transaction():
            work.run.replica.db.set_meta(meta.LACKING, b"0")


class _Asked(msgspec.Struct):
    """`at`: when all missing texts were last requested and every provider answered (milliseconds). `last`:
    the last text requested since then, by SHA-256 (hex)."""

    at: int = 0
    last: str = ""


async def _ask_for(work: JoinWork, missing: list[bytes]) -> tuple[int, ProviderError | None]:
    """Request objects by SHA-256; return the number received, and why the others could not be requested everywhere."""
    db, now = work.run.replica.db, work.run.replica.environment.now()
    stored = db.get_meta(meta.ASKED_FOR)
    progress = read_json(stored, type=_Asked) if stored else _Asked()
    everything = len(missing) <= ASK_AT_ONCE or passed(progress.at, now, DAY_MS)
    start = next((i for i, digest in enumerate(missing) if digest.hex() > progress.last), 0)
    ordered = [raw_cid(digest) for digest in (*missing[start:], *missing[:start])]
    came, down = 0, None  # an outage stops requests; the next sync continues after it
    for at in range(0, len(ordered), ASK_AT_ONCE):
        part = ordered[at : at + ASK_AT_ONCE]
        blocks, failure = await work.run.fetcher.try_get(part)
        down = down or failure
        came += len(blocks)
        progress.last = part[-1].digest.hex()
        if not blocks and (failure is not None or not everything):
            break
    if everything and down is None:
        progress.at = now
    if len(missing) > ASK_AT_ONCE:
        with work.run.replica.transaction():
            db.set_meta(meta.ASKED_FOR, msgspec.json.encode(progress))
    return came, down


def _delete_data_of_forgotten(replica: Replica) -> bool:
    """Remove local sessions of a forgotten scope, and dreams' proposals and undo data for a forgotten memory or
    scope (inside a transaction); tell whether there were any.

    A local forget does the same at once (`memories/`). All local data is checked, not only what a join changed,
    so leftovers of an earlier version are removed too.
    """
    store, any_forgotten = replica.store, False
    for scope in scopes_with_sessions_here(replica):
        if scope_forgotten(store, scope):
            forget_sessions_here(replica, scope)
            any_forgotten = True
    for scope, keys in spoken_of(replica).items():
        if scope_forgotten(store, scope):
            forget_in_dreams(replica, scope)
            any_forgotten = True
            continue
        for key in keys:
            if any(value.kind == FORGOTTEN for value in store.entry(memory_entry(key, scope)).values()):
                forget_in_dreams(replica, scope, key)
                any_forgotten = True
    return any_forgotten
