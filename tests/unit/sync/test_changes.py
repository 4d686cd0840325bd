"""Changes that a sync reports by name: added, changed and removed memories, alternatives and forks."""

from __future__ import annotations

import msgspec
import pytest

from ipfsmem.causal.entries import MemoryName
from ipfsmem.cli.sync_cmd import paragraph
from ipfsmem.memory import Memory
from ipfsmem.sync.changes import MOST_CHANGES, Changes, Kind, changes_of, combine_changes, combine_kinds
from ipfsmem.sync.report import SyncReport
from tests.support.device_lab import ROOT, Lab, delete, texts


def _really(before: dict[str, set[str]], after: dict[str, set[str]]) -> Changes:
    """Return the differences between all texts before and after, in the unnamed scope."""

    def those(kind: Kind) -> tuple[str, ...]:
        keys = sorted(before.keys() | after.keys())
        found = [key for key in keys if before.get(key) != after.get(key)]
        kinds = {
            key: "removed" if key not in after else "changed" if key in before else "added" for key in found
        }
        return tuple(key for key in found if kinds[key] == kind)

    return Changes(*({"": those(kind)} if those(kind) else {} for kind in ("added", "changed", "removed")))


def _synced(lab: Lab, memory: Memory) -> SyncReport:
    """Sync and check that the report names the differences."""
    before = texts(memory)
    report = lab.sync(memory)
    assert report.changes == _really(before, texts(memory))
    return report


def test_report_names_added_changed_and_removed_memories_by_scope(lab: Lab) -> None:
    a = lab.create("a")
    for key in ("keep", "tone", "gone"):
        a.write(key, "1")
        a.scope("work").write(key, "1")
    lab.sync(a)
    b = lab.restore("b")
    assert b.restored is not None
    three = ("gone", "keep", "tone")
    assert b.restored.changes == Changes(added={"": three, "work": three})
    lab.settle(a, b)
    assert lab.sync(b).changes == Changes()
    for part in (a, a.scope("work")):
        part.write("tone", "2")
        part.write("new", "2")
    delete(a, "gone")
    delete(a, "gone", "work")
    a.note("an event is no memory")
    assert lab.sync(a).changes == Changes()  # this device's own writes are not reported
    report = lab.sync(b)
    both = Changes(
        added={"": ("new",), "work": ("new",)},
        changed={"": ("tone",), "work": ("tone",)},
        removed={"": ("gone",), "work": ("gone",)},
    )
    assert report.changes == both
    said = paragraph(report)
    assert "new, work/new, tone, work/tone, gone (removed), and more" in said
    assert msgspec.json.decode(msgspec.json.encode(report), type=SyncReport) == report


def test_heads_joined_one_after_another_are_reported_once(lab: Lab) -> None:
    a, b, c = lab.three()
    a.write("tone", "of a")
    b.write("tone", "of b")
    b.write("more", "of b")
    lab.sync(a)
    lab.sync(b)
    _synced(lab, c)
    _synced(lab, a)
    delete(b, "more")
    a.write("tone", "both")
    lab.sync(a)
    lab.sync(b)
    _synced(lab, c)
    _synced(lab, b)


def test_restored_device_reports_only_what_was_published_since(lab: Lab) -> None:
    """Moving its own texts to a new device id changes nothing for readers."""
    a = lab.create("a")
    for key in ("one", "two", "three"):
        a.write(key, "1")
    lab.sync(a)
    lab.save("a", "saved")
    a.write("one", "2")
    a.write("four", "4")
    lab.sync(a)
    a = lab.put_back("a", "saved", unlock=ROOT)
    a.write("five", "5")
    report = _synced(lab, a)
    assert report.new_identity and report.changes.added == {"": ("four",)}
    assert set(report.changes.changed) <= {""} and not report.changes.removed


def test_copied_devices_report_the_changes_of_the_other(lab: Lab) -> None:
    a, b = lab.create("a"), None
    a.write("both", "before")
    lab.sync(a)
    b = lab.restore("b")
    lab.settle(a, b)
    lab.save("a", "saved")
    a.write("both", "of a")
    a.write("one", "1")
    lab.sync(a)
    _synced(lab, b)
    copy = lab.put_back("a", "saved")
    copy.write("both", "of the copy")
    copy.write("two", "2")
    copy.unlock(ROOT)
    assert _synced(lab, copy).new_identity
    _synced(lab, b)
    _synced(lab, copy)


def test_changes_over_limit_are_counted_as_unnamed() -> None:
    many: dict[MemoryName, Kind] = {MemoryName("", f"k{n:04}"): "added" for n in range(MOST_CHANGES + 5)}
    told = changes_of(many)
    assert len(told.added[""]) == MOST_CHANGES and told.unnamed == 5
    assert told.added[""][0] == "k0000"
    again = combine_changes(told, changes_of({MemoryName("work", "tone"): "changed"}))
    assert again.unnamed == 6 and not again.changed


@pytest.mark.parametrize(
    ("first", "then", "both"),
    [
        ("added", "changed", "added"),
        ("added", "removed", None),
        ("changed", "changed", "changed"),
        ("changed", "removed", "removed"),
        ("removed", "added", "changed"),
    ],
)
def test_two_changes_of_one_memory_are_reported_once(first: Kind, then: Kind, both: Kind | None) -> None:
    memory = MemoryName("", "tone")
    assert combine_kinds({memory: first}, {memory: then}) == ({memory: both} if both else {})
