"""Damaged rows of `state.db` that have no checksum: a sync continues and repairs them."""

from __future__ import annotations

import asyncio
import json
from collections import Counter

import pytest

from ipfsmem.content.cid import ipns_name
from ipfsmem.device.root_folders import objects_held
from ipfsmem.device.tables import damaged_rows
from ipfsmem.memory import Memory
from ipfsmem.sync.collection import whole_at
from ipfsmem.sync.context import SyncContext
from ipfsmem.sync.local_repair import NOTES, forget_damaged_notes
from ipfsmem.sync.progress import no_progress
from ipfsmem.sync.report import Notices
from tests.support.device_lab import Lab, all_texts, begun, prepare_lab, says

DAY = 86_400


def change(memory: Memory, sql: str, *values: object) -> None:
    """Change the database as a damaged disk would."""
    with memory.replica.transaction():
        assert memory.replica.db.connection.execute(sql, values).rowcount


@pytest.fixture(scope="module", autouse=True)
def _ready() -> None:
    prepare_lab(Lab, published)


def two(lab: Lab) -> tuple[Memory, Memory]:
    """Two devices in sync that published a few times."""
    a, b = begun(lab, published, "a", "b")
    return a, b


def published(lab: Lab) -> tuple[Memory, Memory]:
    a = lab.create("a")
    lab.sync(a)
    b = lab.restore("b")
    for n in range(6):
        a.write(f"k{n}", f"text {n}")
        a.write("often", f"edit {n}")
        lab.settle(a, b)
    return a, b


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE heads SET root = replace(root, 'bafy', 'baf1')",
        "UPDATE heads SET root = CAST(x'ff00' AS TEXT) WHERE root = (SELECT min(root) FROM heads)",
        "UPDATE placed SET root = '!' || root",
        "UPDATE placed SET answered = replace(answered, 'bafy', 'baf\U0001f600')",
    ],
    ids=["heads", "heads that are no text", "placed", "answered"],
)
def test_damaged_root_does_not_stop_a_sync(lab: Lab, sql: str) -> None:
    a, b = two(lab)
    texts = all_texts(a)
    change(b, sql)
    if "ff00" not in sql:  # a value that is not text is reported as damaged, until a sync
        assert b.status().root is not None
    b.write("more", "after it")
    assert lab.sync(b).published and not asyncio.run(b.maintenance.gc()).problems
    lab.settle(a, b)
    assert all_texts(a) == all_texts(b) == all_texts(lab.restore("c")) == {*texts, "after it"}


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE objects SET size = -size",
        "UPDATE objects SET size = x'ff'",
        "UPDATE objects SET refs = 'x' WHERE digest = (SELECT min(digest) FROM objects)",
        "UPDATE objects SET held = 65",
        "UPDATE nodes SET size = -size",
        "UPDATE marks SET c = x'ff'",
        "UPDATE marks SET digest = CAST(x'ff00' AS TEXT)",
        "UPDATE heads SET seen = x'00'",
        "UPDATE heads SET prev = 'x'",
        "UPDATE placed SET at = 'x'",
    ],
)
def test_invalid_row_does_not_stop_a_sync(lab: Lab, sql: str) -> None:
    a, b = two(lab)
    texts = all_texts(a)
    change(b, sql)
    b.write("k1", "after it")
    assert lab.sync(b).published and not asyncio.run(b.maintenance.gc()).problems
    lab.settle(a, b)
    counts = Counter(b.replica.store.object_digests())
    assert dict(b.replica.db.connection.execute("SELECT digest, refs FROM objects")) == counts
    assert [digest for _, digest, _ in objects_held(b.replica.db)] == sorted(counts)
    assert all_texts(a) == all_texts(b) == all_texts(lab.restore("c")) == {*texts, "after it"} - {"text 1"}
    assert a.status().root == b.status().root and not damaged_rows.tables(b.replica.db.connection)


def test_damaged_note_does_not_stop_a_sync(lab: Lab) -> None:
    """Notes of the last publish and of the last puts of names."""
    a, b = two(lab)
    notes = sorted(name for name in NOTES if b.replica.db.get_meta(name) is not None)
    assert {"commit", "counted", "looked at", "names", "put", "root", "sending", "signed", "whole"} <= {
        *notes
    }
    for number, name in enumerate(notes):
        change(b, "UPDATE meta SET value = CAST(value || 'x' AS BLOB) WHERE name = ?", name)
        b.write("mine", f"beside {name}")
        assert lab.sync(b).published, name
        a.write("theirs", f"number {number}")
        lab.settle(a, b)
        assert all_texts(a) == all_texts(b) >= {f"beside {name}", f"number {number}"}
        assert a.status().root == b.status().root and not asyncio.run(b.maintenance.gc()).problems
    numbers = [
        c for (c,) in b.replica.db.connection.execute("SELECT c FROM heads WHERE device = ?", (b.device,))
    ]
    assert len(set(numbers)) == len(numbers) and b.device in {one.id for one in a.members.list()}
    assert all_texts(lab.restore("c")) == all_texts(a)


def test_provider_with_damaged_rows_is_not_whole_until_a_publish(lab: Lab) -> None:
    a, _ = two(lab)
    run = SyncContext(a.replica, [lab.provider("a")], None, no_progress, Notices())
    pinned = {pin.cid for pin in lab.cloud.pins}
    assert asyncio.run(whole_at(run, run.providers[0], pinned))
    change(a, "UPDATE objects SET size = -1 WHERE digest = (SELECT digest FROM objects LIMIT 1)")
    forget_damaged_notes(a.replica, run.notices)
    assert not asyncio.run(whole_at(run, run.providers[0], pinned))
    a.write("later", "text")
    lab.sync(a)
    assert asyncio.run(whole_at(run, run.providers[0], {pin.cid for pin in lab.cloud.pins}))


def test_lost_signed_names_are_reported(lab: Lab) -> None:
    """Records signed with a recovery phrase cannot be signed again without it."""
    _, b = two(lab)
    change(b, "UPDATE meta SET value = CAST(value || 'x' AS BLOB) WHERE name = 'names'")
    assert "ipfsmem key phrase" in says(lab.sync(b), "names-damaged")
    assert not says(lab.sync(b), "names-damaged")


def test_damaged_dreams_do_not_end_a_sync_and_are_reported(lab: Lab) -> None:
    a, b = two(lab)
    for key in ("tea", "tea_too"):
        b.write(key, "They drink tea.")
    b.dreams.run()
    b.dreams.propose()
    change(b, "UPDATE meta SET value = CAST(value || 'x' AS BLOB) WHERE name LIKE 'dream%'")
    a.forget("k1")
    lab.sync(a)
    report = lab.sync(b)
    assert report.published and "cannot be undone" in says(report, "dreams-damaged")
    assert not b.dreams.list() and b.dreams.proposed() is None
    b.write("tea_again", "They drink tea.")
    b.dreams.run()
    assert len(b.dreams.list()) == 1 and not says(lab.sync(b), "dreams-damaged")


def test_lost_newest_version_number_is_relearned_and_reported(lab: Lab) -> None:
    a, b = two(lab)
    change(b, "UPDATE marks SET c = x'ff'")
    change(b, "DELETE FROM meta WHERE name = 'names'")
    lab.provider("b").faults.old_record = {ipns_name(a.replica.device.sign_public): 0}
    report = lab.sync(b)
    assert "an older version of" in says(report, "stale")
    assert "rebuilt from" in says(report, "marks-damaged")
    assert "marks-damaged" in [one.code for one in b.check()]  # the failed sync printed no report
    lab.provider("b").faults.old_record = {}
    assert not says(lab.sync(b), "marks-damaged")
    lab.settle(a, b)
    assert all_texts(a) == all_texts(b)


def test_damaged_record_of_the_location_gives_a_new_device_id(lab: Lab) -> None:
    a, b = two(lab)
    b.write("mine", "not published yet")
    change(b, "UPDATE meta SET value = CAST(value || 'x' AS BLOB) WHERE name = 'place'")
    b.close()
    b = lab.open("b")
    assert "not published yet" in all_texts(b)
    assert lab.sync(b).new_identity and not b.replica.was_moved()
    lab.settle(a, b)
    assert "not published yet" in all_texts(a) == all_texts(b)


@pytest.mark.parametrize("field", ["root", "rings", "missing"])
def test_damaged_presence_row_causes_a_full_check(lab: Lab, field: str) -> None:
    """A changed letter leaves valid JSON without a CID: then everything is due for a check."""
    a, _ = two(lab)
    (row,) = a.replica.db.connection.execute("SELECT row FROM presence").fetchone()
    known = json.loads(row)
    known[field] = "!" if field == "root" else ["zz"]
    change(a, "UPDATE presence SET row = ?", json.dumps(known).encode())
    a.write("more", "after it")
    assert lab.sync(a).published
    assert [one.state for one in asyncio.run(a.providers.check())] == ["ok"]


@pytest.mark.parametrize("refs", [-1, 5])
def test_wrong_object_counts_are_corrected_within_a_day(lab: Lab, refs: int) -> None:
    """Too low, an object is missing in the root; too high, it is kept forever."""
    a, b = two(lab)
    change(a, "UPDATE objects SET refs = refs + ?", refs)
    for n in range(2):
        a.write("often", f"later {n}")
        lab.sync(a)
    lab.clock.advance(DAY)
    a.write("often", "at last")
    lab.settle(a, b)
    counts = Counter(a.replica.store.object_digests())
    assert dict(a.replica.db.connection.execute("SELECT digest, refs FROM objects")) == counts
    assert [digest for _, digest, _ in objects_held(a.replica.db)] == sorted(counts)
    assert a.status().root == b.status().root
    assert all_texts(lab.restore("c")) == all_texts(a) >= {f"text {n}" for n in range(6)}
