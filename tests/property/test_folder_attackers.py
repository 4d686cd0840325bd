"""Honest devices on a shared folder with an attacker who writes to it: damaged and forged packs, indexes,
pins and names, old files and folders, links and junk.

The attacker holds no key. The folder provider, the sync and the vault are real. In the end the attacker
stops: the honest devices restore everything to the folder, and a new device restores all of it from there."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from ipfsmem.errors import IpfsmemError
from tests.support.device_lab import ROOT, FolderLab, all_texts, no_chance_in_boxes, same
from tests.support.effort import cases, longest

HONEST = ("a", "b")
DAY = 24 * 3600
#: Maximum bytes of a folder here; a vault of a handful of texts has a hundredth.
MOST = 8 * 1024 * 1024


class Town:
    """Two honest devices and a folder that others write to."""

    def __init__(self, folder: Path) -> None:
        self.lab = FolderLab(folder)
        self.count = 0
        self.wanted: set[str] = set()
        self.writers: dict[str, str] = {}
        a = self.lab.create("a")
        self.lab.sync(a)
        b = self.lab.restore("b")
        b.lock()
        self.memories = {"a": a, "b": b}
        self.lab.settle(a, b)
        self.shared = self.lab.at("a")
        self.saved: list[Path] = []

    # -- honest work -----------------------------------------------------------------------------------------------

    def write(self, random: Random) -> None:
        who = random.choice(HONEST)
        self.count += 1
        text = f"text {self.count}"
        self.memories[who].write(f"{who}-{self.count}", text)
        self.wanted.add(text)
        self.writers[text] = who

    def sync(self, random: Random) -> None:
        who = random.choice(HONEST)
        memory = self.memories[who]
        if random.random() < 0.2:
            memory.unlock(ROOT)
        try:
            self.lab.sync(memory)
            if random.random() < 0.15:
                asyncio.run(memory.maintenance.gc(keep_roots=1, keep_days=0))
        except IpfsmemError:
            pass  # foreign data in the folder may stop a sync, with an error
        finally:
            memory.lock()
        self.check(who)

    def wait(self, random: Random) -> None:
        self.lab.clock.advance(random.choice((3600, DAY, 9 * DAY)))

    def check(self, who: str) -> None:
        memory = self.memories[who]
        assert memory.mode == "encrypted-ipfs" and not memory.replica.config.public
        own = {text for text in self.wanted if self.writers[text] == who}
        assert not own - all_texts(memory), f"{who} lost {sorted(own - all_texts(memory))}"

    # -- the attacker -------------------------------------------------------------------------------------------------

    def files(self, kind: str = "*") -> list[Path]:
        return sorted(file for file in self.shared.rglob(kind) if file.is_file() and not file.is_symlink())

    def damage(self, random: Random) -> None:
        """Change, cut or double the bytes of a file, replace them by another file's, or empty it."""
        files = self.files()
        if not files:
            return
        file = random.choice(files)
        data = bytearray(file.read_bytes())
        how = random.choice(("flip", "cut", "more", "other", "empty", "noise"))
        if how == "flip" and data:
            data[random.randrange(len(data))] ^= 1 << random.randrange(8)
        elif how == "cut":
            del data[random.randrange(len(data) + 1) :]
        elif how == "more":
            data += data[:4096] or b"x"
        elif how == "other":
            data = bytearray(random.choice(files).read_bytes())
        elif how == "noise":
            data = bytearray(random.randbytes(random.choice((1, 100, 10_000))))
        else:
            data = bytearray()
        file.write_bytes(bytes(data))

    def take(self, random: Random) -> None:
        """Remove one file, those of one kind, or a folder."""
        if random.random() < 0.6:
            for file in random.sample(self.files(), min(2, len(self.files()))):
                file.unlink()
            return
        kind = random.choice(("packs/*.car", "packs/*.idx", "pins/*", "names/*"))
        for file in self.files(kind.partition("/")[2]):
            if file.parent.name == kind.partition("/")[0]:
                file.unlink()

    def put(self, random: Random) -> None:
        """Add foreign files, under meaningful and other names."""
        where = self.shared / random.choice(("packs", "pins", "names", "."))
        where.mkdir(exist_ok=True)
        files = self.files()
        name = random.choice(
            [
                *[file.name for file in files[:5]],
                "0" * 64 + ".car",
                random.randbytes(32).hex() + ".idx",
                random.randbytes(32).hex() + ".car",
                "pin.json",
                "x.ipns-record",
                ".tmp-1",
                "Ünï.json",
            ]
        )
        rubbish = random.choice(
            [
                b"",
                b"{}",
                b"[" * 10_000,
                b"\xff" * 100,
                random.randbytes(2000),
                json.dumps({"cid": "bafy", "name": "x", "created": 1}).encode(),
                *[file.read_bytes() for file in files[:3]],
            ]
        )
        target = where / name
        try:
            how = random.random()
            if how < 0.1:
                target.symlink_to(self.lab.home("a"))
            elif how < 0.2:
                target.mkdir()
            elif not target.is_dir() and not target.is_symlink():
                target.write_bytes(rubbish)
        except OSError:
            pass

    def forge(self, random: Random) -> None:
        """Add a pin list of the attacker's own: earlier pins for other roots, in another order, at other
        times."""
        pins = self.files("*.json")
        if not pins:
            return
        one, other = random.choice(pins), random.choice(pins)
        try:
            said, more = json.loads(one.read_text()), json.loads(other.read_text())
            field = random.choice(sorted(said))
            said[field] = random.choice([more.get(field), 0, -1, 2**60, "x" * 100, None, []])
        except (ValueError, TypeError, AttributeError, IndexError):
            return
        (one if random.random() < 0.5 else one.with_name(random.randbytes(8).hex() + ".json")).write_text(
            json.dumps(said)
        )

    def save(self, random: Random) -> None:
        """Save a copy of the folder."""
        if len(self.saved) < 3 and sum(file.stat().st_size for file in self.files()) < MOST:
            target = self.lab.folder / f"folder-{len(self.saved)}"
            shutil.copytree(self.shared, target, symlinks=True)
            self.saved.append(target)

    def go_back(self, random: Random) -> None:
        """Restore the folder, or some files of it."""
        if not self.saved:
            return
        source = random.choice(self.saved)
        if random.random() < 0.4:
            shutil.rmtree(self.shared)
            shutil.copytree(source, self.shared, symlinks=True)
            return
        for file in sorted(source.rglob("*")):
            target = self.shared / file.relative_to(source)
            if file.is_file() and random.random() < 0.5 and not target.is_dir():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(file, target, follow_symlinks=False)

    # -- the end ---------------------------------------------------------------------------------------------------

    def end(self) -> None:
        """Check the folder without further attacks."""
        honest = list(self.memories.values())
        for memory in honest:
            memory.unlock(ROOT)
        for _ in range(2):
            self.lab.clock.advance(8 * DAY)
            for memory in honest:
                self.lab.sync(memory)
                asyncio.run(memory.providers.check(repair=True, full=True))
        self.lab.settle(*honest, rounds=16)
        for who in HONEST:
            self.check(who)
            assert not self.wanted - all_texts(self.memories[who])
        same(*honest)
        assert not self.wanted - all_texts(self.lab.restore("fresh"))


ACTIONS: dict[str, Callable[[Town, Random], None]] = {
    "write": Town.write,
    "sync": Town.sync,
    "wait": Town.wait,
    "damage": Town.damage,
    "take": Town.take,
    "put": Town.put,
    "forge": Town.forge,
    "save": Town.save,
    "go back": Town.go_back,
}
WEIGHED = [*ACTIONS, "sync", "sync", "sync", "write"]


def play(folder: Path, plan: list[tuple[str, int]]) -> None:
    """Play one plan: pairs of an action and the seed of its choices."""
    with no_chance_in_boxes():
        town = Town(folder)
        try:
            for what, number in plan:
                ACTIONS[what](town, Random(number))
            town.end()
        finally:
            town.lab.close()


@settings(deadline=None, max_examples=cases(4, 150))
@given(
    st.lists(
        st.tuples(st.sampled_from(WEIGHED), st.integers(0, 2**32 - 1)), min_size=4, max_size=longest(20, 40)
    )
)
def test_attacker_in_a_shared_folder_causes_no_permanent_loss(plan: list[tuple[str, int]]) -> None:
    folder = Path(tempfile.mkdtemp(prefix="folder-"))
    try:
        play(folder, plan)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
