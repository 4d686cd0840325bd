"""The pins of a shared folder: many of them stand in a few lists, and none is ever lost (findings L2, L17)."""

from __future__ import annotations

import hashlib
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from ipfsmem_providers.directory.files import FolderShelf
from ipfsmem_providers.packs.pins import MAX_FILES, PIN_LIST, Pins

from ipfsmem.content.cid import CID, raw_cid
from ipfsmem.device.directory_handle import Directory
from ipfsmem.errors import ProviderRefused

NAME = "ipfsmem-0123456789abcdef"


def root(n: int) -> CID:
    return raw_cid(hashlib.sha256(b"%d" % n).digest())


def pins_in(folder: Path, start: int = 0) -> Pins:
    clock = iter(range(start, 10**9))
    return Pins(FolderShelf(folder.parent, folder.name), lambda: next(clock))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "pins"


def test_a_listing_stays_short_whatever_the_history(folder: Path) -> None:
    pins = pins_in(folder)
    for n in range(1_000):
        pins.add(root(n), NAME)
        assert len(list(folder.iterdir())) <= MAX_FILES + 1
    found = pins_in(folder).named(NAME)
    assert [pin.cid for pin in found] == [root(n) for n in reversed(range(1_000))]
    assert [pin.created for pin in found] == list(reversed(range(1_000)))
    assert pins_in(folder).roots() == {root(n) for n in range(1_000)}


def test_a_pin_keeps_its_time_wherever_it_stands(folder: Path) -> None:
    pins = pins_in(folder)
    first = pins.add(root(0), NAME)
    for n in range(1, 200):
        pins.add(root(n), NAME)
    assert not (folder / first.handle).exists()
    assert pins_in(folder, 5_000).add(root(0), NAME).created == first.created
    assert not (folder / first.handle).exists()
    other = pins_in(folder, 6_000).add(root(0), "another name")
    assert other.created == 6_000 and pins_in(folder).named("another name") == [other]


def test_many_are_taken_away_at_the_price_of_one(folder: Path) -> None:
    pins = pins_in(folder)
    made = [pins.add(root(n), NAME) for n in range(300)]
    pins.remove(made[::2])
    assert {pin.cid for pin in pins_in(folder).named(NAME)} == {root(n) for n in range(1, 300, 2)}
    pins.remove(made)
    assert pins_in(folder).named(NAME) == [] and pins_in(folder).roots() == set()
    assert not list(folder.glob(f"*{PIN_LIST}"))


def test_two_that_merge_and_take_away_at_once_lose_nothing(tmp_path: Path) -> None:
    """Whatever order their files come and go in; a pin that was taken away may come back."""
    rnd = random.Random(7)
    for run in range(30):
        folder = tmp_path / str(run)
        mine, yours = pins_in(folder), pins_in(folder, 10_000)
        kept: set[CID] = set()
        gone: set[CID] = set()
        for step in range(120):
            who = mine if rnd.random() < 0.5 else yours
            n = rnd.randrange(400)
            if rnd.random() < 0.85:
                who.add(root(n), NAME)
                kept.add(root(n))
            elif step % 3 == 0:
                for pin in who.named(NAME)[:3]:
                    who.remove([pin])
                    kept.discard(pin.cid)
                    gone.add(pin.cid)
        assert kept <= pins_in(folder).roots() <= kept | gone


@pytest.mark.parametrize("work", ["merge", "remove"])
def test_killed_at_any_step_no_pin_is_lost(
    tmp_path: Path, work: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process ends before any of its changes to the folder."""

    class Killed(Exception):
        pass

    def ready(folder: Path) -> Pins:
        pins = pins_in(folder)
        for n in range(MAX_FILES):
            pins.add(root(n), NAME)
        if work == "remove":
            pins.add(root(MAX_FILES), NAME)
        return pins

    def run(pins: Pins) -> None:
        if work == "merge":
            pins.add(root(MAX_FILES), NAME)
        else:
            pins.remove([pin for pin in pins.named(NAME) if pin.cid in {root(0), root(40)}])

    steps = 0
    while True:
        folder = tmp_path / f"{work}{steps}"
        pins = ready(folder)
        left = [steps]

        def counted(real: Callable[..., object], left: list[int] = left) -> Callable[..., object]:
            def step(*args: object, **options: object) -> object:
                if not left[0]:
                    raise Killed
                left[0] -= 1
                return real(*args, **options)

            return step

        with monkeypatch.context() as patch:
            for call in ("replace", "unlink"):
                patch.setattr(Directory, call, counted(getattr(Directory, call)))
            try:
                run(pins)
                done = True
            except Killed:
                done = False
        needed = {root(n) for n in range(MAX_FILES)}
        needed -= {root(0), root(40)} if work == "remove" else set()
        assert pins_in(folder).roots() >= needed
        shutil.rmtree(folder)
        if done:
            break
        steps += 1
    assert steps > 3


def test_a_list_that_is_not_what_its_name_says_stops_a_collection_and_gives_what_can_be_read(
    folder: Path,
) -> None:
    pins = pins_in(folder)
    for n in range(200):
        pins.add(root(n), NAME)
    file = max(folder.glob(f"*{PIN_LIST}"), key=lambda path: path.stat().st_size)
    data = bytearray(file.read_bytes())
    data[20] ^= 1
    file.write_bytes(bytes(data))
    damaged = pins_in(folder)
    assert len(damaged.named(NAME)) in (199, 200)
    with pytest.raises(ProviderRefused, match="damaged"):
        damaged.roots()
    damaged.remove(damaged.named(NAME)[:3])
    assert file.read_bytes() == bytes(data), (
        "written anew it is without the pin that cannot be read, and looks sound"
    )
    for n in range(200, 400):
        damaged.add(root(n), NAME)
    assert file.exists(), "a merge takes nothing over from it, and leaves it where it is"


def test_what_sync_programs_and_others_leave_keeps_roots_and_stands_under_no_name(folder: Path) -> None:
    pins = pins_in(folder)
    for n in range(100):
        pins.add(root(n), NAME)
    copy = next(folder.glob(f"*{PIN_LIST}"))
    shutil.copy(copy, folder / f"{copy.stem} (conflicted copy){PIN_LIST}")
    (folder / "notes.txt").write_text("mine")
    (folder / f"{'a' * 64}{PIN_LIST}").symlink_to(copy)
    pins.remove(pins.named(NAME))
    assert pins_in(folder).named(NAME) == []
    assert pins_in(folder).roots(), "the copy of a list keeps what it names"
