"""Further duties of a sync, and attacks on it: costs, retries, false answers of providers and members."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path

import pytest

from ipfsmem import canonical
from ipfsmem.content.cid import ipns_name, raw_cid
from ipfsmem.device.identity import Device, load_device
from ipfsmem.errors import ProviderError, ProviderUnavailable
from ipfsmem.memory import Memory
from ipfsmem.published.ipns_record import make_record
from ipfsmem.ring import operations
from ipfsmem.ring.keyring import Ring
from ipfsmem.testing.simulator import SimCloud, SimProvider
from ipfsmem.wallet.root_keys import RootKeys
from tests.support import effort
from tests.support.device_lab import (
    ROOT,
    Forger,
    Lab,
    all_texts,
    body,
    kinds,
    lab_in,
    pair,
    replaced,
    same,
    says,
    texts,
)

# -- cost ----------------------------------------------------------------------------------------------------------


def test_cost_of_a_sync_depends_on_the_change_only(lab: Lab) -> None:
    a, b, _ = lab.three()
    for n in range(400):
        a.write(f"memory{n}", f"text {n}")
    lab.settle(a, b)
    a.write("memory7", "changed")
    sent = lab.sync(a)
    assert sent.published and 0 < sent.blocks_sent <= 14 and sent.bytes_sent < 48 * 1024
    got = lab.sync(b)
    # Root, ring, commit, a path of the state, the body; the folder blocks of `o` are not read.
    assert 0 < got.blocks_received <= 14 and got.entries_changed == 1
    assert got.blocks_sent == 0 and got.adopted
    quiet = [lab.sync(memory) for memory in (a, b)]
    assert [(r.blocks_received, r.blocks_sent, r.published) for r in quiet] == [(0, 0, False)] * 2


def test_block_is_fetched_once_and_sent_once(lab: Lab) -> None:
    a, b, c = lab.three()
    for name in "abc":
        lab.provider(name).wire.clear()  # searching for the vault reads the anchor's root once more
    for n in range(6):
        (a, b, c)[n % 3].write(f"memory{n}", f"text {n}")
        for memory in (a, b, c):
            lab.sync(memory)
    for name in "abc":
        provider = lab.provider(name)
        asked: list[bytes] = []
        for exchange in provider.wire:
            if exchange.call == "get_blocks":
                # CIDs of 36 bytes, separated by line feeds.
                asked += [exchange.sent[i : i + 36] for i in range(0, len(exchange.sent), 37)]
        assert asked and len(asked) == len(set(asked))


def test_restored_device_is_up_to_date_after_its_second_sync(lab: Lab) -> None:
    a, b, c = lab.three()
    a.write("tone", "x")
    b.note("hi")
    lab.settle(a, b, c)
    fresh = lab.restore("d")
    lab.sync(fresh)
    assert fresh.files() == a.files() and fresh.timeline.read() == a.timeline.read()
    lab.settle(a, b, c, fresh)
    same(a, b, c, fresh)


# -- failures ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answered", [False, True], ids=["fails", "answer lost"])
def test_provider_that_fails_at_any_call_loses_nothing(tmp_path: Path, answered: bool) -> None:
    """By default every other call: the odd ones fail, of the even ones the answer is lost."""
    step = effort.every(2)
    k, failed = (1 + (answered and step > 1)) - step, True
    while failed:
        k += step
        with lab_in(tmp_path / str(k)) as lab:
            a = lab.create("a")
            a.write("base", "x")
            lab.sync(a)
            b = lab.restore("b")
            lab.settle(a, b)
            a.write("from_a", "a")
            b.write("from_b", "b")
            b.note("hi")
            lab.sync(a)
            provider = lab.provider("b")
            (provider.lose_answer if answered else provider.fail_call)(k)
            with contextlib.suppress(ProviderError):
                lab.sync(b)
            failed = not provider.stop_failing()
            assert body(b, "from_b") == "b"
            b.write("later", "written after the failure")
            lab.settle(b, a)
            same(a, b)
            assert all_texts(a) == {"x", "a", "b", "written after the failure"}
            assert [event["type"] for event in a.timeline.read()] == ["hi"]
            assert not b.replica.db.get_meta("former")
        assert k < 60
    assert k > 6


def test_interrupted_upload_is_completed_by_the_next_sync(lab: Lab) -> None:
    a, b, _ = lab.three()
    for n in range(30):
        a.write(f"memory{n}", f"text {n}")
    for stored in (0, 1, 5, 20):
        lab.provider("a").faults.reset_after = stored
        with pytest.raises(ProviderUnavailable):
            lab.sync(a)
    lab.provider("a").faults.reset_after = None
    lab.sync(a)
    lab.sync(b)
    assert len(b.files()) == 30 and b.status().not_fetched == 0


def test_missing_text_arrives_later_and_is_reported(lab: Lab) -> None:
    a, b, c = lab.three()
    for n in range(3):
        a.write(f"memory{n}", f"text {n}")
    lab.sync(a)
    ((_, value),) = a.replica.store.entry("m/memory1").items()
    assert value.loc is not None
    lab.provider("b").faults.drop = {raw_cid(bytes.fromhex(value.loc.sha))}
    assert lab.sync(b).not_fetched == 1 and b.status().not_fetched == 1
    assert lab.sync(b).not_fetched == 1
    lab.provider("b").faults.drop = set()
    assert lab.sync(b).not_fetched == 0
    lab.settle(a, b, c)
    same(a, b, c)


def test_second_provider_receives_everything(lab: Lab) -> None:
    a, b, _ = lab.three()
    for n in range(5):
        a.write(f"memory{n}", f"text {n}")
    lab.settle(a, b)
    other = SimProvider(SimCloud(), clock=lab.clock, name="second")
    asyncio.run(a.sync(other))
    lab.providers["e"] = other
    assert texts(lab.restore("e")) == texts(a)
    asyncio.run(b.sync(SimProvider(other.cloud, clock=lab.clock, name="second")))
    asyncio.run(a.sync(other))
    assert a.status().root == b.status().root


# -- dishonest providers ----------------------------------------------------------------------------------------------


def test_flipped_bit_of_a_head_is_refused_and_named(lab: Lab) -> None:
    a, b, _ = lab.three()
    a.write("tone", "x")
    known = set(lab.cloud.blocks)
    lab.sync(a)
    new = [cid for cid in lab.cloud.blocks if cid not in known]
    assert len(new) >= 4
    for cid in new:
        lab.provider("b").faults.flip = {cid: 77}
        report = lab.sync(b)
        if "bad-block" in kinds(report):
            assert str(cid) in says(report, "bad-block")
        assert b.replica.store.frame.ctx.get(a.device, 0) in (0, 1)
    lab.provider("b").faults.flip = {}
    lab.sync(b)
    assert body(b, "tone") == "x"


def test_old_names_revert_nothing(lab: Lab) -> None:
    a, b, c = lab.three()
    a.write("tone", "old")
    lab.settle(a, b, c)
    a.write("tone", "new")
    lab.settle(a, b, c)
    lab.provider("b").faults.old_record = dict.fromkeys(lab.cloud.names, 0)
    report = lab.sync(b)
    assert body(b, "tone") == "new" and not report.published
    # A device without a stored record of a name reports that the shown one is old.
    lab.provider("b").faults.old_record = {ipns_name(a.replica.device.sign_public): 0}
    with b.replica.transaction():
        b.replica.db.connection.execute("DELETE FROM meta WHERE name='names'")
    report = lab.sync(b)
    assert "stale" in kinds(report)
    assert body(b, "tone") == "new"
    lab.provider("b").faults.old_record = {}
    lab.settle(a, b, c)
    same(a, b, c)


def test_old_anchor_is_replaced_by_the_newest(lab: Lab) -> None:
    a, b, _ = lab.three()
    anchor = ipns_name(ROOT.head_public)
    current = lab.cloud.names[anchor][-1]
    assert len(lab.cloud.names[anchor]) >= 2
    lab.cloud.names[anchor] = lab.cloud.names[anchor][:1]
    b.write("tone", "x")
    lab.sync(b)
    # B cannot sign it but has stored it: it publishes it again.
    assert lab.cloud.names[anchor][-1] == current
    assert body(lab.restore("d"), "tone") == "x"
    assert a.replica.ring is not None


def test_another_vault_under_our_names(lab: Lab) -> None:
    a, b, _ = lab.three()
    a.write("tone", "x")
    lab.settle(a, b)
    other = Lab(lab.folder / "other")
    other.cloud = lab.cloud
    foreign = RootKeys.from_random(b"\x09" * 64, "default", 1)
    x = other.create("x", unlock=foreign)
    x.write("tone", "of another vault")
    other.sync(x)
    root = other.record_root(x.replica.device.sign_public)
    device = a.replica.device
    name = ipns_name(device.sign_public)
    # A's own key, stolen or misused, lets its name lead there.
    record = make_record(device.sign_seed, f"/ipfs/{root}", 10_000, lab.clock.ns + 10**15)
    kept = list(lab.cloud.names[name])
    lab.cloud.names[name].append(record)
    report = lab.sync(b)
    assert "not of" in says(report, "head-refused")
    assert body(b, "tone") == "x"
    lab.cloud.names[name] = kept
    other.close()


def test_unreadable_own_version_stops_publishing(lab: Lab) -> None:
    a, b, c = lab.three()
    b.write("tone", "x")
    lab.settle(a, b, c)
    lab.save("b", "backup")
    b.write("tone", "published by the lost copy")
    lab.sync(b)
    lost = lab.record_root(b.replica.device.sign_public)
    b = lab.put_back("b", "backup")
    b.write("other", "after the restore")
    lab.provider("b").faults.drop = {lost}
    report = lab.sync(b)
    assert str(lost) in says(report, "cannot-publish") and not report.published
    lab.provider("b").faults.drop = set()
    assert lab.sync(b).new_identity
    lab.settle(a, b, c)
    same(a, b, c)
    assert {"published by the lost copy", "after the restore"} <= all_texts(a)


# -- dishonest members ------------------------------------------------------------------------------------------------


def test_another_signature_under_a_known_value_is_checked(lab: Lab) -> None:
    """The signature is not part of a value's identity, and of two the greater is kept: so both must be
    valid."""
    a, b, m = lab.three()
    b.write("tone", "x")
    lab.settle(a, b, m)
    ((under, value),) = m.replica.store.entry("m/tone").items()
    garbage = canonical.b64(b"\xcf\x3c\xf3" * 21 + b"\xcf")  # zzz...: no base64url text is greater
    assert garbage > value.s
    forger = Forger(m)
    forger.put({"m/tone": {under: replaced(value, s=garbage)}})
    forger.publish()
    report = lab.sync(a)
    assert "is not signed" in says(report, "head-refused")
    assert a.replica.store.entry("m/tone")[under].s == value.s
    assert texts(lab.restore("d")) == texts(b)


def test_dot_in_two_entries_of_one_head_is_refused(lab: Lab) -> None:
    a, _, m = lab.three()
    forger = Forger(m)
    under = forger.next_dot()
    (one, block), (two, more) = forger.value("m/one", under, "1"), forger.value("m/two", under, "2")
    forger.put(
        {"m/one": {under: one}, "m/two": {under: two}}, ctx={m.device: int(under[17:])}, blocks=[block, more]
    )
    forger.publish()
    assert "is in m/one and in m/two" in says(lab.sync(a), "head-refused")
    assert a.read("one") is None and a.read("two") is None


def test_value_beyond_the_counters_of_its_commit_is_refused(lab: Lab) -> None:
    a, _, m = lab.three()
    forger = Forger(m)
    m.write("tone", "x")
    under = f"{m.device}-9"
    value, block = forger.value("m/later", under, "1")
    forger.put({"m/later": {under: value}}, blocks=[block])
    forger.publish()
    assert "beyond the counters of its own commit" in says(lab.sync(a), "head-refused")


def test_reader_does_not_publish(lab: Lab) -> None:
    a, b, m = lab.three()
    asyncio.run(_demote(lab, a, m))
    lab.settle(a, b)
    m.write("tone", "by a reader")
    report = lab.sync(m)
    assert "not-a-writer" in kinds(report) and not report.published
    lab.sync(a)
    assert a.read("tone") is None


def test_commit_of_a_reader_is_refused(lab: Lab) -> None:
    """Threat 15: a commit of a reader is refused wherever it is found."""
    a, b, m = lab.three()
    asyncio.run(_demote(lab, a, m))
    lab.settle(a, b)
    m.write("tone", "by a reader")
    Forger(m).publish()
    lab.clock.advance(3601)
    report = lab.sync(a)
    assert "is not a member that may write" in says(report, "head-refused")
    assert a.read("tone") is None


def test_commit_of_a_revoked_device_is_refused(lab: Lab) -> None:
    """Threat 10."""
    a, b, m = lab.three()
    m.write("tone", "before")
    lab.settle(a, b, m)
    a.unlock(ROOT)
    asyncio.run(a.members.revoke(m.replica.device.id))
    m.write("tone", "by the thief")
    Forger(m).publish()
    lab.clock.advance(3601)
    report = lab.sync(a)
    assert "was revoked" in says(report, "head-refused")
    lab.sync(b)
    for memory in (a, b, lab.restore("d")):
        assert body(memory, "tone") == "before" and "by the thief" not in all_texts(memory)


async def _demote(lab: Lab, a: Memory, m: Memory) -> None:
    with a.replica.transaction():
        ring = a.replica.ring
        assert ring is not None
        device = m.replica.device
        public = operations.enrollee_of(device.signer, device.box_public, "m", ring.vault)
        a.replica.set_ring(operations.enrol(ring, ROOT.admin, public, "reader", since="f" * 16))
    lab.clock.advance(1)
    await a.sync()


def test_copies_of_a_revoked_member_do_not_keep_devices_apart(lab: Lab) -> None:
    """M shows A one head and B another under the same counter; once M is revoked both texts are kept by all."""
    a, b, m = lab.three()
    lab.save("c", "image")
    twin = lab.copy_to("image", "m2", hidden=True)
    m.write("tone", "to A")
    twin.write("tone", "to B")
    Forger(m).publish()
    lab.sync(a)
    Forger(twin).publish()
    name = ipns_name(m.replica.device.sign_public)
    lab.cloud.names[name] = lab.cloud.names[name][-1:]
    lab.provider("b").faults.drop = {lab.record_root(a.replica.device.sign_public)}
    lab.sync(b)
    assert {body(a, "tone"), body(b, "tone")} == {"to A", "to B"}
    lab.provider("b").faults.drop = set()
    assert "equivocation" in kinds(lab.sync(a)) | kinds(lab.sync(b))
    assert all_texts(a) != all_texts(b)
    asyncio.run(a.members.revoke(m.device))
    reports = [lab.sync(memory) for memory in (b, a, b)]
    assert any("fork-joined" in kinds(report) for report in reports)
    lab.settle(a, b)
    same(a, b)
    assert all_texts(a) == {"to A", "to B"}
    assert all_texts(lab.restore("d")) == {"to A", "to B"}


def test_nine_successors_of_one_member_invalidate_no_other_heads(lab: Lab) -> None:
    """A ring has at most eight successors of a device; values of a ninth continue under the ids of their holders."""
    a, b, m = lab.three()
    ring = m.replica.ring
    assert ring is not None
    rings = []
    me = m.replica.device
    for n in range(9):
        made = Device(bytes([n + 1]) * 32, me.box_secret, me.row_key)
        grown = operations.add_successor(ring, me.signer, made.signer, me.id, since="0" * 16)
        rings.append((made, grown))
    with_all = ring
    for _, grown in rings:
        with_all = with_all.join(grown)
    # The one that will be displaced comes first.
    first, with_first = next(item for item in rings if item[0].id not in with_all.view.members)
    with m.replica.transaction():
        m.replica.set_device(first)
        m.replica.set_ring(with_first)
    m.write("tone", "by the successor that will be dropped")
    m.note("hello")
    Forger(m).publish()
    # M's own name leads to it.
    root = lab.record_root(first.sign_public)
    lab.cloud.names[ipns_name(_first_key(ring))] = [
        make_record(_seed(lab, "c"), f"/ipfs/{root}", 500, lab.clock.ns + 10**15)
    ]
    lab.sync(a)
    assert body(a, "tone") == "by the successor that will be dropped"
    with a.replica.transaction():
        a.replica.set_ring(a.replica.ring.join(with_all) if a.replica.ring else with_all)
    assert a.replica.ring is not None and first.id not in a.replica.ring.view.keys_of
    report = lab.sync(a)
    assert first.id in says(report, "orphan") and report.published
    lab.settle(a, b)
    same(a, b)
    assert body(b, "tone") == "by the successor that will be dropped"
    assert [event["type"] for event in b.timeline.read()] == ["hello"]
    fresh = lab.restore("d")
    assert body(fresh, "tone") == "by the successor that will be dropped"
    assert pair(a, a.device).n >= 2


def _first_key(ring: Ring) -> bytes:
    """Return the key under which device C was enrolled."""
    return next(person.sign for person in ring.view.members.values() if person.label == "c")


def _seed(lab: Lab, name: str) -> bytes:
    return load_device(lab.home(name) / "alex", None).sign_seed


def test_own_unpublished_write_survives_an_outage(lab: Lab) -> None:
    a, b, c = lab.three()
    b.write("mine", "not yet published")
    lab.provider("b").faults.offline = True
    for n in range(3):
        a.write("other", f"{n}")
        lab.sync(a)
        with pytest.raises(ProviderUnavailable):
            lab.sync(b)
        assert body(b, "mine") == "not yet published" and b.status().unpublished
    lab.provider("b").faults.offline = False
    lab.settle(b, a, c)
    same(a, b, c)
    assert body(c, "mine") == "not yet published"


def test_text_over_the_limit_of_an_entry_blocks_no_sync(lab: Lab) -> None:
    """Four own texts under one key, and one of an id without a statement."""
    a, b, _ = lab.three()
    for n in range(4):
        blob = {"version": "memory/0.1", "index": "", "files": {"tone.md": f"version {n}"}, "timeline": []}
        b.bundles.import_(json.dumps(blob))
    lab.settle(a, b)
    forger, nobody = Forger(b), "ab" * 8
    value, block = forger.value("m/tone", f"{nobody}-1", "a text by an id without a key")
    forger.put(
        {"m/tone": {**dict(b.replica.store.entry("m/tone")), f"{nobody}-1": value}},
        ctx={nobody: 1},
        seen={nobody: forger.seen(nobody, 1)},
        blocks=[block],
    )
    assert len(b.replica.store.entry("m/tone")) == 5
    b.write("news", "does anybody get this?")
    (report, *_) = [lab.sync(b) for _ in range(2)]
    for _ in range(2):
        assert "head-refused" not in kinds(lab.sync(a))
    assert body(a, "news") == "does anybody get this?"
    (key,) = [key for key in texts(a) if key.startswith("tone-")]
    assert key in says(report, "orphan") and texts(a)[key] == {""}
    assert a.replica.store.entry(f"m/{key}").keys() == b.replica.store.entry(f"m/{key}").keys()
    fresh = lab.restore("d")
    assert body(fresh, "news") == "does anybody get this?" and key in texts(fresh)
    (conflict,) = [one for one in b.conflicts() if one.key == "tone"]
    b.resolve("tone", b"one text", seen=conflict)
    lab.settle(a, b)
    assert "orphan" not in kinds(lab.sync(b))
