"""Write the messages about a revoke, for the revoked device and for the device that made it, from local data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ipfsmem.causal.entries import entry_display_name
from ipfsmem.causal.value import split_dot
from ipfsmem.device.replica import Replica
from ipfsmem.ring.authority import RANK_ROOT, RingMember
from ipfsmem.sync.removals import called, whose_word


def never_published(replica: Replica) -> list[str]:
    """Return the names of local writes that no published root of this device holds, sorted."""
    device = replica.device.id
    with replica.reading():
        mine = replica.store.frame.seen.get(device)
        last = mine.n if mine else 0
        return sorted(
            {
                entry_display_name(name)
                for name, entry in replica.store.entries()
                if any(dot[:16] == device and split_dot(dot)[1] > last for dot in entry)
            }
        )


def way_back(replica: Replica) -> str:
    """Return the steps for the user of a revoked device; each command works as written."""
    return (
        "To keep the texts here: ipfsmem export --dir DIR. To rejoin with the wallet or the recovery phrase: "
        f"move {replica.folder} away, restore the vault (ipfsmem init --wallet FILE, or ipfsmem recover), and import the export: ipfsmem import DIR"
    )


def words_of_revoked(replica: Replica) -> str:
    """Return the message on a revoked device."""
    never = never_published(replica)
    waits = f" Never published from here: {', '.join(never)}." if never else ""
    ring = replica.ring
    admins = ring.view.revoked_by.get(ring.view.family_of(replica.device.id)) if ring is not None else None
    if admins:
        undo = "; ".join(f"ipfsmem member revoke {one} --cascade" for one in sorted(admins))
        return (
            f"this device ({replica.device.id}) was removed by {' and '.join(whose_word(ring, one) for one in sorted(admins))}: "
            f"other devices ignore its writes, and it cannot read their new ones.{waits} If that was a mistake, restore it with the wallet, here or on any device: {undo}. Otherwise: {way_back(replica)}"
        )
    return f"this device ({replica.device.id}) was revoked: other devices ignore its writes, and it cannot read their new ones.{waits} {way_back(replica)}"


def words_of_revoke(labels: Iterable[str], ids: Iterable[str], *, plain: bool) -> str:
    """Describe a revoke: who is removed since when, what they can still read, and what remains to be done."""
    who = f"{', '.join(dict.fromkeys(labels)) or 'it'} ({', '.join(ids)})"
    out = f"removed {who}: other devices ignore its future writes; its published texts stay."
    if plain:
        return f"{out} Published data is public here, so it can still read it, as anyone can."
    return f"{out} It keeps everything it could read so far, and may still read what others write before their next sync, but nothing later. Its access to the provider stays: rotate the tokens and passwords that it knows."


def words_of_label(was: RingMember, now: RingMember, admitted_by: str) -> str:
    """Describe a change of label. It also makes a member admitted by a recovery phrase or wallet one admitted
    by a root."""
    if was.label == now.label:
        return f"{now.label} ({now.id}) has that label already: nothing changed"
    message = f"{was.label} ({now.id}) is now labelled {now.label}, on each device after its next sync"
    if was.by == now.by or now.rank != RANK_ROOT or was.rank == RANK_ROOT:
        return message
    return f"{message}. It was added by {admitted_by}; now it stays a member even if that one is revoked"


def words_of_what_stands(admitted: Mapping[str, str], removed: Mapping[str, str], revoked: str) -> str:
    """Describe the statements of a revoked recovery phrase or wallet that still stand.

    These mostly admitted honest devices and removed lost ones, but a thief of the phrase could do either.
    """
    sentences = []
    if admitted:
        sentences.append(
            f"still members, added by it: {called(admitted)}. Revoke one that is not yours like any other"
        )
    if removed:
        sentences.append(f"still removed, by it: {called(removed)}")
    return f"{'. '.join(sentences)}. To revoke everything it did: ipfsmem member revoke {revoked} --cascade"
