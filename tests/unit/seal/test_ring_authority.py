"""The evaluation at its edges: which epochs count, which key seals, whose word goes before whose."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from ipfsmem import canonical
from ipfsmem.errors import MembershipError, OpenError
from ipfsmem.seal.objects import EpochKey, epoch_key
from ipfsmem.seal.ring import Ring, parse_keyring, slot_text
from ipfsmem.seal.ring_ops import enrol, give_key, revoke, rotate, successor
from ipfsmem.seal.statements import Epoch, Statement, make
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
    return make(
        by.signer,
        Epoch(
            by=by.key,
            ek=key.id,
            epoch=key.epoch,
            for_=tuple(sorted({ROOT.id, RECOVERY.id, *(one.id for one in given)})),
            not_=tuple(sorted(gone)),
            slots=tuple(sorted(canonical.b64(slot) for slot in slots)),
        ),
        VAULT,
    )


def _key(number: int, n: int) -> EpochKey:
    return epoch_key(number, ek(n), VAULT)


def test_a_later_epoch_that_knows_less_does_not_push_out_one_that_knows_more() -> None:
    ring = _base(LAPTOP, PHONE)
    aware, unaware = _key(5, 5), _key(6, 6)
    everyone = [LAPTOP, ADMIN, OTHER]
    met = ring.add(
        [
            _epoch(ROOT, aware, everyone, [PHONE.id]),
            _epoch(ROOT, unaware, [*everyone, PHONE]),
            says_revoked(ADMIN, PHONE.id),
        ],
        [aware, unaware],
    )
    assert met.view.seals == (5, aware.id)


def test_an_epoch_that_alone_gives_somebody_a_key_stays() -> None:
    base = _base(LAPTOP)
    phone = enrol(base, ROOT.signer, PHONE.device, "writer", since=hlc(5), box=fixed_box)
    met = rotate(base, ROOT.signer, ek(7), box=fixed_box).join(phone)
    assert any(PHONE.id in one.for_ for one in parse_keyring(met.serialise()).epochs)
    # When the phone was revoked instead, and a root says so, nothing of the old key stays.
    gone = revoke(met, ROOT.signer, PHONE.id, at=hlc(6), counters={}, ek=ek(8), box=fixed_box)
    assert [one.epoch for one in parse_keyring(gone.serialise()).epochs] == [3]


def test_only_roots_outdo() -> None:
    base = _base(LAPTOP)
    by_admin = rotate(base, ADMIN.signer, ek(7), box=fixed_box)
    assert {one.epoch for one in parse_keyring(by_admin.serialise()).epochs} == {1, 2}
    # Neither key knows that this admin is revoked, so neither may seal then.
    assert by_admin.add([says_revoked(ROOT, ADMIN.id)]).view.seals is None


def test_an_epoch_of_a_revoked_admin_counts_only_if_every_revoke_lets_it_stand() -> None:
    base = _base(LAPTOP)
    late = says_member(ADMIN, GUEST)
    one = says_revoked(ROOT, ADMIN.id, keep=(late.hash,))
    two = says_revoked(RECOVERY, ADMIN.id)
    assert base.add([late, one]).view.is_member(GUEST.id)
    assert not base.add([late, two]).view.is_member(GUEST.id)
    assert not base.add([late, one, two]).view.is_member(GUEST.id)


def test_an_admin_says_nothing_about_a_root() -> None:
    base = _base(LAPTOP)
    usurper = party("usurper")
    assert base.add([says_member(ADMIN, ROOT, "writer", box=usurper.device.box)]) == base
    assert base.add([says_member(LAPTOP, RECOVERY, "writer", box=LAPTOP.device.box)]) == base
    lone = Ring(VAULT, [*_genesis(base), says_member(ROOT, ADMIN, "admin")], ())
    usurped = lone.add([says_member(ADMIN, ROOT, "writer", box=usurper.device.box)])
    assert ROOT.id not in usurped.view.people
    assert usurped.view.is_member(ROOT.id)
    assert usurped.view.may_write(ROOT.id)
    assert usurped.view.may_administer(ROOT.id)
    assert usurped.view.sign_key(ROOT.id) == ROOT.device.sign


def _genesis(ring: Ring) -> list[Statement]:
    return [st for st in ring.statements if st.body.t == "genesis"]


def test_which_revoked_ids_an_epoch_must_list() -> None:
    heir = party("heir", box_of=LAPTOP)
    base = successor(_base(LAPTOP, PHONE), LAPTOP.signer, heir.device.sign, since=hlc(5))
    key = _key(9, 9)
    staying = [PHONE, ADMIN, OTHER]

    def seals(gone: list[Party], named: list[Party]) -> bool:
        said = [says_revoked(ADMIN, one.id) for one in named]
        return (
            base.add([*said, _epoch(ROOT, key, staying, [one.id for one in gone])], [key]).view.sealing == key
        )

    # Every id that a revoke names, and every enrolled id of its chain; not what only the revoked itself put there.
    assert seals([LAPTOP, heir], [LAPTOP, heir])
    assert seals([LAPTOP], [LAPTOP])
    assert not seals([LAPTOP], [LAPTOP, heir])
    assert not seals([heir], [heir])
    assert not seals([heir], [LAPTOP])
    assert not seals([], [LAPTOP])


def test_every_epoch_that_names_a_key_must_know() -> None:
    base = _base(LAPTOP, PHONE)
    key = _key(9, 9)
    staying = [LAPTOP, ADMIN, OTHER]
    knows = _epoch(ADMIN, key, staying, [PHONE.id])
    forgets = _epoch(OTHER, key, [LAPTOP])
    gone = says_revoked(ADMIN, PHONE.id)
    assert base.add([gone, knows], [key]).view.sealing == key
    assert base.add([gone, knows, forgets], [key]).view.sealing is None
    # Once the one who forgot is revoked itself, its word no longer stands in the way.
    after = base.add([gone, _epoch(ADMIN, key, [LAPTOP, ADMIN], [PHONE.id, OTHER.id]), forgets], [key])
    assert after.view.sealing is None
    assert after.add([says_revoked(ROOT, OTHER.id)]).view.sealing == key


def test_the_least_counter_that_was_accepted() -> None:
    base = _base(LAPTOP)
    for order in ((3, 8), (8, 3)):
        said = [says_revoked(by, LAPTOP.id, n=n) for by, n in zip((ROOT, ADMIN), order, strict=True)]
        assert base.add(said).view.cutoffs == {LAPTOP.id: 3}


def test_ranks_and_times() -> None:
    base = _base()
    early, late = (says_member(ROOT, PHONE, since=n, label=f"at {n}") for n in (1, 2))
    by_admin = says_member(ADMIN, PHONE, "reader", since=9, label="by admin")
    claim = says_member(GUEST, PHONE, box=GUEST.device.box, since=99, label="claimed")
    guest = says_member(ROOT, GUEST)
    assert base.add([by_admin]).view.members[PHONE.id].label == "by admin"
    assert base.add([early, late, by_admin]).view.members[PHONE.id].label == "at 2"
    assert base.add([guest, claim]).view.members[PHONE.id].label == "claimed"
    assert base.add([guest, claim, by_admin]).view.members[PHONE.id].label == "by admin"


def test_a_slot_that_holds_something_else_gives_nothing() -> None:
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
        assert ring.open_slots([LAPTOP.box_secret]).keys == base.keys, what
    good = base.add([_epoch(ROOT, named, [LAPTOP], slots=[fixed_box(right, LAPTOP.device.box)])])
    opened = good.open_slots([LAPTOP.box_secret])
    assert opened.view.sealing == named
    assert opened.open_slots([LAPTOP.box_secret]) is opened
    assert good.open_slots([PHONE.box_secret]) is good


def test_one_slot_of_many_is_found_by_trial() -> None:
    ring = _base(*(party(f"d{n}") for n in range(20)))
    ring = rotate(ring, ROOT.signer, ek(3), box=fixed_box)
    data = ring.serialise()
    for n in (0, 10, 19):
        assert party(f"d{n}").opens(data) == ring
    with pytest.raises(OpenError):
        party("d20").opens(data)


def test_an_epoch_is_believed_about_revokes_that_did_not_come_with_it() -> None:
    """A revoked admin that never heard of it rotates, and hands on the public epoch that was made against it.

    Whoever opens that epoch by a slot must not seal under the admin's key, or the newer key would leak to it.
    """
    base = _base(LAPTOP)
    against = revoke(base, ROOT.signer, ADMIN.id, at=hlc(6), counters={}, ek=ek(1), box=fixed_box)
    unaware = rotate(base, ADMIN.signer, ek(2), box=fixed_box)
    heard = unaware.join(parse_keyring(against.serialise()).public_ring())
    assert heard.view.sealing is None
    assert ADMIN.id not in heard.view.revoked
    assert heard.view.shut_out == {ADMIN.id}
    # The admin sees itself shut out, and stops; an epoch for somebody whom it calls revoked is none.
    for act in (
        lambda: rotate(heard, ADMIN.signer, ek(4)),
        lambda: enrol(heard, ROOT.signer, ADMIN.device, "admin", since=hlc(7)),
    ):
        with pytest.raises(MembershipError, match="revoked"):
            act()
    assert heard.add([_epoch(ROOT, _key(8, 8), [ADMIN], [ADMIN.id])]) == heard
    # The wallet's other machine, still without the revoke: it opens the newer key by its slot, and that one seals.
    owner = heard.open_slots([ROOT.box_secret])
    assert owner.view.sealing == against.view.sealing
    with pytest.raises(OpenError):
        ADMIN.opens(owner.serialise())
    rotated = rotate(owner, ROOT.signer, ek(3), box=fixed_box)
    assert ADMIN.id not in rotated.view.holders
    assert all(ADMIN.id in one.not_ for one in parse_keyring(rotated.serialise()).epochs if one.epoch > 2)
    # When another revocation drops that epoch, its word about the first stays until the revoke itself is known.
    other = owner.add([says_revoked(ROOT, OTHER.id)])
    assert other.view.sealing is None
    assert ADMIN.id in other.view.shut_out


def test_a_successor_that_the_revoke_did_not_know_does_not_stop_the_key() -> None:
    base = _base(LAPTOP, PHONE)
    gone = revoke(base, ROOT.signer, LAPTOP.id, at=hlc(6), counters={}, ek=ek(1), box=fixed_box)
    heir = party("heir", box_of=LAPTOP)
    late = successor(base, LAPTOP.signer, heir.device.sign, since=hlc(5))
    guest = enrol(base, ROOT.signer, GUEST.device, "writer", since=hlc(7), box=fixed_box)
    met = gone.join(late).join(guest)
    assert met.view.revoked == {LAPTOP.id, heir.id}
    assert met.view.sealing == gone.view.sealing
    # Nor does giving that key to somebody afterwards.
    given = give_key(met, ROOT.signer, ek(2), box=fixed_box)
    assert given.view.sealing == gone.view.sealing
    assert GUEST.opens(given.serialise()) == given
