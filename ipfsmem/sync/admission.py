"""Check discovered heads for rollbacks and for heads of another copy of a device (format sections 5, 7).

Reads no block and joins nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Set

from ipfsmem.causal.clock import FAR_AHEAD_MS, hlc_ms
from ipfsmem.content.cid import CID
from ipfsmem.device.tables import heads as known_heads
from ipfsmem.device.tables import marks
from ipfsmem.device.tables.marks import MarkRow
from ipfsmem.published.root_verification import Head
from ipfsmem.ring.labels import label_and_id
from ipfsmem.sync.context import SyncContext
from ipfsmem.sync.identity import head_of_other_copy
from ipfsmem.sync.steps import Admitted, DiscoveredHeads


def admit(run: SyncContext, discovered: DiscoveredHeads) -> Admitted:
    """Find the heads made by another copy of their device, and whether this device is one of these.

    Notices report rollbacks, and different versions with the same number.
    """
    heads = discovered.heads.values()
    parents = {before for head in heads for before in head.commit.commit.prev}
    copies = copies_among(heads, parents, run.replica.environment.now())
    with run.replica.transaction():
        doubled: set[str] = set()
        for head in sorted(heads, key=lambda h: h.commit.commit.c):
            if _is_of_other_copy(run, discovered, head, parents, doubled):
                copies.add(head.root)
    return Admitted(discovered, frozenset(copies), head_of_other_copy(run.replica, list(heads)))


def copies_among(heads: Iterable[Head], parents: Set[str], now: int) -> set[CID]:
    """Return the roots of heads made by another copy of their device.

    Such a head has a lower number and a later clock than the device's newest head, and no verified head has it as a
    parent (`parents`: digests of commits). `now`: milliseconds since 1970 UTC.
    """
    newest: dict[str, Head] = {}
    for head in heads:
        other = newest.setdefault(head.commit.commit.dev, head)
        if other.commit.commit.c < head.commit.commit.c:
            newest[head.commit.commit.dev] = head
    roots: set[CID] = set()
    for head in heads:
        commit, top = head.commit.commit, newest[head.commit.commit.dev].commit.commit
        if commit.c < top.c and head.commit.digest not in parents and _is_later(commit.h, top.h, now):
            roots.add(head.root)
    return roots


def _is_later(h: str, than: str, now: int) -> bool:
    """Tell whether clock value `h` is later than `than`. A value far in the future, from a wrong clock, is not."""
    return than < h and hlc_ms(h) < now + FAR_AHEAD_MS


def _is_of_other_copy(
    run: SyncContext, discovered: DiscoveredHeads, head: Head, parents: Set[str], doubled: set[str]
) -> bool:
    """Compare a head with the mark of its device and update the mark; tell whether another copy of the device made
    it.

    A head of another copy has a lower number and a later clock. Reports a head older than the mark, and, once per
    device (`doubled`), two commits with the same number.
    """
    db = run.replica.db.connection
    commit = head.commit.commit
    mark = marks.get(db, commit.dev)
    if mark is None or commit.c > mark.number:
        marks.put(db, MarkRow(commit.dev, commit.c, head.commit.digest, commit.h))
    elif commit.c < mark.number:
        if head.commit.digest in parents:
            return False
        later = _is_later(commit.h, mark.hlc, run.replica.environment.now())
        if later and head.commit.digest not in known_heads.past(db):
            return True
        # Pin lists also contain old heads, and a held head does not get newer: neither indicates a rollback.
        if head.root not in discovered.listed and head.root not in discovered.held:
            run.notices.say(
                "stale",
                f"an older version of {label_and_id(run.replica.ring, commit.dev)} was shown (its number {commit.c}; {mark.number} "
                "was seen before)",
            )
    elif mark.digest != head.commit.digest and commit.dev not in doubled:
        doubled.add(commit.dev)
        run.notices.say(
            "equivocation",
            f"{label_and_id(run.replica.ring, commit.dev)} published two different versions with the number {commit.c}",
        )
    return False
