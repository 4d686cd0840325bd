"""A cached pin list whose file was lost or damaged with the same size and date is not proof of a pin."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipfsmem.config import RetentionRule
from ipfsmem.device.replica import Environment
from ipfsmem.memory import Memory
from ipfsmem.sync import engine
from ipfsmem.sync.collection import Rules
from ipfsmem.sync.names import pin_name
from ipfsmem.sync.times import HOUR_MS
from ipfsmem.testing import MockClock, SeededRandom
from ipfsmem.vault.home import Home
from tests.support.device_lab import ROOT
from tests.unit.providers.dav_lab import StandIn, dav


class Published:
    """A vault of several versions at a WebDAV folder; each request comes from a new process."""

    def __init__(self, at: StandIn, memory: Memory, clock: MockClock) -> None:
        self.at, self.memory, self.clock = at, memory, clock
        self.roots = [self.publish(f"Text {turn}.") for turn in range(3)]

    def publish(self, text: str) -> str:
        """Publish one more version. -> its root."""
        self.clock.advance(60)
        self.memory.write("tone", text)
        return self.sync()

    def sync(self) -> str:
        """Sync. -> the newest root."""
        report = asyncio.run(self.memory.sync(provider=self.at.open()))
        assert report.root is not None
        return str(report.root)

    def lose_list(self, roots: list[str]) -> None:
        """Move the pins of these roots into one list, read it, and lose its bytes, which a file listing
        does not show."""
        held = self.list_of(roots)
        self.clock.advance(2 * HOUR_MS / 1000)
        self.sync()
        lose(held)

    def list_of(self, roots: list[str]) -> Path:
        """Move the pins of these roots into one list. -> its file."""
        pins = self.at.folder / "pins"
        single = [path for root in roots for path in pins.glob(f"{root}.*.json")]
        data = b"".join(sorted(path.read_bytes().rstrip(b"\n") + b"\n" for path in single))
        for path in single:
            path.unlink()
        held = pins / f"{hashlib.sha256(data).hexdigest()}.pins"
        held.write_bytes(data)
        return held

    def listed(self) -> set[str]:
        """The roots that another device finds listed."""
        name = pin_name(bytes.fromhex(self.memory.replica.config.vault.anchor))
        return {str(pin.cid) for pin in asyncio.run(self.at.mounted().pins(name))}


def lose(file: Path) -> None:
    """Lose the bytes of a file without changing its size and date."""
    before = file.stat()
    file.write_bytes(b"\0" * before.st_size)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.fixture
def published(tmp_path: Path) -> Iterator[Published]:
    """Three versions."""
    clock = MockClock()
    home = Home(
        folder=tmp_path / "home", environment=Environment(lambda: clock.ms, SeededRandom("lost lists"))
    )
    with (
        dav(tmp_path / "server") as at,
        Memory.create("m", "encrypted-ipfs", provider=at.open(), unlock=ROOT, recovery=False, passphrase=False, home=home) as memory,
    ):  # fmt: skip
        yield Published(at, memory, clock)


def test_check_with_repair_lists_a_root_of_a_lost_list_again(published: Published) -> None:
    published.lose_list(published.roots)
    assert published.roots[-1] not in published.listed()
    asyncio.run(engine.check(published.memory.replica, [published.at.open()], repair=True, full=False))
    assert published.roots[-1] in published.listed()


def test_sync_lists_a_root_of_a_lost_list_again_within_a_day(published: Published) -> None:
    published.lose_list(published.roots)
    published.clock.advance(21 * HOUR_MS / 1000)
    assert published.sync() == published.roots[-1]
    assert published.roots[-1] in published.listed()


def test_provider_with_a_lost_list_does_not_count_as_findable(published: Published) -> None:
    published.lose_list(published.roots)
    replica, name = published.memory.replica, published.at.open().name
    assert asyncio.run(engine.leading(replica, [published.at.open()])) == [name]  # by names
    for record in (published.at.folder / "names").iterdir():
        record.unlink()
    assert asyncio.run(engine.leading(replica, [published.at.open()])) == []


@pytest.mark.parametrize("by", ["hand", "sync"])
def test_collection_unpins_no_listed_root_for_one_in_a_lost_list(published: Published, by: str) -> None:
    published.lose_list(published.roots[1:])
    published.clock.advance(48 * HOUR_MS / 1000)
    if by == "hand":
        rules = Rules(keep_roots=1, keep_days=0)
        asyncio.run(engine.collect(published.memory.replica, [published.at.open()], rules))
    else:
        published.memory.maintenance.gc_daily(RetentionRule(roots=1, days=0))
        published.sync()
    assert published.roots[0] in published.listed()


@pytest.mark.parametrize("cached", [True, False])
def test_running_process_without_a_cache_rereads_a_lost_list(published: Published, cached: bool) -> None:
    """The same provider object had read the list before."""
    provider = published.at.open()
    name = pin_name(bytes.fromhex(published.memory.replica.config.vault.anchor))

    async def listed() -> set[str]:
        return {str(pin.cid) for pin in await provider.pins(name)}.intersection(published.roots)

    async def body() -> None:
        provider.begin_snapshot(b"")
        assert await listed() == set(published.roots)
        cache = provider.end_snapshot()
        lose(held)
        provider.begin_snapshot(cache if cached else b"")
        assert await listed() == (set(published.roots) if cached else set())
        assert provider.unread() == ([] if cached else [held.name])
        provider.end_snapshot()

    held = published.list_of(published.roots)
    asyncio.run(body())
