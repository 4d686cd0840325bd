"""Edge cases of the evaluation: valid epochs, the sealing key, and the order of authority."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest

from ipfsmem.errors import MembershipError, OpenError
from ipfsmem.ring.authority import MAX_LEAP
from ipfsmem.ring.keyring import Ring, parse_keyring, slot_text
from ipfsmem.ring.operations import add_successor, enrol, give_key, revoke, rotate
from ipfsmem.ring.statements import Statement
from ipfsmem.seal.objects import MAX_EPOCH, EpochKey, epoch_key
from tests.support.ring_lab import (
    OWNER,
    RECOVERY,
    ROOT,
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
    says_epoch,
    says_heir,
    says_member,
    says_revoked,
    second_wallet,
)

LAPTOP, PHONE, GUEST = party("laptop"), party("phone"), party("guest")
ADMIN, OTHER = second_wallet("admin"), second_wallet("other")


def _base(*devices: Party) -> Ring:
    ring = new_ring(*devices)
    for one in (ADMIN, OTHER):
        ring = enrol(ring, ROOT.signer, one.device, "admin", since=hlc(9), box=fixed_box)
    return ring


def _epoch(
    by: Party, key: EpochKey, given: Iterable[Party], gone: Iterable[str] = (), slots: Iterable[bytes] = ()
) -> Statement:
    # The maker of an epoch names the older keys that it holds: here always the first one.
    return says_epoch(by, key, given, gone, old=[epoch_key(1, ek(0), VAULT).id], slots=slots)


def _key(number: int, n: int) -> EpochKey:
    return epoch_key(number, ek(n), VAULT)


def test_later_epoch_with_less_knowledge_does_not_replace_one_with_more() -> None:
    ring = _base(LAPTOP, PHONE)
    aware, unaware = _key(5, 5), _key(6, 6)
    everyone = [LAPTOP, ADMIN, OTHER]
    met = ring.add(
        [
            _epoch(ROOT, aware, everyone, [PHONE.id]),
            _epoch(ROOT, unaware, [*everyone, PHONE]),
            says_revoked(ADMIN, PHONE),
        ],
        [aware, unaware],
    )
    assert met.view.seals == (5, aware.id)


def test_epoch_that_alone_has_a_member_slot_is_kept() -> None:
    base = _base(LAPTOP)
    phone = enrol(base, ROOT.signer, PHONE.device, "writer", since=hlc(5), box=fixed_box)
    met = rotate(base, ROOT.signer, ek(7), box=fixed_box).join(phone)
    assert any(PHONE.id in one.for_ for one in parse_keyring(met.serialise()).epochs)
    # If the phone was revoked instead, and a root says so, nothing of the old key remains.
    gone = revoke(met, ROOT.signer, PHONE.id, at=hlc(6), counters={}, ek=ek(8), box=fixed_box)
    assert [one.epoch for one in parse_keyring(gone.serialise()).epochs] == [3]


def test_only_roots_exclude_epochs_of_others() -> None:
    base = _base(LAPTOP)
    by_admin = rotate(base, ADMIN.signer, ek(7), box=fixed_box)
    assert {one.epoch for one in parse_keyring(by_admin.serialise()).epochs} == {1, 2}
    # Neither key knows that this admin is revoked, so neither may seal then.
    assert by_admin.add([says_revoked(ROOT, ADMIN)]).view.seals is None


def test_epoch_of_revoked_admin_is_valid_only_if_every_revoke_keeps_it() -> None:
    base = _base(LAPTOP)
    late = says_member(ADMIN, GUEST)
    one = says_revoked(ROOT, ADMIN, keep=(late.hash,))
    two = says_revoked(RECOVERY, ADMIN)
    assert GUEST.id in base.add([late, one]).view.members
    assert GUEST.id not in base.add([late, two]).view.members
    assert GUEST.id not in base.add([late, one, two]).view.members


def test_statements_of_admins_about_a_root_are_ignored() -> None:
    base = _base(LAPTOP)
    usurper = party("usurper")
    assert base.add([says_member(ADMIN, ROOT, "writer", box=usurper)]) == base
    assert base.add([says_member(LAPTOP, RECOVERY, "writer", box=LAPTOP)]) == base
    lone = Ring(VAULT, [*_genesis(base), says_member(ROOT, ADMIN, "admin")], ())
    usurped = lone.add([says_member(ADMIN, ROOT, "writer", box=usurper)])
    assert ROOT.id not in usurped.view.members
    assert usurped.view.may_write(ROOT.id)
    assert usurped.view.may_administer(ROOT.id)
    assert usurped.view.sign_key(ROOT.id) == ROOT.device.sign


def _genesis(ring: Ring) -> list[Statement]:
    return [st for st in ring.statements if st.body.t == "genesis"]


def test_epoch_must_list_the_revoked_ids() -> None:
    heir = party("heir", box_of=LAPTOP)
    base = _base(LAPTOP, PHONE)
    base = add_successor(base, LAPTOP.signer, heir.signer, LAPTOP.id, since=hlc(5))
    key = _key(9, 9)
    staying = [PHONE, ADMIN, OTHER]

    def seals(gone: list[Party]) -> bool:
        said = [says_revoked(ADMIN, LAPTOP), _epoch(ROOT, key, staying, [one.id for one in gone])]
        return base.add(said, [key]).view.sealing == key

    # The enrolled id represents the family.
    assert seals([LAPTOP]) and seals([LAPTOP, heir])
    assert not seals([heir]) and not seals([])


def test_every_epoch_of_a_sealing_key_must_know_the_revokes() -> None:
    base = _base(LAPTOP, PHONE)
    key = _key(9, 9)
    staying = [LAPTOP, ADMIN, OTHER]
    knows = _epoch(ADMIN, key, staying, [PHONE.id])
    forgets = _epoch(OTHER, key, [LAPTOP])
    gone = says_revoked(ADMIN, PHONE)
    assert base.add([gone, knows], [key]).view.sealing == key
    assert base.add([gone, knows, forgets], [key]).view.sealing is None
    # Once the one who forgot is revoked itself, its epoch no longer blocks the key.
    after = base.add([gone, _epoch(ADMIN, key, [LAPTOP, ADMIN], [PHONE.id, OTHER.id]), forgets], [key])
    assert after.view.sealing is None
    assert after.add([says_revoked(ROOT, OTHER)]).view.sealing == key


def test_cutoff_is_the_least_accepted_counter() -> None:
    base = _base(LAPTOP)
    for order in ((3, 8), (8, 3)):
        said = [says_revoked(by, LAPTOP, n=n) for by, n in zip((ROOT, ADMIN), order, strict=True)]
        assert base.add(said).view.cutoffs == {LAPTOP.id: 3}


def test_enrolments_are_ordered_by_rank_and_time() -> None:
    base = _base(GUEST)
    early, late = (says_member(ROOT, PHONE, since=n, label=f"at {n}") for n in (1, 2))
    by_admin = says_member(ADMIN, PHONE, "reader", since=9, label="by admin")
    claim = says_heir(GUEST, PHONE, enrolment_of(base, GUEST), since=99, label="claimed")
    assert base.add([by_admin]).view.members[PHONE.id].label == "by admin"
    assert base.add([early, late, by_admin]).view.members[PHONE.id].label == "at 2"
    assert base.add([claim]).view.members[PHONE.id].label == "claimed"
    # An enrolled id is nobody's successor.
    assert base.add([claim, by_admin]).view.members[PHONE.id].label == "by admin"
    assert base.add([claim, by_admin]).view.family_of(PHONE.id) == PHONE.id


def test_epoch_names_the_keys_it_replaces() -> None:
    """A root's epoch that does not name another epoch's key leaves that epoch."""
    base = _base(LAPTOP)
    silent = says_epoch(ROOT, _key(5, 5), [LAPTOP, ADMIN, OTHER])
    assert {one.epoch for one in parse_keyring(base.add([silent], [_key(5, 5)]).serialise()).epochs} == {1, 5}
    naming = says_epoch(ROOT, _key(5, 5), [LAPTOP, ADMIN, OTHER], old=base.view.names)
    grown = base.add([naming], [_key(5, 5)])
    assert {one.epoch for one in parse_keyring(grown.serialise()).epochs} == {5}
    assert grown.keys[0] in base.keys
    # Of two that override each other the least hash remains, and an admin's never against a root's.
    twin = says_epoch(RECOVERY, _key(5, 5), [LAPTOP, ADMIN, OTHER], old=base.view.names)
    theirs = says_epoch(ADMIN, _key(5, 5), [LAPTOP, ADMIN, OTHER], old=base.view.names)
    for said in ([naming, twin, theirs], [theirs, twin, naming]):
        left = [st for st in base.add(said).statements if st.body.t == "epoch"]
        assert [st.hash for st in left] == [min(naming.hash, twin.hash)]


def test_epoch_without_a_root_slot_does_not_seal_and_is_kept() -> None:
    base = _base(LAPTOP)
    key = _key(7, 7)
    lone = says_epoch(ROOT, key, [LAPTOP], roots=[ROOT])
    met = base.add([lone], [key])
    assert lone in met.statements and met.view.sealing == base.view.sealing
    assert met.view.next_epoch == 8


def test_owner_of_a_member_cannot_be_chosen_by_a_foreign_admin() -> None:
    theirs = "12" * 8
    bob = second_wallet("bob's wallet")
    base = _base(LAPTOP)
    base = enrol(base, ROOT.signer, bob.device, "admin", since=hlc(20), person=theirs, box=fixed_box)
    mine = base.view.members
    assert mine[LAPTOP.id].owner == mine[ROOT.id].owner == mine[RECOVERY.id].owner == OWNER
    assert mine[bob.id].owner == theirs
    own = enrol(base, bob.signer, PHONE.device, "writer", since=hlc(21), box=fixed_box)
    assert own.view.members[PHONE.id].owner == own.view.owners[PHONE.id] == theirs
    someone = base.add([says_member(bob, GUEST, person="34" * 8)])
    assert someone.view.members[GUEST.id].owner == "34" * 8
    # It cannot make a device pass for the owner's, whatever it says and however that device ends.
    claimed = base.add([says_member(bob, GUEST, person=OWNER)])
    assert claimed.view.members[GUEST.id].owner is None
    assert GUEST.id not in claimed.view.owners
    assert GUEST.id not in claimed.add([says_revoked(bob, GUEST)]).view.owners
    assert claimed.add([says_member(ROOT, GUEST)]).view.members[GUEST.id].owner == OWNER
    # A successor belongs to its family's owner, and so does a revoked device, even if only the revocation
    # remains.
    heir = party("heir", box_of=LAPTOP)
    grown = add_successor(base, LAPTOP.signer, heir.signer, LAPTOP.id, since=hlc(22))
    assert grown.view.owners[heir.id] == OWNER
    gone = revoke(grown, ROOT.signer, LAPTOP.id, at=hlc(23), counters={}, ek=ek(1), box=fixed_box)
    assert gone.view.owners[LAPTOP.id] == gone.view.owners[heir.id] == OWNER
    assert not any(st.body.t == "member" and st.body.sign == LAPTOP.key for st in gone.statements)


def test_slot_with_another_key_is_ignored() -> None:
    base = new_ring(LAPTOP)
    named, other = _key(5, 5), _key(5, 6)
    right = slot_text(named, VAULT)
    lies = {
        "another key": slot_text(other, VAULT),
        "another vault": slot_text(named, bytes(16)),
        "another epoch": slot_text(_key(6, 5), VAULT),
        "another magic": b"XXXX" + right[4:],
    }
    assert len(right) == 56
    for what, text in lies.items():
        ring = base.add([_epoch(ROOT, named, [LAPTOP], slots=[fixed_box(text, LAPTOP.device.box)])])
        assert open_slots(ring, LAPTOP.box_secret).keys == base.keys, what
    good = base.add([_epoch(ROOT, named, [LAPTOP], slots=[fixed_box(right, LAPTOP.device.box)])])
    opened = open_slots(good, LAPTOP.box_secret)
    assert opened.view.sealing == named
    assert open_slots(good, PHONE.box_secret) == good


def test_one_slot_of_many_is_found_by_trial() -> None:
    ring = _base(*(party(f"d{n}") for n in range(20)))
    ring = rotate(ring, ROOT.signer, ek(3), box=fixed_box)
    data = ring.serialise()
    for n in (0, 10, 19):
        assert party(f"d{n}").opens(data) == ring
    with pytest.raises(OpenError):
        party("d20").opens(data)


def test_epoch_proves_revokes_that_did_not_arrive_with_it() -> None:
    """A revoked admin that never heard of it may rotate; its key must not be used for sealing."""
    base = _base(LAPTOP)
    against = revoke(base, ROOT.signer, ADMIN.id, at=hlc(6), counters={}, ek=ek(1), box=fixed_box)
    unaware = rotate(base, ADMIN.signer, ek(2), box=fixed_box)
    heard = unaware.join_open_part(parse_keyring(against.serialise()))
    assert heard.view.sealing is None
    assert ADMIN.id not in heard.view.revoked
    assert heard.view.must_exclude == {ADMIN.id}
    # The admin sees its own exclusion and stops; an epoch for somebody whom it calls revoked is invalid.
    for act in (
        lambda: rotate(heard, ADMIN.signer, ek(4)),
        lambda: enrol(heard, ROOT.signer, ADMIN.device, "admin", since=hlc(7)),
    ):
        with pytest.raises(MembershipError, match="revoked"):
            act()
    assert heard.add([_epoch(ROOT, _key(8, 8), [ADMIN], [ADMIN.id])]) == heard
    # The wallet's other machine, still without the revocation: it opens the newer key by its slot, and that
    # one seals.
    owner = open_slots(heard, ROOT.box_secret)
    assert owner.view.sealing == against.view.sealing
    with pytest.raises(OpenError):
        ADMIN.opens(owner.serialise())
    rotated = rotate(owner, ROOT.signer, ek(3), box=fixed_box)
    assert ADMIN.id not in rotated.view.holders
    assert all(ADMIN.id in one.not_ for one in parse_keyring(rotated.serialise()).epochs if one.epoch > 2)
    # When another revocation drops that epoch, its claim about the first remains until the revocation itself
    # is known.
    other = owner.add([says_revoked(ROOT, OTHER)])
    assert other.view.sealing is None
    assert ADMIN.id in other.view.must_exclude


def test_successor_unknown_to_the_revoke_does_not_block_the_key() -> None:
    base = _base(LAPTOP, PHONE)
    gone = revoke(base, ROOT.signer, LAPTOP.id, at=hlc(6), counters={}, ek=ek(1), box=fixed_box)
    heir = party("heir", box_of=LAPTOP)
    late = add_successor(base, LAPTOP.signer, heir.signer, LAPTOP.id, since=hlc(5))
    guest = enrol(base, ROOT.signer, GUEST.device, "writer", since=hlc(7), box=fixed_box)
    met = gone.join(late).join(guest)
    assert met.view.revoked == {LAPTOP.id}
    assert heir.id not in met.view.keys_of
    assert met.view.sealing == gone.view.sealing
    # Nor does giving that key to somebody afterwards.
    given = give_key(met, ROOT.signer, ek(2), box=fixed_box)
    assert given.view.sealing == gone.view.sealing
    assert GUEST.opens(given.serialise()) == given


def test_all_revokes_of_one_id_by_one_signer_are_kept() -> None:
    """A limit would make the join order-dependent."""
    base = _base(LAPTOP)
    one, two = sorted((says_revoked(ADMIN, LAPTOP, n=n) for n in (3, 8)), key=lambda st: st.hash)
    a, b, c = base.add([one]), base.add([two]), base.add([says_revoked(ROOT, ADMIN, keep=[two.hash])])
    assert a.join(b).join(c) == a.join(b.join(c)) == a.join(c).join(b)
    assert two in a.join(b).join(c).statements and LAPTOP.id in a.join(b).join(c).view.out


def test_successor_depends_on_the_enrolment_that_it_names() -> None:
    """Otherwise it would depend on which enrolment was known first."""
    base = _base()
    first, again = says_member(ADMIN, LAPTOP), says_member(ROOT, LAPTOP, since=7)
    heir = says_heir(LAPTOP, party("heir"), first.hash)
    a, b, c = base.add([first, heir]), base.add([says_revoked(ROOT, ADMIN)]), base.add([again])
    assert a.join(b).join(c) == a.join(b.join(c)) == a.join(c).join(b)
    met = a.join(b).join(c)
    assert LAPTOP.id in met.view.members and party("heir").id not in met.view.keys_of
    anew = met.add([says_heir(LAPTOP, party("heir"), again.hash)])
    assert party("heir").id in anew.view.members


def test_successor_has_box_key_of_its_enrolment_and_no_enrolled_key() -> None:
    """A family has one box key, and an enrolled key is never a successor."""
    ring = new_ring(PHONE, GUEST)
    under = enrolment_of(ring, PHONE)
    other = ring.add([says_heir(PHONE, party("another box"), under, box=party("another box"))])
    assert party("another box").id not in other.view.members
    good = ring.add([says_heir(PHONE, party("the same box"), under)])
    assert good.view.members[party("the same box").id].family == PHONE.id
    claimed = ring.add([says_heir(PHONE, GUEST, under)])
    assert claimed.view.members[GUEST.id] == ring.view.members[GUEST.id]
    # Nor does a revoked key return as somebody's successor.
    out = ring.add([says_revoked(ROOT, GUEST)])
    assert GUEST.id not in out.add([says_heir(PHONE, GUEST, under)]).view.members


def test_admin_cannot_exclude_a_root() -> None:
    base = _base(LAPTOP)
    against = says_epoch(ADMIN, _key(9, 9), [OTHER], [ROOT, RECOVERY, LAPTOP], roots=[ADMIN])
    met = base.add([against], [_key(9, 9)])
    assert against in met.statements and met.view.must_exclude == {LAPTOP.id}
    assert met.view.sealing is None
    gone = revoke(met, ROOT.signer, ADMIN.id, at=hlc(6), counters={}, ek=ek(1), box=fixed_box)
    assert gone.view.sealing is not None and gone.view.must_exclude == {ADMIN.id}
    assert OTHER.opens(gone.serialise()) == gone


def test_admin_cannot_exclude_another_admin_permanently() -> None:
    """A root's own epoch repeats the exclusion until the admin is revoked."""
    base = _base(LAPTOP)
    key = _key(base.view.next_epoch, 9)
    slots = [fixed_box(slot_text(key, VAULT), one.box) for one in (ROOT, RECOVERY, ADMIN)]
    met = open_slots(base.add([_epoch(ADMIN, key, [ADMIN], [OTHER.id], slots)]), ROOT.box_secret)
    assert met.view.sealing == key and OTHER.id not in met.view.must_exclude
    unlocked = give_key(met, ROOT.signer, ek(1), box=fixed_box)
    assert OTHER.opens(unlocked.serialise()) == unlocked
    gone = revoke(unlocked, ROOT.signer, ADMIN.id, at=hlc(6), counters={}, ek=ek(2), box=fixed_box)
    assert gone.view.must_exclude == {ADMIN.id}
    assert OTHER.opens(gone.serialise()) == gone
    assert rotate(gone, OTHER.signer, ek(3), box=fixed_box).view.sealing is not None


@pytest.mark.parametrize("number", [MAX_EPOCH, MAX_EPOCH - 1, 1 << 31])
def test_admin_cannot_exhaust_the_epoch_numbers(number: int) -> None:
    base = _base(LAPTOP)
    key = _key(number, 9)
    slots = [fixed_box(slot_text(key, VAULT), one.box) for one in (ROOT, RECOVERY, ADMIN)]
    met = open_slots(base.add([_epoch(ADMIN, key, [ADMIN], slots=slots)]), ROOT.box_secret)
    assert met.view.seals == base.view.seals and met.view.next_epoch == base.view.next_epoch
    # Nor by using that number for a known key.
    first = epoch_key(1, ek(0), VAULT)
    named = says_epoch(ADMIN, msgspec.structs.replace(first, epoch=number), [LAPTOP])
    assert met.add([named]).view.seals == base.view.seals
    unlocked = give_key(met, ROOT.signer, ek(1), box=fixed_box)
    turned = rotate(unlocked, ROOT.signer, ek(2), box=fixed_box)
    assert turned.view.sealing == _key(base.view.next_epoch, 2)
    gone = revoke(turned, ROOT.signer, ADMIN.id, at=hlc(6), counters={}, ek=ek(3), box=fixed_box)
    assert gone.view.sealing == _key(base.view.next_epoch + 1, 3)


def test_epoch_numbers_of_roots_extend_those_of_admins() -> None:
    """An admin's number may exceed the roots' by at most 65,536."""
    base = _base(LAPTOP)
    near, far = _key(1 + MAX_LEAP, 8), _key(2 + MAX_LEAP, 9)
    met = base.add([_epoch(ADMIN, near, [ADMIN]), _epoch(ADMIN, far, [ADMIN])], [near, far])
    assert met.view.seals == (near.epoch, near.id) and met.view.next_epoch == far.epoch
    assert met.add([_epoch(ROOT, _key(2, 2), [ADMIN])]).view.seals == (far.epoch, far.id)


def test_revoked_member_keeps_the_rank_of_its_texts() -> None:
    """Its text may be the only copy, and must not be the first one displaced."""
    ring = enrolled(enrolled(new_ring(LAPTOP, PHONE), ROOT, ADMIN, "admin"), ADMIN, GUEST)
    for gone in (ring.add([says_revoked(ROOT, LAPTOP)]), ring.add([says_revoked(ADMIN, LAPTOP)])):
        ranks = [gone.view.rank_of(one.id) for one in (ROOT, ADMIN, LAPTOP, PHONE, GUEST, party("nobody"))]
        assert LAPTOP.id in gone.view.out and ranks == [0, 0, 0, 0, 1, 2]
    assert ring.add([says_revoked(ADMIN, GUEST)]).view.rank_of(GUEST.id) == 1
