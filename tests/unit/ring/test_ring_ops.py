"""Operations on a ring, the rights that they require, and their results."""

from __future__ import annotations

import msgspec
import pytest

from ipfsmem.errors import FormatError, LimitError, MembershipError, OpenError, UsageError
from ipfsmem.ring.keyring import Ring, parse_keyring
from ipfsmem.ring.labels import label_of
from ipfsmem.ring.operations import (
    Enrollee,
    add_successor,
    create,
    enrol,
    enrollee_of,
    enrolment_request,
    give_key,
    members_admitted_by,
    members_without_key,
    read_enrolment_request,
    relabel,
    revoke,
    rotate,
)
from ipfsmem.ring.statements import Revoke, Statement, member_id, sign_statement
from ipfsmem.seal.objects import epoch_key
from ipfsmem.seal.primitives import Signer25519, x25519_public
from tests.support.ring_lab import (
    PLAIN,
    RECOVERY,
    RECOVERY_KEYS,
    ROOT,
    ROOT_KEYS,
    VAULT,
    Party,
    ek,
    ek_of,
    enrolled,
    enrolment_of,
    fixed_box,
    hlc,
    new_ring,
    party,
    says_epoch,
    says_heir,
    says_member,
    says_revoked,
    second_wallet,
    shown,
)

LAPTOP, PHONE, GUEST = party("laptop"), party("phone"), party("guest")
ADMIN, OTHER = second_wallet("admin"), second_wallet("other admin")


def _revoke(ring: Ring, by: Party, who: str, n: int = 6, *, cascade: bool = False) -> Ring:
    return revoke(
        ring, by.signer, who, at=hlc(n), counters={who: 8}, ek=ek(n), box=fixed_box, cascade=cascade
    )


def test_create_makes_a_ring_with_roots_and_the_first_device() -> None:
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


def test_ring_without_a_recovery_phrase_has_one_root() -> None:
    ring = create(ROOT_KEYS, None, LAPTOP.device, ek=ek(0), since=hlc(0))
    assert ring.view.roots == (ROOT_KEYS.admin_public,)
    with pytest.raises(OpenError):
        RECOVERY.opens(ring.serialise())


@pytest.mark.parametrize(("role", "writes"), [("admin", True), ("writer", True), ("reader", False)])
def test_enrolled_member_has_the_rights_of_its_role(role: str, writes: bool) -> None:
    ring = enrolled(new_ring(LAPTOP), ROOT, PHONE, role)
    assert PHONE.id in ring.view.members
    assert ring.view.may_write(PHONE.id) == writes
    assert ring.view.may_administer(PHONE.id) == (role == "admin")
    assert ring.view.sign_key(PHONE.id) == PHONE.device.sign
    # The same key continues to seal, and the new member opens the ring.
    assert ring.view.sealing == new_ring(LAPTOP).view.sealing
    assert PHONE.opens(ring.serialise()) == ring


def test_second_wallet_adds_its_anchor_and_rights() -> None:
    ring = enrolled(new_ring(LAPTOP), ROOT, ADMIN, "admin")
    assert ADMIN.head in ring.view.anchors()
    grown = enrolled(ring, ADMIN, PHONE)
    assert grown.view.members[PHONE.id].rank == 1
    assert _revoke(grown, ADMIN, LAPTOP.id).view.revoked == {LAPTOP.id}


@pytest.mark.parametrize("by", [LAPTOP, GUEST, PHONE])
def test_member_without_admin_rights_changes_nothing(by: Party) -> None:
    ring = enrolled(new_ring(LAPTOP), ROOT, GUEST, "reader")
    for act in (
        lambda: enrolled(ring, by, party("x")),
        lambda: rotate(ring, by.signer, ek(1)),
        lambda: _revoke(ring, by, LAPTOP.id),
        lambda: give_key(ring, by.signer, ek(1)),
    ):
        with pytest.raises(MembershipError, match="not an admin"):
            act()


def test_admin_cannot_enrol_admins_or_revoke_roots_and_admins() -> None:
    other = second_wallet("other")
    ring = enrolled(enrolled(new_ring(LAPTOP), ROOT, ADMIN, "admin"), ROOT, other, "admin")
    with pytest.raises(MembershipError):
        enrolled(ring, ADMIN, PHONE, "admin")
    for target in (other.id, ADMIN.id, ROOT.id, RECOVERY.id, "00" * 8):
        with pytest.raises(MembershipError):
            _revoke(ring, ADMIN, target)
    heir = party("heir", box_of=other)
    grown = add_successor(ring, other.signer, heir.signer, other.id, since=hlc(8))
    with pytest.raises(MembershipError, match="only a root"):
        _revoke(grown, ADMIN, heir.id)
    assert _revoke(grown, ROOT, heir.id).view.revoked == {other.id, heir.id}


def test_revoked_admin_has_no_rights() -> None:
    ring = _revoke(enrolled(new_ring(LAPTOP), ROOT, ADMIN, "admin"), ROOT, ADMIN.id)
    with pytest.raises(MembershipError):
        enrolled(ring, ADMIN, PHONE)
    assert ADMIN.head not in ring.view.anchors()


def test_revoked_id_is_never_enrolled_again() -> None:
    ring = _revoke(new_ring(LAPTOP, PHONE), ROOT, PHONE.id)
    with pytest.raises(MembershipError, match="permanently"):
        enrolled(ring, ROOT, PHONE)
    assert PHONE.id not in ring.add([says_member(ROOT, PHONE, "writer", since=99)]).view.members
    assert ring.view.sign_key(PHONE.id) == PHONE.device.sign
    assert ring.view.cutoffs == {PHONE.id: 8}


def test_two_members_cannot_share_a_box_key() -> None:
    ring = new_ring(LAPTOP)
    twin = party("twin", box_of=LAPTOP)
    with pytest.raises(MembershipError, match="box key"):
        enrolled(ring, ROOT, twin)
    # Not even a successor may be enrolled with it: revoking the laptop would leave its box key in the ring.
    heir = add_successor(ring, LAPTOP.signer, twin.signer, LAPTOP.id, since=hlc(8))
    assert heir.view.members[twin.id].role == "writer"
    with pytest.raises(MembershipError, match="box key"):
        enrolled(heir, ROOT, twin, "admin")
    assert heir.view.ids_of(LAPTOP.id) == tuple(sorted([LAPTOP.id, twin.id]))


def test_revoked_member_opens_nothing_published_afterwards() -> None:
    before = new_ring(LAPTOP, PHONE)
    after = _revoke(before, ROOT, PHONE.id)
    assert after.view.sealing == epoch_key(2, ek(6), VAULT)
    with pytest.raises(OpenError):
        parse_keyring(after.serialise()).unlock(PHONE.box_secret, before.keys)
    assert LAPTOP.opens(after.serialise()) == after
    # What the old key sealed still opens, and members still verify.
    assert set(before.keys) < set(after.keys)
    assert _revoke(after, ROOT, PHONE.id).view.revoked == after.view.revoked


def test_revoke_requires_the_right_kind_of_key() -> None:
    with pytest.raises(UsageError):
        revoke(new_ring(LAPTOP), ROOT.signer, LAPTOP.id, at=hlc(1), counters={}, ek=None)
    plain = enrol(new_ring(plain=True), ROOT.signer, LAPTOP.device_in(PLAIN), "writer", since=hlc(1))
    with pytest.raises(UsageError):
        revoke(plain, ROOT.signer, LAPTOP.id, at=hlc(1), counters={}, ek=ek(1))
    after = revoke(plain, ROOT.signer, LAPTOP.id, at=hlc(1), counters={}, ek=None)
    assert not after.view.may_write(LAPTOP.id)
    with pytest.raises(UsageError):
        rotate(plain, ROOT.signer, ek(1))
    assert give_key(plain, ROOT.signer, ek(1)) is plain


def test_device_names_a_successor() -> None:
    ring = enrolled(new_ring(LAPTOP), ROOT, GUEST, "reader")
    heir = party("heir", box_of=LAPTOP)
    after = add_successor(ring, LAPTOP.signer, heir.signer, LAPTOP.id, since=hlc(8))
    person = after.view.members[heir.id]
    assert (person.role, person.label, person.family) == ("writer", "laptop", LAPTOP.id)
    assert LAPTOP.id in after.view.members
    assert after.view.given_up(LAPTOP.id) and not after.view.given_up(heir.id)
    # It needs no slot of its own, now or after a rotation.
    assert not members_without_key(after.view)
    assert heir.opens(after.serialise()) == after
    rotated = rotate(after, ROOT.signer, ek(1), box=fixed_box)
    assert heir.opens(rotated.serialise()) == rotated
    assert max(len(one.slots) for one in parse_keyring(rotated.serialise()).epochs) == 4
    reader = add_successor(ring, GUEST.signer, party("x").signer, GUEST.id, since=hlc(8))
    assert not reader.view.may_write(party("x").id)


def test_root_stranger_heir_or_revoked_device_names_no_successor() -> None:
    ring = new_ring(LAPTOP)
    new = party("new").signer
    for who in (ROOT, RECOVERY, PHONE):
        with pytest.raises(MembershipError):
            add_successor(ring, who.signer, new, who.id, since=hlc(1))
    with pytest.raises(MembershipError):
        add_successor(ring, LAPTOP.signer, LAPTOP.signer, LAPTOP.id, since=hlc(1))
    # Nor does a successor: there are no chains.
    heir = party("heir")
    grown = add_successor(ring, LAPTOP.signer, heir.signer, LAPTOP.id, since=hlc(1))
    with pytest.raises(MembershipError):
        add_successor(grown, heir.signer, new, heir.id, since=hlc(1))
    assert add_successor(grown, LAPTOP.signer, new, heir.id, since=hlc(2)).view.given_up(heir.id)
    revoked = _revoke(ring, ROOT, LAPTOP.id)
    with pytest.raises(MembershipError):
        add_successor(revoked, LAPTOP.signer, new, LAPTOP.id, since=hlc(1))


def test_all_successors_of_one_snapshot_are_members() -> None:
    """A snapshot started three times has three successors."""
    ring = new_ring(LAPTOP)
    made = [
        add_successor(ring, LAPTOP.signer, party(f"clone {n}").signer, LAPTOP.id, since=hlc(8))
        for n in range(9)
    ]
    met = made[0].join(made[1]).join(made[2])
    assert met == made[2].join(made[1]).join(made[0])
    clones = {party(f"clone {n}").id for n in range(3)}
    assert clones < met.view.members.keys() and all(clone in met.view.keys_of for clone in clones)
    for one in made[3:8]:
        met = met.join(one)
    assert sum(one.rank == 2 for one in met.view.members.values()) == 8
    with pytest.raises(MembershipError, match="enrolled again"):
        add_successor(met, LAPTOP.signer, party("one more").signer, LAPTOP.id, since=hlc(9))
    # A ninth that was made elsewhere: the eight least hashes remain.
    assert sum(one.rank == 2 for one in met.join(made[8]).view.members.values()) == 8
    gone = _revoke(met, ROOT, party("clone 3").id)
    assert len(gone.view.revoked) == 9 and gone.view.out == {LAPTOP.id}


def test_keys_of_successors_outlive_the_revoke_of_their_family() -> None:
    heir = party("heir", box_of=LAPTOP)
    ring = add_successor(new_ring(LAPTOP), LAPTOP.signer, heir.signer, LAPTOP.id, since=hlc(8))
    base = enrolment_of(ring, LAPTOP)
    ring = revoke(
        ring, ROOT.signer, heir.id, at=hlc(6), counters={LAPTOP.id: 8, heir.id: 3}, ek=ek(6), box=fixed_box
    )
    assert ring.view.cutoffs == {LAPTOP.id: 8, heir.id: 3}
    forked = ring.add([says_heir(LAPTOP, party(f"fork {n}"), base) for n in range(20)])
    assert forked == ring
    assert forked.view.sign_key(heir.id) == heir.device.sign
    assert forked.view.sealing == ring.view.sealing


def test_revoked_admins_statement_is_valid_only_if_every_root_keeps_it() -> None:
    ring = enrolled(new_ring(LAPTOP, GUEST), ROOT, ADMIN, "admin")
    ring = enrolled(_revoke(ring, ADMIN, GUEST.id), ADMIN, PHONE)
    gone = _revoke(ring, ROOT, ADMIN.id)
    # By default its enrolments of members and its revocations remain, its epochs do not.
    assert PHONE.id in gone.view.members and gone.view.out == {ADMIN.id, GUEST.id}
    assert not any(st.body.t == "epoch" and st.body.by == ADMIN.key for st in gone.statements)
    late = [says_revoked(ADMIN, LAPTOP), says_member(ADMIN, party("late")), says_revoked(ADMIN, PHONE)]
    assert gone.add(late) == gone
    # Another root's revocation that lists less removes it again.
    less = gone.add([says_revoked(RECOVERY, ADMIN)])
    assert PHONE.id not in less.view.members and GUEST.id in less.view.members


def test_statement_of_an_admin_does_not_become_that_of_a_root() -> None:
    """Later signatures of a root must not make a removal by a stolen phrase permanent."""
    ring = enrolled(new_ring(LAPTOP, GUEST, PHONE), ROOT, ADMIN, "admin")
    ring = revoke(ring, ADMIN.signer, GUEST.id, at=hlc(6), counters={GUEST.id: 8}, ek=ek(6), box=fixed_box)
    ring = give_key(ring, ROOT.signer, ek(7), box=fixed_box)
    ring = rotate(ring, ROOT.signer, ek(8), box=fixed_box)
    ring = _revoke(ring, ROOT, PHONE.id, 9)
    assert ring.view.revoked_by == {GUEST.id: {ADMIN.id}} and GUEST.id in ring.view.must_exclude
    with pytest.raises(OpenError):
        GUEST.opens(ring.serialise())
    # A reader of the open part knows it too, from the roots' epochs.
    assert GUEST.id in shown(ring.serialise()).view.must_exclude
    ended = _revoke(ring, RECOVERY, ADMIN.id, 10, cascade=True)
    assert GUEST.id in ended.view.members and ended.view.must_exclude == {ADMIN.id, PHONE.id}
    assert GUEST.opens(ended.serialise()) == ended
    with pytest.raises(OpenError):
        PHONE.opens(ended.serialise())
    # In any order of later joins.
    for other in (ring, rotate(ring, ROOT.signer, ek(11), box=fixed_box)):
        assert other.join(ended).view.members.keys() >= {GUEST.id}
        assert (
            other.join(ended).view.must_exclude == ended.join(other).view.must_exclude == {ADMIN.id, PHONE.id}
        )
    # A user who names the device makes it permanent.
    own = _revoke(ring, ROOT, GUEST.id, 10)
    assert own.view.revoked_by == {} and GUEST.id in own.view.out
    assert GUEST.id in _revoke(own, ROOT, ADMIN.id, 11, cascade=True).view.out


def test_removal_claimed_by_an_admins_epoch_ends_with_that_admin() -> None:
    ring = enrolled(new_ring(LAPTOP, GUEST), ROOT, ADMIN, "admin")
    ring = enrolled(ring, ROOT, OTHER, "admin")
    key = ek_of(5, 5)
    for invented in ({ADMIN: [GUEST]}, {party("nobody"): [GUEST]}):
        claim = says_epoch(OTHER, key, [LAPTOP, ADMIN, OTHER], while_=invented, old=ring.view.names)
        said = rotate(ring.add([claim], [key]), ROOT.signer, ek(6), box=fixed_box)
        assert said.view.revoked_by == {GUEST.id: {OTHER.id}}
        ended = _revoke(said, ROOT, OTHER.id, 9, cascade=True)
        assert GUEST.id not in ended.view.must_exclude and GUEST.opens(ended.serialise()) == ended


@pytest.mark.parametrize("by", [(OTHER,), (OTHER, OTHER), (OTHER, ROOT), (OTHER, ROOT, OTHER), (ROOT, OTHER)])
def test_repeated_exclusion_ends_with_the_admin_that_made_it(by: tuple[Party, ...]) -> None:
    ring = enrolled(new_ring(LAPTOP, GUEST), ROOT, ADMIN, "admin")
    ring = enrolled(ring, ROOT, OTHER, "admin")
    key = ek_of(5, 5)
    claim = says_epoch(ADMIN, key, [LAPTOP, OTHER], while_={ADMIN: [GUEST]}, old=ring.view.names)
    ring = ring.add([claim], [key])
    for n, one in enumerate(by):
        ring = rotate(ring, one.signer, ek(10 + n), box=fixed_box)
        assert GUEST.id in ring.view.must_exclude
    ended = _revoke(ring, ROOT, ADMIN.id, 30, cascade=True)
    assert GUEST.id not in ended.view.must_exclude and GUEST.opens(ended.serialise()) == ended


def test_revoked_admins_revokes_of_ids_no_other_admitted_are_dropped() -> None:
    ring = enrolled(enrolled(new_ring(LAPTOP, GUEST), ROOT, ADMIN, "admin"), ADMIN, PHONE)
    strangers = [party(f"stranger {n}") for n in range(300)]
    ring = ring.add([says_revoked(ADMIN, one, at=at) for one in (GUEST, PHONE, *strangers) for at in (1, 2)])
    gone = _revoke(ring, ROOT, ADMIN.id)
    assert gone.view.out == {ADMIN.id, GUEST.id} and PHONE.id not in gone.view.members
    assert gone.used < ring.used / 5
    (listed,) = [
        st.body.keep for st in gone.statements if isinstance(st.body, Revoke) and st.body.id == ADMIN.id
    ]
    assert len(listed) == 1


def test_enrolments_over_the_size_of_a_revoke_end() -> None:
    """A device that an admin removed stays removed, and enrolments of that admin gain no rank."""
    ring = enrolled(new_ring(LAPTOP, GUEST), ROOT, ADMIN, "admin")
    others = [party(f"other {n}") for n in range(280)]
    ring = ring.add([says_member(ADMIN, one, since=9) for one in others])
    ring = rotate(ring.add([says_revoked(ADMIN, GUEST, at=99)]), ADMIN.signer, ek(3), box=fixed_box)
    assert ring.view.rank_of(others[0].id) == 1
    gone = _revoke(ring, ROOT, ADMIN.id)
    assert gone.view.out == {ADMIN.id, GUEST.id}
    left = [one for one in others if one.id in gone.view.members]
    assert len(left) == 255 and all(gone.view.rank_of(one.id) == 1 for one in left)
    (listed,) = [
        st.body.keep for st in gone.statements if isinstance(st.body, Revoke) and st.body.id == ADMIN.id
    ]
    assert len(listed) == 256


def test_revoke_by_a_root_raises_nobodys_rank() -> None:
    ring = enrolled(enrolled(new_ring(LAPTOP), ROOT, ADMIN, "admin"), ADMIN, PHONE)
    for who, rank in ((LAPTOP, 0), (PHONE, 1)):
        assert ring.view.rank_of(who.id) == _revoke(ring, ROOT, who.id).view.rank_of(who.id) == rank
    # One root that knew a root's enrolment is enough.
    both = _revoke(ring, ROOT, PHONE.id).join(
        _revoke(enrolled(ring, ROOT, PHONE, n=9), RECOVERY, PHONE.id, 9)
    )
    assert both.view.rank_of(PHONE.id) == 0


@pytest.mark.slow
def test_statements_of_admins_leave_room_for_roots() -> None:
    ring = new_ring(LAPTOP, GUEST)
    finders = [second_wallet(f"found {n}") for n in range(4)]
    for one in finders:
        ring = enrolled(ring, ROOT, one, "admin")
    for finder in finders:
        with pytest.raises(LimitError) as refused:
            for n in range(0, 2_000, 50):
                ring = ring.add(says_member(finder, party(f"{finder.name} {n + m}")) for m in range(50))
        assert "cascade" in refused.value.hint
        ring = _revoke(ring, ROOT, finder.id, 9)
    assert GUEST.id in _revoke(ring, ROOT, GUEST.id, 10).view.out
    for finder in finders:
        ring = _revoke(ring, ROOT, finder.id, 11, cascade=True)
    assert ring.used < 0.5


def test_unlock_gives_the_key_to_members_without_it() -> None:
    base = new_ring(LAPTOP)
    phone = enrolled(base, ROOT, PHONE)
    rotated = rotate(base, ROOT.signer, ek(1), box=fixed_box)
    met = rotated.join(phone)
    assert [one.id for one in members_without_key(met.view)] == [PHONE.id]
    given = give_key(met, ROOT.signer, ek(2), box=fixed_box)
    assert given.view.sealing == rotated.view.sealing
    assert PHONE.opens(given.serialise()) == given
    assert give_key(given, ROOT.signer, ek(3), box=fixed_box) is given


def test_admin_without_the_key_creates_a_new_one() -> None:
    base = new_ring(LAPTOP)
    admin = enrolled(base, ROOT, ADMIN, "admin")
    rotated = rotate(base, ROOT.signer, ek(1), box=fixed_box)
    mine = ADMIN.opens(admin.serialise()).join_open_part(parse_keyring(rotated.serialise()))
    assert mine.view.sealing is None
    with pytest.raises(MembershipError):
        enrolled(mine, ADMIN, PHONE)
    made = give_key(mine, ADMIN.signer, ek(2), box=fixed_box)
    assert made.view.sealing == epoch_key(3, ek(2), VAULT)


def test_slots_are_random_by_default() -> None:
    one, two = (rotate(new_ring(LAPTOP), ROOT.signer, ek(1)) for _ in range(2))
    assert one != two
    assert one.view.seals == two.view.seals
    assert LAPTOP.opens(one.serialise()) == one


def test_last_epoch_number_is_refused() -> None:
    ring = new_ring(LAPTOP)
    assert ring.add((), [epoch_key(2**32 - 1, ek(8), VAULT)]).view.next_epoch == 2
    last = epoch_key(2**32 - 1, ek(8), VAULT)
    used = ring.add([says_epoch(RECOVERY, last, [LAPTOP])], [last])
    with pytest.raises(LimitError, match="epoch numbers"):
        rotate(used, ROOT.signer, ek(9))


def test_enrolment_request_is_written_and_read() -> None:
    shown = enrolment_request(VAULT, GUEST.device)
    assert shown.startswith(b'{"box":"') and b'"label":"guest"' in shown
    asked = read_enrolment_request(shown, VAULT)
    assert asked == GUEST.device
    assert GUEST.id in GUEST.opens(_answer(asked).serialise()).view.members
    with pytest.raises(FormatError, match="for vault"):
        read_enrolment_request(shown, bytes(16))
    with pytest.raises(LimitError):
        read_enrolment_request(b" " * 5000, VAULT)
    for bad in (
        b"",
        b"{}",
        b" " + shown,
        shown.replace(b'"v":1', b'"v":2'),
        shown.replace(b'"guest"', b'""'),
        shown.replace(b'"device"', b'"robot"'),
        shown.replace(GUEST.device.own.encode(), PHONE.device.own.encode()),
        shown.replace(GUEST.device.own.encode(), b"AA"),
        shown.replace(GUEST.device.box.hex().encode(), b"00" * 32),
        shown.replace(GUEST.key.encode(), b"00" * 32),
        shown.replace(GUEST.key.encode(), GUEST.key.upper().encode()),
    ):
        with pytest.raises(FormatError):
            read_enrolment_request(bad, VAULT)


def _answer(device: Enrollee) -> Ring:
    return enrol(new_ring(LAPTOP), ROOT.signer, device, "reader", since=hlc(3), box=fixed_box)


def test_revoke_of_a_member_promoted_by_a_root_is_ignored() -> None:
    """The root's statement has priority, in any order."""
    ring = enrolled(new_ring(LAPTOP), ROOT, ADMIN, "admin")
    gone = ring.add([says_revoked(ADMIN, LAPTOP)])
    assert gone.view.revoked == {LAPTOP.id}
    raised = gone.add([says_member(ROOT, LAPTOP, "admin", since=50)])
    assert raised.view.revoked == frozenset()
    assert raised.view.sealing == ring.view.sealing
    assert raised.add([says_revoked(ROOT, LAPTOP)]).view.revoked == {LAPTOP.id}


def test_member_ids_are_derived_from_the_key() -> None:
    signer = Signer25519(b"\x01" * 32)
    device = Enrollee(signer.public, x25519_public(b"\x02" * 32), "one", "")
    assert device.id == member_id(signer.public) == "34750f98bd59fcfc"


def test_revoke_of_an_admin_keeps_its_statements_unless_it_cascades() -> None:
    ring = enrolled(new_ring(LAPTOP, GUEST), ROOT, ADMIN, "admin")
    ring = enrolled(ring, ADMIN, PHONE)
    assert (
        members_admitted_by(ring, ADMIN.id).keys() == {PHONE.id}
        and members_admitted_by(ring, LAPTOP.id) == {}
    )
    more = {"at": hlc(8), "counters": {}, "ek": ek(8), "box": fixed_box}
    kept = revoke(ring, ROOT.signer, ADMIN.id, **more)  # type: ignore[arg-type]
    assert PHONE.id in kept.view.members
    none = revoke(ring, ROOT.signer, ADMIN.id, cascade=True, **more)  # type: ignore[arg-type]
    assert PHONE.id not in none.view.members and LAPTOP.id in none.view.members
    assert none.view.sealing is not None and none.view.sealing.id not in {key.id for key in ring.keys}
    later = revoke(kept, ROOT.signer, ADMIN.id, cascade=True, at=hlc(9), counters={}, ek=ek(9), box=fixed_box)
    assert PHONE.id not in later.view.members and ADMIN.id in later.view.out
    # Joining both versions in any order shows that nothing remains.
    for one, other in ((kept, later), (later, kept), (kept, none), (none, kept)):
        assert PHONE.id not in one.join(other).view.members
    # A root may admit the same device again.
    again = enrolled(later, ROOT, PHONE, n=20)
    assert PHONE.id in again.view.members


def test_label_of_an_unknown_member_is_refused() -> None:
    with pytest.raises(MembershipError, match="is not a member of this vault"):
        relabel(new_ring(), ROOT.signer, PHONE.id, "new", since=hlc(9))


def test_new_member_is_a_device_by_default() -> None:
    made = enrollee_of(PHONE.signer, PHONE.box, "phone", VAULT)
    assert made.kind == "device"
    assert (
        enrol(new_ring(), ROOT.signer, made, "writer", since=hlc(5)).view.members[PHONE.id].kind == "device"
    )


def test_new_label_applies_to_all_ids_of_a_device() -> None:
    ring = add_successor(
        enrolled(new_ring(LAPTOP), ROOT, ADMIN, "admin"), LAPTOP.signer, GUEST.signer, LAPTOP.id, since=hlc(6)
    )
    ring = relabel(ring, ROOT.signer, LAPTOP.id, "desk", since=hlc(7))
    assert label_of(ring, GUEST.id) == label_of(ring, LAPTOP.id) == "desk"


def test_admin_cannot_date_an_enrolment_beyond_the_change_of_a_root() -> None:
    ring = enrolled(new_ring(LAPTOP), ROOT, ADMIN, "admin")

    def last_word(who: Party) -> Statement:
        body = says_member(ADMIN, who).body
        return sign_statement(ADMIN.signer, msgspec.structs.replace(body, since="f" * 16), VAULT)

    last = last_word(LAPTOP)
    ring = ring.add([last])
    assert last.hash in {st.hash for st in ring.statements}
    named = relabel(ring, ROOT.signer, LAPTOP.id, "another", since=hlc(7))
    assert named.view.members[LAPTOP.id].label == "another"
    demoted = enrol(ring, ROOT.signer, LAPTOP.device, "reader", since=hlc(7), box=fixed_box)
    assert demoted.view.members[LAPTOP.id].role == "reader"
    # Among its equals one statement is final: what cannot follow it is refused with the reason.
    ring = ring.add([last_word(GUEST)])
    with pytest.raises(LimitError, match="no later statement"):
        enrol(ring, ADMIN.signer, GUEST.device, "reader", since=hlc(7), box=fixed_box)
    # The solution that the error names: revoke it, and enrol it under a new key.
    again = party("guest again")
    out = revoke(ring, ADMIN.signer, GUEST.id, at=hlc(8), counters={}, ek=ek(8), box=fixed_box)
    new = enrol(out, ADMIN.signer, again.device, "reader", since=hlc(9), box=fixed_box)
    assert GUEST.id not in new.view.members and new.view.members[again.id].role == "reader"
    held = enrol(ring, ROOT.signer, GUEST.device, "reader", since=hlc(7), box=fixed_box)
    assert held.view.members[GUEST.id].role == "reader"
