"""The steps of a sync, each with only the result of the one before."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from ipfsmem.causal.clock import FAR_AHEAD_MS, hlc, hlc_ms
from ipfsmem.causal.entries import MemoryName
from ipfsmem.causal.state import EntryDifference
from ipfsmem.content.cid import raw_cid
from ipfsmem.device.tables import meta
from ipfsmem.errors import ProviderUnavailable, StorageError
from ipfsmem.memory import Memory
from ipfsmem.open_vault.syncing import followed_by
from ipfsmem.published.ipns_record import IpnsRecord
from ipfsmem.published.root_verification import Head
from ipfsmem.sync.admission import admit, copies_among
from ipfsmem.sync.anchors import _may_replace
from ipfsmem.sync.context import SyncContext
from ipfsmem.sync.discovery import discover, discover_older
from ipfsmem.sync.identity import forked_devices
from ipfsmem.sync.join_head import _note_stray
from ipfsmem.sync.join_step import join_found
from ipfsmem.sync.progress import no_progress
from ipfsmem.sync.report import Notices
from ipfsmem.sync.steps import Admitted, DiscoveredHeads, Joined, Published
from tests.support.device_lab import Lab, body, delete, texts


@pytest.fixture
def two(lab: Lab) -> tuple[Memory, Memory]:
    """A published a version that B has not seen."""
    a = lab.create("a")
    a.write("tone", "1")
    lab.sync(a)
    b = lab.restore("b")
    lab.settle(a, b)
    a.write("tone", "2")
    a.write("new", "2")
    lab.sync(a)
    return a, b


def _run(lab: Lab, memory: Memory) -> SyncContext:
    return SyncContext(memory.replica, [lab.provider("b")], None, no_progress, Notices())


def test_discover_and_admit_join_nothing(lab: Lab, two: tuple[Memory, Memory]) -> None:
    a, b = two
    before, run = texts(b), _run(lab, b)
    found = asyncio.run(discover(run))
    admitted = admit(run, found)
    assert texts(b) == before and not run.notices.said
    by = {head.commit.commit.dev for head in found.heads.values()}
    assert {a.device, b.device} == by and set(found.heads) <= found.opened and not found.fresh
    assert admitted == Admitted(found) == admit(run, found)


def test_join_step_reports_changes_and_stopping_after_it_loses_nothing(
    lab: Lab, two: tuple[Memory, Memory]
) -> None:
    _, b = two
    run = _run(lab, b)
    joined = asyncio.run(join_found(run, admit(run, asyncio.run(discover(run)))))
    assert joined.kinds == {MemoryName("", "tone"): "changed", MemoryName("", "new"): "added"}
    assert joined.changed_in == {"": 2} and joined.heads_joined == 1 and not joined.unsure
    assert body(b, "tone") == "2"
    report = lab.sync(b)
    assert not report.entries_changed and not report.changes.kinds and body(b, "new") == "2"


def test_undiscovered_head_is_not_joined(lab: Lab, two: tuple[Memory, Memory]) -> None:
    a, b = two
    run = _run(lab, b)
    found = asyncio.run(discover(run))
    without = {root: head for root, head in found.heads.items() if head.commit.commit.dev != a.device}
    joined = asyncio.run(join_found(run, admit(run, msgspec.structs.replace(found, heads=without))))
    assert joined.heads.keys() == without.keys() and not joined.kinds and body(b, "tone") == "1"


def test_discover_older_adds_to_the_heads_already_discovered(lab: Lab, two: tuple[Memory, Memory]) -> None:
    _, b = two
    run = _run(lab, b)
    found = asyncio.run(discover(run))
    older = asyncio.run(discover_older(run, found))
    assert older.lists_read and older.heads.items() >= found.heads.items() and older.opened >= found.opened
    assert not found.lists_read or older == found


def test_heads_hidden_by_an_outage_stay_unread_and_are_not_lost(lab: Lab, two: tuple[Memory, Memory]) -> None:
    _, b = two
    run = _run(lab, b)
    found = asyncio.run(discover(run))
    lab.provider("b").faults.offline = True
    joined = asyncio.run(join_found(run, admit(run, found)))
    assert not joined.kinds and not joined.damaged and len(joined.outages.roots) == 1
    assert not found.outages.roots  # what was found before does not change
    lab.provider("b").faults.offline = False
    assert lab.sync(b).changes.changed == {"": ("tone",)}


def test_results_of_sync_steps_are_immutable() -> None:
    for value in (DiscoveredHeads(), Admitted(DiscoveredHeads()), Joined(), Published()):
        for field in value.__struct_fields__:
            with pytest.raises(AttributeError):
                setattr(value, field, None)


def test_copy_of_a_device_is_recognised_by_counter_and_clock(lab: Lab, two: tuple[Memory, Memory]) -> None:
    a, b = two
    heads = asyncio.run(discover(_run(lab, b))).heads.values()
    (newest,) = [head for head in heads if head.commit.commit.dev == a.device]
    now = hlc_ms(newest.commit.commit.h) + 1_000

    def older(ms: int) -> Head:
        commit = msgspec.structs.replace(newest.commit.commit, c=newest.commit.commit.c - 1, h=hlc(ms))
        signed = msgspec.structs.replace(newest.commit, commit=commit, json=msgspec.json.encode(commit))
        return msgspec.structs.replace(newest, root=raw_cid(bytes.fromhex(signed.digest)), commit=signed)

    copy, past, wrong = older(now), older(now - 60_000), older(now + FAR_AHEAD_MS)
    assert copies_among([newest, copy, past, wrong], set(), now) == {copy.root}
    assert not copies_among([newest, copy], {copy.commit.digest}, now)
    assert not copies_among([copy], set(), now)


def test_first_error_is_raised_and_later_steps_still_run() -> None:
    taken = []

    def full() -> None:
        taken.append("rendered")
        raise StorageError("the disk is full")

    for fails, error in ((True, ProviderUnavailable), (False, StorageError)):
        with pytest.raises(error), followed_by(full, lambda: taken.append("erased")):
            if fails:
                raise ProviderUnavailable("offline")
    assert taken == ["rendered", "erased"] * 2


def test_counters_without_a_text_are_joined(lab: Lab) -> None:
    a, b, _ = lab.three()
    a.write("gone", "1")
    delete(a, "gone")
    lab.sync(a)
    lab.sync(b)
    counter = a.replica.store.frame.ctx[a.replica.device.id]
    assert counter > 0 and b.replica.store.frame.ctx[a.replica.device.id] == counter


def test_join_records_that_a_text_was_not_fetched(lab: Lab) -> None:
    a, b, _ = lab.three()
    with b.replica.transaction():
        b.replica.db.set_meta(meta.LACKING, b"0")
    a.write("tone", "direct")
    lab.sync(a)
    with a.replica.reading():
        for digest in a.replica.store.object_digests():
            del lab.cloud.blocks[raw_cid(digest)]
    lab.sync(b)
    assert b.replica.db.get_meta(meta.LACKING) == b"1"


def test_joined_text_under_an_unnamed_key_is_to_be_sealed_again(lab: Lab) -> None:
    a = lab.create("a")
    a.write("tone", "direct")
    lab.sync(a)
    with a.replica.reading():
        ((name, entry),) = [one for one in a.replica.store.entries() if one[0].startswith("m/")]
    under, value = next(iter(entry.items()))
    assert value.loc is not None
    stray = msgspec.structs.replace(value, loc=msgspec.structs.replace(value.loc, ek="f" * len(value.loc.ek)))
    for given, noted in ((entry, False), ({under: stray}, True)):
        with a.replica.transaction():
            a.replica.db.set_meta(meta.STRAY, b"0")
            _note_stray(a.replica, [given])
        assert a.replica.db.get_meta(meta.STRAY) == (b"1" if noted else b"0"), name


def test_fork_is_named_by_the_device_of_the_clashing_write(lab: Lab) -> None:
    a = lab.create("a")
    a.write("tone", "direct")
    with a.replica.reading():
        ((name, entry),) = [one for one in a.replica.store.entries() if one[0].startswith("m/")]
    under, value = next(iter(entry.items()))
    other = msgspec.structs.replace(value, body="0" * 64)
    head = cast("Head", SimpleNamespace(ctx={}))
    found = forked_devices([EntryDifference(name, entry, {under: other})], head, a.replica)
    assert found == {a.replica.device.id}


def test_anchors_replaced_last_are_remembered_longest(lab: Lab) -> None:
    a = lab.create("a")
    joined = Joined(found=DiscoveredHeads(), heads=frozenset())
    run = SyncContext(a.replica, [lab.provider("a")], None, no_progress, Notices())

    def may(number: int, ours: str) -> bool:
        shown = cast("IpnsRecord", SimpleNamespace(value=f"/ipfs/{raw_cid(bytes([number]) * 32)}"))
        with a.replica.transaction():
            return _may_replace(run, joined, shown, ours)

    assert may(0, "first") and may(1, "first") and may(0, "second")
    assert all(may(number, "first") for number in range(2, 17))
    assert not may(0, "second") and not may(2, "first") and may(1, "first")
