"""Entries with several values are found without reading the others, after any history."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ipfsmem.device.database import Database
from ipfsmem.memory import Memory
from ipfsmem.testing import SimProvider
from ipfsmem.wallet.root_keys import RootKeys


def _scanned(memory: Memory) -> set[str]:
    return {name for name, entry in memory.replica.store.entries() if len(entry) > 1}


def _crowded(memory: Memory) -> set[str]:
    found = dict(memory.replica.store.entries_with_siblings())
    assert all(len(entry) > 1 for entry in found.values())
    return set(found)


def _two(tmp_path: Path) -> tuple[Memory, Memory]:
    root, provider = RootKeys.from_random(b"\x07" * 64, "default", 1), SimProvider()
    options = {"provider": provider, "unlock": root, "passphrase": False}
    first = Memory.create("m", "encrypted-ipfs", home=tmp_path / "a", **options)
    for i in range(200):
        first.write(f"k{i}", f'text {i} "kind": "kind":')
    asyncio.run(first.sync())
    second = Memory.load("m", "encrypted-ipfs", home=tmp_path / "b", **options)
    asyncio.run(first.sync())
    return first, second


def test_crowded_set_equals_full_scan_after_checkpoints_and_reopening(tmp_path: Path) -> None:
    first, second = _two(tmp_path)
    assert _crowded(first) == set() == _scanned(first)
    for i in range(6):
        first.write(f"k{i}", f"first {i}")
        second.write(f"k{i}", f"second {i}")
    asyncio.run(first.sync())
    asyncio.run(second.sync())
    both = {f"m/k{i}" for i in range(6)}
    assert _crowded(second) == both == _scanned(second)
    assert {item.key for item in second.conflicts()} == {name[2:] for name in both}

    # Settled, not yet checkpointed; then checkpointed; then reopened.
    second.resolve("k0", keep=True, seen=second.conflicts()[0])
    second.forget("k1")
    assert _crowded(second) == both - {"m/k0", "m/k1"} == _scanned(second)
    asyncio.run(second.sync())
    assert _crowded(second) == both - {"m/k0", "m/k1"} == _scanned(second)
    second.close()
    again = Memory.load("m", home=tmp_path / "b")
    assert _crowded(again) == both - {"m/k0", "m/k1"} == _scanned(again)
    again.resolve("k2", keep=True, seen=again.conflicts()[0])
    assert _crowded(again) == both - {"m/k0", "m/k1", "m/k2"}


def test_sync_without_changes_runs_no_query_that_grows_with_the_vault(tmp_path: Path) -> None:
    first, second = _two(tmp_path)
    asyncio.run(second.sync())
    seen: list[str] = []
    second.replica.db.connection.set_trace_callback(seen.append)
    try:
        asyncio.run(second.sync())
        second.conflicts()
    finally:
        second.replica.db.connection.set_trace_callback(None)
    assert not [statement for statement in seen if "NOT IN (SELECT" in statement]
    assert sum("FROM nodes" in statement for statement in seen) < 5
    assert isinstance(second.replica.db, Database)
    first.close()


def test_unsigned_values_are_found_in_tree_and_journal(tmp_path: Path) -> None:
    with Memory.create("m", "local", home=tmp_path) as memory:
        memory.write("one", 'a text with "s":"" in it')
        memory.note("happened")
        with memory.replica.transaction():
            memory.replica.store.checkpoint(folders=False)
        memory.write("two", "later")
        names = {name for name, _ in memory.replica.store.unsigned()}
        assert names == {name for name, _ in memory.replica.store.entries()} and len(names) == 3
    first, second = _two(tmp_path / "signed")
    first.write("more", "text")
    for other in (first, second):
        assert not list(other.replica.store.unsigned())


@pytest.mark.slow
def test_status_counts_alternatives_without_opening_texts(tmp_path: Path) -> None:
    first, second = _two(tmp_path)
    for i in range(6):
        first.write(f"k{i}", f"first {i}")
        second.write(f"k{i}", f"second {i}")
    second.forget("k100")
    asyncio.run(first.sync())
    asyncio.run(second.sync())
    second.forget("k0")
    (value,) = second.replica.store.entry("m/k50").values()
    assert value.loc is not None
    with second.replica.transaction():
        second.replica.db.connection.execute(
            "DELETE FROM blocks WHERE digest=?", (bytes.fromhex(value.loc.sha),)
        )
    listed = second.list()
    status = second.status()
    assert status.memories == len(listed) == 198
    assert status.not_fetched == sum(not item.fetched for item in listed) == 1
    seen: list[str] = []
    second.replica.db.connection.set_trace_callback(seen.append)
    second.status()
    second.replica.db.connection.set_trace_callback(None)
    assert sum("SELECT data FROM blocks" in statement for statement in seen) < 60
