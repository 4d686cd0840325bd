"""Published versions are found even though no name leads to them, and the cost of a list next to names."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipfsmem.content.cid import raw_cid
from ipfsmem.content.tree import build_tree
from ipfsmem.errors import FormatError, ProviderUnavailable
from ipfsmem.memory import Memory
from ipfsmem.provider.contract import Pin
from ipfsmem.sync import pin_lists
from ipfsmem.sync.names import pin_name
from tests.support.device_lab import ROOT, FolderLab, Forger, Lab, all_texts, events, kinds, says

HOUR = 3_601.0


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[FolderLab]:
    made = FolderLab(tmp_path)
    yield made
    made.close()


def test_concurrent_restores_over_a_synced_folder_converge(lab: FolderLab) -> None:
    """Both move the anchor, of which one record remains."""
    lab.use = {"d2": "q"}
    a = lab.create("a")
    a.write("k", "v")
    lab.sync(a)
    shutil.copytree(lab.folder / "p", lab.folder / "q")
    d1, d2 = lab.restore("d1"), lab.restore("d2")
    lab.meet("p", "q")
    d1.write("d1", "from d1")
    d2.write("d2", "from d2")
    for _ in range(3):
        lab.clock.advance(HOUR)
        for memory in (a, d1, d2):
            lab.sync(memory)
            lab.meet("p", "q")
    for memory in (a, d1, d2):
        assert all_texts(memory) == {"v", "from d1", "from d2"}
    assert all_texts(lab.restore("e")) == {"v", "from d1", "from d2"}


def rolled_back(lab: FolderLab) -> tuple[Memory, Memory]:
    """A's home and its provider are reset together, like a machine with its disk; C is ahead of both."""
    a = lab.create("a")
    lab.sync(a)
    c = lab.restore("c")
    for memory in (a, c):
        lab.sync(memory)
    a.write("x", "x1")
    lab.sync(a)
    lab.save("a", "s")
    shutil.copytree(lab.folder / "p", lab.folder / "before")
    for number in range(2, 6):
        a.write("x", f"x{number}")
        lab.sync(a)
    lab.sync(c)
    shutil.copytree(lab.folder / "p" / "names", lab.folder / "ahead")
    a = lab.put_back("a", "s")
    shutil.rmtree(lab.folder / "p")
    shutil.copytree(lab.folder / "before", lab.folder / "p")
    a.write("y", "y, written after the rollback")
    a.note("after")
    assert lab.sync(a).published
    return a, c


def test_version_of_rolled_back_device_at_rolled_back_provider_is_found(lab: FolderLab) -> None:
    """Only the list shows the root, because the name record is older than a known one."""
    a, c = rolled_back(lab)
    a.close()
    lab.clock.advance(HOUR)
    report = lab.sync(c)
    assert "equivocation" in kinds(report) and a.replica.device.id in says(report, "equivocation")
    assert "x5" in all_texts(c)
    c.unlock(ROOT)
    asyncio.run(c.members.revoke(a.replica.device.id))
    lab.sync(c)
    assert {"x5", "y, written after the rollback"} <= all_texts(c) and "after" in events(c)
    assert {"x5", "y, written after the rollback"} <= all_texts(lab.restore("e"))


def test_name_that_was_set_back_causes_an_immediate_list_read(lab: FolderLab) -> None:
    """Also within an hour: the shown record of A's name is older than the one that C knows."""
    a, c = rolled_back(lab)
    a.close()
    assert "equivocation" in kinds(lab.sync(c))


def test_unlocked_root_causes_an_immediate_list_read(lab: FolderLab) -> None:
    a, c = rolled_back(lab)
    a.close()
    shutil.rmtree(lab.folder / "p" / "names")
    shutil.copytree(lab.folder / "ahead", lab.folder / "p" / "names", dirs_exist_ok=True)
    assert "equivocation" not in kinds(lab.sync(c))
    c.unlock(ROOT)
    assert "equivocation" in kinds(lab.sync(c))


def test_fork_of_a_rolled_back_device_is_merged_when_it_syncs(lab: FolderLab) -> None:
    a, c = rolled_back(lab)
    for _ in range(3):
        lab.clock.advance(HOUR)
        lab.sync(c)
        lab.sync(a)
    for memory in (a, c, lab.restore("d")):
        assert {"x5", "y, written after the rollback"} <= all_texts(memory) and "after" in events(memory)


def test_new_device_reports_the_fork_of_a_rolled_back_device(lab: FolderLab) -> None:
    a, c = rolled_back(lab)
    a.close()
    lab.sync(c)
    d = lab.restore("d")
    assert d.restored is not None and "equivocation" in kinds(d.restored)
    d.unlock(ROOT)
    asyncio.run(d.members.revoke(a.replica.device.id))
    lab.sync(d)
    assert {"x5", "y, written after the rollback"} <= all_texts(d)


def lists(memory: Memory) -> int:
    (provider,) = memory.providers.in_use
    return provider.calls.count("pins")  # type: ignore[attr-defined]


def test_list_next_to_names_is_read_once_an_hour(tmp_path: Path) -> None:
    """Also after the clock was set back."""
    lab = Lab(tmp_path)
    _, b, _ = lab.three()
    before = lists(b)
    for _ in range(5):
        lab.sync(b)
    assert lists(b) == before
    for hours in range(1, 4):
        lab.clock.advance(HOUR)
        lab.sync(b)
        lab.sync(b)
        assert lists(b) == before + hours
    lab.clock.advance(-100 * HOUR)
    before = lists(b)
    lab.sync(b)
    assert lists(b) > before
    # With the wallet available every list is read.
    b.unlock(ROOT)
    before = lists(b)
    lab.sync(b)
    assert lists(b) > before
    lab.close()


def test_old_roots_in_a_list_are_neither_reread_nor_reported(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    a = lab.create("a")
    for n in range(20):
        a.write("k", f"text {n}")
        lab.sync(a)
    b = lab.restore("b")
    b.lock()
    assert {row[0] for row in b.replica.db.connection.execute("SELECT c FROM heads")} >= set(range(15, 21))
    fetched = lab.providers["b"].calls.count("get_blocks")
    lab.clock.advance(HOUR)
    report = lab.sync(b)
    assert kinds(report) <= {"unlock"} and not report.entries_changed
    known = b.replica.db.connection.execute("SELECT count(*) FROM heads").fetchone()[0]
    assert known >= 20
    assert lab.providers["b"].calls.count("get_blocks") <= fetched + 6, "only what says who made it is read"
    lab.clock.advance(HOUR)
    fetched = lab.providers["b"].calls.count("get_blocks")
    lab.sync(b)
    assert lab.providers["b"].calls.count("get_blocks") == fetched
    lab.close()


def test_invalid_root_in_a_list_is_reported_once_per_ring(tmp_path: Path) -> None:
    """It is refused under one ring and read again under another, in which it may be a member's."""
    lab = Lab(tmp_path)
    a, b, _ = lab.three()
    rubbish = build_tree({"keyring.json": b"{}"})
    lab.cloud.blocks.update(rubbish.blocks)
    lab.cloud.pins.append(Pin(rubbish.cid, pin_name(ROOT.head_public), "x", lab.clock.ms))

    def told() -> bool:
        lab.clock.advance(HOUR)
        return "head-refused" in kinds(lab.sync(b))

    assert told() and not told()
    a.unlock(ROOT)
    asyncio.run(a.members.rotate())
    lab.sync(b)
    assert told() and not told()
    lab.close()


def test_unavailable_list_next_to_names_blocks_nothing(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    a, b, _ = lab.three()
    a.write("k", "text")
    lab.sync(a)
    lab.clock.advance(HOUR)

    provider = lab.providers["b"]
    whole = provider.pins

    async def down(name: str) -> list[Pin]:
        provider.pins = whole  # type: ignore[method-assign]
        raise ProviderUnavailable("the list is down")

    provider.pins = down  # type: ignore[method-assign]
    assert "channel-down" in kinds(lab.sync(b)) and "text" in all_texts(b)
    lab.close()


def test_list_notes_are_dropped_with_their_roots(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    _, b, _ = lab.three()
    looks = pin_lists.ListReads.of(b.replica, unlocked=False)
    roots = [raw_cid(n.to_bytes(32, "big")) for n in range(300)]
    assert looks.unseen("p", roots) == roots[: pin_lists.AT_ONCE]
    looks.note("p", roots[:128], {roots[0]: FormatError("x"), roots[1]: ProviderUnavailable("x")})
    assert looks.unseen("p", roots) == [roots[1], *roots[128:255]], (
        "what nobody could give is asked for again"
    )
    looks.unseen("p", roots[200:])
    looks.note("p", roots[200:210], {})
    assert looks.unseen("p", roots)[0] == roots[0]
    lab.close()


def test_device_with_a_new_id_requests_missing_texts_again(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    a, b, _ = lab.three()
    lab.save("b", "before")
    b.write("own", "of b")
    lab.sync(b)
    a.write("k", "of a")
    lab.sync(a)
    (value,) = a.replica.store.entry("m/k").values()
    assert value.loc is not None
    block = raw_cid(bytes.fromhex(value.loc.sha))
    lost = lab.cloud.blocks.pop(block)
    b = lab.put_back("b", "before")
    assert lab.sync(b).new_identity and "of a" not in all_texts(b)
    lab.cloud.blocks[block] = lost
    lab.sync(b)
    assert {"of a", "of b"} <= all_texts(b)
    lab.close()


def test_rolled_back_device_continues_its_commit_numbers(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    a, b, c = lab.three()
    b.write("first", "of b")
    lab.sync(b)
    lab.settle(a, b, c)
    lab.save("b", "before")
    for n in range(4):
        for memory in (a, c):
            memory.write(memory.device, f"of {memory.device} {n}")
            Forger(memory).publish()  # at the same moment: neither has seen the other
        lab.clock.advance(1)
        assert lab.sync(b).published  # it joins both, and adds nothing
    b = lab.put_back("b", "before")
    b.write("second", "of b, later")
    report = lab.sync(b)
    assert report.published
    for memory in (a, c):
        report = lab.sync(memory)
        assert "equivocation" not in kinds(report)
        assert "of b, later" in all_texts(memory)
    lab.close()


def test_device_with_an_exhausted_counter_takes_a_new_id(tmp_path: Path) -> None:
    """The thief of a backup publishes a commit with the greatest possible number."""
    lab = Lab(tmp_path)
    a, b, _ = lab.three()
    lab.save("b", "stolen")
    thief = lab.copy_to("stolen", "thief", hidden=True)
    row = (b.device, 2**53 - 2, "00" * 32, "0" * 16)
    thief.replica.db.connection.execute("INSERT OR REPLACE INTO marks VALUES (?,?,?,?)", row)
    Forger(thief).publish()
    b.write("k", "of b")
    assert lab.sync(b).new_identity
    lab.sync(a)
    assert "of b" in all_texts(a)
    lab.close()


def test_new_device_joins_contradicting_members_last(tmp_path: Path) -> None:
    """A member writes something else under a known counter. Joined first, its head would hold back all
    others from a device that is being restored."""
    lab = Lab(tmp_path)
    a, b, m = lab.three()
    m.write("k", "of m")
    lab.settle(a, b, m)
    a.write("a", "of a")
    lab.settle(a, b)
    forger = Forger(m)
    (under,) = m.replica.store.entry("m/k")
    value, block = forger.value("m/k", under, "---\n---\n\nanother\n")
    forger.put({"m/k": {under: value}}, blocks=[block])
    forger.publish()
    fresh = lab.restore("fresh")
    assert {"of a", "of m"} <= all_texts(fresh)
    assert fresh.restored is not None and m.device in says(fresh.restored, "equivocation")
    lab.close()
