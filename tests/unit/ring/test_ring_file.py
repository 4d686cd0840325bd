"""keyring.json and the ring as a value: bytes, limits, unlocking, local storage."""

from __future__ import annotations

import hashlib

import pytest

from ipfsmem import canonical
from ipfsmem.errors import FormatError, LimitError, MembershipError, OpenError, SignatureError
from ipfsmem.ring import keyring as ring_module
from ipfsmem.ring import statements
from ipfsmem.ring.keyring import MAX_OTHER_SLOTS, MAX_OTHERS, MAX_RING, Keyring, Ring, parse_keyring
from ipfsmem.ring.operations import create, enrol, revoke, rotate
from ipfsmem.ring.statements import SLOT_BYTES, Genesis, sign_statement
from ipfsmem.seal.objects import RING_BODY, Sealer, epoch_key
from ipfsmem.wallet.root_keys import RootKeys
from tests.support.ring_lab import (
    PLAIN,
    RECOVERY,
    RECOVERY_KEYS,
    ROOT,
    ROOT_KEYS,
    VAULT,
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

LAPTOP, PHONE = party("laptop"), party("phone")


def test_ring_file_has_equal_bytes_on_every_device() -> None:
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


def test_old_key_of_this_device_opens_the_body_without_a_slot() -> None:
    ring = new_ring(LAPTOP)
    keyring = parse_keyring(ring.serialise(), VAULT)
    assert keyring.roots == ring.view.roots
    assert not keyring.plain
    assert keyring.unlock(known=ring.keys).ring() == ring
    stranger = epoch_key(1, ek(7), VAULT)
    with pytest.raises(OpenError):
        keyring.unlock(known=[stranger])
    with pytest.raises(OpenError):
        keyring.unlock(party("stranger").box_secret)
    with pytest.raises(OpenError):
        keyring.unlock()


def test_few_foreign_slots_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    ring = new_ring(LAPTOP)
    stranger, real, tried = party("stranger"), ring_module.box_open, []
    filled = []
    for n in range(2):
        slots = [hashlib.sha512(b"%d %d" % (n, i)).digest() + bytes(SLOT_BYTES - 64) for i in range(2500)]
        filled.append(says_epoch(stranger, ek_of(9 + n, 9 + n), [], slots=slots))
    opened = sorted((*parse_keyring(ring.serialise()).open, *filled), key=lambda st: st.hash)
    keyring = Keyring(VAULT, tuple(opened), parse_keyring(ring.serialise())._body)

    def counted(*given: bytes) -> bytes | None:
        tried.append(given)
        return real(*given)

    monkeypatch.setattr(ring_module, "box_open", counted)
    with pytest.raises(OpenError):
        keyring.unlock(party("nobody").box_secret)
    assert MAX_OTHER_SLOTS <= len(tried) <= MAX_OTHER_SLOTS + 10
    tried.clear()
    # Slots that a root signed are tried first, whatever dates the others claim.
    assert ring.keys[0] in keyring.unlock(LAPTOP.box_secret).keys
    assert len(tried) < 10
    # All slots of roots are tried, also beyond that number.
    noise = [
        hashlib.sha512(b"root %d" % i).digest() + bytes(SLOT_BYTES - 64) for i in range(MAX_OTHER_SLOTS + 1)
    ]
    crowded = says_epoch(ROOT, ek_of(99, 99), [], slots=noise)
    both = sorted((*parse_keyring(ring.serialise()).open, crowded), key=lambda st: st.hash)
    assert ring.keys[0] in Keyring(VAULT, tuple(both), keyring._body).unlock(LAPTOP.box_secret).keys
    # Slots that an admin signed are found too, within the limit.
    admin = party("admin")
    grown = rotate(enrolled(ring, ROOT, admin, "admin"), admin.signer, ek(3), box=fixed_box)
    assert LAPTOP.opens(grown.serialise()) == grown


def test_signatures_are_verified_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ring = new_ring(LAPTOP)
    data = ring.serialise()
    LAPTOP.opens(data)
    monkeypatch.setattr(statements, "verify", lambda *_: pytest.fail("verified again"))
    assert LAPTOP.opens(data) == ring


def test_join_of_a_known_ring_returns_the_same_object() -> None:
    base = new_ring(LAPTOP)
    grown = enrol(base, ROOT.signer, PHONE.device, "reader", since=hlc(5), box=fixed_box)
    assert grown.join(base) is grown
    assert grown.join(LAPTOP.opens(base.serialise())) is grown
    assert base.join(grown) == grown


def test_ring_without_keys_receives_them_with_no_new_statement() -> None:
    whole = new_ring(PHONE)
    bare = Ring(whole.vault, whole.statements, (), plain=whole.plain)
    assert whole.keys and not bare.keys
    assert bare.join(whole).keys == whole.keys


def test_ring_of_another_vault_is_refused() -> None:
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


def test_two_genesis_statements_of_one_vault_unite_their_roots() -> None:
    """The wallet created the vault on two offline devices; both recovery phrases must work."""
    words = RootKeys.from_recovery(b"\x09" * 32)
    one = create(ROOT_KEYS, RECOVERY_KEYS, LAPTOP.device, ek=ek(1), since=hlc(1), box=fixed_box)
    two = create(ROOT_KEYS, words, PHONE.device, ek=ek(2), since=hlc(2), box=fixed_box)
    both = one.join(two)
    assert both == two.join(one)
    assert set(both.view.roots) == {ROOT_KEYS.admin_public, RECOVERY_KEYS.admin_public, words.admin_public}
    # Neither key was given to all the roots, so a new one is needed.
    assert both.view.sealing is None
    assert rotate(both, ROOT.signer, ek(3), box=fixed_box).view.sealing is not None


def test_public_ring_has_no_sealing_key() -> None:
    ring = new_ring(plain=True)
    ring = enrol(ring, ROOT.signer, LAPTOP.device_in(PLAIN), "writer", since=hlc(1), box=fixed_box)
    data = ring.serialise()
    assert b'"body":{"eks":[],"st":[' in data
    with pytest.raises(FormatError):
        parse_keyring(data, VAULT)
    keyring = parse_keyring(data, PLAIN)
    assert keyring.plain
    read = keyring.unlock().ring()
    assert read == ring
    assert read.view.may_write(LAPTOP.id)
    assert read.view.sealing is None
    assert "not encrypted" in read.view.reason


def test_local_storage_preserves_the_whole_ring() -> None:
    base = new_ring(LAPTOP)
    locked = shown(rotate(base, ROOT.signer, ek(1), box=fixed_box).serialise())
    for ring in (
        base,
        base.join(locked),
        base.with_spare([epoch_key(4, ek(4), VAULT)]),
        new_ring(plain=True),
    ):
        assert Ring.restore(ring.dump()) == ring
    data = base.dump()
    for bad in (b"", b"{}", data[:-1], data.replace(b'"v":1', b'"v": 1'), data.replace(b'"v":1', b'"v":2')):
        with pytest.raises(FormatError):
            Ring.restore(bad)


def test_keys_are_absent_from_repr() -> None:
    ring = new_ring(LAPTOP)
    text = f"{ring!r} {ring.view!r} {parse_keyring(ring.serialise())!r}"
    assert ek(0).hex() not in text
    assert repr(ek(0)) not in text


def test_ring_file_size_is_limited() -> None:
    with pytest.raises(LimitError):
        parse_keyring(b"[" * (MAX_RING + 1))
    with pytest.raises(FormatError):
        parse_keyring(b"[" * MAX_RING)


def test_limit_of_64_families_applies_to_enrolment_not_to_join() -> None:
    """Two enrolments at once may make 65; a further one is refused."""
    full = new_ring().add([says_member(ROOT, party(f"crowd {n}")) for n in range(61)])
    assert len(full.view.members) == 63
    one, two = (
        enrol(full, ROOT.signer, who.device, "writer", since=hlc(9), box=fixed_box) for who in (LAPTOP, PHONE)
    )
    both = one.join(two)
    assert len(both.view.members) == 65
    with pytest.raises(LimitError, match="64 are allowed"):
        enrol(both, ROOT.signer, party("one more").device, "writer", since=hlc(9), box=fixed_box)
    # A member may still be changed, successors are not families, and a revocation frees a place.
    enrol(both, ROOT.signer, PHONE.device, "reader", since=hlc(10), box=fixed_box)
    gone = both.add([says_revoked(ROOT, party(f"crowd {n}")) for n in range(2)])
    gone = rotate(gone, ROOT.signer, ek(5), box=fixed_box)
    enrol(gone, ROOT.signer, party("one more").device, "writer", since=hlc(9), box=fixed_box)


def test_unsigned_noise_does_not_fill_the_ring() -> None:
    ring = new_ring(LAPTOP)
    stranger = party("stranger")
    noise = [says_member(stranger, PHONE, since=n) for n in range(600)]
    noise += [says_heir(stranger, party("heir"), st.hash) for st in noise[:30]]
    assert ring.add(noise) == ring
    base = enrolment_of(ring, LAPTOP)
    forks = [says_heir(LAPTOP, party(f"fork {n}"), base) for n in range(60)]
    assert len(ring.add(forks).statements) == len(ring.statements) + 8
    assert ring.add([says_heir(LAPTOP, party("fork"), "ab" * 32)]) == ring


def test_keys_that_no_epoch_names_are_dropped() -> None:
    """1,024 random keys do not prevent a revoke."""
    ring = new_ring(LAPTOP, PHONE)
    junk = [epoch_key(1, hashlib.sha256(b"junk %d" % n).digest(), VAULT) for n in range(1024)]
    assert ring.add((), junk) is not None and ring.add((), junk) == ring
    assert ring.add((), junk).serialise() == ring.serialise()
    hidden = [statements.envelope(st) for st in ring.statements if not st.public]
    sealing = ring.view.sealing
    assert sealing is not None
    body = {
        "eks": [(k.epoch, canonical.b64(k.key)) for k in sorted(junk, key=lambda k: (k.epoch, k.id, k.key))],
        "st": [{"k": one.k, "s": one.s} for one in hidden],
    }
    data = canonical.decode(ring.serialise(), "it")
    data["body"] = canonical.b64(Sealer(sealing, VAULT).seal(RING_BODY, b"", canonical.encode(body)))
    read = parse_keyring(canonical.encode(data)).unlock(LAPTOP.box_secret)
    assert len(read.keys) == 1025
    assert ring.join(read) is ring and read.ring() == ring
    gone = revoke(ring.join(read), ROOT.signer, PHONE.id, at=hlc(2), counters={}, ek=ek(1), box=fixed_box)
    assert gone.view.sealing is not None and len(gone.keys) == 2


def test_ring_over_512_kib_of_admins_statements_is_refused() -> None:
    """A join beyond the limit is refused, and a revoke of a root frees the space."""
    admin = second_wallet("admin")
    ring = new_ring(LAPTOP).add([says_member(ROOT, admin, "admin")])
    flood = [says_member(admin, party(f"f {n}")) for n in range(520)]
    most = ring.add(flood[:300])
    assert 0.5 < most.used < 1
    with pytest.raises(LimitError, match="limits"):
        ring.add(flood)
    with pytest.raises(LimitError, match="limits"):
        most.join(ring.add(flood[300:]))
    gone = most.add([says_revoked(ROOT, admin, keep=[flood[0].hash])])
    assert gone.used < 0.05 and party("f 0").id in gone.view.members
    # Then the other half joins too, and adds nothing.
    assert gone.join(ring.add(flood[300:])) is gone
    assert MAX_OTHERS * 2 == MAX_RING


def test_rotations_do_not_fill_the_ring() -> None:
    ring = new_ring(LAPTOP, PHONE)
    for n in range(1, 40):
        ring = rotate(ring, ROOT.signer, ek(n), box=fixed_box)
    assert sum(st.body.t == "epoch" for st in ring.statements) == 1
    assert len(ring.keys) == len(ring.view.names) == 40
    assert PHONE.opens(ring.serialise()) == ring


def test_one_payload_with_two_signatures_joins_to_one() -> None:
    base = new_ring(LAPTOP)
    first = base.statements[0]
    fake = statements.Statement(first.payload, bytes(64), first.hash, first.body)
    other = Ring(VAULT, [fake, *base.statements[1:]], base.keys)
    assert base.join(other) == other.join(base)
    assert base.join(other).statements[0].signature == bytes(64)


def test_key_under_another_epoch_number_is_another_key() -> None:
    """The number is part of the id."""
    base = new_ring(LAPTOP)
    lie, true = epoch_key(9, ek(0), VAULT), epoch_key(1, ek(0), VAULT)
    assert lie.id != true.id
    assert base.add((), [lie]) == base
    assert base.add((), [lie]).view.eks == {true.id: (true,)}


def test_keys_no_longer_named_are_kept_locally() -> None:
    admin = second_wallet("admin")
    ring = new_ring(LAPTOP).add([says_member(ROOT, admin, "admin")])
    key = epoch_key(2, ek(2), VAULT)
    named = ring.add([says_epoch(admin, key, [LAPTOP, admin], old=[ring.keys[0].id])], [key])
    assert key in named.keys and not named.spare
    gone = named.add([says_revoked(ROOT, admin)])
    assert (key in gone.keys, key in gone.spare) == (False, True)
    assert Ring.restore(gone.dump()).spare == gone.spare
    # Named again by a root, it is a key of the ring again.
    again = gone.add([says_epoch(ROOT, epoch_key(3, ek(3), VAULT), [LAPTOP], [admin], old=[key.id])])
    assert key in again.keys and not again.spare
    assert gone.without_spare({key.id}) is gone and not gone.without_spare(set()).spare


def test_genesis_of_another_vault_is_refused() -> None:
    ring = new_ring(LAPTOP)
    thief = party("thief")
    with pytest.raises(FormatError):
        ring.add([sign_statement(thief.signer, Genesis((thief.key, ROOT.key)), VAULT)])


def test_ring_size_is_predicted() -> None:
    ring = new_ring(LAPTOP, PHONE)
    assert 0 <= ring._size() - len(ring.serialise()) < 0.25 * ring._size()
    assert canonical.decode(ring.serialise(), "it")["v"] == 1


def test_ring_with_the_tag_of_the_other_form_is_refused() -> None:
    """The public genesis statement of a sealed vault does not make a plain ring, under either tag."""
    data = canonical.decode(new_ring().serialise(), "it")
    genesis = [one for one in data["open"] if b'"t":"genesis"' in canonical.unb64(one["k"], "it")]
    for tag in (VAULT, PLAIN):
        shown = {"body": {"eks": [], "st": []}, "open": genesis, "v": 1, "vault": tag.hex()}
        with pytest.raises((FormatError, SignatureError)):
            parse_keyring(canonical.encode(shown))
    with pytest.raises((FormatError, SignatureError)):
        parse_keyring(canonical.encode(data | {"vault": PLAIN.hex()}))


def test_statement_of_another_vault_is_rejected() -> None:
    """A statement of an admin in vault B is invalid in vault A."""
    said = says_member(ROOT, PHONE)
    shown = statements.envelope(said)
    assert statements.open_envelope(shown.k, shown.s, VAULT) == said
    for other in (PLAIN, bytes(16)):
        with pytest.raises(SignatureError):
            statements.open_envelope(shown.k, shown.s, other)
