"""Idle devices stop sending (format section 7): after a few syncs without writes nothing is sent, whatever
was lost meanwhile, with any provider, and with any number of devices that hold the wallet."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest

from ipfsmem.content.cid import CID, ipns_name, parse_cid
from ipfsmem.memory import Memory
from ipfsmem.provider.contract import Provider
from ipfsmem.published.ipns_record import parse_record
from ipfsmem.testing.simulator import SimCloud, SimProvider
from tests.support.device_lab import ROOT, FolderLab, Lab, kinds, same
from tests.support.effort import THOROUGH, cases

ANCHOR = ipns_name(ROOT.head_public)


class ManyLab(Lab):
    """Several providers, each with its own cloud."""

    def __init__(self, folder: Path, *names: str) -> None:
        super().__init__(folder)
        self.clouds = {name: SimCloud() for name in names}
        self.opened: dict[str, list[SimProvider]] = {}
        self.cloud = next(iter(self.clouds.values()))

    def channels(self, name: str) -> Provider | list[Provider]:
        self.opened[name] = [
            SimProvider(cloud, name=which, clock=self.clock) for which, cloud in self.clouds.items()
        ]
        return list(self.opened[name])

    def down(self, which: str, *, offline: bool = True) -> None:
        """Take one provider offline for everybody."""
        for provider in (one for each in self.opened.values() for one in each if one.name == which):
            provider.faults.offline = offline

    def there(self) -> object:
        return [
            (len(cloud.blocks), list(cloud.pins), {name: list(kept) for name, kept in cloud.names.items()})
            for cloud in self.clouds.values()
        ]

    def greatest(self) -> dict[str, bytes]:
        return {
            f"{which} {name}": records[-1]
            for which, cloud in self.clouds.items()
            for name, records in cloud.names.items()
        }


def anchored(lab: Lab) -> tuple[int, CID]:
    """Return the sequence of the anchor's record, and its root."""
    return parse_record(lab.cloud.names[ANCHOR][-1]).sequence, lab.record_root(ROOT.head_public)


def rotated_and_lost(lab: Lab) -> tuple[Memory, Memory, CID]:
    """A and B hold the wallet. A made a new key, and its keyring.json was lost before B read it; returns
    that block."""
    a = lab.create("a")
    lab.sync(a)
    b = lab.restore("b", hold=True)
    lab.settle(a, b)
    a.write("tone", "of a")
    asyncio.run(a.members.rotate())
    root = lab.record_root(ROOT.head_public)
    (keyring,) = (cid for cid in lab.cloud.tree(root) if cid != root)
    del lab.cloud.blocks[keyring]
    return a, b, keyring


@pytest.mark.parametrize("locked", [False, True])
def test_lost_ring_is_sent_again_and_the_anchor_stays(lab: Lab, locked: bool) -> None:
    a, b, keyring = rotated_and_lost(lab)
    if locked:
        a.lock()
    ring = a.replica.ring
    assert "head-refused" in kinds(lab.sync(b)) and b.replica.ring != ring
    assert "repaired" in kinds(lab.sync(a)) and keyring in lab.cloud.blocks
    lab.sync(b)
    assert b.replica.ring == ring
    lab.settle(a, b, rounds=3)
    same(a, b)
    lab.rest(a, b)


def test_device_alone_unable_to_read_ring_leaves_anchor_unchanged(lab: Lab) -> None:
    """The provider serves it to all but B: nothing can be sent again, and B moves the anchor once, not
    repeatedly."""
    a, b, keyring = rotated_and_lost(lab)
    lab.sync(b)
    lab.sync(a)
    lab.provider("b").faults.drop = {keyring}
    number, root = anchored(lab)
    assert "anchor-unread" in kinds(lab.sync(b))
    assert anchored(lab) == (number, root)
    lab.settle(a, b, rounds=3)
    lab.rest(a, b)
    # Later statements of B are sent once.
    asyncio.run(b.members.rotate())
    assert anchored(lab)[0] == number + 1
    lab.provider("b").faults.drop = set()
    lab.settle(a, b)
    same(a, b)
    lab.rest(a, b)


def test_anchor_is_moved_from_a_ring_that_nobody_has(lab: Lab) -> None:
    _, b, _ = rotated_and_lost(lab)
    lab.sync(b)
    lab.settle(b, rounds=3)
    lab.rest(b)
    c = lab.restore("c")
    lab.settle(b, c)
    same(b, c)


def worlds(folder: Path) -> dict[str, Lab]:
    return {
        "simulated": Lab(folder),
        "folder": FolderLab(folder),
        "several": ManyLab(folder, "one", "two", "three"),
        "one is down": ManyLab(folder, "one", "two"),
        "one comes back": ManyLab(folder, "one", "two"),
    }


@pytest.mark.parametrize("world", ["simulated", "folder", "several", "one is down", "one comes back"])
def test_idle_devices_stop_sending_everywhere(tmp_path: Path, world: str) -> None:
    tmp_path.joinpath("lab").mkdir()
    lab = worlds(tmp_path / "lab")[world]
    try:
        a = lab.create("a")
        lab.sync(a)
        b, c = lab.restore("b", hold=True), lab.restore("c")
        lab.settle(a, b, c)
        if isinstance(lab, ManyLab) and world != "several":
            lab.down("two")
        for number, memory in enumerate((a, b, c)):
            memory.write("same", f"text {number}")
            memory.write(f"own{number}", f"text {number}")
        asyncio.run(b.members.rotate())
        lab.sync(c)
        if isinstance(lab, ManyLab) and world == "one comes back":
            lab.down("two", offline=False)
        lab.settle(a, b, c, rounds=6)
        same(a, b, c)
        lab.rest(a, b, c)
    finally:
        lab.close()


def test_idle_devices_stop_sending_after_any_lost_block(lab: Lab) -> None:
    a = lab.create("a")
    lab.sync(a)
    others = [lab.restore(name, hold=True) for name in "bc"]
    devices = [a, *others]
    lab.settle(*devices)
    random = Random(7)
    for number in range(cases(2, 60)):
        who = devices[number % 3]
        who.write(f"k{number}", f"text {number}")
        asyncio.run(who.members.rotate()) if random.random() < 0.5 else lab.sync(who)
        root = parse_cid(str(who.status().root))
        tree = {*lab.cloud.tree(root), *lab.cloud.tree(lab.record_root(ROOT.head_public))}
        for cid in random.sample(sorted(tree, key=str), random.choice((1, 2, 5))):
            lab.cloud.blocks.pop(cid, None)
        lab.settle(*devices, rounds=6)
        lab.rest(*devices, rounds=1, whole=False)
    if not THOROUGH:
        return
    for _ in range(8):
        lab.clock.advance(24 * 3600)
        for memory in devices:
            lab.sync(memory)
    lab.settle(*devices, rounds=6)
    lab.rest(*devices)
    same(*devices)
