"""What a key ring holds on to: the statements that count or may count one day, and the facts that only ever grow.

Format sections 4 and 8. A ring forgets nothing that was verified, but a stranger's noise, what can never count again
and what a later statement replaces for everybody must not fill it. Whatever is dropped here stays dropped whatever is
learned later, so that rings may be joined in any order. What the kept statements mean is decided in `authority`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from ipfsmem.errors import FormatError, LimitError
from ipfsmem.seal.statements import Epoch, Genesis, Member, Revoke, Statement, id_of_hex

MAX_STATEMENTS: Final = 512
MAX_REVOKED_BY_ONE: Final = 128
MAX_CHAIN: Final = 8


class Facts(msgspec.Struct, frozen=True):
    """What only ever grows with the set: the root keys and the keys that a root ever enrolled as admin (hex)."""

    roots: tuple[str, ...]
    root_ids: frozenset[str]
    admins: frozenset[str]
    admin_ids: frozenset[str]

    def may_administer(self, key: str) -> bool:
        """Whether the holder of this key may, or once might, enrol and revoke others."""
        return key in self.roots or key in self.admins


def facts_of(statements: Iterable[Statement]) -> Facts:
    """Roots and admins ever. Raises FormatError without a genesis; several of one vault unite their roots."""
    genesis = [st.body for st in statements if isinstance(st.body, Genesis)]
    if not genesis:
        raise FormatError("a key ring has no genesis statement")
    first = genesis[0].roots[0]
    if any(body.roots[0] != first for body in genesis):
        raise FormatError("a key ring has genesis statements of two vaults")
    others = {root for body in genesis for root in body.roots} - {first}
    roots = (first, *sorted(others))
    admins = frozenset(
        st.body.sign
        for st in statements
        if isinstance(st.body, Member) and st.body.role == "admin" and st.body.by in roots
    ) - frozenset(roots)
    return Facts(
        roots, frozenset(map(id_of_hex, roots)), admins, frozenset(id_of_hex(admin) for admin in admins)
    )


def keep(statements: Iterable[Statement]) -> tuple[Statement, ...]:
    """The statements that a ring keeps, sorted by hash; the rest can never count again, whatever is learned later.

    Dropped are: what its signer had no right to say, an epoch without the roots, or for somebody whom it calls revoked, or without an id that a root revoked,
    or outdone by a root's later epoch; a signer's second revoke of one id; a member's second successor. What merely
    does not count now is kept. Raises LimitError beyond the limits of format section 8.
    """
    pool = list({st.hash: st for st in statements}.values())
    facts = facts_of(pool)
    members = [st for st in pool if isinstance(st.body, Member)]
    enrolled, claims = split_members(members, facts)
    kept = [st for st in pool if isinstance(st.body, Genesis)]
    kept += enrolled
    revokes = _kept_revokes(pool, facts)
    kept += revokes
    # A revoke lists the statements that gave keys to signed values: a later successor must not push those out.
    listed = {one for st in revokes for one in as_revoke(st).keep}
    linked = {link.statement.hash for link in successor_links(enrolled, claims)}
    kept += [st for signed in claims.values() for st in signed if st.hash in linked or st.hash in listed]
    kept += _kept_epochs(pool, revokes, facts)
    if len(kept) > MAX_STATEMENTS:
        raise LimitError(f"a key ring holds at most {MAX_STATEMENTS} statements, this has {len(kept)}")
    return tuple(sorted(kept, key=lambda st: st.hash))


def split_members(
    members: Sequence[Statement], facts: Facts
) -> tuple[list[Statement], dict[str, list[Statement]]]:
    """Member statements by roots and admins, and the others by signer: claims to be a successor."""
    admin_boxes: defaultdict[str, set[str]] = defaultdict(set)
    for st in members:
        body = as_member(st)
        if body.by in facts.roots:
            admin_boxes[body.sign].add(body.box)
    enrolled: list[Statement] = []
    claims: defaultdict[str, list[Statement]] = defaultdict(list)
    for st in members:
        body = as_member(st)
        if body.by in facts.roots:
            enrolled.append(st)
        elif body.role == "admin" or body.id in facts.root_ids or body.sign == body.by:
            continue
        elif body.by in facts.admins and body.box not in admin_boxes[body.by]:
            enrolled.append(st)
        else:
            # An admin that signs for its own box key names its successor, like anybody else.
            claims[body.by].append(st)
    return enrolled, claims


class Link(msgspec.Struct, frozen=True):
    """A successor statement with the id that signed it."""

    parent: str
    child: str
    statement: Statement


def successor_links(enrolled: Sequence[Statement], claims: Mapping[str, list[Statement]]) -> list[Link]:
    """One successor for each key (the least hash), with its predecessor's box key, at most eight in a chain."""
    boxes: defaultdict[str, set[str]] = defaultdict(set)
    for st in enrolled:
        boxes[as_member(st).sign].add(as_member(st).box)
    frontier = dict(boxes)
    seen = set(boxes)
    links: list[Link] = []
    for _ in range(MAX_CHAIN):
        reached: defaultdict[str, set[str]] = defaultdict(set)
        for key, allowed in sorted(frontier.items()):
            fitting = [st for st in claims.get(key, ()) if as_member(st).box in allowed]
            if not fitting:
                continue
            chosen = min(fitting, key=lambda st: st.hash)
            body = as_member(chosen)
            links.append(Link(id_of_hex(key), body.id, chosen))
            if body.sign not in seen:
                reached[body.sign].add(body.box)
        if not reached:
            break
        seen |= reached.keys()
        frontier = dict(reached)
    return links


def _kept_revokes(pool: Iterable[Statement], facts: Facts) -> list[Statement]:
    least: dict[tuple[str, str], Statement] = {}
    targets: defaultdict[str, set[str]] = defaultdict(set)
    for st in pool:
        body = st.body
        if not isinstance(body, Revoke) or body.id in facts.root_ids or not facts.may_administer(body.by):
            continue
        targets[body.by].add(body.id)
        other = least.get((body.by, body.id))
        if other is None or st.hash < other.hash:
            least[body.by, body.id] = st
    for signer, ids in targets.items():
        if len(ids) > MAX_REVOKED_BY_ONE:
            raise LimitError(
                f"{signer} revoked {len(ids)} ids in one key ring, {MAX_REVOKED_BY_ONE} are allowed"
            )
    return list(least.values())


def _kept_epochs(pool: Iterable[Statement], revokes: Iterable[Statement], facts: Facts) -> list[Statement]:
    # Only what a root revoked is revoked for ever: an admin's revoke stops counting when a root makes its target an
    # admin, and what was dropped could not come back. An epoch that knows of a revoke that this ring lacks stays,
    # to say so.
    gone = {as_revoke(st).id for st in revokes if as_revoke(st).by in facts.roots}
    epochs = [
        st
        for st in pool
        if isinstance(st.body, Epoch)
        and facts.may_administer(st.body.by)
        and facts.root_ids.issubset(st.body.for_)
        and set(st.body.for_).isdisjoint(st.body.not_)
        and (gone.issubset(st.body.not_) or not gone.issuperset(st.body.not_))
    ]
    later = [_Reach.of(as_epoch(st)) for st in epochs if as_epoch(st).by in facts.roots]
    return [st for st in epochs if not _Reach.of(as_epoch(st)).outdone_by(later)]


class _Reach(NamedTuple):
    """How far an epoch statement goes: its key, whom it knew to be revoked, and whom it serves or knew revoked."""

    key: tuple[int, str]
    gone: frozenset[str]
    given: frozenset[str]
    settled: frozenset[str]

    @classmethod
    def of(cls, body: Epoch) -> _Reach:
        gone, given = frozenset(body.not_), frozenset(body.for_)
        return cls((body.epoch, body.ek), gone, given, gone | given)

    def outdone_by(self, others: Iterable[_Reach]) -> bool:
        """Whether one of them gives a greater key to all whom this one serves and knows every revocation that it knew."""
        return any(
            other.key > self.key and self.gone <= other.gone and self.given <= other.settled
            for other in others
        )


def as_member(st: Statement) -> Member:
    assert isinstance(st.body, Member)
    return st.body


def as_epoch(st: Statement) -> Epoch:
    assert isinstance(st.body, Epoch)
    return st.body


def as_revoke(st: Statement) -> Revoke:
    assert isinstance(st.body, Revoke)
    return st.body
