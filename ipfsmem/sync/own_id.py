"""Make sure this device's id is still its own; after a restore or copy, or if its name cannot be moved any
more, take a new id before any join (format section 5). `new_id` moves its values."""

from __future__ import annotations

from ipfsmem.canonical import MAX_INT
from ipfsmem.causal.state import EntryDifference
from ipfsmem.content.cid import CID, ipns_name
from ipfsmem.device.events import append_moved
from ipfsmem.device.tables import placed
from ipfsmem.errors import IpfsmemError, ProviderError
from ipfsmem.published.root_verification import Head
from ipfsmem.sync.commits import next_number
from ipfsmem.sync.fork import forked_devices
from ipfsmem.sync.join_or_hold import drop_head, hold_until_settled, join_or_hold, other_copy_of, read_changes
from ipfsmem.sync.join_work import JoinWork, joined_before
from ipfsmem.sync.names import target
from ipfsmem.sync.new_id import last_pair, move_since, move_values, take_new_id
from ipfsmem.sync.report import UNLOCK


async def keep_own_id(work: JoinWork) -> None:
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
            join_or_hold(work, moved.whole, stranger, moved.before)
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
