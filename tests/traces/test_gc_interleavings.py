"""A restore of an old text while another device collects garbage and unpins that root, in every interleaving.
The folder is real; the other device collects between any two calls of the first one."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ipfsmem_providers.directory import DirectoryProvider

from ipfsmem.errors import IpfsmemError
from ipfsmem.memory import Memory
from ipfsmem.vault.home import Home
from tests.faults.fault_lab import stay_in_place
from tests.support.device_lab import ROOT, VAULT_NAME, all_texts
from tests.support.effort import every
from tests.support.folder_lab import FolderLab

DAY = 86_400
CALLS = ("put_car", "has", "get_blocks", "pin", "pins", "put_name", "get_name", "listing", "read_stored")


class Watched(DirectoryProvider):
    """Runs a function after its n-th call."""

    calls = 0
    at = 0
    work: Callable[[], None] | None = None


def _watch(name: str) -> None:
    real = getattr(DirectoryProvider, name)

    async def call(self: Watched, *args: Any, **options: Any) -> Any:
        answer = await real(self, *args, **options)
        Watched.calls += 1
        if Watched.calls == Watched.at and Watched.work is not None:
            thread = threading.Thread(target=Watched.work)
            thread.start()
            thread.join()
        return answer

    setattr(Watched, name, call)


for _name in CALLS:
    _watch(_name)


class Lab(FolderLab):
    """A lab in which one device's calls are watched, and files have the times of its clock."""

    def provider(self, name: str) -> DirectoryProvider:  # type: ignore[override]
        kind = Watched if name == "c" else DirectoryProvider
        return kind(self.shared, clock=lambda: self.clock.ns)

    def copy(self, folder: Path) -> Lab:
        """Copy the lab to another folder at the same time; files keep their dates."""
        shutil.copytree(self.folder, folder)
        lab = Lab(folder)
        lab.clock.advance((self.clock.ms - lab.clock.ms) / 1000)
        lab._runs = dict(self._runs)
        lab._seen = set((lab.shared / "packs").glob("*"))
        return lab

    def later(self, days: float) -> None:
        self.stamp()
        self.clock.advance(days * DAY)

    def stamp(self) -> None:
        """Set the date of new files to the current time."""
        for path in (self.shared / "packs").glob("*"):
            if (
                path.stat().st_mtime_ns > self.clock.ns
                or not hasattr(self, "_seen")
                or path not in self._seen
            ):
                os.utime(path, ns=(self.clock.ns, self.clock.ns))
        self._seen = set((self.shared / "packs").glob("*"))


def block_of(memory: Memory) -> str:
    """Return the hash of the sealed block of the shown text."""
    entry = memory.replica.store.entry("m/t")
    (value,) = entry.values()
    assert value.loc is not None
    return value.loc.sha


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[Lab, bytes, str]:
    """A and C of one vault: A wrote other texts over an old one, and C has not seen the last. Also A's
    files when the old text was shown, and the hash of its sealed block."""
    with pytest.MonkeyPatch.context() as patch:
        stay_in_place(patch)
        lab = Lab(tmp_path_factory.mktemp("collects"))
        a = lab.create("a")
        lab.sync(a)
        c = lab.restore("c")
        lab.sync(a)
        lab.sync(c)
        a.write("t", "old text " * 300)
        lab.sync(a)
        lab.sync(c)
        old, block = a.bundles.export(), block_of(c)
        for n in range(3):
            a.write("t", f"other {n} " * 300)
            lab.sync(a)
            lab.later(2)
        lab.close()
    return lab, old, block


def attempt(world: tuple[Lab, bytes, str], folder: Path, at: int, asleep: bool) -> bool:
    """Run one interleaving; return whether the n-th call was reached."""
    Watched.at = Watched.calls = 0
    prepared, old, before = world
    lab = prepared.copy(folder)
    a, c = lab.open("a", unlock=ROOT), lab.open("c")
    lab.sync(c)
    lab.later(3)
    # C restores the old text: its block is only in superseded roots.
    c.bundles.import_(old, strategy="replace")
    assert block_of(c) == before

    def collects() -> None:
        other = Memory.load(
            VAULT_NAME,
            provider=lab.provider("a"),
            home=Home(folder=lab.home("a"), environment=lab.environment("a")),
        )
        lab.stamp()
        asyncio.run(other.maintenance.gc(keep_roots=1, keep_days=1))
        lab.stamp()
        if asleep:
            lab.later(1.1)
            asyncio.run(other.maintenance.gc(keep_roots=1, keep_days=1))
        other.close()

    Watched.work, Watched.at, Watched.calls = collects, at, 0
    try:
        lab.sync(c)
    except IpfsmemError as error:
        raise AssertionError(f"call {at}: {error}") from error
    finally:
        reached = Watched.calls >= at
        Watched.at = 0
    fresh = lab.restore(f"d{at}")
    assert fresh.status().not_fetched == 0 and all_texts(fresh) == all_texts(c), f"call {at}"
    for _ in range(3):
        lab.later(1.1)
        lab.stamp()
        asyncio.run(a.maintenance.gc(keep_roots=1, keep_days=1))
        lab.sync(c)
    assert all_texts(lab.restore(f"e{at}")) == all_texts(c), f"call {at}, days later"
    lab.close()
    return reached


@pytest.mark.parametrize("asleep", [False, True], ids=["at once", "with a day of sleep"])
def test_old_text_is_restored_while_another_device_collects(
    world: tuple[Lab, bytes, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asleep: bool
) -> None:
    """By default every eighth call: the first, ninth, ... with a sleep, the fifth, thirteenth, ... without."""
    stay_in_place(monkeypatch)
    step = every(8)
    at = 1 + (step // 2 if not asleep else 0)
    while attempt(world, tmp_path / str(at), at, asleep):
        at += step
    assert at > max(5, 2 * step)
