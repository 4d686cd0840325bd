"""Traces 1 to 19: ways in which an earlier draft lost data, each with real devices on the simulated provider.

6, 17 and 18 are about plain files: see the tests of linked folders and of the plain layout."""

from __future__ import annotations

import asyncio
from hashlib import sha256

import msgspec
import pytest

from ipfsmem.bundle.timeline import event_line, own_id
from ipfsmem.causal.entries import memory_name, segment_entry
from ipfsmem.causal.value import Loc
from ipfsmem.content.cid import CID, ipns_name, parse_cid, raw_cid
from ipfsmem.errors import NotFoundError
from ipfsmem.memory import Memory
from tests.support.device_lab import (
    ROOT,
    Forger,
    Lab,
    all_texts,
    body,
    delete,
    events,
    kinds,
    pair,
    same,
    says,
    texts,
)


def _publish_until(lab: Lab, memory: Memory, n: int) -> None:
    """Write until this device's counter is `n`, then sync."""
    while memory.replica.store.frame.ctx.get(memory.device, 0) < n:
        memory.write(f"filler{n}", f"{n} {memory.replica.store.frame.ctx}")
    lab.sync(memory)


def test_trace_01_restored_backup_writes_offline(lab: Lab) -> None:
    """B publishes n=9, is restored from a backup at n=5, writes two memories offline, pulls a head whose ctx says B:9."""
    a, b, c = lab.three()
    old = b.device
    _publish_until(lab, b, 5)
    lab.save("b", "backup")
    _publish_until(lab, b, 9)
    lab.settle(a, c)
    assert pair(a, old).n == 9
    b = lab.put_back("b", "backup")
    b.write("one", "first offline")
    b.write("two", "second offline")
    report = lab.sync(b)
    assert report.new_identity and b.device != old
    assert old in says(report, "identity")
    assert {body(b, "one"), body(b, "two")} == {"first offline", "second offline"}
    lab.settle(a, b, c)
    same(a, b, c)
    assert {"first offline", "second offline"} <= all_texts(c)
    assert body(b, "filler9") is not None  # the data of its lost copy is restored


def test_trace_02_restored_and_already_past_the_published_counter(lab: Lab) -> None:
    """Same with B's local counter already past the published one (n=5 restored, three offline writes make 8 > 7)."""
    a, b, c = lab.three()
    _publish_until(lab, b, 5)
    lab.save("b", "backup")
    _publish_until(lab, b, 7)
    lab.settle(a, c)
    b = lab.put_back("b", "backup")
    for n in range(3):
        b.write(f"offline{n}", f"text {n}")
    assert b.replica.store.frame.ctx[b.device] == 8
    # Old names do not hide it: every verified ctx is checked.
    lab.provider("b").faults.old_record = {
        name: 0 for name in lab.cloud.names if name not in _names(lab, a, c)
    }
    assert lab.sync(b).new_identity
    lab.provider("b").faults.old_record = {}
    lab.settle(a, b, c)
    same(a, b, c)
    assert {"text 0", "text 1", "text 2"} <= all_texts(a)
    assert body(a, "filler7") is not None


def _names(lab: Lab, *memories: Memory) -> set[str]:
    return {ipns_name(memory.replica.device.sign_public) for memory in memories}


def _unlock_who_asks(lab: Lab, *memories: Memory) -> None:
    """A ring has one successor per id, so the copy that was late needs the wallet once, and reports that."""
    for memory in memories:
        if "not-a-writer" in kinds(lab.sync(memory)):
            memory.unlock(ROOT)


def test_trace_03_two_live_clones_write_under_one_dot(lab: Lab) -> None:
    """Two live clones write different entries under one dot: a per-entry join never sees both."""
    a, b, c = lab.three()
    _publish_until(lab, b, 3)
    lab.settle(a, b, c)
    lab.save("b", "image")
    clone = lab.copy_to("image", "b2", hidden=True)
    b.write("left", "by the first")
    clone.write("right", "by the second")
    lab.sync(b)
    lab.sync(a)  # A has the first copy's head
    lab.sync(c)
    # The second copy is shown old names: nothing shows that another copy counted further.
    lab.provider("b2").faults.old_record = {n: len(r) - 2 for n, r in lab.cloud.names.items() if len(r) > 1}
    lab.provider("b2").faults.drop = {lab.record_root(a.replica.device.sign_public)}
    assert not lab.sync(clone).new_identity
    lab.sync(a)
    assert body(a, "left") == "by the first"
    lab.provider("b2").faults.old_record = {}
    lab.provider("b2").faults.drop = set()
    lab.settle(a, b, c, clone)
    _unlock_who_asks(lab, b, clone)
    lab.settle(a, b, c, clone)
    same(a, b, c, clone)
    assert {"by the first", "by the second"} <= all_texts(a)
    assert b.device != clone.device


def test_trace_03_one_dot_in_two_entries_is_held_until_clone_has_new_id(lab: Lab) -> None:
    """Two live clones write different entries under one dot: others join the first and hold the second."""
    a, b, c = lab.three()
    _publish_until(lab, b, 3)
    lab.settle(a, b, c)
    lab.save("b", "image")
    clone = lab.copy_to("image", "b2", hidden=True)
    b.write("left", "by the first")
    clone.write("right", "by the second")
    lab.sync(b)
    lab.sync(a)
    Forger(clone).publish()  # joins nothing: it has not seen the other
    report = lab.sync(c)  # C joins the clone's head or the first one's, and then A's
    both = {body(c, "left"), body(c, "right")}
    assert both in ({"by the first", None}, {"by the second", None})
    assert "equivocation" in kinds(report) or "equivocation" in kinds(lab.sync(c))
    lab.settle(b, clone, a, c)
    _unlock_who_asks(lab, b, clone)
    lab.settle(b, clone, a, c)
    same(a, b, c, clone)
    assert {"by the first", "by the second"} <= all_texts(c)


def test_trace_04_surviving_clone_continues_under_the_old_id(lab: Lab) -> None:
    """After moving to a new id the old id's local ctx stays high: the surviving clone's next write vanishes."""
    a, b, c = lab.three()
    _publish_until(lab, b, 3)
    lab.settle(a, b, c)
    lab.save("b", "image")
    moved = lab.copy_to("image", "b2")
    for n in range(4):
        moved.write(f"copy{n}", f"in the copy {n}")
    report = lab.sync(moved)
    assert report.new_identity
    assert moved.replica.store.frame.ctx[b.device] == 3
    b.write("survivor", "next write of the old id")
    lab.settle(b, moved, a, c)
    same(a, b, c, moved)
    assert body(moved, "survivor") == "next write of the old id"
    assert {f"in the copy {n}" for n in range(4)} <= all_texts(a)


def test_trace_05_write_replaces_only_the_text_its_caller_was_shown(lab: Lab) -> None:
    """An agent reads `tone`, an automatic sync joins B's sibling, the agent writes: B's text stays."""
    a, b, c = lab.three()
    a.write("tone", "base")
    lab.settle(a, b, c)
    reading = a.read("tone")
    b.write("tone", "by B")
    lab.sync(b)
    lab.sync(a)
    assert body(a, "tone") == "by B"
    a.write("tone", "by A", seen=reading)
    lab.settle(a, b, c)
    same(a, b, c)
    assert texts(c)["tone"] == {"by A", "by B"}
    assert c.conflicts()


def test_trace_07_resealing_under_a_new_key_is_not_a_write(lab: Lab) -> None:
    """Reseal under the same dot: location is outside the identity, so concurrent edits are no conflicts or alarms."""
    a, b, c = lab.three()
    for n in range(20):
        a.write(f"memory{n}", f"text {n}")
    lab.settle(a, b, c)
    before = {name: set(entry) for name, entry in a.replica.store.entries() if memory_name(name)}
    b.write("memory3", "edited meanwhile")
    asyncio.run(a.members.rotate())
    new = a.replica.codec.ek
    # Some bodies are under the new key at A, under their own dots.
    forger = Forger(a)
    for n in range(10):
        name = f"m/memory{n}"
        ((under, value),) = a.replica.store.entry(name).items()
        data = a.replica.store.body(name, value)
        assert data is not None
        ek, stored = a.replica.codec.seal_body(name, data)
        digest = sha256(stored)
        moved = msgspec.structs.replace(value, loc=Loc(ek, digest.hexdigest(), len(stored)))
        forger.put({name: {under: moved}}, blocks=[(digest.digest(), stored)])
    reports = [lab.sync(memory) for memory in (a, b, c)]
    lab.settle(a, b, c)
    same(a, b, c)
    assert not any(kinds(report) & {"equivocation", "head-refused"} for report in reports)
    assert not c.conflicts() and body(c, "memory3") == "edited meanwhile"
    for n in range(20):
        if n != 3:
            entry = c.replica.store.entry(f"m/memory{n}")
            assert set(entry) == before[f"m/memory{n}"]
            assert (next(iter(entry.values())).loc or Loc("", "", 0)).ek == new or n >= 10


def test_trace_08_member_cannot_raise_the_counter_of_another_device(lab: Lab) -> None:
    """M publishes `ctx {B: 2^53-1}`: every later write of B counts as seen and deleted. -> signed by the device."""
    a, b, m = lab.three()
    b.write("tone", "first")
    lab.settle(a, b, m)
    forger = Forger(m)
    high = 2**53 - 1
    forger.put({}, ctx={b.device: high}, seen={b.device: forger.seen(b.device, high)})
    forger.publish()
    report = lab.sync(a)
    assert f"claims a counter that device {b.device} did not sign" in says(report, "head-refused")
    b.write("tone", "later")
    lab.settle(b, a)
    assert body(a, "tone") == "later"
    assert a.replica.store.frame.ctx[b.device] < 10


def test_trace_09_a_value_under_another_devices_dot(lab: Lab) -> None:
    """M puts a value under B's dot on another key: B's real value disappears without an alarm. -> signed values."""
    a, b, m = lab.three()
    b.write("tone", "real")
    lab.settle(a, b, m)
    ((under, _),) = a.replica.store.entry("m/tone").items()
    assert under.startswith(b.device)
    forger = Forger(m)
    forged, block = forger.value("m/other", under, "forged")
    forger.put({"m/other": {under: forged}, "m/tone": {}}, blocks=[block])
    forger.publish()
    report = lab.sync(a)
    assert f"is not signed by device {b.device}" in says(report, "head-refused")
    assert body(a, "tone") == "real" and a.read("other") is None


def test_trace_10_a_location_that_points_nowhere(lab: Lab) -> None:
    """M publishes B's value with a location that points nowhere, chosen to win a tie: the good object leaves every tree."""
    a, b, m = lab.three()
    b.write("tone", "precious")
    lab.settle(b, m)  # A has not seen it
    ((under, value),) = m.replica.store.entry("m/tone").items()
    assert value.loc is not None
    nowhere = msgspec.structs.replace(value, loc=Loc(value.loc.ek, "f" * 64, value.loc.size))
    forger = Forger(m)
    forger.put({"m/tone": {under: nowhere}})
    forger.publish()
    # A first sees only M's head: the text is not fetched, but never absent.
    lab.provider("a").faults.drop = {lab.record_root(b.replica.device.sign_public)}
    report = lab.sync(a)
    assert report.not_fetched == 1
    with pytest.raises(NotFoundError, match="not fetched"):
        a.read("tone")
    lab.provider("a").faults.drop = set()
    lab.sync(a)
    assert body(a, "tone") == "precious"
    entry = a.replica.store.entry("m/tone")
    assert entry[under].loc == value.loc
    # Nor does a device with the good one accept the other.
    lab.sync(b)
    assert b.replica.store.entry("m/tone")[under].loc == value.loc


def test_trace_11_forget_then_remember(lab: Lab) -> None:
    """Forget, then remember the same key: the new text must replace the forget."""
    a, b, c = lab.three()
    a.write("tone", "old")
    lab.settle(a, b, c)
    assert b.forget("tone", reason="asked")
    lab.settle(a, b, c)
    assert a.read("tone") is None
    a.write("tone", "remembered")
    lab.settle(a, b, c)
    same(a, b, c)
    assert body(c, "tone") == "remembered"
    assert texts(c)["tone"] == {"remembered"} and not c.conflicts()


def test_trace_12_equal_entries_are_not_equal_states(lab: Lab) -> None:
    """B writes and deletes `tmp`; its entries equal A's older head; "equal, publish nothing" would leave `tmp` at C."""
    a, b, c = lab.three()
    a.write("tone", "x")
    lab.settle(a, b, c)
    b.write("tmp", "for a moment")
    lab.sync(b)
    lab.sync(c)
    assert body(c, "tmp") == "for a moment"
    delete(b, "tmp")
    # A's head now has the very same entries as B, and less ctx.
    report = lab.sync(b)
    assert report.published and not report.adopted
    lab.sync(c)
    assert c.read("tmp") is None
    lab.settle(a, b, c)
    same(a, b, c)


def test_trace_13_equal_states_are_not_unpinned_by_both(lab: Lab) -> None:
    """A and B publish equal states, each sees the other cover it, both unpin after a day. -> not what a name points at."""
    a, b, c = lab.three()
    a.write("tone", "x")
    lab.settle(a, b, c)
    lab.clock.advance(3 * 86_400)
    for _ in range(2):
        for memory in (a, b):
            asyncio.run(memory.maintenance.gc(keep_roots=1, keep_days=1))
        lab.clock.advance(86_400)
    lab.cloud.collect()
    fresh = lab.restore("d")
    assert body(fresh, "tone") == "x"
    lab.settle(a, b, fresh)
    same(a, b, fresh)


def test_older_versions_are_kept_after_the_newest_was_unpinned_by_hand(lab: Lab) -> None:
    a, _, _ = lab.three()
    for number in range(3):
        a.write(f"k{number}", "x")
        lab.sync(a)
        lab.clock.advance(2 * 86_400)
    newest = a.status().root
    before = [pin.cid for pin in lab.cloud.pins if str(pin.cid) != newest]
    lab.cloud.pins = [pin for pin in lab.cloud.pins if str(pin.cid) != newest]
    asyncio.run(a.maintenance.gc(keep_roots=1, keep_days=1))
    assert [pin.cid for pin in lab.cloud.pins] == before
    lab.sync(a)
    asyncio.run(a.maintenance.gc(keep_roots=1, keep_days=1))
    assert newest in {str(pin.cid) for pin in lab.cloud.pins}


def test_trace_14_a_body_that_was_not_fetched_is_not_unpinned(lab: Lab) -> None:
    """A joins with one of B's bodies not fetched, its ctx covers B, B unpins: the body must not be gone."""
    a, b, _ = lab.three()
    b.write("tone", "precious")
    lab.sync(b)
    ((_, value),) = b.replica.store.entry("m/tone").items()
    assert value.loc is not None
    lost = _block(value.loc)
    lab.provider("a").faults.drop = {lost}
    assert lab.sync(a).not_fetched == 1
    a.write("other", "so that A publishes a root of its own")
    lab.sync(a)
    for _ in range(3):
        lab.clock.advance(2 * 86_400)
        lab.sync(b)
        asyncio.run(b.maintenance.gc(keep_roots=1, keep_days=1))
        asyncio.run(a.maintenance.gc(keep_roots=1, keep_days=1))
    lab.cloud.collect()
    assert lost in lab.cloud.blocks
    lab.provider("a").faults.drop = set()
    lab.sync(a)
    assert body(a, "tone") == "precious"


def _block(loc: Loc) -> CID:
    return raw_cid(bytes.fromhex(loc.sha))


def test_trace_15_clock_in_the_future_deletes_no_timeline_events(lab: Lab) -> None:
    """A device with its clock in 2036 trims the timeline: only segments that it has seen go, never a date range."""
    a, b, c = lab.three()
    a.note("seen")
    lab.settle(a, b, c)
    a.note("unseen", by="a")
    lab.clock.advance(10 * 365 * 86_400)
    forger = Forger(b)
    b.note("future")
    for segment, _ in list(b.replica.store.segments()):
        if segment.dev == a.device:
            forger.put({segment.entry: {}})
    lab.sync(b)
    lab.clock.advance(-10 * 365 * 86_400)
    lab.settle(a, b, c)
    # The trimmed segment had grown: the part that B had not seen remains on every device, with all lines of
    # the segment.
    for memory in (a, b, c):
        assert {"unseen", "future"} <= set(events(memory))
    c.note("present")
    lab.settle(a, b, c)
    assert {"present", "unseen", "future"} <= set(events(b))


def test_trace_16_event_id_is_valid_only_in_its_writers_segment(lab: Lab) -> None:
    """An imported event claims id `<A>-1000` and shadows A's real one."""
    a, b, m = lab.three()
    claimed = own_id(a.device, 1)
    line = event_line({"ts": "2026-01-01T00:00:00.000Z", "type": "forged", "id": claimed})
    blob = b'{"version":"memory/0.1","index":"","files":{},"timeline":[' + line.rstrip(b"\n") + b"]}"
    b.bundles.import_(blob)
    # And a member that writes it into its own segment by hand.
    forger = Forger(m)
    name = segment_entry("2026-01-01", m.device, 0)
    under = forger.next_dot()
    value, block = forger.value(name, under, line.decode().rstrip("\n") + "\n")
    forger.put({name: {under: value}}, ctx={m.device: int(under[17:])}, blocks=[block])
    a.note("real")
    lab.settle(a, b, m)
    for memory in (a, b, m):
        by_id = {event["id"]: event["type"] for event in memory.timeline.read()}
        assert by_id[claimed] == "real"
        assert "forged" in by_id.values()
    # Nobody else can write into A's segment.
    name = segment_entry("2026-01-02", a.device, 0)
    under = forger.next_dot()
    value, block = forger.value(name, under, line.decode())
    forger.put({name: {under: value}}, ctx={m.device: int(under[17:])}, blocks=[block])
    forger.publish()
    assert "a segment is written by its own device only" in says(lab.sync(a), "head-refused")


def test_trace_19_root_before_a_mass_delete_is_kept(lab: Lab) -> None:
    """A mass delete by a compromised agent, then retention drops the old roots. -> the last root before stays."""
    a, b, c = lab.three()
    for n in range(40):
        a.write(f"memory{n}", f"text {n}")
    lab.settle(a, b, c)
    before = a.status().root
    for n in range(30):
        delete(b, f"memory{n}")
    lab.sync(b)
    report = lab.sync(a)
    assert "mass-delete" in kinds(report) and before is not None and before in says(report, "mass-delete")
    for n in range(8):
        lab.clock.advance(20 * 86_400)
        a.write("other", f"life goes on {n}")
        lab.settle(a, b, c)
        for memory in (a, c):
            asyncio.run(memory.maintenance.gc(keep_roots=1, keep_days=1))
    lab.cloud.collect()
    old = a.versions.diff(before)
    assert sum(line.change == "removed" for line in old) == 30
    assert parse_cid(before) in {pin.cid for pin in lab.cloud.pins}
