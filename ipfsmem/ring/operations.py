"""What is done to a key ring: making it, enrolling, rotating keys, revoking, naming a successor, and the request by which
a device asks to be enrolled (format section 4).

Each function takes a ring and returns one with more statements. The caller joins all heads before it, and publishes after
it, in one step. Epoch keys, times and the function that makes slots are arguments, so nothing here draws randomness or
reads a clock. A statement that would not count by `authority` is refused with the reason.
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
from ipfsmem.ring.drop_rules import MAX_HEIRS, as_member
from ipfsmem.ring.keyring import Ring, slot_text
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

#: (slot text, box public key) -> slot of 104 bytes; a sealed box draws its own ephemeral key.
BoxSeal: TypeAlias = Callable[[bytes, bytes], bytes]
MAX_REQUEST: Final = 4096
#: The greatest clock value.
LAST_HLC: Final = "f" * 16
#: Families in force, roots among them. Asked of whoever enrols, never of a join; of a root only those count that roots let
#: in, or an admin could keep the wallet's own devices out.
MAX_FAMILIES: Final = 64
#: Keys that only the epochs of other admins name, and that a new epoch names too: the newest.
MAX_OTHER_KEYS: Final = 16
#: Share of a ring up to which keys are given to whom only admins let in, but for an enrolment.
MOST_FILLED: Final = 0.875


class Enrollee(msgspec.Struct, frozen=True):
    """The public side of what is to be enrolled: Ed25519 and X25519 keys, a label for people, the proof that the keys are
    its own (for one vault), what it is, an anchor if it has one. Made by `enrollee_of`, or read from a request."""

    sign: bytes
    box: bytes
    label: str
    own: str
    kind: Kind = "device"
    anchor: bytes | None = None

    @property
    def id(self) -> str:
        """The id that its dots and statements carry."""
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
    """What is to be enrolled in the vault with this tag, proved by its own key."""
    return Enrollee(
        signer.public, box, label, possession(signer, vault, box=box, anchor=anchor), kind, anchor
    )


def new_person(vault: bytes, sign: bytes) -> str:
    """The field `person` of the first key of somebody new in a vault: made from that key, so that a wallet which makes
    its vault on two offline devices is one person."""
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
    """The ring of a new vault: genesis, the roots, this device, and the first epoch key (`ek`, 32 random bytes).

    `ek` None makes the ring of a plain `ipfs` memory. `since` is the HLC now (16 hex digits).
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
    """Make `device` a member (or change what it is) and give it the key that seals now.

    For a new device, a second wallet (role admin, with its anchor, signed by a root), another person's agent: `person`
    says whose it is (`new_person` for somebody new), None that it is the enroller's own, or stays whose it is.
    Raises MembershipError when the signer may not, the id is revoked, or its box key belongs to somebody else;
    LimitError when 64 families are members (for a root: 64 that roots let in).
    """
    view = ring.view
    _may_enrol(view, signer, device, role)
    known = view.members.get(device.id)
    if person is None and known is not None:
        person = known.owner
    whose = person or view.owners.get(member_id(signer.public))
    if whose is None:
        raise MembershipError("the ring does not say whose the enrolling key is")
    grown = ring.add(
        [_member(signer, ring.vault, device, role, _later_since(ring, signer, device.id, since), whose)]
    )
    if ring.plain:
        return grown
    return _give_sealing_key(grown, signer, [grown.view.members[device.id]], box, whole=True)


def relabel(ring: Ring, signer: Signer25519, member: str, label: str, *, since: str) -> Ring:
    """Give the family of `member` another label: its enrolment once more, with nothing else changed.

    Raises MembershipError when the signer may not, or its word does not count beside a root's; FormatError for what is no
    label. The same ring when it has that label.
    """
    check_label(label)
    view = ring.view
    known = view.members.get(view.family_of(member))
    if known is None:
        raise MembershipError(f"{member} is no member of this memory")
    if known.label == label:
        return ring
    body = next(as_member(st) for st in ring.statements if st.hash == known.hash)
    device = Enrollee(known.sign, known.box, label, body.own, known.kind, known.anchor)
    _may_enrol(view, signer, device, known.role)
    past = _later_since(ring, signer, known.id, since)
    grown = ring.add([_member(signer, ring.vault, device, body.role, past, body.person)])
    if grown.view.members[known.id].label != label:
        raise MembershipError(
            f"{known.label} ({known.id}) was enrolled by a root, so only a root can give it another label",
            hint="Use the wallet that made this memory, or the words shown at init.",
        )
    return grown


def _later_since(ring: Ring, signer: Signer25519, member: str, since: str) -> str:
    """`since`, or the least clock value past those enrolments of a member that this one must outdo: the newest counts, and a
    clock can have gone back. A root's outdoes all that admins said, whatever their time. Raises LimitError after the last."""
    root = signer.public.hex() in ring.view.rights.roots
    bodies = (as_member(st) for st in ring.statements if isinstance(st.body, Member))
    equals = (body for body in bodies if body.id == member and (body.by in ring.view.rights.roots) == root)
    last = max((body.since for body in equals), default="")
    if last < since:
        return since
    if last == LAST_HLC:
        raise LimitError(
            f"{member} was enrolled with the last time that there is, so no later time is left for another word about it",
            hint="Revoke it, and enrol the device under a new key.",
        )
    return f"{int(last, 16) + 1:016x}"


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
    return _add_epochs(ring, signer, key, _entitled(view), box, whole=False)


def revoke(
    ring: Ring,
    signer: Signer25519,
    member: str,
    *,
    at: str,
    counters: Mapping[str, int],
    ek: bytes | None,
    box: BoxSeal = box_seal,
    stands: bool = True,
) -> Ring:
    """End the membership of the family of `member` and rotate to `ek` for those who stay.

    `counters` is the joined state's ctx (device id -> counter): values up to there stay accepted. Join and publish in
    the same step. `ek` is None in a plain memory only. Of an admin its enrolments of members and its revokes stand,
    unless `stands` is off: then nothing does, also when it was revoked before and something was let stand. Of whom an
    admin put out, this makes it a root's word, for good.
    """
    view = ring.view
    target = view.family_of(member)
    _may_revoke(view, signer, target)
    if (ek is None) != ring.plain:
        raise UsageError("revoking in a sealed memory takes a new epoch key, in a plain one none")
    grown = ring
    before = _revokes_by(ring, signer.public.hex(), target)
    if not before or (not stands and all(one.keep for one in before)):
        keep = _what_stands(ring, target) if stands else ()
        grown = ring.add([_revoke(ring, signer, target, at, counters, keep=keep)])
    return grown if ek is None else rotate(grown, signer, ek, box=box)


def members_let_in_by(ring: Ring, member: str) -> dict[str, str]:
    """Ids and labels of the members whose enrolment is the word of `member`, their successors aside."""
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
    """Let a device go on under a new id (after a restore): signed by the key that was enrolled, instead of the id `was`.

    Same box key, same role but never admin. It needs no slot: its box key is in the same slots already. Raises
    MembershipError when the enrolled id is not a member, is a root, or has eight successors: it must be enrolled anew.
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
    if heirs >= MAX_HEIRS:
        raise MembershipError(f"{me} has {MAX_HEIRS} successors: this device must be enrolled anew")
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
    return _give_sealing_key(ring, signer, lacking, box, whole=False) if lacking else ring


def lacking_key(view: Authority) -> list[RingMember]:
    """The enrolled members to whom no statement gives the key that seals now. One box key needs one slot."""
    served = {view.members[one].box for one in view.holders if one in view.members}
    return [
        person for person in _entitled(view) if person.id not in view.holders and person.box not in served
    ]


def enrolment_request(vault: bytes, device: Enrollee) -> bytes:
    """What a device shows to an admin to be enrolled: canonical JSON, no secret in it."""
    check_label(device.label)
    return canonical.encode(
        _Request(device.box.hex(), device.kind, device.label, device.own, device.sign.hex(), 1, vault.hex())
    )


def read_enrolment_request(data: bytes, vault: bytes) -> Enrollee:
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
    try:
        check_possession(asked.own, vault, box=asked.box, sign=asked.sign, anchor=None, heir_of=None)
    except SignatureError as error:
        raise FormatError(f"the enrolment request does not hold: {error}") from None
    check_label(asked.label)
    return Enrollee(sign, box, asked.label, asked.own, asked.kind)


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
    # One that says all that the roots said before takes the place of what let more stand.
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


def _what_stands(ring: Ring, target: str) -> tuple[str, ...]:
    """Of what an admin said: what a revoke of it lets stand, as many statements as it may list; the rest ends.

    Nothing of it is said anew in a root's name: that could never be taken back, and it would give whoever found words, and
    let hundreds in, the standing of what the wallet let in.
    """
    view = ring.view
    if target not in view.rights.admin_ids:
        return ()
    said = [st for st in ring.statements if member_id(bytes.fromhex(st.body.by)) == target]
    used = {person.hash for person in view.members.values()}
    # Enrolments by themselves: the successors of who was enrolled rest on the very statement.
    members = sorted((as_member(st).since, st.hash) for st in said if st.hash in used and not _is_heir(st))
    mine = {st.hash for st in said}
    others = {
        as_member(st).id
        for st in ring.statements
        if isinstance(st.body, Member) and not _is_heir(st) and st.hash not in mine
    }
    removed: dict[str, tuple[str, str]] = {}
    for st in said:
        # Of somebody whom nobody else let in a revoke does nothing more, and of whom a root revoked neither.
        if isinstance(st.body, Revoke) and st.body.id in view.put_out_by.keys() & others:
            order = (st.body.at, st.hash)
            removed[st.body.id] = min(order, removed.get(st.body.id, order))
    # Words that somebody found can let in and remove any number: what a person may have done with them goes first.
    lost = [order for one, order in sorted(removed.items()) if view.rank_of(one) == RANK_ROOT]
    more = [order for one, order in sorted(removed.items()) if view.rank_of(one) != RANK_ROOT]
    return tuple(sorted(found for _, found in [*lost, *members, *more][:MAX_KEEP]))


def _is_heir(st: Statement) -> bool:
    return as_member(st).heir_of is not None


def _give_sealing_key(
    ring: Ring, signer: Signer25519, members: Iterable[RingMember], box: BoxSeal, *, whole: bool
) -> Ring:
    key = ring.view.sealing
    if key is None:
        raise MembershipError(f"there is no key to give: {ring.view.reason}")
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
    """The ring with epoch statements that give `key` to the roots and to these members.

    One statement is for the members that roots let in, and one for those of each set of admins: it ends with what these
    admins said, so what is given to a crowd that found words let in does not outlast these words. `whole`: all of them
    must find room. Else only the first must, and the others are added as far as there is room. Raises LimitError.
    """
    view = ring.view
    roots: dict[str, RingMember] = {}
    for root in view.rights.root_ids:
        if root not in view.members:
            raise MembershipError(f"the ring does not say the box key of the root {root}")
        roots[root] = view.members[root]
    said = _put_out(ring)
    # The roots' own statement comes with every other one: it keeps the names of the keys.
    given: dict[tuple[str, ...], dict[str, RingMember]] = {(): dict(roots)}
    for member in members:
        of = tuple(view.let_in(member.id).admins.split())
        given.setdefault(of, dict(roots))[member.id] = member
    text = slot_text(key, ring.vault)
    old = _older_names(ring, signer.public.hex()) - {key.id}
    made: list[Statement] = []
    for of, served in given.items():
        slots = [
            canonical.b64(box(text, public)) for public in sorted({member.box for member in served.values()})
        ]
        body = Epoch(
            by=signer.public.hex(),
            ek=key.id,
            epoch=key.epoch,
            for_=tuple(sorted(served)),
            not_=tuple(sorted(view.asked - view.put_out_by.keys())),
            of=of,
            old=tuple(sorted(old)),
            slots=tuple(sorted(slots)),
            while_={admin: tuple(sorted(ids)) for admin, ids in sorted(said.items())},
        )
        made.append(sign_statement(signer, body, ring.vault))
    own, *others = made
    if whole or not others:
        return ring.add(made, [key])
    # What somebody fills it with must not keep the roots, and whom they let in, from their key, nor take their room.
    grown = ring.add([own], [key])
    for st in sorted(others, key=lambda st: len(st.payload)):
        with contextlib.suppress(LimitError):
            more = grown.add([st])
            grown = more if more.filled <= max(MOST_FILLED, grown.filled) else grown
    return grown


def _put_out(ring: Ring) -> dict[str, list[str]]:
    """Whom each admin put out, as a new epoch says it. An admin whose epoch only passes on what others say here themselves is left
    out: what found words removed would last as the word of each admin that had to repeat it, when all that they said has ended."""
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
    said: defaultdict[str, list[str]] = defaultdict(list)
    for one, admins in ring.view.put_out_by.items():
        sources = {admin for admin in admins if (admin, one) in own}
        for admin in admins:
            if admin in sources or not passed_on[admin, one] <= sources:
                said[admin].append(one)
    return said


def _older_names(ring: Ring, by: str) -> set[str]:
    """The older keys that a new epoch of this signer names: those that roots or itself named, and of what only others did the
    newest few. Each later epoch names them all again, also when the words that made thousands are long revoked."""
    trusted = {*ring.view.rights.roots, by}
    lasting = names_of(st for st in ring.statements if st.body.by in trusted)
    others = [ek.id for ek in ring.keys if ek.id not in lasting]
    return {ek.id for ek in ring.keys if ek.id in lasting} | set(others[-MAX_OTHER_KEYS:])


def _entitled(view: Authority) -> list[RingMember]:
    """Families that may be given a key: not whoever an epoch calls revoked, though its revoke is still on its way."""
    return [
        person
        for one, person in view.members.items()
        if person.rank != RANK_SUCCESSOR and one not in view.asked
    ]


def _require_admin(view: Authority, signer: Signer25519) -> None:
    me = member_id(signer.public)
    if me in view.asked:
        raise MembershipError(
            f"{me} was revoked: these recovery words, or this wallet, do not open this memory any more",
            hint="Use the words that were made after them, or the wallet.",
        )
    if not view.may_administer(me) or view.sign_key(me) != signer.public:
        raise MembershipError(
            f"{me} is not an admin of this memory",
            hint="Check the words, every one counts; or give the wallet that made the memory.",
        )


def _may_enrol(view: Authority, signer: Signer25519, device: Enrollee, role: Role) -> None:
    _require_admin(view, signer)
    root = signer.public.hex() in view.rights.roots
    if not root and role == "admin":
        raise MembershipError("only a root (the first wallet or the recovery words) can enrol an admin")
    if device.id in view.asked | view.revoked:
        raise MembershipError(f"{device.id} was revoked, and that is for ever: it needs a new key")
    if device.id in view.rights.root_ids and signer.public != device.sign:
        raise MembershipError(f"{device.id} is a root of this memory, and says itself what it is")
    if any(key != device.sign for key in view.keys_of.get(device.id, ())):
        raise MembershipError(f"{device.id} is the id of another key in this ring")
    # Not even those of one device: who revoked one family would leave its box key to the other.
    for person in view.members.values():
        if person.box == device.box and person.family != device.id:
            raise MembershipError(f"the box key of {device.id} is that of {person.id}: it needs its own")
    counted = (person for person in view.members.values() if not root or person.rank == RANK_ROOT)
    enrolled = {person.family for person in counted} | view.rights.root_ids
    if len(enrolled | {device.id}) > max(MAX_FAMILIES, len(enrolled)):
        raise LimitError(
            f"{len(enrolled)} devices, wallets and words belong to this memory; {MAX_FAMILIES} may",
            hint="Revoke one that is not used any more: ipfsmem member list, ipfsmem member revoke ID.",
        )


def _may_revoke(view: Authority, signer: Signer25519, target: str) -> None:
    _require_admin(view, signer)
    if target in view.rights.root_ids:
        raise MembershipError(
            f"{target} is a root of this memory; roots cannot be revoked: move to a new vault"
        )
    if target not in view.families or not view.keys_of.get(target):
        raise MembershipError(f"{target} is not in this ring")
    if signer.public.hex() not in view.rights.roots and target in view.rights.admin_ids:
        raise MembershipError(f"{target} is an admin; only a root can revoke it")


def _revokes_by(ring: Ring, by: str, target: str) -> list[Revoke]:
    bodies = [st.body for st in ring.statements if isinstance(st.body, Revoke)]
    return [body for body in bodies if body.by == by and body.id == target]
