"""Removing blocks in a bucket: as in a folder (test_directory_collect.py), but without renames and without
atomic checks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ipfsmem_providers.bucket import BucketProvider
from ipfsmem_providers.bucket.layout import BucketCollector
from ipfsmem_providers.bucket.objects import Objects

from ipfsmem.content.tree import build_tree
from tests.faults.test_directory_collect import (  # noqa: F401 - the same laws, asked of a bucket
    NEW,
    OLD,
    Stick,
    Stops,
    any_order,
    crash_at,
    test_device_told_of_present_blocks_has_a_day_to_pin,
    test_everything_is_sent_again_after_a_mark,
    test_false_raw_cid_of_a_folder_does_not_free_its_blocks,
    test_little_waste_is_left,
    test_needed_blocks_of_a_pack_move_to_another_pack,
    test_publish_starts_a_due_collection,
    test_space_is_freed_a_day_later,
)
from tests.support.effort import cases, every
from tests.unit.providers.bucket_lab import Bucket, bucket


class Cloud(Stick):
    """A bucket whose server has the clock of the test."""

    def __init__(self, folder: Path, at: Bucket) -> None:
        super().__init__(folder)
        self.at = at
        at.server.clock = lambda: self.clock.ns / 1e9

    def open(self) -> BucketProvider:  # type: ignore[override]
        return self.at.open(clock=self.clock)

    def stamp(self) -> None:
        """Set the server's date of new objects."""

    def packs(self, ending: str) -> set[str]:
        """Return their names."""
        keys = {key.rpartition("/")[2] for key in self.at.server.objects if "/packs/" in key}
        return {key.removesuffix(ending) for key in keys if key.endswith(ending)}

    @property
    def size(self) -> int:
        return sum(len(body) for key, (body, _, _) in self.at.server.objects.items() if key.endswith(".car"))


@pytest.fixture
def stick(tmp_path: Path) -> Iterator[Cloud]:
    with bucket() as at:
        yield Cloud(tmp_path, at)


def test_pack_uploaded_again_after_its_mark_has_another_name(stick: Cloud) -> None:
    """The device that deletes a marked pack cannot see an upload of the same bytes at that moment."""
    stick.put(OLD)
    stick.pin(stick.put(NEW))
    stick.later(1.1)
    stick.collect()
    [marked] = stick.packs(".going")
    before = stick.packs(".car")
    stick.pin(stick.put(OLD))
    [again] = stick.packs(".car") - before
    assert marked in before and again != marked and stick.packs(".going") == {marked}
    stick.later(1.1)
    stick.collect()
    assert marked not in stick.packs(".car") and stick.whole(OLD) and stick.whole(NEW)


def test_pack_stored_again_at_the_last_moment_is_kept(stick: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    stick.put(OLD)
    stick.pin(stick.put(NEW))
    stick.later(1.1)
    stick.collect()
    stick.later(1.1)
    real = BucketCollector._take_away

    def take_away(self: Any, name: str, is_needed: Callable[[], bool]) -> bool:
        stick.pin(stick.put(OLD))  # another device, after this one has read the pins
        return real(self, name, is_needed)

    with monkeypatch.context() as patch:
        patch.setattr(BucketCollector, "_take_away", take_away)
        patch.setattr(BucketCollector, "due", lambda self, view: False)
        stick.collect()
    assert stick.whole(OLD) and stick.whole(NEW)
    for _ in range(3):
        stick.later(1.1)
        stick.collect()
    assert stick.whole(OLD) and stick.whole(NEW) and not stick.packs(".going")


def test_pin_at_the_last_moment_keeps_its_blocks(stick: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pins are read again before each removal, and needed blocks are stored again first."""
    stick.pin(stick.put(NEW))
    old = stick.put(OLD)
    stick.later(1.1)
    stick.collect()
    stick.later(1.1)
    real = BucketCollector._take_away

    def take_away(self: Any, name: str, is_needed: Callable[[], bool]) -> bool:
        stick.pin(old)
        return real(self, name, is_needed)

    with monkeypatch.context() as patch:
        patch.setattr(BucketCollector, "_take_away", take_away)
        stick.collect()
    assert stick.whole(OLD)
    stick.collect()
    assert stick.whole(OLD) and stick.whole(NEW) and not stick.packs(".going")
    stick.unpin(old)
    for _ in range(2):
        stick.later(1.1)
        stick.collect()
    assert not stick.whole(OLD) and stick.whole(NEW)


@pytest.mark.parametrize("days", [30, -30])
def test_wrong_clock_removes_nothing_too_early(stick: Cloud, days: int) -> None:
    """Azure accepts a token in the address at any time."""
    stick.pin(stick.put(NEW))
    old = stick.put(OLD)

    def wrong() -> BucketProvider:
        return stick.at.open(clock=lambda: stick.clock.ns + days * 86_400_000_000_000)

    asyncio.run(wrong().collect())
    assert not stick.packs(".going"), "younger than a day"
    stick.later(1.1)
    for _ in range(2):
        asyncio.run(wrong().collect())
        asyncio.run(wrong().put_car(old, [], name="n"))
    assert len(stick.packs(".going")) == 1 and stick.whole(OLD)
    stick.later(1.1)
    asyncio.run(wrong().collect())
    assert stick.whole(NEW) and stick.whole(OLD) == (days < 0)
    stick.collect()
    assert not stick.whole(OLD) and stick.whole(NEW)


def test_suspended_device_rereads_the_bucket_before_an_upload(stick: Cloud) -> None:
    """It slept for two days while others marked and removed packs."""
    stick.pin(stick.put(NEW))
    device = stick.open()
    stick.put(OLD, provider=device)
    stick.later(1.1)
    stick.collect()
    stick.later(0.9)
    tree = build_tree(OLD)
    asyncio.run(device.put_car(tree.cid, tree.blocks, name="n"))
    stick.pin(tree.cid)
    [marked] = stick.packs(".going")
    stick.later(0.2)
    stick.collect()
    assert marked not in stick.packs(".car") and stick.whole(OLD) and stick.whole(NEW)


def test_pack_without_index_is_ignored_unless_it_is_the_only_source(stick: Cloud) -> None:
    """A device may end between both uploads."""
    stick.pin(stick.put(NEW))
    cids = [cid for cid, _ in build_tree(NEW).blocks]
    for key in [key for key in stick.at.server.objects if key.endswith(".idx")]:
        del stick.at.server.objects[key]
    assert asyncio.run(stick.open().has(cids)) == set()
    assert stick.whole(NEW)
    assert asyncio.run(stick.open().has(cids)) == set(cids), "the index was made again by who read it"
    stick.put(OLD)
    for key in [key for key in stick.at.server.objects if key.endswith(".idx")]:
        del stick.at.server.objects[key]
    for _ in range(3):
        stick.later(1.1)
        stick.collect()
    assert stick.whole(NEW) and not stick.whole(OLD) and stick.packs(".car") == stick.packs(".idx")


@pytest.mark.parametrize("seed", range(cases(1, 5)))
def test_devices_in_any_order_lose_no_pinned_block(stick: Cloud, seed: int) -> None:
    any_order(stick, seed, cases(20, 120))


@pytest.mark.parametrize("step", range(0, 12, every(2)))
def test_crash_at_any_step_loses_no_pinned_block(
    stick: Cloud, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    def crash(patch: pytest.MonkeyPatch, stops: Stops) -> None:
        patch.setattr(Objects, "put", stops(Objects.put))
        patch.setattr(Objects, "delete", stops(Objects.delete))

    crash_at(stick, monkeypatch, step, crash)
