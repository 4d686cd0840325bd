"""Derive removals of members from the ring, and report each once on each device, with the way to undo it.

A removal by a recovery phrase or other wallet lasts as long as that does. A thief of a phrase can remove honest
devices; so each device names the author, and only the user can make the removal permanent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from ipfsmem.device.replica import Replica
from ipfsmem.ring.keyring import Ring
from ipfsmem.ring.labels import label_and_id
from ipfsmem.ring.statements import Member, Revoke, id_of_hex
from ipfsmem.sync.report import MOST_NAMED, Notices


class Removal(msgspec.Struct, frozen=True):
    """A removed device (wallet, recovery phrase): `label` if still in the ring, `by` the ids that removed it.

    `lasting`: removed by a root, forever. Else only while statements of `by` are in force.
    """

    id: str
    label: str
    by: tuple[str, ...]
    lasting: bool
    #: whether a root admitted it
    trusted: bool


def removals(ring: Ring | None, before: Ring | None = None) -> list[Removal]:
    """Return the removals of members: first those admitted by a root, then by others than their removers, then by id.

    A root's revoke drops the label from the ring; `before` is one that may still have it.
    """
    if ring is None:
        return []
    view = ring.view
    roots = view.rights.root_ids
    by: defaultdict[str, set[str]] = defaultdict(set)
    labels: dict[str, tuple[bool, str, str]] = {}
    for st in (*ring.statements, *(before.statements if before is not None else ())):
        body = st.body
        if isinstance(body, Revoke) and id_of_hex(body.by) in roots:
            by[body.id].add(id_of_hex(body.by))
        elif isinstance(body, Member) and body.heir_of is None:
            rank = (id_of_hex(body.by) in roots, body.since, body.label)
            labels[body.id] = max(rank, labels.get(body.id, rank))
    unordered = [
        Removal(
            one,
            labels[one][2] if one in labels else "",
            tuple(sorted(view.revoked_by.get(one, by[one]))),
            one not in view.revoked_by,
            view.rank_of(one) == 0,
        )
        for one in view.must_exclude
        if one in view.ranks
    ]

    def theirs_alone(removal: Removal) -> bool:
        """Tell whether only its removers admitted it: any number of these could be listed before another."""
        return set(view.admitted_by.get(removal.id, "").split()) <= {*removal.by}

    return sorted(unordered, key=lambda removal: (not removal.trusted, theirs_alone(removal), removal.id))


def removal_key(device: str, by: str) -> str:
    """Return the text by which a device records that the user was told of this removal."""
    return f"removed {device} {by}"


def tell_of_removals(replica: Replica, before: Ring | None, notices: Notices) -> None:
    """Report each removal once with its authors (inside a transaction). `before`: this device's previous ring.

    A device without one (None) is new: it reports reversible removals, and not those by roots.
    """
    notices_shown = replica.notices_shown()
    mine = replica.ring.view.family_of(replica.device.id) if replica.ring is not None else ""
    news: defaultdict[tuple[str, bool], list[Removal]] = defaultdict(list)
    for one in removals(replica.ring, before):
        for by in one.by:
            if removal_key(one.id, by) not in notices_shown and one.id != mine:
                news[by, one.lasting].append(one)
    for (by, lasting), group in sorted(news.items()):
        if not lasting or before is not None:
            notices.say("removed", words_of_removals(replica.ring, by, group, lasting=lasting))
    if news:
        replica.note_shown(*(removal_key(one.id, by) for (by, _), group in news.items() for one in group))


def removed_by_admins(ring: Ring | None) -> list[str]:
    """Return one text per member who is not a root and removed others; shown while that lasts."""
    by: defaultdict[str, list[Removal]] = defaultdict(list)
    for one in removals(ring):
        if not one.lasting:
            for admin in one.by:
                by[admin].append(one)
    return [words_of_removals(ring, admin, group, lasting=False) for admin, group in sorted(by.items())]


def words_of_removals(ring: Ring | None, by: str, removed: Iterable[Removal], *, lasting: bool) -> str:
    """Describe who was removed by whom, and what to do about it."""
    removed = list(removed)
    who = called({one.id: one.label for one in removed})
    message = (
        f"{who} {'was' if len(removed) == 1 else 'were'} removed from this vault by {whose_word(ring, by)}"
    )
    if lasting:
        return f"{message}, permanently"
    which = removed[0].id if len(removed) == 1 else "ID"
    return (
        f"{message}. If that was not you, restore the removed members and revoke everything else it did: ipfsmem member revoke {by} "
        f"--cascade. If it was, make the removal permanent, even if that member is revoked later: ipfsmem member revoke {which}"
    )


def whose_word(ring: Ring | None, by: str) -> str:
    """Describe the author of a ring statement, for any device."""
    person = ring.view.members.get(by) if ring is not None else None
    if person is None or ring is None or by not in ring.view.rights.root_ids:
        return label_and_id(ring, by)
    return {"wallet": "the wallet", "words": "the recovery phrase of init"}.get(
        person.kind, "the first key of this vault"
    )


def called(members: Mapping[str, str]) -> str:
    """Return members by id with labels, as many as fit one text."""
    names = [f"{label} ({one})" if label else f"device {one}" for one, label in members.items()]
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more (ipfsmem member list)" if more > 0 else "")
