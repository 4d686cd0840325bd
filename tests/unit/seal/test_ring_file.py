"""keyring.json and the ring as a value: bytes, limits, unlocking, local storage."""

from __future__ import annotations

import hashlib

import pytest

from ipfsmem import canonical
from ipfsmem.errors import FormatError, LimitError, MembershipError, OpenError, SignatureError
from ipfsmem.seal import statements
from ipfsmem.seal.derive import RootKeys
from ipfsmem.seal.objects import epoch_key
from ipfsmem.seal.ring import MAX_EKS, MAX_RING, Ring, parse_keyring
from ipfsmem.seal.ring_keep import MAX_REVOKED_BY_ONE
from ipfsmem.seal.ring_ops import create, enrol, rotate
from ipfsmem.seal.statements import Genesis, make
from tests.ring_lab import (
    PLAIN,
    RECOVERY,
    RECOVERY_KEYS,
    ROOT,
    ROOT_KEYS,
    VAULT,
    ek,
    fixed_box,
    hlc,
    new_ring,
    party,
    says_member,
    says_revoked,
)

LAPTOP, PHONE = party("laptop"), party("phone")


def test_equal_bytes_on_every_device() -> None:
    ring = rotate(new_ring(LAPTOP, PHONE), ROOT.signer, ek(1), box=fixed_box)
    data = ring.serialise()
    for one in (ROOT, RECOVERY, LAPTOP, PHONE):
        mine = one.opens(data)
        assert mine == ring
        assert hash(mine) == hash(ring)
        assert mine.serialise() == data
    assert data.startswith(b'{"body":"')
    assert b"laptop" not in data
    assert LAPTOP.key.encode() not in data


def test_an_old_key_of_this_device_opens_the_body_without_a_slot() -> None:
    ring = new_ring(LAPTOP)
    keyring = parse_keyring(ring.serialise(), VAULT)
    assert keyring.roots == ring.view.roots
    assert not keyring.plain
    assert keyring.unlock(known=ring.keys) == ring
    stranger = epoch_key(1, ek(7), VAULT)
    with pytest.raises(OpenError):
        keyring.unlock(known=[stranger])
    with pytest.raises(OpenError):
        keyring.unlock(party("stranger").box_secret)
    with pytest.raises(OpenError):
        keyring.unlock()


def test_signatures_are_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ring = new_ring(LAPTOP)
    data = ring.serialise()
    LAPTOP.opens(data)
    monkeypatch.setattr(statements, "verify", lambda *_: pytest.fail("verified again"))
    assert LAPTOP.opens(data) == ring


def test_join_of_what_is_known_is_the_same_object() -> None:
    base = new_ring(LAPTOP)
    grown = enrol(base, ROOT.signer, PHONE.device, "reader", since=hlc(5), box=fixed_box)
    assert grown.join(base) is grown
    assert grown.join(LAPTOP.opens(base.serialise())) is grown
    assert base.join(grown) == grown


def test_another_vault_is_refused() -> None:
    ring = new_ring(LAPTOP)
    keys = RootKeys.from_random(b"\x04" * 64, "default", 1)
    other = create(keys, None, None, ek=ek(0), since=hlc(0), box=fixed_box)
    with pytest.raises(MembershipError):
        ring.join(other)
    with pytest.raises(FormatError):
        parse_keyring(other.serialise(), VAULT)
    with pytest.raises(FormatError):
        Ring(VAULT, [*ring.statements, *other.statements], ())
    with pytest.raises(FormatError):
        Ring(VAULT, other.statements, ())
    with pytest.raises(FormatError):
        Ring(VAULT, [], ())
    with pytest.raises(MembershipError):
        ring.join(new_ring(LAPTOP, plain=True))


def test_two_births_of_one_vault_unite_their_roots() -> None:
    """The wallet made the vault on two offline devices, with other recovery words: both sets of words must work."""
    words = RootKeys.from_recovery(b"\x09" * 32)
    one = create(ROOT_KEYS, RECOVERY_KEYS, LAPTOP.device, ek=ek(1), since=hlc(1), box=fixed_box)
    two = create(ROOT_KEYS, words, PHONE.device, ek=ek(2), since=hlc(2), box=fixed_box)
    both = one.join(two)
    assert both == two.join(one)
    assert set(both.view.roots) == {ROOT_KEYS.admin_public, RECOVERY_KEYS.admin_public, words.admin_public}
    # Neither key was given to all the roots, so a new one is needed.
    assert both.view.sealing is None
    assert rotate(both, ROOT.signer, ek(3), box=fixed_box).view.sealing is not None


def test_plain_ring() -> None:
    ring = new_ring(plain=True)
    ring = enrol(ring, ROOT.signer, LAPTOP.device, "writer", since=hlc(1), box=fixed_box)
    data = ring.serialise()
    assert b'"body":{"eks":[],"st":[' in data
    with pytest.raises(FormatError):
        parse_keyring(data, VAULT)
    keyring = parse_keyring(data, PLAIN)
    assert keyring.plain
    read = keyring.unlock()
    assert read == ring
    assert read.view.may_write(LAPTOP.id)
    assert read.view.sealing is None
    assert "not encrypted" in read.view.reason


def test_local_storage_keeps_everything() -> None:
    base = new_ring(LAPTOP)
    locked = parse_keyring(rotate(base, ROOT.signer, ek(1), box=fixed_box).serialise()).public_ring()
    for ring in (base, base.join(locked), new_ring(plain=True)):
        assert Ring.restore(ring.dump()) == ring
    data = base.dump()
    for bad in (b"", b"{}", data[:-1], data.replace(b'"v":1', b'"v": 1'), data.replace(b'"v":1', b'"v":2')):
        with pytest.raises(FormatError):
            Ring.restore(bad)


def test_no_key_in_any_repr() -> None:
    ring = new_ring(LAPTOP)
    text = f"{ring!r} {ring.view!r} {parse_keyring(ring.serialise())!r}"
    assert ek(0).hex() not in text
    assert repr(ek(0)) not in text


def test_limit_of_bytes() -> None:
    with pytest.raises(LimitError):
        parse_keyring(b"[" * (MAX_RING + 1))
    with pytest.raises(FormatError):
        parse_keyring(b"[" * MAX_RING)


def test_limit_of_members_does_not_count_the_revoked() -> None:
    ring = new_ring()
    crowd = [party(f"crowd {n}") for n in range(63)]
    full = ring.add([says_member(ROOT, one) for one in crowd[:62]])
    assert len(full.view.members) == 64
    with pytest.raises(LimitError):
        full.add([says_member(ROOT, crowd[62])])
    after = full.add([says_revoked(ROOT, crowd[0].id), says_member(ROOT, crowd[62])])
    assert len(after.view.members) == 64
    assert crowd[0].id not in after.view.members


def test_limit_of_statements_counts_what_is_kept() -> None:
    ring = new_ring(LAPTOP)
    stranger = party("stranger")
    noise = [says_member(stranger, stranger, since=n) for n in range(600)]
    assert ring.add(noise) == ring
    forks = [says_member(LAPTOP, party(f"fork {n}", box_of=LAPTOP)) for n in range(600)]
    assert len(ring.add(forks).statements) == len(ring.statements) + 1
    same = [says_member(ROOT, PHONE, since=n) for n in range(600)]
    with pytest.raises(LimitError, match="512 statements"):
        ring.add(same)


def test_limit_of_revokes_by_one_signer() -> None:
    ring = new_ring(LAPTOP)
    admin = party("admin")
    ring = ring.add([says_member(ROOT, admin, "admin")])
    ids = [hashlib.sha256(b"%d" % n).hexdigest()[:16] for n in range(MAX_REVOKED_BY_ONE + 1)]
    many = [says_revoked(admin, one) for one in ids]
    assert len(ring.add(many[:-1]).statements) == len(ring.statements) + MAX_REVOKED_BY_ONE
    with pytest.raises(LimitError, match="revoked 129 ids"):
        ring.add(many)
    # A stranger's flood of revokes is nothing at all; a second revoke of one id by one signer is not kept.
    assert ring.add([says_revoked(LAPTOP, one) for one in ids]) == ring
    twice = ring.add([says_revoked(admin, LAPTOP.id, n=n) for n in range(5)])
    assert len(twice.statements) == len(ring.statements) + 1


def test_limit_of_epoch_keys() -> None:
    ring = new_ring(LAPTOP)
    many = [epoch_key(1, hashlib.sha256(b"junk %d" % n).digest(), VAULT) for n in range(MAX_EKS + 1)]
    with pytest.raises(LimitError):
        ring.add((), many)


def test_rotations_do_not_fill_the_ring() -> None:
    ring = new_ring(LAPTOP, PHONE)
    for n in range(1, 40):
        ring = rotate(ring, ROOT.signer, ek(n), box=fixed_box)
    assert sum(st.body.t == "epoch" for st in ring.statements) == 1
    assert len(ring.keys) == 40
    assert PHONE.opens(ring.serialise()) == ring


def test_one_payload_with_two_signatures_joins_to_one() -> None:
    base = new_ring(LAPTOP)
    first = base.statements[0]
    fake = statements.Statement(first.payload, bytes(64), first.hash, first.body)
    other = Ring(VAULT, [fake, *base.statements[1:]], base.keys)
    assert base.join(other) == other.join(base)
    assert base.join(other).statements[0].signature == bytes(64)


def test_a_key_under_another_epoch_number_is_another_key() -> None:
    base = new_ring(LAPTOP)
    lie, true = epoch_key(9, ek(0), VAULT), epoch_key(1, ek(0), VAULT)
    ring = base.add((), [lie])
    assert lie.id != true.id
    assert ring.view.eks[true.id] == true
    assert LAPTOP.opens(ring.serialise()) == ring


def test_a_genesis_of_somebody_else_cannot_ride_along() -> None:
    ring = new_ring(LAPTOP)
    thief = party("thief")
    with pytest.raises(FormatError):
        ring.add([make(thief.signer, Genesis((thief.key, ROOT.key)), VAULT)])


def test_size_is_foreseen() -> None:
    ring = new_ring(LAPTOP, PHONE)
    assert 0 <= ring._size() - len(ring.serialise()) < 0.25 * ring._size()
    assert canonical.decode(ring.serialise(), "it")["v"] == 1


def test_trace_s1_a_ring_is_of_a_vault_only_in_the_form_that_its_tag_says() -> None:
    """Finding S1: the public genesis statement of a sealed vault does not make a plain ring, under either tag."""
    data = canonical.decode(new_ring().serialise(), "it")
    genesis = [one for one in data["open"] if b'"t":"genesis"' in canonical.unb64(one["k"], "it")]
    for tag in (VAULT, PLAIN):
        shown = {"body": {"eks": [], "st": []}, "open": genesis, "v": 1, "vault": tag.hex()}
        with pytest.raises((FormatError, SignatureError)):
            parse_keyring(canonical.encode(shown))
    with pytest.raises((FormatError, SignatureError)):
        parse_keyring(canonical.encode(data | {"vault": PLAIN.hex()}))


def test_trace_e3_a_statement_of_one_vault_is_nothing_in_another() -> None:
    """Format-next trace E.3: what an admin said in vault B cannot be put into vault A."""
    said = says_member(ROOT, PHONE)
    shown = statements.envelope(said)
    assert statements.open_envelope(shown.k, shown.s, VAULT) == said
    for other in (PLAIN, bytes(16)):
        with pytest.raises(SignatureError):
            statements.open_envelope(shown.k, shown.s, other)
