"""A memory over each hosted service alone: published, restored elsewhere from the wallet, edited on both, joined."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.memory import Memory
from ipfsmem.opening import Unlock
from ipfsmem.seal.signers import RawKeySigner
from tests.unit.providers.services_lab import KINDS, Account, account


def memory(make: Any, at: Account, home: Path, mode: str) -> Memory:
    opened: Memory = make(
        "alex", mode, provider=at.open(), unlock=Unlock(RawKeySigner(b"\x21" * 32)), home=home,
        unprotected_keys=True,
    )  # fmt: skip
    return opened


@pytest.mark.parametrize("mode", ["encrypted-ipfs", "ipfs"])
@pytest.mark.parametrize("kind", KINDS)
def test_two_devices_over_one_account(kind: str, mode: str, tmp_path: Path) -> None:
    with account(kind) as at:
        one = memory(Memory.create, at, tmp_path / "one", mode)
        for number in range(70):  # more than one state node
            one.write(f"key{number}", f"text {number}", name=f"Key {number}", type="user")
        asyncio.run(one.sync(public_ok=mode == "ipfs"))
        two = memory(Memory.load, at, tmp_path / "two", mode)
        assert two.files() == one.files() and len(two.files()) >= 70
        one.write("key3", "changed on one")
        two.write("key4", "changed on two")
        for device in (one, two, one, two):
            asyncio.run(device.sync())
        assert one.files() == two.files()
        assert one.status().root == two.status().root
        one.close()
        two.close()
