"""Trying a provider out, and moving to another one: checked there, resumable, nothing lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ipfsmem.content.cid import raw_cid
from ipfsmem.errors import ProviderRefused, ProviderUnavailable
from ipfsmem.memory import Memory
from ipfsmem.opening import Unlock
from ipfsmem.seal.signers import RawKeySigner
from ipfsmem.sync.probe import probe
from ipfsmem.testing import SeededRandom, SimCloud, SimProvider

WALLET = Unlock(RawKeySigner(bytes(31) + b"\x09"))


def device(home: Path, name: str, provider: SimProvider) -> Memory:
    return Memory.load(
        "m",
        "encrypted-ipfs",
        provider=provider,
        unlock=WALLET,
        unprotected_keys=True,
        home=home / name,
        create=True,
    )


def test_a_move_under_load_loses_nothing_and_may_be_cut_off(tmp_path: Path) -> None:
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
            asyncio.run(a.move(new))
        a.write(f"during-{count}", "written between two attempts")
    new.faults.reset_after = None
    moved = asyncio.run(a.move(new))
    assert len(moved.roots) >= 7 and not moved.incomplete and moved.checked > 10
    old.faults.offline = True
    c = device(tmp_path, "c", new)
    assert c.files() == a.files()
    assert {"from-b", "during-1", "during-4", "during-2", "k0", "k5"} <= c.files().keys()
    assert moved.roots[0] in {str(pin.cid) for pin in new.cloud.pins}


def test_a_target_that_lacks_a_block_is_not_relied_on(tmp_path: Path) -> None:
    old, new = SimProvider(SimCloud(), name="old"), SimProvider(SimCloud(), name="new")
    a = device(tmp_path, "a", old)
    a.write("k", "text")
    asyncio.run(a.sync())
    (loc,) = [value.loc for value in a.replica.store.entry("m/k").values()]
    assert loc is not None
    new.faults.drop.add(raw_cid(bytes.fromhex(loc.sha)))
    with pytest.raises(ProviderRefused, match="does not have block"):
        asyncio.run(a.move(new))
    assert [provider.name for provider in a._providers] == ["old"]


def test_a_probe_tells_what_holds_and_what_does_not() -> None:
    good = asyncio.run(probe(SimProvider(), now_ms=1_800_000_000_000, random=SeededRandom(1)))
    assert {step.outcome for step in good} == {"ok"} and len(good) == 8
    liar = SimProvider()
    liar.faults.has = "none"
    steps = {s.what: s for s in asyncio.run(probe(liar, now_ms=1_800_000_000_000, random=SeededRandom(1)))}
    assert steps["has"].outcome == "failed" and steps["upload"].outcome == "ok"
    gone = SimProvider()
    gone.faults.offline = True
    (only,) = asyncio.run(probe(gone, now_ms=1_800_000_000_000, random=SeededRandom(1)))
    assert only.outcome == "failed"
