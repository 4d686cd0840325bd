"""Presence (format section 7): published data is still there, or every device that can tell reports what is
missing.

On a simulated provider and on a real folder."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from ipfsmem_providers.directory import DirectoryProvider
from msgspec.structs import replace

from ipfsmem.causal.value import Value
from ipfsmem.content.cid import CID, ipns_name, parse_cid, raw_cid
from ipfsmem.errors import IpfsmemError, MissingError, ProviderError, ProviderUnavailable
from ipfsmem.memory import Memory
from ipfsmem.provider.contract import Block, Capabilities
from ipfsmem.published.ipns_record import parse_record
from ipfsmem.published.live_set import live_set
from ipfsmem.sync.commits import waiting_root
from ipfsmem.sync.local_repair import leave_out
from ipfsmem.sync.presence import load_notes
from ipfsmem.testing.simulator import FULL, SimProvider
from tests.support import effort
from tests.support.device_lab import ROOT, Lab, all_texts, body, delete, kinds, lab_in, same, says
from tests.support.folder_lab import FolderLab


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[FolderLab]:
    made = FolderLab(tmp_path)
    yield made
    made.close()


def two(lab: Lab, texts: int = 8, at_once: int = 1) -> tuple[Memory, Memory]:
    """A and C in sync, with `texts` published one by one, or `at_once` together."""
    a = lab.create("a")
    lab.sync(a)
    c = lab.restore("c")
    for n in range(texts):
        a.write(f"k{n}", f"text {n}")
        if n % at_once == at_once - 1:
            lab.sync(a)
    lab.settle(a, c)
    return a, c


def newest(memory: Memory) -> CID:
    root = memory.status().root
    assert root is not None
    return parse_cid(root)


def body_block(memory: Memory, key: str) -> CID:
    ((_, value),) = memory.replica.store.entry(f"m/{key}").items()
    return block_of(value)


def block_of(value: Value) -> CID:
    assert value.loc is not None
    return raw_cid(bytes.fromhex(value.loc.sha))


def forget_block(memory: Memory, cid: CID) -> None:
    """Lose a block on a device's disk."""
    with memory.replica.transaction():
        memory.replica.db.connection.execute("DELETE FROM blocks WHERE digest=?", (cid.digest,))


# -- every named block exists -----------------------------------------------------------------------------------------


class Full(DirectoryProvider):
    """A folder that accepts no block while `full`."""

    full = False

    async def put_car(self, root: CID, blocks, *, name: str) -> CID:  # type: ignore[no-untyped-def]
        if Full.full:
            raise ProviderUnavailable("no space left")
        return await super().put_car(root, blocks, name=name)


def test_gc_after_a_failed_sync_keeps_pending_blocks(tmp_path: Path) -> None:
    """A full stick, room again, `gc`, `sync`: the text is published for others and for a new device."""
    lab = FolderLab(tmp_path, kind=Full)
    a, c = two(lab, 1)
    a.write("tone", "precious")
    Full.full = True
    try:
        with pytest.raises(ProviderUnavailable):
            lab.sync(a)
    finally:
        Full.full = False
    asyncio.run(a.maintenance.gc())
    report = lab.sync(a)
    assert report.blocks_sent > 0 and not a.status().unpublished
    assert lab.sync(c).entries_changed == 1 and body(c, "tone") == "precious"
    assert body(lab.restore("d"), "tone") == "precious"
    lab.close()


@pytest.mark.parametrize("which", ["a state node", "the head", "the ring", "a folder"])
def test_missing_structural_block_is_rebuilt_or_blocks_publish(lab: Lab, which: str) -> None:
    a, c = two(lab, 3)
    a.write("more", "a text that makes a new root")
    lab.clock.advance(86_400)
    before = newest(c)
    db = a.replica.db

    def lose(root: CID) -> CID:
        live = live_set(db, root)
        known = set(live_set(db, before).structure)
        new = [cid for cid in live.structure if cid not in known and cid != root]
        folders = [cid for cid in new if cid.codec == 0x70]
        files = [cid for cid in new if cid.codec != 0x70]
        names = {link.name: link.cid for link in links(db.block(root.digest))}
        lost = {
            "a folder": folders[0],
            "the head": names["head.ipm"],
            "the ring": names["keyring.json"],
            "a state node": next(cid for cid in files if cid not in names.values()),
        }[which]
        forget_block(a, lost)
        lab.cloud.blocks.pop(lost, None)
        return lost

    provider = lab.provider("a")
    provider.faults.refuse = False
    real = provider.put_car

    async def cut(root: CID, blocks, *, name: str) -> CID:  # type: ignore[no-untyped-def]
        raise ProviderUnavailable("cut")

    provider.put_car = cut  # type: ignore[method-assign]
    with pytest.raises(ProviderUnavailable):
        lab.sync(a)
    provider.put_car = real  # type: ignore[method-assign]
    waiting = waiting_root(a.replica)
    assert waiting is not None
    lost = lose(waiting)
    pins = {pin.cid for pin in lab.cloud.pins}
    try:
        lab.sync(a)
    except MissingError as error:
        assert lost.digest in error.missing
        assert {pin.cid for pin in lab.cloud.pins} == pins
        assert which in ("a state node", "a folder")
        assert lab.record_root(a.replica.device.sign_public) == before
        assert a.status().unpublished
    else:  # rebuilt from the data that it is derived from
        assert lab.cloud.blocks.keys() >= set(live_set(db, newest(a)).structure)
    lab.restore("d")


def links(data: bytes | None):  # type: ignore[no-untyped-def]
    from ipfsmem.content.dagpb import decode_node

    assert data is not None
    return decode_node(data).links


def test_name_is_not_updated_where_the_root_was_not_stored(tmp_path: Path) -> None:
    """One of two folders stores small files and no blocks."""
    lab = FolderLab(tmp_path, kind=Full)
    other = tmp_path / "other"
    other.mkdir()
    a = lab.create("a")
    both = [Full(lab.shared), DirectoryProvider(other)]
    asyncio.run(a.sync(both))
    name = ipns_name(a.replica.device.sign_public)
    a.write("tone", "x")
    Full.full = True
    try:
        lab.clock.advance(1)
        report = asyncio.run(a.sync(both))
    finally:
        Full.full = False
    assert "not published at" in says(report, "provider-down")
    records = [asyncio.run(one.get_name(name)) for one in both]
    values = [parse_record(record).value for record in records if record is not None]
    assert len(values) == 2 and values[0] != values[1] == f"/ipfs/{report.root}"
    lab.clock.advance(1)
    assert asyncio.run(a.sync(both)).blocks_sent > 0
    record = asyncio.run(both[0].get_name(name))
    assert record is not None and parse_record(record).value == values[1]
    lab.close()


def test_anchor_is_not_updated_where_its_ring_was_not_stored(tmp_path: Path) -> None:
    lab = FolderLab(tmp_path, kind=Full)
    other = tmp_path / "other"
    other.mkdir()
    a = lab.create("a")
    both = [Full(lab.shared), DirectoryProvider(other)]
    anchor = ipns_name(ROOT.head_public)

    def shown() -> list[bool]:
        return [asyncio.run(one.get_name(anchor)) is not None for one in both]

    Full.full = True
    try:
        report = asyncio.run(a.sync(both))
    finally:
        Full.full = False
    assert "not published at" in says(report, "provider-down")
    assert shown() == [False, True]
    lab.clock.advance(1)
    asyncio.run(a.sync(both))
    assert shown() == [True, True]
    lab.close()


# -- lost blocks are noticed and sent again ---------------------------------------------------------------------------


def test_every_lost_pack_is_sent_again_at_the_next_sync(tmp_path: Path) -> None:
    n = 0
    while True:
        lab = FolderLab(tmp_path / str(n))
        a, c = two(lab, 5)
        packs = lab.packs()
        if n >= len(packs):
            lab.close()
            break
        lost = set(lab.lose_pack(packs[n]))
        live = live_set(a.replica.db, newest(a))
        report = lab.sync(a)
        assert ("repaired" in kinds(report)) == bool(lost & {*live.structure, *live.objects}) or (
            report.blocks_sent > 0
        )
        assert report.missing == 0
        fresh = lab.restore("d")
        assert all_texts(fresh) == all_texts(a) == all_texts(c)
        lab.close()
        n += effort.every(2)


def test_lost_first_large_pack_is_sent_again(shared: FolderLab) -> None:
    a = shared.create("a")
    shared.sync(a)
    files = {f"k{i}.md": f"text {i}" for i in range(300)}
    a.bundles.import_(json.dumps({"version": "memory/0.1", "index": "", "files": files, "timeline": []}))
    shared.sync(a)
    for i in range(3):
        a.write(f"k{i}", f"edit {i}")
        shared.sync(a)
    lost = shared.lose_pack(max(shared.packs(), key=lambda p: p.stat().st_size))
    assert len(lost) > 300
    a.write("new", "x")
    report = shared.sync(a)
    assert "repaired" in kinds(report) and report.missing == 0
    assert len(shared.restore("d").files()) == 301


@pytest.mark.parametrize("repaired", [True, False])
def test_vault_is_restored_without_the_pack_of_the_anchor_ring(shared: FolderLab, repaired: bool) -> None:
    a, c = two(shared, 2)
    asyncio.run(
        a.members.rename(c.status().device, "phone")
    )  # else later roots would have the ring of the lost pack
    shared.settle(a, c)
    record = asyncio.run(shared.provider("a").get_name(ipns_name(ROOT.head_public)))
    assert record is not None
    anchor = parse_cid(parse_record(record).value.removeprefix("/ipfs/"))
    from ipfsmem.content.car import read_car

    (pack,) = [p for p in shared.packs() if anchor in [cid for cid, _ in read_car(p.read_bytes())]]
    shared.lose_pack(pack)
    assert not repaired or "repaired" in kinds(shared.sync(a))
    assert all_texts(shared.restore("d")) == all_texts(a)


def test_loss_of_all_packs_is_repaired(shared: FolderLab) -> None:
    a, c = two(shared, 20)
    for pack in shared.packs():
        shared.lose_pack(pack)
    assert "repaired" in kinds(shared.sync(c))
    assert all_texts(shared.restore("d")) == all_texts(a)


@pytest.mark.parametrize("how", ["sync", "by hand"])
def test_missing_blocks_of_older_versions_are_uploaded(shared: FolderLab, how: str) -> None:
    a, c = two(shared, 4)
    for n in range(4):
        a.write(f"k{n}", f"another text {n}")
        shared.sync(a)
    for pack in shared.packs():
        shared.lose_pack(pack)
    assert asyncio.run(a.maintenance.gc()).problems
    for memory in (a, c):  # each has its own publications
        if how == "sync":
            report = shared.sync(memory)
            assert "repaired" in kinds(report) and not report.missing
        else:
            (found,) = asyncio.run(memory.providers.check(repair=True))
            assert found.state == "ok" and found.sent
    assert not asyncio.run(c.maintenance.gc()).problems
    assert [one.missing for one in asyncio.run(c.providers.check(full=True))] == [0]
    assert shared.sync(a).blocks_sent == 0


def test_lost_pins_and_names_are_restored(shared: FolderLab) -> None:
    a, c = two(shared, 3)
    for folder in ("pins", "names"):
        for file in (shared.shared / folder).iterdir():
            file.unlink()
    shared.sync(a)
    shared.sync(c)
    assert all_texts(shared.restore("d")) == all_texts(a)
    pins = asyncio.run(shared.provider("x").pins(pin_name_of(a)))
    assert newest(a) in {pin.cid for pin in pins}


def pin_name_of(memory: Memory) -> str:
    from ipfsmem.sync.names import pin_name

    vault = memory.replica.config.vault
    assert vault is not None
    return pin_name(bytes.fromhex(vault.anchor))


def test_missing_object_is_reported_until_a_device_that_has_it_syncs(shared: FolderLab) -> None:
    a, c = two(shared, 4)
    lost = body_block(a, "k2")
    victim = next(p for p in shared.packs() if lost in [cid for cid, _ in read_blocks_of(p)])
    shared.lose_pack(victim)
    forget_block(c, lost)
    for _ in range(3):
        report = shared.sync(c)
        assert report.missing >= 1 and str(lost) in says(report, "missing")
    status = c.status()
    assert any(one.state == "missing" and one.missing >= 1 for one in status.presence)
    assert "repaired" in kinds(shared.sync(a))
    assert shared.sync(c).missing == 0
    assert all(one.state == "ok" for one in c.status().presence)


def read_blocks_of(pack: Path) -> list[Block]:
    from ipfsmem.content.car import read_car

    return list(read_car(pack.read_bytes()))


# -- rolling checks ---------------------------------------------------------------------------------------------------


def test_one_random_block_is_named_and_sent_again_within_the_round(lab: Lab) -> None:
    """A provider without a list still claims to have it."""
    a, _ = two(lab, 60, at_once=10)
    lost = body_block(a, "k17")
    lab.provider("a").faults.has = "all"
    del lab.cloud.blocks[lost]
    for _ in range(7):
        lab.clock.advance(86_400)
        report = lab.sync(a)
        if lost in lab.cloud.blocks:
            break
    assert lost in lab.cloud.blocks and "repaired" in kinds(report)


def test_missing_structure_is_detected_within_a_day(lab: Lab) -> None:
    a, _ = two(lab, 10)
    live = live_set(a.replica.db, newest(a))
    lab.provider("a").faults.has = "all"
    for lost in live.structure:
        del lab.cloud.blocks[lost]
        lab.clock.advance(86_400)
        report = lab.sync(a)
        assert lost in lab.cloud.blocks and "repaired" in kinds(report)
        # A block lost again after two repairs would be left to a person.
        lab.clock.advance(31 * 86_400)
        lab.sync(a)


def test_flipped_byte_in_a_folder_is_detected_within_seven_days(shared: FolderLab) -> None:
    """A listing has only names and sizes."""
    a, _ = two(shared, 30)
    lost = body_block(a, "k11")
    pack = next(p for p in shared.packs() if lost in [cid for cid, _ in read_blocks_of(p)])
    data = pack.read_bytes()
    sealed = dict(read_blocks_of(pack))[lost]
    at = data.index(sealed) + len(sealed) // 2
    pack.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    for _ in range(7):
        shared.clock.advance(86_400)
        shared.sync(a)
        if lost in asyncio.run(shared.provider("x").get_blocks([lost])):
            break
    else:
        raise AssertionError("not noticed in seven days")


def test_objects_are_all_read_in_seven_days_in_order_unknown_to_provider(lab: Lab) -> None:
    a, c = two(lab, 80, at_once=10)
    orders = []
    for name, memory in (("a", a), ("c", c)):
        provider = lab.provider(name)
        provider.wire.clear()
        for _ in range(7):
            lab.clock.advance(86_400)
            lab.sync(memory)
        objects = {cid.encode() for cid in live_set(memory.replica.db, newest(memory)).objects}
        read = [
            exchange.sent[i : i + 36]
            for exchange in provider.wire
            if exchange.call == "read_stored"
            for i in range(0, len(exchange.sent), 37)
        ]
        order = [cid for cid in dict.fromkeys(read) if cid in objects]
        assert set(order) == objects
        orders.append(order)
    assert orders[0] != orders[1] != sorted(orders[1])


# -- repair --------------------------------------------------------------------------------------------------------------


def test_block_lost_twice_after_repair_is_left_to_a_person(lab: Lab) -> None:
    a, _ = two(lab, 5)
    lost = body_block(a, "k3")
    stopped = None
    for n in range(5):
        lab.cloud.blocks.pop(lost, None)
        lab.clock.advance(7 * 86_400)
        report = lab.sync(a)
        if lost not in lab.cloud.blocks:
            stopped = n
            break
    assert stopped == 2 and report.missing == 1
    assert a.status().presence[0].state == "stopped"
    (found,) = asyncio.run(a.providers.check(repair=True))
    assert found.state == "ok" and found.sent == 1 and lost in lab.cloud.blocks


@pytest.mark.parametrize(
    "form", [FULL, replace(FULL, has=False, partial_car=False)], ids=["blocks", "whole trees"]
)
def test_clock_once_far_ahead_delays_no_repair(lab: Lab, form: Capabilities) -> None:
    years = 10 * 365 * 86_400
    lab.providers["a"] = SimProvider(lab.cloud, clock=lab.clock, capabilities=form)
    a, _ = two(lab, 5)
    lost = body_block(a, "k3")
    lab.clock.advance(years)
    for _ in range(20):
        lab.cloud.blocks.pop(lost, None)
        lab.clock.advance(7 * 86_400 if form.partial_car else 86_400)
        if lab.sync(a).missing:
            break
    else:
        raise AssertionError("not missed")
    lab.clock.advance(-years)
    for _ in range(10):
        lab.clock.advance(86_400)
        lab.sync(a)
    assert lost in lab.cloud.blocks


def test_missing_object_stays_reported_while_provider_claims_to_have_it(lab: Lab) -> None:
    a, _ = two(lab, 5)
    lost = body_block(a, "k3")
    lab.provider("a").faults.has = "all"
    for _ in range(30):
        lab.cloud.blocks.pop(lost, None)
        lab.clock.advance(86_400)
        lab.sync(a)
        if a.status().presence[0].state == "stopped":
            break
    for _ in range(3):
        lab.clock.advance(3_600)
        report = lab.sync(a)
        assert report.missing == 1 and report.exit_code == 44
        assert a.status().presence[0].state == "stopped"


def test_repair_sends_at_most_the_live_tree_per_day(lab: Lab) -> None:
    listing = replace(FULL, listing=True)
    lab.providers["a"] = SimProvider(lab.cloud, clock=lab.clock, capabilities=listing)
    a, _ = two(lab, 30, at_once=10)
    sizes = {cid: len(data) for cid, data in lab.cloud.blocks.items()}
    live = live_set(a.replica.db, newest(a))
    tree = sum(sizes[cid] for cid in (*live.structure, *live.objects))
    sent = 0
    for _ in range(10):
        for cid in (*live.structure, *live.objects):
            lab.cloud.blocks.pop(cid, None)
        lab.clock.advance(600)
        sent += lab.sync(a).bytes_sent
    assert 0 < sent <= tree + 4096
    lab.clock.advance(86_400)
    assert lab.sync(a).bytes_sent > 0


@pytest.mark.parametrize("name", ["a", "c"])
def test_full_check_reads_retained_older_roots_too(lab: Lab, name: str) -> None:
    """A later device can thus report missing older data."""
    a, _ = two(lab, 3)
    before = newest(a)
    delete(a, "k1")
    lab.sync(a)
    old, new = live_set(a.replica.db, before), live_set(a.replica.db, newest(a))
    assert before in {pin.cid for pin in lab.cloud.pins}
    (lost,) = set(old.objects) - set(new.objects)
    device = a if name == "a" else lab.restore("late")
    del lab.cloud.blocks[lost]
    (found,) = asyncio.run(device.providers.check())
    assert found.state == "ok"
    (found,) = asyncio.run(device.providers.check(full=True))
    assert (found.state, found.missing, found.examples) == ("missing", 1, [str(lost)])
    (found,) = asyncio.run(device.providers.check(full=True, repair=True))
    if name == "a":
        assert (found.state, found.sent) == ("ok", 1) and lost in lab.cloud.blocks
    else:
        assert (found.state, found.missing) == ("missing", 1)
        assert lab.sync(device).exit_code == 0  # no live block is missing


def test_provider_without_list_and_read_is_reported_as_unchecked(tmp_path: Path) -> None:
    with lab_in(tmp_path) as lab:
        lab.providers["a"] = SimProvider(lab.cloud, clock=lab.clock, capabilities=replace(FULL, raw=False))
        a = lab.create("a")
        lab.sync(a)
        (found,) = a.status().presence
        assert found.state == "unchecked" and "cannot be checked" in found.text
        (found,) = asyncio.run(a.providers.check())
        assert found.state == "unchecked"


# -- blocks that are missing everywhere -----------------------------------------------------------------------------------


def test_head_with_missing_object_is_published_complete_by_its_holder(lab: Lab) -> None:
    """Another device holds the object: the root is complete, under the same commit."""
    a, c = two(lab, 6)
    b = lab.restore("b")
    lab.settle(a, b, c)
    b.write("late", "b's text")
    lab.sync(b)
    lost = body_block(b, "late")
    # C joins it without its text, which neither the provider nor B, which is off, can serve.
    held = lab.cloud.blocks.pop(lost)
    c.write("mine", "c goes on")
    report = lab.sync(c)
    assert report.published and report.not_fetched == 1 and "left-out" in kinds(report)
    incomplete = newest(c)
    paths = live_set(c.replica.db, incomplete)
    assert lost not in paths.objects
    # A new device gets the same, and reports what is missing.
    fresh = lab.restore("d")
    assert fresh.status().not_fetched == 1 and body(fresh, "mine") == "c goes on"
    # B returns, and its text is uploaded within the round.
    for _ in range(7):
        lab.clock.advance(86_400)
        lab.sync(b)
    assert held is not None and lost in lab.cloud.blocks
    assert newest(b) != incomplete
    lab.settle(a, b, c, fresh)
    same(a, b, c)
    assert lost in live_set(a.replica.db, newest(a)).objects
    assert body(fresh, "late") == "b's text"


def test_complete_tree_is_published_under_the_same_commit(lab: Lab) -> None:
    """A device that sees both takes the complete one."""
    a, c = two(lab, 3)
    lost = body_block(a, "k1")
    lab.cloud.blocks.pop(lost)
    forget_block(c, lost)
    with c.replica.transaction():
        leave_out(c.replica.db, [lost.digest])
    c.write("mine", "c goes on")
    assert lab.sync(c).published
    incomplete, commits = newest(c), c.versions.list()[0].commit
    report = lab.sync(a)
    assert not report.published and newest(a) != incomplete
    assert (a.versions.list()[0].commit, a.versions.list()[0].device) == (commits, c.device)
    lab.settle(a, c)
    same(a, c)
    assert newest(c) == newest(a) and c.status().not_fetched == 0


def test_object_missing_everywhere_blocks_no_other(lab: Lab) -> None:
    a, c = two(lab, 3)
    lost = body_block(a, "k1")
    for memory in (a, c):
        forget_block(memory, lost)
    lab.cloud.blocks.pop(lost)
    for _ in range(7):
        lab.clock.advance(86_400)
        report = lab.sync(a)
    assert report.missing == 1 and str(lost) in says(report, "missing")
    for n in range(3):
        a.write(f"more{n}", "x")
        report = lab.sync(a)
        assert report.published and "left-out" in kinds(report)
        assert lost not in live_set(a.replica.db, newest(a)).objects
        lab.sync(c)
    assert body(lab.restore("d"), "more2") == "x"
    with pytest.raises(IpfsmemError, match="not fetched"):
        a.read("k1")


def test_known_presence_is_forgotten_when_a_provider_is_another_one(lab: Lab) -> None:
    a, _ = two(lab, 2)
    other = SimProvider(clock=lab.clock, name="second")
    asyncio.run(a.sync([lab.provider("a"), other]))
    assert load_notes(a.replica, "second").root == str(newest(a))
    assert {one.provider for one in a.status().presence} == {"simulator", "second"}


# -- a move checks everything, and others learn of a guard ------------------------------------------------------------


class Dropping(DirectoryProvider):
    """A folder that loses every block except texts and the roots themselves."""

    keep: frozenset[bytes] | None = None

    async def put_car(self, root: CID, blocks, *, name: str) -> CID:  # type: ignore[no-untyped-def]
        keep = Dropping.keep
        kept = [one for one in blocks if keep is None or one[0] == root or one[0].digest in keep]
        return await super().put_car(root, kept, name=name)


def test_move_verifies_ring_commits_and_nodes(shared: FolderLab, tmp_path: Path) -> None:
    a, _ = two(shared, 20)
    target = tmp_path / "target"
    target.mkdir()
    rows = a.replica.db.connection.execute("SELECT digest FROM objects").fetchall()
    Dropping.keep = frozenset(bytes(row[0]) for row in rows)
    try:
        with pytest.raises(ProviderError):
            asyncio.run(a.providers.move(Dropping(target)))
    finally:
        Dropping.keep = None
    moved = asyncio.run(a.providers.move(Dropping(target))).moved
    assert moved.checked > 40 and not moved.incomplete


def test_guarded_root_is_removed_by_no_other_device(shared: FolderLab) -> None:
    """C joined the mass delete of A and guards the root before it; A collects, for months."""
    a = shared.create("a")
    shared.sync(a)
    c = shared.restore("c")
    for n in range(40):
        c.write(f"k{n}", f"text {n}")
    for memory in (c, a):
        shared.sync(memory)
    c.write("one", "more")
    for memory in (c, a):
        shared.sync(memory)
    for n in range(30):
        delete(a, f"k{n}")
    shared.sync(a)
    report = shared.sync(c)
    assert "mass-delete" in kinds(report)
    root = parse_cid(says(report, "mass-delete").split("version before that, ")[1].split(",")[0])
    for n in range(35):
        shared.clock.advance(4 * 86_400)
        a.write("x", f"{n}")
        for memory in (a, c):
            shared.sync(memory)
    verdicts = asyncio.run(a.maintenance.gc()).providers.values()
    (verdict,) = [one for found in verdicts for one in found if one.root == str(root)]
    assert verdict.keep and "more than a tenth" in verdict.why
    assert asyncio.run(shared.provider("x").has([root]))
    gone = asyncio.run(a.maintenance.gc(drop_guarded=str(root))).providers.values()
    assert not next(one for found in gone for one in found if one.root == str(root)).keep
    assert root not in {pin.cid for pin in asyncio.run(shared.provider("x").pins(pin_name_of(a)))}


def test_guard_is_reported_as_local_where_it_cannot_be_pinned(tmp_path: Path) -> None:
    with lab_in(tmp_path) as lab:
        for name in "ac":
            lab.providers[name] = SimProvider(
                lab.cloud, clock=lab.clock, capabilities=replace(FULL, pin=False)
            )
        a, c = two(lab, 30, at_once=10)
        for n in range(25):
            delete(a, f"k{n}")
        lab.sync(a)
        report = lab.sync(c)
        assert "mass-delete" in kinds(report) and "this device only" in says(report, "guard")
