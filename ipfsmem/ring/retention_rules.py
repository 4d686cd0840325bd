"""Decide which statements a ring keeps, and who may make them (format section 4, "What a ring drops").

A ring keeps every statement that is or may become valid. It drops statements that are by unknown signers, invalidated
by a root's revoke, or superseded by a later epoch for everyone, so that they cannot fill the ring. A drop is
permanent, and nothing is dropped to make room, so joins of rings are commutative.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from ipfsmem.errors import FormatError
from ipfsmem.ring.statements import Epoch, Genesis, Member, Revoke, Statement, id_of_hex

#: Maximum number of successors per enrolment; all are members in addition to the enrolled id.
MAX_SUCCESSORS: Final = 8


class Rights(msgspec.Struct, frozen=True):
    """Rights to make statements: the root keys and the keys that a root enrolled as admin (hex), and the ids of both.

    `let_stand`: for each id that roots revoked, the hashes of its statements that all of these revokes keep.
    """

    roots: tuple[str, ...]
    root_ids: frozenset[str]
    admins: frozenset[str]
    admin_ids: frozenset[str]
    let_stand: Mapping[str, frozenset[str]]

    def allows(self, st: Statement) -> bool:
        """Tell whether the signer may make this statement: a root, or an admin, whose statements a revoke may limit."""
        by = st.body.by
        if by in self.roots:
            return True
        listed = self.let_stand.get(id_of_hex(by))
        return by in self.admins if listed is None else st.hash in listed

    def all_statements_ended_of_one(self, admins: Iterable[str]) -> bool:
        """Tell whether roots revoked one of these ids and kept none of its statements. No later statement changes
        that."""
        return any(one in self.let_stand and not self.let_stand[one] for one in admins)


def rights_of(statements: Iterable[Statement]) -> Rights:
    """Return the rights that a set of statements grants. If one vault has several genesis statements, all their roots
    count.

    Raises FormatError without a genesis statement, and for those of two vaults.
    """
    pool = list(statements)
    genesis = [st.body for st in pool if isinstance(st.body, Genesis)]
    if not genesis:
        raise FormatError("a key ring has no genesis statement")
    first = genesis[0].roots[0]
    if any(body.roots[0] != first for body in genesis):
        raise FormatError("a key ring has genesis statements of two vaults")
    roots = (first, *sorted({root for body in genesis for root in body.roots} - {first}))
    root_ids = frozenset(map(id_of_hex, roots))
    admins = frozenset(
        st.body.sign
        for st in pool
        if isinstance(st.body, Member) and st.body.role == "admin" and st.body.by in roots
    ) - frozenset(roots)
    stands: dict[str, frozenset[str]] = {}
    for st in pool:
        body = st.body
        if isinstance(body, Revoke) and body.by in roots and body.id not in root_ids:
            stands[body.id] = stands.get(body.id, frozenset(body.keep)) & frozenset(body.keep)
    return Rights(roots, root_ids, admins, frozenset(map(id_of_hex, admins)), stands)


def kept_statements(statements: Iterable[Statement]) -> tuple[Statement, ...]:
    """Return the statements that a ring keeps, sorted by hash, by rules (a) to (h) of the format.

    Raises FormatError without a genesis statement. Statements that may become valid are kept.
    """
    pool = {st.hash: st for st in statements}
    rights = rights_of(pool.values())
    kept: dict[str, Statement] = {}
    claims: list[Statement] = []
    epochs: list[Statement] = []
    last_words: defaultdict[str, list[Statement]] = defaultdict(list)
    for st in pool.values():
        body = st.body
        match body:
            case Genesis():
                kept[st.hash] = st
            case Epoch():
                if (
                    rights.allows(st)
                    and _is_consistent(body)
                    and not rights.all_statements_ended_of_one(body.of)
                ):
                    epochs.append(st)
            case Revoke():
                if body.by in rights.roots:
                    last_words[body.sign].append(st)
                elif body.id not in rights.root_ids and rights.allows(st):
                    kept[st.hash] = st
            case Member(heir_of=None):
                if _may_enrol(st, body, rights):
                    kept[st.hash] = st
            case Member():
                claims.append(st)
    successors = _successors(claims, kept, rights)
    revokes = (st for same_signer in last_words.values() for st in _without_repeated_revokes(same_signer))
    for st in (*successors, *revokes, *_without_superseded_epochs(epochs, rights)):
        kept[st.hash] = st
    return tuple(kept[one] for one in sorted(kept))


def _may_enrol(st: Statement, body: Member, rights: Rights) -> bool:
    if body.sign in rights.roots or body.id in rights.root_ids:
        return body.by == body.sign and body.role == "admin"
    if body.id in rights.let_stand:
        return False
    return body.by in rights.roots if body.role == "admin" else rights.allows(st)


def _successors(
    claims: Iterable[Statement], enrolments: Mapping[str, Statement], rights: Rights
) -> list[Statement]:
    """Return the successors signed by an enrolled key under a kept enrolment of the same key, up to MAX_SUCCESSORS
    each."""
    under: defaultdict[str, list[Statement]] = defaultdict(list)
    for st in claims:
        body = as_member(st)
        base = enrolments.get(body.under or "")
        if base is None or body.by in rights.roots or not isinstance(base.body, Member):
            continue
        # Successors are dropped only together with their enrolment: if one could be dropped alone, another would take
        # its place, depending on the order of joins.
        if base.body.sign == body.by:
            under[base.hash].append(st)
    return [st for each in under.values() for st in sorted(each, key=lambda st: st.hash)[:MAX_SUCCESSORS]]


def _without_repeated_revokes(revokes: list[Statement]) -> list[Statement]:
    """Return roots' revokes of one key without those that another makes redundant (rule h)."""
    bodies = [as_revoke(st) for st in revokes]
    return [
        st
        for st, body in zip(revokes, bodies, strict=True)
        if not any(_makes_redundant(other, body) for other in bodies)
    ]


def _makes_redundant(body: Revoke, other: Revoke) -> bool:
    """Tell whether `body` keeps fewer statements than `other` and states everything else that `other` states (rule
    h)."""
    return (
        set(body.keep) < set(other.keep)
        and all(count <= other.n.get(one, 0) for one, count in body.n.items())
        and set(other.heirs) <= set(body.heirs)
        and other.anchor in (None, body.anchor)
        and other.person == body.person
        and body.rank <= other.rank
    )


def _is_consistent(body: Epoch) -> bool:
    gone = body.gone
    return gone.isdisjoint(body.for_) and id_of_hex(body.by) not in gone


class _EpochEffect(msgspec.Struct, frozen=True):
    """The effect of an epoch statement.

    `key`: (epoch, key id). `out`: ids removed permanently. `while_`: (admin, id) of removals by admins. `given`:
    families that receive the key. `settled`: `given` and all removed ids. `old`: ids of the older keys. `named`:
    `old` and the key. `rests_on`: admins without whose statements it is invalid.
    """

    key: tuple[int, str]
    out: frozenset[str]
    while_: frozenset[tuple[str, str]]
    given: frozenset[str]
    settled: frozenset[str]
    old: frozenset[str]
    named: frozenset[str]
    rests_on: frozenset[str]

    @classmethod
    def of(cls, body: Epoch, rights: Rights) -> _EpochEffect:
        served, old = frozenset(body.for_), frozenset(body.old)
        removals = frozenset((by, one) for by, ids in body.while_.items() for one in ids)
        signer = () if body.by in rights.roots else (id_of_hex(body.by),)
        return cls(
            (body.epoch, body.ek),
            frozenset(body.not_),
            removals,
            served,
            body.gone | served,
            old,
            old | {body.ek},
            frozenset((*body.of, *signer)),
        )

    def supersedes(self, other: _EpochEffect) -> bool:
        """Tell whether this epoch makes `other` superfluous.

        It must give the same or a greater key to all recipients of `other` that are not removed, list all its
        removals (at least as permanently, or by an admin that is removed permanently), name all its keys, and depend
        on no admin on which `other` does not depend: otherwise it could become invalid while `other` would not.
        """
        return (
            self.key >= other.key
            and self.rests_on <= other.rests_on
            and other.out <= self.out
            and all(one in self.out or admin in self.out for admin, one in other.while_ - self.while_)
            and other.given <= self.settled
            and other.old <= self.old
            and other.key[1] in self.named
        )


def _without_superseded_epochs(epochs: Iterable[Statement], rights: Rights) -> list[Statement]:
    reach = {st.hash: _EpochEffect.of(as_epoch(st), rights) for st in epochs}
    by_roots = [st for st in epochs if st.body.by in rights.roots]

    def is_kept(st: Statement) -> bool:
        mine = reach[st.hash]
        for other in by_roots:
            theirs = reach[other.hash]
            if other is st or not theirs.supersedes(mine):
                continue
            # If two supersede each other, the one with the lesser hash is kept.
            if other.hash < st.hash or st.body.by not in rights.roots or not mine.supersedes(theirs):
                return False
        return True

    return [st for st in epochs if is_kept(st)]


def as_member(st: Statement) -> Member:
    assert isinstance(st.body, Member)
    return st.body


def as_epoch(st: Statement) -> Epoch:
    assert isinstance(st.body, Epoch)
    return st.body


def as_revoke(st: Statement) -> Revoke:
    assert isinstance(st.body, Revoke)
    return st.body
