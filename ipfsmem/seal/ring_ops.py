"""What people do to a key ring: make it, enrol, rotate, revoke, succeed, and answer a device that asks to come in.

Format section 4. Each function takes a ring and returns a greater one; the caller joins first and publishes after, in
the same step. Epoch keys and times are arguments, and so is the function that makes slots, so nothing here draws
randomness or reads a clock. Nobody is given more than the evaluation in `authority` would grant: what would not count
is refused with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal, TypeAlias

import msgspec

from ipfsmem import canonical
from ipfsmem.canonical import read_json
from ipfsmem.errors import FormatError, LimitError, MembershipError, UsageError
from ipfsmem.seal.authority import Authority, Person
from ipfsmem.seal.derive import RootKeys
from ipfsmem.seal.objects import MAX_EPOCH, EpochKey, epoch_key
from ipfsmem.seal.primitives import Signer25519, box_key_ok, box_seal, public_key_ok
from ipfsmem.seal.ring import Ring, slot_text
from ipfsmem.seal.ring_keep import MAX_CHAIN
from ipfsmem.seal.statements import (
    Epoch,
    Genesis,
    Member,
    Revoke,
    Role,
    Statement,
    check_label,
    make,
    member_id,
)

#: (slot text, box public key) -> slot of 104 bytes; a sealed box draws its own ephemeral key.
BoxSeal: TypeAlias = Callable[[bytes, bytes], bytes]
MAX_REQUEST: Final = 4096


class Device(msgspec.Struct, frozen=True):
    """The public side of what is to be enrolled: Ed25519 and X25519 keys, a label for people, an anchor if it has one."""

    sign: bytes
    box: bytes
    label: str
    anchor: bytes | None = None

    @property
    def id(self) -> str:
        """The id that its dots and statements carry."""
        return member_id(self.sign)


class _Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    box: str
    label: str
    sign: str
    v: Literal[1]
    vault: str


def create(
    root: RootKeys,
    recovery: RootKeys | None,
    device: Device | None,
    *,
    ek: bytes | None,
    since: str,
    device_role: Role = "writer",
    root_label: str = "wallet",
    box: BoxSeal = box_seal,
) -> Ring:
    """The ring of a new vault: genesis, the roots, this device, and the first epoch key (`ek`, 32 random bytes).

    `ek` None makes the ring of a plain `ipfs` memory. `since` is the HLC now (16 hex digits).
    """
    if root.kind == "recovery":
        raise UsageError("a recovery key is never the first root of a vault")
    roots = [root] if recovery is None else [root, recovery]
    labels = [root_label, "recovery words"]
    vault = root.tag(plain=ek is None)
    statements = [make(root.admin, Genesis(tuple(keys.admin_public.hex() for keys in roots)), vault)]
    for keys, label in zip(roots, labels, strict=False):
        itself = Device(keys.admin_public, keys.box_public, label, keys.head_public)
        statements.append(_member(keys.admin, vault, itself, "admin", since))
    if device is not None:
        statements.append(_member(root.admin, vault, device, device_role, since))
    ring = Ring(vault, statements, (), plain=ek is None)
    return ring if ek is None else rotate(ring, root.admin, ek, box=box)


def enrol(
    ring: Ring, signer: Signer25519, device: Device, role: Role, *, since: str, box: BoxSeal = box_seal
) -> Ring:
    """Make `device` a member (or change what it is) and give it the key that seals now.

    For a new device, a second wallet (role admin, with its anchor, signed by a root), another person's agent.
    Raises MembershipError when the signer may not, the id is revoked, or its box key belongs to somebody else.
    """
    view = ring.view
    _may_enrol(view, signer, device, role)
    grown = ring.add([_member(signer, ring.vault, device, role, since)])
    if ring.plain:
        return grown
    return _give(grown, signer, [grown.view.people[device.id]], box)


def rotate(ring: Ring, signer: Signer25519, ek: bytes, *, box: BoxSeal = box_seal) -> Ring:
    """Make `ek` (32 random bytes) the key that seals from now on, for all who are members now."""
    if ring.plain:
        raise UsageError("a plain memory has no epoch keys")
    view = ring.view
    _require_admin(view, signer)
    if view.next_epoch > MAX_EPOCH:
        raise LimitError(
            "this vault has used up its epoch numbers: move the memory to a vault with a new key number"
        )
    key = epoch_key(view.next_epoch, ek, ring.vault)
    return _state_epoch(ring, signer, key, _entitled(view), box)


def revoke(
    ring: Ring,
    signer: Signer25519,
    member: str,
    *,
    at: str,
    counters: Mapping[str, int],
    ek: bytes | None,
    box: BoxSeal = box_seal,
) -> Ring:
    """End the membership of `member` and of its whole chain, and rotate to `ek` for those who stay.

    `counters` is the joined state's ctx (device id -> counter): values up to there stay accepted. Join and publish in
    the same step. `ek` is None in a plain memory only.
    """
    view = ring.view
    _may_revoke(view, signer, member)
    if (ek is None) != ring.plain:
        raise UsageError("revoking in a sealed memory takes a new epoch key, in a plain one none")
    stands = tuple(st.hash for st in ring.statements if isinstance(st.body, Member))
    by = signer.public.hex()
    # Each id of the chain by name: a link can be replaced by one with a lesser hash, a name cannot.
    said = [
        make(signer, Revoke(at=at, by=by, id=one, keep=stands, n=counters.get(one, 0)), ring.vault)
        for one in view.chains[member]
        if not _said(ring, by, one)
    ]
    grown = ring.add(said)
    return grown if ek is None else rotate(grown, signer, ek, box=box)


def successor(ring: Ring, old: Signer25519, new_sign: bytes, *, since: str, label: str | None = None) -> Ring:
    """Let a member name its own new id (after a restore): same box key, same role but never admin.

    It needs no slot: its box key is in the same slots already. Raises MembershipError when the old id is not a member,
    is a root, has named another successor, or ends a chain of eight.
    """
    view = ring.view
    parent = view.members.get(member_id(old.public))
    if parent is None or parent.sign != old.public or parent.id in view.facts.root_ids:
        raise MembershipError(f"{member_id(old.public)} is not a member that can name a successor")
    role: Role = "writer" if parent.role == "admin" else parent.role
    device = Device(new_sign, parent.box, label or parent.label)
    if device.id in view.keys_of:
        raise MembershipError(f"{device.id} has been in this ring before: a successor needs a new key")
    grown = ring.add([_member(old, ring.vault, device, role, since)])
    if device.id not in grown.view.members:
        raise MembershipError(
            f"{parent.id} has named another successor, or is the last of a chain of {MAX_CHAIN}: "
            "this device must be enrolled anew"
        )
    return grown


def give_key(ring: Ring, signer: Signer25519, ek: bytes, *, box: BoxSeal = box_seal) -> Ring:
    """What every admin unlock does: a key (`ek`) if none seals or it cannot be opened here, and slots for all who lack it.

    Gives back the same ring when nothing is missing.
    """
    if ring.plain:
        return ring
    view = ring.view
    _require_admin(view, signer)
    if view.sealing is None:
        return rotate(ring, signer, ek, box=box)
    lacking = lacking_key(view)
    return _give(ring, signer, lacking, box) if lacking else ring


def lacking_key(view: Authority) -> list[Person]:
    """The members to whom no statement gives the key that seals now. One box key needs one slot, whatever its ids."""
    served = {view.people[one].box for one in view.holders if one in view.people}
    return [
        person for person in _entitled(view) if person.id not in view.holders and person.box not in served
    ]


def request(vault: bytes, device: Device) -> bytes:
    """What a device shows to an admin to be enrolled: canonical JSON, no secret in it."""
    check_label(device.label)
    return canonical.encode(_Request(device.box.hex(), device.label, device.sign.hex(), 1, vault.hex()))


def read_request(data: bytes, vault: bytes) -> Device:
    """The device that asks. Raises FormatError when the request is damaged, of another vault, or brings bad keys."""
    if len(data) > MAX_REQUEST:
        raise LimitError(f"an enrolment request has at most {MAX_REQUEST} bytes, this has {len(data)}")
    try:
        asked = read_json(data, type=_Request)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise FormatError(f"the enrolment request is not readable: {error}") from None
    canonical.check_canonical(data, asked, "the enrolment request")
    if asked.vault != vault.hex():
        raise FormatError(f"the enrolment request is for vault {asked.vault}, not for {vault.hex()}")
    sign = canonical.unhex(asked.sign, "the signing key of the request", 32)
    box = canonical.unhex(asked.box, "the box key of the request", 32)
    if not public_key_ok(sign) or not box_key_ok(box):
        raise FormatError("the enrolment request brings a key that is not a proper one")
    check_label(asked.label)
    return Device(sign, box, asked.label)


def _member(signer: Signer25519, vault: bytes, device: Device, role: Role, since: str) -> Statement:
    body = Member(
        anchor=device.anchor.hex() if device.anchor else None,
        box=device.box.hex(),
        by=signer.public.hex(),
        id=device.id,
        label=device.label,
        role=role,
        sign=device.sign.hex(),
        since=since,
    )
    return make(signer, body, vault)


def _give(ring: Ring, signer: Signer25519, people: Iterable[Person], box: BoxSeal) -> Ring:
    key = ring.view.sealing
    if key is None:
        raise MembershipError(f"there is no key to give: {ring.view.reason}")
    return _state_epoch(ring, signer, key, people, box)


def _state_epoch(
    ring: Ring, signer: Signer25519, key: EpochKey, people: Iterable[Person], box: BoxSeal
) -> Ring:
    view = ring.view
    given = {person.id: person for person in people}
    for root in view.facts.root_ids:
        if root not in view.people:
            raise MembershipError(f"the ring does not say the box key of the root {root}")
        given[root] = view.people[root]
    text = slot_text(key, ring.vault)
    slots = [canonical.b64(box(text, public)) for public in sorted({person.box for person in given.values()})]
    body = Epoch(
        by=signer.public.hex(),
        ek=key.id,
        epoch=key.epoch,
        for_=tuple(sorted(given)),
        not_=tuple(sorted(view.shut_out)),
        slots=tuple(sorted(slots)),
    )
    return ring.add([make(signer, body, ring.vault)], [key])


def _entitled(view: Authority) -> list[Person]:
    """Members who may be given a key: not whoever an epoch calls revoked, though its revoke is still on its way."""
    return [person for one, person in view.members.items() if one not in view.shut_out]


def _require_admin(view: Authority, signer: Signer25519) -> None:
    me = member_id(signer.public)
    if me in view.shut_out:
        raise MembershipError(
            f"{me} was revoked: these recovery words, or this wallet, do not open this memory any more",
            hint="Use words that were made later, or another wallet of this memory.",
        )
    if not view.may_administer(me) or view.sign_key(me) != signer.public:
        raise MembershipError(
            f"{me} is not an admin of this memory: unlock with its wallet or recovery words"
        )


def _may_enrol(view: Authority, signer: Signer25519, device: Device, role: Role) -> None:
    _require_admin(view, signer)
    root = signer.public.hex() in view.facts.roots
    if not root and role == "admin":
        raise MembershipError("only a root (the first wallet or the recovery words) can enrol an admin")
    if device.id in view.shut_out | view.revoked:
        raise MembershipError(f"{device.id} was revoked, and that is for ever: it needs a new key")
    if device.id in view.facts.root_ids and not root:
        raise MembershipError(f"{device.id} is a root of this memory")
    if any(key != device.sign for key in view.keys_of.get(device.id, ())):
        raise MembershipError(f"{device.id} is the id of another key in this ring")
    family = view.chains.get(device.id, (device.id,))
    for person in view.people.values():
        if person.box == device.box and person.id not in family:
            raise MembershipError(f"the box key of {device.id} is that of {person.id}: it needs its own")


def _may_revoke(view: Authority, signer: Signer25519, member: str) -> None:
    _require_admin(view, signer)
    if member in view.facts.root_ids:
        raise MembershipError(
            f"{member} is a root of this memory; roots cannot be revoked: move to a new vault"
        )
    if member not in view.chains:
        raise MembershipError(f"{member} is not in this ring")
    chain = view.chains[member]
    if signer.public.hex() not in view.facts.roots and not view.facts.admin_ids.isdisjoint(chain):
        raise MembershipError(f"{member} is an admin, or of the chain of one; only a root can revoke it")


def _said(ring: Ring, by: str, member: str) -> bool:
    return any(
        isinstance(st.body, Revoke) and st.body.by == by and st.body.id == member for st in ring.statements
    )
