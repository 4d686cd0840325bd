"""Several providers at once: publish to all, read from any, and one that is down holds nothing up."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ipfsmem.errors import ProviderUnavailable
from ipfsmem.memory import Memory
from ipfsmem.opening import Unlock
from ipfsmem.seal.signers import RawKeySigner
from ipfsmem.sync.provider import Provider
from ipfsmem.testing import SimCloud, SimProvider

WALLET = Unlock(RawKeySigner(bytes(31) + b"\x08"))


def device(home: Path, name: str, providers: list[str | Provider]) -> Memory:
    return Memory.load(
        "m",
        "encrypted-ipfs",
        provider=providers,
        unlock=WALLET,
        unprotected_keys=True,
        home=home / name,
        create=True,
    )


def test_publish_to_all_read_from_any(tmp_path: Path) -> None:
    first, second = SimCloud(), SimCloud()
    a = device(tmp_path, "a", [SimProvider(first, name="one"), SimProvider(second, name="two")])
    a.write("k", "text")
    root = asyncio.run(a.sync()).root
    for number, cloud in enumerate((first, second)):
        b = device(tmp_path, f"b{number}", [SimProvider(cloud, name="only")])
        assert b.read("k").file.body == "text"  # type: ignore[union-attr]
        assert root in {entry.root for entry in b.log()}


def test_one_that_is_down_holds_nothing_up_and_gets_it_later(tmp_path: Path) -> None:
    first, second = SimProvider(SimCloud(), name="one"), SimProvider(SimCloud(), name="two")
    a = device(tmp_path, "a", [first, second])
    a.write("k", "text")
    asyncio.run(a.sync())
    second.faults.offline = True
    a.write("k", "changed while two was down")
    report = asyncio.run(a.sync())
    assert report.published
    assert {notice.kind for notice in report.notices} >= {"channel-down", "provider-down"}
    first.faults.offline = True
    a.write("k", "changed while both were down")
    with pytest.raises(ProviderUnavailable):
        asyncio.run(a.sync())
    assert a.status().unpublished
    second.faults.offline = False
    asyncio.run(a.sync())
    b = device(tmp_path, "b", [second])
    assert b.read("k").file.body == "changed while both were down"  # type: ignore[union-attr]


def test_a_block_that_one_provider_spoilt_comes_from_the_other(tmp_path: Path) -> None:
    first, second = SimCloud(), SimCloud()
    a = device(tmp_path, "a", [SimProvider(first, name="one"), SimProvider(second, name="two")])
    a.write("k", "text")
    asyncio.run(a.sync())
    spoilt = SimProvider(first, name="one")
    for cid in list(first.blocks):
        spoilt.faults.flip[cid] = 3
    b = device(tmp_path, "b", [spoilt, SimProvider(second, name="two")])
    assert b.read("k").file.body == "text"  # type: ignore[union-attr]
