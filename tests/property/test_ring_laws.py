"""Laws of the key ring: joins, order independence, and that no key of a revoked member ever seals.

Two worlds: the `Attacker` combines arbitrary signed statements (any key may be stolen); in `Village`
honest replicas act concurrently on partial knowledge, and every key that a revoked member can obtain is
recorded."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import permutations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipfsmem.errors import IpfsmemError, MembershipError, OpenError
from ipfsmem.ring.authority import names_of
from ipfsmem.ring.keyring import Ring, parse_keyring
from ipfsmem.ring.operations import add_successor, enrol, give_key, revoke, rotate
from tests.support.effort import cases
from tests.support.ring_lab import (
    RECOVERY,
    ROOT,
    VAULT,
    Attacker,
    ek,
    fixed_box,
    hlc,
    new_ring,
    open_slots,
    party,
)

PEOPLE = [party(f"p{n}") for n in range(6)]
#: Few people with many statements each, so that they interact.
ATTACKER = Attacker(seed=1, size=160)
chosen = st.tuples(
    st.sets(st.integers(0, len(ATTACKER.heap) - 1), max_size=18),
    st.sets(st.integers(0, 13), max_size=8),
    st.integers(1, 3),
    st.sets(st.integers(0, 5), max_size=3),
)
Chosen = tuple[set[int], set[int], int, set[int]]


def _ring(some: Chosen) -> Ring:
    """A ring of some of the statements; the first 14 give others their rights."""
    return ATTACKER.ring(sorted(some[0] | some[1]), some[2], sorted(some[3]))


@settings(deadline=None, max_examples=cases(60, 1000))
@given(chosen, chosen)
def test_join_is_commutative_and_idempotent_for_any_statements(a: Chosen, b: Chosen) -> None:
    x, y = _ring(a), _ring(b)
    both = x.join(y)
    assert both == y.join(x)
    assert both.dump() == y.join(x).dump()
    assert both.view == y.join(x).view
    assert both.join(x) is both
    assert both.join(y) is both
    assert x.join(x) is x
    assert Ring.restore(both.dump()).view == both.view


@settings(deadline=None, max_examples=cases(60, 5000))
@given(chosen, chosen, chosen)
def test_join_is_associative(a: Chosen, b: Chosen, c: Chosen) -> None:
    x, y, z = (_ring(part) for part in (a, b, c))
    left, right = x.join(y).join(z), x.join(y.join(z))
    assert left == right and left.spare == right.spare
    assert x.join(z).join(y) == left


@pytest.mark.parametrize("seed", range(4))
def test_join_is_associative_for_other_heaps(seed: int) -> None:
    """Thousands of random triples of rings out of other heaps of statements, grouped both ways."""
    attacker, random = Attacker(seed=100 + seed, size=120), Random(seed)

    def some() -> Ring:
        said = {*random.sample(range(len(attacker.heap)), random.randint(0, 30))}
        rights = {*random.sample(range(14), random.randint(0, 12))}
        keys = random.sample(range(6), 2)
        return attacker.ring(sorted(said | rights), random.choice([1, 1, 2, 3]), keys)

    for n in range(cases(100, 20_000)):
        x, y, z = some(), some(), some()
        left = x.join(y).join(z)
        assert left == x.join(y.join(z)), f"triple {n}"
        assert left.join(y) is left and x.join(y) == y.join(x), f"triple {n}"


@settings(deadline=None, max_examples=cases(40, 500))
@given(chosen, st.randoms(use_true_random=False))
def test_evaluation_does_not_depend_on_the_order(a: Chosen, random: Random) -> None:
    ring = _ring(a)
    mixed = list(ring.statements)
    random.shuffle(mixed)
    assert Ring(ring.vault, mixed, ring.keys).view == ring.view


@settings(deadline=None, max_examples=cases(60, 1000))
@given(chosen, chosen)
def test_rights_only_grow(a: Chosen, b: Chosen) -> None:
    x = _ring(a)
    both = x.join(_ring(b))
    # What a root revoked stays revoked, and its key stays known.
    assert both.view.rights.let_stand.keys() >= x.view.rights.let_stand.keys()
    assert both.view.out >= x.view.rights.let_stand.keys()
    assert all(one in both.view.keys_of for one in x.view.rights.let_stand)
    assert x.view.rights.root_ids <= both.view.rights.root_ids
    # Whom a root enrolled has a key for ever.
    roots = {root.hex() for root in x.view.roots}
    for said in x.statements:
        if said.body.t == "member" and said.body.by in roots and said.body.heir_of is None:
            assert bytes.fromhex(said.body.sign) in both.view.keys_of[said.body.id]


@settings(deadline=None, max_examples=cases(60, 1000))
@given(chosen)
def test_member_gains_no_rank_by_its_own_statement(a: Chosen) -> None:
    ring = _ring(a)
    view = ring.view
    for person in view.members.values():
        if person.role == "admin":
            assert person.id in view.rights.admin_ids | view.rights.root_ids
        if person.rank == 2:
            family = view.members[person.family]
            assert family.family == family.id and family.rank != 2
            assert person.box == family.box and person.anchor is None
            assert not (family.role == "reader" and person.role != "reader")
            assert person.owner == family.owner
    assert not view.revoked & view.rights.root_ids
    assert not view.must_exclude & view.rights.root_ids
    assert not view.revoked & view.members.keys()
    assert not view.out & view.members.keys()
    stranger = ATTACKER.stranger.key
    assert all(said.body.by != stranger for said in ring.statements)
    if view.sealing is not None:
        assert not view.holders & view.must_exclude
        assert view.rights.root_ids <= view.holders


class Village:
    """Replicas that act concurrently, each on its own ring; every published keyring is public."""

    def __init__(self) -> None:
        self.admins = [party("admin one"), party("admin two")]
        self.devices = [party(f"device {n}") for n in range(3)]
        self.spare = [party(f"spare {n}") for n in range(3)]
        ring = new_ring(*self.devices[:2])
        for one in self.admins:
            ring = enrol(ring, ROOT.signer, one.device, "admin", since=hlc(9), box=fixed_box)
        # The wallet is unlocked on two machines: two replicas with the same root key.
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
            elif what in ("revoke", "revoke all"):
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
                    cascade=what != "revoke",
                )
            elif what == "unlock":
                ring = give_key(ring, owner.signer, ek(self.fresh()), box=fixed_box)
            elif what == "succeed":
                new = party(f"successor {self.fresh()}", box_of=owner)
                ring = add_successor(ring, owner.signer, new.signer, owner.id, since=hlc(self.count))
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
            return mine.join(keyring.unlock(secret, mine.keys))
        except OpenError:
            return mine.join_open_part(keyring)

    def known_to(self, secret: bytes) -> dict[bytes, None]:
        """Return every epoch key that a holder of this box key can obtain from everything published."""
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
                shown = keyring.slot_keys([secret])
                try:
                    shown += keyring.unlock(secret, keys.values()).keys
                except OpenError:
                    pass
                for key in shown:
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
            if gone not in self.boxes:
                continue
            assert key.key not in self.known_to(self.boxes[gone]), (
                f"{gone} was revoked and holds the key that seals"
            )


actions = st.lists(
    st.tuples(
        st.integers(0, 6),
        st.sampled_from(
            ["pull", "pull", "pull", "enrol", "rotate", "revoke", "revoke", "revoke all", "unlock", "succeed"]
        ),
        st.integers(0, 30),
    ),
    min_size=4,
    max_size=22,
)


@settings(deadline=None, max_examples=cases(20, 300))
@given(actions)
def test_key_of_a_revoked_member_never_seals(plan: list[tuple[int, str, int]]) -> None:
    village = Village()
    for who, what, other in plan:
        village.act(who, what, other)
    # However the rings meet, one ring comes out, it obeys the rule, and an admin's unlock always brings a key.
    rings = [village.rings[n] for n in (0, 2, 4, 5)]
    joined = [_fold(order) for order in list(permutations(rings))[::5]]
    assert all(one == joined[0] for one in joined)
    final = open_slots(joined[0], ROOT.box_secret)
    village.check(final)
    unlocked = give_key(final, ROOT.signer, ek(village.fresh()), box=fixed_box)
    village.published.append(unlocked.serialise())
    village.check(unlocked)
    for member, person in unlocked.view.members.items():
        if person.family in unlocked.view.must_exclude:
            continue
        ring = parse_keyring(unlocked.serialise()).unlock(village.boxes[member]).ring()
        assert ring == unlocked, person.label
        assert ring.serialise() == unlocked.serialise()
    # Who is out only because nothing stands of the admin that let it in has no key either, and nobody loses the name of one
    # that a root still names.
    whole = give_key(
        open_slots(_fold([unlocked, *village.rings]), ROOT.box_secret),
        ROOT.signer,
        ek(village.fresh()),
        box=fixed_box,
    )
    village.published.append(whole.serialise())
    key = whole.view.sealing
    assert key is not None
    for one in village.boxes.keys() - whole.view.members.keys():
        assert key.key not in village.known_to(village.boxes[one]), one
    for ring in village.rings:
        by_roots = [st for st in ring.statements if st.body.by in (ROOT.key, RECOVERY.key)]
        assert names_of(by_roots) <= whole.view.names


def _fold(rings: Iterable[Ring]) -> Ring:
    first, *rest = rings
    for other in rest:
        first = first.join(other)
    return first


@settings(deadline=None, max_examples=cases(20, 300))
@given(st.binary(max_size=40), st.integers(0, 4000), st.integers(1, 255))
def test_damaged_key_ring_is_refused_with_our_error(noise: bytes, at: int, flip: int) -> None:
    data = bytearray(new_ring(PEOPLE[0]).serialise())
    data[at % len(data)] ^= flip
    for bad in (bytes(data), bytes(data) + noise + b"x", noise):
        try:
            ring = PEOPLE[0].opens(bad)
        except IpfsmemError:
            continue
        raise AssertionError(f"accepted: {ring}")
