"""Devices that are killed at any moment, and devices that publish into one folder concurrently."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from ipfsmem_providers.directory import DirectoryProvider

from ipfsmem.content.car import read_car
from ipfsmem.provider.contract import Provider
from ipfsmem.published import ipns_record
from tests.support import effort

SCRIPT = Path(__file__).with_name("directory_writer.py")


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("directory_writer", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


writer = _load()


def start(folder: Path | str, device: str, publishes: int, max_packs: int) -> subprocess.Popen[str]:
    command = [sys.executable, str(SCRIPT), str(folder), device, str(publishes), str(max_packs)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def check(folder: Path, acknowledged: dict[str, int]) -> None:
    """Check that everything acknowledged exists, every pinned tree is complete, and every pack matches its
    name."""
    nothing_lost(lambda: DirectoryProvider(folder), acknowledged)
    for pack in folder.glob("packs/*.car"):
        assert pack.stem == hashlib.sha256(pack.read_bytes()).hexdigest()
        with pack.open("rb") as file:
            assert list(read_car(file))


def nothing_lost(connect: Callable[[], Provider], acknowledged: dict[str, int]) -> None:
    """Check that everything acknowledged exists, and that every pinned tree is complete."""

    async def body() -> None:
        for device, count in acknowledged.items():
            provider = connect()
            blocks = dict(item for number in range(count) for item in writer.tree(device, number))
            assert await provider.get_blocks(list(blocks)) == blocks
            assert await provider.has(list(blocks)) == set(blocks)
            pinned = {pin.cid for pin in await provider.pins(device)}
            roots = {writer.tree(device, number)[0][0] for number in range(count)}
            assert roots <= pinned
            for number in range(count, count + 3):  # an unacknowledged pin still has its tree
                unacknowledged = writer.tree(device, number)
                if unacknowledged[0][0] in pinned:
                    cids = [cid for cid, _ in unacknowledged]
                    assert await provider.get_blocks(cids) == dict(unacknowledged)
        if any(acknowledged.values()):
            record = await provider.get_name(writer.SHARED_NAME)
            assert record is not None
            assert ipns_record.parse_record(record).sequence >= max(acknowledged.values()) - 1

    asyncio.run(body())


def test_device_killed_at_random_times_loses_nothing(tmp_path: Path) -> None:
    """One device after another starts on the same folder, is killed a little later than the last one, and
    is checked."""
    acknowledged = {}
    for attempt in range(8):
        device = f"device-{attempt}"
        process = start(tmp_path, device, 100_000, 6)
        assert process.stdout is not None
        count = 0
        for _ in range(1 + attempt * 3):  # the kill comes some time after an acknowledged publish
            if process.stdout.readline():
                count += 1
        process.send_signal(signal.SIGKILL)
        count += len(process.stdout.read().split())
        process.wait()
        process.stdout.close()
        acknowledged[device] = count
        assert count
        check(tmp_path, acknowledged)


@pytest.mark.parametrize("step", range(0, 36, 3 * effort.every(2)))
def test_device_killed_at_every_step_loses_nothing(tmp_path: Path, step: int) -> None:
    """The kill comes right before the n-th change of the folder, merging included, so each order occurs."""
    program = f"""
import os, signal, sys, runpy
left = {step}
def counted(real):
    def call(*args, **kwargs):
        global left
        path = str(args[0]) if args else ""
        if not isinstance(args[0], int) and {str(tmp_path)!r} not in path:
            return real(*args, **kwargs)
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **kwargs)
    return call
for name in ("replace", "fsync", "unlink", "write", "mkdir"):
    setattr(os, name, counted(getattr(os, name)))
sys.argv = ["writer", {str(tmp_path)!r}, "late", "20", "2"]
runpy.run_path({str(SCRIPT)!r}, run_name="__main__")
"""
    first = start(tmp_path, "early", 4, 64)
    assert first.wait() == 0
    if first.stdout is not None:
        first.stdout.close()
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == -signal.SIGKILL
    check(tmp_path, {"early": 4, "late": len(done.stdout.split())})
    again = start(tmp_path, "late", 6, 2)
    out, _ = again.communicate()
    assert len(out.split()) == 6
    check(tmp_path, {"early": 4, "late": 6})


def read_while_they_publish(
    provider: Provider, processes: dict[str, subprocess.Popen[str]], publishes: int
) -> None:
    """Read everything that each process reports as published at once, and check that each exits cleanly."""
    for number in range(publishes):
        for name, process in processes.items():
            assert process.stdout is not None
            assert process.stdout.readline() == f"{number}\n"
            if number % 4 == 0:
                blocks = dict(writer.tree(name, number) + writer.tree(name, number // 2))
                assert asyncio.run(provider.get_blocks(list(blocks))) == blocks
                assert asyncio.run(provider.has(list(blocks))) == set(blocks)
    for process in processes.values():
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait() == 0


def test_concurrent_devices_lose_nothing(tmp_path: Path) -> None:
    """Three processes publish and merge while this one reads every acknowledged text."""
    processes = {name: start(tmp_path, name, 40, 4) for name in ("a", "b", "c")}
    read_while_they_publish(DirectoryProvider(tmp_path), processes, 40)
    check(tmp_path, dict.fromkeys(processes, 40))
    assert len(list(tmp_path.glob("names/*"))) == 1
