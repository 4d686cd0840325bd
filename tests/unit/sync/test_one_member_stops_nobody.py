"""A dishonest member, reader or thief of a backup stops no sync and no restore, and can be revoked. Each
attacker has real keys of the vault."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from nacl import bindings

from ipfsmem.bundle.blob import read_blob
from ipfsmem.causal.value import DeviceCounter, dot, sign_seen, sign_value
from ipfsmem.content.cid import CID, ipns_name, raw_cid
from ipfsmem.errors import IncompleteError, LimitError, ProviderUnavailable, UnreadError
from ipfsmem.memory import Memory
from ipfsmem.provider.contract import with_blocks
from ipfsmem.published.ipns_record import MAX_SEQUENCE, MAX_VALIDITY, make_record, parse_record
from ipfsmem.ring import operations
from ipfsmem.ring.statements import Revoke, Role, member_id, sign_statement
from ipfsmem.seal.primitives import Signer25519
from ipfsmem.sync import discovery, join_head
from ipfsmem.testing.clock import SeededRandom
from ipfsmem.testing.simulator import SimProvider
from ipfsmem.vault.recovery import NewWords
from ipfsmem.wallet.recovery_words import from_words
from ipfsmem.wallet.root_keys import RootKeys
from tests.support.device_lab import ROOT, SHORT, Forger, Lab, all_texts, kinds, says

#: The target of an attacker's name, which nobody has.
NOWHERE = raw_cid(sha256(b"nobody has this").digest())


def found_words(a: Memory) -> tuple[NewWords, RootKeys]:
    """New recovery words that somebody else learns."""
    a.unlock(ROOT)
    made = asyncio.run(a.members.new_words())
    a.lock()
    return made, RootKeys.from_recovery(from_words(" ".join(made.words)))


def admit(memory: Memory, words: RootKeys, seeds: Iterable[bytes]) -> None:
    """The words enrol devices that never existed, and a member publishes that."""
    ring = memory.replica.ring
    assert ring is not None
    since = f"{int(memory.replica.store.frame.hlc, 16) + 1:016x}"
    person = ring.view.owners[member_id(words.admin_public)]
    said = []
    for seed in seeds:
        box = bindings.crypto_scalarmult_base(sha256(seed).digest())
        puppet = operations.enrollee_of(Signer25519(seed), box, "puppet", ring.vault)
        said.append(operations._member(words.admin, ring.vault, puppet, "writer", since, person))
    with memory.replica.transaction():
        memory.replica.set_ring(ring.add(said))
    Forger(memory).publish()


def remove(memory: Memory, words: RootKeys, device: str) -> None:
    """The words revoke a device, and a member publishes that."""
    ring = memory.replica.ring
    assert ring is not None
    at, key = memory.replica.store.frame.hlc, SeededRandom("key")(32)
    said = operations.revoke(ring, words.admin, device, at=at, counters={}, ek=key)
    with memory.replica.transaction():
        memory.replica.set_ring(said)
    Forger(memory).publish()


def point(lab: Lab, seed: bytes, value: str, *, sequence: int | None = None) -> None:
    """Move the name of this key, as only its holder can."""
    records = lab.cloud.names.setdefault(ipns_name(Signer25519(seed).public), [])
    after = parse_record(records[-1]).sequence + 1 if records else 1
    until = MAX_VALIDITY if sequence else (lab.clock.ms + 10**10) * 1_000_000
    records.append(make_record(seed, value, sequence=sequence or after, validity=until))


def demote(lab: Lab, a: Memory, member: Memory, role: Role) -> None:
    """Change a device's role with the wallet."""
    with a.replica.transaction():
        ring, device = a.replica.ring, member.replica.device
        assert ring is not None
        stated = operations.enrollee_of(device.signer, device.box_public, "m", ring.vault)
        since = f"{int(a.replica.store.frame.hlc, 16) + 1:016x}"
        a.replica.set_ring(operations.enrol(ring, ROOT.admin, stated, role, since=since))


def test_chain_of_device_names_does_not_stop_a_sync(lab: Lab) -> None:
    """60 devices admitted by one phrase, whose names lead to 8 more each."""
    a, b, m = lab.three()
    made, words = found_words(a)
    lab.settle(a, b, m)
    random = SeededRandom("puppets")
    puppets = [random(32) for _ in range(60)]
    admit(m, words, puppets)
    target = parse_record(lab.cloud.names[ipns_name(m.replica.device.sign_public)][-1]).value
    for seed in puppets:
        chain = [seed, *(random(32) for _ in range(8))]
        for one, after in zip(chain, [*chain[1:], None], strict=True):
            point(lab, one, f"/ipns/{ipns_name(Signer25519(after).public)}" if after else target)
    b.write("honest", "by B")
    report = lab.sync(b)
    assert report.published and "an invalid version as the newest" in says(report, "bad-record")
    assert says(report, "bad-record").count("\n") < 4
    lab.sync(a)
    assert "by B" in all_texts(a)
    a.unlock(ROOT)
    asyncio.run(a.members.revoke(made.id, cascade=True))
    ring = a.replica.ring
    puppet_ids = {member_id(Signer25519(seed).public) for seed in puppets}
    assert ring is not None and not puppet_ids & ring.view.members.keys()
    a.lock()
    lab.settle(a, b)
    assert "by B" in all_texts(lab.restore("fresh"))


def test_names_of_devices_admitted_by_a_root_are_resolved_first(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery, "MAX_NAMES", 2)
    a, b, m = lab.three()
    _, words = found_words(a)
    lab.settle(a, b, m)
    random = SeededRandom("puppets")
    admit(m, words, [random(32) for _ in range(5)])
    b.write("honest", "by B")
    lab.sync(b)
    report = lab.sync(a)
    assert "by B" in all_texts(a) and "3 devices" in says(report, "names-left")


def test_pull_failing_on_data_of_a_member_does_not_block_its_revocation(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b, m = lab.three()
    a.unlock(ROOT)
    follow = discovery._follow_all

    async def refuses(run: object, todo: list[str], asked: set[str]) -> None:
        ring = a.replica.ring
        assert ring is not None
        if m.device in ring.view.members:
            raise LimitError("more than this device takes")
        await follow(run, todo, asked)  # type: ignore[arg-type]

    monkeypatch.setattr(discovery, "_follow_all", refuses)
    report = asyncio.run(a.members.revoke(m.device))
    assert "revoked" in kinds(report) and report.published
    assert "more than this device takes" in says(report, "not-pulled")
    monkeypatch.undo()
    lab.sync(b)
    ring = b.replica.ring
    assert ring is not None and m.device not in ring.view.members
    lab.provider("a").faults.offline = True
    with pytest.raises(ProviderUnavailable):
        asyncio.run(a.members.revoke(b.device))


def test_wallet_restores_a_vault_filled_with_devices_by_a_phrase(lab: Lab) -> None:
    """64 families; the wallet revokes the phrase and its devices."""
    a, b, m = lab.three()
    made, words = found_words(a)
    lab.settle(a, b, m)
    random = SeededRandom("families")
    admit(m, words, [random(32) for _ in range(64)])
    b.write("honest", "by B")
    lab.sync(b)
    fresh = lab.restore("fresh", hold=True)
    assert "by B" in all_texts(fresh)
    ring = fresh.replica.ring
    assert ring is not None and fresh.device in ring.view.members
    asyncio.run(fresh.members.revoke(made.id, cascade=True))
    lab.settle(b)
    ring = b.replica.ring
    assert ring is not None and len(ring.view.members) == 5


def test_member_without_room_reads_the_vault_and_can_make_room(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when roots admitted all members."""
    a, b, _ = lab.three()
    b.write("honest", "by B")
    lab.settle(a, b)
    monkeypatch.setattr("ipfsmem.ring.operations.MAX_FAMILIES", 4)
    fresh = lab.restore("fresh", hold=True)
    assert "by B" in all_texts(fresh) and fresh.restored is not None
    assert "member revoke" in says(fresh.restored, "not-enrolled") and fresh.restored.exit_code
    asyncio.run(fresh.members.revoke(b.device))
    ring = fresh.replica.ring
    assert ring is not None and fresh.device in ring.view.members and b.device not in ring.view.members


class Waits(SimProvider):
    """A gateway that searches for missing blocks until its caller gives up."""

    async def get_blocks(self, cids: Iterable[CID]) -> dict[CID, bytes]:
        wanted = list(cids)
        found = await super().get_blocks([cid for cid in wanted if cid != NOWHERE])
        if NOWHERE in wanted:
            raise with_blocks(ProviderUnavailable("no answer in time"), found)
        return found


class WaitingLab(Lab):
    def provider(self, name: str) -> SimProvider:
        return self.providers.setdefault(
            name, Waits(self.cloud, clock=self.clock, random=SeededRandom(f"provider {name}"))
        )


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[Lab]:
    made = WaitingLab(tmp_path)
    yield made
    made.close()


def test_reader_that_names_absent_objects_has_no_effect(waiting: Lab) -> None:
    """Its name is not even resolved."""
    lab = waiting
    a, b, m = lab.three()
    a.unlock(ROOT)
    demote(lab, a, m, "reader")
    a.lock()
    lab.settle(a, b)
    point(lab, m.replica.device.sign_seed, f"/ipfs/{NOWHERE}")
    b.write("honest", "by B")
    assert lab.sync(b).exit_code == 0 and lab.sync(a).exit_code == 0
    assert "by B" in all_texts(a)
    assert "by B" in all_texts(lab.restore("fresh"))
    a.unlock(ROOT)
    assert asyncio.run(a.members.revoke(m.device)).exit_code == 0


def test_writer_that_names_absent_objects_stops_no_sync(waiting: Lab) -> None:
    """The unread version is reported; a restore without it needs consent until the writer is revoked."""
    lab = waiting
    a, b, m = lab.three()
    point(lab, m.replica.device.sign_seed, f"/ipfs/{NOWHERE}")
    b.write("honest", "by B")
    report = lab.sync(b)
    assert report.published and report.exit_code == UnreadError.exit_code
    assert "no answer in time" in says(report, "channel-down")
    lab.sync(a)
    assert "by B" in all_texts(a)
    with pytest.raises(UnreadError):
        lab.restore("early")
    assert "by B" in all_texts(lab.restore("late", damaged_ok=True))
    a.unlock(ROOT)
    assert "revoked" in kinds(asyncio.run(a.members.revoke(m.device)))
    a.lock()
    assert lab.sync(a).exit_code == 0
    assert "by B" in all_texts(lab.restore("fresh"))


def test_admin_whose_anchor_is_invalid_stops_no_sync(waiting: Lab) -> None:
    """Only anchors of roots may stop a sync, because roots cannot be revoked."""
    lab = waiting
    a, b, _ = lab.three()
    made, words = found_words(a)
    lab.settle(a, b)
    point(lab, words.head_seed, f"/ipfs/{NOWHERE}")
    b.write("honest", "by B")
    assert lab.sync(b).published
    lab.sync(a)
    assert "by B" in all_texts(a)
    a.unlock(ROOT)
    asyncio.run(a.members.revoke(made.id))
    a.lock()
    assert lab.sync(a).exit_code == 0


def test_greatest_number_under_a_device_name_stops_no_publish(lab: Lab) -> None:
    """The device continues under a new id."""
    a, b, c = lab.three()
    b.write("before", "honest 1")
    lab.settle(a, b, c)
    old = b.replica.device
    value = parse_record(lab.cloud.names[ipns_name(old.sign_public)][-1]).value
    point(lab, old.sign_seed, value, sequence=MAX_SEQUENCE)
    b.write("after", "honest 2")
    report = lab.sync(b)
    assert report.new_identity and report.published and b.device != old.id
    lab.settle(a, b, c)
    assert {"honest 1", "honest 2"} <= all_texts(a)
    b.write("later", "honest 3")
    assert not lab.sync(b).new_identity
    lab.settle(a, b, c)
    assert "honest 3" in all_texts(c)


@pytest.mark.parametrize(
    "line", ["x" * 70_000, '{"id":"1","ts":"2026-01-01","type":"t","x":"%s"}' % ("y" * 65_490)]
)
def test_overlong_line_stops_no_timeline(lab: Lab, line: str) -> None:
    """The second line is too long only with a foreign id."""
    a, b, m = lab.three()
    a.note("mine")
    forger = Forger(m)
    forger.put_segment("2026-01-01", f"{line}\n{SHORT}\n{line}\n")
    forger.publish()
    lab.settle(a, b)
    for memory in (a, b, lab.restore("new")):
        assert [event["type"] for event in memory.timeline.read()] == ["s", "mine"]
        assert read_blob(memory.bundles.export()).events == [*memory.timeline.read()]


@pytest.mark.parametrize("comes_back_with", ["the wallet", "other words"])
def test_texts_of_many_devices_under_one_key_stop_no_sync(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, comes_back_with: str
) -> None:
    """Texts over the limit of an entry are left out."""
    monkeypatch.setattr(join_head, "MAX_VALUES", 10)
    a, _, m = lab.three()
    _, good = found_words(a)
    made, words = found_words(a)
    lab.settle(a, m)
    b = lab.restore("laptop", unlock=ROOT if comes_back_with == "the wallet" else good)
    b.write("k", "honest")
    lab.settle(a, b, m)
    random = SeededRandom("crowd")
    seeds = [random(32) for _ in range(20)]
    admit(m, words, seeds)
    forger = Forger(m)
    with m.replica.reading():
        honest = m.replica.store.entry("m/k")
    entry, counts, seen, blocks = dict(honest), dict[str, int](), dict[str, DeviceCounter](), []
    for seed in seeds:
        signer = Signer25519(seed)
        puppet = member_id(signer.public)
        counts[puppet], seen[puppet] = 2, sign_seen(signer, forger.vault, puppet, 2, "ab" * 8)
        for n in (1, 2):
            value, block = forger.value("m/k", dot(puppet, n), f"junk of {puppet}", h="f" * 16)
            entry[dot(puppet, n)] = sign_value(signer, "m/k", dot(puppet, n), value, forger.vault)
            blocks.append(block)
    forger.put({"m/k": entry}, ctx=counts, seen=seen, blocks=blocks)
    forger.publish()
    report = lab.sync(a)
    with a.replica.reading():
        stays = a.replica.store.entry("m/k")
    assert says(report, "crowded").startswith(f"{len(entry) - len(stays)} texts")
    assert "one name: k." in says(report, "crowded")
    assert report.left_out == len(entry) - len(stays) and report.exit_code == IncompleteError.exit_code
    assert len(stays) == 10 and honest.keys() < stays.keys()
    lab.settle(a, b)
    a.unlock(ROOT)
    asyncio.run(a.members.revoke(made.id, cascade=True))
    a.lock()
    lab.settle(a, b)
    assert "honest" in all_texts(a) & all_texts(b) & all_texts(lab.restore("fresh"))


def test_revoke_by_a_found_phrase_adds_no_keys_for_thousands(lab: Lab) -> None:
    """Successor keys named by the revoking admin would each need a counter in every commit."""
    a, b, m = lab.three()
    _, words = found_words(a)
    lab.settle(a, b, m)
    ring = m.replica.ring
    assert ring is not None
    random = SeededRandom("heirs")
    heirs = [Signer25519(random(32)) for _ in range(50)]
    said = Revoke(
        anchor=None,
        at=m.replica.store.frame.hlc,
        by=words.admin_public.hex(),
        heirs=tuple(sorted(one.public.hex() for one in heirs)),
        keep=(),
        n={},
        person="0" * 16,
        rank=1,
        sign=Signer25519(random(32)).public.hex(),
    )
    grown = operations.rotate(
        ring.add([sign_statement(words.admin, said, ring.vault)]), words.admin, random(32)
    )
    with m.replica.transaction():
        m.replica.set_ring(grown)
    forger = Forger(m)
    ids = {member_id(one.public): one for one in heirs}
    seen = {one: sign_seen(signer, forger.vault, one, 4, "ab" * 8) for one, signer in ids.items()}
    forger.put({}, ctx=dict.fromkeys(ids, 4), seen=seen)
    forger.publish()
    assert "in-part" in kinds(lab.sync(b))
    assert not ids.keys() & b.replica.store.frame.ctx.keys()
    b.write("honest", "by B")
    lab.sync(b)
    lab.sync(a)
    assert "by B" in all_texts(a)


def test_revoke_by_stolen_phrase_ends_with_it_if_cascading(lab: Lab) -> None:
    a, b, m = lab.three()
    made, words = found_words(a)
    lab.settle(a, b, m)
    device = b.replica.device.id
    remove(m, words, device)
    lab.sync(a)
    assert a.replica.ring is not None and device in a.replica.ring.view.out
    a.unlock(ROOT)
    asyncio.run(a.members.revoke(made.id, cascade=True))
    assert a.replica.ring is not None and device in a.replica.ring.view.members
    a.lock()
    lab.settle(a, b)
    b.write("honest", "by B")
    lab.sync(b)
    lab.sync(a)
    assert "by B" in all_texts(a)
