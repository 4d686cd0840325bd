"""Garbage collection in a shared folder frees space, and no order of steps, crash or second device removes
data that a pin needs."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from ipfsmem_providers.directory import DirectoryProvider
from ipfsmem_providers.directory import collection as directory_collect
from ipfsmem_providers.directory.files import FolderObjectStore

from ipfsmem.content.cid import CID, DAG_PB, RAW, ipns_name, raw_cid
from ipfsmem.content.dagpb import BlockLink
from ipfsmem.content.tree import build_tree
from ipfsmem.content.unixfs import directory
from ipfsmem.device import shared_folder
from ipfsmem.device.directory_handle import Directory
from ipfsmem.device.replica import Environment
from ipfsmem.errors import ProviderRefused
from ipfsmem.memory import Memory
from ipfsmem.provider.contract import Pin
from ipfsmem.published.ipns_record import make_record
from ipfsmem.seal.primitives import Signer25519
from ipfsmem.testing import MockClock, SeededRandom
from ipfsmem.vault.home import Home
from tests.support import effort
from tests.support.patience import PATIENCE
from tests.unit.published.test_plain_layout import WALLET

DAY = 86_400
SEED = b"\x41" * 32
NAME = ipns_name(Signer25519(SEED).public)


class Stick:
    """A folder, a clock, and files whose times follow that clock."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = MockClock()
        self.times: dict[str, int] = {}

    def open(self) -> DirectoryProvider:
        return DirectoryProvider(self.folder, clock=self.clock)

    def later(self, days: float) -> None:
        self.stamp()
        self.clock.advance(days * DAY)

    def stamp(self) -> None:
        """Set the current time as the date of files that are new since the last call."""
        for path in (self.folder / "packs").glob("*"):
            key = f"{path.name} {path.stat().st_ino}"
            self.times.setdefault(key, self.clock.ns)
            os.utime(path, ns=(self.times[key], self.times[key]))

    def collect(self) -> int:
        self.stamp()
        freed = asyncio.run(self.open().collect())
        self.stamp()
        return freed

    def put(
        self, files: dict[str, bytes], *, known: bool = True, provider: DirectoryProvider | None = None
    ) -> CID:
        """Upload a tree without the blocks that are reported as present."""

        async def work() -> CID:
            device = provider or self.open()
            tree = build_tree(files)
            there = await device.has([cid for cid, _ in tree.blocks]) if known else set()
            await device.put_car(tree.cid, [b for b in tree.blocks if b[0] not in there], name="n")
            return tree.cid

        root = asyncio.run(work())
        self.stamp()
        return root

    def pin(self, root: CID) -> Pin:
        return asyncio.run(self.open().pin(root, "n"))

    def unpin(self, root: CID) -> None:
        asyncio.run(self.open().unpin(Pin(root, "n", "", 0)))

    def whole(self, files: dict[str, bytes]) -> bool:
        blocks = dict(build_tree(files).blocks)
        return asyncio.run(self.open().get_blocks(list(blocks))) == blocks

    def packs(self, ending: str) -> set[str]:
        """Return the names of files of one kind, without the ending."""
        return {path.stem for path in self.folder.glob(f"packs/*{ending}")}

    @property
    def size(self) -> int:
        return sum(path.stat().st_size for path in (self.folder / "packs").glob("*.car"))


@pytest.fixture
def stick(tmp_path: Path) -> Stick:
    return Stick(tmp_path)


def texts(tag: str, count: int = 30, size: int = 3_000) -> dict[str, bytes]:
    return {f"{tag}/{n}": random.Random(f"{tag} {n}").randbytes(size) for n in range(count)}


OLD, NEW = texts("old"), texts("new")


def test_space_is_freed_a_day_later(stick: Stick) -> None:
    old, new = stick.put(OLD), stick.put(NEW)
    stick.pin(old), stick.pin(new)
    stick.unpin(old)
    before = stick.size
    assert stick.collect() == 0, "younger than a day"
    stick.later(1.1)
    promised = stick.collect()
    assert promised > 90_000 and stick.size == before and stick.whole(OLD)
    stick.later(0.9)
    assert stick.collect() == 0 and stick.size == before
    stick.later(0.2)
    assert stick.collect() == promised
    assert stick.size == before - promised and stick.whole(NEW)
    assert not asyncio.run(stick.open().get_blocks([cid for cid, _ in build_tree(OLD).blocks]))
    assert not stick.packs(".going") and stick.packs(".car") == stick.packs(".idx") != set()


def test_needed_blocks_of_a_pack_move_to_another_pack(stick: Stick) -> None:
    both = stick.put({**OLD, "keep": b"k" * 2000})
    stick.pin(both)
    root = stick.put({"keep": b"k" * 2000})
    stick.pin(root)
    stick.unpin(both)
    stick.later(1.1)
    stick.collect()
    assert stick.whole({"keep": b"k" * 2000})
    stick.later(1.1)
    assert stick.collect() > 80_000
    assert stick.whole({"keep": b"k" * 2000}) and stick.size < 5_000


def test_false_raw_cid_of_a_folder_does_not_free_its_blocks(stick: Stick) -> None:
    """A member could state that the folder of another is a raw block without links."""
    root = stick.put(NEW)
    stick.pin(root)
    record = make_record(SEED, f"/ipfs/{raw_cid(root.digest)}", 1, 2**62)
    asyncio.run(stick.open().put_name(NAME, record))
    for days in (1.1, 1.1, 1.1):
        stick.later(days)
        stick.collect()
    assert stick.whole(NEW), "by a name"
    folders = [cid for cid, _ in build_tree(NEW).blocks if cid.codec == DAG_PB]
    false = directory([BlockLink(f"{n}", raw_cid(cid.digest), 1) for n, cid in enumerate(folders)])
    asyncio.run(stick.open().put_car(false.cid, false.blocks, name="n"))
    stick.pin(false.cid)
    above = directory([BlockLink("above", root, 1)])  # so that pinned blocks come first
    asyncio.run(stick.open().put_car(above.cid, above.blocks, name="n"))
    stick.pin(above.cid)
    stick.unpin(root)
    for days in (1.1, 1.1, 1.1):
        stick.later(days)
        stick.collect()
    assert stick.whole(NEW), "by a pin"


def test_publish_starts_a_due_collection(stick: Stick) -> None:
    old, new = stick.put(OLD), stick.put(NEW)
    stick.pin(new)
    stick.later(1.1)
    stick.collect()
    stick.later(1.1)
    before = stick.size
    root = stick.put({"x": b"1"})
    stick.pin(root)
    assert stick.size < before - 80_000 and stick.whole(NEW) and old


def test_little_waste_is_left(stick: Stick) -> None:
    root = stick.put({**OLD, "a": b"1" * 3000})
    part = stick.put(OLD)
    stick.pin(part)
    stick.later(2)
    assert stick.collect() == 0 and root


def test_device_told_of_present_blocks_has_a_day_to_pin(stick: Stick) -> None:
    old, new = stick.put(OLD), stick.put(NEW)
    stick.pin(new)
    stick.later(1.1)
    device = stick.open()
    # The other device asks, and is about to upload the little that is missing ...
    there = asyncio.run(device.has([cid for cid, _ in build_tree(OLD).blocks]))
    assert there
    stick.collect()
    stick.later(0.5)
    mixed = {**OLD, "more": b"of it"}
    blocks = [b for b in build_tree(mixed).blocks if b[0] not in there]
    asyncio.run(device.put_car(build_tree(mixed).cid, blocks, name="n"))
    stick.pin(build_tree(mixed).cid)
    stick.later(0.7)
    stick.collect()
    stick.later(3)
    stick.collect()
    assert stick.whole(mixed) and stick.whole(NEW) and old


def test_everything_is_sent_again_after_a_mark(stick: Stick) -> None:
    stick.put(OLD)
    stick.pin(stick.put(NEW))
    stick.later(1.1)
    stick.collect()
    cids = [cid for cid, _ in build_tree(OLD).blocks]
    assert not asyncio.run(stick.open().has(cids))
    stick.pin(stick.put(OLD))  # the very same pack: its mark is removed
    assert asyncio.run(stick.open().has(cids)) == set(cids)
    stick.later(1.1)
    stick.collect()
    stick.later(1.1)
    stick.collect()
    assert stick.whole(OLD) and stick.whole(NEW)


def test_pack_stored_again_at_the_last_moment_is_kept(stick: Stick, monkeypatch: pytest.MonkeyPatch) -> None:
    stick.put(OLD)
    stick.pin(stick.put(NEW))
    stick.later(1.1)
    stick.collect()
    stick.later(1.1)
    real = directory_collect.FolderCollector._take_away

    def take_away(self: Any, name: str, is_needed: Callable[[], bool]) -> bool:
        root = stick.put(OLD)  # another device, after this one has read the pins
        stick.pin(root)
        return real(self, name, is_needed)

    monkeypatch.setattr(directory_collect.FolderCollector, "_take_away", take_away)
    monkeypatch.setattr(directory_collect.FolderCollector, "due", lambda self, view: False)
    stick.collect()
    assert stick.whole(OLD) and stick.whole(NEW)


@pytest.mark.parametrize("moment", ["before it goes out of sight", "after"])
def test_pin_at_the_last_moment_keeps_its_blocks(
    stick: Stick, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Pins are read again before each removal."""
    stick.pin(stick.put(NEW))
    old = stick.put(OLD)
    stick.later(1.1)
    stick.collect()
    assert list((stick.folder / "packs").glob("*.going"))
    stick.later(1.1)
    real = shared_folder.SharedFolder.replace
    pinned: list[bool] = []

    def replaced(folder: shared_folder.SharedFolder, name: str, new: str) -> None:
        if not pinned and name.endswith(".car") and ".hidden-" in new:
            pinned.append(True)
            if moment == "after":
                real(folder, name, new)
                stick.pin(old)
                return
            stick.pin(old)
        real(folder, name, new)

    monkeypatch.setattr(shared_folder.SharedFolder, "replace", replaced)
    stick.collect()
    assert pinned and stick.whole(OLD) and stick.whole(NEW)
    stick.unpin(old)
    for _ in range(2):
        stick.later(1.1)
        stick.collect()
    assert not stick.whole(OLD) and stick.whole(NEW)


def test_pack_that_was_hidden_when_packs_were_examined_stays(
    stick: Stick, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another collection hides it, and restores it because of a pin that both know."""
    stick.pin(stick.put(NEW))
    stick.put(OLD)
    stick.later(1.1)
    stick.collect()
    stick.later(1.1)
    [marked] = stick.packs(".going")
    pack = stick.folder / "packs" / f"{marked}.car"
    hidden = pack.with_name(f".new-{pack.name}")
    stick.pin(next(cid for cid, _ in build_tree(OLD).blocks if cid.codec == RAW))
    collector = directory_collect.FolderCollector
    look, take = collector._live, collector._take_away

    def live(self: Any, roots: Any) -> set[bytes]:
        pack.rename(hidden)
        return look(self, roots)

    def take_away(self: Any, name: str, is_needed: Callable[[], bool]) -> bool:
        monkeypatch.setattr(collector, "_live", look)
        os.utime(hidden.rename(pack), (0, 0))
        return take(self, name, is_needed)

    monkeypatch.setattr(collector, "_live", live)
    monkeypatch.setattr(collector, "_take_away", take_away)
    stick.collect()
    assert pack.exists() and stick.whole(OLD)


_KILLED = """
import asyncio, os, sys
from pathlib import Path
from ipfsmem.device.shared_folder import SharedFolder
from ipfsmem_providers.directory import DirectoryProvider
hide = SharedFolder.replace
def killed(folder, name, new):
    hide(folder, name, new)
    if name.endswith(".car") and ".hidden-" in new:
        os._exit(9)
SharedFolder.replace = killed
asyncio.run(DirectoryProvider(Path(sys.argv[1]), clock=lambda: int(sys.argv[2])).collect())
"""


@pytest.mark.parametrize("by", ["collection", "upload"])
def test_pack_of_a_pinned_tree_that_a_killed_collection_hid_is_restored(stick: Stick, by: str) -> None:
    """The pinning device saw the blocks before the mark."""
    stick.pin(stick.put(NEW))
    old = stick.put(OLD)
    stick.later(1.1)
    stick.collect()
    stick.later(1.1)
    command = [sys.executable, "-c", _KILLED, str(stick.folder), str(stick.clock.ns)]
    assert subprocess.run(command, timeout=PATIENCE).returncode == 9
    assert stick.packs(".going") and list((stick.folder / "packs").glob(".hidden-*.car"))
    stick.pin(old)
    if by == "collection":
        asyncio.run(stick.open().collect())
    else:
        stick.put({"x": b"1"})
    assert stick.whole(OLD) and stick.whole(NEW)


def test_incomplete_pinned_tree_stops_a_collection(stick: Stick) -> None:
    stick.pin(stick.put(NEW))
    absent = build_tree({"a/b": b"did not arrive yet"}).cid
    stick.pin(absent)
    stick.put(OLD)
    stick.later(5)
    for _ in range(2):
        with pytest.raises(ProviderRefused, match=str(absent)):
            stick.collect()
        stick.later(2)
    stick.put({"x": b"publishing goes on"})
    assert stick.whole(OLD)
    stick.unpin(absent)
    assert stick.collect() > 0


def as_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def as_link(file: Path) -> None:
    file.unlink()
    file.symlink_to("elsewhere")


def as_placeholder(file: Path) -> None:
    """The file is stored in a cloud only."""
    file.unlink()
    file.with_name(f".{file.name}.icloud").write_bytes(b"bplist00")


@pytest.mark.parametrize("damage", [as_folder, as_link, as_placeholder])
@pytest.mark.parametrize("kind", ["list", "single"])
def test_unreadable_pins_keep_their_blocks(stick: Stick, kind: str, damage: Callable[[Path], None]) -> None:
    """Two vaults share the folder."""
    old = stick.put(OLD)
    pin = stick.pin(old)
    pins = stick.folder / "pins"
    file = pins / pin.handle
    if kind == "list":
        data = file.read_bytes() + b"\n"
        file.unlink()
        file = pins / f"{hashlib.sha256(data).hexdigest()}.pins"
        file.write_bytes(data)
    damage(file)
    other = stick.put(NEW)
    asyncio.run(stick.open().pin(other, "another vault"))
    nobodys = stick.put(texts("nobody's"))
    stick.later(1.1)
    for _ in range(3):
        if kind == "list":
            with pytest.raises(ProviderRefused, match=file.name):
                stick.collect()
        else:
            stick.collect()
        asyncio.run(stick.open().pin(nobodys, "another vault"))
        asyncio.run(stick.open().unpin(Pin(nobodys, "another vault", "", 0)))
        stick.put({"more": b"more"}, known=False)  # an upload also removes what is due
        stick.later(1.1)
    assert stick.whole(OLD) and stick.whole(NEW)
    assert stick.whole(texts("nobody's")) == (kind == "list")


def test_folder_without_pins_is_unchanged(stick: Stick) -> None:
    stick.put(OLD)
    stick.later(9)
    assert stick.collect() == 0 and stick.whole(OLD)


def test_pins_and_names_of_others_keep_their_blocks(stick: Stick) -> None:
    mine, named = stick.put(NEW), stick.put(OLD)
    stick.pin(mine)
    asyncio.run(stick.open().put_name(NAME, make_record(SEED, f"/ipfs/{named}", 1, 10**19)))
    other = texts("other")
    asyncio.run(stick.open().pin(stick.put(other), "somebody else's"))
    copied = texts("copied")
    pin = stick.pin(stick.put(copied))
    path = stick.folder / "pins" / pin.handle
    path.rename(path.with_name(path.name.replace(".json", ".sync-conflict-20261122.json")))
    for _ in range(3):
        stick.later(1.5)
        stick.collect()
    assert all(stick.whole(files) for files in (NEW, OLD, other, copied))
    # A name that leads to data stored elsewhere is not a reason to stop.
    elsewhere = build_tree({"else/where": b"x"}).cid
    asyncio.run(stick.open().put_name(NAME, make_record(SEED, f"/ipfs/{elsewhere}", 2, 10**19)))
    stick.later(1.5)
    assert stick.collect() > 0


def test_damaged_pack_with_needed_blocks_is_kept(stick: Stick) -> None:
    kept = {"keep": b"k" * 2000}
    stick.put({**OLD, **kept})
    stick.pin(build_tree(kept).cid) if stick.put(kept) else None
    (pack,) = [p for p in stick.folder.glob("packs/*.car") if p.stat().st_size > 50_000]
    data = bytearray(pack.read_bytes())
    data[60] ^= 0xFF  # the framing at its beginning
    pack.write_bytes(data)
    before = asyncio.run(stick.open().get_blocks([cid for cid, _ in build_tree(kept).blocks]))
    for _ in range(3):
        stick.later(1.5)
        stick.collect()
    assert asyncio.run(stick.open().get_blocks(list(before))) == before


def test_false_index_is_not_proof_of_a_block(stick: Stick) -> None:
    """The index of a retained pack names a block that is not in it."""
    from ipfsmem_providers.packs.index import BlockLocation, encode_index, open_index

    kept = {"keep": b"k" * 3000}
    stick.put({**OLD, **kept})
    stick.pin(stick.put(kept))
    stick.pin(stick.put(NEW))
    liar = max(stick.folder.glob("packs/*.car"), key=lambda p: p.stat().st_mtime_ns)
    packs = FolderObjectStore(stick.folder, "packs")
    index = open_index(packs, liar.with_suffix(".idx").name, liar.stat().st_size)
    assert index is not None
    leaf = next(cid for cid, data in build_tree(kept).blocks if data == kept["keep"])
    places = [*index.places(), BlockLocation(leaf.multihash[2:], 100, 3000)]
    liar.with_suffix(".idx").write_bytes(encode_index(places, liar.stat().st_size))
    for _ in range(3):
        stick.later(1.5)
        stick.collect()
    assert stick.whole(kept) and stick.whole(NEW)


class Crash(BaseException):
    """The machine stopped."""


#: Functions that stop the machine when called at the chosen step.
Stops: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]


@pytest.mark.parametrize("step", range(14))
def test_crash_at_any_step_loses_no_pinned_block(
    stick: Stick, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    def crash(patch: pytest.MonkeyPatch, stops: Stops) -> None:
        patch.setattr(os, "replace", stops(os.replace))
        patch.setattr(Directory, "unlink", stops(Directory.unlink))
        patch.setattr(os, "fsync", stops(os.fsync))
        patch.setattr(shared_folder.NewFile, "drop", lambda self: None)

    crash_at(stick, monkeypatch, step, crash)


def crash_at(
    stick: Stick,
    monkeypatch: pytest.MonkeyPatch,
    step: int,
    crash: Callable[[pytest.MonkeyPatch, Stops], None],
) -> None:
    """Run two collections that stop after a number of steps, then whole ones: every pinned block exists
    all the time. `crash` replaces each call that may be the last."""
    kept = {"keep": b"k" * 2000}
    stick.put({**OLD, **kept})
    stick.pin(stick.put({**kept, "other": b"o" * 500}))
    stick.pin(stick.put(NEW))
    everything = ({**kept, "other": b"o" * 500}, NEW)
    left = [step]

    def stops(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            if left[0] == 0:
                raise Crash
            left[0] -= 1
            return real(*args, **more)

        return call

    def interrupted() -> None:
        with monkeypatch.context() as patch:
            crash(patch, stops)
            try:
                stick.collect()
            except Crash:
                pass
        assert all(stick.whole(files) for files in everything)

    stick.later(1.1)
    interrupted()
    stick.later(1.1)
    interrupted()
    for _ in range(3):
        stick.later(1.1)
        stick.collect()
        assert all(stick.whole(files) for files in everything)
    assert stick.size < 110_000


@pytest.mark.parametrize("seed", range(effort.cases(2, 25)))
def test_devices_in_any_order_lose_no_pinned_block(stick: Stick, seed: int) -> None:
    any_order(stick, seed, 120)


def any_order(stick: Stick, seed: int, steps: int) -> None:
    """Uploads in parts (asked, sent, pinned, with hours in between), unpins and collections in any order."""
    draw = random.Random(seed)
    devices = [stick.open() for _ in range(3)]
    pinned: dict[CID, dict[str, bytes]] = {}
    waiting: list[tuple[int, float, dict[str, bytes], set[CID]]] = []
    pool = [random.Random(n).randbytes(700) for n in range(40)]
    now = 0.0
    for _ in range(steps):
        kind = draw.random()
        if kind < 0.3:
            files = {f"{n % 4}/{n}": pool[n] for n in draw.sample(range(40), draw.randint(1, 8))}
            number = draw.randrange(3)
            there = asyncio.run(devices[number].has([cid for cid, _ in build_tree(files).blocks]))
            waiting.append((number, now, files, there))
        elif kind < 0.6 and waiting:
            number, asked, files, there = waiting.pop(draw.randrange(len(waiting)))
            if now - asked > 0.9:
                continue  # nobody takes a day between a question and a pin
            tree = build_tree(files)
            asyncio.run(
                devices[number].put_car(tree.cid, [b for b in tree.blocks if b[0] not in there], name="n")
            )
            asyncio.run(devices[number].pin(tree.cid, "n"))
            stick.stamp()
            pinned[tree.cid] = files
        elif kind < 0.7 and len(pinned) > 1:
            root = draw.choice(sorted(pinned, key=str))
            stick.unpin(root)
            del pinned[root]
        elif kind < 0.85:
            stick.stamp()
            asyncio.run(devices[draw.randrange(3)].collect())
            stick.stamp()
        else:
            step = draw.choice((0.02, 0.3, 1.2))
            stick.later(step)
            now += step
        assert all(map(stick.whole, pinned.values()))
    for _ in range(3):
        stick.later(1.5)
        stick.collect()
    needed = {cid: data for files in pinned.values() for cid, data in build_tree(files).blocks}
    assert all(map(stick.whole, pinned.values()))
    # A pack may contain a quarter of unneeded blocks, and a block may be in two packs.
    assert stick.size < 2 * sum(len(data) + 60 for data in needed.values()) + 5_000


def test_gc_frees_space_and_another_device_reads_on(tmp_path: Path) -> None:
    (tmp_path / "stick").mkdir()
    stick = Stick(tmp_path / "stick")
    world = Environment(lambda: stick.clock.ms, SeededRandom("gc"))
    a = Memory.create("x", "encrypted-ipfs", provider=stick.open(), unlock=WALLET, passphrase=False, home=Home(folder=tmp_path / "a", environment=world))  # fmt: skip
    for n in range(6):
        a.write("big", random.Random(n).randbytes(80_000).hex())
        a.write(f"k{n}", f"text {n}")
        asyncio.run(a.sync())
        stick.later(2)
    before = stick.size

    def gc() -> int:
        stick.stamp()
        done = asyncio.run(a.maintenance.gc(keep_roots=1, keep_days=1))
        stick.stamp()
        assert not done.problems
        return sum(done.freed.values())

    assert gc() > 200_000
    stick.later(1.1)
    assert gc() > 200_000
    assert stick.size < before - 200_000
    b = Memory.load("x", "encrypted-ipfs", provider=stick.open(), unlock=WALLET, passphrase=False, home=Home(folder=tmp_path / "b", environment=Environment(lambda: stick.clock.ms, SeededRandom("b"))))  # fmt: skip
    assert b.files() == a.files() and len(b.files()) == 7
    b.write("from_b", "x")
    asyncio.run(b.sync())
    asyncio.run(a.sync())
    assert a.read("from_b") is not None
    a.close(), b.close()
