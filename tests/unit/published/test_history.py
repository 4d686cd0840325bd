"""The history of a vault: log, diff between two states, and a root as a CAR for other programs."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path

import pytest

from ipfsmem.content.car import read_car
from ipfsmem.content.fetch import drive, from_mapping
from ipfsmem.content.reader import Reader
from ipfsmem.errors import NotFoundError, UsageError
from ipfsmem.memory import Memory
from ipfsmem.testing import SimProvider


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory.create("m", "encrypted-ipfs", provider=SimProvider(), passphrase=False, home=tmp_path)


def test_log_and_diff_show_versions_and_changes(memory: Memory) -> None:
    with pytest.raises(NotFoundError, match="nothing was published"):
        memory.versions.diff()
    memory.write("a", "one")
    memory.write("b", "two")
    first = asyncio.run(memory.sync()).root
    assert memory.versions.diff() == []
    memory.write("a", "one, changed")
    memory.forget("b")
    memory.write("c", "three")
    assert [(line.key, line.change) for line in memory.versions.diff()] == [
        ("a", "changed"),
        ("b", "removed"),
        ("c", "added"),
    ]
    second = asyncio.run(memory.sync()).root
    assert [entry.root for entry in memory.versions.list()] == [second, first]
    assert all(entry.own for entry in memory.versions.list())
    assert memory.versions.diff() == []
    assert first is not None and second is not None
    lines = {line.key: line for line in memory.versions.diff(first, second)}
    assert "one\n" in (lines["a"].before or "") and "one, changed" in (lines["a"].after or "")
    assert lines["b"].after is None and lines["c"].before is None
    assert [line.change for line in memory.versions.diff(second, first)] == ["changed", "added", "removed"]
    with pytest.raises(UsageError, match="prefix of 2"):
        memory.versions.diff("baf")
    with pytest.raises(NotFoundError):
        memory.versions.diff("nonsense")


def test_car_of_a_root_is_complete(memory: Memory) -> None:
    memory.write("a", "one canary")
    memory.note("seen", text="canary")
    root = asyncio.run(memory.sync()).root
    out = io.BytesIO()
    assert memory.bundles.export_published(out).root == root
    reader = read_car(out.getvalue())
    blocks = dict(reader)
    assert [str(cid) for cid in reader.roots or ()] == [root]
    files = drive(Reader().read_tree((reader.roots or ())[0]), from_mapping(blocks))
    assert {"keyring.json", "head.ipm", "s/top.ipm"} <= files.keys()
    assert sum(name.startswith("o/") for name in files) == 2
    assert b"canary" not in out.getvalue()
