"""Traces 34 to 46 as far as commits and providers show them: data that would have leaked or been taken over.

Traces about the ring alone (34, 39, 43, 44, 45) are in test_ring_traces.py."""

from __future__ import annotations

import asyncio
import json
from hashlib import sha256

import msgspec
import pytest

from ipfsmem.canonical import encode
from ipfsmem.content.cid import CID, decode_cid, ipns_name, raw_cid
from ipfsmem.content.dagpb import decode_node
from ipfsmem.device.identity import seal_row
from ipfsmem.device.root_folders import add_file, add_folder
from ipfsmem.errors import OpenError
from ipfsmem.memory import Memory
from ipfsmem.provider.contract import Pin
from ipfsmem.published.ipns_record import MAX_SEQUENCE, make_record, parse_record
from ipfsmem.ring import operations
from ipfsmem.ring.keyring import parse_keyring
from ipfsmem.sync.names import pin_name
from ipfsmem.wallet.recovery_words import from_words
from ipfsmem.wallet.root_keys import RootKeys
from tests.support.device_lab import (
    ROOT,
    Forger,
    Lab,
    all_texts,
    body,
    delete,
    kinds,
    pair,
    same,
    says,
    texts,
)


def _revoked(lab: Lab) -> tuple[Memory, Memory, Memory, Forger]:
    """A has revoked M, and B has seen it; M still has its state, its keys and the old epoch key."""
    a, b, m = lab.three()
    m.write("mine", "by M")
    lab.settle(a, b, m)
    asyncio.run(a.members.revoke(m.device))
    lab.sync(b)
    return a, b, m, Forger(m)


def test_trace_35_anchor_is_signed_only_by_the_wallet(lab: Lab) -> None:
    """Every writer held the seed of the shared name: a revoked one sets sequence 2^64-1 to an old root."""
    a, b, m, _ = _revoked(lab)
    old = lab.record_root(ROOT.head_public)
    b.write("tone", "x")
    lab.settle(a, b)
    stolen = m.replica.device
    anchor = ipns_name(ROOT.head_public)
    assert ROOT.head_seed not in {stolen.sign_seed, stolen.box_secret, stolen.row_key}
    forged = make_record(stolen.sign_seed, f"/ipfs/{old}", MAX_SEQUENCE, lab.clock.ns + 10**18)
    # A provider may serve it; every reader refuses it.
    real = list(lab.cloud.names[anchor])
    lab.cloud.names[anchor].append(forged)
    for memory in (a, b):
        report = lab.sync(memory)
        assert anchor in says(report, "bad-record")
        assert memory.read("tone") is not None
    lab.cloud.names[anchor] = real
    assert body(lab.restore("d"), "tone") == "x"


def test_trace_36_a_device_that_cannot_open_the_new_epoch_stops(lab: Lab) -> None:
    """A new device is enrolled under EK1 while another admin rotates: it sees an epoch that it cannot open, and stops."""
    a, b, c = lab.three()
    # The wallet on a second machine rotates without having seen C's enrolment.
    with a.replica.transaction():
        ring = a.replica.ring
        assert ring is not None
        without = [st for st in ring.statements if getattr(st.body, "id", "") != c.device]
        small = type(ring)(ring.vault, without, ring.keys)
        rotated = operations.revoke(
            small,
            ROOT.admin,
            b.device,
            at="0" * 16,
            counters={},
            ek=b"\x55" * 32,
        )
        a.replica.ring = rotated
        a.replica.codec.use_ring(rotated)
        a.replica.db.set_meta("ring", _sealed(a, rotated.dump()))
    a.write("secret", "not for the revoked")
    Forger(a).publish()
    c.write("late", "sealed for whom?")
    before = set(lab.cloud.blocks)
    report = lab.sync(c)
    assert "cannot-publish" in kinds(report) and "admin must unlock" in says(report, "cannot-publish")
    assert set(lab.cloud.blocks) == before
    assert body(c, "late") == "sealed for whom?"
    # One unlock gives it the key; nothing was lost meanwhile.
    a.write("more", "text")
    c.unlock(ROOT)
    lab.settle(c, a)
    same(a, c)
    assert body(a, "late") == "sealed for whom?" and body(c, "secret") == "not for the revoked"


def _sealed(memory: Memory, dump: bytes) -> bytes:
    return seal_row(memory.replica.device.row_key, dump, memory.replica.environment.random(24))


def test_trace_37_every_commit_of_a_revoked_member_is_refused(lab: Lab) -> None:
    """A revoked laptop signs a commit with an old c that rewrites what it ever authored."""
    a, b, m, forger = _revoked(lab)
    ((under, _),) = m.replica.store.entry("m/mine").items()
    value, block = forger.value("m/mine", under, "rewritten after the fact")
    forger.put({"m/mine": {under: value}}, blocks=[block])
    forger.publish()
    # Its name is no longer followed; where a pin list shows the root, its commit is refused.
    for memory in (a, b):
        provider = lab.providers["a" if memory is a else "b"]
        provider.change(names=False)
        report = lab.sync(memory)
        assert "which was revoked" in says(report, "head-refused")
        provider.change(names=True)
        assert body(memory, "mine") == "by M"  # joined data remains
    assert body(lab.restore("d"), "mine") == "by M"


def test_trace_38_key_ring_is_valid_only_where_it_is_named(lab: Lab) -> None:
    """P pairs a new `open` with an old `body`. -> the bytes of keyring.json are named by the commit or the anchor."""
    a, b, c = lab.three()
    old = a.replica.ring
    assert old is not None
    lab.sync(a)
    asyncio.run(a.members.revoke(c.device))
    new = a.replica.ring
    assert new is not None
    before, after = json.loads(old.serialise()), json.loads(new.serialise())
    mixed = encode({**after, "body": before["body"]})
    # As a separate root in the pin list, for a device that finds nothing else.
    root = _ring_root(lab, a, mixed)
    asyncio.run(lab.provider("a").pin(root, pin_name(ROOT.head_public)))
    known = b.replica.ring
    provider = lab.provider("b")
    provider.change(names=False)
    provider.freeze_pins()
    assert provider.faults.pins is not None
    provider.faults.pins = [pin for pin in provider.faults.pins if pin.cid == root]
    report = lab.sync(b)
    # At most it learns, signed by the wallet, that another key seals now: then it publishes nothing.
    assert b.replica.ring is not None and known is not None and b.replica.ring.keys == known.keys
    assert not b.replica.ring.view.revoked and b.replica.ring.view.members == known.view.members
    assert b.replica.ring == known or "cannot-publish" in kinds(report)
    # Next to a true commit: the commit names other bytes.
    head = lab.record_root(a.replica.device.sign_public)
    links = {link.name: link.cid for link in decode_node(lab.cloud.blocks[head]).links}
    with a.replica.transaction():
        parts = [
            (
                name.encode(),
                *(add_file(a.replica.db, mixed) if name == "keyring.json" else (link.encode(), 1)),
            )
            for name, link in sorted(links.items())
        ]
        cid, _ = add_folder(a.replica.db, parts)
    forged = decode_cid(cid)
    lab.cloud.blocks[forged] = a.replica.db.block(forged.digest) or b""
    provider.faults.pins = [msgspec.structs.replace(pin, cid=forged) for pin in provider.faults.pins]
    report = lab.sync(b)
    assert "head-refused" in kinds(report) and b.replica.ring is not None
    assert c.device not in b.replica.ring.view.revoked
    assert "names another keyring.json" in says(report, "head-refused") or "key" in says(
        report, "head-refused"
    )


def test_trace_38_parts_of_two_rings_that_open(lab: Lab) -> None:
    """A new `open` with an old `body` under one epoch key opens, but no statement names these bytes."""
    a, b, _ = lab.three()
    before = b.replica.ring
    assert before is not None
    lab.restore("d")
    lab.sync(a)
    after = a.replica.ring
    assert after is not None and after.keys == before.keys
    mixed = encode({**json.loads(after.serialise()), "body": json.loads(before.serialise())["body"]})
    provider = lab.provider("b")
    provider.faults.pins = [Pin(_ring_root(lab, a, mixed), pin_name(ROOT.head_public), "1", 0)]
    provider.change(names=False)
    lab.sync(b)
    assert b.replica.ring == before
    provider.change(names=True)
    provider.faults.pins = None
    lab.settle(b, a)
    assert b.replica.ring == a.replica.ring == after


def _ring_root(lab: Lab, memory: Memory, keyring: bytes) -> CID:
    """A root with these bytes alone, uploaded by a stranger."""
    db = memory.replica.db
    with memory.replica.transaction():
        root = decode_cid(add_folder(db, [(b"keyring.json", *add_file(db, keyring))])[0])
    for cid in (root, raw_cid(sha256(keyring).digest())):
        lab.cloud.blocks[cid] = db.block(cid.digest) or b""
    return root


@pytest.mark.parametrize("names", [True, False], ids=["names", "no names"])
def test_trace_39_recovery_phrase_finds_the_vault_and_may_sign(lab: Lab, names: bool) -> None:
    """A recovery key that opens a slot but can neither find the vault nor sign. -> a root with an anchor; also where an account
    at a service keeps a pin list and nothing else."""
    for name in "abc":
        provider = lab.provider(name)
        provider.change(names=names)
    a = lab.create("a", recovery=True)
    assert a.recovery_words is not None
    words = RootKeys.from_recovery(from_words(" ".join(a.recovery_words)))
    a.write("tone", "x")
    lab.sync(a)
    a.lock()
    b = lab.restore("b", unlock=words)
    assert body(b, "tone") == "x"
    b.write("role", "by the one with the words")
    lab.settle(b, a)
    same(a, b)
    # The words can also revoke a stolen device.
    b.unlock(words)
    asyncio.run(b.members.revoke(a.device))
    c = lab.restore("c")
    assert texts(c) == texts(b) and c.replica.ring is not None
    assert a.device in c.replica.ring.view.revoked


def test_trace_40_an_old_root_opens_for_a_member_of_that_time(lab: Lab) -> None:
    """ "Shredded" data opens again with an old root and a member's box key. -> said plainly; no promise."""
    a, b, m = lab.three()
    a.write("secret", "shared with M")
    lab.settle(a, b, m)
    old = a.status().root
    asyncio.run(a.members.revoke(m.device))
    a.forget("secret")
    lab.settle(a, b)
    a.write("later", "not for M")
    lab.settle(a, b)
    ring, later = m.replica.ring, a.replica.ring
    assert ring is not None and later is not None and old is not None
    # The old root still opens with M's data, but nothing of the new epoch does.
    assert m.versions.diff(old) == []
    assert all_texts(m) == {"shared with M"}
    with pytest.raises(OpenError):
        parse_keyring(later.serialise()).unlock(m.replica.device.box_secret, ring.keys)


def test_trace_41_one_constant_pin_name(lab: Lab) -> None:
    """Pin names with device id and counter tell the provider who writes how often. -> one constant name a vault."""
    a, b, c = lab.three()
    for n in range(3):
        for memory in (a, b, c):
            memory.write("tone", f"{n} {memory.device}")
            lab.sync(memory)
    assert {pin.name for pin in lab.cloud.pins} == {pin_name(ROOT.head_public)}
    for provider in lab.providers.values():
        for memory in (a, b, c):
            assert not provider.saw(memory.device.encode())


def test_trace_42_concurrent_unlocks_lose_no_device(lab: Lab) -> None:
    """Two wallet unlocks at once move the anchor with one sequence: the loser's device is in no anchored ring."""
    a = lab.create("a")
    a.write("tone", "x")
    lab.sync(a)
    a.lock()
    anchor = ipns_name(ROOT.head_public)
    before = {name: len(records) for name, records in lab.cloud.names.items()}
    b = lab.restore("b")
    # C reads the names as they were before B enrolled itself; both sign the same sequence number.
    lab.provider("c").faults.old_record = {name: n - 1 for name, n in before.items()}
    for name in lab.cloud.names:
        lab.provider("c").faults.old_record.setdefault(name, -1)
    # It does not see the list of roots either, which would show B's ring.
    provider = lab.provider("c")
    provider.change(list=False)
    c = lab.restore("c")
    provider.change(list=True)
    provider.faults.old_record = {}
    sequences = [parse_record(record).sequence for record in lab.cloud.names[anchor]]
    assert sequences[-1] == sequences[-2] or len(sequences) == before[anchor] + 1
    b.write("laptop", "b")
    c.write("phone", "c")
    reports = [lab.sync(memory) for _ in range(2) for memory in (b, c, a)]
    asked = [report for report in reports if "unlock" in kinds(report)]
    assert asked, "nobody asks for the unlock that brings the loser's device into the anchored ring"
    loser = next(
        m for m, r in zip((b, c, a) * 2, reports, strict=True) if "unlock" in kinds(r) and m is not a
    )
    loser.unlock(ROOT)
    lab.settle(a, b, c)
    same(a, b, c)
    assert {"b", "c", "x"} <= all_texts(a)
    # And a new device with only the wallet finds everything.
    assert {"b", "c", "x"} <= all_texts(lab.restore("d"))


def test_trace_46_a_clone_that_counted_further_under_a_stale_name(lab: Lab) -> None:
    """A clone, shown a stale name, publishes a greater n: others see one r per n and drop the other's value."""
    a, b, c = lab.three()
    b.write("tone", "base")
    lab.settle(a, b, c)
    lab.save("b", "image")
    clone = lab.copy_to("image", "b2", hidden=True)
    b.write("mine", "one write of the first")
    lab.sync(b)
    lab.sync(a)
    clone.write("mine", "by the clone")
    for n in range(3):
        clone.write(f"more{n}", f"write {n} of the clone")
    Forger(clone).publish()
    assert pair(clone, b.device).n > pair(b, b.device).n
    first = lab.sync(a)
    assert "equivocation" in kinds(first) and body(a, "mine") == "one write of the first"
    lab.settle(b, clone, a, c)
    clone.unlock(ROOT)
    b.unlock(ROOT)
    lab.settle(b, clone, a, c)
    same(a, b, c, clone)
    assert texts(a)["mine"] == {"one write of the first", "by the clone"}
    assert body(a, "more2") == "write 2 of the clone"
    assert b.device != clone.device


def test_trace_46_one_dot_in_two_entries_under_different_counters(lab: Lab) -> None:
    """One r per n, no entry in common: the same dot in two entries is two identities all the same."""
    a, b, c = lab.three()
    b.write("tone", "base")
    lab.settle(a, b, c)
    lab.save("b", "image")
    clone = lab.copy_to("image", "b2", hidden=True)
    b.write("left", "by the first")
    lab.sync(b)
    lab.sync(a)
    clone.write("right", "by the clone")
    clone.write("more", "and more")
    Forger(clone).publish()
    report = lab.sync(a)
    assert f"device {b.device} wrote different texts" in says(report, "equivocation")
    assert body(a, "left") == "by the first" and a.read("right") is None
    lab.settle(b, clone, a, c)
    clone.unlock(ROOT)
    b.unlock(ROOT)
    lab.settle(b, clone, a, c)
    same(a, b, c, clone)
    assert {"by the first", "by the clone", "and more", "base"} == all_texts(a)


def test_trace_46_greater_counter_without_clash_is_corrected_by_its_owner(lab: Lab) -> None:
    """Nothing shows a third device that a greater n belongs to a clone; the owner finds its text gone, and moves it."""
    a, b, c = lab.three()
    b.write("tone", "base")
    lab.settle(a, b, c)
    lab.save("b", "image")
    clone = lab.copy_to("image", "b2", hidden=True)
    b.write("left", "by the first")
    lab.sync(b)
    lab.sync(a)
    clone.write("tmp", "gone again")
    clone.write("right", "by the clone")
    delete(clone, "tmp")
    Forger(clone).publish()
    lab.sync(a)
    lab.settle(b, clone, a, c)
    for memory in (b, clone):
        memory.unlock(ROOT)
    lab.settle(b, clone, a, c)
    same(a, b, c, clone)
    assert {"by the first", "by the clone", "base"} <= all_texts(a)
