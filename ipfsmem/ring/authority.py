"""Who may do what in a vault: the pure evaluation of a set of ring statements (format section 4).

Rights come from the roots first, then from the admins whom a root enrolled, then from everybody else, so a set of
statements has one reading, in whatever order it came. Signatures were verified before (`statements`), and what can never
count was dropped (`drop_rules`). Nothing here opens a box, changes a statement, or knows another secret than the epoch
keys that it is given.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from ipfsmem.ring.drop_rules import Rights, as_member, rights_of
from ipfsmem.ring.statements import Epoch, Kind, Member, Revoke, Role, Statement, id_of_hex
from ipfsmem.seal.objects import EpochKey

#: Why no key seals in a plain memory.
PLAIN_REASON: Final = "this memory is not encrypted"
RANK_ROOT: Final = 0
RANK_ADMIN: Final = 1
RANK_SUCCESSOR: Final = 2

#: An admin's epoch counts when its number is at most this far beyond the greatest of the roots' epochs. A ring has no room for
#: so many epochs of roots.
MAX_LEAP: Final = 1 << 16

_ROLES: Final[dict[Role, int]] = {"reader": 0, "writer": 1, "admin": 2}


class LetIn(msgspec.Struct, frozen=True, order=True):
    """Who let a family in: `rank` as `Authority.rank_of` gives it; `admins` the ids of the admins who did, sorted, with a
    space between them, where no root did, else "".
    """

    rank: int
    admins: str


BY_ROOT: Final = LetIn(RANK_ROOT, "")


class RingMember(msgspec.Struct, frozen=True):
    """One id of the ring, as the statements that count describe it. Keys have 32 bytes.

    `family` is the id that was enrolled: of a successor that of the key which signed it, else this id itself. `by` is the
    id that signed its member statement, which `hash` names. `rank` says who let it in: a root, an admin, or (a successor)
    its own family. `owner` is the person whose it is, None where the signer may not say so.
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
    """What the statements of a ring mean. `members` are those in force, by id; the other words are those of the format."""

    rights: Rights
    members: Mapping[str, RingMember]
    #: enrolled ids whose families are out, by a revoke that counts.
    out: frozenset[str]
    #: `out` with all the ids of their families.
    revoked: frozenset[str]
    #: enrolled ids that an epoch must list: `out`, and whoever an epoch in force lists though its revoke is not here.
    asked: frozenset[str]
    #: of `asked` those whom no root put out -> the admins by whose word they are, and only as long as it counts.
    put_out_by: Mapping[str, frozenset[str]]
    #: revoked id -> greatest counter whose values were accepted when it was revoked; more of its values need approval.
    cutoffs: Mapping[str, int]
    #: id -> every signing key that a statement of the ring gives it; the one in force first.
    keys_of: Mapping[str, tuple[bytes, ...]]
    #: id -> the enrolled id of its family, of members and of those who are out.
    families: Mapping[str, str]
    #: id -> whose it is, also of those who are out; nothing where nobody said so who may.
    owners: Mapping[str, str]
    #: family -> see `rank_of`, of those whom somebody let in or a root revoked.
    ranks: Mapping[str, int]
    #: family -> the ids of the admins who let it in, in one text, of those whom only admins let in.
    let_in_by: Mapping[str, str]
    #: anchors of admins who are out, by enrolled id.
    old_anchors: Mapping[str, bytes]
    #: ids that their own device gave up: a successor in the same family names them.
    left: frozenset[str]
    #: the EK that seals, as (epoch, EK id), or None.
    seals: tuple[int, str] | None
    #: families that statements in force gave the sealing EK to.
    holders: frozenset[str]
    #: ids of all epoch keys that an epoch statement names; a ring has no others.
    names: frozenset[str]
    next_epoch: int
    sealing: EpochKey | None
    #: why `sealing` is None; empty when it is not.
    reason: str
    #: EK id -> the keys under it; more than one takes 2^64 work, then both are tried.
    eks: Mapping[str, tuple[EpochKey, ...]]

    @property
    def roots(self) -> tuple[bytes, ...]:
        """The roots' admin keys; the first one made the vault."""
        return tuple(bytes.fromhex(root) for root in self.rights.roots)

    def may_write(self, member: str) -> bool:
        """Whether a commit of this id is to be joined: a member, not a reader."""
        known = self.members.get(member)
        return known.role != "reader" if known else member in self.rights.root_ids

    def may_administer(self, member: str) -> bool:
        """Whether this id may enrol and revoke others now: a root, or an admin that nobody revoked."""
        known = self.members.get(member)
        return member in self.rights.root_ids or (known is not None and known.role == "admin")

    def rank_of(self, member: str) -> int:
        """How near to a root the family of an id stands: 0 where a root let it in, 1 where an admin did, else 2.

        A family that is out keeps the rank that it had: what it wrote while it was a member is worth what it was then.
        """
        return self.ranks.get(self.family_of(member), 2)

    def let_in(self, member: str) -> LetIn:
        """Who let the family of this id in. Families of one such value share one part of the room in an entry (format section
        5). All admins who enrolled it are named, so nobody is drawn into the crowd of an admin who enrols it again.
        """
        rank = self.rank_of(member)
        return LetIn(rank, self.let_in_by.get(self.family_of(member), "") if rank == RANK_ADMIN else "")

    def sign_key(self, member: str) -> bytes | None:
        """The signing key of an id, also of a revoked one: values joined long ago must still verify."""
        keys = self.keys_of.get(member)
        return keys[0] if keys else None

    def family_of(self, member: str) -> str:
        """The enrolled id of the family of an id; the id itself when nothing is known of it."""
        return self.families.get(member, member)

    def ids_of(self, family: str) -> tuple[str, ...]:
        """All ids of a family, the enrolled one among them, sorted."""
        return tuple(sorted({family, *(one for one, its in self.families.items() if its == family)}))

    def is_out(self, member: str) -> bool:
        """Whether this id was revoked, as far as the ring says. The public part of a ring is enough to tell."""
        return member in self.revoked or self.family_of(member) in self.asked

    def given_up(self, member: str) -> bool:
        """Whether nobody will write under this id any more: it has a successor, is out, or has no key in the ring."""
        return member in self.left or member not in self.keys_of or self.is_out(member)

    def anchors(self) -> tuple[bytes, ...]:
        """The anchor keys of roots and of members that roots let in, sorted: their names lead to newer rings (format section 7).
        A member that an admin let in needs none."""
        trusted = (member for member in self.members.values() if member.rank == RANK_ROOT)
        return tuple(sorted({member.anchor for member in trusted if member.anchor}))


def names_of(statements: Iterable[Statement]) -> frozenset[str]:
    """The ids of the epoch keys that kept epoch statements name."""
    found: set[str] = set()
    for st in statements:
        if isinstance(st.body, Epoch):
            found.add(st.body.ek)
            found.update(st.body.old)
    return frozenset(found)


def evaluate(statements: Sequence[Statement], eks: Sequence[EpochKey], *, plain: bool = False) -> Authority:
    """What statements mean that `kept_statements` returned. `eks`: the epoch keys named by them that this device has.

    Raises FormatError without a genesis statement.
    """
    rights = rights_of(statements)
    revokes = _counting_revokes(statements, rights)
    out = frozenset(revokes)
    enrolled = [st for st in statements if isinstance(st.body, Member) and st.body.heir_of is None]
    claims = [st for st in statements if isinstance(st.body, Member) and st.body.heir_of is not None]
    final_persons = _final_persons(revokes, rights)
    claimed = _claimed(enrolled, rights, final_persons)
    heads = _enrolled(enrolled, out, rights, claimed)
    members = _with_successors(heads, enrolled, claims, out)
    families = _families(members, enrolled, claims, revokes, rights)
    epochs = [st.body for st in statements if isinstance(st.body, Epoch)]
    # An epoch is public and may arrive without the revoke that it knew of. It is believed when it says that somebody is out:
    # else a key from one of its slots could be given to those whom it was made to exclude. It is not believed about roots,
    # for an admin could lock out the only ones that can end what it does; nor an admin about admins, whom it cannot revoke:
    # each later epoch, also a root's, repeats what is believed, and then it would last. A root's revoke of an admin comes
    # with a root's epoch that says the same.
    for_good, put_out_by = _asked(revokes, epochs, rights)
    asked = for_good | put_out_by.keys()
    # Without a bound an admin could use up all numbers, and the next epoch of a root would make that last.
    reach = MAX_LEAP + max((body.epoch for body in epochs if body.by in rights.roots), default=0)
    seals, holders = _sealing(epochs, asked, rights, reach)
    by_id = _by_id(eks)
    sealing = next((ek for ek in by_id.get(seals[1], ()) if ek.epoch == seals[0]), None) if seals else None
    revoked = out | {one for one, family in families.items() if family in out}
    return Authority(
        rights=rights,
        members=members,
        out=out,
        revoked=frozenset(revoked - members.keys()),
        asked=asked,
        put_out_by=put_out_by,
        cutoffs=_cutoffs(revokes, families, members),
        keys_of=_keys_of(statements, rights, members),
        families=families,
        owners=_owners(members, enrolled, families, rights, claimed, final_persons),
        ranks=_ranks(statements, rights),
        let_in_by=_let_in_by(enrolled),
        old_anchors=_old_anchors(enrolled, revokes, rights),
        left=_left(claims, families),
        seals=seals,
        holders=holders,
        names=names_of(statements),
        next_epoch=1 + max((body.epoch for body in epochs if body.epoch <= reach), default=0),
        sealing=sealing,
        reason=_reason(sealing, seals, plain),
        eks=by_id,
    )


def _counting_revokes(statements: Iterable[Statement], rights: Rights) -> dict[str, list[Revoke]]:
    """Enrolled id -> the revokes of it that count: a root's of anybody but a root, an admin's of who is no admin."""
    found: defaultdict[str, list[Revoke]] = defaultdict(list)
    for st in statements:
        body = st.body
        if not isinstance(body, Revoke) or body.id in rights.root_ids:
            continue
        if body.by in rights.roots or body.id not in rights.admin_ids:
            found[body.id].append(body)
    return dict(found)


def _enrolled(
    enrolled: Sequence[Statement], out: frozenset[str], rights: Rights, claimed: Mapping[str, str]
) -> dict[str, RingMember]:
    """Those who are members by the enrolment of theirs that counts, by id."""
    return {
        member: _ring_member(
            st,
            RANK_ROOT if st.body.by in rights.roots else RANK_ADMIN,
            "admin" if member in rights.admin_ids | rights.root_ids else as_member(st).role,
            member,
            owner=claimed.get(st.hash),
        )
        for member, st in sorted(_counting_enrolments(enrolled, rights).items())
        if member not in out
    }


def _counting_enrolments(enrolled: Iterable[Statement], rights: Rights) -> dict[str, Statement]:
    """Of the enrolments of one id a root's wins, then the greatest (since, hash)."""
    best: dict[str, tuple[tuple[bool, str, str], Statement]] = {}
    for st in enrolled:
        body = as_member(st)
        order = (body.by in rights.roots, body.since, st.hash)
        if body.id not in best or order > best[body.id][0]:
            best[body.id] = (order, st)
    return {member: st for member, (_, st) in best.items()}


def _final_persons(revokes: Mapping[str, Sequence[Revoke]], rights: Rights) -> dict[str, str]:
    """Id that roots revoked -> its person, as their revokes say (the least of several): its enrolments are dropped."""
    said = {
        target: [body.person for body in bodies if body.by in rights.roots]
        for target, bodies in revokes.items()
    }
    return {target: min(persons) for target, persons in said.items() if persons}


def _claimed(
    enrolled: Iterable[Statement], rights: Rights, final_persons: Mapping[str, str]
) -> dict[str, str]:
    """Enrolment -> whose the member is, where its signer may say so: roots of everybody, an admin of what is its own,
    and of those whom no root knows. Or an admin could make its texts pass for those of somebody else.

    `final_persons`: of a revoked admin they say whose it was, so a device that it enrolled keeps its person.
    """
    said: defaultdict[str, set[str]] = defaultdict(set)
    for st in enrolled:
        if st.body.by in rights.roots:
            said[as_member(st).person].add(as_member(st).id)
    found: dict[str, str] = {}
    for st in enrolled:
        body = as_member(st)
        taken = said.get(body.person, set()) - {body.id}
        signer = id_of_hex(body.by)
        shares = signer in taken or final_persons.get(signer) == body.person
        if st.body.by in rights.roots or not taken or shares:
            found[st.hash] = body.person
    return found


def _with_successors(
    heads: Mapping[str, RingMember],
    enrolled: Iterable[Statement],
    claims: Iterable[Statement],
    out: frozenset[str],
) -> dict[str, RingMember]:
    """The members with the successors of each: same box key, no more than the family may.

    An id that several claim as their successor is that of the least (signer, hash).
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
    # In an order of their own, so that every implementation sees one family in what several say.
    for target, said in sorted(revokes.items(), reverse=True):
        families |= {id_of_hex(key): target for body in said if body.by in rights.roots for key in body.heirs}
    for st in sorted(claims, key=lambda st: (st.body.by, st.hash)):
        families.setdefault(as_member(st).id, id_of_hex(st.body.by))
    # An id that is enrolled is nobody's successor, whatever others say of it.
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
    # Two keys can share an id of 64 bits when somebody wants them to; a value may be signed by either.
    keys: defaultdict[str, set[str]] = defaultdict(set)
    for root in rights.roots:
        keys[id_of_hex(root)].add(root)
    for st in statements:
        body = st.body
        if isinstance(body, Member):
            keys[body.id].add(body.sign)
        elif isinstance(body, Revoke):
            # What a root revokes loses its own statements; of whom an admin does they stay, and an admin could give keys to
            # thousands that nobody ever let in.
            for key in (body.sign, *body.heirs) if body.by in rights.roots else ():
                keys[id_of_hex(key)].add(key)
    found: dict[str, tuple[bytes, ...]] = {}
    for one, texts in keys.items():
        member = members.get(one)
        first = member.sign.hex() if member else min(texts)
        found[one] = tuple(bytes.fromhex(text) for text in (first, *sorted(texts - {first})))
    return found


def _owners(
    members: Mapping[str, RingMember],
    enrolled: Iterable[Statement],
    families: Mapping[str, str],
    rights: Rights,
    claimed: Mapping[str, str],
    final_persons: Mapping[str, str],
) -> dict[str, str]:
    """Whose each id is: of those who are out a root's revoke says it, for their enrolments may be gone."""
    counting = _counting_enrolments(enrolled, rights)
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
            rank = body.rank  # the enrolments that said it are gone
        else:
            continue
        ranks[body.id] = min(rank, ranks.get(body.id, rank))
    return ranks


def _let_in_by(enrolled: Iterable[Statement]) -> dict[str, str]:
    admins: defaultdict[str, set[str]] = defaultdict(set)
    for st in enrolled:
        admins[as_member(st).id].add(id_of_hex(st.body.by))
    return {member: " ".join(sorted(by)) for member, by in admins.items()}


def _old_anchors(
    enrolled: Iterable[Statement], revokes: Mapping[str, Sequence[Revoke]], rights: Rights
) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for st in enrolled:
        body = as_member(st)
        if body.id in revokes and body.role == "admin" and body.anchor:
            found[body.id] = bytes.fromhex(body.anchor)
    for target, said in revokes.items():
        for revoke in said:
            if revoke.by in rights.roots and revoke.anchor:
                found[target] = bytes.fromhex(revoke.anchor)
    return found


def _left(claims: Iterable[Statement], families: Mapping[str, str]) -> frozenset[str]:
    """Ids that a successor in the same family names as given up: nobody gives up the id of somebody else."""
    return frozenset(
        was
        for st in claims
        if (was := as_member(st).was) is not None and families.get(was) == id_of_hex(st.body.by)
    )


def _sealing(
    epochs: Iterable[Epoch], asked: frozenset[str], rights: Rights, reach: int
) -> tuple[tuple[int, str] | None, frozenset[str]]:
    """The greatest (epoch, EK id) up to the number `reach` of which every epoch that names it serves all roots and knows
    every revocation, and who was given it."""
    naming: defaultdict[str, list[Epoch]] = defaultdict(list)
    for body in epochs:
        naming[body.ek].append(body)
    fit = [
        (body.epoch, body.ek)
        for bodies in naming.values()
        if all(asked <= body.gone and rights.root_ids.issubset(body.for_) for body in bodies)
        for body in bodies
        if body.epoch <= reach
    ]
    if not fit:
        return None, frozenset()
    seals = max(fit)
    given = (body.for_ for body in naming[seals[1]] if body.epoch == seals[0])
    return seals, frozenset(one for ids in given for one in ids)


def _asked(
    revokes: Mapping[str, Sequence[Revoke]], epochs: Iterable[Epoch], rights: Rights
) -> tuple[frozenset[str], dict[str, frozenset[str]]]:
    """Whom an epoch must list: for good, by a root's word, and those who are out by admins' words alone, with the admins.

    A root's epoch that must serve without whom an admin put out says so, and says by whom: or the root's own word would
    keep that device out when what the admin said is ended. Of who is the target of revokes that count, these say it; else
    roots' epochs and what an admin's epoch says as its own word; else what an admin's epoch says of others' words, and that
    is in its signer's name: it could name anybody, and passes on what others are known to have said mostly.
    """
    good = {target for target, said in revokes.items() if any(body.by in rights.roots for body in said)}
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
            # Of whom a root revoked no more stands than its revokes that are here.
            for one in ids if admin not in rights.let_stand else ():
                if is_root:
                    own[one].add(admin)
                else:
                    passed_on[one].add(signer)
    by = {**passed_on, **own}
    by |= {target: {id_of_hex(body.by) for body in said} for target, said in revokes.items()}
    barred = good | rights.root_ids | rights.admin_ids
    return frozenset(good), {one: frozenset(by[one]) for one in sorted(by) if one not in barred}


def _by_id(eks: Iterable[EpochKey]) -> dict[str, tuple[EpochKey, ...]]:
    found: defaultdict[str, list[EpochKey]] = defaultdict(list)
    for ek in sorted(eks, key=lambda ek: (ek.epoch, ek.key)):
        found[ek.id].append(ek)
    return {name: tuple(keys) for name, keys in found.items()}


def _reason(sealing: EpochKey | None, seals: tuple[int, str] | None, plain: bool) -> str:
    if sealing is not None:
        return ""
    if plain:
        return PLAIN_REASON
    if seals is None:
        return "a member was removed, and since then there is no encryption key: an admin must unlock and make a new one"
    return "this device was not given the current encryption key: an admin must unlock and give it"
