"""Evaluate ring statements: members, roles, revocations and the sealing key (format section 4).

Statements of roots are evaluated first, then those of admins enrolled by a root, then all others, so the result does
not depend on their order. Input is verified (`statements`) and reduced (`retention_rules`). Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from ipfsmem.ring.retention_rules import Rights, as_member, rights_of
from ipfsmem.ring.statements import Epoch, Kind, Member, Revoke, Role, Statement, id_of_hex
from ipfsmem.seal.objects import EpochKey

#: The reason shown if no key seals because the vault is in plain mode.
PLAIN_REASON: Final = "this vault is not encrypted"
RANK_ROOT: Final = 0
RANK_ADMIN: Final = 1
RANK_SUCCESSOR: Final = 2

#: Maximum difference between an admin's epoch number and the roots' greatest one; more than the epochs that fit into
#: a ring.
MAX_LEAP: Final = 1 << 16

_ROLES: Final[dict[Role, int]] = {"reader": 0, "writer": 1, "admin": 2}


class Admission(msgspec.Struct, frozen=True, order=True):
    """Who admitted a family. `rank`: see `Authority.rank_of`. `admins`: sorted, space-separated ids of the admitting
    admins; "" if a root admitted it.
    """

    rank: int
    admins: str


BY_ROOT: Final = Admission(RANK_ROOT, "")


class RingMember(msgspec.Struct, frozen=True):
    """One id of the ring, as the valid statements describe it. Keys have 32 bytes.

    `family`: the enrolled id: a successor's is the id of the key that signed it, any other id's is the id itself.
    `by`: the signer of the member statement, whose hash is `hash`. `rank`: whether a root, an admin or (for a
    successor) its own family admitted it. `owner`: its person; None if the signer may not name one.
    """

    id: str
    sign: bytes
    box: bytes
    anchor: bytes | None
    role: Role
    kind: Kind
    label: str
    owner: str | None
    by: str
    rank: int
    since: str
    hash: str
    family: str


class Authority(msgspec.Struct, frozen=True):
    """The result of evaluating a ring's statements. `members`: the current members by id. Terms are those of the
    format."""

    rights: Rights
    members: Mapping[str, RingMember]
    #: enrolled ids whose families are removed by a valid revoke
    out: frozenset[str]
    #: `out` with all ids of their families
    revoked: frozenset[str]
    #: enrolled ids that an epoch must list: `out`, and ids that a valid epoch lists although their revoke has not
    #: arrived
    must_exclude: frozenset[str]
    #: ids of `must_exclude` removed by admins only -> these admins; valid as long as the admins' statements are
    revoked_by: Mapping[str, frozenset[str]]
    #: revoked id -> greatest counter accepted at its revocation; values beyond it need approval
    cutoffs: Mapping[str, int]
    #: id -> every signing key that the statements name for it, the current key first
    keys_of: Mapping[str, tuple[bytes, ...]]
    #: id -> enrolled id of its family, for members and removed members
    families: Mapping[str, str]
    #: id -> person, removed members included; absent if no authorised signer named one
    owners: Mapping[str, str]
    #: family -> rank (see `rank_of`), if it was admitted, or revoked by a root
    ranks: Mapping[str, int]
    #: family -> space-separated ids of the admitting admins, if only admins admitted it
    admitted_by: Mapping[str, str]
    #: anchors of removed admins, by enrolled id
    old_anchors: Mapping[str, bytes]
    #: ids that their own device abandoned: a successor in the same family names them
    left: frozenset[str]
    #: the sealing epoch key as (epoch, key id), or None
    seals: tuple[int, str] | None
    #: families that received the sealing key by a valid statement
    holders: frozenset[str]
    #: ids of all epoch keys in the ring: those that epoch statements name
    names: frozenset[str]
    next_epoch: int
    sealing: EpochKey | None
    #: why `sealing` is None; else empty
    reason: str
    #: key id -> epoch keys with that id; ids can collide (2^64 work), and then all are tried
    eks: Mapping[str, tuple[EpochKey, ...]]

    @property
    def roots(self) -> tuple[bytes, ...]:
        """Return the roots' admin keys; the first created the vault."""
        return tuple(bytes.fromhex(root) for root in self.rights.roots)

    def may_write(self, member: str) -> bool:
        """Tell whether this id is a member that is not a reader. Only commits of such ids are joined."""
        known = self.members.get(member)
        return known.role != "reader" if known else member in self.rights.root_ids

    def may_administer(self, member: str) -> bool:
        """Tell whether this id may enrol and revoke: a root, or an admin that is not revoked."""
        known = self.members.get(member)
        return member in self.rights.root_ids or (known is not None and known.role == "admin")

    def rank_of(self, member: str) -> int:
        """Return 0 if a root admitted the family of this id, 1 if an admin did, else 2.

        A removed family keeps its rank, so that its earlier writes keep theirs.
        """
        return self.ranks.get(self.family_of(member), 2)

    def admission_of(self, member: str) -> Admission:
        """Return who admitted the family of this id. Families with equal results share one part of an entry's capacity
            (format
        section 5).

            All admins that enrolled the family are included, so that an admin cannot move it into its own share by
            enrolling it again.
        """
        rank = self.rank_of(member)
        return Admission(rank, self.admitted_by.get(self.family_of(member), "") if rank == RANK_ADMIN else "")

    def sign_key(self, member: str) -> bytes | None:
        """Return the signing key of an id, revoked ones included: values joined long ago must still verify."""
        keys = self.keys_of.get(member)
        return keys[0] if keys else None

    def family_of(self, member: str) -> str:
        """Return the enrolled id of an id's family; the id itself when unknown."""
        return self.families.get(member, member)

    def ids_of(self, family: str) -> tuple[str, ...]:
        """Return all ids of a family, sorted, the enrolled one included."""
        return tuple(sorted({family, *(one for one, its in self.families.items() if its == family)}))

    def is_revoked(self, member: str) -> bool:
        """Tell whether the ring contains a revocation of this id. The public part of a ring is sufficient."""
        return member in self.revoked or self.family_of(member) in self.must_exclude

    def given_up(self, member: str) -> bool:
        """Tell whether an id is retired: it has a successor, is removed, or has no key in the ring."""
        return member in self.left or member not in self.keys_of or self.is_revoked(member)

    def anchors(self) -> tuple[bytes, ...]:
        """Return the anchor keys of roots and of members admitted by roots, sorted. IPNS names of anchors lead to
        newer rings (format section 7).

        Members admitted by an admin need no anchor.
        """
        trusted = (member for member in self.members.values() if member.rank == RANK_ROOT)
        return tuple(sorted({member.anchor for member in trusted if member.anchor}))


def names_of(statements: Iterable[Statement]) -> frozenset[str]:
    """Return the ids of the epoch keys that epoch statements name."""
    names: set[str] = set()
    for st in statements:
        if isinstance(st.body, Epoch):
            names.add(st.body.ek)
            names.update(st.body.old)
    return frozenset(names)


def evaluate(statements: Sequence[Statement], eks: Sequence[EpochKey], *, plain: bool = False) -> Authority:
    """Evaluate the statements returned by `kept_statements`. `eks`: the epoch keys that they name and this device
    has.

    Raises FormatError without a genesis statement.
    """
    rights = rights_of(statements)
    revokes = _valid_revokes(statements, rights)
    out = frozenset(revokes)
    enrolled = [st for st in statements if isinstance(st.body, Member) and st.body.heir_of is None]
    claims = [st for st in statements if isinstance(st.body, Member) and st.body.heir_of is not None]
    final_persons = _final_persons(revokes, rights)
    claimed = _authorised_persons(enrolled, rights, final_persons)
    heads = _enrolled(enrolled, out, rights, claimed)
    members = _with_successors(heads, enrolled, claims, out)
    families = _families(members, enrolled, claims, revokes, rights)
    epochs = [st.body for st in statements if isinstance(st.body, Epoch)]
    # An epoch can arrive before the revoke that it repeats, so its removals are valid too: otherwise an excluded
    # device could get its key. Exceptions: nobody's epoch removes a root, which could otherwise be locked out by the
    # admin that it wants to revoke; an admin's epoch does not remove an admin, since every later epoch, even a
    # root's, would repeat the removal. A root that revokes an admin also publishes an epoch of its own that lists it.
    for_good, revoked_by = _removals(revokes, epochs, rights)
    must_exclude = for_good | revoked_by.keys()
    # Unbounded, an admin could use up the epoch numbers, and a root's next epoch would make that permanent.
    reach = MAX_LEAP + max((body.epoch for body in epochs if body.by in rights.roots), default=0)
    seals, holders = _sealing(epochs, must_exclude, rights, reach)
    by_id = _by_id(eks)
    sealing = next((ek for ek in by_id.get(seals[1], ()) if ek.epoch == seals[0]), None) if seals else None
    revoked = out | {one for one, family in families.items() if family in out}
    return Authority(
        rights=rights,
        members=members,
        out=out,
        revoked=frozenset(revoked - members.keys()),
        must_exclude=must_exclude,
        revoked_by=revoked_by,
        cutoffs=_cutoffs(revokes, families, members),
        keys_of=_keys_of(statements, rights, members),
        families=families,
        owners=_owners(members, enrolled, families, rights, claimed, final_persons),
        ranks=_ranks(statements, rights),
        admitted_by=_admitted_by(enrolled),
        old_anchors=_old_anchors(enrolled, revokes, rights),
        left=_abandoned_ids(claims, families),
        seals=seals,
        holders=holders,
        names=names_of(statements),
        next_epoch=1 + max((body.epoch for body in epochs if body.epoch <= reach), default=0),
        sealing=sealing,
        reason=_reason_not_sealing(sealing, seals, plain),
        eks=by_id,
    )


def _valid_revokes(statements: Iterable[Statement], rights: Rights) -> dict[str, list[Revoke]]:
    """Map enrolled ids to their valid revokes: by a root of anyone but a root, by an admin of anyone but an
    admin or root."""
    by_target: defaultdict[str, list[Revoke]] = defaultdict(list)
    for st in statements:
        body = st.body
        if not isinstance(body, Revoke) or body.id in rights.root_ids:
            continue
        if body.by in rights.roots or body.id not in rights.admin_ids:
            by_target[body.id].append(body)
    return dict(by_target)


def _enrolled(
    enrolled: Sequence[Statement], out: frozenset[str], rights: Rights, claimed: Mapping[str, str]
) -> dict[str, RingMember]:
    """Return the members by their valid enrolment, by id."""
    return {
        member: _ring_member(
            st,
            RANK_ROOT if st.body.by in rights.roots else RANK_ADMIN,
            "admin" if member in rights.admin_ids | rights.root_ids else as_member(st).role,
            member,
            owner=claimed.get(st.hash),
        )
        for member, st in sorted(_valid_enrolments(enrolled, rights).items())
        if member not in out
    }


def _valid_enrolments(enrolled: Iterable[Statement], rights: Rights) -> dict[str, Statement]:
    """Choose the enrolment of each id: a root's wins, then the greatest (since, hash)."""
    best: dict[str, tuple[tuple[bool, str, str], Statement]] = {}
    for st in enrolled:
        body = as_member(st)
        order = (body.by in rights.roots, body.since, st.hash)
        if body.id not in best or order > best[body.id][0]:
            best[body.id] = (order, st)
    return {member: st for member, (_, st) in best.items()}


def _final_persons(revokes: Mapping[str, Sequence[Revoke]], rights: Rights) -> dict[str, str]:
    """Map each id that roots revoked to the person that these revokes name (the least of several), since its
    enrolments are dropped.
    """
    persons_of = {
        target: [body.person for body in bodies if body.by in rights.roots]
        for target, bodies in revokes.items()
    }
    return {target: min(persons) for target, persons in persons_of.items() if persons}


def _authorised_persons(
    enrolled: Iterable[Statement], rights: Rights, final_persons: Mapping[str, str]
) -> dict[str, str]:
    """Map the hash of each enrolment to the member's person, if the signer may name it.

    A root may name any person; an admin may name its own, and persons that no root enrolled. Otherwise an admin could
    attribute its texts to other people.

    `final_persons`: the persons of revoked admins, so that a device enrolled by one keeps its person.
    """
    enrolled_by_roots: defaultdict[str, set[str]] = defaultdict(set)
    for st in enrolled:
        if st.body.by in rights.roots:
            enrolled_by_roots[as_member(st).person].add(as_member(st).id)
    claimed: dict[str, str] = {}
    for st in enrolled:
        body = as_member(st)
        other_members = enrolled_by_roots.get(body.person, set()) - {body.id}
        signer = id_of_hex(body.by)
        shares = signer in other_members or final_persons.get(signer) == body.person
        if st.body.by in rights.roots or not other_members or shares:
            claimed[st.hash] = body.person
    return claimed


def _with_successors(
    heads: Mapping[str, RingMember],
    enrolled: Iterable[Statement],
    claims: Iterable[Statement],
    out: frozenset[str],
) -> dict[str, RingMember]:
    """Return the members with the successors of each: same box key, at most the family's rights.

    An id that several members claim as successor belongs to the claim with the least (signer, hash).
    """
    base = {st.hash: as_member(st) for st in enrolled}
    taken = {body.id for body in base.values()} | out
    members = dict(heads)
    for st in sorted(claims, key=lambda st: (st.body.by, st.hash)):
        body = as_member(st)
        head = heads.get(id_of_hex(body.by))
        under = base.get(body.under or "")
        if head is None or under is None or body.id in taken or body.box != under.box or body.id in members:
            continue
        role = min("writer", body.role, head.role, key=lambda name: _ROLES[name])
        members[body.id] = _ring_member(st, RANK_SUCCESSOR, role, head.id, owner=head.owner)
    return dict(sorted(members.items()))


def _ring_member(st: Statement, rank: int, role: Role, family: str, *, owner: str | None) -> RingMember:
    body = as_member(st)
    return RingMember(
        id=body.id,
        sign=bytes.fromhex(body.sign),
        box=bytes.fromhex(body.box),
        anchor=bytes.fromhex(body.anchor) if body.anchor else None,
        role=role,
        kind=body.kind,
        label=body.label,
        owner=owner,
        by=id_of_hex(body.by),
        rank=rank,
        since=body.since,
        hash=st.hash,
        family=family,
    )


def _families(
    members: Mapping[str, RingMember],
    enrolled: Iterable[Statement],
    claims: Iterable[Statement],
    revokes: Mapping[str, Sequence[Revoke]],
    rights: Rights,
) -> dict[str, str]:
    families: dict[str, str] = {}
    # The order is fixed so that every implementation derives the same family from contradicting revokes.
    for target, bodies in sorted(revokes.items(), reverse=True):
        families |= {
            id_of_hex(key): target for body in bodies if body.by in rights.roots for key in body.heirs
        }
    for st in sorted(claims, key=lambda st: (st.body.by, st.hash)):
        families.setdefault(as_member(st).id, id_of_hex(st.body.by))
    # An enrolled id is never a successor, whatever others claim.
    families |= {as_member(st).id: as_member(st).id for st in enrolled}
    families |= {target: target for target in revokes}
    families |= {one: member.family for one, member in members.items()}
    return dict(sorted(families.items()))


def _cutoffs(
    revokes: Mapping[str, Sequence[Revoke]], families: Mapping[str, str], members: Mapping[str, RingMember]
) -> dict[str, int]:
    cutoffs: dict[str, int] = {}
    for member, family in families.items():
        if family in revokes and member not in members:
            cutoffs[member] = min(body.n.get(member, 0) for body in revokes[family])
    return cutoffs


def _keys_of(
    statements: Iterable[Statement], rights: Rights, members: Mapping[str, RingMember]
) -> dict[str, tuple[bytes, ...]]:
    # 64-bit ids can be made to collide; then a value may be signed by either key.
    keys: defaultdict[str, set[str]] = defaultdict(set)
    for root in rights.roots:
        keys[id_of_hex(root)].add(root)
    for st in statements:
        body = st.body
        if isinstance(body, Member):
            keys[body.id].add(body.sign)
        elif isinstance(body, Revoke):
            # A root's revoke drops the target's statements, so it names the keys. An admin's is not read for keys: it
            # could name thousands of ids that nobody admitted.
            for key in (body.sign, *body.heirs) if body.by in rights.roots else ():
                keys[id_of_hex(key)].add(key)
    all_keys: dict[str, tuple[bytes, ...]] = {}
    for one, texts in keys.items():
        member = members.get(one)
        first = member.sign.hex() if member else min(texts)
        all_keys[one] = tuple(bytes.fromhex(text) for text in (first, *sorted(texts - {first})))
    return all_keys


def _owners(
    members: Mapping[str, RingMember],
    enrolled: Iterable[Statement],
    families: Mapping[str, str],
    rights: Rights,
    claimed: Mapping[str, str],
    final_persons: Mapping[str, str],
) -> dict[str, str]:
    """Map each id to its person. A root's revoke names that of a removed member, whose enrolments may be dropped."""
    counting = _valid_enrolments(enrolled, rights)
    heads = {one: claimed[st.hash] for one, st in counting.items() if st.hash in claimed}
    heads |= final_persons
    owners = {one: heads[family] for one, family in families.items() if family in heads}
    for one, member in members.items():
        if member.owner is None:
            owners.pop(one, None)
        else:
            owners[one] = member.owner
    return owners


def _ranks(statements: Iterable[Statement], rights: Rights) -> dict[str, int]:
    ranks = dict.fromkeys(rights.root_ids, 0)
    for st in statements:
        body = st.body
        if isinstance(body, Member) and body.heir_of is None:
            rank = 0 if body.by in rights.roots else 1
        elif isinstance(body, Revoke) and body.by in rights.roots:
            rank = body.rank  # the enrolments that determined the rank are dropped
        else:
            continue
        ranks[body.id] = min(rank, ranks.get(body.id, rank))
    return ranks


def _admitted_by(enrolled: Iterable[Statement]) -> dict[str, str]:
    admins: defaultdict[str, set[str]] = defaultdict(set)
    for st in enrolled:
        admins[as_member(st).id].add(id_of_hex(st.body.by))
    return {member: " ".join(sorted(by)) for member, by in admins.items()}


def _old_anchors(
    enrolled: Iterable[Statement], revokes: Mapping[str, Sequence[Revoke]], rights: Rights
) -> dict[str, bytes]:
    anchors: dict[str, bytes] = {}
    for st in enrolled:
        body = as_member(st)
        if body.id in revokes and body.role == "admin" and body.anchor:
            anchors[body.id] = bytes.fromhex(body.anchor)
    for target, bodies in revokes.items():
        for revoke in bodies:
            if revoke.by in rights.roots and revoke.anchor:
                anchors[target] = bytes.fromhex(revoke.anchor)
    return anchors


def _abandoned_ids(claims: Iterable[Statement], families: Mapping[str, str]) -> frozenset[str]:
    """Return the ids that a successor in the same family abandons; an id of another family cannot be abandoned."""
    return frozenset(
        was
        for st in claims
        if (was := as_member(st).was) is not None and families.get(was) == id_of_hex(st.body.by)
    )


def _sealing(
    epochs: Iterable[Epoch], must_exclude: frozenset[str], rights: Rights, reach: int
) -> tuple[tuple[int, str] | None, frozenset[str]]:
    """Return the sealing key as (epoch, key id), or None, and the families that received it.

    The sealing key is the greatest pair with an epoch up to `reach` for which every statement that names the key
    gives it to all roots and lists every revocation.
    """
    naming: defaultdict[str, list[Epoch]] = defaultdict(list)
    for body in epochs:
        naming[body.ek].append(body)
    fit = [
        (body.epoch, body.ek)
        for bodies in naming.values()
        if all(must_exclude <= body.gone and rights.root_ids.issubset(body.for_) for body in bodies)
        for body in bodies
        if body.epoch <= reach
    ]
    if not fit:
        return None, frozenset()
    seals = max(fit)
    holders = (body.for_ for body in naming[seals[1]] if body.epoch == seals[0])
    return seals, frozenset(one for ids in holders for one in ids)


def _removals(
    revokes: Mapping[str, Sequence[Revoke]], epochs: Iterable[Epoch], rights: Rights
) -> tuple[frozenset[str], dict[str, frozenset[str]]]:
    """Return the ids that an epoch must list: those removed permanently by a root, and those removed by admins only,
    with the admins.

    A root's epoch attributes removals by admins to these admins; otherwise a removal would outlast the admin's
    statement. Precedence per id: valid revokes; then roots' epochs, and admins' epochs about their own removals; then
    admins' epochs about removals by others, attributed to the signer of the epoch, which could name anyone.
    """
    good = {target for target, bodies in revokes.items() if any(body.by in rights.roots for body in bodies)}
    own: defaultdict[str, set[str]] = defaultdict(set)
    passed_on: defaultdict[str, set[str]] = defaultdict(set)
    for body in epochs:
        signer, is_root = id_of_hex(body.by), body.by in rights.roots
        if is_root:
            good |= set(body.not_) - rights.root_ids
        else:
            for one in body.not_:
                own[one].add(signer)
        for admin, ids in body.while_.items():
            # If a root revoked the admin, only those of its revokes that are present here remain valid.
            for one in ids if admin not in rights.let_stand else ():
                if is_root:
                    own[one].add(admin)
                else:
                    passed_on[one].add(signer)
    by = {**passed_on, **own}
    by |= {target: {id_of_hex(body.by) for body in bodies} for target, bodies in revokes.items()}
    barred = good | rights.root_ids | rights.admin_ids
    return frozenset(good), {one: frozenset(by[one]) for one in sorted(by) if one not in barred}


def _by_id(eks: Iterable[EpochKey]) -> dict[str, tuple[EpochKey, ...]]:
    by_id: defaultdict[str, list[EpochKey]] = defaultdict(list)
    for ek in sorted(eks, key=lambda ek: (ek.epoch, ek.key)):
        by_id[ek.id].append(ek)
    return {name: tuple(keys) for name, keys in by_id.items()}


def _reason_not_sealing(sealing: EpochKey | None, seals: tuple[int, str] | None, plain: bool) -> str:
    if sealing is not None:
        return ""
    if plain:
        return PLAIN_REASON
    if seals is None:
        return (
            "a member was removed, and no new encryption key exists yet: an admin must unlock to create one"
        )
    return "this device does not have the current encryption key: an admin must unlock to share it"
