"""The root before a mass delete is kept until the user confirms; afterwards no trace of the guard remains."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ipfsmem.content.cid import CID, DAG_PB, ipns_name, parse_cid, raw_cid
from ipfsmem.device.state import StateHeader
from ipfsmem.errors import NotFoundError, UsageError
from ipfsmem.memory import Memory
from ipfsmem.operations import vault_status
from ipfsmem.published.ipns_record import make_record, parse_record
from ipfsmem.sync.deletion_holds import guard_name, guarded
from ipfsmem.sync.mass_delete import tally_mass_delete
from ipfsmem.sync.sending import new_blocks
from ipfsmem.testing import SimCloud, SimProvider
from tests.support.device_lab import ROOT, Forger, Lab, delete, kinds, says

DAY = 86_400


def guards(memory: Memory) -> list[str]:
    rows = memory.replica.db.connection.execute("SELECT name FROM meta WHERE name GLOB 'guarded *'")
    return [name for (name,) in rows]


def after_a_mass_delete(lab: Lab) -> tuple[Memory, str]:
    """A device with such a root, which nothing else retains."""
    a = lab.create("a")
    lab.sync(a)
    b = lab.restore("b")
    lab.settle(a, b)
    for n in range(30):
        a.write(f"memory{n}", f"text {n}")
    lab.settle(a, b)
    before = a.status().root
    assert before is not None
    for n in range(20):
        delete(b, f"memory{n}")
    lab.sync(b)
    report = lab.sync(a)
    assert before in says(report, "mass-delete") and "ipfsmem vault compact --drop-guarded" in says(
        report, "mass-delete"
    )
    for n in range(4):
        lab.clock.advance(20 * DAY)
        a.write("other", f"life goes on {n}")
        lab.settle(a, b)
    return a, before


def gone(memory: Memory, root: str, **options: Any) -> bool:
    done = asyncio.run(memory.maintenance.gc(keep_roots=1, keep_days=1, **options))
    here = {verdict.root: verdict.keep for verdict in done.here}
    (there,) = ({v.root: v.keep for v in verdicts} for verdicts in done.providers.values())
    assert here[root] == there[root]
    return not here[root]


def test_damaged_head_row_keeps_its_root_guarded(lab: Lab) -> None:
    a, root = after_a_mass_delete(lab)
    with a.replica.transaction():
        a.replica.db.connection.execute("UPDATE heads SET seen = 'x' WHERE root = ?", (root,))
    asyncio.run(a.maintenance.gc(keep_roots=1, keep_days=1))
    lab.sync(a)
    assert f"guarded {root}" in guards(a) and a.replica.db.block(parse_cid(root).digest) is not None


@pytest.mark.parametrize("how", ["junk in their place", "forgotten", "a few at each sync"])
def test_mass_delete_in_disguise_is_recognised(lab: Lab, how: str) -> None:
    """As many new texts as deleted ones, forgets, or few deletes at each sync."""
    a, b, _ = lab.three()
    for n in range(30):
        a.write(f"memory{n:02}", f"text {n}")
    lab.settle(a, b)
    before = a.status().root
    told = ""
    for n in range(20):
        if how == "forgotten":
            b.forget(f"memory{n:02}")
        else:
            delete(b, f"memory{n:02}")
        if how == "junk in their place":
            b.write(f"junk{n}", "junk")
        if how == "a few at each sync" and n % 2:
            lab.sync(b)
            told += says(lab.sync(a), "mass-delete")
    lab.sync(b)
    told += says(lab.sync(a), "mass-delete")
    assert before is not None and told.count(f"version before that, {before},") == 1
    assert f"guarded {before}" in guards(a)


@pytest.mark.parametrize("how", ["deletes itself", "another device deletes", "writes over them first"])
def test_unrelated_writes_do_not_hide_a_mass_delete(lab: Lab, how: str) -> None:
    a, b, c = lab.three()
    for n in range(12):
        a.write(f"memory{n:02}", f"text {n}")
    lab.settle(a, b, c)
    for n in range(130):
        b.write(f"junk{n}", "junk")
    lab.settle(a, b, c)
    if how == "writes over them first":
        for n in range(12):
            b.write(f"memory{n:02}", f"text {n} and more")
        lab.settle(b, c, a)
        assert "mass-delete" not in kinds(lab.sync(a))
    before = a.status().root
    lab.clock.advance(3 * DAY)
    deleter = c if how == "another device deletes" else b
    for n in range(12):
        delete(deleter, f"memory{n:02}")
    lab.sync(deleter)
    said = says(lab.sync(a), "mass-delete")
    assert (
        said.startswith("12 texts") and "of the texts of a" in said and before is not None and before in said
    )
    assert f"with versions of {deleter.replica.config.label}" in said


def test_new_timeline_days_do_not_hide_a_mass_delete_of_texts(lab: Lab) -> None:
    a, b, _ = lab.three()
    for n in range(12):
        a.write(f"memory{n:02}", f"text {n}")
    for _ in range(130):
        lab.clock.advance(DAY)
        a.note("seen")
    lab.settle(a, b)
    before = a.status().root
    for n in range(12):
        delete(b, f"memory{n:02}")
    lab.sync(b)
    said = says(lab.sync(a), "mass-delete")
    assert said.startswith("12 texts") and before is not None and before in said


def test_confirmed_device_is_confirmed_only_for_its_own_deletes(lab: Lab) -> None:
    """Another member may have the same label and delete on the same day."""
    a, b, m = lab.three()
    for n in range(30):
        a.write(f"k{n:02}", f"text {n}")
    lab.settle(a, b, m)
    for memory, part in ((b, range(6)), (m, range(6, 12))):
        for n in part:
            delete(memory, f"k{n:02}")
        lab.sync(memory)
        said = says(lab.sync(a), "mass-delete")
    assert "b, c" in said
    with pytest.raises(NotFoundError, match="no version is guarded for b alone"):
        asyncio.run(a.maintenance.gc(drop_guarded="b"))
    assert asyncio.run(a.maintenance.gc(drop_guarded=["b", "c"], dry_run=True)).guards[0].dropped
    a.unlock(ROOT)
    asyncio.run(a.members.rename(m.device, "b"))
    with pytest.raises(UsageError, match="several devices have the label b"):
        asyncio.run(a.maintenance.gc(drop_guarded="b"))
    assert guards(a)
    # A full id names that device, whatever another one is called; so does its prefix.
    asyncio.run(a.members.rename(m.device, b.device))
    for first in (b.device, b.device[:6]):
        assert asyncio.run(a.maintenance.gc(drop_guarded=[first, m.device], dry_run=True)).guards[0].dropped
    with pytest.raises(NotFoundError, match="alone"):
        asyncio.run(a.maintenance.gc(drop_guarded=b.device))
    with pytest.raises(NotFoundError, match="no version is guarded for the empty text alone"):
        asyncio.run(a.maintenance.gc(drop_guarded=""))


def test_false_alarms_remove_no_guard_of_another_member(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anyone can cause alarms by deleting their own texts."""
    monkeypatch.setattr("ipfsmem.sync.deletion_holds.MOST_GUARDS", 2)
    a, b, m = lab.three()

    def comes_and_goes(memory: Memory, many: int) -> str:
        for what in (lambda n: memory.write(f"{many}-{n}", "x"), lambda n: delete(memory, f"{many}-{n}")):
            for n in range(many):
                what(n)
            lab.sync(memory)
            said = says(lab.sync(a), "mass-delete")
        a.write("life", f"goes on {many}")
        lab.sync(a)
        return said

    for n in range(12):
        a.write(f"honest{n}", "text")
    lab.settle(a, b, m)
    for n in range(12):
        delete(m, f"honest{n}")
    lab.sync(m)
    root = says(lab.sync(a), "mass-delete").split("--drop-guarded ")[1].split()[0]
    assert guards(a) == [f"guarded {root}"]
    assert all(comes_and_goes(m, many) for many in (11, 14, 13, 12))
    stay = guarded(a.replica.db)
    assert root in stay and sorted(one.gone for one in stay.values()) == [12, 13, 14]
    assert a.replica.config.vault is not None
    name = guard_name(bytes.fromhex(a.replica.config.vault.anchor))
    assert {str(pin.cid) for pin in lab.cloud.pins if pin.name == name} == set(stay)


def test_mass_delete_within_a_larger_false_alarm_is_still_guarded(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ipfsmem.sync.deletion_holds.MOST_GUARDS", 2)
    a, b, m = lab.three()
    for n in range(12):
        a.write(f"honest{n}", "text")
    lab.settle(a, b, m)
    for many in (14, 20, 21, 22):
        for n in range(many):
            m.write(f"{many}-{n}", "x")
        lab.settle(m, a)
        before = a.status().root
        for n in range(many):
            delete(m, f"{many}-{n}")
        for n in range(12 if many == 14 else 0):
            delete(m, f"honest{n}")
        lab.sync(m)
        assert "mass-delete" in kinds(lab.sync(a))
        if many == 14:
            root = before
    stay = guarded(a.replica.db)
    assert root is not None and stay[root].of == {m.device: 14, a.device: 12}
    assert sorted(one.gone for one in stay.values()) == [21, 22, 26]


def test_first_author_of_a_name_does_not_own_later_texts(lab: Lab) -> None:
    a, b, m = lab.three()
    for n in range(12):
        m.write(f"k{n:02}", "stub")
    lab.settle(m, a, b)
    for n in range(12):
        a.write(f"k{n:02}", f"text {n}")
    lab.settle(a, b, m)
    for n in range(130):
        m.write(f"junk{n}", "x")
    lab.settle(m, a, b)
    for n in range(12):
        delete(m, f"k{n:02}")
    lab.sync(m)
    assert says(lab.sync(b), "mass-delete").startswith("12 texts")
    (kept,) = guarded(b.replica.db).values()
    assert kept.of == {a.device: 12}


def test_false_alarm_resets_no_count_of_another_member(lab: Lab) -> None:
    """Otherwise repeated alarms would hide a slow mass delete."""
    a, b, m = lab.three()
    for n in range(120):
        a.write(f"k{n:03}", f"text {n}")
    lab.settle(a, b, m)
    said, before = [], None
    for turn in range(2):
        for n in range(12):
            m.write(f"junk{n}", "x")
        lab.settle(m, a)
        before = before or a.status().root
        for n in range(turn * 10, turn * 10 + 10):
            delete(m, f"k{n:03}")
        for n in range(12):
            delete(m, f"junk{n}")
        lab.sync(m)
        said.append(says(lab.sync(a), "mass-delete"))
    assert said[0].startswith("12 texts") and said[1].startswith("32 texts")
    assert before is not None and guarded(a.replica.db)[before].of[a.device] == 20


def test_count_of_a_day_ends_with_the_last_delete(lab: Lab) -> None:
    """The day is a sliding one; the guarded root is the one before the first counted delete."""
    a, b, m = lab.three()
    for n in range(200):
        a.write(f"k{n:03}", f"text {n}")
    lab.settle(a, b, m)
    names = iter(range(200))

    def takes(many: int) -> str:
        for _ in range(many):
            delete(m, f"k{next(names):03}")
        lab.sync(m)
        return says(lab.sync(a), "mass-delete")

    assert not takes(3)
    lab.clock.advance(DAY - 60)
    before = a.status().root
    assert before is not None and not takes(15)
    lab.clock.advance(120)
    assert not gone(a, before)
    assert takes(16).startswith("31 texts")
    assert before in guarded(a.replica.db)


def test_device_labelled_like_a_root_is_not_confused_with_it(lab: Lab) -> None:
    a, b, m = lab.three()
    roots = []
    for name, memory in (("honest", a), ("junk", m)):
        for n in range(12):
            memory.write(f"{name}{n}", "text")
        lab.settle(a, b, m)
        for n in range(12):
            delete(m, f"{name}{n}")
        lab.sync(m)
        roots.append(says(lab.sync(a), "mass-delete").split("--drop-guarded ")[1].split()[0])
    a.unlock(ROOT)
    asyncio.run(a.members.rename(m.device, roots[1]))
    done = asyncio.run(a.maintenance.gc(drop_guarded=roots[1], dry_run=True))
    assert [one.root for one in done.guards if one.dropped] == roots[1:]


@pytest.mark.parametrize(
    ("lost", "stands", "found"),
    [
        ({"a": 10}, {}, None),
        ({"a": 11}, {"a": 100}, None),
        ({"a": 11}, {"a": 98, "m": 10**6}, (11, {"a": 11})),
        ({"m": 500, "a": 10}, {"m": 10**6, "a": 10}, None),
        ({"m": 500, "a": 11}, {"m": 10**6}, (11, {"a": 11})),
        ({"a": 6, "b": 6}, {"a": 6, "b": 50}, (12, {"a": 6, "b": 6})),
        ({"a b": 6, "a": 2, "b": 2}, {}, None),
        ({"a b": 9, "b": 2}, {"a": 10**6}, (11, {"b": 11})),
    ],
)
def test_mass_delete_is_recognised_by_lost_and_remaining_texts(
    lost: dict[str, int], stands: dict[str, int], found: tuple[int, dict[str, int]] | None
) -> None:
    assert tally_mass_delete(lost, lambda: stands) == found


def test_texts_replaced_over_days_are_not_a_mass_delete(lab: Lab) -> None:
    a, b, _ = lab.three()
    for n in range(30):
        a.write(f"memory{n:02}", f"text {n}")
    lab.settle(a, b)
    for n in range(20):
        delete(b, f"memory{n:02}")
        b.write(f"other{n}", "written instead")
        if n % 5 == 4:
            lab.sync(b)
            assert "mass-delete" not in kinds(lab.sync(a))
            lab.clock.advance(DAY + 60)
    a.write("memory25", "edited")
    lab.sync(a)
    assert "mass-delete" not in kinds(lab.sync(b)) and guards(a) == guards(b) == []


def test_false_dates_of_a_writer_remove_no_weekly_root_of_others(lab: Lab) -> None:
    """The date of a root is its writer's claim."""
    a, b, m = lab.three()
    weeks: list[str | None] = []
    for n in range(3):
        a.write("k", f"week {n}")
        lab.settle(a, b, m)
        weeks.append(a.status().root)
        lab.clock.advance(7 * DAY)
    forger = Forger(m)
    for n in (3, 2, 1):
        lab.clock.advance(-n * 7 * DAY + 3_600)
        with m.replica.transaction():
            frame = m.replica.store.frame
            m.replica.store.apply({}, StateHeader(frame.ctx, frame.seen, f"{lab.clock.ms:012x}0000"))
        m.write("junk", f"then {n}")
        forger.publish()
        lab.clock.advance(n * 7 * DAY - 3_600)
    for n in range(2):
        m.write("junk", f"now {n}")
        lab.settle(a, b, m)
        lab.clock.advance(2 * DAY)
    asyncio.run(a.maintenance.gc(keep_roots=1, keep_days=90))
    assert set(weeks) <= {str(pin.cid) for pin in lab.cloud.pins}


def test_guarded_root_is_removed_by_drop_guarded_not_by_a_dry_run(lab: Lab) -> None:
    a, before = after_a_mass_delete(lab)
    assert not gone(a, before)
    assert gone(a, before, drop_guarded=[before], dry_run=True)
    assert guards(a) == [f"guarded {before}"] and not gone(a, before), "a dry run lifts no guard"
    assert gone(a, before, drop_guarded=[before])
    assert guards(a) == [] and parse_cid(before) not in {pin.cid for pin in lab.cloud.pins}
    with pytest.raises(NotFoundError):
        a.versions.diff(before)


@pytest.mark.parametrize("how", ["raw", "version 0", "a text as a folder"])
def test_false_name_for_a_guarded_root_deletes_nothing(lab: Lab, how: str) -> None:
    a, before = after_a_mass_delete(lab)
    root, b = parse_cid(before), lab.devices["b"].replica
    text = next(cid for cid in reachable_cids(a, root) if cid.codec != DAG_PB)
    leads = {
        "raw": raw_cid(root.digest),
        "version 0": CID(0, DAG_PB, root.multihash),
        "a text as a folder": CID(1, DAG_PB, text.multihash),
    }[how]
    records = lab.cloud.names[ipns_name(b.device.sign_public)]
    number = parse_record(records[-1]).sequence + 1
    until = (lab.clock.ms + 365 * DAY * 1000) * 10**6
    records.append(make_record(b.device.sign_seed, f"/ipfs/{leads}", number, until))
    lab.sync(a)
    there = reachable_cids(a, root)
    assert not gone(a, before)
    assert reachable_cids(a, root) == there and len(there) > 20


def reachable_cids(memory: Memory, root: CID) -> list[CID]:
    """Return what this device holds below a root."""
    return [cid for cid in new_blocks(memory.replica.db, root, ()) if memory.replica.db.has_block(cid.digest)]


def test_early_confirmation_applies_when_the_guard_ends(lab: Lab) -> None:
    a, before = after_a_mass_delete(lab)
    done = asyncio.run(a.maintenance.gc(drop_guarded="all"))
    assert {v.root: v.why for v in done.here}[before].startswith("one of the 30 newest")
    assert guards(a) == [] and gone(a, before)


def test_status_advises_compact_while_many_old_versions_remain(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vault_status, "TELL_SUPERSEDED", 3)
    a = lab.create("a")
    for n in range(36):
        a.write("k", f"text {n}")
        lab.sync(a)
    lab.clock.advance(100 * DAY)
    assert any(
        "old versions" in notice and "ipfsmem vault compact" in notice for notice in a.status().notices
    )
    asyncio.run(a.maintenance.gc())
    assert not any("old versions" in notice for notice in a.status().notices)


def test_move_includes_a_guarded_root(lab: Lab) -> None:
    a, before = after_a_mass_delete(lab)
    new = SimProvider(SimCloud(), name="new")
    moved = asyncio.run(a.providers.move(new, keep_roots=1, keep_days=1)).moved
    assert before in moved.roots and parse_cid(before) in new.cloud.blocks
