"""Step sequences that broke earlier drafts of the key ring, tested without commits or providers.

The numbers are those of traces.json. Traces 35, 37, 38, 42 and 46 need commits or providers: see
test_leak_traces.py. Trace 29: test_agreement_traces.py."""

from __future__ import annotations

import pytest

from ipfsmem.errors import MembershipError, OpenError
from ipfsmem.ring.keyring import Ring, parse_keyring
from ipfsmem.ring.operations import add_successor, create, give_key, revoke, rotate
from ipfsmem.seal.objects import epoch_key
from tests.support.ring_lab import (
    RECOVERY,
    RECOVERY_KEYS,
    ROOT,
    ROOT_KEYS,
    VAULT,
    Party,
    ek,
    enrolled,
    enrolment_of,
    fixed_box,
    hlc,
    new_ring,
    open_slots,
    party,
    says_heir,
    says_member,
    says_revoked,
    second_wallet,
)

LAPTOP, PHONE, TABLET = party("laptop"), party("phone"), party("tablet")
A, B, D = second_wallet("admin A"), second_wallet("admin B"), second_wallet("admin D")


def _revoke(ring: Ring, by: Party, who: Party, key: int, counter: int = 0) -> Ring:
    return revoke(ring, by.signer, who.id, at=hlc(6), counters={who.id: counter}, ek=ek(key), box=fixed_box)


def _with_admins(*devices: Party) -> Ring:
    ring = new_ring(*devices)
    for one in (A, B, D):
        ring = enrolled(ring, ROOT, one, "admin")
    return ring


def test_trace_20_concurrent_enrolments_and_rotations_are_joined() -> None:
    base = new_ring(LAPTOP)
    one, two = enrolled(base, ROOT, PHONE), enrolled(base, ROOT, TABLET)
    both = one.join(two)
    assert both == two.join(one)
    assert {PHONE.id, TABLET.id} <= both.view.members.keys()
    for device in (LAPTOP, PHONE, TABLET):
        assert device.opens(both.serialise()) == both

    first, second = (
        rotate(both, ROOT.signer, ek(1), box=fixed_box),
        rotate(both, ROOT.signer, ek(2), box=fixed_box),
    )
    assert first.view.seals is not None and second.view.seals is not None
    assert first.view.seals[0] == second.view.seals[0] == 2
    joined = first.join(second)
    assert joined == second.join(first)
    # Two keys of one epoch: new objects are sealed with the key with the greater ID; objects sealed with
    # either key still open.
    assert joined.view.seals == max(first.view.seals, second.view.seals)
    assert {first.view.seals[1], second.view.seals[1]} <= joined.view.eks.keys()
    assert joined.serialise() == TABLET.opens(joined.serialise()).serialise()


def test_trace_21_member_on_an_older_epoch_may_still_write() -> None:
    base = new_ring(LAPTOP, PHONE)
    old = base.view.sealing
    rotated = rotate(base, ROOT.signer, ek(1), box=fixed_box)
    # The phone published under the old ring and died: it is still a member, and its objects still open.
    joined = rotated.join(base)
    assert joined.view.may_write(PHONE.id)
    assert old is not None
    assert joined.view.eks[old.id] == (old,)
    assert joined.view.sealing == rotated.view.sealing


def test_trace_22_admins_that_revoke_each_other_change_nothing() -> None:
    ring = _with_admins(LAPTOP)
    with pytest.raises(MembershipError):
        _revoke(ring, A, B, 1)
    circle = [says_revoked(A, B), says_revoked(B, D), says_revoked(D, A), says_revoked(A, ROOT)]
    after = ring.add(circle)
    assert after.view.revoked == frozenset()
    assert all(after.view.may_administer(one.id) for one in (A, B, D, ROOT))
    assert after.view.sealing == ring.view.sealing
    # Nor can an admin promote a writer to admin.
    assert (
        Ring(VAULT, [*after.statements, says_member(A, LAPTOP, "admin")], ()).view.members[LAPTOP.id].role
        == "writer"
    )


def test_trace_23_revoke_is_permanent() -> None:
    ring = _with_admins(LAPTOP, PHONE)
    stolen = _revoke(ring, A, LAPTOP, 1)
    assert LAPTOP.id in stolen.view.revoked
    # A root that has seen the laptop's revocation keeps it in force when it revokes A.
    gone = _revoke(stolen, ROOT, A, 2)
    assert {A.id, LAPTOP.id} == gone.view.revoked == gone.join(stolen).view.revoked
    # If the root had not seen it, revoking A also cancels A's revocation of the laptop, unless a root confirmed
    # that revocation.
    unseen = _revoke(ring, ROOT, A, 2)
    assert unseen.join(stolen).view.revoked == stolen.join(unseen).view.revoked == {A.id}
    named = _revoke(stolen, ROOT, LAPTOP, 6)
    assert unseen.join(named).view.revoked == {A.id, LAPTOP.id}
    # A member enrolled by the root stays; one enrolled by A after A's revocation is never admitted.
    late = Ring(VAULT, [*gone.statements, says_member(A, TABLET)], gone.keys)
    assert PHONE.id in late.view.members
    assert late == gone and TABLET.id not in late.view.keys_of


def test_trace_34_key_named_by_no_epoch_is_ignored() -> None:
    ring = enrolled(new_ring(LAPTOP), ROOT, PHONE, "reader")
    planted = epoch_key(4_000_000_000, b"\x77" * 32, VAULT)
    after = ring.join(ring.add((), [planted]))
    # No epoch names it: it is not part of the ring.
    assert after is ring and planted.id not in after.view.eks
    # Its number (4,000,000,000) does not advance `next_epoch`.
    assert after.view.next_epoch == 2
    gone = _revoke(after, ROOT, PHONE, 1)
    assert gone.view.sealing is not None
    assert gone.view.sealing.key == ek(1)
    with pytest.raises(OpenError):
        PHONE.opens(gone.serialise())


def test_trace_36_a_device_that_cannot_open_the_new_epoch_stops() -> None:
    base = new_ring(LAPTOP, PHONE)
    with_tablet = enrolled(base, ROOT, TABLET)
    rotated = _revoke(base, ROOT, PHONE, 1)
    tablet = TABLET.opens(with_tablet.serialise())
    assert tablet.view.sealing is not None
    keyring = parse_keyring(rotated.serialise(), VAULT)
    with pytest.raises(OpenError):
        keyring.unlock(TABLET.box_secret, tablet.keys)
    warned = open_slots(tablet.join_open_part(keyring), TABLET.box_secret)
    assert warned.view.sealing is None
    assert "admin must unlock" in warned.view.reason
    with pytest.raises(MembershipError):
        warned.serialise()
    # One unlock by an admin that sees both gives it the key.
    joined = give_key(with_tablet.join(rotated), ROOT.signer, ek(9), box=fixed_box)
    back = warned.join(TABLET.opens(joined.serialise()))
    assert back.view.sealing == joined.view.sealing == rotated.view.sealing
    assert back.serialise() == joined.serialise()


def test_trace_39_the_recovery_words_are_a_root_with_an_anchor() -> None:
    ring = create(ROOT_KEYS, RECOVERY_KEYS, LAPTOP.device, ek=ek(0), since=hlc(0), box=fixed_box)
    assert RECOVERY_KEYS.head_public in ring.view.anchors()
    found = RECOVERY.opens(ring.serialise())
    assert found == ring
    # With the words alone a new device is enrolled, and a stolen one removed.
    after = _revoke(enrolled(found, RECOVERY, PHONE), RECOVERY, LAPTOP, 1)
    assert after.view.may_write(PHONE.id)
    assert LAPTOP.id in after.view.revoked
    assert ROOT.opens(after.serialise()) == after
    with pytest.raises(MembershipError):
        _revoke(after, ROOT, RECOVERY, 2)


def test_trace_43_concurrent_revocations_leave_no_key_of_a_revoked_member() -> None:
    x, y = PHONE, TABLET
    base = _with_admins(LAPTOP, x, y)
    one = _revoke(base, A, y, 1)
    without_x = Ring(VAULT, [st for st in base.statements if getattr(st.body, "id", "") != x.id], base.keys)
    two = _revoke(without_x, B, y, 2)
    three = _revoke(base, D, x, 3)
    for order in ((one, two, three), (three, two, one), (two, three, one)):
        joined = order[0].join(order[1]).join(order[2])
        assert joined.view.revoked == {x.id, y.id}
        assert joined.view.sealing is None
        with pytest.raises(MembershipError):
            joined.serialise()
        unlocked = give_key(joined, ROOT.signer, ek(4), box=fixed_box)
        assert unlocked.view.sealing is not None
        assert unlocked.view.sealing.key == ek(4)
        for thief in (x, y):
            with pytest.raises(OpenError):
                thief.opens(unlocked.serialise())
        assert LAPTOP.opens(unlocked.serialise()) == unlocked


def test_trace_44_revoking_a_successor_revokes_the_whole_family() -> None:
    base = new_ring(LAPTOP, PHONE)
    restored = party("laptop restored", box_of=LAPTOP)
    ring = add_successor(base, LAPTOP.signer, restored.signer, LAPTOP.id, since=hlc(7))
    under = enrolment_of(ring, LAPTOP)
    assert ring.view.ids_of(LAPTOP.id) == tuple(sorted([LAPTOP.id, restored.id]))
    for target in (LAPTOP, restored):
        after = _revoke(ring, ROOT, target, 1, counter=3)
        assert after.view.revoked == {LAPTOP.id, restored.id}
        assert after.view.cutoffs[target.id] == 3
        assert not after.view.may_write(LAPTOP.id)
        with pytest.raises(OpenError):
            LAPTOP.opens(after.serialise())
        # The thief names twelve more successors under the same enrolment: the family stays revoked; the
        # signing key of `restored` does not change.
        for n in range(12):
            again = party(f"thief {n}", box_of=LAPTOP)
            tricked = after.add([says_heir(LAPTOP, again, under)])
            assert tricked == after
            assert not tricked.view.may_write(again.id)
        assert after.view.sign_key(restored.id) == restored.device.sign


def test_trace_44_revoke_by_an_admin_includes_the_family() -> None:
    restored = party("laptop restored", box_of=LAPTOP)
    ring = add_successor(_with_admins(LAPTOP), LAPTOP.signer, restored.signer, LAPTOP.id, since=hlc(7))
    after = ring.add([says_revoked(A, LAPTOP, n=4)])
    assert after.view.revoked == {LAPTOP.id, restored.id} and after.view.out == {LAPTOP.id}
    assert after.view.cutoffs == {LAPTOP.id: 4, restored.id: 0}


def test_trace_45_two_admins_that_enrol_each_other_stay_admins() -> None:
    ring = _with_admins()
    after = ring.add([says_member(A, B, "writer", since=99), says_member(B, A, "reader", since=99)])
    assert after.view.members[A.id].role == after.view.members[B.id].role == "admin"
    # Even a later statement of a root does not demote an admin: only a revocation does.
    demoted = after.add([says_member(ROOT, A, "reader", since=100, label="demoted")])
    assert demoted.view.members[A.id].role == "admin"
    assert demoted.view.members[A.id].label == "demoted"
