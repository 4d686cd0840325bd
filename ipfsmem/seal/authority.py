"""Who may do what in a vault: the pure evaluation of a set of ring statements, in three steps.

Format section 4. Roots first, then the admins whom a root ever enrolled, then everybody else; so every set of
statements has one reading, whatever the order in which it came. Signatures were verified before (`statements`), and
what can never count was left out (`ring_keep`); nothing here opens a box, knows a secret other than the epoch keys
that it is handed, or changes a statement.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from ipfsmem.errors import LimitError
from ipfsmem.seal.objects import EpochKey
from ipfsmem.seal.ring_keep import Facts, Link, as_epoch, as_member, facts_of, split_members, successor_links
from ipfsmem.seal.statements import Epoch, Member, Revoke, Role, Statement, id_of_hex

MAX_MEMBERS: Final = 64

RANK_ROOT: Final = 0
RANK_ADMIN: Final = 1
RANK_SUCCESSOR: Final = 2

_ROLES: Final[dict[Role, int]] = {"reader": 0, "writer": 1, "admin": 2}


class Person(msgspec.Struct, frozen=True):
    """One id of the ring as the statements that count describe it: keys as 32 bytes, rank 0 root, 1 admin, 2 successor.

    `successor_of` is the id that signed this one as its successor, or None. `hash` names the member statement.
    """

    id: str
    sign: bytes
    box: bytes
    anchor: bytes | None
    role: Role
    label: str
    by: str
    rank: int
    since: str
    hash: str
    successor_of: str | None = None


class Authority(msgspec.Struct, frozen=True):
    """The reading of a ring. `members` are those in force; `people` also holds the revoked ones that count."""

    facts: Facts
    people: Mapping[str, Person]
    members: Mapping[str, Person]
    revoked: frozenset[str]
    #: what an epoch must list: ids that a revoke names, enrolled ids of their chains, and whoever an epoch in force
    #: lists though its revoke did not reach this device yet. Not what a revoked id adds to its chain by itself.
    shut_out: frozenset[str]
    #: revoked id -> greatest counter whose values were accepted when it was revoked; more of its values need approval.
    cutoffs: Mapping[str, int]
    #: id -> every signing key that a statement of the ring gives it; the one in force first.
    keys_of: Mapping[str, tuple[bytes, ...]]
    #: id -> all ids of its chain of successors, itself among them, sorted.
    chains: Mapping[str, tuple[str, ...]]
    #: the EK that seals, as (epoch, EK id), or None.
    seals: tuple[int, str] | None
    #: ids that statements in force gave the sealing EK to.
    holders: frozenset[str]
    next_epoch: int
    sealing: EpochKey | None
    #: why `sealing` is None; empty when it is not.
    reason: str
    eks: Mapping[str, EpochKey]

    @property
    def roots(self) -> tuple[bytes, ...]:
        """The roots' admin keys; the first one made the vault."""
        return tuple(bytes.fromhex(root) for root in self.facts.roots)

    def is_member(self, member: str) -> bool:
        """Whether this id is enrolled and not revoked."""
        return member in self.members or member in self.facts.root_ids

    def may_write(self, member: str) -> bool:
        """Whether a commit of this id is to be joined: a member, not a reader."""
        person = self.members.get(member)
        return person.role != "reader" if person else member in self.facts.root_ids

    def may_administer(self, member: str) -> bool:
        """Whether this id may enrol and revoke others now: a root, or an admin that nobody revoked."""
        person = self.members.get(member)
        return member in self.facts.root_ids or (person is not None and person.role == "admin")

    def sign_key(self, member: str) -> bytes | None:
        """The signing key of an id, also of a revoked one: values joined long ago must still verify."""
        keys = self.keys_of.get(member)
        return keys[0] if keys else None

    def anchors(self) -> tuple[bytes, ...]:
        """The anchor keys of all members, sorted: where a new device looks for newer rings (format section 7)."""
        return tuple(sorted({person.anchor for person in self.members.values() if person.anchor}))


def evaluate(statements: Sequence[Statement], eks: Sequence[EpochKey], *, plain: bool = False) -> Authority:
    """Read statements that `keep` returned, with the epoch keys that this device has.

    Raises LimitError when more than 64 ids are members.
    """
    facts = facts_of(statements)
    enrolled, claims = split_members([st for st in statements if isinstance(st.body, Member)], facts)
    links = _same_box(successor_links(enrolled, claims), enrolled)
    chains = _chains(links, enrolled)
    verdicts = _revocations(statements, facts, chains)
    counts = _Counting(facts, verdicts)
    people = _people(enrolled, links, facts, counts)
    members = {member: person for member, person in people.items() if member not in verdicts.revoked}
    if len(members.keys() | facts.root_ids) > MAX_MEMBERS:
        raise LimitError(f"a key ring has at most {MAX_MEMBERS} members, this has {len(members)}")
    epochs = [as_epoch(st) for st in statements if isinstance(st.body, Epoch) and counts(st)]
    asked = verdicts.named | (verdicts.revoked & {as_member(st).id for st in enrolled})
    # An epoch is public and may come without the revoke that it knew of: what it says of others' absence is believed,
    # or a key learned from its slot could be passed on to those whom it was made against.
    claimed = frozenset(member for body in epochs for member in body.not_)
    seals, holders = _sealing(epochs, asked | claimed)
    by_id = _by_id(eks, epochs)
    sealing = next((ek for ek in eks if (ek.epoch, ek.id) == seals), None)
    return Authority(
        facts=facts,
        people=people,
        members=members,
        revoked=verdicts.revoked,
        shut_out=asked | claimed,
        cutoffs=verdicts.cutoffs,
        keys_of=_keys_of(statements, facts, people),
        chains=chains,
        seals=seals,
        holders=holders,
        next_epoch=_next_epoch(epochs, eks),
        sealing=sealing,
        reason=_reason(sealing, seals, plain),
        eks=by_id,
    )


def _same_box(links: Sequence[Link], enrolled: Iterable[Statement]) -> list[Link]:
    """Leave out links to an id that an admin enrolled with another box key: nobody adopts a stranger into its chain."""
    boxes: defaultdict[str, set[str]] = defaultdict(set)
    for st in enrolled:
        boxes[as_member(st).id].add(as_member(st).box)
    return [
        link
        for link in links
        if link.child not in boxes or as_member(link.statement).box in boxes[link.child]
    ]


def _chains(links: Iterable[Link], enrolled: Iterable[Statement]) -> dict[str, tuple[str, ...]]:
    near: defaultdict[str, set[str]] = defaultdict(set)
    for st in enrolled:
        near[as_member(st).id] |= set()
    for link in links:
        near[link.parent].add(link.child)
        near[link.child].add(link.parent)
    chains: dict[str, tuple[str, ...]] = {}
    for start in list(near):
        if start in chains:
            continue
        group = {start}
        todo = [start]
        while todo:
            fresh = near[todo.pop()] - group
            group |= fresh
            todo.extend(fresh)
        chains.update(dict.fromkeys(group, tuple(sorted(group))))
    return chains


class _Verdicts(msgspec.Struct, frozen=True):
    """Who is revoked: by name or through its chain, with the statements that each revoke of it lets stand."""

    revoked: frozenset[str]
    named: frozenset[str]
    cutoffs: dict[str, int]
    kept: Mapping[str, list[frozenset[str]]]


def _revocations(
    statements: Iterable[Statement], facts: Facts, chains: Mapping[str, tuple[str, ...]]
) -> _Verdicts:
    revoked: set[str] = set()
    named: set[str] = set()
    named_n: dict[str, int] = {}
    kept: defaultdict[str, list[frozenset[str]]] = defaultdict(list)
    for st in statements:
        body = st.body
        if not isinstance(body, Revoke):
            continue
        chain = chains.get(body.id, (body.id,))
        # A chain shares one box key, so it goes as a whole: one with an admin in it only by a root's word.
        if body.by not in facts.roots and not facts.admin_ids.isdisjoint(chain):
            continue
        named.add(body.id)
        named_n[body.id] = min(body.n, named_n.get(body.id, body.n))
        stands = frozenset(body.keep)
        for member in chain:
            revoked.add(member)
            kept[member].append(stands)
    cutoffs = {member: named_n.get(member, 0) for member in revoked}
    return _Verdicts(frozenset(revoked), frozenset(named), cutoffs, kept)


class _Counting:
    """Whether a root's or admin's statement counts: a revoked admin's do when every revoke of it lets them stand."""

    __slots__ = ("_facts", "_verdicts")

    def __init__(self, facts: Facts, verdicts: _Verdicts) -> None:
        self._facts = facts
        self._verdicts = verdicts

    def __call__(self, st: Statement) -> bool:
        if st.body.by in self._facts.roots:
            return True
        signer = id_of_hex(st.body.by)
        if signer not in self._verdicts.revoked:
            return True
        return all(st.hash in stands for stands in self._verdicts.kept[signer])


def _people(
    enrolled: Iterable[Statement], links: Sequence[Link], facts: Facts, counts: _Counting
) -> dict[str, Person]:
    best: dict[str, tuple[int, Statement]] = {}
    for st in enrolled:
        if not counts(st):
            continue
        rank = RANK_ROOT if as_member(st).by in facts.roots else RANK_ADMIN
        other = best.get(as_member(st).id)
        if other is None or _better(rank, st, *other):
            best[as_member(st).id] = (rank, st)
    people = {
        member: _person(
            st, rank, "admin" if member in facts.admin_ids | facts.root_ids else as_member(st).role
        )
        for member, (rank, st) in best.items()
    }
    # Links stand in the order of their depth, so a predecessor is known before its successor.
    for link in links:
        parent = people.get(link.parent)
        if parent is None:
            continue
        child = people.get(link.child)
        if child is not None and child.rank != RANK_SUCCESSOR:
            continue
        if child is not None and not _later(link.statement, child):
            continue
        role = min("writer", as_member(link.statement).role, parent.role, key=lambda name: _ROLES[name])
        people[link.child] = _person(link.statement, RANK_SUCCESSOR, role, link.parent)
    return dict(sorted(people.items()))


def _better(rank: int, st: Statement, other_rank: int, other: Statement) -> bool:
    mine, theirs = (as_member(st).since, st.hash), (as_member(other).since, other.hash)
    return rank < other_rank or (rank == other_rank and mine > theirs)


def _later(st: Statement, child: Person) -> bool:
    return (as_member(st).since, st.hash) > (child.since, child.hash)


def _person(st: Statement, rank: int, role: Role, successor_of: str | None = None) -> Person:
    body = as_member(st)
    anchor = bytes.fromhex(body.anchor) if body.anchor and rank != RANK_SUCCESSOR else None
    return Person(
        id=body.id,
        sign=bytes.fromhex(body.sign),
        box=bytes.fromhex(body.box),
        anchor=anchor,
        role=role,
        label=body.label,
        by=id_of_hex(body.by),
        rank=rank,
        since=body.since,
        hash=st.hash,
        successor_of=successor_of,
    )


def _keys_of(
    statements: Iterable[Statement], facts: Facts, people: Mapping[str, Person]
) -> dict[str, tuple[bytes, ...]]:
    # Two keys can share an id of 64 bits when somebody wants them to; a value may be signed by either.
    keys: defaultdict[str, set[str]] = defaultdict(set)
    for root in facts.roots:
        keys[id_of_hex(root)].add(root)
    for st in statements:
        if isinstance(st.body, Member):
            keys[st.body.id].add(st.body.sign)
    found: dict[str, tuple[bytes, ...]] = {}
    for member, texts in keys.items():
        person = people.get(member)
        first = person.sign.hex() if person else min(texts)
        found[member] = tuple(bytes.fromhex(text) for text in (first, *sorted(texts - {first})))
    return found


def _sealing(epochs: Iterable[Epoch], asked: frozenset[str]) -> tuple[tuple[int, str] | None, frozenset[str]]:
    """The greatest (epoch, EK id) of which every epoch that names it knows every revocation, and who was given it."""
    naming: defaultdict[str, list[Epoch]] = defaultdict(list)
    for body in epochs:
        naming[body.ek].append(body)
    fit = [
        (body.epoch, body.ek)
        for bodies in naming.values()
        if all(asked.issubset(body.not_) for body in bodies)
        for body in bodies
    ]
    if not fit:
        return None, frozenset()
    seals = max(fit)
    given = (body.for_ for body in naming[seals[1]] if body.epoch == seals[0])
    return seals, frozenset(member for ids in given for member in ids)


def _by_id(eks: Iterable[EpochKey], epochs: Iterable[Epoch]) -> dict[str, EpochKey]:
    # The epoch number of a key is part of what it opens, and `eks` is not signed: a signed number goes first.
    signed = {(body.epoch, body.ek) for body in epochs}
    found: dict[str, EpochKey] = {}
    for ek in sorted(eks, key=lambda ek: ((ek.epoch, ek.id) not in signed, ek.epoch)):
        found.setdefault(ek.id, ek)
    return found


def _next_epoch(epochs: Iterable[Epoch], eks: Iterable[EpochKey]) -> int:
    # Unsigned numbers count only in the lower half, or any writer could use up the numbers for everybody.
    unsigned = (ek.epoch for ek in eks if ek.epoch < 1 << 31)
    return 1 + max([0, *(body.epoch for body in epochs), *unsigned])


def _reason(sealing: EpochKey | None, seals: tuple[int, str] | None, plain: bool) -> str:
    if sealing is not None:
        return ""
    if plain:
        return "this memory is not encrypted"
    if seals is None:
        return "no key may seal since members were revoked: an admin must unlock and make a new one"
    return f"this device was not given the key {seals[1]} that seals now: an admin must unlock and give it"
