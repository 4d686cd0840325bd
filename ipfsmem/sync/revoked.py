"""What people are told of a revoke: on the device that was revoked, and where somebody revoked one.

Words only, from what is on this device. Nothing here revokes, publishes or takes anything away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ipfsmem.causal.entries import entry_place
from ipfsmem.causal.value import split_dot
from ipfsmem.replica.replica import Replica


def never_published(replica: Replica) -> list[str]:
    """Where this device wrote something that no published root of its own holds, sorted."""
    device = replica.device.id
    with replica.reading():
        mine = replica.store.frame.seen.get(device)
        known = mine.n if mine else 0
        return sorted(
            {
                entry_place(name)
                for name, entry in replica.store.entries()
                if any(dot[:16] == device and split_dot(dot)[1] > known for dot in entry)
            }
        )


def way_back(replica: Replica) -> str:
    """What a person does on a device that was revoked, step by step; each command works as it stands."""
    return (
        "To take along what is here: ipfsmem export --dir DIR. To belong to the memory again, with the wallet or the recovery words: "
        f"move {replica.folder} away, bring the memory back (ipfsmem init --wallet FILE, or ipfsmem recover), and take "
        "in what you exported: ipfsmem import DIR"
    )


def words_of_revoked(replica: Replica) -> str:
    """What is said on a device that was revoked."""
    never = never_published(replica)
    waits = f" Never published from here: {', '.join(never)}." if never else ""
    return (
        f"this device ({replica.device.id}) was revoked: no other device takes what it writes, and it cannot read what "
        f"they write since.{waits} {way_back(replica)}"
    )


def words_of_revoke(labels: Iterable[str], ids: Iterable[str], *, plain: bool) -> str:
    """What a revoke did: since when who is out, what they can still read, and what is left to do."""
    who = f"{', '.join(dict.fromkeys(labels)) or 'it'} ({', '.join(ids)})"
    out = f"{who} is out: no device takes what it writes from now on; what it had published stays."
    if plain:
        return f"{out} What is published here is public, so it can read that as everybody can."
    return (
        f"{out} It keeps all that it could read until now, and what others write before their next sync it may still read. From "
        "then on it cannot read what is written. Its access to the provider stays: change tokens and passwords that it knows."
    )


def named(members: Mapping[str, str]) -> str:
    """Members, given by id with their labels, for a person."""
    return ", ".join(f"{label} ({one})" for one, label in sorted(members.items(), key=lambda item: item[1]))


def words_of_what_stands(members: Mapping[str, str], revoked: str) -> str:
    """Whom recovery words or a wallet had let in when they were revoked: honest devices mostly, but whoever found those
    words could let in one of theirs."""
    return (
        f"let in by it, and still members: {named(members)}. One that is not yours you revoke like any other; to end all of "
        f"them: ipfsmem keys revoke {revoked} --nothing-stands"
    )
