"""Testing a provider, and moving to another one: verified there, resumable, without loss."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from pathlib import Path

import msgspec
import pytest
from ipfsmem_providers.directory import DirectoryProvider

from ipfsmem.content.cid import CID, raw_cid
from ipfsmem.errors import IncompleteError, ProviderRefused, ProviderUnavailable, UsageError
from ipfsmem.provider.contract import Capabilities
from ipfsmem.provider.probe import OVERALL, probe
from ipfsmem.provider.small_objects import LISTED_MAX, SMALL_BATCH, small_box, small_name
from ipfsmem.testing import SeededRandom, SimCloud, SimProvider
from ipfsmem.testing.simulator import FULL
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.signers import RawKeySigner
from tests.support.device_lab import load
from tests.support.hints import Refused, hinted

WALLET = Unlock(RawKeySigner(bytes(31) + b"\x09"))
device = partial(load, wallet=WALLET)


def test_move_that_keeps_no_version_is_refused(tmp_path: Path) -> None:
    a = device(tmp_path, "a", SimProvider(SimCloud(), name="old"))
    with pytest.raises(UsageError, match=r"move: keep_roots must be 1 or more \(got 0\)"):
        asyncio.run(a.providers.move(SimProvider(SimCloud(), name="new"), keep_roots=0))
    assert [provider.name for provider in a.providers.in_use] == ["old"]


def test_interrupted_move_with_concurrent_writes_loses_nothing(tmp_path: Path) -> None:
    old, new = SimProvider(SimCloud(), name="old"), SimProvider(SimCloud(), name="new")
    a = device(tmp_path, "a", old)
    b = device(tmp_path, "b", old)
    for n in range(6):
        a.write(f"k{n}", f"text {n}")
        asyncio.run(a.sync())
    b.write("from-b", "written while the move begins")
    asyncio.run(b.sync())
    for count in (1, 4, 2):
        new.faults.reset_after = count
        with pytest.raises(ProviderUnavailable):
            asyncio.run(a.providers.move(new))
        a.write(f"during-{count}", "written between two attempts")
    new.faults.reset_after = None
    moved = asyncio.run(a.providers.move(new)).moved
    assert len(moved.roots) >= 7 and not moved.incomplete and moved.checked > 10
    old.faults.offline = True
    c = device(tmp_path, "c", new)
    assert c.files() == a.files()
    assert {"from-b", "during-1", "during-4", "during-2", "k0", "k5"} <= c.files().keys()
    assert moved.roots[0] in {str(pin.cid) for pin in new.cloud.pins}


@pytest.mark.parametrize("lists", [False, True])
def test_move_from_a_dead_provider_uploads_from_this_device(tmp_path: Path, lists: bool) -> None:
    can = msgspec.structs.replace(FULL, names=False) if lists else FULL
    old, new = (SimProvider(SimCloud(), name=name, capabilities=can) for name in ("old", "new"))
    a = device(tmp_path, "a", old)
    b = device(tmp_path, "b", old)
    for n in range(5):
        a.write(f"k{n}", f"text {n}")
        asyncio.run(a.sync())
        b.write(f"b{n}", f"text {n} of b")
        asyncio.run(b.sync())
    asyncio.run(a.sync())
    old.faults.offline = True
    a.write("last", "written after it died")
    moved = asyncio.run(a.providers.move(new)).moved
    assert moved.roots and a.status().root in moved.roots
    assert [provider.name for provider in a.providers.in_use] == ["new"]
    c = device(tmp_path, "c", new)
    assert c.files() == a.files() and "last" in c.files()
    b.write("b-last", "written meanwhile")
    asyncio.run(b.sync(provider=new))
    asyncio.run(a.sync())
    assert a.read("b-last") is not None


def test_unreadable_old_roots_of_a_dead_provider_do_not_block_a_move(tmp_path: Path) -> None:
    lists = msgspec.structs.replace(FULL, names=False)
    old, new = (SimProvider(SimCloud(), name=name, capabilities=lists) for name in ("old", "new"))
    a = device(tmp_path, "a", old)
    for n in range(5):
        a.write(f"k{n}", f"text {n}")
        a.write("gone", f"only in root {n}")
        asyncio.run(a.sync())
    b = device(tmp_path, "b", old)
    old.faults.offline = True
    moved = asyncio.run(b.providers.move(new)).moved
    assert b.status().root in moved.roots and moved.incomplete and "no route" in moved.down
    c = device(tmp_path, "c", new)
    assert c.files() == b.files() == a.files()


def test_move_to_a_provider_that_loses_a_block_fails(tmp_path: Path) -> None:
    old, new = SimProvider(SimCloud(), name="old"), SimProvider(SimCloud(), name="new")
    a = device(tmp_path, "a", old)
    a.write("k", "text")
    asyncio.run(a.sync())
    (loc,) = [value.loc for value in a.replica.store.entry("m/k").values()]
    assert loc is not None
    new.faults.drop.add(raw_cid(bytes.fromhex(loc.sha)))
    with pytest.raises(ProviderRefused, match="does not have part") as refused:
        asyncio.run(a.providers.move(new))
    assert [provider.name for provider in a.providers.in_use] == ["old"]
    hinted("Run the move again; a service may take hours to serve an upload.", refused.value.hint)
    new.faults.drop.clear()
    asyncio.run(a.providers.move(new))
    assert device(tmp_path, "c", new).files() == a.files()


class Later(SimProvider):
    """A service that accepts uploads, and serves them some hours later."""

    serves = False

    async def get_blocks(self, cids: Iterable[CID]) -> dict[CID, bytes]:
        return await super().get_blocks(cids) if self.serves else {}


def test_move_waits_for_a_provider_that_serves_later(tmp_path: Path) -> None:
    can = msgspec.structs.replace(FULL, has=False, raw=False)
    old, new = SimProvider(SimCloud(), name="old"), Later(SimCloud(), name="new", capabilities=can)
    a = device(tmp_path, "a", old)
    a.write("k", "text")
    asyncio.run(a.sync())
    with Refused("Run the move again later."):
        asyncio.run(a.providers.move(new))
    assert [provider.name for provider in a.providers.in_use] == ["old"]
    new.serves = True
    asyncio.run(a.providers.move(new))
    assert [provider.name for provider in a.providers.in_use] == ["new"]
    assert device(tmp_path, "c", new).files() == a.files()


def test_provider_test_reports_each_working_and_failing_step() -> None:
    good = asyncio.run(probe(SimProvider(), now_ms=1_800_000_000_000, random=SeededRandom(1)))
    assert {step.outcome for step in good} == {"ok"} and len(good) == 10
    assert good[-1].text == "full"
    liar = SimProvider()
    liar.faults.has = "none"
    steps = {s.what: s for s in asyncio.run(probe(liar, now_ms=1_800_000_000_000, random=SeededRandom(1)))}
    assert steps["has"].outcome == "failed" and steps["upload"].outcome == "ok"
    gone = SimProvider()
    gone.faults.offline = True
    first, overall = asyncio.run(probe(gone, now_ms=1_800_000_000_000, random=SeededRandom(1)))
    assert first.outcome == overall.outcome == "failed"
    assert overall.text == "unreliable: upload failed"


def test_provider_test_of_a_read_only_provider_sends_a_request() -> None:
    gateway = SimProvider(capabilities=Capabilities(put=False, blocks=True))
    there = asyncio.run(probe(gateway, now_ms=1_800_000_000_000, random=SeededRandom(1)))
    assert [step.outcome for step in there if step.what in ("answer", OVERALL)] == ["ok", "ok"]
    gateway.faults.offline = True
    gone = asyncio.run(probe(gateway, now_ms=1_800_000_000_000, random=SeededRandom(1)))
    assert (gone[1].what, gone[1].outcome, gone[-1].outcome) == ("answer", "failed", "failed")


def test_move_carries_small_objects_of_the_vault(tmp_path: Path) -> None:
    old, new = SimProvider(SimCloud(), name="old"), SimProvider(SimCloud(), name="new")
    a = device(tmp_path, "a", old)
    a.write("k", "text")
    asyncio.run(a.sync())
    box = small_box(bytes.fromhex(a.replica.config.vault.anchor))
    mine = {small_name(box, f"n.{n}", b"%d" % n): b"%d" % n for n in range(SMALL_BATCH + 3)}
    other = {small_name("0" * 32, "n", b"other"): b"other"}
    damaged = {small_name(box, "damaged", b"x"): b"y"}
    old.cloud.small = {**mine, **other, **damaged}
    assert asyncio.run(a.sync()) and old.cloud.small.keys() >= mine.keys()
    moved = asyncio.run(a.providers.move(new)).moved
    assert (moved.small_objects, moved.small_objects_left) == (len(mine), 0)
    assert new.cloud.small == mine and old.cloud.small.keys() >= mine.keys()


def test_move_of_small_objects_reports_what_the_target_cannot_keep(tmp_path: Path) -> None:
    old = SimProvider(SimCloud(), name="old")
    new = SimProvider(SimCloud(), name="new", capabilities=msgspec.structs.replace(FULL, small=False))
    a = device(tmp_path, "a", old)
    a.write("k", "text")
    asyncio.run(a.sync())
    box = small_box(bytes.fromhex(a.replica.config.vault.anchor))
    old.cloud.small = {small_name(box, "n", b"x"): b"x"}
    result = asyncio.run(a.providers.move(new))
    assert (result.moved.small_objects, result.moved.small_objects_left) == (0, 1)
    with pytest.raises(IncompleteError, match="1 small object could not be copied"):
        result.raise_if_incomplete("new")


def test_move_reports_a_provider_that_lists_no_small_objects(tmp_path: Path) -> None:
    class Failing(SimProvider):
        async def list_small(self, boxes: Collection[str]) -> dict[str, int]:
            raise ProviderUnavailable("not now")

    old, new = Failing(SimCloud(), name="old"), SimProvider(SimCloud(), name="new")
    a = device(tmp_path, "a", old)
    a.write("k", "text")
    asyncio.run(a.sync())
    result = asyncio.run(a.providers.move(new))
    assert result.moved.roots and result.moved.small_unlisted == ["old"]
    with pytest.raises(IncompleteError, match="old did not list all small objects"):
        result.raise_if_incomplete("new")


def test_move_copies_small_objects_when_the_old_provider_is_added_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failing(self: DirectoryProvider, boxes: Collection[str]) -> dict[str, int]:
        if self.name != specs[0]:
            return {}
        raise ProviderUnavailable("not now")

    specs = [f"directory:{tmp_path / name}" for name in ("old", "new")]
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    a = device(tmp_path, "a", [specs[0]])
    a.write("k", "text")
    asyncio.run(a.sync())
    name = small_name(small_box(bytes.fromhex(a.replica.config.vault.anchor)), "n", b"x")
    asyncio.run(DirectoryProvider(str(tmp_path / "old")).put_small(name, b"x"))
    with monkeypatch.context() as patch:
        patch.setattr(DirectoryProvider, "list_small", failing)
        result = asyncio.run(a.providers.move(specs[1]))
    with pytest.raises(IncompleteError, match="did not list all small objects") as caught:
        result.raise_if_incomplete(specs[1])
    hinted("Add the old provider, then move again: ipfsmem provider add SPEC", caught.value.hint)
    a.providers.add(specs[0])
    again = asyncio.run(a.providers.move(specs[1]))
    again.raise_if_incomplete(specs[1])
    assert again.moved.small_objects == 1
    assert [one.name for one in a.providers.in_use] == [specs[1]]


def test_move_of_a_full_box_reports_that_more_may_be_there(tmp_path: Path) -> None:
    old, new = SimProvider(SimCloud(), name="old"), SimProvider(SimCloud(), name="new")
    a = device(tmp_path, "a", old)
    a.write("k", "text")
    asyncio.run(a.sync())
    box = small_box(bytes.fromhex(a.replica.config.vault.anchor))
    old.cloud.small = {f"{box}/{n:05}.{n:064x}": b"x" for n in range(LISTED_MAX + 1)}
    assert asyncio.run(a.providers.move(new)).moved.small_unlisted == ["old"]


def test_small_objects_that_an_outage_hides_are_reported_by_a_move(tmp_path: Path) -> None:
    class Failing(SimProvider):
        async def get_small(self, names: Sequence[str]) -> dict[str, bytes]:
            raise ProviderUnavailable("not now")

    old, new = Failing(SimCloud(), name="old"), SimProvider(SimCloud(), name="new")
    a = device(tmp_path, "a", old)
    a.write("k", "text")
    asyncio.run(a.sync())
    box = small_box(bytes.fromhex(a.replica.config.vault.anchor))
    old.cloud.small = {small_name(box, "n", b"x"): b"x"}
    result = asyncio.run(a.providers.move(new))
    assert (result.moved.small_objects, result.moved.small_objects_left) == (0, 1)
    with pytest.raises(IncompleteError, match="1 small object could not be copied"):
        result.raise_if_incomplete("new")
