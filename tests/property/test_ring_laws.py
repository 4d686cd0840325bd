"""Laws of the key ring: joins, order independence, and that no key of a revoked member ever seals.

Two worlds: `statements` throws arbitrary signed statements together (nobody behaves), `Village` lets honest replicas
act concurrently on partial knowledge and keeps account of every key that a revoked member can come by.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import permutations

from hypothesis import given, settings
from hypothesis import strategies as st

from ipfsmem.errors import IpfsmemError, MembershipError, OpenError
from ipfsmem.seal.ring import Ring, parse_keyring
from ipfsmem.seal.ring_ops import enrol, give_key, revoke, rotate, successor
from ipfsmem.seal.statements import Epoch, Statement, make
from tests.effort import cases
from tests.ring_lab import (
    RECOVERY,
    ROOT,
    VAULT,
    Party,
    ek,
    fixed_box,
    hlc,
    new_ring,
    party,
    says_member,
    says_revoked,
)

BASE = new_ring().statements
PEOPLE = [party(f"p{n}") for n in range(6)]
SIGNERS = [ROOT, RECOVERY, *PEOPLE]


def _epoch(by: Party, number: int, name: str, given: Iterable[Party], gone: Iterable[Party]) -> Statement:
    ids = tuple(sorted({ROOT.id, RECOVERY.id, *(one.id for one in given)}))
    return make(
        by.signer,
        Epoch(
            by=by.key, ek=name, epoch=number, for_=ids, not_=tuple(sorted(one.id for one in gone)), slots=()
        ),
        VAULT,
    )


people = st.sampled_from(PEOPLE)
few_people = st.lists(people, max_size=3, unique=True)
member_statements = st.builds(
    lambda by, who, role, own, since: says_member(
        by, who, role, since=since, box=by.device.box if own else None
    ),
    st.sampled_from(SIGNERS),
    people,
    st.sampled_from(["admin", "writer", "reader"]),
    st.booleans(),
    st.integers(0, 2),
)
keeps = st.lists(st.sampled_from([one.hash for one in BASE]), max_size=1).map(tuple)
revokes = st.builds(
    lambda by, who, keep, n: says_revoked(by, who.id, keep=keep, n=n),
    st.sampled_from(SIGNERS),
    st.sampled_from(SIGNERS),
    keeps,
    st.integers(0, 1),
)
epochs = st.builds(
    _epoch,
    st.sampled_from(SIGNERS),
    st.integers(1, 3),
    st.sampled_from(["00" * 8, "11" * 8]),
    few_people,
    few_people,
)
wild_sets = st.lists(st.one_of(member_statements, revokes, epochs), max_size=9)


def _ring(statements: Iterable[Statement]) -> Ring:
    return Ring(VAULT, [*BASE, *statements], ())


@settings(deadline=None, max_examples=cases(50, 750))
@given(wild_sets, wild_sets)
def test_join_is_commutative_and_idempotent_whatever_was_said(a: list[Statement], b: list[Statement]) -> None:
    x, y = _ring(a), _ring(b)
    both = x.join(y)
    assert both == y.join(x)
    assert both.dump() == y.join(x).dump()
    assert both.view == y.join(x).view
    assert both.join(x) is both
    assert both.join(y) is both
    assert x.join(x) is x


@settings(deadline=None, max_examples=cases(50, 750))
@given(wild_sets, wild_sets, wild_sets)
def test_join_is_associative(a: list[Statement], b: list[Statement], c: list[Statement]) -> None:
    x, y, z = (_ring(part) for part in (a, b, c))
    assert x.join(y).join(z) == x.join(y.join(z))


@settings(deadline=None, max_examples=cases(30, 500))
@given(wild_sets, st.randoms(use_true_random=False))
def test_evaluation_does_not_depend_on_the_order(a: list[Statement], random: object) -> None:
    mixed = list(a)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    assert _ring(a).view == _ring(mixed).view


@settings(deadline=None, max_examples=cases(30, 500))
@given(wild_sets, wild_sets)
def test_rights_that_only_grow(a: list[Statement], b: list[Statement]) -> None:
    x = _ring(a)
    both = x.join(_ring(b))
    assert both.view.facts.admin_ids >= x.view.facts.admin_ids
    # What a root revoked stays revoked, and every key that an enrolment brought stays known.
    by_root = {
        one.body.id
        for one in x.statements
        if one.body.t == "revoke" and one.body.by in (ROOT.key, RECOVERY.key)
    }
    assert both.view.revoked >= by_root
    enrolled = {
        (one.body.id, bytes.fromhex(one.body.sign))
        for one in x.statements
        if one.body.t == "member" and one.body.by in (ROOT.key, RECOVERY.key)
    }
    assert all(key in both.view.keys_of[member] for member, key in enrolled)


@settings(deadline=None, max_examples=cases(30, 500))
@given(wild_sets)
def test_nobody_rises_by_its_own_word(a: list[Statement]) -> None:
    view = _ring(a).view
    by_roots = {one.id: one for one in view.people.values() if one.rank == 0}
    for person in view.people.values():
        if person.role == "admin":
            assert person.id in view.facts.admin_ids | view.facts.root_ids
        if person.rank == 2:
            parent = view.people[person.successor_of or ""]
            assert not (parent.role == "reader" and person.role != "reader") or parent.rank == 2
    assert {ROOT.id, RECOVERY.id} <= by_roots.keys()
    assert not view.revoked & view.facts.root_ids


class Village:
    """Replicas that act at the same time, each on the ring that it has; every published keyring is public."""

    def __init__(self) -> None:
        self.admins = [party("admin one"), party("admin two")]
        self.devices = [party(f"device {n}") for n in range(3)]
        self.spare = [party(f"spare {n}") for n in range(3)]
        ring = new_ring(*self.devices[:2])
        for one in self.admins:
            ring = enrol(ring, ROOT.signer, one.device, "admin", since=hlc(9), box=fixed_box)
        # The wallet is unlocked on two machines at once: two replicas with the same root key.
        self.owners = [ROOT, ROOT, *self.admins, *self.devices]
        self.rings = [ring] * len(self.owners)
        self.published: list[bytes] = [ring.serialise()]
        self.boxes = {
            one.id: one.box_secret for one in [ROOT, RECOVERY, *self.admins, *self.devices, *self.spare]
        }
        self.count = 0
        self.loot: dict[bytes, tuple[int, dict[bytes, None]]] = {}

    def fresh(self) -> int:
        self.count += 1
        return self.count

    def act(self, who: int, what: str, other: int) -> None:
        owner, ring = self.owners[who], self.rings[who]
        try:
            if what == "pull":
                ring = self.pulled(who, other)
            elif what == "enrol":
                pool = [*self.devices, *self.spare]
                new = pool[other % len(pool)]
                ring = enrol(ring, owner.signer, new.device, "writer", since=hlc(self.fresh()), box=fixed_box)
            elif what == "rotate":
                ring = rotate(ring, owner.signer, ek(self.fresh()), box=fixed_box)
            elif what == "revoke":
                pool = sorted(ring.view.members)
                target = pool[other % len(pool)]
                ring = revoke(
                    ring,
                    owner.signer,
                    target,
                    at=hlc(self.fresh()),
                    counters={},
                    ek=ek(self.count),
                    box=fixed_box,
                )
            elif what == "unlock":
                ring = give_key(ring, owner.signer, ek(self.fresh()), box=fixed_box)
            elif what == "succeed":
                new = party(f"successor {self.fresh()}", box_of=owner)
                ring = successor(ring, owner.signer, new.device.sign, since=hlc(self.count))
                self.boxes[new.id] = owner.box_secret
        except MembershipError:
            return
        self.rings[who] = ring
        if ring.view.sealing is not None and ring.view.may_write(owner.id):
            data = ring.serialise()
            if data not in self.published:
                self.published.append(data)
        self.check(ring)

    def pulled(self, who: int, other: int) -> Ring:
        keyring = parse_keyring(self.published[-1 - other % min(len(self.published), 4)], VAULT)
        mine, secret = self.rings[who], self.owners[who].box_secret
        try:
            theirs = keyring.unlock(secret, mine.keys)
        except OpenError:
            theirs = keyring.public_ring()
        return mine.join(theirs).open_slots([secret])

    def known_to(self, secret: bytes) -> dict[bytes, None]:
        """Every epoch key that somebody with this box key can come by from all that was ever published."""
        seen, found = self.loot.get(secret, (0, {}))
        if seen == len(self.published):
            return found
        found = dict(found)
        keys = {}
        grew = True
        while grew:
            grew = False
            for data in self.published:
                keyring = parse_keyring(data)
                try:
                    ring = keyring.unlock(secret, keys.values())
                except OpenError:
                    ring = keyring.public_ring().open_slots([secret])
                for key in ring.keys:
                    if key.key not in found or (key.epoch, key.id) not in keys:
                        grew = True
                        found[key.key] = None
                        keys[key.epoch, key.id] = key
        self.loot[secret] = (len(self.published), found)
        return found

    def check(self, ring: Ring) -> None:
        key = ring.view.sealing
        if key is None:
            return
        for gone in ring.view.revoked:
            assert key.key not in self.known_to(self.boxes[gone]), (
                f"{gone} was revoked and holds the key that seals"
            )


actions = st.lists(
    st.tuples(
        st.integers(0, 6),
        st.sampled_from(["pull", "pull", "pull", "enrol", "rotate", "revoke", "revoke", "unlock", "succeed"]),
        st.integers(0, 30),
    ),
    min_size=4,
    max_size=22,
)


@settings(deadline=None, max_examples=cases(20, 300))
@given(actions)
def test_no_key_that_a_revoked_member_holds_ever_seals(plan: list[tuple[int, str, int]]) -> None:
    village = Village()
    for who, what, other in plan:
        village.act(who, what, other)
    # However the rings meet, one ring comes out, it obeys the rule, and an admin's unlock always brings a key.
    rings = [village.rings[n] for n in (0, 2, 4, 5)]
    joined = [_fold(order) for order in list(permutations(rings))[::5]]
    assert all(one == joined[0] for one in joined)
    final = joined[0].open_slots([ROOT.box_secret])
    village.check(final)
    unlocked = give_key(final, ROOT.signer, ek(village.fresh()), box=fixed_box)
    village.published.append(unlocked.serialise())
    village.check(unlocked)
    for member, person in unlocked.view.members.items():
        if member in unlocked.view.shut_out:
            continue
        ring = parse_keyring(unlocked.serialise()).unlock(village.boxes[member])
        assert ring == unlocked, person.label
        assert ring.serialise() == unlocked.serialise()


def _fold(rings: Iterable[Ring]) -> Ring:
    first, *rest = rings
    for other in rest:
        first = first.join(other)
    return first


@settings(deadline=None, max_examples=cases(20, 300))
@given(st.binary(max_size=40), st.integers(0, 4000), st.integers(1, 255))
def test_a_damaged_keyring_is_refused_with_our_error(noise: bytes, at: int, flip: int) -> None:
    data = bytearray(new_ring(PEOPLE[0]).serialise())
    data[at % len(data)] ^= flip
    for bad in (bytes(data), bytes(data) + noise + b"x", noise):
        try:
            ring = PEOPLE[0].opens(bad)
        except IpfsmemError:
            continue
        raise AssertionError(f"accepted: {ring}")
