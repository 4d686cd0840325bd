"""The journal of a vault that never syncs stays short in every mode."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ipfsmem.device import state
from ipfsmem.memory import Memory
from ipfsmem.testing import SimProvider
from ipfsmem.wallet.root_keys import RootKeys


def _rows(memory: Memory) -> int:
    return int(memory.replica.db.connection.execute("SELECT count(*) FROM journal").fetchone()[0])


@pytest.mark.parametrize("mode", ["local", "encrypted-ipfs"])
def test_many_writes_leave_a_short_journal(
    tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "_LONG_ROWS", 20)
    provider = SimProvider()
    options = (
        {}
        if mode == "local"
        else {
            "unlock": RootKeys.from_random(b"\x07" * 64, "default", 1),
            "passphrase": False,
            "provider": provider,
        }
    )
    longest = 0
    with Memory.create("m", mode, home=tmp_path / "a", **options) as memory:
        for i in range(70):
            memory.write(f"k{i % 30}", f"text {i}")
            longest = max(longest, _rows(memory))
        memory.forget("k3")
        before = memory.bundles.export()
        assert 10 < longest <= 21
    with Memory.load("m", home=tmp_path / "a", provider=provider) as memory:
        assert memory.bundles.export() == before
        if mode != "local":
            assert asyncio.run(memory.sync()).published
            with Memory.load("m", mode, home=tmp_path / "b", **options) as other:
                assert other.files() == memory.files()


def test_large_import_is_checkpointed_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "_LONG_BYTES", 10_000)
    with Memory.create("m", "local", home=tmp_path) as memory:
        files = ",".join(f'"k{i}.md":"text {i}"' for i in range(100))
        memory.bundles.import_(f'{{"version":"memory/0.1","index":"","files":{{{files}}},"timeline":[]}}')
        assert _rows(memory) == 0
        memory.write("one", "more")
        assert _rows(memory) == 1
        before = memory.bundles.export()
    with Memory.load("m", home=tmp_path) as memory:
        assert memory.bundles.export() == before and len(memory.list()) == 101
