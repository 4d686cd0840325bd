"""Verify a published root: its vault, the signer of its commit, and the signature of each counter (format section 7).

The ring is joined into a copy, kept by the caller only when the commit (or the anchor) that names the ring's bytes is
valid. A commit's data about ids without a key in the ring is omitted: such a head is joined in part. Nothing is
joined into the state or written here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from hashlib import sha256
from typing import NamedTuple

import msgspec

from ipfsmem.causal.value import DeviceCounter, verify_seen
from ipfsmem.content.cid import CID
from ipfsmem.errors import FormatError, MembershipError, OpenError, SignatureError
from ipfsmem.published.commit import SignedCommit, open_commit, open_plain_commit
from ipfsmem.published.root_reader import RootFiles
from ipfsmem.ring.keyring import Ring, UnlockedKeyring, parse_keyring
from ipfsmem.seal.objects import EpochKey, Sealer


class Head(msgspec.Struct, frozen=True):
    """A verified head: its root, its commit, its state's folder, and the verified part of its `ctx`.

    `state` is None if the unsigned folder lacks it: such a head is damaged. `unknown_devices`: ids without a key in
    the joined ring; the head's data about them is omitted, here and in its state.
    """

    root: CID
    commit: SignedCommit
    state: CID | None
    ctx: dict[str, DeviceCounter]
    unknown_devices: frozenset[str] = frozenset()


def maximal_heads(heads: Iterable[Head]) -> list[tuple[Head, list[Head]]]:
    """Return the heads contained in no other, each with all heads that it contains; shared ones are repeated.

    A head contains another when joining the other after it would add nothing: its commit (or that of a head
    it contains) names the other in `prev` and knows all its writes, as the same writes.

    Ordered by clock, but a head whose counters another one covers comes last. It should add nothing; if its
    maker reused counters for other writes, a new device would otherwise join it first and hold back all
    others.
    """
    by_digest = {head.commit.digest: head for head in heads}
    below: dict[str, list[str]] = {digest: [] for digest in by_digest}
    ancestors: set[str] = set()
    for digest, head in by_digest.items():
        # Values omitted by a head may come from its parents.
        for before in () if head.unknown_devices else head.commit.commit.prev:
            if before in by_digest and _covers(head, by_digest[before]):
                ancestors.add(before)
                below[digest].append(before)
    maximal = []
    left = by_digest.keys() - ancestors
    covered = {
        one: any(_covers(by_digest[other], by_digest[one]) and other != one for other in left) for one in left
    }
    for digest in sorted(left, key=lambda one: (covered[one], by_digest[one].commit.commit.h, one)):
        reached: dict[str, None] = {}
        left_below = list(below[digest])
        while left_below:
            one = left_below.pop()
            if one not in reached:
                reached[one] = None
                left_below += below[one]
        maximal.append((by_digest[digest], [by_digest[one] for one in reached]))
    return maximal


def _covers(head: Head, other: Head) -> bool:
    mine = head.ctx
    return all(
        device in mine and (mine[device].n > seen.n or (mine[device].n, mine[device].r) == (seen.n, seen.r))
        for device, seen in other.ctx.items()
    )


class VerifiedCounters(NamedTuple):
    """The pairs of a commit's `ctx` that their devices signed, and the ids without a key in the ring."""

    signed: dict[str, DeviceCounter]
    unknown_devices: frozenset[str]


class VerifiedRoot(msgspec.Struct, frozen=True):
    """A root with verified ring and, if present, verified head."""

    #: Our ring joined with this root's.
    ring: Ring
    head: Head | None
    #: This root's ring alone.
    shown: UnlockedKeyring
    #: Keys that its own ring names, or that seal its commit, and that the joined ring lacks: only for reading.
    spare: tuple[EpochKey, ...] = ()


def open_root(
    files: RootFiles, vault: bytes, ring: Ring | None, box_secrets: list[bytes], *, held: bool = False
) -> VerifiedRoot:
    """Verify a root except its state. `held`: verified earlier, before its device was revoked, and held.

    Raises FormatError, LimitError, SignatureError, OpenError, MembershipError: the caller then drops and
    reports the head.
    """
    if ring is not None and ring.equals_file(files.keyring):
        shown, joined = UnlockedKeyring.of_ring(ring), ring
    else:
        keyring = parse_keyring(files.keyring, vault)
        shown = keyring.unlock(box_secrets, (*ring.keys, *ring.spare) if ring is not None else ())
        joined = shown.ring() if ring is None else ring.join(shown)
    if files.head is None:
        return VerifiedRoot(joined, None, shown)
    others: list[EpochKey] = []
    # Data sealed before another member's statement ended these keys still needs them.
    own = set() if files.plain else {*shown.unbounded_ring.keys} - {*joined.keys}
    if files.plain:
        commit = open_plain_commit(files.head)
    else:
        try:
            commit = open_commit(files.head, _sealers(joined.keys, vault))
        except OpenError:
            # Its key may no longer be named by the joined ring.
            slots = parse_keyring(files.keyring, vault).slot_keys(box_secrets)
            others = [*joined.spare, *own, *slots]
            commit = open_commit(files.head, _sealers(others, vault))
    needed = {key for key in others if key.id == commit.commit.ek}
    counters = check_commit(commit, joined, vault, files.keyring, needed, held=held)
    head = Head(files.root, commit, files.state, counters.signed, counters.unknown_devices)
    return VerifiedRoot(joined, head, shown, tuple(needed | own))


def _sealers(keys: Iterable[EpochKey], vault: bytes) -> list[Sealer]:
    return [Sealer(key, vault) for key in sorted(keys, key=lambda key: -key.epoch)]


def check_commit(
    signed: SignedCommit,
    ring: Ring,
    vault: bytes,
    keyring: bytes,
    spare: Collection[EpochKey] = (),
    *,
    held: bool = False,
) -> VerifiedCounters:
    """Refuse a commit of another vault or ring, by a member who may not write, or with a pair not signed by its device.

    `held`: verified while its device might write, so a later revoke does not affect it. Raises FormatError, MembershipError,
    SignatureError, OpenError.
    """
    commit = signed.commit
    if commit.vault != vault.hex():
        raise FormatError(f"the commit is of vault {commit.vault}, not of {vault.hex()}")
    if commit.ring != sha256(keyring).hexdigest():
        raise FormatError("the commit names another keyring.json than the one next to it")
    counters = _check_maker(signed, ring, held)
    if not ring.plain and commit.ek not in ring.view.eks and all(key.id != commit.ek for key in spare):
        raise OpenError(f"the commit is sealed under key {commit.ek}, which this device does not hold")
    return counters


def verify_again(head: Head, ring: Ring, *, held: bool = False) -> Head:
    """Verify a head against a ring that has grown since: its maker may be revoked, other ids may have keys.

    Raises MembershipError, SignatureError.
    """
    counters = _check_maker(head.commit, ring, held)
    return Head(head.root, head.commit, head.state, counters.signed, counters.unknown_devices)


def _check_maker(signed: SignedCommit, ring: Ring, held: bool) -> VerifiedCounters:
    commit, vault, view = signed.commit, ring.vault, ring.view
    if not view.may_write(commit.dev) and not (held and commit.dev in view.revoked):
        why = "was revoked" if commit.dev in view.revoked else "is not a member that may write"
        raise MembershipError(f"the commit is by device {commit.dev}, which {why}")
    if not any(signed.verify(key) for key in view.keys_of.get(commit.dev, ())):
        raise SignatureError(f"the commit is not signed by device {commit.dev}")
    known = {device: seen for device, seen in commit.ctx.items() if device in view.keys_of}
    for device, seen in known.items():
        if not any(verify_seen(key, vault, device, seen) for key in view.keys_of[device]):
            raise SignatureError(f"the commit claims a counter that device {device} did not sign")
    return VerifiedCounters(known, frozenset(commit.ctx.keys() - known.keys()))
