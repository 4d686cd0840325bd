"""The eleven ways in which "last write wins, additive on load" loses data, each tried on real devices.

They are: two pointers, skipped files, the index as an input, limits read as deletes, stale devices,
deletes next to edits, dates as clocks, wrong clocks, unpinning, restored backups, two processes on one
state."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ipfsmem.bundle.blob import read_blob, write_blob
from ipfsmem.content.cid import raw_cid
from ipfsmem.errors import NotFoundError
from tests.support.device_lab import Lab, all_texts, body, delete, events, kinds, same, says, texts


def test_loss_01_two_devices_pin_and_the_later_pointer_wins(lab: Lab) -> None:
    """Two devices pin; the later pointer wins; the other's new files vanish."""
    a, b, c = lab.three()
    a.write("from_a", "a")
    b.write("from_b", "b")
    lab.sync(a)
    lab.sync(b)
    assert all_texts(lab.restore("d")) == {"a", "b"}
    lab.settle(a, b, c)
    same(a, b, c)


def test_loss_02_file_that_failed_to_load_stays_in_next_publish(lab: Lab) -> None:
    """A file that failed to load is "skipped silently", then the next pin lacks it."""
    a, b, c = lab.three()
    for n in range(5):
        a.write(f"memory{n}", f"text {n}")
    lab.sync(a)
    ((_, value),) = a.replica.store.entry("m/memory3").items()
    assert value.loc is not None
    broken = raw_cid(bytes.fromhex(value.loc.sha))
    lab.provider("b").faults.flip = {broken: 12345}
    report = lab.sync(b)
    assert report.not_fetched == 1 and str(broken) in says(report, "bad-block")
    assert body(b, "memory2") == "text 2"
    with pytest.raises(NotFoundError, match="not fetched"):
        b.read("memory3")
    b.write("other", "so that B publishes")
    lab.sync(b)
    lab.settle(a, c)
    assert body(c, "memory3") == "text 3" and body(c, "other") is not None
    lab.provider("b").faults.flip = {}
    lab.sync(b)
    assert body(b, "memory3") == "text 3"


def test_loss_03_index_is_never_an_input(lab: Lab) -> None:
    """Files are found through MEMORY.md, which is cut at 200 lines: line 201 onward is dropped on the next pin."""
    a, b, c = lab.three()
    for n in range(260):
        a.write(f"memory{n:03}", f"text {n}", name=f"Memory {n}")
    lab.settle(a, b, c)
    assert len(b.files()) == 260 == b.index().count("](")
    blob = read_blob(a.bundles.export())
    assert len(blob.files) == 260
    cut = blob.index.splitlines()[:200]
    assert b.bundles.import_(write_blob(blob.files, blob.events, "\n".join(cut))).unchanged == 260
    assert len(b.files()) == 260


def test_loss_04_limits_elsewhere_are_not_deletes(lab: Lab) -> None:
    """The 150-entry prune or the 200-event limit of local mode read as deletes elsewhere."""
    a, b, c = lab.three()
    for n in range(210):
        a.note("seen", number=n)
    for n in range(160):
        a.write(f"memory{n}", f"text {n}")
    lab.settle(a, b, c)
    # A user imports an export that has a part of it.
    whole = read_blob(b.bundles.export())
    few = dict(sorted(whole.files.items())[:10])
    b.bundles.import_(write_blob(few, whole.events[:20], ""))
    b.bundles.import_(write_blob(few, [], ""), strategy="replace")
    lab.settle(a, b, c)
    for memory in (a, b, c):
        assert len(memory.files()) == 160 and len(events(memory)) == 210


def test_loss_05_stale_device_revives_no_forgotten_memory(lab: Lab) -> None:
    """A stale device brings a forgotten memory back."""
    a, b, c = lab.three()
    c.write("user_name", "Alex")
    lab.settle(a, b, c)
    assert a.forget("user_name", reason="asked")
    delete(b, "nothing")
    lab.settle(a, b)
    lab.clock.advance(90 * 86_400)
    c.write("other", "back from a long trip")
    lab.settle(c, a, b)
    for memory in (a, b, c):
        assert memory.read("user_name") is None
        assert "forgot" in events(memory)
    # A delete without a trace remains one, too.
    a.write("tmp", "x")
    lab.settle(a, b, c)
    delete(a, "tmp")
    lab.sync(a)
    c.write("other", "again")
    lab.settle(c, a, b)
    assert all(memory.read("tmp") is None for memory in (a, b, c))


def test_loss_06_delete_or_forget_next_to_an_edit_keeps_the_edit(lab: Lab) -> None:
    """Delete beats a concurrent edit, or the reverse, by accident."""
    a, b, c = lab.three()
    for key in ("deleted", "forgotten"):
        a.write(key, "base")
    lab.settle(a, b, c)
    delete(a, "deleted")
    b.write("deleted", "edited meanwhile")
    a.forget("forgotten")
    b.write("forgotten", "edited meanwhile")
    lab.settle(a, b, c)
    same(a, b, c)
    assert body(a, "deleted") == "edited meanwhile"  # the deleting device had not seen it
    assert a.read("forgotten") is None  # the user's wish
    assert ("forgotten", True) in [(item.key, item.forgotten) for item in c.conflicts()]
    assert texts(c)["forgotten"] == {"edited meanwhile"}  # listed, not lost


def test_loss_07_two_edits_of_one_day(lab: Lab) -> None:
    """`updated` has day resolution: ties decided by chance."""
    a, b, c = lab.three()
    a.write("tone", "morning")
    lab.settle(a, b, c)
    for n in range(4):
        (a, b)[n % 2].write("tone", f"edit {n}")
        lab.settle(a, b)
    lab.settle(a, b, c)
    assert texts(c)["tone"] == {"edit 3"}
    a.write("tone", "left")
    b.write("tone", "right")
    lab.settle(a, b, c)
    same(a, b, c)
    assert texts(c)["tone"] == {"left", "right"}


def test_loss_08_text_of_a_wrong_clock_can_be_replaced(lab: Lab) -> None:
    """A clock in the future wins forever, a slow one never."""
    a, b, c = lab.three()
    lab.clock.advance(10 * 365 * 86_400)
    a.write("tone", "written in 2036")
    lab.sync(a)
    lab.clock.advance(-20 * 365 * 86_400)
    lab.settle(b, c)
    b.write("tone", "by a slow clock that had seen it")
    lab.settle(a, b, c)
    same(a, b, c)
    assert texts(c)["tone"] == {"by a slow clock that had seen it"}
    lab.clock.advance(10 * 365 * 86_400)
    lab.settle(a, b, c)
    c.write("tone", "today")
    assert c.read("tone") is not None
    lab.settle(a, b, c)
    assert texts(a)["tone"] == {"today"}


def test_loss_09_unpinning_never_deletes_the_only_copy(lab: Lab) -> None:
    """Unpinning "the old root" after publishing removes the only copy of another device's objects."""
    a, b, c = lab.three()
    for n in range(6):
        b.write(f"of_b{n}", f"b {n}")
        lab.sync(b)
        a.write(f"of_a{n}", f"a {n}")
        lab.sync(a)  # does not always know B's latest version
        lab.clock.advance(40 * 3_600)
        for memory in (a, b):
            asyncio.run(memory.maintenance.gc(keep_roots=1, keep_days=1))
        lab.cloud.collect()
    c.close()
    del lab.devices["c"]
    fresh = lab.restore("d")
    assert all_texts(fresh) == {f"{who} {n}" for n in range(6) for who in "ab"}
    assert fresh.status().not_fetched == 0


def test_loss_10_a_restored_backup(lab: Lab) -> None:
    """Backup restore: counters that were used elsewhere."""
    a, b, c = lab.three()
    b.write("before", "in the backup")
    lab.settle(a, b, c)
    lab.save("b", "backup")
    b.write("after", "lost with the disk but published")
    lab.settle(a, b, c)
    b = lab.put_back("b", "backup")
    b.write("new", "after the restore")
    lab.sync(b)
    assert {"in the backup", "lost with the disk but published", "after the restore"} <= all_texts(b)
    lab.settle(a, b, c)
    same(a, b, c)
    # Without a wallet: its old name leads the others to the new one.
    assert {"in the backup", "lost with the disk but published", "after the restore"} <= all_texts(a)
    assert "equivocation" not in kinds(lab.sync(a))


def test_loss_11_two_processes_on_one_state(lab: Lab) -> None:
    """Two tabs or processes on one state directory: take an OS file lock."""
    a = lab.create("a")
    other = lab.open("a")
    work = [
        threading.Thread(target=lambda m=memory, w=who: [m.write(f"{w}{n}", f"{w} {n}") for n in range(25)])
        for who, memory in (("first", a), ("second", other))
    ]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    assert len(all_texts(a)) == 50 == len(all_texts(other))
    dots = [dot for _, entry in a.replica.store.memories() for dot in entry]
    assert len(set(dots)) == 50
    a.close()
