"""The cost of a sync does not grow with the history, old roots are removed automatically on request, and
the database shrinks."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import BinaryIO

import pytest
from ipfsmem_providers.packs import pins as pin_files

from ipfsmem.config import RetentionRule
from ipfsmem.device.database import Database
from ipfsmem.device.shared_folder import SharedFolder
from tests.support import effort
from tests.support.device_lab import kinds
from tests.support.folder_lab import FolderLab

#: Enough for two merges of a pin list's files.
COMMITS = 260 if effort.THOROUGH else 90


def test_cost_of_a_sync_is_constant_after_hundreds_of_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = FolderLab(tmp_path)
    first = lab.create("first")
    lab.sync(first)
    a = lab.restore("a")  # without the root key: with it every list is read each time
    for n in range(40):
        a.write(f"k{n}", f"text {n}")
    lab.sync(a)
    reads: list[str] = []
    real = SharedFolder.open_file

    def read_file(folder: SharedFolder, name: str, *, buffered: bool = False) -> BinaryIO:
        if folder.path.name == "pins":
            reads.append(name)
        return real(folder, name, buffered=buffered)

    monkeypatch.setattr(SharedFolder, "open_file", read_file)
    sent, read = [], []
    for n in range(COMMITS):
        lab.clock.advance(60)
        a.write(f"k{n % 40}", f"edit {n:04}")
        reads.clear()
        sent.append(lab.sync(a).bytes_sent)
        read.append(len(reads))
    assert sum(sent[-20:]) <= 1.3 * sum(sent[20:40])
    # An hourly read of the list reads each file of pins once; every other sync reads none.
    assert sorted(read)[COMMITS * 3 // 4] <= 2 and max(read) <= 2 * pin_files.MAX_FILES
    listing = asyncio.run(lab.provider("x").listing())  # type: ignore[attr-defined]
    assert len(listing) <= 256
    lab.close()


def test_old_roots_are_removed_automatically_after_one_consent(tmp_path: Path) -> None:
    lab = FolderLab(tmp_path)
    a = lab.create("a")
    lab.sync(a)
    said = set()
    for n in range(40):
        lab.clock.advance(2 * 86_400)
        a.write("k", f"edit {n}")
        said |= kinds(lab.sync(a))
    assert len(a.versions.list()) > 40 and "collected" not in said
    a.maintenance.gc_daily(RetentionRule(3, 10))
    lab.clock.advance(2 * 86_400)
    assert "collected" in kinds(lab.sync(a))
    assert len(a.versions.list()) <= 8
    for n in range(10):
        a.write("k", f"more {n}")
        lab.sync(a)
    assert len(a.versions.list()) >= 10, "once a day, not with every sync"
    a.maintenance.gc_daily(None)
    before = len(a.versions.list())
    for _ in range(3):
        lab.clock.advance(5 * 86_400)
        assert "collected" not in kinds(lab.sync(a))
    assert len(a.versions.list()) == before
    assert a.read("k") is not None and lab.restore("d").read("k") is not None
    lab.close()


def test_database_frees_space_in_small_steps(tmp_path: Path) -> None:
    db = Database(tmp_path)
    with db.transaction():
        db.add_blocks((n.to_bytes(32, "big"), bytes(4_000)) for n in range(8_000))
    with db.transaction():
        db.connection.execute("DELETE FROM blocks WHERE digest > ?", ((100).to_bytes(32, "big"),))
    db.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = (tmp_path / "state.db").stat().st_size
    longest, last = 0.0, [time.process_time()]
    real = db.transaction

    import contextlib
    from collections.abc import Iterator

    @contextlib.contextmanager
    def transaction() -> Iterator[None]:
        nonlocal longest
        began = time.process_time()
        with real():
            yield
        longest = max(longest, time.process_time() - began)
        last[0] = began

    db.transaction = transaction  # type: ignore[method-assign]
    db.shrink()
    assert (tmp_path / "state.db").stat().st_size < before / 10
    assert longest < 2.0
    assert db.connection.execute("PRAGMA freelist_count").fetchone() == (0,)
    db.close()
