"""Presence as a law (format section 7): devices restore whatever was removed from a provider, and report it
as missing until then.

A case is up to three providers of any kind, two devices with their own clocks, and a plan: blocks, pins and
names removed, texts written, hours and days that pass. After each sync missing data must be named by that
device once it is due: at a provider that lists its blocks at once, structure within a day, everything within
seven days of daily syncs.

In the end, after those days and the repair's, a new device restores everything from each provider that can
be checked; others are reported as unchecked, and one that repeatedly lost the same block is left to a
person."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

from hypothesis import example, given, settings
from hypothesis import strategies as st
from ipfsmem_providers.directory import DirectoryProvider
from msgspec.structs import replace

from ipfsmem.content.car import read_car
from ipfsmem.content.cid import CID, parse_cid
from ipfsmem.content.verify import verify_block
from ipfsmem.errors import BlockError, ProviderUnavailable
from ipfsmem.memory import Memory
from ipfsmem.provider.contract import Provider
from ipfsmem.published.live_set import live_set
from ipfsmem.sync.presence import load_notes
from ipfsmem.testing.simulator import FULL, SimCloud, SimProvider
from ipfsmem.vault.home import Home
from tests.support.device_lab import ROOT, VAULT_NAME, Lab, no_chance_in_boxes, texts
from tests.support.effort import cases

#: Kinds of providers. `liar` claims to have everything, and `listed liar` continues to list it; `cut` returns
#: the first half of what it lost; `stale` shows the first record of each name; `service` accepts whole trees
#: only; `says only` and `silent` cannot be checked.
KINDS = {
    "listed": replace(FULL, listing=True),
    "has": FULL,
    "liar": FULL,
    "listed liar": replace(FULL, listing=True),
    "cut": FULL,
    "stale": FULL,
    "service": replace(FULL, names=False, has=False, partial_car=False, dag=False),
    "listed service": replace(FULL, names=False, has=False, partial_car=False, listing=True),
    "says only": replace(FULL, raw=False),
    "silent": replace(FULL, raw=False, has=False, partial_car=False),
    #: A real folder of packs.
    "folder": replace(FULL, listing=True),
}
UNCHECKED = ("says only", "silent")
#: Kinds that claim to have everything they ever had.
LIARS = ("liar", "listed liar")
HOUR = 3600
DAY = 24 * HOUR
#: Days after the last loss: a round of reading, and the repair where trees are sent whole, or half of one per
#: day.
LATEST = 7 + 4
Plan = list[tuple[str, int]]


class Place:
    """One provider, and what was removed there when."""

    def __init__(self, number: int, kind: str) -> None:
        self.name, self.kind = f"p{number}", kind
        self.cloud = SimCloud()
        self.lost: dict[CID, int] = {}
        self.offline = False
        #: Blocks that it still lists: sizes of lost blocks.
        self.listed: dict[str, int] = {}

    def open(self, lab: Lab) -> Provider:
        provider = Teller(self, lab)
        provider.faults.has = "all" if self.kind in LIARS else "truth"
        return provider

    def here(self) -> set[CID]:
        """Return what is stored completely."""
        blocks = self.cloud.blocks
        return {cid for cid, data in blocks.items() if self.kind != "cut" or is_block(cid, data)}

    def lose(self, cids: list[CID]) -> None:
        for cid in cids:
            data = self.cloud.blocks.pop(cid, b"")
            if self.kind == "listed liar":
                self.listed[str(cid)] = len(data)
            elif self.kind == "cut" and data:
                self.cloud.blocks[cid] = data[: len(data) // 2]

    def lose_pins(self, random: Random) -> None:
        self.cloud.pins = [pin for pin in self.cloud.pins if random.random() < 0.5]

    def lose_names(self, random: Random) -> None:
        names = self.cloud.names
        self.cloud.names = {name: records for name, records in names.items() if random.random() < 0.5}

    def collect(self) -> None:
        """Keep only what pins reach."""
        self.cloud.collect()

    def gone(self, live: list[CID]) -> list[CID]:
        here = self.here()
        return [cid for cid in live if cid not in here]


class Teller(SimProvider):
    """A place's provider, with its claims about lost blocks and names."""

    def __init__(self, place: Place, lab: Lab) -> None:
        super().__init__(place.cloud, name=place.name, clock=lab.clock, capabilities=KINDS[place.kind])
        self.place = place

    async def listing(self) -> dict[str, int]:
        return self.place.listed | await super().listing()

    async def get_name(self, name: str) -> bytes | None:
        if self.place.kind == "stale" and self.cloud.names.get(name):
            self.faults.old_record[name] = 0
        return await super().get_name(name)


def is_block(cid: CID, data: bytes) -> bool:
    """Return whether these bytes are what the CID names."""
    try:
        verify_block(cid, data)
    except BlockError:
        return False
    return True


class FolderPlace(Place):
    """A folder: a lost block takes its whole pack with it."""

    def __init__(self, number: int, folder: Path) -> None:
        super().__init__(number, "folder")
        self.folder = folder
        folder.mkdir()
        self.name = f"directory:{folder}"

    def open(self, lab: Lab) -> Provider:
        return DirectoryProvider(self.folder, clock=lambda: lab.clock.ns)

    def packs(self) -> dict[Path, set[CID]]:
        packs = self.folder / "packs"
        going = {path.stem for path in packs.glob("*.going")}
        return {
            path: {cid for cid, _ in read_car(path.read_bytes())}
            for path in sorted(packs.glob("*.car"))
            if path.stem not in going
        }

    def here(self) -> set[CID]:
        return set().union(*self.packs().values())

    def lose(self, cids: list[CID]) -> None:
        for pack, held in self.packs().items():
            if not held.isdisjoint(cids):
                pack.unlink()

    def _some(self, where: str, random: Random) -> None:
        for path in sorted((self.folder / where).iterdir()):
            if random.random() < 0.5:
                path.unlink()

    def lose_pins(self, random: Random) -> None:
        self._some("pins", random)

    def lose_names(self, random: Random) -> None:
        self._some("names", random)

    def collect(self) -> None:
        """Clear the caches."""
        for index in (self.folder / "packs").glob("*.idx"):
            index.unlink()


class Presence:
    def __init__(self, folder: Path, kinds: list[str]) -> None:
        self.lab = Lab(folder)
        self.places = [
            FolderPlace(number, folder / f"folder{number}") if kind == "folder" else Place(number, kind)
            for number, kind in enumerate(kinds)
        ]
        self.count = 0
        self.devices: dict[str, Memory] = {}
        #: Since when a device has reached a place at least once a day, and the last time.
        self.steady: dict[tuple[str, str], int] = {}
        self.last: dict[tuple[str, str], int] = {}
        self.opened: dict[str, list[Provider]] = {}
        #: The outcome of each device's last sync.
        self.told: dict[str, int] = {}
        self.done: Counter[str] = Counter()
        a = Memory.create(VAULT_NAME, "encrypted-ipfs", provider=self.open("a"), unlock=ROOT, recovery=False, passphrase=False, home=Home(folder=self.lab.home("a"), label="a", environment=self.lab.environment("a")))  # fmt: skip
        self.devices["a"] = a
        for number in range(12):
            a.write(f"first{number}", f"text {number} of the beginning")
        self.sync("a")
        self.devices["b"] = self.restore("b", self.open("b"))
        for name in "bab":
            self.sync(name)

    def open(self, name: str, places: list[Place] | None = None) -> list[Provider]:
        self.opened[name] = [place.open(self.lab) for place in (self.places if places is None else places)]
        return self.opened[name]

    def restore(self, name: str, providers: list[Provider]) -> Memory:
        memory = asyncio.run(
            Memory.recover(VAULT_NAME, provider=list(providers), unlock=ROOT, passphrase=False, home=Home(folder=self.lab.home(name), label=name, environment=self.lab.environment(name)))
        )  # fmt: skip
        memory.lock()
        return memory

    # -- what happens --------------------------------------------------------------------------------------------------

    def sync(self, name: str) -> None:
        now = self.lab.clock.ms // 1000
        memory = self.devices[name]
        for place, provider in zip(self.places, self.opened[name], strict=True):
            if isinstance(provider, SimProvider):
                provider.faults.offline = place.offline
        try:
            report = asyncio.run(memory.sync())
        except ProviderUnavailable:
            assert any(place.offline for place in self.places)
            return
        for place in self.places:
            at = (name, place.name)
            if not place.offline:
                if at not in self.last or now - self.last[at] > DAY:
                    self.steady[at] = now
                self.last[at] = now
        self.done["syncs"] += 1
        self.told[name] = report.exit_code
        self.done["repaired"] += any(notice.kind == "repaired" for notice in report.notices)
        rows = {row.provider: row for row in memory.status().presence}
        live = self.live(memory)
        structure = set(live[0])
        for place in self.places:
            row = rows[place.name]
            if place.offline:
                continue
            if place.kind in UNCHECKED:
                assert row.state == "unchecked" and "cannot be checked" in row.text
                continue
            named = set(load_notes(memory.replica, place.name).missing)
            for cid in place.gone([*live[0], *live[1]]):
                since = max(place.lost.get(cid, 0), self.steady[name, place.name])
                can = KINDS[place.kind]
                # Where each block is one request, a shrunk listing causes a read of structure, and the rest
                # in turn.
                listed = can.listing and place.kind not in LIARS and (can.has or cid in structure)
                due = listed or now - since >= (DAY if cid in structure else 7 * DAY)
                if due:
                    self.done["named"] += 1
                    assert cid.encode().hex() in named, (
                        f"{name} does not say that {cid} is missing at {place.name}, {place.kind}, "
                        f"{now - since} s, {'structure' if cid in structure else 'object'}"
                    )
                    assert row.missing and row.state in ("missing", "waiting", "stopped")
                    assert row.state == "waiting" or report.exit_code == 44
            assert not named or row.state != "ok"

    def live(self, memory: Memory) -> tuple[list[CID], list[CID]]:
        root = memory.status().root
        assert root is not None
        found = live_set(memory.replica.db, parse_cid(root))
        return found.structure, found.objects

    def lose_blocks(self, random: Random) -> None:
        """Lose some live blocks, or all blocks."""
        place = random.choice(self.places)
        structure, objects = self.live(self.devices[random.choice("ab")])
        stored = place.here()
        wanted = random.choice((structure, objects, sorted(stored, key=str)))
        here = [cid for cid in wanted if cid in stored]
        count = random.choice((1, 1, 2, 5, len(here)))
        self._gone(place, partial(place.lose, random.sample(here, min(count, len(here)))))

    def _gone(self, place: Place, work: Callable[[], None]) -> None:
        before = place.here()
        work()
        for cid in before - place.here():
            place.lost[cid] = self.lab.clock.ms // 1000

    def lose_pins(self, random: Random) -> None:
        random.choice(self.places).lose_pins(random)

    def lose_names(self, random: Random) -> None:
        random.choice(self.places).lose_names(random)

    def collect(self, random: Random) -> None:
        place = random.choice(self.places)
        self._gone(place, place.collect)

    def outage(self, random: Random) -> None:
        """Take a place down, or bring it back."""
        place = random.choice(self.places)
        place.offline = place.kind != "folder" and not place.offline

    def write(self, random: Random) -> None:
        self.count += 1
        self.devices[random.choice("ab")].write(f"k{random.randrange(20)}", f"text {self.count} of the plan")

    def sync_one(self, random: Random) -> None:
        self.sync(random.choice("ab"))

    def hours(self, random: Random) -> None:
        self.lab.clock.advance(random.randrange(1, 20) * HOUR)

    def day(self, random: Random) -> None:
        """A day on which all devices sync, in any order."""
        self.lab.clock.advance(DAY)
        for name in random.sample("ab", 2):
            self.sync(name)

    def week(self, random: Random) -> None:
        self.lab.clock.advance(7 * DAY)

    def run(self, plan: Plan) -> None:
        for action, seed in plan:
            self.done[action] += 1
            getattr(self, action)(Random(seed))

    # -- final checks -------------------------------------------------------------------------------------------------

    def end(self) -> None:
        """Check that after the permitted days each provider has everything for a new device, by the syncs
        of one device."""
        alone = "ab"[self.count % 2]
        for place in self.places:
            place.offline = False
        for _ in range(LATEST):
            self.lab.clock.advance(DAY)
            self.sync(alone)
        for name in "bab" if alone == "b" else "aba":
            # Lists show what names do not; they are read once an hour.
            self.lab.clock.advance(HOUR if any(place.kind == "stale" for place in self.places) else 0)
            self.sync(name)
        a, b = self.devices[alone], self.devices["b" if alone == "a" else "a"]
        wanted = texts(a)
        if texts(b) != wanted:
            # Without checks nobody knows what to send again; a reader that lacks it reports that.
            assert all(place.kind in UNCHECKED for place in self.places) and any(self.told.values())
        for place in self.places:
            if place.kind in UNCHECKED:
                continue
            if any(row.state == "stopped" for row in a.status().presence if row.provider == place.name):
                self.done["by hand"] += 1
                asyncio.run(a.providers.check(repair=True))
            assert not place.gone([cid for part in self.live(a) for cid in part]), (place.name, place.kind)
            new = self.restore(f"new {place.name}", self.open("new", [place]))
            assert texts(new) == wanted, (place.name, place.kind)
            if place.kind == "stale":
                new.close()  # old names may lead to removed versions, which is reported each time
                continue
            assert new.restored is not None and new.restored.exit_code == 0, new.restored.notices
            # The new device lacks nothing later either.
            for _ in range(2):
                self.lab.clock.advance(DAY)
                assert asyncio.run(new.sync()).exit_code == 0
            assert new.status().presence[0].state == "ok", new.status().presence
            new.close()
            self.done["restored"] += 1

    def close(self) -> None:
        for memory in self.devices.values():
            memory.close()


ACTIONS = (
    "lose_blocks",
    "lose_blocks",
    "lose_pins",
    "lose_names",
    "collect",
    "write",
    "sync_one",
    "hours",
    "day",
    "week",
)
PLANS = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 2**32)), min_size=1, max_size=14)
PLACES = st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3)


def hold(kinds: list[str], plan: Plan) -> Counter[str]:
    with tempfile.TemporaryDirectory() as folder, no_chance_in_boxes():
        world = Presence(Path(folder), kinds)
        try:
            world.run(plan)
            world.end()
        finally:
            world.close()
        return world.done


@example(["silent"], [("write", 72448610), ("sync_one", 1049828), ("lose_blocks", 596)])
@settings(max_examples=cases(3, 150))
@given(PLACES, PLANS)
def test_removed_blocks_are_reported_in_time_and_restored(kinds: list[str], plan: Plan) -> None:
    hold(kinds, plan)
