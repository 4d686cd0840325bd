"""The twenty step sequences of the key ring's rules, on rings and on real devices.

The numbers are those of part E in traces.json. Traces 20 to 46 are in test_ring_traces.py and with the
tests of syncs."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import time
from collections.abc import Callable

import pytest

from ipfsmem import canonical
from ipfsmem.causal.clock import next_hlc
from ipfsmem.causal.value import Loc
from ipfsmem.content.cid import ipns_name
from ipfsmem.content.tree import build_tree
from ipfsmem.device.replica import Replica
from ipfsmem.device.state import locations
from ipfsmem.errors import IpfsmemError, LimitError, MembershipError, OtherKindError, SignatureError
from ipfsmem.memory import Memory
from ipfsmem.ring import operations, statements
from ipfsmem.ring.keyring import MAX_RING, Ring, parse_keyring
from ipfsmem.ring.operations import add_successor, create, give_key, revoke, rotate
from ipfsmem.ring.statements import Member, Statement, envelope, member_id, open_envelope, sign_statement
from ipfsmem.seal.objects import RING_BODY, EpochKey, Sealer, epoch_key
from ipfsmem.sync.names import pin_name
from ipfsmem.vault.home import Home
from ipfsmem.wallet.recovery_words import from_words
from ipfsmem.wallet.root_keys import RootKeys
from tests.support.device_lab import ROOT as WALLET
from tests.support.device_lab import Forger, Lab, all_texts, body, kinds, same, says
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
)

LAPTOP, PHONE, TABLET = party("laptop"), party("phone"), party("tablet")
WORDS = Party("later words", b"\x21" * 32, b"\x22" * 32, ROOT_KEYS.head_public, "words")


def _ring(memory: Memory) -> Ring:
    assert memory.replica.ring is not None
    return memory.replica.ring


def _set(memory: Memory, ring: Ring) -> None:
    with memory.replica.transaction():
        memory.replica.set_ring(ring)


def _revoke(ring: Ring, by: Party, who: Party, key: int) -> Ring:
    return revoke(ring, by.signer, who.id, at=hlc(6), counters={who.id: 2}, ek=ek(key), box=fixed_box)


def _carrying(ring: Ring, more: list[Statement], keys: list[EpochKey] | None = None) -> bytes:
    """Return a keyring.json of a member with arbitrary additions."""
    sealing = ring.view.sealing
    assert sealing is not None
    every = sorted({st.hash: st for st in (*ring.statements, *more)}.values(), key=lambda st: st.hash)
    hidden = [envelope(st) for st in every if not st.public]
    others = sorted({*ring.keys, *(keys or [])} - {sealing}, key=lambda key: (key.epoch, key.id, key.key))
    text = canonical.encode(
        {
            "eks": [(key.epoch, canonical.b64(key.key)) for key in others],
            "st": [{"k": one.k, "s": one.s} for one in hidden],
        }
    )
    shown = [envelope(st) for st in every if st.public]
    return canonical.encode(
        {
            "body": canonical.b64(Sealer(sealing, ring.vault).seal(RING_BODY, b"", text)),
            "open": [{"k": one.k, "s": one.s} for one in shown],
            "v": 1,
            "vault": ring.vault.hex(),
        }
    )


def _publish_with(memory: Memory, more: list[Statement], keys: list[EpochKey] | None = None) -> None:
    """Publish a member's state with such a ring."""
    _ring(memory)._bytes = _carrying(_ring(memory), more, keys)
    Forger(memory).publish()


def _later_words(owner: Memory) -> RootKeys:
    """Return words made after init, which are an admin."""
    made = asyncio.run(owner.members.new_words())
    return RootKeys.from_recovery(from_words(" ".join(made.words)))


def _revoked_by(memory: Memory, signer: RootKeys, device: str) -> Ring:
    replica = memory.replica
    return operations.revoke(
        _ring(memory),
        signer.admin,
        device,
        at=next_hlc(replica.store.frame.hlc, replica.environment.now()),
        counters=replica.store.frame.ctx,
        ek=replica.environment.random(32),
    )


def test_trace_e01_genesis_alone_creates_no_vault(lab: Lab) -> None:
    """Sealed vault; the provider pins its genesis with `eks:[], st:[]`; and a plain vault with a sealed request."""
    owner = lab.create("owner")
    lab.sync(owner)
    data = canonical.decode(_ring(owner).serialise(), "it")
    genesis = [one for one in data["open"] if b'"t":"genesis"' in canonical.unb64(one["k"], "it")]
    anchors = dict(lab.cloud.names)
    for tag in (data["vault"], WALLET.tag(plain=True).hex()):
        ring = canonical.encode({"body": {"eks": [], "st": []}, "open": genesis, "v": 1, "vault": tag})
        tree = build_tree({"keyring.json": ring})
        lab.cloud.blocks = dict(tree.blocks)
        lab.cloud.names, lab.cloud.pins = {}, []
        asyncio.run(lab.provider("p").pin(tree.cid, pin_name(WALLET.head_public)))
        with pytest.raises(IpfsmemError):
            lab.restore("fresh")
        assert not lab.home("fresh").exists() or not any(lab.home("fresh").rglob("ipfsmem.json"))
        assert not lab.cloud.names and anchors
    plain = Memory.create("p", "ipfs", provider=lab.provider("q"), unlock=WALLET, passphrase=False, public_ok=True, home=Home(folder=lab.home("plain"), environment=lab.environment("plain")))  # fmt: skip
    lab.cloud.pins.clear()
    asyncio.run(plain.sync())
    before = {name: list(records) for name, records in lab.cloud.names.items()}
    with pytest.raises(OtherKindError) as caught:
        lab.restore("fresh")
    assert "ipfs" in str(caught.value) and "encrypted-ipfs" in f"{caught.value} {caught.value.hint}"
    assert lab.cloud.names == before
    plain.close()


def test_trace_e02_public_and_sealed_vaults_of_a_wallet_share_nothing() -> None:
    sealed, plain = new_ring(), new_ring(plain=True)
    assert (sealed.vault, plain.vault) == (VAULT, PLAIN)
    with pytest.raises(MembershipError):
        sealed.join(plain)
    for ring, other in ((sealed, PLAIN), (plain, VAULT)):
        for st in ring.statements:
            shown = envelope(st)
            assert open_envelope(shown.k, shown.s, ring.vault) == st
            with pytest.raises(SignatureError):
                open_envelope(shown.k, shown.s, other)


def test_trace_e03_statement_of_another_vault_is_refused() -> None:
    """W2 is admin in vaults A and B; a member of both puts its B statements into A."""
    other = b"\x42" * 16
    device = LAPTOP.device_in(other)
    admin = second_wallet("W2")
    said = sign_statement(
        admin.signer,
        Member(
            anchor=None, box=device.box.hex(), by=admin.key, heir_of=None, id=device.id, kind="device", label="x",
            own=device.own, person="12" * 8, role="writer", sign=LAPTOP.key, since=hlc(1), under=None, was=None,
        ),
        other,
    )  # fmt: skip
    ring = enrolled(new_ring(), ROOT, admin, "admin")
    with pytest.raises(SignatureError):
        parse_keyring(_carrying(ring, [said]), VAULT).unlock(ROOT.box_secret)


def test_trace_e04_random_keys_do_not_change_the_ring_elsewhere(lab: Lab) -> None:
    """1,024 random `eks` and thousands of values naming them; the ring elsewhere is as before."""
    a, b, evil = lab.three()
    junk = [epoch_key(1, hashlib.sha256(b"junk %d" % n).digest(), _ring(evil).vault) for n in range(1024)]
    forger = Forger(evil)
    entries, count = {}, evil.replica.store.frame.ctx.get(evil.device, 0)
    for n in range(2_000):
        under = f"{evil.device}-{count + n + 1}"
        loc = Loc(junk[n % 1024].id, f"{n:064x}", 556)
        value, _ = forger.value(f"m/k{n}", under, f"text {n}", loc=loc)
        entries[f"m/k{n}"] = {under: value}
    forger.put(entries, ctx={evil.device: count + 2_000})
    before = _ring(a).serialise()
    _publish_with(evil, [], junk)
    lab.sync(a)
    assert _ring(a).serialise() == before and len(_ring(a).keys) == 1
    assert "k7" in {one.key for one in a.list()}  # known, and not fetched
    a.unlock(WALLET)
    lab.clock.advance(1)
    asyncio.run(a.members.revoke(evil.device))
    asyncio.run(a.members.rotate())
    lab.sync(b)
    assert evil.device in _ring(b).view.revoked and len(_ring(b).keys) == 3
    a.write("tone", "still here")
    lab.settle(a, b)
    assert body(b, "tone") == "still here"


def test_trace_e05_a_key_under_a_lower_number(lab: Lab) -> None:
    """EK2's bytes under number 1 are another id, left out; all texts open on old and fresh devices."""
    owner, other, evil = lab.three()
    owner.unlock(WALLET)
    asyncio.run(owner.members.rotate())
    owner.write("thesis", "years of work")
    lab.settle(owner, other, evil)
    asyncio.run(owner.members.rotate())
    lab.settle(owner, other, evil)
    ring = _ring(evil)
    lies = [epoch_key(1, key.key, ring.vault) for key in ring.keys if key.epoch > 1]
    evil.write("bait", "x")
    _publish_with(evil, [], lies)
    assert "head-refused" not in kinds(lab.sync(other))
    assert body(other, "thesis") == "years of work" and body(other, "bait") == "x"
    assert not {key.id for key in lies} & {key.id for key in _ring(other).keys}
    assert body(lab.restore("fresh"), "thesis") == "years of work"


def test_trace_e06_fifty_rotations_after_a_head(lab: Lab) -> None:
    """C publishes under EK1 and dies; 50 root rotations; D, enrolled at EK51, reads C's head."""
    a, _, c = lab.three()
    c.write("last", "words of C")
    lab.sync(c)
    ring = _ring(a)
    for n in range(50):
        ring = rotate(ring, WALLET.admin, ek(n))
    _set(a, ring)
    Forger(a).publish()
    assert _ring(a).view.seals is not None and _ring(a).view.seals[0] == 51
    d = lab.restore("d")
    assert body(d, "last") == "words of C"
    assert sum(st.body.t == "epoch" for st in _ring(d).statements) <= 3 and len(_ring(d).keys) == 51


@pytest.mark.parametrize("order", list(itertools.permutations("abc")))
def test_trace_e07_text_under_a_dropped_key_is_kept(lab: Lab, order: tuple[str, ...]) -> None:
    """A rotates as words-admin; C writes under that key; the root revokes the words unseen; in all orders."""
    a, b, c = lab.three()
    a.unlock(WALLET)
    words = _later_words(a)
    lab.settle(a, b, c)
    a.lock()
    _set(a, rotate(_ring(a), words.admin, ek(7)))
    dropped = _ring(a).view.sealing
    a.write("early", "by A")
    Forger(a).publish()
    name = ipns_name(b.replica.device.sign_public)
    root = lab.cloud.names[name][-1]
    lab.provider("b").faults.offline = True
    lab.sync(c)
    c.write("late", "by C")
    lab.sync(c)
    assert _ring(c).view.sealing == dropped
    # B has not seen it.
    _set(b, _revoked_by(b, WALLET, member_id(words.admin_public)))
    lab.provider("b").faults.offline = False
    Forger(b).publish()
    assert lab.cloud.names[name][-1] != root
    devices = {"a": a, "b": b, "c": c}
    for one in order:
        lab.sync(devices[one])
    lab.settle(a, b, c)
    same(a, b, c)
    assert all_texts(b) == {"by A", "by C"}
    assert dropped is not None and dropped.id not in _ring(b).view.names
    for memory in (a, b, c):
        assert _ring(memory).view.sealing not in (None, dropped)
        assert _eks(memory.replica) <= _ring(memory).view.names
    fresh = lab.restore("fresh")
    assert all_texts(fresh) == {"by A", "by C"}


def _eks(replica: Replica) -> set[str]:
    with replica.reading():
        return {loc.ek for _, entry in replica.store.entries() for loc in locations(entry)}


def test_trace_e08_successor_stated_by_another_device_is_ignored() -> None:
    """M states V's successor under M's box, with and without V's copied `own`; revoke M: V stays."""
    v, m = PHONE, TABLET
    heir = party("phone restored", box_of=v)
    ring = add_successor(new_ring(v, m), v.signer, heir.signer, v.id, since=hlc(7))
    mine = next(st.body for st in ring.statements if isinstance(st.body, Member) and st.body.heir_of)
    under = enrolment_of(ring, m)
    for own in (mine.own, "A" * 86):
        said = {
            "by": m.key,
            "heir_of": m.key,
            "box": m.box.hex(),
            "under": under,
            "role": "reader",
            "own": own,
        }
        with pytest.raises(SignatureError):
            sign_statement(m.signer, _replaced(mine, **said), VAULT)
        with pytest.raises(SignatureError):
            sign_statement(m.signer, _replaced(mine, **{**said, "box": mine.box}), VAULT)
    # Nor as an enrolment of its own: it has no right to make one.
    assert ring.add([says_member(m, heir, "reader", since=99)]) == ring
    gone = _revoke(ring, ROOT, m, 1)
    assert gone.view.revoked == {m.id}
    assert gone.view.may_write(v.id) and gone.view.may_write(heir.id)
    assert gone.view.members[heir.id].box == v.box


def _replaced(member: Member, **changes: object) -> Member:
    import msgspec

    return msgspec.structs.replace(member, **changes)


def test_trace_e09_the_same_box_key_makes_no_family() -> None:
    """M is enrolled with V's box key, then claims V2 as heir with V2's `own`: no link."""
    v, admin = PHONE, second_wallet("admin")
    heir = party("phone restored", box_of=v)
    m = party("m", box_of=v)
    ring = enrolled(new_ring(v), ROOT, admin, "admin")
    with pytest.raises(MembershipError, match="box key"):
        enrolled(ring, admin, m)
    ring = ring.add([says_member(admin, m)])  # the remaining power of a dishonest admin
    ring = add_successor(ring, v.signer, heir.signer, v.id, since=hlc(7))
    mine = next(st.body for st in ring.statements if isinstance(st.body, Member) and st.body.heir_of)
    with pytest.raises(SignatureError):
        sign_statement(m.signer, _replaced(mine, by=m.key, heir_of=m.key, under=enrolment_of(ring, m)), VAULT)
    # Under V's enrolment M may not state it.
    assert ring.add([says_heir(m, party("x"), enrolment_of(ring, v))]) == ring
    gone = ring.add([says_revoked(ROOT, m)])
    assert heir.id in gone.view.members and v.id in gone.view.members


def test_trace_e10_a_root_changes_a_role_with_the_first_own() -> None:
    ring = new_ring(PHONE)
    first = next(
        st.body for st in ring.statements if isinstance(st.body, Member) and st.body.sign == PHONE.key
    )
    said = sign_statement(ROOT.signer, _replaced(first, role="reader", since=hlc(9)), VAULT)
    changed = ring.add([said])
    assert changed.view.members[PHONE.id].role == "reader" and not changed.view.may_write(PHONE.id)


@pytest.mark.parametrize("seed", range(4))
def test_trace_e11_one_snapshot_started_three_times(lab: Lab, seed: int) -> None:
    """B and E publish having seen each start; both die: all texts on a fresh device, no head refused."""
    a, b, c = lab.three()
    e = lab.restore("e")
    lab.settle(a, b, c, e)
    lab._runs["c"] = 100 * seed  # another seed: other keys, another order of hashes
    lab.save("c", "s")
    c.write("run", "first start")
    lab.sync(c)
    c = lab.put_back("c", "s")
    c.write("run", "second start")
    lab.sync(c)
    lab.sync(b)
    b.write("diary", "by B")
    lab.sync(b)
    e.write("other", "by E")
    lab.sync(e)
    c = lab.put_back("c", "s")
    c.write("run", "third start")
    assert lab.sync(c).new_identity
    lab.sync(b)
    b.write("diary", "by B, later")
    lab.sync(b)
    lab.sync(e)
    b.close(), e.close()
    reports = [lab.sync(a), lab.sync(a)]
    assert not any("head-refused" in kinds(report) for report in reports)
    wanted = {"by B, later", "by E"}
    assert wanted <= all_texts(a)
    assert "third start" in all_texts(a) | all_texts(c)
    fresh = lab.restore("fresh")
    assert wanted <= all_texts(fresh) and fresh.restored is not None
    assert "head-refused" not in kinds(fresh.restored)


def test_trace_e12_a_thief_pushes_a_successor_out(lab: Lab) -> None:
    """A thief of V's backup signs 20 successors of lesser hash: 8 remain; heads of others still join; V's displaced
    texts are adopted by their holders, and return when V is enrolled again."""
    a, b, v = lab.three()
    lab.save("c", "backup")
    v.write("old", "before")
    lab.sync(v)
    v = lab.put_back("c", "backup")
    v.write("mine", "after the restore")
    lab.sync(v)
    mine = v.device
    enrolled = v.replica.enrolled()
    assert mine != enrolled.id
    lab.sync(b)
    assert body(b, "mine") == "after the restore"
    b.write("tone", "by B")
    lab.sync(b)  # B's head has V's values under the successor
    ring = _ring(b)
    body_of = next(st for st in ring.statements if getattr(st.body, "id", "") == mine)
    me = Party("v", enrolled.sign_seed, enrolled.box_secret)
    flood: list[Statement] = []
    for n in itertools.count():
        said = says_heir_in(ring, me, party(f"thief {n % 20}"), f"{n}")
        if said.hash < body_of.hash and said.body.id not in {st.body.id for st in flood}:
            flood.append(said)
        if len(flood) == 20 or n > 20_000:
            break
    thief = Party("thief", b"", b"")
    assert thief and len(flood) >= 8
    stolen = _ring(b).add(flood)
    assert sum(one.rank == 2 for one in stolen.view.members.values()) == 8
    assert mine not in stolen.view.keys_of
    # A learns of it before it has seen V's successor or B's head.
    _set(a, _ring(a).add([st for st in ring.statements if st.body.t == "member"]).add(flood))
    report = lab.sync(a)
    assert body(a, "tone") == "by B" and a.read("mine") is None
    # Only V's own head is refused, because its maker has no key here. B's is joined without V's texts.
    refused = [line for line in says(report, "head-refused").splitlines() if mine not in line]
    assert not refused
    assert mine in says(report, "in-part")
    # B, which holds them, writes them under its own dots.
    report = lab.sync(b)
    assert mine in says(report, "orphan")
    lab.settle(a, b)
    assert body(a, "mine") == body(b, "mine") == "after the restore"
    # V is enrolled again, and continues.
    assert "not-a-writer" in kinds(lab.sync(v))
    v.write("more", "by V again")
    v.unlock(WALLET)
    lab.settle(v, a, b)
    assert body(a, "more") == "by V again" and {"before", "after the restore", "by V again"} <= all_texts(a)


def says_heir_in(ring: Ring, by: Party, who: Party, label: str) -> Statement:
    """A successor in the vault of another ring than the fixture's."""
    box = by.box
    head = ring.view.members[member_id(by.signer.public)]
    return sign_statement(
        by.signer,
        Member(
            anchor=None, box=box.hex(), by=by.key, heir_of=by.key, id=member_id(who.signer.public), kind="device",
            label=label, own=statements.possession(who.signer, ring.vault, box=box, heir_of=by.signer.public),
            person=head.owner or "", role="writer", sign=who.key, since="0" * 16, under=head.hash,
            was=member_id(by.signer.public),
        ),
        ring.vault,
    )  # fmt: skip


def test_trace_e13_public_part_names_the_admins() -> None:
    """D, enrolled before W2 became admin, sees only the public part after W2 revoked X: D stops sealing."""
    w2, x, d = second_wallet("W2"), PHONE, TABLET
    base = new_ring(x)
    mine = enrolled(base, ROOT, d)
    gone = _revoke(enrolled(base, ROOT, w2, "admin"), w2, x, 1)
    with pytest.raises(IpfsmemError):
        parse_keyring(gone.serialise()).unlock(d.box_secret, mine.keys)
    after = mine.join_open_part(parse_keyring(gone.serialise()))
    assert after.view.sealing is None and after.view.must_exclude == {x.id}
    assert w2.id in after.view.rights.admin_ids
    # An epoch of a stranger or a member does none of that.
    assert mine.add([says_epoch(party("stranger"), ek_of(9, 9), [d], [x])]) == mine


@pytest.mark.parametrize("by_words", [False, True])
def test_trace_e13_on_devices(lab: Lab, by_words: bool) -> None:
    """A device enrolled meanwhile publishes nothing that a revoked one can open."""
    owner, _, stolen = lab.three()
    owner.unlock(WALLET)
    words = _later_words(owner)
    lab.settle(owner, stolen)
    _set(owner, _revoked_by(owner, words if by_words else WALLET, stolen.device))
    new = lab.restore("new")
    Forger(owner).publish()
    new.write("secret", "written after the revoke was published")
    report = lab.sync(new)
    assert not report.published and "cannot-publish" in kinds(report)
    lab.clock.advance(1)
    asyncio.run(owner.sync())
    lab.settle(owner, new)
    assert body(owner, "secret") == "written after the revoke was published"
    lab.sync(stolen)
    assert stolen.read("secret") is None


def test_trace_e14_words_that_sign_against_themselves() -> None:
    """Revoked words sign an epoch with themselves in `not`, given to all: that key never seals."""
    ring = _revoke(enrolled(new_ring(LAPTOP), ROOT, WORDS, "admin"), ROOT, WORDS, 1)
    key = ek_of(9, 9)
    for gone in ([WORDS], []):
        said = says_epoch(WORDS, key, [LAPTOP], gone, old=ring.view.names)
        assert ring.add([said], [key]) == ring
    # Before the revocation is known neither is valid: it is dropped for what it says of its signer.
    before = enrolled(new_ring(LAPTOP), ROOT, WORDS, "admin")
    assert before.add([says_epoch(WORDS, key, [LAPTOP], [WORDS])], [key]) == before


def test_trace_e15_a_finder_of_old_words_floods(lab: Lab) -> None:
    """The finder of a revoked phrase signs revokes, enrolments and epochs: no member is removed, the ring does not
    grow, all heads still join."""
    a, b, m = lab.three()
    a.unlock(WALLET)
    words = _later_words(a)
    lab.settle(a, b, m)
    lab.clock.advance(1)
    asyncio.run(a.members.revoke(member_id(words.admin_public)))
    lab.settle(a, b, m)
    finder = Party("words", words.admin_seed, words.box_secret)
    ring = _ring(m)
    said: list[Statement] = []
    for target in (a.device, b.device):
        key = ring.view.sign_key(target)
        assert key is not None
        said.append(
            sign_statement(
                finder.signer,
                statements.Revoke(None, "f" * 16, finder.key, (), (), {}, "12" * 8, 1, key.hex()),
                ring.vault,
            )
        )
    for n in range(400):
        device = party(f"flood {n}").device_in(ring.vault)
        said.append(operations._member(finder.signer, ring.vault, device, "writer", hlc(n), "12" * 8))
    roots = tuple(sorted(ring.view.rights.root_ids))
    for n in range(400):
        key_ = epoch_key(9 + n, ek(n), ring.vault)
        said.append(
            sign_statement(
                finder.signer, statements.Epoch(finder.key, key_.id, 9 + n, roots, (), (), (), ()), ring.vault
            )
        )
    m.write("tone", "carried along")
    before = {one: _ring(one).serialise() for one in (a, b)}
    _publish_with(m, said)
    for memory in (a, b):
        assert "head-refused" not in kinds(lab.sync(memory))
        assert body(memory, "tone") == "carried along"
        assert _ring(memory).serialise() == before[memory]
        assert {a.device, b.device} <= _ring(memory).view.members.keys()


@pytest.mark.parametrize("seen", [True, False])
def test_trace_e16_words_revoke_a_laptop_and_are_revoked(lab: Lab, seen: bool) -> None:
    """Seen by the root: the laptop stays out. Unseen: the laptop returns, and that is reported once."""
    a, b, laptop = lab.three()
    a.unlock(WALLET)
    words = _later_words(a)
    lab.settle(a, b, laptop)
    a.lock()
    _set(a, _revoked_by(a, words, laptop.device))
    if seen:
        Forger(a).publish()
        lab.sync(b)
        assert laptop.device in _ring(b).view.out
    _set(b, _revoked_by(b, WALLET, member_id(words.admin_public)))
    if not seen:
        Forger(a).publish()
    Forger(b).publish()
    reports = [lab.sync(memory) for memory in (a, b, a, b, a)]
    lost = [says(report, "revoke-dropped") for report in reports]
    assert _ring(a).view.out == _ring(b).view.out
    assert (laptop.device in _ring(a).view.out) == seen
    assert any(laptop.device in text for text in lost) == (not seen)
    assert sum(bool(text) for text in lost[0::2]) <= 1


def test_trace_e17_one_root_revokes_words_on_two_devices() -> None:
    """With keep {a,b} and {a,c}; in all orders only a counts everywhere, and b and c can be enrolled again."""
    a, b, c = party("a"), party("b"), party("c")
    base = enrolled(new_ring(), ROOT, WORDS, "admin")
    said = {one: says_member(WORDS, one) for one in (a, b, c)}
    parts = [
        base.add([said[a], said[b], says_revoked(ROOT, WORDS, keep=[said[a].hash, said[b].hash], at=1)]),
        base.add([said[a], said[c], says_revoked(ROOT, WORDS, keep=[said[a].hash, said[c].hash], at=2)]),
        base.add(list(said.values())),
    ]
    met = {order: order[0].join(order[1]).join(order[2]) for order in itertools.permutations(parts)}
    met |= {order[::-1]: order[0].join(order[1].join(order[2])) for order in itertools.permutations(parts)}
    (first, *others) = met.values()
    assert all(one == first for one in others)
    assert a.id in first.view.members and not {b.id, c.id} & first.view.members.keys()
    first = rotate(first, ROOT.signer, ek(1), box=fixed_box)
    for one in (b, c):
        first = enrolled(first, ROOT, one)
        assert one.id in first.view.members


def test_trace_e18_two_floods_of_one_rogue() -> None:
    """A rogue admin fills A and B with different floods of 400 KB; each refuses the other; the root revokes at A: B joins A;
    the rogue's number 2^32-1 is free again."""
    rogue = second_wallet("rogue")
    base = enrolled(new_ring(LAPTOP), ROOT, rogue, "admin")
    last = ek_of(2**32 - 1, 8)
    floods = [[says_member(rogue, party(f"{side} {n}")) for n in range(400)] for side in ("left", "right")]
    a, b = base.add(floods[0]), base.add(floods[1])
    a = a.add([says_epoch(rogue, last, [LAPTOP, rogue], old=base.view.names)], [last])
    assert 0.7 < a.used < 1 and 0.7 < b.used < 1
    for one, other in ((a, b), (b, a)):
        with pytest.raises(LimitError):
            one.join(other)
    # Numbers out of reach of the roots' numbers are never used.
    assert rotate(a, ROOT.signer, ek(9), box=fixed_box).view.seals == (2, ek_of(2, 9).id)
    freed = a.add([says_revoked(ROOT, rogue)])
    assert freed.view.next_epoch == 2 and freed.used < 0.1
    gone = _revoke(freed, RECOVERY, rogue, 9)
    assert b.join(gone) == gone and gone.view.sealing is not None


def test_trace_e19_a_thousand_revokes(capsys: pytest.CaptureFixture[str]) -> None:
    """1,000 times enrol and revoke by the root: under 1 MiB, the 1,001st works, old values verify. With 64
    members, 1,000 epoch keys and three epochs the ring has less than 1 MiB and costs little to read and to join."""
    people = [party(f"device {n}") for n in range(1_000)]
    ring = new_ring()
    for start in range(0, 1_000, 50):
        batch = people[start : start + 50]
        ring = ring.add([says_member(ROOT, one, since=start) for one in batch])
        ring = ring.add([says_revoked(ROOT, one, n=start) for one in batch])
        ring = give_key(ring, ROOT.signer, ek(start), box=fixed_box)
    assert len(ring.view.out) == 1_000
    assert all(ring.view.sign_key(one.id) == one.signer.public for one in people)
    one_more = _revoke(enrolled(ring, ROOT, PHONE), ROOT, PHONE, 1_001)
    assert len(one_more.serialise()) < MAX_RING and PHONE.id in one_more.view.out

    crowd = [party(f"crowd {n}") for n in range(62)]
    keys = [ek_of(100 + n, 5_000 + n) for n in range(1_000)]
    names = [key.id for key in keys]
    full = one_more.add([says_member(ROOT, one) for one in crowd])
    for last in (keys[-3], keys[-2], keys[-1]):
        given = crowd if last is keys[-1] else crowd[:-1]
        said = says_epoch(
            ROOT if last is keys[-1] else RECOVERY,
            last,
            given,
            one_more.view.must_exclude,
            old=[*names, *one_more.view.names] if last is keys[-1] else names,
            slots=[fixed_box(operations.slot_text(last, VAULT), one.box) for one in (ROOT, *given)],
        )
        full = full.add([said], keys)
    size = len(full.serialise())
    assert len(full.view.members) == 64 and len(full.keys) > 1_000
    assert size < MAX_RING and full.used > 0.5
    # As a starting program: the ring from this disk, then the same one from a provider, then an older one.
    data, older, dump = full.serialise(), one_more.serialise(), full.dump()
    statements._cache._items.clear()
    times = {}

    def timed(what: str, work: Callable[[], Ring]) -> Ring:
        started = time.process_time()
        made = work()
        times[what] = time.process_time() - started
        return made

    mine = timed("restored", lambda: Ring.restore(dump))
    secrets = [ROOT.box_secret]
    for what, file in (("unchanged", data), ("again", data), ("older", older), ("older again", older)):
        known = mine.keys
        assert timed(what, lambda: mine.join(parse_keyring(file).unlock(secrets, known))) is mine  # noqa: B023
    assert timed("grown", lambda: one_more.join(mine)) == full
    mine.serialise()
    assert timed("the same file", lambda: mine if mine.equals_file(data) else full) is mine
    assert times["the same file"] < times["unchanged"]
    with capsys.disabled():
        shown = ", ".join(f"{what} {1e3 * seconds:.0f} ms" for what, seconds in times.items())
        print(f"\n1,001 revokes, 64 members, {len(full.keys)} keys: {size:,} bytes; {shown}")
    # A hundred times what it takes here.
    assert max(times.values()) < 20


def test_trace_e20_one_wallet_makes_its_vault_twice() -> None:
    """Two geneses (W,R1), (W,R2) in any order, then an old ring of each arrives late: no seal until one unlock, then one
    EK; late rings add nothing."""
    words = RootKeys.from_recovery(b"\x09" * 32)
    one = create(ROOT_KEYS, RECOVERY_KEYS, LAPTOP.device, ek=ek(1), since=hlc(1), box=fixed_box)
    two = create(ROOT_KEYS, words, PHONE.device, ek=ek(2), since=hlc(2), box=fixed_box)
    both = one.join(two)
    assert both == two.join(one) and both.view.sealing is None
    # One wallet is one person, on whichever device it was first unlocked.
    assert len({person.owner for person in both.view.members.values()}) == 1
    unlocked = give_key(both, ROOT.signer, ek(3), box=fixed_box)
    assert unlocked.view.sealing == epoch_key(2, ek(3), VAULT)
    for late in (one, two):
        assert unlocked.join(late) is unlocked
        assert late.join(unlocked) == unlocked
    assert {key.key for key in unlocked.keys} == {ek(1), ek(2), ek(3)}


def test_trace_e20_on_devices(lab: Lab) -> None:
    a, b = lab.create("a", recovery=True), lab.create("b", recovery=True)
    a.write("tone", "by A")
    b.write("plan", "by B")
    for memory in (a, b):
        memory.lock()
    lab.sync(a)
    lab.sync(b)
    lab.sync(a)
    assert _ring(a).view.sealing is None or _ring(b).view.sealing is None
    b.unlock(WALLET)
    lab.settle(b, a)
    same(a, b)
    assert all_texts(a) == {"by A", "by B"}
    assert len(_ring(a).view.roots) == 3
    assert all_texts(lab.restore("c")) == {"by A", "by B"}
