"""Opening a published root: is its ring ours, its commit signed by a member who may write, its counters honest?

Format section 7. A ring is joined in a scratch copy and kept only when the commit (or the anchor) that names its bytes
holds. Nothing is joined into the state here, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

import msgspec

from ipfsmem.causal.value import verify_seen
from ipfsmem.content.cid import CID
from ipfsmem.errors import FormatError, MembershipError, OpenError, SignatureError
from ipfsmem.seal.objects import Sealer
from ipfsmem.seal.ring import Ring, parse_keyring
from ipfsmem.sync.commit import SignedCommit, open_commit, open_plain_commit
from ipfsmem.sync.remote import RootFiles


class Head(msgspec.Struct, frozen=True):
    """A verified head: its root, its commit, and where its state stands."""

    root: CID
    commit: SignedCommit
    state: CID


def tops(heads: Iterable[Head]) -> list[tuple[Head, list[Head]]]:
    """Those of `heads` that no other one holds, by clock, each with some of those that it holds: every head comes once.

    A head holds another when joining that one after it brings nothing, as it was made with it joined: its commit, or that
    of one that it holds, names the other, and knows of every write that the other knows of, as the same write.
    """
    by_digest = {head.commit.digest: head for head in heads}
    below: dict[str, list[str]] = {digest: [] for digest in by_digest}
    held: set[str] = set()
    for digest, head in by_digest.items():
        for before in head.commit.commit.prev:
            if before in by_digest and before not in held and _covers(head, by_digest[before]):
                held.add(before)
                below[digest].append(before)
    found = []
    for digest in sorted(by_digest.keys() - held, key=lambda one: (by_digest[one].commit.commit.h, one)):
        reached = list(below[digest])
        for one in reached:  # it grows
            reached += below[one]
        found.append((by_digest[digest], [by_digest[one] for one in reached]))
    return found


def _covers(head: Head, other: Head) -> bool:
    mine = head.commit.commit.ctx
    return all(
        device in mine and (mine[device].n > seen.n or (mine[device].n, mine[device].r) == (seen.n, seen.r))
        for device, seen in other.commit.commit.ctx.items()
    )


class Opened(msgspec.Struct, frozen=True):
    """What a root came to: the ring with its statements, and the head when it has one."""

    #: What we knew and what this root adds.
    ring: Ring
    head: Head | None
    #: What this root shows by itself.
    shown: Ring


def open_root(
    files: RootFiles, vault: bytes, ring: Ring | None, box_secrets: list[bytes], *, held: bool = False
) -> Opened:
    """Verify everything about a root but its state. `held`: it was verified before its device was revoked, and held.

    Raises FormatError, LimitError, SignatureError, OpenError, MembershipError: the head is then dropped and reported.
    """
    keyring = parse_keyring(files.keyring, vault)
    if ring is not None and keyring.plain != ring.plain:
        raise FormatError("the root is of the other mode (plain or encrypted)")
    opened = keyring.unlock(box_secrets, ring.keys if ring is not None else ())
    joined = opened if ring is None else ring.join(opened)
    if files.head is None:
        return Opened(joined, None, opened)
    commit = (
        open_plain_commit(files.head) if files.plain else open_commit(files.head, _sealers(joined, vault))
    )
    check_commit(commit, joined, vault, files.keyring, held=held)
    if files.state is None:
        raise FormatError(f"root {files.root} has a commit and no state")
    return Opened(joined, Head(files.root, commit, files.state), opened)


def _sealers(ring: Ring, vault: bytes) -> list[Sealer]:
    return [Sealer(key, vault) for key in reversed(ring.keys)]


def check_commit(
    signed: SignedCommit, ring: Ring, vault: bytes, keyring: bytes, *, held: bool = False
) -> None:
    """Refuse a commit of another vault or ring, of somebody who may not write, or with a pair that nobody signed.

    `held`: it was verified while its device might write, so a revoke since then takes nothing from it.
    """
    commit = signed.commit
    if commit.vault != vault.hex():
        raise FormatError(f"the commit is of vault {commit.vault}, not of {vault.hex()}")
    if commit.ring != sha256(keyring).hexdigest():
        raise FormatError("the commit names another keyring.json than the one beside it")
    view = ring.view
    if not view.may_write(commit.dev) and not (held and commit.dev in view.revoked):
        why = "was revoked" if commit.dev in view.revoked else "is not a member that may write"
        raise MembershipError(f"the commit is by device {commit.dev}, which {why}")
    if not any(signed.verify(key) for key in view.keys_of.get(commit.dev, ())):
        raise SignatureError(f"the commit is not signed by device {commit.dev}")
    if not ring.plain and commit.ek not in view.eks:
        raise OpenError(f"the commit is sealed under key {commit.ek}, which this device does not hold")
    for device, seen in commit.ctx.items():
        if not any(verify_seen(key, vault, device, seen) for key in view.keys_of.get(device, ())):
            raise SignatureError(f"the commit claims a counter that device {device} did not sign")
