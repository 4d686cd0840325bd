"""Data at a list-only service that was unpinned there by hand is uploaded again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ipfsmem.device.replica import Environment
from ipfsmem.errors import DamagedError
from ipfsmem.memory import Memory
from ipfsmem.sync.upload import LIST_LAG_MS
from ipfsmem.testing import MockClock, SeededRandom
from ipfsmem.vault.home import Home
from tests.support.device_lab import ROOT
from tests.unit.providers.services_lab import account


@pytest.mark.parametrize("kind", ["pinata-car", "pinata-free", "pinata-field"])
def test_manually_unpinned_root_at_list_only_service_is_sent_again(tmp_path: Path, kind: str) -> None:
    clock = MockClock()
    with account(kind) as at, Memory.create("m", "encrypted-ipfs", provider=at.open(), unlock=ROOT, recovery=False, passphrase=False, home=Home(folder=tmp_path / "a", environment=Environment(lambda: clock.ms, SeededRandom("unpinned")))) as memory:  # fmt: skip
        memory.write("tone", "Be direct.")
        asyncio.run(memory.sync())
        at.server.files.clear()
        at.server.blocks.clear()
        clock.advance(LIST_LAG_MS / 1000)
        report = asyncio.run(memory.sync(provider=at.open()))
        # The loss of its last version is reported once.
        assert report.exit_code in (0, DamagedError.exit_code) and at.server.files
        assert asyncio.run(memory.sync(provider=at.open())).exit_code == 0
        found = asyncio.run(Memory.recover("m", provider=at.open(), unlock=ROOT, passphrase=False, home=tmp_path / "b"))  # fmt: skip
        assert found.read("tone") is not None
