"""The steps of a sync, each with only the result of the one before."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from ipfsmem.causal.clock import FAR_AHEAD_MS, hlc, hlc_ms
from ipfsmem.causal.entries import MemoryName
from ipfsmem.content.cid import raw_cid
from ipfsmem.errors import ProviderUnavailable, StorageError
from ipfsmem.memory import Memory
from ipfsmem.open_vault.syncing import followed_by
from ipfsmem.published.root_verification import Head
from ipfsmem.sync.admission import admit, copies_among
from ipfsmem.sync.context import SyncContext
from ipfsmem.sync.discovery import discover, discover_older
from ipfsmem.sync.join_step import join_found
from ipfsmem.sync.progress import no_progress
from ipfsmem.sync.report import Notices
from ipfsmem.sync.steps import Admitted, DiscoveredHeads, Joined, Published
from tests.support.device_lab import Lab, body, texts


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
