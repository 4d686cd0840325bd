"""Repeated attacks with a stolen phrase: each time the ring is filled, the wallet unlocks, and the phrase
is revoked. Little of each attack may remain, because statements are not deleted otherwise."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from ipfsmem.errors import LimitError, OpenError
from ipfsmem.ring.keyring import Ring
from ipfsmem.ring.operations import MAX_OTHER_KEYS, enrol, give_key, members_without_key, revoke, rotate
from ipfsmem.ring.statements import Epoch, Statement, id_of_hex, sign_statement
from ipfsmem.seal.objects import EpochKey
from tests.support.ring_lab import (
    RECOVERY,
    ROOT,
    VAULT,
    Party,
    ek,
    ek_of,
    enrolled,
    fixed_box,
    hlc,
    new_ring,
    party,
    says_epoch,
    says_member,
    second_wallet,
)

LAPTOP, PHONE, TABLET = party("laptop"), party("phone"), party("tablet")
ADMIN, OTHER = second_wallet("admin"), second_wallet("other admin")
#: Maximum bytes of statements that a turn may leave: the words, their revocation, and their names in later
#: statements.
LEFT = 2_000


def _size(ring: Ring) -> int:
    return sum(len(st.payload) for st in ring.statements)


def _epochs(ring: Ring) -> list[Epoch]:
    return [st.body for st in ring.statements if isinstance(st.body, Epoch)]


def _ended(ring: Ring, who: Party, n: int, *, by: Party = ROOT, cascade: bool = True) -> Ring:
    return revoke(
        ring, by.signer, who.id, at=hlc(n), counters={}, ek=ek(1000 + n), box=fixed_box, cascade=cascade
    )


def _unlocked(ring: Ring, n: int) -> Ring:
    return give_key(ring, ROOT.signer, ek(2000 + n), box=fixed_box)


def _crowd(ring: Ring, words: Party, n: int) -> Ring:
    return ring.add([says_member(words, party(f"of turn {n}: {one}")) for one in range(60)])


def _slotless(ring: Ring, words: Party, key: EpochKey, **said: object) -> Statement:
    """Add an epoch of the words for the roots alone; an unlock gives the others its key, or a new one."""
    gone = sorted({*ring.view.must_exclude, *said.pop("gone", ())})  # type: ignore[misc]
    return says_epoch(words, key, (), gone, old=[*ring.view.names, *said.pop("old", ())])  # type: ignore[misc]


def _names(ring: Ring, words: Party, n: int) -> Ring:
    number = ring.view.next_epoch
    keys = [ek_of(number, 10_000 * n + one) for one in range(800)]
    seals = max(keys, key=lambda key: (key.epoch, key.id))
    return ring.add([_slotless(ring, words, seals, old=[key.id for key in keys])], keys)


def _strangers(ring: Ring, words: Party, n: int) -> Ring:
    gone = [f"{n:04x}{one:012x}" for one in range(1000)]
    return ring.add([_slotless(ring, words, ek_of(ring.view.next_epoch, 10_000 * n), gone=gone)])


def _keys(ring: Ring, words: Party, n: int, count: int) -> Ring:
    number = ring.view.next_epoch
    keys = [ek_of(number, 10_000 * n + one) for one in range(count)]
    return ring.add([says_epoch(words, keys[0], (), old=[key.id for key in keys])], keys)


def _called_out(ring: Ring, words: Party, n: int, count: int) -> Ring:
    gone = [f"{n:04x}{one:012x}" for one in range(count)]
    return ring.add([says_epoch(words, ek_of(ring.view.next_epoch, n), (), gone)])


def _called_out_by_itself(ring: Ring, words: Party, n: int, count: int) -> Ring:
    """A root's next epoch repeats all of it and replaces this one, so there is room for more."""
    key = ring.view.sealing
    assert key is not None
    said = says_epoch(words, key, ()).body
    ids = tuple(f"{n:04x}{one:012x}" for one in range(count))
    return ring.add([sign_statement(words.signer, replace(said, while_={words.id: ids}), VAULT)])


@pytest.mark.parametrize(
    "fill", [pytest.param(_keys, marks=pytest.mark.slow), _called_out, _called_out_by_itself]
)
def test_roots_keep_room_in_a_ring_filled_by_a_stolen_phrase(
    fill: Callable[[Ring, Party, int, int], Ring],
) -> None:
    ring = enrolled(enrolled(new_ring(LAPTOP, TABLET), ROOT, ADMIN, "admin"), ADMIN, PHONE)
    count, turn, refused = 12_000, 0, 0
    while count and turn < 9:
        turn += 1
        try:
            filled = fill(ring, ADMIN, turn, count)
        except LimitError:
            count, refused = count // 2, refused + 1
            continue
        ring = _unlocked(filled, turn)
    assert refused and ring.filled < 0.9
    lost = _ended(ring, LAPTOP, 900)
    assert LAPTOP.id in lost.view.out and TABLET.opens(lost.serialise()) == lost
    assert _ended(lost, ADMIN, 901).used < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("fill", [_crowd, _names, _strangers], ids=["people", "keys", "who is out"])
def test_revoked_attack_by_a_stolen_phrase_leaves_little(fill: Callable[[Ring, Party, int], Ring]) -> None:
    ring = enrolled(enrolled(new_ring(LAPTOP), ROOT, ADMIN, "admin"), ADMIN, PHONE)
    ring = rotate(ring, ROOT.signer, ek(1), box=fixed_box)
    start, keys = _size(ring), len(ring.keys)
    turns = 5
    for n in range(1, turns + 1):
        words = second_wallet(f"words {n}")
        ring = fill(enrolled(ring, ROOT, words, "admin", 10 * n), words, n)
        filled = _unlocked(ring, n)
        assert _size(filled) > start + 5 * LEFT
        assert any(epoch.by == ROOT.key for epoch in _epochs(filled) if epoch not in _epochs(ring))
        ring = _ended(filled, words, 10 * n)
        # Statements that arrive late add nothing.
        assert ring.join(filled) == ring == filled.join(ring)
    assert _size(ring) - start < turns * LEFT
    assert len(ring.keys) - keys <= turns * (MAX_OTHER_KEYS + 3)
    for one in (LAPTOP, PHONE, ADMIN, RECOVERY):
        assert one.opens(ring.serialise()) == ring


@pytest.mark.slow
def test_revoke_keeping_nothing_replaces_one_that_kept_many_statements() -> None:
    ring = enrolled(new_ring(LAPTOP), ROOT, ADMIN, "admin")
    start, turns = _size(ring), 3
    for n in range(1, turns + 1):
        words = second_wallet(f"words {n}")
        ring = _crowd(enrolled(ring, ROOT, words, "admin", 10 * n), words, n)
        ring = ring.add([says_member(words, party(f"more of {n}: {one}")) for one in range(240)])
        listed = revoke(
            ring,
            ROOT.signer,
            words.id,
            at=hlc(10 * n + 1),
            counters={words.id: 3},
            ek=ek(1000 + n),
            box=fixed_box,
        )
        # Since then this device has seen more of it: what the first revocation did not accept stays
        # unaccepted.
        ring = revoke(
            listed,
            ROOT.signer,
            words.id,
            at=hlc(10 * n + 2),
            counters={words.id: 9},
            ek=ek(3000 + n),
            box=fixed_box,
            cascade=True,
        )
        assert ring.view.cutoffs[words.id] == listed.view.cutoffs[words.id] == 3
        assert ring.join(listed) == ring == listed.join(ring)
    assert _size(ring) - start < turns * LEFT


def test_honest_device_keeps_its_key_after_the_admins_revoke() -> None:
    ring = enrolled(enrolled(new_ring(LAPTOP), ROOT, ADMIN, "admin"), ADMIN, PHONE)
    ring = rotate(ring, ROOT.signer, ek(1), box=fixed_box)
    (own,) = [epoch for epoch in _epochs(ring) if not epoch.of]
    (theirs,) = [epoch for epoch in _epochs(ring) if epoch.of]
    assert own.for_ == tuple(sorted([ROOT.id, RECOVERY.id, LAPTOP.id, ADMIN.id]))
    assert theirs.for_ == tuple(sorted([ROOT.id, RECOVERY.id, PHONE.id])) and theirs.of == (ADMIN.id,)
    assert len(theirs.slots) == 3 and (own.ek, own.old, own.not_) == (theirs.ek, theirs.old, theirs.not_)
    names = ring.view.names
    # By default the phone stays and gets the new key at once; its epochs still depend on its admin.
    gone = _ended(ring, ADMIN, 5, cascade=False)
    assert PHONE.opens(gone.serialise()) == gone and not members_without_key(gone.view)
    assert {epoch.of for epoch in _epochs(gone)} == {(), (ADMIN.id,)} and gone.view.names > names
    # Another root lets nothing of it remain: the phone is out, and no statement serves it any more.
    ended = _ended(gone, ADMIN, 6, by=RECOVERY)
    assert [epoch.of for epoch in _epochs(ended)] == [()] and ended.view.names > names
    with pytest.raises(OpenError):
        PHONE.opens(ended.serialise())
    # Both roots concurrently, in either order: the same ring, and one unlock serves all members.
    twin = _ended(ring, ADMIN, 7, by=RECOVERY)
    met = gone.join(twin)
    assert met == twin.join(gone) and not any(epoch.of for epoch in _epochs(met))
    assert _unlocked(met, 8).view.sealing is not None and not members_without_key(_unlocked(met, 8).view)


def test_member_enrolled_by_two_stays_when_one_is_revoked() -> None:
    ring = enrolled(enrolled(new_ring(LAPTOP), ROOT, ADMIN, "admin"), ROOT, OTHER, "admin")
    ring = enrolled(enrolled(ring, ADMIN, PHONE), ADMIN, TABLET)
    ring = rotate(enrolled(ring, OTHER, PHONE, n=6), ROOT.signer, ek(1), box=fixed_box)
    both = tuple(sorted([ADMIN.id, OTHER.id]))
    assert {epoch.of for epoch in _epochs(ring)} == {(), both, (ADMIN.id,)}
    gone = _ended(ring, ADMIN, 7)
    assert PHONE.opens(gone.serialise()) == gone
    assert {epoch.of for epoch in _epochs(gone)} == {(), (OTHER.id,)}


def test_new_key_replaces_earlier_epochs_for_the_same_members() -> None:
    """Also those of the same admin."""
    ring = enrolled(enrolled(new_ring(LAPTOP), ROOT, ADMIN, "admin"), ADMIN, PHONE)
    for n in range(1, 30):
        ring = rotate(ring, ADMIN.signer, ek(n), box=fixed_box)
    # The newest few of an admin's keys are named at once, the others by the next epochs.
    for n in (30, 31):
        ring = rotate(ring, ROOT.signer, ek(n), box=fixed_box)
    assert {(epoch.by, epoch.of) for epoch in _epochs(ring)} == {(ROOT.key, ()), (ROOT.key, (ADMIN.id,))}
    assert len(ring.keys) == 32
    # A root enrols the phone too: from then on no other statement is needed for it.
    ring = enrol(ring, ROOT.signer, PHONE.device, "writer", since=hlc(9), box=fixed_box)
    ring = rotate(ring, ROOT.signer, ek(32), box=fixed_box)
    assert [epoch.of for epoch in _epochs(ring)] == [()] and PHONE.opens(ring.serialise()) == ring


def test_base_of_an_epoch_decides_which_keys_it_replaces() -> None:
    """It must not remove a key that a device of another branch needs."""
    ring = enrolled(enrolled(new_ring(), ROOT, ADMIN, "admin"), ROOT, OTHER, "admin")
    names, key, greater = ring.view.names, ek_of(9, 1), ek_of(10, 2)
    people = [ADMIN, OTHER]

    def epoch(by: Party, key: EpochKey, *of: Party) -> Statement:
        return says_epoch(
            by, key, people, old=[*names, ek_of(9, 1).id], of=sorted(of, key=lambda one: one.id)
        )

    for by, of, later, outdone in [
        (ROOT, (), (), True),
        (ROOT, (), (ADMIN,), False),
        (ROOT, (ADMIN,), (ADMIN,), True),
        (ROOT, (ADMIN,), (OTHER,), False),
        (ROOT, (ADMIN,), (ADMIN, OTHER), False),
        (ROOT, (ADMIN, OTHER), (ADMIN,), True),
        (ADMIN, (), (ADMIN,), True),
        (ADMIN, (), (OTHER,), False),
        (ADMIN, (OTHER,), (ADMIN, OTHER), True),
    ]:
        old, new = epoch(by, key, *of), epoch(ROOT, greater, *later)
        both = ring.add([old, new])
        assert (old not in both.statements) == outdone, (by.name, of, later)
        ended = _ended(ring, ADMIN, 7)
        assert both.join(ended) == ring.add([old]).join(ended).join(ring.add([new])), (by.name, of, later)


def test_full_ring_does_not_withhold_a_key_from_a_root(monkeypatch: pytest.MonkeyPatch) -> None:
    ring = enrolled(enrolled(new_ring(LAPTOP), ROOT, ADMIN, "admin"), ADMIN, PHONE)
    ring = ring.add([says_member(ADMIN, party(f"of a crowd {one}")) for one in range(330)])
    monkeypatch.setattr("ipfsmem.ring.operations.MAX_FILLED", most := ring.filled + 0.01)
    unlocked = rotate(ring, ROOT.signer, ek(3), box=fixed_box)
    assert unlocked.view.sealing is not None and unlocked.view.holders == {
        ROOT.id,
        RECOVERY.id,
        LAPTOP.id,
        ADMIN.id,
    }
    assert unlocked.filled < most and PHONE.id in [one.id for one in members_without_key(unlocked.view)]
    assert _unlocked(unlocked, 4) == unlocked
    with pytest.raises(LimitError):
        enrolled(unlocked, ADMIN, TABLET)
    assert id_of_hex(ADMIN.key) in _ended(unlocked, ADMIN, 5).view.out
    assert _ended(unlocked, ADMIN, 5).used < 0.5
