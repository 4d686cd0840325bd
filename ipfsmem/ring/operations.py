"""Create a key ring, enrol and revoke members, rotate keys, and encode enrolment requests (format section 4).

Each operation returns a ring with additional statements, and refuses statements that `authority` would not accept.
The caller joins all heads before and publishes after the operation, in one step. Epoch keys, times and the slot
function are arguments.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal, TypeAlias

import msgspec

from ipfsmem import canonical
from ipfsmem.canonical import read_json
from ipfsmem.errors import FormatError, LimitError, MembershipError, SignatureError, UsageError
from ipfsmem.ring.authority import (
    RANK_ADMIN,
    RANK_ROOT,
    RANK_SUCCESSOR,
    Authority,
    RingMember,
    names_of,
)
from ipfsmem.ring.keyring import Ring, slot_text
from ipfsmem.ring.retention_rules import MAX_SUCCESSORS, as_member
from ipfsmem.ring.statements import (
    MAX_KEEP,
    Epoch,
    Genesis,
    Kind,
    Member,
    Revoke,
    Role,
    Statement,
    check_label,
    check_possession,
    id_of_hex,
    member_id,
    possession,
    sign_statement,
)
from ipfsmem.seal.objects import MAX_EPOCH, EpochKey, epoch_key
from ipfsmem.seal.primitives import Signer25519, box_key_ok, box_seal, public_key_ok
from ipfsmem.wallet.root_keys import RootKeys

#: Seals a slot: (slot text, box public key) -> 104 bytes; draws an ephemeral key.
BoxSeal: TypeAlias = Callable[[bytes, bytes], bytes]
MAX_REQUEST: Final = 4096
#: The greatest clock value.
LAST_HLC: Final = "f" * 16
#: Maximum number of families that are members, roots included. Enforced for an enrolment, never for a join. For a
#: root, only families admitted by roots are counted; otherwise an admin could block the wallet's own devices.
MAX_FAMILIES: Final = 64
#: Maximum number of keys named only by other admins' epochs that a new epoch repeats, newest first.
MAX_OTHER_KEYS: Final = 16
#: Used share of a ring (0 to 1) up to which members admitted only by admins receive a key, except for an enrolment.
MAX_FILLED: Final = 0.875


class Enrollee(msgspec.Struct, frozen=True):
    """The public side of a new member: Ed25519 and X25519 keys, label, proof of possession (for one vault), kind, and
    anchor if any. Built by `enrollee_of`, or read from a request."""

    sign: bytes
    box: bytes
    label: str
    own: str
    kind: Kind = "device"
    anchor: bytes | None = None

    @property
    def id(self) -> str:
        """Return the id in its dots and statements."""
        return member_id(self.sign)


class _Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    box: str
    kind: Kind
    label: str
    own: str
    sign: str
    v: Literal[1]
    vault: str


def enrollee_of(
    signer: Signer25519,
    box: bytes,
    label: str,
    vault: bytes,
    *,
    kind: Kind = "device",
    anchor: bytes | None = None,
) -> Enrollee:
    """Return the enrollee for the vault with this tag, with its proof of possession."""
    return Enrollee(
        signer.public, box, label, possession(signer, vault, box=box, anchor=anchor), kind, anchor
    )


def new_person(vault: bytes, sign: bytes) -> str:
    """Return the field `person` of a new person's first key in a vault.

    It is derived from the key, so that a wallet that creates its vault on two offline devices is one person.
    """
    return hashlib.sha256(b"ipfsmem/v1/person\x00" + vault + sign).hexdigest()[:16]


def create(
    root: RootKeys,
    recovery: RootKeys | None,
    device: Enrollee | None,
    *,
    ek: bytes | None,
    since: str,
    root_label: str = "wallet",
    box: BoxSeal = box_seal,
) -> Ring:
    """Return the ring of a new vault: genesis, roots, this device, and the first epoch key (`ek`, 32 random bytes).

    `ek=None` creates the ring of a plain `ipfs` vault. `since` is the current HLC (16 hex digits).
    """
    if root.kind == "recovery":
        raise UsageError("a recovery key is never the first root of a vault")
    vault = root.tag(plain=ek is None)
    person = new_person(vault, root.admin_public)
    roots: list[tuple[RootKeys, str, Kind]] = [
        (root, root_label, "wallet" if root.kind == "wallet" else "device")
    ]
    if recovery is not None:
        roots.append((recovery, "recovery words", "words"))
    genesis = Genesis(tuple(keys.admin_public.hex() for keys, _, _ in roots))
    statements = [sign_statement(root.admin, genesis, vault)]
    for keys, label, kind in roots:
        itself = enrollee_of(keys.admin, keys.box_public, label, vault, kind=kind, anchor=keys.head_public)
        statements.append(_member(keys.admin, vault, itself, "admin", since, person))
    if device is not None:
        statements.append(_member(root.admin, vault, device, "writer", since, person))
    ring = Ring(vault, statements, (), plain=ek is None)
    return ring if ek is None else rotate(ring, root.admin, ek, box=box)


def enrol(
    ring: Ring,
    signer: Signer25519,
    device: Enrollee,
    role: Role,
    *,
    since: str,
    person: str | None = None,
    box: BoxSeal = box_seal,
) -> Ring:
    """Make `device` a member (or change its fields) and share the sealing key with it.

    `person`: its person (`new_person` for a new one); None means the enroller's person, or unchanged. Raises
    MembershipError if the signer may not enrol, the id is revoked, or the box key belongs to another family;
    LimitError at 64 families (for a root: 64 admitted by roots).
    """
    view = ring.view
    _check_may_enrol(view, signer, device, role)
    known = view.members.get(device.id)
    if person is None and known is not None:
        person = known.owner
    whose = person or view.owners.get(member_id(signer.public))
    if whose is None:
        raise MembershipError("the ring does not name the owner of the enrolling key")
    grown = ring.add(
        [_member(signer, ring.vault, device, role, _later_since(ring, signer, device.id, since), whose)]
    )
    if ring.plain:
        return grown
    return _share_sealing_key(grown, signer, [grown.view.members[device.id]], box, whole=True)


def relabel(ring: Ring, signer: Signer25519, member: str, label: str, *, since: str) -> Ring:
    """Change the label of the family of `member` by a new enrolment. Returns the same ring if unchanged.

    Raises MembershipError if the signer may not enrol, or a root's enrolment would override the new one; FormatError
    for an invalid label.
    """
    check_label(label)
    view = ring.view
    known = view.members.get(view.family_of(member))
    if known is None:
        raise MembershipError(f"{member} is not a member of this vault")
    if known.label == label:
        return ring
    body = next(as_member(st) for st in ring.statements if st.hash == known.hash)
    device = Enrollee(known.sign, known.box, label, body.own, known.kind, known.anchor)
    _check_may_enrol(view, signer, device, known.role)
    past = _later_since(ring, signer, known.id, since)
    grown = ring.add([_member(signer, ring.vault, device, body.role, past, body.person)])
    if grown.view.members[known.id].label != label:
        raise MembershipError(
            f"{known.label} ({known.id}) was enrolled by a root, so only a root can give it another label",
            hint="Use the wallet that created this vault, or the recovery phrase shown at init.",
        )
    return grown


def _later_since(ring: Ring, signer: Signer25519, member: str, since: str) -> str:
    """Return `since`, or the least clock value after the enrolments of `member` that the new enrolment must
    supersede.

    The newest enrolment is valid, and the clock may have been set back. A root's enrolment supersedes those of admins
    at any time. Raises LimitError if no greater clock value exists.
    """
    root = signer.public.hex() in ring.view.rights.roots
    bodies = (as_member(st) for st in ring.statements if isinstance(st.body, Member))
    equals = (body for body in bodies if body.id == member and (body.by in ring.view.rights.roots) == root)
    last = max((body.since for body in equals), default="")
    if last < since:
        return since
    if last == LAST_HLC:
        raise LimitError(
            f"{member} was enrolled with the latest possible time, so no later statement about it is possible",
            hint="Revoke it, and enrol the device under a new key.",
        )
    return f"{int(last, 16) + 1:016x}"


def rotate(ring: Ring, signer: Signer25519, ek: bytes, *, box: BoxSeal = box_seal) -> Ring:
    """Make `ek` (32 random bytes) the sealing key and share it with all current members."""
    if ring.plain:
        raise UsageError("a plain vault has no epoch keys")
    view = ring.view
    _require_admin(view, signer)
    if view.next_epoch > MAX_EPOCH:
        raise LimitError("this vault has used up its epoch numbers: move to a vault with a new key number")
    key = epoch_key(view.next_epoch, ek, ring.vault)
    return _add_epochs(ring, signer, key, _eligible(view), box, whole=False)


def revoke(
    ring: Ring,
    signer: Signer25519,
    member: str,
    *,
    at: str,
    counters: Mapping[str, int],
    ek: bytes | None,
    box: BoxSeal = box_seal,
    cascade: bool = False,
) -> Ring:
    """Remove the family of `member`, and make `ek` the sealing key of the remaining members.

    `counters`: the joined state's ctx (device id -> counter); values up to these counters stay accepted. Join and
    publish in the same step. `ek`: 32 random bytes; None only in a plain vault. The enrolments and revokes of a
    removed admin stay valid; with `cascade`, none do, even if an earlier revoke kept some. A root's revoke of a
    member that an admin removed makes the removal permanent.
    """
    view = ring.view
    target = view.family_of(member)
    _check_may_revoke(view, signer, target)
    if (ek is None) != ring.plain:
        raise UsageError("a revoke requires a new epoch key in a sealed vault, and none in a plain one")
    grown = ring
    before = _revokes_by(ring, signer.public.hex(), target)
    if not before or (cascade and all(one.keep for one in before)):
        keep = _statements_to_keep(ring, target) if not cascade else ()
        grown = ring.add([_revoke(ring, signer, target, at, counters, keep=keep)])
    return grown if ek is None else rotate(grown, signer, ek, box=box)


def members_admitted_by(ring: Ring, member: str) -> dict[str, str]:
    """Return ids and labels of the members whose enrolment `member` signed, without successors."""
    target = ring.view.family_of(member)
    return {
        one.id: one.label
        for one in ring.view.members.values()
        if one.family == one.id != target and one.by == target
    }


def add_successor(
    ring: Ring,
    enrolled: Signer25519,
    new: Signer25519,
    was: str,
    *,
    since: str,
    label: str | None = None,
) -> Ring:
    """Add the successor id under which a device continues instead of `was` (after a restore), signed by the enrolled
    key.

    The successor has the same box key, so it needs no slot, and the same role, but never admin. Raises
    MembershipError if the enrolled id is not a member, is a root, or has eight successors; the device must then be
    enrolled again.
    """
    view = ring.view
    me = member_id(enrolled.public)
    head = view.members.get(me)
    if head is None or head.sign != enrolled.public or me in view.rights.root_ids or head.family != me:
        raise MembershipError(f"{me} is not a member that can name a successor")
    if member_id(new.public) in view.keys_of:
        raise MembershipError(
            f"{member_id(new.public)} has been in this ring before: a successor needs a new key"
        )
    heirs = sum(isinstance(st.body, Member) and st.body.under == head.hash for st in ring.statements)
    if heirs >= MAX_SUCCESSORS:
        raise MembershipError(f"{me} has {MAX_SUCCESSORS} successors: this device must be enrolled again")
    body = Member(
        anchor=None,
        box=head.box.hex(),
        by=enrolled.public.hex(),
        heir_of=enrolled.public.hex(),
        id=member_id(new.public),
        kind="agent" if head.kind == "agent" else "device",
        label=label or head.label,
        own=possession(new, ring.vault, box=head.box, heir_of=enrolled.public),
        person=head.owner or new_person(ring.vault, enrolled.public),
        role="writer" if head.role == "admin" else head.role,
        sign=new.public.hex(),
        since=since,
        under=head.hash,
        was=was,
    )
    return ring.add([sign_statement(enrolled, body, ring.vault)])


def give_key(ring: Ring, signer: Signer25519, ek: bytes, *, box: BoxSeal = box_seal) -> Ring:
    """Make `ek` the sealing key if none seals or this device lacks it, and share the sealing key with all members
    without it.

    Runs at every unlock by an admin. Returns the same ring if nothing is missing.
    """
    if ring.plain:
        return ring
    view = ring.view
    _require_admin(view, signer)
    if view.sealing is None:
        return rotate(ring, signer, ek, box=box)
    keyless = members_without_key(view)
    return _share_sealing_key(ring, signer, keyless, box, whole=False) if keyless else ring


def members_without_key(view: Authority) -> list[RingMember]:
    """Return the enrolled members that have no slot with the sealing key. Successors share the slot of their family."""
    served = {view.members[one].box for one in view.holders if one in view.members}
    return [
        person for person in _eligible(view) if person.id not in view.holders and person.box not in served
    ]


def enrolment_request(vault: bytes, device: Enrollee) -> bytes:
    """Encode a device's request to be enrolled: canonical JSON without secrets, for an admin."""
    check_label(device.label)
    return canonical.encode(
        _Request(device.box.hex(), device.kind, device.label, device.own, device.sign.hex(), 1, vault.hex())
    )


def read_enrolment_request(data: bytes, vault: bytes) -> Enrollee:
    """Decode an enrolment request. Raises FormatError if it is damaged, of another vault, or has invalid keys."""
    if len(data) > MAX_REQUEST:
        raise LimitError(f"an enrolment request has at most {MAX_REQUEST} bytes, this has {len(data)}")
    try:
        request = read_json(data, type=_Request)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise FormatError(f"the enrolment request is not readable: {error}") from None
    canonical.check_canonical(data, request, "the enrolment request")
    if request.vault != vault.hex():
        raise FormatError(f"the enrolment request is for vault {request.vault}, not for {vault.hex()}")
    sign = canonical.unhex(request.sign, "the signing key of the request", 32)
    box = canonical.unhex(request.box, "the box key of the request", 32)
    if not public_key_ok(sign) or not box_key_ok(box):
        raise FormatError("the enrolment request contains an invalid key")
    try:
        check_possession(request.own, vault, box=request.box, sign=request.sign, anchor=None, heir_of=None)
    except SignatureError as error:
        raise FormatError(f"the enrolment request is invalid: {error}") from None
    check_label(request.label)
    return Enrollee(sign, box, request.label, request.own, request.kind)


def _member(
    signer: Signer25519, vault: bytes, device: Enrollee, role: Role, since: str, person: str
) -> Statement:
    body = Member(
        anchor=device.anchor.hex() if device.anchor else None,
        box=device.box.hex(),
        by=signer.public.hex(),
        heir_of=None,
        id=device.id,
        kind=device.kind,
        label=device.label,
        own=device.own,
        person=person,
        role=role,
        sign=device.sign.hex(),
        since=since,
        under=None,
        was=None,
    )
    return sign_statement(signer, body, vault)


def _revoke(
    ring: Ring,
    signer: Signer25519,
    target: str,
    at: str,
    counters: Mapping[str, int],
    *,
    keep: tuple[str, ...],
) -> Statement:
    view = ring.view
    ids = view.ids_of(target)
    key = view.sign_key(target)
    assert key is not None
    head = view.members.get(target)
    anchor = view.old_anchors.get(target) if head is None else head.anchor
    # A revoke that includes all earlier revokes by roots replaces those that kept more statements.
    before = [one.n for root in sorted(view.rights.roots) for one in _revokes_by(ring, root, target)]
    counts = {one: min([counters.get(one, 0), *(n.get(one, 0) for n in before)]) for one in ids}
    body = Revoke(
        anchor=anchor.hex() if anchor else None,
        at=at,
        by=signer.public.hex(),
        heirs=tuple(
            sorted(one.hex() for heir in ids if heir != target for one in view.keys_of.get(heir, ()))
        ),
        keep=keep,
        n={one: count for one, count in counts.items() if count},
        person=view.owners.get(target) or new_person(ring.vault, key),
        rank=RANK_ROOT if view.rank_of(target) == RANK_ROOT else RANK_ADMIN,
        sign=key.hex(),
    )
    return sign_statement(signer, body, ring.vault)


def _statements_to_keep(ring: Ring, target: str) -> tuple[str, ...]:
    """Return the hashes of an admin's statements that its revoke keeps, up to the limit; all others become invalid.

    No statement is repeated as a root's: that could not be undone, and would make everyone admitted with a stolen
    recovery phrase a member admitted by a root.
    """
    view = ring.view
    if target not in view.rights.admin_ids:
        return ()
    signed = [st for st in ring.statements if member_id(bytes.fromhex(st.body.by)) == target]
    used = {person.hash for person in view.members.values()}
    # Enrolments only: a successor depends on the hash of its enrolment.
    members = sorted(
        (as_member(st).since, st.hash) for st in signed if st.hash in used and not _is_successor(st)
    )
    mine = {st.hash for st in signed}
    others = {
        as_member(st).id
        for st in ring.statements
        if isinstance(st.body, Member) and not _is_successor(st) and st.hash not in mine
    }
    removed: dict[str, tuple[str, str]] = {}
    for st in signed:
        # A revoke has no further effect on an id that nobody else admitted, or that a root revoked.
        if isinstance(st.body, Revoke) and st.body.id in view.revoked_by.keys() & others:
            order = (st.body.at, st.hash)
            removed[st.body.id] = min(order, removed.get(st.body.id, order))
    # A stolen recovery phrase can admit and remove many ids: removals that the owner may have made precede them.
    lost = [order for one, order in sorted(removed.items()) if view.rank_of(one) == RANK_ROOT]
    more = [order for one, order in sorted(removed.items()) if view.rank_of(one) != RANK_ROOT]
    return tuple(sorted(hashes for _, hashes in [*lost, *members, *more][:MAX_KEEP]))


def _is_successor(st: Statement) -> bool:
    return as_member(st).heir_of is not None


def _share_sealing_key(
    ring: Ring, signer: Signer25519, members: Iterable[RingMember], box: BoxSeal, *, whole: bool
) -> Ring:
    key = ring.view.sealing
    if key is None:
        raise MembershipError(f"no key to share: {ring.view.reason}")
    return _add_epochs(ring, signer, key, members, box, whole=whole)


def _add_epochs(
    ring: Ring,
    signer: Signer25519,
    key: EpochKey,
    members: Iterable[RingMember],
    box: BoxSeal,
    *,
    whole: bool,
) -> Ring:
    """Return the ring with epoch statements that share `key` with the roots and these members.

    There is one statement for members admitted by roots, and one per set of admitting admins. The latter becomes
    invalid with the statements of these admins, so a key shared with members admitted with a stolen phrase does not
    outlast the phrase. `whole`: all statements must fit; otherwise only the first must, and the others are added as
    far as they fit. Raises LimitError.
    """
    view = ring.view
    roots: dict[str, RingMember] = {}
    for root in view.rights.root_ids:
        if root not in view.members:
            raise MembershipError(f"the ring does not contain the box key of the root {root}")
        roots[root] = view.members[root]
    removals = _removals_by_admin(ring)
    # The roots' statement is always included: it keeps the keys named.
    recipients: dict[tuple[str, ...], dict[str, RingMember]] = {(): dict(roots)}
    for member in members:
        of = tuple(view.admission_of(member.id).admins.split())
        recipients.setdefault(of, dict(roots))[member.id] = member
    text = slot_text(key, ring.vault)
    old = _older_key_ids(ring, signer.public.hex()) - {key.id}
    made: list[Statement] = []
    for of, served in recipients.items():
        slots = [
            canonical.b64(box(text, public)) for public in sorted({member.box for member in served.values()})
        ]
        body = Epoch(
            by=signer.public.hex(),
            ek=key.id,
            epoch=key.epoch,
            for_=tuple(sorted(served)),
            not_=tuple(sorted(view.must_exclude - view.revoked_by.keys())),
            of=of,
            old=tuple(sorted(old)),
            slots=tuple(sorted(slots)),
            while_={admin: tuple(sorted(ids)) for admin, ids in sorted(removals.items())},
        )
        made.append(sign_statement(signer, body, ring.vault))
    own, *others = made
    if whole or not others:
        return ring.add(made, [key])
    # The other statements must not prevent the roots and their members from getting the key, nor use up their room.
    grown = ring.add([own], [key])
    for st in sorted(others, key=lambda st: len(st.payload)):
        with contextlib.suppress(LimitError):
            more = grown.add([st])
            grown = more if more.filled <= max(MAX_FILLED, grown.filled) else grown
    return grown


def _removals_by_admin(ring: Ring) -> dict[str, list[str]]:
    """Return the removals that a new epoch states, by admin.

    A removal that an admin only repeated is attributed to its authors if these state it themselves. Otherwise
    removals by a stolen phrase would outlast the phrase in the name of each admin that repeated them.
    """
    own: set[tuple[str, str]] = set()
    passed_on: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for st in ring.statements:
        body, by = st.body, id_of_hex(st.body.by)
        if isinstance(body, Revoke):
            own.add((by, body.id))
        elif isinstance(body, Epoch):
            own.update((by, one) for one in body.not_)
            for admin, ids in body.while_.items():
                for one in ids:
                    if admin == by or body.by in ring.view.rights.roots:
                        own.add((admin, one))
                    else:
                        passed_on[by, one].add(admin)
    removals: defaultdict[str, list[str]] = defaultdict(list)
    for one, admins in ring.view.revoked_by.items():
        sources = {admin for admin in admins if (admin, one) in own}
        for admin in admins:
            if admin in sources or not passed_on[admin, one] <= sources:
                removals[admin].append(one)
    return removals


def _older_key_ids(ring: Ring, by: str) -> set[str]:
    """Return the ids of the older keys that a new epoch of signer `by` names: those that roots or `by` named, and the
    newest MAX_OTHER_KEYS of the rest.

    The rest is limited because every later epoch repeats these ids, even after an admin that created thousands is
    revoked.
    """
    trusted = {*ring.view.rights.roots, by}
    lasting = names_of(st for st in ring.statements if st.body.by in trusted)
    others = [ek.id for ek in ring.keys if ek.id not in lasting]
    return {ek.id for ek in ring.keys if ek.id in lasting} | set(others[-MAX_OTHER_KEYS:])


def _eligible(view: Authority) -> list[RingMember]:
    """Return the members that may receive a key, one per family: without ids that an epoch lists as removed, even if
    the revoke has not arrived."""
    return [
        person
        for one, person in view.members.items()
        if person.rank != RANK_SUCCESSOR and one not in view.must_exclude
    ]


def _require_admin(view: Authority, signer: Signer25519) -> None:
    me = member_id(signer.public)
    if me in view.must_exclude:
        raise MembershipError(
            f"{me} was revoked: this recovery phrase or wallet no longer opens this vault",
            hint="Use the newer recovery phrase, or the wallet.",
        )
    if not view.may_administer(me) or view.sign_key(me) != signer.public:
        raise MembershipError(
            f"{me} is not an admin of this vault",
            hint="Check each word of the recovery phrase, or use the wallet that created the vault.",
        )


def _check_may_enrol(view: Authority, signer: Signer25519, device: Enrollee, role: Role) -> None:
    _require_admin(view, signer)
    root = signer.public.hex() in view.rights.roots
    if not root and role == "admin":
        raise MembershipError("only a root (the first wallet or the recovery phrase) can enrol an admin")
    if device.id in view.must_exclude | view.revoked:
        raise MembershipError(f"{device.id} was revoked permanently: it needs a new key")
    if device.id in view.rights.root_ids and signer.public != device.sign:
        raise MembershipError(f"{device.id} is a root of this vault, and sets its own label and role")
    if any(key != device.sign for key in view.keys_of.get(device.id, ())):
        raise MembershipError(f"{device.id} is the id of another key in this ring")
    # Box keys are unique even within one device: after the revocation of one family, the other would keep its key.
    for person in view.members.values():
        if person.box == device.box and person.family != device.id:
            raise MembershipError(f"the box key of {device.id} is that of {person.id}: it needs its own")
    counted = (person for person in view.members.values() if not root or person.rank == RANK_ROOT)
    enrolled = {person.family for person in counted} | view.rights.root_ids
    if len(enrolled | {device.id}) > max(MAX_FAMILIES, len(enrolled)):
        raise LimitError(
            f"{len(enrolled)} devices, wallets and recovery phrases are members of this vault; {MAX_FAMILIES} are allowed",
            hint="Revoke one that is not used any more: ipfsmem member list, ipfsmem member revoke ID.",
        )


def _check_may_revoke(view: Authority, signer: Signer25519, target: str) -> None:
    _require_admin(view, signer)
    if target in view.rights.root_ids:
        raise MembershipError(
            f"{target} is a root of this vault; roots cannot be revoked: move to a new vault"
        )
    if target not in view.families or not view.keys_of.get(target):
        raise MembershipError(f"{target} is not in this ring")
    if signer.public.hex() not in view.rights.roots and target in view.rights.admin_ids:
        raise MembershipError(f"{target} is an admin; only a root can revoke it")


def _revokes_by(ring: Ring, by: str, target: str) -> list[Revoke]:
    bodies = [st.body for st in ring.statements if isinstance(st.body, Revoke)]
    return [body for body in bodies if body.by == by and body.id == target]
