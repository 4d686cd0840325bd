"""A peer's list of its store and its removals: only for holders of the token, and only what was requested."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from ipfsmem_providers.directory import DirectoryProvider
from ipfsmem_providers.http.policy import ONCE
from ipfsmem_providers.peer import PeerProvider

from ipfsmem.content.cid import CID
from ipfsmem.content.tree import build_tree
from ipfsmem.errors import ProviderRefused
from ipfsmem.http import blocks as serving
from ipfsmem.memory import Memory
from ipfsmem.provider.contract import Pin, Provider, lister
from ipfsmem.sync.presence import load_notes
from ipfsmem.testing import SimCloud, SimProvider
from tests.servers.threaded import serve
from tests.support.device_lab import ROOT

T = TypeVar("T")
TOKEN = "open sesame 13"
TREES = [build_tree({"a.md": f"text {n}".encode()}) for n in range(3)]


def over(store: Provider, work: Callable[[PeerProvider], Awaitable[T]], *, token: str = TOKEN) -> T:
    """Return the result of `work` with a peer that serves `store`."""

    async def body(url: str) -> T:
        settings: dict[str, Any] = {"retry": ONCE, **({"peer_token": token} if token else {})}
        peer = PeerProvider(url, settings)
        try:
            return await work(peer)
        finally:
            await peer.close()

    with serve(lambda: serving.app(store, token=TOKEN)) as url:
        return asyncio.run(body(url))


async def fill(peer: Provider) -> list[Pin]:
    """Add three roots under one name, the first also under another."""
    for tree in TREES:
        await peer.put_car(tree.cid, tree.blocks, name="n")
    pins = [await peer.pin(tree.cid, "n") for tree in TREES]
    return [*pins, await peer.pin(TREES[0].cid, "other")]


def test_peer_lists_the_content_of_its_store(tmp_path: Path) -> None:
    store = DirectoryProvider(tmp_path)

    async def work(peer: PeerProvider) -> None:
        assert await peer.listing() == {}
        await peer.put_car(TREES[0].cid, TREES[0].blocks, name="n")
        first = await peer.listing()
        assert first == await store.listing() != {}
        await peer.put_car(TREES[1].cid, TREES[1].blocks, name="n")
        assert first.items() < (await peer.listing()).items()
        for pack in (tmp_path / "packs").glob("*.car"):
            pack.unlink()
        assert first.keys().isdisjoint(await peer.listing())

    over(store, work)


def test_listing_requires_the_token(tmp_path: Path) -> None:
    async def without(peer: PeerProvider) -> None:
        assert lister(peer) is None
        with pytest.raises(ProviderRefused):
            await peer.listing()

    over(DirectoryProvider(tmp_path), without, token="")

    async def wrong(peer: PeerProvider) -> None:
        assert lister(peer) is not None
        with pytest.raises(ProviderRefused):
            await peer.listing()

    over(DirectoryProvider(tmp_path), wrong, token="another token 1")


def test_store_without_listing_is_still_readable() -> None:
    async def work(peer: PeerProvider) -> dict[str, int]:
        await fill(peer)
        assert set(await peer.read_stored([TREES[0].cid])) == {TREES[0].cid}
        return await peer.listing()

    assert over(SimProvider(SimCloud()), work) == {}


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("kind", ["folder", "simulated"])
def test_unpin_at_a_peer_removes_the_named_pins_only(tmp_path: Path, kind: str, many: bool) -> None:
    store: Provider = DirectoryProvider(tmp_path) if kind == "folder" else SimProvider(SimCloud())

    async def work(peer: PeerProvider) -> None:
        pins = await fill(peer)

        async def named(name: str) -> set[CID]:
            return {pin.cid for pin in await peer.pins(name)}

        for _ in range(2):
            if many:
                await peer.unpin_all(pins[:2])
            else:
                for pin in pins[:2]:
                    await peer.unpin(pin)
            assert await named("n") == {TREES[2].cid} and await named("other") == {TREES[0].cid}
        if not many:
            # A handle alone removes nothing: it names the entry of this root under this name.
            await peer.unpin(Pin(TREES[1].cid, "other", "", 0))
            assert await named("n") == {TREES[2].cid} and await named("other") == {TREES[0].cid}

    over(store, work)


def test_pack_deleted_at_a_peer_is_repaired_by_the_next_sync(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    with serve(lambda: serving.app(DirectoryProvider(store), token=TOKEN)) as url:
        memory = Memory.create("m", "encrypted-ipfs", provider=PeerProvider(url, {"peer_token": TOKEN}), unlock=ROOT, recovery=False, passphrase=False, home=tmp_path / "home")  # fmt: skip
        memory.write("k", "text")
        asyncio.run(memory.sync())
        assert load_notes(memory.replica, memory.status().presence[0].provider).listing
        packs = list((store / "packs").glob("*.car"))
        for pack in packs:
            pack.unlink()
        report = asyncio.run(memory.sync())
        assert "repaired" in {notice.kind for notice in report.notices} and report.exit_code == 0
        assert asyncio.run(memory.providers.check(full=True))[0].state == "ok"
        memory.close()
