"""Each fault at each provider: every call ends in time with correct data or an error of ours, and a sync
serves another provider completely within a time limit.

The limits are measured with the clock of this machine, at a hundredth of the production values."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from ipfsmem_providers.directory import DirectoryProvider
from ipfsmem_providers.packs.pins import tag_of

from ipfsmem.content.cid import CID, ipns_name
from ipfsmem.content.tree import build_tree
from ipfsmem.content.verify import verify_block
from ipfsmem.errors import ProviderError, ProviderRefused, ProviderUnavailable
from ipfsmem.memory import Memory
from ipfsmem.provider.contract import Block, Provider, Unreading, small_area
from ipfsmem.provider.small_objects import small_box, small_name
from ipfsmem.published import ipns_record
from ipfsmem.seal.primitives import Signer25519
from ipfsmem.sync.report import SyncReport
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.signers import RawKeySigner
from tests.servers.faults import Faults
from tests.support.patience import PATIENCE
from tests.unit.providers.sick_lab import BOUND, FEW_PAIRS, LIMITS, PAIRS, Bench, bench, late

TREE = build_tree({"a.md": b"one", "sub/b.md": b"two" * 300})
SEED = b"\x07" * 32
NAME = ipns_name(Signer25519(SEED).public)
RECORD = ipns_record.make_record(SEED, f"/ipfs/{TREE.cid}", 3, 2_500_000_000_000_000_000)
BOX = small_box(b"a" * 32)
SMALL = small_name(BOX, "a", b"small")
UNLOCK = Unlock(RawKeySigner(bytes(31) + b"\x23"))


#: Starts a server with the client's files in a folder.
Start = Callable[[Path], AbstractContextManager[Bench]]


def of_pairs(pairs: list[Any]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        ("kind", "illness"), pairs, ids=[f"{kind}-{ill.__name__}" for kind, ill in pairs]
    )


async def _all(blocks: AsyncIterator[Block]) -> list[Block]:
    return [block async for block in blocks]


def _right(blocks: Iterable[Block]) -> bool:
    for cid, data in blocks:
        verify_block(cid, data)
    return True


@of_pairs(PAIRS)
def test_each_call_ends_with_correct_data_or_a_provider_error(
    kind: str, illness: Callable[[Faults], None], tmp_path: Path
) -> None:
    tells_the_truth(partial(bench, kind), illness, tmp_path)


def tells_the_truth(start: Start, illness: Callable[[Faults], None], tmp_path: Path) -> None:
    """Check that each call at a faulty server ends with correct data or an error of ours."""
    with start(tmp_path) as at:

        async def before() -> CID:
            well = at.filler()
            root = await well.put_car(TREE.cid, TREE.blocks, name="n")
            if well.capabilities.names:
                await well.put_name(NAME, RECORD)
            if well.capabilities.pin:
                await well.pin(root, "n")
            if at.open().capabilities.small and (area := small_area(well)) is not None:
                await area.put_small(SMALL, b"small")
            await well.close()
            return root

        root = asyncio.run(before())
        illness(at.faults)
        at.limits = LIMITS
        cids = [cid for cid, _ in TREE.blocks]
        other = build_tree({"c.md": b"three"})

        async def ask() -> None:
            sick = at.open()
            can = sick.capabilities
            calls: list[tuple[bool, Callable[[], Coroutine[Any, Any, Any]], Callable[[Any], bool]]] = [
                (can.has, lambda: sick.has(cids), lambda got: got <= set(cids)),
                (can.blocks, lambda: sick.get_blocks([root, *cids]), lambda got: _right(got.items())),
                (can.dag, lambda: _all(sick.get_dag(root)), _right),
                (can.list, lambda: sick.pins("n"), lambda got: {pin.cid for pin in got} <= {root}),
                (can.names, lambda: sick.get_name(NAME), lambda got: got in (None, RECORD)),
                (can.put, lambda: sick.put_car(other.cid, other.blocks, name="n"), lambda got: got != root),
                (can.pin, lambda: sick.pin(root, "n"), lambda got: got.cid == root),
            ]  # fmt: skip
            if (area := small_area(sick)) is not None:
                calls += [
                    (True, lambda: area.list_small([BOX]), lambda got: got.keys() <= {SMALL}),
                    (True, lambda: area.get_small([SMALL]), lambda got: got in ({}, {SMALL: b"small"})),
                    (
                        True,
                        lambda: area.put_small(small_name(BOX, "b", b"new"), b"new"),
                        lambda got: got is None,
                    ),
                    (True, lambda: area.remove_small([SMALL]), lambda got: got is None),
                ]
            for call, true in ((call, true) for able, call, true in calls if able):
                try:
                    got = await asyncio.wait_for(call(), PATIENCE)
                except ProviderError as error:
                    assert illness is not late or not error.permanent
                else:
                    assert true(got)
            await sick.close()

        asyncio.run(ask())


def _memory(home: Path, providers: list[Provider], **more: Any) -> Memory:
    return Memory.load(
        "m", "encrypted-ipfs", provider=providers, unlock=UNLOCK, passphrase=False, home=home, **more
    )


@of_pairs(FEW_PAIRS)
def test_provider_next_to_a_faulty_one_is_fully_synced(
    kind: str, illness: Callable[[Faults], None], tmp_path: Path
) -> None:
    """One of three syncs must meet the time limit, because other programs may slow the machine down."""
    serves_another(partial(bench, kind), illness, tmp_path)


def serves_another(start: Start, illness: Callable[[Faults], None], tmp_path: Path) -> None:
    """Check that a sync with a faulty server ends in time, and that another provider has everything."""
    for run in range(3):
        (home := tmp_path / str(run)).mkdir()
        took, well = _synced_beside(start, illness, home)
        if took < BOUND + 5 * well:
            return
    raise AssertionError(f"{took:.1f} s, and {well:.1f} s when both were well")


def _synced_beside(start: Start, illness: Callable[[Faults], None], tmp_path: Path) -> tuple[float, float]:
    """Return the seconds of a sync with the faulty provider, and of one before the fault."""
    with start(tmp_path / "sick") as at:
        (tmp_path / "stick").mkdir()

        def both() -> list[Provider]:
            return [at.open(company=True, silence={}), DirectoryProvider(tmp_path / "stick")]

        with _memory(tmp_path / "one", both(), create=True) as one:
            one.write("note", "text")
            began = time.monotonic()
            asyncio.run(one.sync())
            well = time.monotonic() - began
            illness(at.faults)
            at.limits = LIMITS
            one.write("note", "new text")
        with _memory(tmp_path / "one", both()) as one:
            began = time.monotonic()
            report: SyncReport = asyncio.run(one.sync())
            took = time.monotonic() - began
        with _memory(tmp_path / "two", [DirectoryProvider(tmp_path / "stick")]) as two:
            assert two.read("note").file.body == "new text"  # type: ignore[union-attr]
    assert report.root is not None and report.published
    # The time of this machine for a sync without waits is not the faulty provider's.
    return took, well


def _v3(number: int, empty: bool) -> str:
    row = {"id": "1", "cid": str(TREE.cid), "name": "n", "created_at": "2026-11-01T00:00:00Z"}
    return json.dumps({"data": {"files": [] if empty else [row], "next_page_token": f"token {number}"}})


def _legacy(_: int, empty: bool) -> str:
    row = {"ipfs_pin_hash": str(TREE.cid), "date_pinned": "2026-11-01T00:00:00Z", "metadata": {"name": "n"}}
    return json.dumps({"count": 10**9, "rows": [] if empty else [row] * 1000})


def _s3(number: int, empty: bool) -> str:
    return _list(
        number, "" if empty else f"<Contents><Key>ipfsmem/n/{TREE.cid}.car</Key><Size>5</Size></Contents>"
    )


def _list(number: int, rows: str) -> str:
    token = f"<NextContinuationToken>{number}</NextContinuationToken>"
    return f"<ListBucketResult><IsTruncated>true</IsTruncated>{token}{rows}</ListBucketResult>"


def _psa(number: int, empty: bool) -> str:
    row = {
        "requestid": "r", "status": "pinned", "created": f"2026-11-01T00:00:{number % 60:02}Z",
        "pin": {"cid": str(TREE.cid), "name": "n"}, "delegates": ["/ip4/127.0.0.1/tcp/9"],
    }  # fmt: skip
    return json.dumps({"count": 10**9, "results": [] if empty else [row]})


@pytest.mark.parametrize("empty", [False, True])
@pytest.mark.parametrize(
    ("kind", "page"),
    [("pinata-car", _v3), ("pinata-legacy", _legacy), ("filebase-s3", _s3), ("filebase-rpc", _psa), ("pinning_service", _psa)],
)  # fmt: skip
def test_endless_listing_is_aborted_after_a_few_pages(
    kind: str, page: Callable[[int, bool], str], empty: bool, tmp_path: Path
) -> None:
    """The same entries under a new cursor each time, or empty pages: at the rate of a plan a thousand of
    them take a quarter of an hour."""
    with bench(kind, tmp_path) as at:
        asked = [0]

        async def fault(_: web.Request) -> web.StreamResponse:
            asked[0] += 1
            return web.Response(text=page(asked[0], empty), content_type="application/json")

        at.faults.add("GET", ".*", fault, times=-1)
        provider = at.open()
        if empty and page in (_psa, _legacy):
            assert asyncio.run(provider.pins("n")) == []
            assert isinstance(provider, Unreading)
            assert provider.unread() == ["1,000,000,000 pins that its list counts and does not show"]
        else:
            with pytest.raises(ProviderRefused, match="so the rest is unread"):
                asyncio.run(provider.pins("n"))
    assert asked[0] <= (10 if empty else 4)


@pytest.mark.parametrize("empty", [False, True])
def test_endless_list_of_a_bucket_is_aborted(empty: bool, tmp_path: Path) -> None:
    """The same keys under a new token each time, or empty pages, which obstore skips internally."""
    with bench("bucket", tmp_path) as at:
        if empty:
            at.limits = LIMITS  # obstore requests pages until the time of the call is over
        asked = [0]

        async def fault(_: web.Request) -> web.StreamResponse:
            asked[0] += 1
            key = f"mem/pins/{tag_of('n')}/{TREE.cid}.1700000000000.json"
            when = "2026-11-01T00:00:00.000Z"
            row = f"<Contents><Key>{key}</Key><LastModified>{when}</LastModified><ETag>e</ETag><Size>5</Size></Contents>"
            text = _list(asked[0], "" if empty else row * 1_000)  # as many as obstore returns at once
            return web.Response(text=text, content_type="application/xml")

        at.faults.add("GET", ".*", fault, times=-1)
        if empty:
            with pytest.raises(ProviderUnavailable, match="does not answer"):
                asyncio.run(at.open().pins("n"))
        else:
            with pytest.raises(ProviderError, match="the same objects again"):
                asyncio.run(at.open().pins("n"))
            assert asked[0] <= 10
