"""Real servers that are killed in use: the next server or the next try continues."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from ipfsmem_providers.gateways import Gateways
from ipfsmem_providers.http.body import SpooledCar
from ipfsmem_providers.http.client import Http
from ipfsmem_providers.http.policy import ONCE

from ipfsmem.content.tree import build_tree
from ipfsmem.errors import ProviderUnavailable
from ipfsmem.provider.contract import Provider, open_provider
from tests.interop import counterparts, trees
from tests.interop.counterparts import after

TOKEN = "a token of enough length"
#: More than the pipes between two processes hold.
TREE = build_tree({f"memory/file{n}.md": trees.chacha20(f"killed {n}", 500_000) for n in range(60)})
BLOCKS = dict(TREE.blocks)


@contextlib.contextmanager
def served(folder: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A real `ipfsmem serve peer`: its URL and its process."""
    process = subprocess.Popen(
        [sys.executable, "-m", "ipfsmem.cli", "serve", "peer", str(folder), "--create", "--port", "0", "--json"],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "IPFSMEM_SERVE_TOKEN": TOKEN},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"], process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()  # type: ignore[union-attr]


def put(provider: Provider) -> None:
    async def body() -> None:
        try:
            assert await provider.put_car(TREE.cid, TREE.blocks, name="n") == TREE.cid
            assert await provider.has(list(BLOCKS)) == set(BLOCKS)
            await provider.pin(TREE.cid, "n")
            assert [pin.cid for pin in await provider.pins("n")] == [TREE.cid]
            assert dict([block async for block in provider.get_dag(TREE.cid)]) == BLOCKS
        finally:
            await provider.close()

    asyncio.run(body())


def test_peer_killed_while_receiving_a_tree_loses_nothing(tmp_path: Path) -> None:
    settings = {"peer_token": TOKEN, "retry": ONCE}
    with served(tmp_path / "folder") as (url, process):
        dying = open_provider(
            f"peer:{url}", {**settings, "progress": after("sent", 12_000_000, process.kill)}
        )
        with pytest.raises(ProviderUnavailable):
            put(dying)
        assert process.wait(60) < 0
    folder = open_provider(str(tmp_path / "folder"))
    assert asyncio.run(folder.pins("n")) == [] and asyncio.run(folder.has(list(BLOCKS))) == set()
    with served(tmp_path / "folder") as (url, _):
        put(open_provider(f"peer:{url}", settings))


@pytest.mark.interop
def test_gateway_killed_while_sending_a_tree_is_replaced(tmp_path: Path) -> None:
    """The blocks received before are kept."""
    with (
        served(tmp_path / "folder") as (url, _),
        counterparts.process([counterparts.gopeer_program(), "serve"]) as (go, process),
    ):
        put(open_provider(f"peer:{url}", {"peer_token": TOKEN}))

        async def upload() -> None:
            http = Http("go", trusted=[go])
            with await SpooledCar.write(TREE.cid, TREE.blocks) as car:
                await http.request("POST", f"{go}/car", body=car)
            await http.close()

        asyncio.run(upload())
        both = Gateways(
            f"{go},{url}", {"progress": after("received", 6_000_000, process.kill), "retry": ONCE}
        )

        async def read() -> list[tuple[object, bytes]]:
            try:
                return [block async for block in both.get_dag(TREE.cid)]
            finally:
                await both.close()

        found = asyncio.run(read())
        assert process.wait(60) < 0
        assert dict(found) == BLOCKS and len(found) == len(BLOCKS)
