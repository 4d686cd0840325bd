"""Retention rules: which statements a ring keeps, and who may make them (format section 4, "What a ring drops").

A ring keeps every statement that is or may become valid. It drops those that are by strangers, ended by a
root's revoke, or superseded by a later epoch for everyone, so that they cannot fill it. A drop is final, and
nothing is dropped to make room, so rings join in any order. Meaning: `authority`; size limits: `keyring`.
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
    """Rights to make statements: the root keys and the keys that a root enrolled as admin (hex), the ids of both,
    and for each id that roots revoked the hashes of its statements that all of these revokes let stand."""

    roots: tuple[str, ...]
    root_ids: frozenset[str]
    admins: frozenset[str]
    admin_ids: frozenset[str]
    let_stand: Mapping[str, frozenset[str]]

    def allows(self, st: Statement) -> bool:
        """Tell whether the signer may enrol, revoke and make epochs, as far as this statement requires."""
        by = st.body.by
        if by in self.roots:
            return True
        listed = self.let_stand.get(id_of_hex(by))
        return by in self.admins if listed is None else st.hash in listed

    def nothing_stands_of_one(self, admins: Iterable[str]) -> bool:
        """Tell whether roots revoked one of these ids with nothing left standing. No later statement changes that."""
        return any(one in self.let_stand and not self.let_stand[one] for one in admins)


def rights_of(statements: Iterable[Statement]) -> Rights:
    """Return the rights granted by a set of statements. Several genesis statements of one vault unite their roots.

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

    Raises FormatError without a genesis statement. Statements that are merely not valid now are kept.
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
                if rights.allows(st) and _is_consistent(body) and not rights.nothing_stands_of_one(body.of):
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
    for st in (*successors, *revokes, *_without_outdone_epochs(epochs, rights)):
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
    """Return the successors signed by an enrolled key under a kept enrolment of its own, the least hashes of each."""
    under: defaultdict[str, list[Statement]] = defaultdict(list)
    for st in claims:
        body = as_member(st)
        base = enrolments.get(body.under or "")
        if base is None or body.by in rights.roots or not isinstance(base.body, Member):
            continue
        # They go with their enrolment, all together: if one could go alone, its slot would be free again, and
        # the order of joins would decide who has it.
        if base.body.sign == body.by:
            under[base.hash].append(st)
    return [st for each in under.values() for st in sorted(each, key=lambda st: st.hash)[:MAX_SUCCESSORS]]


def _without_repeated_revokes(revokes: list[Statement]) -> list[Statement]:
    """Return roots' revokes of one key without those made redundant by another (rule h)."""
    bodies = [as_revoke(st) for st in revokes]
    return [
        st
        for st, body in zip(revokes, bodies, strict=True)
        if not any(_makes_needless(other, body) for other in bodies)
    ]


def _makes_needless(body: Revoke, other: Revoke) -> bool:
    """Tell whether `body` lets less stand than `other` and states everything else that `other` states (rule h)."""
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


class _Reach(msgspec.Struct, frozen=True):
    """The effect of an epoch statement: its key, whom it knew to be removed and by whom, whom it serves,
    which keys it names, and the admins whose statements it depends on."""

    key: tuple[int, str]
    out: frozenset[str]
    while_: frozenset[tuple[str, str]]
    given: frozenset[str]
    settled: frozenset[str]
    old: frozenset[str]
    named: frozenset[str]
    rests_on: frozenset[str]

    @classmethod
    def of(cls, body: Epoch, rights: Rights) -> _Reach:
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

    def outdoes(self, other: _Reach) -> bool:
        """Tell whether this supersedes `other`.

        It gives the same or a greater key to all whom `other` serves, knows all its revocations (as lasting as
        there, or by an admin removed for good), names all its keys, and depends only on admins on whom `other`
        depends: else it could end one day, and its effect with it.
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


def _without_outdone_epochs(epochs: Iterable[Statement], rights: Rights) -> list[Statement]:
    reach = {st.hash: _Reach.of(as_epoch(st), rights) for st in epochs}
    by_roots = [st for st in epochs if st.body.by in rights.roots]

    def stays(st: Statement) -> bool:
        mine = reach[st.hash]
        for other in by_roots:
            theirs = reach[other.hash]
            if other is st or not theirs.outdoes(mine):
                continue
            # Of two that supersede each other the least hash stays.
            if other.hash < st.hash or st.body.by not in rights.roots or not mine.outdoes(theirs):
                return False
        return True

    return [st for st in epochs if stays(st)]


def as_member(st: Statement) -> Member:
    assert isinstance(st.body, Member)
    return st.body


def as_epoch(st: Statement) -> Epoch:
    assert isinstance(st.body, Epoch)
    return st.body


def as_revoke(st: Statement) -> Revoke:
    assert isinstance(st.body, Revoke)
    return st.body
