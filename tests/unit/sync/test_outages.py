"""An outage is not an answer (format section 7): unavailable data is not treated as deleted, and the
report names it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from ipfsmem.content.cid import CID
from ipfsmem.errors import ProviderError, ProviderUnavailable, UnreadError
from ipfsmem.memory import Memory
from ipfsmem.provider.contract import Pin, Provider, with_pins
from ipfsmem.sync.report import SyncReport
from ipfsmem.testing import SimCloud, SimProvider
from ipfsmem.testing.simulator import FULL
from tests.support import effort
from tests.support.device_lab import ROOT, VAULT_NAME, says, texts

KINDS = {
    "all": FULL,
    "lists": replace(FULL, names=False),
    "lists, block by block": replace(FULL, names=False, dag=False),
    "names": replace(FULL, list=False, unpin=False, pin=False),
    "service": replace(FULL, names=False, has=False, partial_car=False),
}
MISSING = "newer texts may be missing"


def restore(home: Path, *providers: Provider, damaged_ok: bool = False) -> Memory:
    return asyncio.run(
        Memory.recover(VAULT_NAME, provider=list(providers), unlock=ROOT, passphrase=False, home=home, damaged_ok=damaged_ok)
    )  # fmt: skip


def copy_of(cloud: SimCloud) -> SimCloud:
    made = SimCloud()
    made.blocks, made.pins = dict(cloud.blocks), list(cloud.pins)
    made.names = {name: list(records) for name, records in cloud.names.items()}
    return made


class World:
    """Versions of two devices that had not seen each other's last, and the one before."""

    def __init__(self, home: Path, kind: str) -> None:
        self.home, self.can = home, KINDS[kind]
        self.now = SimCloud()
        a = Memory.create(VAULT_NAME, "encrypted-ipfs", provider=self.at(self.now), unlock=ROOT, recovery=False, passphrase=False, home=home / "a")  # fmt: skip
        a.write("old", "the first text")
        asyncio.run(a.sync())
        self.before = copy_of(self.now)
        b = restore(home / "b", self.at(self.before))
        beside = copy_of(self.before)
        for n in range(3):
            a.write(f"new{n}", f"a newer text {n}")
        asyncio.run(a.sync())
        b.write("other", "written beside it")
        asyncio.run(b.sync(provider=self.at(beside)))
        for name, records in beside.names.items():
            known = self.now.names.setdefault(name, [])
            known += [record for record in records if record not in known]
        self.now.blocks |= beside.blocks
        self.now.pins += [pin for pin in beside.pins if pin not in self.now.pins]
        self.texts = texts(a) | texts(b)
        a.close()
        b.close()
        self._homes = 0

    def at(self, cloud: SimCloud) -> SimProvider:
        return SimProvider(cloud, capabilities=self.can)

    def fresh(self) -> Path:
        self._homes += 1
        return self.home / str(self._homes)

    def whole(self, memory: Memory) -> bool:
        return texts(memory) == self.texts

    def first(self, *providers: SimProvider) -> str:
        """Return the result of a restore."""
        home = self.fresh()
        try:
            memory = restore(home, *providers)
        except ProviderError:
            assert not [path for path in home.rglob("*") if path.name == "ipfsmem.json"]
            return "error"
        assert memory.restored is not None
        return self._judge(memory, memory.restored)

    def later(self, *providers: SimProvider) -> str:
        """Return the result of a pull by a device that knows the older root."""
        memory = restore(self.fresh(), self.at(copy_of(self.before)))
        try:
            report = asyncio.run(memory.sync(provider=list(providers)))
        except ProviderError:
            memory.close()
            return "error"
        return self._judge(memory, report)

    def _judge(self, memory: Memory, report: SyncReport) -> str:
        whole = self.whole(memory)
        memory.close()
        if report.exit_code:
            assert MISSING in says(report, "channel-down")
            return "told"
        assert whole, "came back with newer texts missing, and says nothing of it"
        return "whole"


@pytest.mark.parametrize(("kind", "what"), effort.each_once(KINDS, ["first", "later"]))
def test_fetch_cut_off_after_any_block_is_whole_or_reports_missing_data(
    tmp_path: Path, kind: str, what: str
) -> None:
    world = World(tmp_path, kind)
    come: Callable[..., str] = getattr(world, what)
    found: Counter[str] = Counter()
    for blocks in range(0, 1_000, effort.every(2)):
        provider = world.at(copy_of(world.now))
        provider.faults.serve = blocks
        found[come(provider)] += 1
        if not provider.faults.offline:
            break
    assert found["whole"] and found["error"] and provider.faults.serve is not None


@pytest.mark.parametrize(("kind", "what", "calls"), effort.each_once(KINDS, ["first", "later"], [1, 1_000]))
def test_fetch_with_failing_calls_is_complete_or_reports_missing_data(
    tmp_path: Path, kind: str, what: str, calls: int
) -> None:
    """One failing call, and all calls from one on."""
    world = World(tmp_path, kind)
    come: Callable[..., str] = getattr(world, what)
    found: Counter[str] = Counter()
    for number in range(1, 1_000, effort.every(2)):
        provider = world.at(copy_of(world.now))
        for more in range(calls):
            provider.fail_call(number + more)
        found[come(provider)] += 1
        if len(provider.calls) < number:
            break
    assert found["whole"] and found["error"]


@pytest.mark.parametrize("calls", [1, 1_000])
def test_outage_over_a_vault_without_texts_is_not_called_damage(tmp_path: Path, calls: int) -> None:
    first = SimProvider(SimCloud())
    with Memory.create(VAULT_NAME, "encrypted-ipfs", provider=first, unlock=ROOT, recovery=False, passphrase=False, home=tmp_path / "a") as a:  # fmt: skip
        asyncio.run(a.sync())
    for name in "bc":
        restore(tmp_path / name, first).close()
    found: Counter[bool] = Counter()
    for number in range(1, 1_000):
        provider = SimProvider(copy_of(first.cloud))
        for more in range(calls):
            provider.fail_call(number + more)
        try:
            restore(tmp_path / str(number), provider).close()
            found[True] += 1
        except ProviderError:
            found[False] += 1
        if len(provider.calls) < number:
            break
    assert found[True] and found[False]


# -- several providers: an outage of one hides only what it alone has -------------------------------------------------


@pytest.fixture
def lists(tmp_path: Path) -> World:
    return World(tmp_path, "lists, block by block")


class Half(SimProvider):
    """Lists its blocks, and serves none."""

    async def get_blocks(self, cids: object) -> dict[CID, bytes]:
        raise ProviderUnavailable("the gateway is down")


def half(world: World, cloud: SimCloud) -> SimProvider:
    return Half(cloud, name="half", capabilities=world.can)


def test_newer_root_at_a_failing_provider_is_not_ignored(lists: World) -> None:
    """The restore stops unless the user accepts the older state."""
    older = lists.at(copy_of(lists.before))
    home = lists.fresh()
    with pytest.raises(UnreadError, match="newer texts would be missing"):
        restore(home, half(lists, lists.now), older)
    memory = restore(home, half(lists, lists.now), older, damaged_ok=True)
    assert memory.restored is not None and memory.restored.unread and memory.restored.exit_code == 45
    assert MISSING in says(memory.restored, "channel-down") and not lists.whole(memory)
    report = asyncio.run(memory.sync(provider=[lists.at(lists.now), older]))
    assert report.exit_code == 0 and lists.whole(memory)
    memory.close()


def test_later_pull_continues_with_other_providers_and_exits_45(lists: World) -> None:
    older = lists.at(copy_of(lists.before))
    memory = restore(lists.fresh(), older)
    memory.write("mine", "written here")
    report = asyncio.run(memory.sync(provider=[half(lists, lists.now), older]))
    assert report.published and report.unread and report.exit_code == 45
    assert MISSING in says(report, "channel-down")
    report = asyncio.run(memory.sync(provider=[lists.at(lists.now), older]))
    assert report.exit_code == 0 and texts(memory) == lists.texts | {"mine": {"written here"}}
    memory.close()


def test_dead_provider_does_not_block_recovery_from_a_complete_one(lists: World) -> None:
    dead = lists.at(SimCloud())
    dead.faults.offline = True
    memory = restore(lists.fresh(), dead, lists.at(lists.now))
    assert memory.restored is not None and lists.whole(memory)
    # Nobody knows what only that one may have, so it is reported.
    assert memory.restored.exit_code == 45 and "with a later sync" in says(memory.restored, "channel-down")
    later = asyncio.run(memory.sync())
    # The known part is read; that one of two providers has nothing yet is not a success (7, not 45).
    assert later.exit_code == 7 and later.unread == 0 and later.not_placed == [dead.name]
    memory.close()


class _Portal(SimProvider):
    """After some calls a proxy answers for names as if there were none, and for lists with a page."""

    left = 0

    def _is_there(self) -> bool:
        self.left -= 1
        return self.left >= 0

    async def get_name(self, name: str) -> bytes | None:
        return await super().get_name(name) if self._is_there() else None

    async def pins(self, name: str) -> list[Pin]:
        if self._is_there():
            return await super().pins(name)
        raise ProviderUnavailable("a page where a list was asked for")


@pytest.mark.parametrize("calls", range(8))
def test_unreadable_list_does_not_restore_an_empty_vault(tmp_path: Path, calls: int) -> None:
    world = World(tmp_path, "lists")
    portal = _Portal(world.now, capabilities=FULL)
    portal.left = calls
    try:
        memory = restore(world.fresh(), portal)
    except (UnreadError, ProviderUnavailable):
        return
    assert memory.restored is not None and (world.whole(memory) or memory.restored.exit_code != 0)
    memory.close()


# -- a list that fails part-way: the shown part is used, the rest is unread -------------------------------------------


class Broken(SimProvider):
    """A provider whose list fails after the first `shown` entries."""

    shown = 1

    async def pins(self, name: str) -> list[Pin]:
        found = await super().pins(name)
        with with_pins(found[: self.shown]):
            raise ProviderUnavailable("the list ended with 503")


def broken(world: World, cloud: SimCloud, shown: int = 1) -> Broken:
    made = Broken(cloud, capabilities=world.can)
    made.shown = shown
    return made


def test_vault_is_restored_from_the_readable_part_of_a_list(lists: World) -> None:
    memory = restore(lists.fresh(), broken(lists, lists.now))
    assert memory.restored is not None and memory.restored.exit_code == 45
    assert "could not be read after 1 entries: the list ended with 503" in says(
        memory.restored, "channel-down"
    )
    assert texts(memory)
    report = asyncio.run(memory.sync(provider=lists.at(lists.now)))
    assert report.exit_code == 0 and lists.whole(memory)
    memory.close()


def test_sync_joins_the_part_of_a_list_that_can_be_read(lists: World) -> None:
    memory = restore(lists.fresh(), lists.at(copy_of(lists.before)))
    before = texts(memory)
    report = asyncio.run(memory.sync(provider=broken(lists, lists.now)))
    assert report.exit_code == 7 and report.published
    assert len(texts(memory)) > len(before)
    report = asyncio.run(memory.sync(provider=lists.at(lists.now)))
    assert report.exit_code == 0 and lists.whole(memory)
    memory.close()


def test_list_that_fails_before_its_first_entry_creates_no_vault(lists: World) -> None:
    home = lists.fresh()
    with pytest.raises(ProviderUnavailable, match="the list ended with 503"):
        restore(home, broken(lists, lists.now, 0))
    assert not [path for path in home.rglob("*") if path.name == "ipfsmem.json"]


def test_root_in_the_readable_part_of_a_list_is_not_sent_again(lists: World) -> None:
    memory = restore(lists.fresh(), lists.at(lists.now))
    assert lists.whole(memory)
    asyncio.run(memory.sync(provider=lists.at(lists.now)))
    there = broken(lists, lists.now)
    report = asyncio.run(memory.sync(provider=there))
    assert report.exit_code == 7 and there.calls.count("put_car") == 0, there.calls
    memory.close()
