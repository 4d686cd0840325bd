"""What people do to a ring, who may, and what it leaves behind."""

from __future__ import annotations

import pytest

from ipfsmem.errors import FormatError, LimitError, MembershipError, OpenError, UsageError
from ipfsmem.seal.objects import epoch_key
from ipfsmem.seal.primitives import Signer25519, x25519_public
from ipfsmem.seal.ring import Ring, parse_keyring
from ipfsmem.seal.ring_ops import (
    Device,
    create,
    enrol,
    give_key,
    lacking_key,
    read_request,
    request,
    revoke,
    rotate,
    successor,
)
from ipfsmem.seal.statements import member_id
from tests.ring_lab import (
    RECOVERY,
    RECOVERY_KEYS,
    ROOT,
    ROOT_KEYS,
    VAULT,
    Party,
    ek,
    fixed_box,
    hlc,
    new_ring,
    party,
    says_member,
    says_revoked,
    second_wallet,
)

LAPTOP, PHONE, GUEST = party("laptop"), party("phone"), party("guest")
ADMIN = second_wallet("admin")


def _enrol(ring: Ring, by: Party, who: Party, role: str = "writer") -> Ring:
    return enrol(ring, by.signer, who.device, role, since=hlc(5), box=fixed_box)  # type: ignore[arg-type]


def _revoke(ring: Ring, by: Party, who: str) -> Ring:
    return revoke(ring, by.signer, who, at=hlc(6), counters={who: 8}, ek=ek(6), box=fixed_box)


def test_create() -> None:
    ring = create(ROOT_KEYS, RECOVERY_KEYS, LAPTOP.device, ek=ek(0), since=hlc(0))
    view = ring.view
    assert ring.vault == ROOT_KEYS.vault_tag
    assert view.roots == (ROOT_KEYS.admin_public, RECOVERY_KEYS.admin_public)
    assert {one.label: one.role for one in view.members.values()} == {
        "wallet": "admin",
        "recovery words": "admin",
        "laptop": "writer",
    }
    assert view.members[ROOT.id].box == ROOT_KEYS.box_public
    assert view.anchors() == tuple(sorted([ROOT_KEYS.head_public, RECOVERY_KEYS.head_public]))
    assert view.sealing == epoch_key(1, ek(0), VAULT)
    assert view.holders == {ROOT.id, RECOVERY.id, LAPTOP.id}
    with pytest.raises(UsageError):
        create(RECOVERY_KEYS, None, None, ek=ek(0), since=hlc(0))


def test_without_recovery_words_there_is_one_root() -> None:
    ring = create(ROOT_KEYS, None, LAPTOP.device, ek=ek(0), since=hlc(0))
    assert ring.view.roots == (ROOT_KEYS.admin_public,)
    with pytest.raises(OpenError):
        RECOVERY.opens(ring.serialise())


@pytest.mark.parametrize(("role", "writes"), [("admin", True), ("writer", True), ("reader", False)])
def test_enrol(role: str, writes: bool) -> None:
    ring = _enrol(new_ring(LAPTOP), ROOT, PHONE, role)
    assert ring.view.is_member(PHONE.id)
    assert ring.view.may_write(PHONE.id) == writes
    assert ring.view.may_administer(PHONE.id) == (role == "admin")
    assert ring.view.sign_key(PHONE.id) == PHONE.device.sign
    # The same key goes on sealing, and the new member opens the ring.
    assert ring.view.sealing == new_ring(LAPTOP).view.sealing
    assert PHONE.opens(ring.serialise()) == ring


def test_a_second_wallet_brings_its_anchor_and_its_powers() -> None:
    ring = _enrol(new_ring(LAPTOP), ROOT, ADMIN, "admin")
    assert ADMIN.head in ring.view.anchors()
    grown = _enrol(ring, ADMIN, PHONE)
    assert grown.view.members[PHONE.id].rank == 1
    assert _revoke(grown, ADMIN, LAPTOP.id).view.revoked == {LAPTOP.id}


@pytest.mark.parametrize("by", [LAPTOP, GUEST, PHONE])
def test_who_is_no_admin_can_do_nothing(by: Party) -> None:
    ring = _enrol(new_ring(LAPTOP), ROOT, GUEST, "reader")
    for act in (
        lambda: _enrol(ring, by, party("x")),
        lambda: rotate(ring, by.signer, ek(1)),
        lambda: _revoke(ring, by, LAPTOP.id),
        lambda: give_key(ring, by.signer, ek(1)),
    ):
        with pytest.raises(MembershipError, match="not an admin"):
            act()


def test_what_an_admin_cannot_do() -> None:
    other = second_wallet("other")
    ring = _enrol(_enrol(new_ring(LAPTOP), ROOT, ADMIN, "admin"), ROOT, other, "admin")
    with pytest.raises(MembershipError):
        _enrol(ring, ADMIN, PHONE, "admin")
    for target in (other.id, ADMIN.id, ROOT.id, RECOVERY.id, "00" * 8):
        with pytest.raises(MembershipError):
            _revoke(ring, ADMIN, target)
    heir = party("heir", box_of=other)
    chained = successor(ring, other.signer, heir.device.sign, since=hlc(8))
    with pytest.raises(MembershipError, match="chain"):
        _revoke(chained, ADMIN, heir.id)
    assert _revoke(chained, ROOT, heir.id).view.revoked == {other.id, heir.id}


def test_a_revoked_admin_can_do_nothing_more() -> None:
    ring = _revoke(_enrol(new_ring(LAPTOP), ROOT, ADMIN, "admin"), ROOT, ADMIN.id)
    with pytest.raises(MembershipError):
        _enrol(ring, ADMIN, PHONE)
    assert ADMIN.head not in ring.view.anchors()


def test_a_revoked_id_never_comes_back() -> None:
    ring = _revoke(new_ring(LAPTOP, PHONE), ROOT, PHONE.id)
    with pytest.raises(MembershipError, match="for ever"):
        _enrol(ring, ROOT, PHONE)
    assert not ring.add([says_member(ROOT, PHONE, "writer", since=99)]).view.is_member(PHONE.id)
    assert ring.view.sign_key(PHONE.id) == PHONE.device.sign
    assert ring.view.cutoffs == {PHONE.id: 8}


def test_no_two_members_share_a_box_key() -> None:
    ring = new_ring(LAPTOP)
    twin = party("twin", box_of=LAPTOP)
    with pytest.raises(MembershipError, match="box key"):
        _enrol(ring, ROOT, twin)
    # Unless they are of one chain: a restored laptop may be made an admin again.
    heir = successor(ring, LAPTOP.signer, twin.device.sign, since=hlc(8))
    assert heir.view.members[twin.id].role == "writer"
    raised = _enrol(heir, ROOT, twin, "admin")
    assert raised.view.members[twin.id].role == "admin"
    assert raised.view.chains[twin.id] == tuple(sorted([LAPTOP.id, twin.id]))


def test_revoke_leaves_nothing_for_the_revoked() -> None:
    before = new_ring(LAPTOP, PHONE)
    after = _revoke(before, ROOT, PHONE.id)
    assert after.view.sealing == epoch_key(2, ek(6), VAULT)
    with pytest.raises(OpenError):
        parse_keyring(after.serialise()).unlock(PHONE.box_secret, before.keys)
    assert LAPTOP.opens(after.serialise()) == after
    # What the old key sealed still opens, and members still verify.
    assert set(before.keys) < set(after.keys)
    assert _revoke(after, ROOT, PHONE.id).view.revoked == after.view.revoked


def test_revoke_asks_for_the_right_key() -> None:
    with pytest.raises(UsageError):
        revoke(new_ring(LAPTOP), ROOT.signer, LAPTOP.id, at=hlc(1), counters={}, ek=None)
    plain = enrol(new_ring(plain=True), ROOT.signer, LAPTOP.device, "writer", since=hlc(1))
    with pytest.raises(UsageError):
        revoke(plain, ROOT.signer, LAPTOP.id, at=hlc(1), counters={}, ek=ek(1))
    after = revoke(plain, ROOT.signer, LAPTOP.id, at=hlc(1), counters={}, ek=None)
    assert not after.view.may_write(LAPTOP.id)
    with pytest.raises(UsageError):
        rotate(plain, ROOT.signer, ek(1))
    assert give_key(plain, ROOT.signer, ek(1)) is plain


def test_successor() -> None:
    ring = _enrol(new_ring(LAPTOP), ROOT, GUEST, "reader")
    heir = party("heir", box_of=LAPTOP)
    after = successor(ring, LAPTOP.signer, heir.device.sign, since=hlc(8))
    person = after.view.members[heir.id]
    assert (person.role, person.label, person.successor_of) == ("writer", "laptop", LAPTOP.id)
    assert after.view.is_member(LAPTOP.id)
    # It needs no slot of its own, now or after a rotation.
    assert not lacking_key(after.view)
    assert heir.opens(after.serialise()) == after
    rotated = rotate(after, ROOT.signer, ek(1), box=fixed_box)
    assert heir.opens(rotated.serialise()) == rotated
    assert max(len(one.slots) for one in parse_keyring(rotated.serialise()).epochs) == 4
    reader = successor(ring, GUEST.signer, party("x").device.sign, since=hlc(8))
    assert not reader.view.may_write(party("x").id)


def test_who_cannot_name_a_successor() -> None:
    ring = new_ring(LAPTOP)
    new = party("new").device.sign
    for who in (ROOT, RECOVERY, PHONE):
        with pytest.raises(MembershipError):
            successor(ring, who.signer, new, since=hlc(1))
    with pytest.raises(MembershipError):
        successor(ring, LAPTOP.signer, LAPTOP.device.sign, since=hlc(1))
    revoked = _revoke(ring, ROOT, LAPTOP.id)
    with pytest.raises(MembershipError):
        successor(revoked, LAPTOP.signer, new, since=hlc(1))


def test_of_two_successors_one_stays_and_a_chain_ends() -> None:
    ring = new_ring(LAPTOP)
    made = [successor(ring, LAPTOP.signer, party(f"clone {n}").device.sign, since=hlc(8)) for n in range(4)]
    met = made[0].join(made[1]).join(made[2]).join(made[3])
    assert met == made[3].join(made[1]).join(made[0]).join(made[2])
    assert sum(one.rank == 2 for one in met.view.members.values()) == 1
    tail: Party = LAPTOP
    for n in range(8):
        heir = party(f"heir {n}", box_of=LAPTOP)
        ring = successor(ring, tail.signer, heir.device.sign, since=hlc(n))
        tail = heir
    assert len(ring.view.chains[LAPTOP.id]) == 9
    with pytest.raises(MembershipError, match="chain of 8"):
        successor(ring, tail.signer, party("one more").device.sign, since=hlc(9))
    gone = _revoke(ring, ROOT, party("heir 3", box_of=LAPTOP).id)
    assert len(gone.view.revoked) == 9


def test_keys_of_successors_outlive_a_fork_after_the_revoke() -> None:
    heir = party("heir", box_of=LAPTOP)
    ring = successor(new_ring(LAPTOP), LAPTOP.signer, heir.device.sign, since=hlc(8))
    ring = _revoke(ring, ROOT, LAPTOP.id)
    forked = ring.add([says_member(LAPTOP, party(f"fork {n}", box_of=LAPTOP)) for n in range(20)])
    assert forked.view.sign_key(heir.id) == heir.device.sign
    assert forked.view.sealing == ring.view.sealing


def test_an_unlock_gives_the_key_to_whom_it_was_not_given() -> None:
    base = new_ring(LAPTOP)
    phone = _enrol(base, ROOT, PHONE)
    rotated = rotate(base, ROOT.signer, ek(1), box=fixed_box)
    met = rotated.join(phone)
    assert [one.id for one in lacking_key(met.view)] == [PHONE.id]
    given = give_key(met, ROOT.signer, ek(2), box=fixed_box)
    assert given.view.sealing == rotated.view.sealing
    assert PHONE.opens(given.serialise()) == given
    assert give_key(given, ROOT.signer, ek(3), box=fixed_box) is given


def test_an_admin_that_lacks_the_key_makes_a_new_one() -> None:
    base = new_ring(LAPTOP)
    admin = _enrol(base, ROOT, ADMIN, "admin")
    rotated = rotate(base, ROOT.signer, ek(1), box=fixed_box)
    mine = ADMIN.opens(admin.serialise()).join(parse_keyring(rotated.serialise()).public_ring())
    assert mine.view.sealing is None
    with pytest.raises(MembershipError):
        _enrol(mine, ADMIN, PHONE)
    made = give_key(mine, ADMIN.signer, ek(2), box=fixed_box)
    assert made.view.sealing == epoch_key(3, ek(2), VAULT)


def test_slots_are_random_unless_asked_otherwise() -> None:
    one, two = (rotate(new_ring(LAPTOP), ROOT.signer, ek(1)) for _ in range(2))
    assert one != two
    assert one.view.seals == two.view.seals
    assert LAPTOP.opens(one.serialise()) == one


def test_an_epoch_without_a_root_does_not_count() -> None:
    ring = new_ring(LAPTOP)
    lone = create(ROOT_KEYS, None, LAPTOP.device, ek=ek(5), since=hlc(0), box=fixed_box)
    epochs = [st for st in lone.statements if st.body.t == "epoch"]
    assert ring.add(epochs) == ring


def test_the_last_epoch_number() -> None:
    ring = new_ring(LAPTOP)
    assert ring.add((), [epoch_key(2**32 - 1, ek(8), VAULT)]).view.next_epoch == 2
    assert ring.add((), [epoch_key(2**31 - 1, ek(8), VAULT)]).view.next_epoch == 2**31


def test_request_and_answer() -> None:
    shown = request(VAULT, GUEST.device)
    assert shown.startswith(b'{"box":"') and b'"label":"guest"' in shown
    asked = read_request(shown, VAULT)
    assert asked == Device(GUEST.device.sign, GUEST.device.box, "guest")
    assert GUEST.opens(_answer(asked).serialise()).view.is_member(GUEST.id)
    with pytest.raises(FormatError, match="for vault"):
        read_request(shown, bytes(16))
    with pytest.raises(LimitError):
        read_request(b" " * 5000, VAULT)
    for bad in (
        b"",
        b"{}",
        b" " + shown,
        shown.replace(b'"v":1', b'"v":2'),
        shown.replace(b'"guest"', b'""'),
        shown.replace(GUEST.device.box.hex().encode(), b"00" * 32),
        shown.replace(GUEST.key.encode(), b"00" * 32),
        shown.replace(GUEST.key.encode(), GUEST.key.upper().encode()),
    ):
        with pytest.raises(FormatError):
            read_request(bad, VAULT)


def _answer(device: Device) -> Ring:
    return enrol(new_ring(LAPTOP), ROOT.signer, device, "reader", since=hlc(3), box=fixed_box)


def test_a_revoke_by_an_admin_of_whom_a_root_then_makes_an_admin() -> None:
    """The root's word stands: the revoke does not count while its target is an admin, on every device alike."""
    ring = _enrol(new_ring(LAPTOP), ROOT, ADMIN, "admin")
    gone = ring.add([says_revoked(ADMIN, LAPTOP.id)])
    assert gone.view.revoked == {LAPTOP.id}
    raised = gone.add([says_member(ROOT, LAPTOP, "admin", since=50)])
    assert raised.view.revoked == frozenset()
    assert raised.view.sealing == ring.view.sealing
    assert raised.add([says_revoked(ROOT, LAPTOP.id)]).view.revoked == {LAPTOP.id}


def test_ids_are_of_the_key() -> None:
    signer = Signer25519(b"\x01" * 32)
    device = Device(signer.public, x25519_public(b"\x02" * 32), "one")
    assert device.id == member_id(signer.public) == "34750f98bd59fcfc"
