"""A vault at each hosted service alone: published, restored on another device, edited on both, merged."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.memory import Memory
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.signers import RawKeySigner
from tests.support import effort
from tests.support.patience import PATIENCE
from tests.unit.providers.services_lab import KINDS, Account, account


def memory(make: Any, at: Account, home: Path, mode: str) -> Memory:
    opened: Memory = make("alex", mode, provider=at.open(), unlock=Unlock(RawKeySigner(b"\x21" * 32)), home=home, passphrase=False, public_ok=True)  # fmt: skip
    return opened


@pytest.mark.parametrize(("kind", "mode"), effort.each_once(KINDS, ["encrypted-ipfs", "ipfs"]))
def test_two_devices_sync_over_one_account(kind: str, mode: str, tmp_path: Path) -> None:
    with account(kind) as at:
        one = memory(Memory.create, at, tmp_path / "one", mode)
        for number in range(70):  # more than one state node
            one.write(f"key{number}", f"text {number}", name=f"Key {number}", type="user")
        asyncio.run(one.sync())
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


@pytest.mark.parametrize(("kind", "mode"), effort.each_once(KINDS, ["encrypted-ipfs", "ipfs"]))
def test_concurrent_writes_of_many_devices_are_found_under_each_root(
    kind: str, mode: str, tmp_path: Path
) -> None:
    """A gateway may serve an object by its path only, and each of these objects is under one of several roots."""
    with account(kind) as at:
        first = memory(Memory.create, at, tmp_path / "0", mode)
        first.write("base", "text")
        asyncio.run(first.sync())
        devices = [first, *(memory(Memory.load, at, tmp_path / str(n), mode) for n in range(1, 5))]
        for device in (*devices[:2], *devices):
            asyncio.run(device.sync())
        for number, device in enumerate(devices):
            device.write(f"own{number}", f"of device {number} " * 40)

        async def at_once() -> None:
            all_have_read = asyncio.Barrier(4)

            async def sync(device: Memory) -> None:
                """Publish after all have read: a head that covers another would reduce the number of
                joins."""
                [provider] = device.providers.in_use
                put, waited = provider.put_car, False

                async def put_together(*given: Any, **named: Any) -> Any:
                    nonlocal waited
                    if not waited:
                        waited = True
                        await asyncio.wait_for(all_have_read.wait(), PATIENCE)
                    return await put(*given, **named)

                provider.put_car = put_together  # type: ignore[method-assign]
                await device.sync()
                provider.put_car = put  # type: ignore[method-assign]

            await asyncio.gather(*map(sync, devices[:-1]))

        asyncio.run(at_once())
        report = asyncio.run(devices[-1].sync())
        assert report.heads_joined == 4 and report.not_fetched == 0
        assert set(devices[-1].files()) == {"base", *(f"own{number}" for number in range(5))}
        for device in (*devices, *devices):
            asyncio.run(device.sync())
        assert set(devices[-1].files()) == {"base", *(f"own{number}" for number in range(5))}
        assert all(device.files() == devices[-1].files() for device in devices)
        for device in devices:
            device.close()


@pytest.mark.parametrize(
    ("kind", "again"),
    effort.each_once(
        ["pinata-car", "pinata-free", "pinata-legacy", "filebase-s3"], ["the same process", "another process"]
    ),
)
def test_block_unavailable_once_is_fetched_later(kind: str, again: str, tmp_path: Path) -> None:
    with account(kind) as at:
        at.server.rooted = True
        one = memory(Memory.create, at, tmp_path / "one", "encrypted-ipfs")
        one.write("base", "text")
        asyncio.run(one.sync())
        two = memory(Memory.load, at, tmp_path / "two", "encrypted-ipfs")
        one.write("late", "what the gateway does not have yet")
        asyncio.run(one.sync())
        at.server.faults.answer("GET", r"^/ipfs/[^/]+/o(/|$)", 404, times=-1)
        two.write("meanwhile", "is published all the same")
        assert asyncio.run(two.sync()).not_fetched == 1
        at.server.faults.clear()
        assert asyncio.run(one.sync()).not_fetched == 0
        assert set(one.files()) == {"base", "late", "meanwhile"}
        if again == "another process":
            two.close()
            two = memory(Memory.load, at, tmp_path / "two", "encrypted-ipfs")
        assert asyncio.run(two.sync()).not_fetched == 0
        three = memory(Memory.load, at, tmp_path / "three", "encrypted-ipfs")
        assert three.files() == one.files()
        three.close()
        assert two.files() == one.files()
        one.close()
        two.close()
