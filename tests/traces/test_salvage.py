"""Damaged heads are never joined and never lead to an empty vault; their readable part is restored on
request.

The devices are real, and the blocks are removed from the provider."""

from __future__ import annotations

import asyncio

import pytest

from ipfsmem.causal.tree import name_digits
from ipfsmem.content.cid import CID, parse_cid
from ipfsmem.content.fetch import drive, from_mapping
from ipfsmem.content.reader import Reader
from ipfsmem.errors import DamagedError
from ipfsmem.memory import Memory
from tests.support.device_lab import (
    SHORT,
    TOO_LONG,
    Forger,
    Lab,
    all_texts,
    body,
    delete,
    events,
    kinds,
    same,
    says,
)


def root_of(memory: Memory) -> CID:
    root = memory.status().root
    assert root is not None
    return parse_cid(root)


def nodes(lab: Lab, root: CID) -> dict[str, CID]:
    """Return the state nodes of a published root by prefix ("" is the top)."""
    files = drive(Reader().walk(root), from_mapping(lab.cloud.blocks))
    found = {}
    for path, cid in files.items():
        if path.startswith("s/"):
            name = path.removeprefix("s/").removesuffix(".ipm").replace("/", "")
            found["" if name == "top" else name] = cid
    return found


def lose(lab: Lab, cid: CID) -> None:
    """Remove a block at the provider so that no device sends it again."""
    for name in ("a", "b", "c", "d", "e", "f"):
        lab.provider(name).faults.drop.add(cid)


def find(lab: Lab) -> None:
    """Make all blocks available again."""
    for name in ("a", "b", "c", "d", "e", "f"):
        lab.provider(name).faults.drop.clear()


def leaf_of(lab: Lab, root: CID, name: str) -> tuple[str, CID]:
    """Return the prefix and block of the leaf that holds an entry."""
    digits, there = name_digits(name), nodes(lab, root)
    prefix = max((p for p in there if digits.startswith(p)), key=len)
    return prefix, there[prefix]


def large(memory: Memory, count: int = 90) -> None:
    """Write enough memories that the state is a tree of many leaves."""
    for n in range(count):
        memory.write(f"memory{n}", f"text {n}")


def salvage(memory: Memory, **options: object):  # type: ignore[no-untyped-def]
    return asyncio.run(memory.maintenance.salvage(**options))  # type: ignore[arg-type]


def lost_below(prefix: str, count: int = 90) -> set[str]:
    return {f"text {n}" for n in range(count) if name_digits(f"m/memory{n}").startswith(prefix)}


def test_damaged_block_of_newest_root_does_not_restore_an_empty_vault(lab: Lab) -> None:
    """The newest root has one damaged node; an older one in the same pin list is whole and is joined."""
    a = lab.create("a")
    large(a)
    lab.sync(a)
    a.write("memory3", "newer text 3")
    lab.sync(a)
    _, leaf = leaf_of(lab, root_of(a), "m/memory3")
    lose(lab, leaf)
    b = lab.restore("b")
    assert b.restored is not None and b.restored.damaged == 1
    assert "ipfsmem vault repair" in says(b.restored, "damaged")
    assert all_texts(b) == {f"text {n}" for n in range(90)}, "the older root came back whole"


def test_restore_without_any_complete_head_fails(lab: Lab) -> None:
    """All heads share the lost node."""
    a = lab.create("a")
    large(a)
    lab.sync(a)
    lose(lab, nodes(lab, root_of(a))[""])
    before = len(lab.cloud.pins)
    with pytest.raises(DamagedError, match="at least 1 part") as raised:
        lab.restore("b")
    assert "ipfsmem vault repair" in raised.value.hint
    assert len(lab.cloud.pins) == before, "nothing was published"
    assert not (lab.home("b") / "alex" / "ipfsmem.json").exists()
    find(lab)
    assert len(all_texts(lab.restore("b"))) == 90


def test_damaged_restore_publishes_nothing_until_salvage(lab: Lab) -> None:
    """Format 7.1: with damaged_ok."""
    a = lab.create("a")
    large(a)
    lab.sync(a)
    prefix, leaf = leaf_of(lab, root_of(a), "m/memory3")
    lose(lab, leaf)
    b = lab.restore("b", damaged_ok=True)
    assert b.status().memories == 0
    report = lab.sync(b)
    assert report.root is None and report.damaged == 1 and not report.published
    done = salvage(b)
    gone = lost_below(prefix)
    assert gone and all_texts(b) == {f"text {n}" for n in range(90)} - gone
    assert done.report.published and done.found.lost == 1
    find(lab)
    lab.settle(a, b)
    same(a, b)
    assert all_texts(a) == {f"text {n}" for n in range(90)}, "nothing lost, nothing twice"
    assert not a.conflicts()


def test_trace_newest_root_with_one_damaged_leaf_and_an_older_root_whole(lab: Lab) -> None:
    """Trace: salvage, publish, then a device with the whole head: nothing lost, nothing revived."""
    a = lab.create("a")
    large(a)
    lab.sync(a)
    a.write("memory3", "newer text 3")
    a.write("memory5", "newer text 5")
    delete(a, "memory7")
    delete(a, "memory8")
    a.note("played")
    a.write("extra", "an extra text")
    lab.sync(a)
    prefix, leaf = leaf_of(lab, root_of(a), "m/memory3")
    lose(lab, leaf)
    b = lab.restore("b")
    assert body(b, "memory5") == "text 5" and body(b, "memory7") == "text 7", "the older root"
    look = salvage(b, dry_run=True)
    assert look.done is None and body(b, "memory5") == "text 5", "a look changes nothing"
    done = salvage(b)
    assert done.found.lost == 1
    in_lost = {
        name
        for name in ("memory5", "memory7", "memory8", "extra")
        if name_digits(f"m/{name}").startswith(prefix)
    }
    for name, wanted in {
        "memory5": "newer text 5",
        "memory7": None,
        "memory8": None,
        "extra": "an extra text",
    }.items():
        if name not in in_lost:
            assert body(b, name) == wanted
    assert body(b, "memory3") == "text 3", "unproved: as in the base"
    again = salvage(b)
    assert again.done is not None and not again.done.back and not again.done.gone, (
        "salvaging twice does nothing"
    )
    find(lab)
    lab.settle(a, b)
    same(a, b)
    assert body(b, "memory3") == "newer text 3" and body(a, "memory7") is None and body(a, "memory8") is None
    assert body(a, "memory5") == "newer text 5" and not a.conflicts()
    assert "played" in events(a) and "played" in events(b)


def test_salvager_with_own_id_in_damaged_context_takes_a_new_id(lab: Lab) -> None:
    """Trace: a device is reset to a snapshot; the head that would show it is damaged. It takes a new id
    nevertheless."""
    a = lab.create("a")
    large(a)
    lab.sync(a)
    b = lab.restore("b")
    b.write("from_b", "before the snapshot")
    lab.settle(a, b)
    lab.save("b", "s")
    b.write("later", "after the snapshot")
    b.write("memory3", "newer text 3 by b")
    lab.sync(b)
    lab.sync(a)
    # Only A's version on top of B's later writes remains, and one leaf of it is lost.
    prefix, leaf = leaf_of(lab, root_of(a), "m/memory3")
    lose(lab, leaf)
    old = b.replica.device.id
    b = lab.put_back("b", "s")
    b.write("again", "written after the snapshot was put back")
    report = lab.sync(b)
    assert report.new_identity and b.replica.device.id != old
    salvage(b)
    if not name_digits("m/later").startswith(prefix):
        assert body(b, "later") == "after the snapshot"
    assert body(b, "again") == "written after the snapshot was put back"
    find(lab)
    lab.settle(a, b)
    same(a, b)
    for text in ("after the snapshot", "newer text 3 by b", "written after the snapshot was put back"):
        assert text in all_texts(a)
    assert body(a, "memory3") == "newer text 3 by b"


def test_signed_only_text_is_listed_and_salvaged_when_picked(lab: Lab) -> None:
    """An inner node is lost, and the values below it are signed."""
    a = lab.create("a")
    large(a, 200)
    lab.sync(a)
    lose(lab, nodes(lab, root_of(a))[""])
    b = lab.restore("b", damaged_ok=True)
    done = salvage(b)
    assert done.found.lost == 1 and not done.found.changes
    names = {one.name for one in done.found.loose}
    assert {f"m/memory{n}" for n in range(200)} <= names
    assert all_texts(b) == set(), "nothing unproved is written by itself"
    picked = salvage(b, pick=["m/memory11", "m/memory12"])
    assert picked.done is not None and picked.done.back == ("m/memory11", "m/memory12")
    assert all_texts(b) == {"text 11", "text 12"} and picked.report.published
    find(lab)
    lab.settle(a, b)
    same(a, b)
    assert not a.conflicts() and len(all_texts(a)) == 200


def behind_a_damaged_head(lab: Lab) -> tuple[Memory, Memory]:
    """A and B were in sync; then A published another text, and one leaf of that is lost."""
    a = lab.create("a")
    large(a)
    lab.sync(a)
    b = lab.restore("b")
    lab.settle(a, b)
    a.write("memory3", "newer text 3")
    lab.sync(a)
    _, leaf = leaf_of(lab, root_of(a), "m/memory3")
    lose(lab, leaf)
    return a, b


def test_damaged_head_of_a_writer_deletes_nothing_elsewhere(lab: Lab) -> None:
    """The context of a damaged head covers the entries of its lost nodes."""
    a, b = behind_a_damaged_head(lab)
    report = lab.sync(b)
    assert "damaged" in kinds(report) and report.damaged == 1
    assert len(all_texts(b)) == 90 and body(b, "memory3") == "text 3"
    b.write("other", "b goes on")
    report = lab.sync(b)
    assert report.published, "what is damaged does not keep others from publishing"
    find(lab)
    lab.settle(a, b)
    same(a, b)
    assert body(b, "memory3") == "newer text 3" and body(a, "other") == "b goes on"


def test_damaged_head_is_reported_until_it_is_complete(lab: Lab) -> None:
    """Format 7.1: each sync reports it; once the nodes exist again it is an ordinary head."""
    _, b = behind_a_damaged_head(lab)
    assert [lab.sync(b).damaged for _ in range(3)] == [1, 1, 1]
    find(lab)
    assert lab.sync(b).damaged == 0 and body(b, "memory3") == "newer text 3"


def test_overlong_line_does_not_stop_a_salvage(lab: Lab) -> None:
    """A writer signed a line over the limit of a segment: a salvage skips it, as readers of the timeline do."""
    a, b, m = lab.three()
    large(m)
    lab.settle(a, b, m)
    m.write("memory3", "newer text 3")
    m.write("memory5", "newer text 5")
    forger = Forger(m)
    forger.put_segment("2026-01-01", f"{TOO_LONG}\n{SHORT}\n")
    forger.publish()
    _, leaf = leaf_of(lab, root_of(m), "m/memory3")
    lose(lab, leaf)
    assert lab.sync(b).damaged == 1
    done = salvage(b)
    assert done.done is not None and body(b, "memory5") == "newer text 5"
    assert events(b) == ["s"]
