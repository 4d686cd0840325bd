"""`gc` through a peer: the server's disk space is freed a day later and no sooner, and no running
operation loses data."""

from __future__ import annotations

import asyncio
import hashlib
import http.client
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from ipfsmem_providers.peer import PeerProvider

from ipfsmem.content.car import car_bytes
from ipfsmem.content.cid import CID, DAG_PB, IDENTITY, raw_cid
from ipfsmem.content.dagpb import BlockLink
from ipfsmem.content.tree import build_tree
from ipfsmem.device.replica import Environment
from ipfsmem.errors import ProviderRefused
from ipfsmem.http import serving
from ipfsmem.memory import Memory
from ipfsmem.provider.contract import Collecting, Pin
from ipfsmem.testing import SeededRandom, SimProvider
from ipfsmem.vault.home import Home
from tests.faults.test_directory_collect import NEW, OLD, Stick
from tests.servers.threaded import serve
from tests.support.content_lab import encode_node
from tests.unit.published.test_plain_layout import WALLET

TOKEN = "a token of enough length"


@pytest.fixture
def stick(tmp_path: Path) -> Stick:
    (tmp_path / "stick").mkdir()
    return Stick(tmp_path / "stick")


@pytest.fixture
def url(stick: Stick) -> Iterator[str]:
    with serve(lambda: serving.app(stick.open(), token=TOKEN)) as url:
        yield url


def peer(url: str, token: str = TOKEN) -> PeerProvider:
    return PeerProvider(url, {"peer_token": token})


def collect(stick: Stick, url: str) -> int:
    stick.stamp()
    freed = asyncio.run(peer(url).collect())
    stick.stamp()
    return freed


def test_space_on_the_server_is_freed_a_day_later(stick: Stick, url: str) -> None:
    assert isinstance(peer(url), Collecting)
    old, new = stick.put(OLD), stick.put(NEW)
    for root in (old, new):
        asyncio.run(peer(url).pin(root, "n"))
    asyncio.run(peer(url).unpin(Pin(old, "n", "", 0)))
    before = stick.size
    assert collect(stick, url) == 0, "younger than a day"
    stick.later(1.1)
    promised = collect(stick, url)
    assert promised > 90_000 and stick.size == before
    stick.later(1.1)
    assert collect(stick, url) == promised
    assert stick.size == before - promised and stick.whole(NEW) and not stick.whole(OLD)


def test_vault_at_a_peer_frees_space_and_another_device_reads_on(
    stick: Stick, url: str, tmp_path: Path
) -> None:
    def world(seed: str) -> Environment:
        return Environment(lambda: stick.clock.ms, SeededRandom(seed))

    a = Memory.create("x", "encrypted-ipfs", provider=peer(url), unlock=WALLET, passphrase=False, home=Home(folder=tmp_path / "a", environment=world("gc")))  # fmt: skip
    for n in range(5):
        a.write("big", random.Random(n).randbytes(80_000).hex())
        a.write(f"k{n}", f"text {n}")
        asyncio.run(a.sync())
        stick.later(2)
    before = stick.size
    for _ in range(2):
        done = asyncio.run(a.maintenance.gc(keep_roots=1, keep_days=1))
        assert not done.problems and sum(done.freed.values()) > 150_000
        stick.later(1.1)
    assert stick.size < before - 150_000
    b = Memory.load("x", "encrypted-ipfs", provider=peer(url), unlock=WALLET, passphrase=False, home=Home(folder=tmp_path / "b", environment=world("b")))  # fmt: skip
    assert b.files() == a.files() and len(b.files()) == 6
    a.close(), b.close()


def test_device_told_of_present_blocks_has_a_day_to_pin(stick: Stick, url: str) -> None:
    stick.put(OLD)
    stick.pin(stick.put(NEW))
    stick.later(1.1)
    mixed = build_tree({**OLD, "more": b"of it"})
    there = asyncio.run(peer(url).has([cid for cid, _ in mixed.blocks]))
    assert there
    assert collect(stick, url) > 0
    stick.later(0.5)
    asyncio.run(peer(url).put_car(mixed.cid, [b for b in mixed.blocks if b[0] not in there], name="n"))
    asyncio.run(peer(url).pin(mixed.cid, "n"))
    for _ in range(3):
        stick.later(1.1)
        collect(stick, url)
    assert stick.whole({**OLD, "more": b"of it"}) and stick.whole(NEW)


def test_upload_in_progress_loses_no_blocks(stick: Stick, url: str) -> None:
    stick.pin(stick.put(NEW))
    stick.put(OLD)
    stick.later(1.1)
    assert collect(stick, url) > 0
    stick.later(1.1)
    tree = build_tree({**OLD, "more": b"of it"})
    car = car_bytes([tree.cid], tree.blocks)
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=60)
    connection.putrequest("POST", f"/car?root={tree.cid}&name=n")
    connection.putheader("Authorization", f"Bearer {TOKEN}")
    connection.putheader("Content-Length", str(len(car)))
    connection.endheaders(car[: len(car) // 2])
    assert collect(stick, url) > 0, "what was marked a day ago goes, while the other half is on its way"
    assert not stick.whole(OLD)
    connection.send(car[len(car) // 2 :])
    assert connection.getresponse().status == 200
    connection.close()
    asyncio.run(peer(url).pin(tree.cid, "n"))
    for _ in range(3):
        stick.later(1.1)
        collect(stick, url)
    assert stick.whole({**OLD, "more": b"of it"})


def test_reason_for_an_omitted_collection_is_passed_on(stick: Stick, url: str) -> None:
    absent = build_tree({"a/b": b"did not arrive yet"}).cid
    asyncio.run(peer(url).pin(absent, "n"))
    with pytest.raises(ProviderRefused, match=f"{absent}.* nothing was removed"):
        collect(stick, url)


def test_peer_collect_requires_the_token(stick: Stick, url: str) -> None:
    with pytest.raises(ProviderRefused, match="401"):
        asyncio.run(peer(url, "another token, long").collect())
    with serve(lambda: serving.app(stick.open())) as closed, pytest.raises(ProviderRefused, match="403"):
        asyncio.run(peer(closed).collect())


def test_store_without_manual_collection_frees_nothing(tmp_path: Path) -> None:
    with serve(lambda: serving.app(SimProvider(), token=TOKEN)) as url:
        assert asyncio.run(peer(url).collect()) == 0


def test_concurrent_collection_requests_run_once(stick: Stick) -> None:
    runs, asked = [], []

    class Slow(SimProvider):
        async def collect(self) -> int:
            runs.append(1)
            while len(asked) < 4:
                await asyncio.sleep(0.01)
            return 7

    def app() -> web.Application:
        @web.middleware
        async def counted(request: web.Request, handler: Any) -> web.StreamResponse:
            asked.append(request.path)
            answer: web.StreamResponse = await handler(request)
            return answer

        application = serving.app(Slow(), token=TOKEN)
        application.middlewares.append(counted)
        return application

    async def many(url: str) -> list[int]:
        return await asyncio.gather(*(peer(url).collect() for _ in range(4)))

    with serve(app) as url:
        assert asyncio.run(many(url)) == [7] * 4 and len(runs) == 1 and len(asked) == 4
        assert asyncio.run(peer(url).collect()) == 7 and len(runs) == 2


def test_peer_reports_damage_to_writers_only(stick: Stick, url: str) -> None:
    class Hurt(SimProvider):
        async def missing_blocks(self) -> list[object]:
            return [build_tree(OLD).cid]

    with serve(lambda: serving.app(Hurt(), token=TOKEN)) as hurt:
        assert asyncio.run(peer(hurt).missing_blocks()) == [build_tree(OLD).cid]
        assert asyncio.run(peer(hurt, "").missing_blocks()) == []
        assert asyncio.run(peer(hurt, "another token, long").missing_blocks()) == []
        provider = peer(hurt)

        async def body() -> None:
            await provider.has([build_tree(NEW).cid])
            before = provider._http.requests
            assert await provider.missing_blocks() == [build_tree(OLD).cid]
            assert provider._http.requests == before, "the response to `has` reported it"
            await provider.close()

        asyncio.run(body())


def test_inline_folder_cid_is_followed(stick: Stick) -> None:
    leaf = b"what only the inline folder leads to"
    cid = raw_cid(hashlib.sha256(leaf).digest())
    inner = encode_node([BlockLink("leaf", cid, len(leaf))], b"\x08\x01")
    inline = CID(1, DAG_PB, bytes((IDENTITY, len(inner))) + inner)
    outer = encode_node([BlockLink("inner", inline, len(inner))], b"\x08\x01")
    root = CID(1, DAG_PB, b"\x12\x20" + hashlib.sha256(outer).digest())
    asyncio.run(stick.open().put_car(root, [(root, outer), (cid, leaf)], name="n"))
    stick.pin(root), stick.pin(inline)
    stick.put(OLD)
    for _ in range(3):
        stick.later(1.1)
        stick.collect()
    assert not stick.whole(OLD)
    assert asyncio.run(stick.open().get_blocks([root, cid])) == {root: outer, cid: leaf}
