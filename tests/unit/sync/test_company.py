"""Providers of a sync are independent: the healthy one receives a write before a faulty one has answered."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path
from typing import NoReturn

import pytest

from ipfsmem.cli.sync_cmd import paragraph
from ipfsmem.content.cid import CID, raw_cid
from ipfsmem.device.replica import Environment as Outside
from ipfsmem.errors import ProviderError, ProviderRefused, ProviderUnavailable, UnreadError
from ipfsmem.memory import Memory
from ipfsmem.provider.contract import Block
from ipfsmem.sync import sending
from ipfsmem.sync.company import ANSWER, HURRY
from ipfsmem.sync.report import SyncReport
from ipfsmem.testing import SimCloud, SimProvider
from ipfsmem.testing.clock import MockClock
from ipfsmem.vault.beginning import restored_exit_code
from ipfsmem.vault.home import Home
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.signers import RawKeySigner
from tests.support import virtual_time
from tests.support.effort import each_once

SIGNER = RawKeySigner(bytes(31) + b"\x09")
UNLOCK = Unlock(SIGNER, "default")


def device(home: Path, name: str, providers: list[SimProvider], clock: MockClock | None = None) -> Memory:
    """Open, restore or create the vault of a wallet on a device of this name."""
    time = clock or MockClock()
    return Memory.load(
        "m", "encrypted-ipfs", provider=providers, unlock=UNLOCK, passphrase=False, create=True,
        home=Home(folder=home / name, label=name, environment=Outside(now=lambda: time.ms)),
    )  # fmt: skip


class Healthy(SimProvider):
    """Sets `held` when it stores the name of a published version."""

    def __init__(self, cloud: SimCloud) -> None:
        super().__init__(cloud, name="healthy")
        self.held = asyncio.Event()

    async def put_name(self, name: str, record: bytes) -> None:
        await super().put_name(name, record)
        self.held.set()


class Neighbour(SimProvider):
    """A provider with a fault: `before` is awaited or raised before each call."""

    def __init__(self, cloud: SimCloud | None = None) -> None:
        super().__init__(cloud or SimCloud(), name="neighbour")
        self.before: Callable[[str], object] = lambda call: None

    async def _enter(self, call: str, able: bool = True) -> int:
        number = await super()._enter(call, able)
        found = self.before(call)
        if found is not None:
            await found  # type: ignore[misc]
        return number


def silent(neighbour: Neighbour, healthy: Healthy) -> None:
    neighbour.before = lambda call: asyncio.Event().wait()


def silent_to_writes(neighbour: Neighbour, healthy: Healthy) -> None:
    """Answers reads, and ignores writes."""
    takes = ("put_car", "put_name", "pin")
    neighbour.before = lambda call: asyncio.Event().wait() if call in takes else None


def slow(neighbour: Neighbour, healthy: Healthy) -> None:
    """Answers only after the healthy provider has the write."""
    neighbour.before = lambda call: healthy.held.wait()


def rate_limited(neighbour: Neighbour, healthy: Healthy) -> None:
    def refuse(call: str) -> None:
        error = ProviderUnavailable("neighbour answered 429 (try again in 60 s)")
        error.again_after = 60.0
        raise error

    neighbour.before = refuse


def full(neighbour: Neighbour, healthy: Healthy) -> None:
    def refuse(call: str) -> None:
        if call in ("put_car", "put_name", "pin"):
            raise ProviderRefused("neighbour answered 507: no space left")

    neighbour.before = refuse


def lying(neighbour: Neighbour, healthy: Healthy) -> None:
    """Claims to have everything, returns another address, and serves other bytes under a list of false
    roots."""
    neighbour.faults.has = "all"
    neighbour.faults.other_root = raw_cid(bytes(32))
    for cid in list(neighbour.cloud.blocks):
        neighbour.faults.flip[cid] = 5


def faulty(neighbour: Neighbour, healthy: Healthy) -> None:
    """Raises an exception outside of the contract."""

    def fail(call: str) -> None:
        raise ValueError("refused: Authorization: Bearer s3cret")

    neighbour.before = fail


ILLNESSES = [silent, silent_to_writes, slow, rate_limited, full, lying, faulty]
ORDERS = {False: "healthy first", True: "sick first"}
LOOKS = {True: "plain", False: "looks names up in a network"}


class World:
    """A vault published at two providers, one of which fails."""

    def __init__(self, home: Path, *, first: bool) -> None:
        self.home, self.first = home, first
        self.clouds = SimCloud(), SimCloud()
        self.clock = MockClock()
        with self._open(*self._providers()) as memory:
            memory.write("k", "text")
            asyncio.run(memory.sync())

    def _providers(self) -> tuple[Healthy, Neighbour]:
        return Healthy(self.clouds[0]), Neighbour(self.clouds[1])

    def _open(self, healthy: Healthy, neighbour: Neighbour) -> Memory:
        both = [neighbour, healthy] if self.first else [healthy, neighbour]
        return device(self.home, "a", both, self.clock)

    def sync(
        self, illness: Callable[[Neighbour, Healthy], None], text: str | None = "new text"
    ) -> tuple[SyncReport, float, float, Neighbour]:
        """Return the report of a sync, and the times at which the healthy provider had the write and the
        sync ended, in the loop's seconds."""

        async def main() -> tuple[SyncReport, float, float, Neighbour]:
            healthy, neighbour = self._providers()
            illness(neighbour, healthy)
            with self._open(healthy, neighbour) as memory:
                if text is not None:
                    memory.write("k", text)
                loop = asyncio.get_running_loop()
                began = loop.time()
                work = asyncio.ensure_future(memory.sync())
                if text is not None:
                    await healthy.held.wait()
                held = loop.time() - began
                return await work, held, loop.time() - began, neighbour

        return virtual_time.run(main())

    def read_at(self, which: int) -> str:
        """Return what a new device reads at one of the two."""
        home = self.home / f"reader {which} {len(list(self.home.iterdir()))}"
        with device(home, "b", [SimProvider(self.clouds[which], name="only")]) as memory:
            return memory.read("k").file.body  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("illness", "first"),
    [
        pytest.param(*case, id=f"{case[0].__name__}-{ORDERS[case[1]]}")
        for case in each_once(ILLNESSES, ORDERS)
    ],
)
def test_write_next_to_failing_provider_reaches_healthy_one_first(
    illness: Callable[[Neighbour, Healthy], None], first: bool, tmp_path: Path
) -> None:
    world = World(tmp_path, first=first)
    report, held, ended, _ = world.sync(illness)
    assert report.published and world.read_at(0) == "new text"
    # Time passes here only while everything waits for the faulty provider.
    assert held <= HURRY + 0.2 and ended <= 10
    if illness is slow:
        assert report.exit_code == 0 and report.not_placed == [] and world.read_at(1) == "new text"
    else:
        assert report.exit_code != 0 and "neighbour" in report.not_placed
    assert "s3cret" not in paragraph(report) + str(report)
    if illness is faulty:
        assert "unexpected error: ValueError" in str(report)
    later, *_ = world.sync(lambda neighbour, healthy: None, None)
    if illness is rate_limited:
        world.clock.advance(61)
        later, *_ = world.sync(lambda neighbour, healthy: None, None)
    if illness is not lying:  # what it claims to have is checked over time
        assert later.exit_code == 0 and world.read_at(1) == "new text"


def test_database_error_while_sending_is_not_a_provider_outage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: object) -> NoReturn:
        raise sqlite3.DatabaseError("database disk image is malformed")

    providers = [SimProvider(SimCloud(), name="one"), SimProvider(SimCloud(), name="other")]
    with device(tmp_path, "a", providers) as memory:
        memory.write("k", "text")
        monkeypatch.setattr(sending, "read_blocks", fail)
        with pytest.raises(sqlite3.DatabaseError, match="malformed"):
            asyncio.run(memory.sync())


def test_slow_provider_is_joined_after_the_healthy_one_has_the_write(tmp_path: Path) -> None:
    world = World(tmp_path, first=True)
    with device(tmp_path / "other", "b", [SimProvider(world.clouds[1], name="neighbour")]) as other:
        other.write("theirs", "news")
        asyncio.run(other.sync())
    report, *_ = world.sync(slow)
    assert report.exit_code == 0 and report.entries_changed == 1
    for cloud in world.clouds:
        with device(tmp_path / f"reader {cloud is world.clouds[0]}", "c", [SimProvider(cloud)]) as reader:
            assert {one.key for one in reader.list()} == {"k", "theirs"}


def test_requested_pause_is_respected_by_later_syncs(tmp_path: Path) -> None:
    world = World(tmp_path, first=True)
    report, *_, neighbour = world.sync(rate_limited)
    assert len(neighbour.calls) <= 4  # calls that were already running
    (notice,) = report.notices  # one provider, one line
    assert notice.kind == "provider-paused" and "00:01:0" in notice.text and "429" in notice.text
    report, *_, neighbour = world.sync(lambda neighbour, healthy: None, "next text")
    assert neighbour.calls == [] and report.published and report.not_placed == ["neighbour"]
    assert report.exit_code == 7
    assert [one.kind for one in report.notices] == ["provider-paused"]
    report, *_, neighbour = world.sync(lambda neighbour, healthy: None, None)
    assert neighbour.calls == [] and report.exit_code == 7  # nothing to publish, but not everything was read
    world.clock.advance(61)
    report, *_ = world.sync(lambda neighbour, healthy: None, None)
    assert report.exit_code == 0 and world.read_at(1) == "next text"


def test_provider_with_repeated_short_pauses_is_skipped(tmp_path: Path) -> None:
    def hasty(neighbour: Neighbour, healthy: Healthy) -> None:
        async def refuse(call: str) -> None:
            await asyncio.sleep(3)  # the pauses of the HTTP client
            error = ProviderUnavailable("neighbour answered 429 (try again in 3 s)")
            error.again_after = 3.0
            raise error

        neighbour.before = refuse

    world = World(tmp_path, first=True)
    report, held, ended, _ = world.sync(hasty)
    assert held <= HURRY + 0.2 and ended <= 4 + HURRY
    assert {notice.kind for notice in report.notices} == {"provider-paused"} and report.exit_code == 7
    world.clock.advance(4)
    report, *_ = world.sync(lambda neighbour, healthy: None, None)
    assert report.exit_code == 0 and world.read_at(1) == "new text"


def test_pause_of_the_only_provider_ends_a_sync_at_once(tmp_path: Path) -> None:
    cloud, clock = SimCloud(), MockClock()

    def alone() -> tuple[Memory, Neighbour]:
        only = Neighbour(cloud)
        return device(tmp_path, "a", [only], clock), only

    memory, only = alone()
    memory.write("k", "text")
    asyncio.run(memory.sync())
    memory.write("k", "new text")
    rate_limited(only, Healthy(cloud))
    with pytest.raises(ProviderUnavailable, match="429"):
        asyncio.run(memory.sync())
    memory.close()
    memory, only = alone()
    with pytest.raises(ProviderUnavailable, match="accepts no requests until"):
        asyncio.run(memory.sync())
    assert only.calls == [] and memory.status().unpublished
    clock.advance(-86_400)  # a clock that was set back blocks nothing
    assert asyncio.run(memory.sync()).published
    memory.close()


def test_long_upload_with_progress_is_not_aborted(tmp_path: Path) -> None:
    """It takes longer than a provider may be silent."""
    world = World(tmp_path, first=False)

    def drips(neighbour: Neighbour, healthy: Healthy) -> None:
        real = neighbour.put_car

        async def put_car(root: CID, blocks: Iterable[Block], *, name: str) -> CID:
            taken = []
            for block in blocks:
                await asyncio.sleep(ANSWER * 0.8)
                taken.append(block)
            assert len(taken) > 2
            return await real(root, taken, name=name)

        neighbour.put_car = put_car  # type: ignore[method-assign]

    report, held, ended, _ = world.sync(drips)
    assert report.exit_code == 0 and held <= HURRY + 0.2 and ended > 2 * ANSWER
    assert world.read_at(1) == "new text"


def test_both_silent_providers_end_a_sync_with_an_error(tmp_path: Path) -> None:
    world = World(tmp_path, first=False)

    async def main() -> float:
        both = [Neighbour(cloud) for cloud in world.clouds]
        both[0]._name = "healthy"
        for one in both:
            one.before = lambda call: asyncio.Event().wait()
        with device(tmp_path, "a", [*both], world.clock) as memory:
            memory.write("k", "new text")
            began = asyncio.get_running_loop().time()
            with pytest.raises(ProviderUnavailable, match="did not answer"):
                await memory.sync()
            assert memory.status().unpublished
            return asyncio.get_running_loop().time() - began

    assert virtual_time.run(main()) <= 10


@pytest.mark.parametrize(
    ("illness", "wanted"),
    [(silent, "has not answered yet"), (rate_limited, "accepts no requests until")],
)
def test_skipped_provider_is_reported_before_the_others_are_served(
    illness: Callable[[Neighbour, Healthy], None], wanted: str, tmp_path: Path
) -> None:
    world = World(tmp_path, first=True)
    told: list[str] = []

    async def main() -> None:
        healthy, neighbour = world._providers()
        illness(neighbour, healthy)
        with world._open(healthy, neighbour) as memory:
            memory.write("k", "new text")
            await memory.sync(progress=lambda what, done, total: told.append(what))

    virtual_time.run(main())
    said_at = next(number for number, text in enumerate(told) if wanted in text)
    published = next(number for number, text in enumerate(told) if text == "publishing to healthy")
    assert said_at < published


def test_sync_without_one_provider_is_not_called_up_to_date(tmp_path: Path) -> None:
    world = World(tmp_path, first=False)
    well, *_ = world.sync(lambda neighbour, healthy: None, None)
    assert "Up to date." in paragraph(well)
    missed, *_ = world.sync(silent, None)
    assert missed.exit_code == 7 and "p to date" not in paragraph(missed)


@pytest.mark.parametrize(
    ("first", "durable", "way"),
    [
        pytest.param(first, durable, way, id=f"{ORDERS[first]}-{LOOKS[durable]}-{way}")
        for (first, durable), way in each_once(product(ORDERS, LOOKS), ("names", "given version"))
    ],
)
def test_restore_next_to_silent_provider_ends_and_reports_missing_texts(
    first: bool, durable: bool, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def here(work: Callable[..., object], *_: object, **given: object) -> object:
        return work(**given)

    # A thread would make the loop's clock jump.
    monkeypatch.setattr(asyncio, "to_thread", here)
    monkeypatch.setattr("ipfsmem.open_vault.creating.in_thread", here)
    world = World(tmp_path, first=first)
    with world._open(*world._providers()) as memory:
        newest = memory.status().root

    async def main() -> tuple[SyncReport, float, str]:
        healthy, neighbour = world._providers()
        silent(neighbour, healthy)
        neighbour.change(durable=durable)
        began = asyncio.get_running_loop().time()
        restored = await Memory.recover(
            "m", provider=[neighbour, healthy] if first else [healthy, neighbour], unlock=UNLOCK,
            passphrase=False, home=Home(folder=tmp_path / "new", label="b"),
            root_cid=newest if way == "given version" else None,
        )  # fmt: skip
        with restored as memory:
            report = memory.restored
            assert report is not None
            return report, asyncio.get_running_loop().time() - began, memory.read("k").file.body  # type: ignore[union-attr]

    report, ended, text = virtual_time.run(main())
    assert text == "text" and ended <= 10
    assert restored_exit_code(report) == UnreadError.exit_code and report.not_placed == ["neighbour"]
    (notice,) = [one for one in report.notices if "neighbour" in one.text]
    assert notice.kind == "provider-down" and "its new texts were not read" in notice.text


def test_first_vault_is_not_recovered_by_another_name_with_provider_down(tmp_path: Path) -> None:
    def down(call: str) -> None:
        raise ProviderUnavailable("neighbour answered 502")

    world = World(tmp_path, first=False)
    healthy, neighbour = world._providers()
    neighbour.before = down
    where, home = [healthy, neighbour], Home(folder=tmp_path / "new")
    with pytest.raises(ProviderError):
        asyncio.run(Memory.recover("m", provider=where, unlock=SIGNER, passphrase=False, home=home))
    assert not (tmp_path / "new" / "m").exists()
    neighbour.before = lambda call: None
    with asyncio.run(
        Memory.recover("m", provider=where, unlock=SIGNER, passphrase=False, home=home)
    ) as memory:
        assert "k" in memory


def test_recovered_provider_gets_no_name_without_its_version(tmp_path: Path) -> None:
    """Two more devices publish at the healthy provider meanwhile; a new device then finds the whole vault
    at the other one."""

    def down(call: str) -> None:
        raise ProviderUnavailable("neighbour answered 502")

    world = World(tmp_path, first=False)
    for label in ("b", "c"):
        healthy, neighbour = world._providers()
        neighbour.before = down
        with device(tmp_path, label, [healthy, neighbour], world.clock) as other:
            other.write(label, "theirs")
            asyncio.run(other.sync())
    report, *_ = world.sync(lambda neighbour, healthy: None, None)
    assert report.exit_code == 0
    with device(tmp_path, "new", [SimProvider(world.clouds[1], name="only")]) as new:
        assert new.restored is not None and new.restored.exit_code == 0
        assert {one.key for one in new.list()} == {"k", "b", "c"}
